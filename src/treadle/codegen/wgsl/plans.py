"""How each memory of a kernel is declared in WGSL.

Memory is bytes with C's layout, but WGSL knows neither bytes nor C's alignment. A memory whose
every access has one type that WGSL can hold in an array of the same stride is declared as that
array ("typed"). Vectors of four numbers of 16 bits that it can't hold are pairs of words ("pairs"),
each read and written at once. A memory that is accessed as vectors of words and as smaller types is
an array of such vectors, if nothing smaller is stored: a smaller value is extracted from a vector
("vectors"). Everything else is an array of 32-bit words, and accesses compute the word ("words").

Only the kernel itself accesses shared and local memories: they can be typed with any type, as long
as no access reinterprets them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from treadle.codegen.wgsl.module import Module
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.core.source import NOWHERE, Span
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import (
    BOOL,
    COMPONENTS,
    F32,
    F64,
    I32,
    U32,
    Array,
    Scalar,
    Struct,
    Type,
    Vector,
    field_offset,
    scalars_in,
    size_of,
)

_PAIR = Vector(U32, 2)
Space = Literal["storage", "workgroup", "private"]


@dataclass
class Uses:
    """What a kernel does to one memory."""

    elements: set[Type] = field(default_factory=set)  # types that its bytes are seen as
    loaded: set[Type] = field(default_factory=set)
    stored: set[Type] = field(default_factory=set)
    atomics: set[tuple[str, Scalar]] = field(default_factory=set)
    is_read: bool = False  # by loads, or by atomics whose result is used
    narrow_store: bool = False  # stores of less than a word, which other threads may share
    span: Span = NOWHERE

    @property
    def writes(self) -> bool:
        return bool(self.stored or self.atomics)

    @property
    def exchanges(self) -> bool:
        """Whether a thread may read what another wrote."""
        return self.writes and self.is_read


@dataclass(frozen=True, slots=True)
class Plan:
    """One WGSL variable. `unit` is the type of one element of its array."""

    variable: str
    space: Space
    form: Literal["typed", "pairs", "vectors", "words"]
    unit: Type
    atomic: bool
    writes: bool
    exchanges: bool  # threads may read what others wrote

    @property
    def bools_as_words(self) -> bool:
        """Whether these are bools that are kept as words of 0 and 1: shared ones. GPUs write
        neighbouring bools as one word, and naga leaves them to the driver
        (https://github.com/gfx-rs/wgpu/issues/6570)."""
        return self.form == "typed" and self.space == "workgroup" and self.unit == BOOL

    @property
    def word(self) -> Scalar:
        """The unit of a memory in words, or in vectors of them."""
        unit = self.unit.element if isinstance(self.unit, Vector) else self.unit
        assert isinstance(unit, Scalar)
        return unit


def collect_uses(blocks: Iterable[n.Block]) -> dict[str, Uses]:
    """The uses of every memory that these blocks touch."""
    uses: dict[str, Uses] = {}
    for block in blocks:
        for node in walk(block):
            match node:
                case n.Load():
                    found = _uses_of(uses, node.place)
                    found.loaded.add(node.type)
                    found.is_read = True
                case n.Assign() if isinstance(root_of(node.place), n.Element):
                    found = _uses_of(uses, node.place)
                    found.stored.add(node.place.type)
                    found.narrow_store |= not fills_words(node.place)
                case n.OpaqueStore():
                    _uses_of(uses, node.place).stored.add(node.place.type)
                case n.Atomic():
                    assert isinstance(node.place.type, Scalar)
                    found = _uses_of(uses, node.place)
                    found.atomics.add((node.op, node.place.type))
                    found.is_read |= node.result is not None
    return uses


def _uses_of(uses: dict[str, Uses], place: n.Place) -> Uses:
    root = root_of(place)
    assert isinstance(root, n.Element)
    found = uses.setdefault(root.memory, Uses())
    found.elements.add(root.type)
    found.span = root.span
    return found


def merge(parts: Iterable[Uses]) -> Uses:
    """The uses of a binding that several buffers share."""
    total = Uses()
    for part in parts:
        total.elements |= part.elements
        total.loaded |= part.loaded
        total.stored |= part.stored
        total.atomics |= part.atomics
        total.is_read |= part.is_read
        total.narrow_store |= part.narrow_store
        total.span = part.span
    return total


def fills_words(place: n.Place) -> bool:
    """Whether what lies at a place is whole words at word boundaries."""
    return alignment(place) % 4 == 0 and size_of(place.type) % 4 == 0


def alignment(place: n.Place) -> int:
    """The largest of 1, 2, 4 that divides every offset that a place may have."""
    offsets, fixed = place_offsets(place)
    for candidate in (4, 2):
        if fixed % candidate == 0 and all(step % candidate == 0 for _, step in offsets):
            return candidate
    return 1


def place_offsets(place: n.Place) -> tuple[list[tuple[n.Expression, int]], int]:
    """A place's byte offset in its memory: indices with their steps, and a fixed part."""
    steps: list[tuple[n.Expression, int]] = []
    fixed = 0
    while not isinstance(place, n.Element):
        if isinstance(place, n.Member):
            base = place.base.type
            if isinstance(base, Struct):
                fixed += field_offset(base, place.name)
            else:
                fixed += COMPONENTS.index(place.name) * size_of(place.type)
        else:
            assert isinstance(place, n.Item)
            steps.insert(0, (place.index, size_of(place.type)))
        place = place.base
    steps.insert(0, (place.index, size_of(place.type)))
    moving: list[tuple[n.Expression, int]] = []
    for index, step in steps:
        if isinstance(index, n.Constant):
            fixed += int(index.value) * step
        else:
            moving.append((index, step))
    return moving, fixed


def make_plan(
    module: Module, variable: str, space: Space, declared: Type, uses: Uses, packed: bool = False
) -> Plan:
    """How to declare a memory. `packed` asks for C's layout even if that costs time."""
    elements = uses.elements or {declared}
    typed = len(elements) == 1 and _can_be_typed(module, space, next(iter(elements)), uses, packed)
    if typed:
        (element,) = elements
        atomic = bool(uses.atomics)
        return Plan(variable, space, "typed", element, atomic, uses.writes, uses.exchanges)
    if space == "storage" and _is_pairs(elements, uses):
        return Plan(variable, space, "pairs", _PAIR, False, uses.writes, uses.exchanges)
    if space == "private" and uses.atomics:
        raise CompileError("atomics on local memory: it is one thread's own", uses.span)
    word = _word(elements, uses)
    count = 0 if space == "private" else _vector_words(elements, uses)
    if count:
        vector = Vector(word, count)
        return Plan(variable, space, "vectors", vector, False, uses.writes, uses.exchanges)
    narrow = uses.narrow_store and space != "private"
    atomic = bool(uses.atomics) or narrow
    unit = U32 if narrow else word
    return Plan(variable, space, "words", unit, atomic, uses.writes, uses.exchanges)


def _is_pairs(elements: set[Type], uses: Uses) -> bool:
    """Whether all that happens to a memory is that whole elements of 64 bits come and go, which are
    vectors of narrower numbers."""
    return (
        len(elements) == 1
        and all(isinstance(t, Vector) and size_of(t) == 8 and t.count == 4 for t in elements)
        and uses.loaded | uses.stored <= elements
        and not uses.atomics
    )


def _vector_words(elements: set[Type], uses: Uses) -> int:
    """How many words at once a memory is reached by that is seen as several types: 2 or 4; 0 if
    single ones must be, since they are stored or updated. To store a word of a vector may be to
    store all of it, and the others may be other threads'."""
    if uses.atomics:
        return 0
    most = max(words_of(type) for type in elements)
    return min((words_of(type) for type in uses.stored), default=most) if most else 0


def words_of(type: Type) -> int:
    """The words of a vector of two or four numbers of 32 bits; 0 for any other type."""
    whole = isinstance(type, Vector) and type.count != 3 and type.element in (I32, U32, F32)
    return type.count if whole else 0  # type: ignore[union-attr]


def _can_be_typed(module: Module, space: Space, type: Type, uses: Uses, packed: bool) -> bool:
    if uses.atomics:
        return isinstance(type, Scalar) and _has_atomics(module, space, type, uses)
    if space != "storage" and not packed:
        inside = not isinstance(type, Scalar) and BOOL in scalars_in(type)
        return not (space == "workgroup" and inside)  # see Plan.bools_as_words
    scalar = type.element if isinstance(type, Vector) else type
    if not isinstance(scalar, Scalar):
        return False
    if isinstance(type, Vector) and type.count == 3:
        return False  # three in C, four in WGSL
    if scalar.kind == "bool" or scalar.bits == 8:
        return False
    return scalar.bits >= 32 or (scalar.name == "f16" and module.native_f16)


def _has_atomics(module: Module, space: Space, type: Scalar, uses: Uses) -> bool:
    """Whether WGSL has every atomic operation that is used, on this type."""
    if type in (I32, U32):
        return True
    ops = {op for op, _ in uses.atomics}
    if type == F32:
        native = space == "storage" and ops <= {"add", "sub", "exchange"}
        return native and "float_atomics" in module.available
    if type.is_integer and type.bits == 64:
        if "int64_atomics" not in module.available:
            raise UnsupportedOnTarget(
                f"atomics on {type} need the feature 'int64_atomics'; use 32-bit atomics, or a "
                "device that has it",
                uses.span,
            )
        return True
    if type == F64:
        raise UnsupportedOnTarget(
            "atomics on float64 need the feature 'int64_atomics': use float32, or add up in each "
            "block and let a second kernel add the blocks' sums, or take a device that has it",
            uses.span,
        )
    return False


def _word(elements: set[Type], uses: Uses) -> Scalar:
    """The scalar type that spares the most bit casts."""
    found = {leaf for type in elements for leaf in scalars_in(type)}
    if uses.atomics:
        kinds = {type for _, type in uses.atomics}
        return I32 if kinds == {I32} else U32
    return next(iter(found)) if len(found) == 1 and found <= {I32, U32, F32} else U32


def array_length(plan: Plan, element: Type, length: int) -> int:
    """How many units the array of a memory of `length` elements has."""
    if plan.unit == element:
        return length
    return max(-(-size_of(element) * length // size_of(plan.unit)), 1)


def unit_text(module: Module, plan: Plan) -> str:
    """The WGSL type of the array's element."""
    text = "u32" if plan.bools_as_words else module.register(plan.unit)
    return f"atomic<{text}>" if plan.atomic else text


def workgroup_bytes(module: Module, type: Type) -> tuple[int, int]:
    """Size and alignment of a typed value in workgroup memory, as WGSL lays it out."""
    match type:
        case Scalar():
            size = {"f16": 2, "i64": 8, "u64": 8, "f64": 8}.get(module.scalar_register(type), 4)
            return size, size
        case Vector():
            size, _ = workgroup_bytes(module, type.element)
            return size * type.count, size * (2 if type.count == 2 else 4)
        case Array():
            size, align = workgroup_bytes(module, type.element)
            return _round_up(size, align) * type.length, align
        case Struct():
            end, largest = 0, 4
            for member in type.fields:
                size, align = workgroup_bytes(module, member.type)
                end, largest = _round_up(end, align) + size, max(largest, align)
            return _round_up(end, largest), largest
        case _:
            raise AssertionError("void is no value")


def workgroup_array_bytes(module: Module, plan: Plan, count: int) -> int:
    """Bytes of workgroup memory that an array takes."""
    size, align = workgroup_bytes(module, plan.unit)
    return _round_up(size, align) * count


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
