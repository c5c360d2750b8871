"""The walks of a GPU: some threads for each row, a few rows for each block.

Threads of a row take elements in turn, several at once, and combine their states: in subgroups
where there are some, and then, or else, in shared memory. Control flow is uniform at barriers;
threads without a row of their own do the last row's work and write nothing.

Rows that are visited more than once are read once, if they are not too long: each thread holds its
elements in registers, which have a name each, since what is indexed would lie in memory.
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
from treadle.graph.emit.row_walk import (
    ROW,
    Axes,
    Done,
    Known,
    Neighbours,
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
from treadle.ir.types import COMPONENTS, I32, Type, Vector


class Blocks(Walk):
    """Threads of a block, in rows."""

    def __init__(self, body: Body, variant: RowVariant) -> None:
        super().__init__(body, variant)
        type = body.index_type
        me = ir.builtin("thread_idx")
        self.me = body.let("thread", me)
        fast = variant.threads if variant.along == Neighbours.ELEMENTS else variant.rows
        low: n.Expression = _ZERO
        if fast > 1:
            low = body.let("low", ir.binary("rem", self.me, fast))
        high = body.let("high", ir.binary("div", self.me, fast))
        mine, member = (high, low) if variant.along == Neighbours.ELEMENTS else (low, high)
        self.member: n.Expression = member
        kept = body.extents[: body.program.kept]
        rows = body.let("count", product(body, kept))
        block = ir.mul(cast(ir.builtin("block_idx"), type), variant.rows)
        row = body.let("own", ir.add(block, cast(mine, type)))
        self.alive = body.let("alive", ir.less(row, rows))
        self.row = body.let("row", ir.intrinsic("min", row, ir.sub(rows, 1)))
        self.point = indices(body, self.row, kept)
        self.known: Known = {ROW: self.row}
        # The slot of a row's first thread, and the distance from one thread's to the next one's.
        self.home = ir.mul(mine, variant.threads) if variant.along == Neighbours.ELEMENTS else mine
        self.spacing = 1 if variant.along == Neighbours.ELEMENTS else variant.rows
        self.shared: dict[tuple[Type, int, int], n.Memory] = {}
        self.side = 0

    @contextmanager
    def each_row(self) -> Iterator[tuple[tuple[n.Expression, ...], n.Expression, Known]]:
        """The thread's row."""
        yield self.point, self.row, self.known

    def remember(self, step: int, value: n.Expression) -> None:
        """In a variable."""
        plain = isinstance(value, (n.Variable, n.Constant))
        self.known[step] = value if plain else self.body.let("k", value)

    def owned(self) -> n.Expression | None:
        """The first thread of a row writes for it."""
        if self.variant.threads == 1:
            return self.alive
        return ir.both(self.alive, ir.equal(self.member, 0))

    def reduce(self, reductions: Sequence[Reduction], axes: Axes, visit: Visit, done: Done) -> None:
        """Totals in threads, and then those of the threads."""
        body = self.body
        totals = new_totals(body, reductions)

        def take(spots: list[Spot]) -> None:
            states = visit(spots, self.known)
            for k, total in enumerate(totals):
                total.add(body, combine_all(body, total.reduction, [s[k] for s in states]))

        self._over(axes, take)
        states: list[State] = [total.state for total in totals]
        if self.variant.threads > 1:
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
        body, b, type, variant = self.body, self.body.builder, self.body.index_type, self.variant
        first: n.Expression = ir.constant(0, type)
        stop = axes.total
        if variant.phase in (Phase.PART, Phase.LAST):
            span = body.integers[-1]
            part = cast(ir.builtin("block_idx", 1), type)
            if variant.phase == Phase.LAST:  # backwards: what was read last may be in a cache yet
                part = ir.sub(ir.sub(body.integers[body.program.integers], 1), part)
            first = ir.mul(part, span)
            stop = body.let("stop", ir.intrinsic("min", ir.add(first, span), axes.total))
        at = body.let("at", ir.add(first, cast(self.member, type)))
        if variant.unroll > 1:
            most = body.let("most", ir.sub(stop, (variant.unroll - 1) * variant.threads))
            with b.repeat(ir.less(at, most)):
                take([s for k in range(variant.unroll) for s in self._spots(at, k, axes)])
                b.assign(at, ir.add(at, variant.unroll * variant.threads))
        with b.repeat(ir.less(at, stop)):
            take(self._spots(at, 0, axes))
            b.assign(at, ir.add(at, variant.threads))

    def _spots(self, at: n.Expression, iteration: int, axes: Axes) -> list[Spot]:
        """The elements of an unrolled iteration: neighbours along the row's last axis."""
        body = self.body
        number = body.let("number", ir.add(at, iteration * self.variant.threads))
        return self._spots_at(number, axes)

    def _spots_at(self, number: n.Expression, axes: Axes) -> list[Spot]:
        body, lanes = self.body, self.variant.lanes
        place = indices(body, number, axes.extents)
        if lanes == 1 or len(axes.extents) == 0 or self.variant.phase == Phase.JOIN:
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
        variant, b = self.variant, self.body.builder
        if not variant.subgroup or variant.along == Neighbours.ROWS:
            return self._joined_in_memory(reductions, states)
        width = min(variant.subgroup, variant.threads)
        states = self._exchanged(reductions, states, width)
        if variant.threads == width:
            return states
        # Another pass takes other memory, so that no barrier is needed for its readers.
        self.side = 1 - self.side
        groups = variant.threads // width
        memories = self._memories(reductions, variant.rows * groups)
        with b.when(ir.equal(ir.binary("rem", self.me, width), 0)):
            self._put(memories, states, ir.binary("div", self.me, width))
        b.emit(n.Barrier())
        slot = ir.binary("div", self.home, width)
        slot = ir.add(slot, ir.binary("rem", self.member, groups))
        return self._exchanged(reductions, self._get(reductions, memories, slot), groups)

    def _exchanged(
        self, reductions: Sequence[Reduction], states: list[State], width: int
    ) -> list[State]:
        """What neighbouring threads have together, as many as `width`, in all of them."""
        distance = width // 2
        while distance:
            states = [
                combine(self.body, reduction, state, self._other(state, distance))
                for reduction, state in zip(reductions, states, strict=True)
            ]
            distance //= 2
        return states

    def _other(self, state: State, distance: int) -> State:
        """The state of the thread whose number differs in one bit."""
        body = self.body

        def other(value: n.Expression) -> n.Expression:
            if isinstance(value.type, Vector):
                parts = tuple(
                    other(ir.extract(value, COMPONENTS[k])) for k in range(value.type.count)
                )
                return n.Construct(parts, value.type)
            sent = cast(value, kept_type(value.type))
            result = body.builder.variable(body.fresh("other"), sent.type)
            mask = ir.constant(distance, I32)
            body.builder.emit(n.Subgroup("shuffle_xor", (sent, mask), result))
            return cast(result, value.type)

        return tuple(other(value) for value in state)

    def _joined_in_memory(
        self, reductions: Sequence[Reduction], states: list[State]
    ) -> list[State]:
        body, b = self.body, self.body.builder
        memories = self._memories(reductions, self.variant.rows * self.variant.threads)
        self._put(memories, states, self.me)
        b.emit(n.Barrier())
        half = self.variant.threads // 2
        while half:
            with b.when(ir.less(self.member, half)):
                other = ir.add(self.me, half * self.spacing)
                mine = self._get(reductions, memories, self.me)
                theirs = self._get(reductions, memories, other)
                pairs = zip(reductions, mine, theirs, strict=True)
                self._put(memories, [combine(body, *pair) for pair in pairs], self.me)
            b.emit(n.Barrier())
            half //= 2
        found = self._get(reductions, memories, self.home)
        if self.variant.phase == Phase.WHOLE:  # another pass may use the same memory
            b.emit(n.Barrier())
        return found

    def _memories(self, reductions: Sequence[Reduction], slots: int) -> list[list[n.Memory]]:
        """Slots in shared memory for each part of states."""
        taken: dict[Type, int] = {}
        found: list[list[n.Memory]] = []
        for reduction in reductions:
            found.append([])
            for part in reduction.parts:
                type = kept_type(part)
                key = type, taken.get(type, 0), self.side
                taken[type] = key[1] + 1
                if key not in self.shared:
                    name = self.body.fresh("slots")
                    self.shared[key] = self.body.builder.memory("shared", name, type, slots)
                found[-1].append(self.shared[key])
        return found

    def _put(
        self, memories: list[list[n.Memory]], states: Sequence[State], slot: n.Expression
    ) -> None:
        for parts, state in zip(memories, states, strict=True):
            for memory, value in zip(parts, state, strict=True):
                self.body.builder.store(memory, slot, cast(value, memory.element))

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


class HeldBlocks(Blocks):
    """The same, with the elements of a row held in its threads' registers."""

    def __init__(self, body: Body, variant: RowVariant) -> None:
        super().__init__(body, variant)
        self.groups: list[list[Spot]] = []
        self.is_last: n.Expression | None = None  # whether the thread has the last group

    def reduce(self, reductions: Sequence[Reduction], axes: Axes, visit: Visit, done: Done) -> None:
        """All elements at once, their loads first."""
        body = self.body
        self._divide(axes)
        states = visit([spot for group in self.groups for spot in group], self.known)
        sure = len(states) if self.is_last is None else len(states) - len(self.groups[-1])
        totals = new_totals(body, reductions)

        def add(states: list[list[State]]) -> None:
            for k, total in enumerate(totals):
                total.add(body, combine_all(body, total.reduction, [s[k] for s in states]))

        if sure:
            add(states[:sure])
        if self.is_last is not None:
            with body.builder.when(self.is_last):
                add(states[sure:])
        found: list[State] = [total.state for total in totals]
        if self.variant.threads > 1:
            found = self._joined(reductions, found)
        done(found, self.row)

    def for_each(self, axes: Axes, store: Callable[[Sequence[Spot], Known], None]) -> None:
        """A few at a time: what is loaded now takes registers, too."""
        b, unroll = self.body.builder, self.variant.unroll
        self._divide(axes)
        sure = len(self.groups) - (self.is_last is not None)
        with b.when(self.alive):
            for first in range(0, sure, unroll):
                some = self.groups[first : min(first + unroll, sure)]
                store([spot for group in some for spot in group], self.known)
            if self.is_last is not None:
                with b.when(self.is_last):
                    store(self.groups[-1], self.known)

    def _divide(self, axes: Axes) -> None:
        """Say which elements are the thread's. One beyond the row is the row's last once more."""
        if self.groups:
            return
        body, variant = self.body, self.variant
        member = cast(self.member, body.index_type)
        for k in range(variant.held):
            number = body.let("number", ir.add(member, k * variant.threads))
            if k == variant.held - 1 and not variant.even:
                self.is_last = body.let("last", ir.less(number, axes.total))
                inside = ir.intrinsic("min", number, ir.sub(axes.total, 1))
                number = body.let("number", inside)
            spots = self._spots_at(number, axes)
            slots = range(len(spots) * k, len(spots) * (k + 1))
            self.groups.append(
                [spot._replace(slot=slot) for spot, slot in zip(spots, slots, strict=True)]
            )


_ZERO = ir.constant(0, I32)
