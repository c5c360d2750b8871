"""Control flow that is nested deeply, or that compilers nest, made shallow.

A driver runs out of levels long before a program looks deep: a chain of `elif` nests one level for
each link, and every early `return`, `continue` or `break` nests all that follows it. Where a body
is too deep by that count, its jumps become structure, and what lies too deep is put behind a flag:

    if a:                    inner = false
        if b:                if a { if b { if c { …; inner = true } } }
            if c:            if inner { if d { … } }
                …
                if d: …

The statements run in the same order under the same conditions, so what all threads agree on stays
so: a flag that all threads set is uniform.

A chain that is a choice among the values of one number (`choices`) is printed as a switch.
Compilers of C++ make one level of that; a driver of a WebGPU device may make a level of each of its
cases, so there it is cut as other chains are, into several switches.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.ir import nodes as n
from treadle.ir.passes.choices import choice_of
from treadle.ir.passes.names import Names
from treadle.ir.passes.returns import without_returns
from treadle.ir.substitute import assigned_instead
from treadle.ir.traverse import statements_in, walk
from treadle.ir.types import BOOL, VOID

MOST = 24  # levels that every compiler and driver takes, with room for a printer's own
_LEAST = 6  # levels between two flags, however deep in loops


def unnest(kernel: n.Kernel, *, switches: bool, most: int = MOST) -> n.Kernel:
    """The kernel with at most `most` levels in any body (and a few more for each loop deep inside
    others); the same object if nothing is deeper. With `switches` a switch is one level, whatever
    the number of its cases."""
    depths = _Depths(switches, most)
    if not any(map(depths.is_deep, (kernel.body, *(one.body for one in kernel.functions)))):
        return kernel
    rewriter = _Body(Names(kernel), depths)
    functions = tuple(
        _function(one, rewriter) if depths.is_deep(one.body) else one for one in kernel.functions
    )
    body = kernel.body
    if depths.is_deep(body):
        body = rewriter.whole(body, None)
    return replace(kernel, body=body, functions=functions)


def _function(function: n.Function, rewriter: _Body) -> n.Function:
    if function.result == VOID:
        return replace(function, body=rewriter.whole(function.body, None))
    result = n.Variable(rewriter.names.fresh("result"), function.result, function.span)
    body = rewriter.whole(function.body, result)
    return replace(function, body=(n.Declare(result), *body, n.Return(result, function.span)))


class _Depths:
    """How deep statements are as compilers nest them."""

    def __init__(self, switches: bool, most: int) -> None:
        self.switches = switches
        self.most = most
        self.known: dict[int, tuple[n.Statement, int]] = {}
        self.skipping: dict[int, tuple[n.Statement, bool]] = {}

    def is_deep(self, body: n.Block) -> bool:
        """Whether a body has too many levels."""
        count = sum(isinstance(node, (n.If, n.For, n.While)) for node in statements_in(body))
        return count > self.most and self.block(body) > self.most

    def block(self, block: n.Block) -> int:
        """The levels of a block: what follows a statement that may jump away is a level deeper."""
        deepest = jumps = 0
        for statement in block:
            deepest = max(deepest, jumps + self.statement(statement))
            jumps += self.may_skip(statement)
        return deepest

    def may_skip(self, node: n.Statement) -> bool:
        """Whether what follows a statement may be skipped."""
        if not isinstance(node, (n.If, n.For, n.While)):
            return False
        known = self.skipping.get(id(node))
        if known is None:
            if isinstance(node, n.If):
                jumps = any(map(self.jumps, (*node.then, *node.otherwise)))
            else:
                jumps = any(isinstance(part, n.Return) for part in statements_in(node.body))
            known = self.skipping[id(node)] = (node, jumps)
        return known[1]

    def jumps(self, node: n.Statement) -> bool:
        """Whether a statement may go on elsewhere than behind it."""
        return isinstance(node, (n.Return, n.Break, n.Continue)) or self.may_skip(node)

    def statement(self, node: n.Statement) -> int:
        known = self.known.get(id(node))
        if known is None:
            known = self.known[id(node)] = (node, self._count(node))
        return known[1]

    def _count(self, node: n.Statement) -> int:
        match node:
            case n.If():
                choice = choice_of(node, breaks=False) if self.switches else None
                if choice is None:
                    return 1 + max(self.block(node.then), self.block(node.otherwise))
                blocks = [choice.default, *(body for _, body in choice.cases)]
                return 2 + max(map(self.block, blocks))
            case n.For():
                return 1 + self.block(node.body)
            case n.While():
                return 1 + max(self.block(node.body), self.block(node.update))
        return 0


class _Body:
    """Rewrites the kernel's body or a function's."""

    def __init__(self, names: Names, depths: _Depths) -> None:
        self.names = names
        self.depths = depths

    def whole(self, body: n.Block, result: n.Variable | None) -> n.Block:
        """A body without returns (`result` gets their value), cut to the levels allowed."""
        if any(isinstance(node, n.Return) for node in statements_in(body)):
            body = without_returns(body, result, self.flag("returned"))
        return self.cut(body, self.depths.most)

    def flag(self, name: str) -> n.Variable:
        return n.Variable(self.names.fresh(name), BOOL)

    # --- loops ---

    def loop(self, loop: n.For | n.While, room: int) -> n.For | n.While:
        """A loop whose body has at most `room` levels."""
        room = max(room, min(_LEAST, self.depths.most))
        body = loop.body
        if self.depths.block(body) > room:
            body = self.cut(self.without_jumps(body), room)
        if isinstance(loop, n.While):
            return replace(loop, body=body, update=self.cut(loop.update, room))
        return replace(loop, body=body)

    def without_jumps(self, body: n.Block) -> n.Block:
        """A loop's body without jumps, except for one `break` at its end."""
        if not any(map(self.depths.jumps, body)):
            return body
        left = self.flag("left")
        structured = without_returns(_as_returns(body, left), None, self.flag("turned"))
        if not any(isinstance(node, n.Assign) and node.place == left
                   for node in statements_in(structured)):  # fmt: skip
            return structured
        return (n.Declare(left, n.FALSE), *structured, n.If(left, (n.Break(),)))

    # --- branches ---

    def cut(self, block: n.Block, room: int) -> n.Block:
        """A block with at most so many levels."""
        if self.depths.block(block) <= room:
            return block
        out: list[n.Statement] = []
        for statement in block:
            if self.depths.statement(statement) <= room:
                out.append(statement)
            elif isinstance(statement, (n.For, n.While)):
                out.append(self.loop(statement, room - 1))
            else:
                out.extend(self.flattened(statement, room))
        return tuple(out)

    def flattened(self, statement: n.Statement, room: int) -> n.Block:
        """A branch that is too deep, as several branches one after the other, each under a flag."""
        flags: list[n.Variable] = []
        head, later = self.peel((statement,), room, flags, 0)
        mentioned = {
            node.name for part in later for node in walk(part) if isinstance(node, n.Variable)
        }
        moved = [
            node.variable
            for node in statements_in(head)
            if isinstance(node, n.Declare) and node.variable.name in mentioned
        ]
        out: list[n.Statement] = [n.Declare(flag, n.FALSE) for flag in flags]
        out += [n.Declare(variable) for variable in moved]
        out += assigned_instead(head, frozenset(variable.name for variable in moved))
        for part in later:
            out += self.cut((part,), room)
        return tuple(out)

    def peel(
        self, block: n.Block, room: int, flags: list[n.Variable], level: int
    ) -> tuple[n.Block, list[n.Statement]]:
        """The part of a block that fits `room` levels, and the parts that run after it, each under
        a flag. The flags are set where the control flow would have reached the parts. A loop stays
        in place only at the outer two levels."""
        out: list[n.Statement] = []
        for position, statement in enumerate(block):
            if self.depths.statement(statement) <= room:
                out.append(statement)
                continue
            if isinstance(statement, (n.For, n.While)) and level < 2:
                out.append(self.loop(statement, room - 1))
                continue
            if room < 2 or not isinstance(statement, n.If):
                return self.deferred(tuple(out), block[position:], [], flags)
            then, later = self.peel(statement.then, room - 1, flags, level + 1)
            otherwise, more = self.peel(statement.otherwise, room - 1, flags, level + 1)
            out.append(replace(statement, then=then, otherwise=otherwise))
            return self.deferred(tuple(out), block[position + 1 :], [*later, *more], flags)
        return tuple(out), []

    def deferred(
        self,
        done: n.Block,
        rest: n.Block,
        later: list[n.Statement],
        flags: list[n.Variable],
    ) -> tuple[n.Block, list[n.Statement]]:
        """The block so far, and `later` followed by the remainder under a flag."""
        if not rest:
            return done, later
        flag = self.flag("inner")
        flags.append(flag)
        return (*done, n.Assign(flag, n.TRUE)), [*later, n.If(flag, rest)]


def _as_returns(block: n.Block, left: n.Variable) -> n.Block:
    """A loop's body with its jumps as returns, as of a function; a break also sets a flag."""
    out: list[n.Statement] = []
    for statement in block:
        match statement:
            case n.Break():
                out += [n.Assign(left, n.TRUE, statement.span), n.Return(None, statement.span)]
            case n.Continue():
                out.append(n.Return(None, statement.span))
            case n.If():
                then = _as_returns(statement.then, left)
                otherwise = _as_returns(statement.otherwise, left)
                out.append(replace(statement, then=then, otherwise=otherwise))
            case _:
                out.append(statement)
    return tuple(out)
