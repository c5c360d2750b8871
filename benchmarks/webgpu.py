"""What a WebGPU launch costs the host, on whatever WebGPU device there is."""

from __future__ import annotations

import resource
import time
from typing import Any

import treadle as td
from benchmarks import kernels
from benchmarks.harness import Figure, seconds


def about() -> dict[str, Any]:
    """The device measured."""
    device = td.device("webgpu")
    return {"webgpu": f"{device.name} ({device.driver})"}


def run() -> list[Figure]:
    """The figures of this suite."""
    with td.use_device("webgpu") as device:
        x, y = td.ones(64), td.ones(64)
        launch = kernels.saxpy[1, 64]

        def host_time(count: int, run: Any) -> float:
            """Seconds of host time for each of `count` calls, the device's own time left out."""
            best = []
            for _ in range(31):
                device.synchronize()
                began = time.perf_counter()
                for _ in range(count):
                    run()
                best.append((time.perf_counter() - began) / count)
            device.synchronize()
            return sorted(best)[len(best) // 2]

        launch(2.0, x, y)
        figures = [
            Figure(
                "webgpu",
                "launch into an open batch, host time",
                "µs",
                1e6 * host_time(200, lambda: launch(1e-9, x, y)),
                6,
            )
        ]

        graph = td.Graph(device)
        with graph.capture():
            for _ in range(1000):
                launch(1e-9, x, y)
        replay = host_time(1, graph.replay) / 1000
        figures.append(
            Figure("webgpu", "launch in a replay of 1000, host time", "µs", 1e6 * replay, 0.6)
        )

        one = td.zeros(1)

        def read() -> None:
            kernels.saxpy[1, 1](1.0, x, one)
            one.numpy()

        figures.append(
            Figure(
                "webgpu",
                "launch and 4-byte read",
                "µs",
                1e6 * seconds(read, inner=50, repeats=31),
                120,
            )
        )

        device.synchronize()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(100_000):
            launch(1e-9, x, y)
        device.synchronize()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        figures.append(Figure("webgpu", "memory grown by 100,000 launches", "MiB", grown / 1024, 8))
    return figures
