"""Several steps in one launch on GPUs: a block computes a tile with a wide halo in shared memory.

A block loads a tile of the array that is read, computes the steps in it and in a second tile in
turn, and stores the last one. With each step the cells of the tile that are right are fewer by the
halo at each side; adjacent blocks compute these again. Away from the edges of the grid all cells of
a tile are computed without tests, and a thread has some adjacent rows, which share what they read.
At the edges each cell is tested: those outside the grid are not computed, or along axes that wrap
they are those of the other end.

A tile is an array with the grid's extents and indices to the body. So the boundary's rules, the
indices of `pos.index` and all other arrays are those of single steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from treadle import lang
from treadle.core.dim3 import Dim3
from treadle.ir import types as t
from treadle.ir.definition import KernelOptions, LoweredKernel
from treadle.ir.signature import Signature
from treadle.lang.decorators import Function, as_function
from treadle.lang.positions import CellRules, Tile
from treadle.lang.types import annotation_of
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body
from treadle.stencils.contraction import with_fused_products
from treadle.stencils.grid_kernel import GridKernel
from treadle.stencils.kernel_text import Axis, Form, axes_of

_LOCAL = ("i", "j")  # the axes in names of the text, of which a grid has the last


@dataclass(frozen=True)
class Plan:
    """The steps of a launch, and a block's part along each axis: its threads, the cells of a
    thread, and the halo of one step."""

    steps: int
    threads: tuple[int, ...]
    cells: tuple[int, ...]
    halo: tuple[int, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of a tile."""
        return tuple(
            threads * cells + 2 * halo
            for threads, cells, halo in zip(self.threads, self.cells, self.halo, strict=True)
        )

    @property
    def stored(self) -> tuple[int, ...]:
        """The cells along each axis that a block stores."""
        return tuple(
            extent - 2 * self.steps * halo
            for extent, halo in zip(self.extents, self.halo, strict=True)
        )


def _copy_cell(source, target, pos):  # type: ignore[no-untyped-def]
    target[pos] = source[pos]


class TileKernel(GridKernel):
    """Several steps as a kernel, whose parameters are those of the stencil. `read` and `written`
    are the arrays that change places."""

    def __init__(
        self,
        body: Body,
        analysis: Analysis,
        plan: Plan,
        read: str,
        written: str,
        element: t.Type,
        storage: t.Scalar | None,
        options: KernelOptions,
    ) -> None:
        names: dict[str, Any] = {
            "treadle_lang": lang, "treadle_body": Function(body.function),
            "treadle_copy": Function(as_function(_copy_cell)),
            "treadle_element": annotation_of(element),
        }  # fmt: skip
        parameters = []
        for at, name in enumerate(body.names):
            annotation = body.annotations.get(name)
            parameters.append(name if annotation is None else f"{name}: treadle_p{at}")
            names[f"treadle_p{at}"] = annotation
        axes = axes_of(body, analysis, Form(False, True, False))
        writer = _TileWriter(body, analysis, axes, plan, read, written)
        ndim = analysis.ndim
        names["treadle_tile"] = Tile(writer.strides)
        names["treadle_one"] = Tile((0,) * ndim)
        names["treadle_at_interior"] = CellRules(
            analysis.rules, ((True, True),) * ndim, storage=storage
        )
        edge = tuple((axis.closed, axis.closed) for axis in axes)
        names["treadle_at_edge"] = CellRules(analysis.rules, edge, storage=storage)
        text = f"def {body.name}({', '.join(parameters)}):\n" + "".join(writer.lines)
        block = Dim3(*reversed(plan.threads))
        super().__init__(text, names, replace(options, block=block), analysis.rules)

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR."""
        return with_fused_products(super().lower(signature))


class _TileWriter:
    """The lines of a kernel."""

    def __init__(
        self,
        body: Body,
        analysis: Analysis,
        axes: Sequence[Axis],
        plan: Plan,
        read: str,
        written: str,
    ) -> None:
        self.body, self.analysis, self.axes, self.plan = body, analysis, axes, plan
        self.read, self.written = read, written
        self.ndim = analysis.ndim
        self.local = [f"treadle_{name}" for name in _LOCAL[2 - self.ndim :]]
        self.strides = (plan.extents[-1], 1)[2 - self.ndim :]
        self.wraps = [rule.name == "wrap" for rule in analysis.rules]
        self.rows = plan.cells[0] if self.ndim == 2 else 1
        self.lines: list[str] = []
        self.depth = 1
        self.start()
        self.load()
        for step in range(1, plan.steps + 1):
            self.put("treadle_lang.sync_threads()")
            self.step(step)

    def put(self, line: str) -> None:
        """A line at the present depth."""
        self.lines.append("    " * self.depth + line + "\n")

    def start(self) -> None:
        """The tiles, the cell with which a block's tile begins, and whether all of its cells are
        in the grid."""
        plan, size = self.plan, 1
        for extent in plan.extents:
            size *= extent
        for name in ("a", "b"):
            self.put(f"treadle_{name} = treadle_lang.shared({size}, treadle_element)")
        for row in range(self.rows):
            self.put(f"treadle_l{row} = treadle_lang.local(1, treadle_element)")
        tests = []
        for axis, name in enumerate(self.local):
            letter = "xy"[self.ndim - 1 - axis]
            self.put(f"{name}_thread = treadle_lang.thread_idx.{letter}")
            self.put(
                f"{name} = treadle_lang.block_idx.{letter} * {plan.stored[axis]} - "
                f"{plan.steps * plan.halo[axis]}"
            )
            last = f"{self.read}.shape[{axis}]"
            tests += [f"{name} >= 0", f"{name} + {plan.extents[axis]} <= {last}"]
        self.put(f"treadle_inside = {' and '.join(tests)}")
        start = " + ".join(
            f"{name} * {stride}" for name, stride in zip(self.local, self.strides, strict=True)
        )
        self.put(f"treadle_offset = -({start})")

    # --- loading ---

    def load(self) -> None:
        """Both tiles get the array that is read: a cell whose neighbours are not right any more is
        computed from old values, and not from what the memory had."""
        plan = self.plan
        size = plan.extents[0] * (plan.extents[1] if self.ndim == 2 else 1)
        threads = plan.threads[0] * (plan.threads[1] if self.ndim == 2 else 1)
        thread = self.local[-1] + "_thread"
        if self.ndim == 2:
            thread = f"{self.local[0]}_thread * {plan.threads[1]} + {thread}"
        self.put(f"for treadle_q in range({thread}, {size}, {threads}):")
        self.depth += 1
        row = plan.extents[-1]
        for axis, name in enumerate(self.local):
            part = (
                "treadle_q"
                if self.ndim == 1
                else (f"treadle_q // {row}", f"treadle_q % {row}")[axis]
            )
            self.put(f"{name}_at = {name} + {part}")
        self.put("if treadle_inside:")
        self.depth += 1
        self.copy_in([f"{name}_at" for name in self.local], skipping=False)
        self.depth -= 1
        self.put("else:")
        self.depth += 1
        self.edge_cell(skipped=True)
        skipping = any(rule.name == "skip" for rule in self.analysis.rules)
        self.copy_in([f"{name}_cell" for name in self.local], skipping=skipping)
        self.depth = 1

    def copy_in(self, indices: Sequence[str], *, skipping: bool) -> None:
        """A cell of both tiles. Cells that `"skip"` leaves out are those of the array written in
        the second one."""
        cell = f"treadle_at_interior({', '.join(indices)})"
        self.put(f"treadle_copy({self.read}, {self.tile('a')}, {cell})")
        if not skipping:
            self.put(f"treadle_copy({self.read}, {self.tile('b')}, {cell})")
            return
        tests = []
        for bounds, index in zip(self.axes, indices, strict=True):
            tests += [f"{index} >= {bounds.first}", f"{index} < {bounds.last}"]
        self.put(f"if {' and '.join(tests)}:")
        self.put(f"    treadle_copy({self.read}, {self.tile('b')}, {cell})")
        self.put("else:")
        self.put(f"    treadle_copy({self.written}, {self.tile('b')}, {cell})")

    def tile(self, name: str) -> str:
        """A tile as an array. At the edges its offset is that of the cell."""
        return f"treadle_tile(treadle_{name}, {self.read}, treadle_offset)"

    def edge_cell(self, *, skipped: bool) -> None:
        """The cell that `…_at` is, where it is in the grid (with those that are skipped, or
        without)."""
        tests, moved = [], []
        for axis, name in enumerate(self.local):
            bounds, extent = self.axes[axis], f"{self.read}.shape[{axis}]"
            if self.wraps[axis]:
                self.put(f"{name}_cell = {name}_at % {extent}")
                moved.append(f"({name}_at - {name}_cell) * {self.strides[axis]}")
                continue
            self.put(f"{name}_cell = {name}_at")
            first, last = ("0", extent) if skipped else (bounds.first, bounds.last)
            tests += [f"{name}_cell >= {first}", f"{name}_cell < {last}"]
        if moved:
            start = " + ".join(
                f"{name} * {stride}" for name, stride in zip(self.local, self.strides, strict=True)
            )
            self.put(f"treadle_offset = {' + '.join(moved)} - ({start})")
        if tests:
            self.put(f"if {' and '.join(tests)}:")
            self.depth += 1

    # --- computing ---

    def step(self, step: int) -> None:
        """One step, from one tile to the other, or the last to the array that is written."""
        source, target = ("a", "b") if step % 2 else ("b", "a")
        final = step == self.plan.steps
        self.put("if treadle_inside:")
        self.depth += 1
        columns = self.plan.cells[-1]
        for column in range(columns):
            self.strip(column, source, target, final=final)
        self.depth -= 1
        self.put("else:")
        self.depth += 1
        self.edges(step, source, target, final=final)
        self.depth = 1

    def body_call(self, source: str, target: str, cell: str) -> None:
        """The body at a cell, with a tile for the array that is read and `target` for the other."""
        given = {self.read: self.tile(source), self.written: target, self.body.position: cell}
        passed = (given.get(name, name) for name in self.body.order)
        self.put(f"treadle_body({', '.join(passed)})")

    def strip(self, column: int, source: str, target: str, *, final: bool) -> None:
        """The adjacent rows of a thread, all of them computed before any is stored."""
        plan, name = self.plan, self.local[-1]
        self.put(
            f"{name}_at = {name} + {name}_thread + {plan.halo[-1] + column * plan.threads[-1]}"
        )
        indices = []
        for row in range(self.rows):
            each = [f"{name}_at"]
            if self.ndim == 2:
                first = self.local[0]
                each.insert(0, f"{first} + {first}_thread * {self.rows} + {plan.halo[0] + row}")
            indices.append(each)
        for row, each in enumerate(indices):
            one = f"treadle_one(treadle_l{row}, {self.read}, 0)"
            self.body_call(source, one, f"treadle_at_interior({', '.join(each)})")
        for row, each in enumerate(indices):
            start = self.depth
            if final:
                self.put(f"if {self.is_stored(each)}:")
                self.depth += 1
            to = self.written if final else self.tile(target)
            one = f"treadle_one(treadle_l{row}, {self.read}, 0)"
            self.put(f"treadle_copy({one}, {to}, treadle_at_interior({', '.join(each)}))")
            self.depth = start

    def is_stored(self, indices: Sequence[str]) -> str:
        """The test whether a cell is among those that the block stores."""
        tests = []
        for axis, index in enumerate(indices):
            plan, name = self.plan, self.local[axis]
            far = plan.steps * plan.halo[axis]
            if far:
                tests.append(f"{index} >= {name} + {far}")
            if far or plan.stored[axis] < plan.threads[axis] * plan.cells[axis]:
                tests.append(f"{index} < {name} + {far + plan.stored[axis]}")
        return " and ".join(tests) or "True"

    def edges(self, step: int, source: str, target: str, *, final: bool) -> None:
        """The cells of a tile at the edges of the grid, one after the other."""
        plan = self.plan
        tests = []
        for axis, name in enumerate(self.local):
            threads, cells, halo = plan.threads[axis], plan.cells[axis], plan.halo[axis]
            self.put(f"for {name}_q in range({cells}):")
            self.depth += 1
            # A step's cells that are right: from these the next ones are computed.
            self.put(f"{name}_in = {name}_thread + {name}_q * {threads} + {halo}")
            far = step * halo
            tests += [f"{name}_in >= {far}", f"{name}_in < {plan.extents[axis] - far}"]
        self.put(f"if {' and '.join(tests)}:")
        self.depth += 1
        for name in self.local:
            self.put(f"{name}_at = {name} + {name}_in")
        self.edge_cell(skipped=False)
        cell = ", ".join(f"{name}_cell" for name in self.local)
        if final and any(self.wraps):
            same = " and ".join(f"{name}_cell == {name}_at" for name in self.local)
            self.put(f"if {same}:")
            self.depth += 1
        to = self.written if final else self.tile(target)
        tests = []
        for bounds, name in zip(self.axes, self.local, strict=True):
            if not bounds.closed:
                tests += [f"{name}_cell >= {bounds.low}", f"{name}_cell < {bounds.high}"]
        if not tests:
            self.body_call(source, to, f"treadle_at_interior({cell})")
            return
        self.put(f"if {' and '.join(tests)}:")
        self.depth += 1
        self.body_call(source, to, f"treadle_at_interior({cell})")
        self.depth -= 1
        self.put("else:")
        self.depth += 1
        self.body_call(source, to, f"treadle_at_edge({cell})")
