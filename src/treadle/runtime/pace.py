"""How many iterations of a loop are submitted at once, where reading its condition takes time."""

from __future__ import annotations

MOST_ITERATIONS = 64
# Iterations of a batch take at most so many times as long as a read: a loop costs little more than
# its iterations then, and what may be undone at its end is short.
_READS = 3.0
_SINGLE = 2  # iterations by themselves at first: one of them may compile something
_SHORTEST = 1e-7  # seconds of an iteration


class Pace:
    """The batches of one loop, by what its earlier ones have shown. What they take decides how
    large the next one is, and never what is computed.

    >>> pace, sizes = Pace(), []
    >>> for _ in range(9):
    ...     sizes.append(pace.next(sum(sizes)))
    ...     pace.note(sizes[-1], 100e-6 + sizes[-1] * 10e-6)    # a read, and the iterations
    >>> sizes
    [1, 1, 2, 4, 8, 16, 16, 16, 16]
    >>> pace.end(sum(sizes)); pace.next(76)                     # as many as last time
    4
    """

    def __init__(self, most: int = MOST_ITERATIONS) -> None:
        self._most = most
        self._size = 1
        self._singles = 0
        self._least: dict[int, float] = {}  # seconds of a batch, by its size
        self._expected = 0  # iterations: as many as the loop had the last time

    def next(self, done: int) -> int:
        """The iterations of the next batch, after so many."""
        if done < self._expected:
            return min(self._size, self._expected - done)
        if done == self._expected > 0:
            self._size = 1  # it is likely to end soon
        return self._size

    def note(self, count: int, seconds: float) -> None:
        """A batch, all of whose iterations count, has taken so long with its read."""
        self._least[count] = min(seconds, self._least.get(count, seconds))
        self._singles += count == 1
        if count != self._size or self._singles < _SINGLE:
            return
        self._size = min(2 * count, self._worthwhile(), self._most)

    def end(self, done: int) -> None:
        """The loop has ended after so many iterations."""
        self._expected = done

    def _worthwhile(self) -> int:
        """The largest batch that is worth its end, a power of two."""
        known = max(self._least)
        if known == 1:
            return 2  # to find out
        single = self._least[1]
        iteration = max((self._least[known] - single) / (known - 1), _SHORTEST)
        worth = int(_READS * max(single - iteration, 0.0) / iteration)
        return 1 << max(worth.bit_length() - 1, 0)
