"""Several steps in one launch on serial threads: bands of rows, narrower with each step.

A cell of one step and a cell of a later one depend on each other only if they are within the
stencils' halo. So any order of computation is right that keeps the order of such pairs. A thread
takes a band of rows, and computes a part of it in each step that is narrower by the halo at both
sides; when all bands are done, other threads compute the gaps between them, which are wider by the
halo with each step. Nothing is computed twice, and the arrays themselves hold the steps between: a
row that one step has written is in the processor's cache when the next one reads it.

    step 2       ████        gap       ████
    step 1     ████████   ░░░░░░░░   ████████
    step 0   ████████████    gap   ████████████

Along the slowest axis a thread goes in a wavefront: a row of step s, then the row one halo before
of step s + 1, and so on. In three dimensions the bands are along the second axis.
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
from treadle.lang.decorators import Function
from treadle.lang.types import annotation_of
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body
from treadle.stencils.contraction import with_fused_products
from treadle.stencils.grid_kernel import GridKernel
from treadle.stencils.kernel_text import Form, Writer, axes_of, cell_rules, with_parallel_loops

# What a launch gives beside the stencils' arguments.
NUMBERS = (
    "treadle_steps", "treadle_extent", "treadle_count", "treadle_bands", "treadle_gaps",
)  # fmt: skip


@dataclass(frozen=True)
class Substep:
    """One stencil of one step. `body` has the kernel's names for its parameters."""

    body: Body
    analysis: Analysis
    form: Form


@dataclass(frozen=True)
class Shape:
    """What the loops of a kernel are made for: the axis of the bands, the halo along it and along
    the slowest axis, and whether the bands are a ring, since the first cell is the neighbour of the
    last one."""

    axis: int
    halo: int
    lag: int
    ring: bool


class BandsKernel(GridKernel):
    """Several steps as a kernel. Its parameters are arrays and numbers of all stencils, then
    NUMBERS."""

    def __init__(
        self,
        name: str,
        parameters: Sequence[tuple[str, Any]],
        substeps: Sequence[Substep],
        shape: Shape,
        options: KernelOptions,
    ) -> None:
        names: dict[str, Any] = {
            "treadle_lang": lang, "Index": annotation_of(t.I32),
            "treadle_index": annotation_of(t.I64),
        }  # fmt: skip
        head = []
        for at, (parameter, annotation) in enumerate(parameters):
            head.append(parameter if annotation is None else f"{parameter}: treadle_p{at}")
            names[f"treadle_p{at}"] = annotation
        head += [f"{number}: Index" for number in NUMBERS]
        writers = [
            _SubstepWriter(substep, number, names) for number, substep in enumerate(substeps)
        ]
        lines = _Bands(writers, shape, substeps[0].analysis.ndim).lines
        text = f"def {name}({', '.join(head)}):\n" + "".join(lines)
        self._parallel = {writer.indices[-1] for writer in writers}
        rules = [rule for each in writers for rule in each.analysis.rules]
        super().__init__(text, names, replace(options, block=Dim3(1)), rules)

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR, whose loops along the last axis are parallel."""
        return with_parallel_loops(with_fused_products(super().lower(signature)), *self._parallel)


class _SubstepWriter(Writer):
    """Writes the rows of one stencil, whose body and positions have a number in the text."""

    def __init__(self, substep: Substep, number: int, names: dict[str, Any]) -> None:
        body, analysis, form = substep.body, substep.analysis, substep.form
        super().__init__(body, analysis, axes_of(body, analysis, form))
        self.number = number
        names[f"treadle_body_{number}"] = Function(body.function)
        for name, rules in cell_rules(analysis, self.axes, form).items():
            names[f"treadle_at_{number}_{name}"] = rules

    def call(self, rules: str, indices: Sequence[str]) -> None:
        cell = f"treadle_at_{self.number}_{rules}({', '.join(indices)})"
        passed = (cell if name == self.body.position else name for name in self.body.order)
        self.put(f"treadle_body_{self.number}({', '.join(passed)})")


class _Bands:
    """The lines of a kernel."""

    def __init__(self, writers: Sequence[_SubstepWriter], shape: Shape, ndim: int) -> None:
        self.writers = writers
        self.shape = shape
        self.ndim = ndim
        self.lines: list[str] = []
        self.depth = 1
        self.bounds()
        if ndim == 1:
            self.cells()
        else:
            self.wavefront()

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line + "\n")

    def bounds(self) -> None:
        """What a thread computes in the first step, and how far both sides move with each step."""
        halo, ring = self.shape.halo, self.shape.ring
        self.put("treadle_t = treadle_index(treadle_lang.block_idx.x)")
        self.put("treadle_rest = treadle_index(treadle_extent) - treadle_count * treadle_bands")
        self.put(f"treadle_t += treadle_gaps * {0 if ring else 1}")
        self.put("treadle_from = treadle_t * treadle_count + min(treadle_t, treadle_rest)")
        self.put("treadle_to = treadle_from")
        self.put(f"treadle_down = treadle_index({-halo})")
        self.put(f"treadle_up = treadle_index({halo})")
        self.put("if treadle_gaps == 0:")
        self.put(
            "    treadle_to += treadle_count + treadle_lang.where(treadle_t < treadle_rest, 1, 0)"
        )
        at_start, at_end = "treadle_t == 0", "treadle_t == treadle_bands - 1"
        for name, at, step in (("down", at_start, halo), ("up", at_end, -halo)):
            kept = str(step) if ring else f"treadle_lang.where({at}, 0, {step})"
            self.put(f"    treadle_{name} = treadle_index({kept})")

    def within_ring(self, index: str) -> None:
        """A gap at the start of a ring begins at its end."""
        if self.shape.ring:
            self.put(f"{index} += treadle_lang.where({index} < 0, treadle_extent, 0)")

    def cells(self) -> None:
        """In one dimension: the cells of a step, then those of the next one."""
        self.put("for treadle_s in range(treadle_steps):")
        self.depth += 1
        self.put("treadle_a = treadle_from + treadle_s * treadle_down")
        self.put("treadle_b = treadle_to + treadle_s * treadle_up")
        if self.shape.ring:
            self.put("for treadle_half in range(treadle_lang.where(treadle_a < 0, 2, 1)):")
            self.depth += 1
            self.put("treadle_c = treadle_lang.where(treadle_half == 0, max(treadle_a, 0), "
                     "treadle_a + treadle_extent)")  # fmt: skip
            self.put("treadle_d = treadle_lang.where(treadle_half == 0, treadle_b, "
                     "treadle_index(treadle_extent))")  # fmt: skip
            self.substeps((), "treadle_c", "treadle_d")
        else:
            self.substeps((), "treadle_a", "treadle_b")

    def wavefront(self) -> None:
        """In two and three dimensions: a row (or plane) of each step, and so on."""
        axis, lag = self.shape.axis, self.shape.lag
        if axis == 0:
            self.put("treadle_top = treadle_to + max(treadle_steps - 1, 0) * "
                     f"max(treadle_up + {lag}, 0)")  # fmt: skip
            self.put("for treadle_w in range(treadle_from, treadle_top):")
        else:
            planes = _most(writer.axes[0].last for writer in self.writers)
            self.put(f"treadle_top = {planes} + (treadle_steps - 1) * {lag}")
            self.put("for treadle_w in range(treadle_top):")
        self.depth += 1
        self.put("for treadle_s in range(treadle_steps):")
        self.depth += 1
        self.put(f"treadle_o = treadle_index(treadle_w - treadle_s * {lag})")
        self.put("treadle_a = treadle_from + treadle_s * treadle_down")
        self.put("treadle_b = treadle_to + treadle_s * treadle_up")
        if axis == 0:
            self.put("if treadle_o >= treadle_a and treadle_o < treadle_b:")
            self.depth += 1
            self.within_ring("treadle_o")
        else:
            self.put("if treadle_o >= 0:")
            self.depth += 1
        self.substeps(("treadle_o",), "treadle_a", "treadle_b")

    def substeps(self, outer: Sequence[str], low: str, high: str) -> None:
        """The stencil that a step computes."""
        count = len(self.writers)
        if count > 1:
            self.put(f"treadle_substep = treadle_s % {count}")
        for number, writer in enumerate(self.writers):
            if count > 1:
                last = number == count - 1
                test = (
                    f"elif treadle_substep == {number}:" if number else "if treadle_substep == 0:"
                )
                self.put("else:" if last else test)
            start = self.depth
            self.depth += count > 1
            self.substep(writer, outer, low, high)
            self.depth = start

    def substep(self, writer: _SubstepWriter, outer: Sequence[str], low: str, high: str) -> None:
        """The cells of one stencil between two bounds along the axis of the bands."""
        indices, axes = writer.indices, writer.axes
        last = axes[-1]
        bounds = last.first, last.last
        if self.ndim == 1:
            bounds = f"max({low}, {last.first})", f"min({high}, {last.last})"
        else:
            self.put(f"{indices[0]} = {outer[0]}")
            first = axes[0]
            self.put(f"if {indices[0]} >= {first.first} and {indices[0]} < {first.last}:")
            self.depth += 1
        if self.ndim == 3:
            middle = axes[1]
            if self.shape.axis == 1:
                inner = "treadle_m"
                self.put(f"for {inner} in range({low}, {high}):")
                self.depth += 1
                self.put(f"{indices[1]} = treadle_index({inner})")
                self.within_ring(indices[1])
                self.put(f"if {indices[1]} >= {middle.first} and {indices[1]} < {middle.last}:")
            else:
                self.put(f"for {indices[1]} in range({middle.first}, {middle.last}):")
            self.depth += 1
        self.put(f"treadle_low = treadle_index({bounds[0]})")
        self.put(f"treadle_high = treadle_index({bounds[1]})")
        self.put(f"treadle_first = min(max(treadle_low, {last.low}), treadle_high)")
        self.put(f"treadle_last = min(max({last.high}, treadle_first), treadle_high)")
        writer.lines, writer.depth = self.lines, self.depth
        writer.row(indices[:-1])


def _most(texts: Any) -> str:
    found = list(dict.fromkeys(texts))
    return found[0] if len(found) == 1 else f"max({', '.join(found)})"
