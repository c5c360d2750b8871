"""Lengths of vectors of three and four numbers, and their reciprocals.

The numbers are scaled by a power of two where squares could over- or underflow, as `hypot` does.
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import exact_quotient, exact_quotient_f64, exact_root, exact_root_f64

INFINITY = float("inf")
NAN = float("nan")


def larger(a: td.f32, b: td.f32) -> td.f32:
    """The larger of two numbers, neither of them NaN."""
    return td.where(a > b, a, b)


def shrinking(high: td.f32) -> td.f32:
    """What to multiply numbers up to `high` with before they are squared: a power of two."""
    tiny = td.where(high < 9.094947e-13, 1.2379400392853803e27, 1.0)  # 2^90
    return td.where(high > 1.1529215e18, 1.3552527156068805e-20, tiny)  # 2^-66


def growing(high: td.f32) -> td.f32:
    """The reciprocal of `shrinking`."""
    tiny = td.where(high < 9.094947e-13, 8.077935669463161e-28, 1.0)
    return td.where(high > 1.1529215e18, 7.378697629483821e19, tiny)


def length(a: td.f32, b: td.f32, c: td.f32, d: td.f32) -> td.f32:
    """The root of the sum of the squares, of numbers that are scaled already."""
    return exact_root((a * a + b * b) + (c * c + d * d))


def norm4d(x: td.f32, y: td.f32, z: td.f32, w: td.f32) -> td.f32:
    """sqrt(x^2 + y^2 + z^2 + w^2); infinite if one is, whatever the others are."""
    high = larger(larger(td.abs(x), td.abs(y)), larger(td.abs(z), td.abs(w)))
    down = shrinking(high)
    result = length(x * down, y * down, z * down, w * down) * growing(high)
    lost = td.isnan(x) or td.isnan(y) or td.isnan(z) or td.isnan(w)
    result = td.where(lost, NAN, result)
    infinite = td.isinf(x) or td.isinf(y) or td.isinf(z) or td.isinf(w)
    return td.where(infinite, INFINITY, result)


def rnorm4d(x: td.f32, y: td.f32, z: td.f32, w: td.f32) -> td.f32:
    """1 / sqrt(x^2 + y^2 + z^2 + w^2): infinite for zeros, 0 if one is infinite."""
    high = larger(larger(td.abs(x), td.abs(y)), larger(td.abs(z), td.abs(w)))
    down = shrinking(high)
    root = length(x * down, y * down, z * down, w * down)
    ordinary = root > 0.0 and root <= 3.4028235e38
    result = exact_quotient(td.f32(1.0), td.where(ordinary, root, 1.0)) * down
    result = td.where(ordinary, result, INFINITY)
    lost = td.isnan(x) or td.isnan(y) or td.isnan(z) or td.isnan(w)
    result = td.where(lost, NAN, result)
    infinite = td.isinf(x) or td.isinf(y) or td.isinf(z) or td.isinf(w)
    return td.where(infinite, 0.0, result)


def norm3d(x: td.f32, y: td.f32, z: td.f32) -> td.f32:
    """sqrt(x^2 + y^2 + z^2); infinite if one is, whatever the others are."""
    return norm4d(x, y, z, td.f32(0.0))


def rnorm3d(x: td.f32, y: td.f32, z: td.f32) -> td.f32:
    """1 / sqrt(x^2 + y^2 + z^2): infinite for zeros, 0 if one is infinite."""
    return rnorm4d(x, y, z, td.f32(0.0))


def rhypot(x: td.f32, y: td.f32) -> td.f32:
    """1 / sqrt(x^2 + y^2): infinite for zeros, 0 if one is infinite."""
    return rnorm4d(x, y, td.f32(0.0), td.f32(0.0))


def larger_f64(a: td.f64, b: td.f64) -> td.f64:
    """The larger of two numbers, neither of them NaN."""
    return td.where(a > b, a, b)


def shrinking_f64(high: td.f64) -> td.f64:
    """What to multiply numbers up to `high` with before they are squared: a power of two."""
    tiny = td.where(high < 1e-100, td.f64(4.149515568880993e180), 1.0)  # 2^600
    return td.where(high > 1e150, 2.409919865102884e-181, tiny)  # 2^-600


def growing_f64(high: td.f64) -> td.f64:
    """The reciprocal of `shrinking`."""
    tiny = td.where(high < 1e-100, td.f64(2.409919865102884e-181), 1.0)
    return td.where(high > 1e150, 4.149515568880993e180, tiny)


def length_f64(a: td.f64, b: td.f64, c: td.f64, d: td.f64) -> td.f64:
    """The root of the sum of the squares, of numbers that are scaled already."""
    return exact_root_f64((a * a + b * b) + (c * c + d * d))


def norm4d_f64(x: td.f64, y: td.f64, z: td.f64, w: td.f64) -> td.f64:
    """sqrt(x^2 + y^2 + z^2 + w^2); infinite if one is, whatever the others are."""
    high = larger_f64(larger_f64(td.abs(x), td.abs(y)), larger_f64(td.abs(z), td.abs(w)))
    down = shrinking_f64(high)
    result = length_f64(x * down, y * down, z * down, w * down) * growing_f64(high)
    lost = td.isnan(x) or td.isnan(y) or td.isnan(z) or td.isnan(w)
    result = td.where(lost, NAN, result)
    infinite = td.isinf(x) or td.isinf(y) or td.isinf(z) or td.isinf(w)
    return td.where(infinite, INFINITY, result)


def rnorm4d_f64(x: td.f64, y: td.f64, z: td.f64, w: td.f64) -> td.f64:
    """1 / sqrt(x^2 + y^2 + z^2 + w^2): infinite for zeros, 0 if one is infinite."""
    high = larger_f64(larger_f64(td.abs(x), td.abs(y)), larger_f64(td.abs(z), td.abs(w)))
    down = shrinking_f64(high)
    root = length_f64(x * down, y * down, z * down, w * down)
    ordinary = root > 0.0 and root <= 1.7976931348623157e308
    result = exact_quotient_f64(td.f64(1.0), td.where(ordinary, root, 1.0)) * down
    result = td.where(ordinary, result, INFINITY)
    lost = td.isnan(x) or td.isnan(y) or td.isnan(z) or td.isnan(w)
    result = td.where(lost, NAN, result)
    infinite = td.isinf(x) or td.isinf(y) or td.isinf(z) or td.isinf(w)
    return td.where(infinite, 0.0, result)


def norm3d_f64(x: td.f64, y: td.f64, z: td.f64) -> td.f64:
    """sqrt(x^2 + y^2 + z^2); infinite if one is, whatever the others are."""
    return norm4d_f64(x, y, z, td.f64(0.0))


def rnorm3d_f64(x: td.f64, y: td.f64, z: td.f64) -> td.f64:
    """1 / sqrt(x^2 + y^2 + z^2): infinite for zeros, 0 if one is infinite."""
    return rnorm4d_f64(x, y, z, td.f64(0.0))


def rhypot_f64(x: td.f64, y: td.f64) -> td.f64:
    """1 / sqrt(x^2 + y^2): infinite for zeros, 0 if one is infinite."""
    return rnorm4d_f64(x, y, td.f64(0.0), td.f64(0.0))
