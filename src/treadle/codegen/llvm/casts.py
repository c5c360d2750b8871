"""Casts and bit casts between scalar types, or that many lanes of them."""

from __future__ import annotations

from treadle.codegen.llvm import bfloat
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.spelling import constant, stored_type, value_type, widened
from treadle.ir.types import BF16, BOOL, F16, F32, F64, Scalar


def cast(e: Emitter, source: Scalar, target: Scalar, a: str, width: int) -> str:
    """`a` of one type as another: float to integer truncates and saturates, NaN becomes 0."""
    if source == target:
        return a
    if target == BOOL:
        test = "fcmp une" if source.is_float else "icmp ne"
        return e.op(f"{test} {value_type(source, width)} {a}, {constant(source, 0, width)}")
    if source.is_float:
        convert = _float_to_float if target.is_float else _float_to_integer
        return convert(e, source, target, a, width)
    if target.is_float:
        return _integer_to_float(e, source, target, a, width)
    return _integer_to_integer(e, source, target, a, width)


def _integer_to_integer(e: Emitter, source: Scalar, target: Scalar, a: str, width: int) -> str:
    bits = 1 if source == BOOL else source.bits
    if bits == target.bits:
        return a
    op = "trunc" if bits > target.bits else "sext" if source.kind == "int" else "zext"
    return e.op(f"{op} {value_type(source, width)} {a} to {value_type(target, width)}")


def _integer_to_float(e: Emitter, source: Scalar, target: Scalar, a: str, width: int) -> str:
    llvm, signed = value_type(source, width), source.kind == "int"
    op = "sitofp" if signed else "uitofp"
    if target == BF16 and source.bits >= 32:
        odd = bfloat.odd_from_integer(e, a, source.bits, signed, width)
        return bfloat.rounded(e, odd, width)
    if target == F64:
        return e.op(f"{op} {llvm} {a} to {widened('double', width)}")
    # For f16: an integer that a float has to round is beyond f16's range anyway.
    single = e.op(f"{op} {llvm} {a} to {widened('float', width)}")
    return _float_to_float(e, F32, target, single, width)


def _float_to_integer(e: Emitter, source: Scalar, target: Scalar, a: str, width: int) -> str:
    """Truncated; clamped to the type's range; 0 for NaN.

    LLVM's saturating conversion says the same, but machines have none for vectors.
    """
    wide = F64 if source == F64 else F32
    a = _float_to_float(e, source, wide, a, width)
    floats, integers = value_type(wide, width), value_type(target, width)
    bit, signed = widened("i1", width), target.is_signed
    digits = target.bits - signed
    zero = constant(wide, 0.0, width)
    beyond = constant(wide, 2.0**digits, width)
    # What lies above -1 truncates to 0, what lies between two integers to the inner one.
    above, lowest = ("oge", -(2.0**digits)) if signed else ("ogt", -1.0)
    not_low = e.op(f"fcmp {above} {floats} {a}, {constant(wide, lowest, width)}")
    high = e.op(f"fcmp oge {floats} {a}, {beyond}")
    not_high = e.op(f"fcmp olt {floats} {a}, {beyond}")
    inside = e.op(f"and {bit} {not_low}, {not_high}")
    safe = e.op(f"select {bit} {inside}, {floats} {a}, {floats} {zero}")
    result = e.op(f"fpto{'s' if signed else 'u'}i {floats} {safe} to {integers}")
    largest = constant(target, (1 << digits) - 1, width)
    result = e.op(f"select {bit} {high}, {integers} {largest}, {integers} {result}")
    if not signed:
        return result
    low = e.op(f"fcmp olt {floats} {a}, {constant(wide, lowest, width)}")
    least = constant(target, -(1 << digits), width)
    return e.op(f"select {bit} {low}, {integers} {least}, {integers} {result}")


def _float_to_float(e: Emitter, source: Scalar, target: Scalar, a: str, width: int) -> str:
    if source == target or (source == BF16 and target == F32):
        return a
    if source == F64:
        if target == F32:
            return e.op(f"fptrunc {widened('double', width)} {a} to {widened('float', width)}")
        a = bfloat.odd_single(e, a, width)
    elif source == F16:
        a = e.op(f"fpext {widened('half', width)} {a} to {widened('float', width)}")
    # Here `a` is a float.
    if target == F64:
        return e.op(f"fpext {widened('float', width)} {a} to {widened('double', width)}")
    if target == F16:
        return e.op(f"fptrunc {widened('float', width)} {a} to {widened('half', width)}")
    return bfloat.rounded(e, a, width) if target == BF16 else a


def bitcast(e: Emitter, source: Scalar, target: Scalar, a: str, width: int) -> str:
    """The bits of `a` as another type of the same size."""
    return from_stored(e, target, to_stored(e, source, a, width), stored_type(source), width)


def to_stored(e: Emitter, type: Scalar, a: str, width: int) -> str:
    """A value as it lies in memory."""
    if type == BF16:
        return bfloat.to_bits(e, a, width)
    if type == BOOL:
        return e.op(f"zext {widened('i1', width)} {a} to {widened('i8', width)}")
    return a


def from_stored(e: Emitter, type: Scalar, a: str, stored: str, width: int) -> str:
    """What lies in memory, read as the LLVM element type `stored`, as a value of `type`."""
    wanted = stored_type(type)
    if stored != wanted:
        a = e.op(f"bitcast {widened(stored, width)} {a} to {widened(wanted, width)}")
    if type == BF16:
        return bfloat.from_bits(e, a, width)
    if type == BOOL:
        return e.op(f"icmp ne {widened('i8', width)} {a}, {_zero_byte(width)}")
    return a


def _zero_byte(width: int) -> str:
    """A zero of i8."""
    return "0" if width == 1 else "zeroinitializer"
