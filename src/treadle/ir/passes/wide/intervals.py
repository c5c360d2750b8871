"""Intervals of the integers in expressions."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.intervals import LARGEST_EXTENT, Interval, combine, extreme, union
from treadle.ir.passes.range_expressions import is_integer, type_range
from treadle.ir.types import I32, U32, Scalar


class Intervals:
    """The intervals of a function's expressions, given those of its variables."""

    def __init__(self, variables: Mapping[str, Interval], threads: Dim3 | None) -> None:
        self.variables = variables
        self.threads = threads
        # By identity; each entry holds its expression, so that the id is not reused.
        self.known: dict[int, tuple[n.Expression, Interval]] = {}

    def of(self, node: n.Expression) -> Interval:
        """Where the value of an integer (or bool) expression lies."""
        found = self.known.get(id(node))
        if found is None:
            found = self.known[id(node)] = node, self._find(node)
        return found[1]

    def word(self, node: n.Expression) -> Scalar | None:
        """The type of 32 bits that holds every value of an expression, if there is one: an i32 if
        both do."""
        low, high = self.of(node)
        return word_for(low, high)

    def common_word(self, *nodes: n.Expression) -> Scalar | None:
        """The type of 32 bits that holds every value of several expressions."""
        found = [self.of(node) for node in nodes]
        return word_for(min(low for low, _ in found), max(high for _, high in found))

    def _find(self, node: n.Expression) -> Interval:
        whole = type_range(node.type)
        exact = self._exact(node)
        if exact is None or exact[0] < whole[0] or exact[1] > whole[1]:
            return whole
        return exact

    def _exact(self, node: n.Expression) -> Interval | None:
        """Where the result would lie if nothing wrapped."""
        match node:
            case n.Constant():
                return int(node.value), int(node.value)
            case n.Variable():
                return self.variables.get(node.name)
            case n.Builtin():
                return self._builtin(node)
            case n.Cast() | n.Bitcast() if _is_counted(node.operand):
                return self.of(node.operand)
            case n.Select():
                return union(self.of(node.if_true), self.of(node.if_false))
            case n.Binary() if is_integer(node.left.type) and node.op not in n.COMPARISONS:
                return _binary(node.op, self.of(node.left), self.of(node.right))
            case n.Unary(op="neg"):
                low, high = self.of(node.operand)
                return -high, -low
            case n.Intrinsic(op="min" | "max"):
                return extreme(node.op, *(self.of(operand) for operand in node.operands))
        return None

    def _builtin(self, node: n.Builtin) -> Interval:
        if self.threads is not None and node.name == "thread_idx":
            return 0, self.threads[node.axis] - 1
        return 0, LARGEST_EXTENT


def _is_counted(node: n.Expression) -> bool:
    return isinstance(node.type, Scalar) and not node.type.is_float


def _binary(op: str, a: Interval, b: Interval) -> Interval | None:
    if op in ("rem", "mod") and b[0] > 0:
        most = b[1] - 1
        if op == "mod":
            return 0, most
        return -min(most, max(-a[0], 0)), min(most, max(a[1], 0))
    return combine(op, a, b)


def word_for(low: int, high: int) -> Scalar | None:
    """The type of 32 bits that holds an interval."""
    for type in (I32, U32):
        least, most = type_range(type)
        if least <= low and high <= most:
            return type
    return None
