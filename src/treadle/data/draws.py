"""Random numbers for the order of items, on the host: the same everywhere for a generator's state.

A draw of a `Generator` (its seed, and the draw's number) is the key of NumPy's Philox generator, of
whose raw words NumPy promises that they stay what they are. All else is made of those here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.tensor.generator import Generator, default_generator

Draws = Generator | int | None  # what a parameter `generator` takes; a number is a seed
Words = np.ndarray[Any, np.dtype[np.uint64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


def as_generator(generator: Draws) -> Generator | None:
    """The generator that an argument names. None stays: the default one, at the time of a draw."""
    if generator is None or isinstance(generator, Generator):
        return generator
    return Generator(generator)


class Draw:
    """The random numbers of one draw, as many as are wanted."""

    def __init__(self, seed: int, number: int) -> None:
        self._source = np.random.Philox(key=np.array([seed, number], dtype=np.uint64))

    def words(self, count: int) -> Words:
        """So many words of 64 bits."""
        return np.asarray(self._source.random_raw(count), dtype=np.uint64)

    def uniform(self, count: int) -> Floats:
        """So many numbers from 0 up to 1."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def permutation(self, count: int) -> np.ndarray[Any, np.dtype[np.intp]]:
        """The numbers from 0 to `count - 1` in random order."""
        return np.argsort(self.words(count), kind="stable")

    def integers(self, count: int, below: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """So many integers from 0 to `below - 1`."""
        return (self.uniform(count) * below).astype(np.int64)


def drawn_from(generator: Draws) -> Draw:
    """The next draw of a generator."""
    return Draw(*(as_generator(generator) or default_generator()).next_draw())
