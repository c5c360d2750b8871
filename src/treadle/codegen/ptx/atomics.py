"""Atomic updates, relaxed: they do not order accesses to other places.

PTX lacks the minimum and maximum of floats. Those are a loop of compare-and-swap. Local memory,
which only one thread reaches, is updated by plain instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.codegen.ptx import memory
from treadle.codegen.ptx.arithmetic import binary, select, unary
from treadle.codegen.ptx.casts import from_stored, to_stored
from treadle.codegen.ptx.emitter import Emitter, when
from treadle.codegen.ptx.intrinsics import intrinsic
from treadle.codegen.ptx.memory import Address
from treadle.codegen.ptx.spelling import KINDS, REGISTERS, ZEROS
from treadle.codegen.ptx.values import Value
from treadle.ir.types import F16, Scalar

_BITWISE = frozenset({"and", "or", "xor", "exchange", "cas"})
_NAMES = {"exchange": "exch", "sub": "add"}
_HALVES_SINCE = (70, (6, 3))
_REDUCES = frozenset({"add", "min", "max", "and", "or", "xor"})  # `red` has these


def is_native(op: str, type: Scalar, space: str) -> bool:
    """Whether one instruction does it."""
    if type.bits == 16:  # the others exchange the bits
        return space != "local" and type == F16 and op in ("add", "sub")
    return space != "local" and not (type.is_float and op in ("min", "max"))


def atomic(
    e: Emitter,
    op: str,
    type: Scalar,
    address: Address,
    operands: Sequence[str],
    wanted: bool,
    predicate: str = "",
) -> str:
    """Update the scalar at an address, if a predicate holds; its old value (else zero), if that is
    wanted."""
    space, kind = address.storage.space, REGISTERS[type.name]
    if space == "local":
        return _plain(e, op, type, address, operands)
    if type.bits == 16:
        e.module.has(*_HALVES_SINCE)
    if not is_native(op, type, space):
        return _loop(e, op, type, address, operands)
    if op == "sub":
        operands = [unary(e, "neg", type, operands[0])]
    name, computed = _NAMES.get(op, op), _type_of(op, type)
    guard = when(predicate) if predicate else ""
    place = memory.operand(e, address)
    if not wanted and name in _REDUCES:
        e.do(f"red.{space}.{name}.{computed}", place, *operands, guard=guard)
        return ""
    result = e.register(kind)
    if predicate:
        e.move(kind, result, ZEROS[kind])
    e.ops([result], f"atom.{space}.{name}.{computed}", place, *operands, guard=guard)
    return result


def _type_of(op: str, type: Scalar) -> str:
    """The type in an atomic instruction's name."""
    if op in _BITWISE:
        return f"b{type.bits}"
    if op in ("add", "sub") and type.is_integer:
        return f"u{type.bits}"
    if type == F16:
        return "noftz.f16"
    return KINDS[type.name]


def _updated(e: Emitter, op: str, type: Scalar, old: str, operands: Sequence[str]) -> str:
    """What a place holds after an update."""
    if op == "exchange":
        return operands[0]
    if op in ("min", "max"):
        return intrinsic(e, op, type, (old, operands[0]))
    if op == "inc":
        less = e.op("pred", "setp.lt.u32", old, operands[0])
        return select(e, type, less, e.op("b32", "add.u32", old, "1"), "0")
    if op == "dec":  # 0 wraps around to more than any operand
        return e.op("b32", "min.u32", e.op("b32", "sub.u32", old, "1"), operands[0])
    return binary(e, op, type, old, operands[0])


def _plain(e: Emitter, op: str, type: Scalar, address: Address, operands: Sequence[str]) -> str:
    (old,) = memory.load(e, address, type).leaves
    if op == "cas":
        bits = (_bits(e, type, operand) for operand in (old, operands[0]))
        equal = e.op("pred", f"setp.eq.u{type.bits}", *bits)
        new = select(e, type, equal, operands[1], old)
    else:
        new = _updated(e, op, type, old, operands)
    memory.store(e, address, type, Value((new,)))
    return old


def _bits(e: Emitter, type: Scalar, value: str) -> str:
    if not type.is_float:
        return value
    return e.op(f"b{type.bits}", f"mov.b{type.bits}", value)


def _loop(e: Emitter, op: str, type: Scalar, address: Address, operands: Sequence[str]) -> str:
    """Try until the place has not changed in the meantime."""
    bits, place = f"b{type.bits}", memory.operand(e, address)
    if op == "cas":
        given = [_to_bits(e, type, operand) for operand in operands]
        old = e.op(bits, f"atom.{address.storage.space}.cas.{bits}", place, *given)
        return _from_bits(e, type, old)
    old = e.op(bits, f"ld.{address.storage.space}.u{type.bits}", place)
    expected = e.register(bits)
    again = e.new_label("retry")
    e.place(again)
    e.move(bits, expected, old)
    new = _to_bits(e, type, _updated(e, op, type, _from_bits(e, type, expected), operands))
    e.ops([old], f"atom.{address.storage.space}.cas.{bits}", place, expected, new)
    e.jump(again, when(e.op("pred", f"setp.ne.u{type.bits}", old, expected)))
    return _from_bits(e, type, old)


def _to_bits(e: Emitter, type: Scalar, value: str) -> str:
    """A value as a register of its bits."""
    if type.bits > 16:
        return _bits(e, type, value)
    stored = to_stored(e, type, value)
    return stored if type == F16 else e.op("b16", "cvt.u16.u32", stored)


def _from_bits(e: Emitter, type: Scalar, bits: str) -> str:
    if type.bits > 16:
        return e.op(REGISTERS[type.name], f"mov.b{type.bits}", bits)
    if type == F16:
        return e.op("b16", "mov.b16", bits)
    return from_stored(e, type, e.op("b32", "cvt.u32.u16", bits))
