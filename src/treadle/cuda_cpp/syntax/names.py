"""Names: qualified names, operator names, and template argument lists."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import IDENTIFIER, STRING
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.cursor import NAMESPACE, TYPE, VALUE, Cursor
from treadle.cuda_cpp.syntax.lookahead import (
    arguments_follow,
    known_as,
    type_argument_follows,
)

_OPERATORS_TEXT = """
+ - * / % ^ & | ~ ! = < > += -= *= /= %= ^= &= |= << >> >>= <<= == != <= >= <=> <=> && || ++ -- ,
->* ->
"""
_OPERATORS = frozenset(_OPERATORS_TEXT.split())


def name(
    c: Cursor,
    *,
    of_type: bool = False,
    after_dot: bool = False,
    scope: Sequence[tree.Name] = (),
    of_pointer: bool = False,
) -> tree.Name:
    """A name that is used. `of_type`: it must be a type, so a `<` begins template arguments.
    `scope` is what was read before it, with its `::`. `of_pointer`: the class before `::*`."""
    span = c.span
    scope = list(scope)
    if c.texts[c.index] == "::":
        scope.append(tree.Name("", span=span))
        c.index += 1
    within = ""
    while True:
        part = _part(c, within, of_type, after_dot, qualified=bool(scope))
        if c.texts[c.index] != "::":
            return tree.Name(part.text, tuple(scope), part.arguments, span) if scope else part
        c.index += 1
        if of_pointer and c.texts[c.index] == "*":
            return tree.Name(part.text, tuple(scope), part.arguments, span)
        scope.append(part)
        within = part.text
        after_dot = False
        c.accept("template")


def _part(c: Cursor, within: str, of_type: bool, after_dot: bool, qualified: bool) -> tree.Name:
    at = c.index
    text, span = c.texts[at], c.span
    if c.kinds[at] != IDENTIFIER:
        if text == "operator":
            return operator_name(c)
        if text == "~" and c.kinds[at + 1] == IDENTIFIER:
            c.index += 2
            return tree.Name("~" + c.texts[at + 1], span=span)
        raise c.problem(f"expected a name, found {c.found()}")
    c.index = at + 1
    if c.texts[at + 1] != "<":
        return tree.Name(text, span=span)
    kind = None if after_dot else known_as(c, text, within)
    if of_type:
        takes = kind not in (TYPE, VALUE, NAMESPACE)
    else:
        takes = c.texts[at - 1] == "template" or arguments_follow(c, kind, after_dot, qualified)
    return tree.Name(text, arguments=template_arguments(c) if takes else None, span=span)


def operator_name(c: Cursor) -> tree.Name:
    """`operator+`, `operator()`, `operator float`, …"""
    span = c.span
    c.index += 1
    text = c.text
    if text in ("(", "["):
        c.index += 1
        close = ")" if text == "(" else "]"
        c.expect(close, f"after 'operator{text}'")
        arguments = template_arguments(c) if c.texts[c.index] == "<" else None
        return tree.Name(f"operator{text}{close}", arguments=arguments, span=span)
    if text in ("new", "delete"):
        c.index += 1
        if c.accept("["):
            c.expect("]", f"after 'operator {text}['")
            text += "[]"
        return tree.Name(f"operator {text}", span=span)
    if c.kinds[c.index] == STRING:
        suffix = c.texts[c.index + 1]
        c.index += 2
        return tree.Name(f'operator""{suffix}', span=span)
    if text in _OPERATORS:
        c.index += 1
        return tree.Name(f"operator{text}", span=span)
    result = c.grammar.conversion_type(c)
    return tree.Name("operator ()", arguments=(result,), span=span)


def template_arguments(c: Cursor) -> tuple[tree.TemplateArgument, ...]:
    """`<…>`, from the `<` on."""
    c.expect("<", "before the template arguments")
    c.deeper()
    outside, c.in_angles = c.in_angles, True
    arguments: list[tree.TemplateArgument] = []
    while not c.texts[c.index].startswith(">"):
        arguments.append(_template_argument(c))
        if not c.accept(","):
            break
    c.in_angles = outside
    close_angles(c, "the template arguments")
    c.levels -= 1
    return tuple(arguments)


def _template_argument(c: Cursor) -> tree.TemplateArgument:
    argument: tree.TemplateArgument
    if type_argument_follows(c):
        argument = c.grammar.type_name(c)
    else:
        argument = c.grammar.assignment(c)
    if c.texts[c.index] == "...":
        span = c.span
        c.index += 1
        return tree.PackExpansion(argument, span)
    return argument


def close_angles(c: Cursor, what: str) -> None:
    """Consume one `>`, which may be the first character of a longer token."""
    text = c.texts[c.index]
    if text == ">":
        c.index += 1
    elif text[:1] == ">":
        c.texts[c.index] = text[1:]  # the tokens themselves stay as they are
    else:
        raise c.problem(f"expected '>' after {what}, found {c.found()}")


def identifier(c: Cursor, what: str) -> tuple[str, Span]:
    """An identifier that is declared; `what` describes it for messages."""
    at = c.index
    if c.kinds[at] != IDENTIFIER:
        raise c.problem(f"expected the name of {what}, found {c.found()}")
    c.index = at + 1
    return c.texts[at], c.span_at(at)
