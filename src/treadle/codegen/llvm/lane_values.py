"""Values, variables and memory of a region that is printed for many lanes at once.

Where lanes diverge, a *mask* says which ones run, and effects happen for those lanes only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from treadle.codegen.leaves import leaf_types, must_not_speculate
from treadle.codegen.llvm import arithmetic, lane_memory, memory
from treadle.codegen.llvm.accesses import Scope, member_offset
from treadle.codegen.llvm.divergence import Divergence
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.lane_memory import LaneAddress, Mask
from treadle.codegen.llvm.memory import Address, Storage
from treadle.codegen.llvm.spelling import splat, value_type, widened
from treadle.codegen.llvm.statements import Statements
from treadle.codegen.llvm.values import Value, zero
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of
from treadle.ir.types import BOOL, Scalar, Type


@dataclass(slots=True)
class Loop:
    """A loop inside the region: where its jumps go, and which lanes are still in it."""

    done: str
    again: str
    mask: Mask = None  # of the lanes that started this iteration
    live: str = ""  # an alloca: lanes that have not left; "" if all leave at once
    continued: str = ""  # an alloca: lanes that wait for the next iteration


class LaneValues(Statements):
    """Printing of a region (the body of a parallel loop, or a function) for many lanes: masks,
    variables, expressions and memory."""

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
        self.way_out = end  # where to go on when no lane of the present mask is left
        self.returned = ""  # an alloca: lanes that have returned; "" if all return at once
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

        if must_not_speculate(node.right):
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
            # Also of memory that the host writes: fences order these, and one thread polls.
            return lane_memory.load(self.e, address, place.type, mask, self.width, marks)
        one = Address(address.pointer, address.storage, address.offset)

        def run() -> Value:
            return memory.load(self.e, one, place.type, marks)

        if guard is None:
            return run()
        # One place, which only some lanes may read: they all get it, the others zero.
        value = self.guarded(self.any(self.whole(mask)), place.type, run)
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
        one = Address(address.pointer, address.storage, address.offset)

        def run() -> None:
            memory.store(self.e, one, place.type, value, self.marks(one.storage))

        if guard is None:
            run()
        else:
            self.when(self.any(self.whole(mask)), run)

    def last_lane(self, mask: Mask) -> str:
        """The number of the last lane of a mask (any lane, if it has none)."""
        if mask is None:
            return str(self.width - 1)
        integer = f"i{self.width}"
        packed = self.e.op(f"bitcast {self.bits} {mask} to {integer}")
        some = self.e.op(f"or {integer} {packed}, 1")
        zeros = self.e.intrinsic("ctlz", integer, [(integer, some), ("i1", "true")], [integer])
        return self.e.op(f"sub {integer} {self.width - 1}, {zeros}")


def lane_memories(
    frame: Statements, memories: Iterable[n.Memory], width: int
) -> dict[str, tuple[Storage, Type]]:
    """Memories of which each lane has its own."""
    made: dict[str, tuple[Storage, Type]] = {}
    for own in memories:
        storage = frame.frame_memory(own.element, max(own.length or 0, 1) * width)
        made[own.name] = (replace(storage, copies=width), own.element)
    return made
