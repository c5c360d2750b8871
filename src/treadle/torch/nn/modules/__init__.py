"""`torch.nn.modules`: the layers by PyTorch's files, as `torch.nn.modules.batchnorm._BatchNorm`.

Each file is a module made here, whose names are found when they are first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_NN = "treadle.torch.nn"
# PyTorch's files, and the beginnings of the names of layers that are there.
_FILES = {
    "activation": "layers", "adaptive": "added", "batchnorm": "layers", "channelshuffle": "layers",
    "container": "containers", "conv": "layers", "distance": "layers", "dropout": "layers",
    "flatten": "layers", "fold": "layers", "instancenorm": "layers", "lazy": "lazy",
    "linear": "layers", "linear_cross_entropy": "added", "loss": "layers", "module": "module",
    "normalization": "layers", "padding": "layers", "pixelshuffle": "layers", "pooling": "layers",
    "rnn": "layers", "sparse": "layers", "transformer": "layers", "upsampling": "layers",
    "utils": "modules.numbers",
}  # fmt: skip


class _File(ModuleType):
    """One of PyTorch's files."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            for module in (f"{_NN}.{_FILES[self.__name__.rpartition('.')[2]]}", _NN):
                try:
                    return getattr(import_module(module), name)
                except AttributeError:
                    continue
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


for _name in _FILES:
    _made = sys.modules[f"{__name__}.{_name}"] = _File(f"{__name__}.{_name}")
    globals()[_name] = _made


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_NN), name)
