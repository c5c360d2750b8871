"""Several steps in three dimensions in one launch on GPUs: a march in stages.

A block goes through planes as in a single step, and computes in each iteration a plane of every
step: that of step s + 1 lags behind that of step s by the halo. What a step computes stays in its
thread's registers and in the block's tile for the next one; only the last is stored. The cells of a
tile that are right are fewer by the halo with each step, and adjacent blocks compute these again.

At the edges of the grid a tile has cells outside. They get what the boundary's rule says from cells
of the tile before a step reads them.
"""

from __future__ import annotations

import math
from dataclasses import replace

from treadle.core.dim3 import Dim3
from treadle.ir import types as t
from treadle.ir.definition import KernelOptions, LoweredKernel
from treadle.ir.signature import Signature
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body
from treadle.stencils.contraction import with_fused_products
from treadle.stencils.grid_kernel import GridKernel
from treadle.stencils.march_plan import Column, March
from treadle.stencils.marching import (
    MarchWriter,
    march_axes,
    march_names,
    march_parameters,
)

# The rules of which a tile has what lies outside.
RULES = ("clamp", "mirror", "zero", "constant")


class MarchStepsKernel(GridKernel):
    """Several steps as a kernel, whose parameters are those of the stencil and the planes of a
    block. `column` is the array that is read, which changes places with what is written."""

    def __init__(
        self,
        body: Body,
        analysis: Analysis,
        march: March,
        column: Column,
        storage: t.Scalar | None,
        options: KernelOptions,
    ) -> None:
        names = march_names(body, analysis, [column], storage, march.lanes)
        given = tuple(
            (body.names[at], offsets) for at, offsets in analysis.shared if at == column.at
        )
        names["treadle_at_given"] = replace(names["treadle_at_interior"], given=given)
        axes = march_axes(body, analysis, column.name)
        writer = _StepsWriter(body, analysis, axes, march, [column])
        parameters = march_parameters(body, analysis, [column], march.lanes)
        text = f"def {body.name}({parameters}):\n" + "".join(writer.lines)
        options = replace(options, block=Dim3(*march.block))
        super().__init__(text, names, options, analysis.rules)

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR."""
        return with_fused_products(super().lower(signature))


class _StepsWriter(MarchWriter):
    """The lines of a kernel. Stage 0 is a march's only one; `treadle_v0s2_1_3_0` is what a thread
    holds in stage 2 of array 0 in its row 1, lane 3, of the first plane near the cell."""

    @property
    def column(self) -> Column:
        """The array that is read."""
        return self.columns[0]

    @property
    def lag(self) -> int:
        """The planes from a step to the next one."""
        return self.column.planes[1]

    # --- before the loop ---

    def write(self) -> None:
        march, column = self.march, self.column
        stages = range(1, march.steps)
        size = math.prod(march.extents(column))
        for stage in stages:
            self.put(f"treadle_s{stage}s = treadle_lang.shared({2 * size}, treadle_vec{column.at})")
        self.start()
        self.fill()
        for stage in stages:
            for row in range(march.rows):
                for lane in range(march.lanes):
                    for near in range(self.stage_count):
                        name = self.stage_held(stage, row, lane, near)
                        self.put(f"{name} = treadle_t{column.at}(0)")
            # What is next to the block's cells is never right: it has any numbers.
            for each in range(self.halo_count(column)):
                name = f"{column.at}_{each}"
                self.put(f"if treadle_has{name}:")
                for half in (0, size):
                    place = f"treadle_flat(treadle_d{name} + {half})"
                    self.put(f"    treadle_s{stage}s[{place}] = treadle_h{name}")
        self.put("if treadle_inside:")
        self.depth += 1
        # First the planes before all stages are away from the edges, or have something to compute.
        far = (march.steps - 1) * self.lag
        self.put(f"treadle_early = min(max(treadle_first, {self.lag}) + {far}, treadle_stop)")
        self.loop("treadle_k < treadle_early", 1, plain=False, inside=True)
        unrolled = march.unrolled
        self.loop(f"treadle_k + {unrolled} <= treadle_plain", unrolled, plain=True, inside=True)
        self.loop("treadle_k < treadle_stop", 1, plain=False, inside=True)
        self.depth -= 1
        self.put("else:")
        self.depth += 1
        self.loop("treadle_k < treadle_stop", 1, plain=False, inside=False)

    def loop(self, test: str, unrolled: int, *, plain: bool, inside: bool) -> None:
        """A loop over planes."""
        self.put(f"while {test}:")
        self.depth += 1
        for step in range(unrolled):
            self.stages(step, plain=plain, inside=inside)
        self.rotate(unrolled, whole=plain)
        self.put(f"treadle_k += {unrolled}")
        self.depth -= 1

    def start_block(self) -> None:
        """Where the block's tile begins, which planes it stores and goes through."""
        march, array = self.march, self.column.name
        rows, columns = march.margins(self.column)
        stored = march.stored(self.column)
        self.put(f"treadle_top = treadle_lang.block_idx.y * {stored[0]} - {rows}")
        self.put(f"treadle_left = treadle_lang.block_idx.x * {stored[1]} - {columns}")
        far, extent = (march.steps - 1) * self.lag, f"{array}.shape[0]"
        self.put("treadle_first = treadle_lang.block_idx.z * treadle_planes")
        self.put(f"treadle_end = min(treadle_first + treadle_planes, {extent})")
        self.put(f"treadle_k = max(treadle_first - {far}, 0)")
        self.put(f"treadle_stop = treadle_end + {far}")
        self.put(f"treadle_plain = min(treadle_stop, {extent} - {self.ahead})")
        self.put(f"treadle_inside = {' and '.join(self.tests_inside())}")

    # --- a plane ---

    @property
    def stage_count(self) -> int:
        """The planes that a thread holds in a later stage."""
        return 2 * self.lag + 1

    def stage_held(self, stage: int, row: int, lane: int, near: int) -> str:
        """What a thread holds of a plane in a stage."""
        if stage == 0:
            return self.held(self.column, row, lane, near)
        if self.march.unrolled % self.stage_count == 0:
            near %= self.stage_count
        return f"treadle_v{self.column.at}s{stage}_{row}_{lane}_{near}"

    def stages(self, step: int, *, plain: bool, inside: bool) -> None:
        """An iteration: each stage puts the plane that it computes into its tile, then computes it,
        and gives it to the next stage. `plain` says that no plane is at an edge of the grid, or
        needed in part; `inside` that no cell of the tile is outside."""
        march, column = self.march, self.column
        self.enter(step, whole=plain)
        self.put_plane(column, step)
        height, width = march.extents(column)
        self.put(f"treadle_as = treadle_c{column.at} + treadle_b * {height * width}")
        for stage in range(1, march.steps):
            for row in range(march.rows):
                values = [
                    self.stage_held(stage, row, lane, step + self.lag)
                    for lane in range(march.lanes)
                ]
                place = f"treadle_s{stage}s[treadle_flat(treadle_as + {row * width})]"
                self.put(f"{place} = {self.vector(column, values)}")
        self.put("treadle_lang.sync_threads()")
        if not inside:
            self.outside_cells()
        self.put("treadle_b = 1 - treadle_b")
        self.request(step, whole=plain)
        for stage in range(march.steps):
            self.stage(stage, step, plain=plain, inside=inside)

    def is_inside(self, row: int) -> str:
        """The test whether a row's cells are inside the grid, all or none."""
        array = self.column.name
        return (
            f"treadle_i{row} >= 0 and treadle_i{row} < {array}.shape[1] and "
            f"treadle_j >= 0 and treadle_j < {array}.shape[2]"
        )

    def outside_cells(self) -> None:
        """The cells of a tile that are outside the grid, as the next step reads them: they are
        those of cells inside, which are there by now."""
        march, column = self.march, self.column
        (above, _), (before, _) = march.pads(column)
        height, width = march.extents(column)
        for row in range(march.rows):
            self.put(f"if not ({self.is_inside(row)}):")
            self.depth += 1
            self.mapped("treadle_mi", 1, f"treadle_i{row}", "treadle_top")
            start = f"(treadle_mi + {above}) * {width} + {before} + treadle_b * {height * width}"
            for lane in range(march.lanes):
                self.mapped(f"treadle_mj{lane}", 2, f"treadle_j + {lane}", "treadle_left")
            for stage in range(1, march.steps):
                values = []
                for lane in range(march.lanes):
                    place, name = f"treadle_mj{lane}", f"treadle_o{lane}"
                    if march.lanes > 1:
                        place += f" // {march.lanes}"
                    values.append(name)
                    self.put(f"{name}v = treadle_s{stage}s[treadle_flat({start} + {place})]")
                    if march.lanes == 1:
                        self.put(f"{name} = {name}v")
                    else:
                        self.put(f"{name} = {name}v.x")
                    for other in range(1, march.lanes):
                        self.put(f"if treadle_mj{lane} % {march.lanes} == {other}:")
                        self.put(f"    {name} = {name}v.{'xyzw'[other]}")
                    for axis, index in ((2, "treadle_j"), (1, f"treadle_i{row}")):
                        value = self.replaced(axis)
                        if value is not None:
                            extent = f"{column.name}.shape[{axis}]"
                            self.put(f"if {index} < 0 or {index} >= {extent}:")
                            self.put(f"    {name} = {value}")
                place = f"treadle_s{stage}s[treadle_flat(treadle_as + {row * width})]"
                self.put(f"{place} = {self.vector(column, values)}")
            self.depth -= 1
        self.put("treadle_lang.sync_threads()")

    def mapped(self, name: str, axis: int, index: str, first: str) -> None:
        """The cell of the tile that a rule gives for a cell outside along an axis. What is farther
        outside than the halo may be any cell."""
        last = f"{self.column.name}.shape[{axis}] - 1"
        self.put(f"{name} = {index}")
        if self.analysis.rules[axis].name == "mirror":
            self.put(f"{name} = min(abs({name}), 2 * ({last}) - abs({name}))")
        self.put(f"{name} = min(max({name}, 0), {last}) - {first}")
        self.put(f"{name} = min(max({name}, 0), {self.march.tile[axis - 1] - 1})")

    def replaced(self, axis: int) -> str | None:
        """What cells outside along an axis are, where that is a number."""
        rule = self.analysis.rules[axis]
        if rule.name not in ("zero", "constant"):
            return None
        return f"treadle_t{self.column.at}({rule.value if rule.name == 'constant' else 0})"

    def stage(self, stage: int, step: int, *, plain: bool, inside: bool) -> None:
        """A plane of a step."""
        march, column, lag = self.march, self.column, self.lag
        behind = step - stage * lag
        plane = f"treadle_k {'+' if behind >= 0 else '-'} {abs(behind)}"
        last, depth = stage == march.steps - 1, self.depth
        if not plain:
            self.put(f"treadle_p = {plane}")
            plane = "treadle_p"
            if stage:
                self.planes_outside(stage, step)
            # Planes that no later stage needs are not computed, nor those outside the grid.
            first = f"max(treadle_first - {(march.steps - 1 - stage) * lag}, 0)"
            self.put(f"if treadle_p >= {first} and treadle_p < {column.name}.shape[0]:")
            self.depth += 1
        values = self.neighbours(stage, step, inside=inside)
        for row in range(march.rows):
            at = self.depth
            if not inside:
                self.put(f"if {self.is_inside(row)}:")
                self.depth += 1
            for lane in range(march.lanes):
                self.call(plane, row, lane, values[row, lane])
            if last:
                self.put(f"if {self.is_stored(row, plain=plain)}:")
                self.depth += 1
                self.store(plane, row)
            self.depth = at
            for lane in range(0 if last else march.lanes):
                name = self.stage_held(stage + 1, row, lane, step + 2 * lag)
                local = f"treadle_l{self.analysis.written[0]}_{row}_{lane}"
                self.put(f"{name} = {local}[treadle_flat(0)]")
        self.depth = depth

    def neighbours(
        self, stage: int, step: int, *, inside: bool
    ) -> dict[tuple[int, int], list[str]]:
        """What the cells of a thread read. Rows and columns next to them that the thread has itself
        are in its registers, unless they may be outside the grid."""
        march, column = self.march, self.column
        tile, base = f"treadle_s{column.at}", f"treadle_a{column.at}"
        if stage:
            tile, base = f"treadle_s{stage}s", "treadle_as"
        loaded: dict[object, str] = {}
        values: dict[tuple[int, int], list[str]] = {}
        for row in range(march.rows):
            for lane in range(march.lanes):
                found = values[row, lane] = []
                for at, (dk, di, dj) in self.analysis.shared:
                    if at != column.at:
                        continue
                    own = 0 <= row + di < march.rows and 0 <= lane + dj < march.lanes
                    if own and (inside or not di):
                        near = step + self.lag + dk
                        found.append(self.stage_held(stage, row + di, lane + dj, near))
                    else:
                        cell = row + di, lane + dj
                        found.append(self.neighbour(column, tile, base, cell, loaded))
        return values

    def is_stored(self, row: int, *, plain: bool) -> str:
        """The test whether a row's cells are among those that the block stores."""
        march = self.march
        rows, columns = march.margins(self.column)
        tests = [] if plain else ["treadle_p < treadle_end"]
        if rows:
            tests.append(f"treadle_y + {row} >= {rows}")
            tests.append(f"treadle_y + {row} < {march.tile[0] - rows}")
        if columns:
            tests.append(f"treadle_x >= {columns // march.lanes}")
            tests.append(f"treadle_x < {march.threads[0] - columns // march.lanes}")
        return " and ".join(tests) or "True"

    def planes_outside(self, stage: int, step: int) -> None:
        """What a thread holds of planes outside the grid, by the boundary's rule: before the first
        plane when that is computed, behind the last one as they would be next."""
        march, lag = self.march, self.lag
        value, mirror = self.replaced(0), self.analysis.rules[0].name == "mirror"
        centre, extent = step + lag, f"{self.column.name}.shape[0]"
        cells = [(row, lane) for row in range(march.rows) for lane in range(march.lanes)]
        self.put("if treadle_p == 0:")
        self.depth += 1
        for row, lane in cells:
            for far in range(1, lag + 1):
                name = self.stage_held(stage, row, lane, centre - far)
                other = self.stage_held(stage, row, lane, centre + (far if mirror else 0))
                self.put(f"{name} = {value or other}")
        self.depth -= 1
        for far in range(1, lag + 1):
            self.put(f"if treadle_p == {extent} - {lag + 1 - far}:")
            self.depth += 1
            for row, lane in cells:
                name = self.stage_held(stage, row, lane, centre + lag)
                back = 2 * far if mirror else far
                other = self.stage_held(stage, row, lane, centre + lag - back)
                self.put(f"{name} = {value or other}")
            self.depth -= 1

    def rotate(self, steps: int, *, whole: bool) -> None:
        super().rotate(steps, whole=whole)
        if steps % self.stage_count == 0:
            return
        for stage in range(1, self.march.steps):
            for row in range(self.march.rows):
                for lane in range(self.march.lanes):
                    name = f"treadle_v{self.column.at}s{stage}_{row}_{lane}_"
                    for near in range(self.stage_count - 1):
                        self.put(f"{name}{near} = {name}{near + steps}")
