"""The library's product of float32 matrices by tiles, launched by itself: which tile suits a card?

What is found goes by hand into `treadle.kernels.tiles`.
"""

from __future__ import annotations

from treadle.core.dtypes import f32
from treadle.kernels.device_code.matrix_product import Form, Loading, Tile
from treadle.kernels.product import multiplier_for
from treadle.kernels.tiles import TILES
from treadle.lang.decorators import Kernel

LARGE = {spec: TILES[spec == "cuda", 4, "large"][0] for spec in ("cuda", "webgpu", "dawn")}
# By the rows and columns of the matrices.
CANDIDATES = {
    4096: [
        Tile(128, 128, depth, 2, 2, copies, beside, guarded=guarded)
        for depth in (8, 16)
        for copies in (1, 2, 3, 4)
        for beside in (16, 4)
        for guarded in (False, True)
    ],
    1024: [
        Tile(*shape, copies, beside)
        for *shape, beside in (
            (64, 64, 16, 1, 1, 16), (64, 64, 8, 1, 1, 16), (64, 64, 16, 2, 1, 16),
            (64, 64, 16, 2, 2, 8), (64, 64, 8, 2, 2, 8), (128, 64, 16, 2, 1, 16),
            (128, 64, 8, 2, 2, 8), (64, 128, 16, 1, 2, 16), (32, 64, 16, 1, 1, 16),
        )
        for copies in (1, 2)
    ],
}  # fmt: skip


def matmul_of(tile: Tile, turned: bool = False) -> Kernel:
    """The kernel for matrices that lie row by row, of multiples of the tile; the second one may lie
    column by column."""
    first, second = Loading(inner=True, lanes=4), Loading(inner=turned, lanes=4)
    return multiplier_for(Form(f32, 0, first, second, 4, not tile.guarded, False), tile)


def numbers(n: int) -> tuple[int, ...]:
    """What it takes after the arrays, for matrices of n rows and columns."""
    nothing = (0, 0, 0)
    return (n, n, n, 1, 1, *nothing, n // 4, 1, 0, *nothing, 1, n // 4, 0, 1, n)
