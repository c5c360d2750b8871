"""What a call of a compiled function costs the host, on one of its devices."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import treadle as td
from benchmarks import harness, kernels
from benchmarks.harness import Figure, about_device, installed

__all__ = ["about", "measurements"]

about = about_device

_REPEATS = 51
_IN_A_ROW = 5  # few enough for a batch
_SIZE = 64


@dataclass(frozen=True)
class _Aims:
    """Microseconds of host time at most."""

    call: float
    replay: float


_AIMS = {
    "cpu": _Aims(150, 80), "webgpu": _Aims(150, 80), "dawn": _Aims(150, 80),
    "cuda": _Aims(150, 10),
}  # fmt: skip


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    parts = (_fused, _apart, _step, _replay, _converging)
    return [functools.partial(_on, spec, part) for part in parts]


def _on(spec: str, part: Callable[..., list[Figure]]) -> list[Figure]:
    with td.use_device(spec) as device:
        return part(f"compiled-{spec}", device, _AIMS[spec])


# --- functions of 200 operations -----------------------------------------------------------------


def _chain(x: Any) -> Any:
    """200 operations that become a few kernels."""
    for _ in range(100):
        x = x * 0.99 + 0.01
    return x


def _centered(x: Any) -> Any:
    """200 operations, of which every fourth needs all elements of those before."""
    for _ in range(50):
        x = x * 0.5 + 1.0
        x = x - x.mean()
    return x


def _fused(suite: str, device: td.Device, aims: _Aims) -> list[Figure]:
    return _of_function(suite, "200 operations in a chain", device, aims, _chain)


def _apart(suite: str, device: td.Device, aims: _Aims) -> list[Figure]:
    return _of_function(suite, "200 operations, 50 of them means", device, aims, _centered)


def _of_function(
    suite: str, what: str, device: td.Device, aims: _Aims, function: Callable[[Any], Any]
) -> list[Figure]:
    x = td.ones(_SIZE).realize()
    compiled = td.compile(function)
    expected = function(x).numpy()
    for _ in range(2):
        assert abs(compiled(x).numpy() - expected).max() < 1e-5
    peer, named = _torch(function, device)
    runs = {
        "compiled": (lambda: compiled(x), device.synchronize),
        "lazy": (lambda: function(x).realize(), device.synchronize),
    }
    if peer is not None:
        runs["peer"] = peer
    found = _in_turns(runs)
    suffix = f"{what}, host time"
    return [
        Figure(
            suite, f"compiled: {suffix}", "µs", found["compiled"], aims.call,
            peer=named, peers=found.get("peer"),
        ),
        Figure(suite, f"not compiled: {suffix}", "µs", found["lazy"]),
    ]  # fmt: skip


def _torch(function: Callable[[Any], Any], device: td.Device) -> tuple[Any, str]:
    """PyTorch's way of doing a function again: a CUDA graph with the same copies around it; on the
    CPU the function itself. Nothing of it on other devices."""
    if device.backend == "cpu" and installed("torch"):
        import torch

        x = torch.ones(_SIZE)
        return (lambda: function(x), lambda: None), "PyTorch, eager"
    torch_cuda = harness.torch_on_cuda() if device.backend == "cuda" else None
    if torch_cuda is None:
        return None, ""
    taken, given = torch_cuda.ones(_SIZE, device="cuda"), torch_cuda.ones(_SIZE, device="cuda")
    function(given)
    torch_cuda.cuda.synchronize()
    graph = torch_cuda.cuda.CUDAGraph()
    with torch_cuda.cuda.graph(graph):
        result = function(taken)

    def run() -> None:
        taken.copy_(given)
        graph.replay()
        result.clone()

    return (run, torch_cuda.cuda.synchronize), "PyTorch, CUDA graph"


# --- what is around a replay ---------------------------------------------------------------------


def _step(suite: str, device: td.Device, aims: _Aims) -> list[Figure]:
    """A step that writes 100 tensors from outside: what finding them in place costs."""
    parameters = [td.ones(_SIZE).realize() for _ in range(100)]

    @td.compile
    def step(x: Any) -> Any:
        for parameter in parameters:
            parameter -= 1e-3 * x
        return x.sum()

    x = td.ones(_SIZE).realize()
    step(x)
    found = _in_turns({"step": (lambda: step(x), device.synchronize)})
    name = "compiled: a step that writes 100 tensors from outside, host time"
    return [Figure(suite, name, "µs", found["step"], aims.call)]


def _replay(suite: str, device: td.Device, aims: _Aims) -> list[Figure]:
    """The replay alone, of 100 launches."""
    launch, x, y = kernels.saxpy[1, _SIZE], td.ones(_SIZE), td.zeros(_SIZE)
    launch(0.0, x, y)
    graph = td.Graph(device)
    with graph.capture():
        for _ in range(100):
            launch(1.0, x, y)
    graph.replay()
    assert (y.numpy() == 100).all()
    runs: dict[str, Any] = {"replay": (graph.replay, device.synchronize)}
    torch = harness.torch_on_cuda() if device.backend == "cuda" else None
    if torch is not None:
        theirs, other = torch.zeros(_SIZE, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(other):
            for _ in range(100):
                theirs += 1.0
        runs["peer"] = other.replay, torch.cuda.synchronize
    found = _in_turns(runs)
    return [
        Figure(
            suite, "replay of 100 launches, host time", "µs", found["replay"], aims.replay,
            peer="PyTorch, CUDA graph" if torch else "", peers=found.get("peer"),
        )
    ]  # fmt: skip


def _converging(suite: str, device: td.Device, aims: _Aims) -> list[Figure]:
    """Iterations until a residual is small, each of three kernels: a graph that decides, beside the
    same recording with a test by the host after each."""
    a = td.asarray(np.eye(_SIZE, dtype=np.float32) * 4 + 1 / _SIZE)
    b, x, change, more = td.ones(_SIZE), td.zeros(_SIZE), td.zeros(()), td.ones((), dtype=td.bool)
    count = td.zeros((), dtype=td.int32)

    def iterate() -> None:
        new = x + 0.1 * (b - a @ x)
        change[...] = td.abs(new - x).max()
        x[...] = new
        count[...] = count + 1
        more[...] = change > 1e-7

    def begin() -> None:
        x[...] = 0
        count[...] = 0
        more[...] = True

    graph, iteration = td.Graph(device), td.Graph(device)
    with graph.capture():
        begin()
        with graph.while_(more):
            iterate()
    with iteration.capture():
        iterate()

    def by_the_host() -> None:
        begin()
        while more.item():
            iteration.replay()

    graph.replay()
    iterations, converged = count.item(), x.numpy()
    by_the_host()
    assert iterations == count.item() > 20
    assert abs(x.numpy() - converged).max() < 1e-6
    found = _in_turns({
        "graph": (graph.replay, device.synchronize),
        "host": (by_the_host, device.synchronize),
    })  # fmt: skip
    return [
        Figure(
            suite, f"{iterations} iterations until convergence, an iteration", "µs",
            found["graph"] / iterations,
            peer="tested by the host", peers=found["host"] / iterations,
        )
    ]  # fmt: skip


def _in_turns(runs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]]) -> dict[str, float]:
    """The median microseconds of each run, some in a row, in turns; what the device has to do is
    waited for between them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(_REPEATS):
        for name, (run, wait) in runs.items():
            wait()
            began = time.perf_counter()
            for _ in range(_IN_A_ROW):
                run()
            times[name].append((time.perf_counter() - began) / _IN_A_ROW)
            wait()
    return {name: 1e6 * statistics.median(taken) for name, taken in times.items()}
