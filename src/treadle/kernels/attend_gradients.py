"""The gradients of attention by fragments: every sum stays in registers, nothing as large as the
scores is in memory, and repeated runs give the same bits."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from treadle.core.dtypes import DType, i32
from treadle.core.limits import MOST_NARROW
from treadle.kernels.attend import NEAR_BYTES, Laid, Problem, four, has_rows, placed_at
from treadle.kernels.attention_tiles import (
    fills_groups,
    group_gradient_tiles,
    key_gradient_tiles,
    query_gradient_tile,
    rows_of,
    takes_fragments,
)
from treadle.kernels.device_code import attention
from treadle.kernels.device_code.attention_gradients import (
    Deriving,
    Strides,
    key_gradients,
    query_gradient,
)
from treadle.kernels.device_code.group_attention import Heads, lines_of
from treadle.kernels.device_code.group_attention_gradients import (
    GroupDeriving,
    GroupGradientTile,
    group_key_gradients,
    group_query_gradient,
)
from treadle.kernels.device_code.text_tiles import FIELDS, TABLE
from treadle.kernels.launching import flat, for_any_sizes, new, packed, serial_threads
from treadle.kernels.text_tiles import text_tiles, texts_of
from treadle.lang.types import VectorType
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.convert import Packed
from treadle.runtime.devices import Device

_AXES = 3  # of heads
_TWO_INTEGERS = VectorType(i32, 2)


def derived_by_fragments(device: Device, dtype: DType, p: Problem, largest: int) -> bool:
    """Whether `attend_backward_by_fragments` can compute a problem whose largest operand has so
    many elements."""
    reached = math.prod(p.heads) * max(p.queries, p.keys) * max(p.depth, p.width)
    return (
        not serial_threads(device)
        and len(p.heads) <= _AXES
        and max(reached, largest) < MOST_NARROW
        and takes_fragments(device, dtype, p.depth, p.width, p.scale)
    )


@for_any_sizes
def attend_backward_by_fragments(
    query: DeviceArray,
    key: DeviceArray,
    value: DeviceArray,
    gradient: DeviceArray,
    norms: DeviceArray,
    sums: DeviceArray,
    *more: Any,
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """As `attend_products.attend_backward`, with the dtype of the gradients of key and value as a
    last argument."""
    *given, p, result = more
    dtype, own = query.dtype, p.own
    assert isinstance(dtype, DType)
    of_query = new(query, dtype, *p.heads, p.queries, p.depth)
    of_key = new(query, result, *own, p.keys, p.depth)
    of_value = new(query, result, *own, p.keys, p.width)
    mask = given.pop(0) if p.mask is not None else None
    draws = given.pop() if p.dropout else None
    starts = (given[0], given[1]) if p.packed else None
    texts = 1 if starts is None else max(texts_of(starts), 1)
    arrays = query, key, value, gradient
    kind = TABLE if p.packed else None if mask is None else mask.dtype
    what = _deriving(arrays, p, kind, result)
    read = [flat(array) for array in (*arrays, norms, sums)]
    seen = 0 if mask is None else flat(mask)
    drawn = 0 if draws is None else draws
    front = _front(p.heads)
    left = p.queries if p.left is None else min(p.left, p.queries)
    right = p.keys if p.right is None else min(p.right, p.keys)
    steps = [_strides(laid, 0) for laid in (p.query, p.key, p.value)]
    steps.append(_strides(None, 1) if p.mask is None else _strides(p.mask, 1))
    sizes, heads = four(p.queries, p.keys, p.depth, p.width), _two(*front[1:])
    reach = four(left, right, 0, 0)
    numbers = p.scale * attention.LOG2_E, p.scale, 1.0 - p.dropout
    device = query.device
    plain = mask is None and draws is None and not p.packed
    if plain and has_rows(p) and fills_groups(p.queries, p.keys):
        laid = (p.query, p.key, p.value, Laid((p.width,), 0))
        counts = [
            count
            for array, each in zip(arrays, laid, strict=True)
            for count in (*each.strides, each.offset, array.offset)
        ]
        groups = group_gradient_tiles(device, dtype, p.depth, p.width, tuple(counts))
        if groups is not None:
            _by_groups(read, (of_query, of_key, of_value), p, groups)
            return of_query, of_key, of_value
    if of_query.size:
        count = math.prod(p.heads)
        usual = -(-p.queries // texts)
        tile = query_gradient_tile(device, count * texts, usual, what.query, what.value)
        blocks = -(-p.queries // tile.rows)
        if starts is not None:
            seen = text_tiles(starts, p.queries, p.keys, tile.rows)
            blocks = seen.size // FIELDS
        query_gradient(what._replace(result=dtype), tile)[count * blocks, tile.threads](
            *read, seen, drawn, flat(of_query), *steps, sizes, heads, reach, *numbers
        )
    if not of_key.size:
        return of_query, of_key, of_value
    owned, count = _front(own), math.prod(own)
    several = tuple(n // o for n, o in zip(front, owned, strict=True))
    shared = four(several[1], several[2], 0, math.prod(several))
    usual = -(-p.keys // texts)
    tiles = key_gradient_tiles(device, count * texts, usual, what.query, what.value)
    for i, tile in enumerate(tiles):
        # Two tiles are for the gradient of the key, then of the value.
        part = what if len(tiles) == 1 else what._replace(keys=i == 0, values=i == 1)
        blocks = -(-p.keys // tile.rows)
        if starts is not None:
            seen = text_tiles((starts[1], starts[0]), p.keys, p.queries, tile.rows)
            blocks = seen.size // FIELDS
        key_gradients(part, tile)[count * blocks, tile.threads](
            *read, seen, drawn, flat(of_key), flat(of_value), *steps, sizes, heads,
            _two(*owned[1:]), shared, reach, *numbers,
        )  # fmt: skip
    return of_query, of_key, of_value


def _by_groups(
    operands: Sequence[DeviceArray],
    results: tuple[DeviceArray, DeviceArray, DeviceArray],
    p: Problem,
    tiles: tuple[GroupGradientTile, tuple[GroupGradientTile, ...]],
) -> None:
    """The gradients, where groups of 128 threads multiply tiles from boxes of memory."""
    of_query, of_key, of_value = results
    dtype, result = of_query.dtype, of_key.dtype
    assert isinstance(dtype, DType)
    assert isinstance(result, DType)
    heads, own = _front(p.heads), _front(p.own)
    lanes, value_lanes = (4 if columns % 4 == 0 else 1 for columns in (p.depth, p.width))
    deep, wide = lines_of(p.depth), lines_of(p.width)
    what = GroupDeriving(dtype, deep, wide, dtype, lanes, value_lanes)
    size = p.queries * p.width
    of_gradient = (heads[1] * heads[2] * size, heads[2] * size, size, p.width)
    places = [placed_at(laid.offset, laid.strides) for laid in (p.query, p.key, p.value)]
    places.append(placed_at(0, of_gradient))
    left = p.queries if p.left is None else min(p.left, p.queries)
    right = p.keys if p.right is None else min(p.right, p.keys)
    sizes = p.queries, p.keys, p.depth, p.width
    numbers = left, right, p.scale * attention.LOG2_E, p.scale
    near = NEAR_BYTES // ((p.depth + p.width) * dtype.itemsize)
    tile, key_tiles = tiles
    several = tuple(n // o for n, o in zip(heads, own, strict=True))
    count, shares = math.prod(heads), math.prod(several)
    if of_query.size:
        together = min(max(near // p.keys, 1) * several[2], count)
        blocks = count * -(-p.queries // tile.rows)
        group_query_gradient(what, tile)[blocks, tile.threads](
            *operands, flat(of_query), *places, *sizes, packed(Heads, *heads, together), *numbers
        )
    for i, each in enumerate(key_tiles if of_key.size or of_value.size else ()):
        part = what._replace(result=result, shared=shares > 1)
        if len(key_tiles) > 1:
            part = part._replace(keys=i == 0, values=i == 1)
        together = min(max(near // (p.queries * shares), 1), math.prod(own))
        blocks = math.prod(own) * -(-p.keys // each.rows)
        group_key_gradients(part, each)[blocks, each.threads](
            *operands, flat(of_key), flat(of_value), *places, *sizes, packed(Heads, *heads, 1),
            packed(Heads, *own, together), packed(Heads, *several, 1), *numbers,
        )  # fmt: skip


def _deriving(
    arrays: tuple[DeviceArray, ...], p: Problem, mask: DType | None, result: DType
) -> Deriving:
    query, key, value, gradient = (
        (*laid.strides, laid.offset, array.offset)
        for array, laid in zip(arrays, (p.query, p.key, p.value, Laid((p.width,), 0)), strict=True)
    )
    dtype = arrays[0].dtype
    assert isinstance(dtype, DType)
    lanes, value_lanes = (4 if columns % 4 == 0 else 1 for columns in (p.depth, p.width))
    return Deriving(
        rows_of(dtype, p.depth, query + key),
        rows_of(dtype, p.width, value),
        rows_of(dtype, p.width, gradient),
        mask, p.dropout > 0, result, lanes, value_lanes,
    )  # fmt: skip


def _strides(laid: Laid | None, columns: int) -> Packed:
    """Where an operand is, `columns` of whose axes follow that of rows."""
    if laid is None:
        return packed(Strides, 0, 0, 0, 0, 0, 0)
    moves = laid.strides if columns else (*laid.strides, 1)
    *heads, row, column = moves
    return packed(Strides, laid.offset, *((0,) * (_AXES - len(heads)) + tuple(heads)), row, column)


def _front(values: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (_AXES - len(values)) + tuple(values)


@functools.lru_cache(256)
def _two(*values: int) -> Packed:
    return packed(_TWO_INTEGERS, *values)
