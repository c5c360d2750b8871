"""Which tile of the fragment kernels of attention suits a problem: a table by a head's columns, and
what a device has room for.

An entry of `_TILES` is a block's queries and keys, and the queries of a warp; one of gradients is a
block's rows and the others that it goes over.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

from treadle.core.dtypes import DType, bfloat16, float16
from treadle.kernels.device_code.attention_fragments import FragmentTile
from treadle.kernels.device_code.attention_gradients import GradientTile
from treadle.kernels.device_code.attention_tiles import PIECE, Rows
from treadle.kernels.device_code.group_attention import GroupAttentionTile
from treadle.kernels.device_code.group_attention_gradients import GroupGradientTile
from treadle.kernels.device_code.opaque_attention import OpaqueAttending, OpaqueAttentionTile
from treadle.kernels.matrix_check import (
    attends_rightly,
    opaque_products,
    usable_groups,
    usable_products,
)
from treadle.kernels.tuned_tiles import TileKind, best_tile
from treadle.runtime.devices import Device

T = TypeVar("T")

MOST_COLUMNS = 256
_MOST_TOGETHER = 128  # columns of heads whose gradients of key and value fit the registers
_PART = 16  # columns of a fragment
# By the most columns of query and value: the first that keeps a card busy, or the one with the
# fewest rows.
_TILES: dict[int, tuple[FragmentTile, ...]] = {
    64: (FragmentTile(64, 64, 16, True),),
    128: (FragmentTile(128, 64, 16, True), FragmentTile(64, 64, 16, True)),
    MOST_COLUMNS: (FragmentTile(64, 64, 16, True), FragmentTile(64, 32, 16, True)),
}
# Of matrices whose layout is hidden: the first that a device has room for, and that is not much
# more than is needed.
_OPAQUE_TILES = (OpaqueAttentionTile(128, 32), OpaqueAttentionTile(64, 32))
_MOST_OPAQUE = 128  # columns
_FEW = FragmentTile(16, 64, 16)  # queries of one warp
_MODEST = FragmentTile(16, 16, 16)
_QUERY_GRADIENTS: dict[int, tuple[GradientTile, ...]] = {
    64: (GradientTile(128, 32, 32, True), GradientTile(64, 64, 16, True)),
    128: (GradientTile(128, 32, 32), GradientTile(64, 32, 16, True)),
    MOST_COLUMNS: (GradientTile(64, 32, 16), GradientTile(64, 16, 16)),
}
# One tile for the gradients of both key and value, or one for each.
_KEY_GRADIENTS: dict[int, tuple[tuple[GradientTile, ...], ...]] = {
    64: ((GradientTile(128, 32, 32),), (GradientTile(64, 64, 16, True),)),
    128: ((GradientTile(64, 64, 16),), (GradientTile(64, 32, 16),)),
    MOST_COLUMNS: ((GradientTile(64, 32, 16),) * 2, (GradientTile(64, 16, 16),) * 2),
}
# Of groups of 128 threads, where a device has them.
_GROUP_TILES: dict[int, GroupAttentionTile] = {
    64: GroupAttentionTile(192, 128, 4, True, 160),
    128: GroupAttentionTile(128, 192, 2, True, 240),
    192: GroupAttentionTile(128, 112, 2, True, 240),
    MOST_COLUMNS: GroupAttentionTile(128, 80, 2, True, 240),
}
# For the gradient of the query; for those of both key and value, or one for each.
_GROUP_GRADIENTS: dict[int, tuple[GroupGradientTile, tuple[GroupGradientTile, ...]]] = {
    64: (GroupGradientTile(192, 64, 4, 160), (GroupGradientTile(128, 96, 3, 240),)),
    128: (GroupGradientTile(128, 128, 2), (GroupGradientTile(128, 64, 3),)),
    192: (GroupGradientTile(128, 80, 2, 240), (GroupGradientTile(64, 64, 2, 1),) * 2),
    MOST_COLUMNS: (GroupGradientTile(128, 48, 2, 240), (GroupGradientTile(64, 64, 2, 1),) * 2),
}
_MODEST_GRADIENT = GradientTile(16, 16, 16)
_FEW_OF_GROUP = 64  # rows
_BUSY_BLOCKS = 192  # that keep a card busy: with fewer, smaller tiles are better


class Lengths(NamedTuple):
    """What a tile is chosen by: heads, queries and keys."""

    heads: int
    queries: int
    keys: int


def takes_fragments(device: Device, dtype: DType, depth: int, width: int, scale: float) -> bool:
    """Whether the fragment kernels can compute attention of heads of so many columns: of 16-bit
    floats, whatever else subgroups multiply. Maxima are found before the scale is applied, so it
    has to be positive."""
    return (
        dtype in (float16, bfloat16)
        and 0 < depth <= MOST_COLUMNS
        and 0 < width <= MOST_COLUMNS
        and 0.0 < scale < math.inf
        and dtype.short in usable_products(device)
    )


def rows_of(dtype: DType, columns: int, counts: tuple[int, ...]) -> Rows:
    """How rows of operands lie whose strides and offsets are `counts`."""
    padded = -(-int(columns) // _PART) * _PART
    aligned = all(count % PIECE == 0 for count in (columns, *counts))
    return Rows(dtype, padded, bool(columns == padded), aligned)


def tile_for(device: Device, lengths: Lengths, query: Rows, value: Rows) -> FragmentTile:
    """The tile for a problem."""
    if device.traits.software:
        return _MODEST
    if lengths.queries <= _FEW.queries:
        return _FEW
    tiles = _row(_TILES, query, value)
    fitting = [tile for tile in tiles if _fits(device, tile, query, value)]
    for tile in fitting:
        if _busy(lengths.heads, lengths.queries, tile.queries):
            return tile
    return min(fitting, key=lambda tile: tile.queries, default=_MODEST)


def opaque_tile_for(
    device: Device, dtype: DType, queries: int, what: OpaqueAttending
) -> OpaqueAttentionTile | None:
    """The tile of matrices whose layout is hidden; None where a device has none, or computes
    attention by them wrongly, where rows do not begin at multiples of 16 bytes, or for few
    queries."""
    query, value = what.query, what.value
    if dtype is not float16 or not (query.aligned and value.aligned):
        return None
    if max(query.columns, value.columns) > _MOST_OPAQUE or not opaque_products(device):
        return None
    for tile in _OPAQUE_TILES:
        if _has_room(device, tile.threads, tile.bytes(query, value)) and tile.queries < 2 * queries:
            return tile if attends_rightly(device, what, tile) else None
    return None


def fills_groups(*rows: int) -> bool:
    """Whether there are more rows of each operand than a group of threads has: with fewer, most of
    a block would compute what is not needed."""
    return all(count > _FEW_OF_GROUP for count in rows)


def group_tile_for(
    device: Device, dtype: DType, depth: int, width: int, counts: tuple[int, ...]
) -> GroupAttentionTile | None:
    """The tile of groups of threads for heads of so many columns, of operands whose strides and
    offsets are `counts`; None where the device has none, or rows do not begin at multiples of 16
    bytes."""
    if dtype.short not in usable_groups(device) or any(count % PIECE for count in counts):
        return None
    tile = next(found for most, found in _GROUP_TILES.items() if max(depth, width) <= most)
    return tile if _has_room(device, tile.threads, tile.bytes(depth, width)) else None


def group_gradient_tiles(
    device: Device, dtype: DType, depth: int, width: int, counts: tuple[int, ...]
) -> tuple[GroupGradientTile, tuple[GroupGradientTile, ...]] | None:
    """As `group_tile_for`: the tile for the gradient of the query, and those of
    `key_gradient_tiles`."""
    if dtype.short not in usable_groups(device) or any(count % PIECE for count in counts):
        return None
    columns = max(depth, width)
    query, keys = next(found for most, found in _GROUP_GRADIENTS.items() if columns <= most)
    asked = [(query.threads, query.bytes(depth, width))]
    asked += [(tile.threads, tile.key_bytes(depth, width)) for tile in keys]
    return (query, keys) if all(_has_room(device, *each) for each in asked) else None


def _has_room(device: Device, threads: int, bytes: int) -> bool:
    limits = device.limits
    return threads <= limits.max_threads_per_block and bytes <= limits.max_shared_memory


def query_gradient_tile(
    device: Device, heads: int, queries: int, query: Rows, value: Rows
) -> GradientTile:
    """The tile for the gradient of the query."""
    if device.traits.software:
        return _MODEST_GRADIENT
    tiles = _row(_QUERY_GRADIENTS, query, value)
    fitting = [tile for tile in tiles if _fits(device, tile, query, value)]
    for tile in fitting:
        if _busy(heads, queries, tile.rows):
            return tile
    return min(fitting, key=lambda tile: tile.rows, default=_MODEST_GRADIENT)


def key_gradient_tiles(
    device: Device, heads: int, keys: int, query: Rows, value: Rows
) -> tuple[GradientTile, ...]:
    """The tile for the gradients of both key and value, or one for each of them."""
    columns = max(query.columns, value.columns)
    modest = (_MODEST_GRADIENT,) * (1 if columns <= _MOST_TOGETHER else 2)
    if device.traits.software:
        return modest
    choices = _row(_KEY_GRADIENTS, query, value)
    fitting = [
        tiles for tiles in choices if all(_fits(device, tile, query, value) for tile in tiles)
    ]
    for tiles in fitting:
        if _busy(heads, keys, tiles[0].rows):
            return tiles
    return min(fitting, key=lambda tiles: tiles[0].rows, default=modest)


def _row(table: dict[int, T], query: Rows, value: Rows) -> T:
    """What a table has for so many columns."""
    columns = max(query.columns, value.columns)
    return next(found for most, found in table.items() if columns <= most)


def _busy(heads: int, rows: int, together: int) -> bool:
    """Whether blocks of so many rows keep a card busy."""
    return bool(heads * -(-rows // together) >= _BUSY_BLOCKS)


def _fits(device: Device, tile: FragmentTile | GradientTile, query: Rows, value: Rows) -> bool:
    limits = device.limits
    return (
        tile.threads <= limits.max_threads_per_block
        and tile.bytes(query, value) <= limits.max_shared_memory
    )


TUNED_FRAGMENTS = TileKind("attention", 1, "fragments", FragmentTile, lambda *_: True)


def best_tile_for(device: Device, lengths: Lengths, query: Rows, value: Rows) -> FragmentTile:
    """What was measured to be the fastest, or the first guess."""
    first = tile_for(device, lengths, query, value)
    sizes = *lengths, query.columns
    tile = best_tile(device, TUNED_FRAGMENTS, query.dtype.short, sizes, first)
    return tile if _fits(device, tile, query, value) else first
