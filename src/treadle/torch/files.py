"""PyTorch's files, from which programs import: `torch.utils.data.dataloader.DataLoader`.

Each is a module made here, whose names are those of the package that it stands in.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _File(ModuleType):
    """One of PyTorch's files."""

    def __getattr__(self, name: str) -> Any:
        package = self.__name__.rpartition(".")[0]
        if not name.startswith("__"):
            try:
                return getattr(import_module(package), name)
            except AttributeError as error:
                # What the package says of the name is said here, too.
                raise AttributeError(f"{error} (asked of {self.__name__!r})") from None
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def offer(package: str, names: str) -> None:
    """Have files of a package be there for imports; what is there already stays."""
    for name in names.split():
        path = f"{package}.{name}"
        if path not in sys.modules:
            made = sys.modules[path] = _File(path)
            setattr(sys.modules[package], name, made)
