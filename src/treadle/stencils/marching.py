"""Stencils in three dimensions on GPUs, read from memory once: blocks go along the slowest axis.

A block has a tile of the two fast axes and goes through planes one after the other. What a cell
reads of other planes its thread keeps in registers, and loads the next of them ahead; what it reads
of its own plane comes from shared memory, where the block puts the plane with a halo. A thread has
some adjacent rows, which share what they read. That is possible where other planes are read in the
cell's own column alone, as stars do.

The boundary's rules are applied as elements are loaded, so that all cells are computed alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from treadle import lang
from treadle.core.dim3 import Dim3
from treadle.ir import types as t
from treadle.ir.definition import KernelOptions, LoweredKernel
from treadle.ir.signature import Signature
from treadle.lang.decorators import Function
from treadle.lang.positions import AxisRule, CellRules, Tile
from treadle.lang.types import ArrayType, annotation_of
from treadle.runtime.devices import Device
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body
from treadle.stencils.contraction import with_fused_products
from treadle.stencils.grid_kernel import GridKernel
from treadle.stencils.kernel_text import Axis, Form, axes_of
from treadle.stencils.march_plan import (
    Column,
    March,
    Vectors,
    are_vectors,
    columns_of,
    fits,
    march_of,
    march_planes,
    takes_vectors,
    vector_arrays,
)

FLAT = CellRules((AxisRule("skip"),), ((True, True),))  # an index into shared memory
KNOWN, UNKNOWN = (True, True), (False, False)


def march_names(
    body: Body,
    analysis: Analysis,
    columns: Sequence[Column],
    storage: t.Scalar | None,
    lanes: int,
) -> dict[str, Any]:
    """What the names in a kernel's text stand for."""
    interior = CellRules(analysis.rules, (KNOWN,) * 3, storage=storage)
    given = tuple((body.names[at], offsets) for at, offsets in analysis.shared)
    # Cells that may be outside at both sides: they are read from the next cell.
    outside = replace(interior, same_shape=False)
    names: dict[str, Any] = {
        "treadle_lang": lang, "treadle_body": Function(body.function), "treadle_flat": FLAT,
        "Index": annotation_of(t.I32),
        "treadle_at_interior": interior,
        "treadle_at_given": replace(interior, given=given),
        "treadle_at_any": replace(outside, inside=(UNKNOWN,) * 3),
        "treadle_at_halo": replace(outside, inside=(KNOWN, UNKNOWN, UNKNOWN)),
    }  # fmt: skip
    for at, name in enumerate(body.names):
        names[f"treadle_p{at}"] = body.annotations.get(name)
    for each in columns:
        names[f"treadle_t{each.at}"] = annotation_of(each.element)
        vector = t.Vector(each.element, lanes) if lanes > 1 else each.element
        names[f"treadle_vec{each.at}"] = annotation_of(vector)
    if lanes > 1:
        names["treadle_vectors"] = ArrayType(annotation_of(t.Vector(t.F32, lanes)), 3)
    names["treadle_one"] = Tile((0, 0, 0))
    return names


def march_parameters(body: Body, analysis: Analysis, columns: Sequence[Column], lanes: int) -> str:
    """A kernel's parameters: those of the stencil, the planes of a block, and the arrays as arrays
    of vectors, instead of those that are written."""
    parameters = [
        f"{name}: treadle_p{at}" if name in body.annotations else name
        for at, name in enumerate(body.names)
        if lanes == 1 or at not in analysis.written
    ]
    parameters.append("treadle_planes: Index")
    if lanes > 1:
        found = vector_arrays(analysis, columns)
        parameters += [f"treadle_u{at}: treadle_vectors" for at in found]
    return ", ".join(parameters)


def march_axes(body: Body, analysis: Analysis, like: str) -> list[Axis]:
    """The bounds along each axis, by the extents of an array."""
    written = body.names[analysis.written[0]]

    def by_extents(text: str) -> str:
        return like + text.removeprefix(written) if text.startswith(f"{written}.shape") else text

    return [
        Axis(
            by_extents(axis.first), by_extents(axis.last), by_extents(axis.low),
            by_extents(axis.high), axis.closed,
        )
        for axis in axes_of(body, analysis, Form(False, True, False))
    ]  # fmt: skip


class Marches:
    """The marches of a stencil."""

    def __init__(self, body: Body, options: KernelOptions, storage: t.Scalar | None) -> None:
        self._body, self._options, self._storage = body, options, storage
        self._columns: dict[Analysis, tuple[list[Column] | None, bool]] = {}
        self._kernels: dict[tuple[Analysis, March], MarchKernel] = {}

    def launch(
        self,
        analysis: Analysis,
        device: Device,
        region: tuple[int, ...],
        arguments: Sequence[Any],
    ) -> bool:
        """Launch a march, if that is how this grid is computed. All arrays have its extents, and
        indices of 32 bits."""
        if analysis not in self._columns:
            columns = columns_of(self._body, analysis, self._storage)
            four = columns is not None and takes_vectors(self._body, analysis, columns)
            self._columns[analysis] = columns, four
        columns, four = self._columns[analysis]
        if columns is None or self._options.block is not None:
            return False
        arrays = vector_arrays(analysis, columns)
        march = march_of(
            columns, four and all(are_vectors(arguments[at]) for at in arrays), device, region
        )
        if march is None:
            return False
        rows, width = march.tile
        planes = march_planes(region[0], march)
        grid = -(-region[2] // width), -(-region[1] // rows), -(-region[0] // planes)
        if not fits(march, columns, grid, device):
            return False
        kernel = self._kernels.get((analysis, march))
        if kernel is None:
            kernel = MarchKernel(self._body, analysis, march, columns, self._storage, self._options)
            self._kernels[analysis, march] = kernel
        kernel[grid, march.block](*march_arguments(arguments, march, planes, arrays, analysis))
        return True


def march_arguments(
    arguments: Sequence[Any], march: March, planes: int, arrays: Sequence[int], analysis: Analysis
) -> list[Any]:
    """The arguments of a kernel that marches (see `march_parameters`)."""
    if march.lanes == 1:
        return [*arguments, planes]
    kept = (value for at, value in enumerate(arguments) if at not in analysis.written)
    return [*kept, planes, *(Vectors(arguments[at]) for at in arrays)]


class MarchKernel(GridKernel):
    """A stencil as a kernel that marches."""

    def __init__(
        self,
        body: Body,
        analysis: Analysis,
        march: March,
        columns: Sequence[Column],
        storage: t.Scalar | None,
        options: KernelOptions,
    ) -> None:
        names = march_names(body, analysis, columns, storage, march.lanes)
        axes = march_axes(body, analysis, columns[0].name)
        writer = MarchWriter(body, analysis, axes, march, columns)
        parameters = march_parameters(body, analysis, columns, march.lanes)
        text = f"def {body.name}({parameters}):\n" + "".join(writer.lines)
        options = replace(options, block=Dim3(*march.block))
        super().__init__(text, names, options, analysis.rules)

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR."""
        return with_fused_products(super().lower(signature))


class MarchWriter:
    """The lines of a kernel.

    Names: `treadle_k` is the plane, `treadle_j` and `treadle_i0`, … the thread's first column and
    its rows; `treadle_v1_0_3_2` what it holds of array 1 in its row 0, lane 3, of the third plane
    near the cell, `treadle_h1_0` its first vector of that array's halo in the next plane.
    """

    def __init__(
        self,
        body: Body,
        analysis: Analysis,
        axes: Sequence[Axis],
        march: March,
        columns: Sequence[Column],
    ) -> None:
        self.body, self.analysis, self.axes, self.march = body, analysis, axes, march
        self.columns = columns
        self.tiled = [each for each in columns if each.halo]
        # What the body writes is kept by the thread: it is stored as vectors, or in the last step.
        self.keeps = march.lanes > 1 or march.steps > 1
        self.ahead = max(each.planes[1] for each in columns) + march.ahead
        self.lines: list[str] = []
        self.depth = 1
        self.write()

    def write(self) -> None:
        """All of them."""
        self.start()
        self.fill()
        self.put("if treadle_whole:")
        self.depth += 1
        unrolled = self.march.unrolled
        self.put(f"while treadle_k + {unrolled} <= treadle_plain:")
        self.depth += 1
        for step in range(unrolled):
            self.plane(step, whole=True)
        self.rotate(unrolled, whole=True)
        self.put(f"treadle_k += {unrolled}")
        self.depth = 1
        self.put("while treadle_k < treadle_end:")
        self.depth += 1
        self.plane(0, whole=False)
        self.rotate(1, whole=False)
        self.put("treadle_k += 1")

    def put(self, line: str) -> None:
        """A line at the present depth."""
        self.lines.append("    " * self.depth + line + "\n")

    # --- before the loop ---

    def start(self) -> None:
        """Where the block and the thread are."""
        march, lanes = self.march, self.march.lanes
        for each in self.tiled:
            size = 2 * math.prod(march.extents(each))
            self.put(f"treadle_s{each.at} = treadle_lang.shared({size}, treadle_vec{each.at})")
        if self.keeps:
            for at in self.analysis.written:
                for row in range(march.rows):
                    for lane in range(lanes):
                        local = f"treadle_lang.local(1, treadle_t{self.columns[0].at})"
                        self.put(f"treadle_l{at}_{row}_{lane} = {local}")
        self.start_block()
        self.put("treadle_x = treadle_lang.thread_idx.x")
        self.put(f"treadle_y = treadle_lang.thread_idx.y * {march.rows}")
        self.put(f"treadle_j = treadle_left + treadle_x * {lanes}")
        if lanes > 1:
            self.put(f"treadle_jv = treadle_left // {lanes} + treadle_x")
        for row in range(march.rows):
            self.put(f"treadle_i{row} = treadle_top + treadle_y + {row}")
        self.put(f"treadle_q = treadle_lang.thread_idx.y * {march.threads[0]} + treadle_x")
        self.put("treadle_b = 0")
        for each in self.tiled:
            self.halo_places(each)

    def start_block(self) -> None:
        """Where the block's tile begins, its planes, and whether it is inside."""
        rows, columns = self.march.tile
        like = self.columns[0].name
        k, i, j = self.axes
        self.put(f"treadle_top = {i.first} + treadle_lang.block_idx.y * {rows}")
        self.put(f"treadle_left = {j.first} + treadle_lang.block_idx.x * {columns}")
        self.put(f"treadle_k = {k.first} + treadle_lang.block_idx.z * treadle_planes")
        self.put(f"treadle_end = min(treadle_k + treadle_planes, {k.last})")
        # Planes up to here have the next ones that are loaded inside the arrays.
        self.put(f"treadle_plain = min(treadle_end, {like}.shape[0] - {self.ahead})")
        self.put(
            f"treadle_whole = treadle_top + {rows} <= {i.last} and "
            f"treadle_left + {columns} <= {j.last}"
        )
        self.put(f"treadle_inside = {' and '.join(['treadle_whole', *self.tests_inside()])}")

    def tests_inside(self) -> list[str]:
        """The tests whether a block's tile is inside the arrays, with its halo."""
        like, found = self.columns[0].name, []
        pads = [self.march.pads(each) for each in self.tiled]
        for name, axis in (("top", 0), ("left", 1)):
            unit = self.march.lanes if axis else 1
            before = unit * max((pad[axis][0] for pad in pads), default=0)
            end = self.march.tile[axis] + unit * max((pad[axis][1] for pad in pads), default=0)
            found.append(f"treadle_{name} >= {before}")
            found.append(f"treadle_{name} + {end} <= {like}.shape[{axis + 1}]")
        return found

    def halo_count(self, column: Column) -> int:
        """How many vectors of a halo each thread has, at most."""
        threads = math.prod(self.march.threads)
        sides = math.prod(self.march.extents(column)) - threads * self.march.rows
        return -(-sides // threads)

    def halo_places(self, column: Column) -> None:
        """The places of a thread's vectors of a halo: in the array and in its tile. The rows above
        and below are numbered first, then what is next to the block's rows."""
        march, at = self.march, column.at
        (above, below), (before, behind) = march.pads(column)
        rows, vectors = march.tile[0], march.threads[0]
        width = march.extents(column)[1]
        outer, sides = (above + below) * width, before + behind
        self.put(f"treadle_c{at} = (treadle_y + {above}) * {width} + treadle_x + {before}")
        for each in range(self.halo_count(column)):
            name = f"{at}_{each}"
            number = f"treadle_n{name}"
            self.put(f"{number} = treadle_q + {each * math.prod(march.threads)}")
            self.put(f"treadle_has{name} = {number} < {outer + sides * rows}")
            self.put(
                f"treadle_hi{name} = {number} // {width}" if outer else f"treadle_hi{name} = 0"
            )
            self.put(f"treadle_hj{name} = {number} % {width}" if outer else f"treadle_hj{name} = 0")
            if outer and below:
                self.put(f"if treadle_hi{name} >= {above}:")
                self.put(f"    treadle_hi{name} += {rows}")
            if sides:
                self.put(f"if {number} >= {outer}:")
                self.depth += 1
                self.put(f"treadle_hi{name} = {above} + ({number} - {outer}) // {sides}")
                self.put(f"treadle_hj{name} = ({number} - {outer}) % {sides}")
                if behind:
                    self.put(f"if treadle_hj{name} >= {before}:")
                    self.put(f"    treadle_hj{name} += {vectors}")
                self.depth -= 1
            self.put(f"treadle_d{name} = treadle_hi{name} * {width} + treadle_hj{name}")
            self.put(f"treadle_hi{name} += treadle_top - {above}")
            self.put(f"treadle_hj{name} += treadle_left // {march.lanes} - {before}")
            self.put(f"treadle_h{name} = treadle_vec{at}(0)")

    def fill(self) -> None:
        """The planes near the first one, and those on their way."""
        for each in self.columns:
            low, high = each.planes
            for row in range(self.march.rows):
                for near in range(high - low):
                    self.load_any(each, row, self.names(each, row, near), low + near)
                for slot in range(self.march.ahead):
                    self.load_any(each, row, self.coming(each, row, slot), high + slot)
        for each in self.tiled:
            self.load_halo(each, "treadle_k")

    # --- loading ---

    def count(self, column: Column) -> int:
        """The planes of an array that a thread holds."""
        return column.planes[1] - column.planes[0] + 1

    def held(self, column: Column, row: int, lane: int, near: int) -> str:
        """What a thread holds of a plane."""
        if self.march.unrolled % self.count(column) == 0:
            near %= self.count(column)
        return f"treadle_v{column.at}_{row}_{lane}_{near}"

    def names(self, column: Column, row: int, near: int) -> list[str]:
        """The same of all lanes."""
        return [self.held(column, row, lane, near) for lane in range(self.march.lanes)]

    def coming(self, column: Column, row: int, slot: int) -> list[str]:
        """What is loaded ahead. It has names of its own, which are used in turn: to copy what is
        not there yet would wait for it."""
        return [f"treadle_f{column.at}_{row}_{lane}_{slot}" for lane in range(self.march.lanes)]

    def load(self, column: Column, row: int, names: Sequence[str], far: int) -> None:
        """A thread's cells of a row of a plane that is inside."""
        if self.march.lanes == 1:
            cell = f"treadle_at_interior(treadle_k + {far}, treadle_i{row}, treadle_j)"
            self.put(f"{names[0]} = {cell}.at({column.name}, 0, 0, 0)")
            return
        cell = f"treadle_at_interior(treadle_k + {far}, treadle_i{row}, treadle_jv)"
        self.put(f"treadle_z{column.at}_{row} = treadle_u{column.at}[{cell}]")
        for lane, name in enumerate(names):
            self.put(f"{name} = treadle_z{column.at}_{row}.{'xyzw'[lane]}")

    def load_any(self, column: Column, row: int, names: Sequence[str], far: int) -> None:
        """The same of a plane, a row and columns that may be outside. What lies behind those
        elements that a boundary's rule may be asked for is not needed."""
        below, behind = (each[1] for each in column.halo or ((0, 0), (0, 0)))
        array = column.name
        for lane, name in enumerate(names):
            cell = ", ".join(
                f"min({index} + {step + 1}, {array}.shape[{axis}] + {most})"
                for axis, (index, step, most) in enumerate(
                    (
                        ("treadle_k", far, column.planes[1]),
                        (f"treadle_i{row}", 0, below),
                        ("treadle_j", lane, behind),
                    )
                )
            )
            self.put(f"{name} = treadle_at_any({cell}).at({array}, -1, -1, -1)")

    def load_halo(self, column: Column, plane: str) -> None:
        """A thread's vectors of a halo."""
        array, lanes = column.name, self.march.lanes
        below, behind = (each[1] for each in column.halo or ((0, 0), (0, 0)))
        for each in range(self.halo_count(column)):
            name = f"{column.at}_{each}"
            self.put(f"if treadle_has{name}:")
            self.depth += 1
            cell = f"treadle_at_interior({plane}, treadle_hi{name}, treadle_hj{name})"
            self.put("if treadle_inside:")
            if lanes == 1:
                self.put(f"    treadle_h{name} = {cell}.at({array}, 0, 0, 0)")
            else:
                self.put(f"    treadle_h{name} = treadle_u{column.at}[{cell}]")
            self.put("else:")
            row = f"min(treadle_hi{name} + 1, {array}.shape[1] + {below})"
            values = []
            for lane in range(lanes):
                place = f"treadle_hj{name} * {lanes} + {lane + 1}"
                place = f"min({place}, {array}.shape[2] + {behind})"
                cell = f"treadle_at_halo({plane}, {row}, {place})"
                values.append(f"{cell}.at({array}, 0, -1, -1)")
            if lanes == 1:
                self.put(f"    treadle_h{name} = {values[0]}")
            else:
                self.put(f"    treadle_h{name} = treadle_vec{column.at}({', '.join(values)})")
            self.depth -= 1

    # --- a plane ---

    def plane(self, step: int, *, whole: bool) -> None:
        """A plane: it is put into shared memory, the next ones are requested, and its cells are
        computed. Tiles are two in turn, so that one barrier is enough."""
        self.enter(step, whole=whole)
        for each in self.tiled:
            self.put_plane(each, step)
        if self.tiled:
            self.put("treadle_lang.sync_threads()")
            self.put("treadle_b = 1 - treadle_b")
        self.request(step, whole=whole)
        self.cells(step, whole=whole)

    def vector(self, column: Column, values: Sequence[str]) -> str:
        """A thread's cells of a row as the element of a tile."""
        if len(values) == 1:
            return values[0]
        return f"treadle_vec{column.at}({', '.join(values)})"

    def put_plane(self, column: Column, step: int) -> None:
        """An array's plane, with its halo, in its tile."""
        at, (height, width) = column.at, self.march.extents(column)
        half = f"treadle_b * {height * width}"
        self.put(f"treadle_a{at} = treadle_c{at} + {half}")
        near = step - column.planes[0]
        for row in range(self.march.rows):
            values = [self.held(column, row, lane, near) for lane in range(self.march.lanes)]
            place = f"treadle_s{at}[treadle_flat(treadle_a{at} + {row * width})]"
            self.put(f"{place} = {self.vector(column, values)}")
        for each in range(self.halo_count(column)):
            name = f"{at}_{each}"
            self.put(f"if treadle_has{name}:")
            place = f"treadle_d{name} + {half}"
            self.put(f"    treadle_s{at}[treadle_flat({place})] = treadle_h{name}")

    def request(self, step: int, *, whole: bool) -> None:
        """Load what the next planes need."""
        ahead = self.march.ahead
        # Where planes are computed one by one, all that is on its way moves up (see `rotate`).
        slot = step % ahead if whole or ahead == 1 else ahead
        for each in self.columns:
            for row in range(self.march.rows):
                load = self.load if whole else self.load_any
                load(each, row, self.coming(each, row, slot), step + each.planes[1] + ahead)
        for each in self.tiled:
            following = f"treadle_k + {step + 1}"
            if not whole:
                following = f"min({following}, {each.name}.shape[0] - 1)"
            self.load_halo(each, following)

    def enter(self, step: int, *, whole: bool) -> None:
        """What was loaded ahead is the last plane near the cell."""
        slot = step % self.march.ahead if whole else 0
        for each in self.columns:
            for row in range(self.march.rows):
                names = self.names(each, row, step + self.count(each) - 1)
                for name, value in zip(names, self.coming(each, row, slot), strict=True):
                    self.put(f"{name} = {value}")

    def neighbour(
        self, column: Column, tile: str, base: str, cell: tuple[int, int], loaded: dict[Any, str]
    ) -> str:
        """An element of a tile at a row and a column from the thread's first cell; vectors are
        loaded once."""
        vector, lane = divmod(cell[1], self.march.lanes)
        key = column.at, cell[0], vector
        if key not in loaded:
            loaded[key] = f"treadle_w{column.at}_{len(loaded)}"
            place = cell[0] * self.march.extents(column)[1] + vector
            sign = "+" if place >= 0 else "-"
            self.put(f"{loaded[key]} = {tile}[treadle_flat({base} {sign} {abs(place)})]")
        return loaded[key] if self.march.lanes == 1 else f"{loaded[key]}.{'xyzw'[lane]}"

    def cells(self, step: int, *, whole: bool) -> None:
        """The cells of a thread."""
        plane = f"treadle_k + {step}" if step else "treadle_k"
        rows, lanes = self.march.rows, self.march.lanes
        columns = {each.at: each for each in self.columns}
        loaded: dict[Any, str] = {}
        values: dict[tuple[int, int], list[str]] = {}
        for row in range(rows):
            for lane in range(lanes):
                found = values[row, lane] = []
                for at, (dk, di, dj) in self.analysis.shared:
                    each = columns[at]
                    if 0 <= row + di < rows and 0 <= lane + dj < lanes:
                        near = step + dk - each.planes[0]
                        found.append(self.held(each, row + di, lane + dj, near))
                    else:
                        cell = row + di, lane + dj
                        tile, base = f"treadle_s{at}", f"treadle_a{at}"
                        found.append(self.neighbour(each, tile, base, cell, loaded))
        for row in range(rows):
            depth = self.depth
            if not whole:
                last = f"{self.axes[1].last}", f"{self.axes[2].last}"
                self.put(f"if treadle_i{row} < {last[0]} and treadle_j < {last[1]}:")
                self.depth += 1
            for lane in range(lanes):
                self.call(plane, row, lane, values[row, lane])
            if lanes > 1:
                self.store(plane, row)
            self.depth = depth

    def call(self, plane: str, row: int, lane: int, values: Sequence[str]) -> None:
        """The body at a cell."""
        column = f"treadle_j + {lane}" if lane else "treadle_j"
        cell = f"treadle_at_given({', '.join((plane, f'treadle_i{row}', column, *values))})"
        given = {self.body.position: cell}
        if self.keeps:
            for at in self.analysis.written:
                local = f"treadle_l{at}_{row}_{lane}, {self.columns[0].name}"
                given[self.body.names[at]] = f"treadle_one({local}, 0)"
        passed = (given.get(name, name) for name in self.body.order)
        self.put(f"treadle_body({', '.join(passed)})")

    def store(self, plane: str, row: int) -> None:
        """Store what the thread keeps of a row."""
        for at in self.analysis.written:
            values = [f"treadle_l{at}_{row}_{n}[treadle_flat(0)]" for n in range(self.march.lanes)]
            if self.march.lanes == 1:
                cell = f"treadle_at_interior({plane}, treadle_i{row}, treadle_j)"
                self.put(f"{self.body.names[at]}[{cell}] = {values[0]}")
                continue
            cell = f"treadle_at_interior({plane}, treadle_i{row}, treadle_jv)"
            self.put(f"treadle_u{at}[{cell}] = {self.vector(self.columns[0], values)}")

    def rotate(self, steps: int, *, whole: bool) -> None:
        """What was held of planes is that of the planes before. Names of an unrolled loop that has
        all of them are back in their places."""
        for each in self.columns:
            count, ahead = self.count(each), self.march.ahead
            for row in range(self.march.rows):
                for lane in range(self.march.lanes):
                    name = f"treadle_v{each.at}_{row}_{lane}_"
                    for near in range(count - 1 if steps % count else 0):
                        self.put(f"{name}{near} = {name}{near + steps}")
                if whole or ahead == 1:
                    continue
                for slot in range(ahead):
                    to, of = (self.coming(each, row, slot + after) for after in (0, 1))
                    for one, other in zip(to, of, strict=True):
                        self.put(f"{one} = {other}")
