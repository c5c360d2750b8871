"""Which tile of the fragment kernels of attention suits a problem: a table by a head's columns, and
what a device has room for.

An entry of `_TILES` is a block's queries and keys, and the queries of a warp; one of gradients is a
block's rows and the others that it goes over.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from treadle.core.dtypes import DType
from treadle.kernels.device_code.attention_fragments import FragmentTile
from treadle.kernels.device_code.attention_gradients import GradientTile
from treadle.kernels.device_code.attention_tiles import PIECE, Rows
from treadle.kernels.matrix_check import usable_products
from treadle.runtime.devices import Device

MOST_COLUMNS = 256
_PART = 16  # columns of a fragment
# By the most columns of query and value: first the tile of many queries.
_TILES: dict[int, tuple[FragmentTile, ...]] = {
    64: (FragmentTile(128, 64, 32, True), FragmentTile(64, 64, 16, True)),
    128: (FragmentTile(128, 64, 32), FragmentTile(64, 64, 16, True)),
    MOST_COLUMNS: (FragmentTile(64, 64, 16), FragmentTile(64, 32, 16)),
}
_FEW = FragmentTile(16, 64, 16)  # queries of one warp
_MODEST = FragmentTile(16, 16, 16)
_QUERY_GRADIENTS: dict[int, tuple[GradientTile, ...]] = {
    64: (GradientTile(64, 64, 16, True),),
    128: (GradientTile(64, 64, 16, True), GradientTile(64, 32, 16, True)),
    MOST_COLUMNS: (GradientTile(64, 32, 16), GradientTile(64, 16, 16)),
}
_KEY_GRADIENTS: dict[int, tuple[GradientTile, ...]] = {
    64: (GradientTile(64, 64, 16, True),),
    128: (GradientTile(64, 64, 16), GradientTile(64, 32, 16), GradientTile(64, 16, 16)),
    MOST_COLUMNS: (GradientTile(64, 32, 16), GradientTile(64, 16, 16)),
}
_MODEST_GRADIENT = GradientTile(16, 16, 16)
_BUSY_BLOCKS = 192  # that keep a card busy: with fewer, smaller tiles are better


class Lengths(NamedTuple):
    """What a tile is chosen by: heads, queries and keys."""

    heads: int
    queries: int
    keys: int


def takes_fragments(device: Device, dtype: DType, depth: int, width: int, scale: float) -> bool:
    """Whether the fragment kernels can compute attention of heads of so many columns. Maxima are
    found before the scale is applied, so it has to be positive."""
    return (
        0 < depth <= MOST_COLUMNS
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
    columns = max(query.columns, value.columns)
    tiles = next(tiles for most, tiles in _TILES.items() if columns <= most)
    fitting = [tile for tile in tiles if _fits(device, tile, query, value)]
    for tile in fitting[:-1]:
        if lengths.heads * -(-lengths.queries // tile.queries) >= _BUSY_BLOCKS:
            return tile
    return fitting[-1] if fitting else _MODEST


def query_gradient_tile(device: Device, query: Rows, value: Rows) -> GradientTile:
    """The tile for the gradient of the query."""
    return _gradient_tile(device, _QUERY_GRADIENTS, query, value)


def key_gradient_tile(device: Device, query: Rows, value: Rows) -> GradientTile:
    """The tile for the gradients of key and value."""
    return _gradient_tile(device, _KEY_GRADIENTS, query, value)


def _gradient_tile(
    device: Device, table: dict[int, tuple[GradientTile, ...]], query: Rows, value: Rows
) -> GradientTile:
    if device.traits.software:
        return _MODEST_GRADIENT
    columns = max(query.columns, value.columns)
    tiles = next(tiles for most, tiles in table.items() if columns <= most)
    return next((tile for tile in tiles if _fits(device, tile, query, value)), _MODEST_GRADIENT)


def _fits(device: Device, tile: FragmentTile | GradientTile, query: Rows, value: Rows) -> bool:
    limits = device.limits
    return (
        tile.threads <= limits.max_threads_per_block
        and tile.bytes(query, value) <= limits.max_shared_memory
    )
