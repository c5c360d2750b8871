"""Reconvergence: control flow around masked subgroup operations, made the same for a whole warp.

CUDA code shuffles and votes where the threads of a warp have diverged, and a mask says which of
them take part. WGSL and Metal have no masks: all threads of the warp must reach the operation. So
all threads run the control flow around it, and a flag says which of them do its work:

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

Inactive threads contribute the operation's neutral value. `break`, `continue` and `return` clear
flags. Control flow that is uniform over the warp stays as it is. So do early returns outside of the
rewritten code; `predicate` turns those into flags. Afterwards no operation has a mask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from treadle.ir import nodes as n
from treadle.ir.passes.fold import breaks
from treadle.ir.passes.masks import without_mask
from treadle.ir.passes.names import Names
from treadle.ir.passes.predicate import guarded_group, negate
from treadle.ir.passes.regions import leaves_loop
from treadle.ir.passes.uniformity import WARP_WIDTH, Level, analyze, may_diverge, refusal
from treadle.ir.traverse import Node, rewrite_block, root_of, statements_in, walk
from treadle.ir.types import BOOL, SCALARS, U32, Scalar, Type


def has_masks(kernel: n.Kernel) -> bool:
    """Whether a kernel has operations that only some threads of a warp may reach."""
    return any(
        isinstance(node, (n.Subgroup, n.Barrier)) and may_diverge(node)
        for node in statements_in(kernel.body)
    )


def converge(kernel: n.Kernel, width: int = WARP_WIDTH) -> n.Kernel:
    """The kernel with whole warps at every subgroup operation, and no masks.

    Functions with subgroup operations must be inlined already. CompileError for a barrier of the
    block that only some threads of a warp reach.
    """
    kernel = replace(kernel, body=_without_unused_masks(kernel.body))
    return replace(kernel, body=_Converger(kernel, width).run())


def _without_unused_masks(body: n.Block) -> n.Block:
    """The body without the masks of barriers, and without votes that computed only those masks.

    A barrier reconverges all threads here, so its mask says nothing. `__syncwarp(__activemask())`
    is common, and `__activemask` would cost a ballot."""

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

    def without_unused(node: Node) -> Node:
        is_vote = isinstance(node, n.Subgroup) and node.op == "active"
        return () if is_vote and not mentioned[node.result.name] else node

    return rewrite_block(body, without_unused)


@dataclass(frozen=True, slots=True)
class _Enclosing:
    """Control flow that a whole warp runs, with only some threads active."""

    flag: n.Variable  # whether this thread is active in it
    live: n.Variable | None = None  # of a loop: whether it starts another iteration
    loop: bool = False


class _Converger:
    def __init__(self, kernel: n.Kernel, width: int) -> None:
        self.kernel = kernel
        self.names = Names(kernel)
        self.uniformity = analyze(kernel, width, ignore_returns=True)
        self.enclosing: list[_Enclosing] = []
        self.returned = n.Variable(self.names.fresh("returned"), BOOL)
        self.returns = False  # whether that is ever set

    def run(self) -> n.Block:
        body = tuple(self.convergent(self.kernel.body))
        return (n.Declare(self.returned, n.FALSE), *body) if self.returns else body

    # --- control flow that is uniform over the warp ---

    def convergent(self, block: n.Block) -> Iterator[n.Statement]:
        """A block that whole warps reach."""
        for statement in block:
            if not _has_warp_operation((statement,)):
                yield statement
                continue
            match statement:
                case n.Subgroup():
                    yield from without_mask(statement, None, self.names).all()
                case n.Barrier():
                    yield replace(statement, mask=None)
                case n.If() | n.For() | n.While() if self.may_diverge(statement):
                    yield from self.divergent(statement)
                case n.If():
                    then = tuple(self.convergent(statement.then))
                    otherwise = tuple(self.convergent(statement.otherwise))
                    yield replace(statement, then=then, otherwise=otherwise)
                case n.For():
                    yield replace(statement, body=tuple(self.convergent(statement.body)))
                case n.While():
                    body = tuple(self.convergent(statement.body))
                    update = tuple(self.convergent(statement.update))
                    yield replace(statement, body=body, update=update)

    def may_diverge(self, statement: n.If | n.For | n.While) -> bool:
        """Whether threads of a warp may take different branches in a statement."""
        if isinstance(statement, n.If):
            firsts = (*statement.then[:1], *statement.otherwise[:1])
        else:
            firsts = statement.body[:1]
        inside = list(statements_in((statement,)))
        barriers = [node for node in inside if node == n.Barrier("block")]
        diverges = any(self.uniformity.flow(first).level > Level.WARP for first in firsts)
        if diverges and barriers:
            raise refusal(barriers[0], self.uniformity.flow(barriers[0]))
        if not isinstance(statement, n.If) and not barriers:
            diverges = diverges or any(
                isinstance(node, n.Return) and self.uniformity.flow(node).level > Level.WARP
                for node in inside
            )
        return diverges

    def divergent(self, statement: n.Statement) -> Iterator[n.Statement]:
        """A statement in which the threads of a warp diverge, rewritten so that all run it."""
        yield from self.predicated((statement,), None)
        if any(isinstance(node, n.Return) for node in statements_in((statement,))):
            self.returns = True
            yield n.If(self.returned, (n.Return(None, statement.span),), (), statement.span)

    # --- control flow in which only some threads of a warp are active ---

    def predicated(
        self, block: n.Block, flag: n.Variable | None, counters: frozenset[str] = frozenset()
    ) -> list[n.Statement]:
        """A block whose work is done by threads with the flag, and whose subgroup operations are
        reached by all. `counters` are loop counters, which all threads must keep up to date: a
        thread that missed an update would leave the loop at another iteration than the others."""
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
            if not _has_warp_operation((statement,)):
                if _escapes(statement, False):
                    # It clears flags, so it is a group of its own: what follows tests them again.
                    flush(rest)
                    group.extend(self.without_jumps((statement,)))
                    flush(())
                else:
                    group.append(statement)
                continue
            match statement:
                case n.Subgroup():
                    unmasked = without_mask(statement, flag, self.names)
                    group.extend(unmasked.before)
                    declared = [one for one in unmasked.converged if isinstance(one, n.Declare)]
                    out.extend(declared)
                    flush(rest)
                    out.extend(one for one in unmasked.converged if one not in declared)
                    group.extend(unmasked.after)
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
                        out.extend(self.inside(_Enclosing(side), inner))
                case n.While() if id(statement) in counting:
                    flush(rest)
                    own = frozenset({counting[id(statement)]})
                    body, update = (
                        tuple(self.predicated(part, flag, own))
                        for part in (statement.body, statement.update)
                    )
                    out.append(replace(statement, body=body, update=update))
                case n.While():
                    live = self.flag("live", out)
                    group.append(n.Assign(live, n.TRUE, statement.span))
                    flush(rest)
                    out.append(self.while_loop(statement, live))
                case n.For() if _has_constant_trip_count(statement):
                    flush(rest)
                    out.append(self.uniform_loop(statement, flag))
                case n.For():
                    limit = self.variable("limit", statement.variable.type, out)
                    out.append(n.Declare(statement.variable, None, statement.span))
                    live = self.flag("live", out)
                    group.extend(_first_iteration(statement, limit, live))
                    flush(rest)
                    out.append(self.counted_loop(statement, limit, live))
        flush(())
        return out

    def inside(self, enclosing: _Enclosing, block: n.Block) -> list[n.Statement]:
        self.enclosing.append(enclosing)
        found = self.predicated(block, enclosing.flag)
        self.enclosing.pop()
        return found

    def variable(self, name: str, type: Type, out: list[n.Statement]) -> n.Variable:
        variable = n.Variable(self.names.fresh(name), type)
        out.append(n.Declare(variable))
        return variable

    def flag(self, name: str, out: list[n.Statement]) -> n.Variable:
        return self.variable(name, BOOL, out)

    # --- loops ---

    def while_loop(self, loop: n.While, live: n.Variable) -> n.While:
        """A loop that runs as long as any thread of the warp is in it."""
        body: list[n.Statement] = []
        if loop.condition != n.TRUE:
            body.append(n.If(live, (n.Assign(live, loop.condition, loop.span),), (), loop.span))
        body += self.iteration(loop, live)
        body += self.inside(_Enclosing(live, live, True), loop.update)
        return n.While(n.TRUE, tuple(body), (), loop.span)

    def counted_loop(self, loop: n.For, limit: n.Variable, live: n.Variable) -> n.While:
        """The same for a counted loop. Its variable becomes an ordinary one: threads that entered
        the loop at different numbers count for themselves."""
        step = _next_iteration(loop, limit, live)
        body = (*self.iteration(loop, live), n.If(live, step, (), loop.span))
        return n.While(n.TRUE, body, (), loop.span)

    def iteration(self, loop: n.For | n.While, live: n.Variable) -> list[n.Statement]:
        """One iteration: leave the loop if no thread is live, else the body for the live ones."""
        body: list[n.Statement] = []
        any_live = self.flag("any_live", body)
        body.append(n.Subgroup("vote_any", (live,), any_live, None, loop.span))
        body.append(n.If(negate(any_live), (n.Break(loop.span),), (), loop.span))
        flag = live
        if _continues(loop.body):
            flag = n.Variable(self.names.fresh("iteration"), BOOL)
            body.append(n.Declare(flag, live, loop.span))
        return body + self.inside(_Enclosing(flag, live, True), loop.body)

    def uniform_loop(self, loop: n.For, flag: n.Variable | None) -> n.For:
        """A loop whose trip count is the same for all threads, active or not."""
        if not _continues(loop.body):
            return replace(loop, body=tuple(self.predicated(loop.body, flag)))
        active = n.Variable(self.names.fresh("iteration"), BOOL)
        declared = n.Declare(active, n.TRUE if flag is None else flag, loop.span)
        inner = self.inside(_Enclosing(active, None, True), loop.body)
        return replace(loop, body=(declared, *inner))

    # --- jumps out of code that active threads run ---

    def without_jumps(self, block: n.Block, looping: bool = False) -> Iterator[n.Statement]:
        """Statements without subgroup operations; jumps out of them clear flags instead.
        `looping`: the statements are in a loop of their own, which a return must leave as well."""
        flag = self.enclosing[-1].flag
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
        """Statements that clear the flags of all control flow that a jump leaves."""
        for enclosing in reversed(self.enclosing):
            yield n.Assign(enclosing.flag, n.FALSE, jump.span)
            if enclosing.loop and isinstance(jump, n.Continue):
                return
            if enclosing.live is not None and enclosing.live != enclosing.flag:
                yield n.Assign(enclosing.live, n.FALSE, jump.span)
            if enclosing.loop and isinstance(jump, n.Break):
                return
        yield n.Assign(self.returned, n.TRUE, jump.span)


def _has_warp_operation(block: n.Block) -> bool:
    """Whether a block holds a subgroup operation or a barrier of the warp."""
    return any(
        isinstance(node, n.Subgroup) or (isinstance(node, n.Barrier) and node.scope == "subgroup")
        for node in statements_in(block)
    )


def _escapes(statement: n.Statement, looping: bool) -> bool:
    """Whether a statement may jump out of itself (`looping`: out of the loop that holds it)."""
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


def _has_constant_trip_count(loop: n.For) -> bool:
    """Whether inactive threads can run a loop's iterations with the others: start and stop are
    constants, and no jump ends it early."""
    known = isinstance(loop.start, n.Constant) and isinstance(loop.stop, n.Constant)
    returns = any(isinstance(node, n.Return) for node in statements_in(loop.body))
    return known and not returns and not breaks(loop.body)


def _counting_loops(block: n.Block) -> dict[int, str]:
    """The while loops of a block, by identity, that have one trip count in all threads, active or
    not; each with its counter. The counter is declared in the block with a constant, and its
    updates depend on nothing but itself. `for (int k = 16; k > 0; k >>= 1)`, the loop of a shuffle
    reduction, is the case to find: without this each iteration would cost a vote."""
    found: dict[int, str] = {}
    for at, loop in enumerate(block):
        if not isinstance(loop, n.While) or not _has_warp_operation((loop,)):
            continue
        names = _variables_only(loop.condition)
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
                    and (_variables_only(one.value) or set()) <= names
                    and _variables_only(one.value) is not None
                )
                for one in sets
            )
        ):
            found[id(loop)] = name
    return found


def _variables_only(expression: n.Expression) -> set[str] | None:
    """The variables of an expression, if it holds only variables and constants; else None."""
    names: set[str] = set()
    for node in walk(expression):
        if isinstance(node, n.Variable):
            names.add(node.name)
        elif not isinstance(node, (n.Constant, n.Unary, n.Binary, n.Cast, n.Intrinsic)):
            return None
    return names


def _sets(statement: n.Statement, name: str) -> bool:
    """Whether a statement itself (not one inside it) assigns a variable."""
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


def _first_iteration(loop: n.For, limit: n.Variable, live: n.Variable) -> n.Block:
    relation = "lt" if loop.step > 0 else "gt"
    return (
        n.Assign(loop.variable, loop.start, loop.span),
        n.Assign(limit, loop.stop, loop.span),
        n.Assign(live, n.Binary(relation, loop.variable, limit, BOOL), loop.span),
    )


def _next_iteration(loop: n.For, limit: n.Variable, live: n.Variable) -> n.Block:
    """Add the step, if the result lies before the limit. The distance to the limit is compared
    with the step, since adding the step first could overflow the variable's type."""
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
