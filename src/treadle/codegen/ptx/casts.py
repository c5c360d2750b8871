"""Casts and bit casts between scalar types, and between registers and memory."""

from __future__ import annotations

from treadle.codegen.ptx.emitter import Emitter
from treadle.codegen.ptx.spelling import KINDS, REGISTERS, constant, is_literal
from treadle.ir.types import BF16, BOOL, F16, F32, F64, Scalar


def cast(e: Emitter, source: Scalar, target: Scalar, a: str) -> str:
    """`a` of one type as another: float to integer truncates and saturates, NaN becomes 0."""
    if source == target:
        return a
    if target == BOOL:
        return _to_bool(e, source, a)
    if source == BOOL:
        kind = REGISTERS[target.name]
        return e.op(kind, f"selp.{kind}", constant(target, 1), constant(target, 0), a)
    if source.is_float:
        convert = _float_to_float if target.is_float else _float_to_integer
        return convert(e, source, target, a)
    if target.is_float:
        return _integer_to_float(e, source, target, a)
    return _integer_to_integer(e, source, target, a)


def _to_bool(e: Emitter, source: Scalar, a: str) -> str:
    if source == F16:
        source, a = F32, cast(e, F16, F32, a)
    test = "neu" if source.is_float else "ne"
    return e.op("pred", f"setp.{test}.{KINDS[source.name]}", a, constant(source, 0))


# --- integers -------------------------------------------------------------------------------------


def wrapped(e: Emitter, type: Scalar, a: str) -> str:
    """The result of an operation in 32 or 64 bits, reduced to its type's width."""
    if type.bits >= 32:
        return a
    return e.op("b32", f"cvt.{KINDS[type.name]}.{_narrow_kind(type)}", a)


def _narrow_kind(type: Scalar) -> str:
    return f"{'s' if type.is_signed else 'u'}{type.bits}"


def _integer_to_integer(e: Emitter, source: Scalar, target: Scalar, a: str) -> str:
    if is_literal(a):
        low = -(1 << target.bits - 1) if target.is_signed else 0
        return str((int(a) - low) % (1 << target.bits) + low)
    if target.bits == 64:
        if source.bits == 64:
            return a
        sign = "s" if source.is_signed else "u"
        return e.op("b64", f"cvt.{sign}64.{sign}32", a)
    if source.bits == 64:
        a = e.op("b32", "cvt.u32.u64", a)
        return wrapped(e, target, a)
    # In a register of 32 bits a number is right already if it fits the type for certain.
    fits = target.bits == 32 or (
        target.bits > source.bits and (target.is_signed or not source.is_signed)
    )
    return a if fits else wrapped(e, target, a)


# --- floats to integers, and back -----------------------------------------------------------------


def _float_to_integer(e: Emitter, source: Scalar, target: Scalar, a: str) -> str:
    """Truncated. PTX saturates; what it makes of NaN depends on the types."""
    if source.bits == 16:
        source, a = F32, cast(e, source, F32, a)
    register, kind = REGISTERS[target.name], KINDS[target.name]
    result = e.op(register, f"cvt.rzi.{kind}.{KINDS[source.name]}", a)
    if target.bits == 64 or source == F64:
        nan = e.op("pred", f"setp.nan.{KINDS[source.name]}", a, a)
        result = e.op(register, f"selp.{register}", "0", result, nan)
    if target.bits >= 32:
        return result
    high = (1 << target.bits - target.is_signed) - 1
    result = e.op("b32", f"min.{kind}", result, str(high))
    return e.op("b32", f"max.{kind}", result, str(-high - 1)) if target.is_signed else result


def _integer_to_float(e: Emitter, source: Scalar, target: Scalar, a: str) -> str:
    kind = KINDS[source.name]
    if target == BF16:
        if source.bits >= 32:
            return to_bfloat(e, _odd_single(e, source, a))
        return to_bfloat(e, e.op("f32", f"cvt.rn.f32.{kind}", a))
    return e.op(REGISTERS[target.name], f"cvt.rn.{KINDS[target.name]}.{kind}", a)


def _odd_single(e: Emitter, source: Scalar, a: str) -> str:
    """A number as a float32 that is rounded to odd, so that rounding once more is right."""
    register, kind = REGISTERS[source.name], KINDS[source.name]
    single = e.op("f32", f"cvt.rz.f32.{kind}", a)
    back = e.op(register, "cvt.f64.f32" if source == F64 else f"cvt.rzi.{kind}.f32", single)
    test = "neu" if source == F64 else "ne"
    inexact = e.op("pred", f"setp.{test}.{kind}", back, a)
    bits = e.op("b32", "mov.b32", single)
    odd = e.op("b32", "or.b32", bits, "1")
    return e.op("f32", "mov.b32", e.op("b32", "selp.b32", odd, bits, inexact))


def _float_to_float(e: Emitter, source: Scalar, target: Scalar, a: str) -> str:
    if source == BF16:
        if target == F32:
            return a
        source = F32
    if target == BF16:
        if source == F64:
            return to_bfloat(e, _odd_single(e, F64, a))
        return to_bfloat(e, a if source == F32 else cast(e, source, F32, a))
    rounding = ".rn" if target.bits < source.bits else ""
    opcode = f"cvt{rounding}.{KINDS[target.name]}.{KINDS[source.name]}"
    return e.op(REGISTERS[target.name], opcode, a)


def to_bfloat(e: Emitter, a: str) -> str:
    """A float32 rounded to the nearest bfloat16, still held as a float32."""
    if e.module.has(80, (7, 0)):
        half = e.op("b16", "cvt.rn.bf16.f32", a)
        upper = e.op("b32", "shl.b32", e.op("b32", "cvt.u32.u16", half), "16")
        return e.op("f32", "mov.b32", upper)
    bits = e.op("b32", "mov.b32", a)
    last = e.op("b32", "and.b32", e.op("b32", "shr.u32", bits, "16"), "1")
    rounded = e.op("b32", "add.u32", e.op("b32", "add.u32", bits, "32767"), last)
    single = e.op("f32", "mov.b32", e.op("b32", "and.b32", rounded, "-65536"))
    nan = e.op("pred", "setp.nan.f32", a, a)
    return e.op("f32", "selp.f32", "0f7FFF0000", single, nan)


# --- bits -----------------------------------------------------------------------------------------


def bitcast(e: Emitter, source: Scalar, target: Scalar, a: str) -> str:
    """The bits of `a` as another type of the same size."""
    if source == target:
        return a
    if not (source.is_float or target.is_float):
        return _integer_to_integer(e, source, target, a)
    if source.bits >= 32:
        if REGISTERS[source.name] == REGISTERS[target.name]:
            return a
        return e.op(REGISTERS[target.name], f"mov.b{source.bits}", a)
    bits = _half_bits(e, source, a)
    if target.is_float:
        return _half_from_bits(e, target, bits)
    return wrapped(e, target, bits)


def _half_bits(e: Emitter, type: Scalar, a: str) -> str:
    """A 16-bit number's bits in the low half of a register; what is above them is undefined."""
    if type == F16:
        return e.op("b32", "cvt.u32.u16", a)
    if type == BF16:
        return e.op("b32", "shr.u32", e.op("b32", "mov.b32", a), "16")
    return a


def _half_from_bits(e: Emitter, type: Scalar, bits: str) -> str:
    if type == F16:
        return e.op("b16", "cvt.u16.u32", bits)
    return e.op("f32", "mov.b32", e.op("b32", "shl.b32", bits, "16"))


def to_stored(e: Emitter, type: Scalar, a: str) -> str:
    """A value as it lies in memory."""
    if type == BOOL:
        return e.op("b32", "selp.b32", "1", "0", a)
    return _half_bits(e, type, a) if type == BF16 else a


def from_stored(e: Emitter, type: Scalar, a: str) -> str:
    """What lies in memory as a value."""
    if type == BOOL:
        return e.op("pred", "setp.ne.s32", a, "0")
    return _half_from_bits(e, type, a) if type == BF16 else a
