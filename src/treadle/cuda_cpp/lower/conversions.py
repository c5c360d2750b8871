"""Conversions: implicit ones with their rank, casts, and the usual arithmetic conversions.

The rules are those of C++17 [conv] and [expr.arith.conv], for the types that kernels have.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded
from treadle.cuda_cpp.lower.base_objects import (
    as_base,
    base_part,
    base_pointer,
    refuse_ambiguous_base,
)
from treadle.cuda_cpp.lower.context import Context, completed
from treadle.cuda_cpp.lower.objects import load, member, subscript
from treadle.cuda_cpp.lower.pointers import (
    ZERO,
    as_pointer_to,
    demand_address,
    pointer_of,
    unit_of,
)
from treadle.cuda_cpp.lower.special_members import acts
from treadle.cuda_cpp.lower.values import (
    Address,
    ArrayValue,
    BitFieldLvalue,
    BitsLvalue,
    ChoiceLvalue,
    ChosenPointer,
    ChosenText,
    FunctionSet,
    Lvalue,
    MemoryTarget,
    Null,
    NullTarget,
    ObjectAddress,
    ParameterPointer,
    PointerValue,
    PointerVariable,
    Rvalue,
    ScatteredLvalue,
    SplitArray,
    SplitStruct,
    Text,
    Value,
    as_const,
    describe,
    is_prvalue,
    not_a_number,
    with_category,
)
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.types import (
    ARITHMETIC,
    BFLOAT16,
    BOOL,
    CHAR,
    DIM3,
    FLOAT,
    HALF,
    INT,
    UINT3,
    UNSIGNED,
    VOID,
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
    StringType,
    all_fields,
    decay,
    holds_array,
    holds_pointer,
    is_split,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

OBJECTS = (Lvalue, BitsLvalue, BitFieldLvalue, ChoiceLvalue, ScatteredLvalue)
_WITHOUT_PLACE = (
    PointerVariable,
    ParameterPointer,
    ChosenPointer,
    SplitStruct,
    SplitArray,
)  # objects too

# --- numbers -------------------------------------------------------------------------------------


def promoted(type: Arithmetic) -> Arithmetic:
    """Integral promotion: integers below int become int, which holds all their values."""
    return INT if type.rank < INT.rank and not type.scalar.is_float else type


def underlying(type: CppType) -> Arithmetic | None:
    """The arithmetic type of a value in arithmetic; None for types that are not arithmetic."""
    if isinstance(type, EnumType) and not type.scoped:
        return type.underlying
    return type if isinstance(type, Arithmetic) else None


def common_type(left: Arithmetic, right: Arithmetic) -> Arithmetic:
    """The common type of two numbers (the usual arithmetic conversions)."""
    if left.scalar.is_float or right.scalar.is_float:
        if not right.scalar.is_float:
            return left
        if not left.scalar.is_float:
            return right
        if {left, right} == {HALF, BFLOAT16}:
            return FLOAT
        return left if left.rank >= right.rank else right
    left, right = promoted(left), promoted(right)
    if left.scalar.is_signed == right.scalar.is_signed:
        return left if left.rank >= right.rank else right
    signed, unsigned = (left, right) if left.scalar.is_signed else (right, left)
    if unsigned.rank >= signed.rank:
        return unsigned
    if signed.scalar.bits > unsigned.scalar.bits:
        return signed
    return _UNSIGNED_OF[signed.name]


_UNSIGNED_OF = {
    "int": UNSIGNED,
    "long": ARITHMETIC["unsigned long"],
    "long long": ARITHMETIC["unsigned long long"],
}


def number_as(value: n.Expression, type: Arithmetic, span: Span) -> n.Expression:
    """A number converted to another arithmetic type."""
    return cast(value, type.scalar, span)


# --- values of objects ---------------------------------------------------------------------------


def rvalue(cx: Context, value: Value, span: Span) -> Rvalue:
    """The lvalue-to-rvalue conversion of a number, vector or struct."""
    match value:
        case Rvalue(named=named):
            return replace(value, named=False) if named else value
        case Lvalue() | BitsLvalue() | BitFieldLvalue() | ChoiceLvalue() | ScatteredLvalue():
            if holds_array(value.type):
                message = f"a {value.type} contains arrays: it is only copied as a whole"
                raise cx.wrong(message, span)
            return load(cx, value, span)
    if isinstance(value, FunctionSet):
        raise cx.wrong(f"the function {value.name} is not a value: call it with (…)", span)
    raise cx.unfit(f"a number is needed here, not {describe(value)}", value, span)


def number(cx: Context, value: Value, span: Span) -> tuple[n.Expression, Arithmetic]:
    """The value of a number or unscoped enum, and its type."""
    if isinstance(value, (*OBJECTS, Rvalue)):
        if isinstance(value.type, ClassType):
            value = cx.rules.call_conversion(cx, value, None, False, span) or value
        if isinstance(getattr(value, "type", None), ClassType):
            raise cx.unfit(not_a_number(value), value, span)
        read = rvalue(cx, value, span)
        type = underlying(read.type)
        if type is not None and isinstance(value, BitFieldLvalue):
            return _promoted_bits(value, read.expression, type, span)
        if type is not None:
            return read.expression, type
    raise cx.unfit(not_a_number(value), value, span)


def integer(cx: Context, value: Value, rule: str, span: Span) -> n.Expression:
    """The value of an integer or unscoped enum. `rule` begins the message for others."""
    expression, type = number(cx, value, span)
    if type.scalar.is_float:
        raise cx.wrong(f"{rule}, not by a {type}: cast it to int", span)
    return expression


def _promoted_bits(
    value: BitFieldLvalue, read: n.Expression, type: Arithmetic, span: Span
) -> tuple[n.Expression, Arithmetic]:
    """A bit field in arithmetic: an int, if that has all of its values ([conv.prom])."""
    if type.scalar.is_float:
        return read, type
    signed = type.scalar.is_signed and not value.bits.unsigned
    if value.bits.width < INT.scalar.bits + signed:
        return cast(read, INT.scalar, span), INT
    if value.bits.width == UNSIGNED.scalar.bits:
        return cast(read, UNSIGNED.scalar, span), UNSIGNED
    return read, type


def condition(cx: Context, value: Value, span: Span) -> n.Expression:
    """A value contextually converted to bool."""
    pointer = pointer_of(cx, value)
    if pointer is not None or isinstance(value, Null):
        return is_not_null(cx, pointer, span)
    if isinstance(value, (Text, SplitArray, ObjectAddress, FunctionSet)):  # f(holds && "a message")
        return n.TRUE
    if isinstance(getattr(value, "type", None), MemberPointer):
        pointed = rvalue(cx, value, span).expression
        return n.Binary("ne", pointed, constant(0, ir.I64), ir.BOOL, span)
    if isinstance(getattr(value, "type", None), ClassType):
        to_bool = cx.rules.call_conversion(cx, value, BOOL, True, span)
        if to_bool is not None:
            return condition(cx, to_bool, span)
        to_number = cx.rules.call_conversion(cx, value, None, False, span)
        if to_number is None:
            message = f"{value.type} does not convert to bool, which a condition is: {_COMPARE}"
            raise cx.unfit(message, value, span)
        value = to_number
    expression, _ = number(cx, value, span)
    return as_bool(expression, span)


_COMPARE = "compare one of its members, or declare explicit operator bool() const in it"


def as_bool(expression: n.Expression, span: Span) -> n.Expression:
    """A number as a bool. A bool that was converted to int is itself."""
    if expression.type == ir.BOOL:
        return expression
    if isinstance(expression, n.Cast) and expression.operand.type == ir.BOOL:
        return expression.operand
    return cast(expression, ir.BOOL, span)


def is_not_null(cx: Context, pointer: PointerValue | None, span: Span) -> n.Expression:
    """Whether a pointer is not null. An empty array passed to a kernel is a null pointer."""
    if pointer is None:
        return n.FALSE
    tests = [target_exists(target) for target in pointer.targets]
    if pointer.tag is None:
        return tests[0]
    result: n.Expression = n.FALSE
    for place, test in enumerate(tests):
        chosen = n.Binary("eq", pointer.tag, constant(place, ir.I32), ir.BOOL, span)
        both = n.Binary("logical_and", chosen, test, ir.BOOL, span)
        result = n.Binary("logical_or", result, both, ir.BOOL, span)
    return folded(result)


def target_exists(target: object) -> n.Expression:
    """Whether what a pointer may point to is there: no array was passed where it is not."""
    if isinstance(target, NullTarget):
        return n.FALSE
    if isinstance(target, MemoryTarget) and target.space == "global" and target.size is not None:
        assert isinstance(target.size.type, ir.Scalar)
        return n.Binary("gt", target.size, constant(0, target.size.type), ir.BOOL)
    return n.TRUE


def is_object(value: Value) -> bool:
    """Whether a value is an lvalue."""
    return isinstance(value, (*OBJECTS, ArrayValue, *_WITHOUT_PLACE))


def is_lvalue(value: Value) -> bool:
    """Whether a value is an object that neither is temporary nor may be moved from."""
    if isinstance(value, BitFieldLvalue):
        return False
    if isinstance(value, Rvalue):
        return value.named
    return is_object(value) and getattr(value, "category", "lvalue") == "lvalue"


def is_const_object(value: Value) -> bool:
    """Whether a value is a const object."""
    if isinstance(value, Rvalue):
        return value.named
    if isinstance(value, ArrayValue):
        return value.first.const
    if isinstance(value, ChoiceLvalue):
        return any(one is not None and is_const_object(one) for one in value.choices)
    return bool(getattr(value, "fixed" if isinstance(value, PointerVariable) else "const", False))


# --- implicit conversions ------------------------------------------------------------------------

EXACT, QUALIFIED, PROMOTION, CONVERSION = range(4)  # QUALIFIED: a qualification conversion
USER, USER_PROMOTION, USER_CONVERSION, ELLIPSIS, IMPOSSIBLE = range(4, 9)
# If two candidates use the same conversion function, the conversion of its result decides.
_BEHIND_USER = {EXACT: USER, PROMOTION: USER_PROMOTION, CONVERSION: USER_CONVERSION}


def rank_of(cx: Context, value: Value, type: CppType) -> int:
    """The rank of the implicit conversion of a value to a parameter's type."""
    if isinstance(type, Reference):
        return _reference_rank(cx, value, type)
    given = decay(getattr(value, "type", VOID))
    if isinstance(type, Pointer):
        return _pointer_rank(cx, value, given, type)
    if isinstance(type, MemberPointer):
        if given == type:
            return EXACT
        made = cx.rules.to_member_pointer(cx, value, type, cx.span)
        of_set = isinstance(value, FunctionSet)
        return IMPOSSIBLE if made is None else EXACT if of_set else CONVERSION
    if isinstance(value, FunctionSet):
        return IMPOSSIBLE
    if given == type:
        return EXACT
    if isinstance(given, Arithmetic) and isinstance(type, Arithmetic):
        if promoted(given) == type or (given == FLOAT and type.name == "double"):
            return PROMOTION
        return CONVERSION
    if isinstance(given, EnumType) and isinstance(type, Arithmetic):
        if given.scoped:
            return IMPOSSIBLE
        return PROMOTION if promoted(given.underlying) == type else CONVERSION
    if type == BOOL and isinstance(given, (Pointer, NullPointer)):
        return CONVERSION
    if isinstance(type, ClassType):
        if derives(given, type):
            return CONVERSION
        if cx.rules.has_converting_constructor(cx, value, type):
            return USER
    return _user_rank(cx, given, type)


def _reference_rank(cx: Context, value: Value, type: Reference) -> int:
    """The rank of binding a reference to a value."""
    given: CppType = getattr(value, "type", VOID)
    if isinstance(value, FunctionSet) and isinstance(type.to, (Pointer, FunctionOf)):
        return rank_of(cx, value, decay(type.to))
    # A variable with the address of an object in parts is that address itself.
    has_place = is_lvalue(value) or (isinstance(value, ObjectAddress) and given == type.to)
    if isinstance(type.to, ArrayOf) and isinstance(value, Text):
        given = ArrayOf(CHAR, len(value.data) + 1)
    if isinstance(type.to, ArrayOf):
        return EXACT if type.to == given else IMPOSSIBLE
    if isinstance(given, ArrayOf):  # a temporary pointer to its first element
        return rank_of(cx, value, type.to) if type.const or type.rvalue else IMPOSSIBLE
    if type.rvalue and not type.const and given == type.to and _is_const_place(value):
        return IMPOSSIBLE
    if type.rvalue and has_place:
        return IMPOSSIBLE if given == type.to else rank_of(cx, value, type.to)
    if not type.const and not type.rvalue and (not has_place or isinstance(value, Rvalue)):
        return IMPOSSIBLE
    if not type.const and not type.rvalue and given != type.to:
        return CONVERSION if derives(given, type.to) else IMPOSSIBLE
    return rank_of(cx, value, type.to)


def _is_const_place(value: Value) -> bool:
    return is_object(value) and not isinstance(value, Rvalue) and is_const_object(value)


_CHARACTERS = frozenset(("char", "wchar_t", "char16_t", "char32_t"))


def _pointer_rank(cx: Context, value: Value, given: CppType, type: Pointer) -> int:
    """The rank of the conversion of a value, whose type is `given` after decay, to a pointer."""
    if isinstance(given, NullPointer) or (isinstance(value, Rvalue) and value.literal_zero):
        return CONVERSION
    if isinstance(type.to, FunctionOf) and not isinstance(given, Pointer):
        return _function_rank(cx, value, type.to)
    if isinstance(given, Pointer):
        if given.to == type.to:
            return QUALIFIED if type.const and not given.const else EXACT
        if type.to == VOID or derives(given.to, type.to):
            return CONVERSION
    if isinstance(given, StringType):  # from an array of const characters
        if type.to == VOID:
            return CONVERSION
        return EXACT if str(type.to) in _CHARACTERS else IMPOSSIBLE
    return _user_rank(cx, given, type)


def _function_rank(cx: Context, value: Value, type: FunctionOf) -> int:
    """The rank of the conversion of a function, or of a lambda, to a pointer to functions."""
    try:
        found = cx.rules.function_pointer(cx, value, type, cx.span)
    except CompileError:
        return IMPOSSIBLE
    if found.to != type:
        return IMPOSSIBLE
    return EXACT if isinstance(value, FunctionSet) else USER


def _user_rank(cx: Context, given: CppType, type: CppType) -> int:
    """The rank of a user-defined conversion of a class to a type."""
    made = cx.rules.conversion_result(cx, given, type)
    if made is None:
        return IMPOSSIBLE
    return _BEHIND_USER.get(rank_of(cx, Rvalue(ZERO, made), type), USER)


def binds_directly(value: Value, type: Reference) -> bool:
    """Whether a reference binds directly to the object, not to a converted temporary."""
    if isinstance(value, (Rvalue, BitFieldLvalue)):
        return False
    given = getattr(value, "type", None)
    in_parts = isinstance(value, (ArrayValue, SplitArray)) and not isinstance(type.to, Pointer)
    return given == type.to or in_parts or (given is not None and derives(given, type.to))


def convert(cx: Context, value: Value, type: CppType, span: Span) -> Value:
    """An implicit conversion. CompileError if there is none."""
    if isinstance(type, Reference):
        type = type.to
    given: CppType = getattr(value, "type", VOID)
    if isinstance(type, (Pointer, MemberPointer)):
        return _to_pointer(cx, value, type, span)
    if isinstance(value, OBJECTS) and given == type and acts(type):
        return value
    if isinstance(value, OBJECTS) and given == type and is_split(type):
        return _in_parts(cx, value, type, span)
    if isinstance(value, OBJECTS) and holds_array(type) and given == type:
        return value
    if type == BOOL and (pointer_of(cx, value) is not None or isinstance(value, Null)):
        return Rvalue(condition(cx, value, span), BOOL)
    if isinstance(value, (Rvalue, *OBJECTS)):
        if decay(given) == type:
            return rvalue(cx, value, span)
        target = underlying(type) if isinstance(type, Arithmetic) else None
        if target is not None and underlying(given) is not None:
            expression, _ = number(cx, value, span)
            converted = number_as(expression, target, span)
            if isinstance(value, Address) and target.scalar.is_integer:
                assert value.low is not None
                low = number_as(value.low, target, span)
                if target.scalar.bits < 64:
                    return Rvalue(low, type)
                return replace(value, expression=converted, type=type, low=low)
            return Rvalue(converted, type)
    if isinstance(value, (Rvalue, SplitStruct, *OBJECTS)) and derives(given, type):
        return _sliced(cx, value, type, span)
    if isinstance(given, ClassType) and given != type:
        made = cx.rules.call_conversion(cx, value, type, True, span)
        if made is not None:
            return made
    if isinstance(value, (SplitStruct, SplitArray)) and given == type:
        return value
    if isinstance(type, ClassType) and (
        type == DIM3 or cx.rules.has_converting_constructor(cx, value, type)
    ):
        return cx.rules.construct(cx, type, [value], span)
    if given == DIM3 and type == UINT3:
        return cx.rules.construct(cx, type, [value], span)
    if given == type:
        return value
    raise _no_conversion(cx, value, type, span)


def _sliced(cx: Context, value: Value, type: CppType, span: Span) -> Value:
    """The base of an object by value."""
    assert isinstance(type, ClassType)
    if isinstance(value, SplitStruct):
        part = as_base(cx, value, type, span)
        return replace(part, whole=None) if isinstance(part, SplitStruct) else part
    if acts(type):
        part = as_base(cx, value, type, span)
        return with_category(part, "xvalue") if is_prvalue(value) else part
    return base_part(cx, value, type, span)


def _to_member_pointer(cx: Context, value: Value, type: MemberPointer, span: Span) -> Value:
    made = cx.rules.to_member_pointer(cx, value, type, span)
    if made is None and isinstance(getattr(value, "type", None), ClassType):
        made = cx.rules.call_conversion(cx, value, type, True, span)
    if made is None:
        raise _no_conversion(cx, value, type, span)
    return made


def _no_conversion(cx: Context, value: Value, type: CppType, span: Span) -> CompileError:
    given: CppType = getattr(value, "type", VOID)
    message = f"{describe(value)} does not convert to {type}{_hint(given, type)}"
    if isinstance(value, FunctionSet):
        message += f": call it, as in {value.name}(…)"
    if str(given) == str(type):  # one of which was not complete where it was named
        return cx.error(message, span)
    return cx.amiss(message, span, given, type)


def _in_parts(cx: Context, value: Value, type: CppType, span: Span) -> Value:
    """A struct with pointers in memory, read into its fields."""
    if isinstance(type, Pointer):
        found = pointer_of(cx, value)
        assert found is not None
        return found
    if isinstance(type, ArrayOf) and holds_pointer(type):
        items = (
            _in_parts(cx, subscript(cx, value, constant(at, ir.I32), span), type.element, span)
            for at in range(type.length or 0)
        )
        return SplitArray(type, tuple(items))
    if not isinstance(type, ClassType) or not holds_pointer(type):
        return value if holds_array(type) else rvalue(cx, value, span)
    return SplitStruct(
        type,
        {
            one.name: _in_parts(cx, member(cx, value, one.name, one.type, span), one.type, span)
            for one in all_fields(type)
        },
    )


def _hint(given: CppType, type: CppType) -> str:
    if isinstance(given, EnumType) and given.scoped:
        return " implicitly, as its enum is scoped: use static_cast"
    return ""


def _to_pointer(cx: Context, value: Value, type: Pointer | MemberPointer, span: Span) -> Value:
    if isinstance(type, MemberPointer):
        return _to_member_pointer(cx, value, type, span)
    whole = completed(cx, type)
    assert isinstance(whole, Pointer)
    type = whole
    if isinstance(value, Null) or (isinstance(value, Rvalue) and value.literal_zero):
        return PointerValue((NullTarget(),), ZERO, unit_of(type.to), type.to)
    if isinstance(value, (Text, ChosenText)):
        return value
    if isinstance(type.to, FunctionOf) and pointer_of(cx, value) is None:
        return cx.rules.function_pointer(cx, value, type.to, span)
    if isinstance(value, ObjectAddress) and type.const and value.type == type:
        return ObjectAddress(as_const(value.object))
    if isinstance(value, (SplitArray, ObjectAddress)) and decay(value.type) == type:
        return value
    if isinstance(getattr(value, "type", None), ClassType):
        value = cx.rules.call_conversion(cx, value, type, True, span) or value
    if isinstance(value, ObjectAddress) and derives(value.object.type, type.to):
        demand_address(cx, value)
    pointer = pointer_of(cx, value)
    if pointer is None:
        raise cx.unfit(f"{describe(value)} is not a pointer to {type.to}", value, span)
    to = completed(cx, Pointer(pointer.to))
    assert isinstance(to, Pointer)
    same = to.to == type.to or type.to == VOID or pointer.to == VOID
    if not same and not derives(to.to, type.to):
        alike = str(to.to) == str(type.to)  # one of which was not complete where it was named
        raise (cx.error if alike else cx.wrong)(
            f"{describe(value)} is not a pointer to {type.to}: cast it to access its bytes", span
        )
    if pointer.to == VOID and type.to != VOID:
        raise cx.wrong(f"a void pointer converts to {type} only by a cast", span)
    if isinstance(type.to, ClassType) and derives(pointer.to, type.to):
        refuse_ambiguous_base(cx, pointer.to, type.to, span)
        pointer = base_pointer(cx, pointer, type.to)
    if cx.lowering.checking and pointer.const and not type.const:
        raise cx.wrong(
            f"a {pointer.type} does not convert to {pointer.to}*: what it points to is const", span
        )
    const = pointer.const or type.const
    return replace(as_pointer_to(pointer, type.to), const=const)


def loses_const(written: object, value: Value) -> bool:
    """Whether a conversion drops the const of what a pointer points to. A template parameter or
    typedef may be a const type, so only types that are spelled out are checked."""
    if not isinstance(written, tree.PointerType) or not isinstance(written.to, tree.BuiltinType):
        return False
    if isinstance(value, (PointerVariable, PointerValue)):
        return value.const
    return isinstance(value, ArrayValue) and value.first.const


def refuse_lost_const(cx: Context, written: object, value: Value, span: Span) -> None:
    """CompileError for a conversion that drops the const of what a pointer points to."""
    if loses_const(written, value):
        pointer = pointer_of(cx, value)
        assert pointer is not None
        raise cx.wrong(
            f"a {pointer.type} does not convert to {pointer.to}*: what it points to is const", span
        )
