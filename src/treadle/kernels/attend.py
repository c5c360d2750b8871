"""Attention: softmax(query keyᵀ * scale + mask) value, for any number of heads.

The functions take whole arrays and a `Problem`, which says where the operands are in them: a tensor
of shape (batch, length, heads, size) is read in place. They give the result and, for each query,
the logarithm of the sum of its scores' exponentials, which the derivative needs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from treadle.core.dtypes import DType, float32, i32
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels.attention_tiles import (
    Lengths,
    best_tile_for,
    fills_groups,
    group_tile_for,
    opaque_tile_for,
    rows_of,
    takes_fragments,
)
from treadle.kernels.device_code import attention, attention_cpu
from treadle.kernels.device_code.attention import Attending, Tile
from treadle.kernels.device_code.attention_cpu import COLUMNS, Lanes
from treadle.kernels.device_code.attention_fragments import FragmentAttending, fragment_attender
from treadle.kernels.device_code.group_attention import (
    GroupAttending,
    GroupAttentionTile,
    Heads,
    Order,
    Placed,
    group_attender,
    lines_of,
)
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.opaque_attention import OpaqueAttending, opaque_attender
from treadle.kernels.device_code.text_tiles import FIELDS, TABLE
from treadle.kernels.launching import flat, for_any_sizes, new, packed, serial_threads
from treadle.kernels.machine import machine_of
from treadle.kernels.text_tiles import Starts, text_tiles, texts_of
from treadle.kernels.tuned_tiles import TileKind, best_tile
from treadle.lang.types import VectorType
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.convert import Packed
from treadle.runtime.devices import Device

_FOUR_INTEGERS = VectorType(i32, 4)
_AXES = 3  # of heads, in one launch
# From the largest to the smallest; the first that suits a device and a problem is taken.
_TILES = (
    Tile(across=16, down=16, rows=8, keys=8, vectors=2, deep=4, passes=8),
    Tile(across=8, down=16, rows=8, keys=8, vectors=2, deep=4, passes=4),
    Tile(across=8, down=8, rows=8, keys=8, vectors=2, deep=4, passes=4),
    Tile(across=16, down=4, rows=4, keys=4, vectors=1, deep=4, passes=4),
    Tile(across=16, down=4, rows=1, keys=4, vectors=1, deep=4, passes=4),
)
# For software adapters, whose compilers take long for code that is unrolled.
_PLAIN = Tile(across=8, down=8, rows=1, keys=2, vectors=1, deep=2, passes=1)
_NARROW = 64  # columns of the value that any tile may have
_BUSY = 1 << 17  # threads that keep a GPU busy
_BUSY_FRAGMENTS = 1 << 15  # the same of kernels with many registers each
NEAR_BYTES = 32 << 20  # of keys and values that blocks read at one time, from the second cache
_FEW = 8  # queries up to which transposing the keys does not pay on a CPU
_KEYS_TOGETHER = 64  # of fragments, at a time
_FEWEST_TILES = 4  # of keys, that a block goes over if keys are split


class Laid(NamedTuple):
    """Where an operand is in its array: the strides of the axes of heads and of the rows (and of a
    mask's columns), and the offset of the first element."""

    strides: tuple[int, ...]
    offset: int


class Problem(NamedTuple):
    """What is to be computed. `shape` are the axes in front of the result's, `heads` the same
    axes, merged and split as the operands need it. A query sees keys from `left` places before its
    own to `right` places after it; None is as far as there are keys. Packed texts lie one after the
    other; each query sees keys of its own text, whose places are counted from its beginning."""

    shape: tuple[int, ...]
    heads: tuple[int, ...]
    queries: int
    keys: int
    depth: int  # columns of query and key
    width: int  # of value
    query: Laid
    key: Laid
    value: Laid
    mask: Laid | None
    scale: float
    left: int | None
    right: int | None
    dropout: float
    packed: bool = False

    @property
    def own(self) -> tuple[int, ...]:
        """Extents of the axes of heads along which keys or values differ, 1 for the others."""
        moves = zip(self.heads, self.key.strides, self.value.strides, strict=False)
        return tuple([extent if key or value else 1 for extent, key, value in moves])


class _Arrays(NamedTuple):
    """Whole arrays in, and flat ones to be written."""

    query: DeviceArray
    key: DeviceArray
    value: DeviceArray
    mask: DeviceArray | None
    out: DeviceArray
    norms: DeviceArray
    draws: DeviceArray | None
    starts: Starts | None  # of packed texts, those of their queries and of their keys


Results = tuple[DeviceArray, DeviceArray]


@for_any_sizes
def attend(query: DeviceArray, key: DeviceArray, value: DeviceArray, *more: Any) -> Results:
    """The result, and the logarithms of the sums of exponentials, -infinity for a query that sees
    nothing (and then has zeros as its result).

    `more` are a mask, if the problem says how one lies: bool, true where a query sees a key, or
    numbers to be added; of packed texts the first queries and the first keys, each with the end of
    the last text (int32); for dropout, the four words (uint32) that its random numbers depend on;
    and the problem."""
    *given, p = more
    assert isinstance(query.dtype, DType)
    mask = given.pop(0) if p.mask is not None else None
    draws = given.pop() if p.dropout else None
    starts = (given[0], given[1]) if p.packed else None
    out = new(query, query.dtype, *p.shape, p.queries, p.width)
    norms = new(query, wide(query.dtype), *p.shape, p.queries)
    if norms.size:
        arrays = _Arrays(query, key, value, mask, flat(out), flat(norms), draws, starts)
        compute = _way(query.device, query.dtype, p)
        for part, done in _pieces(_folded(p), _most(arrays), 0):
            compute(arrays, part, done)
    return out, norms


@for_any_sizes
def attend_result(*given: Any) -> DeviceArray:
    """The result of `attend`, without what a derivative needs."""
    return attend(*given)[0]


def _way(device: Device, dtype: DType, p: Problem) -> Callable[[_Arrays, Problem, int], None]:
    """The kernels that compute a problem on a device."""
    if serial_threads(device):
        return _by_lanes
    if p.keys > 0 and takes_fragments(device, dtype, p.depth, p.width, p.scale):
        return _by_fragments
    return _by_tiles


def _most(arrays: _Arrays) -> int:
    """Elements of an operand that one launch may reach."""
    widest = max(array.dtype.itemsize for array in arrays[:-1] if array is not None)
    return min(MOST_NARROW, arrays.query.device.limits.max_binding_size // widest)


def _folded(p: Problem) -> Problem:
    """The problem without windows that hide nothing, and with heads that share their keys folded
    into the queries of one head, where the result is the same."""
    left = None if p.left is None or p.left >= p.queries - 1 else p.left
    right = None if p.right is None or p.right >= p.keys - 1 else p.right
    p = p._replace(left=left, right=right)
    if p.packed:
        return p
    if p.queries == 1 and right is not None and not p.dropout:
        p = p._replace(keys=right + 1, right=None)
    alike = p.queries == 1 or _follow(p.query.strides, p.queries)
    if p.mask is not None:
        alike = alike and (p.queries == 1 or _follow(p.mask.strides[:-1], p.queries))
    shared = p.heads and p.key.strides[-2] == p.value.strides[-2] == 0
    if not (shared and alike) or p.left is not None or p.right is not None:
        return p
    step = -2 if p.queries == 1 else -1
    mask = p.mask
    if mask is not None:
        rows = mask.strides[:-1]
        mask = Laid((*rows[:-2], rows[step], mask.strides[-1]), mask.offset)
    return p._replace(
        heads=p.heads[:-1], queries=p.heads[-1] * p.queries, mask=mask,
        query=Laid((*p.query.strides[:-2], p.query.strides[step]), p.query.offset),
        key=Laid((*p.key.strides[:-2], p.key.strides[-1]), p.key.offset),
        value=Laid((*p.value.strides[:-2], p.value.strides[-1]), p.value.offset),
    )  # fmt: skip


def _follow(strides: tuple[int, ...], rows: int) -> bool:
    """Whether the next head's rows follow a head's."""
    return strides[-2] == rows * strides[-1]


def _pieces(p: Problem, most: int, done: int) -> Iterator[tuple[Problem, int]]:
    """Problems of few axes of heads and of operands that 32 bits can count in, each with the number
    of heads before it."""
    laid = [each for each in (p.query, p.key, p.value, p.mask) if each is not None]
    lengths = ((p.queries, p.depth), (p.keys, p.depth), (p.keys, p.width), (p.queries, p.keys))
    lines = math.prod(p.heads) * p.queries
    reached = [
        lines * p.width,
        lines,
        *[_reach((*p.heads, *extents), each) for each, extents in zip(laid, lengths, strict=False)],
    ]
    if len(p.heads) <= _AXES and all(count < most for count in reached):
        yield p, done
        return
    if not p.heads:
        raise ShapeError(
            f"attention of {p.queries} queries and {p.keys} keys reads or writes more than {most} "
            "elements of an array for one head: split the queries"
        )
    heads = p.heads[1:]
    for i in range(p.heads[0]):
        moved = [_moved(each, i) for each in (p.query, p.key, p.value)]
        mask = None if p.mask is None else _moved(p.mask, i)
        part = p._replace(heads=heads, query=moved[0], key=moved[1], value=moved[2], mask=mask)
        yield from _pieces(part, most, done + i * math.prod(heads))


def _moved(laid: Laid, index: int) -> Laid:
    return Laid(laid.strides[1:], laid.offset + index * laid.strides[0])


def _reach(extents: tuple[int, ...], laid: Laid) -> int:
    strides = (*laid.strides, 1)
    return 1 + sum((n - 1) * s for n, s in zip(extents, strides, strict=False) if n)


class _Operands(NamedTuple):
    """The arguments of both kinds of kernels, in order."""

    arrays: tuple[Any, ...]  # query, key, value, mask, result, norms
    starts: Any  # of the first elements of query, key, value and mask
    steps: tuple[Any, ...]  # of query, key, value, mask; then the step of a mask's columns
    numbers: tuple[Any, ...]


class _Placed(NamedTuple):
    """Where a launch finds query, key and value, as arrays and their first elements; where the
    results are, which begin with those of so many heads before; and how far a query sees."""

    seen: list[tuple[DeviceArray, int]]
    out: DeviceArray
    norms: DeviceArray
    before: int
    left: int
    right: int


def _place(arrays: _Arrays, p: Problem, done: int, of_parts: bool) -> _Placed:
    """Of a launch after which so many heads are `done`; the results are seen from their
    beginning on if they are combined of parts."""
    most = _most(arrays)
    laid = [
        (arrays.query, p.query, (*p.heads, p.queries, p.depth)),
        (arrays.key, p.key, (*p.heads, p.keys, p.depth)),
        (arrays.value, p.value, (*p.heads, p.keys, p.width)),
    ]
    lines = math.prod(p.heads) * p.queries
    out, norms, before = arrays.out, arrays.norms, done
    if of_parts or out.size >= most:
        out = _some(out, done * p.queries * p.width, lines * p.width)
        norms, before = _some(norms, done * p.queries, lines), 0
    left = p.queries if p.left is None else min(p.left, p.queries)
    right = p.keys if p.right is None else min(p.right, p.keys)
    return _Placed([_seen(*each, most) for each in laid], out, norms, before, left, right)


class _Tiles(NamedTuple):
    """How many tiles of queries a head has, and of packed texts their table."""

    number: int
    table: DeviceArray | None


def _tiles(arrays: _Arrays, p: Problem, rows: int) -> _Tiles:
    """Those of so many queries each."""
    if arrays.starts is None:
        return _Tiles(-(-p.queries // rows), None)
    table = text_tiles(arrays.starts, p.queries, p.keys, rows)
    return _Tiles(table.size // FIELDS, table)


def _usual(arrays: _Arrays, p: Problem) -> Problem:
    """The problem that a tile is chosen for: texts of the average length as so many heads."""
    if arrays.starts is None:
        return p
    texts = max(texts_of(arrays.starts), 1)
    queries, keys = (-(-rows // texts) for rows in (p.queries, p.keys))
    return p._replace(heads=(*p.heads, texts), queries=queries, keys=keys)


def _operands(
    arrays: _Arrays, p: Problem, done: int, count: int, parts: int, each: int,
    table: DeviceArray | None,
) -> Any:  # fmt: skip
    """The arguments of a kernel that counts in vectors of `count` elements."""
    most = _most(arrays)
    placed = _place(arrays, p, done, parts > 1)
    mask: Any = 0 if table is None else table
    mask_start, mask_steps, mask_step = 0, four(0, 0, 0, 0), 0
    if arrays.mask is not None and p.mask is not None:
        mask, mask_start = _seen(arrays.mask, p.mask, (*p.heads, p.queries, p.keys), most)
        mask_steps, mask_step = _steps(p.mask.strides[:-1], 1), p.mask.strides[-1]
    starts = four(*[start // count for _, start in placed.seen], mask_start)
    front = _front(p.heads, 1)
    return _Operands(
        (*[array for array, _ in placed.seen], mask, placed.out, placed.norms),
        starts,
        (*(_steps(each.strides, count) for each in (p.query, p.key, p.value)), mask_steps,
         mask_step),
        (four(p.queries, p.keys, p.depth, p.width), four(front[1], front[2], parts, each),
         four(placed.left, placed.right, done, placed.before), p.scale * attention.LOG2_E,
         0 if arrays.draws is None else arrays.draws, 1.0 - p.dropout),
    )  # fmt: skip


def _attending(arrays: _Arrays, p: Problem, vectors: bool, split: bool) -> Attending:
    dtype = arrays.query.dtype
    assert isinstance(dtype, DType)
    return Attending(dtype, wide(dtype), vectors, _mask_of(arrays), p.dropout > 0, split)


def _mask_of(arrays: _Arrays) -> DType | None:
    """The mask that kernels are made for."""
    if arrays.starts is not None:
        return TABLE
    dtype = None if arrays.mask is None else arrays.mask.dtype
    assert dtype is None or isinstance(dtype, DType)
    return dtype


# --- on the CPU ----------------------------------------------------------------------------------


def _by_lanes(arrays: _Arrays, p: Problem, done: int) -> None:
    """On the CPU: a block has a few queries, and its vectors are neighbouring keys."""
    what = _attending(arrays, p, False, False)
    lanes = 64 // what.partial.itemsize
    vectors = 4 if p.width > 2 * lanes else 2 if p.width > lanes else 1
    even = p.width % (lanes * vectors) == 0
    transposed = p.queries > _FEW
    rows = 6 if transposed else 1 if p.queries == 1 else 4
    block = Lanes(lanes, rows, 4, vectors, even, transposed, lanes // 4)
    groups = min(block.groups, -(-_usual(arrays, p).queries // block.rows))
    tiles, table = _tiles(arrays, p, block.rows * groups)
    given = _operands(arrays, p, done, 1, groups, 0, table)
    query, key, *others = given.arrays
    query_steps, key_steps, *steps = given.steps
    starts = given.starts
    if transposed:
        key, key_steps = _transposed_keys(
            key, starts, key_steps, p, what.partial, lanes * block.keys
        )
    blocks = math.prod(p.heads) * tiles * max(-(-p.width // COLUMNS), 1)
    attention_cpu.attender_cpu(what, block)[blocks, lanes](
        query, key, *others, starts, query_steps, key_steps, *steps, *given.numbers
    )


def _transposed_keys(
    key: DeviceArray, starts: Packed, steps: Packed, p: Problem, partial: DType, panel: int
) -> tuple[DeviceArray, Packed]:
    """The keys, transposed, and how far apart heads are. Heads that share keys have them once."""
    own = [1 if step == 0 else n for n, step in zip(p.heads, p.key.strides, strict=False)]
    heads = _front(tuple(own), 1)
    panels = math.prod(heads) * -(-p.keys // panel)
    transposed = new(key, partial, panels * panel * p.depth)
    if transposed.size:
        transpose = attention_cpu.transposer(partial, panel)
        transpose[panels, panel](key, transposed, starts, steps, four(*heads, 0), p.keys, p.depth)
    return transposed, four(*[math.prod(heads[i + 1 :]) * (heads[i] > 1) for i in range(_AXES)], 0)


# --- on GPUs -------------------------------------------------------------------------------------


def _by_tiles(arrays: _Arrays, p: Problem, done: int) -> None:
    """Blocks have tiles of queries each, and where these are few, parts of the keys."""
    assert isinstance(arrays.query.dtype, DType)
    if _by_opaque(arrays, p, done):
        return
    device, partial = arrays.query.device, wide(arrays.query.dtype)
    usual = _usual(arrays, p)
    tile = first_tile(device, partial, usual)
    if partial is float32:
        lengths = math.prod(usual.heads), usual.queries, usual.keys, p.depth
        tile = best_tile(device, TUNED, partial.short, lengths, tile)
    vectors = _fits_vectors(arrays, p)
    tiles, table = _tiles(arrays, p, tile.queries)
    blocks = math.prod(p.heads) * tiles * -(-p.width // tile.columns)
    parts, each = _split(p, blocks * tile.threads, tile.keys_of_block, _BUSY)
    what = _attending(arrays, p, vectors, parts > 1)
    what = what._replace(fast=device.traits.fast_powers and partial is float32)
    given = _operands(arrays, p, done, 4 if vectors else 1, parts, each, table)
    kernel = attention.attender(what, tile)[blocks * parts, tile.threads]
    _launch(kernel, given, p, parts, what)


def _by_opaque(arrays: _Arrays, p: Problem, done: int) -> bool:
    """The same, where subgroups multiply matrices of float16 whose layout is hidden; False if that
    does not suit the device or the problem."""
    dtype, device = arrays.query.dtype, arrays.query.device
    assert isinstance(dtype, DType)
    if arrays.mask is not None or p.packed or p.dropout:
        return False
    if not (p.keys and p.depth and p.width):
        return False
    counts = [
        (*laid.strides, laid.offset, array.offset, array.size)
        for array, laid in zip(arrays[:3], (p.query, p.key, p.value), strict=True)
    ]
    query, value = (
        rows_of(dtype, p.depth, counts[0] + counts[1]),
        rows_of(dtype, p.width, counts[2]),
    )
    what = OpaqueAttending(query, value, False)
    tile = opaque_tile_for(device, dtype, p.queries, what)
    if tile is None:
        return False
    blocks = math.prod(p.heads) * -(-p.queries // tile.queries)
    parts, each = _split(p, blocks * tile.threads, tile.keys, _BUSY_FRAGMENTS)
    kernel = opaque_attender(what._replace(split=parts > 1), tile)[blocks * parts, tile.threads]
    joined = _attending(arrays, p, True, parts > 1)
    _launch(kernel, _operands(arrays, p, done, 4, parts, each, None), p, parts, joined)
    return True


def _by_fragments(arrays: _Arrays, p: Problem, done: int) -> None:
    """As `_by_tiles`, where subgroups multiply matrices of 16-bit floats."""
    dtype, device = arrays.query.dtype, arrays.query.device
    assert isinstance(dtype, DType)
    counts: list[tuple[int, ...]] = [
        (*laid.strides, laid.offset, array.offset)
        for array, laid in zip(arrays[:3], (p.query, p.key, p.value), strict=True)
    ]
    boxes = arrays.mask is None and not p.packed and not p.dropout and has_rows(p)
    if boxes and fills_groups(p.queries):
        group = group_tile_for(device, dtype, p.depth, p.width, sum(counts, ()))
        count = 0 if group is None else math.prod(p.heads) * -(-p.queries // group.queries)
        if group and _split(p, count * group.threads, _KEYS_TOGETHER, _BUSY_FRAGMENTS)[0] == 1:
            _by_groups(arrays, p, done, group)
            return
    query = rows_of(dtype, p.depth, counts[0] + counts[1])
    value = rows_of(dtype, p.width, counts[2])
    usual = _usual(arrays, p)
    lengths = Lengths(math.prod(usual.heads), usual.queries, usual.keys)
    tile = best_tile_for(device, lengths, query, value)
    tiles, table = _tiles(arrays, p, tile.queries)
    blocks = math.prod(p.heads) * tiles
    parts, each = _split(p, blocks * tile.threads, tile.keys, _BUSY_FRAGMENTS)
    lanes = 4 if p.width % 4 == 0 else 1
    what = FragmentAttending(query, value, _mask_of(arrays), p.dropout > 0, parts > 1, lanes)
    kernel = fragment_attender(what, tile)[blocks * parts, tile.threads]
    joined = _attending(arrays, p, lanes == 4, parts > 1)
    _launch(kernel, _operands(arrays, p, done, 1, parts, each, table), p, parts, joined)


def _by_groups(arrays: _Arrays, p: Problem, done: int, tile: GroupAttentionTile) -> None:
    """As `_by_fragments`, where groups of 128 threads multiply tiles from boxes of memory."""
    dtype = arrays.query.dtype
    assert isinstance(dtype, DType)
    placed = _place(arrays, p, done, False)
    laid = zip(placed.seen, (p.query, p.key, p.value), strict=True)
    heads, columns = _front(p.heads, 1), p.depth + p.width
    shared = p.heads[-1] if p.heads and not p.key.strides[-2] else 1  # heads with the same keys
    together = max(NEAR_BYTES // (p.keys * columns * dtype.itemsize), 1) * shared
    what = GroupAttending(dtype, lines_of(p.depth), lines_of(p.width), 4 if p.width % 4 == 0 else 1)
    tiles = -(-p.queries // tile.queries)
    every = math.prod(heads)
    blocks = min(every * tiles, machine_of(arrays.query.device).multiprocessors or every * tiles)
    group_attender(what, tile)[blocks, tile.threads](
        *[array for array, _ in placed.seen], placed.out, placed.norms,
        *[placed_at(start, each.strides) for (_, start), each in laid],
        p.queries, p.keys, p.depth, p.width, packed(Heads, *heads, 1),
        order_of(placed.right < p.keys - 1, tiles, every, blocks, together),
        placed.left, placed.right, placed.before, p.scale * attention.LOG2_E,
    )  # fmt: skip


def order_of(paired: bool, tiles: int, heads: int, blocks: int, together: int) -> Packed:
    """How a launch distributes tiles of queries, of which each head has so many. Where windows end,
    tiles are `paired`. Those of few heads are sorted; of many, so many that `together` fit a cache
    or blocks have two tiles each, and the others are rounds of the same length."""
    last = max(together, -(-2 * blocks // tiles))
    rest = max(heads - last, 0)
    pair = 1
    if paired:
        pair, rest = 2, rest // 2 * 2
    return packed(Order, pair, rest * tiles // pair, rest, heads)


def placed_at(start: int, strides: tuple[int, ...]) -> Packed:
    """Where an operand is, for kernels by groups of threads."""
    return packed(Placed, start, *_front(strides[:-1], 0), strides[-1])


def has_rows(p: Problem) -> bool:
    """Whether the rows of an operand are at different places, as boxes of them need it."""
    return all(laid.strides[-1] != 0 for laid in (p.query, p.key, p.value))


def _split(p: Problem, threads: int, keys: int, busy: int) -> tuple[int, int]:
    """In how many parts the keys are computed, and the tiles of `keys` of a part, where whole
    blocks have so many threads."""
    tiles = -(-p.keys // keys)
    parts = max(min(busy // threads, tiles // _FEWEST_TILES), 1)
    each = -(-tiles // parts)
    return max(-(-tiles // max(each, 1)), 1), each


def _launch(kernel: Any, given: _Operands, p: Problem, parts: int, what: Attending) -> None:
    """Run a kernel, and if it computes parts of the keys, combine these."""
    *operands, out, norms = given.arrays
    if parts == 1:
        kernel(*operands, out, norms, given.starts, *given.steps, *given.numbers)
        return
    sums = new(out, what.partial, norms.size * parts * p.width)
    tops = new(out, what.partial, norms.size * parts * 2)
    kernel(*operands, sums, tops, given.starts, *given.steps, *given.numbers)
    threads = out.size // (4 if what.vectors else 1)
    join = attention.joiner(what)
    join.launch(threads, sums, tops, out, norms, p.width, parts, 1.0 - p.dropout)


def first_tile(device: Device, partial: DType, p: Problem) -> Tile:
    """The first guess: the largest tile that the device has room for and that is not much more than
    is needed."""
    limits = device.limits
    if device.traits.software:
        return _PLAIN
    for tile in _TILES:
        if (
            tile.bytes(partial) <= limits.max_shared_memory
            and tile.threads <= limits.max_threads_per_block
            and (tile.columns <= _NARROW or tile.columns < 2 * p.width)
            and tile.queries < 2 * p.queries
        ):
            return tile
    return _TILES[-1]


def _fits(device: Device, tile: Tile) -> bool:
    """Whether a block can have a tile."""
    limits = device.limits
    room = tile.bytes(float32) <= limits.max_shared_memory
    return room and tile.threads <= limits.max_threads_per_block


TUNED = TileKind("attention", 1, "registers", Tile, _fits)


def _fits_vectors(arrays: _Arrays, p: Problem) -> bool:
    """Whether all that is read and written in rows can be so in vectors of four."""
    counts = [p.depth, p.width]
    for array, laid in zip(arrays[:3], (p.query, p.key, p.value), strict=True):
        counts += [*laid.strides, array.offset, laid.offset, array.size]
    return all(count % 4 == 0 for count in counts)


# --- for both ------------------------------------------------------------------------------------


def _seen(
    array: DeviceArray, laid: Laid, extents: tuple[int, ...], most: int
) -> tuple[DeviceArray, int]:
    """An operand's array, and where the operand starts in it. An array with more elements than may
    be reached is seen from there to the operand's last element: otherwise it is seen whole, for
    kernels are compiled anew for arrays that have an offset."""
    if array.size < most:
        return flat(array), laid.offset
    count = _reach(extents, laid) if math.prod(extents) else 0
    return _some(array, laid.offset, count), 0


def _some(array: DeviceArray, start: int, count: int) -> DeviceArray:
    return array.view((count,), (1,), array.offset + start)


def _front(values: tuple[int, ...], filled: int) -> tuple[int, ...]:
    """As many values as a launch has axes of heads."""
    return (filled,) * (_AXES - len(values)) + values


def _steps(strides: tuple[int, ...], count: int) -> Any:
    """Strides of three axes of heads, and of rows, in units of so many elements."""
    padded = (*_front(strides[:-1], 0), strides[-1])
    return four(*[stride // count for stride in padded])


@functools.lru_cache(1024)
def four(*values: int) -> Packed:
    """Four integers in the form that a launch takes fastest."""
    return packed(_FOUR_INTEGERS, *values)
