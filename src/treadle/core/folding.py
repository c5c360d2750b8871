"""Grids beyond what a device takes along an axis, in a shape that it takes.

The x axis is cut into chunks of one width, and the rows (a chunk of an x axis each) fill y and z:

    row = z * height + y          block x = row % chunks * width + x, if that is below the grid's x
                                  block y = row / chunks % grid y, block z = row / chunks / grid y

where width and height are the device's own grid and `chunks = (grid x - 1) / width + 1`. Kernels
compute that in 32 bits (`ir.passes.unfold`): a grid with more rows than those count is not folded.
"""

from __future__ import annotations

from treadle.core.dim3 import Dim3

_MOST_ROWS = (1 << 32) - 1


def fit_grid(grid: Dim3, most: Dim3, folds: bool) -> Dim3 | None:
    """The device's grid for a grid of blocks: the same one if no extent is above its own limit,
    otherwise folded, if the kernel `folds`. None if the device takes neither.

    >>> fit_grid(Dim3(1, 78125, 1), Dim3((1 << 31) - 1, 65535, 65535), True)
    Dim3(x=1, y=39063, z=2)
    """
    if all(extent <= limit for extent, limit in zip(grid, most, strict=True)):
        return grid
    return fold_grid(grid, most) if folds and min(grid) > 0 else None


def fold_grid(grid: Dim3, most: Dim3) -> Dim3 | None:
    """The device's grid for a grid of blocks; None if even that is too large for the device."""
    chunks = -(-grid.x // most.x)
    width = -(-grid.x // chunks)
    rows = -(-grid.x // width) * grid.y * grid.z
    depth = -(-rows // most.y)
    height = -(-rows // depth)
    if depth > most.z or height * depth > _MOST_ROWS:
        return None
    return Dim3(width, height, depth)
