"""The cpu device beside memory's own speed and Numba's parallel loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import treadle as td
from benchmarks import kernels
from benchmarks.harness import Figure, seconds

N = 16 << 20


@numba.njit(parallel=True, fastmath=False, cache=False)
def _mandelbrot(out: Any, limit: int) -> None:
    rows, columns = out.shape
    for i in numba.prange(rows):
        for j in range(columns):
            cx = np.float32(-2.0) + np.float32(3.0) * np.float32(j) / np.float32(columns)
            cy = np.float32(-1.5) + np.float32(3.0) * np.float32(i) / np.float32(rows)
            x = np.float32(0.0)
            y = np.float32(0.0)
            n = 0
            while n < limit and x * x + y * y <= np.float32(4.0):
                x, y = x * x - y * y + cx, np.float32(2.0) * x * y + cy
                n += 1
            out[i, j] = n


@numba.njit(parallel=True, fastmath=False)
def _nbody(position: Any, force: Any) -> None:
    n = position.shape[1]
    for i in numba.prange(n):
        px, py, pz = position[0, i], position[1, i], position[2, i]
        fx = np.float32(0.0)
        fy = np.float32(0.0)
        fz = np.float32(0.0)
        for j in range(n):
            dx = position[0, j] - px
            dy = position[1, j] - py
            dz = position[2, j] - pz
            squared = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            inverse = np.float32(1.0) / np.sqrt(squared)
            strength = inverse * inverse * inverse
            fx += dx * strength
            fy += dy * strength
            fz += dz * strength
        force[0, i] = fx
        force[1, i] = fy
        force[2, i] = fz


@numba.njit(parallel=True)
def _block_sums(x: Any, out: Any) -> None:
    for block in numba.prange(out.size):
        part = np.empty(256, np.float32)
        for t in range(256):
            part[t] = x[block * 256 + t]
        step = 128
        while step > 0:
            for t in range(step):
                part[t] += part[t + step]
            step //= 2
        out[block] = part[0]


def _copy_bandwidth() -> float:
    """Bytes a second, read and written, of the best plain copy: one of our kernel's or NumPy's."""
    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)

    @numba.njit(parallel=True)
    def parallel(a: Any, b: Any) -> None:
        for i in numba.prange(a.size):
            b[i] = a[i]

    best = min(seconds(lambda: np.copyto(y, x)), seconds(lambda: parallel(x, y)))
    return 2 * x.nbytes / best


def measurements() -> list[Callable[[], list[Figure]]]:
    """What this suite measures."""
    return [_run]


def _run() -> list[Figure]:
    figures = []
    with td.use_device("cpu") as device:
        copy = _copy_bandwidth()
        x, y = td.ones(N), td.ones(N)
        took = seconds(lambda: kernels.saxpy[N // 1024, 1024](1e-9, x, y), device.synchronize)
        figures.append(
            Figure(
                "cpu",
                "saxpy of 16 M float32",
                "GB/s",
                12 * N / took / 1e9,
                0.9,
                True,
                "copy",
                copy / 1e9,
                True,
            )
        )

        ours = td.zeros((1024, 1024), dtype=td.i32)
        theirs = np.zeros((1024, 1024), np.int32)
        mine = seconds(
            lambda: kernels.mandelbrot.launch((1024, 1024), ours, 200), device.synchronize
        )
        peer = seconds(lambda: _mandelbrot(theirs, 200))
        assert (ours.numpy() != theirs).mean() < 0.01
        figures.append(_beside_numba("Mandelbrot 1024 x 1024, 200 steps", mine, peer))

        points = np.random.default_rng(0).standard_normal((3, 8192)).astype(np.float32)
        position, force = td.asarray(points), td.zeros((3, 8192))
        theirs = np.zeros((3, 8192), np.float32)
        mine = seconds(
            lambda: kernels.nbody.launch(8192, position, force), device.synchronize, repeats=5
        )
        peer = seconds(lambda: _nbody(points, theirs), repeats=5)
        assert np.linalg.norm(force.numpy() - theirs) < 1e-4 * np.linalg.norm(theirs)
        figures.append(_beside_numba("n-body forces, 8192 bodies", mine, peer))

        data = np.random.default_rng(0).standard_normal(N).astype(np.float32)
        x, out = td.asarray(data), td.zeros(N // 256)
        theirs = np.zeros(N // 256, np.float32)
        mine = seconds(lambda: kernels.block_sums[N // 256, 256](x, out), device.synchronize)
        peer = seconds(lambda: _block_sums(data, theirs))
        np.testing.assert_allclose(out.numpy(), theirs, rtol=1e-5, atol=1e-4)
        figures.append(_beside_numba("shared-memory reduction of 16 M", mine, peer))

        small, other = td.ones(64), td.ones(64)
        launch = kernels.saxpy[1, 64]
        took = seconds(
            lambda: launch(2.0, small, other), device.synchronize, inner=2000, repeats=31
        )
        figures.append(Figure("cpu", "launch of a small kernel", "µs", took * 1e6, 8))
    return figures


def _beside_numba(name: str, ours: float, theirs: float) -> Figure:
    return Figure("cpu", name, "ms", ours * 1e3, 1.0, False, "Numba", theirs * 1e3, True)
