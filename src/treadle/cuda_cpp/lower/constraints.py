"""Constraints of templates: whether they are satisfied, and which of two is the stricter one."""

from __future__ import annotations

from itertools import product
from typing import Any

from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.dispatch import constant_value, exact_type_of
from treadle.cuda_cpp.lower.names import is_const, lookup, resolve
from treadle.cuda_cpp.lower.pointers import example_of
from treadle.cuda_cpp.lower.storage import declare_pointer
from treadle.cuda_cpp.lower.template_arguments import argument_key, spelled
from treadle.cuda_cpp.lower.templates import variable_instance
from treadle.cuda_cpp.lower.values import Rvalue, Value, as_const
from treadle.cuda_cpp.semantics.ill_formed import IllFormed
from treadle.cuda_cpp.semantics.scopes import REFERENCE, GlobalVariable, Scope, TypeEntity
from treadle.cuda_cpp.semantics.types import (
    BOOL,
    ArrayOf,
    CppType,
    FunctionOf,
    Pointer,
    Reference,
    decay,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.spelling import spell_expression, spell_name, spell_type
from treadle.ir import nodes as n
from treadle.ir import types as ir


def is_concept(entity: Any) -> bool:
    """Whether an entity is a concept."""
    return isinstance(entity, GlobalVariable) and "concept" in entity.declaration.specifiers


def satisfied(cx: Context, scope: Scope, constraint: tree.Expression | None) -> bool:
    """Whether a constraint holds for the template arguments that a scope binds."""
    if constraint is None:
        return True
    with cx.in_scope(scope):
        return _holds(cx, constraint)


def _holds(cx: Context, node: Any) -> bool:
    match node:
        case tree.Binary(op="&&", left=left, right=right):
            return _holds(cx, left) and _holds(cx, right)
        case tree.Binary(op="||", left=left, right=right):
            return _holds(cx, left) or _holds(cx, right)
        case tree.Name():
            entity = lookup(cx, node)
            if is_concept(entity):
                return concept_holds(cx, entity, node)
    try:
        return bool(constant_value(cx, node, "a constraint"))
    except IllFormed:  # what it names does not exist
        return False


def concept_holds(cx: Context, entity: GlobalVariable, node: tree.Name) -> bool:
    """`C<T>`: whether the arguments satisfy a concept."""
    try:
        declaration, scope = variable_instance(cx, entity, node.arguments or (), node.span)
    except IllFormed:  # there is no such argument, as `typename T::type`
        return False
    assert isinstance(declaration.initializer, tree.EXPRESSIONS)
    return satisfied(cx, scope, declaration.initializer)


# --- why one does not hold -----------------------------------------------------------------------


def why_unsatisfied(cx: Context, scope: Scope, constraint: tree.Expression | None) -> str:
    """The part of a constraint that does not hold, to follow a message."""
    with cx.in_scope(scope):
        parts = _failing(cx, constraint, _MOST_NESTED)
    return ": " + ", as ".join(parts) if parts else ""


_MOST_NESTED = 4  # concepts


def _failing(cx: Context, node: Any, levels: int) -> list[str]:
    """What fails, and why that does."""
    match node:
        case tree.Binary(op="&&", left=left, right=right):
            return _failing(cx, right if _holds(cx, left) else left, levels)
        case tree.Requires():
            return [_failing_requirement(cx, node)]
        case tree.Name() if is_concept(entity := lookup(cx, node)):
            try:
                declaration, scope = variable_instance(cx, entity, node.arguments or (), node.span)
            except IllFormed as error:
                return [f"{spell_name(node)} {_IS_FALSE}", error.message]
            bound = ", ".join(map(spelled, scope.names["<arguments>"]))
            inner: list[str] = []
            # Concepts of the library end at traits of our own, whose names say nothing.
            if levels and not cx.lowering.is_ours(declaration):
                with cx.in_scope(scope):
                    inner = _failing(cx, declaration.initializer, levels - 1)
            name = "::".join([*(part.text for part in node.scope), node.text])
            return [f"{name}<{bound}> {_IS_FALSE}", *inner]
    return [f"{_written(node)} {_IS_FALSE}"]


_IS_FALSE = "is false"


def _failing_requirement(cx: Context, node: tree.Requires) -> str:
    scope = Scope(cx.scope)
    for one in node.parameters:
        declare_example(cx, scope, one, resolve(cx, one.type))
    with cx.in_scope(scope):
        failing = [one for one in node.requirements if not _is_met(cx, one)]
    if not failing:
        return "its requirements are not met"
    text = _written(failing[0].expression)
    result = failing[0].result
    if failing[0].nested:
        return f"{text} {_IS_FALSE}"
    of = "" if result is None else f", or its type does not satisfy {spell_name(result)}"
    return f"{text} is not valid{of}"


def _written(node: Any) -> str:
    try:
        return spell_expression(node)
    except KeyError:
        return spell_type(node) if isinstance(node, tree.TYPES) else "its condition"


# --- requires-expressions ------------------------------------------------------------------------


def lower_requires(cx: Context, node: tree.Requires) -> Value:
    """A requires-expression, a bool."""
    return Rvalue(n.Constant(_is_valid(cx, node), ir.BOOL, node.span), BOOL)


def _is_valid(cx: Context, node: tree.Requires) -> bool:
    scope = Scope(cx.scope)
    for one in node.parameters:
        try:
            declare_example(cx, scope, one, resolve(cx, one.type))
        except IllFormed:
            return False
    with cx.in_scope(scope):
        return all(_is_met(cx, one) for one in node.requirements)


def declare_example(cx: Context, scope: Scope, parameter: tree.Parameter, type: CppType) -> None:
    """Declare some variable of a parameter's type."""
    if isinstance(type, (ArrayOf, FunctionOf)):
        type = decay(type)
    if not parameter.name:
        return
    const = is_const(parameter.type) and not isinstance(type, Reference)
    object = type.to if isinstance(type, Reference) else type
    value: Any
    if isinstance(object, Pointer):
        with cx.separate_block():
            value = declare_pointer(
                cx, "example", object, (cx.path, id(parameter), "example"), parameter.span
            )
    else:
        value = example_of(Reference(object), parameter.span)  # it has a name: it is an lvalue
    if const or (isinstance(type, Reference) and type.const):
        value = as_const(value)
    scope.names[parameter.name] = value
    if isinstance(type, Reference):
        scope.names[REFERENCE + parameter.name] = type


def _is_met(cx: Context, requirement: tree.Requirement) -> bool:
    written = requirement.expression
    if requirement.nested:
        return _holds(cx, written)
    try:
        if isinstance(written, tree.TYPES):
            resolve(cx, written)
            return True
        type = exact_type_of(cx, written)
    except IllFormed:
        return False
    return requirement.result is None or _satisfies(cx, requirement.result, type)


def _satisfies(cx: Context, concept: tree.Name, type: CppType) -> bool:
    """`-> C<int>` for an expression of a type."""
    scope = Scope(cx.scope)
    scope.names[_RESULT] = TypeEntity(type)
    of = tree.NamedType(tree.Name(_RESULT, span=concept.span), concept.span)
    whole = tree.Name(concept.text, concept.scope, (of, *(concept.arguments or ())), concept.span)
    with cx.in_scope(scope):
        return _holds(cx, whole)


_RESULT = "<result>"


# --- which constraint is stricter ----------------------------------------------------------------

# The atoms of a constraint in a normal form: a disjunction of conjunctions, or the reverse.
_Clauses = frozenset[frozenset[Any]]


def stricter(cx: Context, one: tuple[Scope, Any], other: tuple[Scope, Any]) -> int:
    """1 if the first of two constraints, each with the scope of its names, implies the second and
    is not equivalent to it, -1 for the reverse, else 0. Atoms are compared by where they are
    written, and by the arguments of the concept that they are in."""
    forward, back = _implies(cx, one, other), _implies(cx, other, one)
    return forward - back


def _implies(cx: Context, one: tuple[Scope, Any], other: tuple[Scope, Any]) -> bool:
    if other[1] is None:
        return True
    if one[1] is None:
        return False
    given = _normal(cx, *one, any_of=True)
    wanted = _normal(cx, *other, any_of=False)
    return all(not part.isdisjoint(clause) for part in given for clause in wanted)


def _normal(cx: Context, scope: Scope, node: Any, *, any_of: bool) -> _Clauses:
    """A constraint as a disjunction of conjunctions (`any_of`), or as a conjunction of
    disjunctions."""
    with cx.in_scope(scope):
        return _clauses(cx, node, any_of, ())


def _clauses(cx: Context, node: Any, any_of: bool, inside: tuple[Any, ...]) -> _Clauses:
    if isinstance(node, tree.Binary) and node.op in ("&&", "||"):
        parts = [_clauses(cx, each, any_of, inside) for each in (node.left, node.right)]
        if (node.op == "||") == any_of:
            return parts[0] | parts[1]
        return frozenset(a | b for a, b in product(*parts))
    entity: Any = lookup(cx, node) if isinstance(node, tree.Name) else None
    if is_concept(entity):
        declaration, scope = variable_instance(cx, entity, node.arguments or (), node.span)
        bound = scope.names["<arguments>"]
        of_concept = tuple((argument_key(each), spelled(each)) for each in bound)
        with cx.in_scope(scope):
            return _clauses(cx, declaration.initializer, any_of, of_concept)
    return frozenset((frozenset(((id(node), inside),)),))
