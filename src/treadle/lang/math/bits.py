"""Operations on the bits of numbers, and the exact operations that the library is based on.

Targets differ: a*b+c may be fused, division and square root may be off by 2.5 ULP (WGSL), and a
driver may simplify `(a + b) - a` to `b`. Therefore exact results are obtained by clearing bits. The
product of two heads has no rounding error, fused or not, and a driver cannot simplify it. (T. J.
Dekker, "A floating-point technique for extending the available precision", 1971, splits numbers for
the same purpose, by arithmetic.)
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.builtins import has_near_functions, near_reciprocal
from treadle.lang.math.formats import BIAS, FRACTION_WIDTH, SIGN, Bits, Float
from treadle.lang.math.generic import either, generic

INTEGER_IN_BITS = 12582912.0  # 3 * 2^22: the last bits of its sum with x are the integer
HEAD = either(0xFFFFF000, 0xFFFFFFFFF8000000)  # the upper 12 and 26 bits of a significand


@generic
def power_of_two(n: td.i32) -> Float:
    """2^n, -126 <= n <= 127."""
    return td.bitcast((n + BIAS) << FRACTION_WIDTH, Float)


@power_of_two.double
def power_of_two(n: td.i32) -> Float:
    """2^n, -1022 <= n <= 1023."""
    return td.bitcast((td.i64(n) + BIAS) << FRACTION_WIDTH, Float)


def nearest_integer(x: td.f32) -> td.i32:
    """The integer nearest x, |x| < 2^22, ties to even; for other x the result is undefined.

    The last bits of 3 * 2^22 + x are the integer, since the unit in the last place of that sum is
    1. This is several times as fast as rounding and converting, for which GPUs have few units.
    """
    return td.bitcast(x + INTEGER_IN_BITS, td.i32) - 0x4B400000


@generic
def head(x: Float) -> Float:
    """The upper half of a significand. head(x) * head(y) and x - head(x) are exact."""
    return td.bitcast(td.bitcast(x, Bits) & HEAD, Float)


@generic
def with_sign_of(magnitude: Float, sign: Float) -> Float:
    """A number >= 0 (or a NaN) with the sign bit of another."""
    bits = td.bitcast(magnitude, Bits) | (td.bitcast(sign, Bits) & SIGN)
    return td.bitcast(bits, Float)


@generic
def flip_sign_by(x: Float, sign: Float) -> Float:
    """`x`, negated where `sign` has its sign bit set."""
    bits = td.bitcast(x, Bits) ^ (td.bitcast(sign, Bits) & SIGN)
    return td.bitcast(bits, Float)


@generic
def inverse_of(x: Float) -> Float:
    """1 / x to 2.5 ULP at most, for 2^-125 < |x| < 2^125."""
    y = Float(0.0)
    if has_near_functions(x):
        y = near_reciprocal(x)
    else:
        y = 1.0 / x
    return y


@inverse_of.double
def inverse_of(x: Float) -> Float:
    """1 / x to 2.5 ULP at most."""
    return 1.0 / x


@generic
def quotient_of_parts(a: Float, b_head: Float, b_tail: Float) -> Float:
    """a / (b_head + b_tail) to 0.6 ULP, where `b_head` is a head; see `exact_quotient`."""
    return quotient_by_inverse(a, b_head, b_tail, 1.0 / (b_head + b_tail))


@generic
def quotient_by_inverse(a: Float, b_head: Float, b_tail: Float, inverse: Float) -> Float:
    """The same by an inverse that is off by a few ULP."""
    q = head(a * inverse)
    tail = (a - q * b_head) - q * b_tail
    return q + tail * inverse


@generic
def exact_quotient(a: Float, b: Float) -> Float:
    """a / b to 0.6 ULP, whatever the target's error of division. Both must be far from overflow and
    underflow.

    The quotient's head times b is subtracted from a without error; the remainder needs few bits.
    """
    b_head = head(b)
    return quotient_of_parts(a, b_head, b - b_head)


def careful_quotient(a: td.f32, b: td.f32) -> td.f32:
    """a / b to 0.6 ULP far from overflow and underflow, elsewhere the target's own division."""
    quotient = a / b
    size = td.abs(quotient)
    return td.where(size > 1e-30 and size < 1e30, exact_quotient.f32(a, b), quotient)


@generic
def exact_root(x: Float) -> Float:
    """sqrt(x) to 0.6 ULP, whatever the target's error of sqrt. x is 0, or far from denormal.

    With s the head of the root, sqrt(x) = s + (x - s^2) / (sqrt(x) + s), and x - s^2 is exact.
    """
    root = td.sqrt(x)
    s = head(root)
    tail = x - s * s
    return td.where(x > 0.0, s + tail / (root + s), root)


def picked_byte(x: td.u32, y: td.u32, selector: td.u32) -> td.u32:
    """One of the eight bytes of y and x (x has bytes 0 to 3), selected by the low 3 bits."""
    word = td.where((selector & 4) != 0, y, x)
    return (word >> ((selector & 3) << 3)) & 0xFF


def byte_perm_u32(x: td.u32, y: td.u32, selector: td.u32) -> td.u32:
    """Four of the eight bytes of y and x, each selected by four bits of the selector."""
    low = picked_byte(x, y, selector) | (picked_byte(x, y, selector >> 4) << 8)
    return (
        low | (picked_byte(x, y, selector >> 8) << 16) | (picked_byte(x, y, selector >> 12) << 24)
    )
