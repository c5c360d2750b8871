"""Statements, and how to go on after one with an error."""

from __future__ import annotations

from collections.abc import Callable

from treadle.cuda_cpp.source.tokens import IDENTIFIER
from treadle.cuda_cpp.syntax import (
    attributes,
    control,
    declarations,
    expressions,
    initializers,
    tree,
)
from treadle.cuda_cpp.syntax.cursor import Cursor, SyntaxProblem
from treadle.cuda_cpp.syntax.lookahead import declaration_follows


def block(c: Cursor, what: str) -> tree.Compound:
    """`{…}` with a scope of its own."""
    opener = c.index
    if c.texts[opener] != "{":
        raise c.problem(f"expected '{{' before {what}, found {c.found()}")
    close = c.closing(opener, what)
    c.index = opener + 1
    c.deeper()
    body: list[tree.Statement] = []
    mark = c.mark
    while c.index < close and not c.full:
        found = _statement_or_error(c, close)
        if found is not None:
            body.append(found)
    c.forget(mark)
    c.levels -= 1
    c.index = close + 1
    return tree.Compound(tuple(body), c.span_at(opener))


def _statement_or_error(c: Cursor, close: int) -> tree.Statement | None:
    """The next statement; after an error None, and the cursor is where it makes sense again."""
    start, levels = c.index, c.levels
    try:
        return statement(c)
    except SyntaxProblem as problem:
        if c.tolerant or problem.abandon:
            raise
        c.report(problem)
    c.levels, c.in_angles = levels, False
    c.index = _after_error(c, start, close)
    return None


def _after_error(c: Cursor, start: int, close: int) -> int:
    """Behind the statement that began at `start` and has an error where the cursor is."""
    texts, partners = c.texts, c.partners
    at = start
    while at < close:
        text = texts[at]
        if text in ("(", "[", "{") and partners[at] > 0:
            at = partners[at] + 1
            if text == "{" and at > c.index and texts[at] not in ("else", ";", ",", ")", "while"):
                return at
        elif text == ";" and at >= c.index and texts[at + 1] != "else":
            return at + 1
        else:
            at += 1
    return close


def statement(c: Cursor) -> tree.Statement:
    """One statement."""
    text = c.texts[c.index]
    handler = _HANDLERS.get(text)
    if handler is not None:
        c.deeper()
        found = handler(c)
        c.levels -= 1
        return found
    if text == "[" and c.texts[c.index + 1] == "[":
        attributes.attributes(c)
        return statement(c) if c.texts[c.index] != "[" else expression_statement(c)
    if c.kinds[c.index] == IDENTIFIER and c.texts[c.index + 1] == ":":
        span = c.span
        c.index += 2
        return tree.RefusedStatement("label", span)
    return simple_statement(c)


def simple_statement(c: Cursor) -> tree.Statement:
    """A declaration or an expression, with its `;`."""
    return declaration_statement(c) if declaration_follows(c) else expression_statement(c)


def expression_statement(c: Cursor) -> tree.Statement:
    span = c.span
    value = expressions.expression(c)
    c.expect_semicolon("the expression")
    return tree.ExpressionStatement(value, span)


def declaration_statement(c: Cursor) -> tree.Statement:
    span = c.span
    if binding_follows(c):
        while c.texts[c.index] not in (";", "}", ""):
            c.index = max(c.index, c.partners[c.index]) + 1
        c.expect_semicolon("the declaration")
        return tree.RefusedStatement("structured_binding", span)
    return tree.DeclarationStatement(declarations.declaration(c, "block"), span)


def binding_follows(c: Cursor) -> bool:
    """Whether `auto [a, b] = …` stands here."""
    texts = c.texts
    at = c.index
    while texts[at] in ("const", "constexpr", "static"):
        at += 1
    if texts[at] != "auto":
        return False
    at += 1
    while texts[at] in ("&", "&&", "const"):
        at += 1
    return texts[at] == "[" and texts[at + 1] != "["


# --- the rest ------------------------------------------------------------------------------------


def _break(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    c.expect_semicolon("'break'")
    return tree.Break(span)


def _continue(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    c.expect_semicolon("'continue'")
    return tree.Continue(span)


def _return(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    value: tree.Expression | tree.InitializerList | None = None
    if c.texts[c.index] == "{":
        value = initializers.braces(c)
    elif c.texts[c.index] not in (";", "}"):
        value = expressions.expression(c)
    c.expect_semicolon("'return'" if value is None else "the returned value")
    return tree.Return(value, span)


def _empty(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    return tree.Compound((), span)


def _goto(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    c.accept("*")
    if c.kinds[c.index] != IDENTIFIER:
        raise c.problem(f"expected a label after 'goto', found {c.found()}")
    c.index += 1
    c.expect_semicolon("'goto'")
    return tree.RefusedStatement("goto", span)


def _asm(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    while c.texts[c.index] in ("volatile", "__volatile__", "__volatile", "goto", "inline"):
        c.index += 1
    if c.texts[c.index] not in ("(", "{"):
        raise c.problem(f"expected '(' after 'asm', found {c.found()}")
    braces = c.texts[c.index] == "{"
    c.index = c.closing(c.index, "asm") + 1
    if not braces:
        c.expect_semicolon("'asm'")
    return tree.RefusedStatement("asm", span)


def _try(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    if c.texts[c.index] != "{":
        raise c.problem(f"expected '{{' after 'try', found {c.found()}")
    c.index = c.closing(c.index, "try") + 1
    while c.texts[c.index] == "catch" and c.texts[c.index + 1] == "(":
        c.index = c.closing(c.index + 1, "catch") + 1
        if c.texts[c.index] == "{":
            c.index = c.closing(c.index, "catch") + 1
    return tree.RefusedStatement("try", span)


def _coroutine_return(c: Cursor) -> tree.Statement:
    found = _return(c)
    return tree.RefusedStatement("coroutine", found.span)


def _stray_else(c: Cursor) -> tree.Statement:
    raise c.problem("'else' without an 'if' before it")


_HANDLERS: dict[str, Callable[[Cursor], tree.Statement]] = {
    "{": lambda c: block(c, "the block"),
    ";": _empty,
    "if": control.if_statement,
    "for": control.for_statement,
    "while": control.while_statement,
    "do": control.do_statement,
    "switch": control.switch_statement,
    "case": control.case_label,
    "default": control.default_label,
    "break": _break,
    "continue": _continue,
    "return": _return,
    "goto": _goto,
    "asm": _asm,
    "__asm": _asm,
    "__asm__": _asm,
    "try": _try,
    "co_return": _coroutine_return,
    "else": _stray_else,
}
