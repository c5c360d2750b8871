"""Fourier transforms of a few elements that a thread holds: the butterflies of longer ones.

Powers of two are done by halving (Cooley and Tukey 1965, decimation in frequency). Other lengths
are odd and small; their elements k and n - k are added and subtracted first, which halves the
multiplications of the plain sum.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Function

RADICES = (2, 3, 4, 5, 7, 8, 11, 13)


@functools.cache
def butterfly(radix: int, component: DType) -> Function:
    """A function that transforms the elements `base` to `base + radix` of a local array in place.
    Element k of the result is then at `base + order(radix)[k]`."""
    if radix == 1:
        return _nothing
    return _by_halves(radix, component) if radix % 2 == 0 else _by_pairs(radix, component)


def order(radix: int) -> tuple[int, ...]:
    """Where a butterfly leaves the elements of its result."""
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


def _by_pairs(radix: int, component: DType) -> Function:
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
            a = own[base + k + 1]
            b = own[base + radix - 1 - k]
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
            own[base + j] = pair(even.x + odd.y, even.y - odd.x)
            own[base + radix - j] = pair(even.x - odd.y, even.y + odd.x)

    return transform


def _circle(n: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    angles = [2 * math.pi * k / n for k in range(n)]
    return tuple(map(math.cos, angles)), tuple(map(math.sin, angles))
