"""The walk of a GPU: some threads for each row, a few rows for each block.

Threads of a row take elements in turn, several at once, and join what they have in shared memory.
All threads of a block go the same way wherever they wait for each other; threads without a row of
their own do the last row's work and write nothing.
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
    kept_type,
    new_totals,
)
from treadle.graph.emit.passes import (
    ROW,
    Axes,
    Done,
    Known,
    Spot,
    Visit,
    Walk,
    Way,
    indices,
    product,
)
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.types import I32, Type


class Blocks(Walk):
    """Threads of a block, in rows."""

    def __init__(self, body: Body, way: Way) -> None:
        super().__init__(body, way)
        type = body.index_type
        me = ir.builtin("thread_idx")
        self.me = body.let("thread", me)
        fast = way.threads if way.along == "row" else way.rows
        low: n.Expression = _ZERO
        if fast > 1:
            low = body.let("low", ir.binary("rem", self.me, fast))
        high = body.let("high", ir.binary("div", self.me, fast))
        mine, turn = (high, low) if way.along == "row" else (low, high)
        self.turn: n.Expression = turn
        kept = body.extents[: body.program.kept]
        rows = body.let("count", product(body, kept))
        block = ir.mul(cast(ir.builtin("block_idx"), type), way.rows)
        row = body.let("own", ir.add(block, cast(mine, type)))
        self.alive = body.let("alive", ir.less(row, rows))
        self.row = body.let("row", ir.intrinsic("min", row, ir.sub(rows, 1)))
        self.point = indices(body, self.row, kept)
        self.known: Known = {ROW: self.row}
        # The slot of a row's first thread, and the distance from one thread's to the next one's.
        self.home = ir.mul(mine, way.threads) if way.along == "row" else mine
        self.apart = 1 if way.along == "row" else way.rows
        self.shared: dict[tuple[Type, int], n.Memory] = {}

    @contextmanager
    def each_row(self) -> Iterator[tuple[tuple[n.Expression, ...], n.Expression, Known]]:
        """The thread's row."""
        yield self.point, self.row, self.known

    def keep(self, step: int, value: n.Expression) -> None:
        """In a variable."""
        plain = isinstance(value, (n.Variable, n.Constant))
        self.known[step] = value if plain else self.body.let("k", value)

    def owned(self) -> n.Expression | None:
        """The first thread of a row writes for it."""
        if self.way.threads == 1:
            return self.alive
        return ir.both(self.alive, ir.equal(self.turn, 0))

    def gather(self, reductions: Sequence[Reduction], axes: Axes, visit: Visit, done: Done) -> None:
        """Totals in threads, and then those of the threads."""
        body = self.body
        totals = new_totals(body, reductions)

        def take(spots: list[Spot]) -> None:
            states = visit(spots, self.known)
            for k, total in enumerate(totals):
                total.add(body, combine_all(body, total.reduction, [s[k] for s in states]))

        self._over(axes, take)
        states: list[State] = [total.state for total in totals]
        if self.way.threads > 1:
            states = self._joined(reductions, states)
        done(states, self.row)

    def for_each(self, axes: Axes, store: Callable[[Sequence[Spot], Known], None]) -> None:
        """The same elements as in every pass are this thread's."""

        def take(spots: list[Spot]) -> None:
            with self.body.builder.when(self.alive):
                store(spots, self.known)

        self._over(axes, take)

    def _over(self, axes: Axes, take: Callable[[list[Spot]], None]) -> None:
        """A thread's elements, a few at a time and then one by one."""
        body, b, type, way = self.body, self.body.builder, self.body.index_type, self.way
        first: n.Expression = ir.constant(0, type)
        stop = axes.total
        if way.work in ("part", "last"):
            span = body.integers[-1]
            first = ir.mul(cast(ir.builtin("block_idx", 1), type), span)
            stop = body.let("stop", ir.intrinsic("min", ir.add(first, span), axes.total))
        at = body.let("at", ir.add(first, cast(self.turn, type)))
        if way.unroll > 1:
            most = body.let("most", ir.sub(stop, (way.unroll - 1) * way.threads))
            with b.repeat(ir.less(at, most)):
                take([s for k in range(way.unroll) for s in self._spots(at, k, axes)])
                b.assign(at, ir.add(at, way.unroll * way.threads))
        with b.repeat(ir.less(at, stop)):
            take(self._spots(at, 0, axes))
            b.assign(at, ir.add(at, way.threads))

    def _spots(self, at: n.Expression, turn: int, axes: Axes) -> list[Spot]:
        """The elements of a turn: neighbours along the row's last axis."""
        body, lanes = self.body, self.way.lanes
        number = body.let("number", ir.add(at, turn * self.way.threads))
        place = indices(body, number, axes.extents)
        if lanes == 1 or len(axes.extents) == 0 or self.way.work == "join":
            return [Spot((*self.point, *place), number)]
        start = body.let("start", ir.mul(place[-1], lanes))
        number = body.let("number", ir.mul(number, lanes))
        ends = [ir.add(start, lane) if lane else start for lane in range(lanes)]
        return [
            Spot((*self.point, *place[:-1], end), ir.add(number, lane))
            for lane, end in enumerate(ends)
        ]

    def _joined(self, reductions: Sequence[Reduction], states: list[State]) -> list[State]:
        """What the threads of each row have together, in all of them."""
        body, b = self.body, self.body.builder
        memories = self._memories(reductions)
        self._put(memories, states)
        b.emit(n.Barrier())
        half = self.way.threads // 2
        while half:
            with b.when(ir.less(self.turn, half)):
                other = ir.add(self.me, half * self.apart)
                mine = self._get(reductions, memories, self.me)
                theirs = self._get(reductions, memories, other)
                pairs = zip(reductions, mine, theirs, strict=True)
                self._put(memories, [combine(body, *pair) for pair in pairs])
            b.emit(n.Barrier())
            half //= 2
        found = self._get(reductions, memories, self.home)
        if self.way.work == "whole":  # another pass may use the same memory
            b.emit(n.Barrier())
        return found

    def _memories(self, reductions: Sequence[Reduction]) -> list[list[n.Memory]]:
        """A slot in shared memory for each part of a thread's states."""
        taken: dict[Type, int] = {}
        found: list[list[n.Memory]] = []
        for reduction in reductions:
            found.append([])
            for part in reduction.parts:
                type = kept_type(part)
                key = type, taken.get(type, 0)
                taken[type] = key[1] + 1
                if key not in self.shared:
                    slots = self.way.rows * self.way.threads
                    name = self.body.fresh("slots")
                    self.shared[key] = self.body.builder.memory("shared", name, type, slots)
                found[-1].append(self.shared[key])
        return found

    def _put(self, memories: list[list[n.Memory]], states: Sequence[State]) -> None:
        for parts, state in zip(memories, states, strict=True):
            for memory, value in zip(parts, state, strict=True):
                self.body.builder.store(memory, self.me, cast(value, memory.element))

    def _get(
        self, reductions: Sequence[Reduction], memories: list[list[n.Memory]], slot: n.Expression
    ) -> list[State]:
        return [
            tuple(
                self.body.let("s", cast(ir.load(memory, slot), part))
                for memory, part in zip(parts, reduction.parts, strict=True)
            )
            for reduction, parts in zip(reductions, memories, strict=True)
        ]


_ZERO = ir.constant(0, I32)
