"""Texts of different lengths in rows of one length, several to a row.

A batch of texts padded to the longest wastes what the others lack, and each longest length is a
shape for which a program is traced. Here a row takes texts until it is full, the longest first; the
lengths of rows and their number in a batch are powers of two, so that a handful of shapes serves
all texts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_SHORTEST_ROW = 16
_USUAL_ROW = 64  # where there are texts enough: attention costs little more than in shorter ones
_TOKENS_PER_TEXT = 4  # on average at least: rows have room for so many texts


@dataclass(frozen=True)
class Batch:
    """Rows of tokens: `tokens`, `positions` in their texts, and `texts`, the number of the text
    in the row of each token, all (n, length) int32; padding has a number of its own.

    `members` has the numbers of all texts, by rows.
    """

    tokens: np.ndarray
    positions: np.ndarray
    texts: np.ndarray
    members: list[list[int]]

    @property
    def room(self) -> int:
        """How many texts a row has room for."""
        return room(self.tokens.shape[1])


def room(length: int) -> int:
    """How many texts a row of that many tokens has room for."""
    return length // _TOKENS_PER_TEXT


def batches(texts: Sequence[Sequence[int]], tokens: int) -> Iterator[Batch]:
    """All texts in batches of about so many tokens, the longest first."""
    waiting = _Waiting(texts)
    while waiting.lengths:
        longest = _power_of_two(waiting.lengths[-1])
        length = max(longest, _SHORTEST_ROW, min(_USUAL_ROW, _power_of_two(waiting.tokens)))
        most = max(tokens // length, 1)
        rows: list[list[int]] = []
        while waiting.lengths and len(rows) < most:
            rows.append(waiting.row(length))
        yield _batch(texts, rows, length, min(_power_of_two(len(rows)), most))


class _Waiting:
    """Texts that are not in a row yet, by their lengths."""

    def __init__(self, texts: Sequence[Sequence[int]]) -> None:
        self._by_length: dict[int, list[int]] = {}
        for index, text in enumerate(texts):
            self._by_length.setdefault(len(text), []).append(index)
        self.lengths = sorted(self._by_length)
        self.tokens = sum(len(text) for text in texts)

    def row(self, space: int) -> list[int]:
        """Texts for a row of that many tokens: the longest, then always the longest that fits."""
        taken: list[int] = []
        most = room(space)
        while len(taken) < most and (place := bisect_right(self.lengths, space) - 1) >= 0:
            length = self.lengths[place]
            same = self._by_length[length]
            taken.append(same.pop())
            if not same:
                del self.lengths[place]
            space -= length
            self.tokens -= length
        return taken


def _batch(texts: Sequence[Sequence[int]], rows: list[list[int]], length: int, count: int) -> Batch:
    tokens, positions, numbers = (np.zeros((count, length), np.int32) for _ in range(3))
    numbers -= 1
    for row, members in enumerate(rows):
        at = 0
        for number, index in enumerate(members):
            size = len(texts[index])
            tokens[row, at : at + size] = texts[index]
            positions[row, at : at + size] = np.arange(size)
            numbers[row, at : at + size] = number
            at += size
    return Batch(tokens, positions, numbers, rows)


def _power_of_two(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()
