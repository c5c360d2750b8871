"""SentencePiece's byte-pair encoding, whose vocabulary has scores instead of merges.

Two adjacent symbols may merge if their text is a token; the pair whose token has the highest score
merges first, and of equal ones the leftmost. Characters that no token covers become bytes.

The merging is written here and not left to the `tokenizers` library, which wants a list of merges:
all splits of each token into two others. For Gemma's 262,144 tokens that list takes longer to make
than the rest of the file takes to load, and it loses what the rule above says of equal scores and
of characters that are in the vocabulary only as parts of longer tokens.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

SPACE = "▁"  # how SentencePiece writes a space
_CACHED_WORDS = 65536


def score_merges(
    ids: dict[str, int],
    scores: Sequence[float],
    byte_ids: Sequence[int | None],
    unknown: int | None,
) -> Callable[[str], list[int]]:
    """A function from text, with spaces as `SPACE`, to tokens."""
    # One word for each: a dictionary of costs would be as large as the vocabulary.
    costs = array("d", [-score for score in scores])
    words = _words(ids)

    def cost_of(text: str) -> float | None:
        token = ids.get(text)
        return None if token is None else costs[token]

    known: dict[str, list[int]] = {}

    def tokens_of(symbol: str) -> list[int]:
        token = ids.get(symbol)
        if token is not None:
            return [token]
        numbers = (byte_ids[byte] for byte in symbol.encode())
        return [
            token for token in (unknown if n is None else n for n in numbers) if token is not None
        ]

    def encode(text: str) -> list[int]:
        result: list[int] = []
        for word in words(text):
            tokens = known.get(word)
            if tokens is None:
                tokens = [token for symbol in _merged(word, cost_of) for token in tokens_of(symbol)]
                if len(known) >= _CACHED_WORDS:
                    known.clear()
                known[word] = tokens
            result += tokens
        return result

    return encode


def _words(ids: dict[str, int]) -> Callable[[str], list[str]]:
    """Splits text where no token reaches across: before a space that follows another character.

    Such a place merges with nothing, so the words are encoded by themselves and remembered. Files
    have a few tokens that do reach across; the characters before a space in these do not split.
    """
    before = re.compile(f"(?s)([^{SPACE}]){SPACE}")
    crossing = {character for text in ids if SPACE in text for character in before.findall(text)}
    kept = re.escape("".join(sorted(crossing)))
    return re.compile(f"(?<=[^{SPACE}{kept}])(?={SPACE})").split


def _merged(word: str, cost_of: Callable[[str], float | None]) -> list[str]:
    """The symbols that remain when no two adjacent ones can merge."""
    symbols = list(word)  # "" where a symbol has merged with the one to its left
    count = len(symbols)
    following = list(range(1, count + 1))
    before = list(range(-1, count))
    heap = []
    for left in range(count - 1):
        text = word[left : left + 2]
        if (cost := cost_of(text)) is not None:
            heap.append((cost, left, text))
    heapify(heap)
    while heap:
        _, left, text = heappop(heap)
        first, right = symbols[left], following[left]
        if not first or right >= count or first + symbols[right] != text:
            continue  # one of both has merged with another since
        symbols[left], symbols[right] = text, ""
        after = following[left] = following[right]
        if after < count:
            before[after] = left
            longer = text + symbols[after]
            if (cost := cost_of(longer)) is not None:
                heappush(heap, (cost, left, longer))
        previous = before[left]
        if previous >= 0:
            longer = symbols[previous] + text
            if (cost := cost_of(longer)) is not None:
                heappush(heap, (cost, previous, longer))
    return [symbol for symbol in symbols if symbol]
