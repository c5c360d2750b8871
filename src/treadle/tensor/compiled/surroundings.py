"""What a function finds around it: the globals and closure variables that it names.

Numbers, texts and tensors among them count like arguments: if one is another, the function is
traced anew. What it reaches through objects is watched as far as it is tensors (`routes`).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

from treadle.tensor.tensor import Tensor

# Goes on when something changes that traces of training steps depend on: which states an optimizer
# has, its switches, a scaler's factors.
structure = [0]
_PLAIN = frozenset({int, bool, str, bytes, type(None)})
_UNSET = object()


class Surroundings:
    """The variables of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._owners: list[Any] = []
        while True:
            if isinstance(function, functools.partial):
                function = function.func
            elif isinstance(function, types.MethodType):
                self._owners.append(function.__self__)
                function = function.__func__
            else:
                break
        if not isinstance(function, types.FunctionType):
            self._owners.append(function)
        code = getattr(function, "__code__", None)
        self._cells: tuple[Any, ...] = getattr(function, "__closure__", None) or ()
        self._globals: dict[str, Any] = getattr(function, "__globals__", {})
        names = dict.fromkeys(_names(code)) if isinstance(code, types.CodeType) else {}
        self._names = list(names)
        self._closed = code.co_freevars if isinstance(code, types.CodeType) else ()

    def tell(self, parts: list[Any]) -> None:
        """Append what the variables are now to the parts of a key."""
        parts.append(structure[0])
        for owner in self._owners:
            _tell(owner, parts)
        known = self._globals
        for name in self._names:
            if name in known:
                _tell(known[name], parts)
        for cell in self._cells:
            try:
                _tell(cell.cell_contents, parts)
            except ValueError:  # it has no value yet
                parts.append(_UNSET)

    def values(self) -> Iterator[Any]:
        """What the variables are now."""
        for name in self._names:
            if name in self._globals:
                yield self._globals[name]
        for cell in self._cells:
            try:
                yield cell.cell_contents
            except ValueError:
                continue

    def numbers(self) -> Iterator[tuple[str, Any]]:
        """The numbers among the variables."""
        found = [(name, self._globals.get(name)) for name in self._names]
        for name, cell in zip(self._closed, self._cells, strict=True):
            try:
                found.append((name, cell.cell_contents))
            except ValueError:
                continue
        return ((name, each) for name, each in found if type(each) in (int, float))


def _tell(value: Any, parts: list[Any]) -> None:
    kind = type(value)
    if kind in _PLAIN:
        parts += (kind, value)
    elif kind is float or kind is complex:
        parts += (kind, repr(value))
    elif kind is Tensor:
        parts += (value._cell, value._view, value._boundary)
    else:
        parts.append(kind)
        if hasattr(kind, "modules") and hasattr(value, "training"):  # a model, and its modes
            parts += (ref(value), tuple([each.training for each in value.modules()]))
        elif hasattr(kind, "state_dict"):  # an optimizer, or a scaler of losses
            parts.append(ref(value))


def _names(code: types.CodeType) -> Iterator[str]:
    """The names that code and the functions in it look up, attributes' among them."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
