"""Which block of a folded grid (`core.folding`) the device's own block is.

The device runs a grid of another shape than the kernel's, whose extents are parameters. So the
kernel begins by working out where it is, and blocks that the kernel's grid does not have return:

    row = block_idx.z * grid_dim.y + block_idx.y           of the device
    place, line = block_idx.x, row                         if a row is never cut, else
    chunks = (grid.x - 1) / grid_dim.x + 1
    place, line = row % chunks * grid_dim.x + block_idx.x, row / chunks
    if place >= grid.x or line >= grid.y * grid.z: return
    block.x, block.y, block.z = place, line % grid.y, line / grid.y

Numbers are unsigned: of rows there may be as many as 32 bits count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from treadle.ir import nodes as n
from treadle.ir.intervals import LARGEST_EXTENT, Interval
from treadle.ir.passes.names import Names
from treadle.ir.traverse import Node, rewrite_kernel, walk
from treadle.ir.types import BOOL, I32, U32


@dataclass(frozen=True, slots=True)
class Unfolded:
    """A kernel for folded grids, and between what numbers its grid's extents and its block's place
    are: a launch sees to that."""

    kernel: n.Kernel
    ranges: Mapping[str, Interval]


def unfold(kernel: n.Kernel, *, cuts_rows: bool) -> Unfolded:
    """The kernel for grids that are launched folded. `cuts_rows` is whether a grid may be too long
    along x, too, for the device."""
    size = kernel.block
    assert size is not None
    kernel = with_grid(kernel)
    grid = [
        n.Variable(parameter.name, I32)
        for axis in range(3)
        for parameter in kernel.parameters
        if parameter.origin == ("grid", axis)
    ]
    extents = [n.Cast(extent, U32) for extent in grid]
    used = {
        node.axis
        for node in walk(kernel.body)
        if isinstance(node, n.Builtin) and node.name == "block_idx"
    }
    names = Names(kernel)
    body: list[n.Statement] = []

    def known(name: str, value: n.Expression) -> n.Variable:
        variable = n.Variable(names.fresh(name), value.type)
        body.append(n.Declare(variable, value))
        return variable

    x, y, z = (n.Cast(n.Builtin("block_idx", axis), U32) for axis in range(3))
    width, height = (n.Cast(n.Builtin("grid_dim", axis), U32) for axis in range(2))
    line: n.Expression = known("row", _u32("add", _u32("mul", z, height), y))
    place: n.Expression = x
    beyond: n.Expression | None = None
    if cuts_rows:
        row, one = line, n.Constant(1, U32)
        chunks = known("chunks", _u32("add", _u32("div", _u32("sub", extents[0], one), width), one))
        line = known("line", _u32("div", row, chunks))
        place = known("place", _u32("add", _u32("mul", _u32("rem", row, chunks), width), x))
        beyond = n.Binary("ge", place, extents[0], BOOL)
    layer: n.Expression = line
    if 2 in used:
        layer = known("layer", _u32("div", line, extents[1]))
        outside = n.Binary("ge", layer, extents[2], BOOL)
    else:
        outside = n.Binary("ge", line, _u32("mul", extents[1], extents[2]), BOOL)
    if beyond is not None:
        outside = n.Binary("logical_or", beyond, outside, BOOL)
    body.append(n.If(outside, (n.Return(),)))

    values = (place, _u32("rem", line, extents[1]), layer)
    blocks: dict[int, n.Expression] = {}
    ranges: dict[str, Interval] = {}
    for axis in range(3):
        most = max(LARGEST_EXTENT // size[axis], 1)
        ranges[grid[axis].name] = 1, most
        if axis == 0 and not cuts_rows:
            blocks[0] = n.Builtin("block_idx", 0)
        elif axis in used:
            blocks[axis] = block = known(f"block.{'xyz'[axis]}", n.Cast(values[axis], I32))
            ranges[block.name] = 0, most - 1

    def change(node: Node) -> Node:
        if isinstance(node, n.Builtin) and node.name == "block_idx":
            return blocks[node.axis]
        if isinstance(node, n.Builtin) and node.name == "grid_dim":
            return grid[node.axis]
        return node

    kernel = rewrite_kernel(kernel, change)
    return Unfolded(replace(kernel, body=(*body, *kernel.body)), ranges)


def with_grid(kernel: n.Kernel) -> n.Kernel:
    """The kernel with the extents of its grid among its parameters."""
    known = {parameter.origin for parameter in kernel.parameters}
    added = tuple(
        n.Parameter(f"grid.{axis}", I32, ("grid", axis))
        for axis in range(3)
        if ("grid", axis) not in known
    )
    return replace(kernel, parameters=kernel.parameters + added)


def _u32(op: str, left: n.Expression, right: n.Expression) -> n.Binary:
    return n.Binary(op, left, right, U32)
