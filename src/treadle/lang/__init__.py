"""The kernel language: Python functions that run on every device.

`kernel` and `Function` are what the decorators make, `types` the annotations, `builtins` the names
that kernels use, `lower` the way to IR, `interpreter` plain Python, `refusals` what is not allowed.
"""

from __future__ import annotations

from math import e, inf, nan, pi

from treadle.core.dtypes import (
    bf16,
    bfloat16,
    c64,
    c128,
    complex64,
    complex128,
    f16,
    f32,
    f64,
    float16,
    float32,
    float64,
    i8,
    i16,
    i32,
    i64,
    int8,
    int16,
    int32,
    int64,
    u8,
    u16,
    u32,
    u64,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from treadle.core.dtypes import bool_ as bool
from treadle.lang import builtins
from treadle.lang.builtins import *  # noqa: F403  every name there is public
from treadle.lang.interpreting import interpret
from treadle.lang.kernel import func, kernel
from treadle.lang.types import Array, struct, vec2, vec3, vec4

__all__ = [
    "Array",
    "bf16",
    "bfloat16",
    "bool",
    "c64",
    "c128",
    "complex64",
    "complex128",
    "e",
    "f16",
    "f32",
    "f64",
    "float16",
    "float32",
    "float64",
    "func",
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
    "kernel",
    "nan",
    "pi",
    "struct",
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
]  # fmt: skip
__all__ += builtins.__all__
