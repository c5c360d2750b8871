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
from treadle.lang.decorators import Function
from treadle.lang.positions import CellRules
from treadle.lang.types import annotation_of
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body
from treadle.stencils.contraction import with_fused_products
from treadle.stencils.grid_kernel import GridKernel

_AXES = ("k", "i", "j")  # the indices, of which a grid has the last
# Bodies of so many reads at most have two rows computed in one loop: registers hold what both read.
# In three dimensions the planes that are read at once take the cache instead.
_MOST_SHARED_READS = 12
# Bodies of so many reads begin at a whole vector of the output: half of their time is that of loads
# that are in two lines of the cache. A row then has one vector more, of which a part is computed.
_LEAST_ALIGNED_READS = 16
_LANES = 16
# Elements that a thread of a GPU loads before it stores the first of its cells.
_MOST_LOADED = 40
_SERIAL_PARTS = ("treadle_planes", "treadle_rows", "treadle_bands")


@dataclass(frozen=True)
class Form:
    """What a kernel is made for, beside the analysis of its body."""

    serial: bool  # whether a thread has rows
    same_shape: bool  # whether all arrays accessed at the position have the same extents
    wide: bool  # whether indices have 64 bits
    storage: t.Scalar | None = None  # as in `CellRules`
    cells: int = 1  # how many cells along the slowest axis a thread of a GPU computes at once
    block: tuple[int, int, int] | None = None  # the threads of a block, x first


@dataclass(frozen=True)
class Axis:
    """The bounds of the grid along an axis, as text: all cells, and those of the interior. An axis
    without edges is `closed`."""

    first: str
    last: str
    low: str
    high: str
    closed: bool


class StencilKernel(GridKernel):
    """A stencil as a kernel."""

    def __init__(self, body: Body, analysis: Analysis, form: Form, options: KernelOptions) -> None:
        self.form = form
        text, names, self._parallel = _text_of(body, analysis, form)
        if form.serial:
            options = replace(options, block=Dim3(1))
        elif options.block is None and form.block is not None:
            options = replace(options, block=Dim3(*form.block))
        super().__init__(text, names, options, analysis.rules)

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR. The loops along the last axis are parallel: a stencil writes no array
        that it reads at another cell."""
        return with_parallel_loops(with_fused_products(super().lower(signature)), self._parallel)


def with_parallel_loops(lowered: LoweredKernel, *indices: str) -> LoweredKernel:
    """A kernel whose loops over some variables are parallel."""
    kernel = lowered.kernel

    def marked(node: Node) -> Node:
        if isinstance(node, n.For) and node.variable.name.partition(".")[0] in indices:
            return replace(node, parallel=True)
        return node

    return replace(lowered, kernel=replace(kernel, body=rewrite_block(kernel.body, marked)))


def _text_of(body: Body, analysis: Analysis, form: Form) -> tuple[str, dict[str, Any], str]:
    """The kernel's text, what its names stand for, and the index along the last axis."""
    axes = axes_of(body, analysis, form)
    names: dict[str, Any] = {
        "treadle_body": Function(body.function), "treadle_lang": lang,
        "treadle_index": annotation_of(t.I64 if form.serial or form.wide else t.I32),
        "Index": annotation_of(t.I32),
    }  # fmt: skip
    for name, rules in cell_rules(analysis, axes, form).items():
        names[f"treadle_at_{name}"] = rules
    given = tuple((body.names[at], offsets) for at, offsets in analysis.shared)
    names["treadle_at_given"] = replace(names["treadle_at_interior"], given=given)
    parameters = []
    for at, name in enumerate(body.names):
        annotation = body.annotations.get(name)
        parameters.append(name if annotation is None else f"{name}: treadle_p{at}")
        names[f"treadle_p{at}"] = annotation
    writer = Writer(body, analysis, axes)
    parameters += [f"{name}: Index" for name in parts_of(analysis, form)]
    if form.serial:
        writer.serial()
    else:
        writer.threads(form.cells)
    head = f"def {body.name}({', '.join(parameters)}):\n"
    return head + "".join(writer.lines), names, writer.indices[-1]


def parts_of(analysis: Analysis, form: Form) -> tuple[str, ...]:
    """The kernel's last parameters, which say what part of the grid a thread has."""
    if form.serial:
        return _SERIAL_PARTS
    return _SERIAL_PARTS[:1] if analysis.ndim > 1 else ()


def cell_rules(analysis: Analysis, axes: Sequence[Axis], form: Form) -> dict[str, CellRules]:
    """The positions with which a kernel calls the body, by their names in its text."""
    known, unknown = (True, True), (False, False)
    outer = [known if axis.closed else unknown for axis in axes[:-1]]
    end = known if axes[-1].closed else unknown
    interior = [known] * (analysis.ndim - 1)
    found = {}
    for name, inside in (
        ("interior", (*interior, known)),
        ("left", (*interior, (False, True))),
        ("right", (*interior, (True, False))),
        ("row", (*outer, known)),
        ("edge", (*outer, end)),
    ):
        found[name] = CellRules(analysis.rules, inside, form.same_shape, form.wide, form.storage)
    return found


def axes_of(body: Body, analysis: Analysis, form: Form) -> list[Axis]:
    """The bounds along each axis."""
    found = []
    for axis, rule in enumerate(analysis.rules):
        extents = {
            at: f"{body.names[at]}.shape[{axis + analysis.leading(at)}]" for at in analysis.cells
        }
        low, high = analysis.reach(axis)
        low = max(-low, 0)
        grid = [extents[at] for at in analysis.written] or list(extents.values())[:1]
        if form.same_shape:
            last = grid[0]
            limit = _minus(last, max(high, 0))
        else:
            last = _of("max", grid)
            # An array that is read at smaller indices alone has neighbours of the cell after its
            # end: along axes that are skipped that cell is computed.
            ends = [_minus(extents[at], reach[axis][1]) for at, reach in analysis.cells.items()]
            limit = _of("min", [last, *ends])
        closed = rule.name == "skip" or (form.same_shape and low == 0 and high <= 0)
        if rule.name == "skip":
            found.append(Axis(str(low), limit, str(low), limit, True))
        else:
            found.append(Axis("0", last, str(low), limit, closed))
    return found


def _minus(text: str, number: int) -> str:
    if number == 0:
        return text
    return f"{text} - {number}" if number > 0 else f"{text} + {-number}"


def _plus(text: str, number: int) -> str:
    return text if number == 0 else f"{text} {'+' if number > 0 else '-'} {abs(number)}"


def _of(function: str, texts: Sequence[str]) -> str:
    texts = list(dict.fromkeys(texts))
    return texts[0] if len(texts) == 1 else f"{function}({', '.join(texts)})"


def _rows_together(analysis: Analysis) -> int:
    """How many adjacent rows are computed in one loop: they share what they read of each other."""
    shares = analysis.ndim == 2 and analysis.reach(0) != (0, 0) and bool(analysis.shared)
    return 2 if shares and analysis.reads <= _MOST_SHARED_READS else 1


class Writer:
    """The lines of a kernel."""

    def __init__(self, body: Body, analysis: Analysis, axes: Sequence[Axis]) -> None:
        self.body = body
        self.analysis = analysis
        self.axes = axes
        taken = set(body.order)
        self.indices = [
            name if name not in taken else f"treadle_{name}" for name in _AXES[3 - analysis.ndim :]
        ]
        self.lines: list[str] = []
        self.together = _rows_together(analysis)
        self.depth = 1

    def put(self, line: str) -> None:
        """A line at the present depth."""
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

    def threads(self, cells: int) -> None:
        """A thread computes cells that follow each other along the slowest axis: what they read of
        that axis is the same. In one dimension it computes one cell."""
        ndim, indices = self.analysis.ndim, list(self.indices)
        if ndim > 1:
            indices[0] = "treadle_t"
        self.put(f"{', '.join(indices)} = treadle_lang.grid({ndim})")
        for axis, index in list(zip(self.axes, indices, strict=True))[ndim > 1 :]:
            if axis.first != "0":
                self.put(f"{index} += {axis.first}")
        if ndim == 1:
            self.cell()
            return
        bounds, index = self.axes[0], self.indices[0]
        if cells == 1:
            self.loop(0, "treadle_t", "treadle_planes")
            self.cell()
            return
        self.put(f"treadle_k = treadle_index({bounds.first}) + treadle_t * treadle_planes")
        self.put(f"treadle_end = min(treadle_k + treadle_planes, {bounds.last})")
        self.put("while treadle_k < treadle_end:")
        self.depth += 1
        tests = [f"treadle_k + {cells} <= treadle_end"]
        if not bounds.closed:
            tests += [f"treadle_k >= {bounds.low}", f"treadle_k + {cells} <= {bounds.high}"]
        self.put(f"if {' and '.join(filter(None, [*tests, self.inside(range(1, ndim))]))}:")
        self.depth += 1
        self.column(cells, "treadle_k")
        self.put(f"treadle_k += {cells}")
        self.depth -= 1
        self.put("else:")
        self.depth += 1
        self.put(f"{index} = treadle_k")
        self.cell()
        self.put("treadle_k += 1")

    def cell(self) -> None:
        """One cell, in the interior or at an edge."""
        test = self.inside(range(self.analysis.ndim))
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
        self.depth -= 1

    def column(self, cells: int, first: str) -> None:
        """Some cells of the interior that follow each other along the slowest axis. Each element is
        loaded once, before it is first used; a few are loaded all before the first store."""
        needed = [
            [(at, (offsets[0] + cell, *offsets[1:])) for at, offsets in self.analysis.shared]
            for cell in range(cells)
        ]
        loaded: dict[tuple[int, tuple[int, ...]], str] = {}

        def load(cell: int) -> None:
            for each in needed[cell]:
                if each in loaded:
                    continue
                at, offsets = each
                loaded[each] = name = f"treadle_v{len(loaded)}"
                near = (first, *self.indices[1:])
                moved = (_plus(one, step) for one, step in zip(near, offsets, strict=True))
                self.put(f"{name} = {self.body.names[at]}[treadle_at_interior({', '.join(moved)})]")

        if len({each for one in needed for each in one}) <= _MOST_LOADED:
            for cell in range(cells):
                load(cell)
        for cell in range(cells):
            load(cell)
            indices = (_plus(first, cell), *self.indices[1:])
            self.call("given", (*indices, *(loaded[each] for each in needed[cell])))

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
        if ndim == 1:
            self.row(self.indices[:-1])
            return
        if ndim == 3:
            self.loop(0, "treadle_t // treadle_bands", "treadle_planes")
        self.rows("treadle_t % treadle_bands" if ndim == 3 else "treadle_t")

    def loop(self, axis: int, part: str, count: str) -> None:
        """The loop over a thread's part of an axis."""
        bounds, index = self.axes[axis], self.indices[axis]
        self.put(f"{index}_first = treadle_index({bounds.first}) + {part} * {count}")
        end = f"min({index}_first + {count}, {bounds.last})"
        self.put(f"for {index} in range({index}_first, {end}):")
        self.depth += 1

    def rows(self, part: str) -> None:
        """The rows of a thread: several at once in the interior, which share what they read."""
        axis = self.analysis.ndim - 2
        bounds, index = self.axes[axis], self.indices[axis]
        self.put(f"treadle_i = treadle_index({bounds.first}) + {part} * treadle_rows")
        self.put(f"treadle_end = min(treadle_i + treadle_rows, {bounds.last})")
        self.put("while treadle_i < treadle_end:")
        self.depth += 1
        if self.together > 1:
            last = f"treadle_i + {self.together}"
            tests = [f"{last} <= treadle_end"]
            if not bounds.closed:
                tests += [f"treadle_i >= {bounds.low}", f"{last} <= {bounds.high}"]
            if not self.axes[-1].closed:
                tests.append(f"{self.axes[-1].low} <= {self.axes[-1].high}")
            self.put(f"if {' and '.join((*tests, *filter(None, [self.inside(range(axis))])))}:")
            self.depth += 1
            several = [f"treadle_i + {row}" if row else "treadle_i" for row in range(self.together)]
            self.put(f"for {self.indices[-1]} in range(treadle_first, treadle_last):")
            self.depth += 1
            self.column(self.together, "treadle_i")
            self.depth -= 1
            for row in several:
                self.ends((*self.indices[:-2], row))
            self.put(f"treadle_i += {self.together}")
            self.depth -= 1
            self.put("else:")
            self.depth += 1
        self.put(f"{index} = treadle_i")
        self.row(self.indices[:-1])
        self.put("treadle_i += 1")

    def row(self, outer: Sequence[str]) -> None:
        """The cells of a row: the interior, then those at its two ends."""
        last = self.axes[-1]
        test = self.inside(range(self.analysis.ndim - 1))
        if not last.closed:  # a row that is shorter than the halo has cells near both ends
            test = " and ".join(filter(None, [test, f"{last.low} <= {last.high}"]))
        if test:
            self.put(f"if {test}:")
            self.depth += 1
        self.cells("interior", [outer])
        self.ends(outer)
        if test:
            self.depth -= 1
            self.put("else:")
            self.depth += 1
            self.cells("row", [outer])
            self.both_ends(outer)
            self.depth -= 1

    def ends(self, outer: Sequence[str]) -> None:
        """The cells at the ends of a row of the interior."""
        if self.axes[-1].closed:
            return
        for name, first, last in (("left", "low", "first"), ("right", "last", "high")):
            self.put(f"for treadle_e in range(treadle_{first}, treadle_{last}):")
            self.depth += 1
            self.call(name, (*outer, "treadle_e"))
            self.depth -= 1

    def both_ends(self, outer: Sequence[str]) -> None:
        """The cells at the ends of any other row."""
        if self.axes[-1].closed:
            return
        self.put("treadle_left = treadle_first - treadle_low")
        self.put("for treadle_e in range(treadle_left + treadle_high - treadle_last):")
        self.depth += 1
        at = "treadle_low + treadle_e, treadle_last + treadle_e - treadle_left"
        self.call("edge", (*outer, f"treadle_lang.where(treadle_e < treadle_left, {at})"))
        self.depth -= 1

    def cells(self, rules: str, rows: Sequence[Sequence[str]]) -> None:
        """The cells of the interior of some rows."""
        index, start = self.indices[-1], "treadle_first"
        if rules == "interior" and self.analysis.reads >= _LEAST_ALIGNED_READS:
            start = self.head(rows[0])
        self.put(f"for {index} in range({start}, treadle_last):")
        self.depth += 1
        for outer in rows:
            self.call(rules, (*outer, index))
        self.depth -= 1

    def head(self, outer: Sequence[str]) -> str:
        """The cells before the first whole vector of the output; the index of that."""
        at = (self.analysis.written or tuple(self.analysis.cells))[0]
        output, lead = self.body.names[at], self.analysis.leading(at)
        place = "0"
        for axis, each in enumerate(outer):
            place = f"({place} + {each}) * treadle_index({output}.shape[{axis + lead + 1}])"
        self.put(f"treadle_head = (0 - ({place} + treadle_first)) % {_LANES}")
        self.put("treadle_start = min(treadle_first + treadle_head, treadle_last)")
        index = self.indices[-1]
        self.put("if treadle_start > treadle_first:")
        self.depth += 1
        self.put(f"for {index} in range({_LANES}):")
        self.depth += 1
        self.put(f"treadle_at = treadle_start - {_LANES} + {index}")
        self.put("if treadle_at >= treadle_first:")
        self.depth += 1
        self.call("interior", (*outer, "treadle_at"))
        self.depth -= 3
        return "treadle_start"
