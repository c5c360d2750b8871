"""Reaching memory from expressions and statements: checks, addresses, loads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from treadle.codegen.leaves import leaf_types
from treadle.codegen.llvm import arithmetic, casts, memory
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.memory import Address, Storage
from treadle.codegen.llvm.spelling import constant, value_type, widened
from treadle.codegen.llvm.values import Value
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.types import BOOL, I64, Array, Scalar, Struct, Type, field_offset, size_of


@dataclass(slots=True)
class Scope:
    """What names mean inside one function."""

    values: dict[str, Value] = field(default_factory=dict)  # variables that are set once
    slots: dict[str, tuple[str, ...]] = field(default_factory=dict)  # one alloca for each leaf
    frames: dict[str, Storage] = field(default_factory=dict)  # variables that hold arrays
    memories: dict[str, tuple[Storage, Type]] = field(default_factory=dict)
    functions: dict[str, n.Function] = field(default_factory=dict)
    # The name of a function for arguments of some widths, and for that many lanes.
    function_name: Callable[[n.Function, tuple[int, ...], int], str] = lambda *_: ""
    builtins: dict[tuple[str, int], Value] = field(default_factory=dict)


class Accesses(ABC):
    """Printing of accesses into one function. What a subclass adds are the values."""

    e: Emitter
    scope: Scope
    group: str  # the mark of accesses inside parallel loops

    @abstractmethod
    def value(self, node: n.Expression) -> Value:
        """The value of an expression."""

    def scalar(self, node: n.Expression) -> str:
        """The operand of an expression that is one number, the same in all lanes."""
        return self.value(node).leaves[0]

    def frame(self, node: n.Variable) -> Address:
        """The place of a variable that holds an array."""
        storage = self.scope.frames.get(node.name)
        if storage is None:
            raise CompileError(f"`{node.name}` is used before it is declared", node.span)
        return Address(storage.pointer, storage)

    def load(self, node: n.Load) -> Value:
        place = node.place
        guard = self.guard(place)
        if guard is None:
            return self.loaded(place, node.type)
        return self.guarded(guard.leaves[0], node.type, lambda: self.loaded(place, node.type))

    def loaded(self, place: n.Place, type: Type) -> Value:
        address = self.address(place)
        return memory.load(self.e, address, type, self.marks(address.storage))

    def guarded(self, guard: str, type: Type, run: Callable[[], Value], width: int = 1) -> Value:
        """What `run` gives if the guard holds, else zero, in that many lanes."""
        inside, join = self.e.new_label(), self.e.new_label()
        before = self.e.current
        self.e.branch(guard, inside, join)
        self.e.place(inside)
        value = run()
        after = self.e.current
        self.e.jump(join)
        self.e.place(join)
        leaves = tuple(
            self.e.op(
                f"phi {value_type(scalar, width)} [ {leaf}, %{after} ], "
                f"[ {constant(scalar, 0, width)}, %{before} ]"
            )
            for scalar, leaf in zip(leaf_types(type), value.leaves, strict=True)
        )
        return Value(leaves, width)

    def marks(self, storage: Storage) -> str:
        """What an access to a memory is marked with."""
        return storage.marks + self.group if storage.grouped else storage.marks

    def guard(self, place: n.Place) -> Value | None:
        """Whether all checks of a place hold; None if it has none."""
        total: Value | None = None
        while not isinstance(place, n.Variable):
            if isinstance(place, (n.Element, n.Item)):
                for check in place.checks:
                    for condition in self.check(check):
                        total = self.both(total, condition)
            if isinstance(place, n.Element):
                break
            place = place.base
        return total

    def both(self, a: Value | None, b: Value) -> Value:
        """The conjunction of two conditions."""
        if a is None:
            return b
        width = max(a.width, b.width)
        x, y = self.widen(a, width, BOOL).leaves[0], self.widen(b, width, BOOL).leaves[0]
        return Value((self.e.op(f"and {value_type(BOOL, width)} {x}, {y}"),), width)

    def check(self, check: n.Check) -> list[Value]:
        """The conditions of one check: one unsigned comparison if the bound is not negative."""
        index, bound = self.value(check.index), self.value(check.bound)
        type, bound_type = check.index.type, check.bound.type
        assert isinstance(type, Scalar)
        assert isinstance(bound_type, Scalar)
        known = bound.interval is not None and bound.interval[0] >= 0
        if type.bits != bound_type.bits or type.kind != bound_type.kind:
            index = self.as_index(index, type)
            bound = self.as_index(bound, bound_type)
            type = I64
        width = max(index.width, bound.width)
        llvm = value_type(type, width)
        a, b = self.widen(index, width, type).leaves[0], self.widen(bound, width, type).leaves[0]
        if known or not type.is_signed:
            return [Value((self.e.op(f"icmp ult {llvm} {a}, {b}"),), width)]
        return [
            Value((self.e.op(f"icmp sge {llvm} {a}, {constant(type, 0, width)}"),), width),
            Value((self.e.op(f"icmp slt {llvm} {a}, {b}"),), width),
        ]

    def address(self, place: n.Place) -> Address:
        """The address of a place; the caller prints its checks."""
        match place:
            case n.Variable():
                return self.frame(place)
            case n.Element():
                storage, _ = self.storage(place)
                pointer = memory.element_pointer(
                    self.e, storage.pointer, self.index(place.index), place.type
                )
                return Address(pointer, storage)
            case n.Member():
                base = self.address(place.base)
                return base.moved(member_offset(place.base.type, place.name))
            case n.Item():
                base = self.address(place.base)
                start = memory.byte_pointer(self.e, base)
                pointer = memory.element_pointer(self.e, start, self.index(place.index), place.type)
                return Address(pointer, base.storage)

    def storage(self, place: n.Element) -> tuple[Storage, Type]:
        """The memory that a place is in, and its element type."""
        try:
            return self.scope.memories[place.memory]
        except KeyError:
            raise CompileError(f"there is no memory `{place.memory}`", place.span) from None

    def index(self, node: n.Expression) -> str:
        """An index as an i64."""
        assert isinstance(node.type, Scalar)
        return self.as_index(self.value(node), node.type).leaves[0]

    def as_index(self, value: Value, type: Scalar) -> Value:
        """An integer as an i64. Lanes of an i32 that go in steps keep doing so: an index that is
        valid is not negative, and from one such index to another no step of lanes wraps."""
        linear = None
        if value.linear is not None:
            linear = casts.cast(self.e, type, I64, value.linear[0], 1), value.linear[1]
        wide = casts.cast(self.e, type, I64, value.leaves[0], value.width)
        return Value((wide,), value.width, value.interval, linear)

    # --- lanes ---

    def widen(self, value: Value, width: int, type: Type) -> Value:
        """The value in that many lanes."""
        if value.width == width:
            return value
        pairs = zip(leaf_types(type), value.leaves, strict=True)
        return Value(
            tuple(self.broadcast(leaf, value_type(scalar), width) for scalar, leaf in pairs),
            width,
            value.interval,
        )

    def broadcast(self, operand: str, llvm: str, width: int) -> str:
        """A scalar operand in every lane."""
        if arithmetic.is_literal(operand):
            return f"splat ({llvm} {operand})"
        vector = widened(llvm, width)
        first = self.e.op(f"insertelement {vector} poison, {llvm} {operand}, i64 0")
        return self.e.op(
            f"shufflevector {vector} {first}, {vector} poison, <{width} x i32> zeroinitializer"
        )


def member_offset(type: Type, name: str) -> int:
    """Bytes from the start of a vector or struct to its component or field."""
    if isinstance(type, Struct):
        return field_offset(type, name)
    assert not isinstance(type, Array)
    return "xyzw".index(name) * size_of(leaf_types(type)[0])
