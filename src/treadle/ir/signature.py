"""What a launch's arguments look like to a compiler: the key by which compiled kernels are found.

Kernels are generic in shape: a signature holds types and layouts, never sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from treadle.ir.types import Array, Scalar, Struct, Type, Vector


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number, already of the parameter's type if it declares one."""

    type: Scalar

    def __str__(self) -> str:
        return str(self.type)


@dataclass(frozen=True, slots=True)
class ValueArgument:
    """A vector, struct or array passed by value."""

    type: Vector | Struct | Array

    def __str__(self) -> str:
        return str(self.type)


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array in device memory.

    `contiguous` means row-major without gaps: no strides are passed. `has_offset` means that its
    first element is not the buffer's first, so that an offset is passed. `big` means that its
    indices need 64 bits: sizes, strides, offset and index arithmetic are then i64.
    """

    element: Type
    ndim: int
    contiguous: bool = True
    has_offset: bool = False
    big: bool = False

    def __str__(self) -> str:
        layout = "" if self.contiguous else ", strided"
        return f"{self.element}[{', '.join(':' * self.ndim)}]{layout}"


Argument: TypeAlias = ScalarArgument | ValueArgument | ArrayArgument


@dataclass(frozen=True, slots=True)
class Signature:
    """One argument a parameter, in order.

    `threads` is the number of axes of a launch by threads (`kernel.launch(n, …)`): the kernel then
    gets the extents as parameters and threads outside return at once. 0 for a launch by blocks.
    """

    arguments: tuple[Argument, ...]
    threads: int = 0

    def __str__(self) -> str:
        return f"({', '.join(str(argument) for argument in self.arguments)})"


@dataclass(frozen=True, slots=True)
class DeclaredArray:
    """The annotation `td.Array[element, ndim]`."""

    element: Type
    ndim: int

    def __str__(self) -> str:
        dimensions = "" if self.ndim == 1 else f", {self.ndim}"
        return f"Array[{self.element}{dimensions}]"


@dataclass(frozen=True, slots=True)
class DeclaredPointer:
    """A pointer parameter of C++: contiguous arrays of any number of dimensions, made of the same
    scalars (signed or not), or empty ones. To `void` (element Void), arrays of anything.

    The kernel sees an array of one dimension with this element; of a pointer to `void`, with the
    array's own. If it is `shaped`, as an image is, it sees the array's own dimensions.
    """

    element: Type
    spelling: str  # as C++ writes the type, for messages
    shaped: bool = False

    def __str__(self) -> str:
        return self.spelling


Declared: TypeAlias = Scalar | Vector | Struct | Array | DeclaredArray | DeclaredPointer | None


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """A kernel's parameter and its annotation (None: it takes its type from the call)."""

    name: str
    declared: Declared = None
    label: str = ""  # how messages name it where its number and name do not ("argument 1, field x")

    def __str__(self) -> str:
        return self.name if self.declared is None else f"{self.name}: {self.declared}"


__all__ = [
    "Argument",
    "ArrayArgument",
    "Declared",
    "DeclaredArray",
    "DeclaredParameter",
    "DeclaredPointer",
    "ScalarArgument",
    "Signature",
    "ValueArgument",
]
