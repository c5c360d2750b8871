"""Control flow around subgroup operations with masks made the same for all threads of a warp.

CUDA code shuffles and votes under conditions that part a warp, and says by a mask who takes part.
Where a target wants all threads of a warp at such an operation, they all go through what is around
it, and a flag tells who does the work:

    if (c) {                       taken = c
      a                            if (taken) {a; given = v}
      v = subgroup … v mask m      all = subgroup … given
      b                            if (taken) {v = all; b}
    }

    while (c) {                    live = true
      a                            while (true) {
      subgroup …                     if (live) {live = c}
    }                                any = subgroup vote_any live; if (!any) {break}
                                     if (live) {a}; subgroup …
                                   }

Threads that are not at work bring what changes nothing. `break`, `continue` and `return` clear
flags. Flow that a whole warp shares stays as it is, and so do early returns outside of such code,
which `predicate` turns into flags. Afterwards no operation has a mask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from treadle.ir import nodes as n
from treadle.ir.passes.fold import breaks
from treadle.ir.passes.masks import written_out
from treadle.ir.passes.names import Names
from treadle.ir.passes.predicate import guarded_group, negate
from treadle.ir.passes.regions import leaves_loop
from treadle.ir.passes.uniformity import WARP_WIDTH, Level, analyze, is_parted, refusal
from treadle.ir.traverse import Node, rewrite_block, root_of, statements_in, walk
from treadle.ir.types import BOOL, SCALARS, U32, Scalar, Type


def has_masks(kernel: n.Kernel) -> bool:
    """Whether a kernel has operations that concern some threads of a warp."""
    return any(
        isinstance(node, (n.Subgroup, n.Barrier)) and is_parted(node)
        for node in statements_in(kernel.body)
    )


def converge(kernel: n.Kernel, width: int = WARP_WIDTH) -> n.Kernel:
    """The kernel with its warps together at every subgroup operation, none of which has a mask.

    Functions with subgroup operations are inlined before. CompileError for a barrier of the block
    that only some threads of a warp reach.
    """
    kernel = replace(kernel, body=_without_idle_masks(kernel.body))
    return replace(kernel, body=_Converger(kernel, width).run())


def _without_idle_masks(body: n.Block) -> n.Block:
    """Barriers without masks that nothing else reads: they are for all threads that are here."""

    def for_all(node: Node) -> Node:
        known = not isinstance(node, n.Barrier) or isinstance(node.mask, (n.Constant, type(None)))
        return node if known else replace(node, mask=n.Constant(0xFFFFFFFF, U32))

    body = rewrite_block(body, for_all)
    mentioned: Counter[str] = Counter()
    for node in walk(body):
        if isinstance(node, n.Variable):
            mentioned[node.name] += 1
        elif isinstance(node, n.Declare):
            mentioned[node.variable.name] -= 1
        elif isinstance(node, n.Subgroup):
            mentioned[node.result.name] -= 1

    def asked(node: Node) -> Node:
        asks = isinstance(node, n.Subgroup) and node.op == "active"
        return () if asks and not mentioned[node.result.name] else node

    return rewrite_block(body, asked)


@dataclass(frozen=True, slots=True)
class _Around:
    """Control flow that threads of a warp go through together, some of them at work."""

    flag: n.Variable  # whether this thread is at work in it
    live: n.Variable | None = None  # of a loop: whether it is to start another turn
    loop: bool = False


class _Converger:
    def __init__(self, kernel: n.Kernel, width: int) -> None:
        self.kernel = kernel
        self.names = Names(kernel)
        self.uniformity = analyze(kernel, width, ignore_returns=True)
        self.around: list[_Around] = []
        self.returned = n.Variable(self.names.fresh("returned"), BOOL)
        self.returns = False  # whether that is ever set

    def run(self) -> n.Block:
        body = tuple(self.together(self.kernel.body))
        return (n.Declare(self.returned, n.FALSE), *body) if self.returns else body

    # --- flow that the warp shares ---

    def together(self, block: n.Block) -> Iterator[n.Statement]:
        for statement in block:
            if not _has_meeting((statement,)):
                yield statement
                continue
            match statement:
                case n.Subgroup():
                    yield from written_out(statement, None, self.names).all()
                case n.Barrier():
                    yield replace(statement, mask=None)
                case n.If() | n.For() | n.While() if self.parts_warp(statement):
                    yield from self.apart(statement)
                case n.If():
                    then = tuple(self.together(statement.then))
                    otherwise = tuple(self.together(statement.otherwise))
                    yield replace(statement, then=then, otherwise=otherwise)
                case n.For():
                    yield replace(statement, body=tuple(self.together(statement.body)))
                case n.While():
                    body = tuple(self.together(statement.body))
                    update = tuple(self.together(statement.update))
                    yield replace(statement, body=body, update=update)

    def parts_warp(self, statement: n.If | n.For | n.While) -> bool:
        """Whether threads of a warp may go different ways in a statement."""
        if isinstance(statement, n.If):
            firsts = (*statement.then[:1], *statement.otherwise[:1])
        else:
            firsts = statement.body[:1]
        inside = list(statements_in((statement,)))
        barriers = [node for node in inside if node == n.Barrier("block")]
        parts = any(self.uniformity.flow(first).level > Level.WARP for first in firsts)
        if parts and barriers:
            raise refusal(barriers[0], self.uniformity.flow(barriers[0]))
        if not isinstance(statement, n.If) and not barriers:
            parts = parts or any(
                isinstance(node, n.Return) and self.uniformity.flow(node).level > Level.WARP
                for node in inside
            )
        return parts

    def apart(self, statement: n.Statement) -> Iterator[n.Statement]:
        """A statement in which the threads of a warp part, gone through by all of them."""
        yield from self.gone_through((statement,), None)
        if any(isinstance(node, n.Return) for node in statements_in((statement,))):
            self.returns = True
            yield n.If(self.returned, (n.Return(None, statement.span),), (), statement.span)

    # --- flow that some threads of a warp are at work in ---

    def gone_through(
        self, block: n.Block, flag: n.Variable | None, counters: frozenset[str] = frozenset()
    ) -> list[n.Statement]:
        """A block of which threads with the flag do the work, and all meet at its operations.
        `counters` are variables with which all threads count alike."""
        out: list[n.Statement] = []
        group: list[n.Statement] = []
        counting = _counting_loops(block)
        counters |= frozenset(counting.values())

        def flush(later: n.Block) -> None:
            out.extend(group if flag is None else guarded_group(flag, group, later))
            group.clear()

        for at, statement in enumerate(block):
            rest = block[at:]
            if _sets_any(statement, counters):
                flush(rest)
                out.append(statement)
                continue
            if not _has_meeting((statement,)):
                if _escapes(statement, False):
                    flush(rest)  # what it declares, and flags that it clears
                    group.extend(self.without_jumps((statement,)))
                    flush(())
                else:
                    group.append(statement)
                continue
            match statement:
                case n.Subgroup():
                    written = written_out(statement, flag, self.names)
                    group.extend(written.before)
                    declared = [one for one in written.together if isinstance(one, n.Declare)]
                    out.extend(declared)
                    flush(rest)
                    out.extend(one for one in written.together if one not in declared)
                    group.extend(written.after)
                case n.Barrier():
                    flush(rest)
                    out.append(replace(statement, mask=None))
                case n.If():
                    taken = self.flag("taken", out)
                    group.append(n.Assign(taken, statement.condition, statement.span))
                    sides = [(taken, statement.then)]
                    if statement.otherwise:
                        other = self.flag("other", out)
                        group.append(n.Assign(other, negate(taken), statement.span))
                        sides.append((other, statement.otherwise))
                    flush(rest)
                    for side, inner in sides:
                        out.extend(self.inside(_Around(side), inner))
                case n.While() if id(statement) in counting:
                    flush(rest)
                    own = frozenset({counting[id(statement)]})
                    body, update = (
                        tuple(self.gone_through(part, flag, own))
                        for part in (statement.body, statement.update)
                    )
                    out.append(replace(statement, body=body, update=update))
                case n.While():
                    live = self.flag("live", out)
                    group.append(n.Assign(live, n.TRUE, statement.span))
                    flush(rest)
                    out.append(self.repeat(statement, live))
                case n.For() if _runs_alike(statement):
                    flush(rest)
                    out.append(self.same_rounds(statement, flag))
                case n.For():
                    limit = self.variable("limit", statement.variable.type, out)
                    out.append(n.Declare(statement.variable, None, statement.span))
                    live = self.flag("live", out)
                    group.extend(_first_round(statement, limit, live))
                    flush(rest)
                    out.append(self.rounds(statement, limit, live))
        flush(())
        return out

    def inside(self, around: _Around, block: n.Block) -> list[n.Statement]:
        self.around.append(around)
        found = self.gone_through(block, around.flag)
        self.around.pop()
        return found

    def variable(self, name: str, type: Type, out: list[n.Statement]) -> n.Variable:
        variable = n.Variable(self.names.fresh(name), type)
        out.append(n.Declare(variable))
        return variable

    def flag(self, name: str, out: list[n.Statement]) -> n.Variable:
        return self.variable(name, BOOL, out)

    # --- loops ---

    def repeat(self, loop: n.While, live: n.Variable) -> n.While:
        """A loop that runs as long as any thread is in it."""
        body: list[n.Statement] = []
        if loop.condition != n.TRUE:
            body.append(n.If(live, (n.Assign(live, loop.condition, loop.span),), (), loop.span))
        body += self.turn(loop, live)
        body += self.inside(_Around(live, live, True), loop.update)
        return n.While(n.TRUE, tuple(body), (), loop.span)

    def rounds(self, loop: n.For, limit: n.Variable, live: n.Variable) -> n.While:
        """The same for a counted loop: its variable is one like others now."""
        step = _next_round(loop, limit, live)
        body = (*self.turn(loop, live), n.If(live, step, (), loop.span))
        return n.While(n.TRUE, body, (), loop.span)

    def turn(self, loop: n.For | n.While, live: n.Variable) -> list[n.Statement]:
        """One turn: leave if nobody is left, else the body for those that are."""
        body: list[n.Statement] = []
        anyone = self.flag("anyone", body)
        body.append(n.Subgroup("vote_any", (live,), anyone, None, loop.span))
        body.append(n.If(negate(anyone), (n.Break(loop.span),), (), loop.span))
        flag = live
        if _continues(loop.body):
            flag = n.Variable(self.names.fresh("turn"), BOOL)
            body.append(n.Declare(flag, live, loop.span))
        return body + self.inside(_Around(flag, live, True), loop.body)

    def same_rounds(self, loop: n.For, flag: n.Variable | None) -> n.For:
        """A loop of which all threads make the same rounds, at work or not."""
        if not _continues(loop.body):
            return replace(loop, body=tuple(self.gone_through(loop.body, flag)))
        turn = n.Variable(self.names.fresh("turn"), BOOL)
        declared = n.Declare(turn, n.TRUE if flag is None else flag, loop.span)
        inner = self.inside(_Around(turn, None, True), loop.body)
        return replace(loop, body=(declared, *inner))

    # --- jumps out of code that threads do at work ---

    def without_jumps(self, block: n.Block, looping: bool = False) -> Iterator[n.Statement]:
        """Statements without operations, whose jumps to what is around clear flags instead.
        `looping`: in a loop of their own, which a return must leave, too."""
        flag = self.around[-1].flag
        for at, statement in enumerate(block):
            if not _escapes(statement, looping):
                yield statement
                continue
            match statement:
                case n.Return() | n.Break() | n.Continue():
                    yield from self.clearing(statement)
                    if looping:
                        yield n.Break(statement.span)
                    return
                case n.If():
                    then = tuple(self.without_jumps(statement.then, looping))
                    otherwise = tuple(self.without_jumps(statement.otherwise, looping))
                    yield replace(statement, then=then, otherwise=otherwise)
                    if looping:
                        continue
                case n.For() | n.While():
                    yield replace(statement, body=tuple(self.without_jumps(statement.body, True)))
                    if looping:
                        yield n.If(negate(flag), (n.Break(statement.span),), (), statement.span)
                        continue
            if block[at + 1 :]:
                yield n.If(flag, tuple(self.without_jumps(block[at + 1 :])))
            return

    def clearing(self, jump: n.Return | n.Break | n.Continue) -> Iterator[n.Statement]:
        """The flags of all that a jump leaves."""
        for around in reversed(self.around):
            yield n.Assign(around.flag, n.FALSE, jump.span)
            if around.loop and isinstance(jump, n.Continue):
                return
            if around.live is not None and around.live != around.flag:
                yield n.Assign(around.live, n.FALSE, jump.span)
            if around.loop and isinstance(jump, n.Break):
                return
        yield n.Assign(self.returned, n.TRUE, jump.span)


def _has_meeting(block: n.Block) -> bool:
    """Whether threads of a warp do something together in a block."""
    return any(
        isinstance(node, n.Subgroup) or (isinstance(node, n.Barrier) and node.scope == "subgroup")
        for node in statements_in(block)
    )


def _escapes(statement: n.Statement, looping: bool) -> bool:
    """Whether a statement may jump to what is around it (`looping`: beyond the loop it is in)."""
    if any(isinstance(node, n.Return) for node in statements_in((statement,))):
        return True
    return not looping and leaves_loop((statement,))


def _continues(block: n.Block) -> bool:
    """Whether a block holds a `continue` of the loop it is the body of."""
    return any(
        isinstance(statement, n.Continue)
        or (
            isinstance(statement, n.If)
            and (_continues(statement.then) or _continues(statement.otherwise))
        )
        for statement in block
    )


def _runs_alike(loop: n.For) -> bool:
    """Whether threads that are not at work can make the rounds of a loop with the others."""
    known = isinstance(loop.start, n.Constant) and isinstance(loop.stop, n.Constant)
    returns = any(isinstance(node, n.Return) for node in statements_in(loop.body))
    return known and not returns and not breaks(loop.body)


def _counting_loops(block: n.Block) -> dict[int, str]:
    """The loops of a block (by identity) in which all threads can make the same turns, at work or
    not, each with the variable that counts them: it starts in the block from a constant, and
    nothing else comes into it."""
    found: dict[int, str] = {}
    for at, loop in enumerate(block):
        if not isinstance(loop, n.While) or not _has_meeting((loop,)):
            continue
        names = _names_alone(loop.condition)
        if names is None or len(names) != 1 or leaves_loop(loop.body):
            continue
        (name,) = names
        declared = any(
            isinstance(one, n.Declare)
            and one.variable.name == name
            and (one.value is None or isinstance(one.value, n.Constant))
            for one in block[:at]
        )
        returns = any(isinstance(node, n.Return) for node in statements_in((loop,)))
        inside = {id(one) for one in (*loop.body, *loop.update)}
        sets = [node for node in statements_in(block) if _sets(node, name)]
        if (
            declared
            and not returns
            and all(
                isinstance(one, n.Declare)
                or (
                    id(one) in inside
                    and isinstance(one, n.Assign)
                    and isinstance(one.place, n.Variable)
                    and (_names_alone(one.value) or set()) <= names
                    and _names_alone(one.value) is not None
                )
                for one in sets
            )
        ):
            found[id(loop)] = name
    return found


def _names_alone(expression: n.Expression) -> set[str] | None:
    """The variables that an expression is made of, with constants and nothing else."""
    names: set[str] = set()
    for node in walk(expression):
        if isinstance(node, n.Variable):
            names.add(node.name)
        elif not isinstance(node, (n.Constant, n.Unary, n.Binary, n.Cast, n.Intrinsic)):
            return None
    return names


def _sets(statement: n.Statement, name: str) -> bool:
    """Whether a statement itself gives a variable a value."""
    match statement:
        case n.Declare(variable) | n.For(variable):
            return variable.name == name
        case n.Assign(place):
            root = root_of(place)
            return isinstance(root, n.Variable) and root.name == name
    return isinstance(statement, n.Receiving) and (
        statement.result is not None and statement.result.name == name
    )


def _sets_any(statement: n.Statement, names: frozenset[str]) -> bool:
    return isinstance(statement, (n.Declare, n.Assign)) and any(
        _sets(statement, name) for name in names
    )


def _first_round(loop: n.For, limit: n.Variable, live: n.Variable) -> n.Block:
    relation = "lt" if loop.step > 0 else "gt"
    return (
        n.Assign(loop.variable, loop.start, loop.span),
        n.Assign(limit, loop.stop, loop.span),
        n.Assign(live, n.Binary(relation, loop.variable, limit, BOOL), loop.span),
    )


def _next_round(loop: n.For, limit: n.Variable, live: n.Variable) -> n.Block:
    """Count on, if the next number lies before the limit: the distance to it tells, which no
    number beyond its type can spoil."""
    variable, type = loop.variable, loop.variable.type
    assert isinstance(type, Scalar)
    unsigned = SCALARS[f"u{type.bits}"]
    ends = (limit, variable) if loop.step > 0 else (variable, limit)
    distance: n.Expression = n.Binary("sub", *ends, type)
    if type != unsigned:
        distance = n.Cast(distance, unsigned)
    size = n.Constant(abs(loop.step), unsigned)
    following = n.Binary("add", variable, n.Constant(loop.step, type), type)
    if loop.step < 0 and not type.is_signed:
        following = n.Binary("sub", variable, n.Constant(-loop.step, type), type)
    return (
        n.Assign(live, n.Binary("gt", distance, size, BOOL), loop.span),
        n.Assign(variable, following, loop.span),
    )
