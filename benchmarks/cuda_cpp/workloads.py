"""Kernels in CUDA C++ with arguments, launches, and a check of what they computed.

A problem says all of that with NumPy alone: treadle and NVRTC's code run the same one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from benchmarks.workloads import blocks, close, equal, normal

NumPy = np.ndarray[Any, Any]
Results = dict[str, NumPy]
Run = Callable[[], None]
KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class Launch:
    """A kernel's launch; a text among the arguments names an array, an int or float is C++'s."""

    kernel: str
    grid: int | tuple[int, int]
    block: int | tuple[int, int]
    arguments: tuple[str | int | float, ...]
    template: tuple[int, ...] = ()


@dataclass(frozen=True)
class Problem:
    """Arrays, launches that go one after the other, and what must come out of them once.

    `amount` is how much is done, and its unit. `outputs` are the arrays that are checked.
    """

    arrays: Mapping[str, NumPy]
    launches: tuple[Launch, ...]
    outputs: tuple[str, ...]
    check: Callable[[Results], float]
    amount: tuple[float, str]
    constants: Mapping[str, NumPy] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """A file, a problem for its kernels, and sizes: the one that is timed and an awkward one."""

    name: str
    file: str
    prepare: Callable[[np.random.Generator, int], Problem]
    size: int
    awkward: int

    @property
    def path(self) -> Path:
        """The source."""
        return KERNELS / self.file

    def problem(self, size: int = 0, seed: int = 0) -> Problem:
        """The problem of a size, or of the one that is timed."""
        return self.prepare(np.random.default_rng(seed), size or self.size)


def ready(workload: Workload, problem: Problem) -> tuple[Run, Callable[[], Results]]:
    """What launches a problem's kernels on the default device, and what reads the outputs."""
    module = td.cuda_module(workload.path)
    for name, values in problem.constants.items():
        module.constants[name] = values
    arrays = {name: td.asarray(array) for name, array in problem.arrays.items()}
    steps = []
    for launch in problem.launches:
        kernel = module.kernel(launch.kernel, *launch.template)
        arguments = (arrays[a] if isinstance(a, str) else a for a in launch.arguments)
        steps.append(functools.partial(kernel[launch.grid, launch.block], *arguments))

    def run() -> None:
        for step in steps:
            step()

    return run, lambda: {name: arrays[name].numpy() for name in problem.outputs}


# --- the problems --------------------------------------------------------------------------------


def _wide(array: NumPy) -> NumPy:
    return array.astype(np.float64)


def _saxpy(rng: np.random.Generator, n: int) -> Problem:
    x, y = normal(rng, 2, n)
    return Problem(
        {"x": x, "y": y}, (Launch("saxpy", blocks(n, 256), 256, (n, 2.5, "x", "y")),), ("y",),
        lambda found: close(found["y"], 2.5 * _wide(x) + y, 1e-6), (12 * n / 1e9, "GB"),
    )  # fmt: skip


def _matmul(rng: np.random.Generator, n: int) -> Problem:
    a, b = normal(rng, 2, n, n)
    some = rng.choice(n, min(n, 100), replace=False)
    grid = (n // 64, n // 64)
    return Problem(
        {"a": a, "b": b, "c": np.full((n, n), np.nan, np.float32)},
        (Launch("matmul", grid, (16, 16), ("a", "b", "c", n)),), ("c",),
        lambda found: close(found["c"][some], _wide(a[some]) @ _wide(b), 1e-5),
        (2 * n**3 / 1e12, "TFLOP"),
    )  # fmt: skip


def _reduction(rng: np.random.Generator, n: int) -> Problem:
    x = rng.random(n, np.float32)
    return Problem(
        {"x": x, "total": np.zeros(1, np.float32)},
        (Launch("sum", min(blocks(n, 256), 2112), 256, ("x", "total", n)),), ("total",),
        lambda found: close(found["total"], _wide(x).sum(keepdims=True), 1e-4), (4 * n / 1e9, "GB"),
    )  # fmt: skip


def _scan(rng: np.random.Generator, n: int) -> Problem:
    x = rng.integers(-(1 << 31), 1 << 31, n, np.int32)
    fours = n // 4
    grid = blocks(fours, 256)
    launches = (
        Launch("scan_blocks", grid, 256, ("x", "out", "totals", fours)),
        Launch("scan_totals", 1, 1024, ("totals", grid)),
        Launch("add_totals", grid, 256, ("out", "totals", fours)),
    )
    return Problem(
        {"x": x, "out": np.zeros(n, np.int32), "totals": np.zeros(grid, np.int32)}, launches,
        ("out",), lambda found: equal(found["out"], np.cumsum(x, dtype=np.int32)),
        (16 * n / 1e9, "GB"),
    )  # fmt: skip


def _histogram(rng: np.random.Generator, n: int) -> Problem:
    data = rng.integers(0, 1 << 32, n, np.uint32)
    expected = np.bincount(data.view(np.uint8), minlength=256).astype(np.uint32)
    return Problem(
        {"data": data, "counts": np.zeros(256, np.uint32)},
        (Launch("histogram", min(blocks(n, 256), 1056), 256, ("data", "counts", n)),), ("counts",),
        lambda found: equal(found["counts"], expected), (4 * n / 1e9, "GB"),
    )  # fmt: skip


def _transpose(rng: np.random.Generator, n: int) -> Problem:
    x = normal(rng, n, n + 3)
    grid = (blocks(n + 3, 32), blocks(n, 32))
    return Problem(
        {"x": x, "out": np.full((n + 3, n), np.nan, np.float32)},
        (Launch("transpose", grid, (32, 8), ("x", "out", n + 3, n), (32, 8)),), ("out",),
        lambda found: equal(found["out"], x.T), (8 * n * (n + 3) / 1e9, "GB"),
    )  # fmt: skip


def _nbody(rng: np.random.Generator, n: int) -> Problem:
    bodies = normal(rng, n, 4)
    bodies[:, 3] = rng.random(n, np.float32)
    some = rng.choice(n, min(n, 100), replace=False)

    def check(found: Results) -> float:
        apart = _wide(bodies)[None, :, :3] - _wide(bodies)[some, None, :3]
        strength = bodies[:, 3] / ((apart**2).sum(-1) + 0.01) ** 1.5
        return close(found["out"][some, :3], (apart * strength[..., None]).sum(1), 1e-5)

    return Problem(
        {"bodies": bodies, "out": np.full((n, 4), np.nan, np.float32)},
        (Launch("nbody", blocks(n, 256), 256, ("bodies", "out", n, 0.01)),), ("out",), check,
        (n * n / 1e9, "G interactions"),
    )  # fmt: skip


def _stencil(rng: np.random.Generator, n: int) -> Problem:
    x = normal(rng, n // 2, n, n)  # z, y, x
    before = np.zeros_like(x)
    weights = np.array([0.4, 0.1], np.float32)

    def check(found: Results) -> float:
        some = x[:6].astype(np.float64)
        sides = some[:-2, 1:-1, 1:-1] + some[2:, 1:-1, 1:-1]
        sides += some[1:-1, :-2, 1:-1] + some[1:-1, 2:, 1:-1]
        sides += some[1:-1, 1:-1, :-2] + some[1:-1, 1:-1, 2:]
        expected = weights[0] * some[1:-1, 1:-1, 1:-1] + weights[1] * sides
        last = found["out"][-2, 1:-1, 1:-1]
        assert last.any(), "the last plane was not written"
        return close(found["out"][1:5, 1:-1, 1:-1], expected, 1e-5)

    grid = (blocks(n, 32), blocks(n, 8))
    return Problem(
        {"x": x, "out": before}, (Launch("stencil", grid, (32, 8), ("x", "out", n, n, n // 2)),),
        ("out",), check, (8 * x.size / 1e9, "GB"), {"weights": weights},
    )  # fmt: skip


# Each takes some 50 µs and more on a large GPU, so that launches are prepared faster than they run.
WORKLOADS = (
    Workload("saxpy of 64 M", "saxpy.cu", _saxpy, 64 << 20, 1001),
    Workload("tiled matmul 2048^3", "matmul.cu", _matmul, 2048, 128),
    Workload("sum of 64 M", "reduction.cu", _reduction, 64 << 20, 3001),
    Workload("scan of 16 M", "scan.cu", _scan, 16 << 20, 4 * 1801),
    Workload("histogram of 128 M bytes", "histogram.cu", _histogram, 32 << 20, 3001),
    Workload("transpose, 8192 x 8195", "transpose.cu", _transpose, 8192, 45),
    Workload("n-body, 32768 bodies", "nbody.cu", _nbody, 32768, 301),
    Workload("stencil, 512 x 512 x 256", "stencil.cu", _stencil, 512, 18),
)
