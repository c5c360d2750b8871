"""What operations give, exactly: the numbers of the target, computed in Python.

Values are Python's: bool, int within the type's range, float already rounded to the type. Sums,
products, quotients and square roots of narrow floats are computed in double precision and rounded
once more, which gives the correctly rounded result (a double has more than twice their digits).
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from fractions import Fraction

from treadle.ir.types import F32, Scalar

Value = bool | int | float

_INFINITY = math.inf


# --- fitting a number into a type ----------------------------------------------------------------


def wrap(value: int, type: Scalar) -> int:
    """An integer reduced to the width of `type`."""
    value &= (1 << type.bits) - 1
    if type.kind == "int" and value >> (type.bits - 1):
        value -= 1 << type.bits
    return value


def lowest(type: Scalar) -> int:
    """The least value of an integer type."""
    return -(1 << (type.bits - 1)) if type.kind == "int" else 0


def highest(type: Scalar) -> int:
    """The greatest value of an integer type."""
    return (1 << (type.bits - (type.kind == "int"))) - 1


def round_float(value: float, type: Scalar) -> float:
    """A double rounded to a float type, ties to even."""
    if type.bits == 64:
        return value
    if type.bits == 32:
        return ctypes.c_float(value).value
    return _round_half(value) if type.name == "f16" else _round_bfloat(value)


def _round_half(value: float) -> float:
    try:
        return float(struct.unpack("<e", struct.pack("<e", value))[0])
    except OverflowError:
        return math.copysign(_INFINITY, value)


def _round_bfloat(value: float) -> float:
    single = ctypes.c_float(value).value
    if math.isnan(single) or math.isinf(single) or single == 0:
        return single
    (bits,) = struct.unpack("<I", struct.pack("<f", single))
    # Rounding twice can go wrong only from a false tie: lean away from it (round to odd first).
    if single != value and not bits & 1:
        bits += 1 if abs(single) < abs(value) else -1
    return _bfloat_from_bits((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)


def _bfloat_from_bits(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])


def round_exact(value: Fraction, type: Scalar) -> float:
    """A rational number rounded once to a float type."""
    try:
        near = value.numerator / value.denominator  # correctly rounded
    except OverflowError:
        return _INFINITY if value > 0 else -_INFINITY
    if type.bits == 64 or near == value:
        return round_float(near, type)
    # Round to odd in double precision: the second rounding then sees which side the value lay on.
    (bits,) = struct.unpack("<q", struct.pack("<d", near))
    if not bits & 1:
        near = math.nextafter(near, _INFINITY if value > near else -_INFINITY)
    return round_float(near, type)


# --- casts ---------------------------------------------------------------------------------------


def cast(value: Value, source: Scalar, target: Scalar) -> Value:
    """`value` of type `source` as `target`: integers wrap, floats saturate into integers."""
    if target.kind == "bool":
        return value != 0
    if target.kind == "float":
        if source.kind == "float":
            return round_float(value, target)
        return round_exact(Fraction(int(value)), target)
    if source.kind != "float":
        return wrap(int(value), target)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return highest(target) if value > 0 else lowest(target)
    return min(max(math.trunc(value), lowest(target)), highest(target))


_BIT_FORMATS = {8: "B", 16: "H", 32: "I", 64: "Q"}
_VALUE_FORMATS = {
    "bool": "B", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I",
    "i64": "q", "u64": "Q", "f16": "e", "f32": "f", "f64": "d",
}  # fmt: skip


def to_bits(value: Value, type: Scalar) -> int:
    """The bits of a value, as an unsigned integer."""
    if type.name == "bf16":
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        return int(bits) >> 16
    packed = struct.pack("<" + _VALUE_FORMATS[type.name], value)
    return int(struct.unpack("<" + _BIT_FORMATS[type.bits], packed)[0])


def from_bits(bits: int, type: Scalar) -> Value:
    """The value with these bits."""
    if type.name == "bf16":
        return _bfloat_from_bits(bits)
    if type.kind == "bool":
        return bits != 0
    packed = struct.pack("<" + _BIT_FORMATS[type.bits], bits)
    value: Value = struct.unpack("<" + _VALUE_FORMATS[type.name], packed)[0]
    return value


def bitcast(value: Value, source: Scalar, target: Scalar) -> Value:
    """The value of `target` that has the bits of `value`; both types have one size."""
    return from_bits(to_bits(value, source), target)


# --- unary and binary ----------------------------------------------------------------------------


def unary(op: str, value: Value, type: Scalar) -> Value:
    """`neg`, `not` or `invert` of a value."""
    if op == "not":
        return not value
    if op == "invert":
        return wrap(~int(value), type)
    return -value if type.is_float else wrap(-int(value), type)


def binary(op: str, left: Value, right: Value, type: Scalar) -> Value:
    """A binary operation on two values of `type`."""
    comparison = COMPARE.get(op)
    if comparison is not None:
        return comparison(left, right)
    if op == "logical_and":
        return bool(left and right)
    if op == "logical_or":
        return bool(left or right)
    if type.kind == "float":
        if op == "floordiv":
            return round_float(_floor_divide(left, right, type), type)
        return round_float(_FLOAT[op](left, right), type)
    if type.kind == "bool":
        return bool(_INTEGER[op](int(left), int(right), 1))
    return wrap(_INTEGER[op](int(left), int(right), type.bits), type)


COMPARE: dict[str, Callable[[Value, Value], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _truncated_quotient(a: int, b: int, bits: int) -> int:
    quotient = abs(a) // abs(b) if b else 0
    return quotient if (a < 0) == (b < 0) else -quotient


def _truncated_remainder(a: int, b: int, bits: int) -> int:
    return int(math.copysign(1, a)) * (abs(a) % abs(b)) if b else 0


# The last operand is the width of the type.
_INTEGER: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, bits: a + b,
    "sub": lambda a, b, bits: a - b,
    "mul": lambda a, b, bits: a * b,
    "div": _truncated_quotient,
    "rem": _truncated_remainder,
    "floordiv": lambda a, b, bits: a // b if b else 0,
    "mod": lambda a, b, bits: a % b if b else 0,
    "and": lambda a, b, bits: a & b,
    "or": lambda a, b, bits: a | b,
    "xor": lambda a, b, bits: a ^ b,
    "shl": lambda a, b, bits: a << b if 0 <= b < bits else 0,
    "shr": lambda a, b, bits: a >> b if 0 <= b < bits else -(a < 0),
}


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    if math.isnan(a) or math.isnan(b) or a == 0:
        return math.nan
    return math.copysign(_INFINITY, a) * math.copysign(1.0, b)


def _fmod(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return math.nan
    return math.fmod(a, b)


def _modulo(a: float, b: float) -> float:
    """The remainder with the sign of the divisor."""
    remainder = _fmod(a, b)
    if remainder == 0:
        return math.copysign(0.0, b)
    return remainder + b if (remainder < 0) != (b < 0) else remainder


def _floor_divide(a: float, b: float, type: Scalar) -> float:
    """The quotient that goes with `_modulo`, in NumPy's steps (in single precision for halves)."""
    type = F32 if type.bits == 16 else type
    if b == 0:
        return _divide(a, b)
    remainder = _fmod(a, b)
    quotient = round_float(_divide(round_float(a - remainder, type), b), type)
    if remainder and (remainder < 0) != (b < 0):
        quotient = round_float(quotient - 1.0, type)
    if quotient == 0:
        return math.copysign(0.0, _divide(a, b))
    if not math.isfinite(quotient):
        return quotient
    floor = float(math.floor(quotient))
    return floor + 1.0 if quotient - floor > 0.5 else floor


_FLOAT: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "rem": _fmod,
    "mod": _modulo,
}


# --- intrinsics ----------------------------------------------------------------------------------


def intrinsic(op: str, operands: tuple[Value, ...], type: Scalar) -> Value | None:
    """An intrinsic on values of `type`; None for approximate ones, which have several."""
    if type.kind == "float":
        float_operation = _FLOAT_INTRINSICS.get(op)
        if float_operation is None:
            return None
        result = float_operation(*operands)
        return result if isinstance(result, bool) else _round_result(result, type)
    operation = _INTEGER_INTRINSICS.get(op)
    if operation is None:
        return None
    result = operation(type, *operands)
    return result if op in ("popcount", "clz", "ctz") else wrap(result, type)


def _round_result(value: float | Fraction, type: Scalar) -> float:
    return round_exact(value, type) if isinstance(value, Fraction) else round_float(value, type)


def _extreme(choose_right: Callable[[float, float], bool]) -> Callable[[float, float], float]:
    def choose(a: float, b: float) -> float:
        if math.isnan(a) or math.isnan(b):
            return math.nan
        if a == b == 0:  # the negative zero is the lesser
            return b if choose_right(math.copysign(1.0, a), math.copysign(1.0, b)) else a
        return b if choose_right(a, b) else a

    return choose


def _fused_multiply_add(a: float, b: float, c: float) -> float | Fraction:
    if math.isfinite(a) and math.isfinite(b) and math.isfinite(c):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        return exact if exact else a * b + c  # a zero keeps the sign that the sum gives it
    return a * b + c


def _rint(a: float) -> float:
    return math.copysign(float(round(a)), a) if math.isfinite(a) else a


def _rounded(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda a: math.copysign(float(function(a)), a) if math.isfinite(a) else a


_FLOAT_INTRINSICS: dict[str, Callable[..., float | Fraction | bool]] = {
    "abs": lambda a: math.copysign(a, 1.0),
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else (math.nan if a < 0 else a),
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "trunc": _rounded(math.trunc),
    "rint": _rint,
    "fma": _fused_multiply_add,
    "min": _extreme(lambda a, b: b < a),
    "max": _extreme(lambda a, b: b > a),
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
    "signbit": lambda a: math.copysign(1.0, a) < 0,
    "has_near_functions": lambda a: False,
}


def _unsigned(value: int, type: Scalar) -> int:
    return value & ((1 << type.bits) - 1)


def _trailing_zeros(type: Scalar, value: int) -> int:
    return (value & -value).bit_length() - 1 if value else type.bits


def _bytes(word: int) -> list[int]:
    return [word >> shift & 255 for shift in (0, 8, 16, 24)]


def _signed_bytes(word: int) -> list[int]:
    return [(byte ^ 128) - 128 for byte in _bytes(word)]


def _dot4(left: list[int], right: list[int], sum: int) -> int:
    for a, b in zip(left, right, strict=True):
        sum += a * b
    return sum


_INTEGER_INTRINSICS: dict[str, Callable[..., int]] = {
    "abs": lambda type, a: abs(a),
    "min": lambda type, a, b: min(a, b),
    "max": lambda type, a, b: max(a, b),
    "popcount": lambda type, a: _unsigned(a, type).bit_count(),
    "clz": lambda type, a: type.bits - _unsigned(a, type).bit_length(),
    "ctz": _trailing_zeros,
    "reverse_bits": lambda type, a: int(f"{_unsigned(a, type):0{type.bits}b}"[::-1], 2),
    "mul_high": lambda type, a, b: (a * b) >> type.bits,
    "dot4_i8": lambda type, a, b, c: _dot4(_signed_bytes(a), _signed_bytes(b), c),
    "dot4_u8": lambda type, a, b, c: _dot4(_bytes(a), _bytes(b), c),
    "dot4_u8i8": lambda type, a, b, c: _dot4(_bytes(a), _signed_bytes(b), c),
}
