"""Lambda expressions."""

from __future__ import annotations

from treadle.cuda_cpp.source.tokens import IDENTIFIER
from treadle.cuda_cpp.syntax import (
    attributes,
    constraints,
    declarators,
    expressions,
    initializers,
    names,
    statements,
    templates,
    tree,
)
from treadle.cuda_cpp.syntax.cursor import VALUE, Cursor, SyntaxProblem
from treadle.cuda_cpp.syntax.keywords import DEVICE_WORDS, SPECIFIER_WORDS

_WORDS = "__host__ __forceinline__ __noinline__ mutable constexpr consteval noexcept static"
_BEFORE_BODY = DEVICE_WORDS | frozenset(_WORDS.split())


def lambda_expression(c: Cursor) -> tree.Expression:
    """`[…](…) {…}`, with a template head, specifiers and a trailing return type."""
    opener, span = c.index, c.span
    close = c.closing(opener, "the captures")
    c.index = opener + 1
    default, captures = _captures(c, close)
    c.index = close + 1
    mark = c.mark
    for capture in captures:
        if capture.initializer is not None:
            c.declare(capture.name, VALUE)
    template: list[tree.TemplateParameter] = []
    clause: tree.Expression | None = None
    if c.texts[c.index] == "<":
        template.extend(templates.parameters(c))
        if c.texts[c.index] == "requires":
            clause = constraints.clause(c)
    words = _specifiers(c)
    found: tuple[tree.Parameter, ...] = ()
    if c.texts[c.index] == "(":
        found, _ = declarators.parameters(c)
    words |= _specifiers(c)
    result: tree.TypeTree = tree.AutoType(span)
    if c.accept("->"):
        result = c.grammar.type_name(c)
    for parameter in found:
        if parameter.name:
            c.declare(parameter.name, VALUE)
    found, invented = templates.abbreviated(found)
    if c.texts[c.index] == "requires":
        clause = constraints.both(clause, constraints.clause(c))
    outside, c.in_angles = c.in_angles, False
    classes, c.class_names = c.class_names, []
    try:
        body = statements.function_body(c, "the body of the lambda")
    finally:
        c.class_names = classes
    c.in_angles = outside
    c.forget(mark)
    call = tree.FunctionDeclaration(
        tree.Name("operator()", span=span),
        result,
        found,
        body,
        frozenset({"device", *words}) - {"mutable"},
        (*template, *invented) or None,
        const="mutable" not in words,
        span=span,
        constraint=constraints.both(constraints.of_parameters((*template, *invented)), clause),
    )
    return tree.Lambda(default, captures, call, span)


def _captures(c: Cursor, close: int) -> tuple[str, tuple[tree.Capture, ...]]:
    default = ""
    found: list[tree.Capture] = []
    while c.index < close:
        span = c.span
        text, following = c.texts[c.index], c.texts[c.index + 1]
        if text in ("=", "&") and following in (",", "]"):
            default = text
            c.index += 1
        elif text == "this" or (text == "*" and following == "this"):
            c.index += 1 + (text == "*")
            found.append(tree.Capture("this", text == "this", span=span))
        else:
            made = _capture(c)
            if any(one.name == made.name for one in found):
                c.report(SyntaxProblem(f"{made.name} is captured twice", made.span))
            elif made.initializer is None and default == ("&" if made.by_reference else "="):
                message = f"[{default}] captures {made.name} already: leave it out"
                c.report(SyntaxProblem(message, made.span))
            found.append(made)
        if c.index < close and not c.accept(","):
            raise c.problem(f"expected ',' between captures, found {c.found()}")
    return default, tuple(found)


def _capture(c: Cursor) -> tree.Capture:
    span = c.span
    by_reference = c.accept("&")
    pack = c.accept("...")
    if c.kinds[c.index] != IDENTIFIER:
        raise c.problem(f"expected the name of a captured variable, found {c.found()}")
    name, span = names.identifier(c, "a captured variable")
    initializer: tree.Expression | tree.InitializerList | None = None
    if c.accept("..."):
        initializer = tree.PackExpansion(tree.Name(name, span=span), span)
    elif c.accept("="):
        initializer = initializers.value(c)
    elif c.texts[c.index] == "{":
        initializer = initializers.braces(c)
    elif c.accept("("):
        initializer = expressions.bracketed(c)
        c.expect(")", "after the value of a capture")
    if pack and isinstance(initializer, tree.EXPRESSIONS):  # `...y = 2 * x`
        initializer = tree.PackExpansion(initializer, span)
    return tree.Capture(name, by_reference, initializer, span)


def _specifiers(c: Cursor) -> frozenset[str]:
    words: set[str] = set()
    attributes.attributes(c)
    while (text := c.texts[c.index]) in _BEFORE_BODY:
        c.index += 1
        if text == "noexcept" and c.texts[c.index] == "(":
            c.index = c.closing(c.index, "noexcept") + 1
        words.add(SPECIFIER_WORDS.get(text) or text)
        attributes.attributes(c)
    return frozenset(words)
