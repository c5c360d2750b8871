"""What an expression is while it is lowered.

A C++ expression becomes a value of one of these kinds. Numbers, vectors and small structs are
expressions of the IR; objects that have a place are places of the IR; and a pointer is what it may
point into together with an offset, since memory of the IR is reached by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from treadle.cuda_cpp.semantics.scopes import Overload, Scope
from treadle.cuda_cpp.semantics.types import (
    NULL_POINTER,
    STRING,
    VOID,
    ArrayOf,
    ClassType,
    CppType,
    Pointer,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


@dataclass(frozen=True, slots=True)
class Rvalue:
    """A number, vector or struct without a place. A `literal_zero` may be a null pointer."""

    expression: n.Expression
    type: CppType
    literal_zero: bool = False


@dataclass(frozen=True, slots=True)
class Lvalue:
    """An object with a place in the IR, whose type is `ir_type(type)`. What is `const` may only be
    read."""

    place: n.Place
    type: CppType
    const: bool = field(default=False, compare=False)


# --- what pointers point into --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryTarget:
    """A memory of the kernel: a buffer, or a shared or local memory.

    `bytes` is its size where it is known, `size` the variable with its elements where a launch
    tells; `element` its own element type.
    """

    memory: str
    space: str  # "global", "constant", "shared", "local"
    element: ir.Type = field(compare=False)
    size: n.Expression | None = field(default=None, compare=False)
    constant: bool = field(default=False, compare=False)  # nobody writes it


@dataclass(frozen=True, slots=True)
class ItemTarget:
    """A fixed array inside an object (`s.values`): `place` is the array's."""

    place: n.Place


@dataclass(frozen=True, slots=True)
class ObjectTarget:
    """One object, as `&x` gives it: only an offset of 0 means anything."""

    place: n.Place


@dataclass(frozen=True, slots=True)
class NullTarget:
    """Nowhere."""


Target: TypeAlias = MemoryTarget | ItemTarget | ObjectTarget | NullTarget


@dataclass(frozen=True, slots=True)
class PointerValue:
    """Where a pointer points: `offset` (i32 or i64) counts steps of `unit` bytes, which are usually
    the innermost elements of `to`.

    With more than one target, `tag` tells at run time which it is. `const` is what it points to.
    """

    targets: tuple[Target, ...]
    offset: n.Expression
    unit: int
    to: CppType
    tag: n.Expression | None = None
    const: bool = field(default=False, compare=False)

    @property
    def type(self) -> CppType:
        """Its C++ type."""
        return Pointer(self.to, self.const)


@dataclass(frozen=True, slots=True)
class ParameterPointer(PointerValue):
    """A pointer in a struct that is a kernel's parameter. Where it is assigned to, `key` is
    remembered, and the next run of the lowering makes it a variable."""

    key: Any = None


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array as an object: where its first element is, and its type."""

    first: PointerValue
    type: ArrayOf


@dataclass(frozen=True, slots=True)
class ChoiceLvalue:
    """An object that is one of several, by the tag of the pointer that was followed."""

    tag: n.Expression
    choices: tuple[Any, ...]  # an object or array each; None where the pointer is null
    type: CppType


@dataclass(frozen=True, slots=True)
class ScatteredLvalue:
    """An object at an offset that is no multiple of its size: its leaves are reached one by one.

    `offset` counts units of `unit` bytes from the start of the memory.
    """

    target: MemoryTarget
    offset: n.Expression
    unit: int
    type: CppType
    const: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class BitsLvalue:
    """A number seen as another one of the same size: `*(int*)&x`."""

    place: n.Place
    type: CppType
    const: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class PointerVariable:
    """A variable that holds a pointer: variables of the IR for the offset and, where it may point
    into several memories, for the tag.

    What it may point into (`targets`) is what earlier runs of the lowering saw assigned to it,
    remembered under `key`. `const` is what it points to, and where it is `fixed` it points to
    nothing else.
    """

    key: Any
    offset: n.Variable
    tag: n.Variable | None
    targets: tuple[Target, ...]
    unit: int
    to: CppType
    const: bool = field(default=False, compare=False)
    fixed: bool = field(default=False, compare=False)

    @property
    def type(self) -> CppType:
        return Pointer(self.to, self.const)


@dataclass(frozen=True, slots=True)
class ChosenPointer:
    """An item of an array of pointers, whose number (`place`) is known at run time."""

    items: tuple[Any, ...]
    place: n.Expression
    to: CppType

    @property
    def type(self) -> CppType:
        """Its C++ type."""
        return Pointer(self.to)


@dataclass(slots=True)
class SplitStruct:
    """A struct with pointers in it: each field is a value of its own."""

    type: ClassType
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SplitArray:
    """An array of pointers, or of structs with pointers in them: each item is a value of its
    own."""

    type: ArrayOf
    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """`&x` of a struct with pointers in it, which has no place in memory."""

    object: SplitStruct

    @property
    def type(self) -> CppType:
        """Its C++ type."""
        return Pointer(self.object.type)


# --- what is no object ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Null:
    """`nullptr`"""

    type: CppType = NULL_POINTER


@dataclass(frozen=True, slots=True)
class Text:
    """A string literal."""

    text: str
    type: CppType = STRING


@dataclass(frozen=True, slots=True)
class ChosenText:
    """`test ? "one" : "other"`"""

    test: n.Expression
    one: Text | ChosenText
    other: Text | ChosenText
    type: CppType = STRING


@dataclass(frozen=True, slots=True)
class Braced:
    """`{a, b}` as an argument, until the parameter is known that it initializes."""

    node: Any  # a tree.InitializerList
    type: CppType = VOID


@dataclass(frozen=True, slots=True)
class FunctionSet:
    """Functions of one name, perhaps with template arguments and an object to be called on."""

    name: str
    overloads: tuple[Any, ...]  # meaning.scopes.Overload
    builtin: bool = False
    arguments: tuple[Any, ...] | None = None
    receiver: Any = None


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type where an expression stands."""

    type: CppType


@dataclass(frozen=True, slots=True)
class VoidValue:
    """The result of a function that returns nothing."""

    type: CppType


Value: TypeAlias = (
    Rvalue | Lvalue | PointerValue | ArrayValue | ChoiceLvalue | ScatteredLvalue | BitsLvalue
    | PointerVariable | ChosenPointer | SplitStruct | SplitArray | ObjectAddress | Null | Text
    | ChosenText | Braced | FunctionSet | TypeValue | VoidValue
)  # fmt: skip


def as_const(value: Any) -> Any:
    """An object that may only be read; any other value as it is."""
    match value:
        case Lvalue() | BitsLvalue() | ScatteredLvalue():
            return replace(value, const=True)
        case ArrayValue(first=first):
            return replace(value, first=replace(first, const=True))
        case ChoiceLvalue(choices=choices):
            return replace(value, choices=tuple(c if c is None else as_const(c) for c in choices))
        case PointerVariable():
            return replace(value, fixed=True)
    return value


def describe(value: Any) -> str:
    """A value in an error message."""
    type = getattr(value, "type", None)
    name = value.__class__.__name__
    if name == "FunctionSet":
        return f"the function {value.name}"
    if name == "TypeValue":
        return f"the type {type}"
    if name == "Null":
        return "nullptr"
    return f"a value of type {type}"


# --- functions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function to call: the scope that its names are looked up in (template arguments bound),
    and the types of its parameters."""

    overload: Overload
    scope: Scope
    types: tuple[CppType, ...]
    ranks: tuple[int, ...] = ()

    @property
    def declaration(self) -> tree.FunctionDeclaration:
        """As written."""
        return self.overload.declaration

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Its template arguments."""
        found: tuple[Any, ...] = self.scope.names.get("<arguments>", ())
        return found
