"""Arithmetic rounded in a direction: towards zero, up or down, exactly as IEEE 754 says.

Devices round to nearest, and WebGPU's are less exact in division and may flush denormal numbers. So
this is computed with integers: a number is a significand, normalized to the highest bit of a word,
and an exponent. The lowest bit of the significand is a sticky bit: it is set if any bit below it
was lost.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.formats import (
    BIAS,
    EXPONENT_WIDTH,
    FRACTION,
    FRACTION_WIDTH,
    INFINITY_BITS,
    LARGEST_BITS,
    LEAST_NORMAL_BITS,
    MAX_EXPONENT,
    MIN_EXPONENT,
    SIGN,
    SIZE,
    WIDTH,
    Bits,
    Float,
)
from treadle.lang.math.generic import either, generic

ZERO = 0  # towards zero
UP = 1
DOWN = 2
DIGITS = either(26, 55)  # of quotients and roots: two more than a result has, one of them to round
TOP_BIT = either(31, 63)
TOP_PAIR = either(30, 62)


@generic
def size_bits(x: Float) -> Bits:
    """The bits without the sign, which are ordered like the magnitudes."""
    return td.bitcast(x, Bits) & SIZE


@generic
def is_ordinary(x: Float) -> td.bool:
    """Whether a number is neither 0, infinite nor NaN, by its bits: true for denormal numbers."""
    return size_bits(x) - 1 < INFINITY_BITS - 1


@generic
def is_negative(x: Float) -> td.bool:
    """Whether the sign bit is set."""
    return td.bitcast(x, Bits) >> TOP_BIT != 0


@generic
def significand(x: Float) -> Bits:
    """The significand of a number, normalized to the highest bit; 0 for 0."""
    size = size_bits(x)
    normal = ((size & FRACTION) | LEAST_NORMAL_BITS) << EXPONENT_WIDTH
    return td.where(size < LEAST_NORMAL_BITS, size << Bits(td.clz(size)), normal)


@generic
def exponent(x: Float) -> td.i32:
    """The e of x = m 2^e, 1 <= |m| < 2; far below all others for 0."""
    size = size_bits(x)
    normal = td.i32(size >> FRACTION_WIDTH) - BIAS
    small = td.where(size < LEAST_NORMAL_BITS, MIN_EXPONENT + EXPONENT_WIDTH - td.clz(size), normal)
    return td.where(size == 0, -100000, small)


@generic
def shifted(m: Bits, by: td.i32) -> Bits:
    """`m` shifted right; the lowest bit is set if a set bit was lost."""
    b = Bits(td.where(by > WIDTH, WIDTH, by))
    kept = m >> b
    return td.where(kept << b != m, kept | 1, kept)


@generic
def packed(negative: td.bool, e: td.i32, m: Bits, mode: td.i32) -> Float:
    """The number m 2^e rounded in a direction. The lowest bit of m is sticky."""
    digits = shifted(m, td.where(e < MIN_EXPONENT, MIN_EXPONENT - e, 0))
    kept = digits >> EXPONENT_WIDTH
    away = (mode == UP and not negative) or (mode == DOWN and negative)
    step = td.where(away and kept << EXPONENT_WIDTH != digits, Bits(1), 0)
    # The implicit bit, if it is set, adds 1 to the exponent's field.
    field = td.where(e < MIN_EXPONENT, 0, td.where(e > MAX_EXPONENT, 0, e + BIAS - 1))
    bits = (Bits(field) << FRACTION_WIDTH) + kept + step
    beyond = td.where(away, Bits(INFINITY_BITS), LARGEST_BITS)
    bits = td.where(e > MAX_EXPONENT, beyond, bits)
    return td.bitcast(td.where(negative, bits | SIGN, bits), Float)


@generic
def exact_zero(mode: td.i32) -> Float:
    """The zero of a difference of equal numbers: -0 when rounding down."""
    return td.bitcast(td.where(mode == DOWN, Bits(SIGN), 0), Float)


@generic
def add_directed(x: Float, y: Float, mode: td.i32) -> Float:
    """x + y."""
    swap = size_bits(x) < size_bits(y)
    a = td.where(swap, y, x)
    b = td.where(swap, x, y)
    e = exponent(a)
    high = significand(a) >> 1
    low = shifted(significand(b) >> 1, e - exponent(b))
    total = td.where(is_negative(a) == is_negative(b), high + low, high - low)
    zeros = td.clz(total)
    result = packed(is_negative(a), e + 1 - zeros, total << Bits(zeros), mode)
    same = is_negative(x) == is_negative(y)
    result = td.where(total == 0, td.where(same, x, exact_zero(mode)), result)
    ordinary = size_bits(a) < INFINITY_BITS
    return td.where(ordinary, result, x + y)


@generic
def mul_directed(x: Float, y: Float, mode: td.i32) -> Float:
    """x * y."""
    a = significand(x)
    b = significand(y)
    high = td.mul_high(a, b)
    low = a * b
    short = high >> TOP_BIT == 0
    low = td.where(short, low << 1, low)
    high = td.where(short, (high << 1) | (a * b >> TOP_BIT), high)
    high = td.where(low != 0, high | 1, high)
    e = exponent(x) + exponent(y) + td.where(short, 0, 1)
    result = packed(is_negative(x) != is_negative(y), e, high, mode)
    return td.where(is_ordinary(x) and is_ordinary(y), result, x * y)


@generic
def div_directed(x: Float, y: Float, mode: td.i32) -> Float:
    """x / y, digit by digit."""
    ordinary = is_ordinary(x) and is_ordinary(y)
    remainder = significand(x) >> EXPONENT_WIDTH
    b = td.where(ordinary, significand(y) >> EXPONENT_WIDTH, 1)
    short = remainder < b
    remainder = td.where(short, remainder << 1, remainder)
    quotient = Bits(0)
    fits = ordinary
    k = td.i32(0)
    last = td.where(ordinary, DIGITS, 0)
    while k < last:
        fits = remainder >= b
        quotient = (quotient << 1) | td.where(fits, Bits(1), 0)
        remainder = td.where(fits, remainder - b, remainder) << 1
        k = k + 1
    m = quotient << (WIDTH - DIGITS)
    m = td.where(remainder != 0, m | 1, m)
    e = exponent(x) - exponent(y) - td.where(short, 1, 0)
    result = packed(is_negative(x) != is_negative(y), e, m, mode)
    return td.where(ordinary, result, x / y)


@generic
def sqrt_directed(x: Float, mode: td.i32) -> Float:
    """The square root, digit by digit."""
    ordinary = is_ordinary(x) and not is_negative(x)
    e = exponent(x)
    digits = td.where((e & 1) == 0, significand(x) >> 1, significand(x))
    root = Bits(0)
    remainder = Bits(0)
    fits = ordinary
    k = td.i32(0)
    last = td.where(ordinary, DIGITS, 0)
    while k < last:
        remainder = (remainder << 2) | (digits >> TOP_PAIR)
        digits = digits << 2
        fits = remainder >= ((root << 2) | 1)
        remainder = td.where(fits, remainder - ((root << 2) | 1), remainder)
        root = (root << 1) | td.where(fits, Bits(1), 0)
        k = k + 1
    m = root << (WIDTH - DIGITS)
    m = td.where(remainder != 0, m | 1, m)
    return td.where(ordinary, packed(False, e >> 1, m, mode), td.sqrt(x))


@generic
def low_part(high: Bits, low: Bits, by: td.i32) -> Bits:
    """The lower word of (high, low) shifted right; its lowest bit is set if a set bit was lost."""
    near = Bits(td.where(by < WIDTH, by, 0))
    kept = (low >> near) | (high << (WIDTH - near))
    kept = td.where(low << (WIDTH - near) != 0, kept | 1, kept)
    far = shifted(high, td.where(by < WIDTH, 0, by - WIDTH))
    far = td.where(low != 0, far | 1, far)
    return td.where(by < WIDTH, kept, far)


@generic
def fma_directed(x: Float, y: Float, z: Float, mode: td.i32) -> Float:
    """x * y + z, rounded once: the product and z are two words each, with the highest bit free."""
    a = significand(x)
    b = significand(y)
    high = td.mul_high(a, b)
    low = a * b
    long = high >> TOP_BIT != 0
    low = td.where(long, (low >> 1) | (high << TOP_BIT), low)
    high = td.where(long, high >> 1, high)
    e = exponent(x) + exponent(y) + td.where(long, 1, 0)
    negative = is_negative(x) != is_negative(y)
    # the larger number (ah, al), and the smaller one (bh, bl), aligned to it
    c = significand(z) >> 1
    ez = exponent(z)
    swap = ez > e or (ez == e and c > high)
    ah = td.where(swap, c, high)
    al = td.where(swap, 0, low)
    bh = td.where(swap, high, c)
    bl = td.where(swap, low, 0)
    by = td.where(swap, ez - e, e - ez)
    bl = low_part(bh, bl, by)
    bh = bh >> Bits(td.where(by > WIDTH, WIDTH, by))
    same = negative == is_negative(z)
    total = td.where(same, al + bl, al - bl)
    carry = td.where(same, td.where(total < al, Bits(1), 0), td.where(al < bl, Bits(1), 0))
    top = td.where(same, ah + bh + carry, ah - bh - carry)
    e = td.where(swap, ez, e) + 1
    empty = top == 0
    top = td.where(empty, total, top)
    total = td.where(empty, 0, total)
    e = td.where(empty, e - WIDTH, e)
    zeros = td.clz(top)
    m = (top << Bits(zeros)) | (total >> (WIDTH - Bits(zeros)))
    m = td.where(total << Bits(zeros) != 0, m | 1, m)
    result = packed(td.where(swap, is_negative(z), negative), e - zeros, m, mode)
    result = td.where(top == 0, exact_zero(mode), result)
    finite = is_ordinary(x) and is_ordinary(y) and size_bits(z) < INFINITY_BITS
    return td.where(finite, result, add_directed(x * y, z, mode))
