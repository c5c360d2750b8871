"""Races inside `if (threadIdx.x < 32)`: shared memory exchanged in a warp without a barrier.

    if (t < 32) { s[t] += s[t + 32]; s[t] += s[t + 16]; … }

Only the first warp takes the branch, so such code relied on warps that run in lockstep. Only
certain races are found: indices that are the thread's own plus a constant, where another thread
that takes the branch has written the element that is read. A false alarm would be a warning about
correct code.
"""

from __future__ import annotations

from dataclasses import dataclass

from treadle.ir import nodes as n
from treadle.ir.traverse import Node, root_of, walk

_WARP = 32


@dataclass(frozen=True, slots=True)
class _Write:
    """Elements written since the last barrier: of the threads below `threads`, each its own
    number plus `offset`."""

    memory: str
    offset: int
    threads: int


def find_warp_race(body: n.Block, memories: frozenset[str]) -> n.Statement | None:
    """The first statement in the branch of one warp that reads what another thread of it wrote to
    one of these memories, with no barrier between; None if there is none."""
    return _Finder(memories).block(body, None)


class _Finder:
    def __init__(self, memories: frozenset[str]) -> None:
        self.memories = memories
        self.values: dict[str, n.Expression] = {}  # of variables, until they are assigned
        self.written: list[_Write] = []

    def block(self, block: n.Block, threads: int | None) -> n.Statement | None:
        """`threads`: how many there are, all of one warp; None where there may be more."""
        for statement in block:
            found = self.statement(statement, threads)
            if found is not None:
                return found
        return None

    def statement(self, statement: n.Statement, threads: int | None) -> n.Statement | None:
        match statement:
            case n.Barrier() | n.Subgroup():
                self.written.clear()
            case n.If(condition=condition, then=then, otherwise=otherwise):
                before = list(self.written)
                found = self.block(then, self.passing(condition, threads))
                after, self.written = self.written, before
                found = found or self.block(otherwise, threads)
                self.written = [one for one in after if one in self.written or not otherwise]
                return found
            case n.For(body=inside):
                return self.block(inside, threads)
            case n.While(body=inside, update=update):
                return self.block((*inside, *update), threads)
            case n.Declare(variable=variable, value=value):
                if threads is not None and value is not None and self.reads(value, threads):
                    return statement
                if value is not None:
                    self.values[variable.name] = value
            case n.Assign(place=place, value=value):
                if threads is not None and self.reads(value, threads):
                    return statement
                self.write(place, threads)
            case n.Atomic(place=place):
                self.write(place, None)
        return None

    def passing(self, condition: n.Expression, threads: int | None) -> int | None:
        match condition:
            case n.Binary(op="lt", left=left, right=n.Constant(value=bound)):
                if self.offset(left) == 0 and 0 < int(bound) <= _WARP:
                    return min(int(bound), threads or _WARP)
        return threads

    def write(self, place: n.Place, threads: int | None) -> None:
        root = root_of(place)
        if isinstance(root, n.Variable):
            self.values.pop(root.name, None)
        elif threads is not None and root.memory in self.memories:
            offset = self.offset(root.index)
            if offset is not None:
                self.written.append(_Write(root.memory, offset, threads))

    def reads(self, value: Node, threads: int) -> bool:
        for node in walk(value):
            root = root_of(node.place) if isinstance(node, n.Load) else None
            if isinstance(root, n.Element):
                offset = self.offset(root.index)
                if offset is not None and any(
                    one.memory == root.memory and _may_overlap(one, offset, threads)
                    for one in self.written
                ):
                    return True
        return False

    def offset(self, index: n.Expression) -> int | None:
        """What is added to the thread's number; None for anything else."""
        match index:
            case n.Cast(operand=operand):
                return self.offset(operand)
            case n.Builtin(name="thread_idx", axis=0):
                return 0
            case n.Variable(name=name) if name in self.values:
                return self.offset(self.values[name])
            case n.Binary(op="add", left=left, right=n.Constant(value=value)):
                base = self.offset(left)
                return None if base is None else base + int(value)
            case n.Binary(op="sub", left=left, right=n.Constant(value=value)):
                base = self.offset(left)
                return None if base is None else base - int(value)
        return None


def _may_overlap(write: _Write, offset: int, threads: int) -> bool:
    """Whether one of the threads reads what another one wrote."""
    distance = offset - write.offset
    return 0 < distance < write.threads or 0 < -distance < threads
