"""Deduction of template arguments from types [temp.deduct]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.cuda_cpp.lower.alias_patterns import pattern_of
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.names import (
    constant_integer,
    lookup,
    resolve,
)
from treadle.cuda_cpp.lower.packs import (
    packs_of,
)
from treadle.cuda_cpp.lower.template_arguments import (
    CPP_TYPES,
    Argument,
    argument_key,
    declared_template,
    evaluate_argument,
    is_default,
)
from treadle.cuda_cpp.lower.values import Rvalue
from treadle.cuda_cpp.semantics.scopes import (
    DeclaredType,
)
from treadle.cuda_cpp.semantics.types import (
    SIZE,
    ArrayOf,
    ClassType,
    ConstOf,
    CppType,
    FunctionOf,
    MemberPointer,
    Pointer,
    Reference,
    decay,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.keywords import TRANSFORMS
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


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
    if not isinstance(type, CPP_TYPES):
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
                return not exact and not mentions(to, names)
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
                not mentions(written, names) or _deduces_nothing(cx, name)
            ):  # fmt: skip
                return True  # it is converted
            if name.arguments is not None and isinstance(type, ClassType):
                return _deduce_class(cx, name, type, parameters, found, exact=exact)
            if name.arguments is not None and mentions(written, names):
                return False
        case tree.FunctionType():
            return _deduce_function(cx, written, type, parameters, found, exact)
        case tree.MemberPointerType():
            return _deduce_member_pointer(cx, written, type, parameters, found, exact)
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


def _deduce_member_pointer(
    cx: Context,
    written: tree.MemberPointerType,
    type: CppType | ConstOf,
    parameters: Sequence[tree.TemplateParameter],
    found: dict[str, Argument],
    exact: bool,
) -> bool:
    """`T C::*` or `R (C::*)(A...)`."""
    if not isinstance(type, MemberPointer):
        return False
    const = isinstance(written.to, tree.FunctionType) and written.to.const
    owner = tree.NamedType(written.owner, written.span)
    return (
        const == type.const
        and deduce(cx, owner, type.owner, parameters, found, exact=exact)
        and deduce(cx, written.to, type.to, parameters, found, exact=exact)
    )


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


def mentions(written: Any, names: dict[str, Any]) -> bool:
    match written:
        case tree.NamedType(name):
            return mentions(name, names)
        case tree.Name(text, scope, arguments):
            return text in names or any(
                mentions(one, names) for one in (*scope, *(arguments or ()))
            )
        case tree.IntegerLiteral() | tree.BuiltinType():
            return False
        case tree.ConstType(of) | tree.ArrayType(of):
            return mentions(of, names)
        case tree.PointerType(to) | tree.ReferenceType(to):
            return mentions(to, names)
        case tree.FunctionType(result, parameters):
            return any(mentions(one, names) for one in (result, *(p.type for p in parameters)))
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
    if not all(is_default(cx, one, argument, type.scope) for one, argument in left_out):
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
            if not deduce_template(cx, written, argument, parameters, found):
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
    if mentions(written, names):
        return True
    parameter = tree.TemplateParameter("value", "", tree.AutoType())
    value = evaluate_argument(cx, written, parameter, cx.scope)
    return isinstance(value, Rvalue) and argument_key(value)[0] == argument_key(argument)[0]


def deduce_template(
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
