"""Returns as flags, so that threads that are done still reach the barriers.

CUDA code returns early and then synchronizes. NVIDIA's hardware takes threads that exited out of a
barrier's count; in WGSL and Metal, and in the loops of the CPU, every thread must reach it. So a
thread that returns clears its `active` flag. What follows is guarded by the flag, except barriers:

    if i >= n: return              active = not (i >= n)
    t[k] = x[i]                    if active: t[k] = x[i]
    barrier                        barrier
    y[i] = t[m - k]                if active: y[i] = t[m - k]

A return is *uniform* if the whole block takes it at once, else *divergent*. Uniform returns have a
flag of their own, `running`, and leave loops at once, since no thread is left to reach a barrier.

An inactive thread contributes the neutral value to subgroup operations (what a shuffle reads from
it is not defined). Assignments to uniform variables stay outside of the guards. Inside, they would
be assignments under divergent control, and the conditions of later barriers would not be uniform:

    stride = 128                   stride = 128
    while stride > 0:              while stride > 0:
      t[k] += t[k + stride]          if active: t[k] += t[k + stride]
      barrier                        barrier
      stride = stride / 2            stride = stride / 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.opaque import LOADS
from treadle.ir.passes.names import Names
from treadle.ir.passes.regions import leaves_loop
from treadle.ir.passes.uniformity import (
    WARP_WIDTH,
    Level,
    Uniformity,
    analyze,
    has_sync,
    is_sync,
)
from treadle.ir.traverse import root_of, statements_in, walk
from treadle.ir.types import BOOL, Scalar


def predicate_returns(kernel: n.Kernel, width: int = WARP_WIDTH) -> n.Kernel:
    """The kernel without returns, if one of them could skip a barrier or subgroup operation.

    Other kernels are not changed. Raises CompileError for a loop that only returns would end while
    it holds a barrier.
    """
    return remove_returns(kernel, width) if returns_before_barrier(kernel) else kernel


def returns_before_barrier(kernel: n.Kernel) -> bool:
    """Whether a return could skip a barrier or subgroup operation that all threads must reach."""
    return _return_before_sync(kernel.body)


def remove_returns(kernel: n.Kernel, width: int = WARP_WIDTH) -> n.Kernel:
    """The kernel with every return replaced by control flow."""
    if not _has_return(kernel.body):
        return kernel
    return replace(kernel, body=_Remover(kernel, width).run())


def negate(condition: n.Expression) -> n.Expression:
    """The opposite of a condition, pushed inwards where that is exact (not for floats)."""
    match condition:
        case n.Unary("not", operand):
            return operand
        case n.Constant(bool() as value):
            return n.Constant(not value, BOOL, condition.span)
        case n.Binary("logical_and" | "logical_or" as op, left, right):
            other = "logical_or" if op == "logical_and" else "logical_and"
            return replace(condition, op=other, left=negate(left), right=negate(right))
        case n.Binary(op, left) if (
            op in _OPPOSITES and isinstance(left.type, Scalar) and not left.type.is_float
        ):
            return replace(condition, op=_OPPOSITES[op])
    return n.Unary("not", condition, BOOL, condition.span)


_OPPOSITES = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def _has_return(block: n.Block) -> bool:
    return any(isinstance(node, n.Return) for node in statements_in(block))


def _return_before_sync(body: n.Block) -> bool:
    """Whether a barrier may come after a return, in the order of the text or around a loop."""
    returned = False
    for node in statements_in(body):
        if isinstance(node, n.Return):
            returned = True
        elif (returned and is_sync(node)) or (
            isinstance(node, (n.For, n.While)) and has_sync((node,)) and _has_return((node,))
        ):
            return True
    return False


def _divergent_returns(body: n.Block, uniformity: Uniformity) -> set[int]:
    """The returns (by identity) that some threads may take while others go on.

    A thread that returns leaves a loop without barriers at once. The threads that go on may later
    take a return of that loop under a uniform condition, which is divergent then: the thread that
    left does not take it. So one divergent return makes all returns of such a loop divergent.
    """
    divergent = {
        id(node)
        for node in statements_in(body)
        if isinstance(node, n.Return) and uniformity.flow(node).level > Level.BLOCK
    }
    for loop in statements_in(body):
        if isinstance(loop, (n.For, n.While)) and not has_sync((loop,)):
            inside = {id(node) for node in statements_in((loop,)) if isinstance(node, n.Return)}
            if inside & divergent:
                divergent |= inside
    return divergent


def _always_returns(block: n.Block) -> bool:
    match block[-1:]:
        case (n.Return(),):
            return True
        case (n.If() as last,):
            return _always_returns(last.then) and _always_returns(last.otherwise)
    return False


@dataclass(frozen=True, slots=True)
class _Returns:
    """Which kinds of return a statement may take."""

    uniform: bool  # the whole block returns at once
    divergent: bool  # some threads return while others go on


class _Remover:
    """Rewrites one kernel's body."""

    def __init__(self, kernel: n.Kernel, width: int) -> None:
        self.kernel = kernel
        self.uniformity = analyze(kernel, width, ignore_returns=True)
        self.divergent = _divergent_returns(kernel.body, self.uniformity)
        self.divergent |= self._unknown_to_inactive(kernel.body)
        self.names = names = Names(kernel)
        self.active = n.Variable(names.fresh("active"), BOOL)
        self.running = n.Variable(names.fresh("running"), BOOL)
        self.declared: set[str] = set()  # flags declared where they are first set
        self.cleared = False  # whether `active` may have been cleared already
        self.loops: list[n.For | n.While] = []

    def _unknown_to_inactive(self, body: n.Block) -> set[int]:
        """Uniform returns that inactive threads cannot decide on, which count as divergent.

        After a divergent return, an inactive thread runs on to the next barrier. It can take a
        uniform return only if it can evaluate the condition. It cannot if the condition is uniform
        here, but holds variables that are not uniform everywhere: those are computed under the
        guard, so an inactive thread has old values. A loop that holds barriers is left out: there
        all threads must decide alike, or the loop would not end in some of them."""
        found: set[int] = set()
        some_inactive = False

        def look(block: n.Block, agreed: bool) -> None:
            nonlocal some_inactive
            for node in block:
                match node:
                    case n.Return():
                        some_inactive = some_inactive or id(node) in self.divergent
                        if some_inactive and not agreed:
                            found.add(id(node))
                    case n.If(condition, then, otherwise):
                        known = agreed and self._agreed(condition)
                        look(then, known)
                        look(otherwise, known)
                    case n.For() | n.While() if not has_sync((node,)):
                        look(node.body, agreed and not _has_return(node.body))

        look(body, True)
        return found

    def run(self) -> n.Block:
        body = tuple(self._tail(self.kernel.body))
        flags = [
            n.Declare(flag, n.TRUE)
            for flag in (self.active, self.running)
            if flag.name not in self.declared and mentions(body, flag.name)
        ]
        return (*flags, *body)

    # --- at the kernel's end: what follows a return moves into the other branch ---
    # That needs no flag.

    def _tail(self, block: n.Block) -> Iterator[n.Statement]:
        """A block after which the kernel ends, without its returns."""
        for at, statement in enumerate(block):
            rest = block[at + 1 :]
            if not _has_return((statement,)):
                yield statement
                continue
            if isinstance(statement, n.Return):
                return
            if isinstance(statement, n.If) and self._can_nest(statement, rest):
                yield self._nested(statement, rest)
                return
            yield from self._flagged(statement, rest)
            return

    def _can_nest(self, statement: n.If, rest: n.Block) -> bool:
        if not (
            _always_returns(statement.then) or _always_returns(statement.otherwise) or not rest
        ):
            return False
        follows = (*statement.then, *statement.otherwise, *rest)
        return not has_sync(follows) or self._is_uniform(statement.condition)

    def _nested(self, statement: n.If, rest: n.Block) -> n.Statement:
        then, otherwise = statement.then, statement.otherwise
        then = tuple(self._tail(then if _always_returns(then) else then + rest))
        otherwise = tuple(self._tail(otherwise if _always_returns(otherwise) else otherwise + rest))
        if not then:
            opposite = negate(statement.condition)
            return n.If(opposite, otherwise, (), statement.span)
        return replace(statement, then=then, otherwise=otherwise)

    def _is_uniform(self, condition: n.Expression) -> bool:
        return self.uniformity.is_uniform(condition)

    # --- elsewhere: a return clears a flag ---

    def _flagged(self, statement: n.Statement, rest: n.Block) -> Iterator[n.Statement]:
        """A statement with returns and what follows it, at a place that all threads reach."""
        returns = self._returns(statement)
        first = self._first_flag(statement, returns)
        if first is not None:
            yield first
        else:
            yield from self._clearing(statement)
        following: tuple[n.Statement, ...] = tuple(self._list(rest))
        if returns.divergent and not self._left_by_break(statement) and following:
            if self.loops or has_sync(following):
                following = tuple(self._guarded(following))
            else:
                following = (n.If(self.active, following),)
        if returns.uniform and not self._left_by_break(statement) and following:
            following = (n.If(self.running, following),)
        yield from following

    def _list(self, block: n.Block) -> Iterator[n.Statement]:
        for at, statement in enumerate(block):
            if _has_return((statement,)):
                yield from self._flagged(statement, block[at + 1 :])
                return
            yield statement

    def _first_flag(self, statement: n.Statement, returns: _Returns) -> n.Statement | None:
        """`if c: return` at the top, before any other return, declares its flag as `not c`."""
        match statement:
            case n.If(condition, (n.Return(),), ()) if not self.loops and not self.cleared:
                if any(statement is top for top in self.kernel.body) and returns.divergent:
                    self.cleared = True
                    self.declared.add(self.active.name)
                    return n.Declare(self.active, negate(condition), statement.span)
        return None

    def _returns(self, statement: n.Statement) -> _Returns:
        inside = {id(node) for node in statements_in((statement,)) if isinstance(node, n.Return)}
        return _Returns(bool(inside - self.divergent), bool(inside & self.divergent))

    def _left_by_break(self, statement: n.Statement) -> bool:
        """Whether a thread that returned in this statement has also left the enclosing loop."""
        if not self.loops:
            return False
        returns = self._returns(statement)
        return not returns.divergent or not has_sync((self.loops[-1],))

    def _clearing(self, statement: n.Statement) -> Iterator[n.Statement]:
        """A statement with each return replaced by clearing a flag."""
        match statement:
            case n.Return():
                divergent = id(statement) in self.divergent
                flag = self.active if divergent else self.running
                self.cleared = self.cleared or divergent
                yield n.Assign(flag, n.FALSE, statement.span)
                if self.loops and not (divergent and has_sync((self.loops[-1],))):
                    yield n.Break(statement.span)
            case n.If():
                then = tuple(self._list(statement.then))
                otherwise = tuple(self._list(statement.otherwise))
                yield replace(statement, then=then, otherwise=otherwise)
            case n.For() | n.While():
                yield self._loop(statement)
                yield from self._leave_outer(statement)

    def _loop(self, loop: n.For | n.While) -> n.Statement:
        self.loops.append(loop)
        returns = self._returns(loop)
        body = tuple(self._list(loop.body))
        update: n.Block = ()
        if isinstance(loop, n.While):
            update = tuple(self._list(loop.update))
        if returns.divergent and has_sync((loop,)):
            _refuse_endless(loop)
            body = tuple(self._guarded(body))
            update = tuple(self._guarded(update))
        self.loops.pop()
        if isinstance(loop, n.While):
            return replace(loop, body=body, update=update)
        return replace(loop, body=body)

    def _leave_outer(self, loop: n.Statement) -> Iterator[n.Statement]:
        """After an inner loop that returned: leave the loop around it as well."""
        if not self.loops:
            return
        returns = self._returns(loop)
        if returns.uniform:
            yield n.If(negate(self.running), (n.Break(loop.span),), (), loop.span)
        if returns.divergent and not has_sync((self.loops[-1],)):
            yield n.If(negate(self.active), (n.Break(loop.span),), (), loop.span)

    # --- guards ---

    def _guarded(self, block: n.Block) -> Iterator[n.Statement]:
        """A block whose work only active threads do, and whose barriers all threads reach."""
        group: list[n.Statement] = []
        for at, statement in enumerate(block):
            unguarded = self._unguarded(statement)
            if unguarded is None:
                group.append(statement)
                continue
            yield from guarded_group(self.active, group, block[at:])
            group = []
            yield from unguarded
        yield from guarded_group(self.active, group, ())

    def _unguarded(self, statement: n.Statement) -> tuple[n.Statement, ...] | None:
        """What all threads must run of a statement; None if only active ones need to run it."""
        match statement:
            case n.If(condition, _, ()) if condition == self.active:
                return (statement,)  # guarded already
        if self._is_free(statement):
            return (statement,)
        needs_all = has_sync((statement,)) or leaves_loop((statement,))
        if not needs_all and not self._assigns_uniform(statement):
            return None
        match statement:
            case n.OpaqueStore():
                return tuple(self._of_warps(statement))
            case n.Subgroup(op=op) if op in LOADS:
                return tuple(self._of_warps(statement))
            case n.Subgroup():
                return (self._neutral(statement),)
            case n.If():
                then = tuple(self._guarded(statement.then))
                otherwise = tuple(self._guarded(statement.otherwise))
                return (replace(statement, then=then, otherwise=otherwise),)
            case n.For():
                return (replace(statement, body=tuple(self._guarded(statement.body))),)
            case n.While():
                body = tuple(self._guarded(statement.body))
                update = tuple(self._guarded(statement.update))
                return (replace(statement, body=body, update=update),)
        return (statement,)  # a barrier, break or continue

    def _is_free(self, statement: n.Statement) -> bool:
        """Whether a statement only computes uniform variables, safely in any thread.

        A load without checks is not safe: in an inactive thread the index may be out of bounds.
        """
        variables = self.uniformity.variables
        match statement:
            case n.Declare(variable, value):
                agreed = variables[variable.name].level < Level.THREAD
                return agreed and (value is None or not _is_unchecked(value))
            case n.Assign(place, value):
                root = root_of(place)
                if not isinstance(root, n.Variable) or _is_unchecked(place) or _is_unchecked(value):
                    return False
                known = variables.get(root.name)
                if root == self.running:
                    return True
                return known is not None and known.level < Level.THREAD
            case n.If(condition, then, otherwise):
                return self._agreed(condition) and self._all_free((*then, *otherwise))
            case n.For(_, start, stop, _, body):
                return self._agreed(start) and self._agreed(stop) and self._all_free(body)
        return False

    def _agreed(self, expression: n.Expression) -> bool:
        return self.uniformity.is_uniform(expression, Level.WARP) and not _is_unchecked(expression)

    def _assigns_uniform(self, statement: n.Statement) -> bool:
        """Whether a statement with a uniform condition assigns uniform variables inside. Inactive
        threads run it too: their copies of the variables must stay equal to the others'."""
        match statement:
            case n.If(condition) | n.While(condition):
                agreed = self._agreed(condition)
            case n.For(_, start, stop):
                agreed = self._agreed(start) and self._agreed(stop)
            case _:
                return False
        return agreed and any(
            isinstance(node, n.Assign) and self._is_free(node)
            for node in statements_in((statement,))
        )

    def _all_free(self, block: n.Block) -> bool:
        return all(self._is_free(statement) for statement in block)

    def _of_warps(self, statement: n.Statement) -> Iterator[n.Statement]:
        """An access to memory of whole warps, for those that have a thread left."""
        left = n.Variable(self.names.fresh("left"), BOOL)
        yield n.Declare(left, None, statement.span)
        yield n.Subgroup("vote_any", (self.active,), left, None, statement.span)
        yield n.If(left, (statement,), (), statement.span)

    def _neutral(self, statement: n.Subgroup) -> n.Subgroup:
        """The operation, to which inactive threads contribute the neutral value."""
        neutral = neutral_value(statement)
        if neutral is None:
            return statement
        value = statement.operands[0]
        chosen = n.Select(self.active, value, neutral, value.type, statement.span)
        return replace(statement, operands=(chosen, *statement.operands[1:]))


def guarded_group(
    flag: n.Variable, group: list[n.Statement], later: n.Block
) -> Iterator[n.Statement]:
    """Statements under one guard; variables that later statements use are declared before it."""
    if not group:
        return
    inside: list[n.Statement] = []
    for statement in group:
        if isinstance(statement, n.Declare) and mentions(later, statement.variable.name):
            yield n.Declare(statement.variable, None, statement.span)
            if statement.value is not None:
                inside.append(n.Assign(statement.variable, statement.value, statement.span))
        else:
            inside.append(statement)
    if inside:
        yield n.If(flag, tuple(inside))


def neutral_value(statement: n.Subgroup) -> n.Constant | None:
    """The value that an inactive thread contributes to a subgroup operation without changing its
    result; None where there is none (what a shuffle reads from such a thread is not defined)."""
    neutral = _NEUTRAL.get(statement.op)
    type = statement.operands[0].type if statement.operands else None
    if neutral is None or not isinstance(type, Scalar):
        return None
    return n.Constant(neutral(type), type, statement.span)


def _lowest(type: Scalar) -> bool | int | float:
    if type.is_float:
        return float("-inf")
    return -(1 << (type.bits - 1)) if type.is_signed else 0


def _highest(type: Scalar) -> bool | int | float:
    if type.is_float:
        return float("inf")
    return (1 << (type.bits - type.is_signed)) - 1


def _zero(type: Scalar) -> bool | int | float:
    return 0.0 if type.is_float else 0


_NEUTRAL: dict[str, Callable[[Scalar], bool | int | float]] = {
    "vote_all": lambda type: True, "vote_any": lambda type: False, "ballot": lambda type: False,
    "sum": _zero, "prefix_sum": _zero, "min": _highest, "max": _lowest,
    "and": lambda type: -1 if type.is_signed else _highest(type), "or": _zero, "xor": _zero,
}  # fmt: skip


def _refuse_endless(loop: n.For | n.While) -> None:
    if isinstance(loop, n.While) and loop.condition == n.TRUE and not _breaks_out(loop.body):
        raise CompileError(
            "only `return` ends this loop, and threads return at different times while others "
            "still wait at the barrier in it; end the loop by a condition that all threads share",
            loop.span,
        )


def _breaks_out(block: n.Block) -> bool:
    """Whether a block holds a break of the loop it is the body of."""
    for statement in block:
        match statement:
            case n.Break():
                return True
            case n.If(_, then, otherwise):
                if _breaks_out(then) or _breaks_out(otherwise):
                    return True
    return False


def mentions(block: n.Block, name: str) -> bool:
    """Whether a block names a variable."""
    return any(isinstance(node, n.Variable) and node.name == name for node in walk(block))


def _is_unchecked(node: n.Expression | n.Place) -> bool:
    """Whether an expression loads from memory without checks."""
    return any(isinstance(inner, (n.Element, n.Item)) and not inner.checks for inner in walk(node))
