"""Arithmetic rounded in a direction, in f64: towards zero, up or down, exactly as IEEE 754 says.

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


def size_bits_f64(x: td.f64) -> td.u64:
    """The bits without the sign: ordered like the magnitudes."""
    return td.bitcast(x, td.u64) & 0x7FFFFFFFFFFFFFFF


def is_ordinary_f64(x: td.f64) -> td.bool:
    """Whether a number is neither 0, infinite nor NaN. (By its bits: a denormal one is.)"""
    return size_bits_f64(x) - 1 < 0x7FF0000000000000 - 1


def is_negative_f64(x: td.f64) -> td.bool:
    """Whether the sign bit is set."""
    return td.bitcast(x, td.u64) >> 63 != 0


def significand_f64(x: td.f64) -> td.u64:
    """The digits of a number, the highest one in the highest bit; 0 for 0."""
    size = size_bits_f64(x)
    normal = ((size & 0xFFFFFFFFFFFFF) | 0x10000000000000) << 11
    return td.where(size < 0x10000000000000, size << td.u64(td.clz(size)), normal)


def exponent_f64(x: td.f64) -> td.i32:
    """The e of x = m 2^e, 1 <= |m| < 2; far below all others for 0."""
    size = size_bits_f64(x)
    normal = td.i32(size >> 52) - 1023
    small = td.where(size < 0x10000000000000, -1011 - td.clz(size), normal)
    return td.where(size == 0, -100000, small)


def shifted_f64(m: td.u64, by: td.i32) -> td.u64:
    """`m` moved down; the lowest bit is set if anything but zeros fell out."""
    b = td.u64(td.where(by > 64, 64, by))
    kept = m >> b
    return td.where(kept << b != m, kept | 1, kept)


def packed_f64(negative: td.bool, e: td.i32, m: td.u64, mode: td.i32) -> td.f64:
    """The number m 2^e rounded in a direction. The lowest bit of m may stand for more below it."""
    digits = shifted_f64(m, td.where(e < -1022, -1022 - e, 0))
    kept = digits >> 11
    away = (mode == UP and not negative) or (mode == DOWN and negative)
    step = td.where(away and kept << 11 != digits, td.u64(1), 0)
    # The highest digit, where there is one, adds 1 to the exponent's field.
    field = td.where(e < -1022, 0, td.where(e > 1023, 0, e + 1023 - 1))
    bits = (td.u64(field) << 52) + kept + step
    beyond = td.where(away, td.u64(0x7FF0000000000000), 0x7FEFFFFFFFFFFFFF)
    bits = td.where(e > 1023, beyond, bits)
    return td.bitcast(td.where(negative, bits | 0x8000000000000000, bits), td.f64)


def exact_zero_f64(mode: td.i32) -> td.f64:
    """The 0 that a difference of equals gives: -0 when rounding down."""
    return td.bitcast(td.where(mode == DOWN, td.u64(0x8000000000000000), 0), td.f64)


def add_directed_f64(x: td.f64, y: td.f64, mode: td.i32) -> td.f64:
    """x + y."""
    swap = size_bits_f64(x) < size_bits_f64(y)
    a = td.where(swap, y, x)
    b = td.where(swap, x, y)
    e = exponent_f64(a)
    high = significand_f64(a) >> 1
    low = shifted_f64(significand_f64(b) >> 1, e - exponent_f64(b))
    total = td.where(is_negative_f64(a) == is_negative_f64(b), high + low, high - low)
    zeros = td.clz(total)
    result = packed_f64(is_negative_f64(a), e + 1 - zeros, total << td.u64(zeros), mode)
    same = is_negative_f64(x) == is_negative_f64(y)
    result = td.where(total == 0, td.where(same, x, exact_zero_f64(mode)), result)
    ordinary = size_bits_f64(a) < 0x7FF0000000000000
    return td.where(ordinary, result, x + y)


def mul_directed_f64(x: td.f64, y: td.f64, mode: td.i32) -> td.f64:
    """x * y."""
    a = significand_f64(x)
    b = significand_f64(y)
    high = td.mul_high(a, b)
    low = a * b
    short = high >> 63 == 0
    low = td.where(short, low << 1, low)
    high = td.where(short, (high << 1) | (a * b >> 63), high)
    high = td.where(low != 0, high | 1, high)
    e = exponent_f64(x) + exponent_f64(y) + td.where(short, 0, 1)
    result = packed_f64(is_negative_f64(x) != is_negative_f64(y), e, high, mode)
    return td.where(is_ordinary_f64(x) and is_ordinary_f64(y), result, x * y)


def div_directed_f64(x: td.f64, y: td.f64, mode: td.i32) -> td.f64:
    """x / y, digit by digit."""
    ordinary = is_ordinary_f64(x) and is_ordinary_f64(y)
    rest = significand_f64(x) >> 11
    b = td.where(ordinary, significand_f64(y) >> 11, 1)
    short = rest < b
    rest = td.where(short, rest << 1, rest)
    quotient = td.u64(0)
    fits = ordinary
    k = td.i32(0)
    last = td.where(ordinary, 55, 0)
    while k < last:
        fits = rest >= b
        quotient = (quotient << 1) | td.where(fits, td.u64(1), 0)
        rest = td.where(fits, rest - b, rest) << 1
        k = k + 1
    m = quotient << 9
    m = td.where(rest != 0, m | 1, m)
    e = exponent_f64(x) - exponent_f64(y) - td.where(short, 1, 0)
    result = packed_f64(is_negative_f64(x) != is_negative_f64(y), e, m, mode)
    return td.where(ordinary, result, x / y)


def sqrt_directed_f64(x: td.f64, mode: td.i32) -> td.f64:
    """The square root, digit by digit."""
    ordinary = is_ordinary_f64(x) and not is_negative_f64(x)
    e = exponent_f64(x)
    digits = td.where((e & 1) == 0, significand_f64(x) >> 1, significand_f64(x))
    root = td.u64(0)
    rest = td.u64(0)
    fits = ordinary
    k = td.i32(0)
    last = td.where(ordinary, 55, 0)
    while k < last:
        rest = (rest << 2) | (digits >> 62)
        digits = digits << 2
        fits = rest >= ((root << 2) | 1)
        rest = td.where(fits, rest - ((root << 2) | 1), rest)
        root = (root << 1) | td.where(fits, td.u64(1), 0)
        k = k + 1
    m = root << 9
    m = td.where(rest != 0, m | 1, m)
    return td.where(ordinary, packed_f64(False, e >> 1, m, mode), td.sqrt(x))


def low_part_f64(high: td.u64, low: td.u64, by: td.i32) -> td.u64:
    """The lower word of (high, low) moved down; its lowest bit is set if anything fell out."""
    near = td.u64(td.where(by < 64, by, 0))
    kept = (low >> near) | (high << (64 - near))
    kept = td.where(low << (64 - near) != 0, kept | 1, kept)
    far = shifted_f64(high, td.where(by < 64, 0, by - 64))
    far = td.where(low != 0, far | 1, far)
    return td.where(by < 64, kept, far)


def fma_directed_f64(x: td.f64, y: td.f64, z: td.f64, mode: td.i32) -> td.f64:
    """x * y + z, rounded once: the product and z as two words, the highest bit left free."""
    a = significand_f64(x)
    b = significand_f64(y)
    high = td.mul_high(a, b)
    low = a * b
    long = high >> 63 != 0
    low = td.where(long, (low >> 1) | (high << 63), low)
    high = td.where(long, high >> 1, high)
    e = exponent_f64(x) + exponent_f64(y) + td.where(long, 1, 0)
    negative = is_negative_f64(x) != is_negative_f64(y)
    # the larger one (ah, al), the smaller one (bh, bl), moved to its place
    c = significand_f64(z) >> 1
    ez = exponent_f64(z)
    swap = ez > e or (ez == e and c > high)
    ah = td.where(swap, c, high)
    al = td.where(swap, 0, low)
    bh = td.where(swap, high, c)
    bl = td.where(swap, low, 0)
    by = td.where(swap, ez - e, e - ez)
    bl = low_part_f64(bh, bl, by)
    bh = bh >> td.u64(td.where(by > 64, 64, by))
    same = negative == is_negative_f64(z)
    total = td.where(same, al + bl, al - bl)
    carry = td.where(same, td.where(total < al, td.u64(1), 0), td.where(al < bl, td.u64(1), 0))
    top = td.where(same, ah + bh + carry, ah - bh - carry)
    e = td.where(swap, ez, e) + 1
    empty = top == 0
    top = td.where(empty, total, top)
    total = td.where(empty, 0, total)
    e = td.where(empty, e - 64, e)
    zeros = td.clz(top)
    m = (top << td.u64(zeros)) | (total >> (64 - td.u64(zeros)))
    m = td.where(total << td.u64(zeros) != 0, m | 1, m)
    result = packed_f64(td.where(swap, is_negative_f64(z), negative), e - zeros, m, mode)
    result = td.where(top == 0, exact_zero_f64(mode), result)
    finite = is_ordinary_f64(x) and is_ordinary_f64(y) and size_bits_f64(z) < 0x7FF0000000000000
    return td.where(finite, result, add_directed_f64(x * y, z, mode))
