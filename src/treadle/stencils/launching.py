"""How a stencil is launched: the extents of its grid, and the part of it that each thread has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from treadle.core.errors import ShapeError
from treadle.runtime.devices import Device
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body

# What a serial thread reads and writes: the cost of a block is that of some hundred bytes, and
# threads share the blocks.
_MOST_BYTES = 1 << 18
# The planes that are near a cell, in three dimensions: what of them a thread goes along stays in
# the processor's second cache.
_CACHE_BYTES = 1 << 23

_LEAST_THREADS = 1 << 18  # that fill a large GPU
_LARGE_GRID = 1 << 18  # cells


@dataclass(frozen=True, slots=True)
class GpuForm:
    """What a thread of a GPU computes along the slowest axis: so many cells at once, and at most
    so many in all, if enough threads are left. `block` has the threads of a block, x first."""

    cells: int
    block: tuple[int, int, int] | None
    most: int


ONE_CELL = GpuForm(1, None, 1)
# The fastest of 150 forms on an H200, by the axes of the grid and the reads of a body. Longer
# bodies are not repeated.
_GPU_FORMS = (
    (2, 32, GpuForm(8, (256, 1, 1), 8)),
    (3, 12, GpuForm(4, (64, 2, 1), 4)),
    (3, 32, GpuForm(8, (32, 8, 1), 32)),
    (3, 1 << 30, GpuForm(1, None, 32)),
)
# The cells of a stack share no loads: each thread has one. Small blocks were the fastest of ten on
# an H200, as a body keeps many registers.
_STACK_FORM = GpuForm(1, (64, 1, 1), 1)


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a call. `region` are the extents of those that are computed."""

    extents: tuple[int, ...]
    region: tuple[int, ...]
    same_shape: bool

    @property
    def is_empty(self) -> bool:
        """Whether the grid is empty."""
        return any(extent <= 0 for extent in self.region)


def shapes_of(body: Body, analysis: Analysis, arrays: Sequence[Any]) -> dict[int, tuple[int, ...]]:
    """The extents that each array accessed at the position has along the grid's axes. ShapeError
    for a stack of too few grids."""
    found = {}
    for at in analysis.cells:
        shape = tuple(arrays[at].shape)
        lead = analysis.leading(at)
        for axis, least in enumerate(dict(analysis.stacks).get(at, ())):
            extent = shape[axis]
            if extent < least:
                raise ShapeError(
                    f"{body.names[at]} is a stack of {extent} grids along axis {axis}, and "
                    f"{body.name} accesses grid {least - 1} of it: give it an array of at least "
                    f"{least}, as of shape {(*shape[:axis], least, *shape[axis + 1 :])}"
                )
        found[at] = shape[lead : lead + analysis.ndim]
    return found


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
        if analysis.shifted:
            written = body.names[min(analysis.shifted)]
            raise ShapeError(
                f"{body.name} writes {written} at neighbours, for which all of its arrays have the "
                f"same extents: {', '.join(f'{body.names[at]} has {shapes[at]}' for at in cells)}"
            )
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


def usual_form(analysis: Analysis) -> GpuForm:
    """How a large grid is computed on a GPU."""
    if analysis.stacks:
        return _STACK_FORM
    for ndim, most_reads, form in _GPU_FORMS:
        if ndim == analysis.ndim and analysis.reads <= most_reads:
            return form
    return ONE_CELL


def gpu_form(analysis: Analysis, device: Device, region: Sequence[int]) -> GpuForm:
    """How a grid is computed on a GPU: a small one, and any grid by a driver that computes on a
    CPU, with one cell a thread at once."""
    traits, form = device.traits, usual_form(analysis)
    if traits.software or traits.on_host or math.prod(region) < _LARGE_GRID:
        return ONE_CELL
    if form.block is not None and math.prod(form.block) > device.limits.max_threads_per_block:
        return replace(form, block=None)
    return form


def gpu_threads(
    analysis: Analysis, region: tuple[int, ...], form: GpuForm
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The threads of a launch on a GPU, and the kernel's last parameter: how many cells a thread
    has along the slowest axis."""
    if analysis.ndim == 1:
        return region, ()
    cells = form.cells
    planes = max(cells, min(form.most, math.prod(region) // _LEAST_THREADS // cells * cells))
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
