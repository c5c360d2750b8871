"""The parameters of a launch for those of a kernel.

Memory on most devices cannot hold addresses, so a struct with pointers in it is split: each pointer
is a buffer, the other fields are values. Pointers in memory that are alike have one buffer for all
that they point to, in which they are offsets. A large struct without pointers is uploaded to memory
by the launch, since devices do not take thousands of scalars as parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context, completed
from treadle.cuda_cpp.lower.hierarchy import holds_table
from treadle.cuda_cpp.lower.names import resolve
from treadle.cuda_cpp.lower.pair_types import holds_double, paired
from treadle.cuda_cpp.lower.passed_functions import functions_of_type, numbers_of_functions
from treadle.cuda_cpp.program import (
    Again,
    ArgumentLayout,
    Direct,
    PointerSlot,
    Split,
    Table,
    Within,
    WrittenParameter,
    number_of_memory,
)
from treadle.cuda_cpp.semantics.types import (
    DOUBLES,
    FUNCTION_IN_MEMORY,
    IMAGE,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    FunctionOf,
    Incomplete,
    NoLayout,
    Pointer,
    Reference,
    VectorType,
    Void,
    all_fields,
    count_of,
    decay,
    holds_member_pointer,
    holds_pointer,
    holds_pointer_union,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.spelling import spell_type
from treadle.ir import types as ir
from treadle.ir.signature import Declared, DeclaredParameter, DeclaredPointer

_MOST_BY_VALUE = 256  # bytes of a parameter; a larger one is uploaded to memory,
_MOST_BY_VALUE_IN_TOTAL = 2048  # and so is one that exceeds this sum
_MOST_BYTES = 32_764
_MOST_PARTS = 256  # parameters of the launch for structs with pointers
_MOST_SEPARATE = 16  # pointers of an array in such a struct that are parameters of their own
_NO_ADDRESSES = "memory on most devices cannot hold addresses"


@dataclass(slots=True)
class Parameters:
    """The parameters of a launch, and the layouts of those in the file (see KernelInstance)."""

    parameters: list[DeclaredParameter] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    written: list[WrittenParameter] = field(default_factory=list)
    layouts: list[ArgumentLayout] = field(default_factory=list)
    uploaded: dict[int, ir.Type] = field(default_factory=dict)
    narrowed: list[int] = field(default_factory=list)
    paired: dict[int, ir.Type] = field(default_factory=dict)
    functions: dict[int, dict[str, int]] = field(default_factory=dict)
    by_value: int = 0  # bytes by value so far
    linked: dict[str, Table] = field(default_factory=dict)  # of structs that are linked, by name
    keys: set[str] = field(default_factory=set)  # of the arrays that pointers in memory point into
    # The variables of the file that pointers to a type in memory may point into; the second
    # argument says whether the memory is a variable of the file, too.
    lasting: Callable[[CppType, bool], tuple[str, ...]] = lambda to, of_file: ()

    @property
    def is_split(self) -> bool:
        """Whether a launch has other parameters than the kernel in the file."""
        return any(not isinstance(one, Direct) for one in self.layouts)


@dataclass(frozen=True, slots=True)
class _Part:
    """A parameter, or a part of one: `path` leads to it from the parameter ("inner.x")."""

    number: int
    parameter: str
    path: str
    type: CppType
    spelling: str
    span: Span
    # The structs whose pointers lead to it, by name with the positions of their tables.
    classes: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """Its name as a parameter of the launch: "p.inner.x"."""
        return f"{self.parameter}{'.' if self.path[:1] not in ('', '[') else ''}{self.path}"

    @property
    def words(self) -> str:
        """Its name in messages about the file."""
        inner = f", field {self.path}," if self.path else ""
        return f"{'variable' if self.number < 0 else 'parameter'} {self.parameter}{inner}"

    @property
    def label(self) -> str:
        """Its name in messages about a launch."""
        if self.number < 0:
            return f"variable {self.name}"
        return f"argument {self.number + 1} ({self.parameter}), field {self.path}"

    def field(self, name: str, type: CppType) -> _Part:
        """The part that is a field of it."""
        path = f"{self.path}.{name}" if self.path else name
        return _Part(self.number, self.parameter, path, type, str(type), self.span)

    def pointed(self, path: tuple[str, ...], type: Pointer) -> _Part:
        """The part with all that a pointer in its elements points to, in all of them."""
        inside = f"{self.path}[].{'.'.join(path)}".rstrip(".")
        return _Part(self.number, self.parameter, inside, type, str(type), self.span, self.classes)

    def inside(self, element: CppType, position: int) -> _Part:
        """The part, seen from an element that it points to, in a table at some position."""
        if not isinstance(element, ClassType):
            return self
        return replace(self, classes=(*self.classes, (element.name, position)))

    def item(self, at: int) -> _Part:
        """The part that is an item of this array."""
        assert isinstance(self.type, ArrayOf)
        type = self.type.element
        return _Part(self.number, self.parameter, f"{self.path}[{at}]", type, str(type), self.span)


def parameter_type(cx: Context, one: tree.Parameter) -> CppType:
    """The type of a kernel's parameter: arrays decay to pointers, an object that a const reference
    refers to is passed by value, and what another reference refers to by its address."""
    type = resolve(cx, one.type)
    if isinstance(type, Reference):
        type = type.to if type.const or type.rvalue else Pointer(type.to)
    return decay(type) if isinstance(type, (ArrayOf, FunctionOf)) else type


def parameter_name(one: tree.Parameter, number: int) -> str:
    """The name of a kernel's parameter, made up if it has none in the file."""
    return one.name or f"unnamed{number}"


def lasting_of(layouts: Iterable[ArgumentLayout | Again]) -> frozenset[str]:
    """The variables of the file that pointers in the arrays of a launch may point into."""
    found: set[str] = set()
    for one in layouts:
        if isinstance(one, Split):
            found |= lasting_of(part for _, part in one.parts)
        elif isinstance(one, Table):
            found |= {name for slot in one.slots for name in slot.lasting}
            found |= lasting_of(slot.layout for slot in one.slots)
    return frozenset(found)


def returns_a_value(kernel: str) -> str:
    """The message for a kernel whose result is not void."""
    return (
        f"the kernel {kernel} returns a value: a kernel returns void, and writes its results to "
        "memory"
    )


def parameters_of(
    cx: Context,
    declaration: tree.FunctionDeclaration,
    lasting: Callable[[CppType, bool], tuple[str, ...]],
) -> Parameters:
    """The parameters of a launch of a kernel. `lasting` has the variables of the file that pointers
    to a type in memory may point into. CompileError for types that cannot be passed."""
    found = Parameters(lasting=lasting)
    for number, one in enumerate(declaration.parameters):
        name, spelling = parameter_name(one, number), spell_type(one.type)
        found.written.append(WrittenParameter(name, spelling))
        part = _Part(number, name, "", parameter_type(cx, one), spelling, one.span)
        found.layouts.append(_layout(cx, found, part))
    return found


def _layout(cx: Context, found: Parameters, part: _Part) -> ArgumentLayout:
    type = completed(cx, part.type)
    if holds_table(innermost(type)):
        raise cx.error(
            f"{part.words} is an object with virtual functions, which cannot be passed from the "
            "host, in CUDA neither: make it in a kernel, and pass a pointer to it",
            part.span,
        )
    if isinstance(type, Pointer) and _is_table(innermost(type.to)):
        return _table(cx, found, part, type)
    if not isinstance(type, (ClassType, ArrayOf)) or not holds_pointer(type):
        return _whole(cx, found, part)
    if isinstance(type, ClassType) and type.is_union:
        raise cx.error(
            f"{part.words} is a union with pointers in it, and {_NO_ADDRESSES}: make its pointers "
            "parameters of their own",
            part.span,
        )
    if isinstance(type, ArrayOf) and _is_long(type):
        table = _table(cx, found, part, Pointer(type.element))
        assert isinstance(table, Table)
        return replace(table, length=type.length)
    count = len(all_fields(type)) if isinstance(type, ClassType) else type.length
    if not count:
        raise cx.error(f"{part.words} is an array of unknown length", part.span)
    if len(found.parameters) + count > _MOST_PARTS:
        raise cx.error(
            f"{part.words} is split into more than {_MOST_PARTS} parameters, one for each pointer "
            "in it: pass one array with offsets into it",
            part.span,
        )
    parts: list[tuple[str | int, _Part]]
    if isinstance(type, ClassType):
        parts = [(one.name, part.field(one.name, one.type)) for one in all_fields(type)]
    else:
        parts = [(at, part.item(at)) for at in range(count)]
    return Split(str(type), tuple((name, _layout(cx, found, one)) for name, one in parts))


def _is_long(type: ArrayOf) -> bool:
    """Whether an array of pointers is one array in memory, and not a parameter for each."""
    to = type.element.to if isinstance(type.element, Pointer) else IMAGE
    plain = not isinstance(to, FunctionOf) and to != IMAGE and not _is_table(innermost(to))
    return plain and (type.length or 0) > _MOST_SEPARATE


def _is_table(element: CppType) -> bool:
    """Whether the elements that a pointer points to have pointers in them."""
    return holds_pointer(element) and element != IMAGE


def _table(cx: Context, found: Parameters, part: _Part, type: Pointer) -> Table | Within:
    """An array with pointers in it, and an array for what each of them points to."""
    element = innermost(type.to)
    if isinstance(element, ClassType) and element.name in found.linked:
        return _within(found, part, type, found.linked[element.name])
    try:
        stored = ir_type(element)
    except NoLayout as reason:
        if str(reason) == FUNCTION_IN_MEMORY:
            raise cx.error(
                f"{part.words} leads to a pointer to a function in memory: pass it as a "
                "parameter, or in a struct by value",
                part.span,
            ) from None
        raise cx.error(f"{part.words} points to {element}, with {reason}", part.span) from None
    position = len(found.parameters)
    declared = DeclaredPointer(stored, part.spelling)
    found.parameters.append(DeclaredParameter(part.name, declared, part.label))
    found.types.append(part.spelling)
    if len(found.parameters) > _MOST_PARTS:
        raise cx.error(f"{part.words} has more than {_MOST_PARTS} pointers in it", part.span)
    number = number_of_memory(_key(found, f"{element}[]", part))
    inside = part.inside(element, position)
    slots = tuple(
        _slot(cx, found, inside, element, one)
        for one in _pointers_in(cx, inside, element, (), False)
    )
    made = Table(str(type), position, stored, slots, number)
    if isinstance(element, ClassType) and _leads_to(slots, position):
        found.linked[element.name] = made
    return made


def _leads_to(slots: Iterable[PointerSlot], position: int) -> bool:
    """Whether pointers in a table lead to its own elements."""
    for one in slots:
        if isinstance(one.layout, Again) and one.layout.position == position:
            return True
        if isinstance(one.layout, Table) and _leads_to(one.layout.slots, position):
            return True
    return False


def _within(found: Parameters, part: _Part, type: Pointer, table: Table) -> Within:
    """A pointer to linked structs of which an earlier argument has the table."""
    position = len(found.parameters)
    found.parameters.append(DeclaredParameter(part.name, ir.I32, part.label))
    found.types.append(part.spelling)
    return Within(str(type), position, table)


def _key(found: Parameters, key: str, part: _Part) -> str:
    """What the number of an array is made of: what points to it, which is the same in all kernels;
    of another array that such pointers point to, its own name."""
    if key in found.keys:
        key = f"{key} of {part.name}"
    found.keys.add(key)
    return key


@dataclass(frozen=True, slots=True)
class _Found:
    """A pointer in an object: the members that lead to it, its type, the number of pointers if it
    is an array of them, and whether it is in a union."""

    path: tuple[str, ...]
    type: Pointer
    count: int | None
    in_union: bool


def _slot(
    cx: Context, found: Parameters, part: _Part, element: CppType, one: _Found
) -> PointerSlot:
    """Pointers in the elements of a table, and the array for what they point to."""
    to = one.type.to
    inner = innermost(to)
    classes = dict(part.classes)
    layout: ArgumentLayout | Again
    if isinstance(inner, ClassType) and inner.name in classes:
        layout, number = Again(classes[inner.name]), 0
    elif isinstance(inner, ClassType) and inner.name in found.linked:
        layout, number = Again(found.linked[inner.name].position), 0
    else:
        pointed = part.pointed(one.path, one.type)
        layout = _layout(cx, found, pointed)
        number = number_of_memory(_key(found, f"{element}.{'.'.join(one.path)}", pointed))
    return PointerSlot(
        ir_type(element),
        one.path,
        layout,
        f"pointers to {to} in it",
        one.type.const,
        one.count is not None,
        one.count or 1,
        layout.number if isinstance(layout, Table) else number,
        found.lasting(to, part.number < 0),
        one.in_union,
    )


def _pointers_in(
    cx: Context, part: _Part, type: CppType, path: tuple[str, ...], in_union: bool
) -> Iterator[_Found]:
    """The pointers in an object."""
    if innermost(type) in (Pointer(IMAGE), Pointer(IMAGE, True)):
        raise cx.error(
            f"{part.words} points to texture or surface objects: pass them as parameters, or in a "
            "struct by value (an array of them in it may be indexed at run time)",
            part.span,
        )
    if isinstance(type, Pointer):
        whole = completed(cx, type)
        assert isinstance(whole, Pointer)
        yield _Found(path, whole, None, in_union)
    elif isinstance(type, ArrayOf) and isinstance(innermost(type), Pointer):
        whole = completed(cx, innermost(type))
        assert isinstance(whole, Pointer)
        yield _Found(path, whole, count_of(type), in_union)
    elif isinstance(type, ClassType) and holds_pointer(type):
        for one in all_fields(type):
            yield from _pointers_in(
                cx, part, one.type, (*path, one.name), in_union or type.is_union
            )
    elif holds_pointer(type):
        raise cx.error(
            f"{part.words} has arrays of structs with pointers in them: use one struct for each",
            part.span,
        )


def linked_variable(
    cx: Context, found: Parameters, name: str, type: CppType, constant: bool, span: Span
) -> ArgumentLayout:
    """The parameters of a launch for a variable of the file with pointers in it. A constant, which
    kernels only read, is passed in its parts if it is not an array."""
    part = _Part(-1, name, "", type, str(type), span)
    if constant and not isinstance(type, ArrayOf) and not holds_pointer_union(type):
        return _layout(cx, found, part)
    element = innermost(type)
    if isinstance(element, ClassType) and element.name in found.linked:
        raise cx.error(
            f"{name} holds objects of {element}, and an argument points to objects of {element}, "
            "too, which point to each other: keep all of them in one array, for which a kernel "
            f"takes a pointer, or use {name} only",
            span,
        )
    return _table(cx, found, replace(part, type=Pointer(type)), Pointer(type))


def zero_value(type: CppType) -> Any:
    """The value of zeros as a caller writes it: None for a pointer."""
    match type:
        case Pointer():
            return None
        case ArrayOf(element, length):
            return [zero_value(element) for _ in range(length or 0)]
        case VectorType(count=count) if count > 1:
            return (0,) * count
        case VectorType():
            return (0,)
        case ClassType(is_union=True):
            return bytes(ir.size_of(ir_type(type)))
        case ClassType():
            return {one.name: zero_value(one.type) for one in all_fields(type)}
    return 0


def _whole(cx: Context, found: Parameters, part: _Part) -> Direct:
    position = len(found.parameters)
    declared: Declared
    if isinstance(part.type, Pointer) and isinstance(part.type.to, FunctionOf):
        found.functions[position] = _numbers(cx, part, part.type.to)
        declared = ir.I32
    else:
        declared = _declared(cx, part)
    if cx.lowering.types.double_is_pair:
        declared = _with_pairs(found, position, declared)
    if isinstance(declared, (ir.Struct, ir.Array)):
        size = ir.size_of(declared)
        if size > _MOST_BY_VALUE or found.by_value + size > _MOST_BY_VALUE_IN_TOTAL:
            found.uploaded[position] = declared
            element = ir_type(innermost(part.type))
            if cx.lowering.types.double_is_pair:
                element = paired(element)
            declared = DeclaredPointer(element, part.spelling)
        else:
            found.by_value += size
    if isinstance(part.type, Pointer) and _is_narrowed(innermost(part.type.to)):
        found.narrowed.append(position)
    label = part.label if part.path else ""
    found.parameters.append(DeclaredParameter(part.name, declared, label))
    found.types.append(part.spelling)
    return Direct(position)


def _is_narrowed(element: CppType) -> bool:
    """Whether elements are doubles that are floats, or vectors of them."""
    number = element.element if isinstance(element, VectorType) else element
    if not isinstance(number, Arithmetic):
        return False
    return number.name in DOUBLES and number.scalar == ir.F32


def _declared(cx: Context, part: _Part) -> Declared:
    """The declared type of the parameter for a part."""
    type = part.type
    if holds_member_pointer(type.to if isinstance(type, Pointer) else type):
        raise cx.error(f"{part.words} has a pointer to a member, which {_NOT_FROM_HOST}", part.span)
    if isinstance(type, Pointer):
        return _pointer(cx, part, innermost(type.to))
    if isinstance(type, Reference):
        raise cx.error(
            f"{part.words} is a reference, and {_NO_ADDRESSES}: make it a pointer", part.span
        )
    if isinstance(type, EnumType):
        return type.underlying.scalar
    if isinstance(type, Incomplete):
        raise cx.error(f"{part.words} is a {type}, which is declared, but not defined", part.span)
    if isinstance(type, Void):
        raise cx.error(f"{part.words} cannot be void", part.span)
    try:
        made = ir_type(type)
    except NoLayout as reason:
        raise cx.error(f"{part.words} is {reason}", part.span) from None
    assert isinstance(made, (ir.Scalar, ir.Vector, ir.Struct, ir.Array))
    size = ir.size_of(made)
    if size > _MOST_BYTES:
        raise cx.error(
            f"{part.words} has {size:,} bytes, and a kernel's parameters have {_MOST_BYTES:,} at "
            "most, on CUDA too: pass a pointer to it",
            part.span,
        )
    return made


_NOT_FROM_HOST = (
    "kernels cannot take from the host: make it a template parameter, or pass a number and choose "
    "by it in the kernel"
)


def _pointer(cx: Context, part: _Part, element: CppType) -> DeclaredPointer:
    if isinstance(element, Void) or element == IMAGE:
        return DeclaredPointer(ir.VOID, part.spelling, shaped=element == IMAGE)
    spelling = (
        f"{part.spelling} (a double is a float here)" if _is_narrowed(element) else part.spelling
    )
    return DeclaredPointer(ir_type(element), spelling)


def _numbers(cx: Context, part: _Part, type: FunctionOf) -> dict[str, int]:
    """The numbers of the functions that a pointer to functions may be given."""
    numbers = numbers_of_functions(functions_of_type(cx, type))
    if not numbers:
        raise cx.error(
            f"{part.words} is a pointer to functions of the type {type}, and the file has no "
            "__device__ function of this type: add those that it may point to",
            part.span,
        )
    return numbers


def _with_pairs(found: Parameters, position: int, declared: Declared) -> Declared:
    """The declared type with a pair of floats for each double; the type that the caller sees is
    noted."""
    element = declared.element if isinstance(declared, DeclaredPointer) else declared
    if not isinstance(element, (ir.Scalar, ir.Vector, ir.Struct, ir.Array)):
        return declared
    if not holds_double(element):
        return declared
    found.paired[position] = element
    if isinstance(declared, DeclaredPointer):
        spelling = f"{declared.spelling} (a double is a pair of floats here)"
        return DeclaredPointer(paired(element), spelling)
    made = paired(element)
    assert isinstance(made, (ir.Vector, ir.Struct, ir.Array))
    return made
