"""The cell of a grid at which a stencil is computed, and what reads near it give.

A stencil's kernel makes positions of indices with a `CellRules` object. The lowering knows these
objects (`lower.positions`); the interpreter calls them, and gets a `GridPos`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.ir import types as t
from treadle.lang.definitions import DeviceFunction
from treadle.lang.types import make_value

# The steps of named neighbours along the last axes, the last one first.
NEIGHBOURS: dict[str, tuple[int, int]] = {  # name: (axis from the end, step)
    "west": (1, -1), "east": (1, 1), "north": (2, -1), "south": (2, 1), "up": (3, -1),
    "down": (3, 1),
}  # fmt: skip
RULES = ("clamp", "wrap", "mirror", "zero", "constant", "skip")
REPLACING = ("zero", "constant", "function")  # those that read no other element of the array
WRITTEN_OUTSIDE = ("wrap", "zero", "constant", "skip")  # by which writes keep cells apart


@dataclass(frozen=True, slots=True)
class AxisRule:
    """What a read outside an array along one axis gives: one of RULES, or "function"."""

    name: str
    value: bool | int | float = 0
    function: DeviceFunction | None = None


@dataclass(frozen=True, slots=True)
class CellRules:
    """How positions read. `inside` says for each axis whether reads before the cell, and behind it,
    are known to be inside all arrays; `same_shape` whether all have the grid's extents."""

    axes: tuple[AxisRule, ...]
    inside: tuple[tuple[bool, bool], ...]
    same_shape: bool = True
    wide: bool = False  # whether `pos.index` has 64 bits
    storage: t.Scalar | None = None  # floats that arrays keep, and that are read as float32
    # The neighbours, by parameters and offsets, whose elements are given with the indices.
    given: tuple[tuple[str, tuple[int, ...]], ...] = ()
    grid: str = "the grid of this stencil"  # what messages call it

    def __call__(self, *indices: Any) -> GridPos:
        """The position in the interpreter."""
        return GridPos(self, indices[: self.ndim])

    def sides(self, axis: int, offset: int) -> tuple[bool, bool]:
        """Whether a read at an offset along an axis may be before the array, and behind it."""
        before, behind = self.inside[axis]
        return (
            not before and offset < 0,
            not behind and (offset > 0 or not self.same_shape),
        )

    @property
    def ndim(self) -> int:
        """The number of axes of the grid."""
        return len(self.axes)


@dataclass(frozen=True, slots=True)
class Tile:
    """Makes views of a kernel's own memory that hold a part of an array: `tile(memory, array,
    offset)` has the array's extents and indices, and its elements are those of the memory, with
    these strides. Beyond the ends of axes that wrap it has what follows there."""

    strides: tuple[int, ...]


class GridPos:
    """The cell at which a stencil is computed, annotated `pos: td.GridPos`.

    `u[pos]` is the element of an array there, and `out[pos] = value` writes it. `pos.north(u)` is
    the element of the row before, `south`, `west`, `east` those of the next row and of the adjacent
    columns; in three dimensions `up` and `down` are those of the adjacent planes. `pos.at(u, di,
    dj)` is any neighbour, by constant offsets along each axis, and `pos.shifted(di, dj)` its place,
    which may be written: `out[pos.shifted(0, 1)] = value`. `pos.index` is the tuple of the indices.
    Outside an array, a neighbour is what the stencil's `boundary` says. Of a stack of grids, an
    array with more axes than the grid, `f[q]` is one: `f[q][pos]`, `pos.west(f[q])`.
    """

    __slots__ = ("index", "rules")

    def __init__(self, rules: CellRules, indices: tuple[Any, ...]) -> None:
        self.rules = rules
        self.index = tuple(np.int32(index) for index in indices)

    def shifted(self, *offsets: int) -> ShiftedPos:
        """The place at constant offsets from this cell, one for each axis: an index of arrays."""
        return ShiftedPos(self, tuple(int(step) for step in offsets))

    def at(self, array: Any, *offsets: int) -> Any:
        """The element of an array at constant offsets from this cell, one for each axis."""
        indices = [int(index) + int(step) for index, step in zip(self.index, offsets, strict=True)]
        outside: AxisRule | None = None
        for axis, rule in enumerate(self.rules.axes):
            extent = int(array.extents[axis])
            if 0 <= indices[axis] < extent:
                continue
            if rule.name in REPLACING:
                outside = outside or rule  # that of the first axis counts
            else:
                indices[axis] = mapped(rule.name, indices[axis], extent)
        if outside is None:
            return self._read(array.load(tuple(indices)))
        if outside.function is not None:
            return outside.function(array, *map(np.int32, indices))  # type: ignore[operator]
        return self._read(make_value(array.annotation, outside.value if outside.value else None))

    def _read(self, value: Any) -> Any:
        return np.float32(value) if self.rules.storage is not None else value

    def _neighbour(self, name: str, array: Any) -> Any:
        axis, step = NEIGHBOURS[name]
        offsets = [0] * len(self.index)
        offsets[-axis] = step
        return self.at(array, *offsets)

    def north(self, array: Any) -> Any:
        """The element at the same column of the row before."""
        return self._neighbour("north", array)

    def south(self, array: Any) -> Any:
        """The element at the same column of the next row."""
        return self._neighbour("south", array)

    def west(self, array: Any) -> Any:
        """The element at the column before."""
        return self._neighbour("west", array)

    def east(self, array: Any) -> Any:
        """The element at the next column."""
        return self._neighbour("east", array)

    def up(self, array: Any) -> Any:
        """The element at the same place of the plane before."""
        return self._neighbour("up", array)

    def down(self, array: Any) -> Any:
        """The element at the same place of the next plane."""
        return self._neighbour("down", array)

    def __repr__(self) -> str:
        return f"GridPos{tuple(map(int, self.index))}"


@dataclass(frozen=True, slots=True)
class ShiftedPos:
    """The place of a neighbour, `pos.shifted(di, dj)`."""

    position: GridPos
    offsets: tuple[int, ...]

    def indices(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        """Where a write goes in an array with these extents; outside it is dropped."""
        rules = self.position.rules.axes
        steps = zip(self.position.index, self.offsets, rules, extents, strict=True)
        return tuple(
            mapped("wrap", int(index) + step, extent) if rule.name == "wrap" else int(index) + step
            for index, step, rule, extent in steps
        )


def mapped(rule: str, index: int, extent: int) -> int:
    """The index inside an axis that an index outside stands for."""
    if rule == "wrap":
        return index % extent
    if rule == "mirror" and extent > 1:
        index %= 2 * extent - 2
        return min(index, 2 * extent - 2 - index)
    return min(max(index, 0), extent - 1)
