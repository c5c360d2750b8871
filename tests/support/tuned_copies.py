"""A family for tests of the tuner: copies of an array by blocks of several sizes, and one candidate
that copies wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.tuning.records import Bench, Candidate, Family, Problem, Workload, power_of

COPIES = "copies"
RIGHT = [Candidate("block", (size,)) for size in (32, 1, 8, 64, 128)]
WRONG = Candidate("wrong", (16,))
Change = Callable[[np.ndarray[Any, Any], Candidate], np.ndarray[Any, Any]]


@td.kernel(checked=False)
def copy(x: td.Array[td.f32], out: td.Array[td.f32], n: td.i32, wrong: td.f32):
    i = td.grid(1)
    if i < n:
        out[i] = x[i] + wrong


def workload_of(size: int) -> Workload:
    """Copies of an array of a size."""
    problem = Problem(COPIES, 1, ("f32", power_of(size)))
    return Workload(problem, f"copies of {size}", size, float(size))


def _unchanged(values: np.ndarray[Any, Any], _: Candidate) -> np.ndarray[Any, Any]:
    return values


def copies(change: Change = _unchanged) -> Family:
    """The family; `change` is done to results when they are read."""

    def prepare(device: Device, workload: Workload) -> Bench:
        n = min(workload.sizes, 10_000)
        x, out = (DeviceArray.allocate(device, td.float32, (n,)) for _ in range(2))
        x.upload(np.random.default_rng().standard_normal(n).astype(np.float32))
        last = [RIGHT[0]]

        def run(candidate: Candidate, number: int) -> None:
            assert number == 0
            last[0] = candidate
            (size,) = candidate.numbers
            copy[-(-n // size), size](x, out, n, 1.0 if candidate == WRONG else 0.0)

        def clear() -> None:
            out.upload(np.full(n, np.nan, np.float32))

        return Bench(
            RIGHT[0], [*RIGHT[:3], WRONG, *RIGHT[3:]], lambda _: [], run, lambda _: None, clear,
            lambda: change(out.to_host(), last[0]),
        )  # fmt: skip

    return Family(COPIES, "copies", lambda _: [], lambda _, size: workload_of(size), prepare)
