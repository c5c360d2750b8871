"""Name lookup in a context, and the types that the source spells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from treadle.core.source import Span
from treadle.cuda_cpp.lower.access import refuse_hidden_name
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.dispatch import constant_value, exact_type_of, type_of
from treadle.cuda_cpp.lower.packs import counts_by_arguments, expanded, packs_of
from treadle.cuda_cpp.lower.values import Dependent, Rvalue
from treadle.cuda_cpp.semantics.early_errors import may_be_foreign
from treadle.cuda_cpp.semantics.misspelled import nearest
from treadle.cuda_cpp.semantics.scopes import (
    REFERENCE,
    DeclaredType,
    Enumerator,
    Functions,
    GlobalVariable,
    HostEntity,
    KnownValue,
    Namespace,
    Overload,
    Scope,
    TypeEntity,
    declare_defined,
)
from treadle.cuda_cpp.semantics.types import (
    VOID,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    FunctionOf,
    Incomplete,
    MemberPointer,
    Pointer,
    Reference,
    Void,
    decay,
)
from treadle.cuda_cpp.source.declaring_headers import declaring_header
from treadle.cuda_cpp.source.headers import lacks_from_library
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.keywords import BUILT_IN_TYPE_NAMES, TRANSFORMS
from treadle.cuda_cpp.syntax.likely_causes import OTHER_LANGUAGES
from treadle.cuda_cpp.syntax.refusals import refusal_message

_TEXTURE_REFERENCES = ("surface",)


def lookup(cx: Context, name: tree.Name) -> Any:
    """The entity of a name, qualified or not; None if it is undeclared."""
    if not name.scope:
        return _find(cx.scope, name)
    home = scope_of(cx, name.scope)
    if home is None:
        return None
    refuse_hidden_name(cx, home, name)
    found = home.own(name.text)
    if found is None and home.kind == "class":
        for base in home.names.get("<bases>", ()):
            found = base.scope.own(name.text)
            if found is not None:
                break
    if found is None and home.name == "std":
        found = home.find(name.text)  # CUDA's names, and C's, are global; never the user's own
    return found


def scope_of(cx: Context, path: tuple[tree.Name, ...]) -> Scope | None:
    """The scope of `a::b::`; None if there is none."""
    scope: Scope | None = None
    for part in path:
        if part.text == "":
            scope = _global(cx.scope)
            continue
        if part.text == tree.OF_TYPE:
            assert part.arguments is not None
            written = part.arguments[0]
            assert isinstance(written, tree.DecltypeType)
            type = resolve(cx, written)
            type = type.to if isinstance(type, Reference) else type
            scope = completed_class(cx, type).scope if isinstance(type, ClassType) else None
            if scope is None:
                return None
            continue
        if scope is not None:
            refuse_hidden_name(cx, scope, part)
        entity = _find_scope(cx.scope, part) if scope is None else scope.own(part.text)
        match entity:
            case TypeEntity(type) if _has_no_members(type):
                raise cx.wrong(memberless(type), part.span)
            case Namespace(inner):
                scope = inner
            case TypeEntity(ClassType() as known):
                scope = completed_class(cx, known).scope
            case DeclaredType():
                scope = _enum_scope(cx, entity)
                if scope is None:
                    type = _instance(cx, entity, part)
                    if _has_no_members(type):
                        raise cx.wrong(memberless(type), part.span)
                    scope = type.scope if isinstance(type, ClassType) else None
            case _:
                return None
    return scope


def _has_no_members(type: CppType) -> bool:
    """Whether nothing can be named in a type, in C++ either: `T::value_type` of an int."""
    return isinstance(type, (Arithmetic, Pointer, Reference, ArrayOf, FunctionOf)) or type == VOID


def memberless(type: CppType) -> str:
    """The message for what is named in a type that is neither a class nor an enum."""
    return f"{type} is not a class, so it has no members to name with ::"


def _enum_scope(cx: Context, entity: DeclaredType) -> Scope | None:
    """The scope of an enum's enumerators, if a type is an enum or a typedef of one."""
    declaration = entity.declaration
    while isinstance(declaration, tree.TypedefDeclaration) and not declaration.template:
        written = declaration.type
        if isinstance(written, tree.DefinedType):
            declaration = written.definition
            break
        if not isinstance(written, tree.NamedType) or written.name.arguments is not None:
            return None
        with cx.in_scope(entity.scope):
            found = lookup(cx, written.name)
        if not isinstance(found, DeclaredType) or found is entity:
            return None
        entity, declaration = found, found.declaration
    if not isinstance(declaration, tree.EnumDeclaration):
        return None
    own = entity.scope.names.get(f"<enum>{declaration.name}")
    return own.scope if isinstance(own, Namespace) else entity.scope


def _find(scope: Scope | None, name: tree.Name) -> Any:
    """The entity of a name. With template arguments it is neither the injected class name nor a
    plain typedef, as in `using A = A<4>;`."""
    while scope is not None:
        found = scope.own(name.text)
        if found is not None and (name.arguments is None or not _is_plain_type(found)):
            return found
        scope = scope.parent
    return None


def _is_plain_type(entity: Any) -> bool:
    """Whether an entity is a type without template parameters."""
    if isinstance(entity, DeclaredType):
        declaration = entity.declaration
        return isinstance(declaration, tree.TypedefDeclaration) and declaration.template is None
    return isinstance(entity, TypeEntity)


def _find_scope(scope: Scope | None, name: tree.Name) -> Any:
    """The entity of a name before `::`, which is a namespace or a type: others are not found."""
    while scope is not None:
        found = _find(scope, name)
        if isinstance(found, (Namespace, TypeEntity, DeclaredType, Dependent)):
            return found
        while scope is not None and scope.own(name.text) is not found:
            scope = scope.parent
        scope = None if scope is None else scope.parent
    return None


def _global(scope: Scope) -> Scope:
    while scope.kind != "global" and scope.parent is not None:
        scope = scope.parent
    file = scope.names.get("<file>")  # `std` is beside the file, not in it
    return file.scope if isinstance(file, Namespace) else scope


def resolve(cx: Context, written: tree.TypeTree) -> CppType:
    """The type of a type tree. `auto` is an error here; see `with_auto`."""
    match written:
        case tree.BuiltinType(name, span):
            if name == "void":
                return VOID
            type = cx.lowering.types.arithmetic.get(name)
            if type is None:
                raise cx.error(
                    f"{name} has 128 bits, and integers in kernels have at most 64: use two "
                    "unsigned long long, and __umul64hi for the upper half of a product",
                    span,
                )
            return type
        case tree.NamedType(name, span):
            return named_type(cx, name, span)
        case tree.DefinedType(definition):
            declare_defined(written, cx.scope)
            return class_or_enum(cx, definition, cx.scope)
        case tree.ConstType(of):
            return resolve(cx, of)
        case tree.PointerType(to):
            return Pointer(resolve(cx, to), is_const_type(cx, to))
        case tree.ReferenceType(to, rvalue):
            inner = resolve(cx, to)
            if isinstance(inner, Reference):  # of a template argument: & wins over &&
                return replace(inner, rvalue=inner.rvalue and rvalue)
            return Reference(inner, is_const_type(cx, to), rvalue)
        case tree.ArrayType(of, size):
            length = None if size is None else constant_integer(cx, size, "the length of an array")
            if length is not None and length < 0:
                raise cx.wrong(f"an array of {length} elements", written.span)
            return ArrayOf(resolve(cx, of), length)
        case tree.DecltypeType(operand):
            own = cx.lowering.declared  # in a variable's own initializer
            if own and isinstance(operand, tree.Name) and own[:2] == (operand.text, id(cx.scope)):
                return own[2]
            return _decltype(cx, operand, written.parentheses)
        case tree.AutoType(span):
            raise cx.wrong("the type of auto cannot be deduced here", span)
        case tree.FunctionType(result, parameters):
            types = (resolve(cx, one.type) for one in parameters)
            return FunctionOf(resolve(cx, result), tuple(_as_parameter(one) for one in types))
        case tree.MemberPointerType(owner, to, span):
            of_class = named_type(cx, owner, span)
            if not isinstance(of_class, ClassType):
                message = f"{of_class} is not a class, so there are no pointers to its members"
                raise cx.wrong(message, span)
            const = isinstance(to, tree.FunctionType) and to.const
            return MemberPointer(of_class.name, resolve(cx, to), const, of_class)


def _decltype(cx: Context, operand: tree.Expression, parentheses: bool) -> CppType:
    """The type of `decltype`: that with which a name or member is declared, or of another
    expression with its value category."""
    if parentheses or not isinstance(operand, (tree.Name, tree.Member)):
        return exact_type_of(cx, operand)
    scope: Scope | None = cx.scope
    while isinstance(operand, tree.Name) and not operand.scope and scope is not None:
        if scope.own(operand.text) is not None:
            reference: CppType | None = scope.names.get(REFERENCE + operand.text)
            return type_of(cx, operand) if reference is None else reference
        scope = scope.parent
    return type_of(cx, operand)


def _as_parameter(type: CppType) -> CppType:
    return decay(type) if isinstance(type, (ArrayOf, FunctionOf)) else type


def is_const(written: tree.TypeTree) -> bool:
    """Whether a type is const."""
    return isinstance(written, tree.ConstType) and written.const


def is_const_type(cx: Context, written: tree.TypeTree) -> bool:
    """Whether a type is const, also by a typedef or a template argument."""
    if not isinstance(written, tree.NamedType):
        return is_const(written)
    entity = lookup(cx, written.name)
    if isinstance(entity, TypeEntity):
        return entity.const
    if not isinstance(entity, DeclaredType):
        return False
    declaration = entity.declaration
    if not isinstance(declaration, tree.TypedefDeclaration) or declaration.template is not None:
        return False
    with cx.in_scope(entity.scope):
        return is_const_type(cx, declaration.type)


def resolved_parameter(cx: Context, written: tree.TypeTree) -> CppType:
    """The type of a parameter: an array is a pointer, to const if its elements are."""
    type = resolve(cx, written)
    made = parameter_type(type)
    if isinstance(type, ArrayOf) and isinstance(made, Pointer):
        element = written
        while isinstance(element, tree.ArrayType):
            element = element.of
        return Pointer(made.to, made.const or is_const_type(cx, element))
    return made


def parameter_type(type: CppType) -> CppType:
    """The type of a parameter, as which arrays and functions are pointers."""
    return decay(type) if isinstance(type, (ArrayOf, FunctionOf)) else type


def is_auto(written: tree.TypeTree) -> bool:
    """Whether a type is `auto`, const or not."""
    while isinstance(written, (tree.ConstType, tree.ReferenceType, tree.PointerType)):
        written = written.of if isinstance(written, tree.ConstType) else written.to
    return isinstance(written, tree.AutoType)


def with_auto(cx: Context, written: tree.TypeTree, stands_for: CppType) -> CppType:
    """A type with `auto` deduced as `stands_for`."""
    match written:
        case tree.AutoType():
            return stands_for
        case tree.ConstType(of):
            return with_auto(cx, of, stands_for)
        case tree.PointerType(to):
            if isinstance(stands_for, Pointer):
                return Pointer(with_auto(cx, to, stands_for.to), stands_for.const)
        case tree.ReferenceType(to, rvalue):
            return Reference(with_auto(cx, to, stands_for), is_const(to), rvalue)
    raise cx.wrong(f"auto cannot be deduced as {stands_for} here", written.span)


def named_type(cx: Context, name: tree.Name, span: Span) -> CppType:
    """The type of a name."""
    entity = lookup(cx, name)
    match entity:
        case TypeEntity(ClassType(scope=None) as type):
            return completed_class(cx, type)
        case TypeEntity(type):
            return type
        case DeclaredType():
            return _instance(cx, entity, name)
        case HostEntity(code):
            reason = f": {code.reason}" if code.reason else ""
            raise cx.error(
                f"{name.text} is declared in host code only, and this kernel uses it{reason}",
                span,
            )
    of = _find_scope(cx.scope, name.scope[0]) if len(name.scope) == 1 else None
    if isinstance(of, TypeEntity) and isinstance(of.type, EnumType):
        raise cx.wrong(f"{of.type} is an enum: it has no member types", span)
    if name.text in TRANSFORMS:
        return cx.rules.transformed(cx, name, span)
    if name.text in _TEXTURE_REFERENCES:
        raise cx.error(refusal_message(name.text), span)
    home = scope_of(cx, name.scope) if name.scope else None
    if home is not None and isinstance(home.names.get("<class>"), ClassType):
        owner = home.names["<class>"]
        raise cx.amiss(f"{owner} has no member type {name.text}", span, owner)
    sure = cx.lowering.all_names and not (name.scope or may_be_foreign(name.text))
    if sure and not cx.is_in_template():
        raise cx.wrong(_unknown_type(cx, name), span)
    if cx.lowering.checking:  # not reported: to search for what was meant would take long
        raise cx.error(f"{name.text} is not known here", span)
    raise cx.error(_unknown_type(cx, name), span)


def refuse_later(cx: Context, entity: Any, name: tree.Name) -> None:
    """CompileError for a name that the file declares only after its use. In an instance of a
    template, all that is declared before the instance is known."""
    match entity:
        case Functions(overloads=[Overload(owner=None), *_] as overloads):
            spans = [one.declaration.span for one in overloads]
        case GlobalVariable(declaration=declaration, scope=scope) if scope.kind != "class":
            spans = [declaration.span]
        case _:
            return
    use = name.span
    if any(one.file != use.file or one.line <= use.line for one in spans):
        return
    if not cx.is_in_instance() and not cx.is_in_template():
        raise cx.wrong(
            f"{name.text} is used before line {spans[0].line}, which declares it: put its "
            "declaration before this",
            use,
        )


def completed_class(cx: Context, type: ClassType) -> ClassType:
    """A class that was not defined yet when its name became a template argument."""
    if type.scope is not None or type.declaration is None:
        return type
    known = cx.lowering.classes.get(cx.lowering.incomplete.get(type.name))
    return known if isinstance(known, ClassType) else type


def qualified_names(cx: Context, name: str) -> list[str]:
    """A name as it is in the namespaces of the file that declare it."""
    found: list[str] = []
    scope: Scope | None = cx.scope
    while scope is not None:
        found += (
            f"{space}::{name}"
            for space, entity in scope.names.items()
            if isinstance(entity, Namespace) and space.isidentifier() and entity.scope.own(name)
        )
        scope = scope.parent
    return found


def _unknown_type(cx: Context, name: tree.Name) -> str:
    spelled = "::".join([*(part.text for part in name.scope), name.text])
    if header := declaring_header(spelled, cx.lowering.texts):
        return header
    if spelled.startswith("std::"):
        return (
            f"{spelled} is from the C++ standard library, of which kernels have only a part (the "
            "guide to CUDA C++ lists it): use an array, or a struct of the file"
        )
    if name.scope and (lacks := lacks_from_library(spelled, spelled.partition("::")[0])):
        return lacks
    qualified = [] if name.scope else qualified_names(cx, name.text)
    if qualified or spelled in OTHER_LANGUAGES:
        meant: str | None = qualified[0] if qualified else OTHER_LANGUAGES[spelled]
    else:
        known = [one for one in cx.scope.all_names() if one != spelled]
        meant = nearest(spelled, (*known, *BUILT_IN_TYPE_NAMES), 0.8)
    hint = f" (did you mean {meant}?)" if meant and not meant.startswith("__") else ""
    return (
        f"{spelled} is not a known type{hint}: include the file that declares it (include=[…] "
        "names folders to search), or declare it"
    )


def _instance(cx: Context, entity: DeclaredType, name: tree.Name) -> CppType:
    declaration = entity.declaration
    if isinstance(declaration, tree.TypedefDeclaration):
        if declaration.template is not None:
            if packs_of(declaration):
                counts = counts_by_arguments(declaration, len(name.arguments or ()))
                declaration = expanded(cx, declaration, counts)
            assert declaration.template is not None
            scope = cx.rules.bind_arguments(
                cx, declaration.template, name.arguments or (), entity.scope, name.span
            )
            if not cx.rules.satisfied(cx, scope, declaration.constraint):
                why = cx.rules.why_unsatisfied(cx, scope, declaration.constraint)
                raise cx.wrong(unsatisfied(declaration.name) + why, name.span)
            with cx.in_scope(scope):
                return resolve(cx, declaration.type)
        with cx.in_scope(entity.scope):
            return resolve(cx, declaration.type)
    if isinstance(declaration, tree.StructDeclaration) and declaration.template is not None:
        if name.arguments is None:
            inside = injected_class(cx.scope, declaration)
            if inside is not None:
                return inside
        return cx.rules.class_instance(cx, entity, name.arguments or (), name.span)
    return class_or_enum(cx, declaration, entity.scope)


def unsatisfied(name: str) -> str:
    """The message for template arguments that a constraint does not allow."""
    return f"the constraints of {name} are not satisfied"


# Of the scope of an instance of a class template, until it is made: the template, and what gives
# the instance as an incomplete class.
BEING_MADE = "<being made>"


def injected_class(scope: Scope | None, declaration: tree.StructDeclaration) -> CppType | None:
    """The injected class name: the enclosing instance of a class template."""
    while scope is not None:
        if scope.kind == "class":
            own = scope.names.get("<class>")
            if isinstance(own, ClassType) and own.template is declaration:
                return own
            template, incomplete = scope.names.get(BEING_MADE, (None, None))
            if template is declaration and incomplete is not None:
                made: CppType = incomplete()
                return made
        scope = scope.parent
    return None


def class_or_enum(
    cx: Context, declaration: tree.StructDeclaration | tree.EnumDeclaration, scope: Scope
) -> CppType:
    """The type of a class or enum that is not a template."""
    if isinstance(declaration, tree.StructDeclaration):
        return cx.rules.class_type(cx, declaration, scope)
    return cx.rules.enum_type(cx, declaration, scope)


def refuse_void(cx: Context, name: str, type: Void, span: Span) -> NoReturn:
    """The error for an object of type void, or of a class without a definition."""
    if isinstance(type, Incomplete):
        raise cx.wrong(f"{name} is a {type}, which is declared, but not defined", span)
    raise cx.wrong(f"{name} cannot be void", span)


def constant_integer(cx: Context, expression: tree.Expression, what: str) -> int:
    """The value of an integral constant expression."""
    value = constant_value(cx, expression, what)
    if isinstance(value, float):
        raise cx.wrong(f"{what} must be an integer, not {value}", expression.span)
    return int(value)


def known_entity(cx: Context, entity: Any, span: Span) -> Any:
    """The value of a template argument or an enumerator; None for other entities."""
    match entity:
        case KnownValue(Rvalue() as value, key) if key is not None:
            return replace(value, named=True)  # a const variable
        case KnownValue(value):
            return value
        case Enumerator():
            type, number = cx.rules.enumerator(cx, entity)
            return Rvalue(number, type)
    return None
