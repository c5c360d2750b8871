"""An optimizer's step beside PyTorch's: AdamW over many parameters, and what moves for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks.harness import (
    Figure,
    device_seconds,
    installed,
    torch_on_cuda,
    torch_seconds,
    wall_seconds,
)

_TENSORS, _ELEMENTS = 50, 200_000
_PASSES = 7  # parameters, gradients and both averages are read, and all but gradients written
_AIM = 0.5  # of the peer's time
_COMPARED = 3  # steps
_TOLERANCE = 1e-5


def update(spec: str) -> list[Figure]:
    """AdamW over ten million parameters in 50 tensors, in turns with PyTorch's foreach form and
    its fused one."""
    rng = np.random.default_rng(1)
    start = rng.standard_normal((_TENSORS, _ELEMENTS)).astype(np.float32)
    slopes = rng.standard_normal((_TENSORS, _ELEMENTS)).astype(np.float32)
    with td.use_device(spec) as device:
        parameters = [td.asarray(each).requires_grad_() for each in start]
        optimizer = td.optim.AdamW(parameters)
        loss: Any = sum((p * td.asarray(s)).sum() for p, s in zip(parameters, slopes, strict=True))
        loss.backward()
        torch, where = _peer(spec)
        peers: list[Callable[[], Any]] = []
        if torch is not None:
            for form in ("foreach", "fused"):
                step, theirs = _torch_step(torch, where, start, slopes, form)
                peers.append(step)
                if form == "foreach":
                    _compare(optimizer, parameters, step, theirs)
        if spec == "cpu":
            mine, *others = wall_seconds(device.synchronize, optimizer.step, *peers)
        else:
            optimizer.step()
            mine = device_seconds(device, optimizer.step)[0]
            others = torch_seconds(torch, *peers) if peers else []
        rate = _PASSES * start.nbytes / mine / 1e9
        return [
            Figure(
                f"training-{spec}", "AdamW, 10 M parameters in 50 tensors", "s", mine, _AIM,
                peer="PyTorch, foreach", peers=others[0] if others else None, ratio=True,
                others=(("PyTorch, fused", others[1]),) if others else (),
                note=f"{rate:.0f} GB/s",
            )
        ]  # fmt: skip


def _peer(spec: str) -> tuple[Any, str]:
    if spec == "cpu":
        return installed("torch"), "cpu"
    return (torch_on_cuda() if spec == "cuda" else None), "cuda"


def _torch_step(
    torch: Any, where: str, start: Any, slopes: Any, form: str
) -> tuple[Callable[[], Any], list[Any]]:
    parameters = [torch.tensor(each, device=where, requires_grad=True) for each in start]
    for parameter, slope in zip(parameters, slopes, strict=True):
        parameter.grad = torch.tensor(slope, device=where)
    return torch.optim.AdamW(parameters, **{form: True}).step, parameters


def _compare(optimizer: Any, parameters: Any, step: Callable[[], Any], theirs: Any) -> None:
    for _ in range(_COMPARED):
        optimizer.step()
        step()
    for mine, other in zip(parameters, theirs, strict=True):
        gap = abs(mine.numpy() - other.detach().cpu().numpy()).max()
        if not gap <= _TOLERANCE:
            raise ValueError(f"AdamW's parameters and PyTorch's differ by {gap}")
