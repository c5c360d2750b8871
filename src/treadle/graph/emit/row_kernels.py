"""The kernels of a reducing program: its passes, in terms of a `Walk`.

A row is done whole by one block (or a few rows are), or in parts, where a row is long and there are
few: then each pass is one kernel that leaves a state for each part, and one that joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from treadle.graph.emit.body import Body, cast, type_named
from treadle.graph.emit.combine import Reduction, State, finished, state_of
from treadle.graph.emit.row_analysis import (
    RowAnalysis,
    Saved,
    Scratch,
    cost,
    needed,
    online,
    row_analysis,
    scratch_of,
    steady,
    wanted_in,
)
from treadle.graph.emit.row_blocks import Blocks, HeldBlocks
from treadle.graph.emit.row_loops import ColumnLoops, RowLoops
from treadle.graph.emit.row_walk import (
    ROW,
    Axes,
    Done,
    Known,
    Neighbours,
    RowVariant,
    Spot,
    Walk,
    product,
)
from treadle.graph.program import NEXT, Phase, Program, Style
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.types import COMPONENTS, Scalar, Vector, size_of


def emit_rows(program: Program, variant: RowVariant) -> n.Kernel:
    """The kernel of one of the stages that `row_strategy` plans."""
    return _Passes(online(program) if variant.online else program, variant).kernel()


def _walk_of(body: Body, variant: RowVariant) -> Walk:
    if body.program.style == Style.THREADS:
        return HeldBlocks(body, variant) if variant.held else Blocks(body, variant)
    return (
        RowLoops(body, variant)
        if variant.along == Neighbours.ELEMENTS
        else ColumnLoops(body, variant)
    )


_ENOUGH_REGISTERS = 64
_SHORT = 24  # the cost of an expression beside an addition
_WORD = 4


class _Passes:
    def __init__(self, program: Program, variant: RowVariant) -> None:
        self.program = program
        self.variant = variant
        self.analysis: RowAnalysis = row_analysis(program)
        self.body = Body(program)
        self.scratch: Scratch | None = None
        self.held: dict[int, Known] = {}  # of a thread's elements
        self.rows: n.Expression = ir.constant(1, self.body.index_type)
        if variant.phase != Phase.WHOLE:
            self._add_scratch()
        self.walk = _walk_of(self.body, variant)

    def _add_scratch(self) -> None:
        body, b = self.body, self.body.builder
        self.scratch = scratch_of(self.program)
        first = len(body.buffers)
        for k, name in enumerate(self.scratch.names):
            body.buffers.append(b.buffer(f"a{first + k}", type_named(name)))
        for k in range(self.program.integers, self.program.integers + 2):
            body.integers.append(b.parameter(f"n{k}", body.index_type))
        self.rows = body.let("rows", product(body, body.extents[: self.program.kept]))

    def kernel(self) -> n.Kernel:
        """The kernel of this variant."""
        _KERNELS[self.variant.phase](self)
        return replace(self.body.kernel(), registers=self._enough_registers())

    def _enough_registers(self) -> int:
        """Those of a thread that holds elements, which take half of them (`row_strategy`). Long
        expressions, and numbers of 64 bits, have intermediate results that take more."""
        varying = self.analysis.varying
        wide = any(size_of(type_named(self.program.steps[step].type)) > _WORD for step in varying)
        short = not wide and cost(self.program, varying) <= _SHORT
        return _ENOUGH_REGISTERS if self.variant.held and short else 0

    # --- what the kernels do ---

    def _whole(self) -> None:
        for number in range(len(self.analysis.passes)):
            self._settle(number)
            self._reduce(number, partial(self._remember_results, number))
        self._store_each()
        self._store_once()

    def _part(self) -> None:
        self._recall(self.variant.number)
        self._settle(self.variant.number)
        self._reduce(self.variant.number, partial(self._leave_states, self.variant.number))

    def _join(self) -> None:
        number = self.variant.number
        reductions = self.analysis.passes[number]
        parts = self.body.integers[self.program.integers]

        def visit(spots: Sequence[Spot], known: Known) -> list[list[State]]:
            row = known[ROW]
            return [
                [
                    tuple(
                        cast(ir.load(*self._state(r, k, row, spot.number)), part)
                        for k, part in enumerate(r.parts)
                    )
                    for r in reductions
                ]
                for spot in spots
            ]

        self.walk.reduce(
            reductions, Axes((parts,), parts), visit, partial(self._leave_results, number)
        )
        if number == len(self.analysis.passes) - 1:
            self._recall(number)
            self._store_once()

    def _last(self) -> None:
        self._recall(len(self.analysis.passes))
        self._store_each()

    # --- parts of kernels ---

    def _settle(self, number: int) -> None:
        """Compute what is one value for a row and needed for each of its elements."""
        steps = steady(self.program, self.analysis, wanted_in(self.analysis, number))
        if not steps:
            return
        with self.walk.each_row() as (point, _, known):
            new = [step for step in steps if step not in known]
            values = self.body.evaluate(point, new, known)
            for step in new:
                self.walk.remember(step, values[step])

    def _reduce(self, number: int, done: Done) -> None:
        reductions = self.analysis.passes[number]

        def visit(spots: Sequence[Spot], known: Known) -> list[list[State]]:
            found = self._values(spots, known, number)
            return [
                [state_of(r, values[r.source], spot.number) for r in reductions]
                for spot, values in zip(spots, found, strict=True)
            ]

        self.walk.reduce(reductions, self._axes(), visit, done)

    def _axes(self) -> Axes:
        body = self.body
        extents = tuple(body.extents[self.program.kept :])
        if self.variant.lanes > 1:
            last = body.let("groups", ir.binary("floordiv", extents[-1], self.variant.lanes))
            extents = (*extents[:-1], last)
        return Axes(extents, body.let("total", product(body, extents)))

    def _store_each(self) -> None:
        analysis = self.analysis
        if not analysis.each:
            return
        number = len(analysis.passes)
        self._settle(number)

        def store(spots: Sequence[Spot], known: Known) -> None:
            found = self._values(spots, known, number)
            for output in analysis.each:
                self._put(output.access, spots, [values[output.step] for values in found])

        self.walk.for_each(self._axes(), store)

    def _store_once(self) -> None:
        outputs = self.analysis.once
        if not outputs:
            return
        with self.walk.each_row() as (point, _, known), self._owner():
            values = self.body.evaluate(point, [output.step for output in outputs], known)
            for output in outputs:
                self.body.store(output.access, point, values[output.step])

    @contextmanager
    def _owner(self) -> Iterator[None]:
        owned = self.walk.owned()
        if owned is None:
            yield
            return
        with self.body.builder.when(owned):
            yield

    def _values(self, spots: Sequence[Spot], known: Known, number: int) -> list[Known]:
        """The values that a pass wants, at each spot; what lies in memory is loaded first."""
        program, analysis, body = self.program, self.analysis, self.body
        wanted = wanted_in(analysis, number)
        each: list[Known] = [{**known, **self.held.get(spot.slot, {})} for spot in spots]
        for saved in analysis.saved:
            if saved.first < number and saved.step in needed(program, wanted, known):
                for spot, values in zip(spots, each, strict=True):
                    values[saved.step] = body.let("v", body.load(saved.output.access, spot.point))
        steps = needed(program, wanted, each[0])
        loaded = self._loads(steps, spots)
        kept = [s for s in analysis.saved if s.first == number and s.step in steps]
        wanted = [*wanted, *(s.step for s in kept)]
        for k, spot in enumerate(spots):
            each[k] = body.evaluate(spot.point, wanted, each[k], loaded[k])
            self._save(kept, spot, each[k])
            self._hold(number, spot, each[k])
        return each

    def _hold(self, number: int, spot: Spot, values: Known) -> None:
        if self.variant.held and number < len(self.analysis.passes):
            here = self.held.setdefault(spot.slot, {})
            here |= {step: values[step] for step in self.analysis.held[number]}

    def _save(self, kept: Sequence[Saved], spot: Spot, values: Known) -> None:
        for saved in kept:
            self.body.store(saved.output.access, spot.point, values[saved.step])

    def _loads(self, steps: Sequence[int], spots: Sequence[Spot]) -> list[Known]:
        """What the steps' accesses hold at each spot, side by side ones loaded together."""
        body = self.body
        found: list[Known] = [{} for _ in spots]
        accesses = {
            self.program.steps[step].detail
            for step in steps
            if self.program.steps[step].op == "load"
        }
        for number in sorted(accesses):
            assert isinstance(number, int)
            if not self._is_together(number):
                for k, spot in enumerate(spots):
                    found[k][number] = body.let("v", body.load(number, spot.point))
                continue
            for first in range(0, len(spots), self.variant.lanes):
                vector = body.let("w", ir.load(self._wide_place(number, spots[first])))
                for lane in range(self.variant.lanes):
                    found[first + lane][number] = ir.extract(vector, COMPONENTS[lane])
        return found

    def _is_together(self, access: int) -> bool:
        axes = self.program.accesses[access].axes
        return self.variant.lanes > 1 and bool(axes) and axes[-1] == NEXT

    def _wide_place(self, access: int, spot: Spot) -> n.Element:
        memory = self.body.buffers[self.program.accesses[access].buffer]
        assert isinstance(memory.element, Scalar)
        lanes = self.variant.lanes
        start = ir.binary("floordiv", self.body.place(access, spot.point), lanes)
        return ir.element(memory, start, type=Vector(memory.element, lanes))

    def _put(self, access: int, spots: Sequence[Spot], values: Sequence[n.Expression]) -> None:
        if not self._is_together(access):
            for spot, value in zip(spots, values, strict=True):
                self.body.store(access, spot.point, value)
            return
        for first in range(0, len(spots), self.variant.lanes):
            place = self._wide_place(access, spots[first])
            parts = tuple(values[first : first + self.variant.lanes])
            self.body.builder.assign(place, n.Construct(parts, place.type))

    # --- results and states ---

    def _remember_results(self, number: int, states: list[State], row: n.Expression) -> None:
        for reduction, state in zip(self.analysis.passes[number], states, strict=True):
            self.walk.remember(reduction.step, finished(reduction, state))

    def _leave_states(self, number: int, states: list[State], row: n.Expression) -> None:
        part = cast(ir.builtin("block_idx", 1), self.body.index_type)
        with self._owner():
            for reduction, state in zip(self.analysis.passes[number], states, strict=True):
                for k, value in enumerate(state):
                    memory, place = self._state(reduction, k, row, part)
                    self.body.builder.store(memory, place, cast(value, memory.element))

    def _leave_results(self, number: int, states: list[State], row: n.Expression) -> None:
        self._remember_results(number, states, row)
        with self._owner():
            for reduction, state in zip(self.analysis.passes[number], states, strict=True):
                memory, place = self._result(reduction, row)
                value = cast(finished(reduction, state), memory.element)
                self.body.builder.store(memory, place, value)

    def _recall(self, number: int) -> None:
        """Read the results of earlier passes."""
        earlier = [r for group in self.analysis.passes[:number] for r in group]
        if not earlier:
            return
        with self.walk.each_row() as (_, row, _known):
            for reduction in earlier:
                self.walk.remember(
                    reduction.step, cast(ir.load(*self._result(reduction, row)), reduction.result)
                )

    def _result(self, reduction: Reduction, row: n.Expression) -> tuple[n.Buffer, n.Expression]:
        assert self.scratch is not None
        buffer, number = self.scratch.results[reduction.step]
        memory = self.body.buffers[len(self.program.buffers) + buffer]
        return memory, ir.add(ir.mul(self.rows, number), row)

    def _state(
        self, reduction: Reduction, part: int, row: n.Expression, share: n.Expression
    ) -> tuple[n.Buffer, n.Expression]:
        """Where a part of a state is: the shares of a row lie side by side, or rows do."""
        assert self.scratch is not None
        buffer, number = self.scratch.states[reduction.step, part]
        memory = self.body.buffers[len(self.program.buffers) + buffer]
        results = self.scratch.counts[buffer][0]
        shares = self.body.integers[self.program.integers]
        if self.variant.along == Neighbours.ELEMENTS:
            place = ir.add(ir.mul(ir.add(ir.mul(self.rows, number), row), shares), share)
        else:
            place = ir.add(ir.mul(ir.add(ir.mul(shares, number), share), self.rows), row)
        return memory, ir.add(ir.mul(self.rows, results), place)


_KERNELS: dict[Phase, Callable[[_Passes], None]] = {
    Phase.WHOLE: _Passes._whole,
    Phase.PART: _Passes._part,
    Phase.JOIN: _Passes._join,
    Phase.LAST: _Passes._last,
}
