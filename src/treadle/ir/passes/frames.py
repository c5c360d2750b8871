"""The frames of recursive functions: what a call keeps until it has returned, in local memory.

Each number that is kept has an array with an element for each level; functions share them. One
array for all would be slower to compile where a compiler makes branches of every index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir.types import BOOL, F32, I32, U32, Type

_Slot = tuple[Type, int]
_STATE: _Slot = (U32, 0)


class Frames:
    """Which variables the functions keep, and where."""

    def __init__(
        self, level: n.Variable, levels: int, unique: Callable[[str], str], span: Span
    ) -> None:
        self.level = level
        self.levels = levels
        self.unique = unique
        self.span = span
        self.slots: dict[str, dict[str, tuple[n.Variable, _Slot]]] = {}  # by function and variable
        self.names: dict[_Slot, str] = {_STATE: unique("after")}

    def keep(self, function: str, variables: Iterable[n.Variable]) -> None:
        """Give the variables that a call in a function keeps their places."""
        slots = self.slots.setdefault(function, {})
        for one in variables:
            if one.name in slots:
                continue
            type = _kept_as(one.type)
            slot = type, sum(slot[0] == type for _, slot in slots.values()) + (type == U32)
            slots[one.name] = one, slot
            if slot not in self.names:
                self.names[slot] = self.unique("kept")

    def memories(self) -> tuple[n.Memory, ...]:
        """The arrays."""
        return tuple(
            n.Memory(name, "local", type, self.levels, self.span)
            for (type, _), name in self.names.items()
        )

    def saves(self, function: str, names: Collection[str]) -> Iterator[n.Statement]:
        """The variables of a function that are kept, into the frame."""
        for variable, slot in self._kept(function, names):
            yield n.Assign(self._place(slot), _packed(variable), self.span)

    def loads(self, function: str, names: Collection[str]) -> Iterator[n.Statement]:
        """The variables of a function that were kept, from the frame."""
        for variable, slot in self._kept(function, names):
            loaded = n.Load(self._place(slot), slot[0], self.span)
            yield n.Assign(variable, _unpacked(loaded, variable.type), self.span)

    def save_state(self, state: int) -> n.Statement:
        """The state after the call, into the frame."""
        return n.Assign(self._place(_STATE), n.Constant(state, U32), self.span)

    def state(self) -> n.Expression:
        """The state after the call."""
        return n.Cast(n.Load(self._place(_STATE), U32, self.span), I32, self.span)

    def _kept(self, function: str, names: Collection[str]) -> Iterator[tuple[n.Variable, _Slot]]:
        slots = self.slots.get(function, {})
        return (slots[name] for name in slots if name in names)

    def _place(self, slot: _Slot) -> n.Element:
        return n.Element(self.names[slot], self.level, slot[0], (), self.span)


def _kept_as(type: Type) -> Type:
    return U32 if type in (BOOL, F32, I32) else type


def _packed(variable: n.Variable) -> n.Expression:
    if variable.type == BOOL:
        return n.Cast(variable, U32)
    if variable.type in (F32, I32):
        return n.Bitcast(variable, U32)
    return variable


def _unpacked(value: n.Expression, type: Type) -> n.Expression:
    if type == BOOL:
        return n.Cast(value, BOOL)
    return n.Bitcast(value, type) if type in (F32, I32) else value
