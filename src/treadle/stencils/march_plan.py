"""Marches through planes (see `marching.py`): for which stencils they are possible, and which of
them are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle.ir import types as t
from treadle.runtime.arrays import DeviceArray, as_array, packed_strides
from treadle.runtime.devices import Device
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body

LANES = 4  # of a vector
_ELEMENTS = (t.F32, t.I32, t.U32)


@dataclass(frozen=True, slots=True)
class March:
    """A block: its threads along a row and across rows; the adjacent rows of a thread, and the
    adjacent cells of a row, one or four, which are then loaded and stored as a vector; the planes
    that are loaded ahead, those that are computed in an iteration of its loop, and the steps."""

    threads: tuple[int, int]  # x, y
    rows: int
    lanes: int = 1
    ahead: int = 1
    unrolled: int = 1
    steps: int = 1
    planes: int = 16  # of a block

    @property
    def tile(self) -> tuple[int, int]:
        """The cells of a block in a plane: rows, columns."""
        return self.threads[1] * self.rows, self.threads[0] * self.lanes

    @property
    def block(self) -> tuple[int, int, int]:
        """The threads of a block, x first."""
        return (*self.threads, 1)

    def pads(self, column: Column) -> tuple[tuple[int, int], tuple[int, int]]:
        """What a tile of an array has before and behind the block's cells: rows, and vectors."""
        rows, columns = column.halo or ((0, 0), (0, 0))
        before, behind = (-(-halo // self.lanes) for halo in columns)
        return rows, (before, behind)

    def extents(self, column: Column) -> tuple[int, int]:
        """The rows of an array's tile, and the vectors of a row."""
        rows, vectors = self.pads(column)
        return self.tile[0] + sum(rows), self.threads[0] + sum(vectors)

    def margins(self, column: Column) -> tuple[int, int]:
        """The cells along each side of a tile that are not right any more in the last step: rows,
        and columns, which are whole vectors."""
        rows, columns = (max(pair) * (self.steps - 1) for pair in column.halo or ((0, 0), (0, 0)))
        return rows, -(-columns // self.lanes) * self.lanes

    def stored(self, column: Column) -> tuple[int, int]:
        """The cells of a plane that a block stores: rows, columns."""
        rows, columns = self.margins(column)
        return self.tile[0] - 2 * rows, self.tile[1] - 2 * columns


@dataclass(frozen=True, slots=True)
class Column:
    """An array as a march reads it: the first and the last plane near a cell, and how far its
    tile goes beyond the block's cells (before and behind, of rows and of columns); None for an
    array of which nothing else is read in a plane."""

    at: int
    name: str
    planes: tuple[int, int]
    halo: tuple[tuple[int, int], tuple[int, int]] | None
    element: t.Scalar


def columns_of(body: Body, analysis: Analysis, storage: t.Scalar | None) -> list[Column] | None:
    """The arrays of a stencil that can march; None for one that cannot."""
    if analysis.ndim != 3 or not analysis.shared or not analysis.written:
        return None
    if analysis.stacks or analysis.shifted:
        return None
    offsets: dict[int, list[tuple[int, ...]]] = {}
    for at, each in analysis.shared:
        offsets.setdefault(at, []).append(each)
        if each[0] and any(each[1:]):
            return None  # another column of another plane
    for at, reach in analysis.cells.items():
        if at not in offsets and any(pair != (0, 0) for pair in reach):
            return None  # such elements are not kept in registers
    elements = dict(analysis.elements)
    found = []
    for at, reads in offsets.items():
        element = t.F32 if elements[at] == storage else elements[at]
        if not isinstance(element, t.Scalar) or element not in _ELEMENTS:
            return None
        reach = analysis.cells[at]
        tiled = any(any(each[1:]) for each in reads)
        halo = tuple((max(-low, 0), max(high, 0)) for low, high in reach[1:])
        planes = [0, *(each[0] for each in reads)]
        found.append(
            Column(
                at, body.names[at], (min(planes), max(planes)),
                (halo[0], halo[1]) if tiled else None, element,
            )
        )  # fmt: skip
    return found


def tile_bytes(columns: Sequence[Column], march: March) -> int:
    """The shared memory of a block: two tiles of each array."""
    return sum(8 * march.lanes * math.prod(march.extents(each)) for each in columns if each.halo)


def takes_vectors(body: Body, analysis: Analysis, columns: Sequence[Column]) -> bool:
    """Whether a stencil may compute four cells of a row as a vector, if rows are whole vectors: all
    arrays are of floats, and what it writes it writes always, and does not read."""
    elements = dict(analysis.elements)
    return (
        all(elements.get(at) == t.F32 for at in analysis.cells)
        and len(columns) + len(analysis.written) == len(analysis.cells)
        and analysis.outputs == analysis.written
        and all(body.names[at] in body.always_written for at in analysis.written)
        and analysis.rules[2].name != "skip"
    )


def vector_arrays(analysis: Analysis, columns: Sequence[Column]) -> tuple[int, ...]:
    """The arrays that a kernel is given as arrays of vectors, too."""
    return (*(each.at for each in columns), *analysis.written)


@dataclass(frozen=True, slots=True)
class Vectors:
    """An array of floats as an argument of a launch that takes vectors of its rows."""

    array: Any

    def __treadle_array__(self, kernel: str | None = None) -> DeviceArray:
        """The elements in memory."""
        found: DeviceArray = self.array.__treadle_array__(kernel)
        shape = (*found.shape[:-1], found.shape[-1] // LANES, LANES)
        return found.view(shape, packed_strides(shape), found.offset)

    def __treadle_written__(self) -> None:
        """A kernel writes the elements."""
        if written := getattr(self.array, "__treadle_written__", None):
            written()


def are_vectors(array: Any) -> bool:
    """Whether rows of an argument are whole vectors."""
    found = as_array(array)
    return (
        found is not None
        and found.contiguous
        and found.shape[-1] % LANES == 0
        and found.offset % LANES == 0
    )


# The fastest on an H200, by the planes that a thread holds for a cell, in all arrays, and the cells
# of a grid: four cells as a vector, or one. Few planes are better than many, although those near
# the first one are loaded twice: adjacent blocks are then at the same planes.
_MARCHES = (
    (4, 1 << 25, March((32, 8), 2, 4), March((64, 8), 4)),
    (12, 1 << 23, March((16, 16), 1, 4, planes=32), March((32, 8), 4, planes=32)),
)
_OF_STEPS = March((32, 16), 2, 4, unrolled=3, steps=3, planes=33)
_LEAST_OF_STEPS, _MOST_READS = 1 << 25, 9


def march_of(
    columns: Sequence[Column], vectors: bool, device: Device, region: Sequence[int]
) -> March | None:
    """How a grid marches on a GPU; None for a small one, for drivers that compute on a CPU, and for
    bodies that read too much."""
    traits = device.traits
    if traits.software or traits.on_host:
        return None
    held = sum(each.planes[1] - each.planes[0] + 1 for each in columns)
    for most, least, four, one in _MARCHES:
        if held <= most:
            return (four if vectors else one) if math.prod(region) >= least else None
    return None


def fits(
    march: March, columns: Sequence[Column], grid: tuple[int, int, int], device: Device
) -> bool:
    """Whether a device can run a march of so many blocks, x first."""
    limits = device.limits
    return (
        math.prod(march.threads) <= limits.max_threads_per_block
        and march.steps * tile_bytes(columns, march) <= limits.max_shared_memory
        and all(count <= most for count, most in zip(grid, tuple(limits.max_grid), strict=True))
    )


def march_planes(extent: int, march: March) -> int:
    """How many planes a block goes through."""
    return min(march.planes, extent)


def march_of_steps(
    column: Column, reads: int, device: Device, extents: Sequence[int], wanted: int | None
) -> March | None:
    """How several steps march: as many as are wanted, or what is fast. Steps are odd: their result
    is in the array in which it is after single steps."""
    fast = column.planes == (-1, 1) and reads <= _MOST_READS
    if wanted is None:
        large = math.prod(extents) >= _LEAST_OF_STEPS and not device.traits.software
        return _OF_STEPS if fast and large else None
    steps = wanted - (wanted % 2 == 0)
    if steps < 2:
        return None
    needed = steps * tile_bytes([column], _OF_STEPS)
    is_large = needed <= device.limits.max_shared_memory and not device.traits.slow_compiler
    if fast and steps == _OF_STEPS.steps and is_large:
        return _OF_STEPS
    return March((12, 6), 2, 4, steps=steps)
