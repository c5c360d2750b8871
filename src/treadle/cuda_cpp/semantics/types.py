"""C++ types as the lowering knows them, and the IR types they become.

cv-qualifiers are not part of a type here: the source is code that CUDA compiles, and they do not
change what it computes. Only what a pointer points to may be const: these are the arrays that a
kernel only reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from typing import Any, Literal, TypeAlias

from treadle.core.errors import CompileError
from treadle.ir import types as ir


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An arithmetic type. `rank` is C++'s conversion rank; floats rank above all integers."""

    name: str
    scalar: ir.Scalar
    rank: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class VectorType:
    """CUDA's float2, uchar4 and so on, and half2."""

    name: str
    element: Arithmetic
    count: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class EnumType:
    """An enum and its underlying type. A scoped one has no implicit conversion to a number. `scope`
    is the one that declares it."""

    name: str
    underlying: Arithmetic
    scoped: bool = False
    scope: Any = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Pointer:
    """`to *`"""

    to: CppType
    const: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{'const ' if self.const else ''}{self.to}*"


@dataclass(frozen=True, slots=True)
class Reference:
    """`to &`: the type of parameters, variables and results, never of an expression."""

    to: CppType
    const: bool = False
    rvalue: bool = False

    def __str__(self) -> str:
        return f"{'const ' if self.const else ''}{self.to}{'&&' if self.rvalue else '&'}"


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """`element[length]`; the length is None if it is unknown (`extern __shared__ float s[]`)."""

    element: CppType
    length: int | None

    def __str__(self) -> str:
        inner: CppType = self
        lengths = ""
        while isinstance(inner, ArrayOf):
            lengths += f"[{'' if inner.length is None else inner.length}]"
            inner = inner.element
        return f"{inner}{lengths}"


@dataclass(frozen=True, slots=True)
class Field:
    """A member variable; `alignment` is that of alignas or __align__, 0 for none."""

    name: str
    type: CppType
    alignment: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """Bits of a word that belong to a bit field: `count` of them from the bit `shift` of the field
    `word` on, which are those of the value from the bit `position` on."""

    word: str
    shift: int
    count: int
    position: int


@dataclass(frozen=True, slots=True)
class BitField:
    """A member that is bits of words: a bit field, or one of a packed struct."""

    name: str
    type: CppType
    width: int
    pieces: tuple[Piece, ...]
    unsigned: bool = False  # of an enum without negative enumerators


Member: TypeAlias = Field | BitField


@dataclass(frozen=True, slots=True)
class ClassType:
    """A struct, class or union, by name (template arguments included) and fields."""

    name: str
    fields: tuple[Field, ...] = ()
    bases: tuple[ClassType, ...] = ()
    is_union: bool = False
    alignment: int = 0  # by alignas or __align__, 0 for none
    # Members that are bits of the fields, and then the names of all members in order.
    bits: tuple[BitField, ...] = ()
    names: tuple[str, ...] = ()
    packing: int | None = None  # the greatest alignment of a member, if it is packed
    scope: Any = field(default=None, compare=False, repr=False)  # meaning.scopes.Scope
    arguments: tuple[Any, ...] = field(default=(), compare=False)  # of its template
    template: Any = field(default=None, compare=False, repr=False)  # the StructDeclaration
    # That of the specialization, if it is an instance of one.
    declaration: Any = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((self.name, len(self.fields)))  # not of all fields: each access asks for it

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class FunctionOf:
    """The type of a function, to which only pointers exist."""

    result: CppType
    parameters: tuple[CppType, ...]

    def __str__(self) -> str:
        return f"{self.result}({', '.join(map(str, self.parameters))})"


@dataclass(frozen=True, slots=True)
class MemberPointer:
    """`to owner::*`, a pointer to a member of a class: to a field of type `to`, or to a function,
    which may be `const`. The class is compared by name, as it may be incomplete."""

    name: str
    to: CppType
    const: bool = False
    owner: Any = field(default=None, compare=False, repr=False)  # the ClassType

    def __str__(self) -> str:
        if isinstance(self.to, FunctionOf):
            parameters = ", ".join(map(str, self.to.parameters))
            const = " const" if self.const else ""
            return f"{self.to.result} ({self.name}::*)({parameters}){const}"
        return f"{self.to} {self.name}::*"


@dataclass(frozen=True, slots=True)
class Void:
    """`void`."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class Incomplete(Void):
    """A class that is declared and not defined: there are only pointers and references to it."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class NullPointer:
    """The type of `nullptr`."""

    def __str__(self) -> str:
        return "std::nullptr_t"


@dataclass(frozen=True, slots=True)
class StringType:
    """A string literal, which only printf and assert take."""

    def __str__(self) -> str:
        return "const char*"


@dataclass(frozen=True, slots=True)
class ConstOf:
    """A const type as a template argument, which is not a type of its own elsewhere."""

    of: CppType

    def __str__(self) -> str:
        return f"const {self.of}"


@dataclass(frozen=True, slots=True)
class Absent:
    """The type of a member that kernels do not have, as it is of the host's library: the class may
    be named, but has no objects here. `error` is what says so."""

    name: str
    error: CompileError = field(compare=False)

    def __str__(self) -> str:
        return self.name


CppType: TypeAlias = (
    Arithmetic | VectorType | EnumType | Pointer | Reference | ArrayOf | ClassType | Void
    | NullPointer | StringType | FunctionOf | MemberPointer | Absent
)  # fmt: skip

VOID = Void()
NULL_POINTER = NullPointer()
STRING = StringType()

# `long` has 64 bits, as on Linux.
ARITHMETIC: dict[str, Arithmetic] = {
    name: Arithmetic(name, ir.SCALARS[scalar], rank)
    for name, scalar, rank in (
        ("bool", "bool", 0),
        ("char", "i8", 1), ("signed char", "i8", 1), ("unsigned char", "u8", 1),
        ("short", "i16", 2), ("unsigned short", "u16", 2),
        ("char16_t", "u16", 2), ("wchar_t", "i32", 3), ("char32_t", "u32", 3),
        ("int", "i32", 3), ("unsigned int", "u32", 3),
        ("long", "i64", 4), ("unsigned long", "u64", 4),
        ("long long", "i64", 5), ("unsigned long long", "u64", 5),
        ("__half", "f16", 6), ("__nv_bfloat16", "bf16", 6),
        ("float", "f32", 7), ("double", "f64", 8), ("long double", "f64", 9),
    )
}  # fmt: skip
BOOL, CHAR, INT, UNSIGNED = (ARITHMETIC[n] for n in ("bool", "char", "int", "unsigned int"))
LONG, UNSIGNED_LONG = ARITHMETIC["long"], ARITHMETIC["unsigned long"]
LONG_LONG, UNSIGNED_LONG_LONG = ARITHMETIC["long long"], ARITHMETIC["unsigned long long"]
FLOAT, DOUBLE, HALF = ARITHMETIC["float"], ARITHMETIC["double"], ARITHMETIC["__half"]
BFLOAT16 = ARITHMETIC["__nv_bfloat16"]
SIZE = UNSIGNED_LONG

# The C++ type for a scalar of the IR, where one must be named.
OF_SCALAR: dict[ir.Scalar, Arithmetic] = {
    ir.BOOL: BOOL, ir.I8: CHAR, ir.U8: ARITHMETIC["unsigned char"],
    ir.I16: ARITHMETIC["short"], ir.U16: ARITHMETIC["unsigned short"],
    ir.I32: INT, ir.U32: UNSIGNED, ir.I64: LONG_LONG, ir.U64: UNSIGNED_LONG_LONG,
    ir.F16: HALF, ir.BF16: BFLOAT16, ir.F32: FLOAT, ir.F64: DOUBLE,
}  # fmt: skip

_VECTOR_ELEMENTS = {
    "char": "signed char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short",
    "int": "int", "uint": "unsigned int", "long": "long", "ulong": "unsigned long",
    "longlong": "long long", "ulonglong": "unsigned long long", "float": "float",
    "double": "double",
}  # fmt: skip
VECTORS: dict[str, VectorType] = {
    f"{prefix}{count}": VectorType(f"{prefix}{count}", ARITHMETIC[element], count)
    for prefix, element in _VECTOR_ELEMENTS.items()
    for count in (1, 2, 3, 4)
} | {
    "__half2": VectorType("__half2", HALF, 2),
    "__nv_bfloat162": VectorType("__nv_bfloat162", BFLOAT16, 2),
}
DIM3 = ClassType("dim3", tuple(Field(name, UNSIGNED) for name in "xyz"))
# What texture and surface objects point to: an image, whose layout the launch knows.
IMAGE = ClassType("__treadle_image", (Field("byte", ARITHMETIC["unsigned char"]),))

UINT3 = VECTORS["uint3"]

# Typedefs of CUDA's and C's headers.
ALIASES: dict[str, CppType] = {
    "size_t": UNSIGNED_LONG, "ptrdiff_t": LONG, "ssize_t": LONG, "clock_t": LONG,
    "int8_t": ARITHMETIC["signed char"], "uint8_t": ARITHMETIC["unsigned char"],
    "int16_t": ARITHMETIC["short"], "uint16_t": ARITHMETIC["unsigned short"],
    "int32_t": INT, "uint32_t": UNSIGNED, "int64_t": LONG, "uint64_t": UNSIGNED_LONG,
    "intptr_t": LONG, "uintptr_t": UNSIGNED_LONG,
    "uchar": ARITHMETIC["unsigned char"], "ushort": ARITHMETIC["unsigned short"],
    "uint": UNSIGNED, "ulong": UNSIGNED_LONG,
    "half": HALF, "half2": VECTORS["__half2"], "__half": HALF, "nv_bfloat16": BFLOAT16,
    "nv_bfloat162": VECTORS["__nv_bfloat162"], "__nv_bfloat16": BFLOAT16,
    "nullptr_t": NULL_POINTER,
    "cudaTextureObject_t": Pointer(IMAGE, True), "cudaSurfaceObject_t": Pointer(IMAGE),
    **VECTORS, "dim3": DIM3,
}  # fmt: skip


# What `double` is in a file: C++'s own, a float, or a pair of floats.
Double: TypeAlias = Literal["double", "float", "pair"]
DOUBLES = ("double", "long double")


@dataclass(frozen=True, slots=True)
class NumberTypes:
    """The types of numbers of a file, and CUDA's vectors of them. Where double is a float, it is a
    type of its own all the same, for overloads and templates: with a float's bits."""

    arithmetic: Mapping[str, Arithmetic]
    vectors: Mapping[str, VectorType]
    double_is_pair: bool = False  # which it becomes after a kernel was lowered

    @property
    def double(self) -> Arithmetic:
        """What `double` names."""
        return self.arithmetic["double"]

    @property
    def double_is_float(self) -> bool:
        """Whether a double has a float's bits."""
        return self.double.scalar == ir.F32

    @property
    def names(self) -> dict[str, CppType]:
        """All names of types that CUDA's and C's headers declare."""
        return {**ALIASES, **self.vectors, **self.arithmetic}


def _with_floats_for_doubles() -> NumberTypes:
    arithmetic = {
        name: replace(one, scalar=ir.F32) if one.scalar == ir.F64 else one
        for name, one in ARITHMETIC.items()
    }
    vectors = {
        name: replace(one, element=arithmetic[one.element.name]) for name, one in VECTORS.items()
    }
    return NumberTypes(arithmetic, vectors)


NUMBER_TYPES: dict[Double, NumberTypes] = {
    "double": NumberTypes(ARITHMETIC, VECTORS),
    "float": _with_floats_for_doubles(),
    "pair": NumberTypes(ARITHMETIC, VECTORS, double_is_pair=True),
}


def is_integer(type: CppType) -> bool:
    """Whether a type is an integer type (with bool, without enums)."""
    return isinstance(type, Arithmetic) and not type.scalar.is_float


def decay(type: CppType) -> CppType:
    """The type of such an expression as a value: references are removed, arrays decay."""
    if isinstance(type, Reference):
        type = type.to
    if isinstance(type, FunctionOf):
        return Pointer(type)
    return Pointer(type.element) if isinstance(type, ArrayOf) else type


def innermost(type: CppType) -> CppType:
    """The type of the elements of an array of arrays."""
    while isinstance(type, ArrayOf):
        type = type.element
    return type


def count_of(type: CppType) -> int:
    """The number of innermost elements: 1 if the type is not an array."""
    count = 1
    while isinstance(type, ArrayOf):
        count *= type.length or 0
        type = type.element
    return count


def all_fields(type: ClassType) -> tuple[Field, ...]:
    """The fields of the bases, then its own, in the order of memory."""
    if not type.bases:
        return type.fields
    inherited = (
        all_fields(base) if part is None else (part,) for base, part in parts_of_bases(type)
    )
    return (*(one for fields in inherited for one in fields), *type.fields)


@cache
def parts_of_bases(type: ClassType) -> tuple[tuple[ClassType, Field | None], ...]:
    """The bases of a class, and the field that a base is in objects of the class: None if its
    fields are among those of the class, which they are unless another base has their names."""
    taken: set[str] = set()
    found: list[tuple[ClassType, Field | None]] = []
    for base in type.bases:
        part = None
        names = {one.name for one in all_fields(base)}
        if names & taken:
            number = next(at for at in count(1) if f"{BASE}{at}" not in taken)
            part = Field(f"{BASE}{number}", base)
            names = {part.name}
        taken |= names
        found.append((base, part))
    return tuple(found)


FUNCTION_IN_MEMORY = "a pointer to functions in memory"


class NoLayout(Exception):
    """A type that memory cannot hold here: the message is the reason."""


# Fields that the file does not declare, by names that C++ cannot give: padding (or the byte of an
# empty class), and the bytes of a union.
PADDING = ir.PADDING
WORDS = ir.BITS  # words with bit fields in them
UNION_WORDS = "union.words"
BASE = "base."  # a base with fields of the names that another base's fields have


# A pointer in memory: its offset in bytes, and which of the memories that it may point into.
SLOT = ir.Vector(ir.U32, 2)


@cache
def ir_type(type: CppType) -> ir.Type:
    """The IR type of a C++ type in memory. NoLayout for what memory cannot hold."""
    match type:
        case Arithmetic():
            return type.scalar
        case EnumType():
            return type.underlying.scalar
        case MemberPointer():  # the number of a field or function, 0 for null
            return ir.I64
        case VectorType(element=element, count=1):
            return ir.Struct(type.name, (ir.Field("x", element.scalar),))
        case VectorType():
            return ir.Vector(type.element.scalar, type.count)
        case ArrayOf(element, length):
            if length is None:
                raise NoLayout("an array of unknown length")
            return ir.Array(ir_type(element), length)
        case ClassType():
            return _struct(type)
        case Void():
            return ir.VOID
        case Pointer(FunctionOf()):
            raise NoLayout(FUNCTION_IN_MEMORY)
        case Pointer():
            return SLOT
        case NullPointer() | StringType():
            raise NoLayout("a pointer in memory")
        case Reference():
            raise NoLayout("a reference in memory")
        case FunctionOf():
            raise NoLayout("a function")
        case Absent():
            raise type.error


def _struct(type: ClassType) -> ir.Struct:
    """The fields, with padding where C++'s alignment leaves more than the IR's."""
    if type.is_union:
        return _union(type)
    fields: list[ir.Field] = []
    end = 0
    for one in all_fields(type):
        wanted = _align_of_field(one)
        start = -(-end // wanted) * wanted
        natural = -(-end // ir.align_of(ir_type(one.type))) * ir.align_of(ir_type(one.type))
        if start > natural:
            fields.extend(ir.padding(len(fields), end, start))
        fields.append(ir.Field(one.name, ir_type(one.type)))
        end = start + ir.size_of(ir_type(one.type))
    if not fields:
        return ir.Struct(type.name, (ir.Field(f"{PADDING}0", ir.U8),))
    wanted = max(_align(type), 1)
    size = -(-end // wanted) * wanted
    struct = ir.Struct(type.name, tuple(fields))
    if ir.size_of(struct) < size:
        struct = ir.Struct(type.name, (*fields, *ir.padding(len(fields), end, size)))
    return struct


def _union(type: ClassType) -> ir.Struct:
    """The bytes of a union, as words of its alignment; its members are views of them."""
    size = max((ir.size_of(ir_type(f.type)) for f in type.fields), default=1)
    unit = max((min(_align(f.type), 4) for f in type.fields), default=1)
    wanted = max(map(_align_of_field, type.fields), default=1)
    size = -(-size // wanted) * wanted
    word = {1: ir.U8, 2: ir.U16, 4: ir.U32}[unit]
    return ir.Struct(type.name, (ir.Field(UNION_WORDS, ir.Array(word, size // unit)),))


def _align_of_field(one: Field) -> int:
    return max(_align(one.type), one.alignment)


def _align(type: CppType) -> int:
    """C++'s alignment of a type, with alignas and __align__."""
    if isinstance(type, ClassType):
        own = max(map(_align_of_field, all_fields(type)), default=1)
        return max(min(own, type.packing or own), type.alignment)
    if isinstance(type, ArrayOf):
        return _align(type.element)
    if isinstance(type, (Pointer, NullPointer, StringType, Reference)):
        return 8
    return ir.align_of(ir_type(type))


def size_of(type: CppType) -> int:
    """`sizeof`: pointers have 8 bytes."""
    if isinstance(type, (Pointer, NullPointer, StringType)):
        return 8
    if isinstance(type, Reference):
        return size_of(type.to)
    if holds_pointer(type):
        return _size_with_pointers(type)
    return ir.size_of(ir_type(type))


def _size_with_pointers(type: CppType) -> int:
    """The size in C++ of a type with pointers, which memory cannot hold here."""
    if isinstance(type, ArrayOf):
        return size_of(type.element) * (type.length or 0)
    assert isinstance(type, ClassType)
    end = 0
    for one in all_fields(type):
        align = _align_of_field(one)
        start = 0 if type.is_union else -(-end // align) * align
        size = 8 if isinstance(one.type, Reference) else size_of(one.type)
        end = max(end, start + size)
    return -(-end // _align(type)) * _align(type)


def align_of(type: CppType) -> int:
    """`alignof`"""
    return _align(type.to if isinstance(type, Reference) else type)


def holds_pointer(type: CppType) -> bool:
    """Whether a value of this type has a pointer or reference anywhere in it."""
    match type:
        case Pointer() | Reference() | NullPointer():
            return True
        case ArrayOf():
            return holds_pointer(type.element)
        case ClassType():
            return any(holds_pointer(f.type) for f in all_fields(type))
    return False


def holds_pointer_union(type: CppType) -> bool:
    """Whether a value of this type has a union with pointers anywhere in it: its bytes may be those
    of a pointer, so it is in memory as a whole."""
    if isinstance(type, ArrayOf):
        return holds_pointer_union(type.element)
    if not isinstance(type, ClassType):
        return False
    fields = all_fields(type)
    if type.is_union and any(holds_pointer(one.type) for one in fields):
        return True
    return any(holds_pointer_union(one.type) for one in fields)


def is_split(type: CppType) -> bool:
    """Whether an object of a thread is split into its parts, as it has pointers in it."""
    return holds_pointer(type) and not holds_pointer_union(type)


def holds_absent(type: CppType) -> bool:
    """Whether a type has a member of the host's library anywhere in it."""
    if isinstance(type, ClassType):
        return any(holds_absent(f.type) for f in all_fields(type))
    return isinstance(innermost(type), Absent)


def holds_member_pointer(type: CppType) -> bool:
    """Whether a value of this type has a pointer to a member anywhere in it."""
    inner = innermost(type)
    if isinstance(inner, ClassType):
        return any(holds_member_pointer(one.type) for one in all_fields(inner))
    return isinstance(inner, MemberPointer)


def holds_array(type: CppType) -> bool:
    """Whether a value of this type has an array in it (or is one, or is a union)."""
    if isinstance(type, ClassType):
        return type.is_union or any(holds_array(f.type) for f in all_fields(type))
    return isinstance(type, ArrayOf)
