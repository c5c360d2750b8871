"""What stencils become on targets: their text, and `treadle transpile`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import treadle as td
from treadle.cli.transpile import transpile_file
from treadle.runtime.arrays import DeviceArray

PROGRAM = """
import treadle as td

@td.stencil(boundary="clamp")
def laplacian(u: td.Array[td.f32, 2], out: td.Array[td.f32, 2], pos: td.GridPos):
    out[pos] = pos.north(u) + pos.south(u) + pos.east(u) + pos.west(u) - 4.0 * u[pos]

@td.stencil
def untyped(u, out, pos):
    out[pos] = u[pos]
"""


@td.stencil(boundary="clamp")
def laplacian(u: td.Array[td.f32, 2], out: td.Array[td.f32, 2], pos: td.GridPos):
    out[pos] = pos.north(u) + pos.south(u) + pos.east(u) + pos.west(u) - 4.0 * u[pos]


@pytest.mark.parametrize("target", ["wgsl", "cuda", "ptx", "msl", "llvm", "numpy", "ir"])
def test_every_target(target: str) -> None:
    u = np.zeros((4, 5), np.float32)
    text = laplacian.source(target, u, u.copy())
    assert "laplacian" in text
    assert laplacian.source(target) == text  # the annotations say the same


def test_the_interior_has_no_tests() -> None:
    """A kernel for GPUs tests once whether some cells are in the interior; then each element that
    they read is loaded once, before the first store."""
    text = laplacian.source("wgsl")
    interior = text[text.index("while (") : text.index("} else {")]
    loads, stores = interior[: interior.index("out[")], interior[interior.index("out[") :]
    assert loads.count("u[") == 8 + 2 + 2 * 8  # a column, and its two sides
    assert stores.count("out[") == 8
    assert "@workgroup_size(256, 1, 1)" in text
    assert "u[" not in stores
    assert interior.count("if (") == 1
    assert not any(word in interior for word in ("min(", "max(", "select("))
    # At the edges one side of one axis can be outside, for each neighbour.
    edges = text[text.rindex("} else {") :]
    assert edges.count("min(") == edges.count("max(") == 2


def test_rows_on_the_cpu_are_vectors() -> None:
    text = laplacian.source("llvm")
    # Two rows at once, of five loads each, beside those with masks at the ends of rows.
    assert text.count("load <16 x float>, ptr") >= 10
    assert "add i32" not in text.split("load <16 x float>")[1]  # addresses have 64 bits


def test_arrays_that_need_64_bits() -> None:
    shape = (1 << 16, 1 << 16)
    big = [DeviceArray(None, None, td.float32, shape) for _ in range(2)]
    text = laplacian.source("ir", *big)
    assert "pos.0: i64" in text
    assert "pos.0: i32" in laplacian.source("ir")
    for target in ("ptx", "cuda", "llvm"):
        assert laplacian.source(target, *big)


def test_transpile(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    printed = transpile_file(file, "wgsl", None, None, 0)
    assert list(printed.texts) == ["laplacian"]
    assert "fn laplacian(" in printed.text
    assert "annotate u, out" in printed.left_out[0]
    with pytest.raises(td.errors.TreadleError, match="has no kernel 'other'"):
        transpile_file(file, "wgsl", "other", None, 0)
