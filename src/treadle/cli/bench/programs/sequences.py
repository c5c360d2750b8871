"""An LSTM over sequences of random lengths."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from treadle.cli.bench.harness import Figure
from treadle.cli.bench.programs.setting import (
    Array,
    Library,
    Measurement,
    Setting,
    compare,
    drawn,
    numbers,
    shapes_of,
)

_BATCH, _FEATURES, _HIDDEN = 8, 32, 64
_SEQUENCES = 12
_TOLERANCE = 1e-4


def measurements(setting: Setting) -> list[Measurement]:
    """Seconds of a sequence."""
    return [functools.partial(_sequences, setting)]


def _sequences(setting: Setting) -> list[Figure]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, setting.sizes.sequence + 1, _SEQUENCES)
    sequences = [rng.standard_normal((int(n), _BATCH, _FEATURES), np.float32) for n in lengths]

    def loop(library: Library) -> Any:
        model = library.module.nn.LSTM(_FEATURES, _HIDDEN, device=library.device)
        library.load(model, drawn(shapes_of(model)))

        def run(sequence: Array) -> Any:
            with library.module.no_grad():
                return numbers(model(library.array(sequence))[0][-1])

        return run

    run = loop(setting.ours)
    weights = setting.ours.module.nn.LSTM(_FEATURES, _HIDDEN, device=setting.device)
    state = drawn(shapes_of(weights))
    for sequence in sequences[:2]:
        compare("LSTM", run(sequence), reference(state, sequence), _TOLERANCE)
    theirs = None
    if setting.peer is not None:
        theirs = functools.partial(_all, loop(setting.peer), sequences)
    lengths_text = f"{_SEQUENCES} random lengths up to {setting.sizes.sequence}"
    name = f"LSTM of {_HIDDEN}, batch {_BATCH}, {lengths_text}"
    return [setting.figure(name, functools.partial(_all, run, sequences), theirs)]


def _all(run: Callable[[Array], Any], sequences: list[Array]) -> None:
    for sequence in sequences:
        run(sequence)


def reference(state: Mapping[str, Array], sequence: Array) -> Array:
    """The last hidden state, by NumPy in float64."""
    wide = {name: value.astype(np.float64) for name, value in state.items()}
    h = c = np.zeros((sequence.shape[1], _HIDDEN))
    biases = wide["bias_ih_l0"] + wide["bias_hh_l0"]
    for x in sequence:
        gates = x @ wide["weight_ih_l0"].T + h @ wide["weight_hh_l0"].T + biases
        i, f, g, o = np.split(gates, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
    return np.asarray(h)
