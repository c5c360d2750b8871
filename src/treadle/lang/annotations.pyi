# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""What type checkers see of the types that annotate kernels, like `td.f32`.

mypy has no type that is subscripted with a number, so for it all of these are Any, by the
last line. Pyright sees classes. A dtype is Any there as an annotation, since Python's numbers
go where `td.f32` stands; the elements of an array are values of kernels.
"""

import builtins
from typing import Any

from treadle.lang.values import Value

MYPY: builtins.bool

def _annotation(cls: type[Any]) -> Any: ...

if not MYPY:
    class Array:
        """`td.Array[td.f32]` annotates an array of one dimension, `td.Array[td.f32, 2]` of two.

        `td.Array[td.complex64]` is `td.Array[td.vec2[td.f32]]`, and either takes arrays of both.
        """

        size: builtins.int
        shape: tuple[builtins.int, ...]
        def __class_getitem__(cls, key: Any) -> Any: ...
        def __getitem__(self, index: Any) -> Value: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

    class vec2(Value):
        """`td.vec2[dtype]`: a vector of 2 numbers; called, it makes one."""

        def __class_getitem__(cls, key: Any) -> Any: ...

    class vec3(Value):
        """`td.vec3[dtype]`: a vector of 3 numbers; called, it makes one."""

        def __class_getitem__(cls, key: Any) -> Any: ...

    class vec4(Value):
        """`td.vec4[dtype]`: a vector of 4 numbers; called, it makes one."""

        def __class_getitem__(cls, key: Any) -> Any: ...

    class mat2x2(Value):
        """`td.mat2x2[dtype]`: a matrix of 2 rows and 2 columns."""

        shape: tuple[builtins.int, builtins.int]
        T: mat2x2
        def __class_getitem__(cls, key: Any) -> Any: ...
        def determinant(self) -> Value: ...
        def inverse(self) -> mat2x2: ...

    class mat2x3(Value):
        """`td.mat2x3[dtype]`: a matrix of 2 rows and 3 columns."""

        shape: tuple[builtins.int, builtins.int]
        T: mat3x2
        def __class_getitem__(cls, key: Any) -> Any: ...
        def determinant(self) -> Value: ...
        def inverse(self) -> mat2x3: ...

    class mat2x4(Value):
        """`td.mat2x4[dtype]`: a matrix of 2 rows and 4 columns."""

        shape: tuple[builtins.int, builtins.int]
        T: mat4x2
        def __class_getitem__(cls, key: Any) -> Any: ...
        def determinant(self) -> Value: ...
        def inverse(self) -> mat2x4: ...

    class mat3x2(Value):
        """`td.mat3x2[dtype]`: a matrix of 3 rows and 2 columns."""

        shape: tuple[builtins.int, builtins.int]
        T: mat2x3
        def __class_getitem__(cls, key: Any) -> Any: ...
        def determinant(self) -> Value: ...
        def inverse(self) -> mat3x2: ...

    class mat3x3(Value):
        """`td.mat3x3[dtype]`: a matrix of 3 rows and 3 columns."""

        shape: tuple[builtins.int, builtins.int]
        T: mat3x3
        def __class_getitem__(cls, key: Any) -> Any: ...
        def determinant(self) -> Value: ...
        def inverse(self) -> mat3x3: ...

    class mat3x4(Value):
        """`td.mat3x4[dtype]`: a matrix of 3 rows and 4 columns."""

        shape: tuple[builtins.int, builtins.int]
        T: mat4x3
        def __class_getitem__(cls, key: Any) -> Any: ...
        def determinant(self) -> Value: ...
        def inverse(self) -> mat3x4: ...

    class mat4x2(Value):
        """`td.mat4x2[dtype]`: a matrix of 4 rows and 2 columns."""

        shape: tuple[builtins.int, builtins.int]
        T: mat2x4
        def __class_getitem__(cls, key: Any) -> Any: ...
        def determinant(self) -> Value: ...
        def inverse(self) -> mat4x2: ...

    class mat4x3(Value):
        """`td.mat4x3[dtype]`: a matrix of 4 rows and 3 columns."""

        shape: tuple[builtins.int, builtins.int]
        T: mat3x4
        def __class_getitem__(cls, key: Any) -> Any: ...
        def determinant(self) -> Value: ...
        def inverse(self) -> mat4x3: ...

    class mat4x4(Value):
        """`td.mat4x4[dtype]`: a matrix of 4 rows and 4 columns."""

        shape: tuple[builtins.int, builtins.int]
        T: mat4x4
        def __class_getitem__(cls, key: Any) -> Any: ...
        def determinant(self) -> Value: ...
        def inverse(self) -> mat4x4: ...

    @_annotation
    class bool:
        """8-bit truth values: a dtype; called, it casts."""

    @_annotation
    class int8:
        """8-bit integers: a dtype; called, it casts."""

    @_annotation
    class i8:
        """8-bit integers: a dtype; called, it casts."""

    @_annotation
    class uint8:
        """8-bit integers without a sign: a dtype; called, it casts."""

    @_annotation
    class u8:
        """8-bit integers without a sign: a dtype; called, it casts."""

    @_annotation
    class int16:
        """16-bit integers: a dtype; called, it casts."""

    @_annotation
    class i16:
        """16-bit integers: a dtype; called, it casts."""

    @_annotation
    class uint16:
        """16-bit integers without a sign: a dtype; called, it casts."""

    @_annotation
    class u16:
        """16-bit integers without a sign: a dtype; called, it casts."""

    @_annotation
    class int32:
        """32-bit integers: a dtype; called, it casts."""

    @_annotation
    class i32:
        """32-bit integers: a dtype; called, it casts."""

    @_annotation
    class uint32:
        """32-bit integers without a sign: a dtype; called, it casts."""

    @_annotation
    class u32:
        """32-bit integers without a sign: a dtype; called, it casts."""

    @_annotation
    class int64:
        """64-bit integers: a dtype; called, it casts."""

    @_annotation
    class i64:
        """64-bit integers: a dtype; called, it casts."""

    @_annotation
    class uint64:
        """64-bit integers without a sign: a dtype; called, it casts."""

    @_annotation
    class u64:
        """64-bit integers without a sign: a dtype; called, it casts."""

    @_annotation
    class float16:
        """16-bit floating point numbers: a dtype; called, it casts."""

    @_annotation
    class f16:
        """16-bit floating point numbers: a dtype; called, it casts."""

    @_annotation
    class bfloat16:
        """16-bit floating point numbers: a dtype; called, it casts."""

    @_annotation
    class bf16:
        """16-bit floating point numbers: a dtype; called, it casts."""

    @_annotation
    class float32:
        """32-bit floating point numbers: a dtype; called, it casts."""

    @_annotation
    class f32:
        """32-bit floating point numbers: a dtype; called, it casts."""

    @_annotation
    class float64:
        """64-bit floating point numbers: a dtype; called, it casts."""

    @_annotation
    class f64:
        """64-bit floating point numbers: a dtype; called, it casts."""

    @_annotation
    class complex64:
        """64-bit complex numbers: a dtype; called, it casts."""

    @_annotation
    class c64:
        """64-bit complex numbers: a dtype; called, it casts."""

    @_annotation
    class complex128:
        """128-bit complex numbers: a dtype; called, it casts."""

    @_annotation
    class c128:
        """128-bit complex numbers: a dtype; called, it casts."""

def __getattr__(name: str) -> Any: ...
