"""Expressions: precedence climbing over unary expressions."""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import CHARACTER, IDENTIFIER, NUMBER
from treadle.cuda_cpp.syntax import initializers, names, primaries, tree
from treadle.cuda_cpp.syntax.cursor import Cursor
from treadle.cuda_cpp.syntax.lookahead import cast_follows

# The precedence of binary operators, all of which are left-associative.
_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    ">": 7,
    "<=": 7,
    ">=": 7,
    "<=>": 8,
    "<<": 9,
    ">>": 9,
    "+": 10,
    "-": 10,
    "*": 11,
    "/": 11,
    "%": 11,
    ".*": 12,
    "->*": 12,
}
_ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="))
_ANGLES = frozenset((">", ">>"))
_PREFIXES = frozenset(("+", "-", "!", "~", "*", "&", "++", "--"))
_SUFFIXES = frozenset(("(", "[", ".", "->", "++", "--", "<<<"))
_LONGEST_CHAIN = 4000  # operators of one precedence, or suffixes, in a row: the depth of the tree


def expression(c: Cursor) -> tree.Expression:
    """An expression, which may have comma operators."""
    left = assignment(c)
    links = 0
    while c.texts[c.index] == ",":
        links = counted(c, links)
        span = c.span
        c.index += 1
        left = tree.Binary(",", left, assignment(c), span)
    return left


def bracketed(c: Cursor) -> tree.Expression:
    """An expression in parentheses or brackets, in which `>` is the operator."""
    outside, c.in_angles = c.in_angles, False
    inner = expression(c)
    c.in_angles = outside
    return inner


def assignment(c: Cursor) -> tree.Expression:
    """An assignment-expression: no comma operator."""
    c.deeper()
    left = _binary(c, 1)
    text = c.texts[c.index]
    if text == "?":
        left = _conditional(c, left)
    elif text in _ASSIGNMENTS:
        span = c.span
        c.index += 1
        value = initializers.braces(c) if c.texts[c.index] == "{" else assignment(c)
        left = tree.Assign(text, left, value, span)
    c.levels -= 1
    return left


def conditional(c: Cursor) -> tree.Expression:
    """A conditional-expression: no comma operator, no assignment."""
    left = _binary(c, 1)
    return _conditional(c, left) if c.texts[c.index] == "?" else left


def _conditional(c: Cursor, condition: tree.Expression) -> tree.Expression:
    span = c.span
    c.index += 1
    if_true = None if c.texts[c.index] == ":" else bracketed(c)
    c.expect(":", "between the two operands after '?'")
    return tree.Conditional(condition, if_true, assignment(c), span)


def _binary(c: Cursor, least: int) -> tree.Expression:
    left = unary(c)
    texts = c.texts
    links = 0
    while True:
        op = texts[c.index]
        precedence = _PRECEDENCE.get(op, 0)
        if precedence < least or (c.in_angles and op in _ANGLES):
            return left
        links = counted(c, links)
        span = c.span
        c.index += 1
        right = _binary(c, precedence + 1)
        left = tree.Binary(op, left, right, span)


def counted(c: Cursor, links: int) -> int:
    """The length of a chain with one more link; a problem past the limit."""
    if links >= _LONGEST_CHAIN:
        raise c.problem(f"more than {_LONGEST_CHAIN} operations in a row: split this up")
    return links + 1


def unary(c: Cursor) -> tree.Expression:
    """A unary expression: an operand with its prefix and postfix operators."""
    at = c.index
    kind, text = c.kinds[at], c.texts[at]
    if kind == IDENTIFIER:
        if c.texts[at + 1] not in _AFTER_SHORT_NAMES:
            c.index = at + 1
            name = tree.Name(text, span=c.span_at(at))
            if text not in c.names:
                c.uses.names.append(name)
            return name
        return _suffixed(c, primaries.named(c))
    if kind in (NUMBER, CHARACTER):
        found = primaries.literal(c)
        return _suffixed(c, found) if c.text == "[" else found  # 3[a] is a[3]
    if text in _PREFIXES:
        c.deeper()
        span = c.span
        c.index = at + 1
        operand = unary(c)
        c.levels -= 1
        return tree.Unary(text, operand, span)
    if text == "(" and cast_follows(c):
        return _cast(c)
    if text in primaries.PREFIXED:
        return primaries.PREFIXED[text](c)
    return _suffixed(c, primaries.primary(c))


# An identifier before one of these may be a longer expression.
_AFTER_SHORT_NAMES = _SUFFIXES | frozenset(("<", "::", "{"))


def _cast(c: Cursor) -> tree.Expression:
    span = c.span
    c.deeper()
    c.index += 1
    to = c.grammar.type_name(c)
    c.expect(")", "after the type of the cast")
    operand: tree.Expression
    if c.texts[c.index] == "{":
        listed = initializers.braces(c)
        operand = tree.Construct(to, listed.items, True, span, listed.names)
        operand = _suffixed(c, operand)
    else:
        operand = tree.Cast(to, unary(c), "c", span)
    c.levels -= 1
    return operand


def _suffixed(c: Cursor, base: tree.Expression) -> tree.Expression:
    texts = c.texts
    links = 0
    while True:
        text = texts[c.index]
        if text not in _SUFFIXES:
            return base
        links = counted(c, links)
        span = c.span
        if text == ".":
            c.index += 1
            base = _member(c, base, arrow=False)
        elif text == "[":
            c.index += 1
            base = _subscript(c, base)
        elif text == "(":
            c.index += 1
            call = tree.Call(base, initializers.arguments(c, ")"), span=_span_of(base, span))
            if isinstance(base, tree.Name) and not base.scope:
                c.uses.calls.append(call)
            base = call
        elif text == "->":
            c.index += 1
            base = _member(c, base, arrow=True)
        elif text in ("++", "--"):
            c.index += 1
            base = tree.Postfix(text, base, span)
        else:
            base = _launch(c, base)


def _span_of(base: tree.Expression, otherwise: Span) -> Span:
    return base.span if isinstance(base, tree.Name | tree.Member) else otherwise


def _member(c: Cursor, base: tree.Expression, *, arrow: bool) -> tree.Expression:
    c.accept("template")
    at = c.index
    span = c.span_at(at)
    if c.kinds[at] == IDENTIFIER and c.texts[at + 1] not in ("<", "::"):
        c.index = at + 1
        return tree.Member(base, tree.Name(c.texts[at], span=span), arrow, span)
    if c.kinds[at] != IDENTIFIER and c.texts[at] not in ("operator", "~"):
        raise c.problem(f"expected the name of a member, found {c.found()}")
    return tree.Member(base, names.name(c, after_dot=True), arrow, span)


def _subscript(c: Cursor, base: tree.Expression) -> tree.Expression:
    span = c.span_at(c.index - 1)
    if c.texts[c.index] == "]":
        raise c.problem("expected an index, found ']'")
    outside, c.in_angles = c.in_angles, False
    given = [initializers.expanded(c, initializers.value(c))]
    while c.accept(","):
        given.append(initializers.expanded(c, initializers.value(c)))
    c.in_angles = outside
    c.expect("]", "after the index")
    plain = [one for one in given if not isinstance(one, tree.InitializerList | tree.PackExpansion)]
    if len(plain) < len(given):  # which only an operator function takes
        operator = tree.Member(base, tree.Name("operator[]", span=span), False, span)
        return tree.Call(operator, tuple(given), span=span)
    index = plain[0]
    for one in plain[1:]:
        index = tree.Binary(",", index, one, span)
    return tree.Subscript(base, index, span, len(plain))


def _launch(c: Cursor, base: tree.Expression) -> tree.Expression:
    """`kernel<<<grid, block>>>(…)`"""
    span = c.span
    c.index += 1
    outside, c.in_angles = c.in_angles, False
    configuration = [initializers.value(c)]
    while c.accept(","):
        configuration.append(initializers.value(c))
    c.in_angles = outside
    c.expect(">>>", "after the launch configuration")
    c.expect("(", "after '>>>'")
    given = initializers.arguments(c, ")")
    called = (tree.Name("__treadle_enqueue"), tree.Name("__treadle_enqueue_word"))
    return tree.Call(base, given, True, _span_of(base, span), tuple(configuration), called)
