"""The PTX we print beside what NVIDIA's run-time compiler makes of the CUDA C++ we print."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

import treadle as td
from benchmarks.harness import Figure, about_device, device_seconds
from benchmarks.workloads import WORKLOADS, Run, Workload
from treadle.runtime import settings

SUITE = "ptx"


def about() -> dict[str, str]:
    """The device measured."""
    return about_device("cuda")


def measurements() -> list[Callable[[], list[Figure]]]:
    """A figure for each workload."""
    return [functools.partial(_beside_nvrtc, workload) for workload in WORKLOADS]


@contextlib.contextmanager
def printed_as(language: str) -> Iterator[None]:
    """Within the block, kernels compiled for CUDA devices are printed as this language."""
    before, settings.cuda_language = settings.cuda_language, language
    try:
        yield
    finally:
        settings.cuda_language = before


def _beside_nvrtc(workload: Workload) -> list[Figure]:
    with td.use_device("cuda") as device:
        runs: list[Run] = []
        for language in ("ptx", "cuda"):
            with printed_as(language):
                run, check = workload.ready()
                run()
                check()
                runs.append(run)
        ours, theirs = device_seconds(device, *runs)
    # As a rate, so that 0.95 is what is asked of the ratio.
    return [
        Figure(
            SUITE, workload.name, "runs/s", 1 / ours, 0.95, True, "NVRTC", 1 / theirs, ratio=True,
            note=f"{1e6 * ours:.1f} and {1e6 * theirs:.1f} µs",
        )
    ]  # fmt: skip
