"""How a stencil is launched: the extents of its grid, and the part of it that each thread has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from treadle.core.errors import ShapeError
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body

# What a serial thread reads and writes: the cost of a block is that of some hundred bytes, and
# threads share the blocks.
_MOST_BYTES = 1 << 18
# The planes that are near a cell, in three dimensions: what of them a thread goes along stays in
# the processor's second cache.
_CACHE_BYTES = 1 << 23

# What a GPU's thread goes along, and the threads that fill a large GPU.
_MOST_PLANES = 32
_LEAST_THREADS = 1 << 18


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a call. `region` are the extents of those that are computed."""

    extents: tuple[int, ...]
    region: tuple[int, ...]
    same_shape: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is no cell to compute."""
        return any(extent <= 0 for extent in self.region)


def grid_of(body: Body, analysis: Analysis, shapes: Mapping[int, tuple[int, ...]]) -> Grid:
    """The grid of a call, whose arrays have these extents. ShapeError if they do not fit each
    other, or a boundary's rule needs larger ones."""
    ndim = analysis.ndim
    cells = list(analysis.cells)
    chosen = analysis.written or tuple(cells[:1])
    first = shapes[chosen[0]]
    same = True
    for at in cells:
        if shapes[at] != first:
            same = False
    if same:
        extents = first
    else:
        extents = tuple(max(shapes[at][axis] for at in chosen) for axis in range(ndim))
        _check_extents(body, cells, shapes, extents, chosen[0])
    region = list(extents)
    for axis, rule in enumerate(analysis.rules):
        if rule.name == "skip":
            low, _ = analysis.reach(axis)
            least = min(shapes[at][axis] - analysis.cells[at][axis][1] for at in cells)
            region[axis] = min(least, extents[axis]) - max(-low, 0)
        elif rule.name in ("wrap", "mirror"):
            _check_halo(body, analysis, axis, rule.name, shapes, extents[axis])
    return Grid(extents, tuple(region), same)


def _check_extents(
    body: Body,
    cells: Sequence[int],
    shapes: Mapping[int, tuple[int, ...]],
    extents: tuple[int, ...],
    chosen: int,
) -> None:
    """Refuse extents that differ by more than one from the grid's, as those of staggered grids do,
    and arrays without elements for a grid that has cells."""
    for at in cells:
        for axis, (mine, whole) in enumerate(zip(shapes[at], extents, strict=True)):
            if abs(mine - whole) > 1 or (mine == 0) != (whole == 0):
                raise ShapeError(
                    f"{body.names[at]} has shape {shapes[at]}, and {body.names[chosen]}, which "
                    f"{body.name} writes, {shapes[chosen]}: extents along axis {axis} are equal, "
                    "or differ by one (a staggered grid)"
                )


def _check_halo(
    body: Body,
    analysis: Analysis,
    axis: int,
    rule: str,
    shapes: Mapping[int, tuple[int, ...]],
    grid: int,
) -> None:
    """Refuse a halo that is wider than an array: "wrap" and "mirror" go around once. On a staggered
    grid the last cell may be outside the array already."""
    for at in analysis.cells:
        extent = shapes[at][axis]
        low, high = analysis.cells[at][axis]
        beyond = max(-low, high + grid - extent)
        least = beyond if rule == "wrap" else beyond + 1
        if 1 < extent < least:
            raise ShapeError(
                f"{body.name} reads {body.names[at]} up to {beyond} cells outside along axis "
                f'{axis}, of which there are {extent}: boundary="{rule}" needs at least {least}'
            )


def gpu_threads(region: tuple[int, ...], marching: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The threads of a launch on a GPU, and the kernel's last parameter: how many cells a thread
    has along the slowest axis, if it goes along it."""
    if not marching:
        return region, ()
    columns = math.prod(region[1:])
    planes = max(1, min(_MOST_PLANES, columns * region[0] // _LEAST_THREADS))
    return (-(-region[0] // planes), *region[1:]), (planes,)


def serial_parts(
    region: Sequence[int], cell_bytes: int, planes_near: int
) -> tuple[int, tuple[int, int, int]]:
    """The threads of a launch, each with rows of its own, and the kernel's last parameters: how
    many planes and rows (cells, in one dimension) a thread has, and the bands of rows in a
    plane."""
    if len(region) == 1:
        cells = max(64, _MOST_BYTES // cell_bytes)
        return -(-region[0] // cells), (1, cells, 1)
    row = max(region[-1] * cell_bytes, 1)
    rows = region[-2]
    if len(region) == 2:
        each = max(1, min(_MOST_BYTES // row, rows))
        return -(-rows // each), (1, each, 1)
    each = max(1, min(_CACHE_BYTES // (row * max(planes_near, 1)), rows))
    bands = -(-rows // each)
    planes = max(1, min(_MOST_BYTES * 16 // (row * each), region[0]))
    return bands * -(-region[0] // planes), (planes, each, bands)
