"""Arithmetic of pairs of float32, each the sum of a float32 and what it lacks: about 48 bits.

A pair (x, y) is the number x + y, with x the float32 nearest to it. The algorithms are those of T.
J. Dekker ("A floating-point technique for extending the available precision", 1971) and of M.
Joldes, J.-M. Muller and V. Popescu ("Tight and rigorous error bounds for basic building blocks of
double-word arithmetic", 2017). They hold for sums, differences and products that are rounded as
they are written: `cuda_cpp.lower.double_pairs`, which puts these functions in the place of double's
operations, keeps compilers from rearranging them. Quotients and roots may be off by some ULP, as
WebGPU's are.

A pair whose first number is infinite or NaN has 0 as its second.
"""

from __future__ import annotations

from treadle.lang import namespace as td

Pair = td.vec2[td.f32]
TOP_BITS = 0xFFFFF000  # the upper 12 bits of a significand


def two_sum(a: td.f32, b: td.f32) -> Pair:
    """The sum, exactly."""
    s = a + b
    t = s - a
    return Pair(s, (a - (s - t)) + (b - t))


def settled(a: td.f32, b: td.f32) -> Pair:
    """The sum, exactly, for |a| >= |b|; its float32 alone where that is infinite or NaN."""
    s = a + b
    e = b - (s - a)
    return Pair(s, td.where(td.isfinite(s), e, 0.0))


def two_product(a: td.f32, b: td.f32) -> Pair:
    """The product, exactly, unless its last bits are below float32's range."""
    p = a * b
    a1 = td.bitcast(td.bitcast(a, td.u32) & TOP_BITS, td.f32)
    b1 = td.bitcast(td.bitcast(b, td.u32) & TOP_BITS, td.f32)
    a2 = a - a1
    b2 = b - b1
    return Pair(p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2)


def add(a: Pair, b: Pair) -> Pair:
    """The sum, with a relative error of 3 * 2^-48."""
    s = two_sum(a.x, b.x)
    t = two_sum(a.y, b.y)
    v = settled(s.x, s.y + t.x)
    z = settled(v.x, v.y + t.y)
    ordinary = td.isfinite(s.x) and (s.x != 0.0 or t.x != 0.0)  # not a zero with its sign
    return Pair(td.where(ordinary, z.x, s.x), td.where(ordinary, z.y, 0.0))


def neg(a: Pair) -> Pair:
    """The number with the other sign."""
    return Pair(-a.x, -a.y)


def sub(a: Pair, b: Pair) -> Pair:
    """The difference, with the error of a sum."""
    return add(a, Pair(-b.x, -b.y))


def mul(a: Pair, b: Pair) -> Pair:
    """The product, with a relative error of 5 * 2^-48."""
    p = two_product(a.x, b.x)
    z = settled(p.x, p.y + ((a.x * b.y + a.y * b.x) + a.y * b.y))
    ordinary = td.isfinite(p.x) and p.x != 0.0
    return Pair(td.where(ordinary, z.x, p.x), td.where(ordinary, z.y, 0.0))


def div(a: Pair, b: Pair) -> Pair:
    """The quotient, with a relative error of 10 * 2^-48."""
    q1 = a.x / b.x
    r = sub(a, mul(b, Pair(q1, 0.0)))
    q2 = r.x / b.x
    r = sub(r, mul(b, Pair(q2, 0.0)))
    q3 = r.x / b.x
    first = settled(q1, q2)
    z = add(first, Pair(q3, 0.0))
    ordinary = td.isfinite(q1) and td.isfinite(b.x) and q1 != 0.0
    return Pair(td.where(ordinary, z.x, q1), td.where(ordinary, z.y, 0.0))


def sqrt(a: Pair) -> Pair:
    """The square root, with a relative error of 4 * 2^-48."""
    y = td.sqrt(a.x)
    r = sub(a, two_product(y, y))
    first = settled(y, r.x / (y + y))
    r = sub(a, mul(first, first))
    z = add(first, Pair(r.x / (y + y), 0.0))
    ordinary = td.isfinite(y) and y > 0.0
    return Pair(td.where(ordinary, z.x, y), td.where(ordinary, z.y, 0.0))


def fma(a: Pair, b: Pair, c: Pair) -> Pair:
    """a * b + c, with the errors of both operations."""
    return add(mul(a, b), c)


# --- comparisons ---------------------------------------------------------------------------------


def eq(a: Pair, b: Pair) -> td.bool:
    """a == b"""
    return a.x == b.x and a.y == b.y


def ne(a: Pair, b: Pair) -> td.bool:
    """a != b"""
    return a.x != b.x or a.y != b.y


def lt(a: Pair, b: Pair) -> td.bool:
    """a < b"""
    return a.x < b.x or (a.x == b.x and a.y < b.y)


def le(a: Pair, b: Pair) -> td.bool:
    """a <= b"""
    return a.x < b.x or (a.x == b.x and a.y <= b.y)


def gt(a: Pair, b: Pair) -> td.bool:
    """a > b"""
    return lt(b, a)


def ge(a: Pair, b: Pair) -> td.bool:
    """a >= b"""
    return le(b, a)


def isnan(a: Pair) -> td.bool:
    """Whether it is NaN."""
    return td.isnan(a.x)


def isinf(a: Pair) -> td.bool:
    """Whether it is infinite."""
    return td.isinf(a.x)


def isfinite(a: Pair) -> td.bool:
    """Whether it is a number."""
    return td.isfinite(a.x)


def signbit(a: Pair) -> td.bool:
    """Whether the sign bit is set."""
    return td.bitcast(a.x, td.i32) < 0


def minimum(a: Pair, b: Pair) -> Pair:
    """The smaller one; NaN if either is."""
    first = le(a, b) or td.isnan(a.x)
    return Pair(td.where(first, a.x, b.x), td.where(first, a.y, b.y))


def maximum(a: Pair, b: Pair) -> Pair:
    """The larger one; NaN if either is."""
    first = le(b, a) or td.isnan(a.x)
    return Pair(td.where(first, a.x, b.x), td.where(first, a.y, b.y))


# --- signs and whole numbers ---------------------------------------------------------------------


def abs(a: Pair) -> Pair:
    """The size of a number."""
    s = td.bitcast(a.x, td.u32) & 0x80000000
    return Pair(
        td.bitcast(td.bitcast(a.x, td.u32) ^ s, td.f32),
        td.bitcast(td.bitcast(a.y, td.u32) ^ s, td.f32),
    )


def copysign(a: Pair, b: Pair) -> Pair:
    """The size of one number with the sign bit of another."""
    s = (td.bitcast(a.x, td.u32) ^ td.bitcast(b.x, td.u32)) & 0x80000000
    return Pair(
        td.bitcast(td.bitcast(a.x, td.u32) ^ s, td.f32),
        td.bitcast(td.bitcast(a.y, td.u32) ^ s, td.f32),
    )


def flipped(a: Pair, b: Pair) -> Pair:
    """A number, negated where another has its sign bit set."""
    s = td.bitcast(b.x, td.u32) & 0x80000000
    return Pair(
        td.bitcast(td.bitcast(a.x, td.u32) ^ s, td.f32),
        td.bitcast(td.bitcast(a.y, td.u32) ^ s, td.f32),
    )


def floor(a: Pair) -> Pair:
    """The largest whole number that is not larger."""
    x = td.floor(a.x)
    whole = x == a.x
    z = settled(x, td.where(whole, td.floor(a.y), 0.0))
    return Pair(td.where(td.isfinite(x), z.x, a.x), z.y)


def ceil(a: Pair) -> Pair:
    """The smallest whole number that is not smaller."""
    return neg(floor(neg(a)))


def trunc(a: Pair) -> Pair:
    """The whole number towards zero."""
    return copysign(floor(abs(a)), a)


def rint(a: Pair) -> Pair:
    """The nearest whole number, the even one in the middle."""
    x = td.round(a.x)
    whole = x == a.x
    # In the middle of two whole numbers the second part decides.
    half = td.abs(a.x - x) == 0.5
    low = td.floor(a.x)
    up = td.where(a.y > 0.0, low + 1.0, td.where(a.y < 0.0, low, x))
    z = settled(td.where(half, up, x), td.where(whole, td.round(a.y), 0.0))
    ordinary = td.isfinite(x)
    return copysign(Pair(td.where(ordinary, z.x, a.x), td.where(ordinary, z.y, 0.0)), a)


def rem(a: Pair, b: Pair) -> Pair:
    """C's fmod, with an error of 2^-44 times a; NaN where a / b has more than 44 bits."""
    q = trunc(div(a, b))
    r = sub(a, mul(q, b))
    size = abs(b)
    # The quotient may have been rounded to the next whole number.
    r = Pair(td.where(size.x > 3e38, a.x, r.x), td.where(size.x > 3e38, a.y, r.y))
    outside = ge(abs(r), size)
    fixed = sub(r, flipped(size, r))
    r = Pair(td.where(outside, fixed.x, r.x), td.where(outside, fixed.y, r.y))
    wrong = signbit(r) != signbit(a) and r.x != 0.0
    fixed = add(r, flipped(size, a))
    r = Pair(td.where(wrong, fixed.x, r.x), td.where(wrong, fixed.y, r.y))
    r = copysign(r, a)
    known = td.abs(q.x) < 1.7592186e13 and td.isfinite(a.x)
    return Pair(td.where(known, r.x, td.nan), td.where(known, r.y, 0.0))


# --- conversions ---------------------------------------------------------------------------------


def from_f32(x: td.f32) -> Pair:
    """Exactly."""
    return Pair(x, 0.0)


def to_f32(a: Pair) -> td.f32:
    """The nearest float."""
    return a.x


def from_i32(i: td.i32) -> Pair:
    """Exactly."""
    return settled(td.f32(i >> 16) * 65536.0, td.f32(i & 0xFFFF))


def from_u32(i: td.u32) -> Pair:
    """Exactly."""
    return settled(td.f32(i >> 16) * 65536.0, td.f32(i & 0xFFFF))


def from_i64(i: td.i64) -> Pair:
    """The nearest pair."""
    high = from_i32(td.i32(i >> 32))
    low = from_u32(td.u32(i & 0xFFFFFFFF))
    return add(Pair(high.x * 4294967296.0, high.y * 4294967296.0), low)


def from_u64(i: td.u64) -> Pair:
    """The nearest pair."""
    high = from_u32(td.u32(i >> 32))
    low = from_u32(td.u32(i & 0xFFFFFFFF))
    return add(Pair(high.x * 4294967296.0, high.y * 4294967296.0), low)


def to_i32(a: Pair) -> td.i32:
    """Towards zero, the nearest int where there is none, 0 for NaN."""
    t = trunc(a)
    high = td.floor(t.x * 1.52587890625e-05)
    low = (t.x - high * 65536.0) + t.y
    inner = td.i32(high) * 65536 + td.i32(low)
    above = t.x > 2147483648.0 or (t.x == 2147483648.0 and t.y >= 0.0)
    below = t.x < -2147483648.0 or (t.x == -2147483648.0 and t.y < 0.0)
    inner = td.where(above, td.i32(2147483647), inner)
    inner = td.where(below, td.i32(-2147483648), inner)
    return td.where(td.isnan(a.x), td.i32(0), inner)


def to_u32(a: Pair) -> td.u32:
    """Towards zero, the nearest unsigned int where there is none, 0 for NaN."""
    t = trunc(a)
    high = td.floor(t.x * 1.52587890625e-05)
    low = (t.x - high * 65536.0) + t.y
    inner = td.u32(high) * 65536 + td.u32(td.i32(low))
    above = t.x > 4294967296.0 or (t.x == 4294967296.0 and t.y >= 0.0)
    inner = td.where(above, td.u32(0xFFFFFFFF), inner)
    return td.where(t.x > 0.0, inner, td.u32(0))


def to_i64(a: Pair) -> td.i64:
    """Towards zero, the nearest long where there is none, 0 for NaN."""
    t = trunc(a)
    half = td.i64(t.x * 0.5)  # exact where the whole is not: an even number
    inner = td.i64(t.x) + td.i64(t.y)
    if td.abs(t.x) > 16777216.0:
        inner = half + (half + td.i64(t.y))
    above = t.x > 9223372036854775808.0 or (t.x == 9223372036854775808.0 and t.y >= 0.0)
    below = t.x < -9223372036854775808.0 or (t.x == -9223372036854775808.0 and t.y < 0.0)
    inner = td.where(above, td.i64(9223372036854775807), inner)
    inner = td.where(below, td.i64(-9223372036854775808), inner)
    return td.where(td.isnan(a.x), td.i64(0), inner)


def to_u64(a: Pair) -> td.u64:
    """Towards zero, the nearest unsigned long where there is none, 0 for NaN."""
    t = trunc(a)
    half = td.u64(t.x * 0.5)
    inner = td.u64(t.x) + td.u64(td.i64(t.y))
    if t.x > 16777216.0:
        inner = half + (half + td.u64(td.i64(t.y)))
    above = t.x > 18446744073709551616.0 or (t.x == 18446744073709551616.0 and t.y >= 0.0)
    inner = td.where(above, td.u64(0xFFFFFFFFFFFFFFFF), inner)
    return td.where(t.x > 0.0, inner, td.u64(0))


# --- powers of two -------------------------------------------------------------------------------


def power(n: td.i32) -> td.f32:
    """2^n, -126 <= n <= 127."""
    return td.bitcast((n + 127) << 23, td.f32)


def ldexp(a: Pair, n: td.i32) -> Pair:
    """a * 2^n."""
    n = td.minimum(td.maximum(n, -300), 300)
    third = n // 3
    last = n - 2 * third
    s = power(third)
    t = power(last)
    x = a.x * s * s * t
    y = a.y * s * s * t
    return Pair(x, td.where(td.isfinite(x), y, 0.0))


def exponent(a: Pair) -> td.i32:
    """n where |a| = m 2^n with 1 <= m < 2; -127 for 0, and 128 for infinities and NaN."""
    n = ((td.bitcast(a.x, td.i32) >> 23) & 0xFF) - 127
    exact = (td.bitcast(a.x, td.i32) & 0x7FFFFF) == 0
    below = exact and signbit(a) != (td.bitcast(a.y, td.i32) < 0) and a.y != 0.0
    return td.where(below and n > -127 and n < 128, n - 1, n)


def ilogb(a: Pair) -> td.i32:
    """The exponent as C gives it."""
    n = exponent(a)
    return td.where(n == -127, td.i32(-2147483648), td.where(n == 128, td.i32(2147483647), n))


def logb(a: Pair) -> Pair:
    """The exponent as a number."""
    n = exponent(a)
    ordinary = td.where(n == -127, -td.inf, td.f32(n))
    return Pair(td.where(n == 128, td.abs(a.x), ordinary), 0.0)


def frexp_exponent(a: Pair) -> td.i32:
    """The exponent of frexp."""
    n = exponent(a)
    return td.where(n == -127 or n == 128, 0, n + 1)


def frexp_fraction(a: Pair) -> Pair:
    """The fraction of frexp, from 0.5 to 1."""
    n = frexp_exponent(a)
    return ldexp(a, -n)


def head(a: Pair) -> Pair:
    """The first part, whose products are exact."""
    return Pair(a.x, 0.0)


def power_of_two(n: td.i32) -> Pair:
    """2^n; 0 or infinity where float32 has no such number."""
    return ldexp(Pair(1.0, 0.0), n)


# --- bits ----------------------------------------------------------------------------------------


def as_bits(a: Pair) -> td.u64:
    """Both parts as they lie in memory."""
    return td.u64(td.bitcast(a.x, td.u32)) | (td.u64(td.bitcast(a.y, td.u32)) << 32)


def from_bits(bits: td.u64) -> Pair:
    """The inverse of `as_bits`."""
    low = td.bitcast(td.u32(bits & 0xFFFFFFFF), td.f32)
    return Pair(low, td.bitcast(td.u32(bits >> 32), td.f32))
