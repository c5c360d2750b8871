"""A large GPU's throughput through one of its devices, beside PyTorch on the same card."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks import harness
from benchmarks.harness import Figure, about_device, device_seconds, torch_seconds
from benchmarks.matmul import LARGE
from benchmarks.workloads import ADD, Workload, matmul_workload

__all__ = ["about", "measurements"]

about = about_device
_TERAFLOPS = {"cuda": 38, "webgpu": 36, "dawn": 36}  # the product's targets


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    device = td.device(spec)
    assert device.kind == "discrete", f"{device} is no large GPU"
    return [functools.partial(part, spec, device) for part in (_add, _product, _copies)]


def _timed(device: td.Device, workload: Workload) -> tuple[float, float]:
    """Device seconds of a workload found right, and its relative error."""
    with td.use_device(device):
        run, check = workload.ready()
        run()
        error = check()
        return device_seconds(device, run)[0], error


def _add(spec: str, device: td.Device) -> list[Figure]:
    seconds, _ = _timed(device, ADD)
    gigabytes = 12 * ADD.size / 1e9
    peer = None
    if torch := harness.torch_on_cuda():
        x, y, out = (torch.rand(ADD.size, device="cuda") for _ in range(3))
        peer = gigabytes / torch_seconds(torch, functools.partial(torch.add, x, y, out=out))[0]
    return [
        Figure(
            f"gpu-{spec}", ADD.name, "GB/s", gigabytes / seconds,
            0.95, True, "PyTorch", peer, ratio=True,
        )
    ]  # fmt: skip


def _product(spec: str, device: td.Device) -> list[Figure]:
    workload = matmul_workload(LARGE[spec])
    seconds, error = _timed(device, workload)
    n = workload.size
    teraflops = 2 * n**3 / 1e12
    peer = None
    if torch := harness.torch_on_cuda():
        torch.backends.cuda.matmul.allow_tf32 = False
        a, b = (torch.randn(n, n, device="cuda") for _ in range(2))
        peer = teraflops / torch_seconds(torch, lambda: a @ b)[0]
    return [
        Figure(
            f"gpu-{spec}", f"{workload.name} in the kernel language", "TFLOP/s",
            teraflops / seconds, _TERAFLOPS[spec], True, "PyTorch", peer,
            note=f"relative error {error:.1e}",
        )
    ]  # fmt: skip


def _copies(spec: str, device: td.Device) -> list[Figure]:
    data = np.random.default_rng(0).standard_normal(64 << 20, np.float32)
    gigabytes = data.nbytes / 1e9

    def up() -> td.Tensor:
        made = td.asarray(data, device=device)
        device.synchronize()
        return made

    array = up()
    assert (array.numpy() == data).all()
    upload, download = _of_three(up), _of_three(array.numpy)
    suite = f"gpu-{spec}"
    return [
        Figure(suite, "download of 256 MiB", "GB/s", gigabytes / download, 5, True),
        Figure(suite, "upload of 256 MiB", "GB/s", gigabytes / upload, higher=True),
    ]


def _of_three(run: Callable[[], Any]) -> float:
    """Seconds of one of three runs, after one that does not count."""
    run()
    began = time.perf_counter()
    for _ in range(3):
        run()
    return (time.perf_counter() - began) / 3
