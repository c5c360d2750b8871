"""Parallel loops, many turns at a time: every value that differs among turns is an LLVM vector.

LLVM vectorizes innermost loops whose bodies it can flatten. The turns of a parallel loop are
independent whatever they do, so they are printed as the lanes of vectors here, loops, branches and
early exits included. Where lanes part, a *mask* says which ones run; whatever has an effect is done
for those alone. Code is only reached by a mask with a lane in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from treadle.codegen.llvm import arithmetic, atomics, lane_memory
from treadle.codegen.llvm.divergence import Divergence, jumps
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.expressions import Scope, member_offset, must_not_run
from treadle.codegen.llvm.lane_memory import LaneAddress, Mask
from treadle.codegen.llvm.memory import Storage
from treadle.codegen.llvm.spelling import constant, splat, value_type, widened
from treadle.codegen.llvm.statements import Statements, loop_interval, turns_of
from treadle.codegen.llvm.values import Value, leaf_types, zero
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of
from treadle.ir.types import BOOL, Scalar, Type, size_of


@dataclass(slots=True)
class Loop:
    """A loop inside the region: where its jumps go, and which lanes are still in it."""

    done: str
    again: str
    mask: Mask = None  # of the lanes that began this turn
    live: str = ""  # an alloca: lanes that have not left; "" if all leave together
    continued: str = ""  # an alloca: lanes that wait for the next turn


class Lanes(Statements):
    """Printing of a region (the body of a parallel loop, or a function) for many lanes."""

    def __init__(
        self,
        emitter: Emitter,
        scope: Scope,
        width: int,
        divergence: Divergence,
        mask: Mask,
        end: str,
    ) -> None:
        super().__init__(emitter, scope)
        self.width = width
        self.divergence = divergence
        self.mask = mask
        self.region_mask = mask
        self.end = end  # the label behind the region
        self.returned = ""  # an alloca: lanes that have returned; "" if all do so together
        self.inner: list[Loop] = []
        self.result_slots: tuple[str, ...] = ()
        self.result_type: Type | None = None
        self.bits = widened("i1", width)

    def begin(self, result: Type | None = None) -> None:
        """Prepare what the whole region needs."""
        if self.divergence.returns:
            self.returned = self.mask_slot("zeroinitializer")
        if result is not None and leaf_types(result):
            self.result_type = result
            self.result_slots = tuple(
                self.e.alloca(value_type(scalar, self.width)) for scalar in leaf_types(result)
            )

    def result(self) -> Value:
        """What the lanes of a function returned."""
        if self.result_type is None:
            return Value(())
        return self.loaded_slots(self.result_slots, self.result_type, self.width)

    # --- masks ------------------------------------------------------------------------------------

    def mask_slot(self, first: str) -> str:
        """An alloca for a mask, with its first value."""
        slot = self.e.alloca(self.bits)
        self.e.do(f"store {self.bits} {first}, ptr {slot}")
        return slot

    def read_mask(self, slot: str) -> str:
        return self.e.op(f"load {self.bits}, ptr {slot}")

    def write_mask(self, slot: str, mask: str) -> None:
        self.e.do(f"store {self.bits} {mask}, ptr {slot}")

    def whole(self, mask: Mask) -> str:
        """A mask as an operand."""
        return splat("i1", "true", self.width) if mask is None else mask

    def both_masks(self, a: Mask, b: str) -> str:
        return b if a is None else self.e.op(f"and {self.bits} {a}, {b}")

    def without(self, a: Mask, b: str) -> str:
        """The lanes of a mask that another one has not."""
        inverse = self.e.op(f"xor {self.bits} {b}, {splat('i1', 'true', self.width)}")
        return self.both_masks(a, inverse)

    def any(self, mask: str) -> str:
        """Whether a mask has a lane."""
        integer = f"i{self.width}"
        packed = self.e.op(f"bitcast {self.bits} {mask} to {integer}")
        return self.e.op(f"icmp ne {integer} {packed}, 0")

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
        self.e.branch(self.any(mask), go_on, loop.again if loop is not None else self.end)
        self.e.place(go_on)

    # --- variables --------------------------------------------------------------------------------

    def variable(self, node: n.Variable) -> Value:
        if node.name in self.scope.values or node.name not in self.scope.slots:
            return super().variable(node)
        width = self.width if node.name in self.divergence.varying else 1
        return self.loaded_slots(self.scope.slots[node.name], node.type, width)

    def loaded_slots(self, slots: tuple[str, ...], type: Type, width: int) -> Value:
        return Value(
            tuple(
                self.e.op(f"load {value_type(scalar, width)}, ptr {slot}")
                for scalar, slot in zip(leaf_types(type), slots, strict=True)
            ),
            width,
        )

    def declare_value(self, variable: n.Variable, value: Value) -> None:
        scope, name = self.scope, variable.name
        if name not in self.assigned:
            scope.values[name] = value
            return
        width = self.width if name in self.divergence.varying else 1
        if name not in scope.slots:
            scope.slots[name] = tuple(
                self.e.alloca(value_type(scalar, width)) for scalar in leaf_types(variable.type)
            )
        wide = self.widen(value, width, variable.type)
        for scalar, slot, leaf in zip(
            leaf_types(variable.type), scope.slots[name], wide.leaves, strict=True
        ):
            self.e.do(f"store {value_type(scalar, width)} {leaf}, ptr {slot}")

    def set_leaves(self, variable: n.Variable, start: int, value: Value) -> None:
        slots, types = self.scope.slots[variable.name], leaf_types(variable.type)
        width = self.width if variable.name in self.divergence.varying else 1
        for i, leaf in enumerate(value.leaves, start):
            if value.width < width:
                leaf = self.broadcast(leaf, value_type(types[i]), width)
            self.set_slot(slots[i], value_type(types[i], width), leaf, width)

    def set_slot(self, slot: str, llvm: str, leaf: str, width: int) -> None:
        """Store what may differ among lanes for those of the mask. The lanes that the region
        never had need no care."""
        if width > 1 and self.mask is not self.region_mask:
            old = self.e.op(f"load {llvm}, ptr {slot}")
            leaf = arithmetic.select(self.e, self.whole(self.mask), llvm, leaf, old, width)
        self.e.do(f"store {llvm} {leaf}, ptr {slot}")

    # --- expressions ------------------------------------------------------------------------------

    def logical(self, node: n.Binary) -> Value:
        left = self.value(node.left)
        is_and = node.op == "logical_and"
        if left.width == 1 and not self.divergence.is_varying(node.right):
            return self.logical_after(node, left.leaves[0])
        mask, bits = self.mask, self.bits
        test = self.widen(left, self.width, BOOL).leaves[0]
        known = splat("i1", "false" if is_and else "true", self.width)

        def evaluated() -> str:
            self.mask = self.both_masks(mask, test) if is_and else self.without(mask, test)
            right = self.widen(self.value(node.right), self.width, BOOL).leaves[0]
            self.mask = mask
            return right

        if must_not_run(node.right):
            wanted = self.both_masks(mask, test) if is_and else self.without(mask, test)
            more, done, before = self.e.new_label(), self.e.new_label(), self.e.current
            self.e.branch(self.any(wanted), more, done)
            self.e.place(more)
            right = evaluated()
            after = self.e.current
            self.e.jump(done)
            self.e.place(done)
            right = self.e.op(f"phi {bits} [ {known}, %{before} ], [ {right}, %{after} ]")
        else:
            right = evaluated()
        pair = (right, known) if is_and else (known, right)
        return Value((arithmetic.select(self.e, test, bits, *pair, self.width),), self.width)

    def call(self, node: n.Call) -> Value:
        values = [self.value(a) for a in node.arguments if not isinstance(a, n.MemoryReference)]
        if len(values) < len(node.arguments) or all(value.width == 1 for value in values):
            return super().call(node)
        return self.called(node, values, self.width, [f"{self.bits} {self.whole(self.mask)}"])

    # --- memory -----------------------------------------------------------------------------------

    def lane_address(self, place: n.Place) -> LaneAddress:
        """Where each lane's place is."""
        match place:
            case n.Element():
                storage, _ = self.storage(place)
                base = LaneAddress(storage, storage.pointer, scale=storage.copies)
                return self.indexed(base, place.index, place.type)
            case n.Member():
                base = self.lane_address(place.base)
                return base.moved(member_offset(place.base.type, place.name))
            case n.Item():
                return self.indexed(self.lane_address(place.base), place.index, place.type)
        raise AssertionError("variables with arrays do not occur in lanes")

    def indexed(self, base: LaneAddress, index: n.Expression, type: Type) -> LaneAddress:
        assert isinstance(index.type, Scalar)
        value = self.as_index(self.value(index), index.type)
        return lane_memory.indexed(self.e, base, value, type, self.width)

    def load(self, node: n.Load) -> Value:
        place = node.place
        guard = self.guard(place)
        if guard is not None and guard.width == 1:
            varying = self.divergence.is_varying(place)

            def run() -> Value:
                return self.widen(
                    self.lane_load(place, None), self.width if varying else 1, place.type
                )

            return self.guarded(guard.leaves[0], node.type, run, self.width if varying else 1)
        return self.lane_load(place, guard)

    def lane_load(self, place: n.MemoryPlace, guard: Value | None) -> Value:
        mask = self.mask if guard is None else self.both_masks(self.mask, guard.leaves[0])
        address = self.lane_address(place)
        marks = self.marks(address.storage)
        if not address.is_shared:
            return lane_memory.load(self.e, address, place.type, mask, self.width, marks)
        if guard is None:
            return super().loaded(place, place.type)
        # One place, which only some lanes may read: they all get it, the others zero.
        value = self.guarded(
            self.any(self.whole(mask)),
            place.type,
            lambda: super(Lanes, self).loaded(place, place.type),
        )
        return self.choose(place.type, guard, value, zero(place.type))

    def assign(self, node: n.Assign) -> bool:
        place = node.place
        if isinstance(place, (n.Variable, n.Member)) and isinstance(root_of(place), n.Variable):
            return super().assign(node)
        guard = self.guard(place)
        value = self.value(node.value)
        if guard is not None and guard.width == 1:
            self.when(guard.leaves[0], lambda: self.lane_store(place, value, None))
        else:
            self.lane_store(place, value, guard)
        return True

    def lane_store(self, place: n.Place, value: Value, guard: Value | None) -> None:
        mask = self.mask if guard is None else self.both_masks(self.mask, guard.leaves[0])
        address = self.lane_address(place)
        if not address.is_shared:
            wide = self.widen(value, self.width, place.type)
            marks = self.marks(address.storage)
            lane_memory.store(self.e, address, place.type, wide, mask, marks)
            return
        # One place for all lanes: the last one's value stays.
        if value.width > 1:
            last = self.last_lane(mask)
            leaves = tuple(
                self.e.op(
                    f"extractelement {value_type(scalar, self.width)} {leaf}, i{self.width} {last}"
                )
                for scalar, leaf in zip(leaf_types(place.type), value.leaves, strict=True)
            )
            value = Value(leaves)
        if guard is None:
            self.put(place, value)
        else:
            self.when(self.any(self.whole(mask)), lambda: self.put(place, value))

    def last_lane(self, mask: Mask) -> str:
        """The number of the last lane of a mask (any lane, if it has none)."""
        if mask is None:
            return str(self.width - 1)
        integer = f"i{self.width}"
        packed = self.e.op(f"bitcast {self.bits} {mask} to {integer}")
        some = self.e.op(f"or {integer} {packed}, 1")
        zeros = self.e.intrinsic("ctlz", integer, [(integer, some), ("i1", "true")], [integer])
        return self.e.op(f"sub {integer} {self.width - 1}, {zeros}")

    def atomic(self, node: n.Atomic) -> bool:
        """One lane after another."""
        type = node.place.type
        assert isinstance(type, Scalar)
        guard = self.guard(node.place)
        mask = self.mask
        if guard is not None:
            mask = self.both_masks(mask, self.widen(guard, self.width, BOOL).leaves[0])
        operands = [self.widen(self.value(o), self.width, o.type).leaves[0] for o in node.operands]
        old = self.each_lane(node, type, mask, operands)
        if node.result is not None:
            self.set_leaves(node.result, 0, Value((old,), self.width))
        return True

    def each_lane(self, node: n.Atomic, type: Scalar, mask: Mask, operands: list[str]) -> str:
        e, integer, vector = self.e, f"i{self.width}", value_type(type, self.width)
        address = self.lane_address(node.place)
        each = lane_memory.leaf_pointers(e, address, size_of(type), self.width)
        left = e.op(f"bitcast {self.bits} {self.whole(mask)} to {integer}")
        test, turn, done, before = e.new_label(), e.new_label(), e.new_label(), e.current
        latch = e.new_label()
        e.jump(test)
        e.place(test)
        bits, rest, old, following = (f"%{name}{test}" for name in ("bits", "rest", "old", "new"))
        e.do(f"{bits} = phi {integer} [ {left}, %{before} ], [ {rest}, %{latch} ]")
        e.do(f"{old} = phi {vector} [ zeroinitializer, %{before} ], [ {following}, %{latch} ]")
        e.branch(e.op(f"icmp ne {integer} {bits}, 0"), turn, done)
        e.place(turn)
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

    def masked_part(self, body: n.Block, mask: str) -> bool:
        """One side of a branch, for the lanes that take it."""
        inside, join = self.e.new_label(), self.e.new_label()
        self.e.branch(self.any(mask), inside, join)
        self.e.place(inside)
        self.mask = mask
        reached = self.block(body)
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

    def turn(self, loop: Loop, body: n.Block, mask: Mask) -> None:
        """The body of a loop, for the lanes that began the turn."""
        self.mask = loop.mask = mask
        if loop.continued:
            self.write_mask(loop.continued, "zeroinitializer")
        self.inner.append(loop)
        self.block(body)
        self.inner.pop()
        if self.e.open:
            self.e.jump(loop.again)
        self.e.place(loop.again)

    def next_turn(self, loop: Loop, outer: Mask) -> None:
        """Stand where the next turn begins, with the lanes that are still in the loop."""
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
        """Stand behind a loop, with the lanes that have not returned."""
        self.e.place(loop.done)
        self.mask = outer
        self.leave_out(node.body)

    def repeat(self, node: n.While) -> bool:
        test, body, again, done = (self.e.new_label() for _ in range(4))
        outer = self.mask
        loop = self.enter(node, done, again)
        self.e.jump(test)
        self.e.place(test)
        mask = self.mask = self.read_mask(loop.live) if loop.live else outer
        condition = self.value(node.condition)
        self.go_in(loop, condition, mask, body)
        self.turn(loop, node.body, self.mask)
        self.next_turn(loop, outer)
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
        # Turns are counted where adding the step could wrap, or lanes start at different numbers.
        by_turns = abs(node.step) != 1 or start.width > 1
        limit = stop
        if by_turns:
            width = max(start.width, stop.width)
            limit = turns_of(e, node, self.widen(start, width, type), self.widen(stop, width, type))
        test, body, again, done = (e.new_label() for _ in range(4))
        loop = self.enter(node, done, again)
        before = e.current
        e.jump(test)
        e.place(test)
        counter, following = f"%i{test}", f"%n{test}"
        first, step = ("0", 1) if by_turns else (start.leaves[0], node.step)
        latch = e.new_label()
        e.do(f"{counter} = phi {llvm} [ {first}, %{before} ], [ {following}, %{latch} ]")
        mask = self.mask = self.read_mask(loop.live) if loop.live else outer
        index = Value((counter,), 1, None if by_turns else interval)
        sign = "s" if type.is_signed and not by_turns else "u"
        relation = f"icmp {sign}{'lt' if step > 0 else 'gt'}"
        bound = limit.leaves[0]
        if limit.width == 1:
            condition = Value((e.op(f"{relation} {llvm} {counter}, {bound}"),))
        else:
            wide = self.widen(index, self.width, type).leaves[0]
            vector = value_type(type, self.width)
            condition = Value((e.op(f"{relation} {vector} {wide}, {bound}"),), self.width)
        self.go_in(loop, condition, mask, body)
        if by_turns:
            scaled = self.integer("mul", type, index, _number(type, node.step))
            index = self.integer("add", type, scaled, start)
            index.interval = interval
        self.scope.values[node.variable.name] = index
        self.turn(loop, node.body, self.mask)
        self.next_turn(loop, outer)
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


def lane_memories(
    frame: Statements, memories: Iterable[n.Memory], width: int
) -> dict[str, tuple[Storage, Type]]:
    """Memories of which each lane has its own."""
    made: dict[str, tuple[Storage, Type]] = {}
    for memory in memories:
        storage = frame.frame_memory(memory.element, max(memory.length or 0, 1) * width)
        made[memory.name] = (replace(storage, copies=width), memory.element)
    return made


def _number(type: Scalar, value: int) -> Value:
    return Value((constant(type, value),), 1, (value, value))
