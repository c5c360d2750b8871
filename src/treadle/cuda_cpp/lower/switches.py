"""`switch`: a chain of ifs if no case falls through, else a loop of one iteration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.cuda_cpp.lower.casts import (
    explicit_cast,
)
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import (
    number,
    number_as,
    promoted,
)
from treadle.cuda_cpp.lower.dispatch import lower
from treadle.cuda_cpp.lower.duffs_device import flattened, without_cases_in_loop
from treadle.cuda_cpp.lower.lifetimes import whole_condition
from treadle.cuda_cpp.lower.names import constant_integer
from treadle.cuda_cpp.semantics.types import EnumType
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


@dataclass(slots=True)
class _Section:
    """The statements after some labels, up to the next label."""

    values: list[tuple[int, int]] = field(default_factory=list)  # the first and last of each case
    default: bool = False
    body: list[tree.Statement] = field(default_factory=list)


def lower_switch(cx: Context, node: tree.Switch) -> None:
    """`switch (…) { case …: … }`"""
    with cx.inner_scope():
        if node.initializer is not None:
            cx.rules.statement(cx, node.initializer)
        loop = without_cases_in_loop(cx, node)
        if loop is not None:
            cx.rules.statement(cx, loop)
            return
        value = whole_condition(cx, lambda: _subject(cx, node))
        sections = _sections(cx, node)
        _declare_for_all(cx, sections)
        subject = value if isinstance(value, n.Constant) else cx.let_as("subject", value, node.span)
        if all(_never_falls_through(section.body) for section in sections[:-1]) and not any(
            _breaks_inside(section.body) for section in sections
        ):
            _chain(cx, subject, sections, node)
        else:
            _once(cx, subject, sections, node)


def _sections(cx: Context, node: tree.Switch) -> list[_Section]:
    body = node.body.body if isinstance(node.body, tree.Compound) else (node.body,)
    sections: list[_Section] = []
    seen: dict[tuple[int, int] | None, Span] = {}  # the labels; None for `default`
    ranges: list[tuple[int, int]] = []
    for statement in flattened(body):
        if isinstance(statement, (tree.Case, tree.Default)):
            if not sections or sections[-1].body:
                sections.append(_Section())
            values = None
            if isinstance(statement, tree.Default):
                sections[-1].default = True
            else:
                values = _values(cx, statement)
                sections[-1].values.append(values)
            earlier = _known(values, seen, ranges)
            if earlier is not None:
                label = "default" if values is None else f"case {values[0]}"
                raise cx.wrong(
                    f"{label} is in this switch already, in line {earlier.line}", statement.span
                )
            seen[values] = statement.span
            if values is not None and values[0] != values[1]:
                ranges.append(values)
        elif sections:
            sections[-1].body.append(statement)
        elif _declares_names(statement):  # which the labels may use
            cx.rules.statement(cx, statement)
        else:  # before the first label: never executed, but its names are declared
            sections.append(_Section(body=[statement]))
    return sections


def _declares_names(statement: tree.Statement) -> bool:
    """Whether a statement declares other names of types and enumerators."""
    return isinstance(statement, tree.DeclarationStatement) and all(
        isinstance(one, (tree.UsingDeclaration, tree.TypedefDeclaration))
        for one in statement.declarations
    )


def _values(cx: Context, case: tree.Case) -> tuple[int, int]:
    """The first and the last value of a case."""
    first = constant_integer(cx, case.value, "the value of a case")
    if case.last is None:
        return first, first
    last = constant_integer(cx, case.last, "the last value of a case")
    if last < first:
        raise cx.wrong(f"case {first} ... {last} has no values: exchange them", case.span)
    return first, last


def _known(
    values: tuple[int, int] | None,
    seen: dict[tuple[int, int] | None, Span],
    ranges: list[tuple[int, int]],
) -> Span | None:
    """The label that has one of these values already."""
    if values is None or values in seen:
        return seen.get(values)
    others = ranges if values[0] == values[1] else [one for one in seen if one is not None]
    for one in others:
        if one[0] <= values[1] and values[0] <= one[1]:
            return seen[one]
    return None


def _declare_for_all(cx: Context, sections: list[_Section]) -> None:
    """Declare first what a section declares for later ones: `case 0: int x; … case 1: x = 9;`."""
    for place, section in enumerate(sections):
        for statement in list(section.body):
            if not isinstance(statement, tree.DeclarationStatement):
                continue
            names = {getattr(one, "name", "") for one in statement.declarations}
            if not any(_mentions(later.body, names) for later in sections[place + 1 :]):
                continue
            if any(getattr(one, "initializer", None) for one in statement.declarations):
                raise cx.wrong(
                    "a later case jumps past the initialization of this variable: put the case in "
                    "braces, or declare the variable before the switch",
                    statement.span,
                )
            if any(_mentions(earlier.body, names) for earlier in sections[:place]):
                raise cx.error(
                    "this name is another variable in the cases above: rename it",
                    statement.span,
                )
            section.body.remove(statement)
            cx.rules.statement(cx, statement)


def _mentions(body: list[tree.Statement], names: set[str]) -> bool:
    return any(
        isinstance(node, tree.Name) and node.text in names
        for statement in body
        for node in walk_tree(statement)
    )


_ENDS = (tree.Break, tree.Return, tree.Continue, tree.Goto)


def _never_falls_through(body: list[tree.Statement]) -> bool:
    """Whether a section never falls through to the next."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, tree.Compound):
        return _never_falls_through(list(last.body))
    return isinstance(last, _ENDS)


def _breaks_inside(body: list[tree.Statement]) -> bool:
    """Whether a section contains a break that is not its last statement."""
    inner = list(body)
    while inner and isinstance(inner[-1], tree.Compound):
        inner = [*inner[:-1], *inner[-1].body]
    if inner and isinstance(inner[-1], tree.Break):
        inner = inner[:-1]
    return any(_has_break(statement) for statement in inner)


def _has_break(statement: Any) -> bool:
    """Whether a break in a statement leaves the enclosing switch."""
    if isinstance(statement, tree.Break):
        return True
    if isinstance(statement, (tree.For, tree.While, tree.DoWhile, tree.RangeFor, tree.Switch)):
        return False
    if isinstance(statement, tree.Compound):
        return any(_has_break(one) for one in statement.body)
    if isinstance(statement, tree.If):
        return _has_break(statement.then) or (
            statement.otherwise is not None and _has_break(statement.otherwise)
        )
    return False


def _without_break(body: list[tree.Statement]) -> list[tree.Statement]:
    if body and isinstance(body[-1], tree.Break):
        return body[:-1]
    if body and isinstance(body[-1], tree.Compound):
        last = body[-1]
        return [*body[:-1], tree.Compound(tuple(_without_break(list(last.body))), last.span)]
    return body


def _matches(subject: n.Expression, section: _Section, span: Span) -> n.Expression:
    result: n.Expression = n.FALSE
    assert isinstance(subject.type, ir.Scalar)
    for first, last in section.values:
        one = n.Binary("eq", subject, constant(first, subject.type), ir.BOOL, span)
        if first != last:
            from_first = n.Binary("ge", subject, constant(first, subject.type), ir.BOOL, span)
            to_last = n.Binary("le", subject, constant(last, subject.type), ir.BOOL, span)
            one = n.Binary("logical_and", from_first, to_last, ir.BOOL, span)
        result = one if result == n.FALSE else n.Binary("logical_or", result, one, ir.BOOL, span)
    return folded(result)


def _chain(cx: Context, subject: n.Expression, sections: list[_Section], node: tree.Switch) -> None:
    """If … else if … else …; the default comes last, wherever it is in the source."""
    default: n.Block = ()
    branches: list[tuple[n.Expression, n.Block]] = []
    for section in sections:
        if not section.values and not section.default:
            _before_first_label(cx, section.body)
            continue
        block = _block(cx, _without_break(section.body))
        if section.default:
            default = block
        else:
            branches.append((_matches(subject, section, node.span), block))
    cx.emit(*_chained(branches, default, node.span))


def _before_first_label(cx: Context, body: list[tree.Statement]) -> None:
    """Statements that no label leads to: they declare names and are checked, but never executed."""
    for statement in body:
        if isinstance(statement, tree.DeclarationStatement):
            cx.rules.statement(cx, statement)
            continue
        if any(isinstance(one, tree.Label) for one in walk_tree(statement)):
            raise cx.error("a label before the first case: put it before the switch", cx.span)
        with cx.separate_block(), cx.inner_scope():
            cx.rules.statement(cx, statement)


def _subject(cx: Context, node: tree.Switch) -> n.Expression:
    """The number that a switch selects by."""
    written = lower(cx, node.condition)
    scoped = getattr(written, "type", None)
    if isinstance(scoped, EnumType):  # no implicit conversion elsewhere
        written = explicit_cast(cx, written, scoped.underlying, "static", node.span)
    value, type = number(cx, written, node.condition.span)
    if type.scalar.is_float:
        raise cx.wrong(f"switch takes an integer, not a {type}", node.condition.span)
    return folded(number_as(value, promoted(type), node.span))


def _block(cx: Context, body: list[tree.Statement]) -> n.Block:
    with cx.separate_block() as block, cx.inner_scope():
        _lower_all(cx, body)
    return tuple(block)


def _lower_all(cx: Context, body: list[tree.Statement]) -> None:
    for statement in body:
        cx.rules.statement(cx, statement)


def _once(cx: Context, subject: n.Expression, sections: list[_Section], node: tree.Switch) -> None:
    """A loop of one iteration over the sections, which run from the selected one on; `break` leaves
    the loop, and `continue` sets a flag and leaves it."""
    entered = _start(cx, subject, sections, node.span)
    continues = _mentions_continue(node)
    flag = cx.let_as("continued", n.FALSE, node.span) if continues else None
    cx.continue_flags.append(flag)
    cx.loops.append(len(cx.endings))
    with cx.separate_block() as body:
        for number_, section in enumerate(sections):
            reached = n.Binary("le", entered, constant(number_, ir.I32), ir.BOOL, node.span)
            inside = [] if not section.body else list(_sequence(cx, section.body))
            if inside:
                cx.emit(n.If(reached, tuple(inside), (), node.span))
        cx.emit(n.Break(node.span))
    cx.continue_flags.pop()
    cx.loops.pop()
    cx.emit(n.While(n.TRUE, tuple(body), (), node.span))
    if flag is not None:
        outer = cx.continue_flags[-1] if cx.continue_flags else None
        go_on: n.Block = (
            (n.Continue(node.span),)
            if outer is None
            else (n.Assign(outer, n.TRUE, node.span), n.Break(node.span))
        )
        cx.emit(n.If(flag, go_on, (), node.span))


def _sequence(cx: Context, body: list[tree.Statement]) -> n.Block:
    """A section's statements; the names that it declares are visible in later sections."""
    with cx.separate_block() as block, cx.lifetime():
        _lower_all(cx, body)
    return tuple(block)


def _start(cx: Context, subject: n.Expression, sections: list[_Section], span: Span) -> n.Variable:
    """The index of the section that is selected; that after the last one if none is."""
    nowhere = len(sections)
    for number_, section in enumerate(sections):
        if section.default:
            nowhere = number_
    entered = cx.let_as("entered", constant(nowhere, ir.I32), span)
    branches: list[tuple[n.Expression, n.Block]] = []
    for number_, section in enumerate(sections):
        if section.values:
            chosen = n.Assign(entered, constant(number_, ir.I32), span)
            branches.append((_matches(subject, section, span), (chosen,)))
    cx.emit(*_chained(branches, (), span))
    return entered


def _chained(branches: list[tuple[n.Expression, n.Block]], default: n.Block, span: Span) -> n.Block:
    """If … else if … else …"""
    chain = default
    for condition, block in reversed(branches):
        if isinstance(condition, n.Constant):
            chain = block if condition.value else chain
        else:
            chain = (n.If(condition, block, chain, span),)
    return chain


def _mentions_continue(statement: Any) -> bool:
    """Whether a statement in a switch contains a continue of an enclosing loop."""
    if isinstance(statement, tree.Continue):
        return True
    if isinstance(statement, (tree.Switch, tree.Compound)):
        body = statement.body if isinstance(statement, tree.Compound) else (statement.body,)
        return any(map(_mentions_continue, body))
    if isinstance(statement, tree.If):
        return _mentions_continue(statement.then) or _mentions_continue(statement.otherwise)
    return False
