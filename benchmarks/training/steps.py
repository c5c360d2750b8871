"""A training step of a model in either library: forward, backward, AdamW."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

import treadle as td
from benchmarks.training.models import Model

Step = Callable[[], Any]  # takes a step, gives the loss
_RATE = 1e-4


def treadle_step(model: Model, device: td.Device, dtype: str = "", compiled: bool = True) -> Step:
    """Our step, on a batch that stays the same."""
    parameters = {
        name: td.asarray(value, device=device).requires_grad_()
        for name, value in model.parameters().items()
    }
    optimizer = td.optim.AdamW(parameters.values(), lr=_RATE)
    x, target = (_fitting(each, device) for each in model.data(np.random.default_rng(1)))

    def step(x: Any, target: Any) -> Any:
        optimizer.zero_grad()
        with td.autocast(dtype) if dtype else nullcontext():
            loss = model.loss(td.nn.functional, parameters, x, target)
        loss.backward()
        optimizer.step()
        return loss

    run = td.compile(step) if compiled else step
    return lambda: run(x, target)


def _fitting(array: np.ndarray[Any, Any], device: td.Device) -> Any:
    if array.dtype == np.int64:
        array = array.astype(np.int32)
    return td.asarray(array, device=device)


def torch_step(
    torch: Any, model: Model, device: str, dtype: str = "", compiled: bool = False
) -> Step:
    """PyTorch's, with its fused AdamW on a card and the foreach form elsewhere."""
    parameters = {
        name: torch.tensor(value, device=device, requires_grad=True)
        for name, value in model.parameters().items()
    }
    optimizer = torch.optim.AdamW(
        parameters.values(), lr=_RATE, fused=True if device == "cuda" else None
    )
    x, target = (torch.tensor(each, device=device) for each in model.data(np.random.default_rng(1)))

    def forward(x: Any, target: Any) -> Any:
        with torch.autocast(device, getattr(torch, dtype)) if dtype else nullcontext():
            return model.loss(torch.nn.functional, parameters, x, target)

    run = torch.compile(forward) if compiled else forward

    def step() -> Any:
        optimizer.zero_grad()
        loss = run(x, target)
        loss.backward()
        optimizer.step()
        return loss

    return step
