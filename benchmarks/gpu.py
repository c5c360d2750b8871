"""A large GPU through WebGPU, beside PyTorch on the same card."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks import kernels
from benchmarks.harness import Figure
from benchmarks.matmul import multiply

N = 64 << 20


def about() -> dict[str, Any]:
    """The device measured, and the peer's version."""
    import torch

    device = td.device("webgpu")
    return {"webgpu": f"{device.name} ({device.driver})", "torch": torch.__version__}


def run() -> list[Figure]:
    """The figures of this suite."""
    import torch

    figures = []
    with td.use_device("webgpu") as device:
        assert device.kind == "discrete", f"{device} is no large GPU"
        rng = np.random.default_rng(0)
        data = rng.standard_normal((2, N)).astype(np.float32)
        x, y, out = td.asarray(data[0]), td.asarray(data[1]), td.zeros(N)
        add_all = kernels.add[N // 4 // 1024, 1024]
        ours = _device_seconds(device, lambda: add_all(x, y, out))
        np.testing.assert_array_equal(out.numpy(), data[0] + data[1])
        theirs = [torch.asarray(d, device="cuda") for d in data]
        result = torch.empty_like(theirs[0])
        add = functools.partial(torch.add, *theirs, out=result)
        peer = _torch_seconds(torch, add)
        bandwidth = 12 * N / 1e9
        figures.append(
            Figure(
                "gpu",
                "add of 64 M float32",
                "GB/s",
                bandwidth / ours,
                0.95,
                True,
                "PyTorch",
                bandwidth / peer,
                True,
            )
        )
        del theirs, result, add

        size = 4096
        a, b = rng.standard_normal((2, size, size)).astype(np.float32)
        mine, c = [td.asarray(m) for m in (a, b)], td.full((size, size), float("nan"))
        ours = _device_seconds(device, lambda: multiply(*mine, c))
        torch.backends.cuda.matmul.allow_tf32 = False
        theirs = [torch.asarray(m, device="cuda") for m in (a, b)]
        exact = (theirs[0].double() @ theirs[1].double()).cpu().numpy()
        error = np.linalg.norm(c.numpy() - exact) / np.linalg.norm(exact)
        assert error < 1e-5, error
        peer = _torch_seconds(torch, lambda: theirs[0] @ theirs[1])
        work = 2 * size**3 / 1e12
        figures.append(
            Figure(
                "gpu",
                "float32 matmul 4096^3 in the kernel language",
                "TFLOP/s",
                work / ours,
                36,
                True,
                "PyTorch",
                work / peer,
                note=f"relative error {error:.1e}",
            )
        )

        big = td.asarray(data[0])
        big.numpy()
        began = time.perf_counter()
        for _ in range(3):
            read = big.numpy()
        took = (time.perf_counter() - began) / 3
        assert (read == data[0]).all()
        figures.append(
            Figure("gpu", "download of 256 MiB", "GB/s", big.nbytes / took / 1e9, 5, True)
        )
        began = time.perf_counter()
        for _ in range(3):
            big = td.asarray(data[0])
            device.synchronize()
        took = (time.perf_counter() - began) / 3
        figures.append(Figure("gpu", "upload of 256 MiB", "GB/s", big.nbytes / took / 1e9))
    return figures


def _device_seconds(device: td.Device, run: Callable[[], object]) -> float:
    """The median device time of one `run`, between two events around 20 of them."""

    def batch() -> float:
        start, end = td.Event(), td.Event()
        start.record(device.default_stream)
        for _ in range(20):
            run()
        end.record(device.default_stream)
        return start.elapsed(end) / 20

    batch()
    return statistics.median(batch() for _ in range(9))


def _torch_seconds(torch: Any, run: Callable[[], object]) -> float:
    """The same for PyTorch, with its events."""

    def batch() -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(20):
            run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 20e3

    batch()
    return statistics.median(batch() for _ in range(9))
