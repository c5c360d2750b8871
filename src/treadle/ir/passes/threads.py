"""Which threads of a block a hardware lane runs, and the loops that run them.

One lane: nested loops over z, y and x. Several: lane l runs the threads l, l + lanes, … so that
neighbouring lanes still access neighbouring memory; if there are warp operations, whole warps in
the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.passes.narrow import narrow
from treadle.ir.passes.regions import names_in
from treadle.ir.types import BOOL, I32

AXES = "xyz"
HARDWARE_LANE = n.Builtin("thread_idx", 0)


def number(value: int) -> n.Constant:
    """An i32 constant."""
    return n.Constant(value, I32)


def arithmetic(op: str, left: n.Expression, right: n.Expression) -> n.Expression:
    """`left op right` in i32, with zeros and ones left out."""
    if isinstance(left, n.Constant) and isinstance(right, n.Constant) and op in _FOLDED:
        return number(_FOLDED[op](int(left.value), int(right.value)))
    if right == number(_NEUTRAL.get(op, -1)):
        return left
    if op in ("add", "mul") and left == number(_NEUTRAL[op]):
        return right
    if op == "mul" and number(0) in (left, right):
        return number(0)
    if op == "rem" and right == number(1):
        return number(0)
    return n.Binary(op, left, right, I32)


_FOLDED: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
}
_NEUTRAL = {"add": 0, "mul": 1, "div": 1}


@dataclass(frozen=True, slots=True)
class Place:
    """A thread in terms of loop variables: where it is and where its values lie."""

    coordinates: tuple[n.Expression, n.Expression, n.Expression]
    lane: n.Expression
    slot: n.Expression  # in arrays with a slot for each thread of the hardware lane
    count: n.Expression = field(default_factory=lambda: number(0))  # lanes of its warp

    def builtin(self, node: n.Builtin) -> n.Expression:
        """What a builtin is in this thread."""
        if node.name == "thread_idx":
            return _as(self.coordinates[node.axis], node)
        if node.name == "lane":
            return _as(self.lane, node)
        return node


def _as(value: n.Expression, node: n.Builtin) -> n.Expression:
    return value if node.type == I32 else n.Cast(value, node.type, node.span)


@dataclass(frozen=True, slots=True)
class Each:
    """A loop over threads, waiting for its body."""

    place: Place
    derived: tuple[n.Declare, ...]  # what the body may name; each may use those before it
    wrap: Callable[[n.Block], list[n.Statement]]

    def loop(self, body: n.Block) -> list[n.Statement]:
        """The loop around a body that was written in terms of `place`."""
        needed = list(body)
        for declare in reversed(self.derived):
            if declare.variable.name in names_in(needed):
                needed.insert(0, declare)
        return self.wrap(tuple(needed))


class Threads:
    """The division of a block among hardware lanes."""

    def __init__(
        self, block: Dim3, lanes: int, width: int, whole_warps: bool, names: Names
    ) -> None:
        self.block = block
        self.width = width
        self.names = names
        self.whole_warps = whole_warps
        units = -(-block.count // width) if whole_warps else block.count
        self.units = units  # warps or threads
        self.iterations = -(-units // lanes)  # units that one lane runs, one after another
        self.lanes = -(-units // self.iterations)
        self.slots = (
            block.count if self.lanes == 1 else self.iterations * (width if whole_warps else 1)
        )
        self._iteration_of: dict[str, n.Expression] = {}  # by the name of a warp's variable

    # --- the first thread of a lane or warp ---

    def first(self, warp: n.Variable | None) -> Place:
        """The first thread of a hardware lane, or of a warp."""
        if warp is None and self.lanes == 1:
            return Place((number(0), number(0), number(0)), number(0), number(0))
        if warp is None and not self.whole_warps:
            lane = n.Binary("rem", HARDWARE_LANE, number(self.width), I32)
            return Place(self._coordinates(HARDWARE_LANE), lane, number(0))
        start = arithmetic("mul", warp or HARDWARE_LANE, number(self.width))
        slot: n.Expression = number(0)
        if warp is not None:
            slot = arithmetic("mul", self._iteration_of[warp.name], number(self.width))
        count = number(0) if warp is None else self.count(warp)
        return Place(self._coordinates(start), number(0), slot, count)

    def count(self, warp: n.Variable) -> n.Expression:
        """The number of lanes of a warp: the block's last warp may have fewer."""
        total, width = self.block.count, self.width
        if total % width == 0 or self.units == 1:
            return number(min(total, width))
        left = n.Binary("sub", number(total), arithmetic("mul", warp, number(width)), I32)
        return n.Intrinsic("min", (number(width), left), I32)

    # --- loops ---

    def new_warp(self) -> n.Variable:
        """The variable of a loop over warps."""
        warp = n.Variable(self.names.fresh("warp"), I32)
        iteration: n.Expression = warp
        if self.lanes > 1:
            iteration = n.Variable(self.names.fresh("iteration"), I32)
        self._iteration_of[warp.name] = iteration
        return warp

    def over_warps(self, warp: n.Variable, body: n.Block) -> list[n.Statement]:
        """A loop over the warps that this lane runs. They share arrays, so they run in order."""
        iteration = self._iteration_of[warp.name]
        assert isinstance(iteration, n.Variable)
        if self.lanes > 1:
            body = tuple(self._strided(warp, iteration, body))
        if self.iterations == 1:
            return [n.Declare(iteration, number(0)), *body]
        return [n.For(iteration, number(0), number(self.iterations), 1, body)]

    def each(self, warp: n.Variable | None) -> Each:
        """A loop over the threads of a hardware lane, or over the lanes of a warp."""
        if warp is not None:
            return self._each_in_warp(warp)
        if self.lanes == 1:
            return self._each_in_block()
        if not self.whole_warps:
            return self._each_strided()
        warp = self.new_warp()
        inner = self._each_in_warp(warp)
        return Each(
            inner.place, inner.derived, lambda body: self.over_warps(warp, tuple(inner.wrap(body)))
        )

    def _each_in_block(self) -> Each:
        block = self.block
        variables = [n.Variable(self.names.fresh(f"thread.{axis}"), I32) for axis in AXES]
        x, y, z = (v if block[axis] > 1 else number(0) for axis, v in enumerate(variables))
        row = arithmetic("add", y, arithmetic("mul", z, number(block.y)))
        linear = arithmetic("add", x, arithmetic("mul", row, number(block.x)))
        derived: tuple[n.Declare, ...] = ()
        if not isinstance(linear, (n.Variable, n.Constant)):
            thread = n.Variable(self.names.fresh("thread"), I32)
            derived = (n.Declare(thread, linear),)
            linear = thread

        def wrap(body: n.Block) -> list[n.Statement]:
            if block.x > 1:
                narrowed = narrow(body, variables[0], block.x)
                body = (_parallel(variables[0], narrowed.stop, narrowed.body),)
                for condition in reversed(narrowed.before):
                    body = (n.If(condition, body),)
            for axis in (1, 2):
                if block[axis] > 1:
                    body = (_parallel(variables[axis], number(block[axis]), body),)
            return list(body)

        lane = arithmetic("rem", linear, number(self.width))
        return Each(Place((x, y, z), lane, linear), derived, wrap)

    def _each_strided(self) -> Each:
        iteration = n.Variable(self.names.fresh("iteration"), I32)
        thread = n.Variable(self.names.fresh("thread"), I32)
        coordinates, derived = self._derived(thread)

        def wrap(body: n.Block) -> list[n.Statement]:
            inside = self._strided(thread, iteration, body)
            if self.iterations == 1:
                return [n.Declare(iteration, number(0)), *inside]
            return [_parallel(iteration, number(self.iterations), tuple(inside))]

        lane = n.Binary("rem", thread, number(self.width), I32)
        return Each(Place(coordinates, lane, iteration), derived, wrap)

    def _each_in_warp(self, warp: n.Variable) -> Each:
        lane = n.Variable(self.names.fresh("lane"), I32)
        thread = n.Variable(self.names.fresh("thread"), I32)
        slot = n.Variable(self.names.fresh("slot"), I32)
        start = arithmetic("mul", warp, number(self.width))
        iteration = arithmetic("mul", self._iteration_of[warp.name], number(self.width))
        coordinates, derived = self._derived(thread)
        derived = (
            n.Declare(slot, arithmetic("add", iteration, lane)),
            n.Declare(thread, arithmetic("add", start, lane)),
            *derived,
        )
        count = self.count(warp)
        return Each(
            Place(coordinates, lane, slot, count),
            derived,
            lambda body: [_parallel(lane, count, body)],
        )

    def _strided(self, unit: n.Variable, iteration: n.Variable, body: n.Block) -> list[n.Statement]:
        """`body` for the thread or warp that a lane runs in an iteration, if there is one."""
        index = arithmetic("add", arithmetic("mul", iteration, number(self.lanes)), HARDWARE_LANE)
        if self.iterations * self.lanes != self.units:
            body = (n.If(n.Binary("lt", unit, number(self.units), BOOL), body),)
        return [n.Declare(unit, index), *body]

    # --- coordinates from the number of a thread ---

    def _coordinates(self, linear: n.Expression) -> tuple[n.Expression, n.Expression, n.Expression]:
        block = self.block
        x = linear if block.count == block.x else arithmetic("rem", linear, number(block.x))
        row = arithmetic("div", linear, number(block.x))
        y = row if block.z == 1 else arithmetic("rem", row, number(block.y))
        z = arithmetic("div", row, number(block.y))
        parts = (x, y, z)
        return (
            parts[0] if block.x > 1 else number(0),
            parts[1] if block.y > 1 else number(0),
            parts[2] if block.z > 1 else number(0),
        )

    def _derived(
        self, linear: n.Variable
    ) -> tuple[tuple[n.Expression, n.Expression, n.Expression], tuple[n.Declare, ...]]:
        """Coordinates as variables, with the declarations that they need."""
        declares: list[n.Declare] = []
        named: list[n.Expression] = []
        for axis, value in zip(AXES, self._coordinates(linear), strict=True):
            if isinstance(value, (n.Variable, n.Constant)):
                named.append(value)
                continue
            variable = n.Variable(self.names.fresh(f"thread.{axis}"), I32)
            declares.append(n.Declare(variable, value))
            named.append(variable)
        return (named[0], named[1], named[2]), tuple(declares)


def _parallel(variable: n.Variable, stop: n.Expression, body: n.Block) -> n.For:
    return n.For(variable, number(0), stop, 1, body, parallel=True)
