"""Constraints of templates: concepts, requires-clauses and requires-expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from treadle.cuda_cpp.syntax import attributes, declarators, expressions, names, primaries, tree
from treadle.cuda_cpp.syntax.cursor import VALUE, Cursor
from treadle.cuda_cpp.syntax.lookahead import type_end


def concept(c: Cursor, parameters: tuple[tree.TemplateParameter, ...]) -> tree.VariableDeclaration:
    """`concept name = constraint;`: a variable template of type bool, from its name on."""
    c.index += 1
    name, span = names.identifier(c, "the concept")
    attributes.attributes(c)
    c.expect("=", "after the name of the concept")
    value = expressions.conditional(c)
    c.expect_semicolon("the concept")
    words = frozenset(("constexpr", "concept"))
    return tree.VariableDeclaration(
        name, tree.BuiltinType("bool", span), value, False, words, None, parameters, span=span
    )


def clause(c: Cursor) -> tree.Expression:
    """`requires A<T> && (sizeof(T) > 4)`: operands that are not primary expressions are in
    parentheses, so that what follows is none of it."""
    c.index += 1
    outside, c.in_angles = c.in_angles, False
    found = _operands(c, "||")
    c.in_angles = outside
    return found


def _operands(c: Cursor, op: str) -> tree.Expression:
    left = _operands(c, "&&") if op == "||" else _operand(c)
    while c.texts[c.index] == op:
        span = c.span
        c.index += 1
        right = _operands(c, "&&") if op == "||" else _operand(c)
        left = tree.Binary(op, left, right, span)
    return left


def _operand(c: Cursor) -> tree.Expression:
    if c.texts[c.index] in ("(", "requires", "true", "false"):
        return primaries.primary(c)
    return names.name(c, of_type=True)


def requires_expression(c: Cursor) -> tree.Expression:
    """`requires (T a) { a + a; typename T::type; { a.f() } -> C<int>; requires A<T>; }`"""
    span = c.span
    c.index += 1
    mark = c.mark
    parameters: tuple[tree.Parameter, ...] = ()
    if c.texts[c.index] == "(":
        parameters, _ = declarators.parameters(c)
    for one in parameters:
        if one.name:
            c.declare(one.name, VALUE)
    c.expect("{", "before the requirements")
    c.deeper()
    outside, c.in_angles = c.in_angles, False
    found: list[tree.Requirement] = []
    while c.texts[c.index] not in ("}", ""):
        found.append(_requirement(c))
        c.expect_semicolon("the requirement")
    c.in_angles = outside
    c.expect("}", "after the requirements")
    c.levels -= 1
    c.forget(mark)
    return tree.Requires(parameters, tuple(found), span)


def _requirement(c: Cursor) -> tree.Requirement:
    span, text = c.span, c.texts[c.index]
    if text == "requires":
        # `requires requires { … };` is nested, too: it is not enough that the inner one is valid.
        c.index += 1
        return tree.Requirement(expressions.conditional(c), nested=True, span=span)
    if text == "{":
        return _compound(c)
    if text == "typename" and c.texts[type_end(c, c.index)[0]] == ";":
        return tree.Requirement(c.grammar.type_name(c), span=span)
    return tree.Requirement(expressions.expression(c), span=span)


def _compound(c: Cursor) -> tree.Requirement:
    span = c.span
    c.index += 1
    value = expressions.expression(c)
    c.expect("}", "after the expression of the requirement")
    if c.texts[c.index] == "noexcept":
        raise c.problem(
            "noexcept in a requirement is not supported: kernels have no exceptions, leave it out"
        )
    result = names.name(c, of_type=True) if c.accept("->") else None
    return tree.Requirement(value, result, span=span)


# --- constraints of declarations -----------------------------------------------------------------


def applied(concept: tree.Name, to: tree.TypeTree, pack: bool = False) -> tree.Expression:
    """`C<int>` for a type T as the constraint `C<T, int>`; for each type of a pack."""
    whole = replace(concept, arguments=(to, *(concept.arguments or ())))
    return tree.Fold("&&", whole, None, concept.span) if pack else whole


def concept_of(type: tree.TypeTree) -> tree.Name | None:
    """The concept of `C auto` in a type; None for others."""
    while isinstance(type, (tree.ConstType, tree.ArrayType, tree.PointerType, tree.ReferenceType)):
        type = type.of if isinstance(type, (tree.ConstType, tree.ArrayType)) else type.to
    return type.concept if isinstance(type, tree.AutoType) else None


def both(one: tree.Expression | None, other: tree.Expression | None) -> tree.Expression | None:
    """The conjunction of two constraints, either of which may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return tree.Binary("&&", one, other, other.span)


def of_parameters(parameters: Sequence[tree.TemplateParameter]) -> tree.Expression | None:
    """The conjunction of the constraints of template parameters; None without any."""
    found: tree.Expression | None = None
    for one in parameters:
        found = both(found, one.constraint)
    return found


def constrained(declaration: tree.Declaration, constraint: tree.Expression) -> tree.Declaration:
    """What a template declares, with the constraint of its head."""
    if not isinstance(
        declaration,
        (
            tree.FunctionDeclaration,
            tree.StructDeclaration,
            tree.VariableDeclaration,
            tree.TypedefDeclaration,
        ),
    ):
        return declaration
    return replace(declaration, constraint=both(constraint, declaration.constraint))
