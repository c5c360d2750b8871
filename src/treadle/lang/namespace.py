"""The names of the kernel language that kernels write after `td.`, except the decorators.

The math library is written with these names, and the lowering uses them. Both are below the
decorators, which import the lowering.
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
from treadle.lang.matrices import (
    mat2x2,
    mat2x3,
    mat2x4,
    mat3x2,
    mat3x3,
    mat3x4,
    mat4x2,
    mat4x3,
    mat4x4,
)
from treadle.lang.positions import GridPos
from treadle.lang.types import Array, struct, vec2, vec3, vec4

__all__ = [
    "Array",
    "GridPos",
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
    "i8",
    "i16",
    "i32",
    "i64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "mat2x2",
    "mat2x3",
    "mat2x4",
    "mat3x2",
    "mat3x3",
    "mat3x4",
    "mat4x2",
    "mat4x3",
    "mat4x4",
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

# With those that `lang` adds: the candidates for spelling hints.
PUBLIC = frozenset((*__all__, "func", "interpret", "kernel"))
