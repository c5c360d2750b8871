"""Races inside `if (threadIdx.x < 32)`: shared memory exchanged in a warp without a barrier.

    if (t < 32) { s[t] += s[t + 32]; s[t] += s[t + 16]; … }

Only the first warp takes the branch, so such code relied on warps that run in lockstep. Only
certain races are found: indices that are the thread's own plus a number known here, where another
thread that takes the branch has written the element that is read. A loop over such numbers
(`for (int n = 16; n > 0; n >>= 1) s[t] += s[t + n];`) is run with them. A false alarm would be a
warning about correct code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from treadle.ir import nodes as n
from treadle.ir.passes.regions import assigned_in
from treadle.ir.traverse import Node, root_of, statements_in, walk
from treadle.ir.types import I64

_WARP = 32
_ITERATIONS = 256  # of all loops over offsets, which may be nested: more are not run

_EVALUATED: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "shl": lambda a, b: a << min(b, 64),
    "shr": lambda a, b: a >> min(b, 64),
    "div": lambda a, b: a // b if b and a >= 0 and b > 0 else 0,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "ne": operator.ne,
    "eq": operator.eq,
}


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
        self.left = _ITERATIONS  # that may still be run one by one

    def block(self, block: n.Block, threads: int | None) -> n.Statement | None:
        """`threads`: how many there are, all of one warp; None where there may be more."""
        for statement in block:
            found = self.statement(statement, threads)
            if found is not None:
                return found
        return None

    def statement(self, statement: n.Statement, threads: int | None) -> n.Statement | None:
        match statement:
            case n.Barrier() | n.Subgroup() | n.OpaqueStore():
                self.written.clear()
            case n.If(condition=condition, then=then, otherwise=otherwise):
                before = list(self.written)
                found = self.block(then, self.passing(condition, threads))
                after, self.written = self.written, before
                found = found or self.block(otherwise, threads)
                self.written = [one for one in after if one in self.written or not otherwise]
                self.forget(then + otherwise)
                return found
            case n.For():
                return self.counted(statement, threads)
            case n.While():
                return self.loop(statement, threads)
            case n.Declare(variable=variable, value=value):
                if threads is not None and value is not None and self.reads(value, threads):
                    return statement
                if value is not None:
                    self.values[variable.name] = value
            case n.Assign(place=place, value=value):
                if threads is not None and self.reads(value, threads):
                    return statement
                number = self.number(value) if isinstance(place, n.Variable) else None
                self.write(place, threads)
                if isinstance(place, n.Variable) and number is not None:
                    self.values[place.name] = n.Constant(number, I64)
            case n.Atomic(place=place):
                self.write(place, None)
        return None

    def counted(self, loop: n.For, threads: int | None) -> n.Statement | None:
        """The body with each number, where these are known; else once."""
        start, stop = self.number(loop.start), self.number(loop.stop)
        if start is None or stop is None or not loop.step or _leaves(loop.body):
            return self.once(loop.body, threads)
        for number in range(start, stop, loop.step):
            if not self.left:
                return self.once(loop.body, threads)
            self.left -= 1
            self.values[loop.variable.name] = n.Constant(number, I64)
            found = self.block(loop.body, threads)
            if found is not None:
                return found
        return None

    def loop(self, loop: n.While, threads: int | None) -> n.Statement | None:
        """The body as often as the condition is known to hold; once where it is not known."""
        body = (*loop.body, *loop.update)
        while self.left:
            self.left -= 1
            holds = self.number(loop.condition)
            if holds == 0:
                return None
            if holds is None or _leaves(loop.body):
                break
            found = self.block(body, threads)
            if found is not None:
                return found
        return self.once(body, threads)

    def once(self, body: n.Block, threads: int | None) -> n.Statement | None:
        """A body that runs an unknown number of times: what it assigns is not known in it."""
        self.forget(body)
        found = self.block(body, threads)
        self.forget(body)
        return found

    def forget(self, block: n.Block) -> None:
        for name in assigned_in(block):
            self.values.pop(name, None)

    def passing(self, condition: n.Expression, threads: int | None) -> int | None:
        match condition:
            case n.Binary(op="lt", left=left, right=right):
                bound = self.number(right)
                if bound is not None and self.offset(left) == 0 and 0 < bound <= _WARP:
                    return min(bound, threads or _WARP)
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
            case n.Binary(op="add" | "sub" as op, left=left, right=right):
                base, value = self.offset(left), self.number(right)
                if base is not None and value is not None:
                    return base + value if op == "add" else base - value
        return None

    def number(self, value: n.Expression) -> int | None:
        """The value of an expression of integers; None where it is not known."""
        match value:
            case n.Constant(value=int() as constant):
                return int(constant)
            case n.Cast(operand=operand):
                return self.number(operand)
            case n.Variable(name=name) if name in self.values:
                return self.number(self.values[name])
            case n.Binary(op=op, left=left, right=right) if op in _EVALUATED:
                a, b = self.number(left), self.number(right)
                if a is not None and b is not None:
                    return int(_EVALUATED[op](a, b))
        return None


def _leaves(body: n.Block) -> bool:
    return any(isinstance(one, (n.Break, n.Continue, n.Return)) for one in statements_in(body))


def _may_overlap(write: _Write, offset: int, threads: int) -> bool:
    """Whether one of the threads reads what another one wrote."""
    distance = offset - write.offset
    return 0 < distance < write.threads or 0 < -distance < threads
