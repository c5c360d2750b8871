"""The kernel around a stencil's body, in the kernel language: which cells a thread computes.

In the interior, where no array is read outside, the body is called with a position that reads
without any test; at the edges with one that follows the boundary's rules. A kernel for serial
threads gives each thread some rows, and its loop along the last axis is parallel: the CPU's printer
makes vectors of its iterations. On GPUs a thread has one cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from treadle import lang
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.definition import KernelOptions, LoweredKernel
from treadle.ir.signature import Signature
from treadle.ir.traverse import Node, rewrite_block
from treadle.lang.decorators import Function, Kernel
from treadle.lang.positions import CellRules
from treadle.lang.source import function_from_text
from treadle.lang.types import annotation_of
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body

_AXES = ("k", "i", "j")  # the indices, of which a grid has the last
CHUNKS = ("treadle_planes", "treadle_rows", "treadle_bands")


@dataclass(frozen=True)
class Form:
    """What a kernel is made for, beside the analysis of its body."""

    serial: bool  # whether a thread has rows
    same_shape: bool  # whether all arrays accessed at the position have the same extents
    wide: bool  # whether indices have 64 bits


@dataclass(frozen=True)
class _Axis:
    """The bounds of the grid along an axis, as text: all cells, and those of the interior. An axis
    without edges is `closed`."""

    first: str
    last: str
    low: str
    high: str
    closed: bool


class StencilKernel(Kernel):
    """A stencil as a kernel."""

    def __init__(self, body: Body, analysis: Analysis, form: Form, options: KernelOptions) -> None:
        self.form = form
        text, names, self._parallel = _text_of(body, analysis, form)
        if form.serial:
            options = replace(options, block=Dim3(1))
        super().__init__(function_from_text(text, None, names), options, None)

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR. The loops along the last axis are parallel: a stencil writes no array
        that it reads at another cell."""
        lowered = super().lower(signature)
        kernel = lowered.kernel

        def marked(node: Node) -> Node:
            if isinstance(node, n.For) and node.variable.name.partition(".")[0] == self._parallel:
                return replace(node, parallel=True)
            return node

        body = rewrite_block(kernel.body, marked)
        return replace(lowered, kernel=replace(kernel, body=body))


def _text_of(body: Body, analysis: Analysis, form: Form) -> tuple[str, dict[str, Any], str]:
    """The kernel's text, what its names stand for, and the index along the last axis."""
    axes = _axes(body, analysis, form)
    names: dict[str, Any] = {
        "treadle_body": Function(body.function), "treadle_lang": lang,
        "treadle_index": annotation_of(t.I64 if form.wide else t.I32),
        "Index": annotation_of(t.I32),
    }  # fmt: skip
    for name, inside in (
        ("interior", (True,) * analysis.ndim),
        ("row", (*(axis.closed for axis in axes[:-1]), True)),
        ("edge", tuple(axis.closed for axis in axes)),
    ):
        names[f"treadle_at_{name}"] = CellRules(analysis.rules, inside, form.same_shape)
    parameters = []
    for at, name in enumerate(body.names):
        annotation = body.annotations.get(name)
        parameters.append(name if annotation is None else f"{name}: treadle_p{at}")
        names[f"treadle_p{at}"] = annotation
    writer = _Writer(body, analysis, axes)
    if form.serial:
        parameters += [f"{name}: Index" for name in CHUNKS]
        writer.serial()
    else:
        writer.threads()
    head = f"def {body.name}({', '.join(parameters)}):\n"
    return head + "".join(writer.lines), names, writer.indices[-1]


def _axes(body: Body, analysis: Analysis, form: Form) -> list[_Axis]:
    """The bounds along each axis."""
    found = []
    for axis, rule in enumerate(analysis.rules):
        extents = {at: f"{body.names[at]}.shape[{axis}]" for at in analysis.cells}
        low, high = analysis.reach(axis)
        low = max(-low, 0)
        grid = [extents[at] for at in analysis.written] or list(extents.values())[:1]
        if form.same_shape:
            last = grid[0]
            limit = _minus(last, high)
        else:
            last = _of("max", grid)
            limit = _of(
                "min", [_minus(extents[at], reach[axis][1]) for at, reach in analysis.cells.items()]
            )
        closed = rule.name == "skip" or (form.same_shape and low == 0 and high <= 0)
        if rule.name == "skip":
            found.append(_Axis(str(low), limit, str(low), limit, True))
        else:
            found.append(_Axis("0", last, str(low), limit, closed))
    return found


def _minus(text: str, number: int) -> str:
    return text if number <= 0 else f"{text} - {number}"


def _of(function: str, texts: Sequence[str]) -> str:
    texts = list(dict.fromkeys(texts))
    return texts[0] if len(texts) == 1 else f"{function}({', '.join(texts)})"


class _Writer:
    """The lines of a kernel."""

    def __init__(self, body: Body, analysis: Analysis, axes: Sequence[_Axis]) -> None:
        self.body = body
        self.analysis = analysis
        self.axes = axes
        taken = set(body.order)
        self.indices = [
            name if name not in taken else f"treadle_{name}" for name in _AXES[3 - analysis.ndim :]
        ]
        self.lines: list[str] = []
        self.depth = 1

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line + "\n")

    def call(self, rules: str, indices: Sequence[str]) -> None:
        """The body at a cell."""
        cell = f"treadle_at_{rules}({', '.join(indices)})"
        passed = (cell if name == self.body.position else name for name in self.body.order)
        self.put(f"treadle_body({', '.join(passed)})")

    def inside(self, axes: Sequence[int]) -> str:
        """The test whether a cell is in the interior along some axes."""
        tests = []
        for axis in axes:
            bounds, index = self.axes[axis], self.indices[axis]
            if bounds.closed:
                continue
            if bounds.low != "0":
                tests.append(f"{index} >= {bounds.low}")
            tests.append(f"{index} < {bounds.high}")
        return " and ".join(tests)

    # --- a thread for each cell ---

    def threads(self) -> None:
        """A thread computes one cell; the launch has as many as the grid has cells."""
        ndim = self.analysis.ndim
        self.put(f"{', '.join(self.indices)} = treadle_lang.grid({ndim})")
        for axis, index in zip(self.axes, self.indices, strict=True):
            if axis.first != "0":
                self.put(f"{index} += {axis.first}")
        test = self.inside(range(ndim))
        if not test:
            self.call("interior", self.indices)
            return
        self.put(f"if {test}:")
        self.depth += 1
        self.call("interior", self.indices)
        self.depth -= 1
        self.put("else:")
        self.depth += 1
        self.call("edge", self.indices)

    # --- rows of cells for each thread ---

    def serial(self) -> None:
        """A thread computes a band of rows, in three dimensions of some planes; in one dimension a
        part of the only row."""
        ndim, last = self.analysis.ndim, self.axes[-1]
        self.put("treadle_t = treadle_index(treadle_lang.block_idx.x)")
        self.put(f"treadle_low = treadle_index({last.first})")
        self.put(f"treadle_high = treadle_index({last.last})")
        if ndim == 1:
            self.put("treadle_low = treadle_low + treadle_t * treadle_rows")
            self.put("treadle_high = min(treadle_low + treadle_rows, treadle_high)")
        self.put(f"treadle_first = min(max(treadle_low, {last.low}), treadle_high)")
        self.put(f"treadle_last = min(max({last.high}, treadle_first), treadle_high)")
        if ndim == 3:
            self.loop(0, "treadle_t // treadle_bands", "treadle_planes")
        if ndim >= 2:
            part = "treadle_t % treadle_bands" if ndim == 3 else "treadle_t"
            self.loop(ndim - 2, part, "treadle_rows")
        self.row()

    def loop(self, axis: int, part: str, count: str) -> None:
        """The loop over a thread's part of an axis."""
        bounds, index = self.axes[axis], self.indices[axis]
        self.put(f"{index}_first = {bounds.first} + {part} * {count}")
        end = f"min({index}_first + {count}, {bounds.last})"
        self.put(f"for {index} in range({index}_first, {end}):")
        self.depth += 1

    def row(self) -> None:
        """The cells of a row: the interior, then those at its two ends."""
        test = self.inside(range(self.analysis.ndim - 1))
        if test:
            self.put(f"if {test}:")
            self.depth += 1
        self.cells("interior")
        if test:
            self.depth -= 1
            self.put("else:")
            self.depth += 1
            self.cells("row")
            self.depth -= 1
        if not self.axes[-1].closed:
            self.put("treadle_left = treadle_first - treadle_low")
            self.put("for treadle_e in range(treadle_left + treadle_high - treadle_last):")
            self.depth += 1
            at = "treadle_low + treadle_e, treadle_last + treadle_e - treadle_left"
            end = f"treadle_lang.where(treadle_e < treadle_left, {at})"
            self.call("edge", (*self.indices[:-1], end))

    def cells(self, rules: str) -> None:
        self.put(f"for {self.indices[-1]} in range(treadle_first, treadle_last):")
        self.depth += 1
        self.call(rules, self.indices)
        self.depth -= 1
