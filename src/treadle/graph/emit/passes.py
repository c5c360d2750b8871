"""The kernels of a reducing program, in terms of a `Walk`: how a device goes over rows.

A row is done whole by one block (or a few rows are), or in parts, where a row is long and there are
few: then each pass is one kernel that leaves a state for each part, and one that joins them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal, NamedTuple

from treadle.graph.emit.body import Body, cast, type_named
from treadle.graph.emit.combine import Reduction, State, finished, state_of
from treadle.graph.emit.outline import (
    Outline,
    Saved,
    Scratch,
    needed,
    outline_of,
    scratch_of,
    steady,
    wanted_in,
)
from treadle.graph.program import NEXT, Program
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.types import COMPONENTS, Scalar, Vector

Work = Literal["whole", "part", "join", "last"]
Known = dict[int, n.Expression]  # values of steps that are one for a row
ROW = -1  # what a walk knows its row's number as


class Way(NamedTuple):
    """One kernel of a program. `number` is its pass. `along` says what neighbouring lanes or
    threads are: elements of a row, or rows. `rows` and `threads` are how many rows are done
    together and by how many threads each; `unroll` elements are under way at once in each, of
    `lanes` neighbours each. Of a row that is `held` in registers each thread has so many elements,
    or with `even` exactly so many. Threads of a `subgroup` exchange values, if it is not 0. The
    program is `online` before it is printed, if that is said."""

    work: Work
    along: Literal["row", "rows"]
    rows: int = 1
    threads: int = 1
    unroll: int = 1
    lanes: int = 1
    number: int = 0
    held: int = 0
    even: bool = False
    subgroup: int = 0
    online: bool = False


class Spot(NamedTuple):
    """An element: its indices along all loop axes, its number in the row, and, if a thread holds
    it, which of the thread's it is."""

    point: tuple[n.Expression, ...]
    number: n.Expression
    slot: int = -1


# States of the elements at some spots, given what is known of their row.
Visit = Callable[[Sequence[Spot], Known], list[list[State]]]
Done = Callable[[list[State], n.Expression], None]  # takes what became of a row, and its number


class Axes(NamedTuple):
    """What a walk goes over: the extents of a row's axes, and their product."""

    extents: tuple[n.Expression, ...]
    total: n.Expression


class Walk(ABC):
    """One way of going over rows."""

    def __init__(self, body: Body, way: Way) -> None:
        self.body = body
        self.way = way

    @abstractmethod
    @contextmanager
    def each_row(self) -> Iterator[tuple[tuple[n.Expression, ...], n.Expression, Known]]:
        """Statements for each row: its indices, its number, and what was kept of it."""

    @abstractmethod
    def keep(self, step: int, value: n.Expression) -> None:
        """Remember a value of a row, inside `each_row`."""

    @abstractmethod
    def owned(self) -> n.Expression | None:
        """Whether this thread is the one that writes for its row; None: it is."""

    @abstractmethod
    def gather(
        self,
        reductions: Sequence[Reduction],
        axes: Axes,
        visit: Visit,
        done: Done,
    ) -> None:
        """Reduce the elements that are this block's; `done` gets the states, inside `each_row`."""

    @abstractmethod
    def for_each(self, axes: Axes, store: Callable[[Sequence[Spot], Known], None]) -> None:
        """Do something for the elements that are this block's."""


def emit_passes(program: Program, way: Way, walk_of: Callable[[Body, Way], Walk]) -> n.Kernel:
    """The kernel of one way."""
    return _Passes(program, way, walk_of).kernel()


class _Passes:
    def __init__(self, program: Program, way: Way, walk_of: Callable[[Body, Way], Walk]) -> None:
        self.program = program
        self.way = way
        self.outline: Outline = outline_of(program)
        self.body = Body(program)
        self.scratch: Scratch | None = None
        self.held: dict[int, Known] = {}  # of a thread's elements
        self.rows: n.Expression = ir.constant(1, self.body.index_type)
        if way.work != "whole":
            self._add_scratch()
        self.walk = walk_of(self.body, way)

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
        """The kernel of this way."""
        getattr(self, f"_{self.way.work}")()
        return self.body.kernel()

    # --- what the kernels do ---

    def _whole(self) -> None:
        for number in range(len(self.outline.passes)):
            self._settle(number)
            self._gather(number, partial(self._keep_results, number))
        self._store_each()
        self._store_once()

    def _part(self) -> None:
        self._recall(self.way.number)
        self._settle(self.way.number)
        self._gather(self.way.number, partial(self._leave_states, self.way.number))

    def _join(self) -> None:
        number = self.way.number
        reductions = self.outline.passes[number]
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

        self.walk.gather(
            reductions, Axes((parts,), parts), visit, partial(self._leave_results, number)
        )
        if number == len(self.outline.passes) - 1:
            self._recall(number)
            self._store_once()

    def _last(self) -> None:
        self._recall(len(self.outline.passes))
        self._store_each()

    # --- pieces ---

    def _settle(self, number: int) -> None:
        """Compute what is one value for a row and needed for each of its elements."""
        steps = steady(self.program, self.outline, wanted_in(self.outline, number))
        if not steps:
            return
        with self.walk.each_row() as (point, _, known):
            new = [step for step in steps if step not in known]
            values = self.body.evaluate(point, new, known)
            for step in new:
                self.walk.keep(step, values[step])

    def _gather(self, number: int, done: Done) -> None:
        reductions = self.outline.passes[number]

        def visit(spots: Sequence[Spot], known: Known) -> list[list[State]]:
            found = self._values(spots, known, number)
            return [
                [state_of(r, values[r.source], spot.number) for r in reductions]
                for spot, values in zip(spots, found, strict=True)
            ]

        self.walk.gather(reductions, self._axes(), visit, done)

    def _axes(self) -> Axes:
        body = self.body
        extents = tuple(body.extents[self.program.kept :])
        if self.way.lanes > 1:
            last = body.let("groups", ir.binary("floordiv", extents[-1], self.way.lanes))
            extents = (*extents[:-1], last)
        return Axes(extents, body.let("total", product(body, extents)))

    def _store_each(self) -> None:
        outline = self.outline
        if not outline.each:
            return
        number = len(outline.passes)
        self._settle(number)

        def store(spots: Sequence[Spot], known: Known) -> None:
            found = self._values(spots, known, number)
            for output in outline.each:
                self._put(output.access, spots, [values[output.step] for values in found])

        self.walk.for_each(self._axes(), store)

    def _store_once(self) -> None:
        outputs = self.outline.once
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
        program, outline, body = self.program, self.outline, self.body
        wanted = wanted_in(outline, number)
        each: list[Known] = [{**known, **self.held.get(spot.slot, {})} for spot in spots]
        for saved in outline.saved:
            if saved.first < number and saved.step in needed(program, wanted, known):
                for spot, values in zip(spots, each, strict=True):
                    values[saved.step] = body.let("v", body.load(saved.output.access, spot.point))
        steps = needed(program, wanted, each[0])
        loaded = self._loads(steps, spots)
        kept = [s for s in outline.saved if s.first == number and s.step in steps]
        wanted = [*wanted, *(s.step for s in kept)]
        for k, spot in enumerate(spots):
            each[k] = body.evaluate(spot.point, wanted, each[k], loaded[k])
            self._save(kept, spot, each[k])
            self._hold(number, spot, each[k])
        return each

    def _hold(self, number: int, spot: Spot, values: Known) -> None:
        if self.way.held and number < len(self.outline.passes):
            here = self.held.setdefault(spot.slot, {})
            here |= {step: values[step] for step in self.outline.held[number]}

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
            for first in range(0, len(spots), self.way.lanes):
                vector = body.let("w", ir.load(self._wide_place(number, spots[first])))
                for lane in range(self.way.lanes):
                    found[first + lane][number] = ir.extract(vector, COMPONENTS[lane])
        return found

    def _is_together(self, access: int) -> bool:
        axes = self.program.accesses[access].axes
        return self.way.lanes > 1 and bool(axes) and axes[-1] == NEXT

    def _wide_place(self, access: int, spot: Spot) -> n.Element:
        memory = self.body.buffers[self.program.accesses[access].buffer]
        assert isinstance(memory.element, Scalar)
        lanes = self.way.lanes
        start = ir.binary("floordiv", self.body.place(access, spot.point), lanes)
        return ir.element(memory, start, type=Vector(memory.element, lanes))

    def _put(self, access: int, spots: Sequence[Spot], values: Sequence[n.Expression]) -> None:
        if not self._is_together(access):
            for spot, value in zip(spots, values, strict=True):
                self.body.store(access, spot.point, value)
            return
        for first in range(0, len(spots), self.way.lanes):
            place = self._wide_place(access, spots[first])
            parts = tuple(values[first : first + self.way.lanes])
            self.body.builder.assign(place, n.Construct(parts, place.type))

    # --- results and states ---

    def _keep_results(self, number: int, states: list[State], row: n.Expression) -> None:
        for reduction, state in zip(self.outline.passes[number], states, strict=True):
            self.walk.keep(reduction.step, finished(reduction, state))

    def _leave_states(self, number: int, states: list[State], row: n.Expression) -> None:
        part = cast(ir.builtin("block_idx", 1), self.body.index_type)
        with self._owner():
            for reduction, state in zip(self.outline.passes[number], states, strict=True):
                for k, value in enumerate(state):
                    memory, place = self._state(reduction, k, row, part)
                    self.body.builder.store(memory, place, cast(value, memory.element))

    def _leave_results(self, number: int, states: list[State], row: n.Expression) -> None:
        self._keep_results(number, states, row)
        with self._owner():
            for reduction, state in zip(self.outline.passes[number], states, strict=True):
                memory, place = self._result(reduction, row)
                value = cast(finished(reduction, state), memory.element)
                self.body.builder.store(memory, place, value)

    def _recall(self, number: int) -> None:
        """Read the results of earlier passes."""
        earlier = [r for group in self.outline.passes[:number] for r in group]
        if not earlier:
            return
        with self.walk.each_row() as (_, row, _known):
            for reduction in earlier:
                self.walk.keep(
                    reduction.step, cast(ir.load(*self._result(reduction, row)), reduction.result)
                )

    def _result(self, reduction: Reduction, row: n.Expression) -> tuple[n.Buffer, n.Expression]:
        assert self.scratch is not None
        buffer, number = self.scratch.results[reduction.step]
        memory = self.body.buffers[len(self.program.buffers) + buffer]
        return memory, ir.add(ir.mul(self.rows, number), row)

    def _state(
        self, reduction: Reduction, part: int, row: n.Expression, piece: n.Expression
    ) -> tuple[n.Buffer, n.Expression]:
        """Where a part of a state is: pieces of a row side by side, or rows."""
        assert self.scratch is not None
        buffer, number = self.scratch.states[reduction.step, part]
        memory = self.body.buffers[len(self.program.buffers) + buffer]
        results = self.scratch.counts[buffer][0]
        pieces = self.body.integers[self.program.integers]
        if self.way.along == "row":
            place = ir.add(ir.mul(ir.add(ir.mul(self.rows, number), row), pieces), piece)
        else:
            place = ir.add(ir.mul(ir.add(ir.mul(pieces, number), piece), self.rows), row)
        return memory, ir.add(ir.mul(self.rows, results), place)


def product(body: Body, extents: Sequence[n.Expression]) -> n.Expression:
    """The product of extents."""
    total: n.Expression = ir.constant(1, body.index_type)
    for k, extent in enumerate(extents):
        total = extent if k == 0 else ir.mul(total, extent)
    return total


def indices(
    body: Body, number: n.Expression, extents: Sequence[n.Expression]
) -> tuple[n.Expression, ...]:
    """The indices along axes of an element that is counted in row-major order."""
    found: list[n.Expression] = []
    for extent in reversed(extents[1:]):
        found.append(body.let("i", ir.binary("mod", number, extent)))
        number = body.let("q", ir.binary("floordiv", number, extent))
    return (number, *reversed(found)) if extents else ()
