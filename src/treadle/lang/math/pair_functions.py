"""Mathematics for doubles that are pairs of float32 (`pair_arithmetic`).

The functions are written for float64, whose operations become those of pairs. They see no bits of a
double, and begin with what float32's own functions give: 24 bits, or a multiple for a reduction.
Small terms are float32's, too: those after the first 2^-24 of a sum. `RELATIVE_BOUNDS` has the
largest error of each.
"""

from __future__ import annotations

from math import factorial

from treadle.lang import namespace as td

# ln 2 and pi / 2 in parts of so few bits that a multiple of each is exact.
LN2_1 = 0.693145751953125
LN2_2 = 1.4286197256296873e-06
LN2_3 = -1.2905320270077144e-11
HALF_PI_1 = 1.570796251296997
HALF_PI_2 = 7.549789415861596e-08
HALF_PI_3 = 5.390302529957765e-15
HALF_PI_4 = 3.2820036682434026e-22
LN2 = 0.6931471805599453
LOG2_E = 1.4426950408889634
LOG10_E = 0.4342944819032518
LN10 = 2.302585092994046
PI = 3.141592653589793
HALF_PI = 1.5707963267948966
TWO_OVER_PI = 0.6366197723675814
INFINITY = float("inf")
NAN = float("nan")

# The largest relative error of each function, in units of 2^-48 (3.6e-15), for numbers and results
# of 1e-28 and more. Those of sin and cos are absolute, for |x| < 2^20, and 64 up to 2^24. Measured
# beside mpmath; `tests/device/cuda_cpp/test_cpp_pairs.py` holds them.
RELATIVE_BOUNDS: dict[str, float] = {
    "exp": 2.0, "expm1": 5.0, "exp2": 2.0, "exp10": 200.0, "log": 5.0, "log2": 4.0, "log10": 5.0,
    "log1p": 5.0, "sin": 4.0, "cos": 4.0, "tan": 6.0, "sinpi": 3.0, "cospi": 3.0, "asin": 5.0,
    "acos": 5.0, "atan": 5.0, "atan2": 5.0, "sinh": 6.0, "cosh": 5.0, "tanh": 6.0, "asinh": 5.0,
    "acosh": 5.0, "atanh": 9.0, "rsqrt": 5.0, "cbrt": 3.0, "hypot": 4.0, "pow": 200.0,
    "sigmoid": 5.0, "round": 0.0,
}  # fmt: skip

EXP_TERMS = tuple(1.0 / factorial(k) for k in range(8, 1, -1))
LOG_TERMS = tuple(1.0 / (2 * k + 1) for k in range(4, -1, -1))
LOG_TAIL = tuple(1.0 / (2 * k + 1) for k in range(10, 4, -1))
SIN_TERMS = tuple((-1.0) ** k / factorial(2 * k + 1) for k in range(4, 0, -1))
SIN_TAIL = tuple((-1.0) ** k / factorial(2 * k + 1) for k in range(8, 4, -1))
COS_TERMS = tuple((-1.0) ** k / factorial(2 * k) for k in range(4, -1, -1))
COS_TAIL = tuple((-1.0) ** k / factorial(2 * k) for k in range(9, 4, -1))


def power_of_two(n: td.i32) -> td.f64:
    """2^n, -126 <= n <= 127."""
    return td.f64(td.bitcast((n + 127) << 23, td.f32))


def with_sign(size: td.f64, sign: td.f64) -> td.f64:
    """|size| with the sign bit of another number."""
    a = abs(size)
    return td.where(td.bitcast(td.f32(sign), td.i32) < 0, -a, a)


def small_expm1(r: td.f64) -> td.f64:
    """exp(r) - 1, |r| <= 0.36."""
    r = r * 0.03125
    p = td.f64(0.0)
    for c in EXP_TERMS:
        p = (p + c) * r
    e = p * r + r
    for _ in td.static_range(5):
        e = e * e + (e + e)
    return e


def exp(x: td.f64) -> td.f64:
    """e^x"""
    high = td.f32(x)
    n = td.round(td.minimum(td.maximum(high, -110.0), 100.0) * 1.44269504)
    m = td.f64(n)
    e = small_expm1(((x - m * LN2_1) - m * LN2_2) - m * LN2_3)
    half = td.i32(n) >> 1
    y = ((e + 1.0) * power_of_two(half)) * power_of_two(td.i32(n) - half)
    y = td.where(high > 88.722839, td.f64(INFINITY), y)
    return td.where(high < -104.0, td.f64(0.0), td.where(td.isnan(high), x, y))


def expm1(x: td.f64) -> td.f64:
    """e^x - 1"""
    if td.abs(td.f32(x)) < 0.35:
        return small_expm1(x)
    return exp(x) - 1.0


def exp2(x: td.f64) -> td.f64:
    """2^x"""
    high = td.f32(x)
    n = td.round(td.minimum(td.maximum(high, -160.0), 140.0))
    e = small_expm1((x - td.f64(n)) * LN2)
    half = td.i32(n) >> 1
    y = ((e + 1.0) * power_of_two(half)) * power_of_two(td.i32(n) - half)
    y = td.where(high >= 128.0, td.f64(INFINITY), y)
    return td.where(high < -150.0, td.f64(0.0), td.where(td.isnan(high), x, y))


def log_sum(m: td.f64) -> td.f64:
    """log((1 + m) / (1 - m)), |m| < 0.172."""
    z = m * m
    small = td.f32(z)
    tail = td.f32(0.0)
    for c in LOG_TAIL:
        tail = tail * small + c
    p = td.f64(tail)
    for c in LOG_TERMS:
        p = p * z + c
    return (m + m) * p


def log_exponent(high: td.f32) -> td.i32:
    """The power of two by which a number is divided to be between the roots of 1/2 and 2."""
    return (td.bitcast(high, td.i32) - 0x3F3504F3) >> 23


def log_special(high: td.f32, y: td.f64) -> td.f64:
    """The logarithm, with what it is for numbers without one."""
    y = td.where(high == 0.0, td.f64(-INFINITY), y)
    y = td.where(high < 0.0, td.f64(NAN), y)
    return td.where(high > 3.4028235e38 or td.isnan(high), td.f64(high), y)


def log(x: td.f64) -> td.f64:
    """The natural logarithm."""
    high = td.f32(x)
    n = log_exponent(high)
    half = n >> 1
    m = (x * power_of_two(-half)) * power_of_two(half - n)
    y = log_sum((m - 1.0) / (m + 1.0)) + td.f64(td.f32(n)) * LN2
    return log_special(high, y)


def log2(x: td.f64) -> td.f64:
    """The logarithm to base 2, exact for powers of two."""
    high = td.f32(x)
    n = log_exponent(high)
    half = n >> 1
    m = (x * power_of_two(-half)) * power_of_two(half - n)
    y = log_sum((m - 1.0) / (m + 1.0)) * LOG2_E + td.f64(td.f32(n))
    return log_special(high, y)


def log10(x: td.f64) -> td.f64:
    """The logarithm to base 10."""
    return log(x) * LOG10_E


def log1p(x: td.f64) -> td.f64:
    """log(1 + x)"""
    high = td.f32(x)
    if td.abs(high) < 0.4:
        return log_sum(x / (x + 2.0))
    return log(x + 1.0)


def sin_sum(r: td.f64) -> td.f64:
    """sin(r), |r| < 0.8."""
    z = r * r
    small = td.f32(z)
    tail = td.f32(0.0)
    for c in SIN_TAIL:
        tail = tail * small + c
    p = td.f64(tail)
    for c in SIN_TERMS:
        p = p * z + c
    return r + r * (z * p)


def cos_sum(r: td.f64) -> td.f64:
    """cos(r), |r| < 0.8."""
    z = r * r
    small = td.f32(z)
    tail = td.f32(0.0)
    for c in COS_TAIL:
        tail = tail * small + c
    p = td.f64(tail)
    for c in COS_TERMS:
        p = p * z + c
    return p


def turned_sine(x: td.f64, quarters: td.i32) -> td.f64:
    """sin(x + quarters * pi / 2). NaN for |x| above 2^24, where pairs do not know the turn."""
    n = td.round(td.f32(x * TWO_OVER_PI))
    known = td.abs(n) < 1.1e7
    n = td.where(known, n, 0.0)
    m = td.f64(n)
    r = (((x - m * HALF_PI_1) - m * HALF_PI_2) - m * HALF_PI_3) - m * HALF_PI_4
    q = td.i32(n) + quarters
    y = td.f64(0.0)
    if (q & 1) == 0:
        y = sin_sum(r)
    else:
        y = cos_sum(r)
    y = td.where((q & 2) == 0, y, -y)
    return td.where(known, y, td.f64(NAN))


def sin(x: td.f64) -> td.f64:
    """The sine."""
    return td.where(td.f32(x) == 0.0, x, turned_sine(x, 0))


def cos(x: td.f64) -> td.f64:
    """The cosine."""
    return turned_sine(x, 1)


def tan(x: td.f64) -> td.f64:
    """The tangent."""
    return td.where(td.f32(x) == 0.0, x, turned_sine(x, 0) / turned_sine(x, 1))


def sinpi(x: td.f64) -> td.f64:
    """sin(pi x)"""
    n = td.round(x * 2.0)
    q = td.i32(n - td.round(n * 0.25) * 4.0)
    return turned_sine((x - n * 0.5) * PI, q)


def cospi(x: td.f64) -> td.f64:
    """cos(pi x)"""
    n = td.round(x * 2.0)
    q = td.i32(n - td.round(n * 0.25) * 4.0)
    return turned_sine((x - n * 0.5) * PI, q + 1)


def atan(x: td.f64) -> td.f64:
    """Newton's method on float32's arctangent."""
    high = td.f32(x)
    near = td.where(td.isfinite(high), td.atan(high), 0.0)
    y = td.f64(near)
    s = turned_sine(y, 0)
    c = turned_sine(y, 1)
    y = y + (x * c - s) / (c + x * s)
    y = td.where(td.abs(high) > 1e30, with_sign(td.f64(HALF_PI), x), y)
    return td.where(td.isnan(high) or high == 0.0, x, y)


def atan2(y: td.f64, x: td.f64) -> td.f64:
    """The angle of (x, y)."""
    a = td.f32(y)
    b = td.f32(x)
    # Multiples of pi / 4, where either is infinite or zero.
    near = td.f64(td.round(td.atan2(a, b) * 1.2732395447)) * (PI * 0.25)
    if td.isnan(a) or td.isnan(b):
        return td.f64(NAN)
    if a == 0.0 or b == 0.0 or td.isinf(a) or td.isinf(b):
        return td.where(a == 0.0 and near == 0.0, y, near)
    if td.abs(a) > td.abs(b):
        return with_sign(td.f64(HALF_PI), y) - atan(x / y)
    turn = td.where(b < 0.0, with_sign(td.f64(PI), y), td.f64(0.0))
    return turn + atan(y / x)


def asin(x: td.f64) -> td.f64:
    """The arcsine."""
    return td.where(td.abs(td.f32(x)) <= 1.0, atan2(x, td.sqrt((1.0 - x) * (1.0 + x))), td.f64(NAN))


def acos(x: td.f64) -> td.f64:
    """The arccosine."""
    return td.where(td.abs(td.f32(x)) <= 1.0, atan2(td.sqrt((1.0 - x) * (1.0 + x)), x), td.f64(NAN))


def sinh(x: td.f64) -> td.f64:
    """The hyperbolic sine."""
    a = abs(x)
    if td.f32(a) < 20.0:
        e = expm1(a)
        return with_sign((e + e / (e + 1.0)) * 0.5, x)
    t = exp(a * 0.5)
    return with_sign((t * 0.5) * t, x)


def cosh(x: td.f64) -> td.f64:
    """The hyperbolic cosine."""
    t = exp(abs(x) * 0.5)
    square = t * t
    return td.where(td.f32(t) < 1e9, (square + 1.0 / square) * 0.5, (t * 0.5) * t)


def tanh(x: td.f64) -> td.f64:
    """The hyperbolic tangent."""
    a = abs(x)
    e = expm1(td.minimum(a, td.f64(20.0)) * 2.0)
    y = td.where(td.f32(a) > 18.0, td.f64(1.0), e / (e + 2.0))
    return td.where(td.isnan(x), x, with_sign(y, x))


def sigmoid(x: td.f64) -> td.f64:
    """1 / (1 + e^-x)"""
    return 1.0 / (exp(-x) + 1.0)


def asinh(x: td.f64) -> td.f64:
    """The inverse of sinh."""
    a = abs(x)
    if td.f32(a) > 1e9:
        return with_sign(log(a) + LN2, x)
    square = a * a
    return with_sign(log1p(a + square / (td.sqrt(square + 1.0) + 1.0)), x)


def acosh(x: td.f64) -> td.f64:
    """The inverse of cosh."""
    if td.f32(x) > 1e9:
        return log(x) + LN2
    t = x - 1.0
    return log1p(t + td.sqrt(t * (t + 2.0)))


def atanh(x: td.f64) -> td.f64:
    """The inverse of tanh."""
    return td.where(td.f32(x) == 0.0, x, log1p((x + x) / (1.0 - x)) * 0.5)


def rsqrt(x: td.f64) -> td.f64:
    """1 / sqrt(x)"""
    return 1.0 / td.sqrt(x)


def cbrt(x: td.f64) -> td.f64:
    """The cube root, by Newton's method on float32's."""
    high = td.f32(x)
    y = td.f64(td.cbrt(high))
    for _ in td.static_range(2):
        square = y * y
        y = y - (square * y - x) / (square * 3.0)
    return td.where(td.isfinite(high) and high != 0.0, y, x)


def hypot(x: td.f64, y: td.f64) -> td.f64:
    """sqrt(x^2 + y^2), without overflow."""
    a = td.abs(td.f32(x))
    b = td.abs(td.f32(y))
    most = td.maximum(a, b)
    n = td.minimum(td.maximum((td.bitcast(most, td.i32) >> 23) - 127, -120), 120)
    down = power_of_two(-n)
    u = x * down
    v = y * down
    size = td.sqrt(u * u + v * v) * power_of_two(n)
    size = td.where(most == 0.0, td.f64(0.0), size)
    return td.where(td.isinf(a) or td.isinf(b), td.f64(INFINITY), size)


def power_by_products(x: td.f64, n: td.i32) -> td.f64:
    """x^n by products, |n| <= 1024."""
    left = td.abs(n)
    y = td.f64(1.0)
    factor = x
    while left != 0:
        if (left & 1) != 0:
            y = y * factor
        left = left >> 1
        if left != 0:
            factor = factor * factor
    return td.where(n < 0, 1.0 / y, y)


def pow(x: td.f64, y: td.f64) -> td.f64:
    """x^y: by products for whole y up to 1024, else e^(y log x)."""
    a = td.f32(x)
    b = td.f32(y)
    if b == 0.0 or x == 1.0:
        return td.f64(1.0)
    if td.isnan(a) or td.isnan(b):
        return td.f64(NAN)
    whole = td.floor(y) == y
    if whole and td.abs(b) <= 1024.0:
        return power_by_products(x, td.i32(b))
    size = abs(x)
    if td.isinf(b):
        grows = (size > 1.0) == (b > 0.0)
        return td.where(size == 1.0, td.f64(1.0), td.where(grows, td.f64(INFINITY), td.f64(0.0)))
    odd = whole and td.floor(y * 0.5) * 2.0 != y
    p = exp(y * log(size))
    p = td.where(a == 0.0, td.where(b > 0.0, td.f64(0.0), td.f64(INFINITY)), p)
    p = td.where(td.isinf(a), td.where(b > 0.0, td.f64(INFINITY), td.f64(0.0)), p)
    negative = td.bitcast(a, td.i32) < 0
    p = td.where(negative and odd, -p, p)
    return td.where(a < 0.0 and not whole and td.isfinite(a), td.f64(NAN), p)


def exp10(x: td.f64) -> td.f64:
    """10^x"""
    return pow(td.f64(10.0), x)


def round(x: td.f64) -> td.f64:
    """The nearest whole number, away from zero in the middle."""
    whole = td.trunc(x)
    outwards = whole + with_sign(td.f64(1.0), x)
    return td.where(abs(x - whole) >= 0.5, outwards, whole)
