"""Functions after their declarator: bodies, member initializers, `= default`."""

from __future__ import annotations

import math
from itertools import takewhile

from treadle.core.source import Span
from treadle.cuda_cpp.syntax import (
    attributes,
    constraints,
    declarations,
    declarators,
    initializers,
    names,
    statements,
    templates,
    tree,
)
from treadle.cuda_cpp.syntax.cursor import FUNCTION_TEMPLATE, VALUE, Arity, Cursor
from treadle.cuda_cpp.syntax.declspec import Declarator, Function, Specifiers

_NOTES = {"default": "defaulted", "delete": "deleted", "0": "pure"}


def function(
    c: Cursor,
    before: Specifiers,
    declared: Declarator,
    template: tuple[tree.TemplateParameter, ...] | None,
) -> tuple[tree.FunctionDeclaration, bool]:
    """The function, and whether its declaration is complete without a `;`."""
    name, found = declared.name, declared.function
    assert name is not None
    assert found is not None
    attributes.attributes(c, before)
    is_named = before.type is not None and not name.scope  # not a constructor or conversion
    if is_named and c.names.get(name.text) != FUNCTION_TEMPLATE:
        kind = VALUE if template is None else FUNCTION_TEMPLATE
        c.declare(name.text, kind, function=True)
    _note_arity(c, name.text, found, declared.span)
    body: tree.Compound | None = None
    members: list[_Initializer] = []
    note = ""
    mark = c.mark
    declarations.declare_members_of(c, name.scope)
    declarators.declare_parameters(c, found)
    parameters, invented = templates.abbreviated(found.parameters)
    template = (*(template or ()), *invented) if invented else template
    constraint = constraints.of_parameters(invented)
    if c.texts[c.index] == "requires":
        constraint = constraints.both(constraint, constraints.clause(c))
    head_only = c.head_end >= 0
    if c.texts[c.index] == ":" and not head_only:
        members = _member_initializers(c)
    text = c.texts[c.index]
    if head_only:
        c.index, note = c.head_end, "host"
    elif text == "{" or members:
        body = _body(c)
    elif text == "try":
        body = tree.Compound((statements.statement(c),), c.span)
    elif text == "=":
        note = _NOTES.get(c.texts[c.index + 1], "")
        if not note:
            raise c.problem("expected 'default', 'delete' or '0' after '='", c.index + 1)
        c.index += 2
        c.expect_semicolon("the declaration")
    c.forget(mark)
    for_host = "host" in before.words or before.words.isdisjoint(("device", "global"))
    if for_host and not c.bodies:
        c.uses.forget(c.began)
    declaration = tree.FunctionDeclaration(
        name,
        _result(before, declared),
        parameters,
        body,
        before.words | found.words,
        template or None,
        template == (),
        before.launch_bounds,
        tuple(members),
        found.const,
        found.variadic,
        False,
        note,
        found.reference,
        declared.span,
        constraint=constraint,
    )
    return declaration, body is not None or bool(note)


def _note_arity(c: Cursor, name: str, found: Function, span: Span) -> None:
    """Note with how many arguments a function may be called."""
    # Those after a default argument have theirs from an earlier declaration, if not here.
    needed = takewhile(lambda one: one.default is None, found.parameters)
    least = sum(not one.pack for one in needed)
    most: float = len(found.parameters)
    if found.variadic or any(one.pack for one in found.parameters):
        most = math.inf
    c.uses.arities.setdefault(name, []).append(Arity(least, most, span))


def _body(c: Cursor) -> tree.Compound:
    """The body. No constructor is declared in one, so `A (x);` in a method of A is a variable."""
    classes, c.class_names = c.class_names, []
    c.bodies += 1
    try:
        return statements.function_body(c, "the function's body")
    finally:
        c.class_names = classes
        c.bodies -= 1


def _result(before: Specifiers, declared: Declarator) -> tree.TypeTree | None:
    """The return type; of a conversion function it is the name, a constructor has none."""
    if before.type is not None:
        return declared.type
    name = declared.name
    if name is None or name.text != "operator ()" or not name.arguments:
        return None
    kind = name.arguments[0]
    return kind if isinstance(kind, tree.TYPES) else None


_Initializer = tuple[tree.Name, tree.InitializerList]


def _member_initializers(c: Cursor) -> list[_Initializer]:
    """The mem-initializers of a constructor: `: a(1), b{2}`."""
    found: list[_Initializer] = []
    c.index += 1
    while True:
        name = names.name(c, of_type=True)
        span = c.span
        if c.texts[c.index] == "{":
            values = initializers.braces(c)
        elif c.accept("("):
            values = tree.InitializerList(initializers.arguments(c, ")"), (), span, braces=False)
        else:
            raise c.problem(f"expected '(' after the member's name, found {c.found()}")
        found.append((name, values))
        if c.texts[c.index] == "...":
            raise c.problem("the initializers of a pack of bases are not supported: name the bases")
        if not c.accept(","):
            return found
