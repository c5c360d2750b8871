"""Parallel loops, many iterations at a time: a value that varies among them is an LLVM vector.

LLVM vectorizes innermost loops whose bodies it can flatten. The iterations of a parallel loop are
independent whatever they do, so they are printed as the lanes of vectors here, loops, branches and
early exits included. Where lanes diverge, a *mask* says which ones run, and stores, atomics and
jumps happen for those lanes only. A branch skips code whose mask is empty.
"""

from __future__ import annotations

from collections.abc import Iterable

from treadle.codegen.leaves import leaf_types
from treadle.codegen.llvm import arithmetic, atomics, lane_memory, memory
from treadle.codegen.llvm.divergence import jumps
from treadle.codegen.llvm.lane_memory import LaneAddress, Mask
from treadle.codegen.llvm.lane_values import LaneValues, Loop
from treadle.codegen.llvm.memory import Address
from treadle.codegen.llvm.spelling import constant, value_type
from treadle.codegen.llvm.statements import loop_interval, trip_count
from treadle.codegen.llvm.values import Value
from treadle.ir import nodes as n
from treadle.ir.passes.choices import Choice, choice_of
from treadle.ir.types import BOOL, Scalar, size_of

_LONGEST = 1000  # instructions in a basic block


class Lanes(LaneValues):
    """Printing of a region for many lanes: its branches, loops, jumps and atomics."""

    def block(self, body: n.Block) -> bool:
        """Statements. A long list of them is split: LLVM's time for a basic block grows with the
        square of its length. LLVM must not know that the way on is always taken."""
        for statement in body:
            if not super().block((statement,)):
                return False
            if self.e.open and self.e.length > _LONGEST:
                following = self.e.new_label()
                self.e.branch(self.e.true(), following, self.way_out)
                self.e.place(following)
        return True

    def leave_out(self, body: n.Block) -> None:
        """After statements from which some lanes jumped away: go on with the others, if any."""
        gone = list(jumps(body))
        if not gone or not self.e.open:
            return
        loop = self.inner[-1] if self.inner else None
        mask = self.mask
        if loop is not None and loop.live:
            mask = self.both_masks(mask, self.read_mask(loop.live))
        if loop is not None and loop.continued:
            mask = self.without(mask, self.read_mask(loop.continued))
        if self.returned and any(isinstance(jump, n.Return) for jump in gone):
            mask = self.without(mask, self.read_mask(self.returned))
        if mask is None or mask is self.mask:
            return
        self.mask = mask
        go_on = self.e.new_label()
        self.e.branch(self.any(mask), go_on, self.way_out)
        self.e.place(go_on)

    def atomic(self, node: n.Atomic) -> bool:
        """One lane after another."""
        type = node.place.type
        assert isinstance(type, Scalar)
        guard = self.guard(node.place)
        mask = self.mask
        if guard is not None:
            mask = self.both_masks(mask, self.widen(guard, self.width, BOOL).leaves[0])
        operands = [self.widen(self.value(o), self.width, o.type).leaves[0] for o in node.operands]
        address = self.lane_address(node.place)
        if node.result is None and address.is_shared and atomics.can_reduce(node.op, type):
            self.reduce_first(node, address, type, mask, operands[0])
            return True
        old = self.each_lane(node, address, type, mask, operands)
        if node.result is not None:
            self.set_leaves(node.result, 0, Value((old,), self.width))
        return True

    def reduce_first(
        self, node: n.Atomic, address: LaneAddress, type: Scalar, mask: Mask, operand: str
    ) -> None:
        """One update of one place, with what all lanes bring to it."""
        if mask is not None:
            llvm = value_type(type, self.width)
            neutral = constant(type, atomics.neutral(node.op, type), self.width)
            operand = arithmetic.select(self.e, mask, llvm, operand, neutral, self.width)
        total = atomics.reduced(self.e, node.op, type, operand, self.width)

        def run() -> None:
            one = Address(address.pointer, address.storage, address.offset)
            pointer = memory.byte_pointer(self.e, one)
            atomics.atomic(self.e, node.op, type, pointer, (total,), address.storage)

        self.when(self.any(self.whole(mask)), run)

    def each_lane(
        self, node: n.Atomic, address: LaneAddress, type: Scalar, mask: Mask, operands: list[str]
    ) -> str:
        e, integer, vector = self.e, f"i{self.width}", value_type(type, self.width)
        each = lane_memory.leaf_pointers(e, address, size_of(type), self.width)
        left = e.op(f"bitcast {self.bits} {self.whole(mask)} to {integer}")
        test, copy, done, before = e.new_label(), e.new_label(), e.new_label(), e.current
        latch = e.new_label()
        e.jump(test)
        e.place(test)
        bits, rest, old, following = (f"%{name}{test}" for name in ("bits", "rest", "old", "new"))
        e.do(f"{bits} = phi {integer} [ {left}, %{before} ], [ {rest}, %{latch} ]")
        e.do(f"{old} = phi {vector} [ zeroinitializer, %{before} ], [ {following}, %{latch} ]")
        e.branch(e.op(f"icmp ne {integer} {bits}, 0"), copy, done)
        e.place(copy)
        lane = e.intrinsic("cttz", integer, [(integer, bits), ("i1", "true")], [integer])
        pointer = e.op(f"extractelement <{self.width} x ptr> {each}, {integer} {lane}")
        own = [e.op(f"extractelement {vector} {operand}, {integer} {lane}") for operand in operands]
        before_value = atomics.atomic(e, node.op, type, pointer, own, address.storage)
        e.jump(latch)
        e.place(latch)
        inserted = f"{value_type(type)} {before_value}, {integer} {lane}"
        e.do(f"{following} = insertelement {vector} {old}, {inserted}")
        lower = e.op(f"sub {integer} {bits}, 1")
        e.do(f"{rest} = and {integer} {bits}, {lower}")
        e.jump(test)
        e.place(done)
        return old

    # --- branches ---------------------------------------------------------------------------------

    def branch(self, node: n.If) -> bool:
        choice = choice_of(node)
        if choice is not None:
            value = self.value(choice.value)
            if value.width == 1:
                return self.uniform_choice(node, choice, value.leaves[0])
            return self.masked_choice(node, choice, value)
        condition = self.value(node.condition)
        if condition.width == 1:
            return self.uniform_branch(node, condition.leaves[0])
        outer, test = self.mask, condition.leaves[0]
        reached = self.masked_part(node.then, self.both_masks(outer, test))
        if node.otherwise:
            self.mask = outer
            reached |= self.masked_part(node.otherwise, self.without(outer, test))
        else:
            reached = True
        self.mask = outer
        self.leave_out((node,))
        return reached and self.e.open

    def masked_choice(self, node: n.If, choice: Choice, value: Value) -> bool:
        """A choice whose value varies: the cases one after the other, each under a mask."""
        outer, type = self.mask, choice.value.type
        assert isinstance(type, Scalar)
        reached = not choice.default
        for numbers, body in choice.cases:
            self.mask = outer
            reached |= self.masked_part(
                body, self.both_masks(outer, self.within(value, numbers, type))
            )
        if choice.default:
            self.mask = outer
            every = [number for numbers, _ in choice.cases for number in numbers]
            rest = self.without(outer, self.within(value, every, type))
            reached |= self.masked_part(choice.default, rest)
        self.mask = outer
        self.leave_out((node,))
        return reached and self.e.open

    def within(self, value: Value, numbers: Iterable[int], type: Scalar) -> str:
        """The lanes whose value is one of some numbers: a comparison for each row of them."""
        e, vector, found = self.e, value_type(type, self.width), ""
        for first, count in _rows(numbers):
            distance = e.op(f"sub {vector} {value.leaves[0]}, {constant(type, first, self.width)}")
            inside = e.op(f"icmp ule {vector} {distance}, {constant(type, count - 1, self.width)}")
            found = e.op(f"or {self.bits} {found}, {inside}") if found else inside
        return found

    def uniform_choice(self, node: n.If, choice: Choice, value: str) -> bool:
        """A choice whose value is uniform: one switch for all lanes."""
        outer = self.mask
        join, bodies = self.switch(choice, value)
        joined = reached = not choice.default
        for label, body in bodies:
            self.mask = outer
            self.e.place(label)
            reached |= self.block(body)
            if self.e.open:
                self.e.jump(join)
                joined = True
        self.mask = outer
        if joined:
            self.e.place(join)
            self.leave_out((node,))
        return reached and joined

    def masked_part(self, body: n.Block, mask: str) -> bool:
        """One side of a branch, for the lanes that take it."""
        inside, join = self.e.new_label(), self.e.new_label()
        self.e.branch(self.any(mask), inside, join)
        self.e.place(inside)
        self.mask = mask
        outer, self.way_out = self.way_out, join
        reached = self.block(body)
        self.way_out = outer
        if self.e.open:
            self.e.jump(join)
        self.e.place(join)
        return reached

    def uniform_branch(self, node: n.If, condition: str) -> bool:
        outer = self.mask
        then, join = self.e.new_label(), self.e.new_label()
        otherwise = self.e.new_label() if node.otherwise else join
        self.e.branch(condition, then, otherwise)
        joined, reached = not node.otherwise, not node.otherwise
        for label, body in ((then, node.then), (otherwise, node.otherwise)):
            if label == join:
                continue
            self.mask = outer
            self.e.place(label)
            reached |= self.block(body)
            if self.e.open:
                self.e.jump(join)
                joined = True
        self.mask = outer
        if joined:
            self.e.place(join)
            self.leave_out((node,))
        return reached and joined

    # --- loops ------------------------------------------------------------------------------------

    def enter(self, node: n.For | n.While, done: str, again: str) -> Loop:
        loop = Loop(done, again)
        if id(node) in self.divergence.loops:
            loop.live = self.mask_slot(self.whole(self.mask))
            if any(isinstance(jump, n.Continue) for jump in jumps(node.body)):
                loop.continued = self.mask_slot("zeroinitializer")
        return loop

    def iteration(self, loop: Loop, body: n.Block, mask: Mask) -> None:
        """The body of a loop, for the lanes that started the iteration."""
        self.mask = loop.mask = mask
        if loop.continued:
            self.write_mask(loop.continued, "zeroinitializer")
        self.inner.append(loop)
        outer, self.way_out = self.way_out, loop.again
        self.block(body)
        self.way_out = outer
        self.inner.pop()
        if self.e.open:
            self.e.jump(loop.again)
        self.e.place(loop.again)

    def next_iteration(self, loop: Loop, outer: Mask) -> None:
        """Place the start of the next iteration, with the lanes that are still in the loop."""
        self.mask = outer
        if not loop.live:
            return
        live = self.read_mask(loop.live)
        if self.returned:
            live = self.without(live, self.read_mask(self.returned))
            self.write_mask(loop.live, live)
        go_on = self.e.new_label()
        self.e.branch(self.any(live), go_on, loop.done)
        self.e.place(go_on)
        self.mask = live

    def behind(self, node: n.For | n.While, loop: Loop, outer: Mask) -> None:
        """Place the end of a loop, with the lanes that have not returned."""
        self.e.place(loop.done)
        self.mask = outer
        self.leave_out((node,))

    def repeat(self, node: n.While) -> bool:
        test, body, again, done = (self.e.new_label() for _ in range(4))
        outer = self.mask
        loop = self.enter(node, done, again)
        self.e.jump(test)
        self.e.place(test)
        mask = self.mask = self.read_mask(loop.live) if loop.live else outer
        condition = self.value(node.condition)
        self.go_in(loop, condition, mask, body)
        self.iteration(loop, node.body, self.mask)
        self.next_iteration(loop, outer)
        self.block(node.update)
        self.e.jump(test)
        self.behind(node, loop, outer)
        return True

    def go_in(self, loop: Loop, condition: Value, mask: Mask, body: str) -> None:
        """Enter the body with the lanes for which the condition holds, if any."""
        test = condition.leaves[0]
        if condition.width > 1:
            mask = self.both_masks(mask, test)
            self.write_mask(loop.live, mask)
            test = self.any(mask)
        self.e.branch(test, body, loop.done)
        self.e.place(body)
        self.mask = mask

    def count(self, node: n.For) -> bool:
        e, type = self.e, node.variable.type
        assert isinstance(type, Scalar)
        llvm, outer = value_type(type), self.mask
        start, stop = self.value(node.start), self.value(node.stop)
        interval = loop_interval(node, start.interval, stop.interval)
        # Iterations are counted if adding the step could wrap, or lanes start at different numbers.
        by_iterations = abs(node.step) != 1 or start.width > 1
        limit = stop
        if by_iterations:
            width = max(start.width, stop.width)
            limit = trip_count(
                e, node, self.widen(start, width, type), self.widen(stop, width, type)
            )
        test, body, again, done = (e.new_label() for _ in range(4))
        loop = self.enter(node, done, again)
        before = e.current
        e.jump(test)
        e.place(test)
        counter, following = f"%i{test}", f"%n{test}"
        first, step = ("0", 1) if by_iterations else (start.leaves[0], node.step)
        latch = e.new_label()
        e.do(f"{counter} = phi {llvm} [ {first}, %{before} ], [ {following}, %{latch} ]")
        mask = self.mask = self.read_mask(loop.live) if loop.live else outer
        index = Value((counter,), 1, None if by_iterations else interval)
        sign = "s" if type.is_signed and not by_iterations else "u"
        relation = f"icmp {sign}{'lt' if step > 0 else 'gt'}"
        bound = limit.leaves[0]
        if limit.width == 1:
            condition = Value((e.op(f"{relation} {llvm} {counter}, {bound}"),))
        else:
            wide = self.widen(index, self.width, type).leaves[0]
            vector = value_type(type, self.width)
            condition = Value((e.op(f"{relation} {vector} {wide}, {bound}"),), self.width)
        self.go_in(loop, condition, mask, body)
        if by_iterations:
            scaled = self.integer("mul", type, index, _number(type, node.step))
            index = self.integer("add", type, scaled, start)
            index.interval = interval
        self.scope.values[node.variable.name] = index
        self.iteration(loop, node.body, self.mask)
        self.next_iteration(loop, outer)
        e.jump(latch)
        e.place(latch)
        e.do(f"{following} = add {llvm} {counter}, {constant(type, step)}")
        e.jump(test, self.loop_marks(node))
        self.behind(node, loop, outer)
        return True

    # --- jumps ------------------------------------------------------------------------------------

    def leave(self, node: n.Break) -> bool:
        loop = self.inner[-1]
        if self.mask is loop.mask:
            self.e.jump(loop.done)
        else:
            self.write_mask(
                loop.live, self.without(self.read_mask(loop.live), self.whole(self.mask))
            )
        return False

    def proceed(self, node: n.Continue) -> bool:
        loop = self.inner[-1]
        if self.mask is loop.mask:
            self.e.jump(loop.again)
        else:
            gone = self.read_mask(loop.continued)
            every = self.e.op(f"or {self.bits} {gone}, {self.whole(self.mask)}")
            self.write_mask(loop.continued, every)
        return False

    def finish(self, node: n.Return) -> bool:
        if self.result_type is not None and node.value is not None:
            value = self.widen(self.value(node.value), self.width, self.result_type)
            for scalar, slot, leaf in zip(
                leaf_types(self.result_type), self.result_slots, value.leaves, strict=True
            ):
                self.set_slot(slot, value_type(scalar, self.width), leaf, self.width)
        if self.mask is self.region_mask:
            self.e.jump(self.end)
        else:
            gone = self.read_mask(self.returned)
            every = self.e.op(f"or {self.bits} {gone}, {self.whole(self.mask)}")
            self.write_mask(self.returned, every)
        return False


def _rows(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as rows of neighbours: the first of each, and how many there are."""
    rows: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if rows and sum(rows[-1]) == number:
            rows[-1] = rows[-1][0], rows[-1][1] + 1
        else:
            rows.append((number, 1))
    return rows


def _number(type: Scalar, value: int) -> Value:
    return Value((constant(type, value),), 1, (value, value))
