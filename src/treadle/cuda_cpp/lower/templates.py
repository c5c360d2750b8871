"""Instances of templates, and the specializations that are chosen for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.lower.classes import class_type
from treadle.cuda_cpp.lower.context import Context, tree_made
from treadle.cuda_cpp.lower.deduction import deduce, deduce_template, mentions
from treadle.cuda_cpp.lower.names import (
    lookup,
    unsatisfied,
)
from treadle.cuda_cpp.lower.packs import (
    counts_by_arguments,
    counts_of_patterns,
    expanded,
    packs_of,
)
from treadle.cuda_cpp.lower.special_members import is_of_one_instance
from treadle.cuda_cpp.lower.template_arguments import (
    Argument,
    argument_key,
    bind_arguments,
    evaluate_argument,
    is_default,
    is_same,
    spelled,
)
from treadle.cuda_cpp.lower.values import FunctionSet, Rvalue
from treadle.cuda_cpp.semantics.scopes import (
    DeclaredType,
    GlobalVariable,
    Scope,
)
from treadle.cuda_cpp.semantics.types import (
    ClassType,
    ConstOf,
    FunctionOf,
    Incomplete,
    Pointer,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree


def class_instance(
    cx: Context, entity: DeclaredType, arguments: Sequence[Any], span: Span
) -> ClassType | Incomplete:
    """An instance of a class template."""
    template = entity.declaration
    assert isinstance(template, tree.StructDeclaration)
    declaration = with_arguments(cx, template, arguments)
    assert declaration.template is not None
    scope = bind_arguments(cx, declaration.template, arguments, entity.scope, span)
    if not cx.rules.satisfied(cx, scope, declaration.constraint):
        why = cx.rules.why_unsatisfied(cx, scope, declaration.constraint)
        raise cx.wrong(unsatisfied(template.name) + why, span)
    bound = scope.names["<arguments>"]
    # By name as well: pointers to const and to non-const compare equal.
    keys = tuple((argument_key(argument), spelled(argument)) for argument in bound)
    kept = (id(template), id(entity.scope), keys)
    known: ClassType | None = cx.lowering.instances.get(kept)
    if known is not None:
        return known
    made = _new_instance(cx, entity, declaration, scope, bound, keys)
    if isinstance(made, ClassType) and made.scope is not None:  # it is complete
        cx.lowering.instances[kept] = made
    return made


def _new_instance(
    cx: Context,
    entity: DeclaredType,
    declaration: tree.StructDeclaration,
    scope: Scope,
    bound: tuple[Argument, ...],
    keys: tuple[Any, ...],
) -> ClassType | Incomplete:
    """The instance of the template, or of the best of its specializations that match."""
    template = entity.declaration
    assert isinstance(template, tree.StructDeclaration)
    name = f"{declaration.name}<{', '.join(spelled(argument) for argument in bound)}>"
    assert declaration.template is not None
    primary = _Primary(declaration.template, scope)
    found = [(one, _matches(cx, one, bound, primary)) for one in entity.specializations]
    matching = [(one, match) for one, match in found if match is not None]
    hidden = {"<instance>": bound, "<primary>": primary}
    scope.names.update(hidden)
    if matching:
        special, inner = _best(cx, matching)
        inner.names.update(hidden)
        counts = _counts_of(special, bound)
        if counts:
            special = expanded(cx, special, counts)
        return class_type(cx, special, inner, name=name, arguments=keys, template=template)
    return class_type(cx, declaration, scope, name=name, arguments=keys, template=template)


_Special = TypeVar("_Special", tree.StructDeclaration, tree.VariableDeclaration)


def _best(cx: Context, matching: list[tuple[_Special, Scope]]) -> tuple[_Special, Scope]:
    """The most specialized of the specializations that match, each with the scope of its
    arguments: of equally specialized ones that with the strictest constraint."""
    best = max(matching, key=lambda pair: _rank(pair[0]))
    alike = [one for one in matching if one is not best and _rank(one[0]) == _rank(best[0])]
    for one in alike:
        if cx.rules.stricter(cx, _constraint(one), _constraint(best)) > 0:
            best = one
    return best


def _constraint(pair: tuple[_Special, Scope]) -> tuple[Scope, tree.Expression | None]:
    return pair[1], pair[0].constraint


class _Primary(NamedTuple):
    """What a template declares, with the arguments of one of its instances."""

    parameters: Sequence[tree.TemplateParameter]
    scope: Scope  # binds the parameters


def _rank(special: tree.StructDeclaration | tree.VariableDeclaration) -> tuple[bool, int, bool]:
    """The order of specializations: a full one, the most specialized one, those without packs."""
    return not special.template, _specificity(special), not packs_of(special)


_Template = TypeVar(
    "_Template", tree.StructDeclaration, tree.TypedefDeclaration, tree.VariableDeclaration
)


def with_arguments(cx: Context, declaration: _Template, arguments: Sequence[Any]) -> _Template:
    """A template without parameter packs, for so many arguments."""
    if not packs_of(declaration):
        return declaration
    return expanded(cx, declaration, counts_by_arguments(declaration, len(arguments)))


def _counts_of(special: Any, bound: Sequence[Argument]) -> dict[str, int]:
    """The lengths of a specialization's packs for these template arguments."""
    packs = packs_of(special)
    if not packs:
        return {}
    found = dict.fromkeys(packs, 0)
    found.update(counts_of_patterns(packs, special.specialized, bound, parts_of))
    return found


def parts_of(type: Any) -> tuple[Any, ...]:
    """The arguments of the template that a type is an instance of, or the types of a function."""
    if isinstance(type, ConstOf):
        type = type.of
    if isinstance(type, Pointer):
        type = type.to
    if isinstance(type, FunctionOf):
        return (type.result, *type.parameters)
    if isinstance(type, ClassType) and type.scope is not None:
        found: tuple[Any, ...] = type.scope.parent.names.get("<instance>", ())
        return found
    return ()


def variable_instance(
    cx: Context, entity: GlobalVariable, arguments: Sequence[Any], span: Span
) -> tuple[tree.VariableDeclaration, Scope]:
    """The declaration of a variable template for these arguments, and the scope that binds them."""
    declaration = with_arguments(cx, entity.declaration, arguments)
    assert declaration.template is not None
    scope = bind_arguments(cx, declaration.template, arguments, entity.scope, span)
    bound = scope.names["<arguments>"]
    primary = _Primary(declaration.template, scope)
    found = [(one, _matches(cx, one, bound, primary)) for one in entity.specializations]
    matching = [(one, match) for one, match in found if match is not None]
    return _best(cx, matching) if matching else (declaration, scope)


def _specificity(special: tree.StructDeclaration | tree.VariableDeclaration) -> int:
    """How specialized a partial specialization is: fixed arguments weigh most, then patterns."""
    names = {parameter.name: parameter for parameter in special.template or ()}
    mentioned = 0

    def weight(written: Any) -> int:
        nonlocal mentioned
        if _has_dependent(written, names):
            return 1
        match written:
            case tree.ConstType(of):
                return 1 + weight(of)
            case tree.PointerType(to) | tree.ReferenceType(to):
                return 2 + weight(to)
            case tree.MemberPointerType(owner, to):
                return 2 + weight(owner) + weight(to)
            case tree.ArrayType(of, size):
                return 2 + weight(of) + (0 if size is None else weight(size))
            case tree.NamedType(name) | (tree.Name() as name):
                if name.text in names and name.arguments is None:
                    mentioned += 1
                    return 0
                if name.arguments is not None:
                    return 2 + sum(map(weight, name.arguments))
        return 10

    whole = sum(map(weight, special.specialized or ()))
    return whole + mentioned - len(names)  # a parameter that occurs twice requires equal arguments


def _matches(
    cx: Context,
    special: tree.StructDeclaration | tree.VariableDeclaration,
    bound: Sequence[Argument],
    primary: _Primary,
) -> Scope | None:
    """The scope of a specialization for these arguments; None if it does not match."""
    scope = primary.scope.parent
    assert scope is not None
    if counts := _counts_of(special, bound):
        special = expanded(cx, special, counts)
    assert special.specialized is not None
    given = len(special.specialized)
    if given > len(bound):
        return None
    # Arguments that it leaves out are the defaults for those that it has.
    left_out = zip(primary.parameters[given:], bound[given:], strict=True)
    if not all(is_default(cx, one, argument, primary.scope) for one, argument in left_out):
        return None
    deduced: dict[str, Argument] = {}
    dependent: list[tuple[Any, Argument, tree.TemplateParameter]] = []  # of what others deduce
    parameters = special.template or ()
    names = {one.name: one for one in parameters}
    for written, argument, of in zip(special.specialized, bound, primary.parameters, strict=False):
        if _has_dependent(written, names):
            dependent.append((written, argument, of))
            continue
        if isinstance(written, tree.ConstType) and written.volatile:
            return None  # types are never volatile here
        if isinstance(argument, Rvalue):
            if isinstance(written, tree.NamedType):
                written = written.name
            if isinstance(written, tree.Name) and written.text in names and not written.arguments:
                deduced[written.text] = argument
                continue
            if mentions(written, names):
                dependent.append((written, argument, of))
                continue
            kind = tree.TemplateParameter("value", "", tree.AutoType())
            with cx.in_scope(scope):
                other = evaluate_argument(cx, written, kind, scope)
            if argument_key(other)[0] != argument_key(argument)[0]:
                return None
        elif isinstance(argument, DeclaredType):
            with cx.in_scope(scope):
                if not deduce_template(cx, written, argument, parameters, deduced):
                    return None
        else:
            if isinstance(written, tree.Name):
                written = tree.NamedType(written, written.span)
            if not isinstance(written, tree.TYPES) or isinstance(argument, FunctionSet):
                return None
            with cx.in_scope(scope):
                if _is_alias(cx, written, names):
                    dependent.append((written, argument, of))
                elif not deduce(cx, written, argument, parameters, deduced, exact=True):
                    return None
    found = bind_arguments(cx, parameters, (), scope, special.span, deduced)
    given_too = _is_given(cx, dependent, found, primary)
    return found if given_too and cx.rules.satisfied(cx, found, special.constraint) else None


def _has_dependent(written: Any, names: dict[str, tree.TemplateParameter]) -> bool:
    """Whether nothing is deduced from a template argument: `decltype(…)`, or `A<T>::type`."""
    return bool(names) and any(
        isinstance(one, tree.DecltypeType)
        or (isinstance(one, tree.Name) and any(mentions(outer, names) for outer in one.scope))
        for one in walk_tree(written)
    )


def _is_alias(cx: Context, written: Any, names: dict[str, tree.TemplateParameter]) -> bool:
    """Whether a type is named by an alias template, as `std::enable_if_t<…>`."""
    if not isinstance(written, tree.NamedType) or not written.name.arguments:
        return False
    if not mentions(written, names) or written.name.text in names:
        return False
    entity = lookup(cx, written.name)
    return isinstance(entity, DeclaredType) and isinstance(
        entity.declaration, tree.TypedefDeclaration
    )


def _is_given(
    cx: Context,
    dependent: Sequence[tuple[Any, Argument, tree.TemplateParameter]],
    scope: Scope,
    primary: _Primary,
) -> bool:
    """Whether what depends on deduced parameters exists, and is what the arguments are."""
    with cx.in_scope(scope):
        for written, argument, parameter in dependent:
            try:
                value = evaluate_argument(cx, written, parameter, primary.scope)
            except CompileError:  # a type that does not exist
                return False
            if not is_same(value, argument):
                return False
    return True


def method_of_instance(
    cx: Context,
    method: tree.FunctionDeclaration,
    declaration: tree.StructDeclaration,
    scope: Scope,
    home: Scope,
) -> tuple[tree.FunctionDeclaration, Scope] | None:
    """A method that is defined outside of its class, for the instance of a class template whose
    arguments `scope` has and whose members are in `home`: its declaration, without the template
    parameters of the class, and the scope that binds these. None if it is of another instance."""
    written = method.name.scope[-1].arguments
    bound = scope.names.get("<instance>")
    if written is None or bound is None:
        return method, home
    for argument, known in zip(written, bound, strict=False):  # most differ by a number
        if not isinstance(argument, tree.IntegerLiteral) or not isinstance(known, Rvalue):
            continue
        if argument.value != argument_key(known)[0]:
            return None
    origin = tree_made(
        cx,
        "origin",
        method,
        lambda: tree.StructDeclaration(
            declaration.kind, declaration.name, template=method.template, specialized=written
        ),
    )
    if counts := _counts_of(origin, bound):
        method = expanded(cx, method, counts)
        written = method.name.scope[-1].arguments
    mentioned = {node.text for node in walk_tree(written) if isinstance(node, tree.Name)}
    parameters = method.template or ()
    of_class = tuple(one for one in parameters if one.name in mentioned)
    pattern = tree_made(
        cx,
        "pattern",
        method,
        lambda: tree.StructDeclaration(
            declaration.kind, declaration.name, template=of_class, specialized=written
        ),
    )
    matching = _matches(cx, pattern, bound, scope.names["<primary>"])
    if matching is None:
        return None
    wanted = 0 if declaration.specialized is None else _specificity(declaration)
    if not is_of_one_instance(method, declaration) and _specificity(pattern) != wanted:
        return None
    inner = Scope(home, kind="template")
    inner.names.update(matching.names)
    inner.names.pop("<arguments>", None)
    rest = tuple(one for one in parameters if one.name not in mentioned) or None
    return tree_made(cx, "method", method, lambda: replace(method, template=rest)), inner
