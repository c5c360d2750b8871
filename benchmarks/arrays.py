"""Lazy arrays: fused expressions beside memory's speed, and what an operation costs the host."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks.harness import Figure, about_device, installed, torch_on_cuda, wall_seconds
from treadle.cli.bench import expressions
from treadle.cli.bench.arrays import FULL, Bench
from treadle.cli.bench.expressions import Expression

__all__ = ["about", "measurements"]

_LARGE = 64 << 20  # numbers on a large GPU
_ROWS = 8192
_MEMORY = 4 << 20


@dataclasses.dataclass(frozen=True)
class _Aims:
    """Microseconds of host time at most; None where nothing is aimed at."""

    each: float | None = None
    chain: float | None = None
    read: float | None = None


_HOST = {
    "cpu": _Aims(chain=15),
    "software": _Aims(each=15, chain=15, read=150),
    "webgpu": _Aims(chain=15, read=100),
    "dawn": _Aims(chain=15, read=100),
    "cuda": _Aims(chain=15, read=40),
}
_MOST_MEMORY = 0.01  # MiB beyond the inputs: the result and the partial sums
_OF_COPY = 0.85  # what elementwise chains and full sums reach of a copy on a large GPU
# How many times as fast the chain with sines is at least.
_OF_PYTORCH = (("PyTorch", 15.0), ("torch.compile", 1.0))
_CHAIN = expressions.chain(_LARGE)


def about(spec: str) -> dict[str, Any]:
    """The device measured, and the peers' versions."""
    torch = installed("torch") if spec == "cpu" else torch_on_cuda()
    return about_device(spec) | ({"torch": torch.__version__} if torch else {})


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device. A software adapter's bandwidth is of no interest."""
    device = td.device(spec)
    bench = Bench(f"arrays-{spec}", device)
    parts: list[Callable[[], list[Figure]]] = [
        functools.partial(_costs, bench, _HOST[device.kind if device.kind == "software" else spec]),
        functools.partial(_memory, bench),
    ]
    if spec == "cpu":
        return [*(functools.partial(_on_cpu, bench, *one) for one in _of_cpu()), *parts]
    if device.kind == "discrete":
        return [*(functools.partial(_on_gpu, bench, *one) for one in _large()), *parts]
    return parts


def _costs(bench: Bench, aims: _Aims) -> list[Figure]:
    figures = bench.costs(FULL.repeats)
    targets = (aims.each, aims.chain, aims.read)
    return [dataclasses.replace(f, target=t) for f, t in zip(figures, targets, strict=True)]


def _memory(bench: Bench) -> list[Figure]:
    return [dataclasses.replace(f, target=_MOST_MEMORY) for f in bench.memory(_MEMORY)]


# --- a large GPU ---------------------------------------------------------------------------------


def _large() -> list[tuple[Expression, float | None]]:
    """What is computed, and what is aimed at of a copy's bandwidth."""
    return [
        (_CHAIN, None),
        (expressions.gelu(_LARGE), _OF_COPY),
        (expressions.mean_of_gelu(_LARGE), _OF_COPY),
        (expressions.full_sum(_LARGE), _OF_COPY),
        (expressions.sum_along(0, _ROWS), None),
        (expressions.sum_along(1, _ROWS), None),
        (expressions.softmax(_ROWS), None),
        (expressions.layer_norm(_ROWS), None),
        (expressions.gray_scott(_ROWS), None),
    ]


def _on_gpu(bench: Bench, one: Expression, aim: float | None) -> list[Figure]:
    """Beside a copy, and beside PyTorch what is aimed at there."""
    figures = [dataclasses.replace(figure, target=aim) for figure in bench.speed(one)]
    if one == _CHAIN:
        found = dict(figures[0].others)
        figures += [_beside(figures[0], p, found[p], *a) for p, *a in _OF_PYTORCH if p in found]
    return figures


def _beside(figure: Figure, peer: str, peers: float, aim: float) -> Figure:
    """The same beside another peer."""
    name = f"{figure.name}, beside {peer}"
    return dataclasses.replace(figure, name=name, target=aim, peer=peer, peers=peers, others=())


# --- the CPU -------------------------------------------------------------------------------------


def _of_cpu() -> list[tuple[Expression, float | None]]:
    """What is computed, and what is aimed at of the bandwidth of reading or of a copy: 1.5 times
    the time of reading, or 2 times that of a copy, or 0.8 of reading."""
    flat, summed, rows = FULL.flat, FULL.summed, FULL.rows
    return [
        (expressions.gelu(flat), None),
        (expressions.mean_of_gelu(flat), 1 / 1.5),
        (expressions.full_sum(flat), None),
        (expressions.sum_along(0, summed), 0.8),
        (expressions.sum_along(1, summed), 0.8),
        (expressions.softmax(rows), 1 / 2),
        (expressions.layer_norm(rows), 1 / 2),
        (expressions.gray_scott(rows // 2), None),
    ]


def _on_cpu(bench: Bench, one: Expression, aim: float | None) -> list[Figure]:
    """Beside a copy; where an expression only reads, beside the best plain loop that does."""
    (figure,) = bench.speed(one)
    if not one.writes:
        figure = dataclasses.replace(
            figure, peer="read", peers=_read_bandwidth(bench.device, one.arrays()[0].ravel()),
            others=(("copy", figure.peers or 0.0), *figure.others),
        )  # fmt: skip
    return [dataclasses.replace(figure, target=aim)]


def _read_bandwidth(device: td.Device, data: np.ndarray[Any, Any]) -> float:
    """GB/s of the best plain loop over an array: Numba's sum or ours."""
    numba = installed("numba")
    x = td.asarray(data, device=device)
    loops: list[Callable[[], object]] = [lambda: td.sum(x).realize()]
    if numba:
        loop = _numba_sum(numba)
        loops.append(lambda: loop(data))
    return data.nbytes / min(wall_seconds(device.synchronize, *loops)) / 1e9


@functools.cache
def _numba_sum(numba: Any) -> Callable[[np.ndarray[Any, Any]], float]:
    @numba.njit(parallel=True, fastmath=True)
    def summed(a: Any) -> Any:
        total = np.float32(0.0)
        for i in numba.prange(a.size):
            total += a[i]
        return total

    return summed
