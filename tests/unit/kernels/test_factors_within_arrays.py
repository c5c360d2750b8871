"""Products whose factors and result begin within larger arrays, by each kind of tile: on the PTX
evaluator, which faults at what is read outside."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from tests.support.ptx_device import ptx_device
from treadle.kernels.factors import Factor, Product
from treadle.kernels.product import by_tiles
from treadle.kernels.tiles import (
    FRAGMENT_TILES,
    GROUP_TILES,
    OPAQUE_TILES,
    TILES,
    AnyTile,
)

STARTS = (64, 128, 192)  # of the factors and of the result
SIZES = [(40, 72, 40), (16, 32, 8)]


def _kinds() -> Iterator[AnyTile]:
    """A tile of each kind, of float32 ones by how many copies are in shared memory."""
    tiles = [tile for key, tiles in TILES.items() if key[1] == 4 for tile in tiles]
    yield from {tile.copies: tile for tile in reversed(tiles)}.values()
    yield FRAGMENT_TILES["small"][0]
    yield OPAQUE_TILES["small"][0]
    yield next(iter(GROUP_TILES))


KINDS = list(_kinds())


@pytest.mark.parametrize("tile", KINDS, ids=str)
def test_begins(tile: AnyTile) -> None:
    rng = np.random.default_rng()
    dtype = td.float32 if type(tile) in {type(each[0]) for each in TILES.values()} else td.float16
    with ptx_device("sm_90") as device:
        every = [*zip(SIZES * 2, (0, 1, 2, 3), strict=True)]
        # Half of the ways for one tile, the others for the next.
        ways = every[::3] if KINDS.index(tile) % 2 else every[1:3]
        for (rows, columns, inner), turned in ways:
            extents = (rows * inner, inner * columns, rows * columns)
            held = [
                td.asarray(rng.standard_normal(start + size), dtype=dtype, device=device).realize()
                for start, size in zip(STARTS, extents, strict=True)
            ]
            values = [each.numpy().astype("f8") for each in held]
            x, y, out = (
                each._array.view((size,), (1,), each._array.offset + start)
                for each, start, size in zip(held, STARTS, extents, strict=True)
            )
            left = Factor((), *((1, rows) if turned & 1 else (inner, 1)), 0)
            right = Factor((), *((inner, 1) if turned & 2 else (1, columns)), 0)
            by_tiles(x, y, out, Product((), rows, columns, inner, left, right), tile)
            a, b = values[0][STARTS[0] :], values[1][STARTS[1] :]
            a = a.reshape(inner, rows).T if turned & 1 else a.reshape(rows, inner)
            b = b.reshape(columns, inner).T if turned & 2 else b.reshape(inner, columns)
            found = held[2].numpy()
            np.testing.assert_array_equal(found[: STARTS[2]], values[2][: STARTS[2]])
            near = 1e-5 if dtype is td.float32 else 2e-2
            np.testing.assert_allclose(
                found[STARTS[2] :].reshape(rows, columns), a @ b, rtol=near, atol=near
            )
