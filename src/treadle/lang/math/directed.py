"""Arithmetic rounded in a direction, in f32: towards zero, up or down, exactly as IEEE 754 says.

Devices round to the nearest, and WebGPU's take liberties with division and with denormal numbers.
So this is done on integers: a number is a significand, whose highest bit is the highest of a word,
and an exponent. What falls out below is remembered in the lowest bit, where it can only matter as
"something".
"""

from __future__ import annotations

from treadle import lang as td

ZERO = 0  # towards zero
UP = 1
DOWN = 2


def size_bits(x: td.f32) -> td.u32:
    """The bits without the sign: ordered like the magnitudes."""
    return td.bitcast(x, td.u32) & 0x7FFFFFFF


def is_ordinary(x: td.f32) -> td.bool:
    """Whether a number is neither 0, infinite nor NaN. (By its bits: a denormal one is.)"""
    return size_bits(x) - 1 < 0x7F800000 - 1


def is_negative(x: td.f32) -> td.bool:
    """Whether the sign bit is set."""
    return td.bitcast(x, td.u32) >> 31 != 0


def significand(x: td.f32) -> td.u32:
    """The digits of a number, the highest one in the highest bit; 0 for 0."""
    size = size_bits(x)
    normal = ((size & 0x7FFFFF) | 0x800000) << 8
    return td.where(size < 0x800000, size << td.u32(td.clz(size)), normal)


def exponent(x: td.f32) -> td.i32:
    """The e of x = m 2^e, 1 <= |m| < 2; far below all others for 0."""
    size = size_bits(x)
    normal = td.i32(size >> 23) - 127
    small = td.where(size < 0x800000, -118 - td.clz(size), normal)
    return td.where(size == 0, -100000, small)


def shifted(m: td.u32, by: td.i32) -> td.u32:
    """`m` moved down; the lowest bit is set if anything but zeros fell out."""
    b = td.u32(td.where(by > 32, 32, by))
    kept = m >> b
    return td.where(kept << b != m, kept | 1, kept)


def packed(negative: td.bool, e: td.i32, m: td.u32, mode: td.i32) -> td.f32:
    """The number m 2^e rounded in a direction. The lowest bit of m may stand for more below it."""
    digits = shifted(m, td.where(e < -126, -126 - e, 0))
    kept = digits >> 8
    away = (mode == UP and not negative) or (mode == DOWN and negative)
    step = td.where(away and kept << 8 != digits, td.u32(1), 0)
    # The highest digit, where there is one, adds 1 to the exponent's field.
    field = td.where(e < -126, 0, td.where(e > 127, 0, e + 127 - 1))
    bits = (td.u32(field) << 23) + kept + step
    beyond = td.where(away, td.u32(0x7F800000), 0x7F7FFFFF)
    bits = td.where(e > 127, beyond, bits)
    return td.bitcast(td.where(negative, bits | 0x80000000, bits), td.f32)


def exact_zero(mode: td.i32) -> td.f32:
    """The 0 that a difference of equals gives: -0 when rounding down."""
    return td.bitcast(td.where(mode == DOWN, td.u32(0x80000000), 0), td.f32)


def add_directed(x: td.f32, y: td.f32, mode: td.i32) -> td.f32:
    """x + y."""
    swap = size_bits(x) < size_bits(y)
    a = td.where(swap, y, x)
    b = td.where(swap, x, y)
    e = exponent(a)
    high = significand(a) >> 1
    low = shifted(significand(b) >> 1, e - exponent(b))
    total = td.where(is_negative(a) == is_negative(b), high + low, high - low)
    zeros = td.clz(total)
    result = packed(is_negative(a), e + 1 - zeros, total << td.u32(zeros), mode)
    same = is_negative(x) == is_negative(y)
    result = td.where(total == 0, td.where(same, x, exact_zero(mode)), result)
    ordinary = size_bits(a) < 0x7F800000
    return td.where(ordinary, result, x + y)


def mul_directed(x: td.f32, y: td.f32, mode: td.i32) -> td.f32:
    """x * y."""
    a = significand(x)
    b = significand(y)
    high = td.mul_high(a, b)
    low = a * b
    short = high >> 31 == 0
    low = td.where(short, low << 1, low)
    high = td.where(short, (high << 1) | (a * b >> 31), high)
    high = td.where(low != 0, high | 1, high)
    e = exponent(x) + exponent(y) + td.where(short, 0, 1)
    result = packed(is_negative(x) != is_negative(y), e, high, mode)
    return td.where(is_ordinary(x) and is_ordinary(y), result, x * y)


def div_directed(x: td.f32, y: td.f32, mode: td.i32) -> td.f32:
    """x / y, digit by digit."""
    ordinary = is_ordinary(x) and is_ordinary(y)
    rest = significand(x) >> 8
    b = td.where(ordinary, significand(y) >> 8, 1)
    short = rest < b
    rest = td.where(short, rest << 1, rest)
    quotient = td.u32(0)
    fits = ordinary
    k = td.i32(0)
    last = td.where(ordinary, 26, 0)
    while k < last:
        fits = rest >= b
        quotient = (quotient << 1) | td.where(fits, td.u32(1), 0)
        rest = td.where(fits, rest - b, rest) << 1
        k = k + 1
    m = quotient << 6
    m = td.where(rest != 0, m | 1, m)
    e = exponent(x) - exponent(y) - td.where(short, 1, 0)
    result = packed(is_negative(x) != is_negative(y), e, m, mode)
    return td.where(ordinary, result, x / y)


def sqrt_directed(x: td.f32, mode: td.i32) -> td.f32:
    """The square root, digit by digit."""
    ordinary = is_ordinary(x) and not is_negative(x)
    e = exponent(x)
    digits = td.where((e & 1) == 0, significand(x) >> 1, significand(x))
    root = td.u32(0)
    rest = td.u32(0)
    fits = ordinary
    k = td.i32(0)
    last = td.where(ordinary, 26, 0)
    while k < last:
        rest = (rest << 2) | (digits >> 30)
        digits = digits << 2
        fits = rest >= ((root << 2) | 1)
        rest = td.where(fits, rest - ((root << 2) | 1), rest)
        root = (root << 1) | td.where(fits, td.u32(1), 0)
        k = k + 1
    m = root << 6
    m = td.where(rest != 0, m | 1, m)
    return td.where(ordinary, packed(False, e >> 1, m, mode), td.sqrt(x))


def low_part(high: td.u32, low: td.u32, by: td.i32) -> td.u32:
    """The lower word of (high, low) moved down; its lowest bit is set if anything fell out."""
    near = td.u32(td.where(by < 32, by, 0))
    kept = (low >> near) | (high << (32 - near))
    kept = td.where(low << (32 - near) != 0, kept | 1, kept)
    far = shifted(high, td.where(by < 32, 0, by - 32))
    far = td.where(low != 0, far | 1, far)
    return td.where(by < 32, kept, far)


def fma_directed(x: td.f32, y: td.f32, z: td.f32, mode: td.i32) -> td.f32:
    """x * y + z, rounded once: the product and z as two words, the highest bit left free."""
    a = significand(x)
    b = significand(y)
    high = td.mul_high(a, b)
    low = a * b
    long = high >> 31 != 0
    low = td.where(long, (low >> 1) | (high << 31), low)
    high = td.where(long, high >> 1, high)
    e = exponent(x) + exponent(y) + td.where(long, 1, 0)
    negative = is_negative(x) != is_negative(y)
    # the larger one (ah, al), the smaller one (bh, bl), moved to its place
    c = significand(z) >> 1
    ez = exponent(z)
    swap = ez > e or (ez == e and c > high)
    ah = td.where(swap, c, high)
    al = td.where(swap, 0, low)
    bh = td.where(swap, high, c)
    bl = td.where(swap, low, 0)
    by = td.where(swap, ez - e, e - ez)
    bl = low_part(bh, bl, by)
    bh = bh >> td.u32(td.where(by > 32, 32, by))
    same = negative == is_negative(z)
    total = td.where(same, al + bl, al - bl)
    carry = td.where(same, td.where(total < al, td.u32(1), 0), td.where(al < bl, td.u32(1), 0))
    top = td.where(same, ah + bh + carry, ah - bh - carry)
    e = td.where(swap, ez, e) + 1
    empty = top == 0
    top = td.where(empty, total, top)
    total = td.where(empty, 0, total)
    e = td.where(empty, e - 32, e)
    zeros = td.clz(top)
    m = (top << td.u32(zeros)) | (total >> (32 - td.u32(zeros)))
    m = td.where(total << td.u32(zeros) != 0, m | 1, m)
    result = packed(td.where(swap, is_negative(z), negative), e - zeros, m, mode)
    result = td.where(top == 0, exact_zero(mode), result)
    finite = is_ordinary(x) and is_ordinary(y) and size_bits(z) < 0x7F800000
    return td.where(finite, result, add_directed(x * y, z, mode))
