"""Stencils in libraries that compile Python, where they are installed: Numba, Taichi and Warp.

Each computes the interior of the grids of `benchmarks.stencils`, on the same kind of device.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import installed

WEIGHTS = {2: 0.2, 3: 0.1}  # of the neighbours, by the axes of the grid


@dataclass(frozen=True)
class Peer:
    """A step in another library: what starts it, what waits for it, and what it wrote."""

    name: str
    run: Callable[[], object]
    wait: Callable[[], object]
    result: Callable[[], np.ndarray[Any, Any]]


def peers(u: np.ndarray[Any, Any], *, on_cuda: bool) -> list[Peer]:
    """The libraries that are installed, with a step of 5 or 7 points from an array."""
    makers = (_taichi, _warp) if on_cuda else (_numba, _taichi, _warp)
    found = (make(u, on_cuda) for make in makers)
    return [each for each in found if each is not None]


def _numba(u: np.ndarray[Any, Any], on_cuda: bool) -> Peer | None:
    numba = installed("numba")
    if numba is None or on_cuda:
        return None
    weight = np.float32(WEIGHTS[u.ndim])

    @numba.njit(parallel=True, fastmath=True)
    def plane(u, out):
        rows, columns = u.shape
        for i in numba.prange(1, rows - 1):
            for j in range(1, columns - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                out[i, j] = u[i, j] + weight * (around - np.float32(4) * u[i, j])

    @numba.njit(parallel=True, fastmath=True)
    def space(u, out):
        planes, rows, columns = u.shape
        for k in numba.prange(1, planes - 1):
            for i in range(1, rows - 1):
                for j in range(1, columns - 1):
                    around = u[k - 1, i, j] + u[k + 1, i, j] + u[k, i - 1, j] + u[k, i + 1, j]
                    around += u[k, i, j - 1] + u[k, i, j + 1]
                    out[k, i, j] = u[k, i, j] + weight * (around - np.float32(6) * u[k, i, j])

    step, out = (plane if u.ndim == 2 else space), np.zeros_like(u)
    return Peer("Numba", lambda: step(u, out), lambda: None, lambda: out)


def _taichi(u: np.ndarray[Any, Any], on_cuda: bool) -> Peer | None:
    os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
    ti = installed("taichi")
    if ti is None:
        return None
    ti.init(arch=ti.cuda if on_cuda else ti.cpu, fast_math=True, log_level=ti.ERROR)
    weight = WEIGHTS[u.ndim]

    def plane(u, out):
        for i, j in ti.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1)):
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            out[i, j] = u[i, j] + weight * (around - 4.0 * u[i, j])

    def space(u, out):
        planes, rows, columns = u.shape[0], u.shape[1], u.shape[2]
        for k, i, j in ti.ndrange((1, planes - 1), (1, rows - 1), (1, columns - 1)):
            around = u[k - 1, i, j] + u[k + 1, i, j] + u[k, i - 1, j] + u[k, i + 1, j]
            around += u[k, i, j - 1] + u[k, i, j + 1]
            out[k, i, j] = u[k, i, j] + weight * (around - 6.0 * u[k, i, j])

    body = plane if u.ndim == 2 else space
    grid = ti.types.ndarray(dtype=ti.f32, ndim=u.ndim)
    body.__annotations__ = {"u": grid, "out": grid}  # no text, which it does not read
    step = ti.kernel(body)
    source, out = (ti.ndarray(ti.f32, u.shape) for _ in range(2))
    source.from_numpy(u)
    out.fill(0.0)
    return Peer("Taichi", lambda: step(source, out), ti.sync, out.to_numpy)


def _warp(u: np.ndarray[Any, Any], on_cuda: bool) -> Peer | None:
    wp = installed("warp")
    if wp is None or not hasattr(wp, "kernel"):
        return None
    wp.config.quiet = True
    wp.config.enable_backward = False
    wp.init()
    weight = WEIGHTS[u.ndim]

    @wp.kernel
    def plane(u: wp.array2d(dtype=wp.float32), out: wp.array2d(dtype=wp.float32)):
        i, j = wp.tid()
        if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            out[i, j] = u[i, j] + wp.float32(weight) * (around - 4.0 * u[i, j])

    @wp.kernel
    def space(u: wp.array3d(dtype=wp.float32), out: wp.array3d(dtype=wp.float32)):
        k, i, j = wp.tid()
        if (
            k > 0 and i > 0 and j > 0
            and k < u.shape[0] - 1 and i < u.shape[1] - 1 and j < u.shape[2] - 1
        ):  # fmt: skip
            around = u[k - 1, i, j] + u[k + 1, i, j] + u[k, i - 1, j] + u[k, i + 1, j]
            around = around + u[k, i, j - 1] + u[k, i, j + 1]
            out[k, i, j] = u[k, i, j] + wp.float32(weight) * (around - 6.0 * u[k, i, j])

    step, device = (plane if u.ndim == 2 else space), "cuda:0" if on_cuda else "cpu"
    source = wp.array(u, dtype=wp.float32, device=device)
    out = wp.zeros(u.shape, dtype=wp.float32, device=device)

    def run() -> None:
        wp.launch(step, dim=u.shape, inputs=[source], outputs=[out], device=device)

    return Peer("Warp", run, lambda: wp.synchronize_device(device), out.numpy)
