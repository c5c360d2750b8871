"""Fourier transforms of a few elements that a thread holds: the butterflies of longer ones.

Powers of two are done by halving (Cooley and Tukey 1965, decimation in frequency). Odd primes are
small; their elements k and n - k are added and subtracted first, which halves the multiplications
of the plain sum. Other numbers are products of two of these: transforms of columns, constant
factors, transforms of rows.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Function

RADICES = (2, 3, 4, 5, 7, 8, 11, 13, 17, 19, 23, 29, 31)
# Those that are made of others, as columns times rows.
PRODUCTS = {6: (3, 2), 9: (3, 3), 10: (5, 2), 12: (3, 4), 14: (7, 2), 15: (5, 3)}


@functools.cache
def butterfly(radix: int, component: DType) -> Function:
    """A function that transforms the elements `base` to `base + radix` of a local array in place.
    Element k of the result is then at `base + order(radix)[k]`."""
    if radix == 1:
        return _nothing
    if radix in PRODUCTS:
        return _by_product(*PRODUCTS[radix], component)
    if radix % 2 == 0:
        return _by_halves(radix, component)
    return _by_pairs(radix, component)


@functools.cache
def order(radix: int) -> tuple[int, ...]:
    """Where a butterfly leaves the elements of its result.

    >>> order(8), order(6)
    ((0, 4, 2, 6, 1, 5, 3, 7), (0, 2, 4, 1, 3, 5))
    """
    if radix in PRODUCTS:
        columns, rows = PRODUCTS[radix]
        places = order(rows)
        return tuple(
            k % columns * rows + places[k // columns] for k in range(radix)
        )  # columns are odd, so that they stay in order
    if radix % 2:
        return tuple(range(radix))
    bits = radix.bit_length() - 1
    return tuple(int(f"{k:0{bits}b}"[::-1], 2) for k in range(radix))


def times(component: DType) -> Function:
    """The product of two complex numbers."""
    return _times(component)


@functools.cache
def _times(component: DType) -> Function:
    pair = td.vec2[component]

    @td.func
    def product(a, b):
        return pair(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x)

    return product


@td.func
def _nothing(own, base):
    pass


def _by_halves(radix: int, component: DType) -> Function:
    pair: Any = td.vec2[component]
    halvings = radix.bit_length() - 1
    cosines, sines = _circle(radix)
    product = _times(component)

    @td.func
    def transform(own, base):
        for level in td.static_range(halvings):
            for group in td.static_range(1 << level):
                for k in td.static_range(radix >> (level + 1)):
                    first = base + group * (radix >> level) + k
                    second = first + (radix >> (level + 1))
                    a = own[first]
                    b = own[second]
                    own[first] = a + b
                    difference = a - b
                    if k == 0:
                        own[second] = difference
                    elif 4 * k == radix >> level:
                        own[second] = pair(difference.y, -difference.x)
                    else:
                        root = pair(cosines[k << level], -sines[k << level])
                        own[second] = product(difference, root)

    return transform


def _by_pairs(radix: int, component: DType, step: int = 1) -> Function:
    """Of elements that are `step` apart."""
    pair: Any = td.vec2[component]
    half = radix // 2
    cosines, sines = _circle(radix)

    @td.func
    def transform(own, base):
        sums = td.local(half, pair)
        differences = td.local(half, pair)
        first = own[base]
        total = first
        for k in td.static_range(half):
            a = own[base + (k + 1) * step]
            b = own[base + (radix - 1 - k) * step]
            sums[k] = a + b
            differences[k] = a - b
            total = total + sums[k]
        own[base] = total
        for j in td.static_range(1, half + 1):
            even = first
            odd = differences[0] * sines[j]
            even = even + sums[0] * cosines[j]
            for k in td.static_range(1, half):
                even = even + sums[k] * cosines[j * (k + 1) % radix]
                odd = odd + differences[k] * sines[j * (k + 1) % radix]
            own[base + j * step] = pair(even.x + odd.y, even.y - odd.x)
            own[base + (radix - j) * step] = pair(even.x - odd.y, even.y + odd.x)

    return transform


def _by_product(columns: int, rows: int, component: DType) -> Function:
    """Transforms of odd length `columns` of elements `rows` apart, then of neighbours."""
    pair: Any = td.vec2[component]
    down, along = _by_pairs(columns, component, rows), butterfly(rows, component)
    cosines, sines = _circle(columns * rows)
    product = _times(component)

    @td.func
    def transform(own, base):
        for j in td.static_range(rows):
            down(own, base + j)
        for k in td.static_range(1, columns):
            for j in td.static_range(1, rows):
                root = pair(cosines[j * k], -sines[j * k])
                own[base + k * rows + j] = product(own[base + k * rows + j], root)
        for k in td.static_range(columns):
            along(own, base + k * rows)

    return transform


def _circle(n: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    angles = [2 * math.pi * k / n for k in range(n)]
    return tuple(map(math.cos, angles)), tuple(map(math.sin, angles))
