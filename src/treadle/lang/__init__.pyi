# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""The kernel language: Python functions that run on every device.

`kernel` and `Function` are what the decorators make, `types` the annotations, `builtins` the names
that kernels use, `lower` the way to IR, `interpreter` plain Python, `refusals` what is not allowed.
"""

import builtins as _builtins
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any, Literal, overload

from treadle.lang.annotations import Array as Array
from treadle.lang.annotations import Array as _Array
from treadle.lang.annotations import bf16 as bf16
from treadle.lang.annotations import bfloat16 as bfloat16
from treadle.lang.annotations import bool as bool
from treadle.lang.annotations import c64 as c64
from treadle.lang.annotations import c128 as c128
from treadle.lang.annotations import complex64 as complex64
from treadle.lang.annotations import complex128 as complex128
from treadle.lang.annotations import f16 as f16
from treadle.lang.annotations import f32 as f32
from treadle.lang.annotations import f64 as f64
from treadle.lang.annotations import float16 as float16
from treadle.lang.annotations import float32 as float32
from treadle.lang.annotations import float64 as float64
from treadle.lang.annotations import i8 as i8
from treadle.lang.annotations import i16 as i16
from treadle.lang.annotations import i32 as i32
from treadle.lang.annotations import i64 as i64
from treadle.lang.annotations import int8 as int8
from treadle.lang.annotations import int16 as int16
from treadle.lang.annotations import int32 as int32
from treadle.lang.annotations import int64 as int64
from treadle.lang.annotations import u8 as u8
from treadle.lang.annotations import u16 as u16
from treadle.lang.annotations import u32 as u32
from treadle.lang.annotations import u64 as u64
from treadle.lang.annotations import uint8 as uint8
from treadle.lang.annotations import uint16 as uint16
from treadle.lang.annotations import uint32 as uint32
from treadle.lang.annotations import uint64 as uint64
from treadle.lang.annotations import vec2 as vec2
from treadle.lang.annotations import vec3 as vec3
from treadle.lang.annotations import vec4 as vec4
from treadle.lang.builtins import Place
from treadle.lang.interpreting import interpret as interpret
from treadle.lang.kernel import func as func
from treadle.lang.kernel import kernel as kernel
from treadle.lang.types import struct as struct
from treadle.lang.values import Value
from treadle.tensor.annotations import ArrayLike, Shape
from treadle.tensor.tensor import Tensor

__all__ = [
    "Array",
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "ballot",
    "bf16",
    "bfloat16",
    "bitcast",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "block_dim",
    "block_idx",
    "bool",
    "c64",
    "c128",
    "cbrt",
    "ceil",
    "clip",
    "clz",
    "complex64",
    "complex128",
    "copysign",
    "cos",
    "cosh",
    "ctz",
    "divide",
    "dot",
    "e",
    "equal",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "f16",
    "f32",
    "f64",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "fma",
    "func",
    "gamma",
    "greater",
    "greater_equal",
    "grid",
    "grid_dim",
    "grid_size",
    "hypot",
    "i8",
    "i16",
    "i32",
    "i64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "interpret",
    "isfinite",
    "isinf",
    "isnan",
    "kernel",
    "lane",
    "less",
    "less_equal",
    "lgamma",
    "local",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mul_high",
    "multiply",
    "nan",
    "negative",
    "nextafter",
    "not_equal",
    "pi",
    "popcount",
    "positive",
    "pow",
    "rand_normal",
    "rand_uniform",
    "reciprocal",
    "remainder",
    "reverse_bits",
    "round",
    "rsqrt",
    "shared",
    "shuffle",
    "shuffle_down",
    "shuffle_up",
    "shuffle_xor",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "static_range",
    "struct",
    "subgroup_max",
    "subgroup_min",
    "subgroup_prefix_sum",
    "subgroup_size",
    "subgroup_sum",
    "subtract",
    "sync_subgroup",
    "sync_threads",
    "tan",
    "tanh",
    "thread_fence",
    "thread_fence_block",
    "thread_idx",
    "trunc",
    "u8",
    "u16",
    "u32",
    "u64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "vec2",
    "vec3",
    "vec4",
    "vote_all",
    "vote_any",
    "where",
]

@overload
def abs(x: Value | complex, /) -> Value:
    """The absolute value."""

@overload
def abs(x: ArrayLike, /) -> Tensor: ...
@overload
def acos(x: Value | complex, /) -> Value:
    """The arc cosine."""

@overload
def acos(x: ArrayLike, /) -> Tensor: ...
@overload
def acosh(x: Value | complex, /) -> Value:
    """The inverse hyperbolic cosine."""

@overload
def acosh(x: ArrayLike, /) -> Tensor: ...
@overload
def add(a: Value | complex, b: Value | complex, /) -> Value:
    """a + b."""

@overload
def add(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def asin(x: Value | complex, /) -> Value:
    """The arc sine."""

@overload
def asin(x: ArrayLike, /) -> Tensor: ...
@overload
def asinh(x: Value | complex, /) -> Value:
    """The inverse hyperbolic sine."""

@overload
def asinh(x: ArrayLike, /) -> Tensor: ...
@overload
def atan(x: Value | complex, /) -> Value:
    """The arc tangent."""

@overload
def atan(x: ArrayLike, /) -> Tensor: ...
@overload
def atan2(a: Value | complex, b: Value | complex, /) -> Value:
    """The angle of the point (second, first)."""

@overload
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def atanh(x: Value | complex, /) -> Value:
    """The inverse hyperbolic tangent."""

@overload
def atanh(x: ArrayLike, /) -> Tensor: ...
def atomic_add(array: Any, index: Any, value: Any, /) -> Value:
    """Add to array[index]; gives the old value."""

def atomic_and(array: Any, index: Any, value: Any, /) -> Value:
    """Bitwise and; gives the old value."""

def atomic_cas(array: Any, index: Any, expected: Any, value: Any, /) -> Value:
    """Replace if it equals `expected`; gives the old value."""

def atomic_exchange(array: Any, index: Any, value: Any, /) -> Value:
    """Replace; gives the old value."""

def atomic_max(array: Any, index: Any, value: Any, /) -> Value:
    """Keep the larger; gives the old value."""

def atomic_min(array: Any, index: Any, value: Any, /) -> Value:
    """Keep the smaller; gives the old value."""

def atomic_or(array: Any, index: Any, value: Any, /) -> Value:
    """Bitwise or; gives the old value."""

def atomic_sub(array: Any, index: Any, value: Any, /) -> Value:
    """Subtract; gives the old value."""

def atomic_xor(array: Any, index: Any, value: Any, /) -> Value:
    """Bitwise exclusive or; gives the old value."""

def ballot(value: Any, /) -> int:
    """The threads where p holds, as bits of a u32."""

def bitcast(x: Any, dtype: Any, /) -> Value:
    """The bits of a number as another dtype of its size."""

@overload
def bitwise_and(a: Value | complex, b: Value | complex, /) -> Value:
    """a & b."""

@overload
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def bitwise_invert(x: Value | complex, /) -> Value:
    """~a."""

@overload
def bitwise_invert(x: ArrayLike, /) -> Tensor: ...
@overload
def bitwise_left_shift(a: Value | complex, b: Value | complex, /) -> Value:
    """a << b."""

@overload
def bitwise_left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def bitwise_or(a: Value | complex, b: Value | complex, /) -> Value:
    """a | b."""

@overload
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def bitwise_right_shift(a: Value | complex, b: Value | complex, /) -> Value:
    """a >> b."""

@overload
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def bitwise_xor(a: Value | complex, b: Value | complex, /) -> Value:
    """a ^ b."""

@overload
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...

block_dim: Place
"""The threads of a block along each axis."""

block_idx: Place
"""This block's index in the grid."""

@overload
def cbrt(x: Value | complex, /) -> Value:
    """The cube root."""

@overload
def cbrt(x: ArrayLike, /) -> Tensor: ...
@overload
def ceil(x: Value | complex, /) -> Value:
    """The smallest integer not below x."""

@overload
def ceil(x: ArrayLike, /) -> Tensor: ...
@overload
def clip(x: Value | complex, low: Value | complex, high: Value | complex, /) -> Value:
    """x limited to low … high."""

@overload
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor: ...
def clz(x: Any, /) -> Value:
    """The number of zero bits above the highest set one."""

@overload
def copysign(a: Value | complex, b: Value | complex, /) -> Value:
    """The magnitude of the first with the sign of the second."""

@overload
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def cos(x: Value | complex, /) -> Value:
    """The cosine of x radians."""

@overload
def cos(x: ArrayLike, /) -> Tensor: ...
@overload
def cosh(x: Value | complex, /) -> Value:
    """The hyperbolic cosine."""

@overload
def cosh(x: ArrayLike, /) -> Tensor: ...
def ctz(x: Any, /) -> Value:
    """The number of zero bits below the lowest set one."""

@overload
def divide(a: Value | complex, b: Value | complex, /) -> Value:
    """a / b."""

@overload
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def dot(a: Value | complex, b: Value | complex, /) -> Value:
    """The dot product of two vectors."""

@overload
def dot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def equal(a: Value | complex, b: Value | complex, /) -> Value:
    """a == b."""

@overload
def equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def erf(x: Value | complex, /) -> Value:
    """The error function."""

@overload
def erf(x: ArrayLike, /) -> Tensor: ...
@overload
def erfc(x: Value | complex, /) -> Value:
    """1 - erf(x), precise for large x."""

@overload
def erfc(x: ArrayLike, /) -> Tensor: ...
@overload
def exp(x: Value | complex, /) -> Value:
    """e to the power x."""

@overload
def exp(x: ArrayLike, /) -> Tensor: ...
@overload
def exp2(x: Value | complex, /) -> Value:
    """2 to the power x."""

@overload
def exp2(x: ArrayLike, /) -> Tensor: ...
@overload
def expm1(x: Value | complex, /) -> Value:
    """exp(x) - 1, precise near 0."""

@overload
def expm1(x: ArrayLike, /) -> Tensor: ...
@overload
def floor(x: Value | complex, /) -> Value:
    """The largest integer not above x."""

@overload
def floor(x: ArrayLike, /) -> Tensor: ...
@overload
def floor_divide(a: Value | complex, b: Value | complex, /) -> Value:
    """a // b."""

@overload
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def fma(a: Any, b: Any, c: Any, /) -> Value:
    """a * b + c, rounded once where the target can."""

@overload
def gamma(x: Value | complex, /) -> Value:
    """The gamma function."""

@overload
def gamma(x: ArrayLike, /) -> Tensor: ...
@overload
def greater(a: Value | complex, b: Value | complex, /) -> Value:
    """a > b."""

@overload
def greater(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def greater_equal(a: Value | complex, b: Value | complex, /) -> Value:
    """a >= b."""

@overload
def greater_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def grid(axes: Literal[1], /) -> int:
    """This thread's global index: i, (i, j) or (i, j, k), the last fastest."""

@overload
def grid(axes: Literal[2], /) -> tuple[int, int]: ...
@overload
def grid(axes: Literal[3], /) -> tuple[int, int, int]: ...

grid_dim: Place
"""The blocks of the grid along each axis."""

@overload
def grid_size(axes: Literal[1], /) -> int:
    """The threads of the grid along each axis of grid."""

@overload
def grid_size(axes: Literal[2], /) -> tuple[int, int]: ...
@overload
def grid_size(axes: Literal[3], /) -> tuple[int, int, int]: ...
@overload
def hypot(a: Value | complex, b: Value | complex, /) -> Value:
    """sqrt(a*a + b*b) without overflow."""

@overload
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def isfinite(x: Value | complex, /) -> Value:
    """Whether x is neither NaN nor infinite."""

@overload
def isfinite(x: ArrayLike, /) -> Tensor: ...
@overload
def isinf(x: Value | complex, /) -> Value:
    """Whether x is infinite."""

@overload
def isinf(x: ArrayLike, /) -> Tensor: ...
@overload
def isnan(x: Value | complex, /) -> Value:
    """Whether x is NaN."""

@overload
def isnan(x: ArrayLike, /) -> Tensor: ...
def lane() -> int:
    """This thread's index in its subgroup."""

@overload
def less(a: Value | complex, b: Value | complex, /) -> Value:
    """a < b."""

@overload
def less(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def less_equal(a: Value | complex, b: Value | complex, /) -> Value:
    """a <= b."""

@overload
def less_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def lgamma(x: Value | complex, /) -> Value:
    """The logarithm of the gamma function's magnitude."""

@overload
def lgamma(x: ArrayLike, /) -> Tensor: ...
def local(shape: Shape | None, dtype: Any) -> _Array:
    """An array of this thread's own."""

@overload
def log(x: Value | complex, /) -> Value:
    """The natural logarithm."""

@overload
def log(x: ArrayLike, /) -> Tensor: ...
@overload
def log10(x: Value | complex, /) -> Value:
    """The logarithm to base 10."""

@overload
def log10(x: ArrayLike, /) -> Tensor: ...
@overload
def log1p(x: Value | complex, /) -> Value:
    """log(1 + x), precise near 0."""

@overload
def log1p(x: ArrayLike, /) -> Tensor: ...
@overload
def log2(x: Value | complex, /) -> Value:
    """The logarithm to base 2."""

@overload
def log2(x: ArrayLike, /) -> Tensor: ...
@overload
def logaddexp(a: Value | complex, b: Value | complex, /) -> Value:
    """log(exp(a) + exp(b)) without overflow."""

@overload
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def logical_and(a: Value | complex, b: Value | complex, /) -> Value:
    """Whether both hold."""

@overload
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def logical_not(x: Value | complex, /) -> Value:
    """Whether it does not hold."""

@overload
def logical_not(x: ArrayLike, /) -> Tensor: ...
@overload
def logical_or(a: Value | complex, b: Value | complex, /) -> Value:
    """Whether either holds."""

@overload
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def logical_xor(a: Value | complex, b: Value | complex, /) -> Value:
    """Whether exactly one holds."""

@overload
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def maximum(a: Value | complex, b: Value | complex, /) -> Value:
    """The larger; NaN if either is."""

@overload
def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def minimum(a: Value | complex, b: Value | complex, /) -> Value:
    """The smaller; NaN if either is."""

@overload
def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def mul_high(a: Any, b: Any, /) -> Value:
    """The upper half of the product of two integers."""

@overload
def multiply(a: Value | complex, b: Value | complex, /) -> Value:
    """a * b."""

@overload
def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def negative(x: Value | complex, /) -> Value:
    """-x."""

@overload
def negative(x: ArrayLike, /) -> Tensor: ...
@overload
def nextafter(a: Value | complex, b: Value | complex, /) -> Value:
    """The next number after the first, towards the second."""

@overload
def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def not_equal(a: Value | complex, b: Value | complex, /) -> Value:
    """a != b."""

@overload
def not_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def popcount(x: Any, /) -> Value:
    """The number of set bits."""

@overload
def positive(x: Value | complex, /) -> Value:
    """x."""

@overload
def positive(x: ArrayLike, /) -> Tensor: ...
@overload
def pow(a: Value | complex, b: Value | complex, /) -> Value:
    """The first to the power of the second."""

@overload
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def rand_normal(seed: Any, counter: Any, /) -> Value:
    """A standard normal f32 from (seed, counter)."""

def rand_uniform(seed: Any, counter: Any, /) -> Value:
    """A random f32 in [0, 1) from (seed, counter)."""

@overload
def reciprocal(x: Value | complex, /) -> Value:
    """1 / x."""

@overload
def reciprocal(x: ArrayLike, /) -> Tensor: ...
@overload
def remainder(a: Value | complex, b: Value | complex, /) -> Value:
    """a % b."""

@overload
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def reverse_bits(x: Any, /) -> Value:
    """The bits in reverse order."""

@overload
def round(x: Value | complex, /) -> Value:
    """The nearest integer, ties to even."""

@overload
def round(x: ArrayLike, /) -> Tensor: ...
@overload
def rsqrt(x: Value | complex, /) -> Value:
    """1 / sqrt(x)."""

@overload
def rsqrt(x: ArrayLike, /) -> Tensor: ...
def shared(shape: Shape | None, dtype: Any) -> _Array:
    """An array that the threads of a block share."""

def shuffle(value: Any, lane: int, /) -> Value:
    """The value of the thread `lane`."""

def shuffle_down(value: Any, n: int, /) -> Value:
    """The value of the thread n lanes above."""

def shuffle_up(value: Any, n: int, /) -> Value:
    """The value of the thread n lanes below."""

def shuffle_xor(value: Any, mask: int, /) -> Value:
    """The value of the thread lane ^ mask."""

@overload
def sigmoid(x: Value | complex, /) -> Value:
    """1 / (1 + exp(-x))."""

@overload
def sigmoid(x: ArrayLike, /) -> Tensor: ...
@overload
def sign(x: Value | complex, /) -> Value:
    """-1, 0 or 1; NaN for NaN."""

@overload
def sign(x: ArrayLike, /) -> Tensor: ...
@overload
def signbit(x: Value | complex, /) -> Value:
    """Whether the sign bit is set (-0.0 too)."""

@overload
def signbit(x: ArrayLike, /) -> Tensor: ...
@overload
def sin(x: Value | complex, /) -> Value:
    """The sine of x radians."""

@overload
def sin(x: ArrayLike, /) -> Tensor: ...
@overload
def sinh(x: Value | complex, /) -> Value:
    """The hyperbolic sine."""

@overload
def sinh(x: ArrayLike, /) -> Tensor: ...
@overload
def sqrt(x: Value | complex, /) -> Value:
    """The square root."""

@overload
def sqrt(x: ArrayLike, /) -> Tensor: ...
@overload
def square(x: Value | complex, /) -> Value:
    """x * x."""

@overload
def square(x: ArrayLike, /) -> Tensor: ...
def static_range(start: int, stop: int = ..., step: int = ..., /) -> range:
    """A range whose loop is unrolled."""

def subgroup_max(value: Any, /) -> Value:
    """The maximum over the subgroup."""

def subgroup_min(value: Any, /) -> Value:
    """The minimum over the subgroup."""

def subgroup_prefix_sum(value: Any, /) -> Value:
    """The sum over the lanes before this one."""

def subgroup_size() -> int:
    """The threads of a subgroup."""

def subgroup_sum(value: Any, /) -> Value:
    """The sum over the subgroup."""

@overload
def subtract(a: Value | complex, b: Value | complex, /) -> Value:
    """a - b."""

@overload
def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def sync_subgroup() -> None:
    """Wait for all threads of the subgroup."""

def sync_threads() -> None:
    """Wait for all threads of the block."""

@overload
def tan(x: Value | complex, /) -> Value:
    """The tangent of x radians."""

@overload
def tan(x: ArrayLike, /) -> Tensor: ...
@overload
def tanh(x: Value | complex, /) -> Value:
    """The hyperbolic tangent."""

@overload
def tanh(x: ArrayLike, /) -> Tensor: ...
def thread_fence() -> None:
    """Order memory accesses on the device."""

def thread_fence_block() -> None:
    """Order memory accesses in the block."""

thread_idx: Place
"""This thread's index in its block."""

@overload
def trunc(x: Value | complex, /) -> Value:
    """The integer part of x."""

@overload
def trunc(x: ArrayLike, /) -> Tensor: ...
def vote_all(value: Any, /) -> _builtins.bool:
    """Whether p holds in every thread."""

def vote_any(value: Any, /) -> _builtins.bool:
    """Whether p holds in some thread."""

@overload
def where(condition: Value | complex, a: Value | complex, b: Value | complex, /) -> Value:
    """The second argument where the first holds, else the third"""

@overload
def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
