"""The two floating-point formats of IEEE 754 that the library computes in: types and layouts."""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.generic import either

Float = either(td.f32, td.f64)
Bits = either(td.u32, td.u64)  # of the same width
Integer = either(td.i32, td.i64)

WIDTH = either(32, 64)
FRACTION_WIDTH = either(23, 52)  # the bits of the fraction, the lowest ones
EXPONENT_WIDTH = either(8, 11)
BIAS = either(127, 1023)  # the exponent's field for 2^0
MAX_EXPONENT = BIAS  # of finite numbers
MIN_EXPONENT = either(-126, -1022)  # of normal numbers
SIGN = either(0x80000000, 0x8000000000000000)
SIZE = either(0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF)  # all bits but the sign's
FRACTION = either(0x007FFFFF, 0x000FFFFFFFFFFFFF)
LEAST_NORMAL_BITS = either(0x00800000, 0x0010000000000000)  # also the bit above the fraction
LARGEST_BITS = either(0x7F7FFFFF, 0x7FEFFFFFFFFFFFFF)
INFINITY_BITS = either(0x7F800000, 0x7FF0000000000000)

LEAST_NORMAL = either(1.17549435e-38, 2.2250738585072014e-308)
LARGEST = either(3.4028235e38, 1.7976931348623157e308)
ALL_WHOLE = either(8388608.0, 4503599627370496.0)  # from here on all numbers are integers
INFINITY = float("inf")
NAN = float("nan")
