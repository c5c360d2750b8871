"""The tensors reachable from objects through containers and attributes."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from treadle.tensor.tensor import Tensor

_MOST = 100_000  # objects that are looked at
# Types that are not followed: they have no tensors of the function, or lead to too much.
_CLOSED = (
    types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, str, bytes, int, float,
    complex, np.ndarray, np.generic, type(None),
)  # fmt: skip


def tensors_within(roots: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors reachable from some objects, the nearest ones first."""
    todo, seen = deque(roots), set[int]()
    while todo and len(seen) < _MOST:
        value = todo.popleft()
        if isinstance(value, Tensor):
            yield value
        elif id(value) not in seen and not isinstance(value, _CLOSED):
            seen.add(id(value))
            todo.extend(_parts(value))


def _parts(value: Any) -> Iterator[Any]:
    """The elements of a container, and the values of an object's attributes."""
    if isinstance(value, dict):
        yield from list(value.values())
    elif isinstance(value, (list, tuple)):
        yield from list(value)
    inside = getattr(type(value), "_traced_inside", None)
    if inside is not None:
        yield getattr(value, inside)
    own = getattr(value, "__dict__", None)
    if type(own) is dict:
        yield from list(own.values())
