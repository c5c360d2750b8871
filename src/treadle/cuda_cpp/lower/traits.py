"""What <type_traits> asks the compiler about types.

The header is CUDA C++ text; names that begin with `__treadle_` stand for the questions that C++
itself cannot answer in few words. cv-qualifiers are not part of a type here (semantics/types.py),
so there are no questions about const.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import IMPOSSIBLE, common_type, rank_of, underlying
from treadle.cuda_cpp.lower.names import resolve
from treadle.cuda_cpp.lower.special_members import lifetime_of
from treadle.cuda_cpp.lower.values import Lvalue, Rvalue, Value
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.types import (
    ARITHMETIC,
    BOOL,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    FunctionOf,
    MemberPointer,
    NullPointer,
    Pointer,
    Reference,
    VectorType,
    Void,
    all_fields,
    decay,
    innermost,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n

Types = Sequence[CppType]


def predicate(cx: Context, node: tree.Name) -> Value:
    """`__treadle_is_integral<T>`, a bool."""
    given = _given(cx, node)
    return Rvalue(n.Constant(_PREDICATES[node.text](cx, given), BOOL.scalar, node.span), BOOL)


def transformed(cx: Context, name: tree.Name, span: Span) -> CppType:
    """The type `__treadle_decay<T>`. CompileError if there is none for these types."""
    given = _given(cx, name)
    made = _TRANSFORMS[name.text](cx, given)
    if made is None:
        listed = ", ".join(map(str, given))
        trait = name.text.removeprefix("__treadle_")
        raise cx.error(f"there is no std::{trait}<{listed}>", span)
    return made


def _given(cx: Context, node: tree.Name) -> list[CppType]:
    types = []
    for written in node.arguments or ():
        if isinstance(written, tree.Name):
            written = tree.NamedType(written, written.span)
        if not isinstance(written, tree.TYPES):
            raise cx.error(f"{node.text} takes types", node.span)
        types.append(resolve(cx, written))
    return types


# --- predicates ----------------------------------------------------------------------------------

Predicate = Callable[[Context, Types], bool]

# Those are classes in CUDA's headers.
_CLASSES_IN_CUDA = frozenset(("__half", "__nv_bfloat16"))


def _is(*classes: type) -> Predicate:
    return lambda cx, types: isinstance(types[0], classes)


def _is_number(type: CppType) -> bool:
    return isinstance(type, Arithmetic) and type.name not in _CLASSES_IN_CUDA


def _is_integral(cx: Context, types: Types) -> bool:
    type = types[0]
    return isinstance(type, Arithmetic) and not type.scalar.is_float


def _is_floating(cx: Context, types: Types) -> bool:
    type = types[0]
    return isinstance(type, Arithmetic) and type.scalar.is_float and _is_number(type)


def _is_fundamental(cx: Context, types: Types) -> bool:
    return _is_number(types[0]) or isinstance(types[0], (Void, NullPointer))


def _is_class(cx: Context, types: Types) -> bool:
    type = types[0]
    if isinstance(type, Arithmetic):
        return not _is_number(type)
    return isinstance(type, VectorType) or (isinstance(type, ClassType) and not type.is_union)


def _is_union(cx: Context, types: Types) -> bool:
    return isinstance(types[0], ClassType) and types[0].is_union


def _is_empty(cx: Context, types: Types) -> bool:
    return isinstance(types[0], ClassType) and not types[0].is_union and not all_fields(types[0])


def _is_scalar(cx: Context, types: Types) -> bool:
    return _is_number(types[0]) or isinstance(
        types[0], (EnumType, Pointer, MemberPointer, NullPointer)
    )


def _is_signed(cx: Context, types: Types) -> bool:
    type = types[0]
    return isinstance(type, Arithmetic) and _is_number(type) and type.scalar.is_signed


def _is_unsigned(cx: Context, types: Types) -> bool:
    return _is_number(types[0]) and not _is_signed(cx, types)


def _is_base_of(cx: Context, types: Types) -> bool:
    base, derived = types
    return (base == derived and isinstance(base, ClassType)) or derives(derived, base)


def _is_convertible(cx: Context, types: Types) -> bool:
    given, wanted = types
    if isinstance(given, Void) or isinstance(wanted, Void):
        return isinstance(given, Void) and isinstance(wanted, Void)
    return rank_of(cx, _some(cx, given), wanted) != IMPOSSIBLE


def _some(cx: Context, type: CppType) -> Value:
    """A value of a type, as std::declval gives one, that is never read."""
    if isinstance(type, Reference) and not type.rvalue:
        return Lvalue(n.Variable("declval", n.TRUE.type), type.to, type.const)
    return Rvalue(n.TRUE, type.to if isinstance(type, Reference) else type)


_PREDICATES: dict[str, Predicate] = {
    f"__treadle_{name}": function
    for name, function in {
        "is_void": _is(Void),
        "is_null_pointer": _is(NullPointer),
        "is_integral": _is_integral,
        "is_floating_point": _is_floating,
        "is_arithmetic": lambda cx, types: _is_number(types[0]),
        "is_fundamental": _is_fundamental,
        "is_enum": _is(EnumType),
        "is_scoped_enum": lambda cx, types: isinstance(types[0], EnumType) and types[0].scoped,
        "is_class": _is_class,
        "is_union": _is_union,
        "is_empty": _is_empty,
        "is_array": _is(ArrayOf),
        "is_pointer": _is(Pointer),
        "is_member_pointer": _is(MemberPointer),
        "is_member_function_pointer": lambda cx, types: (
            isinstance(types[0], MemberPointer) and isinstance(types[0].to, FunctionOf)
        ),
        "is_reference": _is(Reference),
        "is_lvalue_reference": lambda cx, types: (
            isinstance(types[0], Reference) and not types[0].rvalue
        ),
        "is_rvalue_reference": lambda cx, types: (
            isinstance(types[0], Reference) and types[0].rvalue
        ),
        "is_scalar": _is_scalar,
        "is_object": lambda cx, types: not isinstance(types[0], (Void, Reference)),
        "is_signed": _is_signed,
        "is_unsigned": _is_unsigned,
        # Copies that do more than copy are refused, so every object can be copied by its bytes.
        "is_trivially_copyable": lambda cx, types: not isinstance(types[0], (Void, Reference)),
        "is_trivially_destructible": lambda cx, types: not lifetime_of(types[0]).ends,
        "is_base_of": _is_base_of,
        "is_convertible": _is_convertible,
    }.items()
}

# --- types of types ------------------------------------------------------------------------------

Transform = Callable[[Context, Types], CppType | None]


def _remove_reference(cx: Context, types: Types) -> CppType:
    return types[0].to if isinstance(types[0], Reference) else types[0]


def _remove_pointer(cx: Context, types: Types) -> CppType:
    return types[0].to if isinstance(types[0], Pointer) else types[0]


def _remove_extent(cx: Context, types: Types) -> CppType:
    return types[0].element if isinstance(types[0], ArrayOf) else types[0]


_SIGNED = {
    "char": "signed char", "unsigned char": "signed char", "unsigned short": "short",
    "unsigned int": "int", "unsigned long": "long", "unsigned long long": "long long",
    "char16_t": "short", "char32_t": "int", "wchar_t": "int",
}  # fmt: skip
_UNSIGNED = {
    "char": "unsigned char", "signed char": "unsigned char", "short": "unsigned short",
    "int": "unsigned int", "long": "unsigned long", "long long": "unsigned long long",
    "char16_t": "unsigned short", "char32_t": "unsigned int", "wchar_t": "unsigned int",
}  # fmt: skip


def _with_sign(names: dict[str, str]) -> Transform:
    def make(cx: Context, types: Types) -> CppType | None:
        type = types[0].underlying if isinstance(types[0], EnumType) else types[0]
        if not isinstance(type, Arithmetic) or type.scalar.is_float or type == BOOL:
            return None
        return ARITHMETIC[names.get(type.name, type.name)]

    return make


def _underlying(cx: Context, types: Types) -> CppType | None:
    return types[0].underlying if isinstance(types[0], EnumType) else None


def _common(cx: Context, types: Types) -> CppType | None:
    """The type of `true ? a : b`, for two or more types."""
    if not types:
        return None
    made = decay(types[0])
    for given in types[1:]:
        found = _common_of_two(cx, made, decay(given))
        if found is None:
            return None
        made = found
    return made


def _common_of_two(cx: Context, one: CppType, other: CppType) -> CppType | None:
    if one == other:
        return one
    numbers = underlying(one), underlying(other)
    if numbers[0] is not None and numbers[1] is not None:
        return common_type(numbers[0], numbers[1])
    for given, wanted in ((one, other), (other, one)):
        if rank_of(cx, _some(cx, given), wanted) != IMPOSSIBLE:
            return wanted
    return None


_TRANSFORMS: dict[str, Transform] = {
    f"__treadle_{name}": function
    for name, function in {
        "remove_reference": _remove_reference,
        "remove_pointer": _remove_pointer,
        "remove_extent": _remove_extent,
        "remove_all_extents": lambda cx, types: innermost(types[0]),
        "decay": lambda cx, types: decay(types[0]),
        "make_signed": _with_sign(_SIGNED),
        "make_unsigned": _with_sign(_UNSIGNED),
        "underlying_type": _underlying,
        "common_type": _common,
    }.items()
}
