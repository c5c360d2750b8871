"""What the tests of `td.compile` share."""

from __future__ import annotations

import numpy as np

import treadle as td


@td.kernel
def add_one(x: td.Array[td.f32]):
    i = td.grid(1)
    x[i] += 1.0


def counted(function):
    """A compiled function, and how often its Python ran."""
    runs = []

    def inner(*args, **kwargs):
        runs.append(1)
        return function(*args, **kwargs)

    inner.__qualname__ = function.__name__
    return td.compile(inner), runs


def array(*values, dtype=td.float32):
    return td.asarray(np.array(values), dtype=dtype)
