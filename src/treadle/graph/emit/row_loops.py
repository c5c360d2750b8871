"""Walks of a CPU: loops over lanes, which become vectors, inside loops over the other axes.

Sums are taken in short runs whose totals are added up, in each of many lanes: so their error stays
that of a few dozen additions, however long a row is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from treadle.graph.emit.body import Body, cast
from treadle.graph.emit.combine import (
    Reduction,
    State,
    combine,
    combine_all,
    identity,
    new_totals,
)
from treadle.graph.emit.row_analysis import cost, needed, row_analysis
from treadle.graph.emit.row_walk import (
    ROW,
    Axes,
    Done,
    Known,
    RowVariant,
    Spot,
    Visit,
    Walk,
    indices,
    product,
)
from treadle.graph.program import Phase
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.types import Type

LANES = 16  # of a vector
_FEWEST_LANES = 4
TILE = 4096  # elements of a row after which a run of sums ends
RUN = 64  # the same, in additions, where lanes are rows


def vectors_at_once(cost: int) -> int:
    """How many vectors along a row are computed together whose elements cost so much."""
    return 4 if cost <= 8 else 2 if cost <= 20 else 1


class _Loops(Walk):
    def owned(self) -> n.Expression | None:
        """A block is one thread."""
        return None

    def bounds(self, units: n.Expression) -> tuple[n.Expression, n.Expression]:
        """The units of a row that are this block's."""
        body = self.body
        if self.variant.phase not in (Phase.PART, Phase.LAST):
            return ir.constant(0, body.index_type), units
        span = body.integers[-1]
        first = body.let("first", ir.mul(cast(ir.builtin("block_idx", 1), body.index_type), span))
        return first, body.let("stop", ir.intrinsic("min", ir.add(first, span), units))

    def whole(self, start: n.Expression, stop: n.Expression, step: int) -> n.Expression:
        """Where the last whole step from `start` on ends."""
        if step == 1:
            return stop
        steps = ir.binary("floordiv", ir.sub(stop, start), step)
        return self.body.let("whole", ir.add(start, ir.mul(steps, step)))


class RowLoops(_Loops):
    """A block is one row, or a part of one; lanes are neighbours along the row's last axis."""

    def __init__(self, body: Body, variant: RowVariant) -> None:
        super().__init__(body, variant)
        self.row = body.let("row", cast(ir.builtin("block_idx", 0), body.index_type))
        self.point = indices(body, self.row, body.extents[: body.program.kept])
        self.known: Known = {ROW: self.row}

    @contextmanager
    def each_row(self) -> Iterator[tuple[tuple[n.Expression, ...], n.Expression, Known]]:
        """The one row."""
        yield self.point, self.row, self.known

    def remember(self, step: int, value: n.Expression) -> None:
        """In a variable."""
        plain = isinstance(value, (n.Variable, n.Constant))
        self.known[step] = value if plain else self.body.let("k", value)

    def reduce(self, reductions: Sequence[Reduction], axes: Axes, visit: Visit, done: Done) -> None:
        """Totals in lanes, and then those of the lanes."""
        body, b, type = self.body, self.body.builder, self.body.index_type
        memories = [
            [b.memory("shared", body.fresh("lanes"), part, LANES) for part in r.parts]
            for r in reductions
        ]
        first, stop = self.bounds(self._tiles(axes))
        unroll = self._unroll(reductions)
        with b.loop(body.fresh("lane"), 0, LANES, type=type, parallel=True) as lane:
            totals = new_totals(body, reductions)
            with b.loop(body.fresh("tile"), first, stop, type=type) as tile:
                runs = new_totals(body, reductions)

                def take(spots: list[Spot]) -> None:
                    states = visit(spots, self.known)
                    for k, run in enumerate(runs):
                        run.add(body, combine_all(body, run.reduction, [s[k] for s in states]))

                self._in_lanes(tile, axes, lane, unroll, take)
                for total, run in zip(totals, runs, strict=True):
                    total.add(body, run.state)
            for total, parts in zip(totals, memories, strict=True):
                for variable, memory in zip(total.state, parts, strict=True):
                    b.store(memory, lane, variable)
        states = self._joined(reductions, memories)
        done(states, self.row)

    def _unroll(self, reductions: Sequence[Reduction]) -> int:
        """The vectors that a pass takes at once: each total is a chain of instructions, of which
        a maximum has long ones, so a pass that computes little takes more than the others do."""
        if not self.variant.long:
            return self.variant.unroll
        program, sources = self.body.program, [reduction.source for reduction in reductions]
        steps = row_analysis(program).varying.intersection(needed(program, sources, self.known))
        return max(self.variant.unroll, vectors_at_once(cost(program, steps)))

    def _joined(
        self, reductions: Sequence[Reduction], memories: list[list[n.Memory]]
    ) -> list[State]:
        """What all lanes have together: halves as vectors, and the last few one by one."""
        body, b, left = self.body, self.body.builder, LANES

        def state(parts: list[n.Memory], at: ir.Operand) -> State:
            return tuple(body.let("s", ir.load(memory, at)) for memory in parts)

        while left > _FEWEST_LANES:
            left //= 2
            name = body.fresh("lane")
            with b.loop(name, 0, left, type=body.index_type, parallel=True) as lane:
                for reduction, parts in zip(reductions, memories, strict=True):
                    pair = state(parts, lane), state(parts, ir.add(lane, left))
                    joined = combine(body, reduction, *pair)
                    for memory, value in zip(parts, joined, strict=True):
                        b.store(memory, lane, value)
        return [
            combine_all(body, reduction, [state(parts, lane) for lane in range(left)])
            for reduction, parts in zip(reductions, memories, strict=True)
        ]

    def for_each(self, axes: Axes, store: Callable[[Sequence[Spot], Known], None]) -> None:
        """Tile after tile, every element a lane."""
        body, b, type = self.body, self.body.builder, self.body.index_type
        first, stop = self.bounds(self._tiles(axes))
        with b.loop(body.fresh("tile"), first, stop, type=type) as tile:
            front, start, end, number = self._tile(tile, axes)
            with b.loop(body.fresh("e"), start, end, type=type, parallel=True) as at:
                store([self._spot(front, number, at)], self.known)

    def _tiles(self, axes: Axes) -> n.Expression:
        """How many tiles a row has: of its last axis, for each element of the others."""
        if not axes.extents:
            return ir.constant(1, self.body.index_type)
        outer = product(self.body, axes.extents[:-1])
        return self.body.let("tiles", ir.mul(outer, self._tiles_of_last(axes)))

    def _tiles_of_last(self, axes: Axes) -> n.Expression:
        return ir.binary("floordiv", ir.add(axes.extents[-1], TILE - 1), TILE)

    def _tile(
        self, tile: n.Expression, axes: Axes
    ) -> tuple[tuple[n.Expression, ...], n.Expression, n.Expression, n.Expression]:
        """The indices of a tile along the front axes; where it starts and ends along the last;
        and the number in the row of the last axis' first element."""
        body = self.body
        zero = ir.constant(0, body.index_type)
        if not axes.extents:
            return (), zero, ir.constant(1, body.index_type), zero
        front: tuple[n.Expression, ...] = ()
        number: n.Expression = zero
        *outer, last = axes.extents
        if outer:
            pieces = body.let("pieces", self._tiles_of_last(axes))
            line = body.let("line", ir.binary("floordiv", tile, pieces))
            tile = body.let("piece", ir.binary("mod", tile, pieces))
            front = indices(body, line, outer)
            number = body.let("number", ir.mul(line, last))
        start = body.let("start", ir.mul(tile, TILE))
        end = body.let("end", ir.intrinsic("min", ir.add(start, TILE), last))
        return front, start, end, number

    def _spot(self, front: tuple[n.Expression, ...], number: n.Expression, at: n.Variable) -> Spot:
        return Spot((*self.point, *front, at), ir.add(number, at))

    def _in_lanes(
        self,
        tile: n.Expression,
        axes: Axes,
        lane: n.Expression,
        unroll: int,
        take: Callable[[list[Spot]], None],
    ) -> None:
        """A tile's elements for one lane, a few at a time and then one by one."""
        body, b, type = self.body, self.body.builder, self.body.index_type
        front, start, end, number = self._tile(tile, axes)
        step = LANES * unroll
        whole = self.whole(start, end, step)
        with b.loop(body.fresh("at"), start, whole, step, type=type) as at:
            take([
                self._spot(front, number, body.let("e", ir.add(ir.add(at, k * LANES), lane)))
                for k in range(unroll)
            ])  # fmt: skip
        with b.loop(body.fresh("at"), whole, end, LANES, type=type) as at:
            place = body.let("e", ir.add(at, lane))
            with b.when(ir.less(place, end)):
                take([self._spot(front, number, place)])


class ColumnLoops(_Loops):
    """A block is a strip of rows, or a part of each; lanes are neighbours along the last kept axis.

    What is known of a row is in memory, one slot a lane.
    """

    def __init__(self, body: Body, variant: RowVariant) -> None:
        super().__init__(body, variant)
        type = body.index_type
        *outer, last = body.extents[: body.program.kept]
        strips = body.let(
            "strips", ir.binary("floordiv", ir.add(last, variant.rows - 1), variant.rows)
        )
        block = cast(ir.builtin("block_idx", 0), type)
        line = body.let("line", ir.binary("floordiv", block, strips))
        self.start = body.let("strip", ir.mul(ir.binary("mod", block, strips), variant.rows))
        self.count = body.let(
            "count", ir.intrinsic("min", ir.sub(last, self.start), ir.constant(variant.rows, type))
        )
        self.first = body.let("first", ir.add(ir.mul(line, last), self.start))
        self.front = indices(body, line, outer)
        self.remembered: dict[int, n.Memory] = {}
        self.lane: n.Variable | None = None

    @contextmanager
    def each_row(self) -> Iterator[tuple[tuple[n.Expression, ...], n.Expression, Known]]:
        """A lane for each."""
        body = self.body
        name = body.fresh("lane")
        with body.builder.loop(name, 0, self.count, type=body.index_type, parallel=True) as lane:
            self.lane = lane
            known = {step: body.let("k", ir.load(m, lane)) for step, m in self.remembered.items()}
            row = body.let("row", ir.add(self.first, lane))
            yield (*self.front, body.let("e", ir.add(self.start, lane))), row, {**known, ROW: row}
            self.lane = None

    def remember(self, step: int, value: n.Expression) -> None:
        """In the lane's slot."""
        assert self.lane is not None
        if step not in self.remembered:
            self.remembered[step] = self._memory(value.type)
        self.body.builder.store(self.remembered[step], self.lane, value)

    def _memory(self, type: Type) -> n.Memory:
        return self.body.builder.memory("shared", self.body.fresh("slots"), type, self.variant.rows)

    def reduce(self, reductions: Sequence[Reduction], axes: Axes, visit: Visit, done: Done) -> None:
        """A few elements of each row at a time; runs of them into totals."""
        body, b, type = self.body, self.body.builder, self.body.index_type
        totals = [[self._memory(part) for part in r.parts] for r in reductions]
        runs = [[self._memory(part) for part in r.parts] for r in reductions]
        unroll = self.variant.unroll
        first, stop = self.bounds(axes.total)
        with self.each_row():
            self._start(reductions, totals)
        with b.loop(body.fresh("run"), first, stop, RUN * unroll, type=type) as run:
            end = body.let("end", ir.intrinsic("min", ir.add(run, RUN * unroll), stop))
            with self.each_row():
                self._start(reductions, runs)
            whole = self.whole(run, end, unroll)
            for begin, until, step in ((run, whole, unroll), (whole, end, 1)):
                if until is begin or (unroll == 1 and begin is whole):
                    continue
                with b.loop(body.fresh("at"), begin, until, step, type=type) as at:
                    inner = [self._inner(at, k, axes) for k in range(step)]
                    with self.each_row() as (point, _, known):
                        spots = [Spot((*point, *place), number) for place, number in inner]
                        states = visit(spots, known)
                        for k, reduction in enumerate(reductions):
                            state = combine_all(body, reduction, [s[k] for s in states])
                            self._add(reduction, runs[k], state)
            with self.each_row():
                for k, reduction in enumerate(reductions):
                    self._add(reduction, totals[k], self._state(runs[k]))
        with self.each_row() as (_, row, _known):
            done([self._state(memories) for memories in totals], row)

    def for_each(self, axes: Axes, store: Callable[[Sequence[Spot], Known], None]) -> None:
        """One element of each row after the other."""
        body = self.body
        first, stop = self.bounds(axes.total)
        with body.builder.loop(body.fresh("at"), first, stop, type=body.index_type) as at:
            place, number = self._inner(at, 0, axes)
            with self.each_row() as (point, _, known):
                store([Spot((*point, *place), number)], known)

    def _inner(
        self, at: n.Expression, k: int, axes: Axes
    ) -> tuple[tuple[n.Expression, ...], n.Expression]:
        """The indices along the row's axes of its element `at + k`, and that number."""
        number = self.body.let("number", ir.add(at, k)) if k else at
        return indices(self.body, number, axes.extents), number

    def _start(self, reductions: Sequence[Reduction], memories: list[list[n.Memory]]) -> None:
        for reduction, parts in zip(reductions, memories, strict=True):
            self._store(parts, identity(reduction))

    def _state(self, memories: Sequence[n.Memory]) -> State:
        assert self.lane is not None
        return tuple(self.body.let("s", ir.load(memory, self.lane)) for memory in memories)

    def _store(self, memories: Sequence[n.Memory], state: State) -> None:
        assert self.lane is not None
        for memory, value in zip(memories, state, strict=True):
            self.body.builder.store(memory, self.lane, value)

    def _add(self, reduction: Reduction, memories: list[n.Memory], state: State) -> None:
        self._store(memories, combine(self.body, reduction, self._state(memories), state))
