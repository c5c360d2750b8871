"""Statements that branch and loop."""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.syntax import (
    declarations,
    expressions,
    initializers,
    pragmas,
    statements,
    tree,
    types,
)
from treadle.cuda_cpp.syntax.cursor import Cursor
from treadle.cuda_cpp.syntax.lookahead import declaration_follows


def _condition(c: Cursor) -> tree.Expression | tree.VariableDeclaration:
    """What stands between the parentheses of `if` and `while`."""
    if not declaration_follows(c):
        return expressions.bracketed(c)
    before = types.specifiers(c)
    found = declarations.variable(c, before, "block")
    if found.initializer is None:
        raise c.problem(f"expected '=' and a value in the condition, found {c.found()}")
    return found


def _head(
    c: Cursor, what: str
) -> tuple[tree.Statement | None, tree.Expression | tree.VariableDeclaration]:
    """`(initializer; condition)`, the initializer perhaps missing."""
    c.expect("(", f"after '{what}'")
    close = c.partners[c.index - 1]
    initializer = None
    if close > 0 and _semicolon_before(c, close):
        if c.texts[c.index] == ";":
            c.index += 1
        else:
            initializer = statements.simple_statement(c)
    condition = _condition(c)
    c.expect(")", f"after the condition of '{what}'")
    return initializer, condition


def _semicolon_before(c: Cursor, close: int) -> bool:
    at = c.index
    while at < close:
        if c.texts[at] == ";":
            return True
        partner = c.partners[at]
        at = partner + 1 if partner > at else at + 1
    return False


def if_statement(c: Cursor) -> tree.Statement:
    """A chain of else-ifs is read in a loop, so that it may be long."""
    mark = c.mark
    heads: list[tuple[tree.Statement | None, tree.Expression | tree.VariableDeclaration, bool]] = []
    branches: list[tuple[tree.Statement, Span]] = []
    otherwise = None
    while True:
        span = c.span
        c.index += 1
        constexpr = c.accept("constexpr")
        initializer, condition = _head(c, "if")
        expressions.counted(c, len(heads))
        heads.append((initializer, condition, constexpr))
        branches.append((_branch(c), span))
        if not c.accept("else"):
            break
        if c.texts[c.index] != "if":
            otherwise = _branch(c)
            break
    c.forget(mark)
    for (initializer, condition, constexpr), (then, span) in zip(
        reversed(heads), reversed(branches), strict=True
    ):
        otherwise = tree.If(condition, then, otherwise, initializer, constexpr, span)
    assert otherwise is not None
    return otherwise


def _branch(c: Cursor) -> tree.Statement:
    """A statement under a condition or a loop, with a scope of its own."""
    mark = c.mark
    found = statements.statement(c)
    c.forget(mark)
    return found


def for_statement(c: Cursor) -> tree.Statement:
    span, unroll = c.span, pragmas.unroll(c, c.index)
    c.index += 1
    c.expect("(", "after 'for'")
    mark = c.mark
    initializer: tree.Statement | None = None
    if c.texts[c.index] == ";":
        c.index += 1
    elif declaration_follows(c):
        ranged = _range_for(c, span)
        if ranged is not None:
            c.forget(mark)
            return ranged
        initializer = statements.declaration_statement(c)
    else:
        initializer = statements.expression_statement(c)
    condition = None if c.texts[c.index] == ";" else expressions.bracketed(c)
    c.expect(";", "after the condition of 'for'")
    update = None if c.texts[c.index] == ")" else expressions.bracketed(c)
    c.expect(")", "after the head of 'for'")
    body = _branch(c)
    c.forget(mark)
    return tree.For(initializer, condition, update, body, unroll, span)


def _range_for(c: Cursor, span: Span) -> tree.Statement | None:
    """`for (auto x : xs)`, or None if there is no colon."""
    if not _colon_follows(c):
        return None
    if statements.binding_follows(c):
        c.index = c.closing(c.index - 1, "for") + 1
        _branch(c)
        return tree.RefusedStatement("structured_binding", span)
    before = types.specifiers(c)
    variable = declarations.variable(c, before, "range")
    c.expect(":", "after the variable of 'for'")
    if c.texts[c.index] == "{":
        initializers.braces(c)
        range_: tree.Expression = tree.Refused("range_for_list", span)
    else:
        range_ = expressions.bracketed(c)
    c.expect(")", "after the range of 'for'")
    return tree.RangeFor(variable, range_, _branch(c), span)


def _colon_follows(c: Cursor) -> bool:
    """Whether a `:` comes before the first `;`, and no `?`."""
    at = c.index
    while c.texts[at] not in (";", "?", ")", "{", ""):
        if c.texts[at] == ":":
            return True
        partner = c.partners[at]
        at = partner + 1 if partner > at else at + 1
    return False


def while_statement(c: Cursor) -> tree.Statement:
    span, unroll = c.span, pragmas.unroll(c, c.index)
    c.index += 1
    c.expect("(", "after 'while'")
    mark = c.mark
    condition = _condition(c)
    c.expect(")", "after the condition of 'while'")
    body = _branch(c)
    c.forget(mark)
    return tree.While(condition, body, unroll, span)


def do_statement(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    body = _branch(c)
    c.expect("while", "after the body of 'do'")
    c.expect("(", "after 'while'")
    condition = expressions.bracketed(c)
    c.expect(")", "after the condition of 'while'")
    c.expect_semicolon("'do … while'")
    return tree.DoWhile(body, condition, span)


def switch_statement(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    mark = c.mark
    initializer, condition = _head(c, "switch")
    if isinstance(condition, tree.VariableDeclaration):
        first = tree.DeclarationStatement((condition,), condition.span)
        if initializer is not None:
            raise c.problem("two declarations in the head of a switch: write one before it")
        initializer, condition = first, tree.Name(condition.name, span=condition.span)
    body = _branch(c)
    c.forget(mark)
    return tree.Switch(condition, body, initializer, span)


def case_label(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    value = expressions.assignment(c)
    if c.texts[c.index] == "...":
        raise c.problem("a range of cases is no C++: write the cases one by one")
    c.expect(":", "after the value of 'case'")
    return tree.Case(value, span)


def default_label(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    c.expect(":", "after 'default'")
    return tree.Default(span)
