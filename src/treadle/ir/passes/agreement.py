"""Conditions around barriers, made provably uniform for several hardware lanes.

A condition around a barrier has one value in all threads. But after fission a lane may read it from
a slot that it keeps for each of its threads, and a compiler that checks barriers (Tint) cannot see
that the slots are equal. So the first lane broadcasts its value through shared memory:

    if lane == 0: agreed[0] = flags[0]
    barrier
    decision = agreed[0]
    barrier
    if decision: …
"""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.passes.threads import HARDWARE_LANE, number
from treadle.ir.traverse import walk
from treadle.ir.types import BOOL, Type

_BARRIER = n.Barrier("block")
_MOST = 2  # expressions at a time: the start and the stop of a loop


@dataclass(slots=True)
class Agreement:
    """Agreements of one kernel. `constant` are the memories that it never writes, `memories` those
    that agreeing takes."""

    names: Names
    constant: frozenset[str]
    _memories: dict[Type, n.Memory] = field(default_factory=dict)

    @property
    def memories(self) -> tuple[n.Memory, ...]:
        """The shared memories that broadcast values."""
        return tuple(self._memories.values())

    def is_plain(self, expression: n.Expression) -> bool:
        """Whether a compiler sees by itself that an expression is uniform."""
        return not any(
            (isinstance(node, n.Element) and node.memory not in self.constant)
            or (isinstance(node, n.Builtin) and node.name in ("thread_idx", "lane"))
            for node in walk(expression)
        )

    def on(
        self, expressions: tuple[n.Expression, ...]
    ) -> tuple[list[n.Statement], tuple[n.Expression, ...]]:
        """Statements that broadcast the expressions' values from the first lane, and the values to
        use after them. Expressions that are plain need no statements."""
        assert len(expressions) <= _MOST
        stores: list[n.Statement] = []
        loads: list[n.Statement] = []
        values: list[n.Expression] = []
        for index, expression in enumerate(expressions):
            if self.is_plain(expression):
                values.append(expression)
                continue
            memory = self._memory(expression.type)
            place = n.Element(memory.name, number(index), expression.type)
            variable = n.Variable(self.names.fresh("decision"), expression.type)
            stores.append(n.Assign(place, expression, expression.span))
            loads.append(n.Declare(variable, n.Load(place, expression.type), expression.span))
            values.append(variable)
        if not stores:
            return [], tuple(values)
        first = n.Binary("eq", HARDWARE_LANE, number(0), BOOL)
        # Without the second barrier the next broadcast could overwrite this one before it is read.
        return [n.If(first, tuple(stores)), _BARRIER, *loads, _BARRIER], tuple(values)

    def _memory(self, type: Type) -> n.Memory:
        if type not in self._memories:
            name = self.names.fresh("agreed")
            self._memories[type] = n.Memory(name, "shared", type, _MOST)
        return self._memories[type]
