"""`goto`: a block with labels becomes sections, each of which runs if no jump leads past it.

A jump sets the number of its section and leaves the statements around it, as a return leaves those
of an inlined function (`ir.passes.returns`). If a jump leads back, a loop is around the sections.
Labels are those of the blocks around a `goto`; a jump into a block is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, zero_of
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.passes.returns import without_returns
from treadle.ir.traverse import walk


@dataclass(slots=True)
class Labels:
    """The labels of a block, by the numbers of the sections that they begin."""

    numbers: dict[str, int]
    state: n.Variable
    depth: int  # of the objects that do not end with a jump
    current: int = 0  # the section that is lowered
    goes_back: bool = False


def has_labels(body: Sequence[tree.Statement]) -> bool:
    """Whether a block has labels."""
    return any(isinstance(one, tree.Label) for one in body)


def lower_goto(cx: Context, node: tree.Goto) -> None:
    """`goto label;`"""
    found = next((one for one in reversed(cx.labels) if node.label in one.numbers), None)
    if found is None:
        raise cx.error(
            f"goto {node.label} leads into a block: put the label in a block around the goto",
            node.span,
        )
    to = found.numbers[node.label]
    if to <= found.current:
        found.goes_back = True
        if cx.endings[found.depth - 1]:
            raise cx.error(
                f"goto {node.label} leads back over an object that ends by code of its class: use "
                "a loop",
                node.span,
            )
    cx.end_from(found.depth)
    cx.emit(n.CallStatement(_mark(found.state, to), (), None, node.span))


def _mark(state: n.Variable, to: int) -> str:
    return f"goto {state.name} {to}"


def lower_sections(cx: Context, body: Sequence[tree.Statement], span: Span) -> None:
    """The statements of a block with labels, in its scope."""
    sections: list[list[tree.Statement]] = [[]]
    numbers: dict[str, int] = {}
    for one in body:
        if isinstance(one, tree.Label):
            if sections[-1]:
                sections.append([])
            numbers[one.name] = len(sections) - 1
        else:
            sections[-1].append(one)
    state = cx.let_as("section", constant(0, ir.I32), span)
    labels = Labels(numbers, state, len(cx.endings))
    cx.labels.append(labels)
    blocks: list[n.Block] = []
    for labels.current, section in enumerate(sections):
        with cx.separate_block() as block:
            for one in section:
                cx.rules.statement(cx, one)
        blocks.append(tuple(block))
    cx.labels.pop()
    _emit(cx, labels, _with_common_variables(cx, blocks), span)


def _with_common_variables(cx: Context, blocks: list[n.Block]) -> list[n.Block]:
    """The sections, with variables that several of them use declared before."""
    names = [{each.name for each in walk(one) if isinstance(each, n.Variable)} for one in blocks]
    found: list[n.Block] = []
    for block in blocks:
        kept: list[n.Statement] = []
        for one in block:
            if isinstance(one, n.Declare) and sum(one.variable.name in each for each in names) > 1:
                cx.emit(n.Declare(one.variable, None, one.span))
                value = one.value
                if value is None and isinstance(one.variable.type, ir.Scalar):
                    value = zero_of(one.variable.type, one.span)
                if value is not None:
                    kept.append(n.Assign(one.variable, value, one.span))
            else:
                kept.append(one)
        found.append(tuple(kept))
    return found


def _emit(cx: Context, labels: Labels, blocks: list[n.Block], span: Span) -> None:
    state, count = labels.state, len(blocks)
    jumped = cx.let_as("jumped", n.FALSE, span) if labels.goes_back else None
    leaves = _Leaving(labels, count, jumped)
    with cx.separate_block() as made:
        for at, block in enumerate(blocks):
            flag = n.Variable(cx.lowering.unique("left"), ir.BOOL, span)
            inside = leaves.restored(without_returns(leaves.marked(block), None, flag))
            number = constant(at, ir.I32)
            if at == 0 or (at == count - 1 and jumped is None):  # each way leads here
                reached: n.Expression = n.TRUE
            else:
                reached = n.Binary("le", state, number, ir.BOOL, span)
            if jumped is not None:
                reached = n.Binary("le", state, number, ir.BOOL, span)
            cx.emit(*inside) if reached == n.TRUE else cx.emit(n.If(reached, inside, (), span))
            if jumped is not None:
                again = (n.Assign(jumped, n.FALSE, span), n.Continue(span))
                cx.emit(n.If(jumped, again, (), span))
        if jumped is not None:
            cx.emit(n.Break(span))
    if jumped is None:
        cx.emit(*made)
        return
    gone = n.Binary("ge", state, constant(count, ir.I32), ir.BOOL, span)
    body = (n.If(gone, (n.Break(span),), (), span), *made) if leaves.ways else tuple(made)
    cx.emit(n.While(n.TRUE, body, (), span))
    for kind, way in leaves.ways.items():
        left = n.Binary("eq", state, constant(way, ir.I32), ir.BOOL, span)
        cx.emit(n.If(left, (kind(span),), (), span))


@dataclass(slots=True)
class _Leaving:
    """Rewrites what leaves a section: jumps become returns, and returns are kept meanwhile."""

    labels: Labels
    count: int
    jumped: n.Variable | None  # there is a loop around the sections
    returns: list[n.Return] = field(default_factory=list)
    ways: dict[type, int] = field(default_factory=dict)  # out of the loop around the block

    def marked(self, block: n.Block, outside: bool = True) -> n.Block:
        found: list[n.Statement] = []
        for one in block:
            found += self.statement(one, outside)
        return tuple(found)

    def statement(self, one: n.Statement, outside: bool) -> tuple[n.Statement, ...]:
        """`outside`: a break or continue here is one of a loop around the block."""
        match one:
            case n.Return():
                self.returns.append(one)
                return (n.CallStatement(f"return {len(self.returns) - 1}", (), None, one.span),)
            case n.CallStatement(function=name) if name.startswith(
                f"goto {self.labels.state.name} "
            ):
                return self.to(int(name.rpartition(" ")[2]), one.span)
            case n.Break() | n.Continue() if outside and self.jumped is not None:
                number = self.ways.setdefault(type(one), self.count + len(self.ways))
                return self.to(number, one.span)
            case n.If():
                then = self.marked(one.then, outside)
                otherwise = self.marked(one.otherwise, outside)
                return (replace(one, then=then, otherwise=otherwise),)
            case n.While() | n.For():
                return (replace(one, body=self.marked(one.body, False)),)
        return (one,)

    def to(self, number: int, span: Span) -> tuple[n.Statement, ...]:
        jump: list[n.Statement] = [
            n.Assign(self.labels.state, constant(number, ir.I32), span),
            n.Return(None, span),
        ]
        if self.jumped is not None:
            jump.insert(0, n.Assign(self.jumped, n.TRUE, span))
        return tuple(jump)

    def restored(self, block: n.Block) -> n.Block:
        return tuple(map(self.restored_statement, block))

    def restored_statement(self, one: Any) -> Any:
        match one:
            case n.CallStatement(function=name) if name.startswith("return "):
                return self.returns[int(name.rpartition(" ")[2])]
            case n.If():
                then, otherwise = self.restored(one.then), self.restored(one.otherwise)
                return replace(one, then=then, otherwise=otherwise)
            case n.While() | n.For():
                return replace(one, body=self.restored(one.body))
        return one
