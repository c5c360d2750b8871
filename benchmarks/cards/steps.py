"""Steps of training networks: a ResNet-18 in float32 and in TF32, beside PyTorch's steps. (That of
a transformer is in the suite `training`.)"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks.harness import Figure, about_device, device_seconds, torch_on_cuda, torch_seconds
from treadle.cli.bench.programs.resnet import program
from treadle.cli.bench.programs.setting import CARD, compare, numbers, setting_for
from treadle.cli.bench.programs.training import Step, step_of

__all__ = ["about", "measurements"]

about = about_device
_COMPARED = 3  # steps
_WARM = 3
# By what products are rounded to: the precision, the bound of losses, and what is aimed at, in
# times of PyTorch's step.
_WAYS = {"float32": ("highest", 1e-3, 1.0), "TF32": ("high", 1e-2, 1.1)}


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    return [functools.partial(_resnet, spec, way) for way in _WAYS]


def _resnet(spec: str, way: str) -> list[Figure]:
    precision, bound, target = _WAYS[way]
    torch = torch_on_cuda()
    device = td.device(spec)
    setting = setting_for(f"steps-{spec}", device)
    model = program(CARD.image)
    before = td.get_float32_matmul_precision()
    td.set_float32_matmul_precision(precision)
    peer, losses = None, None
    others: tuple[tuple[str, float], ...] = ()
    try:
        if torch is not None and setting.peer is not None:
            allowed = precision != "highest"
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
            torch.backends.cudnn.benchmark = True
            theirs = step_of(model, setting.peer)
            losses = _losses(theirs)
            peer = _warm_seconds(theirs, lambda step: torch_seconds(torch, step)[0])
        with td.use_device(device):
            ours = step_of(model, setting.ours, compiled=True)
            found = _losses(ours)
            if losses is not None:
                compare(model.name, found, losses, bound)
            took = _warm_seconds(ours, lambda step: device_seconds(device, step)[0])
    finally:
        td.set_float32_matmul_precision(before)
    return [
        Figure(
            f"steps-{spec}", f"{model.name}, a compiled step, {way}", "s", took,
            target if spec == "cuda" else None, False, "PyTorch" if peer else "", peer, True,
            others=others,
        )
    ]  # fmt: skip


def _losses(step: Step) -> list[float]:
    return [float(np.asarray(numbers(step()))) for _ in range(_COMPARED)]


def _warm_seconds(step: Step, seconds: Callable[[Any], float]) -> float:
    for _ in range(_WARM):
        step()
    return seconds(step)
