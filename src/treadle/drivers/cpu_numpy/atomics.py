"""Atomic operations: the threads of a chunk one after the other where they meet at one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.drivers.cpu_numpy.accesses import positions
from treadle.drivers.cpu_numpy.chunks import Affine, Array, Chunk, Value
from treadle.drivers.cpu_numpy.masks import Mask, both
from treadle.drivers.cpu_numpy.numbers import bf16_bits, bf16_of, max_, min_, round_bf16

_UFUNCS = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def _new(op: str, old: Array, operands: list[Array]) -> Value:
    """What a place holds after an operation."""
    value = operands[0]
    match op:
        case "exchange":
            return value
        case "cas":
            return np.where(old == value, operands[1], old)
        case "inc":
            return np.where(old < value, old + old.dtype.type(1), old.dtype.type(0))
        case "dec":
            wraps = (old == 0) | (old > value)
            return np.where(wraps, value, old - old.dtype.type(1))
        case "min":
            return min_(old, value)
        case "max":
            return max_(old, value)
    return _UFUNCS[op](old, value)


def _new_bf16(op: str, old: Array, operands: list[Array]) -> Value:
    values = [bf16_of(operand) for operand in operands]
    if op == "cas":
        return np.where(old == operands[0], operands[1], old)
    return bf16_bits(round_bf16(_new(op, bf16_of(old), values)))


def _atomic(new: Callable[[str, Array, list[Array]], Value], has_ufuncs: bool) -> Any:
    def atomic(
        c: Chunk,
        op: str,
        memory: Array,
        index: Value,
        operands: tuple[Value, ...],
        mask: Mask,
        ok: Mask,
        wanted: bool,
    ) -> Value:
        """Update the places of all threads of a mask; the old values if they are wanted."""
        if ok is not True:
            mask = both(mask, ok) if isinstance(ok, np.ndarray) else ok and mask
        if mask is False:
            return memory.dtype.type(0)
        lanes = c.lanes
        chosen: Any = slice(None) if mask is True else mask
        at = positions(_of_lanes(index, lanes)[chosen])
        values = [_of_lanes(operand, lanes)[chosen] for operand in operands]
        if not wanted:
            if has_ufuncs and op in _UFUNCS:
                _UFUNCS[op].at(memory, at, values[0])
                return None
            if op == "exchange":
                memory[at] = values[0]
                return None
        old = _in_turn(op, memory, at, values, new)
        result = np.zeros(lanes, memory.dtype)
        result[chosen] = old
        return result

    return atomic


def _in_turn(
    op: str,
    memory: Array,
    at: Array,
    values: list[Array],
    new: Callable[[str, Array, list[Array]], Value],
) -> Array:
    """Update the places in the order of threads; the value that each found."""
    order = np.argsort(at, kind="stable")
    places = at[order]
    begins = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1])))
    counts = np.diff(np.append(begins, places.size))
    old = np.empty(at.size, memory.dtype)
    if op in ("add", "sub") and memory.dtype.kind in "iu" and new is _new:
        added = values[0][order] if op == "add" else (-values[0][order]).astype(memory.dtype)
        before = np.cumsum(added, dtype=memory.dtype) - added
        before -= np.repeat(before[begins], counts)
        found = memory[places] + before
        last = begins + counts - 1
        memory[places[last]] = found[last] + added[last]
        old[order] = found
        return old
    for turn in range(int(counts.max())):
        lanes = order[begins[counts > turn] + turn]
        place = at[lanes]
        old[lanes] = found = memory[place]
        memory[place] = new(op, found, [value[lanes] for value in values])
    return old


def _of_lanes(value: Value, lanes: int) -> Array:
    if isinstance(value, Affine):
        return value.array
    return value if isinstance(value, np.ndarray) else np.full(lanes, value)


atomic_number = _atomic(_new, True)
atomic_bf16 = _atomic(_new_bf16, False)
