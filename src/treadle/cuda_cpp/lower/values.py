"""The values of expressions during lowering.

A C++ expression becomes a value of one of these classes. Numbers, vectors and small structs are IR
expressions; lvalues are places of the IR; and a pointer is a set of targets with an offset, since
the IR accesses memory by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from treadle.core.errors import CompileError
from treadle.cuda_cpp.semantics.scopes import Overload, Scope
from treadle.cuda_cpp.semantics.types import (
    IMAGE,
    NULL_POINTER,
    STRING,
    VOID,
    ArrayOf,
    BitField,
    ClassType,
    CppType,
    EnumType,
    Pointer,
    VectorType,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

# C++'s value categories of what has a place: a temporary object is a prvalue until a name refers to
# it; an xvalue may be moved from.
Category: TypeAlias = Literal["lvalue", "xvalue", "prvalue"]


@dataclass(frozen=True, slots=True)
class Rvalue:
    """A number, vector or struct without a place. A `literal_zero` is a null pointer constant, and
    `named` the value of a const variable, which is an lvalue for overload resolution."""

    expression: n.Expression
    type: CppType
    literal_zero: bool = False
    named: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Address(Rvalue):
    """A pointer that was cast to an integer, and sums of it: it can become a pointer again. The
    offset of `pointer` is in bytes, and `low` is the number without its upper half."""

    pointer: PointerValue | None = field(default=None, compare=False)
    low: n.Expression | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Lvalue:
    """An object with a place in the IR, whose type is `ir_type(type)`. A `const` one can only be
    read."""

    place: n.Place
    type: CppType
    const: bool = field(default=False, compare=False)
    category: Category = field(default="lvalue", compare=False)


# --- targets of pointers -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryTarget:
    """A memory of the kernel: a buffer, or a shared or local memory.

    `bytes` is its size if it is known, `size` the variable with its number of elements if the
    launch passes that; `element` its own element type.
    """

    memory: str
    space: str  # "global", "constant", "shared", "local"
    element: ir.Type = field(compare=False)
    size: n.Expression | None = field(default=None, compare=False)
    constant: bool = field(default=False, compare=False)  # read-only


@dataclass(frozen=True, slots=True)
class ItemTarget:
    """A fixed array inside an object (`s.values`): `place` is the array's."""

    place: n.Place


@dataclass(frozen=True, slots=True)
class ObjectTarget:
    """One object, the target of `&x`: only the offset 0 is valid."""

    place: n.Place


@dataclass(frozen=True, slots=True)
class NullTarget:
    """The target of a null pointer; of one that has no value, if it was not `given` one."""

    given: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionTarget:
    """A function, the target of a pointer to functions; a built-in one has no candidate."""

    key: Any
    candidate: Candidate | None = field(compare=False)


Target: TypeAlias = MemoryTarget | ItemTarget | ObjectTarget | NullTarget | FunctionTarget


@dataclass(frozen=True, slots=True)
class PointerValue:
    """A pointer: `offset` (i32 or i64) is in units of `unit` bytes, which is usually the size of
    the innermost elements of `to`.

    With more than one target, `tag` is the index of the target at run time. `const`: it points to
    const.
    """

    targets: tuple[Target, ...]
    offset: n.Expression
    unit: int
    to: CppType
    tag: n.Expression | None = None
    const: bool = field(default=False, compare=False)
    # The offset of the pointer that it is `p + n` of, for checks of the heap.
    base: n.Expression | None = field(default=None, compare=False)

    @property
    def type(self) -> CppType:
        """The C++ type."""
        return Pointer(self.to, self.const)


@dataclass(frozen=True, slots=True)
class ParameterPointer(PointerValue):
    """A pointer in a struct that is a kernel's parameter. If it is assigned to, `key` becomes a
    fact, and the next run of the lowering makes it a variable."""

    key: Any = None


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array as an object: a pointer to its first element, and its type. `checks` are of the
    indices that lead to it, where these are checked one by one."""

    first: PointerValue
    type: ArrayOf
    checks: tuple[n.Check, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ChoiceLvalue:
    """An object that is one of several, by the tag of the pointer that was dereferenced."""

    tag: n.Expression
    choices: tuple[Any, ...]  # an object or array each; None where the pointer is null
    type: CppType


@dataclass(frozen=True, slots=True)
class ScatteredLvalue:
    """An object at an offset that is not a multiple of its size: its scalars are accessed one by
    one.

    `offset` is in units of `unit` bytes from the start of the memory.
    """

    target: MemoryTarget
    offset: n.Expression
    unit: int
    type: CppType
    const: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class BitsLvalue:
    """A number that is accessed as another type of the same size: `*(int*)&x`."""

    place: n.Place
    type: CppType
    const: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class BitFieldLvalue:
    """A bit field of an object: the words that hold its pieces."""

    words: tuple[Any, ...]  # objects
    bits: BitField
    const: bool = field(default=False, compare=False)

    @property
    def type(self) -> CppType:
        """The C++ type."""
        return self.bits.type


@dataclass(frozen=True, slots=True)
class PointerVariable:
    """A pointer variable: variables of the IR for the offset and, if it has several targets, for
    the tag.

    Its `targets` are those that earlier runs of the lowering saw assigned to it, as facts under
    `key`. `const`: it points to const; `fixed`: it is const itself.
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
    """An item of an array of pointers, whose index (`place`) is known at run time."""

    items: tuple[Any, ...]
    place: n.Expression
    to: CppType

    @property
    def type(self) -> CppType:
        """The C++ type."""
        return Pointer(self.to)


@dataclass(slots=True)
class SplitStruct:
    """A struct with pointers in it: each field is a value of its own. With a `key` it is an object
    that may be in memory instead."""

    type: ClassType
    fields: dict[str, Any]
    const: bool = False
    category: Category = "lvalue"
    key: Any = field(default=None, compare=False)
    whole: Any = field(default=None, compare=False)  # the derived object that this is a base of


@dataclass(frozen=True, slots=True)
class SplitArray:
    """An array of pointers, or of structs with pointers: each item is a value of its own. With a
    `key` it is an object that may be in memory instead."""

    type: ArrayOf
    items: tuple[Any, ...]
    key: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """`&x` of a pointer, or of a struct with pointers in it, which has no place in memory."""

    object: SplitStruct | PointerVariable | ParameterPointer | SplitArray

    @property
    def type(self) -> CppType:
        """The C++ type."""
        return Pointer(self.object.type)


# --- values that are not objects -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Null:
    """`nullptr`"""

    type: CppType = NULL_POINTER


@dataclass(frozen=True, slots=True)
class Text:
    """A string literal."""

    text: str
    type: CppType = STRING
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class ChosenText:
    """`test ? "one" : "other"`"""

    test: n.Expression
    one: Text | ChosenText
    other: Text | ChosenText
    type: CppType = STRING


@dataclass(frozen=True, slots=True)
class Braced:
    """`{a, b}` as an argument, before overload resolution selects its parameter."""

    node: Any  # a tree.InitializerList
    type: CppType = VOID


@dataclass(frozen=True, slots=True)
class FunctionSet:
    """An overload set, which may have template arguments and the object of a method call."""

    name: str
    overloads: tuple[Any, ...]  # meaning.scopes.Overload
    builtin: bool = False
    arguments: tuple[Any, ...] | None = None
    receiver: Any = None


@dataclass(frozen=True, slots=True)
class BoundFunctions:
    """`object.*pointer`: the member functions that the number of a pointer to members may select,
    each with its number, and the object."""

    pointer: Rvalue
    functions: tuple[tuple[int, Candidate], ...]
    receiver: Any
    type: CppType = VOID


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type that was parsed as an expression."""

    type: CppType


@dataclass(frozen=True, slots=True)
class VoidValue:
    """The result of a function that returns void."""

    type: CppType


Value: TypeAlias = (
    Rvalue | Lvalue | PointerValue | ArrayValue | ChoiceLvalue | ScatteredLvalue | BitsLvalue
    | BitFieldLvalue
    | PointerVariable | ChosenPointer | SplitStruct | SplitArray | ObjectAddress | Null | Text
    | ChosenText | Braced | FunctionSet | BoundFunctions | TypeValue | VoidValue
)  # fmt: skip

VALUES = get_args(Value)


def as_const(value: Any) -> Any:
    """An object made const; other values as they are."""
    match value:
        case Lvalue() | BitsLvalue() | ScatteredLvalue() | BitFieldLvalue():
            return replace(value, const=True)
        case ArrayValue(first=first):
            return replace(value, first=replace(first, const=True))
        case ChoiceLvalue(choices=choices):
            return replace(value, choices=tuple(c if c is None else as_const(c) for c in choices))
        case PointerVariable():
            return replace(value, fixed=True)
        case SplitStruct():
            return replace(value, const=True)
    return value


def with_category(value: Any, category: Category) -> Any:
    """An object of another value category; other values as they are."""
    if isinstance(value, (Lvalue, SplitStruct)) and value.category != category:
        return replace(value, category=category)
    if isinstance(value, Rvalue) and value.named != (category == "lvalue"):
        return replace(value, named=not value.named)
    return value


def same_object(one: Any, other: Any) -> bool:
    """Whether two values are the same object."""
    if isinstance(one, SplitStruct) and isinstance(other, SplitStruct):
        return one.fields is other.fields
    return bool(one == other)


def is_in_parts(value: Any) -> bool:
    """Whether a value has another form here than in C++: one with pointers that has no place in
    memory, or a texture, which is a number there."""
    if getattr(value, "to", None) == IMAGE:
        return True
    if isinstance(value, (SplitStruct, SplitArray, ObjectAddress, ChosenPointer, ChosenText)):
        return True
    pointers = (PointerValue, PointerVariable, Lvalue, ChoiceLvalue)
    return isinstance(getattr(value, "type", None), Pointer) and not isinstance(value, pointers)


def pointer_in_memory(value: Any) -> bool:
    """Whether a value is a pointer that is kept in memory, or one of several such."""
    return isinstance(value, (Lvalue, ChoiceLvalue)) and isinstance(value.type, Pointer)


def is_prvalue(value: Any) -> bool:
    """Whether a value is a temporary object, or has no place at all."""
    return isinstance(value, Rvalue) or getattr(value, "category", "") == "prvalue"


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


def not_a_number(value: Value) -> str:
    """The message for a value that is not a number, with what makes one of it."""
    type = getattr(value, "type", None)
    cure = ""
    if isinstance(type, VectorType):
        names = ", ".join(f".{one}" for one in ir.COMPONENTS[: type.count])
        cure = f": name one of its components, {names}"
    elif isinstance(type, EnumType):
        cure = ": cast it, as in static_cast<int>(…)"
    elif isinstance(type, Pointer):
        cure = ": read what it points to, by * or [ ]"
    return f"a number is needed here, not {describe(value)}{cure}"


class Dependent:
    """A value that depends on a parameter of the template that is checked: it has no type yet, so
    whatever asks for that is not checked."""

    @property
    def type(self) -> CppType:
        """CompileError: the type is not known."""
        raise CompileError("this depends on a template parameter")


# --- functions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate of overload resolution: the scope of its names, with template arguments bound,
    and the types of its parameters."""

    overload: Overload
    scope: Scope
    types: tuple[CppType, ...]
    ranks: tuple[int, ...] = ()
    general: Candidate | None = None  # of a specialization: the template's, with its defaults

    @property
    def declaration(self) -> tree.FunctionDeclaration:
        """Its declaration."""
        return self.overload.declaration

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Its template arguments."""
        found: tuple[Any, ...] = self.scope.names.get("<arguments>", ())
        return found
