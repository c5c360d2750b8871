"""Steps of training, eager and compiled: a model, its optimizer and a batch, in either library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treadle.cli.bench.harness import Figure
from treadle.cli.bench.programs.setting import (
    Array,
    Library,
    Setting,
    compare,
    drawn,
    numbers,
    shapes_of,
)
from treadle.runtime.devices import device as find_device

_COMPARED = 3  # steps
_TOLERANCE = 1e-3  # of their losses


@dataclass(frozen=True)
class Program:
    """A model from a library, its optimizer from the library's parameters, and a batch from a
    random generator: inputs and classes. `smaller` is the same where float64 can be waited for."""

    name: str
    model: Callable[[Library], Any]
    optimizer: Callable[[Library, Any], Any]
    batch: Callable[[np.random.Generator], tuple[Array, Array]]
    smaller: Program | None = None


Step = Callable[[], Any]  # gives the loss


def step_of(program: Program, library: Library, dtype: Any = None, compiled: bool = False) -> Step:
    """A step on a batch that stays the same, from the same first parameters everywhere."""
    model = program.model(library)
    library.load(model, drawn(shapes_of(model)))
    x, classes = program.batch(np.random.default_rng(1))
    inputs, targets = library.array(x), library.classes(classes)
    if dtype is not None:
        model.to(dtype)
        inputs = inputs.to(dtype)
    optimizer = program.optimizer(library, model.parameters())
    functional = library.module.nn.functional

    def step(x: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), targets)
        loss.backward()
        optimizer.step()
        return loss

    run = library.module.compile(step) if compiled else step
    return lambda: run(inputs, targets)


def figures(setting: Setting, program: Program) -> list[Figure]:
    """Seconds of an eager step and of a compiled one, after their losses were compared: with
    PyTorch's, else with those of a smaller model in float64."""
    steps = {
        how: step_of(program, setting.ours, compiled=how == "compiled")
        for how in ("eager", "compiled")
    }
    theirs = None if setting.peer is None else step_of(program, setting.peer)
    if theirs is not None:
        right = _losses(theirs)
        for how, step in steps.items():
            compare(f"{program.name}, {how}", _losses(step), right, _TOLERANCE)
    else:
        _compare_with_float64(setting.ours, program.smaller or program)
    return [
        setting.figure(f"{program.name}, a step: {how}", step, theirs)
        for how, step in steps.items()
    ]


def _losses(step: Step) -> list[float]:
    return [float(numbers(step())) for _ in range(_COMPARED)]


def _compare_with_float64(ours: Library, program: Program) -> None:
    host = find_device("cpu")
    wide = replace(ours, device=host, wait=host.synchronize)
    right = _losses(step_of(program, wide, ours.module.float64))
    for compiled in (False, True):
        found = _losses(step_of(program, ours, compiled=compiled))
        compare(program.name, found, right, _TOLERANCE)
