"""Barriers under conditions that differ between threads: the threads that skip one wait at it, too.

On CUDA a thread that leaves a loop, or does not enter a branch, waits at the next barrier that it
comes to, or has ended, and the others go on. Other targets need every thread of a block at every
barrier. So a branch or loop with a barrier in it that only some threads take is entered by all of
them, with a mask that says which ones work there:

    if i < n:                 taken = i < n
      a                       if taken: a
      barrier                 barrier
      b                       if taken: b

A loop goes on as long as the mask of any thread is set, which the threads tell each other through
shared memory. Every thread does the same work between the same barriers as before, if the kernel is
one that CUDA defines the result of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.passes.uniformity import Level, Uniformity, analyze, check_barriers
from treadle.ir.traverse import statements_in
from treadle.ir.types import BOOL, I32, Scalar

_BARRIER = n.Barrier("block")
_ZERO = n.Constant(0, I32)
_ONE = n.Constant(1, I32)


def with_masked_barriers(
    kernel: n.Kernel, also_written: frozenset[str], refusal: CompileError
) -> n.Kernel:
    """The kernel with masks around the work of branches and loops that divide the threads of a
    block and have barriers in them. Raises `refusal` where that cannot be done."""
    made = masked_barriers(kernel, also_written, refusal)
    try:
        check_barriers(made, also_written=also_written)
    except CompileError:
        raise refusal from None
    return made


def masked_barriers(
    kernel: n.Kernel, also_written: frozenset[str], refusal: CompileError
) -> n.Kernel:
    """The same for passes that come later: operations of warps may still diverge."""
    uniformity = analyze(kernel, also_written=also_written)
    masker = _Masker(uniformity, Names(kernel), refusal)
    body = masker.uniform(kernel.body)
    memories = kernel.memories
    if masker.flag is not None:
        memories = (*memories, n.Memory(masker.flag, "shared", I32, 1))
    return replace(kernel, body=body, memories=memories)


@dataclass(frozen=True, slots=True)
class _Loop:
    """The loop around a statement: whether this thread is still in it, and the masks that a jump
    clears, the iteration's first."""

    live: n.Variable
    masks: tuple[n.Variable, ...]


class _Masker:
    def __init__(self, uniformity: Uniformity, names: Names, refusal: CompileError) -> None:
        self.uniformity = uniformity
        self.names = names
        self.refusal = refusal
        self.flag: str | None = None  # the shared memory that threads tell each other through
        self.last: n.Statement | None = None  # behind which there is no barrier

    def variable(self, name: str) -> n.Variable:
        return n.Variable(self.names.fresh(name), BOOL)

    def uniform(self, block: n.Block, *, followed: bool = False) -> n.Block:
        """A block that all threads reach: what divides them at a barrier is masked. `followed`:
        there are barriers behind it."""
        out: list[n.Statement] = []
        for at, statement in enumerate(block):
            behind = followed or _has_barrier_in(block[at + 1 :])
            if not _has_barrier(statement) or statement == _BARRIER:
                out.append(statement)
            elif self.divides(statement):
                mask = self.variable("here")
                self.last = None if behind else statement
                out.append(n.Declare(mask, n.TRUE))
                out.extend(self.masked(statement, mask, None))
            elif isinstance(statement, n.If):
                then = self.uniform(statement.then, followed=behind)
                otherwise = self.uniform(statement.otherwise, followed=behind)
                out.append(replace(statement, then=then, otherwise=otherwise))
            else:
                assert isinstance(statement, (n.For, n.While))
                out.append(replace(statement, body=self.uniform(statement.body, followed=True)))
        return tuple(out)

    def divides(self, statement: n.Statement) -> bool:
        """Whether a statement itself keeps some threads from a barrier in it."""
        own = self.uniformity
        match statement:
            case n.If(condition=condition):
                return not own.is_uniform(condition)
            case n.For(start=start, stop=stop):
                if not (own.is_uniform(start) and own.is_uniform(stop)):
                    return True
            case n.While(condition=condition):
                if not own.is_uniform(condition):
                    return True
        inner = [one for one in statements_in(_body(statement)) if one == _BARRIER]
        divided = any(own.flow(one).level > Level.BLOCK for one in inner)
        return divided and _jumps_divided(statement, own)

    # --- under a mask ---

    def region(self, block: n.Block, mask: n.Variable, loop: _Loop | None) -> list[n.Statement]:
        """A block under a mask, with its barriers outside of the mask."""
        out: list[n.Statement] = []
        group: list[n.Statement] = []

        def flush() -> None:
            if group:
                out.extend(self.group(tuple(group), mask, loop))
                group.clear()

        for statement in block:
            if _has_barrier(statement):
                flush()
                out.extend(self.masked(statement, mask, loop))
                continue
            if isinstance(statement, n.Declare):  # it may be used behind a barrier
                out.append(n.Declare(statement.variable, None, statement.span))
                if statement.value is None:
                    continue
                variable, value = statement.variable, statement.value
                statement = n.Assign(variable, value, statement.span)
            group.append(statement)
            if loop is not None and _jumps((statement,)):
                flush()
        flush()
        return out

    def group(self, block: n.Block, mask: n.Variable, loop: _Loop | None) -> list[n.Statement]:
        """Statements without barriers, for the threads of the mask."""
        if any(isinstance(one, n.Return) for one in statements_in(block)):
            raise self.refusal
        if loop is None or not _jumps(block):
            return [n.If(mask, block)]
        # A jump of the loop around leaves a loop of one iteration, with the masks cleared.
        once = n.While(n.TRUE, (*self.without_jumps(block, loop), n.Break()))
        return [n.If(mask, (once,))]

    def without_jumps(self, block: n.Block, loop: _Loop) -> n.Block:
        out: list[n.Statement] = []
        for statement in block:
            match statement:
                case n.Break() | n.Continue():
                    cleared = [*loop.masks]
                    if isinstance(statement, n.Break):
                        cleared.append(loop.live)
                    out.extend(n.Assign(one, n.FALSE) for one in cleared)
                    out.append(n.Break(statement.span))
                case n.If(then=then, otherwise=otherwise):
                    made = self.without_jumps(then, loop), self.without_jumps(otherwise, loop)
                    out.append(replace(statement, then=made[0], otherwise=made[1]))
                case _:
                    out.append(statement)
        return tuple(out)

    def masked(
        self, statement: n.Statement, mask: n.Variable, loop: _Loop | None
    ) -> list[n.Statement]:
        """A statement with a barrier in it, which all threads reach and those of the mask run."""
        match statement:
            case n.Barrier():
                return [statement]
            case n.If():
                return self.branch(statement, mask, loop)
            case n.For() if self.is_counted(statement):
                return [replace(statement, body=tuple(self.region(statement.body, mask, None)))]
            case n.For():
                return self.counted(statement, mask)
            case n.While(condition, body, update):
                return self.loop(condition, body, update, mask)
        raise self.refusal

    def branch(self, node: n.If, mask: n.Variable, loop: _Loop | None) -> list[n.Statement]:
        then, otherwise = self.variable("taken"), self.variable("other")
        refused = n.Unary("not", then, BOOL)
        out: list[n.Statement] = [
            n.Declare(then, n.FALSE),
            n.If(mask, (n.Assign(then, node.condition, node.span),)),
        ]
        in_then, in_otherwise = map(_has_barrier_in, (node.then, node.otherwise))
        if node.otherwise:
            both = n.Binary("logical_and", mask, refused, BOOL)
            out.append(n.Declare(otherwise, both))
        if in_then and in_otherwise:
            return [*out, *self.side_by_side(node, then, otherwise)]
        parts = ((node.then, then), (node.otherwise, otherwise))
        for block, own in parts:
            if block:
                out.extend(self.region(block, own, _within(loop, own)))
        return out

    def side_by_side(
        self, node: n.If, then: n.Variable, otherwise: n.Variable
    ) -> list[n.Statement]:
        """Two branches whose barriers are the same ones: as many in each, and none inside of
        other statements. Where no barrier follows, the threads of one may end earlier."""
        left, right = _parts(node.then), _parts(node.otherwise)
        if left is None or right is None or (len(left) != len(right) and node is not self.last):
            raise self.refusal
        out: list[n.Statement] = []
        for at, (one, other) in enumerate(zip_longest(left, right, fillvalue=())):
            if _jumps(one) or _jumps(other):
                raise self.refusal
            out += [_BARRIER] if at else []
            out += self.region(one, then, None) + self.region(other, otherwise, None)
        return out

    def is_counted(self, node: n.For) -> bool:
        """Whether all threads of a block count the same iterations of a loop."""
        own = self.uniformity
        uniform = own.is_uniform(node.start) and own.is_uniform(node.stop)
        return uniform and node.by is None and not _jumps(node.body)

    def counted(self, node: n.For, mask: n.Variable) -> list[n.Statement]:
        if node.by is not None or not node.step:
            raise self.refusal
        variable = node.variable
        assert isinstance(variable.type, Scalar)
        stop = n.Variable(self.names.fresh(f"{variable.name}.stop"), node.stop.type)
        bounds = n.Assign(variable, node.start, node.span), n.Assign(stop, node.stop, node.span)
        op = "lt" if node.step > 0 else "gt"
        step = n.Constant(node.step, variable.type)
        if node.step < 0 and not variable.type.is_signed:
            raise self.refusal
        further = n.Binary("add", variable, step, variable.type, node.span)
        update = (n.Assign(variable, further, node.span),)
        return [
            n.Declare(variable),
            n.Declare(stop),
            n.If(mask, bounds),
            *self.loop(n.Binary(op, variable, stop, BOOL, node.span), node.body, update, mask),
        ]

    def loop(
        self, condition: n.Expression, body: n.Block, update: n.Block, mask: n.Variable
    ) -> list[n.Statement]:
        live, here = self.variable("going_on"), self.variable("here")
        inner: list[n.Statement] = [
            n.If(live, (n.Assign(live, condition),)),
            *self.leave_unless_any(live),
            n.Declare(here, live),
            *self.region(body, here, _Loop(live, (here,))),
        ]
        if _has_barrier_in(update):
            inner += self.region(update, live, None)
        elif update:
            inner.append(n.If(live, update))
        return [n.Declare(live, mask), n.While(n.TRUE, tuple(inner))]

    def leave_unless_any(self, live: n.Variable) -> list[n.Statement]:
        """Leave the loop together when the mask of no thread is set."""
        if self.flag is None:
            self.flag = self.names.fresh("any_thread")
        flag = n.Element(self.flag, _ZERO, I32)
        first: n.Expression = n.TRUE
        for axis in range(3):
            at_zero = n.Binary("eq", n.Builtin("thread_idx", axis), _ZERO, BOOL)
            first = at_zero if axis == 0 else n.Binary("logical_and", first, at_zero, BOOL)
        some = n.Variable(self.names.fresh("some"), I32)
        return [
            _BARRIER,
            n.If(first, (n.Assign(flag, _ZERO),)),
            _BARRIER,
            n.If(live, (n.Atomic("max", flag, (_ONE,)),)),
            _BARRIER,
            n.Declare(some, n.Load(flag, I32)),
            n.If(n.Binary("eq", some, _ZERO, BOOL), (n.Break(),)),
        ]


def _within(loop: _Loop | None, mask: n.Variable) -> _Loop | None:
    return None if loop is None else _Loop(loop.live, (*loop.masks, mask))


def _body(statement: n.Statement) -> n.Block:
    match statement:
        case n.If(then=then, otherwise=otherwise):
            return (*then, *otherwise)
        case n.For(body=body) | n.While(body=body):
            return body
    return ()


def _has_barrier(statement: n.Statement) -> bool:
    return _has_barrier_in((statement,))


def _has_barrier_in(block: n.Block) -> bool:
    return any(one == _BARRIER for one in statements_in(block))


def _parts(block: n.Block) -> list[n.Block] | None:
    """A block in parts, between its barriers; None if there are some inside of other statements."""
    parts: list[list[n.Statement]] = [[]]
    for statement in block:
        if statement == _BARRIER:
            parts.append([])
        elif _has_barrier(statement):
            return None
        else:
            parts[-1].append(statement)
    return [tuple(part) for part in parts]


def _jumps(block: Sequence[n.Statement]) -> bool:
    """Whether a block has a break or continue of the loop around it."""
    for statement in block:
        match statement:
            case n.Break() | n.Continue():
                return True
            case n.If(then=then, otherwise=otherwise):
                if _jumps(then) or _jumps(otherwise):
                    return True
    return False


def _jumps_divided(statement: n.Statement, uniformity: Uniformity) -> bool:
    """Whether some threads leave a loop, or an iteration of it, before others."""
    return any(
        isinstance(one, (n.Break, n.Continue)) and uniformity.flow(one).level > Level.BLOCK
        for one in _own_jumps(_body(statement))
    )


def _own_jumps(block: n.Block) -> list[n.Statement]:
    found: list[n.Statement] = []
    for statement in block:
        match statement:
            case n.Break() | n.Continue():
                found.append(statement)
            case n.If(then=then, otherwise=otherwise):
                found += _own_jumps(then) + _own_jumps(otherwise)
    return found
