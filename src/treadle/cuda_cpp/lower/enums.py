"""Enums: their underlying types, and the values of their enumerators."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.errors import CompileError
from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.names import constant_integer, resolve
from treadle.cuda_cpp.semantics.scopes import Enumerator, Scope
from treadle.cuda_cpp.semantics.types import (
    BOOL,
    INT,
    LONG,
    UNSIGNED,
    UNSIGNED_LONG,
    Arithmetic,
    CppType,
    EnumType,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


def enum_type(cx: Context, declaration: tree.EnumDeclaration, scope: Scope) -> EnumType:
    """The type of an enum."""
    if declaration.underlying is None:
        underlying = INT if declaration.scoped else _narrowest_of_enum(cx, declaration, scope)
    else:
        found = resolve(cx, declaration.underlying)
        if not isinstance(found, Arithmetic) or found.scalar.is_float:
            raise cx.wrong(
                f"{found} is not an integer, so it cannot be the type of an enum", declaration.span
            )
        underlying = found
    name = declaration.name or "unnamed enum"
    return EnumType(scope.qualified(name), underlying, declaration.scoped, scope)


def enumerator(cx: Context, entity: Enumerator) -> tuple[CppType, n.Constant]:
    """The type and value of an enumerator. In the initializers of its own enum it is a number."""
    declaration = entity.declaration
    value = _value(cx, entity)
    if _key(declaration, entity.scope) in cx.lowering.open_enums:
        own = _narrowest([value])
        return own, constant(value, own.scalar)
    type = enum_type(cx, declaration, entity.scope)
    own = type.underlying
    has_own = declaration.underlying is not None and own != BOOL
    if has_own and constant(value, own.scalar).value != value:
        name = declaration.enumerators[entity.position][0]
        raise cx.wrong(
            f"{name} is {value}, which {own}, the type of the enum, does not have",
            declaration.span,
        )
    scalar = ir_type(type)
    assert isinstance(scalar, ir.Scalar)
    return type, constant(value, scalar)


def _value(cx: Context, entity: Enumerator) -> int:
    """The value of an enumerator: its initializer, or one more than the one before."""
    enumerators = entity.declaration.enumerators
    value = 0
    start = entity.position
    while start >= 0 and enumerators[start][1] is None:
        start -= 1
    if start >= 0:
        written = enumerators[start][1]
        assert written is not None
        with cx.in_scope(_inside_enum(entity)):
            value = constant_integer(cx, written, "the value of an enumerator")
    return value + entity.position - max(start, 0)


def _inside_enum(entity: Enumerator) -> Scope:
    """The scope of an enum's initializers, in which its enumerators are integers."""
    if not entity.declaration.scoped:
        return entity.scope
    underlying = entity.declaration.underlying or tree.BuiltinType("int")
    plain = replace(entity.declaration, scoped=False, underlying=underlying)
    home = Scope(entity.scope)
    for position, (name, _) in enumerate(plain.enumerators):
        home.names[name] = Enumerator(plain, position, home)
    return home


# --- the underlying type, where none is written --------------------------------------------------


def _key(declaration: tree.EnumDeclaration, scope: Scope) -> tuple[int, int]:
    return id(declaration), id(scope)


def _narrowest_of_enum(cx: Context, declaration: tree.EnumDeclaration, scope: Scope) -> Arithmetic:
    """The type that the compilers give an enum: int, unless that does not have all values."""
    key, enums = _key(declaration, scope), cx.lowering.enums
    if key not in enums:
        entries = [Enumerator(declaration, at, scope) for at in range(len(declaration.enumerators))]
        open_enums = cx.lowering.open_enums
        open_enums.add(key)
        try:
            found = _narrowest([_value(cx, one) for one in entries])
        except CompileError:  # reported where the enumerator is used
            return INT
        finally:
            open_enums.discard(key)
        enums[key] = found, declaration, scope  # kept, so that no other has their identities
    type: Arithmetic = enums[key][0]
    return type


def _narrowest(values: list[int]) -> Arithmetic:
    for type in (INT, UNSIGNED, LONG):
        if all(constant(one, type.scalar).value == one for one in values):
            return type
    return UNSIGNED_LONG
