"""Several steps of a loop in one launch: for which stencils that is possible, and how many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from treadle.core.errors import TreadleError
from treadle.ir import types as t
from treadle.ir.types import size_of
from treadle.lang.interpreter_state import state
from treadle.lang.types import ArrayType
from treadle.runtime.convert import describe
from treadle.runtime.devices import Device
from treadle.stencils.analysis import Analysis
from treadle.stencils.bands import BandsKernel, Shape, Substep
from treadle.stencils.body import Body
from treadle.stencils.kernel_text import Form
from treadle.stencils.launching import Grid, grid_of, shapes_of
from treadle.stencils.march_plan import (
    March,
    are_vectors,
    columns_of,
    fits,
    march_of_steps,
    march_planes,
    vector_arrays,
)
from treadle.stencils.march_steps import RULES as STEPS_RULES
from treadle.stencils.march_steps import MarchStepsKernel
from treadle.stencils.marching import march_arguments
from treadle.stencils.parts import Part, period_of, rotate_places
from treadle.stencils.sharing import extent_of
from treadle.stencils.tiles import Plan, TileKernel

# The rows of all steps of a wavefront stay in a core's second cache, which has a megabyte or so.
_CACHE_BYTES = 768 << 10
# In one dimension, a band itself.
_BAND_BYTES = 128 << 10
_MOST_STEPS = (8, 16)  # in one dimension: the second
# Arrays that are smaller than this stay in the caches from step to step.
_LEAST_BYTES = 16 << 20
# A band's extent by how far its sides move, at least: where it is small, gaps are a large part.
_NARROW = 6
_LEAST_BANDS, _BANDS = 4, 16  # enough for the cores, as arrays allow and as is usual
_MOST_EXTENT = 1 << 30

# On GPUs: arrays of which a step is bound by memory, the steps of a launch and the cells of a
# thread by dimensions, a block's threads, and how much of a tile is to be stored at least.
_LEAST_GPU_BYTES = 32 << 20
_LEAST_SHARED = 64 << 10  # what a block may have: tiles of 32 KiB halve the speed (H200, WebGPU)
_GPU_STEPS = (9, 7)
_CELLS: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((8,), (6,), (4,), (2,)),
    ((8, 2), (6, 2), (4, 2), (3, 2), (2, 2), (2, 1)),
)
_BLOCK = 8, 32
_LEAST_PART = 0.6
# Bodies of more reads are bound by these: what blocks compute twice costs more than memory.
_MOST_GPU_READS = 9


class SeveralSteps(Protocol):
    """Steps in one launch."""

    @property
    def steps(self) -> int:
        """How many."""

    @property
    def keeps(self) -> bool:
        """Whether all arrays then have what steps one by one leave in them, not only the newest."""

    def launch(self, arrays: Sequence[Any]) -> None:
        """Compute the steps. The arrays are in their present places."""


@dataclass(frozen=True)
class _Bands:
    """Two launches on serial threads: bands, then the gaps between them."""

    kernel: BandsKernel
    steps: int
    substeps: int  # the stencils that are computed: some a step
    arguments: tuple[Any, ...]  # of the kernel; arrays stand as None
    slots: tuple[tuple[int, int], ...]  # (position among these, number of the array)
    extent: int
    bands: int
    gaps: int
    keeps: bool = True

    def launch(self, arrays: Sequence[Any]) -> None:
        arguments = list(self.arguments)
        for position, number in self.slots:
            arguments[position] = arrays[number]
        numbers = (self.substeps, self.extent, self.extent // self.bands, self.bands)
        self.kernel[self.bands, 1](*arguments, *numbers, 0)
        if self.gaps and self.substeps > 1:
            self.kernel[self.gaps, 1](*arguments, *numbers, 1)


@dataclass(frozen=True)
class _Described:
    """A part of a step with what a launch knows of its arguments."""

    part: Part
    described: tuple[Any, ...]
    grid: Grid

    @property
    def form(self) -> Form:
        wide = any(getattr(key, "big", False) for key, _ in self.described)
        return Form(True, self.grid.same_shape, wide, self.part.stencil.storage)


@dataclass(frozen=True)
class _Tiles:
    """One launch on a GPU, whose blocks have tiles."""

    kernel: TileKernel
    steps: int
    arguments: tuple[Any, ...]
    slots: tuple[tuple[int, int], ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    keeps: bool = False

    def launch(self, arrays: Sequence[Any]) -> None:
        arguments = list(self.arguments)
        for position, number in self.slots:
            arguments[position] = arrays[number]
        self.kernel[self.grid, self.block](*arguments)


@dataclass(frozen=True)
class _March:
    """One launch on a GPU, whose blocks march."""

    kernel: MarchStepsKernel
    march: March
    arguments: tuple[Any, ...]
    slots: tuple[tuple[int, int], ...]
    grid: tuple[int, ...]
    planes: int
    arrays: tuple[int, ...]  # those that change places, by their positions
    analysis: Analysis
    keeps: bool = False

    @property
    def steps(self) -> int:
        """How many."""
        return self.march.steps

    def launch(self, arrays: Sequence[Any]) -> None:
        arguments = list(self.arguments)
        for position, number in self.slots:
            arguments[position] = arrays[number]
        given = march_arguments(arguments, self.march, self.planes, self.arrays, self.analysis)
        self.kernel[self.grid, self.march.block](*given)


def several_steps(
    parts: Sequence[Part], arrays: Sequence[Any], device: Device, wanted: int | None
) -> SeveralSteps | None:
    """How several steps are computed in one launch; None if they are computed one by one, since
    that is faster, or what the stencils access does not allow more."""
    if wanted == 1 or state.active:
        return None
    found = []
    for part in parts:
        arguments = list(part.arguments)
        for position, number in part.slots:
            arguments[position] = arrays[number]
        described = tuple(describe(value) for value in arguments)
        body, analysis = part.stencil.body, part.analysis
        try:
            shapes = shapes_of(body, analysis, [one for _, one in described])
            grid = grid_of(body, analysis, shapes)
        except TreadleError:  # the first step raises it
            return None
        found.append(_Described(part, described, grid))
    if not _is_possible(found, arrays):
        return None
    if device.traits.serial_threads:
        return _bands(found, arrays, wanted)
    return _tiles(found, arrays, device, wanted)


def _is_possible(parts: Sequence[_Described], arrays: Sequence[Any]) -> bool:
    """Whether steps depend on each other only through cells that are within the halo."""
    ndim = parts[0].part.analysis.ndim
    options = parts[0].part.stencil.options
    written = {
        number
        for each in parts
        for position, number in each.part.slots
        if position in each.part.analysis.written
    }
    for number, _ in enumerate(arrays):
        for each in parts:
            if any(number in cycle for cycle in each.part.cycles):
                written.add(number)
    for each in parts:
        analysis = each.part.analysis
        if (
            analysis.ndim != ndim
            or each.part.stencil.storage != parts[0].part.stencil.storage
            or each.part.stencil.options != options
            or analysis.scattered
            or not analysis.written
            or each.grid.is_empty
            or max(each.grid.extents) > _MOST_EXTENT
        ):
            return False
        if any(
            position in analysis.indexed and number in written
            for position, number in each.part.slots
        ):
            return False
        kinds = [getattr(key, "element", None) for key, _ in each.described]
        if any(kinds[at] is None for at in analysis.cells):
            return False
    extents = {each.grid.extents for each in parts}
    same = len(extents) == 1 and all(each.grid.same_shape for each in parts)
    wraps = any(rule.name == "wrap" for each in parts for rule in each.part.analysis.rules)
    if wraps and not same:
        return False
    places = [extent_of(array, describe(array)[1]) for array in arrays]
    return not any(
        places[one].shares(places[two])
        for one in written
        for two in range(len(arrays))
        if one != two
    )


def _reach(parts: Sequence[_Described], axis: int) -> int:
    """How far cells along an axis depend on each other from step to step."""
    far = written = 0
    for each in parts:
        low, high = each.part.analysis.reach(axis)
        slack = 0 if each.grid.same_shape else 2  # rules count from the ends of smaller arrays
        far = max(far, max(-low, high) + slack)
        if each.part.analysis.shifted:
            written = max(written, -low, high)
    # What a cell writes to a neighbour is read by that one's neighbours.
    return far + written


def _bands(parts: Sequence[_Described], arrays: Sequence[Any], wanted: int | None) -> _Bands | None:
    ndim = parts[0].part.analysis.ndim
    extents = [max(each.grid.extents[axis] for each in parts) for axis in range(ndim)]
    rings = [
        any(each.part.analysis.rules[axis].name == "wrap" for each in parts) for axis in range(ndim)
    ]
    axis = 1 if ndim == 3 and not rings[0] else 0
    halo = _reach(parts, axis)
    shape = Shape(axis, halo, _reach(parts, 0), rings[axis])
    sizes = {
        number: size_of(each.described[position][0].element)
        * math.prod(each.described[position][1].shape[: each.part.analysis.leading(position)])
        for each in parts
        for position, number in each.part.slots
        if position in each.part.analysis.cells
    }
    cell = sum(sizes.values())
    total = cell
    for extent in extents:
        total *= extent
    if wanted is None and total < _LEAST_BYTES:
        return None
    chosen = _steps_and_bands(extents, shape, cell, len(parts), wanted)
    if chosen is None:
        return None
    steps, bands = chosen
    period = period_of([each.part for each in parts], len(arrays))
    names, parameters, arguments, slots = _parameters(parts, arrays)
    places = list(range(len(arrays)))
    substeps = []
    for _ in range(period):
        for at, each in enumerate(parts):
            substeps.append(
                Substep(_renamed(each.part, places, names, at), each.part.analysis, each.form)
            )
            rotate_places(places, each.part.cycles)
    first = parts[0].part.stencil
    key = (
        shape, tuple(parameters),
        tuple((each.part.stencil, substep.analysis, substep.form, substep.body.order)
              for substep, each in zip(substeps, list(parts) * period, strict=True)),
    )  # fmt: skip
    kernel = first.loops.get(key)
    if kernel is None:
        name = first.body.name
        kernel = first.loops[key] = BandsKernel(name, parameters, substeps, shape, first.options)
    return _Bands(
        kernel, steps, steps * len(parts), tuple(arguments), tuple(slots), extents[axis], bands,
        bands if rings[axis] else bands - 1,
    )  # fmt: skip


def _steps_and_bands(
    extents: Sequence[int], shape: Shape, cell: int, parts: int, wanted: int | None
) -> tuple[int, int] | None:
    """How many steps a launch computes, and in how many bands."""
    extent = extents[shape.axis]
    row = cell * math.prod(extents[1:])
    for steps in range(wanted or _MOST_STEPS[len(extents) == 1], 1, -1):
        substeps = steps * parts
        moved = max(substeps * shape.halo, 1)
        most = extent // (_NARROW * moved)
        if wanted is not None:  # as few bands as there can be, in the smallest arrays
            most = max(most, min(extent // (2 * moved), _BANDS), int(not shape.ring))
        if most < (1 if wanted else _LEAST_BANDS):
            continue
        near = row * (substeps * shape.lag + 2 * shape.lag + 1)
        needed = -(-near // _CACHE_BYTES) if shape.axis == 1 else 1
        if len(extents) == 1:
            near, needed = 0, -(-cell * extent // _BAND_BYTES)
        bands = min(most, max(_BANDS, needed))
        split = shape.axis == 1 or len(extents) == 1
        if wanted or (needed <= bands if split else near <= _CACHE_BYTES):
            return steps, bands
    return None


def _parameters(
    parts: Sequence[_Described], arrays: Sequence[Any]
) -> tuple[dict[Any, str], list[tuple[str, Any]], list[Any], list[tuple[int, int]]]:
    """The kernel's names of arrays (by number) and of other arguments (by part and position), its
    parameters with their annotations, its arguments, and which of them are which arrays."""
    taken = {"k", "i", "j", *(each.part.stencil.body.position for each in parts)}
    names: dict[Any, str] = {}
    parameters: list[tuple[str, Any]] = []
    arguments: list[Any] = []
    slots: list[tuple[int, int]] = []
    for at, each in enumerate(parts):
        body = each.part.stencil.body
        numbers = dict(each.part.slots)
        for position, wish in enumerate(body.names):
            key: Any = numbers.get(position, (at, position))
            if key in names:
                continue
            name = wish if wish not in taken else f"treadle_{wish}_{len(names)}"
            taken.add(name)
            names[key] = name
            parameters.append((name, body.annotations.get(wish)))
            if position in numbers:
                slots.append((len(arguments), numbers[position]))
                arguments.append(None)
            else:
                arguments.append(each.part.arguments[position])
    return names, parameters, arguments, slots


def _renamed(part: Part, places: Sequence[int], names: dict[Any, str], at: int) -> Body:
    """The body with the names of what it is called with, when arrays have these places."""
    body = part.stencil.body
    numbers = dict(part.slots)
    given = {
        name: names[places[numbers[position]] if position in numbers else (at, position)]
        for position, name in enumerate(body.names)
    }
    return replace(
        body,
        names=tuple(given[name] for name in body.names),
        order=tuple(given.get(name, name) for name in body.order),
        annotations={},
    )


def _tiles(
    parts: Sequence[_Described], arrays: Sequence[Any], device: Device, wanted: int | None
) -> _Tiles | _March | None:
    """Tiles for a stencil that writes one array, always, and whose two arrays change places. In
    three dimensions they march through planes."""
    each = parts[0]
    part, analysis, body = each.part, each.part.analysis, each.part.stencil.body
    numbers = dict(part.slots)
    if (
        len(parts) > 1 or not each.grid.same_shape or each.form.wide
        or analysis.stacks or analysis.shifted
        or len(part.cycles) != 1 or len(part.cycles[0]) != 2 or len(analysis.written) != 1
        or analysis.outputs != analysis.written or numbers[analysis.written[0]] != part.cycles[0][0]
        or body.repeats or body.names[analysis.written[0]] not in body.always_written
    ):  # fmt: skip
        return None
    read = [at for at, number in part.slots if number == part.cycles[0][1]]
    if len(read) != 1 or read[0] not in analysis.cells:
        return None
    annotation = body.annotations.get(body.names[read[0]])
    if isinstance(annotation, ArrayType):
        element = annotation.declared.element  # an array of vectors is one of floats to a launch
    else:
        element = each.described[read[0]][0].element
    storage = part.stencil.storage
    if storage is not None and isinstance(annotation, ArrayType):
        return None
    if wanted is None and (
        device.traits.software or size_of(element) * math.prod(each.grid.extents) < _LEAST_GPU_BYTES
    ):
        return None
    limits = device.info.limits
    if wanted is None and limits.max_shared_memory < _LEAST_SHARED:
        return None
    names = body.names[read[0]], body.names[analysis.written[0]]
    if analysis.ndim == 3:
        return _march(each, read[0], arrays, device, wanted)
    plan = _plan(each, size_of(element), device, wanted)
    if plan is None or math.prod(plan.threads) > limits.max_threads_per_block:
        return None
    blocks = tuple(
        -(-extent // stored) for extent, stored in zip(each.grid.extents, plan.stored, strict=True)
    )
    if any(
        count > most for count, most in zip(reversed(blocks), tuple(limits.max_grid), strict=False)
    ):
        return None
    stencil = part.stencil
    key = analysis, plan, names, element
    kernel = stencil.loops.get(key)
    if kernel is None:
        kernel = TileKernel(body, analysis, plan, *names, element, storage, stencil.options)
        stencil.loops[key] = kernel
    return _Tiles(
        kernel, plan.steps, part.arguments, part.slots, blocks[::-1], plan.threads[::-1]
    )  # fmt: skip


def _march(
    each: _Described, read: int, arrays: Sequence[Any], device: Device, wanted: int | None
) -> _March | None:
    """A march for a stencil that reads other planes in its cell's own column alone, and other
    arrays at its own cell."""
    part, analysis, stencil = each.part, each.part.analysis, each.part.stencil
    columns = columns_of(stencil.body, analysis, stencil.storage)
    if (
        stencil.storage is not None or columns is None or stencil.options.block is not None
        or any(rule.name not in STEPS_RULES for rule in analysis.rules)
        or any(at != read and pair != ((0, 0),) * 3 for at, pair in analysis.reaches)
    ):  # fmt: skip
        return None
    column = next((one for one in columns if one.at == read), None)
    if column is None or column.halo is None or column.element != t.F32:
        return None
    lag = max(-column.planes[0], column.planes[1])
    column = replace(column, planes=(-lag, lag))
    positions, numbers = vector_arrays(analysis, [column]), dict(part.slots)
    extents = each.grid.extents
    march = march_of_steps(column, analysis.reads, device, extents, wanted)
    if march is None:
        return None
    if march.lanes > 1 and not all(are_vectors(arrays[numbers[at]]) for at in positions):
        march = replace(march, lanes=1)
    stored = march.stored(column)
    if lag == 0 or extents[0] <= lag or min(stored) < 1:
        return None
    rows, width = (-(-extent // one) for extent, one in zip(extents[1:], stored, strict=True))
    planes = march_planes(extents[0], march)
    grid = width, rows, -(-extents[0] // planes)
    if not fits(march, [column], grid, device):
        return None
    key = analysis, march, column
    kernel = stencil.loops.get(key)
    if kernel is None:
        kernel = MarchStepsKernel(stencil.body, analysis, march, column, None, stencil.options)
        stencil.loops[key] = kernel
    return _March(
        kernel, march, part.arguments, part.slots, grid, planes, positions, analysis
    )  # fmt: skip


def _plan(each: _Described, item: int, device: Device, wanted: int | None) -> Plan | None:
    """The steps of a launch and the tile. Steps are odd: their result is in the array in which it
    is after single steps."""
    ndim = each.part.analysis.ndim
    halo = tuple(_reach([each], axis) for axis in range(ndim))
    threads = (_BLOCK[0] * _BLOCK[1],) if ndim == 1 else _BLOCK
    first = wanted if wanted is not None else _GPU_STEPS[ndim - 1]
    shared = device.info.limits.max_shared_memory
    choices = _CELLS[ndim - 1]
    if device.traits.slow_compiler:  # the fewest: the code has a thread's cells one by one
        choices = choices[-1:]
    for steps in range(first - (first % 2 == 0), 1, -2):
        for cells in choices:
            plan = Plan(steps, threads, cells, halo)
            if 2 * item * math.prod(plan.extents) > shared or min(plan.stored) < 1:
                continue
            part = math.prod(plan.stored) / math.prod(plan.extents)
            if wanted is not None or part >= _LEAST_PART:
                return plan
            break
        if wanted is not None:
            return None
    return None
