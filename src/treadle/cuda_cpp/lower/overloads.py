"""Overload resolution: template argument deduction, ranking, and the best viable candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.lower.alias_patterns import pattern_of
from treadle.cuda_cpp.lower.ambiguity import equally_good
from treadle.cuda_cpp.lower.candidates import best_candidate, is_method, takes_const
from treadle.cuda_cpp.lower.constraints import (
    declare_example,
    satisfied,
    why_unsatisfied,
)
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import (
    CONVERSION,
    ELLIPSIS,
    EXACT,
    IMPOSSIBLE,
    USER,
    is_const_object,
    is_lvalue,
    loses_const,
    rank_of,
)
from treadle.cuda_cpp.lower.deduction import deduce, deduce_exactly
from treadle.cuda_cpp.lower.dispatch import type_of, unevaluated
from treadle.cuda_cpp.lower.late_specializations import refuse_late_function
from treadle.cuda_cpp.lower.misfits import MOST_LISTED, misfit, none_fits
from treadle.cuda_cpp.lower.names import (
    is_auto,
    is_const,
    parameter_type,
    resolve,
    resolved_parameter,
    unsatisfied,
)
from treadle.cuda_cpp.lower.packs import (
    counts_by_arguments,
    counts_of_patterns,
    expanded,
    packs_of,
)
from treadle.cuda_cpp.lower.pointers import example_of
from treadle.cuda_cpp.lower.screening import given_of, signature_of
from treadle.cuda_cpp.lower.special_members import (
    callable_constructors,
    is_initializer_list,
    item_type,
)
from treadle.cuda_cpp.lower.template_arguments import (
    Argument,
    argument_key,
    bind,
    bind_arguments,
    evaluate_argument,
    too_many_arguments,
)
from treadle.cuda_cpp.lower.templates import parts_of
from treadle.cuda_cpp.lower.values import (
    Braced,
    Candidate,
    FunctionSet,
    Rvalue,
    Text,
    Value,
    describe,
)
from treadle.cuda_cpp.semantics.ill_formed import IllFormed
from treadle.cuda_cpp.semantics.scopes import REFERENCE, DeclaredType, Overload, Scope
from treadle.cuda_cpp.semantics.types import (
    CHAR,
    VOID,
    ArrayOf,
    ClassType,
    ConstOf,
    CppType,
    FunctionOf,
    Pointer,
    Reference,
    VectorType,
    decay,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.spelling import spell_type
from treadle.cuda_cpp.syntax.walk import walk_tree


def resolve_overload(
    cx: Context,
    name: str,
    overloads: Sequence[Overload],
    values: Sequence[Value],
    explicit: Sequence[Any] | None,
    span: Span,
    receiver: Value | None = None,
    asked: Viable | None = None,
) -> Candidate:
    """The best viable function. CompileError lists the candidates if there is none. `asked` is what
    `viable` found, if it was asked before."""
    found, reasons = asked or viable(cx, overloads, values, explicit, span)
    if not found:
        against = reasons_against(cx, overloads, values, explicit, span)
        message = none_fits(f"function {name}", overloads, values, against)
        own = {(one.declaration.span.file, one.declaration.span.line) for one in overloads}
        own.discard((span.file, span.line))  # errors of declarations are reported there
        certain = not any(cx.lowering.is_ours(one.declaration) for one in overloads) and all(
            isinstance(one, IllFormed) and (one.file, one.line) not in own for one in reasons
        )
        raise (cx.wrong if certain else cx.error)(message, span)
    if receiver is not None and is_const_object(receiver):
        for_const = [one for one in found if takes_const(one)]
        if not for_const and all(map(is_method, found)):
            raise cx.wrong(
                f"{name} is not a const function, and this object is const: declare it const, as "
                f"in {name}(…) const",
                span,
            )
        found = for_const or found
    if receiver is not None:
        found = _for_category(cx, name, found, is_lvalue(receiver), span)
    best = best_candidate(cx, found, values)
    if (other := equally_good(best, found, values)) is not None:
        listed = sorted((best, other), key=lambda each: each.declaration.span.line)
        raise cx.wrong(
            f"the call {name}({', '.join(map(_spelled, values))}) is ambiguous: "
            f"{' and '.join(f'{_signature(each)} of line {_line(each)}' for each in listed)} "
            "are equally good: cast an argument to the intended type",
            span,
        )
    special = _specializations(cx, best, overloads)
    if not special:
        return best
    refuse_late_function(cx, special[0].declaration, name, span)
    return _defined(special)


def reasons_against(
    cx: Context,
    overloads: Sequence[Overload],
    values: Sequence[Value],
    explicit: Sequence[Any] | None,
    span: Span,
) -> list[str]:
    """Why each of the first overloads does not take these arguments, for messages."""
    return [_reason_against(cx, one, values, explicit, span) for one in overloads[:MOST_LISTED]]


def _reason_against(
    cx: Context,
    overload: Overload,
    values: Sequence[Value],
    explicit: Sequence[Any] | None,
    span: Span,
) -> str:
    try:
        candidate = _ranked(cx, overload, values, explicit, span, explain=True)
    except CompileError as error:
        return error.message
    if candidate is None:  # the number of arguments is another one
        return ""
    if _loses_const(candidate, values):
        return "an argument is const, and the function may change it"
    return misfit(candidate, values)


def _for_category(
    cx: Context, name: str, found: list[Candidate], lvalue: bool, span: Span
) -> list[Candidate]:
    """The candidates whose ref-qualifiers (`&`, `&&`) take an object of this value category. For a
    temporary, those with `&&` go before `const &`."""
    fits = [one for one in found if _takes_category(one.declaration, lvalue)]
    if not fits:
        written = found[0].declaration.reference
        rule = "temporaries and moved objects" if lvalue else "objects with a name"
        raise cx.wrong(f"{name} is declared {written}: it can be called on {rule} only", span)
    moved = [one for one in fits if one.declaration.reference == "&&"]
    alike = [one for one in fits if one.declaration.reference != "&"]
    return moved if moved and len(alike) < len(fits) else fits


def _takes_category(declaration: tree.FunctionDeclaration, lvalue: bool) -> bool:
    match declaration.reference:
        case "&":
            return lvalue or declaration.const
        case "&&":
            return not lvalue
    return True


Viable = tuple[list[Candidate], list[CompileError]]


def viable(
    cx: Context,
    overloads: Sequence[Overload],
    values: Sequence[Value],
    explicit: Sequence[Any] | None,
    span: Span,
) -> Viable:
    """The viable functions for these arguments, and the reasons why others are not viable."""
    found: list[Candidate] = []
    reasons: list[CompileError] = []
    several = len(overloads) > 1
    given = [given_of(value) for value in values] if several else ()
    for overload in overloads:
        declaration = overload.declaration
        if several and declaration.specialization:
            continue
        if not _takes_count(declaration, len(values)):
            continue
        try:
            # With explicit arguments, those of a template may be converted.
            if several and not explicit and signature_of(cx, overload).refuses(given):
                continue
            chosen = _candidate(cx, overload, values, explicit, span)
        except CompileError as error:
            reasons.append(error)
            continue
        if chosen is not None and not (several and _loses_const(chosen, values)):
            found.append(chosen)
    return found, reasons


def _takes_count(declaration: tree.FunctionDeclaration, given: int) -> bool:
    """Whether a function takes so many arguments; one with packs may."""
    parameters = declaration.parameters
    if given == len(parameters) or packs_of(declaration):
        return True
    if given > len(parameters):
        return declaration.variadic
    return all(one.default is not None for one in parameters[given:])


def _loses_const(chosen: Candidate, values: Sequence[Value]) -> bool:
    """Whether an argument would drop the const of what it points to. If there is only one
    candidate, the call reports that."""
    names = {one.name for one in chosen.declaration.template or ()}
    columns = zip(chosen.declaration.parameters, chosen.types, values, strict=False)
    for parameter, type, value in columns:
        written = parameter.type
        if loses_const(written, value):
            return True
        if not isinstance(written, tree.ReferenceType) or _refers_to_const(written):
            continue
        if written.rvalue and getattr(type, "to", None) != getattr(value, "type", None):
            continue  # it refers to a temporary
        deduced = isinstance(written.to, tree.NamedType) and written.to.name.text in names
        if not deduced and is_const_object(value):
            return True
    return False


def _refers_to_const(written: tree.ReferenceType) -> bool:
    """Whether a reference is to what is const, or to an array of that."""
    to = written.to
    while isinstance(to, tree.ArrayType):
        to = to.of
    return is_const(to)


def _candidate(
    cx: Context,
    overload: Overload,
    values: Sequence[Value],
    explicit: Sequence[Any] | None,
    span: Span,
) -> Candidate | None:
    found = _ranked(cx, overload, values, explicit, span)
    return None if found is None or IMPOSSIBLE in found.ranks else found


def _ranked(
    cx: Context,
    overload: Overload,
    values: Sequence[Value],
    explicit: Sequence[Any] | None,
    span: Span,
    explain: bool = False,
) -> Candidate | None:
    """A function with the ranks of its arguments; None if it takes another number of them. The
    error of a constraint says which part of it fails, if it is to `explain` that."""
    declaration = overload.declaration
    if packs := packs_of(declaration):
        counts = _pack_counts(cx, declaration, packs, values, explicit or ())
        declaration = expanded(cx, declaration, counts)
        overload = replace(overload, declaration=declaration)
    if not _takes_count(declaration, len(values)):
        return None
    scope, types = overload.scope, None
    if declaration.template:
        scope = _deduced(cx, overload, values, explicit or (), span)
    else:
        types = signature_of(cx, overload).types
    if types is None or declaration.constraint is not None:
        with cx.in_scope(scope):
            if types is None:
                types = tuple(resolved_parameter(cx, one.type) for one in declaration.parameters)
            if declaration.template and _may_fail(declaration.result):
                result_type(cx, Candidate(overload, scope, types))
            inner = _with_examples(cx, declaration, scope, types)
            if not satisfied(cx, inner, declaration.constraint):
                why = why_unsatisfied(cx, inner, declaration.constraint) if explain else ""
                raise cx.wrong(unsatisfied(declaration.name.text) + why, span)
    ranks: list[int] = []
    for value, type in zip(values, types, strict=False):
        ranks.append(_rank(cx, value, type))
        if ranks[-1] == IMPOSSIBLE and not explain:
            break
    # What `...` takes is the worst of conversions: any other function is better.
    ranks += [ELLIPSIS] * (len(values) - len(ranks))
    return Candidate(overload, scope, types, tuple(ranks))


def _with_examples(
    cx: Context, declaration: tree.FunctionDeclaration, scope: Scope, types: Sequence[CppType]
) -> Scope:
    """The scope of a function's constraint, in which its parameters may be named."""
    if declaration.constraint is None:
        return scope
    inner = Scope(scope)
    for parameter, type in zip(declaration.parameters, types, strict=True):
        declare_example(cx, inner, parameter, type)
    return inner


def _type_of(cx: Context, value: Value) -> CppType:
    if isinstance(value, FunctionSet):
        try:
            return cx.rules.function_pointer(cx, value, None, cx.span).type
        except CompileError:  # it is overloaded
            return VOID
    type: CppType = getattr(value, "type", VOID)
    return type


def _pack_counts(
    cx: Context,
    declaration: tree.FunctionDeclaration,
    packs: Sequence[str],
    values: Sequence[Value],
    explicit: Sequence[Any],
) -> dict[str, int]:
    """The lengths of a function template's packs in a call."""
    found = dict(counts_by_arguments(declaration, len(explicit)))
    types = [decay(_type_of(cx, value)) for value in values]
    meant = partial(pattern_of, cx)
    found.update(counts_of_patterns(packs, declaration.parameters, types, parts_of, meant))
    return found


def _may_fail(written: tree.TypeTree | None) -> bool:
    """Whether a result type may have no meaning for some template arguments."""
    return any(
        isinstance(node, tree.DecltypeType)
        or (isinstance(node, tree.Name) and (node.scope or node.arguments is not None))
        for node in walk_tree(written)
    )


def result_type(cx: Context, chosen: Candidate) -> CppType | None:
    """The return type of a function; None if it is deduced (`auto`)."""
    written = chosen.declaration.result
    if written is None:
        return VOID
    if is_auto(written):
        return None
    scope = chosen.scope
    if any(isinstance(node, tree.DecltypeType) for node in walk_tree(written)):
        scope = Scope(scope, kind="function")  # with the parameters, which it may use
        for parameter, type in zip(chosen.declaration.parameters, chosen.types, strict=False):
            scope.names[parameter.name] = example_of(type, parameter.span)
            if isinstance(type, Reference):
                scope.names[REFERENCE + parameter.name] = type
    with cx.in_scope(scope):
        return resolve(cx, written)


def _may_be_made_of(type: ClassType, count: int) -> bool:
    """Whether a class may be made of a list of this length: by its constructors, if it has any."""
    constructors = callable_constructors(type)
    if count < 2 or not constructors or is_initializer_list(type):
        return True
    for one in constructors:
        parameters = one.declaration.parameters
        least = sum(each.default is None and not each.pack for each in parameters)
        whole = one.declaration.variadic or any(each.pack for each in parameters)
        if takes_list(one.declaration) or (least <= count and (whole or count <= len(parameters))):
            return True
    return False


def _rank(cx: Context, value: Value, type: CppType) -> int:
    if not isinstance(value, Braced):
        return rank_of(cx, value, type)
    if isinstance(type, Reference):
        type = type.to
    count = len(value.node.items)
    if isinstance(type, ClassType) and is_initializer_list(type):
        items = [_listed_value(cx, one) for one in value.node.items]
        return max((_rank(cx, one, item_type(type)) for one in items), default=EXACT)
    if isinstance(type, VectorType):
        return USER if count <= type.count else IMPOSSIBLE
    if isinstance(type, ArrayOf):
        if type.length is not None and count > type.length:
            return IMPOSSIBLE
        items = [_listed_value(cx, one) for one in value.node.items]
        return max((_rank(cx, one, type.element) for one in items), default=EXACT)
    if isinstance(type, ClassType):
        return USER if _may_be_made_of(type, count) else IMPOSSIBLE
    return CONVERSION if count <= 1 else IMPOSSIBLE


def _listed_value(cx: Context, item: tree.Expression | tree.InitializerList) -> Value:
    """An item of a list, for the rank of its conversion."""
    if isinstance(item, tree.InitializerList):
        return Braced(item)
    value: Value = unevaluated(cx, item)
    return value


def _deduced(
    cx: Context, overload: Overload, values: Sequence[Value], explicit: Sequence[Any], span: Span
) -> Scope:
    template = overload.declaration.template
    assert template is not None
    if len(explicit) > len(template):
        raise cx.wrong(too_many_arguments(template, len(explicit)), span)
    found: dict[str, Argument] = {}
    evaluated: list[Argument] = []
    declared = Scope(overload.scope, kind="template")
    for parameter, argument in zip(template, explicit, strict=False):
        value = evaluate_argument(cx, argument, parameter, declared)
        bind(declared, parameter, value)  # for the types of later parameters
        evaluated.append(value)
        found[parameter.name] = value
    given = set(found)
    open_parameters = [one for one in template if one.name not in given]
    listed = {
        id(argument): _listed_types(cx, argument.node)
        for one, argument in zip(overload.declaration.parameters, values, strict=False)
        if isinstance(argument, Braced) and _is_deduced_from_list(one.type)
    }
    with cx.in_scope(overload.scope):
        for one, argument in zip(overload.declaration.parameters, values, strict=False):
            if isinstance(argument, Braced):
                types = listed.get(id(argument), [])
                _deduce_listed(cx, one.type, types, open_parameters, found)
                continue  # nothing else is deduced from it
            type: CppType = getattr(argument, "type", VOID)
            if isinstance(argument, Text) and _is_array_reference(one.type):
                type = ArrayOf(CHAR, len(argument.data) + 1)
            if isinstance(argument, FunctionSet):
                wanted = _function_type(cx, one.type, template)
                type = cx.rules.function_pointer(cx, argument, wanted, span).type
            if not _is_reference(one.type):
                type = decay(type)
            elif _is_plain(one.type, open_parameters) and (
                is_lvalue(argument) or is_const_object(argument)
            ):
                assert isinstance(one.type, tree.ReferenceType)
                referred = _referred(one.type, argument, type)
                if not deduce_exactly(found, one.type.to, referred):
                    raise cx.wrong(f"template arguments cannot be deduced from {type}", span)
                continue
            earlier = dict(found)
            if not deduce(cx, one.type, type, open_parameters, found):
                raise cx.wrong(_not_deduced(one.type, type, earlier), span)
    return bind_arguments(cx, template, evaluated, overload.scope, span, found)


def _not_deduced(written: tree.TypeTree, type: CppType, found: dict[str, Argument]) -> str:
    """Why the arguments of a template are not deduced from one of a call."""
    name = written.name.text if isinstance(written, tree.NamedType) else ""
    known = found.get(name)
    if known is not None and not isinstance(known, (Rvalue, FunctionSet, DeclaredType)):
        return f"{name} would be {known} and {type}: give it in <>, or convert an argument"
    return f"{_names_in(written)} cannot be deduced: {spell_type(written)} does not match {type}"


def _names_in(written: tree.TypeTree) -> str:
    """The template parameters in a parameter's type, which nothing else names."""
    found = [one.text for one in walk_tree(written) if isinstance(one, tree.Name)]
    return " and ".join(dict.fromkeys(found)) or "a template argument"


def _listed_item(written: tree.TypeTree) -> tree.TypeTree | None:
    """T of a parameter's type `std::initializer_list<T>`; None for others."""
    if isinstance(written, (tree.ConstType, tree.ReferenceType)):
        written = written.of if isinstance(written, tree.ConstType) else written.to
    name = written.name if isinstance(written, tree.NamedType) else None
    if name is None or name.text != "initializer_list" or not name.arguments:
        return None
    item = name.arguments[0]
    return item if isinstance(item, tree.TYPES) else None


def takes_list(declaration: tree.FunctionDeclaration) -> bool:
    """Whether a function has a parameter of type `std::initializer_list<T>`."""
    return any(_listed_item(one.type) is not None for one in declaration.parameters)


def _listed_array(written: tree.TypeTree) -> tree.ArrayType | None:
    """The array of a parameter that is a reference to one; None for others."""
    if not isinstance(written, tree.ReferenceType):
        return None
    to = written.to.of if isinstance(written.to, tree.ConstType) else written.to
    return to if isinstance(to, tree.ArrayType) else None


def _is_deduced_from_list(written: tree.TypeTree) -> bool:
    """Whether a braced list tells the template arguments of a parameter's type."""
    return _listed_item(written) is not None or _listed_array(written) is not None


def _listed_types(cx: Context, node: tree.InitializerList) -> list[CppType]:
    """The types of the items of a braced list; of an inner list, that of an array."""
    found: list[CppType] = []
    for item in node.items:
        if isinstance(item, tree.InitializerList):
            inner = _listed_types(cx, item)
            found.append(ArrayOf(inner[0], len(inner)) if inner else VOID)
        else:
            found.append(decay(type_of(cx, item)))
    return found


def _deduce_listed(
    cx: Context,
    written: tree.TypeTree,
    types: Sequence[CppType],
    parameters: Sequence[tree.TemplateParameter],
    found: dict[str, Argument],
) -> None:
    """`std::initializer_list<T>` and `T (&)[N]` from the types of the items of a braced list."""
    item = _listed_item(written)
    array = _listed_array(written)
    if item is not None:
        for type in types:
            deduce(cx, item, type, parameters, found)
    elif array is not None:
        for type in types:
            deduce(cx, array, ArrayOf(type, len(types)), parameters, found)


def _function_type(
    cx: Context, written: tree.TypeTree, template: Sequence[tree.TemplateParameter]
) -> CppType | None:
    """The function type that a parameter has, if it does not depend on the template."""
    names = {one.name for one in template}
    if any(isinstance(node, tree.Name) and node.text in names for node in walk_tree(written)):
        return None
    type = parameter_type(resolve(cx, written))
    return type.to if isinstance(type, Pointer) and isinstance(type.to, FunctionOf) else None


def _referred(written: tree.ReferenceType, argument: Value, type: CppType) -> Argument:
    """What T is for a `T &` or `T &&` that refers to an object: const if that is, and a reference
    for `T &&` to what is not a temporary object."""
    const = is_const_object(argument)
    if written.rvalue and is_lvalue(argument):
        return Reference(type, const)
    return ConstOf(type) if const else type


def _is_plain(written: tree.TypeTree, parameters: Sequence[tree.TemplateParameter]) -> bool:
    """Whether a parameter is `T &` or `T &&` with T a parameter of the template."""
    return (
        isinstance(written, tree.ReferenceType)
        and isinstance(written.to, tree.NamedType)
        and not written.to.name.scope
        and written.to.name.arguments is None
        and any(one.name == written.to.name.text for one in parameters)
    )


def _is_array_reference(written: tree.TypeTree) -> bool:
    """Whether a parameter is `const T (&)[N]`, which a string literal may be bound to."""
    if not isinstance(written, tree.ReferenceType):
        return False
    to = written.to.of if isinstance(written.to, tree.ConstType) else written.to
    return isinstance(to, tree.ArrayType)


def _is_reference(written: tree.TypeTree) -> bool:
    return isinstance(written, tree.ReferenceType)


def _signature(chosen: Candidate) -> str:
    return f"{chosen.declaration.name.text}({', '.join(map(str, chosen.types))})"


def _line(chosen: Candidate) -> int:
    return chosen.declaration.span.line


def specialized(cx: Context, chosen: Candidate, overloads: Sequence[Overload]) -> Candidate:
    """The explicit specialization (`template <> …`) for these arguments, if there is one."""
    found = _specializations(cx, chosen, overloads)
    return _defined(found) if found else chosen


def _defined(special: Sequence[Candidate]) -> Candidate:
    """The definition among the declarations of a specialization."""
    return next((one for one in special if one.declaration.body is not None), special[0])


def _specializations(
    cx: Context, chosen: Candidate, overloads: Sequence[Overload]
) -> list[Candidate]:
    """The declarations of the explicit specialization for these arguments, in their order."""
    found: list[Candidate] = []
    for overload in overloads if chosen.declaration.template else ():
        declaration = overload.declaration
        if not declaration.specialization:
            continue
        with cx.in_scope(overload.scope):
            types = tuple(parameter_type(resolve(cx, one.type)) for one in declaration.parameters)
            given = _written_arguments(cx, declaration, chosen)
        if types == chosen.types and given and _has_same_result(cx, overload, chosen):
            found.append(Candidate(overload, overload.scope, types, general=chosen))
    return found


def _has_same_result(cx: Context, overload: Overload, chosen: Candidate) -> bool:
    """Whether a specialization returns what the candidate does: its template arguments may be found
    in the type of its result alone, `template <> uchar3 make(int)` for `template <class T> T
    make(int)`."""
    written = overload.declaration.result
    if written is None or is_auto(written):
        return True
    wanted = result_type(cx, chosen)
    with cx.in_scope(overload.scope):
        return wanted is None or bool(resolve(cx, written) == wanted)


def _written_arguments(
    cx: Context, declaration: tree.FunctionDeclaration, chosen: Candidate
) -> bool:
    """Whether the template arguments of a specialization are those of the candidate."""
    written = declaration.name.arguments
    template = chosen.declaration.template
    if written is None or template is None:
        return True
    for argument, parameter, bound in zip(written, template, chosen.arguments, strict=False):
        evaluated = evaluate_argument(cx, argument, parameter, chosen.scope)
        if argument_key(evaluated) != argument_key(bound):
            return False
    return True


def _spelled(value: Value) -> str:
    type = getattr(value, "type", None)
    return describe(value) if type is None else str(type)
