"""Between which numbers each integer variable stays, from the moment it is declared."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.passes.bounds import CheckDropper
from treadle.ir.passes.range_expressions import is_integer, type_range
from treadle.ir.passes.ranges import State, Sum, number

Range = tuple[int, int]


def variable_ranges(kernel: n.Kernel, threads: Dim3 | None = None) -> dict[str, Range]:
    """For the kernel's own variables: the least and the greatest number that each may hold. The
    bounds of a `for` loop count as numbers that its variable holds. What is known is what
    `passes.bounds` knows. `threads` are what `thread_idx` counts where that is not the block."""
    recorder = _Recorder(kernel, threads or kernel.block)
    recorder.block(kernel.body, recorder.start)
    return recorder.ranges


def function_ranges(
    kernel: n.Kernel, function: n.Function, threads: Dim3 | None = None
) -> dict[str, Range]:
    """The same for the variables of one of the kernel's functions."""
    return variable_ranges(replace(kernel, parameters=(), body=function.body), threads)


class _Recorder(CheckDropper):
    """Walks the kernel as the pass that drops checks does, and records the range of each
    assignment. A loop is walked several times, with fewer assumptions each time: the ranges of all
    walks are united, so the result holds for the last one."""

    def __init__(self, kernel: n.Kernel, counted: Dim3 | None) -> None:
        super().__init__(kernel)
        self.asked = kernel.block
        self.counted = counted
        self.ranges: dict[str, Range] = {}

    def builtin(self, node: n.Builtin) -> Sum:
        # The bound on the number of blocks follows from the block of the launch.
        self.threads = self.counted if node.name == "thread_idx" else self.asked
        return super().builtin(node)

    def note(self, variable: n.Variable, value: Sum, state: State) -> None:
        if state.impossible:
            return
        low, high = self.knowledge.low(value, state), self.knowledge.high(value, state)
        known = self.ranges.get(variable.name, (low, high))
        self.ranges[variable.name] = min(low, known[0]), max(high, known[1])

    def statement(self, node: n.Statement, state: State) -> tuple[n.Statement, State | None]:
        result = super().statement(node, state)
        if isinstance(node, n.Receiving):
            filled = node.result
            if filled is not None and is_integer(filled.type):
                self.ranges[filled.name] = type_range(filled.type)
        return result

    def assignment(
        self, node: n.Declare | n.Assign, state: State
    ) -> tuple[n.Statement, State | None]:
        result = super().assignment(node, state)
        target = node.variable if isinstance(node, n.Declare) else node.place
        if isinstance(target, n.Variable) and is_integer(target.type):
            value = number(0) if node.value is None else state.values[target.name]
            self.note(target, value, state)
        return result

    def counter(self, node: n.For, start: Sum, stop: Sum, state: State) -> Sum:
        for bound in (start, stop):
            self.note(node.variable, bound, state)
        return super().counter(node, start, stop, state)
