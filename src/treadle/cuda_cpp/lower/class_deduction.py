"""Template arguments of a class that its initializer tells: `Pair p{1, 2.5f};`, by deduction
guides, constructors and the fields of aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context, tree_made
from treadle.cuda_cpp.lower.evaluation_order import operands_of
from treadle.cuda_cpp.lower.names import injected_class, lookup
from treadle.cuda_cpp.lower.overloads import resolve_overload, result_type, viable
from treadle.cuda_cpp.lower.special_members import names_class
from treadle.cuda_cpp.semantics.scopes import DeclaredType, Functions, Overload
from treadle.cuda_cpp.semantics.types import ClassType
from treadle.cuda_cpp.syntax import tree


def placeholder(cx: Context, written: tree.TypeTree) -> DeclaredType | None:
    """The class template that a type names without its arguments; None for other types."""
    while isinstance(written, tree.ConstType):
        written = written.of
    if not isinstance(written, tree.NamedType) or written.name.arguments is not None:
        return None
    entity = lookup(cx, written.name)
    if not isinstance(entity, DeclaredType):
        return None
    declaration = entity.declaration
    if not isinstance(declaration, tree.StructDeclaration) or declaration.template is None:
        return None
    return None if injected_class(cx.scope, declaration) is not None else entity


def deduced_class(cx: Context, entity: DeclaredType, initializer: Any, span: Span) -> ClassType:
    """The instance of a class template for an initializer: an expression, or a list in parentheses
    or braces."""
    items: Sequence[Any] = (initializer,)
    if isinstance(initializer, tree.InitializerList):
        items = initializer.items
    elif initializer is None:
        items = ()
    template = entity.declaration
    assert isinstance(template, tree.StructDeclaration)
    cx.lowering.unevaluated += 1
    try:
        with cx.separate_block():
            values = operands_of(cx, items).emit(cx)
    finally:
        cx.lowering.unevaluated -= 1
    overloads = [*_guides(entity), *_implicit_guides(cx, entity, len(items))]
    fits = viable(cx, overloads, values, None, span)
    if not fits[0]:
        first = next(
            (one.name for one in template.template or () if one.default is None), "of the class"
        )
        raise cx.wrong(
            f"template parameter {first} has no argument, and the initializer does not tell it: "
            f"write {template.name}<…>",
            span,
        )
    chosen = resolve_overload(cx, template.name, overloads, values, None, span, asked=fits)
    made = result_type(cx, chosen)
    assert isinstance(made, ClassType)
    return made


def _guides(entity: DeclaredType) -> list[Overload]:
    """The deduction guides that the file declares."""
    found = entity.scope.names.get(f"{tree.GUIDE}{getattr(entity.declaration, 'name', '')}")
    return found.overloads if isinstance(found, Functions) else []


def _implicit_guides(cx: Context, entity: DeclaredType, given: int) -> list[Overload]:
    """What constructors, copies and, of an aggregate, its first fields deduce."""
    template = entity.declaration
    assert isinstance(template, tree.StructDeclaration)
    parameters = template.template or ()
    own = tree.NamedType(
        tree.Name(template.name, arguments=tuple(map(_argument, parameters)), span=template.span)
    )
    constructors = [
        one
        for one in template.members
        if isinstance(one, tree.FunctionDeclaration)
        and one.result is None
        and one.name.text == template.name
    ]
    heads: list[tuple[Any, tree.FunctionDeclaration]] = []
    for at, one in enumerate(constructors):
        if len(one.parameters) == 1 and names_class(one.parameters[0].type, template.name):
            continue  # a copy, which is below
        of_own = (*parameters, *(one.template or ()))
        heads.append((at, _guide(template, own, one.parameters, of_own, one.constraint)))
    copy = tree.Parameter("", tree.ReferenceType(tree.ConstType(own)))
    heads.append(("copy", _guide(template, own, (copy,), parameters, None)))
    if not constructors and not template.bases:
        fields = [
            tree.Parameter("", one.type)
            for one in template.members
            if isinstance(one, tree.VariableDeclaration) and "static" not in one.specifiers
        ]
        heads.append((("fields", given), _guide(template, own, fields[:given], parameters, None)))
    found = []
    for key, head in heads:  # the same objects in each run
        made = tree_made(cx, ("guide", key), template, partial(_same, head))
        found.append(Overload(made, entity.scope))
    return found


def _same(head: tree.FunctionDeclaration) -> tree.FunctionDeclaration:
    return head


def _argument(parameter: tree.TemplateParameter) -> Any:
    name = tree.Name(parameter.name, span=parameter.span)
    argument = tree.NamedType(name, name.span) if parameter.kind == "type" else name
    return tree.PackExpansion(argument, name.span) if parameter.pack else argument


def _guide(
    template: tree.StructDeclaration,
    own: tree.TypeTree,
    parameters: Sequence[tree.Parameter],
    of_template: tuple[tree.TemplateParameter, ...],
    constraint: tree.Expression | None,
) -> tree.FunctionDeclaration:
    return tree.FunctionDeclaration(
        tree.Name(template.name, span=template.span),
        own,
        tuple(parameters),
        None,
        template=of_template,
        span=template.span,
        constraint=constraint,
    )
