"""The CUDA C++ that benchmarks time computes the right thing, at sizes that fill no block."""

from __future__ import annotations

import pytest

import treadle as td
from benchmarks.cuda_cpp.parsing import kernels_of, long_file
from benchmarks.cuda_cpp.workloads import WORKLOADS, ready


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.path.stem)
def test_kernels(device, workload, rng):
    problem = workload.problem(workload.awkward, seed=int(rng.integers(1 << 32)))
    run, results = ready(workload, problem)
    run()
    problem.check(results())


def test_the_long_file():
    text = long_file(300)
    module = td.cuda_module(text)
    assert len(kernels_of(module)) == text.count("__global__")
