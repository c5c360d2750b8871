"""The order of numbers, as integers that compare as the numbers do.

NaN is greater than everything and equal to itself, -0 equals 0, and denormal numbers count on every
device, which comparisons of floats on GPUs do not promise. Sorting in descending order compares
keys whose order is reversed for all but NaN, which stays last.
"""

from __future__ import annotations

from treadle import lang as td
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.lang.decorators import Function

INFINITY_32 = 0x7F800000
LAST_32 = 0x7FFFFFFF
INFINITY_64 = 0x7FF0000000000000
LAST_64 = 0x7FFFFFFFFFFFFFFF


@td.func
def integer_key(x):
    """An integer is its own key."""
    return x


@td.func
def integer_key_descending(x):
    """~x reverses the order, at the ends too."""
    return ~x


@td.func
def float32_key(x):
    """The magnitude's bits, with the sign: both zeros are 0."""
    bits = td.bitcast(x, td.i32)
    magnitude = bits & LAST_32
    key = td.where(bits < 0, -magnitude, magnitude)
    return td.where(magnitude > INFINITY_32, LAST_32, key)


@td.func
def float32_key_descending(x):
    """The same with the other sign."""
    bits = td.bitcast(x, td.i32)
    magnitude = bits & LAST_32
    key = td.where(bits < 0, magnitude, -magnitude)
    return td.where(magnitude > INFINITY_32, LAST_32, key)


@td.func
def float64_key(x):
    """As for 32 bits."""
    bits = td.bitcast(x, td.i64)
    magnitude = bits & td.i64(LAST_64)
    key = td.where(bits < 0, -magnitude, magnitude)
    return td.where(magnitude > td.i64(INFINITY_64), td.i64(LAST_64), key)


@td.func
def float64_key_descending(x):
    """As for 32 bits."""
    bits = td.bitcast(x, td.i64)
    magnitude = bits & td.i64(LAST_64)
    key = td.where(bits < 0, magnitude, -magnitude)
    return td.where(magnitude > td.i64(INFINITY_64), td.i64(LAST_64), key)


# The dtypes that kernels compute with: each holds every value, and every target can store it. By
# names, since hashing bfloat16 imports `ml_dtypes`.
_WIDER: dict[str, DType] = {
    "bool": dtypes.i32, "int8": dtypes.i32, "int16": dtypes.i32,
    "uint8": dtypes.u32, "uint16": dtypes.u32,
    "float16": dtypes.f32, "bfloat16": dtypes.f32,
}  # fmt: skip


def wide(dtype: DType) -> DType:
    """The dtype that elements have while they are compared and moved.

    >>> wide(dtypes.float16), wide(dtypes.uint64)
    (treadle.float32, treadle.uint64)
    """
    return _WIDER.get(dtype.name, dtype)


def key_type(dtype: DType) -> DType:
    """The dtype of the keys of elements that are `wide`.

    >>> key_type(dtypes.float16), key_type(dtypes.float64), key_type(dtypes.uint8)
    (treadle.int32, treadle.int64, treadle.uint32)
    """
    return {"float32": dtypes.i32, "float64": dtypes.i64}.get(wide(dtype).name, wide(dtype))


def key_of(dtype: DType, descending: bool = False) -> Function:
    """The function that makes keys of elements that are `wide`."""
    form = wide(dtype)
    if form == dtypes.f32:
        return float32_key_descending if descending else float32_key
    if form == dtypes.f64:
        return float64_key_descending if descending else float64_key
    return integer_key_descending if descending else integer_key
