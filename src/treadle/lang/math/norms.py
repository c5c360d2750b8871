"""Norms of vectors of three and four numbers, and their reciprocals.

The numbers are scaled by a power of two if squares could overflow or underflow, as in `hypot`.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import exact_quotient, exact_root
from treadle.lang.math.formats import INFINITY, LARGEST, NAN, Float
from treadle.lang.math.generic import either, generic

BIG = either(1.1529215e18, 1e150)
TINY = either(9.094947e-13, 1e-100)
BIG_DOWN = either(1.3552527156068805e-20, 2.409919865102884e-181)  # 2^-66, 2^-600
BIG_UP = either(7.378697629483821e19, 4.149515568880993e180)
TINY_UP = either(1.2379400392853803e27, 4.149515568880993e180)  # 2^90, 2^600
TINY_DOWN = either(8.077935669463161e-28, 2.409919865102884e-181)


@generic
def larger(a: Float, b: Float) -> Float:
    """The larger of two numbers, neither of them NaN."""
    return td.where(a > b, a, b)


@generic
def shrinking(high: Float) -> Float:
    """The power of two to scale numbers up to `high` by before they are squared."""
    tiny = td.where(high < TINY, Float(TINY_UP), 1.0)
    return td.where(high > BIG, BIG_DOWN, tiny)


@generic
def growing(high: Float) -> Float:
    """The reciprocal of `shrinking`."""
    tiny = td.where(high < TINY, Float(TINY_DOWN), 1.0)
    return td.where(high > BIG, BIG_UP, tiny)


@generic
def length(a: Float, b: Float, c: Float, d: Float) -> Float:
    """The root of the sum of squares of scaled numbers."""
    return exact_root((a * a + b * b) + (c * c + d * d))


@generic
def norm4d(x: Float, y: Float, z: Float, w: Float) -> Float:
    """sqrt(x^2 + y^2 + z^2 + w^2); infinite if one is, even if another is NaN."""
    high = larger(larger(td.abs(x), td.abs(y)), larger(td.abs(z), td.abs(w)))
    down = shrinking(high)
    result = length(x * down, y * down, z * down, w * down) * growing(high)
    lost = td.isnan(x) or td.isnan(y) or td.isnan(z) or td.isnan(w)
    result = td.where(lost, NAN, result)
    infinite = td.isinf(x) or td.isinf(y) or td.isinf(z) or td.isinf(w)
    return td.where(infinite, INFINITY, result)


@generic
def rnorm4d(x: Float, y: Float, z: Float, w: Float) -> Float:
    """1 / sqrt(x^2 + y^2 + z^2 + w^2): infinite for zeros, 0 if one is infinite."""
    high = larger(larger(td.abs(x), td.abs(y)), larger(td.abs(z), td.abs(w)))
    down = shrinking(high)
    root = length(x * down, y * down, z * down, w * down)
    ordinary = root > 0.0 and root <= LARGEST
    result = exact_quotient(Float(1.0), td.where(ordinary, root, 1.0)) * down
    result = td.where(ordinary, result, INFINITY)
    lost = td.isnan(x) or td.isnan(y) or td.isnan(z) or td.isnan(w)
    result = td.where(lost, NAN, result)
    infinite = td.isinf(x) or td.isinf(y) or td.isinf(z) or td.isinf(w)
    return td.where(infinite, 0.0, result)


@generic
def norm3d(x: Float, y: Float, z: Float) -> Float:
    """sqrt(x^2 + y^2 + z^2); infinite if one is, even if another is NaN."""
    return norm4d(x, y, z, Float(0.0))


@generic
def rnorm3d(x: Float, y: Float, z: Float) -> Float:
    """1 / sqrt(x^2 + y^2 + z^2): infinite for zeros, 0 if one is infinite."""
    return rnorm4d(x, y, z, Float(0.0))


@generic
def rhypot(x: Float, y: Float) -> Float:
    """1 / sqrt(x^2 + y^2): infinite for zeros, 0 if one is infinite."""
    return rnorm4d(x, y, Float(0.0), Float(0.0))
