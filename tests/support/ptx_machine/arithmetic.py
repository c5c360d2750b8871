"""What NumPy has no operator for: PTX's arithmetic on whole vectors, rounded as hardware does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

Array = Any  # arrays of one value a lane, or one scalar for all lanes

UNSPECIFIED = 0xBADC0FFEE0DDF00D
"""What stands where the ISA promises nothing."""


def unspecified(dtype: str) -> Any:
    """A value of this dtype that nobody should use."""
    bits = 8 * int(dtype[1:])
    return np.uint64(UNSPECIFIED & ((1 << bits) - 1)).astype(f"u{dtype[1:]}").view(dtype)


# --- integers ------------------------------------------------------------------------------------


def _wider(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")


def multiply_wide(a: Array, b: Array) -> Array:
    """The whole product, in twice the bits."""
    return a.astype(_wider(a.dtype)) * b.astype(_wider(a.dtype))


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    bits = 8 * a.dtype.itemsize
    if bits < 64:
        return (multiply_wide(a, b) >> bits).astype(a.dtype)
    x, y = a.astype("u8"), b.astype("u8")
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    other = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":  # a negative factor counted 2**64 too much
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.astype(a.dtype)


def divide(a: Array, b: Array) -> Array:
    """The quotient, truncated; unspecified for a divisor of 0."""
    safe = np.where(b == 0, np.ones((), b.dtype), b)
    quotient = a // safe
    if a.dtype.kind == "i":
        rest = a - quotient * safe
        quotient = quotient + ((rest != 0) & ((rest < 0) != (a < 0))).astype(a.dtype)
    return np.where(b == 0, unspecified(a.dtype.str[1:]), quotient)


def remainder(a: Array, b: Array) -> Array:
    """What `divide` leaves, with the dividend's sign; unspecified for a divisor of 0."""
    rest = a - divide(a, b) * b
    return np.where(b == 0, unspecified(a.dtype.str[1:]), rest)


def shift_left(a: Array, count: Array) -> Array:
    """Bits move up; a count of the width or more leaves nothing."""
    bits = 8 * a.dtype.itemsize
    few = count < bits
    moved = a << np.where(few, count, 0).astype(a.dtype)
    return np.where(few, moved, np.zeros((), a.dtype))


def shift_right(a: Array, count: Array) -> Array:
    """Bits move down, the sign with them in signed types; counts are clamped to the width."""
    bits = 8 * a.dtype.itemsize
    if a.dtype.kind == "i":
        return a >> np.minimum(count, bits - 1).astype(a.dtype)
    few = count < bits
    return np.where(few, a >> np.where(few, count, 0).astype(a.dtype), np.zeros((), a.dtype))


def funnel_shift(low: Array, high: Array, count: Array, left: bool, wrap: bool) -> Array:
    """`shf`: 64 bits moved, the upper (left) or lower (right) 32 of them."""
    amount = (count & 31 if wrap else np.minimum(count, 32)).astype("u8")
    both = (high.astype("u8") << np.uint64(32)) | low.astype("u8")
    if left:
        # In two steps, for the shift by 32 - 0 of an amount of 0.
        return ((both << amount) >> np.uint64(32)).astype("u4")
    return (both >> amount).astype("u4")


def count_bits(a: Array) -> Array:
    return np.bitwise_count(a).astype("u4")


def leading_zeros(a: Array) -> Array:
    return np.uint32(8 * a.dtype.itemsize) - count_bits(_smeared(a))


def _smeared(a: Array) -> Array:
    """Every bit below the highest set."""
    for step in (1, 2, 4, 8, 16, 32):
        if step < 8 * a.dtype.itemsize:
            a = a | (a >> a.dtype.type(step))
    return a


def find_highest(a: Array, shift_amount: bool) -> Array:
    """`bfind`: the place of the highest bit that is not the sign; all ones if there is none."""
    if a.dtype.kind == "i":
        a = np.where(a < 0, ~a, a).view(f"u{a.dtype.itemsize}")
    zeros = leading_zeros(a)
    bits = np.uint32(8 * a.dtype.itemsize)
    place = zeros if shift_amount else bits - np.uint32(1) - zeros
    return np.where(a == 0, np.uint32(0xFFFFFFFF), place)


def reverse_bits(a: Array) -> Array:
    kind = a.dtype.type
    for step, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        pattern = kind(int.from_bytes(bytes([mask]) * a.dtype.itemsize, "little"))
        a = ((a >> kind(step)) & pattern) | ((a & pattern) << kind(step))
    return a.byteswap()


def extract_bits(a: Array, at: Array, length: Array) -> Array:
    """`bfe`: a field, with its own sign in signed types. Place and length are 8 bits."""
    bits = 8 * a.dtype.itemsize
    at, length = at & 0xFF, length & 0xFF
    field = shift_right(a, at)
    kept = np.minimum(length, bits)
    if a.dtype.kind == "u":
        return field & ~shift_left(~np.zeros((), a.dtype), kept)
    # The sign is the field's highest bit, or the operand's where the field reaches beyond it.
    sign_at = np.minimum(at + length - np.uint32(1), bits - 1)
    sign = np.where(length == 0, 0, shift_right(a, sign_at) & a.dtype.type(1))
    inside = np.minimum(kept, np.maximum(np.int64(bits) - at, 0).astype("u4"))
    mask = ~shift_left(~np.zeros((), a.dtype), inside)
    return (field & mask) | np.where(sign != 0, ~mask, a.dtype.type(0))


def insert_bits(a: Array, into: Array, at: Array, length: Array) -> Array:
    """`bfi`: the low bits of `a` in place of a field of `into`."""
    at, length = at & 0xFF, length & 0xFF
    bits = 8 * a.dtype.itemsize
    ones = ~np.zeros((), a.dtype)
    mask = shift_left(~shift_left(ones, np.minimum(length, bits)), at)
    return (into & ~mask) | (shift_left(a, at) & mask)


def permute_bytes(a: Array, b: Array, selector: Array) -> Array:
    """`prmt` in its general mode: each nibble picks one of eight bytes, bit 3 repeats its sign."""
    both = (b.astype("u8") << np.uint64(32)) | a.astype("u8")
    result = np.uint32(0)
    for i in range(4):
        pick = (selector >> np.uint32(4 * i)) & np.uint32(15)
        byte = (both >> ((pick & np.uint32(7)) * np.uint32(8)).astype("u8")) & np.uint64(0xFF)
        sign = np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
        chosen = np.where(pick & np.uint32(8), sign, byte).astype("u4")
        result = result | (chosen << np.uint32(8 * i))
    return result


def dot_bytes(a: Array, b: Array, c: Array) -> Array:
    """`dp4a`: the sum of the products of four bytes, signed as their words are, and of c."""
    return _dot(_pieces(a, 1), _pieces(b, 1), c)


def dot_halves(a: Array, b: Array, c: Array, start: int) -> Array:
    """`dp2a`: of two halves of a and two bytes of b, the first two or the last two."""
    return _dot(_pieces(a, 2), _pieces(b, 1)[..., start : start + 2], c)


def _pieces(words: Array, size: int) -> Array:
    """The numbers of `size` bytes in each word along a new axis, signed as the words are."""
    kind = f"{words.dtype.kind}{size}"
    one_each = np.ascontiguousarray(words)[..., np.newaxis]
    return one_each.view(kind).astype("i8")


def _dot(a: Array, b: Array, c: Array) -> Array:
    return ((a * b).sum(axis=-1) + c.astype("i8")).astype(c.dtype)


def logic3(a: Array, b: Array, c: Array, table: int) -> Array:
    """`lop3`: any function of three bits, by its table."""
    result = a & np.uint32(0)
    for i in range(8):
        if table >> i & 1:
            x = a if i & 4 else ~a
            y = b if i & 2 else ~b
            z = c if i & 1 else ~c
            result = result | (x & y & z)
    return result


# --- floats --------------------------------------------------------------------------------------


def flush(a: Array) -> Array:
    """.ftz: denormals are zeros of their sign."""
    small = np.abs(a) < np.finfo(a.dtype).tiny
    return np.where(small, np.copysign(a.dtype.type(0), a), a)


def saturate(a: Array) -> Array:
    """.sat: into [0, 1], NaN to +0."""
    kind = a.dtype.type
    return np.where(a > 0, np.where(a < 1, a, kind(1)), kind(0))


def negative(a: Array) -> Array:
    """The sign bit turned, of NaN too."""
    unsigned = f"u{a.dtype.itemsize}"
    return (a.view(unsigned) ^ _sign_bit(unsigned)).view(a.dtype)


def magnitude(a: Array) -> Array:
    unsigned = f"u{a.dtype.itemsize}"
    return (a.view(unsigned) & ~_sign_bit(unsigned)).view(a.dtype)


def _sign_bit(unsigned: str) -> Any:
    dtype = np.dtype(unsigned)
    return dtype.type(1 << (8 * dtype.itemsize - 1))


def copy_sign(sign: Array, value: Array) -> Array:
    """`copysign d, a, b`: the sign of a on the value of b."""
    return np.copysign(value, sign)


def minimum(a: Array, b: Array) -> Array:
    """The lesser, -0 below +0; the number where the other is NaN."""
    return _extremum(a, b, a < b, np.signbit(a))


def maximum(a: Array, b: Array) -> Array:
    """The greater, +0 above -0; the number where the other is NaN."""
    return _extremum(a, b, a > b, ~np.signbit(a))


def _extremum(a: Array, b: Array, first: Array, first_zero: Array) -> Array:
    first = np.where(a == b, first_zero, first)
    result = np.where(first | np.isnan(b), a, b)
    return np.where(np.isnan(a) & np.isnan(b), quiet_nan(a.dtype), result)


def with_nan(result: Array, a: Array, b: Array) -> Array:
    """.NaN: NaN if either operand is."""
    return np.where(np.isnan(a) | np.isnan(b), quiet_nan(a.dtype), result)


def quiet_nan(dtype: np.dtype[Any]) -> Any:
    """The NaN that instructions give."""
    bits = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FF8000000000000}[dtype.itemsize]
    return np.dtype(f"u{dtype.itemsize}").type(bits).view(dtype)


def unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a*b + c, rounded once."""
    if a.dtype.itemsize == 8:
        return _fma_f64(a, b, c)
    return odd_fma(a, b, c).astype(a.dtype)


def odd_fma(a: Array, b: Array, c: Array) -> Array:
    """a*b + c of narrower types in float64, rounded to odd: rounding it again is rounding once."""
    product = a.astype("f8") * b.astype("f8")  # exact: at most 48 bits
    return _odd_sum(product, c.astype("f8"))


def _odd_sum(x: Array, y: Array) -> Array:
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    return _to_odd(total, error)


def _to_odd(value: Array, error: Array) -> Array:
    """`value` is the nearest float64 to value + error: the neighbour with an odd last bit, unless
    it is exact."""
    bits = np.asarray(value).view("i8")
    move = np.where((error > 0) == (value > 0), 1, -1)
    inexact = (error != 0) & np.isfinite(value) & np.isfinite(error) & (bits & 1 == 0)
    return (bits + np.where(inexact, move, 0)).view("f8")


_SPLIT = 134217729.0  # 2**27 + 1


def _fma_f64(a: Array, b: Array, c: Array) -> Array:
    """By sums of two floats where nothing overflows, by fractions elsewhere.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
    rounding to odd" (2008).
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    product = a * b
    a_high = a * _SPLIT - (a * _SPLIT - a)
    b_high = b * _SPLIT - (b * _SPLIT - b)
    a_low, b_low = a - a_high, b - b_high
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    low_sum, low_error = _two_sum(c, rest)
    high_sum, high_error = _two_sum(product, low_sum)
    result = np.asarray(high_sum + _odd_sum(high_error, low_error))
    plain = np.isfinite(product) & np.isfinite(c) & (a != 0) & (b != 0)
    fits = _moderate(a, 480) & _moderate(b, 480) & (_moderate(c, 960) | (c == 0))
    result = np.where(plain, result, product + c)
    finite = np.isfinite(a) & np.isfinite(b)
    result = np.where(finite & np.isinf(c), c, result)
    odd_ones = finite & np.isfinite(c) & (a != 0) & (b != 0) & ~fits
    if odd_ones.any():
        result = np.array(result)
        for place in np.argwhere(odd_ones):
            at = tuple(place)
            result[at] = _exact_fma(float(a[at]), float(b[at]), float(c[at]))
    return result


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _moderate(x: Array, exponent: int) -> Array:
    size = np.abs(x)
    return (size < 2.0**exponent) & (size > 2.0**-exponent)


def _exact_fma(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return 0.0
    try:
        size = abs(exact)
        rounded = size.numerator / size.denominator
    except OverflowError:
        rounded = float("inf")
    return rounded if exact > 0 else -rounded


def has_property(a: Array, what: str) -> Array:
    """`testp`."""
    normal = np.isfinite(a) & (np.abs(a) >= np.finfo(a.dtype).tiny)
    return {
        "finite": np.isfinite(a), "infinite": np.isinf(a), "number": ~np.isnan(a),
        "notanumber": np.isnan(a), "normal": normal,
        "subnormal": np.isfinite(a) & ~normal & (a != 0),
    }[what]  # fmt: skip


def approximate(function: str, a: Array) -> Array:
    """A transcendental instruction, by way of float64."""
    x = a.astype("f8")
    y = {
        "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
        "rcp": np.reciprocal, "sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v),
    }[function](x)  # fmt: skip
    return y.astype(a.dtype)


# --- bfloat16 ------------------------------------------------------------------------------------


def from_bf16(bits: Array) -> Array:
    """The values of 16-bit patterns, as float32."""
    return (bits.astype("u4") << np.uint32(16)).view("f4")


def to_bf16(value: Array) -> Array:
    """The nearest bfloat16 as a 16-bit pattern, from float32; ties go to even."""
    bits = value.view("u4")
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(value), np.uint32(0x7FFF), rounded).astype("u2")


def odd_f32(value: Array) -> Array:
    """A float64 as float32 rounded to odd: rounding it again is rounding once."""
    near = value.astype("f4")
    bits = near.view("u4")
    inexact = (near != value) & np.isfinite(value)
    beyond = np.abs(near.astype("f8")) > np.abs(value)
    toward_zero = bits - beyond.astype("u4")
    return np.where(inexact, toward_zero | np.uint32(1), bits).view("f4")


def fma_bf16(a: Array, b: Array, c: Array) -> Array:
    """a*b + c of bfloat16 values; `to_bf16` of the result rounds once."""
    return odd_f32(odd_fma(a, b, c))
