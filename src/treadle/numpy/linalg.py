"""NumPy's `linalg` over arrays on devices: `np.linalg.solve`, `svd`, `norm`, …."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.numpy.adapting import adapted
from treadle.numpy.operations import matrices

_NAMES = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vector_norm",
]
# The same functions as those of the main namespace.
_SHARED = ["matrix_transpose", "tensordot", "vecdot"]
# Views of arrays are arrays, also without axes.
_VIEWS = ("diagonal",)
LinAlgError = np.linalg.LinAlgError
__all__ = sorted([*_NAMES, *_SHARED, "LinAlgError"])


def __getattr__(name: str) -> Any:
    if name in _SHARED:
        from importlib import import_module

        return getattr(import_module("treadle.numpy.functions"), name)
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = adapted(getattr(matrices, name), "" if name in _VIEWS else "v")
    return found


def __dir__() -> list[str]:
    return __all__
