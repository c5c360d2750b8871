"""Special tokens in text: where they stand, and the text between them.

User-defined tokens are always taken from the text before it is split further; control tokens only
when the caller asks, since text of a stranger must not open another role's turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_WHITE_SPACE = " \t\n\v\f\r"


class SpecialTokens:
    """Splits text at special tokens, the longest first, as llama.cpp does."""

    def __init__(self, ids: Mapping[str, int], strip_after: frozenset[int] = frozenset()) -> None:
        self._ids = {text: token for text, token in ids.items() if text}
        self._strip_after = strip_after
        # A search for the first two characters finds the few places that are looked at closer.
        lengths: dict[str, set[int]] = {}
        for text in self._ids:
            lengths.setdefault(text[:2], set()).add(len(text))
        self._lengths = {start: sorted(found) for start, found in lengths.items()}
        self._starts = _pattern(lengths)

    def split(self, text: str) -> list[str | int]:
        """The text in order: strings, and the numbers of special tokens."""
        present = self._present(text)
        pieces: list[str | int] = [text] if text else []
        for special in sorted(present, key=lambda each: -len(each.encode())):
            pieces = [part for piece in pieces for part in self._split_at(piece, special)]
        return pieces

    def _present(self, text: str) -> set[str]:
        if self._starts is None:
            return set()
        present = set()
        for match in self._starts.finditer(text):
            at = match.start()
            for start in {text[at : at + 1], text[at : at + 2]}:
                for length in self._lengths.get(start, ()):
                    if (candidate := text[at : at + length]) in self._ids:
                        present.add(candidate)
        return present

    def _split_at(self, piece: str | int, special: str) -> Iterable[str | int]:
        if isinstance(piece, int) or special not in piece:
            return (piece,)
        token = self._ids[special]
        strip = token in self._strip_after
        parts: list[str | int] = []
        for index, part in enumerate(piece.split(special)):
            if index:
                parts.append(token)
                part = part.lstrip(_WHITE_SPACE) if strip else part
            if part:
                parts.append(part)
        return parts


def _pattern(starts: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that matches before each of these starts, which may overlap."""
    seconds: dict[str, str] = {}
    alone = set()
    for start in starts:
        if len(start) == 1:
            alone.add(start)
        seconds[start[0]] = seconds.get(start[0], "") + start[1:]
    if not seconds:
        return None
    options = [
        re.escape(first) + ("" if first in alone else "[" + re.escape(following) + "]")
        for first, following in seconds.items()
    ]
    return re.compile("(?=" + "|".join(options) + ")")
