"""The arithmetic of a matrix's elements: real numbers, or pairs (real, imaginary)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Function

_TINY, _UP = 2.0**-100, 2.0**100
MOST_SCALED = 2.0**126
"""What numbers near the smallest are multiplied by at most, since their reciprocals overflow."""


class Arithmetic(NamedTuple):
    """What kernels of linear algebra do with elements, apart from + and -."""

    element: Any  # the type of an element, in shared arrays too
    real: DType  # of a magnitude
    number: Function  # an element from a real number
    mul: Function
    div: Function
    conj: Function
    part: Function  # the real part
    size: Function  # |x|, or |x| + |y|, which is cheaper than the magnitude
    times: Function  # the product with a real number
    square: Function  # |x| * |x|


@functools.cache
def arithmetic_of(dtype: DType) -> Arithmetic:
    """The arithmetic of a floating or complex dtype."""
    real = dtype.component
    if dtype.is_complex:
        pair = td.vec2[real]

        @td.func
        def number(value):
            return pair(value, real(0))

        return Arithmetic(
            pair, real, number, _mul_pairs, _div_pairs, _conjugate, _first,
            _sum_of_parts, _scaled_pair, _square_of_pair,
        )  # fmt: skip
    return Arithmetic(
        dtype, real, _itself, _mul, _div, _itself, _itself, _magnitude, _mul, _square
    )  # fmt: skip


@td.func
def _itself(a):
    return a


@td.func
def _mul(a, b):
    return a * b


@td.func
def _div(a, b):
    return a / b


@td.func
def _magnitude(a):
    return td.abs(a)


@td.func
def _square(a):
    return a * a


@td.func
def _mul_pairs(a, b):
    out = a
    out.x = a.x * b.x - a.y * b.y
    out.y = a.x * b.y + a.y * b.x
    return out


@td.func
def _div_pairs(a, b):
    # Divided by the divisor's magnitude first, so that the squares of its parts do not overflow.
    # Of one near the smallest number the reciprocal might: then both are made larger before.
    up = td.where(td.abs(b.x) + td.abs(b.y) < _TINY, _UP, 1.0)
    over = a * up
    under = b * up
    size = td.abs(under.x) + td.abs(under.y)
    scale = td.where(size > 0.0, 1.0 / size, 1.0)
    x = under.x * scale
    y = under.y * scale
    inverse = scale / (x * x + y * y)
    out = a
    out.x = (over.x * x + over.y * y) * inverse
    out.y = (over.y * x - over.x * y) * inverse
    return out


@td.func
def _conjugate(a):
    out = a
    out.y = -a.y
    return out


@td.func
def _first(a):
    return a.x


@td.func
def _sum_of_parts(a):
    return td.abs(a.x) + td.abs(a.y)


@td.func
def _scaled_pair(a, by):
    out = a
    out.x = a.x * by
    out.y = a.y * by
    return out


@td.func
def _square_of_pair(a):
    return a.x * a.x + a.y * a.y
