"""The functions of tensors that names of the kernel language are where no kernel runs.

The kernel language knows no tensors: `treadle/__init__.py` installs what finds their functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_find: Callable[[], Mapping[str, Callable[..., Any]]]


def install(find: Callable[[], Mapping[str, Callable[..., Any]]]) -> None:
    """Use the functions that this finds, by their names, when one is first asked for."""
    global _find
    _find = find


def function_of_tensors(name: str) -> Callable[..., Any] | None:
    """The function of tensors of a name; None if it has none."""
    return _find().get(name)
