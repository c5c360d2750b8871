"""A chunk of blocks that run together, and integers that grow evenly along its threads.

The threads of a chunk are the cells of a grid: its axes are those of the blocks and of the threads
in them, the slowest first, without axes of one cell. A value of each thread is an array of so many
elements, in that order. Most indices are sums of multiples of these axes: `Affine` keeps such a sum
as its start and steps, from which follow the range (so a check against a bound costs nothing) and
the part of an array that it names (so it is a view and not a gather).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add, sub
from typing import Any

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.recent_cache import RecentCache

Array = np.ndarray[Any, Any]
Value = Any  # a NumPy scalar (the same for all threads), an array, or an Affine

_LANES = 1 << 15
"""Threads of a chunk: enough to make a call of NumPy cheap beside its work, and few enough for the
values of some variables to stay in the processor's cache."""
_BYTES = 1 << 26  # of local and shared memory in a chunk
_WARP = 32


class Layout:
    """Where the threads of some blocks are among each other: `count` says how many blocks along
    each axis. `splits` divide the extent of a block along x, each the next one: the axis is split
    into so many parts more, in whose numbers quotients by them grow evenly."""

    def __init__(self, block: Dim3, splits: tuple[int, ...], count: Dim3) -> None:
        axes = [(count.z, "bz", 1), (count.y, "by", 1), (count.x, "bx", 1),
                (block.z, "tz", 1), (block.y, "ty", 1)]  # fmt: skip
        ends = (1, *splits, block.x)
        axes += [
            (ends[at] // ends[at - 1], "tx", ends[at - 1]) for at in range(len(ends) - 1, 0, -1)
        ]
        kept = [axis for axis in axes if axis[0] > 1]
        self.dims = tuple(extent for extent, _, _ in kept)
        self._steps: dict[Any, tuple[Array, ...]] = {}
        self._axes = tuple((name, step) for _, name, step in kept)
        self.lanes = count.count * block.count
        self.block_lanes = block.count
        self.block_count = count.count
        self.thread_idx = tuple(self._along({f"t{axis}": 1}) for axis in "xyz")
        self.block_idx = tuple(self._along({f"b{axis}": 1}) for axis in "xyz")
        self.block_dim = tuple(np.int32(extent) for extent in block)
        per_block = {"bx": 1, "by": count.x, "bz": count.x * count.y}
        in_block = {"tx": 1, "ty": block.x, "tz": block.x * block.y}
        self.blocks = self._along(per_block)  # the number of the block among those here
        block_thread = self._along(in_block)  # the number of the thread in its block
        per_thread = {axis: step * block.count for axis, step in per_block.items()}
        self.threads = self._along(per_thread | in_block)
        self.lane = (block_thread % np.int32(_WARP),)

    def _along(self, steps: dict[str, int]) -> Value:
        own = tuple(steps.get(axis, 0) * step for axis, step in self._axes)
        return affine(self, 0, own, np.int32)

    def steps_of(self, dtype: Any) -> tuple[Array, ...]:
        """A count along each axis, to be broadcast."""
        found = self._steps.get(dtype)
        if found is None:
            last = len(self.dims) - 1
            found = self._steps[dtype] = tuple(
                np.arange(extent, dtype=dtype).reshape([-1] + [1] * (last - at))
                for at, extent in enumerate(self.dims)
            )
        return found


class Chunk:
    """Blocks that run together, from the block `first` on."""

    subgroup_size = (np.int32(_WARP),)

    def __init__(self, layout: Layout, grid_dim: tuple[Any, ...], first: Dim3) -> None:
        self.lanes, self.block_lanes = layout.lanes, layout.block_lanes
        self.block_count, self.block_dim = layout.block_count, layout.block_dim
        self.thread_idx, self.lane = layout.thread_idx, layout.lane
        self.blocks, self.threads = layout.blocks, layout.threads
        self.grid_dim = grid_dim
        self.block_idx = tuple(
            own + np.int32(start) if start else own
            for own, start in zip(layout.block_idx, first, strict=True)
        )

    def shared(self, size: int) -> Array:
        """Memory of each block."""
        return np.empty(self.block_count * size, np.uint8)

    def local(self, size: int) -> Array:
        """Memory of each thread."""
        return np.empty(self.lanes * size, np.uint8)


_layouts: RecentCache[Any, Layout] = RecentCache(16)


def _layout(block: Dim3, splits: tuple[int, ...], count: Dim3) -> Layout:
    key = (block, splits, count)
    known = _layouts.get(key)
    if known is None:
        _layouts[key] = known = Layout(block, splits, count)
    return known


def chunks(grid: Dim3, block: Dim3, splits: tuple[int, ...], memory: int) -> Iterator[Chunk]:
    """A grid in parts. `memory` is the bytes that a block needs for itself."""
    most = max(min(_LANES // block.count, _BYTES // max(memory, 1)), 1)
    x = min(grid.x, most)
    y = min(grid.y, max(most // x, 1)) if x == grid.x else 1
    z = min(grid.z, max(most // (x * y), 1)) if y == grid.y and x == grid.x else 1
    grid_dim = tuple(np.int32(extent) for extent in grid)
    for bz in range(0, grid.z, z):
        for by in range(0, grid.y, y):
            for bx in range(0, grid.x, x):
                count = Dim3(min(x, grid.x - bx), min(y, grid.y - by), min(z, grid.z - bz))
                yield Chunk(_layout(block, splits, count), grid_dim, Dim3(bx, by, bz))


# --- numbers that grow evenly ---------------------------------------------------------------------


class Affine:
    """`start` plus a multiple of each axis's position. It is not changed, and every number of it is
    one of its type."""

    __slots__ = ("_array", "chunk", "dtype", "high", "low", "start", "steps")

    def __init__(
        self, chunk: Layout, start: int, steps: tuple[int, ...], dtype: Any, low: int, high: int
    ) -> None:
        self.chunk, self.start, self.steps, self.dtype = chunk, start, steps, dtype
        self.low, self.high = low, high
        self._array: Array | None = None

    @property
    def array(self) -> Array:
        """The numbers of all threads."""
        if self._array is None:
            # Each sum of some of the terms is a number of the type too; a step may not be one.
            kind, total = self.dtype, self.dtype(self.start)
            for step, count in zip(self.steps, self.chunk.steps_of(kind), strict=True):
                if step:
                    total = total + (
                        count if step == 1 else count * kind(_wrapped(step, *_LIMITS[kind]))
                    )
            if total.size == self.chunk.lanes:
                self._array = total.reshape(-1)
            else:
                whole = np.empty(self.chunk.dims, kind)
                whole[...] = total
                self._array = whole.reshape(-1)
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.array if dtype is None else self.array.astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method == "__call__" and not keywords and len(inputs) == 2:
            own = _BINARY.get(ufunc)
            if own is not None:
                return own(*inputs)
        inputs = tuple(x.array if isinstance(x, Affine) else x for x in inputs)
        return getattr(ufunc, method)(*inputs, **keywords)

    def astype(self, dtype: Any) -> Value:
        """The numbers as another type."""
        if np.dtype(dtype).kind in "iu":
            return affine(self.chunk, self.start, self.steps, dtype, self.low, self.high)
        return self.array.astype(dtype)

    def view(self, dtype: Any) -> Array:
        """The bits of the numbers."""
        return self.array.view(dtype)

    def __add__(self, other: Value) -> Value:
        return _add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Value) -> Value:
        return _subtract(self, other)

    def __rsub__(self, other: Value) -> Value:
        return _subtract(other, self)

    def __mul__(self, other: Value) -> Value:
        return _multiply(self, other)

    __rmul__ = __mul__

    def __neg__(self) -> Value:
        return _scaled(self, -1, 0)

    def __invert__(self) -> Value:
        return ~self.array

    def __floordiv__(self, other: Value) -> Value:
        return _floor_divide(self, other)

    def __mod__(self, other: Value) -> Value:
        return _remainder(self, other)

    def __rfloordiv__(self, other: Value) -> Value:
        return other // self.array

    def __rmod__(self, other: Value) -> Value:
        return other % self.array

    def __and__(self, other: Value) -> Value:
        return _bitwise_and(self, other)

    def __or__(self, other: Value) -> Value:
        return self.array | _plain(other)

    def __xor__(self, other: Value) -> Value:
        return self.array ^ _plain(other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Value) -> Value:
        return _left_shift(self, other)

    def __rshift__(self, other: Value) -> Value:
        return _right_shift(self, other)

    def __rlshift__(self, other: Value) -> Value:
        return other << self.array

    def __rrshift__(self, other: Value) -> Value:
        return other >> self.array

    def __lt__(self, other: Value) -> Value:
        return _less(self, other)

    def __ge__(self, other: Value) -> Value:
        return ~_less(self, other)

    def __gt__(self, other: Value) -> Value:
        return _less(other, self)

    def __le__(self, other: Value) -> Value:
        return ~_less(other, self)

    def __eq__(self, other: object) -> Any:
        return _equal(self, other)

    def __ne__(self, other: object) -> Any:
        return ~_equal(self, other)

    __hash__ = None  # type: ignore[assignment]


def affine(
    chunk: Layout,
    start: int,
    steps: tuple[int, ...],
    dtype: Any,
    low: int | None = None,
    high: int | None = None,
) -> Value:
    """A number that grows evenly: a scalar if it does not grow, an array if it wraps around."""
    least, most = _LIMITS[dtype]
    if not any(steps):
        return dtype(start if least <= start <= most else _wrapped(start, least, most))
    if low is None or high is None:
        low = high = start
        for step, extent in zip(steps, chunk.dims, strict=True):
            if step < 0:
                low += step * (extent - 1)
            else:
                high += step * (extent - 1)
    if low < least or high > most:
        return _numbers(chunk, start, steps, dtype)
    return Affine(chunk, start, steps, dtype, low, high)


_LIMITS = {
    kind: (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
}


def _wrapped(value: int, least: int, most: int) -> int:
    return (value - least) % (most - least + 1) + least


def _numbers(chunk: Layout, start: int, steps: Sequence[int], dtype: Any) -> Array:
    total: Any = np.int64((start + (1 << 63)) % (1 << 64) - (1 << 63))
    for step, count in zip(steps, chunk.steps_of(np.int64), strict=True):
        if step:
            total = total + count * np.int64((step + (1 << 63)) % (1 << 64) - (1 << 63))
    whole = np.empty(chunk.dims, dtype)
    whole[...] = total.astype(dtype)
    return whole.reshape(-1)


def _plain(value: Value) -> Value:
    return value.array if isinstance(value, Affine) else value


def _is_number(value: Value) -> bool:
    return isinstance(value, (np.integer, int))


def _scaled(value: Affine, factor: int, addend: int) -> Value:
    steps = tuple([step * factor for step in value.steps])
    low, high = value.low * factor + addend, value.high * factor + addend
    if factor < 0:
        low, high = high, low
    return affine(value.chunk, value.start * factor + addend, steps, value.dtype, low, high)


def times(value: Value, factor: int) -> Value:
    """An index multiplied, which may leave its type's range."""
    if isinstance(value, Affine):
        low, high = value.low, value.high
        wide = Affine(value.chunk, value.start, value.steps, np.int64, low, high)
        return _scaled(wide, factor, 0)
    if isinstance(value, np.ndarray):
        return value.astype(np.intp) * factor
    return int(value) * factor


def _add(left: Value, right: Value) -> Value:
    if not isinstance(left, Affine):
        left, right = right, left
    if _is_number(right):
        start = int(right)
        return affine(
            left.chunk, left.start + start, left.steps, left.dtype,
            left.low + start, left.high + start,
        )  # fmt: skip
    if isinstance(right, Affine):
        steps = tuple(map(add, left.steps, right.steps))
        return affine(left.chunk, left.start + right.start, steps, left.dtype)
    return left.array + right


def _subtract(left: Value, right: Value) -> Value:
    if isinstance(right, Affine):
        if _is_number(left):
            return _scaled(right, -1, int(left))
        if isinstance(left, Affine):
            steps = tuple(map(sub, left.steps, right.steps))
            return affine(left.chunk, left.start - right.start, steps, left.dtype)
        return left - right.array
    if _is_number(right):
        return _add(left, -int(right))
    return left.array - right


def _multiply(left: Value, right: Value) -> Value:
    if not isinstance(left, Affine):
        left, right = right, left
    if _is_number(right):
        return _scaled(left, int(right), 0)
    return left.array * _plain(right)


def _divided(value: Value, by: Value) -> tuple[Value, Value] | None:
    """Quotient and remainder, if both grow evenly."""
    if not isinstance(value, Affine) or not _is_number(by) or by <= 0:
        return None
    by, chunk = int(by), value.chunk
    whole = tuple(step // by if step % by == 0 else 0 for step in value.steps)
    rest = tuple(step if step % by else 0 for step in value.steps)
    start = value.start % by
    low = high = start
    for step, extent in zip(rest, chunk.dims, strict=True):
        if step < 0:
            low += step * (extent - 1)
        else:
            high += step * (extent - 1)
    if low < 0 or high >= by:
        return None
    return (
        affine(chunk, value.start // by, whole, value.dtype),
        affine(chunk, start, rest, value.dtype, low, high),
    )


def _floor_divide(left: Value, right: Value) -> Value:
    both = _divided(left, right)
    return both[0] if both else np.floor_divide(_plain(left), _plain(right))


def _remainder(left: Value, right: Value) -> Value:
    both = _divided(left, right)
    return both[1] if both else np.remainder(_plain(left), _plain(right))


def _truncated_remainder(left: Value, right: Value) -> Value:
    if isinstance(left, Affine) and left.low >= 0:
        both = _divided(left, right)
        if both:
            return both[1]
    return np.fmod(_plain(left), _plain(right))


def _bitwise_and(left: Value, right: Value) -> Value:
    if not isinstance(left, Affine):
        left, right = right, left
    if _is_number(right) and right > 0 and int(right) & (int(right) + 1) == 0:
        both = _divided(left, int(right) + 1)
        if both:
            return both[1]
    return left.array & _plain(right)


def _left_shift(left: Value, right: Value) -> Value:
    if isinstance(left, Affine) and _is_number(right) and 0 <= right < 32:
        return _scaled(left, 1 << int(right), 0)
    return _plain(left) << _plain(right)


def _right_shift(left: Value, right: Value) -> Value:
    if isinstance(left, Affine) and _is_number(right) and 0 <= right < 32:
        both = _divided(left, 1 << int(right))
        if both:
            return both[0]
    return _plain(left) >> _plain(right)


def _bounds(value: Value) -> tuple[int, int] | None:
    if isinstance(value, Affine):
        return value.low, value.high
    return (int(value), int(value)) if _is_number(value) else None


def _less(left: Value, right: Value) -> Value:
    a, b = _bounds(left), _bounds(right)
    if a is not None and b is not None:
        if a[1] < b[0]:
            return np.True_
        if a[0] >= b[1]:
            return np.False_
    return _plain(left) < _plain(right)


def _less_equal(left: Value, right: Value) -> Value:
    return ~_less(right, left)


def _equal(left: Value, right: Value) -> Value:
    a, b = _bounds(left), _bounds(right)
    if a is not None and b is not None and (a[1] < b[0] or b[1] < a[0]):
        return np.False_
    return _plain(left) == _plain(right)


_BINARY: dict[Any, Any] = {
    np.add: _add, np.subtract: _subtract, np.multiply: _multiply,
    np.floor_divide: _floor_divide, np.remainder: _remainder, np.fmod: _truncated_remainder,
    np.bitwise_and: _bitwise_and, np.left_shift: _left_shift, np.right_shift: _right_shift,
    np.less: _less, np.less_equal: _less_equal,
    np.greater: lambda a, b: _less(b, a), np.greater_equal: lambda a, b: ~_less(a, b),
    np.equal: _equal, np.not_equal: lambda a, b: ~_equal(a, b),
}  # fmt: skip
