"""Unary and binary operations on scalars, or on that many lanes of them.

Every function appends to an emitter and returns the operand that holds the result. What LLVM
leaves undefined (a zero divisor, a shift by the width) is given the IR's meaning here.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.codegen.llvm import bfloat
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.spelling import constant, value_type, widened
from treadle.ir.types import BF16, F32, F64, Scalar

_FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
_WRAPPING = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_FLOAT_TESTS = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
Rule = Callable[[Emitter, Scalar, str, str, int], str]
DIVISIONS = frozenset({"div", "rem", "floordiv", "mod"})


def is_literal(operand: str) -> bool:
    """Whether an operand is a constant (of one lane or all)."""
    return not operand.startswith("%")


def literal_value(operand: str) -> int | None:
    """The number that an integer constant is (in one lane or all); None for anything else."""
    if operand.startswith("splat ("):
        operand = operand[7:-1].split(" ")[1]
    try:
        return int(operand)
    except ValueError:
        return None


def binary(e: Emitter, op: str, type: Scalar, a: str, b: str, width: int) -> str:
    """An arithmetic or bitwise operation; both operands and the result have one type."""
    if type.is_float:
        return _float_binary(e, op, type, a, b, width)
    if op in _WRAPPING:
        return e.op(f"{_WRAPPING[op]} {value_type(type, width)} {a}, {b}")
    if op in DIVISIONS:
        return divide(e, op, type, a, b, width)
    return _shift(e, op, type, a, b, width)


def compare(e: Emitter, op: str, type: Scalar, a: str, b: str, width: int) -> str:
    """A comparison, giving i1."""
    llvm = value_type(type, width)
    if type.is_float:
        return e.op(f"fcmp {_FLOAT_TESTS[op]} {llvm} {a}, {b}")
    if op in ("eq", "ne"):
        return e.op(f"icmp {op} {llvm} {a}, {b}")
    return e.op(f"icmp {'s' if type.is_signed else 'u'}{op} {llvm} {a}, {b}")


def unary(e: Emitter, op: str, type: Scalar, a: str, width: int) -> str:
    """neg, not (of a bool) or invert (of an integer's bits)."""
    llvm = value_type(type, width)
    if op == "neg":
        if type.is_float:
            return e.op(f"fneg {llvm} {a}")
        return e.op(f"sub {llvm} {constant(type, 0, width)}, {a}")
    return e.op(f"xor {llvm} {a}, {constant(type, -1 if type.is_integer else True, width)}")


def select(e: Emitter, condition: str, llvm: str, a: str, b: str, width: int) -> str:
    """`a` where the condition holds, else `b`. `llvm` is the type of a and b, width included;
    `width` that of the condition."""
    return e.op(f"select {widened('i1', width)} {condition}, {llvm} {a}, {llvm} {b}")


# --- floats ---------------------------------------------------------------------------------------


def _float_binary(e: Emitter, op: str, type: Scalar, a: str, b: str, width: int) -> str:
    if op in ("floordiv", "mod"):
        return _in_single(e, _FLOORED[op], type, a, b, width)
    llvm = value_type(type, width)
    result = e.op(f"{_FLOAT_OPS[op]} {e.float_flags}{llvm} {a}, {b}")
    return bfloat.rounded(e, result, width) if type == BF16 else result


def rounded(e: Emitter, intrinsic: str, type: Scalar, a: str, width: int) -> str:
    """floor, ceil, trunc or rint of a float."""
    if type.name == "f16":
        single = rounded(e, intrinsic, F32, e.op(_extend(a, width)), width)
        return e.op(f"fptrunc {value_type(F32, width)} {single} to {value_type(type, width)}")
    llvm = value_type(type, width)
    return e.intrinsic(intrinsic, llvm, [(llvm, a)], [llvm])


def _extend(a: str, width: int) -> str:
    return f"fpext {widened('half', width)} {a} to {widened('float', width)}"


def _in_single(e: Emitter, rule: Rule, type: Scalar, a: str, b: str, width: int) -> str:
    """A rule for f32 and f64 on any float."""
    if type.bits != 16:
        return rule(e, type, a, b, width)
    if type == BF16:
        return bfloat.rounded(e, rule(e, F32, a, b, width), width)
    single = rule(e, F32, e.op(_extend(a, width)), e.op(_extend(b, width)), width)
    return e.op(f"fptrunc {value_type(F32, width)} {single} to {value_type(type, width)}")


def _remainder(e: Emitter, type: Scalar, a: str, b: str, width: int) -> tuple[str, str, str]:
    """The truncated remainder; whether it is not zero; whether the divisor's sign differs too."""
    llvm, bits = value_type(type, width), widened("i1", width)
    zero = constant(type, 0.0, width)
    remainder = e.op(f"frem {llvm} {a}, {b}")
    not_zero = e.op(f"fcmp une {llvm} {remainder}, {zero}")
    rest_negative = e.op(f"fcmp olt {llvm} {remainder}, {zero}")
    divisor_negative = e.op(f"fcmp olt {llvm} {b}, {zero}")
    differ = e.op(f"xor {bits} {rest_negative}, {divisor_negative}")
    return remainder, not_zero, e.op(f"and {bits} {differ}, {not_zero}")


def _float_modulo(e: Emitter, type: Scalar, a: str, b: str, width: int) -> str:
    """The remainder with the sign of the divisor, a zero too."""
    llvm = value_type(type, width)
    remainder, not_zero, move = _remainder(e, type, a, b, width)
    moved = e.op(f"fadd {llvm} {remainder}, {b}")
    signed_zero = _copysign(e, llvm, constant(type, 0.0, width), b)
    result = select(e, move, llvm, moved, remainder, width)
    return select(e, not_zero, llvm, result, signed_zero, width)


def _float_floor_quotient(e: Emitter, type: Scalar, a: str, b: str, width: int) -> str:
    """The quotient that goes with the remainder above, in NumPy's steps."""
    llvm = value_type(type, width)
    zero, one = constant(type, 0.0, width), constant(type, 1.0, width)
    plain = e.op(f"fdiv {llvm} {a}, {b}")
    remainder, _, move = _remainder(e, type, a, b, width)
    difference = e.op(f"fsub {llvm} {a}, {remainder}")
    quotient = e.op(f"fdiv {llvm} {difference}, {b}")
    lower = e.op(f"fsub {llvm} {quotient}, {one}")
    quotient = select(e, move, llvm, lower, quotient, width)
    floor = e.intrinsic("floor", llvm, [(llvm, quotient)], [llvm])
    above = e.op(f"fsub {llvm} {quotient}, {floor}")
    far = e.op(f"fcmp ogt {llvm} {above}, {constant(type, 0.5, width)}")
    next_floor = e.op(f"fadd {llvm} {floor}, {one}")
    result = select(e, far, llvm, next_floor, floor, width)
    is_zero = e.op(f"fcmp oeq {llvm} {quotient}, {zero}")
    result = select(e, is_zero, llvm, _copysign(e, llvm, zero, plain), result, width)
    by_zero = e.op(f"fcmp oeq {llvm} {b}, {zero}")
    return select(e, by_zero, llvm, plain, result, width)


def _copysign(e: Emitter, llvm: str, size: str, sign: str) -> str:
    return e.intrinsic("copysign", llvm, [(llvm, size), (llvm, sign)], [llvm])


_FLOORED: dict[str, Rule] = {"floordiv": _float_floor_quotient, "mod": _float_modulo}


# --- integers -------------------------------------------------------------------------------------


def _shift(e: Emitter, op: str, type: Scalar, a: str, b: str, width: int) -> str:
    llvm = value_type(type, width)
    known = literal_value(b)
    if known is not None:
        return _shift_by(e, op, type, a, known, width)
    limit = constant(type, type.bits, width)
    if op == "shr" and type.is_signed:
        last = constant(type, type.bits - 1, width)
        amount = e.intrinsic("umin", llvm, [(llvm, b), (llvm, last)], [llvm])
        return e.op(f"ashr {llvm} {a}, {amount}")
    shifted = e.op(f"{'shl' if op == 'shl' else 'lshr'} {llvm} {a}, {b}")
    inside = e.op(f"icmp ult {llvm} {b}, {limit}")
    return select(e, inside, llvm, shifted, constant(type, 0, width), width)


def _shift_by(e: Emitter, op: str, type: Scalar, a: str, amount: int, width: int) -> str:
    """A shift by a number that is known."""
    arithmetic = op == "shr" and type.is_signed
    if not 0 <= amount < type.bits:
        if not arithmetic:
            return constant(type, 0, width)
        amount = type.bits - 1
    name = "shl" if op == "shl" else "ashr" if arithmetic else "lshr"
    return e.op(f"{name} {value_type(type, width)} {a}, {constant(type, amount, width)}")


def divide(
    e: Emitter, op: str, type: Scalar, a: str, b: str, width: int, positive: bool = False
) -> str:
    """A quotient or remainder; a divisor of 0 gives 0, and the lowest number by -1 wraps.
    `positive`: the divisor is known to be."""
    llvm, zero, one = value_type(type, width), constant(type, 0, width), constant(type, 1, width)
    divisor = b
    by_zero = ""
    if b == zero:
        return zero
    if not is_literal(b) and not positive:
        by_zero = e.op(f"icmp eq {llvm} {b}, {zero}")
        divisor = select(e, by_zero, llvm, one, b, width)
    quotient = _quotient(e, type, a, divisor, width)
    if op == "div" or (op == "floordiv" and not type.is_signed):
        return select(e, by_zero, llvm, zero, quotient, width) if by_zero else quotient
    product = e.op(f"mul {llvm} {quotient}, {divisor}")
    remainder = e.op(f"sub {llvm} {a}, {product}")  # 0 where the divisor was 0, as it became 1
    if op == "rem" or not type.is_signed:
        return remainder
    signs = e.op(f"xor {llvm} {remainder}, {divisor}")
    differ = e.op(f"icmp slt {llvm} {signs}, {zero}")
    not_zero = e.op(f"icmp ne {llvm} {remainder}, {zero}")
    move = e.op(f"and {widened('i1', width)} {differ}, {not_zero}")
    if op == "mod":
        amount = select(e, move, llvm, divisor, zero, width)
        return e.op(f"add {llvm} {remainder}, {amount}")
    down = e.op(f"sext {widened('i1', width)} {move} to {llvm}")
    floored = e.op(f"add {llvm} {quotient}, {down}")
    return select(e, by_zero, llvm, zero, floored, width) if by_zero else floored


def _quotient(e: Emitter, type: Scalar, a: str, divisor: str, width: int) -> str:
    """The truncated quotient by a divisor that is not 0; the lowest number by -1 wraps.

    Machines divide vectors of floats and not of integers. Up to 32 bits a double holds both
    operands, and the correctly rounded quotient of two such numbers never reaches the next
    integer from below, so truncating it is exact.
    """
    llvm, signed = value_type(type, width), type.is_signed
    if is_literal(divisor):
        if signed and divisor == constant(type, -1, width):
            return e.op(f"sub {llvm} {constant(type, 0, width)}, {a}")
        return e.op(f"{'sdiv' if signed else 'udiv'} {llvm} {a}, {divisor}")
    if type.bits == 64:
        return _wide_quotient(e, type, a, divisor, width)
    middle = F32 if type.bits <= 16 else F64
    wide, letter = value_type(middle, width), "s" if signed else "u"
    dividend = e.op(f"{letter}itofp {llvm} {a} to {wide}")
    by = e.op(f"{letter}itofp {llvm} {divisor} to {wide}")
    quotient = e.op(f"fdiv {wide} {dividend}, {by}")
    if type.bits == 32:
        if signed:  # the lowest number by -1 would not fit
            limit, lowest = constant(F64, 2.0**31, width), constant(F64, -(2.0**31), width)
            over = e.op(f"fcmp oge {wide} {quotient}, {limit}")
            quotient = select(e, over, wide, lowest, quotient, width)
        return e.op(f"fpto{letter}i {wide} {quotient} to {llvm}")
    through = widened("i32", width)
    integer = e.op(f"fptosi {wide} {quotient} to {through}")
    return e.op(f"trunc {through} {integer} to {llvm}")


def _wide_quotient(e: Emitter, type: Scalar, a: str, divisor: str, width: int) -> str:
    llvm = value_type(type, width)
    if not type.is_signed:
        return e.op(f"udiv {llvm} {a}, {divisor}")
    minus_one = e.op(f"icmp eq {llvm} {divisor}, {constant(type, -1, width)}")
    safe = select(e, minus_one, llvm, constant(type, 1, width), divisor, width)
    quotient = e.op(f"sdiv {llvm} {a}, {safe}")
    negated = e.op(f"sub {llvm} {constant(type, 0, width)}, {quotient}")
    return select(e, minus_one, llvm, negated, quotient, width)
