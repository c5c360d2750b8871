"""`atom` and `red`: one thread after the other, so that every old value is somebody's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.ptx_machine.arithmetic import Array, maximum, minimum
from tests.support.ptx_machine.memory import Spaces
from tests.support.ptx_machine.records import Instruction, PtxError
from tests.support.ptx_machine.types import PtxType

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda old, new, _: old + new,
    "min": lambda old, new, _: min(old, new),
    "max": lambda old, new, _: max(old, new),
    "and": lambda old, new, _: old & new,
    "or": lambda old, new, _: old | new,
    "xor": lambda old, new, _: old ^ new,
    "exch": lambda old, new, _: new,
    "cas": lambda old, expected, new: new if old == expected else old,
    "inc": lambda old, most, _: 0 if old >= most else old + 1,
    "dec": lambda old, most, _: most if old == 0 or old > most else old - 1,
}
_KINDS = {
    "add": ("u32", "s32", "u64", "f16", "f32", "f64"), "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"), "and": ("b32", "b64"), "or": ("b32", "b64"),
    "xor": ("b32", "b64"), "exch": ("b32", "b64"), "cas": ("b16", "b32", "b64"), "inc": ("u32",),
    "dec": ("u32",),
}  # fmt: skip


def check_kind(operation: str, type: PtxType) -> None:
    """PtxError for what hardware has no atomic for."""
    if operation not in _KINDS or type.name not in _KINDS[operation]:
        raise PtxError(f"there is no atomic .{operation}.{type.name}")


def atomic(
    spaces: Spaces,
    space: str,
    operation: str,
    type: PtxType,
    address: Array,
    operands: list[Array],
    threads: Array,
    rows: Array,
    one: Instruction,
) -> Array:
    """The old values, in the type's stored dtype. `operands` have its computed dtype."""
    old = np.zeros(len(threads), type.stored)
    for views, which, offsets in spaces.locate(space, address, threads, rows, type.bytes, one):
        view = views[type.bytes].view(type.computed)
        some = [operand[which] if np.ndim(operand) else operand for operand in operands]
        old[which] = _in_turn(view, offsets >> (type.bytes.bit_length() - 1), operation, type, some)
    return old


def _in_turn(
    view: Array, places: Array, operation: str, type: PtxType, operands: list[Array]
) -> Array:
    distinct = np.unique(places)
    if type.is_float or len(distinct) == len(places):
        # Sums of floats are rounded by NumPy, and minima of one operand each are quick.
        return _vectors(view, places, operation, operands)
    function = _OPERATIONS[operation]
    limit = 1 << type.bits
    lists = [np.broadcast_to(operand, len(places)).tolist() for operand in operands]
    lists += [[0] * len(places)] * (2 - len(lists))
    values = dict(zip(distinct.tolist(), view[distinct].tolist(), strict=True))
    old = []
    for place, first, second in zip(places.tolist(), *lists, strict=True):
        before = values[place]
        old.append(before)
        after = function(before, first, second)
        if not type.lowest <= after <= type.highest:
            after = (after - type.lowest) % limit + type.lowest
        values[place] = after
    view[distinct] = np.array([values[place] for place in distinct.tolist()], view.dtype)
    return np.array(old, view.dtype).view(type.stored)


def _vectors(view: Array, places: Array, operation: str, operands: list[Array]) -> Array:
    """In rounds: in each, all the places get one thread's turn."""
    stored = f"u{view.dtype.itemsize}" if view.dtype.itemsize == 2 else view.dtype
    result = np.zeros(len(places), view.dtype)
    waiting = np.arange(len(places))
    while len(waiting):
        distinct, first = np.unique(places[waiting], return_index=True)
        turn = waiting[first]
        before = view[distinct]
        some = [operand[turn] if np.ndim(operand) else operand for operand in operands]
        view[distinct] = _round(operation, before, some)
        result[turn] = before
        waiting = np.delete(waiting, first)
    if view.dtype.kind == "i":
        return result.view(f"u{view.dtype.itemsize}")
    return result.view(stored)


def _round(operation: str, before: Array, operands: list[Array]) -> Array:
    first = operands[0]
    match operation:
        case "add":
            return before + first
        case "min":
            return minimum(before, first) if before.dtype.kind == "f" else np.minimum(before, first)
        case "max":
            return maximum(before, first) if before.dtype.kind == "f" else np.maximum(before, first)
        case "and":
            return before & first
        case "or":
            return before | first
        case "xor":
            return before ^ first
        case "exch":
            return first
        case "cas":
            return np.where(before == first, operands[1], before)
        case "inc":
            return np.where(before >= first, 0, before + before.dtype.type(1))
    return np.where((before == 0) | (before > first), first, before - before.dtype.type(1))
