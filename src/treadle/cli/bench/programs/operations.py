"""Single operations, as they stand between others in a program: what each costs the host."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from treadle.cli.bench.arrays import Bench
from treadle.cli.bench.harness import Figure
from treadle.cli.bench.programs.setting import Library, Measurement, Setting, compare

_ELEMENTS = 1000
_REPEATS = 31


def measurements(setting: Setting) -> list[Measurement]:
    """An operation with its read; one that is realized, and one of a chain of 50."""
    found: list[Measurement] = [functools.partial(_read, setting)]
    if setting.sizes.operations:
        found.append(functools.partial(Bench(setting.suite, setting.device).costs, _REPEATS))
    return found


def _read(setting: Setting) -> list[Figure]:
    values = np.linspace(0, 1, _ELEMENTS, dtype=np.float32)
    name = f"float((x + 1).sum()), {_ELEMENTS} elements"

    def with_array(library: Library) -> Any:
        x = library.array(values)
        return lambda: float((x + 1).sum())

    step = with_array(setting.ours)
    compare(name, step(), values.astype(np.float64).sum() + _ELEMENTS, 1e-5)
    theirs = None if setting.peer is None else with_array(setting.peer)
    others = setting.numpy(lambda: float((values + 1).sum()))
    return [setting.figure(name, step, theirs, others=others)]
