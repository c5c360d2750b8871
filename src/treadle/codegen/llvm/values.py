"""Values while they are printed: every vector and struct is the tuple of its scalars.

LLVM vectorizes loops over scalars; it does not vectorize what is a vector already. So a float4 is
four scalars, in memory order, and they form one value only in memory.
"""

from __future__ import annotations

from treadle.codegen.leaves import leaf_types
from treadle.codegen.llvm.spelling import constant
from treadle.ir.intervals import Interval
from treadle.ir.types import Type


class Value:
    """The operands of a value's leaves.

    `width` is 1, or the lanes that differ. `interval` bounds an integer, if known. `linear`, for an
    integer in lanes, is its value in lane 0 (a scalar operand) and the step from lane to lane.
    `whole`: lane 0's value is a multiple of the number of lanes.
    """

    __slots__ = ("interval", "leaves", "linear", "whole", "width")

    def __init__(
        self,
        leaves: tuple[str, ...],
        width: int = 1,
        interval: Interval | None = None,
        linear: tuple[str, int] | None = None,
        whole: bool = False,
    ) -> None:
        self.leaves = leaves
        self.width = width
        self.interval = interval
        self.linear = linear
        self.whole = whole


def zero(type: Type) -> Value:
    """The zero of any type."""
    return Value(tuple(constant(scalar, 0) for scalar in leaf_types(type)))
