"""Templates: binding of arguments, deduction, and instances of class templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.lower.alias_patterns import pattern_of
from treadle.cuda_cpp.lower.arithmetic import folded
from treadle.cuda_cpp.lower.classes import class_type
from treadle.cuda_cpp.lower.context import Context, tree_made
from treadle.cuda_cpp.lower.conversions import convert
from treadle.cuda_cpp.lower.dispatch import constant_rvalue, lower
from treadle.cuda_cpp.lower.names import (
    constant_integer,
    is_const_type,
    lookup,
    resolve,
    unsatisfied,
)
from treadle.cuda_cpp.lower.packs import (
    counts_by_arguments,
    counts_of_patterns,
    expanded,
    packs_of,
)
from treadle.cuda_cpp.lower.special_members import is_of_one_instance
from treadle.cuda_cpp.lower.values import FunctionSet, Rvalue
from treadle.cuda_cpp.semantics.scopes import (
    DeclaredType,
    GlobalVariable,
    KnownValue,
    Scope,
    TypeEntity,
)
from treadle.cuda_cpp.semantics.types import (
    SIZE,
    ArrayOf,
    ClassType,
    ConstOf,
    CppType,
    FunctionOf,
    Incomplete,
    Pointer,
    Reference,
    decay,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.keywords import TRANSFORMS
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

# A template argument: a type, a constant with its C++ type, a function or a template.
Argument = CppType | ConstOf | Rvalue | FunctionSet | DeclaredType


def evaluate_argument(
    cx: Context,
    argument: tree.TemplateArgument | Argument,
    parameter: tree.TemplateParameter,
    declared: Scope,
) -> Argument:
    """A template argument, as a tree or already evaluated, converted for its parameter, whose type
    is looked up in the scope of the template."""
    if parameter.kind == "type":
        if isinstance(argument, tree.Name):  # parsed as an expression: a name may be a type
            argument = tree.NamedType(argument, argument.span)
        if isinstance(argument, tree.TYPES):
            type = resolve(cx, argument)
            const = is_const_type(cx, argument) and not isinstance(type, Reference)
            return ConstOf(type) if const else type
        if not isinstance(argument, _CPP_TYPES):
            raise cx.wrong(f"template parameter {parameter.name} takes a type")
        made: Argument = argument
        return made
    if parameter.kind == "template":
        return _template(cx, argument, parameter)
    assert parameter.type is not None
    if isinstance(argument, FunctionSet):
        return argument
    if isinstance(argument, tree.NamedType):
        argument = argument.name
    if isinstance(argument, tree.Unary) and argument.op == "&":
        argument = argument.operand
    if isinstance(argument, tree.Name):
        function = lower(cx, argument)
        if isinstance(function, FunctionSet):  # an overload set, resolved at the call
            return function
    if isinstance(argument, (*tree.TYPES, *_CPP_TYPES)):
        raise cx.wrong(f"template parameter {parameter.name} takes a value, not a type")
    value = (
        argument
        if isinstance(argument, Rvalue)
        else constant_rvalue(cx, argument, f"template argument {parameter.name}")
    )
    if isinstance(parameter.type, tree.AutoType):
        return value
    with cx.in_scope(declared):
        wanted = resolve(cx, parameter.type)
    converted = convert(cx, value, wanted, cx.span)
    assert isinstance(converted, Rvalue)
    return Rvalue(folded(converted.expression), converted.type)


_CPP_TYPES = (*CppType.__args__, ConstOf)


def _template(
    cx: Context, argument: tree.TemplateArgument | Argument, parameter: tree.TemplateParameter
) -> DeclaredType:
    """A class or alias template as an argument."""
    if isinstance(argument, DeclaredType):
        return argument
    if isinstance(argument, tree.NamedType):
        argument = argument.name
    found: Any = lookup(cx, argument) if isinstance(argument, tree.Name) else None
    if isinstance(found, TypeEntity) and isinstance(found.type, ClassType):  # inside of the class
        assert isinstance(argument, tree.Name)
        found = declared_template(cx, found.type) or found
    if isinstance(found, DeclaredType) and getattr(found.declaration, "template", None):
        return found
    raise cx.wrong(f"template parameter {parameter.name} takes a template")


def declared_template(cx: Context, type: ClassType) -> DeclaredType | None:
    """The class template that a type is an instance of."""
    scope: Scope | None = type.scope
    while scope is not None:
        found = scope.own(getattr(type.template, "name", ""))
        if isinstance(found, DeclaredType) and found.declaration is type.template:
            return found
        scope = scope.parent
    return None


def bind_arguments(
    cx: Context,
    parameters: Sequence[tree.TemplateParameter],
    arguments: Sequence[Any],
    scope: Scope,
    span: Span,
    deduced: dict[str, Argument] | None = None,
) -> Scope:
    """A scope that binds template parameters to arguments: given, deduced or default ones."""
    inner = Scope(scope, kind="template")
    known: list[Argument] = []
    given = list(arguments)
    for parameter in parameters:
        if given:
            value = evaluate_argument(cx, given.pop(0), parameter, inner)
        elif deduced is not None and parameter.name in deduced:
            value = deduced[parameter.name]
            if parameter.kind != "type":
                with cx.in_scope(inner):
                    value = evaluate_argument(cx, value, parameter, inner)
        elif parameter.default is not None:
            with cx.in_scope(inner):
                value = evaluate_argument(cx, parameter.default, parameter, inner)
        else:
            how = "has no argument" if deduced is None else "cannot be deduced: give it in <>"
            raise cx.wrong(f"template parameter {parameter.name} {how}", span)
        known.append(value)
        bind(inner, parameter, value)
    if given:
        raise cx.wrong(
            f"{len(arguments)} template arguments for {len(parameters)} parameters", span
        )
    inner.names["<arguments>"] = tuple(known)
    return inner


def bind(scope: Scope, parameter: tree.TemplateParameter, value: Argument) -> None:
    """Make an argument known in a template's scope by the name of its parameter."""
    if not parameter.name:
        return
    entity: Any
    match value:
        case Rvalue() | FunctionSet():
            entity = KnownValue(value)
        case ConstOf(of):
            entity = TypeEntity(of, const=True)
        case DeclaredType():
            entity = value
        case _:
            entity = TypeEntity(value)
    scope.names[parameter.name] = entity


def argument_key(argument: Argument) -> Any:
    """The part of a template argument by which instances differ."""
    if isinstance(argument, Rvalue):
        assert isinstance(argument.expression, n.Constant)
        return (argument.expression.value, str(argument.type))
    if isinstance(argument, FunctionSet):
        return (argument.name, tuple(id(one.declaration) for one in argument.overloads))
    if isinstance(argument, DeclaredType):
        return id(argument.declaration)
    return argument


def spelled(argument: Argument) -> str:
    """A template argument in an instance's name."""
    if isinstance(argument, Rvalue):
        assert isinstance(argument.expression, n.Constant)
        value = argument.expression.value
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(argument, FunctionSet):
        overloads = argument.overloads
        return overloads[0].scope.qualified(argument.name) if overloads else argument.name
    if isinstance(argument, DeclaredType):
        name = getattr(argument.declaration, "name", "")
        return argument.scope.qualified(name)
    return str(argument)


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
        raise cx.wrong(unsatisfied(template.name), span)
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
    if not all(_is_default(cx, one, argument, primary.scope) for one, argument in left_out):
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
            if _mentions(written, names):
                dependent.append((written, argument, of))
                continue
            kind = tree.TemplateParameter("value", "", tree.AutoType())
            with cx.in_scope(scope):
                other = evaluate_argument(cx, written, kind, scope)
            if argument_key(other)[0] != argument_key(argument)[0]:
                return None
        elif isinstance(argument, DeclaredType):
            with cx.in_scope(scope):
                if not _deduce_template(cx, written, argument, parameters, deduced):
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
        or (isinstance(one, tree.Name) and any(_mentions(outer, names) for outer in one.scope))
        for one in walk_tree(written)
    )


def _is_alias(cx: Context, written: Any, names: dict[str, tree.TemplateParameter]) -> bool:
    """Whether a type is named by an alias template, as `std::enable_if_t<…>`."""
    if not isinstance(written, tree.NamedType) or not written.name.arguments:
        return False
    if not _mentions(written, names) or written.name.text in names:
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
            if not _is_same(value, argument):
                return False
    return True


def _is_same(one: Argument, other: Argument) -> bool:
    """Whether two template arguments are equal: by name as well, as pointers to const and to
    non-const compare equal."""
    same: bool = argument_key(one) == argument_key(other)
    return same and spelled(one) == spelled(other)


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


# --- deduction -----------------------------------------------------------------------------------


def deduce(
    cx: Context,
    written: tree.TypeTree,
    type: Argument,
    parameters: Sequence[tree.TemplateParameter],
    found: dict[str, Argument],
    *,
    exact: bool = False,
) -> bool:
    """Deduce the template parameters in a parameter's type from an argument's type.

    False if the deductions conflict, or (`exact`) if the types differ.
    """
    names = {parameter.name: parameter for parameter in parameters}
    if isinstance(type, ConstOf) and not isinstance(written, (tree.ConstType, tree.NamedType)):
        if exact:
            return False
        type = type.of
    if not isinstance(type, _CPP_TYPES):
        return False
    match written:
        case tree.ConstType(of):
            inner: Argument = type
            if written.const and exact:
                if not isinstance(type, ConstOf):
                    return False
                inner = type.of
            return deduce(cx, of, inner, parameters, found, exact=exact)
        case tree.ReferenceType():
            return _deduce_reference(cx, written, type, parameters, found, exact)
        case tree.PointerType(to):
            pointed = type if exact or isinstance(type, ConstOf) else decay(type)
            if not isinstance(pointed, Pointer):
                return not exact and not _mentions(to, names)
            if exact:
                return _deduce_pointed(cx, to, pointed, parameters, found)
            return deduce(cx, to, pointed.to, parameters, found)
        case tree.ArrayType():
            return _deduce_array(cx, written, type, parameters, found, exact)
        case tree.NamedType(name):
            if not name.scope and name.text in names and name.arguments is None:
                return _agree(found, name.text, type)
            if name.arguments is not None:
                name = pattern_of(cx, name)
                written = tree.NamedType(name, written.span)
            if name.arguments is not None and not exact and (
                not _mentions(written, names) or _deduces_nothing(cx, name)
            ):  # fmt: skip
                return True  # it is converted
            if name.arguments is not None and isinstance(type, ClassType):
                return _deduce_class(cx, name, type, parameters, found, exact=exact)
            if name.arguments is not None and _mentions(written, names):
                return False
        case tree.FunctionType():
            return _deduce_function(cx, written, type, parameters, found, exact)
    return not exact or bool(resolve(cx, written) == type)


def _deduces_nothing(cx: Context, name: tree.Name) -> bool:
    """Whether a type is what a trait makes of its argument, from which nothing is deduced."""
    if name.text in TRANSFORMS:
        return True
    entity = lookup(cx, name)
    if not isinstance(entity, DeclaredType):
        return False
    declaration = entity.declaration
    if not isinstance(declaration, tree.TypedefDeclaration) or declaration.template is None:
        return False
    of = declaration.type
    return isinstance(of, tree.NamedType) and (bool(of.name.scope) or of.name.text in TRANSFORMS)


def _deduce_array(
    cx: Context,
    written: tree.ArrayType,
    type: CppType | ConstOf,
    parameters: Sequence[tree.TemplateParameter],
    found: dict[str, Argument],
    exact: bool,
) -> bool:
    of, size = written.of, written.size
    if not isinstance(type, ArrayOf):
        if exact or not isinstance(type, Pointer):
            return False
        return deduce(cx, of, type.to, parameters, found)
    is_own = isinstance(size, tree.Name) and any(one.name == size.text for one in parameters)
    if is_own and type.length is not None:
        assert isinstance(size, tree.Name)
        length = Rvalue(n.Constant(type.length, ir.U64), SIZE)
        if not _agree(found, size.text, length):
            return False
    elif exact:
        length_ = None if size is None else constant_integer(cx, size, "the length of an array")
        if length_ != type.length:
            return False
    return deduce(cx, of, type.element, parameters, found, exact=exact)


def _deduce_reference(
    cx: Context,
    written: tree.ReferenceType,
    type: CppType | ConstOf,
    parameters: Sequence[tree.TemplateParameter],
    found: dict[str, Argument],
    exact: bool,
) -> bool:
    if not exact:
        inner = type.to if isinstance(type, Reference) else type
        return deduce(cx, written.to, inner, parameters, found)
    if not isinstance(type, Reference) or type.rvalue != written.rvalue:
        return False
    return _deduce_pointed(cx, written.to, type, parameters, found)


def _deduce_function(
    cx: Context,
    written: tree.FunctionType,
    type: CppType | ConstOf,
    parameters: Sequence[tree.TemplateParameter],
    found: dict[str, Argument],
    exact: bool,
) -> bool:
    """`R(A, B)` against the type of a function, or of a pointer to one."""
    if isinstance(type, Pointer):
        type = type.to
    if not isinstance(type, FunctionOf) or len(written.parameters) != len(type.parameters):
        return False
    patterns = (written.result, *(one.type for one in written.parameters))
    pairs = zip(patterns, (type.result, *type.parameters), strict=True)
    return all(deduce(cx, one, to, parameters, found, exact=exact) for one, to in pairs)


def _deduce_pointed(
    cx: Context,
    written: tree.TypeTree,
    type: Pointer | Reference,
    parameters: Sequence[tree.TemplateParameter],
    found: dict[str, Argument],
) -> bool:
    """What a pointer or reference refers to, with its const, against a pattern, exactly."""
    if isinstance(written, tree.ConstType) and written.const:
        return type.const and deduce(cx, written.of, type.to, parameters, found, exact=True)
    inner = ConstOf(type.to) if type.const else type.to
    return deduce(cx, written, inner, parameters, found, exact=True)


def deduce_exactly(found: dict[str, Argument], written: tree.TypeTree, type: Argument) -> bool:
    """Deduce the parameter that a type consists of; False if another type was deduced before."""
    assert isinstance(written, tree.NamedType)
    return _agree(found, written.name.text, type)


def _mentions(written: Any, names: dict[str, Any]) -> bool:
    match written:
        case tree.NamedType(name):
            return _mentions(name, names)
        case tree.Name(text, scope, arguments):
            return text in names or any(
                _mentions(one, names) for one in (*scope, *(arguments or ()))
            )
        case tree.IntegerLiteral() | tree.BuiltinType():
            return False
        case tree.ConstType(of) | tree.ArrayType(of):
            return _mentions(of, names)
        case tree.PointerType(to) | tree.ReferenceType(to):
            return _mentions(to, names)
        case tree.FunctionType(result, parameters):
            return any(_mentions(one, names) for one in (result, *(p.type for p in parameters)))
    nodes = walk_tree(written)
    return any(isinstance(node, tree.Name) and node.text in names for node in nodes)


def _agree(found: dict[str, Argument], name: str, value: Argument) -> bool:
    known = found.get(name)
    if known is None:
        found[name] = value
        return True
    if isinstance(known, Rvalue) and isinstance(value, Rvalue):
        known, value = argument_key(known)[0], argument_key(value)[0]
    same: bool = argument_key(known) == argument_key(value)
    return same


def _deduce_class(
    cx: Context,
    name: tree.Name,
    type: ClassType,
    parameters: Sequence[tree.TemplateParameter],
    found: dict[str, Argument],
    *,
    exact: bool = False,
) -> bool:
    """`Vec<T, N>` against an instance of Vec, or (not `exact`) of a class derived from one."""
    declaration = type.template
    own = next((one for one in parameters if one.name == name.text), None)
    if own is not None and own.kind == "template":  # C<T> against an instance of any template
        template = declared_template(cx, type)
        if template is None or not _agree(found, name.text, template):
            return False
    elif not isinstance(declaration, tree.StructDeclaration) or declaration.name != name.text:
        return not exact and any(
            _deduce_class(cx, name, base, parameters, found) for base in type.bases
        )
    bound = type.scope.parent.names.get("<instance>", ())
    given = len(name.arguments or ())
    if given != len(bound) and packs_of(declaration):
        return False
    left_out = zip((declaration.template or ())[given:], bound[given:], strict=False)
    if not all(_is_default(cx, one, argument, type.scope) for one, argument in left_out):
        return False
    for written, argument in zip(name.arguments or (), bound, strict=False):
        if isinstance(argument, Rvalue):
            inner = written.name if isinstance(written, tree.NamedType) else written
            name_ = inner.text if isinstance(inner, tree.Name) else ""
            is_own = any(p.name == name_ for p in parameters)
            if is_own and not _agree(found, name_, argument):
                return False
            if not is_own and not _is_number(cx, inner, argument, parameters):
                return False
        elif isinstance(argument, DeclaredType):
            if not _deduce_template(cx, written, argument, parameters, found):
                return False
        else:
            as_type = (
                tree.NamedType(written, written.span) if isinstance(written, tree.Name) else written
            )
            if isinstance(as_type, tree.TYPES) and not deduce(
                cx, as_type, argument, parameters, found, exact=exact
            ):
                return False
    return True


def _is_number(
    cx: Context, written: Any, argument: Rvalue, parameters: Sequence[tree.TemplateParameter]
) -> bool:
    """Whether a template argument that is written as a number has this value, also if the template
    parameters in it have to be known before."""
    assert isinstance(argument.expression, n.Constant)
    if isinstance(written, tree.IntegerLiteral):
        return bool(written.value == argument.expression.value)
    names = {one.name: one for one in parameters}
    if _mentions(written, names):
        return True
    parameter = tree.TemplateParameter("value", "", tree.AutoType())
    value = evaluate_argument(cx, written, parameter, cx.scope)
    return isinstance(value, Rvalue) and argument_key(value)[0] == argument_key(argument)[0]


def _deduce_template(
    cx: Context,
    written: Any,
    argument: DeclaredType,
    parameters: Sequence[tree.TemplateParameter],
    found: dict[str, Argument],
) -> bool:
    """A template as an argument, against the name of a template or of a parameter for one."""
    name = written.name if isinstance(written, tree.NamedType) else written
    if not isinstance(name, tree.Name):
        return False
    if any(one.name == name.text and one.kind == "template" for one in parameters):
        return _agree(found, name.text, argument)
    known = lookup(cx, name)
    return isinstance(known, DeclaredType) and known.declaration is argument.declaration


def _is_default(
    cx: Context, parameter: tree.TemplateParameter, argument: Argument, scope: Scope
) -> bool:
    """Whether a template argument that `Vec<T>` leaves out is the default one."""
    if parameter.default is None:
        return bool(parameter.pack)
    with cx.in_scope(scope):
        try:
            default = evaluate_argument(cx, parameter.default, parameter, scope)
        except CompileError:  # there is none for the arguments before it
            return False
    return _is_same(default, argument)
