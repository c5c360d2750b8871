"""Plans of Fourier transforms: the passes that a length is split into, and tables of factors."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from treadle.kernels.device_code.butterflies import RADICES
from treadle.kernels.device_code.fourier_blocks import Tile
from treadle.kernels.device_code.fourier_passes import NEAR, twiddle_places

Table = np.ndarray[Any, Any]


class Capacity(NamedTuple):
    """What one pass can do: lines of up to `whole` elements, of up to `part` if a transform has
    several passes or its lines lie side by side. With fewer lines than `busy` a transform of
    `worth` elements or more is done in parts, which have more lines. Rows of `worth` to `rows`
    elements are done as matrices whose sides are `busy` or more, if they have such factors."""

    whole: int
    part: int
    busy: int = 0
    worth: int = 0
    rows: int = 0


@functools.lru_cache(1024)
def halves(n: int, capacity: Capacity) -> tuple[int, int] | None:
    """The sides of the matrix as which a row of n elements is transformed; None if it is not.

    >>> capacity = Capacity(2048, 1024, 16, 128, 8192)
    >>> halves(1024, capacity), halves(1009, capacity)
    ((32, 32), None)
    """
    if not capacity.worth <= n <= capacity.rows or radices(n) is None:
        return None
    parts = _parts(n, 2, n)
    return (parts[0], parts[1]) if parts is not None and min(parts) >= capacity.busy else None


_ADJACENT = 4  # adjacent lines that a block should have: with 8 bytes each, a memory sector
_ELEMENTS = 16  # of a thread, at most
_MOST_THREADS = 256
_FEW = 1024  # elements that a block should have


def capacity_of_blocks(elements: int, threads: int) -> Capacity:
    """That of blocks with shared memory for so many elements, and so many threads."""
    most = min(elements, _ELEMENTS * min(threads, _MOST_THREADS))
    return Capacity(most, most // _ADJACENT)


def tile(radices: tuple[int, ...], lines: int, capacity: int, across: bool, threads: int) -> Tile:
    """A block's share of a pass over so many lines; its shared memory has `capacity` elements."""
    n, widest = math.prod(radices), max(radices)
    most = max(min(threads, _MOST_THREADS), 1)
    wanted = min(_ELEMENTS * most, capacity)
    held = min(16 if across else -(-_FEW // n), wanted // n, lines)
    if not across:
        held = min(held, max(lines // _BUSY, 1))
    held = 1 << (max(held, 1).bit_length() - 1)  # fewer kernels, and cheap to divide by
    used = -(-n * held // widest)
    threads = min(1 << (used - 1).bit_length() if used > 1 else 1, most)
    size = n * held
    return Tile(held, threads, size + size // 16 <= capacity)


_BUSY = 256  # blocks that keep a GPU busy


@functools.lru_cache(1024)
def split(n: int, outer: int, inner: int, capacity: Capacity) -> tuple[int, ...] | None:
    """The lengths of one, two or three passes, whose product is n; None where there are none.

    >>> capacity = Capacity(2048, 1024)
    >>> split(1 << 20, 1, 1, capacity), split(1009, 1, 1, capacity)
    ((1024, 1024), None)
    """
    if radices(n) is None:
        return None
    neighbours = inner if inner >= capacity.busy else outer * inner
    fits = n <= (capacity.part if inner > 1 else capacity.whole)
    if fits and (neighbours >= capacity.busy or n < capacity.worth):
        return (n,)
    for count in (2, 3):
        parts = _parts(n, count, capacity.part)
        if parts is not None:
            return parts
    return (n,) if n <= capacity.whole else None


def _parts(n: int, count: int, most: int) -> tuple[int, ...] | None:
    """Factors of n, as equal as they can be."""
    if count == 1:
        return (n,) if 1 < n <= most else None
    wanted = n ** (1 / count)
    for first in sorted(_divisors(n), key=lambda d: (abs(math.log(d / wanted)), d)):
        if 1 < first <= most:
            cofactor = _parts(n // first, count - 1, most)
            if cofactor is not None:
                return (first, *cofactor)
    return None


@functools.lru_cache(256)
def _divisors(n: int) -> tuple[int, ...]:
    found = [1]
    cofactor = n
    for prime in (2, 3, 5, 7, 11, 13):
        powers = [1]
        while cofactor % prime == 0:
            cofactor //= prime
            powers.append(powers[-1] * prime)
        found = [d * power for d in found for power in powers]
    return tuple(found)


@functools.lru_cache(1024)
def radices(n: int) -> tuple[int, ...] | None:
    """Butterflies whose product is n; None if there are none.

    >>> radices(1024), radices(60), radices(17)
    ((8, 8, 4, 4), (5, 3, 4), None)
    """
    if n == 1:
        return (1,)
    found: list[int] = []
    cofactor = n
    for radix in (r for r in reversed(RADICES) if r % 2):
        while cofactor % radix == 0:
            found.append(radix)
            cofactor //= radix
    if cofactor & (cofactor - 1):
        return None
    bits = cofactor.bit_length() - 1
    eights = max((bits - 2) // 3, 0) if bits % 3 == 1 else bits // 3
    left = bits - 3 * eights
    found += [8] * eights + {0: [], 1: [2], 2: [4], 4: [4, 4]}[left]
    return tuple(found)


def convolution_length(n: int) -> int:
    """A length of at least 2 n - 1 that is quick to transform."""
    needed = 2 * n - 1
    choices = (odd << max((-(-needed // odd) - 1).bit_length(), 0) for odd in (1, 3, 5, 9))
    return min(choice for choice in choices if choice >= needed)


# --- factors, in complex128 ----------------------------------------------------------------------


def roots(n: int, count: int) -> Table:
    """exp(-2 pi i k / n) for the first so many k."""
    return _circle(np.arange(count), n)


def twiddles(n: int) -> Table:
    """The factors between the stages of one pass, as `twiddle_places` lays them out."""
    found = radices(n)
    assert found is not None
    table = np.ones(max(twiddle_places(found)[-1], 1), np.complex128)
    behind = 1
    for radix, start in zip(found, twiddle_places(found), strict=False):
        if behind > 1:
            powers = np.outer(np.arange(1, radix), np.arange(behind))
            table[start : start + powers.size] = _circle(powers.ravel(), radix * behind)
        behind *= radix
    return table


def pass_twiddles(first: int, cofactor: int) -> Table:
    """The factors between two passes: exp(-2 pi i j k / (first * cofactor)) at k * cofactor + j."""
    return _circle(np.outer(np.arange(first), np.arange(cofactor)).ravel(), first * cofactor)


def pass_twiddles_by_two(n: int) -> Table:
    """The same by two factors each, for `Pass.turned`."""
    near, far = np.arange(NEAR), np.arange(0, n, NEAR)
    return np.concatenate([_circle(near, n), _circle(far, n)])


def chirp(n: int, length: int) -> Table:
    """exp(-pi i j² / n) for j < n, then zeros up to a length."""
    table = np.zeros(length, np.complex128)
    j = np.arange(n, dtype=np.int64)
    table[:n] = _circle(j * j % (2 * n), 2 * n)
    return table


def chirp_spectrum(n: int, m: int) -> Table:
    """The transform of the conjugate chirp, of the length m and periodic, over m."""
    table = chirp(n, m).conj()
    table[m - n + 1 :] = table[1:n][::-1]
    return np.fft.fft(table) / m


def _circle(k: Any, n: int) -> Table:
    table: Table = np.exp(-2j * np.pi * (k.astype(np.int64) % n) / n)
    return table
