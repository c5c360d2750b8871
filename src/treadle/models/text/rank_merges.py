"""Byte-level byte-pair encoding in Python, for where the `tokenizers` library cannot be installed,
as in a browser: the same tokens, made more slowly.

A text is split by the pre-tokenizer's expressions, each word becomes characters that stand for its
bytes, and of all adjacent symbols those merge first whose merge stands first in the file.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

from treadle.models.text.pieces import bytes_of_characters

_CACHED_WORDS = 65536
# Unicode's white space; Python's own \s has four control characters more.
_SPACES = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# Where characters with a category that expressions name are; the remaining planes have none.
_ASSIGNED = (range(0x40000), range(0xE0000, 0xE0200))
_PARTS = re.compile(r"\\p\{(\w+)\}|\\([sS])|\\.|\[|\]|.", re.DOTALL)


def rank_merges(
    ids: dict[str, int],
    merges: Sequence[tuple[str, str]],
    expressions: Sequence[str],
    whole_words: bool,
) -> Callable[[str], list[int]]:
    """A function from text to tokens. Bytes without a token give none."""
    ranks = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}
    splits = [re.compile(in_python(expression)) for expression in expressions]
    characters = {byte: character for character, byte in bytes_of_characters().items()}
    known: dict[str, list[int]] = {}

    def encode(text: str) -> list[int]:
        words = [text] if text else []
        for split in splits:
            words = [part for word in words for part in _isolated(split, word)]
        result: list[int] = []
        for word in words:
            tokens = known.get(word)
            if tokens is None:
                if len(known) >= _CACHED_WORDS:
                    known.clear()
                tokens = known[word] = tokens_of("".join([characters[b] for b in word.encode()]))
            result += tokens
        return result

    def tokens_of(word: str) -> list[int]:
        if whole_words and word in ids:
            return [ids[word]]
        symbols = _merged([each if each in ids else "" for each in word], ranks)
        return [ids[symbol] for symbol in symbols if symbol]

    return encode


def _isolated(split: re.Pattern[str], text: str) -> list[str]:
    """The matches in a text, and what lies between them."""
    parts, end = [], 0
    for match in split.finditer(text):
        parts += [text[end : match.start()], match[0]]
        end = match.end()
    return [part for part in (*parts, text[end:]) if part]


def _merged(symbols: list[str], ranks: dict[tuple[str, str], int]) -> list[str]:
    """The symbols that remain when no two adjacent ones merge; "" merges with nothing. Words are
    short, so each merge looks through all pairs."""
    last = len(ranks)
    while len(symbols) > 1:
        pairs = list(pairwise(symbols))
        best = min(range(len(pairs)), key=lambda at: ranks.get(pairs[at], last))
        if pairs[best] not in ranks:
            break
        symbols[best : best + 2] = ["".join(pairs[best])]
    return symbols


def in_python(expression: str) -> str:
    r"""An expression with Unicode's categories, as `\p{L}`, in the syntax of Python's `re`."""
    parts = []
    in_class = False
    for match in _PARTS.finditer(expression):
        category, space = match.groups()
        part = match[0]
        if category is not None:
            part = _ranges(category)
        elif space is not None:
            part = _SPACES
        if part in "[]":
            in_class = part == "["
        elif (category or space) and not in_class:
            part = f"[^{part}]" if space == "S" else f"[{part}]"
        elif space == "S":
            raise ValueError(f"\\S within a class: {expression}")
        parts.append(part)
    return "".join(parts)


def _ranges(category: str) -> str:
    """The characters of a category, or of all that begin with one letter, as a class's ranges."""
    found = sorted(
        span for name, spans in _categories().items() if name.startswith(category) for span in spans
    )
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in found)


@cache
def _categories() -> dict[str, list[tuple[int, int]]]:
    """The first and last characters of the runs of each category."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for plane in _ASSIGNED:
        start, current = plane.start, unicodedata.category(chr(plane.start))
        for code in plane:
            category = unicodedata.category(chr(code))
            if category != current:
                found[current].append((start, code - 1))
                start, current = code, category
        found[current].append((start, plane.stop - 1))
    return found
