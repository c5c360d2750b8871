"""Training steps beside PyTorch's: time, the host's part of it, and memory.

On the CPU the peer is PyTorch's eager step; on a card it is one whose forward pass was given to
`torch.compile`, with its fused optimizer. Losses of both are compared before anything is timed.
"""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable
from typing import Any

import treadle as td
from benchmarks.harness import (
    Figure,
    about_device,
    device_seconds,
    host_seconds,
    installed,
    torch_on_cuda,
    torch_seconds,
    wall_seconds,
)
from benchmarks.training.models import Model, digits_mlp, small_cnn, transformer
from benchmarks.training.steps import torch_step, treadle_step
from benchmarks.training.updates import update

__all__ = ["about", "measurements"]

about = about_device
_COMPARED = 3  # steps
_CALM = 0.5  # seconds
_TOLERANCE = {"": 2e-4, "bfloat16": 2e-2}  # of a loss
_HOST_AIM = 1e-3  # seconds a compiled step may take the host


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    if spec == "cpu":
        models = [functools.partial(_on_host, model) for model in (digits_mlp, small_cnn)]
        return [*models, functools.partial(update, spec)]
    dtype, aim = ("bfloat16", 1.1) if spec == "cuda" else ("", 4.0)
    return [
        functools.partial(_on_card, spec, dtype, aim),
        functools.partial(_small_on_card, spec),
        functools.partial(update, spec),
    ]


def _on_host(model: Callable[[], Model]) -> list[Figure]:
    """A small model on the CPU, after PyTorch's."""
    made = model()
    with td.use_device("cpu") as device:
        ours = treadle_step(made, device)
        torch = installed("torch")
        theirs = None if torch is None else torch_step(torch, made, "cpu")
        if theirs is not None:
            _compare(made.name, ours, theirs, "")
        # Not in turns: threads of NumPy's BLAS wait awake for a while, in the way of PyTorch's.
        peer = None
        if theirs is not None:
            time.sleep(_CALM)
            peer = wall_seconds(device.synchronize, _read(theirs))[0]
        time.sleep(_CALM)
        timed = wall_seconds(device.synchronize, _read(ours))
        found = [
            Figure("training-cpu", made.name, "s", timed[0], 1.0, False, "PyTorch", peer, True)
        ]
        # Where the host is the device, a small model's step has little else in it.
        small = timed[0] < _HOST_AIM
        return [*found, _host_figure("training-cpu", made.name, ours, device)] if small else found


def _host_figure(
    suite: str, name: str, step: Callable[[], Any], device: td.Device, aim: float | None = _HOST_AIM
) -> Figure:
    took = host_seconds(step, device.synchronize, 1)
    note = "with the work itself" if device.backend == "cpu" else ""
    return Figure(suite, f"{name}: host", "s", took, aim, note=note)


def _read(step: Callable[[], Any]) -> Callable[[], object]:
    return lambda: step().item()


def _small_on_card(spec: str) -> list[Figure]:
    with td.use_device(spec) as device:
        model = digits_mlp()
        step = treadle_step(model, device)
        step()
        return [_host_figure(f"training-{spec}", model.name, step, device)]


def _on_card(spec: str, dtype: str, aim: float) -> list[Figure]:
    """A transformer on a large GPU: PyTorch first, and gone before ours begins."""
    model, suite = transformer(), f"training-{spec}"
    torch = torch_on_cuda()
    peer = kept = None
    losses: list[float] = []
    if torch is not None:
        theirs = torch_step(torch, model, "cuda", dtype, compiled=True)
        losses = [float(theirs().item()) for _ in range(_COMPARED)]
        torch.cuda.reset_peak_memory_stats()
        peer = torch_seconds(torch, theirs)[0]
        kept = torch.cuda.max_memory_allocated()
        del theirs
        gc.collect()
        torch.cuda.empty_cache()
    with td.use_device(spec) as device:
        step = treadle_step(model, device, dtype)
        _close(model.name, [float(step().item()) for _ in range(_COMPARED)], losses, dtype)
        step()
        took = device_seconds(device, step)[0]
        used = device.memory_stats()["peak"]
        name = f"{model.name}{', ' + dtype if dtype else ''}"
        return [
            Figure(
                suite, name, "s", took, aim, False, "PyTorch compiled", peer, True,
                note=f"{model.operations / took / 1e12:.0f} TFLOP/s",
            ),
            Figure(
                suite, f"{name}: memory", "GB", used / 1e9, 1.3, False, "PyTorch",
                None if kept is None else kept / 1e9, True,
            ),
            _host_figure(suite, name, step, device, None),  # the aim is for a small model
        ]  # fmt: skip


def _compare(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], dtype: str) -> None:
    pairs = [(float(ours().item()), float(theirs().item())) for _ in range(_COMPARED)]
    _close(name, [a for a, _ in pairs], [b for _, b in pairs], dtype)


def _close(name: str, ours: list[float], theirs: list[float], dtype: str) -> None:
    for mine, other in zip(ours, theirs, strict=False):
        if not abs(mine - other) <= _TOLERANCE[dtype] * abs(other):
            raise ValueError(f"{name}: losses {ours} where PyTorch has {theirs}")
