"""Statements, and error recovery after an ill-formed one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from treadle.core.source import Span
from treadle.cuda_cpp.source.lexer import lex
from treadle.cuda_cpp.source.tokens import IDENTIFIER, Token
from treadle.cuda_cpp.syntax import (
    attributes,
    declarations,
    declarators,
    expressions,
    initializers,
    inline_ptx,
    names,
    tree,
    types,
)
from treadle.cuda_cpp.syntax.cursor import VALUE, Cursor, Jumps, SyntaxProblem
from treadle.cuda_cpp.syntax.likely_causes import meant_keyword
from treadle.cuda_cpp.syntax.lookahead import declaration_follows

_UNROLL = re.compile(r"(unroll|nounroll)\b\s*(.*)", re.DOTALL)


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


def function_body(c: Cursor, what: str) -> tree.Compound:
    """The body of a function, which has labels of its own."""
    outer, c.jumps = c.jumps, Jumps()
    try:
        body = block(c, what)
        for one in c.jumps.gotos:
            if one.label not in c.jumps.labels:
                message = f"the function has no label {one.label}: write {one.label}: before a"
                c.report(SyntaxProblem(f"{message} statement of it", one.span))
    finally:
        c.jumps = outer
    return body


def _statement_or_error(c: Cursor, close: int) -> tree.Statement | None:
    """The next statement; None after an error, with the cursor after the ill-formed statement."""
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
    """The index after the statement that began at `start` and has its error at the cursor."""
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
        return _label(c)
    if c.kinds[c.index] != IDENTIFIER:
        return simple_statement(c)
    start = c.index
    try:
        return simple_statement(c)
    except SyntaxProblem as problem:
        meant = meant_keyword(text, c.names)
        if not meant or problem.abandon:
            raise
        message = f"{text} is neither a keyword nor declared (did you mean {meant}?)"
        raise SyntaxProblem(message, c.span_at(start)) from None


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
        names_, kind = _binding(c)
        initializer: tree.Expression | tree.InitializerList
        if c.accept("="):
            initializer = initializers.value(c)
        elif c.texts[c.index] == "{":
            initializer = initializers.braces(c)
        else:
            c.expect("(", "after the names of a structured binding")
            items = initializers.arguments(c, ")")
            initializer = tree.InitializerList(items, span=span, braces=False)
        c.expect_semicolon("the declaration")
        return tree.StructuredBinding(names_, kind, initializer, span)
    return tree.DeclarationStatement(declarations.declaration(c, "block"), span)


def _binding(c: Cursor) -> tuple[tuple[str, ...], tree.TypeTree]:
    """`auto &[a, b]`: the names, which are declared, and the type."""
    before = types.specifiers(c)
    kind = declarators.pointers(c, before.type or tree.AutoType(c.span))
    c.expect("[", "before the names of a structured binding")
    found: list[str] = []
    while True:
        found.append(names.identifier(c, "a part")[0])
        c.declare(found[-1], VALUE)
        if not c.accept(","):
            break
    c.expect("]", "after the names of a structured binding")
    return tuple(found), kind


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


# --- branches and loops --------------------------------------------------------------------------


def _condition(c: Cursor) -> tree.Expression | tree.VariableDeclaration:
    """The condition of `if` and `while`: an expression or a declaration."""
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
    """`(init-statement; condition)`; the first is None if it is missing."""
    c.expect("(", f"after '{what}'")
    close = c.partners[c.index - 1]
    initializer = None
    if close > 0 and _semicolon_before(c, close):
        if c.texts[c.index] == ";":
            c.index += 1
        else:
            initializer = simple_statement(c)
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


def _if(c: Cursor) -> tree.Statement:
    """An `if` with all its else-ifs: a loop, since a recursion would limit their number."""
    mark = c.mark
    heads: list[tuple[tree.Statement | None, tree.Expression | tree.VariableDeclaration, bool]] = []
    branches: list[tuple[tree.Statement, Span]] = []
    otherwise = None
    while True:
        span = c.span
        c.index += 1
        constexpr = c.accept("constexpr")
        initializer, condition = _consteval(c) or _head(c, "if")
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


def _consteval(c: Cursor) -> tuple[None, tree.Expression] | None:
    """The condition of `if consteval {…}` or `if !consteval {…}`; None for other heads."""
    negated = c.texts[c.index] in ("!", "not") and c.texts[c.index + 1] == "consteval"
    if not negated and c.texts[c.index] != "consteval":
        return None
    span = c.span
    c.index += 1 + negated
    if c.texts[c.index] != "{":
        raise c.problem(f"expected '{{' after 'if consteval', found {c.found()}")
    asked: tree.Expression = tree.Call(
        tree.Name("__builtin_is_constant_evaluated", span=span), (), span=span
    )
    return None, tree.Unary("!", asked, span) if negated else asked


def _branch(c: Cursor) -> tree.Statement:
    """A statement under a condition or a loop, with a scope of its own."""
    mark = c.mark
    span = c.span
    found = [statement(c)]
    while isinstance(found[-1], (tree.Case, tree.Default, tree.Label)) and c.text != "}":
        found.append(statement(c))  # what is labelled
    c.forget(mark)
    return found[0] if len(found) == 1 else tree.Compound(tuple(found), span)


def _unroll(c: Cursor, index: int) -> tree.Expression | int | None:
    """The factor of a `#pragma unroll` before the loop at `index`, as `tree.For.unroll`."""
    token = c.pragmas.get(index)
    match = _UNROLL.match(token.text.strip()) if token is not None else None
    if token is None or match is None:
        return None
    if match[1] == "nounroll":
        return 1
    if not match[2].strip():
        return 0
    value = _expression(c, match[2], token)
    return value.value if isinstance(value, tree.IntegerLiteral) else value


def _expression(c: Cursor, text: str, pragma: Token) -> tree.Expression:
    """The expression after a pragma's name."""
    inner = _of_text(c, text, pragma)
    value = expressions.conditional(inner)
    if inner.index < inner.end:
        raise SyntaxProblem("expected one unroll factor", pragma.span)
    return value


def _of_text(c: Cursor, text: str, at: Token) -> Cursor:
    """A cursor on another text, all of whose tokens have the location of one."""
    place = (at.file, at.line, at.column)
    words = [word for stretch in lex(text, at.file).stretches for word in stretch.tokens]
    inner = Cursor(
        [Token(word.kind, word.text, *place, word.spaced) for word in words], {}, c.grammar
    )
    inner.names, inner.levels = c.names, c.levels
    return inner


def _for(c: Cursor) -> tree.Statement:
    span, unroll = c.span, _unroll(c, c.index)
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
        initializer = declaration_statement(c)
    else:
        initializer = expression_statement(c)
    if declaration_follows(c) and (ranged := _range_for(c, span)) is not None:
        c.forget(mark)
        statements = (initializer, ranged) if initializer is not None else (ranged,)
        return tree.Compound(statements, span)
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
    parts: tree.StructuredBinding | None = None
    if binding_follows(c):
        found, kind = _binding(c)
        item = tree.Name("<parts>", span=span)
        parts = tree.StructuredBinding(found, kind, item, span)
        variable = tree.VariableDeclaration("<parts>", tree.ReferenceType(kind, True), span=span)
        if isinstance(kind, tree.ReferenceType):
            variable = replace(variable, type=kind)
    else:
        variable = declarations.variable(c, types.specifiers(c), "range")
    c.expect(":", "after the variable of 'for'")
    if c.texts[c.index] == "{":
        range_: tree.Expression | tree.InitializerList = initializers.braces(c)
    else:
        range_ = expressions.bracketed(c)
    c.expect(")", "after the range of 'for'")
    body = _branch(c)
    if parts is not None:
        body = tree.Compound((parts, body), span)
    return tree.RangeFor(variable, range_, body, span)


def _colon_follows(c: Cursor) -> bool:
    """Whether a `:` comes before the first `;`, and no `?`."""
    at = c.index
    while c.texts[at] not in (";", "?", ")", "{", ""):
        if c.texts[at] == ":":
            return True
        partner = c.partners[at]
        at = partner + 1 if partner > at else at + 1
    return False


def _while(c: Cursor) -> tree.Statement:
    span, unroll = c.span, _unroll(c, c.index)
    c.index += 1
    c.expect("(", "after 'while'")
    mark = c.mark
    condition = _condition(c)
    c.expect(")", "after the condition of 'while'")
    body = _branch(c)
    c.forget(mark)
    return tree.While(condition, body, unroll, span)


def _do(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    body = _branch(c)
    c.expect("while", "after the body of 'do'")
    c.expect("(", "after 'while'")
    condition = expressions.bracketed(c)
    c.expect(")", "after the condition of 'while'")
    c.expect_semicolon("'do … while'")
    return tree.DoWhile(body, condition, span)


def _switch(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    mark = c.mark
    initializer, condition = _head(c, "switch")
    if isinstance(condition, tree.VariableDeclaration):
        first = tree.DeclarationStatement((condition,), condition.span)
        if initializer is not None:
            raise c.problem("two declarations in a switch statement's head: write one before it")
        initializer, condition = first, tree.Name(condition.name, span=condition.span)
    body = _branch(c)
    c.forget(mark)
    return tree.Switch(condition, body, initializer, span)


def _case_label(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    value = expressions.assignment(c)
    last = expressions.assignment(c) if c.accept("...") else None
    c.expect(":", "after the value of 'case'")
    return tree.Case(value, span, last)


def _default_label(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    c.expect(":", "after 'default'")
    return tree.Default(span)


# --- jumps and what is refused -------------------------------------------------------------------


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
    begin = c.index
    value: tree.Expression | tree.InitializerList | None = None
    if c.texts[c.index] == "{":
        value = initializers.braces(c)
    elif c.texts[c.index] not in (";", "}"):
        value = expressions.expression(c)
    parentheses = c.texts[begin] == "(" and c.partners[begin] == c.index - 1
    c.expect_semicolon("'return'" if value is None else "the returned value")
    return tree.Return(value, span, parentheses)


def _empty(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    return tree.Compound((), span, braces=False)


def _label(c: Cursor) -> tree.Statement:
    name, span = c.texts[c.index], c.span
    first = c.jumps.labels.setdefault(name, span)
    if first is not span:
        message = f"the function has a label {name} already, in line {first.line}"
        c.report(SyntaxProblem(f"{message}: give one another name", span))
    c.index += 2
    return tree.Label(name, span)


def _goto(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    if c.texts[c.index] == "*":
        raise c.problem("goto to an address: use a label, or a switch")
    if c.kinds[c.index] != IDENTIFIER:
        raise c.problem(f"expected a label after 'goto', found {c.found()}")
    label = c.texts[c.index]
    c.index += 1
    c.expect_semicolon("'goto'")
    found = tree.Goto(label, span)
    c.jumps.gotos.append(found)
    return found


def _asm(c: Cursor) -> tree.Statement:
    span = c.span
    c.index += 1
    while c.texts[c.index] in ("volatile", "__volatile__", "__volatile", "goto", "inline"):
        c.index += 1
    if c.texts[c.index] not in ("(", "{"):
        raise c.problem(f"expected '(' after 'asm', found {c.found()}")
    at = c.index
    close = c.closing(at, "asm")
    braces = c.texts[at] == "{"
    token = c.tokens[at]
    found: tree.Statement = tree.RefusedStatement("asm", span)
    if not braces:
        found = inline_ptx.statement(
            c, span, lambda c, text: block(_of_text(c, text, token), "asm")
        )
    c.index = close + 1
    if not braces:
        c.expect_semicolon("'asm'")
    return found


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
    "if": _if,
    "for": _for,
    "while": _while,
    "do": _do,
    "switch": _switch,
    "case": _case_label,
    "default": _default_label,
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
