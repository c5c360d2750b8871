"""What launches, reads and replays cost the host, on one of its devices."""

from __future__ import annotations

import functools
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import treadle as td
from benchmarks import harness, kernels
from benchmarks.harness import Figure, about_device, host_seconds, seconds

__all__ = ["about", "measurements"]

about = about_device


@dataclass(frozen=True)
class _Aims:
    """Microseconds of host time at most; `replayed` launches are in one replay."""

    launch: float
    read: float
    replayed: int
    replay: float


_WEBGPU = _Aims(launch=6, read=120, replayed=1000, replay=600)
_AIMS = {"cuda": _Aims(9, 22, 100, 8), "webgpu": _WEBGPU, "dawn": _WEBGPU}


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    parts = (_launch, _read, _replay, _memory)
    return [functools.partial(_on, spec, part) for part in parts]


def _on(spec: str, part: Callable[..., Figure]) -> list[Figure]:
    with td.use_device(spec) as device:
        # PyTorch beside CUDA only: of WebGPU it knows nothing.
        torch = harness.torch_on_cuda() if spec == "cuda" else None
        return [part(f"launch-{spec}", device, _AIMS[spec], torch)]


def _small_launch() -> Callable[[], object]:
    """A launch of 64 threads, compiled."""
    run = functools.partial(kernels.saxpy[1, 64], 1e-9, td.ones(64), td.ones(64))
    run()
    return run


def _microseconds(
    suite: str, name: str, ours: float, target: float, peer: float | None = None
) -> Figure:
    peers = None if peer is None else 1e6 * peer
    return Figure(
        suite, name, "µs", 1e6 * ours, target, peer="PyTorch" if peers else "", peers=peers
    )


def _launch(suite: str, device: td.Device, aims: _Aims, torch: Any) -> Figure:
    ours = host_seconds(_small_launch(), device.synchronize, 200)
    peer = None
    if torch:
        x = torch.ones(64, device="cuda")
        peer = host_seconds(lambda: torch.add(x, x, out=x), torch.cuda.synchronize, 200)
    return _microseconds(suite, "launch of a small kernel, host time", ours, aims.launch, peer)


def _read(suite: str, device: td.Device, aims: _Aims, torch: Any) -> Figure:
    launch, x, one = kernels.saxpy[1, 1], td.ones(1), td.zeros(1)

    def launch_and_read() -> None:
        launch(1.0, x, one)
        one.numpy()

    launch_and_read()
    assert one.item() == 1
    ours = seconds(launch_and_read, inner=50, repeats=31)
    peer = None
    if torch:
        theirs = torch.ones(1, device="cuda")
        peer = seconds(lambda: torch.add(theirs, theirs).item(), inner=50, repeats=31)
    return _microseconds(suite, "launch and 4-byte read", ours, aims.read, peer)


def _replay(suite: str, device: td.Device, aims: _Aims, torch: Any) -> Figure:
    launch, x, y = kernels.saxpy[1, 64], td.ones(64), td.zeros(64)
    launch(0.0, x, y)
    graph = td.Graph(device)
    with graph.capture():
        for _ in range(aims.replayed):
            launch(1.0, x, y)
    graph.replay()
    assert (y.numpy() == aims.replayed).all()
    ours = host_seconds(graph.replay, device.synchronize, 1)
    peer = None
    if torch:
        theirs = torch.zeros(64, device="cuda")
        other = torch.cuda.CUDAGraph()
        with torch.cuda.graph(other):
            for _ in range(aims.replayed):
                theirs += 1.0
        peer = host_seconds(other.replay, torch.cuda.synchronize, 1)
    name = f"replay of {aims.replayed} launches, host time"
    return _microseconds(suite, name, ours, aims.replay, peer)


def _memory(suite: str, device: td.Device, aims: _Aims, torch: Any) -> Figure:
    run = _small_launch()
    for _ in range(1000):
        run()
    device.synchronize()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100_000):
        run()
    device.synchronize()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return Figure(suite, "memory grown by 100,000 launches", "MiB", grown / 1024, 8)
