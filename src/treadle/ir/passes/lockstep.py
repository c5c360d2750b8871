"""Warp-synchronous code: races that relied on warps in lockstep, found and fixed.

Before Volta, the threads of a warp ran each statement in lockstep, and CUDA code relied on it:

    s[t] += s[t + 16];             v = s[t + 16]; barrier subgroup; s[t] += v; barrier subgroup
    s[t] += s[t + 8];              v = s[t + 8]; barrier subgroup; s[t] += v; barrier subgroup

Since Volta threads of a warp may diverge at any point. `find_race` finds where a thread reads what
another one may have written in an earlier statement, without a barrier between.
`with_warp_barriers` puts barriers of the warp between statements that write and read one shared
memory, and inside statements that read before they write.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace

from treadle.core.source import NOWHERE, Span
from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.traverse import Node, root_of, statements_in, walk
from treadle.ir.types import U32

_WARP = 32


# --- finding it ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Write:
    """What was written to since the last barrier. An `index` of None is any element."""

    memory: str
    index: n.Expression | None
    branch: int  # the number of the branch that holds it


def find_race(body: n.Block, memories: frozenset[str]) -> n.Statement | None:
    """The first statement that reads what another thread of its warp may have written to one of
    these memories, with no barrier between; None if there is none."""
    finder = _Finder(memories)
    finder.block(body, 0)
    return finder.found


class _Finder:
    def __init__(self, memories: frozenset[str]) -> None:
        self.memories = memories
        self.written: list[_Write] = []
        self.found: n.Statement | None = None
        self.branches = 0
        self.elements: dict[int, tuple[n.Element, ...]] = {}  # that statements read, by identity

    def block(self, block: n.Block, branch: int) -> None:
        for statement in block:
            if self.found is not None:
                return
            self.statement(statement, branch)

    def statement(self, statement: n.Statement, branch: int) -> None:
        match statement:
            case n.Barrier() | n.Subgroup() | n.OpaqueStore():
                self.written.clear()
                return
            case n.If(condition=condition):
                self.reads(statement, (condition,))
                before = list(self.written)
                self.block(statement.then, self.new_branch())
                after, self.written = self.written, before
                self.block(statement.otherwise, self.new_branch())
                self.written += [one for one in after if one not in self.written]
                return
            case n.For() | n.While():
                self.loop(statement)
                return
        self.reads(statement, _operands(statement))
        if isinstance(statement, (n.Assign, n.Atomic)):
            self.write(statement.place, branch)

    def new_branch(self) -> int:
        self.branches += 1
        return self.branches

    def loop(self, loop: n.For | n.While) -> None:
        """The second iteration may read what the first one wrote, at other indices."""
        heads = (loop.start, loop.stop) if isinstance(loop, n.For) else (loop.condition,)
        self.reads(loop, heads)
        inside = loop.body if isinstance(loop, n.For) else (*loop.body, *loop.update)
        self.block(inside, self.new_branch())
        if not self.written:  # the next iteration is like the first one
            return
        if isinstance(loop, n.For):
            self.changed(loop.variable)
        for one in statements_in(inside):
            if isinstance(one, n.Declare):
                self.changed(one.variable)
        self.reads(loop, heads)
        self.block(inside, self.new_branch())

    def write(self, place: n.Place, branch: int) -> None:
        root = root_of(place)
        if isinstance(root, n.Variable):
            self.changed(root)
        elif root.memory in self.memories:
            self.written.append(_Write(root.memory, root.index, branch))

    def changed(self, variable: n.Variable) -> None:
        """Indices that a variable is in are others from here on."""
        for one in self.written:
            if one.index is not None and variable in walk(one.index):
                one.index = None

    def reads(self, statement: n.Statement, operands: tuple[Node, ...]) -> None:
        if self.written and any(map(self.may_read, self.read_by(statement, operands))):
            self.found = self.found or statement

    def read_by(self, statement: n.Statement, operands: tuple[Node, ...]) -> tuple[n.Element, ...]:
        """The elements of these memories that a statement reads: loops ask several times."""
        known = self.elements.get(id(statement))
        if known is None:
            loads = (node for one in operands for node in walk(one) if isinstance(node, n.Load))
            roots = (root_of(load.place) for load in loads)
            known = self.elements[id(statement)] = tuple(
                root
                for root in roots
                if isinstance(root, n.Element) and root.memory in self.memories
            )
        return known

    def may_read(self, place: n.Element) -> bool:
        return any(
            one.memory == place.memory and _by_another(one, place.index) for one in self.written
        )


def _by_another(write: _Write, index: n.Expression) -> bool:
    """Whether another thread may have written the element that one reads."""
    if write.index is None:
        return True
    if isinstance(index, n.Constant) and isinstance(write.index, n.Constant):
        return index == write.index and write.branch > 0  # one thread wrote it for all
    return index != write.index


# --- making it so --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Touched:
    """The memories that were read and written since the last barrier."""

    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)

    def clear(self) -> None:
        self.read.clear()
        self.written.clear()

    def add(self, other: _Touched) -> None:
        self.read |= other.read
        self.written |= other.written

    def copied(self) -> _Touched:
        return _Touched(set(self.read), set(self.written))

    def conflicts(self, other: _Touched) -> bool:
        """Whether what comes next must wait for what was."""
        return bool(other.read & self.written or other.written & (self.read | self.written))


def with_warp_barriers(kernel: n.Kernel) -> n.Kernel:
    """The kernel with the threads of each warp in step where they touch shared memory."""
    shared = frozenset(one.name for one in kernel.memories if one.space == "shared")
    if not shared:
        return kernel
    stepper = _Stepper(shared, Names(kernel))
    return replace(kernel, body=tuple(stepper.block(kernel.body, True)))


class _Stepper:
    def __init__(self, shared: frozenset[str], names: Names) -> None:
        self.shared = shared
        self.names = names
        self.touched = _Touched()

    def block(self, block: n.Block, whole: bool) -> Iterator[n.Statement]:
        """The statements with barriers. `whole`: whole warps come here."""
        for statement in block:
            match statement:
                case n.Barrier():
                    self.touched.clear()
                    yield statement
                case n.If():
                    yield from self.branch(statement, whole)
                case n.For() | n.While():
                    yield from self.loop(statement, whole)
                case n.Assign():
                    yield from self.assignment(statement, whole)
                case _:
                    touches = self.touches(_operands(statement))
                    if isinstance(statement, n.Atomic):
                        touches.written |= self.memory_of(statement.place)
                    yield from self.before(touches, whole, statement.span)
                    yield statement

    def before(self, touches: _Touched, whole: bool, span: Span) -> Iterator[n.Statement]:
        """A barrier, if what comes next needs one."""
        if self.touched.conflicts(touches):
            self.touched.clear()
            yield from self.barrier(whole, span)
        self.touched.add(touches)

    def barrier(self, whole: bool, span: Span) -> Iterator[n.Statement]:
        mask: n.Expression = n.Constant(0xFFFFFFFF, U32)
        if not whole:  # those that are here
            here = n.Variable(self.names.fresh("here"), U32)
            yield n.Declare(here, None, span)
            yield n.Subgroup("active", (), here, None, span)
            mask = here
        yield n.Barrier("subgroup", mask, span)

    def assignment(self, statement: n.Assign, whole: bool) -> Iterator[n.Statement]:
        """All threads read before any of them writes."""
        reads = self.touches(_operands(statement))
        writes = _Touched(set(), self.memory_of(statement.place))
        if not reads.conflicts(writes):
            reads.add(writes)
            yield from self.before(reads, whole, statement.span)
            yield statement
            return
        yield from self.before(reads, whole, statement.span)
        kept = n.Variable(self.names.fresh("step"), statement.value.type, statement.span)
        yield n.Declare(kept, statement.value, statement.span)
        place = yield from self.settled(statement.place)
        yield from self.before(writes, whole, statement.span)
        yield n.Assign(place, kept, statement.span)

    def settled(self, place: n.Place) -> Generator[n.Statement, None, n.Place]:
        """A place whose indices are computed now, if they are read from shared memory."""
        if isinstance(place, n.Variable):
            return place
        if isinstance(place, (n.Member, n.Item)):
            base = yield from self.settled(place.base)
            place = replace(place, base=base)
        if isinstance(place, (n.Element, n.Item)) and self.touches((place.index,)).read:
            index = n.Variable(self.names.fresh("place"), place.index.type)
            yield n.Declare(index, place.index, NOWHERE)
            checks = tuple(replace(one, index=index) for one in place.checks)
            place = replace(place, index=index, checks=checks)
        return place

    def branch(self, statement: n.If, whole: bool) -> Iterator[n.Statement]:
        yield from self.before(self.touches((statement.condition,)), whole, statement.span)
        inside = whole and _takes_whole_warps(statement.condition)
        start = self.touched.copied()
        then = tuple(self.block(statement.then, inside))
        after, self.touched = self.touched, start
        otherwise = tuple(self.block(statement.otherwise, inside))
        self.touched.add(after)
        yield replace(statement, then=then, otherwise=otherwise)

    def loop(self, loop: n.For | n.While, whole: bool) -> Iterator[n.Statement]:
        """What one iteration wrote, the next one may read."""
        heads = (loop.start, loop.stop) if isinstance(loop, n.For) else (loop.condition,)
        yield from self.before(self.touches(heads), whole, loop.span)
        iteration = self.all_of(
            loop.body if isinstance(loop, n.For) else (*loop.body, *loop.update)
        )
        again = self.touches(heads)
        again.add(iteration)
        self.touched.add(again)
        if isinstance(loop, n.For):
            counted = isinstance(loop.start, n.Constant) and isinstance(loop.stop, n.Constant)
            body = tuple(self.block(loop.body, whole and counted))
            yield replace(loop, body=body)
        else:
            body = tuple(self.block(loop.body, False))
            update = list(self.block(loop.update, False))
            if iteration.conflicts(self.touches(heads)):  # the next iteration reads them
                update += self.barrier(False, loop.span)
            yield replace(loop, body=body, update=tuple(update))
        self.touched.add(again)

    def all_of(self, block: n.Block) -> _Touched:
        """Everything that statements touch."""
        found = _Touched()
        for statement in statements_in(block):
            found.add(self.touches(_operands(statement)))
            if isinstance(statement, (n.Assign, n.Atomic)):
                found.written |= self.memory_of(statement.place)
        return found

    def touches(self, operands: tuple[Node, ...]) -> _Touched:
        found = _Touched()
        for operand in operands:
            for node in walk(operand):
                if isinstance(node, n.Load):
                    found.read |= self.memory_of(node.place)
        return found

    def memory_of(self, place: n.Place) -> set[str]:
        root = root_of(place)
        return {root.memory} & self.shared if isinstance(root, n.Element) else set()


def _operands(statement: n.Statement) -> tuple[Node, ...]:
    """The expressions that a statement evaluates, those of blocks inside left out."""
    match statement:
        case n.Assign(place=place, value=value):
            return (*_indices(place), value)
        case n.Atomic(place=place, operands=operands):
            return (*_indices(place), *operands)
        case n.If(condition=condition) | n.While(condition=condition):
            return (condition,)
        case n.For(start=start, stop=stop):
            return start, stop
    return (statement,)


def _indices(place: n.Place) -> Iterator[n.Expression]:
    while isinstance(place, (n.Member, n.Item)):
        if isinstance(place, n.Item):
            yield place.index
        place = place.base
    if isinstance(place, n.Element):
        yield place.index


def _takes_whole_warps(condition: n.Expression) -> bool:
    """Whether a condition is one of the usual ones that hold for whole warps: `t < 32`."""
    if any(isinstance(node, n.Load) for node in walk(condition)):
        return False
    match condition:
        case n.Binary(op="lt" | "ge", right=n.Constant(value=bound)):
            return int(bound) % _WARP == 0
        case n.Binary(op="le" | "gt", right=n.Constant(value=bound)):
            return int(bound) % _WARP == _WARP - 1
    return False
