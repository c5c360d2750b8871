"""Operations among the threads of a warp: 32 neighbours of a block, fewer in its last warp."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.drivers.cpu_numpy.chunks import Affine, Array, Chunk, Value
from treadle.drivers.cpu_numpy.masks import Mask
from treadle.drivers.cpu_numpy.numbers import max_, min_
from treadle.ir.matrix_values import exchanged

_WIDTH = 32
_SHORT = 4  # elements
_REDUCTIONS: dict[str, Any] = {
    "sum": np.add, "min": min_, "max": max_, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


def warp(c: Chunk, op: str, mask: Mask, *operands: Value) -> Array:
    """What an operation gives to each thread. Threads that are not in the mask take no part."""
    if mask is True and op.startswith("shuffle") and not c.block_lanes % _WIDTH:
        quick = _shuffle_alike(c, op, *operands)
        if quick is not None:
            return quick
    here = _as_warps(c, np.full(c.lanes, mask) if isinstance(mask, bool) else mask)
    rows = [_as_warps(c, _of_lanes(c, operand)) for operand in operands]
    result = _exchange(op, here, rows)
    return _as_lanes(c, result)


def warp_matrices(c: Chunk, op: str, *operands: tuple[Value, ...]) -> list[Array]:
    """What an operation on matrices gives to each thread, a component after the other. Blocks are
    whole warps, and all threads are there."""
    rows = [
        np.stack([_of_lanes(c, part).reshape(-1, _WIDTH) for part in operand], -1)
        for operand in operands
    ]
    found = exchanged(op, rows)
    return [np.ascontiguousarray(found[..., at]).reshape(-1) for at in range(found.shape[-1])]


def _shuffle_alike(c: Chunk, op: str, value: Value, by: Value) -> Array | None:
    """A shuffle of whole warps by a number that all threads have alike."""
    if isinstance(by, (np.ndarray, Affine)):
        return None
    distance = int(by)
    if op == "shuffle_xor" and 0 < distance < _WIDTH and not distance & (distance - 1):
        return _swapped(_of_lanes(c, value), distance)
    lanes = np.arange(_WIDTH)
    source = {
        "shuffle": np.full(_WIDTH, int(by)),
        "shuffle_up": lanes - int(by),
        "shuffle_down": lanes + int(by),
        "shuffle_xor": lanes ^ int(by),
    }[op]
    source = np.where((source >= 0) & (source < _WIDTH), source, lanes)
    return _of_lanes(c, value).reshape(-1, _WIDTH).take(source, 1).reshape(-1)


def _swapped(values: Array, distance: int) -> Array:
    """Neighbours so far apart, swapped."""
    pairs = values.reshape(-1, 2, distance)
    result = np.empty_like(pairs)
    if distance > _SHORT:
        result[:, 0], result[:, 1] = pairs[:, 1], pairs[:, 0]
    else:  # NumPy copies many short runs slower than few long columns
        for at in range(distance):
            result[:, 0, at], result[:, 1, at] = pairs[:, 1, at], pairs[:, 0, at]
    return result.reshape(-1)


def _of_lanes(c: Chunk, value: Value) -> Array:
    if isinstance(value, Affine):
        return value.array
    return value if isinstance(value, np.ndarray) else np.full(c.lanes, value)


def _as_warps(c: Chunk, values: Array) -> Array:
    """Values of lanes as a row for each warp; those that are not there are zeros."""
    missing = -c.block_lanes % _WIDTH
    if missing:
        values = values.reshape(c.block_count, c.block_lanes)
        values = np.pad(values, ((0, 0), (0, missing)))
    return values.reshape(-1, _WIDTH)


def _as_lanes(c: Chunk, rows: Array) -> Array:
    return np.ascontiguousarray(rows.reshape(c.block_count, -1)[:, : c.block_lanes]).reshape(-1)


def _exchange(op: str, here: Array, rows: list[Array]) -> Array:
    lanes = np.arange(_WIDTH)
    if op == "active":
        return np.broadcast_to(_bits(here)[:, None], here.shape)
    values = rows[0]
    if op.startswith("shuffle"):
        return _shuffle(op, here, values, rows[1].astype(np.int64), lanes)
    if op in ("vote_all", "vote_any", "ballot"):
        if op == "ballot":
            return np.broadcast_to(_bits(here & values)[:, None], here.shape)
        votes = np.all(values | ~here, 1) if op == "vote_all" else np.any(values & here, 1)
        return np.broadcast_to(np.asarray(votes)[:, None], here.shape)
    if op.startswith("match"):
        return _match(op, here, values)
    if op == "prefix_sum":
        return _prefix_sum(here, values)
    if len(rows) == 2:
        return _reduce_groups(op, here, values, rows[1])
    total = _reduce(op, np.where(here, values, _neutral(op, values.dtype)))
    return np.broadcast_to(total[:, None], values.shape)


def _bits(flags: Array) -> Array:
    """Flags of the lanes of each warp as bits."""
    return np.packbits(flags, axis=1, bitorder="little").view("<u4")[:, 0].astype(np.uint32)


def _shuffle(op: str, here: Array, values: Array, by: Array, lanes: Array) -> Array:
    sources = {"shuffle_up": np.subtract, "shuffle_down": np.add, "shuffle_xor": np.bitwise_xor}
    source = sources[op](lanes, by) if op in sources else by
    inside = (source >= 0) & (source < _WIDTH)
    safe = np.where(inside, source, 0)
    inside = inside & np.take_along_axis(here, safe, 1)
    return np.where(inside, np.take_along_axis(values, safe, 1), values)


def _match(op: str, here: Array, values: Array) -> Array:
    bits = np.ascontiguousarray(values)
    if bits.dtype.kind == "f":
        bits = bits.view(f"u{bits.dtype.itemsize}")
    same = (bits[:, :, None] == bits[:, None, :]) & here[:, None, :]
    groups = _bits(same.reshape(-1, _WIDTH)).reshape(bits.shape)
    if op == "match_any":
        return groups
    all_here = _bits(here)[:, None]
    first = np.take_along_axis(groups, here.argmax(1)[:, None], 1)
    return np.broadcast_to(np.where(first == all_here, all_here, 0), bits.shape).astype(np.uint32)


def _prefix_sum(here: Array, values: Array) -> Array:
    """The sums of the lanes before each, added up in their order."""
    values = np.where(here, values, values.dtype.type(0))
    result = np.zeros_like(values)
    for lane in range(1, _WIDTH):
        result[:, lane] = result[:, lane - 1] + values[:, lane - 1]
    return result


def _neutral(op: str, dtype: Any) -> Any:
    kind = np.dtype(dtype)
    if op in ("min", "max"):
        if kind.kind == "f":
            return kind.type("inf" if op == "min" else "-inf")
        if kind.kind == "b":
            return op == "min"
        limits = np.iinfo(kind)
        return kind.type(limits.max if op == "min" else limits.min)
    if op == "and":
        return True if kind.kind == "b" else ~kind.type(0)
    return kind.type(0)


def _reduce(op: str, values: Array) -> Array:
    """All lanes as one, by halves."""
    combine, width = _REDUCTIONS[op], _WIDTH
    while width > 1:
        width //= 2
        values = combine(values[..., :width], values[..., width : 2 * width])
    found: Array = values[..., 0]
    return found


def _reduce_groups(op: str, here: Array, values: Array, wanted: Array) -> Array:
    """Each thread reduces over the lanes that it names."""
    chosen = (wanted[:, :, None] >> np.arange(_WIDTH, dtype=wanted.dtype)) & wanted.dtype.type(1)
    taken = (chosen != 0) & here[:, None, :]
    spread = np.where(taken, values[:, None, :], _neutral(op, values.dtype))
    return _reduce(op, spread)
