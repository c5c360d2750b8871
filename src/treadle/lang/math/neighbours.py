"""The numbers next to a number."""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.formats import SIGN, Bits, Float, Integer
from treadle.lang.math.generic import generic


@generic
def nextafter(x: Float, y: Float) -> Float:
    """The next number after x towards y. A denormal result is 0 on targets that flush denormals.

    Floats of one sign are ordered like their bits, so a neighbour is the bits plus or minus 1.
    """
    bits = td.bitcast(x, Integer)
    outwards = (y > x) == (x > 0.0)
    neighbour = td.bitcast(bits + td.where(outwards, Integer(1), Integer(-1)), Float)
    smallest = td.bitcast((td.bitcast(y, Bits) & SIGN) | 1, Float)
    neighbour = td.where(x == 0.0, smallest, neighbour)
    neighbour = td.where(x == y, y, neighbour)
    return td.where(td.isnan(x), x, td.where(td.isnan(y), y, neighbour))


def nextafter_f16(x: td.f32, y: td.f32) -> td.f32:
    """The next float16 after x towards y.

    It is computed in float32, where 13 bits of a float16 are zero; denormal float16 numbers are
    multiples of 2**-24.
    """
    bits = td.bitcast(x, td.i32)
    outwards = (y > x) == (x > 0.0)
    neighbour = td.bitcast(bits + td.where(outwards, 8192, -8192), td.f32)
    size = td.abs(x)
    if size < 6.103515625e-05 or (size == 6.103515625e-05 and not outwards):
        neighbour = x + td.where(y > x, 5.9604644775390625e-08, -5.9604644775390625e-08)
        neighbour = td.copysign(neighbour, td.where(x == 0.0, y, x))
    if size > 65504.0 and not outwards:
        neighbour = td.copysign(65504.0, x)
    neighbour = td.where(x == y, y, neighbour)
    return td.where(td.isnan(x), x, td.where(td.isnan(y), y, neighbour))


def nextafter_bf16(x: td.f32, y: td.f32) -> td.f32:
    """The next bfloat16 after x towards y. A bfloat16 is the upper half of a float32."""
    bits = td.bitcast(x, td.i32)
    outwards = (y > x) == (x > 0.0)
    neighbour = td.bitcast(bits + td.where(outwards, 65536, -65536), td.f32)
    smallest = td.bitcast((td.bitcast(y, td.u32) & 0x80000000) | 65536, td.f32)
    neighbour = td.where(x == 0.0, smallest, neighbour)
    neighbour = td.where(x == y, y, neighbour)
    return td.where(td.isnan(x), x, td.where(td.isnan(y), y, neighbour))
