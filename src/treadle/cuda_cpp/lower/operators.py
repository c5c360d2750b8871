"""Operators on numbers, pointers and objects: built-in ones, and operator functions of the file."""

from __future__ import annotations

import math
from dataclasses import replace

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded, minus, plus
from treadle.cuda_cpp.lower.choices import choose, for_each_choice
from treadle.cuda_cpp.lower.context import ChosenOperator, Context, LowerAgain
from treadle.cuda_cpp.lower.conversions import (
    OBJECTS,
    as_base,
    common_type,
    condition,
    convert,
    derives,
    explicit_cast,
    integer,
    is_lvalue,
    is_not_null,
    number,
    number_as,
    promoted,
    rvalue,
    underlying,
)
from treadle.cuda_cpp.lower.copy_initialization import check_copy
from treadle.cuda_cpp.lower.objects import (
    copy_object,
    load,
    member,
    part_of,
    refuse_const,
    store,
    subscript,
)
from treadle.cuda_cpp.lower.pointer_comparisons import difference, ordered, same_place
from treadle.cuda_cpp.lower.pointers import (
    ZERO,
    address,
    as_index,
    demand_address,
    in_steps_of,
    known_targets,
    moved,
    note_memory,
    pointer_of,
)
from treadle.cuda_cpp.lower.slots import flows, store_slot, targets_of_key
from treadle.cuda_cpp.lower.special_members import (
    TABLE,
    acts,
    lack_of_assignment,
    lifetime_of,
    moves_members,
)
from treadle.cuda_cpp.lower.values import (
    Address,
    ArrayValue,
    Category,
    ChoiceLvalue,
    ChosenPointer,
    ChosenText,
    ItemTarget,
    Lvalue,
    MemoryTarget,
    Null,
    NullTarget,
    ObjectAddress,
    ObjectTarget,
    ParameterPointer,
    PointerValue,
    PointerVariable,
    Rvalue,
    ScatteredLvalue,
    SplitArray,
    SplitStruct,
    Target,
    Text,
    Value,
    describe,
    is_in_parts,
    with_category,
)
from treadle.cuda_cpp.semantics.types import (
    BFLOAT16,
    BOOL,
    HALF,
    INT,
    LONG,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    FunctionOf,
    MemberPointer,
    Pointer,
    Reference,
    VectorType,
    Void,
    all_fields,
    holds_array,
    holds_pointer,
    holds_pointer_union,
    innermost,
    ir_type,
)
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of

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
        amount = cast(b, type.scalar)
        made = n.Binary(_SHIFTS[op], number_as(a, type, span), amount, type.scalar, span)
        return Rvalue(made, type)
    type = common_type(left_type, right_type)
    a, b = number_as(a, type, span), number_as(b, type, span)
    if op in _COMPARISONS:
        return Rvalue(compared(_COMPARISONS[op], a, b, span), BOOL)
    if type.scalar.is_float and op in ("%", "&", "|", "^"):
        raise cx.wrong(f"operator {op} takes integers, not {type}: use fmod for remainders", span)
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


def assign_pointer(
    cx: Context, variable: PointerVariable, pointer: PointerValue, span: Span
) -> None:
    """Assign to a pointer variable."""
    facts = cx.lowering.facts
    known = facts.targets.setdefault(variable.key, [])
    targets = known_targets(cx, pointer.targets)
    facts.given.setdefault(variable.key, []).extend(targets)
    for target in targets:
        if target not in known:
            known.append(target)
            facts.changed = True
    aligned = in_steps_of(cx, pointer, variable.unit)
    if aligned is None:  # it may be misaligned: the next run uses smaller units
        facts.units[variable.key] = math.gcd(pointer.unit, variable.unit)
        raise LowerAgain
    offset = aligned.offset
    if offset.type == ir.I64 and variable.offset.type == ir.I32:
        facts.wide.add(variable.key)
        facts.changed = True
        offset = cast(offset, ir.I32)
    assert isinstance(variable.offset.type, ir.Scalar)
    new_offset = cast(offset, variable.offset.type)
    if variable.tag is not None:
        tag = _tag_in(variable, pointer, span)
        kept = cx.copied(new_offset)
        cx.emit(n.Assign(variable.tag, tag, span))
        cx.emit(n.Assign(variable.offset, kept, span))
    else:
        cx.emit(n.Assign(variable.offset, new_offset, span))


def _tag_in(variable: PointerVariable, pointer: PointerValue, span: Span) -> n.Expression:
    """The tag of a pointer's target among the targets of a variable."""
    places = [_place_of(variable, target) for target in pointer.targets]
    if pointer.tag is None:
        return constant(places[0], ir.I32, span)
    if places == list(range(len(places))):
        return pointer.tag
    result: n.Expression = constant(places[-1], ir.I32, span)
    for number_, place in reversed(list(enumerate(places[:-1]))):
        test = n.Binary("eq", pointer.tag, constant(number_, ir.I32), ir.BOOL, span)
        result = n.Select(test, constant(place, ir.I32), result, ir.I32, span)
    return result


def _place_of(variable: PointerVariable, target: Target) -> int:
    return variable.targets.index(target) if target in variable.targets else 0


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


def stepped(cx: Context, op: str, operand: Value, postfix: bool, span: Span) -> Value:
    """`++x`, `--x`, `x++` and `x--`."""
    in_memory = isinstance(operand, (Lvalue, ChoiceLvalue)) and isinstance(operand.type, Pointer)
    if in_memory or isinstance(operand, (PointerVariable, ParameterPointer, ChosenPointer)):
        pointer = pointer_of(cx, operand)
        assert pointer is not None
        if postfix:
            kept = cx.copied(pointer.offset)
            tag = None if pointer.tag is None else cx.copied(pointer.tag)
            pointer = PointerValue(pointer.targets, kept, pointer.unit, pointer.to, tag)
        by = constant(1 if op == "++" else -1, ir.I32)
        initialize(cx, operand, moved(cx, pointer, by, span), span)
        return pointer if postfix else operand
    if is_object_of_class(operand):
        arguments: list[Value] = [operand]
        if postfix:
            arguments.append(Rvalue(constant(0, ir.I32), INT))
        made = cx.rules.call_operator(cx, op, arguments, span)
        if made is not None:
            return made
    demand_address(cx, operand)
    if not isinstance(operand, OBJECTS):
        raise cx.unfit(f"{op} takes a variable, not {describe(operand)}", operand, span)
    read = load(cx, operand, span)
    type = underlying(read.type)
    if type is None:
        raise cx.wrong(f"{op} takes a number or pointer, not {describe(operand)}", span)
    if isinstance(read.type, EnumType):
        raise cx.wrong(
            f"{op} takes a number or pointer, not the enum {read.type}: write "
            f"x = {read.type}(x {op[0]} 1), or declare operator{op} for it",
            span,
        )
    old = cx.copied(read.expression) if postfix else read.expression
    wide = promoted(type)
    one = constant(1, wide.scalar)
    new = n.Binary(
        "add" if op == "++" else "sub", number_as(old, wide, span), one, wide.scalar, span
    )
    store(cx, operand, number_as(new, type, span), span)
    return Rvalue(old, read.type) if postfix else operand


# --- assignment ----------------------------------------------------------------------------------


def assign(cx: Context, op: str, target: Value, value: Value, span: Span) -> Value:
    """`target = value` and compound assignments."""
    chosen = operator_of_assignment(cx, op, target, value, span)
    if chosen is not None:
        made: Value = chosen.call(cx, [target, value], span)
        return made
    if op != "=":
        value = binary(cx, op[:-1], target, value, span)
        if isinstance(target, OBJECTS) and isinstance(value, Rvalue):
            value = _back(cx, value, target, span)
    type = getattr(target, "type", None)
    if op == "=":
        check_copy(cx, value, type, span)
    if isinstance(type, ClassType) and op == "=":
        _refuse_unassignable(cx, type, value, span)
    if isinstance(type, ClassType) and op == "=" and lifetime_of(type).assigns:
        converted = convert(cx, value, type, span)
        same = getattr(converted, "type", None) == type
        if isinstance(target, (*OBJECTS, SplitStruct)) and same:
            _assign_members(cx, target, converted, type, span)
            return target
    return _store(cx, target, value, span)


def _refuse_unassignable(cx: Context, type: ClassType, value: Value, span: Span) -> None:
    """CompileError for an assignment that is deleted implicitly."""
    same = getattr(value, "type", None) == type
    if reason := lack_of_assignment(type, same and is_lvalue(value)):
        raise cx.amiss(f"an object of {type} cannot be assigned to: {reason}", span, type)


def _assign_members(cx: Context, target: Value, value: Value, type: ClassType, span: Span) -> None:
    """The assignment that a class has without an operator= of its own: of bases and members."""
    if type.is_union:
        _store(cx, target, value, span)
        return
    moved = getattr(value, "category", "lvalue") != "lvalue" and moves_members(type, "assignment")
    category: Category = "xvalue" if moved else "lvalue"
    for base in type.bases:
        one, other = (as_base(cx, each, base, span) for each in (target, value))
        assign(cx, "=", one, with_category(other, category), span)
    for field in type.fields:
        if field.name == TABLE:
            continue
        one, other = (part_of(cx, each, field, span) for each in (target, value))
        _assign_member(cx, one, other, field.type, category, span)


def _assign_member(
    cx: Context, one: Value, other: Value, type: CppType, category: Category, span: Span
) -> None:
    if not isinstance(type, ArrayOf):
        assign(cx, "=", one, with_category(other, category), span)
    elif lifetime_of(type).assigns:
        for at in range(type.length or 0):
            index = constant(at, ir.I32)
            item, new = (subscript(cx, each, index, span) for each in (one, other))
            _assign_member(cx, item, new, type.element, category, span)
    else:
        _assign_part(cx, one, other, span)


def operator_of_assignment(
    cx: Context, op: str, target: Value, value: Value, span: Span
) -> ChosenOperator | None:
    """The operator function that an assignment calls; None for the built-in operator."""
    of_class = isinstance(getattr(target, "type", None), ClassType)
    if not of_class and (op == "=" or not is_object_of_class(target)):
        return None
    return cx.rules.chosen_operator(cx, op, [target, value], span, members_only=op == "=")


def initialize(cx: Context, target: Value, value: Value, span: Span) -> Value:
    """Initialize a place: no `operator=` is called, but the copy constructor of a class."""
    type = getattr(target, "type", None)
    if isinstance(type, ClassType) and acts(type):
        converted = convert(cx, value, type, span)
        if getattr(converted, "type", None) == type:
            cx.rules.copy_into(cx, target, converted, type, span)
            return target
    return _store(cx, target, value, span)


def put(cx: Context, target: Value, value: Value, type: CppType, span: Span) -> None:
    """Copy an object as its bytes."""
    if isinstance(target, (Lvalue, ChoiceLvalue, ScatteredLvalue)) and holds_pointer(type):
        keep(cx, target, value, span)
        return
    if isinstance(type, (ArrayOf, ClassType)) and not isinstance(target, SplitStruct):
        copy_object(cx, target, value, type, span)
    else:
        _assign_part(cx, target, value, span)


def _store(cx: Context, target: Value, value: Value, span: Span) -> Value:
    if isinstance(target, (PointerVariable, ParameterPointer, ChosenPointer)):
        converted = cx.rules.text_pointer(cx, convert(cx, value, target.type, span), span)
        pointer = pointer_of(cx, converted)
        if pointer is None:
            demand_address(cx, converted)
            raise cx.unfit(f"{describe(value)} is not a pointer to {target.to}", value, span)
        _point(cx, target, pointer, span)
        return target
    if isinstance(target, SplitStruct):
        return _assign_fields(cx, target, value, span)
    if isinstance(target, (Lvalue, ChoiceLvalue, ScatteredLvalue)) and holds_pointer(target.type):
        return keep(cx, target, value, span)
    if not isinstance(target, OBJECTS):
        demand_address(cx, target)
        cure = ": copy its elements" if isinstance(target, ArrayValue) else ""
        raise cx.unfit(f"{describe(target)} cannot be assigned to{cure}", target, span)
    converted = convert(cx, value, target.type, span)
    if holds_array(target.type):
        copy_object(cx, target, converted, target.type, span)
    else:
        store(cx, target, rvalue(cx, converted, span).expression, span)
    return target


def keep(
    cx: Context, target: Lvalue | ChoiceLvalue | ScatteredLvalue, value: Value, span: Span
) -> Value:
    """Assign to a pointer in memory, or to a struct with pointers there."""
    refuse_const(cx, target, span)
    if isinstance(target.type, ClassType) and target.type.is_union:
        _keep_union(cx, target, convert(cx, value, target.type, span), span)
        return target
    if isinstance(target, ChoiceLvalue):
        kept = convert(cx, value, target.type, span)
        for_each_choice(cx, target.tag, target.choices, lambda one: keep(cx, one, kept, span), span)
        return target
    if isinstance(target.type, Pointer):
        assert isinstance(target, Lvalue)  # pointers are aligned
        converted = cx.rules.text_pointer(cx, convert(cx, value, target.type, span), span)
        pointer = pointer_of(cx, converted)
        if pointer is None:
            demand_address(cx, converted)
            raise cx.unfit(f"{describe(value)} is not a pointer to {target.type.to}", value, span)
        store_slot(cx, target.place, _to_memory(cx, pointer, span), span)
        return target
    assert isinstance(target.type, ClassType)
    source = convert(cx, value, target.type, span)
    for one in all_fields(target.type):
        part = member(cx, target, one.name, one.type, span)
        if isinstance(source, SplitStruct):
            given = source.fields[one.name]
        else:
            given = member(cx, source, one.name, one.type, span)
        _assign_part(cx, part, given, span)
    return target


def _keep_union(cx: Context, target: Value, source: Value, span: Span) -> None:
    """Copy the bytes of a union, which may be those of a pointer."""
    if isinstance(source, ChoiceLvalue):
        for_each_choice(
            cx,
            source.tag,
            source.choices,
            lambda one: _keep_union(cx, target, one, span),
            span,
        )
        return
    assert isinstance(target, Lvalue), "unions are in memory"
    copy_object(cx, target, source, target.type, span)
    if isinstance(source, Lvalue):
        come, to = root_of(source.place), root_of(target.place)
        if isinstance(come, n.Element) and isinstance(to, n.Element):
            flows(cx, (to.memory, ()), targets_of_key(cx, (come.memory, ())))


def _to_memory(cx: Context, pointer: PointerValue, span: Span) -> PointerValue:
    """A pointer in bytes whose targets are memories. Objects that have none get one."""
    first = pointer.targets[0]
    if len(pointer.targets) == 1 and isinstance(first, (ObjectTarget, ItemTarget)):
        found = address(cx, Lvalue(first.place, pointer.to), span)
        if not isinstance(found.targets[0], MemoryTarget):
            if note_memory(cx, first.place):
                return PointerValue((NullTarget(),), ZERO, 1, pointer.to, const=pointer.const)
            raise cx.error("the address of this object cannot be kept in memory", span)
        start, further = in_steps_of(cx, found, 1), in_steps_of(cx, pointer, 1)
        assert start is not None
        assert further is not None
        return replace(start, offset=plus(start.offset, further.offset))
    made = in_steps_of(cx, pointer, 1)
    assert made is not None
    return made


def _back(cx: Context, value: Rvalue, target: Value, span: Span) -> Rvalue:
    """The result of a compound assignment, converted to the target's type."""
    type = getattr(target, "type", value.type)
    if isinstance(type, Arithmetic) and isinstance(value.type, Arithmetic):
        return Rvalue(number_as(value.expression, type, span), type)
    return value


def _point(
    cx: Context,
    target: PointerVariable | ParameterPointer | ChosenPointer,
    pointer: PointerValue,
    span: Span,
) -> None:
    """Assign to a pointer variable or member."""
    if isinstance(target, PointerVariable):
        if target.fixed:
            raise cx.wrong("this pointer is const, so it cannot be assigned to", span)
        assign_pointer(cx, target, pointer, span)
        if target.key in cx.lowering.literals and target.key not in cx.lowering.facts.assigned:
            cx.lowering.facts.assigned.add(target.key)
            raise LowerAgain
        return
    if isinstance(target, ParameterPointer):
        cx.lowering.facts.assigned.add(target.key)
        raise LowerAgain
    choices = list(enumerate(target.items))
    choose(cx, target.place, choices, lambda one: assign(cx, "=", one, pointer, span), span)


def _assign_fields(cx: Context, target: SplitStruct, value: Value, span: Span) -> Value:
    value = convert(cx, value, target.type, span)
    whole = isinstance(value, (Rvalue, *OBJECTS)) and not holds_pointer(target.type)
    if whole and getattr(value, "type", None) == target.type:  # a base of an object in parts
        for one in all_fields(target.type):
            _assign_part(cx, target.fields[one.name], part_of(cx, value, one, span), span)
        return target
    if not isinstance(value, SplitStruct) or value.type != target.type:
        alike = str(getattr(value, "type", "")) == str(target.type)
        message = f"{describe(value)} does not convert to {target.type}"
        raise (cx.error if alike else cx.wrong)(message, span)
    references = {one.name for one in all_fields(target.type) if isinstance(one.type, Reference)}
    for name, part in target.fields.items():
        if name in references:
            if part is not None and part != value.fields[name]:
                raise cx.error(f"{target.type} has the reference {name}: it is not assigned", span)
            target.fields[name] = value.fields[name]
            continue
        _assign_part(cx, part, value.fields[name], span)
    return target


def _assign_part(cx: Context, target: Value, value: Value, span: Span) -> None:
    """Assign a member of a struct, which may be an array, from that of another one."""
    if isinstance(target, SplitArray) and isinstance(value, SplitArray):
        for one, other in zip(target.items, value.items, strict=True):
            _assign_part(cx, one, other, span)
    elif isinstance(target, ArrayValue) and holds_pointer(target.type):
        for at in range(target.type.length or 0):
            index = constant(at, ir.I32)
            _assign_part(
                cx, subscript(cx, target, index, span), subscript(cx, value, index, span), span
            )
    elif isinstance(target, ArrayValue):
        copy_object(cx, target, value, target.type, span)
    elif isinstance(target, (Lvalue, ChoiceLvalue)) and holds_pointer_union(target.type):
        keep(cx, target, value, span)
    else:
        _store(cx, target, value, span)  # an operator= is not called: this may initialize
