"""Where a function finds the tensors that it has from outside: `self.weight`, `state["step"]`.

A recording goes on with the memory it was made with. If somebody has put another tensor into an
attribute, a dict or a list since, the function itself would use that one: so it is traced anew. So
it is where a tensor has got other data (`weight.data = loaded`), or requires gradients or no more.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from treadle.tensor.cells import Cell
from treadle.tensor.for_autograd import Boundary
from treadle.tensor.tensor import Tensor

_MOST = 100_000  # objects that are looked at, once for each trace
# What leads to no tensors of the function's, or to too much.
_CLOSED = (
    types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, str, bytes, int, float,
    complex, np.ndarray, np.generic, type(None),
)  # fmt: skip


class Step(NamedTuple):
    """A dict (an object's own, say), a list or a tuple, and what lies there; of a tensor, what it
    is made of."""

    holder: Any
    key: Any
    part: Any
    cell: Cell | None = None
    boundary: Boundary | None = None


def is_current(steps: Iterable[Step]) -> bool:
    """Whether everything lies where it did."""
    for holder, key, part, cell, boundary in steps:
        try:
            if holder[key] is not part:
                return False
            if cell is not None and (part._cell is not cell or part._boundary is not boundary):
                return False
        except LookupError:
            return False
    return True


def steps_to(cells: Iterable[Cell], roots: Iterable[Any]) -> list[Step]:
    """The steps from some objects to all tensors over these cells."""
    wanted = set(cells)
    if not wanted:
        return []
    found: dict[int, Step] = {}
    came: dict[int, tuple[Step, int]] = {}  # by the object that a step leads to: it, and from where
    for step, origin in _all_steps(roots):
        if not isinstance(step.part, Tensor):
            came.setdefault(id(step.part), (step, origin))
        elif step.part._cell in wanted:
            before: tuple[Step, int] | None = (step, origin)
            while before is not None and id(before[0]) not in found:
                if type(before[0].holder) is not tuple or before[0].cell is not None:
                    found[id(before[0])] = before[0]
                before = came.get(before[1])
    return list(found.values())


def tensors_within(roots: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors that some objects lead to."""
    return (step.part for step, _ in _all_steps(roots) if isinstance(step.part, Tensor))


def _all_steps(roots: Iterable[Any]) -> Iterator[tuple[Step, int]]:
    """Each step from the roots on, the shortest first, and the number of the object that it is a
    step of."""
    todo, seen = deque(roots), set[int]()
    while todo and len(seen) < _MOST:
        value = todo.popleft()
        if id(value) in seen or isinstance(value, (*_CLOSED, Tensor)):
            continue
        seen.add(id(value))
        for step in _parts(value):
            yield step, id(value)
            if not isinstance(step.part, Tensor):
                todo.append(step.part)


def _parts(value: Any) -> Iterator[Step]:
    """What lies in a container or in an object's attributes, and where."""
    if isinstance(value, dict):
        for key, part in list(value.items()):
            yield _step(value, key, part)
    elif isinstance(value, (list, tuple)):
        for at, part in enumerate(value):
            yield _step(value, at, part)
    own = getattr(value, "__dict__", None)
    if type(own) is dict:
        for key, part in list(own.items()):
            yield _step(own, key, part)


def _step(holder: Any, key: Any, part: Any) -> Step:
    if isinstance(part, Tensor):
        return Step(holder, key, part, part._cell, part._boundary)
    return Step(holder, key, part)
