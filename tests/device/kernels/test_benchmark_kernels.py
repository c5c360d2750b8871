"""What the benchmarks time computes the right thing, at sizes that fill no block."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import treadle as td
from benchmarks import compile as compiling
from benchmarks.matmul import LARGE
from benchmarks.workloads import ADD, WORKLOADS, matmul_workload
from treadle.kernels.tiles import TILES

COPIED = TILES[True, 4, "large"][1]
MATMULS = [
    matmul_workload(LARGE["webgpu"]),
    matmul_workload(COPIED._replace(copies=1, warp_columns=4)),
    matmul_workload(COPIED._replace(copies=3)),  # four take more than 32 KiB
]
OTHERS = [workload for workload in WORKLOADS if "matmul" not in workload.name]


@pytest.mark.parametrize("workload", [ADD, *OTHERS, *MATMULS], ids=lambda one: one.kernels[0].name)
def test_benchmark_kernels(device, workload, rng):
    launch, check = workload.ready(seed=int(rng.integers(1 << 32)), size=workload.awkward)
    launch()
    check()


TEXT = compiling.long_kernel(7)


@functools.cache
def as_plain_python() -> np.ndarray:
    x, table, out, steps = (
        value.numpy() if isinstance(value, td.Tensor) else value for value in compiling.arguments()
    )
    with td.interpret():
        td.kernel(source=TEXT)[2, 64](x, table, out, steps)
    return out


def test_a_long_kernel(device):
    found = compiling.launch(TEXT)
    np.testing.assert_allclose(found, as_plain_python(), rtol=1e-4, atol=1e-4)
