# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""The kernel language: Python functions that run on every device.

`decorators` has the decorators and their classes, `types` the annotations, `builtins` the functions
that kernels call, `namespace` all names, `lower` the lowering to IR, `interpreter` the execution as
plain Python, `refusals` the constructs that are not allowed.
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
from treadle.lang.annotations import mat2x2 as mat2x2
from treadle.lang.annotations import mat2x3 as mat2x3
from treadle.lang.annotations import mat2x4 as mat2x4
from treadle.lang.annotations import mat3x2 as mat3x2
from treadle.lang.annotations import mat3x3 as mat3x3
from treadle.lang.annotations import mat3x4 as mat3x4
from treadle.lang.annotations import mat4x2 as mat4x2
from treadle.lang.annotations import mat4x3 as mat4x3
from treadle.lang.annotations import mat4x4 as mat4x4
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
from treadle.lang.builtins import BuiltinVariable
from treadle.lang.decorators import func as func
from treadle.lang.decorators import kernel as kernel
from treadle.lang.interpreter_state import interpret as interpret
from treadle.lang.positions import GridPos as GridPos
from treadle.lang.types import struct as struct
from treadle.lang.values import Fragment, Value
from treadle.tensor.annotations import ArrayLike, Shape
from treadle.tensor.tensor import Tensor

__all__ = [
    "Array",
    "GridPos",
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
    "cross",
    "ctz",
    "divide",
    "dot",
    "dot4_i8",
    "dot4_u8",
    "dot4_u8i8",
    "e",
    "equal",
    "erf",
    "erfc",
    "erfinv",
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
    "fragment",
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
    "length",
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
    "mat2x2",
    "mat2x3",
    "mat2x4",
    "mat3x2",
    "mat3x3",
    "mat3x4",
    "mat4x2",
    "mat4x3",
    "mat4x4",
    "maximum",
    "minimum",
    "mul_high",
    "multiply",
    "nan",
    "negative",
    "nextafter",
    "normalize",
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
    """The absolute value.

    `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
    floating point numbers, complex numbers. The result has the same dtype, or that of the parts
    of complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([-1.5, 2.0], device="cpu")
    >>> td.abs(x).tolist()
    [1.5, 2.0]
    """

@overload
def abs(x: ArrayLike, /) -> Tensor: ...
@overload
def acos(x: Value | complex, /) -> Value:
    """The inverse cosine, in radians.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 0.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.acos(x).tolist()])
    0.000 1.571
    """

@overload
def acos(x: ArrayLike, /) -> Tensor: ...
@overload
def acosh(x: Value | complex, /) -> Value:
    """The inverse hyperbolic cosine.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.acosh(x).tolist()])
    0.000 1.317
    """

@overload
def acosh(x: ArrayLike, /) -> Tensor: ...
@overload
def add(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 + x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    floating point numbers, complex numbers, promoted to one dtype. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.add(x, 3).tolist()
    [4, 5]
    """

@overload
def add(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def asin(x: Value | complex, /) -> Value:
    """The inverse sine, in radians.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.asin(x).tolist()])
    0.000 1.571
    """

@overload
def asin(x: ArrayLike, /) -> Tensor: ...
@overload
def asinh(x: Value | complex, /) -> Value:
    """The inverse hyperbolic sine.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.asinh(x).tolist()])
    0.000 0.881
    """

@overload
def asinh(x: ArrayLike, /) -> Tensor: ...
@overload
def atan(x: Value | complex, /) -> Value:
    """The inverse tangent, in radians.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.atan(x).tolist()])
    0.000 0.785
    """

@overload
def atan(x: ArrayLike, /) -> Tensor: ...
@overload
def atan2(a: Value | complex, b: Value | complex, /) -> Value:
    """The angle of the point (x2, x1), in radians.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes floating point
    numbers, promoted to one dtype; integers and booleans become float32. The result has the
    same dtype. DtypeError for complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.atan2(x, 1.0).tolist()])
    0.785 -0.785
    """

@overload
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def atanh(x: Value | complex, /) -> Value:
    """The inverse hyperbolic tangent.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 0.5], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.atanh(x).tolist()])
    0.000 0.549
    """

@overload
def atanh(x: ArrayLike, /) -> Tensor: ...
def atomic_add(array: Any, index: Any, value: Any, /) -> Value:
    """Add to array[index]; gives the old value.

    `array` is a parameter of the kernel or shared memory; `index` is an integer, or a tuple
    with one for each axis. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     td.atomic_add(y, 0, x[i])
    >>> x = td.asarray([1, 2, 3], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [6, 0, 0]
    """

def atomic_and(array: Any, index: Any, value: Any, /) -> Value:
    """Bitwise and; gives the old value.

    `array` is a parameter of the kernel or shared memory; `index` is an integer, or a tuple
    with one for each axis. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     td.atomic_and(x, 0, x[2])
    ...     y[0] = x[0]
    >>> x = td.asarray([6, 3, 7], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [6, 0, 0]
    """

def atomic_cas(array: Any, index: Any, expected: Any, value: Any, /) -> Value:
    """Replace if it equals `expected`; gives the old value.

    `array` is a parameter of the kernel or shared memory; `index` is an integer, or a tuple
    with one for each axis. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     td.atomic_cas(y, i, 0, x[i])
    >>> x = td.asarray([7, 7, 7], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [7, 7, 7]
    """

def atomic_exchange(array: Any, index: Any, value: Any, /) -> Value:
    """Replace; gives the old value.

    `array` is a parameter of the kernel or shared memory; `index` is an integer, or a tuple
    with one for each axis. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     td.atomic_exchange(y, i, x[i])
    >>> x = td.asarray([1, 2, 3], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [1, 2, 3]
    """

def atomic_max(array: Any, index: Any, value: Any, /) -> Value:
    """Keep the larger; gives the old value.

    `array` is a parameter of the kernel or shared memory; `index` is an integer, or a tuple
    with one for each axis. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     td.atomic_max(y, 0, x[i])
    >>> x = td.asarray([1, 3, 2], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [3, 0, 0]
    """

def atomic_min(array: Any, index: Any, value: Any, /) -> Value:
    """Keep the smaller; gives the old value.

    `array` is a parameter of the kernel or shared memory; `index` is an integer, or a tuple
    with one for each axis. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     td.atomic_min(y, 0, x[i])
    >>> x = td.asarray([1, -3, 2], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [-3, 0, 0]
    """

def atomic_or(array: Any, index: Any, value: Any, /) -> Value:
    """Bitwise or; gives the old value.

    `array` is a parameter of the kernel or shared memory; `index` is an integer, or a tuple
    with one for each axis. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     td.atomic_or(y, 0, x[i])
    >>> x = td.asarray([1, 4, 2], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [7, 0, 0]
    """

def atomic_sub(array: Any, index: Any, value: Any, /) -> Value:
    """Subtract; gives the old value.

    `array` is a parameter of the kernel or shared memory; `index` is an integer, or a tuple
    with one for each axis. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     td.atomic_sub(y, 0, x[i])
    >>> x = td.asarray([1, 2, 3], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [-6, 0, 0]
    """

def atomic_xor(array: Any, index: Any, value: Any, /) -> Value:
    """Bitwise exclusive or; gives the old value.

    `array` is a parameter of the kernel or shared memory; `index` is an integer, or a tuple
    with one for each axis. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     td.atomic_xor(y, 0, x[i])
    >>> x = td.asarray([1, 5, 2], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [6, 0, 0]
    """

def ballot(value: Any, /) -> int:
    """The threads where p holds, as bits of a u32.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.i32(td.ballot(x[i] > 0))
    >>> x = td.asarray([1, 0, 1], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [5, 5, 5]
    """

def bitcast(x: Any, dtype: Any, /) -> Value:
    """The bits of a number as another dtype of its size.

    Its arguments are values of the kernel. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.f32], y: td.Array[td.f32]):
    ...     i = td.grid(1)
    ...     y[i] = td.f32(td.bitcast(x[i], td.i32) >> 23)
    >>> x = td.asarray([1.0, 2.0], dtype=td.f32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [127.0, 128.0]
    """

@overload
def bitwise_and(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 & x2, bit by bit.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    promoted to one dtype. The result has the same dtype. DtypeError for floating point numbers
    and complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([6, 5], device="cpu")
    >>> td.bitwise_and(x, 3).tolist()
    [2, 1]
    """

@overload
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def bitwise_invert(x: Value | complex, /) -> Value:
    """Every bit flipped.

    `x` is an array of any shape; the result has the same shape. It takes booleans, integers.
    The result has the same dtype. DtypeError for floating point numbers and complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([0, 5], device="cpu")
    >>> td.bitwise_invert(x).tolist()
    [-1, -6]
    """

@overload
def bitwise_invert(x: ArrayLike, /) -> Tensor: ...
@overload
def bitwise_left_shift(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 << x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes integers, promoted
    to one dtype. The result has the same dtype. DtypeError for booleans and floating point
    numbers and complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([1, 3], device="cpu")
    >>> td.bitwise_left_shift(x, 2).tolist()
    [4, 12]
    """

@overload
def bitwise_left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def bitwise_or(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 | x2, bit by bit.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    promoted to one dtype. The result has the same dtype. DtypeError for floating point numbers
    and complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([6, 5], device="cpu")
    >>> td.bitwise_or(x, 3).tolist()
    [7, 7]
    """

@overload
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def bitwise_right_shift(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 >> x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes integers, promoted
    to one dtype. The result has the same dtype. DtypeError for booleans and floating point
    numbers and complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([8, -8], device="cpu")
    >>> td.bitwise_right_shift(x, 2).tolist()
    [2, -2]
    """

@overload
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def bitwise_xor(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 ^ x2, bit by bit.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    promoted to one dtype. The result has the same dtype. DtypeError for floating point numbers
    and complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([6, 5], device="cpu")
    >>> td.bitwise_xor(x, 3).tolist()
    [5, 6]
    """

@overload
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...

block_dim: BuiltinVariable
"""The threads of a block along each axis."""

block_idx: BuiltinVariable
"""This block's index in the grid."""

@overload
def cbrt(x: Value | complex, /) -> Value:
    """The cube root.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
    complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([8.0, -27.0], device="cpu")
    >>> td.cbrt(x).tolist()
    [2.0, -3.0]
    """

@overload
def cbrt(x: ArrayLike, /) -> Tensor: ...
@overload
def ceil(x: Value | complex, /) -> Value:
    """The smallest integer that is not less.

    `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
    floating point numbers. The result has the same dtype. DtypeError for complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([-1.5, 1.2], device="cpu")
    >>> td.ceil(x).tolist()
    [-1.0, 2.0]
    """

@overload
def ceil(x: ArrayLike, /) -> Tensor: ...
@overload
def clip(x: Value | complex, low: Value | complex, high: Value | complex, /) -> Value:
    """X limited to the range min … max, which are numbers, or arrays that broadcast with x. The
    dtype is x's, but integers with floating bounds become floats; NaN where x or a bound is NaN.

    >>> import treadle as td
    >>> td.clip(td.arange(5, device="cpu"), 1, max=3).tolist()
    [1, 1, 2, 3, 3]
    """

@overload
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor: ...
def clz(x: Any, /) -> Value:
    """The number of zero bits above the highest set one.

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.clz(x[i])
    >>> x = td.asarray([1, 16], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [31, 27]
    """

@overload
def copysign(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 with the sign of x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes floating point
    numbers, promoted to one dtype; integers and booleans become float32. The result has the
    same dtype. DtypeError for complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0], device="cpu")
    >>> td.copysign(x, -0.0).tolist()
    [-1.0, -2.0]
    """

@overload
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def cos(x: Value | complex, /) -> Value:
    """The cosine of an angle in radians.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.cos(x).tolist()])
    1.000 0.540
    """

@overload
def cos(x: ArrayLike, /) -> Tensor: ...
@overload
def cosh(x: Value | complex, /) -> Value:
    """The hyperbolic cosine.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.cosh(x).tolist()])
    1.000 1.543
    """

@overload
def cosh(x: ArrayLike, /) -> Tensor: ...
@overload
def cross(a: Value | complex, b: Value | complex, /) -> Value:
    """The cross product of vectors of three elements along an axis; the other axes broadcast.

    >>> import treadle as td
    >>> x, y = td.asarray([1, 0, 0], device="cpu"), td.asarray([0, 1, 0], device="cpu")
    >>> td.linalg.cross(x, y).tolist()
    [0, 0, 1]
    """

@overload
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Tensor: ...
def ctz(x: Any, /) -> Value:
    """The number of zero bits below the lowest set one.

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.ctz(x[i])
    >>> x = td.asarray([1, 16], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [0, 4]
    """

@overload
def divide(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 / x2; of integers in float32.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes floating point
    numbers, complex numbers, promoted to one dtype; integers and booleans become float32. The
    result has the same dtype.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.divide(x, 4).tolist()
    [0.25, 0.5]
    """

@overload
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def dot(a: Value | complex, b: Value | complex, /) -> Value:
    """NumPy's product: of numbers x1 * x2, else the sum of products along the last axis of x1 and
    the last but one of x2 (its only one, if it has one).
    """

@overload
def dot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def dot4_i8(a: Any, b: Any, c: Any, /) -> Value:
    """c and the products of the signed bytes of the words a and b.

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.dot4_i8(x[i], -1, 100)
    >>> x = td.asarray([0x01020304], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [90]
    """

def dot4_u8(a: Any, b: Any, c: Any, /) -> Value:
    """c and the products of the unsigned bytes of the words a and b.

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.dot4_u8(x[i], -1, 100)
    >>> x = td.asarray([0x01020304], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [2650]
    """

def dot4_u8i8(a: Any, b: Any, c: Any, /) -> Value:
    """c and the products of unsigned bytes of a and signed ones of b.

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.dot4_u8i8(x[i], -1, 100)
    >>> x = td.asarray([-1], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [-920]
    """

@overload
def equal(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 == x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    floating point numbers, complex numbers, promoted to one dtype. The result is boolean.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.equal(x, 2).tolist()
    [False, True]
    """

@overload
def equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def erf(x: Value | complex, /) -> Value:
    """The error function.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
    complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.erf(x).tolist()])
    0.000 0.843
    """

@overload
def erf(x: ArrayLike, /) -> Tensor: ...
@overload
def erfc(x: Value | complex, /) -> Value:
    """1 - erf(x).

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
    complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.erfc(x).tolist()])
    1.000 0.157
    """

@overload
def erfc(x: ArrayLike, /) -> Tensor: ...
@overload
def erfinv(x: Value | complex, /) -> Value:
    """The number whose erf is x; NaN if |x| > 1.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
    complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 0.5], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.erfinv(x).tolist()])
    0.000 0.477
    """

@overload
def erfinv(x: ArrayLike, /) -> Tensor: ...
@overload
def exp(x: Value | complex, /) -> Value:
    """e to the power of x.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.exp(x).tolist()])
    1.000 2.718
    """

@overload
def exp(x: ArrayLike, /) -> Tensor: ...
@overload
def exp2(x: Value | complex, /) -> Value:
    """2 to the power of x.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([3.0, -1.0], device="cpu")
    >>> td.exp2(x).tolist()
    [8.0, 0.5]
    """

@overload
def exp2(x: ArrayLike, /) -> Tensor: ...
@overload
def expm1(x: Value | complex, /) -> Value:
    """exp(x) - 1, exact for small x.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.expm1(x).tolist()])
    0.000 1.718
    """

@overload
def expm1(x: ArrayLike, /) -> Tensor: ...
@overload
def floor(x: Value | complex, /) -> Value:
    """The largest integer that is not greater.

    `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
    floating point numbers. The result has the same dtype. DtypeError for complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([-1.5, 1.2], device="cpu")
    >>> td.floor(x).tolist()
    [-2.0, 1.0]
    """

@overload
def floor(x: ArrayLike, /) -> Tensor: ...
@overload
def floor_divide(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 / x2, rounded down.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes integers, floating
    point numbers, promoted to one dtype; booleans become the device's default integer. The
    result has the same dtype. DtypeError for complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([7, -7], device="cpu")
    >>> td.floor_divide(x, 2).tolist()
    [3, -4]
    """

@overload
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def fma(a: Any, b: Any, c: Any, /) -> Value:
    """a * b + c, rounded once where the target can.

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.f32], y: td.Array[td.f32]):
    ...     i = td.grid(1)
    ...     y[i] = td.fma(x[i], 2.0, 0.5)
    >>> x = td.asarray([1.0, 2.0], dtype=td.f32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [2.5, 4.5]
    """

def fragment(rows: Any, columns: Any, dtype: Any, use: Any, indexed: Any = ...) -> Fragment:
    """A small matrix that the threads of a subgroup hold together.

    `rows`, `columns`, `dtype` and `use` ("a", "b" or "accumulator") are constants.
    The guide to kernels has the methods of fragments. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.f32], y: td.Array[td.f32]):
    ...     i = td.grid(1)
    ...     a = td.fragment(16, 8, td.f32, use="a")
    ...     b = td.fragment(8, 8, td.f32, use="b")
    ...     sums = td.fragment(16, 8, td.f32, use="accumulator")
    ...     a.fill(3)
    ...     b.fill(2)
    ...     sums.multiply_add(a, b)
    ...     y[i] = x[i] * sums[0]
    >>> x = td.asarray([2.0] * 32, dtype=td.f32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0, 96.0]
    """

@overload
def gamma(x: Value | complex, /) -> Value:
    """The gamma function.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
    complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([4.0, 0.5], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.gamma(x).tolist()])
    6.000 1.772
    """

@overload
def gamma(x: ArrayLike, /) -> Tensor: ...
@overload
def greater(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 > x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    floating point numbers, promoted to one dtype. The result is boolean. DtypeError for complex
    numbers.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.greater(x, 1).tolist()
    [False, True]
    """

@overload
def greater(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def greater_equal(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 >= x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    floating point numbers, promoted to one dtype. The result is boolean. DtypeError for complex
    numbers.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.greater_equal(x, 2).tolist()
    [False, True]
    """

@overload
def greater_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def grid(axes: Literal[1], /) -> int:
    """This thread's global index: i, (i, j) or (i, j, k), the last fastest.

    `axes` is 1, 2 or 3. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = i
    >>> x = td.asarray([0, 0, 0], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [0, 1, 2]
    """

@overload
def grid(axes: Literal[2], /) -> tuple[int, int]: ...
@overload
def grid(axes: Literal[3], /) -> tuple[int, int, int]: ...

grid_dim: BuiltinVariable
"""The blocks of the grid along each axis."""

@overload
def grid_size(axes: Literal[1], /) -> int:
    """The threads of the grid along each axis of grid.

    `axes` is 1, 2 or 3. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.grid_size(1)
    >>> x = td.asarray([0, 0, 0], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [3, 3, 3]
    """

@overload
def grid_size(axes: Literal[2], /) -> tuple[int, int]: ...
@overload
def grid_size(axes: Literal[3], /) -> tuple[int, int, int]: ...
@overload
def hypot(a: Value | complex, b: Value | complex, /) -> Value:
    """sqrt(x1**2 + x2**2), without overflow.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes floating point
    numbers, promoted to one dtype; integers and booleans become float32. The result has the
    same dtype. DtypeError for complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([3.0, 5.0], device="cpu")
    >>> td.hypot(x, [4.0, 12.0]).tolist()
    [5.0, 13.0]
    """

@overload
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def isfinite(x: Value | complex, /) -> Value:
    """Whether it is neither infinite nor NaN.

    `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
    floating point numbers, complex numbers. The result is boolean.

    >>> import treadle as td
    >>> x = td.asarray([1.0, td.inf], device="cpu")
    >>> td.isfinite(x).tolist()
    [True, False]
    """

@overload
def isfinite(x: ArrayLike, /) -> Tensor: ...
@overload
def isinf(x: Value | complex, /) -> Value:
    """Whether it is infinite.

    `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
    floating point numbers, complex numbers. The result is boolean.

    >>> import treadle as td
    >>> x = td.asarray([1.0, td.inf], device="cpu")
    >>> td.isinf(x).tolist()
    [False, True]
    """

@overload
def isinf(x: ArrayLike, /) -> Tensor: ...
@overload
def isnan(x: Value | complex, /) -> Value:
    """Whether it is NaN.

    `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
    floating point numbers, complex numbers. The result is boolean.

    >>> import treadle as td
    >>> x = td.asarray([1.0, td.nan], device="cpu")
    >>> td.isnan(x).tolist()
    [False, True]
    """

@overload
def isnan(x: ArrayLike, /) -> Tensor: ...
def lane() -> int:
    """This thread's index in its subgroup.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.lane()
    >>> x = td.asarray([0, 0, 0], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [0, 1, 2]
    """

def length(v: Any, /) -> Value:
    """The length of a vector: the root of its dot product.

    Its arguments are values of the kernel. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.f32], y: td.Array[td.f32]):
    ...     i = td.grid(1)
    ...     y[i] = td.length(td.vec2[td.f32](x[0], x[1]))
    >>> x = td.asarray([3.0, 4.0], dtype=td.f32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [5.0, 5.0]
    """

@overload
def less(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 < x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    floating point numbers, promoted to one dtype. The result is boolean. DtypeError for complex
    numbers.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.less(x, 2).tolist()
    [True, False]
    """

@overload
def less(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def less_equal(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 <= x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    floating point numbers, promoted to one dtype. The result is boolean. DtypeError for complex
    numbers.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.less_equal(x, 1).tolist()
    [True, False]
    """

@overload
def less_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def lgamma(x: Value | complex, /) -> Value:
    """The logarithm of the gamma function's magnitude.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
    complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 5.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.lgamma(x).tolist()])
    0.000 3.178
    """

@overload
def lgamma(x: ArrayLike, /) -> Tensor: ...
def local(shape: Shape | None, dtype: Any) -> _Array:
    """A private array of this thread.

    `shape` is an integer or a tuple of constants, `dtype` a dtype, a vector type or a struct. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     a = td.local(2, td.i32)
    ...     a[1] = x[i]
    ...     y[i] = a[1] + a[1]
    >>> x = td.asarray([5, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [10, 12]
    """

@overload
def log(x: Value | complex, /) -> Value:
    """The natural logarithm.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 10.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.log(x).tolist()])
    0.000 2.303
    """

@overload
def log(x: ArrayLike, /) -> Tensor: ...
@overload
def log10(x: Value | complex, /) -> Value:
    """The logarithm to base 10.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 1000.0], device="cpu")
    >>> td.log10(x).tolist()
    [0.0, 3.0]
    """

@overload
def log10(x: ArrayLike, /) -> Tensor: ...
@overload
def log1p(x: Value | complex, /) -> Value:
    """log(1 + x), exact for small x.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.log1p(x).tolist()])
    0.000 0.693
    """

@overload
def log1p(x: ArrayLike, /) -> Tensor: ...
@overload
def log2(x: Value | complex, /) -> Value:
    """The logarithm to base 2.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([8.0, 0.5], device="cpu")
    >>> td.log2(x).tolist()
    [3.0, -1.0]
    """

@overload
def log2(x: ArrayLike, /) -> Tensor: ...
@overload
def logaddexp(a: Value | complex, b: Value | complex, /) -> Value:
    """log(exp(x1) + exp(x2)), without overflow.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes floating point
    numbers, complex numbers, promoted to one dtype; integers and booleans become float32. The
    result has the same dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 100.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.logaddexp(x, 0.0).tolist()])
    0.693 100.000
    """

@overload
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def logical_and(a: Value | complex, b: Value | complex, /) -> Value:
    """Whether both are true (not zero).

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, promoted
    to one dtype; other numbers are true where they are not 0. The result is boolean.

    >>> import treadle as td
    >>> x = td.asarray([0, 2], device="cpu")
    >>> td.logical_and(x, [1, 1]).tolist()
    [False, True]
    """

@overload
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def logical_not(x: Value | complex, /) -> Value:
    """Whether it is false (zero).

    `x` is an array of any shape; the result has the same shape. It takes booleans; other
    numbers are true where they are not 0. The result is boolean.

    >>> import treadle as td
    >>> x = td.asarray([0, 2], device="cpu")
    >>> td.logical_not(x).tolist()
    [True, False]
    """

@overload
def logical_not(x: ArrayLike, /) -> Tensor: ...
@overload
def logical_or(a: Value | complex, b: Value | complex, /) -> Value:
    """Whether one is true (not zero).

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, promoted
    to one dtype; other numbers are true where they are not 0. The result is boolean.

    >>> import treadle as td
    >>> x = td.asarray([0, 2], device="cpu")
    >>> td.logical_or(x, [0, 1]).tolist()
    [False, True]
    """

@overload
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def logical_xor(a: Value | complex, b: Value | complex, /) -> Value:
    """Whether exactly one is true (not zero).

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, promoted
    to one dtype; other numbers are true where they are not 0. The result is boolean.

    >>> import treadle as td
    >>> x = td.asarray([0, 2], device="cpu")
    >>> td.logical_xor(x, [1, 1]).tolist()
    [True, False]
    """

@overload
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def maximum(a: Value | complex, b: Value | complex, /) -> Value:
    """The greater one; NaN if one is NaN.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    floating point numbers, promoted to one dtype. The result has the same dtype. DtypeError for
    complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([1, 5], device="cpu")
    >>> td.maximum(x, 3).tolist()
    [3, 5]
    """

@overload
def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def minimum(a: Value | complex, b: Value | complex, /) -> Value:
    """The smaller one; NaN if one is NaN.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    floating point numbers, promoted to one dtype. The result has the same dtype. DtypeError for
    complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([1, 5], device="cpu")
    >>> td.minimum(x, 3).tolist()
    [1, 3]
    """

@overload
def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def mul_high(a: Any, b: Any, /) -> Value:
    """The upper half of the product of two integers.

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.mul_high(x[i], 1 << 30)
    >>> x = td.asarray([2, 1 << 30], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [0, 268435456]
    """

@overload
def multiply(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 * x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    floating point numbers, complex numbers, promoted to one dtype. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.multiply(x, 3).tolist()
    [3, 6]
    """

@overload
def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def negative(x: Value | complex, /) -> Value:
    """-x.

    `x` is an array of any shape; the result has the same shape. It takes integers, floating
    point numbers, complex numbers. The result has the same dtype. DtypeError for booleans.

    >>> import treadle as td
    >>> x = td.asarray([1, -2], device="cpu")
    >>> td.negative(x).tolist()
    [-1, 2]
    """

@overload
def negative(x: ArrayLike, /) -> Tensor: ...
@overload
def nextafter(a: Value | complex, b: Value | complex, /) -> Value:
    """The number next to x1, towards x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes floating point
    numbers, promoted to one dtype; integers and booleans become float32. The result has the
    same dtype. DtypeError for complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([1.0], device="cpu")
    >>> td.nextafter(x, 2.0).tolist()
    [1.0000001192092896]
    """

@overload
def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def normalize(v: Any, /) -> Value:
    """A vector divided by its length; NaN for zeros.

    Its arguments are values of the kernel. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.f32], y: td.Array[td.f32]):
    ...     i = td.grid(1)
    ...     y[i] = td.normalize(td.vec2[td.f32](x[0], x[1]))[i]
    >>> x = td.asarray([0.0, 4.0], dtype=td.f32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [0.0, 1.0]
    """

@overload
def not_equal(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 != x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
    floating point numbers, complex numbers, promoted to one dtype. The result is boolean.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.not_equal(x, 2).tolist()
    [True, False]
    """

@overload
def not_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def popcount(x: Any, /) -> Value:
    """The number of set bits.

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.popcount(x[i])
    >>> x = td.asarray([7, 8], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [3, 1]
    """

@overload
def positive(x: Value | complex, /) -> Value:
    """x: a copy.

    `x` is an array of any shape; the result has the same shape. It takes integers, floating
    point numbers, complex numbers. The result has the same dtype. DtypeError for booleans.

    >>> import treadle as td
    >>> x = td.asarray([1, -2], device="cpu")
    >>> td.positive(x).tolist()
    [1, -2]
    """

@overload
def positive(x: ArrayLike, /) -> Tensor: ...
@overload
def pow(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 to the power of x2. Of integers to a negative power the fraction is cut to an integer (1, -1 or 0); a negative number as x2, or one in a list or NumPy array, is a ValueError, and under TREADLE_CHECK=1 every one is.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes integers, floating
    point numbers, complex numbers, promoted to one dtype; booleans become the device's default
    integer. The result has the same dtype.

    >>> import treadle as td
    >>> x = td.asarray([2, 3], device="cpu")
    >>> td.pow(x, 3).tolist()
    [8, 27]
    """

@overload
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def rand_normal(seed: Any, counter: Any, /) -> Value:
    """A standard normal f32 from (seed, counter).

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.f32], y: td.Array[td.f32]):
    ...     i = td.grid(1)
    ...     y[i] = td.f32(td.rand_normal(1, i) == td.rand_normal(1, i))
    >>> x = td.asarray([0.0], dtype=td.f32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [1.0]
    """

def rand_uniform(seed: Any, counter: Any, /) -> Value:
    """A random f32 in [0, 1) from (seed, counter).

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.f32], y: td.Array[td.f32]):
    ...     i = td.grid(1)
    ...     y[i] = td.f32(td.rand_uniform(1, i) < 1.0)
    >>> x = td.asarray([0.0], dtype=td.f32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [1.0]
    """

@overload
def reciprocal(x: Value | complex, /) -> Value:
    """1 / x.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([4.0, -0.5], device="cpu")
    >>> td.reciprocal(x).tolist()
    [0.25, -2.0]
    """

@overload
def reciprocal(x: ArrayLike, /) -> Tensor: ...
@overload
def remainder(a: Value | complex, b: Value | complex, /) -> Value:
    """The remainder of floor_divide; it has x2's sign.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes integers, floating
    point numbers, promoted to one dtype; booleans become the device's default integer. The
    result has the same dtype. DtypeError for complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([7, -7], device="cpu")
    >>> td.remainder(x, 2).tolist()
    [1, 1]
    """

@overload
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def reverse_bits(x: Any, /) -> Value:
    """The bits in reverse order.

    Its arguments are numbers. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.reverse_bits(x[i])
    >>> x = td.asarray([2, 4], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [1073741824, 536870912]
    """

@overload
def round(x: Value | complex, /) -> Value:
    """X rounded to a number of decimals (negative: to the left of the point); halves are rounded to
    even.

    >>> import treadle as td
    >>> td.round(td.asarray([1.25, 2.5], device="cpu")).tolist()
    [1.0, 2.0]
    >>> td.round(td.asarray([1.25, 26.0], device="cpu"), decimals=-1).tolist()
    [0.0, 30.0]
    """

@overload
def round(x: ArrayLike, /, decimals: int = 0) -> Tensor: ...
@overload
def rsqrt(x: Value | complex, /) -> Value:
    """1 / sqrt(x).

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([4.0, 0.25], device="cpu")
    >>> td.rsqrt(x).tolist()
    [0.5, 2.0]
    """

@overload
def rsqrt(x: ArrayLike, /) -> Tensor: ...
def shared(shape: Shape | None, dtype: Any) -> _Array:
    """An array that the threads of a block share.

    `shape` is an integer or a tuple of constants, `dtype` a dtype, a vector type or a struct. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     a = td.shared(2, td.i32)
    ...     a[i] = x[i]
    ...     td.sync_threads()
    ...     y[i] = a[1 - i]
    >>> x = td.asarray([5, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [6, 5]
    """

def shuffle(value: Any, lane: int, /) -> Value:
    """The value of the thread `lane`.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.shuffle(x[i], 1)
    >>> x = td.asarray([5, 6, 7], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [6, 6, 6]
    """

def shuffle_down(value: Any, n: int, /) -> Value:
    """The value of the thread n lanes above.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     v = td.shuffle_down(x[i], 1)
    ...     if i < 2:
    ...         y[i] = v
    >>> x = td.asarray([5, 6, 7], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [6, 7, 0]
    """

def shuffle_up(value: Any, n: int, /) -> Value:
    """The value of the thread n lanes below.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     v = td.shuffle_up(x[i], 1)
    ...     if i > 0:
    ...         y[i] = v
    >>> x = td.asarray([5, 6, 7], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [0, 5, 6]
    """

def shuffle_xor(value: Any, mask: int, /) -> Value:
    """The value of the thread lane ^ mask.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.shuffle_xor(x[i], 1)
    >>> x = td.asarray([5, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [6, 5]
    """

@overload
def sigmoid(x: Value | complex, /) -> Value:
    """1 / (1 + exp(-x)).

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 2.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.sigmoid(x).tolist()])
    0.500 0.881
    """

@overload
def sigmoid(x: ArrayLike, /) -> Tensor: ...
@overload
def sign(x: Value | complex, /) -> Value:
    """-1, 0 or 1; of complex numbers x / abs(x).

    `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
    floating point numbers, complex numbers. The result has the same dtype.

    >>> import treadle as td
    >>> x = td.asarray([-3.0, 0.0, 2.0], device="cpu")
    >>> td.sign(x).tolist()
    [-1.0, 0.0, 1.0]
    """

@overload
def sign(x: ArrayLike, /) -> Tensor: ...
@overload
def signbit(x: Value | complex, /) -> Value:
    """Whether the sign bit is set (of -0.0, too).

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers; integers and booleans become float32. The result is boolean. DtypeError for complex
    numbers.

    >>> import treadle as td
    >>> x = td.asarray([-0.0, 2.0], device="cpu")
    >>> td.signbit(x).tolist()
    [True, False]
    """

@overload
def signbit(x: ArrayLike, /) -> Tensor: ...
@overload
def sin(x: Value | complex, /) -> Value:
    """The sine of an angle in radians.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.sin(x).tolist()])
    0.000 0.841
    """

@overload
def sin(x: ArrayLike, /) -> Tensor: ...
@overload
def sinh(x: Value | complex, /) -> Value:
    """The hyperbolic sine.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.sinh(x).tolist()])
    0.000 1.175
    """

@overload
def sinh(x: ArrayLike, /) -> Tensor: ...
@overload
def sqrt(x: Value | complex, /) -> Value:
    """The square root.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([4.0, 2.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.sqrt(x).tolist()])
    2.000 1.414
    """

@overload
def sqrt(x: ArrayLike, /) -> Tensor: ...
@overload
def square(x: Value | complex, /) -> Value:
    """x * x.

    `x` is an array of any shape; the result has the same shape. It takes integers, floating
    point numbers, complex numbers; booleans become the device's default integer. The result has
    the same dtype.

    >>> import treadle as td
    >>> x = td.asarray([3, -4], device="cpu")
    >>> td.square(x).tolist()
    [9, 16]
    """

@overload
def square(x: ArrayLike, /) -> Tensor: ...
def static_range(start: int, stop: int = ..., step: int = ..., /) -> range:
    """A range whose loop is unrolled.

    The bounds are constants. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     for k in td.static_range(3):
    ...         y[i] += x[i] * k
    >>> x = td.asarray([5, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [15, 18]
    """

def subgroup_max(value: Any, /) -> Value:
    """The maximum over the subgroup.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.subgroup_max(x[i])
    >>> x = td.asarray([5, 7, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [7, 7, 7]
    """

def subgroup_min(value: Any, /) -> Value:
    """The minimum over the subgroup.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.subgroup_min(x[i])
    >>> x = td.asarray([5, 7, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [5, 5, 5]
    """

def subgroup_prefix_sum(value: Any, /) -> Value:
    """The sum over the lanes before this one.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.subgroup_prefix_sum(x[i])
    >>> x = td.asarray([5, 7, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [0, 5, 12]
    """

def subgroup_size() -> int:
    """The threads of a subgroup.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.i32(td.lane() < td.subgroup_size())
    >>> x = td.asarray([0], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [1]
    """

def subgroup_sum(value: Any, /) -> Value:
    """The sum over the subgroup.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.subgroup_sum(x[i])
    >>> x = td.asarray([5, 7, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [18, 18, 18]
    """

@overload
def subtract(a: Value | complex, b: Value | complex, /) -> Value:
    """x1 - x2.

    `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
    they do not broadcast, LaunchError for tensors on two devices. It takes integers, floating
    point numbers, complex numbers, promoted to one dtype. The result has the same dtype.
    DtypeError for booleans.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.subtract(x, 3).tolist()
    [-2, -1]
    """

@overload
def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def sync_subgroup() -> None:
    """Wait for all threads of the subgroup.

    It takes no arguments. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = x[i]
    ...     td.sync_subgroup()
    ...     y[i] += 1
    >>> x = td.asarray([5, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [6, 7]
    """

def sync_threads() -> None:
    """Wait for all threads of the block.

    It takes no arguments. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     a = td.shared(2, td.i32)
    ...     a[i] = x[i]
    ...     td.sync_threads()
    ...     y[i] = a[1 - i]
    >>> x = td.asarray([5, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [6, 5]
    """

@overload
def tan(x: Value | complex, /) -> Value:
    """The tangent of an angle in radians.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.tan(x).tolist()])
    0.000 1.557
    """

@overload
def tan(x: ArrayLike, /) -> Tensor: ...
@overload
def tanh(x: Value | complex, /) -> Value:
    """The hyperbolic tangent.

    `x` is an array of any shape; the result has the same shape. It takes floating point
    numbers, complex numbers; integers and booleans become float32. The result has the same
    dtype.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 1.0], device="cpu")
    >>> print(*[f"{y:.3f}" for y in td.tanh(x).tolist()])
    0.000 0.762
    """

@overload
def tanh(x: ArrayLike, /) -> Tensor: ...
def thread_fence() -> None:
    """Order memory accesses on the device.

    It takes no arguments. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     x[i] += 1
    ...     td.thread_fence()
    ...     td.atomic_add(y, 0, 1)
    >>> x = td.asarray([5, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [2, 0]
    """

def thread_fence_block() -> None:
    """Order memory accesses in the block.

    It takes no arguments. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     x[i] += 1
    ...     td.thread_fence_block()
    ...     td.atomic_add(y, 0, 1)
    >>> x = td.asarray([5, 6], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [2, 0]
    """

thread_idx: BuiltinVariable
"""This thread's index in its block."""

@overload
def trunc(x: Value | complex, /) -> Value:
    """The integer part.

    `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
    floating point numbers. The result has the same dtype. DtypeError for complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([-1.5, 1.2], device="cpu")
    >>> td.trunc(x).tolist()
    [-1.0, 1.0]
    """

@overload
def trunc(x: ArrayLike, /) -> Tensor: ...
def vote_all(value: Any, /) -> _builtins.bool:
    """Whether p holds in every thread.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.i32(td.vote_all(x[i] > 0))
    >>> x = td.asarray([1, 0], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [0, 0]
    """

def vote_any(value: Any, /) -> _builtins.bool:
    """Whether p holds in some thread.

    All threads of the subgroup take part. It works in kernels only, and raises TreadleError elsewhere.

    >>> import treadle as td
    >>> @td.kernel
    ... def example(x: td.Array[td.i32], y: td.Array[td.i32]):
    ...     i = td.grid(1)
    ...     y[i] = td.i32(td.vote_any(x[i] > 0))
    >>> x = td.asarray([1, 0], dtype=td.i32, device="cpu")
    >>> y = td.zeros_like(x)
    >>> example[1, x.size](x, y)
    >>> y.tolist()
    [1, 1]
    """

@overload
def where(condition: Value | complex, a: Value | complex, b: Value | complex, /) -> Value:
    """x1 where the condition holds (is not zero), else x2. All three broadcast.

    >>> import treadle as td
    >>> x = td.asarray([-1.0, 2.0], device="cpu")
    >>> td.where(x > 0, x, 0).tolist()
    [0.0, 2.0]
    """

@overload
def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
