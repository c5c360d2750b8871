"""The library of mathematics as printed C++: every function on values from everywhere."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

import treadle as td
from tests.support.cpp_kernels import Batch
from tests.support.cpp_programs import printed
from tests.support.kernels import lower
from treadle.core.dim3 import Dim3

REFERENCES: dict[str, Any] = {
    name: getattr(np, {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name))
    for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
                 "sinh", "cosh", "tanh", "asin", "acos", "atan")
} | {"erf": np.vectorize(math.erf), "rsqrt": lambda x: 1 / np.sqrt(x)}  # fmt: skip


def _kernel(function: Any) -> Any:
    @td.kernel
    def apply(x: td.Array[td.f32], y: td.Array[td.f32]):
        i = td.grid(1)
        y[i] = function(x[i])

    return apply


def values() -> np.ndarray[Any, Any]:
    """Numbers near zero and far, and the special ones."""
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e30, -1e30, 88.7, 1e-3, 1.0, -1.0]
    return np.concatenate([np.linspace(-30, 30, 181), special]).astype(np.float32)


def math_batch(language: str) -> Batch:
    """A kernel for each function."""
    x = values()
    kernels = {name: lower(_kernel(getattr(td, name)), x, x) for name in REFERENCES}
    codes = {
        name: printed(replace(kernel, block=Dim3(32)), language) for name, kernel in kernels.items()
    }
    return Batch(language, codes)


def wrong_math(batch: Batch, name: str) -> list[str]:
    """Values that are off by more than a few units in the last place."""
    x = values()
    y = np.zeros_like(x)
    batch.run(name, len(x) // 32, {"x": x, "y": y})
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.float64)).astype(np.float32)
        close = np.isclose(y, exact, rtol=5e-7, atol=1e-37, equal_nan=True)
    return [f"{name}({x[i]}) is {y[i]}, not {exact[i]}" for i in np.flatnonzero(~close)]
