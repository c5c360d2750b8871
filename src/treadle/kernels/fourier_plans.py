"""Plans of Fourier transforms: the passes that a length is split into, and tables of factors."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from treadle.kernels.device_code.butterflies import RADICES
from treadle.kernels.device_code.fourier_blocks import COALESCED, Tile
from treadle.kernels.device_code.fourier_passes import twiddle_places

Table = np.ndarray[Any, Any]


class Capacity(NamedTuple):
    """What one pass can do: lines of up to `whole` elements, of up to `part` if a transform has
    several passes or its lines lie side by side. With fewer lines than `busy` a transform of
    `worth` elements or more is done in parts, which have more lines. Rows of `worth` to `rows`
    elements are done as matrices whose sides are `busy` or more, if they have such factors.
    `threads`: the most of a block."""

    whole: int
    part: int
    busy: int = 0
    worth: int = 0
    rows: int = 0
    threads: int = 1


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
_WIDE = 16  # the same where there are many lines
_ELEMENTS = 16  # of a thread, at most
_MOST_THREADS = 128  # of a block, if it has several lines
_BUSY = 256  # blocks that keep a GPU busy
_FEW_BLOCKS = 128
_SHARED_ELEMENTS = 4608  # of one of several blocks that a GPU's core works on at once
# Instructions of a butterfly, without reading and writing its elements.
_WORK = {
    1: 0, 2: 4, 3: 14, 4: 16, 5: 36, 6: 44, 7: 70, 8: 60, 9: 110, 10: 110, 11: 160, 12: 116,
    13: 220, 14: 190, 15: 200, 16: 170, 17: 350, 19: 430, 23: 600, 29: 920, 31: 1030,
}  # fmt: skip
_PER_ELEMENT, _PER_STAGE, _MOVED = 16, 60, 48


def capacity_of_blocks(elements: int, threads: int) -> Capacity:
    """That of blocks with shared memory for so many elements, and so many threads."""
    room = elements * _ELEMENTS // (_ELEMENTS + 1)  # some of it stays empty
    most = min(room, _ELEMENTS * threads)
    return Capacity(most, most // _ADJACENT, threads=threads)


class BlockPlan(NamedTuple):
    """The butterflies of a line, and how a block does some lines."""

    radices: tuple[int, ...]
    tile: Tile


@functools.lru_cache(1024)
def block_plan(n: int, lines: int, elements: int, across: bool, threads: int) -> BlockPlan:
    """A block's share of a pass over so many lines, which lie side by side (`across`) or one after
    the other; its shared memory has room for so many elements, and it has so many threads at most.
    """
    radices, lanes = block_radices(n, threads)
    most = min(threads // lanes, elements * _ELEMENTS // ((_ELEMENTS + 1) * n), lines)
    if across:
        held = max(_WIDE, 1 << (max(_MOST_THREADS // lanes, 1).bit_length() - 1))
        while held > _ADJACENT and (
            lines < held * _FEW_BLOCKS or held * n > 2 * _SHARED_ELEMENTS or held * lanes > 512
        ):
            held //= 2
        held = min(held, most)
        held = 1 << (max(held, 1).bit_length() - 1)
    else:
        fits = min(_MOST_THREADS // lanes, _SHARED_ELEMENTS // n, most)
        busy = lines // _BUSY
        if fits > busy:  # few lines: powers of two, so that there are few kernels
            fits = 1 << (max(busy, 1).bit_length() - 1)
        held = max(range(max(fits, 1), 0, -1), key=lambda count: _filled(count * lanes))
    return BlockPlan(radices, Tile(held, lanes))


def _filled(threads: int) -> float:
    """How much of its subgroups of 32 a block uses; a few more threads are better than too few."""
    return threads / (-(-threads // 32) * 32) * min(threads, 96)


@functools.lru_cache(1024)
def block_radices(n: int, threads: int) -> tuple[tuple[int, ...], int]:
    """The butterflies of a line for blocks, and how many threads share it: those with the least
    work.

    >>> block_radices(1024, 256), block_radices(1000, 256)
    (((16, 16, 4), 64), ((10, 10, 10), 50))
    """
    return _best_radices(n, threads)[1:]


def _block_work(n: int, threads: int) -> float:
    return _best_radices(n, threads)[0]


@functools.lru_cache(1024)
def _best_radices(n: int, threads: int) -> tuple[float, tuple[int, ...], int]:
    """The work of a line (a number of instructions), its radices and lanes."""
    best: tuple[float, tuple[int, ...], int] | None = None
    for found in _factorizations(n, max(_WORK)):
        choices = {-(-n // (radix * times)) for radix in set(found) for times in (1, 2, 3, 4)}
        for lanes in sorted(choices):
            own = max(-(-n // (radix * lanes)) * radix for radix in found)
            is_much = own > _ELEMENTS + 4
            if lanes > threads or (is_much and lanes * (_ELEMENTS + 4) >= n):
                continue
            work = sum(
                -(-n // (radix * lanes)) * (_WORK[radix] + _PER_ELEMENT * radix) for radix in found
            )
            if lanes < COALESCED:
                work += -(-n // lanes) * _MOVED
            cost = lanes * (work + _PER_STAGE * len(found)) * (1.3 if is_much else 1.0)
            if best is None or cost < best[0]:
                best = cost, found, lanes
    assert best is not None
    return best


@functools.lru_cache(4096)
def _factorizations(n: int, most: int) -> tuple[tuple[int, ...], ...]:
    """All ways to write n as a product of butterflies, greatest first, none above `most`."""
    if n == 1:
        return ((),) if most < max(_WORK) else ((1,),)
    found = []
    for radix in range(min(n, most), 1, -1):
        if radix in _WORK and n % radix == 0:
            rest = ((),) if n == radix else _factorizations(n // radix, radix)
            found += [(radix, *more) for more in rest]
    return tuple(found)


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
    for prime in (2, *(radix for radix in RADICES if radix % 2)):
        powers = [1]
        while cofactor % prime == 0:
            cofactor //= prime
            powers.append(powers[-1] * prime)
        found = [d * power for d in found for power in powers]
    return tuple(found)


@functools.lru_cache(1024)
def radices(n: int) -> tuple[int, ...] | None:
    """Butterflies whose product is n; None if there are none.

    >>> radices(1024), radices(60), radices(37)
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


@functools.lru_cache(1024)
def block_convolution(n: int, inner: int, capacity: Capacity) -> int | None:
    """The length of a convolution for n elements that a block can do, which is quick to transform;
    None where n needs none or is too long."""
    if radices(n) is not None:
        return None
    most = capacity.part if inner > 1 else capacity.whole
    choices = [m for m in _convolution_lengths(n) if m <= most]
    return min(choices, key=lambda m: _block_work(m, capacity.threads), default=None)


@functools.lru_cache(1024)
def convolution_parts(n: int, capacity: Capacity) -> tuple[int, int] | None:
    """The sides of a matrix of a length for convolutions, which blocks can do by columns and rows,
    the rows in several stages; None where there are none."""
    for m in _convolution_lengths(n):
        parts = _parts(m, 2, capacity.part)
        if m <= _MOST_BY_PARTS and parts is not None:
            rows = max(parts)
            if len(block_radices(rows, capacity.threads)[0]) > 1:
                return m // rows, rows
    return None


_MOST_BY_PARTS = 1 << 22  # elements that tables are made for


def _convolution_lengths(n: int) -> list[int]:
    """Lengths of at least 2 n - 1, the least first: few, so that kernels serve several n."""
    needed = 2 * n - 1
    return sorted(
        odd << max((-(-needed // odd) - 1).bit_length(), 0) for odd in (1, 3, 5, 9, 15, 25)
    )


def convolution_length(n: int) -> int:
    """A length of at least 2 n - 1 that is quick to transform."""
    needed = 2 * n - 1
    choices = (odd << max((-(-needed // odd) - 1).bit_length(), 0) for odd in (1, 3, 5, 9))
    return min(choice for choice in choices if choice >= needed)


# --- factors, in complex128 ----------------------------------------------------------------------


def roots(n: int, count: int) -> Table:
    """exp(-2 pi i k / n) for the first so many k."""
    return _circle(np.arange(count), n)


def twiddles(radices: tuple[int, ...]) -> Table:
    """The factors between the stages of one pass, as `twiddle_places` lays them out."""
    table = np.ones(max(twiddle_places(radices)[-1], 1), np.complex128)
    behind = 1
    for radix, start in zip(radices, twiddle_places(radices), strict=False):
        if behind > 1:
            powers = np.outer(np.arange(1, radix), np.arange(behind))
            table[start : start + powers.size] = _circle(powers.ravel(), radix * behind)
        behind *= radix
    return table


def pass_twiddles(first: int, cofactor: int) -> Table:
    """The factors between two passes: exp(-2 pi i j k / (first * cofactor)) at k * cofactor + j."""
    return _circle(np.outer(np.arange(first), np.arange(cofactor)).ravel(), first * cofactor)


def pass_twiddles_by_two(first: int, cofactor: int, last: int) -> Table:
    """The same by two factors each, for `Pass.two_tables`; `last` is the last radix of `first`."""
    behind, lines = first // last, np.arange(cofactor)
    steps = np.concatenate([np.arange(last) * behind, np.arange(behind)])
    return _circle(np.outer(steps, lines).ravel(), first * cofactor)


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
