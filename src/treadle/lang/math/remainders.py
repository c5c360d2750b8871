"""The remainder of IEEE 754: x - n y with n the integer nearest x / y, the even one of two.

|x| modulo 2|y| (or 8|y|, for the last bits of n) is exact, and so are the subtractions after it.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import flip_sign_by
from treadle.lang.math.formats import Float
from treadle.lang.math.generic import generic


@generic
def remainder(x: Float, y: Float) -> Float:
    """x - n y, between -|y|/2 and |y|/2; a zero has the sign of x."""
    b = td.abs(y)
    m = td.abs(x) % (b + b)
    over = m > b - m
    m = td.where(over, m - b, m)
    m = td.where(over and m >= b - m, m - b, m)
    return flip_sign_by(m, x)


@generic
def remainder_quotient(x: Float, y: Float) -> td.i32:
    """At least the last three bits of n, with the sign of x / y."""
    b = td.abs(y)
    m = td.abs(x) % (8.0 * b)
    q4 = m >= 4.0 * b
    m = td.where(q4, m - 4.0 * b, m)
    q2 = m >= 2.0 * b
    m = td.where(q2, m - 2.0 * b, m)
    q1 = m >= b
    m = td.where(q1, m - b, m)
    up = m > b - m or (m == b - m and q1)
    q = td.where(q4, 4, 0) + td.where(q2, 2, 0) + td.where(q1, 1, 0) + td.where(up, 1, 0)
    return td.where(td.signbit(x) != td.signbit(y), -q, q)
