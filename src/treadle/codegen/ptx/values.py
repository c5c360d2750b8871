"""Values while they are printed: every vector and struct is the tuple of its scalars."""

from __future__ import annotations

from treadle.codegen.leaves import leaf_types
from treadle.codegen.ptx.emitter import Emitter
from treadle.codegen.ptx.spelling import MOVES, REGISTERS, constant
from treadle.ir.intervals import Interval
from treadle.ir.types import Scalar, Type


class Value:
    """The operands of a value's scalars, in memory order; bounds of an integer, if known."""

    __slots__ = ("interval", "leaves")

    def __init__(self, leaves: tuple[str, ...], interval: Interval | None = None) -> None:
        self.leaves = leaves
        self.interval = interval


def number(e: Emitter, type: Scalar, value: bool | int | float) -> str:
    """A number as an operand: in a register, for types that have no immediates."""
    text = constant(type, value)
    kind = REGISTERS[type.name]
    return e.op(kind, MOVES[kind], text) if kind in ("pred", "b16") else text


def zero(e: Emitter, type: Type) -> Value:
    """The zero of any type."""
    return Value(tuple(number(e, scalar, 0) for scalar in leaf_types(type)))
