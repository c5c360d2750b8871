"""Kernels with arguments, a way to launch them, and a check of what they computed.

The GPU suites time these, and a test runs each at a small size on every device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import treadle as td
from benchmarks import kernels
from benchmarks.matmul import LARGE, matmul_of, numbers
from treadle.kernels.device_code.matrix_product import Tile
from treadle.lang.decorators import Kernel

Run = Callable[[], object]


@dataclass(frozen=True)
class Prepared:
    """Arguments on the default device. `bind` makes of the kernels a function that launches them;
    `check` fails unless they then ran once and were right, and says how far off they were."""

    bind: Callable[..., Run]
    check: Callable[[], float]


@dataclass(frozen=True)
class Workload:
    """Kernels that work together, and sizes: the one that is timed, and a small one that is
    awkward."""

    name: str
    kernels: tuple[Kernel, ...]
    prepare: Callable[[np.random.Generator, int], Prepared]
    size: int
    awkward: int

    def ready(self, seed: int = 0, size: int = 0) -> tuple[Run, Callable[[], float]]:
        """What launches it, from kernels not compiled before, and what checks the first launch."""
        made = self.prepare(np.random.default_rng(seed), size or self.size)
        return made.bind(*map(fresh, self.kernels)), made.check


def fresh(kernel: Kernel) -> Kernel:
    """The same kernel as a new object, so that it is compiled by the settings of now."""
    return Kernel(kernel.definition, kernel.options, kernel._local_names)


def blocks(count: int, each: int) -> int:
    """How many blocks of `each` hold `count`."""
    return -(-count // each)


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    """Random float32 numbers."""
    return rng.standard_normal(shape, np.float32)


def poisoned(*shape: int) -> td.Tensor:
    """An array for results that a kernel must write: NaN until then."""
    return td.full(shape, float("nan"))


def close(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], most: float) -> float:
    """The relative error, by norm, of a result against one in float64; AssertionError if it is
    over `most` (or NaN)."""
    difference = np.linalg.norm(found.astype(np.float64).ravel() - expected.ravel())
    error = float(difference / np.linalg.norm(expected.ravel()))
    assert error <= most, f"relative error {error:.2e}, at most {most:.0e} is right"
    return error


def equal(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """0; AssertionError unless the results are equal."""
    np.testing.assert_array_equal(found, expected)
    return 0.0


# --- the workloads -------------------------------------------------------------------------------


def _saxpy(rng: np.random.Generator, n: int) -> Prepared:
    x, y = normal(rng, 2, n)
    factor = 2.5
    ours = td.asarray(x), td.asarray(y)
    return Prepared(
        lambda saxpy: functools.partial(saxpy[blocks(n, 1024), 1024], factor, *ours),
        lambda: close(ours[1].numpy(), factor * x.astype(np.float64) + y, 1e-6),
    )


def add(rng: np.random.Generator, n: int, block: int = 1024) -> Prepared:
    """Elementwise addition, four elements a thread, by blocks of `block` threads."""
    x, y = normal(rng, 2, n)
    ours, out = (td.asarray(x), td.asarray(y)), poisoned(n)
    return Prepared(
        lambda add: functools.partial(add[blocks(n // 4, block), block], *ours, out),
        lambda: equal(out.numpy(), x + y),
    )


def _block_sums(rng: np.random.Generator, n: int) -> Prepared:
    x = normal(rng, n)
    ours, out = td.asarray(x), poisoned(blocks(n, 256))
    starts = np.arange(0, n, 256)
    return Prepared(
        lambda block_sums: functools.partial(block_sums[blocks(n, 256), 256], ours, out),
        lambda: close(out.numpy(), np.add.reduceat(x.astype(np.float64), starts), 1e-5),
    )


def _transpose(rng: np.random.Generator, n: int) -> Prepared:
    rows, columns = n, n + 3
    x = normal(rng, rows, columns)
    ours, out = td.asarray(x), poisoned(columns, rows)
    grid = (blocks(columns, 32), blocks(rows, 32))
    return Prepared(
        lambda transpose: functools.partial(transpose[grid, (32, 8)], ours, out),
        lambda: equal(out.numpy(), x.T),
    )


def _nbody(rng: np.random.Generator, n: int) -> Prepared:
    x = normal(rng, 3, n)
    ours, out = td.asarray(x), poisoned(3, n)
    some = rng.choice(n, min(n, 256), replace=False)

    def expected() -> np.ndarray[Any, Any]:
        wide = x.astype(np.float64)
        apart = wide[:, None, :] - wide[:, some, None]
        return (apart / ((apart**2).sum(0) + 0.01) ** 1.5).sum(-1)

    return Prepared(
        lambda nbody: functools.partial(nbody[blocks(n, 128), 128], ours, out),
        lambda: close(out.numpy()[:, some], expected(), 1e-5),
    )


def product(rng: np.random.Generator, n: int, tile: Tile) -> Prepared:
    """A matrix product, `n` a multiple of the tile; a hundred of its rows are checked."""
    a, b = normal(rng, 2, n, n)
    ours, out = (td.asarray(a), td.asarray(b)), poisoned(n, n)
    some = rng.choice(n, min(n, 100), replace=False)
    grid = (n // tile.columns, n // tile.rows)

    def check() -> float:
        found = out.numpy()
        assert np.isfinite(found).all(), "parts of the product were not written"
        return close(found[some], a[some].astype(np.float64) @ b.astype(np.float64), 1e-5)

    return Prepared(
        lambda matmul: functools.partial(matmul[grid, tile.threads], *ours, out, *numbers(n)),
        check,
    )


def _histogram(rng: np.random.Generator, n: int) -> Prepared:
    x = rng.integers(0, 1 << 32, n, np.uint32)
    before = rng.integers(0, 1 << 32, 256, np.uint32)
    ours, counts = td.asarray(x), td.asarray(before)
    grid = min(blocks(n, 256), 1056)
    return Prepared(
        lambda histogram: functools.partial(histogram[grid, 256], ours, counts),
        lambda: equal(
            counts.numpy(), before + np.bincount(x >> 24, minlength=256).astype(np.uint32)
        ),
    )


_SCANNED = 4 * 256  # elements of a block


def _scan(rng: np.random.Generator, n: int) -> Prepared:
    """Running sums of a whole array: of each block, of the blocks' totals, and so on, and then all
    put together."""
    x = rng.integers(-(1 << 31), 1 << 31, n, np.int32)
    levels = [(td.asarray(x), td.full(n, -1, dtype=td.i32))]
    while len(levels) < 2 or levels[-1][0].size > _SCANNED:
        # A thread takes four elements, so there are some too many; they stay 0.
        count = blocks(blocks(levels[-1][0].size, _SCANNED), 4) * 4
        levels.append((td.zeros(count, dtype=td.i32), td.zeros(count, dtype=td.i32)))
    unused = td.zeros(1, dtype=td.i32)

    def bind(scan_blocks: Any, add_totals: Any) -> Run:
        steps: list[Run] = []
        for level, (values, sums) in enumerate(levels):
            last = level + 1 == len(levels)
            totals = unused if last else levels[level + 1][0]
            launch = scan_blocks[blocks(values.size, _SCANNED), 256]
            steps.append(functools.partial(launch, values, sums, totals))
        for level in reversed(range(len(levels) - 1)):
            sums, totals = levels[level][1], levels[level + 1][1]
            launch = add_totals[blocks(sums.size, _SCANNED), 256]
            steps.append(functools.partial(launch, sums, totals))

        def run() -> None:
            for step in steps:
                step()

        return run

    return Prepared(bind, lambda: equal(levels[0][1].numpy(), np.cumsum(x, dtype=np.int32)))


ADD = Workload("add of 64 M float32", (kernels.add,), add, 64 << 20, 4 * 333)


def matmul_workload(tile: Tile) -> Workload:
    """A matrix product by tiles."""
    prepare = functools.partial(product, tile=tile)
    return Workload("float32 matmul 4096^3", (matmul_of(tile),), prepare, 4096, 256)


# Each takes some 50 µs and more on a large GPU, so that launches are prepared faster than they run.
WORKLOADS = (
    Workload("saxpy of 32 M float32", (kernels.saxpy,), _saxpy, 32 << 20, 1001),
    Workload("block reduction of 16 M", (kernels.block_sums,), _block_sums, 65535 * 256, 1111),
    Workload("transpose, 4096 x 4099", (kernels.transpose,), _transpose, 4096, 45),
    Workload("n-body, 32768 bodies", (kernels.nbody,), _nbody, 32768, 77),
    matmul_workload(LARGE["cuda"]),
    Workload("histogram of 32 M", (kernels.histogram,), _histogram, 32 << 20, 3001),
    Workload("scan of 16 M", (kernels.scan_blocks, kernels.add_totals), _scan, 16 << 20, 4 * 4801),
)
