"""The kernel language: Python functions that run on every device.

`kernel` has what the decorators make, `types` the annotations, `builtins` the functions that
kernels use, `namespace` all names, `lower` the way to IR, `interpreter` plain Python, `refusals`
what is not allowed.
"""

from treadle.lang import builtins
from treadle.lang.builtins import *  # noqa: F403  every name there is public
from treadle.lang.interpreting import interpret
from treadle.lang.kernel import func, kernel
from treadle.lang.namespace import *  # noqa: F403  and every name there

# ruff: noqa: F405
# Those of `namespace` are written out, as type checkers do not follow its list.
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
