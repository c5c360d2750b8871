"""The typing rules of kernels, as tables and small functions shared by lowering and interpreter.

An operand is a type, or a literal: a Python number that has no type of its own yet and takes the
other operand's. Two types give the one that holds every value of the other. If neither does (i32
with u32), it is an error that asks for a cast.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from treadle.core.dtypes import BY_SHORT_NAME, cast_number
from treadle.core.errors import DtypeError
from treadle.ir.types import BOOL, F32, F64, I32, I64, U32, U64, Scalar

Number: TypeAlias = bool | int | float


@dataclass(frozen=True, slots=True)
class Literal:
    """A number without a type: a literal in the source, or a constant captured from outside."""

    value: Number

    def __str__(self) -> str:
        return repr(self.value)


Operand: TypeAlias = Scalar | Literal

# The largest n for which each float type holds all integers from 0 to n exactly.
_MANTISSA = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
_EXPONENT = {"f16": 5, "bf16": 8, "f32": 8, "f64": 11}


MOST_BITS = 1024
"""The most bits of a constant integer: more than any float can hold."""


def too_wide(value: object) -> bool:
    """Whether a number is an integer with too many bits for constant folding."""
    return isinstance(value, int) and value.bit_length() > MOST_BITS


def fits(value: int, type: Scalar) -> bool:
    """Whether an integer type holds `value`."""
    if type.kind == "uint":
        return 0 <= value < 1 << type.bits
    return -(1 << (type.bits - 1)) <= value < 1 << (type.bits - 1)


def holds(type: Scalar, other: Scalar) -> bool:
    """Whether `type` counts as holding every value of `other`.

    Floats count as holding every integer type, so that an index can be multiplied by a float.
    """
    if type == other or other == BOOL:
        return True
    if type.is_float:
        if not other.is_float:
            return True
        return (
            _MANTISSA[type.name] >= _MANTISSA[other.name]
            and _EXPONENT[type.name] >= _EXPONENT[other.name]
        )
    if not type.is_integer or other.is_float:
        return False
    if type.kind == other.kind:
        return type.bits > other.bits
    return type.kind == "int" and type.bits > other.bits


def default_type(value: Number) -> Scalar:
    """The type of a literal without another operand."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, float):
        return F32
    if not fits(value, I32):
        wanted = [type for type in (I64, U32, U64) if fits(value, type)][:2]
        ways = " or ".join(f"td.{type}({value})" for type in wanted) or f"{round_to(value, F64)!r}"
        raise DtypeError(f"{value} does not fit i32, the type of an integer literal: write {ways}")
    return I32


def literal_type(value: Number, other: Scalar) -> Scalar:
    """The type that a literal takes with an operand of type `other`."""
    if isinstance(value, bool):
        return BOOL if other == BOOL else other
    if isinstance(value, float):
        return other if other.is_float else F32
    if other == BOOL:
        return I32
    if other.is_integer and not fits(value, other):
        raise DtypeError(
            f"{value} does not fit {other}, the type of the other operand: cast one of the two, "
            f"as in td.{other}({value}), which wraps"
        )
    return other


def common_type(left: Operand, right: Operand) -> Scalar:
    """The common type of two operands. DtypeError if there is none without a cast."""
    if isinstance(left, Literal) and isinstance(right, Literal):
        first, second = default_type(left.value), default_type(right.value)
        return first if holds(first, second) else second
    if isinstance(left, Literal):
        assert isinstance(right, Scalar)
        return _wider(literal_type(left.value, right), right)
    if isinstance(right, Literal):
        return _wider(left, literal_type(right.value, left))
    return _wider(left, right)


def _wider(left: Scalar, right: Scalar) -> Scalar:
    if holds(left, right):
        return left
    if holds(right, left):
        return right
    raise DtypeError(
        f"{left} and {right} do not mix: neither holds every value of the other. "
        f"Cast one of them, as in td.{left}(…)"
    )


def arithmetic_type(op: str, left: Operand, right: Operand) -> Scalar:
    """The type in which `+ - * / // %` compute, which is that of the result."""
    common = common_type(left, right)
    if common == BOOL:
        common = I32
    if op == "/" and not common.is_float:
        return F32
    return common


def bitwise_type(op: str, left: Operand, right: Operand) -> Scalar:
    """The type of `& | ^`: integers, or two bools."""
    common = common_type(left, right)
    if common.is_float:
        raise DtypeError(
            f"{op} works on integers and bools, not on {common}: join conditions with and, or "
            f"({op} binds tighter than comparisons); td.bitcast(x, td.u32) gives the bits of an f32"
        )
    return common


def shift_type(op: str, left: Operand, right: Operand) -> Scalar:
    """The type of `<< >>`: the left operand's."""
    for operand in (left, right):
        if isinstance(operand, Literal):
            bad = isinstance(operand.value, float)
        else:
            bad = operand.is_float
        if bad:
            raise DtypeError(f"{op} works on integers, not on {operand}")
    if isinstance(left, Literal):
        if isinstance(right, Scalar) and right.is_integer:
            return literal_type(left.value, right)
        return default_type(int(left.value))
    return I32 if left == BOOL else left


_BEYOND_FLOATS = (1 << 1024) - (1 << 970)  # the least integer that rounds to infinity in f64


def round_to(value: Number, type: Scalar) -> Number:
    """A Python number rounded, or wrapped, to `type`."""
    if type.is_float and isinstance(value, int) and abs(value) >= _BEYOND_FLOATS:
        return inf if value > 0 else -inf
    result: Number = cast_number(value, BY_SHORT_NAME[type.name]).item()
    return float(result) if type.is_float else result


def index_problem(type: Operand) -> str | None:
    """Why an operand can't index an array, or None if it can."""
    if isinstance(type, Literal):
        if isinstance(type.value, float):
            return f"an index is an integer, not the float {type.value}: write td.i32(…) or //"
        if type.value > (1 << 63) - 1:
            return f"index {type.value} is too large for any array"
        if type.value < 0:
            return (
                f"index {type.value} is negative, and indices do not wrap around: "
                "write x.size - 1 for the last element"
            )
        return None
    if type.is_float:
        return f"an index is an integer, not {type}: write td.i32(…), or // instead of /"
    if type == BOOL:
        return "an index is an integer, not bool: write td.i32(…)"
    return None
