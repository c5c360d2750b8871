"""Reaching memory from expressions and statements: checks, addresses, loads.

This does what ptxas does not do. The constant part of an index becomes the number in
`[register+number]`: an access that is reached has an index inside of its memory, so adding the
parts in 64 bits is the same as adding them first. Accesses whose indices differ in nothing else
share one address, and checks that were made share their predicate, as long as no variable in them
changes (`Known`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from treadle.codegen.leaves import leaf_types
from treadle.codegen.ptx import memory
from treadle.codegen.ptx.emitter import Emitter, unless
from treadle.codegen.ptx.memory import Address, Storage
from treadle.codegen.ptx.spelling import KINDS, MOVES, REGISTERS, ZEROS
from treadle.codegen.ptx.values import Value
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.traverse import walk
from treadle.ir.types import I32, Scalar, Struct, Type, align_of, field_offset, size_of

Split = tuple[n.Expression | None, int]
_LEAST_NUMBER = -(1 << 20)


@dataclass(slots=True)
class Scope:
    """What names mean inside one function."""

    values: dict[str, Value] = field(default_factory=dict)  # variables that are set once
    registers: dict[str, tuple[str, ...]] = field(default_factory=dict)  # those that change
    frames: dict[str, Storage] = field(default_factory=dict)  # variables that lie in memory
    memories: dict[str, Storage] = field(default_factory=dict)
    splits: dict[str, Split] = field(default_factory=dict)  # variables that are another + number
    assigned: frozenset[str] = frozenset()


class Known:
    """Registers that hold what was computed before: for each key, the variables it depends on."""

    __slots__ = ("_entries", "_mentioned")

    def __init__(self) -> None:
        self._entries: dict[Any, tuple[str, frozenset[str]]] = {}
        self._mentioned: set[str] = set()  # all variables of entries, and perhaps others

    def get(self, key: Any) -> str | None:
        """The register for a key."""
        found = self._entries.get(key)
        return found[0] if found else None

    def put(self, key: Any, register: str, variables: frozenset[str]) -> None:
        """Remember a register."""
        self._entries[key] = (register, variables)
        self._mentioned |= variables

    def forget(self, names: frozenset[str]) -> None:
        """These variables change."""
        if not self._mentioned.isdisjoint(names):
            self._entries = {
                key: entry for key, entry in self._entries.items() if names.isdisjoint(entry[1])
            }
            self._mentioned -= names

    def snapshot(self) -> dict[Any, tuple[str, frozenset[str]]]:
        """All of it, to come back to."""
        return dict(self._entries)

    def restore(self, entries: dict[Any, tuple[str, frozenset[str]]]) -> None:
        """Only what was known then."""
        self._entries = dict(entries)
        self._mentioned.update(*(variables for _, variables in entries.values()))


class Accesses(ABC):
    """Printing of accesses into one function. What a subclass adds are the values."""

    e: Emitter
    scope: Scope
    known: Known

    @abstractmethod
    def value(self, node: n.Expression) -> Value:
        """The value of an expression."""

    def scalar(self, node: n.Expression) -> str:
        """The operand of an expression that is one number."""
        return self.value(node).leaves[0]

    # --- loads ------------------------------------------------------------------------------------

    def load(self, node: n.Load) -> Value:
        guard = self.guard(node.place)
        if guard is None or not self.must_wait(node.place):
            return memory.load(self.e, self.address(node.place), node.type, guard or "")
        return self.guarded(
            guard,
            node.type,
            lambda: memory.load(self.e, self.address(node.place), node.type),
        )

    def guarded(self, guard: str, type: Type, run: Callable[[], Value]) -> Value:
        """What `run` gives if the guard holds, else zero."""
        results = [self.e.register(REGISTERS[scalar.name]) for scalar in leaf_types(type)]
        kinds = [REGISTERS[scalar.name] for scalar in leaf_types(type)]
        for kind, result in zip(kinds, results, strict=True):
            self.e.move(kind, result, ZEROS[kind])
        skip = self.e.new_label()
        self.e.jump(skip, unless(guard))
        before = self.known.snapshot()
        value = run()
        for kind, result, leaf in zip(kinds, results, value.leaves, strict=True):
            self.e.move(kind, result, leaf)
        self.known.restore(before)
        self.e.place(skip)
        return Value(tuple(results))

    def must_wait(self, place: n.Place) -> bool:
        """Whether the indices of a place may be evaluated only if its checks hold: they load
        something that the checks do not load anyway."""
        indices: list[n.Expression] = []
        checked: list[n.Expression] = []
        while not isinstance(place, n.Variable):
            if isinstance(place, (n.Element, n.Item)):
                indices.append(place.index)
                checked += [check.index for check in place.checks]
            if isinstance(place, n.Element):
                break
            place = place.base
        return any(
            index not in checked and any(isinstance(part, n.Load) for part in walk(index))
            for index in indices
        )

    # --- checks -----------------------------------------------------------------------------------

    def guard(self, place: n.Place) -> str | None:
        """Whether all checks of a place hold; None if it has none."""
        total: str | None = None
        while not isinstance(place, n.Variable):
            if isinstance(place, (n.Element, n.Item)):
                for check in place.checks:
                    holds = self.check(check)
                    total = self.e.op("pred", "and.pred", total, holds) if total else holds
            if isinstance(place, n.Element):
                break
            place = place.base
        return total

    def check(self, check: n.Check) -> str:
        """Whether one check holds: one unsigned comparison if the bound is not negative."""
        key = ("check", check.index, check.bound)
        found = self.known.get(key)
        if found is None:
            found = self.e.keep(self.compared(check))
            self.remember(key, found, check.index, check.bound)
        return found

    def compared(self, check: n.Check) -> str:
        index, bound = self.value(check.index), self.value(check.bound)
        type = check.index.type
        assert isinstance(type, Scalar)
        a, b = index.leaves[0], bound.leaves[0]
        if bound.interval is not None and bound.interval[0] >= 0:
            return self.e.op("pred", f"setp.lt.u{type.bits}", a, b)
        kind = KINDS[type.name]
        not_low = self.e.op("pred", f"setp.ge.{kind}", a, "0")
        return self.e.op("pred", "and.pred", not_low, self.e.op("pred", f"setp.lt.{kind}", a, b))

    def remember(self, key: Any, register: str, *nodes: n.Expression) -> None:
        """Let a register be found again, unless what it was made of may change unseen."""
        names: set[str] = set()
        for node in nodes:
            for part in walk(node):
                if isinstance(part, (n.Load, n.Call)):
                    return
                if isinstance(part, n.Variable):
                    names.add(part.name)
        self.known.put(key, register, frozenset(names & self.scope.assigned))

    # --- addresses --------------------------------------------------------------------------------

    def address(self, place: n.Place) -> Address:
        """The address of a place; the caller prints its checks."""
        match place:
            case n.Variable():
                storage = self.frame(place)
                return Address(storage, storage.base, storage.start, align_of(place.type))
            case n.Element():
                storage = self.storage(place)
                start = Address(storage, storage.base, storage.start, align_of(place.type))
                return self.indexed(start, place, (place.memory, place.type))
            case n.Member():
                return self.address(place.base).moved(member_offset(place.base.type, place.name))
            case n.Item():
                return self.indexed(self.address(place.base), place, None)

    def frame(self, node: n.Variable) -> Storage:
        """The memory of a variable that lies in memory."""
        storage = self.scope.frames.get(node.name)
        if storage is None:
            raise CompileError(f"`{node.name}` is used before it is declared", node.span)
        return storage

    def storage(self, place: n.Element) -> Storage:
        """The memory that a place is in."""
        try:
            return self.scope.memories[place.memory]
        except KeyError:
            raise CompileError(f"there is no memory `{place.memory}`", place.span) from None

    def indexed(self, start: Address, place: n.Element | n.Item, key: Any) -> Address:
        """The address of an item, counted from where a sequence starts."""
        size = size_of(place.type)
        rest, number = self.split_index(place.index)
        address = start.moved(number * size)
        if rest is None:
            return address
        found = self.known.get((key, rest)) if key else None
        if found is None:
            found = self.scaled(start, rest, size)
            if key:
                self.remember((key, rest), self.e.keep(found), rest)
        step = size & -size  # that the address is a multiple of
        return replace(address, base=found, alignment=min(start.alignment, step))

    def scaled(self, start: Address, index: n.Expression, size: int) -> str:
        """The register with the address of the element `index`."""
        e, value = self.e, self.scalar(index)
        wide = isinstance(index.type, Scalar) and index.type.bits == 64
        base = start.base
        if start.storage.pointer == "b64":
            # One mad.wide would become two instructions; ptxas makes one of these two.
            opcode = "mul.lo.s64" if wide else "mul.wide.s32"
            return e.op("b64", "add.s64", base, e.op("b64", opcode, value, str(size)))
        if wide:
            value = e.op("b32", "cvt.u32.u64", value)
        if not base.startswith("%"):
            base = self.memory_register(base)
        return e.op("b32", "mad.lo.s32", value, str(size), base)

    def memory_register(self, name: str) -> str:
        """The register with the address of a memory that is known by name."""
        key = ("memory", name)
        found = self.known.get(key)
        if found is None:
            found = self.e.keep(self.e.op("b32", MOVES["b32"], name))
            self.known.put(key, found, frozenset())
        return found

    # --- the constant part of an index ------------------------------------------------------------

    def split_index(self, index: n.Expression) -> Split:
        """An index as an expression and a number to be added to it (None: the number alone).

        Both are right as they stand only up to a multiple of 2**32, for an i32. But the index is
        one of an element that exists, so it is not negative, and then the sum is it exactly,
        unless the number is a large negative one.
        """
        if isinstance(index, n.Cast) and index.operand.type == I32:
            index = index.operand  # to i64: addresses are that wide anyway
        bits = index.type.bits if isinstance(index.type, Scalar) else 32
        rest, number = self.split(index)
        number = (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        return (rest, number) if number >= _LEAST_NUMBER else (index, 0)

    def split(self, node: n.Expression) -> Split:
        """An integer as an expression and a number to be added to it, wrapping around."""
        match node:
            case n.Constant():
                return None, int(node.value)
            case n.Variable():
                return self.scope.splits.get(node.name, (node, 0))
            case n.Binary(op="add" | "sub"):
                return self.split_sum(node)
            case n.Binary(op="mul", right=n.Constant() as factor):
                return _multiplied(node, *self.split(node.left), factor)
            case n.Binary(op="mul", left=n.Constant() as factor):
                return _multiplied(node, *self.split(node.right), factor)
            case n.Binary(op="shl", right=n.Constant() as amount) if 0 <= amount.value < 31:
                factor = replace(amount, value=1 << int(amount.value))
                return _multiplied(node, *self.split(node.left), factor)
        return node, 0

    def split_sum(self, node: n.Binary) -> Split:
        left, first = self.split(node.left)
        right, second = self.split(node.right)
        number = first + second if node.op == "add" else first - second
        if right is None:
            return left, number
        if left is None:
            if node.op == "sub":
                return n.Unary("neg", right, node.type), number
            return right, number
        if left is node.left and right is node.right:
            return node, 0
        return n.Binary(node.op, left, right, node.type), number


def _multiplied(node: n.Binary, rest: n.Expression | None, number: int, by: n.Constant) -> Split:
    if rest is None:
        return None, number * int(by.value)
    if not number:
        return node, 0
    return n.Binary("mul", rest, by, node.type), number * int(by.value)


def member_offset(type: Type, name: str) -> int:
    """Bytes from the start of a vector or struct to its component or field."""
    if isinstance(type, Struct):
        return field_offset(type, name)
    return "xyzw".index(name) * size_of(leaf_types(type)[0])
