"""CUDA C++ through a device, beside the same source compiled by NVRTC in the same process."""

from __future__ import annotations

import functools
from collections.abc import Callable

import treadle as td
from benchmarks.cuda_cpp.nvrtc import Peer
from benchmarks.cuda_cpp.workloads import WORKLOADS, Workload, ready
from benchmarks.harness import Figure, about_device, device_seconds

__all__ = ["about", "measurements"]

about = about_device
_TARGETS = {"cuda": 0.9, "webgpu": 0.7, "dawn": 0.7}  # of what NVRTC's code does in a second


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """A figure for each workload."""
    return [functools.partial(_beside_nvrtc, spec, workload) for workload in WORKLOADS]


def _beside_nvrtc(spec: str, workload: Workload) -> list[Figure]:
    problem = workload.problem()
    with td.use_device(spec) as device:
        run, results = ready(workload, problem)
        run()
        error = problem.check(results())
        if not td.is_available("cuda"):
            theirs, ours = None, device_seconds(device, run)[0]
        else:
            card = td.device("cuda")
            peer = Peer(card, workload, problem)
            peer.run()
            problem.check(peer.results())
            if device is card:  # in turns, on one stream
                ours, theirs = device_seconds(card, run, peer.run)
            else:
                ours, theirs = device_seconds(device, run)[0], device_seconds(card, peer.run)[0]
            peer.close()
    amount, unit = problem.amount
    times = f"{1e6 * ours:.0f}" + (f" and {1e6 * theirs:.0f}" if theirs else "")
    return [
        Figure(
            f"cuda_cpp-{spec}", workload.name, f"{unit}/s", amount / ours, _TARGETS.get(spec), True,
            "NVRTC", amount / theirs if theirs else None, ratio=True, seconds=ours,
            note=f"{times} µs, relative error {error:.0e}" if error else f"{times} µs",
        )
    ]  # fmt: skip
