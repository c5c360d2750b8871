"""The values of expressions during lowering.

Numbers, vectors and structs are IR expressions, or literals that have no type yet. Arrays, tuples
and Python objects from outside exist at compile time only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.fragments import FragmentKind
from treadle.lang.positions import CellRules
from treadle.lang.rules import Literal


@dataclass(frozen=True, slots=True)
class ArrayView:
    """An array: a memory, and the mapping from indices to its elements.

    `extents`, `strides` and `offset` count elements and have type `index_type`. `strides` None
    means row-major without gaps.
    """

    memory: str
    element: t.Type
    extents: tuple[n.Expression, ...]
    size: n.Expression
    strides: tuple[n.Expression, ...] | None = None
    offset: n.Expression | None = None
    index_type: t.Scalar = t.I32
    origin: str = ""  # in the body of a stencil: the kernel's parameter
    layer: tuple[int, ...] = ()  # of a grid of a stack, as `f[q]` is: which one
    wrapped: bool = False  # the memory has what is beyond the ends of axes that wrap
    fragment: FragmentKind | None = None  # what the elements are of, where it is a fragment
    constant: bool = False  # an array from outside, which is not written

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.extents)


@dataclass(frozen=True, slots=True)
class FixedArrayPlace:
    """The fixed array at a place (a field of a struct)."""

    place: n.MemoryPlace
    type: t.Array


@dataclass(frozen=True, slots=True)
class TupleValue:
    """A tuple of known items."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class PythonObject:
    """An object from outside that is not a number: a dtype, a function, a module, None, text."""

    value: Any
    name: str


@dataclass(frozen=True, slots=True)
class Range:
    """`range(…)` or `td.static_range(…)` in a for."""

    start: Value
    stop: Value
    step: Value
    unrolled: bool


@dataclass(frozen=True, slots=True)
class Counter:
    """The numbers from `start` on that `enumerate` gives."""

    start: Value


@dataclass(frozen=True, slots=True)
class Zipped:
    """`zip(…)`, or `enumerate(x)`, which is that of a counter and x, in a for."""

    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """A cell of a stencil's grid."""

    rules: CellRules
    indices: tuple[n.Expression, ...]
    values: tuple[n.Expression, ...] = ()  # of the neighbours that are given


@dataclass(frozen=True, slots=True)
class ShiftedPosition:
    """A neighbour's place, `pos.shifted(di, dj)`, which indexes arrays as a position does."""

    position: Position
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PositionMethod:
    """A method of a position, `pos.north`, `pos.at` or `pos.shifted`, before it is called."""

    position: Position
    name: str


@dataclass(frozen=True, slots=True)
class FragmentMethod:
    """A method of a fragment, `sums.multiply_add`, before it is called."""

    array: ArrayView
    name: str


Value: TypeAlias = (
    Literal | n.Expression | ArrayView | FixedArrayPlace | TupleValue | PythonObject | Range
    | Counter | Zipped | Position | ShiftedPosition | PositionMethod | FragmentMethod
)  # fmt: skip

EXPRESSIONS = (
    n.Constant, n.Variable, n.Builtin, n.Unary, n.Binary, n.Select, n.Cast, n.Bitcast,
    n.Intrinsic, n.Call, n.Construct, n.Extract, n.Load,
)  # fmt: skip


def is_expression(value: Value) -> bool:
    """Whether a value is an IR expression."""
    return isinstance(value, EXPRESSIONS)


def describe(value: Value) -> str:
    """A value's description for error messages."""
    match value:
        case Literal():
            return f"the number {value.value}"
        case ArrayView(fragment=FragmentKind() as kind):
            return str(kind)
        case ArrayView():
            axes = "" if value.ndim == 1 else f" in {value.ndim} dimensions"
            return f"an array of {spelled(value.element)}{axes}"
        case FixedArrayPlace():
            return f"an array of {value.type.length} {spelled(value.type.element)}"
        case TupleValue():
            return f"a tuple of {len(value.items)}"
        case PythonObject():
            if isinstance(value.value, str):
                return f"the text {value.value!r}"
            return value.name
        case Range():
            return "a range"
        case Counter() | Zipped():
            return "an iteration"
        case Position():
            return "a position"
        case ShiftedPosition():
            return "a shifted position"
        case PositionMethod():
            return f"the function pos.{value.name}"
        case FragmentMethod():
            return f"the method {value.name} of a fragment"
        case _:
            return f"a value of type {spelled(value.type)}"


def spelled(type: t.Type) -> str:
    """A type as users write it: numbers by their short names, vectors and arrays in full."""
    match type:
        case t.Vector():
            return f"td.vec{type.count}[td.{type.element}]"
        case t.Struct() if (shape := t.matrix_shape(type)) is not None:
            row = type.fields[0].type
            assert isinstance(row, t.Vector)
            return f"td.mat{shape[0]}x{shape[1]}[td.{row.element}]"
        case t.Array():
            inner = spelled(type.element)
            return f"{inner if '.' in inner else 'td.' + inner}[{type.length}]"
    return str(type)


def contains_array(type: t.Type) -> bool:
    """Whether a type contains a fixed array, so that its values live in memory only."""
    match type:
        case t.Array():
            return True
        case t.Struct():
            return any(contains_array(field.type) for field in type.fields)
        case _:
            return False
