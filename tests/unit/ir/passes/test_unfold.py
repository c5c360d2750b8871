"""Folded grids: each block of the kernel's own grid runs once, in its place."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ir_evaluator import run
from treadle.core.dim3 import Dim3
from treadle.core.folding import fold_grid
from treadle.ir import nodes as n
from treadle.ir.intervals import LARGEST_EXTENT
from treadle.ir.parser import from_text
from treadle.ir.passes.unfold import unfold
from treadle.ir.traverse import walk
from treadle.ir.verify import verify

HEAD = "kernel count block(2, 1, 1) {\n  buffer out: i32\n  var row: i32 = "
TAIL = """
  out[(row * 2) + thread_idx.x] = (out[(row * 2) + thread_idx.x] + 1) + row
}
"""
PLACES = {
    "x": "block_idx.x",
    "x and y": "(block_idx.y * grid_dim.x) + block_idx.x",
    "all": "(((block_idx.z * grid_dim.y) + block_idx.y) * grid_dim.x) + block_idx.x",
}


@pytest.mark.parametrize("most", [(3, 2, 100), (2, 100, 100), (LARGEST_EXTENT, 2, 3)])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_every_block_runs_once(most: tuple[int, int, int], axes: int) -> None:
    grid = Dim3(*(5, 3, 2)[:axes])
    kernel = from_text(HEAD + list(PLACES.values())[axes - 1] + TAIL)
    made = unfold(kernel, cuts_rows=most[0] < LARGEST_EXTENT)
    verify(made.kernel)
    device = fold_grid(grid, Dim3(*most))
    assert device is not None
    out = np.zeros(2 * grid.count, np.int32)
    run(made.kernel, device, {"out": out}, {f"grid.{axis}": grid[axis] for axis in range(3)})
    assert out.tolist() == [1 + row for row in range(grid.count) for _ in range(2)]


def test_only_what_is_asked_for_is_worked_out() -> None:
    made = unfold(from_text(HEAD + PLACES["x"] + TAIL), cuts_rows=False).kernel
    names = [node.variable.name for node in walk(made.body) if isinstance(node, n.Declare)]
    assert names == ["row.1", "row"]  # the device's, and the kernel's own variable
    assert [p.origin for p in made.parameters] == [("grid", axis) for axis in range(3)]


def test_ranges_are_those_of_a_launch() -> None:
    made = unfold(from_text(HEAD + PLACES["all"] + TAIL), cuts_rows=True)
    most = LARGEST_EXTENT // 2
    assert made.ranges["grid.0"] == (1, most)
    assert made.ranges["block.x"] == (0, most - 1)
    assert made.ranges["block.z"] == (0, LARGEST_EXTENT - 1)
