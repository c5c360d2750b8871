"""Expressions as sums of unknowns, and conditions as the facts that hold when true or false."""

from __future__ import annotations

from typing import Any

from treadle.core.dim3 import Dim3
from treadle.core.limits import MOST_NARROW
from treadle.ir import nodes as n
from treadle.ir.arithmetic import highest, lowest
from treadle.ir.passes.ranges import (
    NEVER,
    NOTHING,
    Condition,
    Knowledge,
    State,
    Sum,
    is_condition,
    minus,
    number,
    plus,
    times,
    unknown,
)
from treadle.ir.types import I32, Scalar, Type

_EXTENTS = frozenset({"size", "shape", "threads", "grid", "length"})  # parameters never below 0
_MOST_THREADS = (1 << 31) - 1  # in one direction of a grid: a launch of more is refused
_MOST_LANES = 128


def type_range(type: Type) -> tuple[int, int]:
    """The least and greatest value of an integer type or bool."""
    assert isinstance(type, Scalar)
    return (0, 1) if type.kind == "bool" else (lowest(type), highest(type))


def is_integer(type: Type) -> bool:
    """Whether values of a type are followed here."""
    return isinstance(type, Scalar) and type.is_integer


class Evaluator:
    """Turns expressions into sums and conditions, in a given state."""

    def __init__(self, kernel: n.Kernel) -> None:
        self.knowledge = Knowledge()
        self.threads: Dim3 | None = kernel.block
        self.start = State()
        for parameter in kernel.parameters:
            if is_integer(parameter.type):
                low, high = type_range(parameter.type)
                if parameter.origin and parameter.origin[0] in _EXTENTS:
                    low = 0
                if parameter.origin[:1] == ("grid",) and kernel.block is not None:
                    low, high = 1, _MOST_THREADS // kernel.block[int(parameter.origin[1])]
                if parameter.type == I32 and parameter.origin[:1] in (("size",), ("shape",)):
                    high = MOST_NARROW - 1
                self.start.values[parameter.name] = unknown(self.knowledge.new(low, high))

    def fresh(self, type: Type) -> Sum:
        """A value of which nothing is known but its type."""
        return unknown(self.knowledge.new(*type_range(type)))

    # --- sums ---

    def sum(self, node: n.Expression, state: State) -> Sum:
        """The value of an integer (or bool) expression."""
        match node:
            case n.Constant():
                return number(int(node.value))
            case n.Variable() if is_integer(node.type):
                value = state.values.get(node.name)
                if value is None:
                    value = state.values[node.name] = self.fresh(node.type)
                return value
            case n.Builtin():
                return self.builtin(node)
            case n.Binary() if is_integer(node.type):
                return self.binary(node, state)
            case n.Unary(op="neg") if is_integer(node.type):
                return self.fitted(times(-1, self.sum(node.operand, state)), node.type, state)
            case n.Cast():
                return self.cast(node, state)
            case n.Select() if is_integer(node.type):
                true, false = self.condition(node.condition, state)
                return self.one_of(
                    [
                        self.branch(node.if_true, true, state),
                        self.branch(node.if_false, false, state),
                    ],
                    state,
                )
            case n.Intrinsic() if is_integer(node.type):
                return self.intrinsic(node, state)
        return self.fresh(node.type)

    def branch(self, node: n.Expression, facts: tuple[Sum, ...], state: State) -> Any:
        inside = self.knowledge.assume(facts, state.copy())
        return inside, self.sum(node, inside)

    def fitted(self, value: Sum, type: Type, state: State) -> Sum:
        """The result of arithmetic: the sum itself if it cannot wrap, else an unknown."""
        low, high = type_range(type)
        if low <= self.knowledge.low(value, state) and self.knowledge.high(value, state) <= high:
            return value
        return unknown(self.knowledge.same(("wrapped", value, type), low, high))

    def one_of(self, cases: list[tuple[State, Sum]], state: State) -> Sum:
        """A value that is one of several, each with what is true in its case."""
        possible = [case for case in cases if not case[0].impossible]
        if len(possible) == 1:
            return possible[0][1]
        if not possible:
            return cases[0][1]
        return self.knowledge.one_of(possible, state)

    def builtin(self, node: n.Builtin) -> Sum:
        name, axis = node.name, node.axis
        threads = None if self.threads is None else self.threads[axis]
        if name == "block_dim" and threads is not None:
            return number(threads)
        blocks = _MOST_THREADS // (threads or 1)
        most = _MOST_LANES if name in ("lane", "subgroup_size") else _MOST_THREADS
        ranges = {
            "thread_idx": (0, (threads or most) - 1),
            "block_dim": (1, most),
            "block_idx": (0, blocks - 1),
            "grid_dim": (1, blocks),
            "lane": (0, most - 1),
            "subgroup_size": (1, most),
        }
        own = self.knowledge.same((name, axis), *ranges[name])
        extent = {"thread_idx": "block_dim", "block_idx": "grid_dim", "lane": "subgroup_size"}
        if name in extent and not (name == "thread_idx" and threads is not None):
            whole = unknown(self.knowledge.same((extent[name], axis), *ranges[extent[name]]))
            self.knowledge.always(plus(minus(whole, unknown(own)), number(-1)))
        return unknown(own)

    def binary(self, node: n.Binary, state: State) -> Sum:
        left, right = self.sum(node.left, state), self.sum(node.right, state)
        type, op = node.type, node.op
        if op == "add":
            return self.fitted(plus(left, right), type, state)
        if op == "sub":
            return self.fitted(minus(left, right), type, state)
        if op == "shl" and not right[1] and 0 <= right[0] < type_range(type)[1].bit_length():
            op, right = "mul", number(1 << right[0])
        if op == "mul" and not left[1]:
            left, right = right, left
        if op == "mul" and not right[1]:
            return self.fitted(times(right[0], left), type, state)
        if op == "shr" and not right[1] and 0 <= right[0] < type_range(type)[1].bit_length():
            op, right = "floordiv", number(1 << right[0])
        name = self.knowledge.same((op, left, right, type), *type_range(type))
        rule = _RULES.get(op)
        if rule is not None:
            rule(self.knowledge, name, left, right, state)
        return unknown(name)

    def cast(self, node: n.Cast, state: State) -> Sum:
        source = node.operand.type
        if not isinstance(source, Scalar) or source.is_float or not is_integer(node.type):
            return self.fresh(node.type)
        if source.kind == "bool":
            return unknown(self.knowledge.new(0, 1))
        return self.fitted(self.sum(node.operand, state), node.type, state)

    def intrinsic(self, node: n.Intrinsic, state: State) -> Sum:
        operands = node.operands
        if node.op in ("min", "max"):
            left, right = (self.sum(operand, state) for operand in operands)
            sign = 1 if node.op == "min" else -1
            less, more = times(sign, minus(right, left)), times(sign, minus(left, right))
            inside = self.knowledge.assume((less,), state.copy())
            outside = self.knowledge.assume((more,), state.copy())
            result = self.one_of([(inside, left), (outside, right)], state)
            bounds = [times(sign, minus(operand, result)) for operand in (left, right)]
            self.knowledge.assume(bounds, state)  # no more (or less) than either
            return result
        if node.op in ("popcount", "clz", "ctz"):
            operand_type = operands[0].type
            assert isinstance(operand_type, Scalar)
            return unknown(self.knowledge.new(0, operand_type.bits))
        return self.fresh(node.type)

    # --- conditions ---

    def condition(self, node: n.Expression, state: State) -> Condition:
        """The facts that hold if a condition is true, and if it is false."""
        match node:
            case n.Constant():
                return ((), (NEVER,)) if node.value else ((NEVER,), ())
            case n.Variable():
                value = state.values.get(node.name, NOTHING)
                return value if is_condition(value) else NOTHING
            case n.Unary(op="not"):
                true, false = self.condition(node.operand, state)
                return false, true
            case n.Binary(op="logical_and" | "and"):
                first, second = self.both(node, state, node.op == "logical_and", True)
                return first[0] + second[0], ()
            case n.Binary(op="logical_or" | "or"):
                first, second = self.both(node, state, node.op == "logical_or", False)
                return (), first[1] + second[1]
            case n.Binary() if node.op in n.COMPARISONS and is_integer(node.left.type):
                left, right = self.sum(node.left, state), self.sum(node.right, state)
                return self.comparison(node.op, left, right, state)
        return NOTHING

    def both(
        self, node: n.Binary, state: State, lazily: bool, when: bool
    ) -> tuple[Condition, Condition]:
        """The conditions of an `and` (or `or`); evaluated lazily, the right one knows the left."""
        left = self.condition(node.left, state)
        inside = state
        if lazily:
            inside = self.knowledge.assume(left[0] if when else left[1], state.copy())
        return left, self.condition(node.right, inside)

    def comparison(self, op: str, left: Sum, right: Sum, state: State) -> Condition:
        above = minus(right, left)  # at least 0: left <= right
        below = minus(left, right)
        strictly_above, strictly_below = plus(above, number(-1)), plus(below, number(-1))
        if op in ("eq", "ne"):
            unequal: tuple[Sum, ...] = ()
            if self.knowledge.low(above, state) >= 0:
                unequal = (strictly_above,)
            elif self.knowledge.low(below, state) >= 0:
                unequal = (strictly_below,)
            equal = (above, below)
            return (equal, unequal) if op == "eq" else (unequal, equal)
        return {
            "lt": ((strictly_above,), (below,)),
            "le": ((above,), (strictly_below,)),
            "gt": ((strictly_below,), (above,)),
            "ge": ((below,), (strictly_above,)),
        }[op]


# --- what is known of results that are not sums --------------------------------------------------


def _product(known: Knowledge, name: int, left: Sum, right: Sum, state: State) -> None:
    corners = [
        a * b
        for a in (known.low(left, state), known.high(left, state))
        for b in (known.low(right, state), known.high(right, state))
    ]
    _limit_if_it_fits(known, name, min(corners), max(corners), state)


def _limit_if_it_fits(known: Knowledge, name: int, low: int, high: int, state: State) -> None:
    """Limit a result to a range, unless the range shows that it may wrap."""
    base = known.ranges[name]
    if base[0] <= low and high <= base[1]:
        known.limit(name, low, high, state)


def _floor_division(known: Knowledge, name: int, left: Sum, right: Sum, state: State) -> None:
    low, high = known.low(left, state), known.high(left, state)
    if right[1]:
        if low >= 0 and known.holds(plus(right, number(-1)), state):
            known.limit(name, 0, high, state)
            known.assume((minus(left, unknown(name)),), state)
        return
    divisor = right[0]
    if divisor > 0:
        known.limit(name, low // divisor, high // divisor, state)
        remainder = plus(left, unknown(name), -divisor)
        known.always(remainder)
        known.always(minus(number(divisor - 1), remainder))


def _division(known: Knowledge, name: int, left: Sum, right: Sum, state: State) -> None:
    if known.low(left, state) >= 0:
        low = known.low(left, state)
        if right[1]:
            _floor_division(known, name, left, right, state)
        elif right[0] > 0:
            # Rounding down only where the dividend is not negative: true here, not everywhere.
            known.limit(name, low // right[0], known.high(left, state) // right[0], state)
            remainder = plus(left, unknown(name), -right[0])
            known.assume((remainder, minus(number(right[0] - 1), remainder)), state)


def _modulo(known: Knowledge, name: int, left: Sum, right: Sum, state: State) -> None:
    divisor_low = known.low(right, state)
    if divisor_low >= 0:  # a divisor of 0 gives 0
        known.limit(name, 0, max(known.high(right, state) - 1, 0), state)
    if known.holds(plus(right, number(-1)), state):
        known.limit(name, 0, known.high(right, state) - 1, state)
        known.assume((plus(minus(right, unknown(name)), number(-1)),), state)
    if divisor_low >= 0 and known.low(left, state) >= 0:
        known.limit(name, 0, known.high(left, state), state)
        known.assume((minus(left, unknown(name)),), state)


def _remainder(known: Knowledge, name: int, left: Sum, right: Sum, state: State) -> None:
    if known.low(left, state) >= 0:
        _modulo(known, name, left, right, state)


def _and(known: Knowledge, name: int, left: Sum, right: Sum, state: State) -> None:
    for operand in (left, right):
        if known.low(operand, state) >= 0:
            known.limit(name, 0, known.high(operand, state), state)
            known.assume((minus(operand, unknown(name)),), state)


def _or(known: Knowledge, name: int, left: Sum, right: Sum, state: State) -> None:
    if known.low(left, state) >= 0 and known.low(right, state) >= 0:
        bits = max(known.high(left, state), known.high(right, state)).bit_length()
        known.limit(name, 0, (1 << bits) - 1, state)


def _shift_left(known: Knowledge, name: int, left: Sum, right: Sum, state: State) -> None:
    low, high = known.low(right, state), known.high(right, state)
    least, most = known.low(left, state), known.high(left, state)
    if 0 <= low <= high < 64 and least >= 0 and most << high <= known.ranges[name][1]:
        known.limit(name, least << low, most << high, state)


def _shift_right(known: Knowledge, name: int, left: Sum, right: Sum, state: State) -> None:
    if known.low(left, state) >= 0:  # whatever the shift: too far gives 0
        known.limit(name, 0, known.high(left, state), state)
        known.assume((minus(left, unknown(name)),), state)


_RULES = {
    "mul": _product,
    "floordiv": _floor_division,
    "div": _division,
    "mod": _modulo,
    "rem": _remainder,
    "and": _and,
    "or": _or,
    "xor": _or,
    "shl": _shift_left,
    "shr": _shift_right,
}
