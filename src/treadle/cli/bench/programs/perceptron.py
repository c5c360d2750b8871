"""A perceptron for images of 28 × 28, by Adam."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from treadle.cli.bench.programs.setting import Array, Library, Measurement, Setting
from treadle.cli.bench.programs.training import Program, figures

_PIXELS, _DIGITS, _BATCH = 784, 10, 64


def measurements(setting: Setting) -> list[Measurement]:
    """Steps of it."""
    return [functools.partial(figures, setting, program(setting.sizes.hidden))]


def program(hidden: int) -> Program:
    """One hidden layer."""
    return Program(
        f"MLP {_PIXELS}-{hidden}-{_DIGITS}, batch {_BATCH}, Adam",
        functools.partial(_model, hidden),
        lambda library, parameters: library.module.optim.Adam(parameters, lr=1e-3),
        _batch,
    )


def _model(hidden: int, library: Library) -> Any:
    nn, device = library.module.nn, library.device
    return nn.Sequential(
        nn.Linear(_PIXELS, hidden, device=device), nn.ReLU(),
        nn.Linear(hidden, _DIGITS, device=device),
    )  # fmt: skip


def _batch(rng: np.random.Generator) -> tuple[Array, Array]:
    return rng.random((_BATCH, _PIXELS), np.float32), rng.integers(0, _DIGITS, _BATCH)
