"""Indivisible updates. Order among them is relaxed, as CUDA's is.

A memory that only one thread reaches (shared memory: one thread runs a whole block) needs no
atomic instruction, which would cost twenty times a plain one.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.codegen.llvm import casts
from treadle.codegen.llvm.arithmetic import binary
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.intrinsics import intrinsic
from treadle.codegen.llvm.memory import Storage
from treadle.codegen.llvm.spelling import constant, stored_type, value_type
from treadle.ir.types import BF16, BOOL, Scalar

_FLOAT_UPDATES = {"add": "fadd", "sub": "fsub", "min": "fminimum", "max": "fmaximum"}
_INTEGER_UPDATES = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor"}


def atomic(
    e: Emitter, op: str, type: Scalar, pointer: str, operands: Sequence[str], storage: Storage
) -> str:
    """Update the scalar that `pointer` points to; its old value."""
    if not storage.atomic:
        return _plain(e, op, type, pointer, operands, storage)
    stored = stored_type(type)
    if op == "cas":
        return _compare_and_swap(e, type, pointer, operands)
    value = operands[0]
    align = type.bits // 8
    if op == "exchange":
        value = casts.to_stored(e, type, value, 1)
        old = e.op(f"atomicrmw xchg ptr {pointer}, {stored} {value} monotonic, align {align}")
        return casts.from_stored(e, type, old, stored, 1)
    if type == BF16 or (type == BOOL and op not in _INTEGER_UPDATES):
        return _loop(e, op, type, pointer, value)
    if type.is_float:
        name = _FLOAT_UPDATES[op]
    elif op in _INTEGER_UPDATES:
        name = _INTEGER_UPDATES[op]
    elif op in ("inc", "dec"):
        name = f"u{op}_wrap"
    else:
        name = op if type.is_signed else f"u{op}"
    value = casts.to_stored(e, type, value, 1)
    old = e.op(f"atomicrmw {name} ptr {pointer}, {stored} {value} monotonic, align {align}")
    return casts.from_stored(e, type, old, stored, 1)


def _updated(e: Emitter, op: str, type: Scalar, old: str, operands: Sequence[str]) -> str:
    """What a place holds after an update."""
    if op == "exchange":
        return operands[0]
    if op in ("min", "max"):
        return intrinsic(e, op, type, (old, operands[0]), 1)
    if op == "inc":
        less = e.op(f"icmp ult i32 {old}, {operands[0]}")
        more = e.op(f"add i32 {old}, 1")
        return e.op(f"select i1 {less}, i32 {more}, i32 0")
    if op == "dec":  # 0 wraps around to more than any operand
        fewer = e.op(f"sub i32 {old}, 1")
        return intrinsic(e, "min", type, (fewer, operands[0]), 1)
    return binary(e, op, type, old, operands[0], 1)


def _plain(
    e: Emitter, op: str, type: Scalar, pointer: str, operands: Sequence[str], storage: Storage
) -> str:
    stored, align = stored_type(type), type.bits // 8
    bits = e.op(f"load {stored}, ptr {pointer}, align {align}{storage.marks}")
    old = casts.from_stored(e, type, bits, stored, 1)
    if op == "cas":
        integer = f"i{type.bits}"
        equal = e.op(f"icmp eq {integer} {_bits(e, type, old)}, {_bits(e, type, operands[0])}")
        llvm = value_type(type)
        new = e.op(f"select i1 {equal}, {llvm} {operands[1]}, {llvm} {old}")
    else:
        new = _updated(e, op, type, old, operands)
    new_bits = casts.to_stored(e, type, new, 1)
    e.do(f"store {stored} {new_bits}, ptr {pointer}, align {align}{storage.marks}")
    return old


def _bits(e: Emitter, type: Scalar, value: str) -> str:
    """A value's bits as an integer of its size."""
    stored = stored_type(type)
    value = casts.to_stored(e, type, value, 1)
    return value if stored.startswith("i") else e.op(f"bitcast {stored} {value} to i{type.bits}")


def _from_bits(e: Emitter, type: Scalar, bits: str) -> str:
    return casts.from_stored(e, type, bits, f"i{type.bits}", 1)


def _compare_and_swap(e: Emitter, type: Scalar, pointer: str, operands: Sequence[str]) -> str:
    expected, desired = (_bits(e, type, operand) for operand in operands)
    integer = f"i{type.bits}"
    pair = e.op(
        f"cmpxchg ptr {pointer}, {integer} {expected}, {integer} {desired} monotonic monotonic, "
        f"align {type.bits // 8}"
    )
    return _from_bits(e, type, e.op(f"extractvalue {{ {integer}, i1 }} {pair}, 0"))


def _loop(e: Emitter, op: str, type: Scalar, pointer: str, value: str) -> str:
    """Any update, as a loop of compare-and-swap."""
    integer, align = f"i{type.bits}", type.bits // 8
    again, done = e.new_label(), e.new_label()
    first = e.op(f"load atomic {integer}, ptr {pointer} monotonic, align {align}")
    before = e.current
    e.jump(again)
    e.place(again)
    seen, found = f"%s{again}", f"%f{again}"
    e.do(f"{seen} = phi {integer} [ {first}, %{before} ], [ {found}, %{again} ]")
    old = _from_bits(e, type, seen)
    new = _bits(e, type, _updated(e, op, type, old, (value,)))
    pair = e.op(
        f"cmpxchg ptr {pointer}, {integer} {seen}, {integer} {new} monotonic monotonic, "
        f"align {align}"
    )
    e.do(f"{found} = extractvalue {{ {integer}, i1 }} {pair}, 0")
    swapped = e.op(f"extractvalue {{ {integer}, i1 }} {pair}, 1")
    e.branch(swapped, done, again)
    e.place(done)
    return old


# --- what lanes bring to one place ----------------------------------------------------------------

_FLOAT_REDUCTIONS = {"add": "fadd", "sub": "fadd", "min": "fminimum", "max": "fmaximum"}


def can_reduce(op: str, type: Scalar) -> bool:
    """Whether several updates of one place may be reduced to one update, if no old value is used.
    That reorders the sum of floats, as atomics of several threads do anyway."""
    if type.is_float:
        return op in _FLOAT_REDUCTIONS and type.bits >= 32
    return type.is_integer and op in ("add", "sub", "min", "max", "and", "or", "xor")


def neutral(op: str, type: Scalar) -> int | float:
    """What changes nothing."""
    if op in ("min", "max"):
        sign = 1 if op == "min" else -1
        if type.is_float:
            return sign * float("inf")
        lowest = -(1 << (type.bits - 1)) if type.is_signed else 0
        return (1 << (type.bits - type.is_signed)) - 1 if op == "min" else lowest
    if type.is_float:
        return -0.0
    return -1 if op == "and" else 0


def reduced(e: Emitter, op: str, type: Scalar, operand: str, width: int) -> str:
    """The operands of all lanes as one."""
    llvm, vector = value_type(type), value_type(type, width)
    if type.is_float:
        name = _FLOAT_REDUCTIONS[op]
        if name == "fadd":
            start = (llvm, constant(type, -0.0))
            return e.intrinsic("vector.reduce.fadd", llvm, [start, (vector, operand)], [vector])
        return e.intrinsic(f"vector.reduce.{name}", llvm, [(vector, operand)], [vector])
    name = "add" if op == "sub" else op
    if op in ("min", "max"):
        name = f"{'s' if type.is_signed else 'u'}{op}"
    return e.intrinsic(f"vector.reduce.{name}", llvm, [(vector, operand)], [vector])
