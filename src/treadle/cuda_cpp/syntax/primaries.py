"""Primary expressions: literals, names, parentheses, and those that begin with a keyword."""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import IDENTIFIER, NUMBER, STRING
from treadle.cuda_cpp.syntax import initializers, literals, names, tree
from treadle.cuda_cpp.syntax.cursor import CLASS_TEMPLATE, KEYWORD, TYPE, VALUE, Cursor
from treadle.cuda_cpp.syntax.keywords import FUNDAMENTAL_WORDS
from treadle.cuda_cpp.syntax.lookahead import known_as, type_end

_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast")
_TYPE_WORDS = FUNDAMENTAL_WORDS | frozenset(
    ("typename", "decltype", "__typeof__", "__typeof", "typeof", "const", "auto")
)


def literal(c: Cursor) -> tree.Expression:
    """A number or a character."""
    at = c.index
    read = literals.number if c.kinds[at] == NUMBER else literals.character
    value = read(c.texts[at], c.span_at(at))
    if isinstance(value, str):
        raise c.problem(value)
    c.index = at + 1
    return _with_suffix(c, value)


def _with_suffix(c: Cursor, value: tree.Expression) -> tree.Expression:
    """`'a'_x` and `"text"_x`: an identifier that follows without a space."""
    at = c.index
    if c.kinds[at] != IDENTIFIER or c.tokens[at].spaced or c.texts[at][:1] != "_":
        return value
    if not isinstance(value, tree.CharacterLiteral | tree.StringLiteral):
        return value
    c.index = at + 1
    return tree.UserLiteral(value, c.texts[at], span=value.span)


def primary(c: Cursor) -> tree.Expression:
    """A primary expression that does not begin with an identifier."""
    at = c.index
    kind, text = c.kinds[at], c.texts[at]
    if text == "(":
        return _parenthesized(c)
    if kind == STRING:
        return _string(c)
    if text in _SIMPLE:
        c.index = at + 1
        return _SIMPLE[text](c.span_at(at))
    if text in _CASTS:
        return _named_cast(c)
    if text in _TYPE_WORDS:
        return _construct(c)
    if text == "[":
        return c.grammar.lambda_expression(c)
    if text == "::" or text in ("operator", "~"):
        return named(c)
    if text == "typeid":
        return _skipping_parentheses(c, "typeid")
    if text == "requires":
        return c.grammar.requires_expression(c)
    raise c.problem(f"expected an expression, found {c.found()}")


_SIMPLE: dict[str, Callable[[Span], tree.Expression]] = {
    "true": lambda span: tree.BoolLiteral(True, span),
    "false": lambda span: tree.BoolLiteral(False, span),
    "nullptr": tree.NullLiteral,
    "this": tree.This,
}


def named(c: Cursor) -> tree.Expression:
    """A name, or a functional cast of a named type."""
    span = c.span
    name = names.name(c)
    if not name.scope and name.text not in c.names:
        c.uses.names.append(name)
    following = c.texts[c.index]
    if following in ("(", "{"):
        kind = known_as(c, name.text, name.scope[-1].text if name.scope else "")
        if kind in (TYPE, CLASS_TEMPLATE) or (following == "{" and kind != VALUE):
            return _constructed(c, tree.NamedType(name, span), span)
    if name.text in ("NULL", "__null") and not name.scope:
        return tree.NullLiteral(span)
    if name.text in ("offsetof", "__builtin_offsetof") and following == "(":
        return _offset_of(c, span)
    return name


def _offset_of(c: Cursor, span: Span) -> tree.Expression:
    """`offsetof(type, member)`, from the parenthesis on."""
    c.index += 1
    type = c.grammar.type_name(c)
    c.expect(",", "after the type of offsetof")
    member = c.grammar.assignment(c)
    c.expect(")", "after the member of offsetof")
    return tree.OffsetOf(type, member, span)


def _construct(c: Cursor) -> tree.Expression:
    """`float(x)`, `unsigned int{3}`, `typename T::value_type(0)`."""
    span = c.span
    has_typename = c.text == "typename"
    found = c.grammar.specifiers(c).type
    scope = found.name.scope if isinstance(found, tree.NamedType) else ()
    if scope and scope[0].text == tree.OF_TYPE and not has_typename:  # decltype(x)::value
        assert isinstance(found, tree.NamedType)
        return found.name
    if found is None or c.texts[c.index] not in ("(", "{"):
        raise c.problem(f"expected '(' after the type, found {c.found()}")
    return _constructed(c, found, span)


def _constructed(c: Cursor, what: tree.TypeTree, span: Span) -> tree.Expression:
    if c.texts[c.index] == "{":
        listed = initializers.braces(c)
        return tree.Construct(what, listed.items, True, span, listed.names)
    c.index += 1
    return tree.Construct(what, initializers.arguments(c, ")"), False, span)


def _parenthesized(c: Cursor) -> tree.Expression:
    at = c.index
    if c.texts[at + 1] == "{":
        c.index = at + 1
        body = c.grammar.block(c, "the statements of an expression")
        c.expect(")", "after the statements of an expression")
        return tree.StatementExpression(body, c.span_at(at))
    close = c.partners[at]
    if close > 0 and _is_fold(c, at, close):
        return _fold(c)
    c.index = at + 1
    inner = c.grammar.bracketed(c)
    c.expect(")", "after the expression")
    return inner


def _is_fold(c: Cursor, opener: int, close: int) -> bool:
    """Whether the parentheses are a fold expression: `(pack + ...)`, `(0 + ... + pack)`."""
    at = opener + 1
    while at < close:
        if c.texts[at] == "..." and (at == opener + 1 or _follows_operator(c, at)):
            return True
        at = max(at, c.partners[at]) + 1
    return False


def _follows_operator(c: Cursor, dots: int) -> bool:
    """Whether an operator is before the `...`, and not what an expansion in `<>` expands."""
    before, after = c.texts[dots - 1], c.texts[dots + 1]
    if before in (">", ">>", "*", "&", "&&"):  # `F<A<T>...>`, `F<T *...>`
        return after not in (">", ">>", ",")
    return c.kinds[dots - 1] not in (IDENTIFIER, KEYWORD) and before not in (")", "]")


def _fold(c: Cursor) -> tree.Expression:
    """`(pack op ...)`, `(... op pack)`, `(a op ... op b)`"""
    span = c.span
    c.index += 1
    outside, c.in_angles = c.in_angles, False
    first = second = None
    op = ""
    if c.texts[c.index] != "...":
        first = c.grammar.unary(c)
        op = c.texts[c.index]
        c.index += 1
    c.expect("...", "in a fold expression")
    if c.texts[c.index] != ")":
        op = c.texts[c.index]
        c.index += 1
        second = c.grammar.unary(c)
    if not op:
        raise c.problem("expected an operator beside '...'")
    c.expect(")", "after a fold expression")
    c.in_angles = outside
    return tree.Fold(op, first, second, span)


def _string(c: Cursor) -> tree.Expression:
    at = c.index
    end = at
    while c.kinds[end] == STRING:
        end += 1
    value = literals.string(c.texts[at:end], c.span_at(at))
    if isinstance(value, str):
        raise c.problem(value)
    c.index = end
    return _with_suffix(c, value)


def _named_cast(c: Cursor) -> tree.Expression:
    style, span = c.text, c.span
    c.index += 1
    c.expect("<", f"after '{style}'")
    outside, c.in_angles = c.in_angles, True
    to = c.grammar.type_name(c)
    c.in_angles = outside
    names.close_angles(c, "the type of the cast")
    c.expect("(", "after the type of the cast")
    operand = c.grammar.bracketed(c)
    c.expect(")", "after the operand of the cast")
    if style == "dynamic_cast":
        return tree.Refused("dynamic_cast", span)
    return tree.Cast(to, operand, style, span)


# --- unary expressions that begin with a keyword -------------------------------------------------


def _size_of(c: Cursor) -> tree.Expression:
    span = c.span
    op = "sizeof" if c.text == "sizeof" else "alignof"
    c.index += 1
    if c.accept("..."):
        c.expect("(", "after 'sizeof...'")
        named = names.name(c)
        c.expect(")", "after the parameter pack")
        return tree.SizeOf(named, "sizeof...", span)
    if c.text == "(":
        close = c.closing(c.index, op)
        end, sure = type_end(c, c.index + 1)
        if end == close and (sure or c.texts[close - 1] in ("*", "&", "]")):
            c.index += 1
            operand: tree.TypeTree | tree.Expression = c.grammar.type_name(c)
            c.expect(")", "after the type")
            return tree.SizeOf(operand, op, span)
    c.deeper()
    operand = c.grammar.unary(c)
    c.levels -= 1
    return tree.SizeOf(operand, op, span)


def _new(c: Cursor) -> tree.Expression:
    span = c.span
    c.index += 1
    place = None
    if c.text == "(" and type_end(c, c.closing(c.index, "new") + 1)[0] > 0:
        c.index += 1
        place = c.grammar.bracketed(c)
        c.expect(")", "after the place of new")
    enclosed = c.accept("(")
    if type_end(c, c.index)[0] < 0:
        raise c.problem(f"expected a type after 'new', found {c.found()}")
    made = c.grammar.conversion_type(c)
    if enclosed:
        c.expect(")", "after the type of new")
    count = None
    if c.accept("["):
        count = c.grammar.bracketed(c)
        c.expect("]", "after the length of new")
        if c.text == "[":
            raise c.problem("new of an array of arrays: give one length, the product")
    initializer = None
    if c.text == "{":
        initializer = initializers.braces(c)
    elif c.accept("("):
        items = initializers.arguments(c, ")")
        initializer = tree.InitializerList(tuple(items), (), span, False)
    functions = () if place is not None else (tree.Name("malloc"),)
    return tree.New(made, count, initializer, place, functions, span)


def _delete(c: Cursor) -> tree.Expression:
    span = c.span
    c.index += 1
    array = c.accept("[")
    if array:
        c.expect("]", "after 'delete['")
    c.deeper()
    operand = c.grammar.unary(c)
    c.levels -= 1
    return tree.Delete(operand, bool(array), (tree.Name("__treadle_give_back"),), span)


def _throw(c: Cursor) -> tree.Expression:
    span = c.span
    c.index += 1
    if c.text not in (";", ")", ":", ","):
        c.grammar.assignment(c)
    return tree.Refused("throw", span)


def _coroutine(c: Cursor) -> tree.Expression:
    span = c.span
    c.index += 1
    if c.text != ";":
        c.grammar.assignment(c)
    return tree.Refused("coroutine", span)


def _noexcept(c: Cursor) -> tree.Expression:
    """`noexcept(…)`: device code never throws."""
    span = c.span
    c.index += 1
    if c.text != "(":
        raise c.problem(f"expected '(' after 'noexcept', found {c.found()}")
    c.index = c.closing(c.index, "noexcept") + 1
    return tree.BoolLiteral(True, span)


PREFIXED: dict[str, Callable[[Cursor], tree.Expression]] = {
    "sizeof": _size_of,
    "alignof": _size_of,
    "_Alignof": _size_of,
    "__alignof": _size_of,
    "__alignof__": _size_of,
    "new": _new,
    "delete": _delete,
    "throw": _throw,
    "noexcept": _noexcept,
    "co_await": _coroutine,
    "co_yield": _coroutine,
}


def _skipping_parentheses(c: Cursor, construct: str) -> tree.Expression:
    span = c.span
    c.index += 1
    if c.text != "(":
        raise c.problem(f"expected '(' after '{construct}', found {c.found()}")
    c.index = c.closing(c.index, construct) + 1
    return tree.Refused(construct, span)
