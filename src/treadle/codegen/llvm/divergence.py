"""What differs among the lanes of a parallel loop, before its body is printed for many at once.

A variable is *varying* if lanes may hold different values: a varying value is assigned to it, or
only some of the lanes that see it pass an assignment. A loop is *divergent* if lanes may leave it,
or start its next iteration, at different times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from treadle.ir import nodes as n
from treadle.ir.traverse import children, root_of, walk


@dataclass(slots=True)
class Divergence:
    """The findings: names of variables, and the `id`s of loop statements."""

    varying: set[str]
    private: frozenset[str]  # memories of which each lane has its own
    loops: set[int] = field(default_factory=set)
    returns: bool = False  # lanes may return at different times

    def is_varying(self, node: n.Expression | n.Place) -> bool:
        """Whether an expression may differ among lanes."""
        return any(
            (isinstance(part, n.Variable) and part.name in self.varying)
            or (isinstance(part, n.Element) and part.memory in self.private)
            for part in walk(node)
        )


def analyze(body: n.Block, varying: Iterable[str], private: frozenset[str]) -> Divergence:
    """The divergence of a body, given what varies from the start."""
    found = Divergence(set(varying), private)
    while True:
        before = len(found.varying), len(found.loops), found.returns
        _Pass(found).block(body, 0, False)
        if before == (len(found.varying), len(found.loops), found.returns):
            return found


def jumps(body: n.Block) -> Iterator[n.Break | n.Continue | n.Return]:
    """The jumps that leave a block: returns, and breaks and continues of loops around it."""
    for node in body:
        if isinstance(node, (n.Break, n.Continue, n.Return)):
            yield node
        elif isinstance(node, (n.For, n.While)):
            yield from (jump for jump in jumps(node.body) if isinstance(jump, n.Return))
        elif isinstance(node, n.If):
            yield from jumps(node.then)
            yield from jumps(node.otherwise)


class _Pass:
    """One walk. A *context* is a number for a set of lanes that runs together: statements in one
    context are passed by the same lanes."""

    def __init__(self, found: Divergence) -> None:
        self.found = found
        self.contexts = 0
        self.declared: dict[str, int] = {}
        self.loops: list[tuple[int, int]] = []  # id, and the context of the body

    def new_context(self) -> int:
        self.contexts += 1
        return self.contexts

    def block(self, body: n.Block, context: int, divergent: bool) -> None:
        """`divergent`: some lanes of the loop's iteration (or of the region) may be absent."""
        for statement in body:
            self.statement(statement, context, divergent)

    def statement(self, node: n.Statement, context: int, divergent: bool) -> None:
        found = self.found
        match node:
            case n.Declare(variable, value):
                self.declared[variable.name] = context
                if value is not None and found.is_varying(value):
                    found.varying.add(variable.name)
            case n.Assign(place, value):
                root = root_of(place)
                if isinstance(root, n.Variable) and (
                    found.is_varying(value) or self.declared.get(root.name) != context
                ):
                    found.varying.add(root.name)
            case n.Atomic(result=n.Variable(name)):
                found.varying.add(name)
            case n.If(condition, then, otherwise):
                if found.is_varying(condition):
                    self.block(then, self.new_context(), True)
                    self.block(otherwise, self.new_context(), True)
                else:
                    self.block(then, context, divergent)
                    self.block(otherwise, context, divergent)
            case n.For() | n.While():
                self.loop(node, context)
            case n.Break() | n.Continue():
                if divergent:
                    found.loops.add(self.loops[-1][0])
            case n.Return():
                if divergent or any(loop in found.loops for loop, _ in self.loops):
                    found.returns = True
                    found.loops.update(loop for loop, _ in self.loops)
            case _:
                assert not any(isinstance(part, n.Declare) for part in children(node))

    def loop(self, node: n.For | n.While, context: int) -> None:
        found, own = self.found, id(node)
        if isinstance(node, n.For):
            if found.is_varying(node.start):
                found.varying.add(node.variable.name)
            if found.is_varying(node.start) or found.is_varying(node.stop):
                found.loops.add(own)
        elif found.is_varying(node.condition):
            found.loops.add(own)
        inner = self.new_context() if own in found.loops else context
        self.loops.append((own, inner))
        self.block(node.body, inner, False)
        if isinstance(node, n.While):
            self.block(node.update, inner, False)
        self.loops.pop()
