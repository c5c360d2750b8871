"""Operators on numbers, pointers and objects: built-in ones, and operator functions of the file."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded, minus, plus
from treadle.cuda_cpp.lower.casts import (
    explicit_cast,
)
from treadle.cuda_cpp.lower.checked_operations import checked_amount, checked_divisor
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import (
    common_type,
    condition,
    convert,
    integer,
    is_not_null,
    number,
    number_as,
    promoted,
    rvalue,
)
from treadle.cuda_cpp.lower.pointer_comparisons import difference, ordered, same_place
from treadle.cuda_cpp.lower.pointers import (
    as_index,
    demand_address,
    moved,
    pointer_of,
)
from treadle.cuda_cpp.lower.values import (
    Address,
    ChosenText,
    FunctionSet,
    Null,
    ObjectAddress,
    PointerValue,
    Rvalue,
    SplitArray,
    Text,
    Value,
    describe,
    is_in_parts,
)
from treadle.cuda_cpp.semantics.bases import derives
from treadle.cuda_cpp.semantics.types import (
    BFLOAT16,
    BOOL,
    HALF,
    LONG,
    Arithmetic,
    ClassType,
    EnumType,
    FunctionOf,
    MemberPointer,
    VectorType,
    Void,
    innermost,
    ir_type,
)
from treadle.ir import nodes as n
from treadle.ir import types as ir

_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem"}
_BITWISE = {"&": "and", "|": "or", "^": "xor"}
_SHIFTS = {"<<": "shl", ">>": "shr"}
_COMPARISONS = {"<": "lt", ">": "gt", "<=": "le", ">=": "ge", "==": "eq", "!=": "ne"}
_REWRITTEN = frozenset((*_COMPARISONS, "<=>"))
_SYMBOLS = {**_ARITHMETIC, **_BITWISE, **_SHIFTS, **_COMPARISONS}


def is_object_of_class(value: Value) -> bool:
    """Whether an operator function of the file may take a value."""
    return isinstance(getattr(value, "type", None), (ClassType, VectorType, EnumType))


def binary(
    cx: Context, op: str, left: Value, right: Value, span: Span, overloaded: bool = True
) -> Value:
    """`left op right` for every operator but assignment, `&&`, `||` and the comma. Operator
    functions are looked up unless the caller did that."""
    if is_object_of_class(left) or is_object_of_class(right):
        made = cx.rules.call_operator(cx, op, [left, right], span) if overloaded else None
        if made is None and op in _REWRITTEN and (_is_class(left) or _is_class(right)):
            made = cx.rules.rewritten(cx, op, left, right, span)
        if made is not None:
            return made
        given = [left, right]
        left, right = _as_number(cx, left, span), _as_number(cx, right, span)
        if _is_class(left) or _is_class(right):
            cause = left if _is_class(left) else right
            raise cx.unfit(cx.rules.no_operator(cx, op, given, span), cause, span)
        if op in _COMPARISONS:
            left, right = _of_one_enum(cx, left, right, span)
    if op == "<=>":
        return cx.rules.three_way(cx, left, right, span)
    if isinstance(left, (Text, ChosenText)) or isinstance(right, (Text, ChosenText)):
        left, right = (cx.rules.text_pointer(cx, each, span) for each in (left, right))
    if not _is_null(left) and not _is_null(right):
        for each in (left, right):
            if isinstance(each, (SplitArray, ObjectAddress)):
                demand_address(cx, each)
    if _is_member_pointer(left) or _is_member_pointer(right):
        return _on_member_pointers(cx, op, left, right, span)
    one, other = pointer_of(cx, left), pointer_of(cx, right)
    if one is not None or other is not None or isinstance(left, Null) or isinstance(right, Null):
        return _on_pointers(cx, op, left, right, one, other, span)
    if _is_vector(left) or _is_vector(right):
        return _on_vectors(cx, op, left, right, span)
    return numbers(cx, op, left, right, span)


def _is_class(value: Value) -> bool:
    return isinstance(getattr(value, "type", None), ClassType)


def _as_number(cx: Context, value: Value, span: Span) -> Value:
    """An object whose class converts to a number, converted; other values as they are."""
    if _is_class(value):
        return cx.rules.call_conversion(cx, value, None, False, span) or value
    return value


def _of_one_enum(cx: Context, left: Value, right: Value, span: Span) -> tuple[Value, Value]:
    """Two values of one scoped enum as numbers, for comparisons."""
    type = getattr(left, "type", None)
    if not isinstance(type, EnumType) or type != getattr(right, "type", None):
        return left, right
    number_type = type.underlying
    return (
        explicit_cast(cx, left, number_type, "static", span),
        explicit_cast(cx, right, number_type, "static", span),
    )


def _is_member_pointer(value: Value) -> bool:
    return isinstance(getattr(value, "type", None), MemberPointer)


def _on_member_pointers(cx: Context, op: str, left: Value, right: Value, span: Span) -> Value:
    """`==` and `!=`, one of which converts to the type of the other."""
    if op not in ("==", "!="):
        raise cx.wrong(f"operator {op} does not take pointers to members", span)
    types = [getattr(one, "type", None) for one in (left, right)]
    wanted = [one for one in types if isinstance(one, MemberPointer)]
    type = wanted[0]
    if any(cx.rules.to_member_pointer(cx, one, type, span) is None for one in (left, right)):
        type = wanted[-1]
    a, b = (rvalue(cx, convert(cx, each, type, span), span).expression for each in (left, right))
    return Rvalue(folded(n.Binary(_COMPARISONS[op], a, b, ir.BOOL, span)), BOOL)


def _is_vector(value: Value) -> bool:
    return isinstance(getattr(value, "type", None), VectorType)


def _on_vectors(cx: Context, op: str, left: Value, right: Value, span: Span) -> Value:
    """Operators on CUDA's vectors, which are built in only for half2 and bfloat162."""
    a, b = rvalue(cx, left, span), rvalue(cx, right, span)
    type = a.type
    halves = isinstance(type, VectorType) and type.element in (HALF, BFLOAT16)
    if halves and a.type == b.type and op in _ARITHMETIC and op != "%":
        made = n.Binary(_ARITHMETIC[op], a.expression, b.expression, ir_type(type), span)
        return Rvalue(made, type)
    raise cx.wrong(
        f"there is no operator {op} for {a.type} and {b.type}: CUDA's vectors have no built-in "
        "ones (helper_math.h of CUDA's samples declares them)",
        span,
    )


def numbers(cx: Context, op: str, left: Value, right: Value, span: Span) -> Rvalue:
    """A built-in operator on two numbers."""
    a, left_type = number(cx, left, span)
    b, right_type = number(cx, right, span)
    if op in _SHIFTS:
        type = promoted(left_type)
        if type.scalar.is_float or right_type.scalar.is_float:
            raise cx.wrong(
                f"operator {op} takes integers, not {left_type} and {right_type}: multiply by a "
                "power of two, or cast",
                span,
            )
        amount = cast(checked_amount(cx, b, type, span), type.scalar)
        made = n.Binary(_SHIFTS[op], number_as(a, type, span), amount, type.scalar, span)
        return Rvalue(made, type)
    type = common_type(left_type, right_type)
    a, b = number_as(a, type, span), number_as(b, type, span)
    if op in _COMPARISONS:
        return Rvalue(compared(_COMPARISONS[op], a, b, span), BOOL)
    if type.scalar.is_float and op in ("%", "&", "|", "^"):
        ways = {"%": ": use fmod for remainders", "^": ": powers are pow(x, y), or x * x"}
        raise cx.wrong(f"operator {op} takes integers, not {type}{ways.get(op, '')}", span)
    if op in ("/", "%"):
        b = checked_divisor(cx, b, type, span)
    name = _ARITHMETIC.get(op) or _BITWISE[op]
    a, b = _lower_half(left, op, a, b), _lower_half(right, op, b, a)
    made = n.Binary(name, a, b, type.scalar, span)
    return _further_address(left, right, op, made, type, span) or Rvalue(made, type)


def _lower_half(value: Value, op: str, whole: n.Expression, other: n.Expression) -> n.Expression:
    """An operand; the lower half of an address if the upper one does not matter, so that a test of
    alignment needs no integers of 64 bits."""
    if not isinstance(value, Address) or value.low is None or not isinstance(other, n.Constant):
        return whole
    mask = int(other.value)
    unsigned = isinstance(whole.type, ir.Scalar) and not whole.type.is_signed
    small = 0 < mask < 1 << 31
    if small and (op == "&" or (op == "%" and unsigned and mask & (mask - 1) == 0)):
        return cast(value.low, whole.type) if isinstance(whole.type, ir.Scalar) else whole
    return whole


def _further_address(
    left: Value, right: Value, op: str, made: n.Binary, type: Arithmetic, span: Span
) -> Address | None:
    """The sum of an address and a number; None for other results."""
    b = made.right
    if op == "+" and isinstance(right, Address) and not isinstance(left, Address):
        left, right, b = right, left, made.left
    if op not in ("+", "-") or not isinstance(left, Address) or isinstance(right, Address):
        return None
    pointer = left.pointer
    assert pointer is not None
    assert left.low is not None
    low = n.Binary(_ARITHMETIC[op], cast(left.low, type.scalar), b, type.scalar, span)
    step = cast(b, pointer.offset.type if isinstance(pointer.offset.type, ir.Scalar) else ir.I32)
    further = plus(pointer.offset, step) if op == "+" else minus(pointer.offset, step)
    return Address(made, type, pointer=replace(pointer, offset=further), low=low)


def compared(op: str, left: n.Expression, right: n.Expression, span: Span) -> n.Expression:
    """A comparison; thread indices are compared as signed numbers, as they are in the IR."""
    if left.type == ir.U32:
        one, other = _small(left), _small(right)
        if one is not None and other is not None:
            left, right = one, other
    return n.Binary(op, left, right, ir.BOOL, span)


def _small(value: n.Expression) -> n.Expression | None:
    """An unsigned value as i32, if it is known to have the same value."""
    if isinstance(value, n.Cast) and isinstance(value.operand, n.Builtin):
        return value.operand
    if isinstance(value, n.Constant) and int(value.value) < 1 << 31:
        return constant(int(value.value), ir.I32, value.span)
    return None


# --- pointers ------------------------------------------------------------------------------------


def _on_pointers(
    cx: Context,
    op: str,
    left: Value,
    right: Value,
    one: PointerValue | None,
    other: PointerValue | None,
    span: Span,
) -> Value:
    if op in ("+", "-") and one is not None and other is None:
        return _plus_number(cx, one, right, op, span)
    if op == "+" and other is not None and one is None:
        return _plus_number(cx, other, left, op, span)
    if one is not None and other is not None and (op == "-" or op in _COMPARISONS):
        _refuse_unlike(cx, op, one, other, span)
    if op == "-" and one is not None and other is not None:
        return Rvalue(difference(cx, one, other, span), LONG)
    if op in _COMPARISONS:
        return Rvalue(_compare_pointers(cx, op, left, right, one, other, span), BOOL)
    message = f"operator {op} does not take {describe(left)} and {describe(right)}"
    raise cx.unfit(message, right if is_in_parts(right) else left, span)


def _refuse_unlike(
    cx: Context, op: str, one: PointerValue, other: PointerValue, span: Span
) -> None:
    """CompileError for pointers to different types, but for comparisons with `void *` or of a base
    with a derived class."""
    first, second = innermost(one.to), innermost(other.to)
    if first == second:
        return
    if op != "-" and (
        isinstance(first, (Void, FunctionOf))
        or isinstance(second, (Void, FunctionOf))
        or derives(first, second)
        or derives(second, first)
    ):
        return
    verb = "subtracted" if op == "-" else "compared"
    raise cx.wrong(
        f"pointers of the types {one.type} and {other.type} cannot be {verb}: cast one of them",
        span,
    )


def _plus_number(
    cx: Context, pointer: PointerValue, by: Value, op: str, span: Span
) -> PointerValue:
    index = as_index(cx, integer(cx, by, "a pointer moves by an integer", span))
    if op == "-":
        index = _negated(index)
    return moved(cx, pointer, index, span)


def _negated(index: n.Expression) -> n.Expression:
    if isinstance(index, n.Constant):
        assert isinstance(index.type, ir.Scalar)
        return constant(-int(index.value), index.type, index.span)
    return n.Unary("neg", index, index.type, index.span)


def _compare_pointers(
    cx: Context,
    op: str,
    left: Value,
    right: Value,
    one: PointerValue | None,
    other: PointerValue | None,
    span: Span,
) -> n.Expression:
    if isinstance(left, ObjectAddress) or isinstance(right, ObjectAddress):
        if not (_is_null(left) or _is_null(right)) or op not in ("==", "!="):
            raise cx.wrong(f"{describe(left)} and {describe(right)} cannot be compared", span)
        return n.Constant(op == "!=", ir.BOOL, span)
    if isinstance(left, FunctionSet) and other is not None and isinstance(other.to, FunctionOf):
        one = cx.rules.function_pointer(cx, left, other.to, span)
    if isinstance(right, FunctionSet) and one is not None and isinstance(one.to, FunctionOf):
        other = cx.rules.function_pointer(cx, right, one.to, span)
    if one is None or other is None:
        null_on_other_side = _is_null(left) or _is_null(right)
        if not null_on_other_side or op not in ("==", "!="):
            raise cx.wrong(f"{describe(left)} and {describe(right)} cannot be compared", span)
        exists = is_not_null(cx, one or other, span)
        return exists if op == "!=" else folded(n.Unary("not", exists, ir.BOOL, span))
    if op in ("==", "!="):
        equal = same_place(cx, one, other, span)
        return equal if op == "==" else folded(n.Unary("not", equal, ir.BOOL, span))
    return ordered(cx, _COMPARISONS[op], one, other, span)


def _is_null(value: Value) -> bool:
    return isinstance(value, Null) or (isinstance(value, Rvalue) and value.literal_zero)


# --- unary ---------------------------------------------------------------------------------------


def unary(cx: Context, op: str, operand: Value, span: Span) -> Value:
    """The unary operators `+ - ! ~`."""
    if is_object_of_class(operand):
        made = cx.rules.call_operator(cx, op, [operand], span)
        if made is not None:
            return made
        if op != "!" and _is_class(_as_number(cx, operand, span)):
            raise cx.unfit(cx.rules.no_operator(cx, op, [operand], span), operand, span)
    if op == "+" and (pointer := pointer_of(cx, operand)) is not None:
        return pointer
    if op == "!":
        return Rvalue(n.Unary("not", condition(cx, operand, span), ir.BOOL, span), BOOL)
    if _is_vector(operand) and op == "-":
        read = rvalue(cx, operand, span)
        return Rvalue(n.Unary("neg", read.expression, read.expression.type, span), read.type)
    value, type = number(cx, operand, span)
    type = promoted(type)
    value = number_as(value, type, span)
    if op == "+":
        return Rvalue(value, type)
    if op == "~":
        if type.scalar.is_float:
            raise cx.wrong(f"operator ~ takes integers, not {type}", span)
        return Rvalue(n.Unary("invert", value, type.scalar, span), type)
    if isinstance(value, n.Constant):
        return Rvalue(constant(-value.value, type.scalar, span), type)
    return Rvalue(n.Unary("neg", value, type.scalar, span), type)
