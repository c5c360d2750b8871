"""Functions of treadle's tensors as functions, methods and in-place methods of PyTorch's."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from treadle.graph.history import recording
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.errors import CAUGHT, translated
from treadle.torch.tensors import Tensor, unwrapped, wrap, wrapped
from treadle.torch.writing import write

Function = Callable[..., Any]


def adapted(function: Function) -> Function:
    """A function of treadle's tensors as one of PyTorch's."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [each._inner if type(each) is Tensor else unwrapped(each) for each in args]
        if kwargs:
            kwargs = {key: unwrapped(each) for key, each in kwargs.items()}
            if not kwargs.keys().isdisjoint(_NUMPYS):
                kwargs = _renamed(function, kwargs)
        try:
            result = function(*given, **kwargs)
        except CAUGHT as error:
            raise translated(error) from None
        if type(result) is not Inner:
            return wrapped(result)
        # What is unchanged, or changed in place, is the same object.
        return args[0] if given and result is given[0] else wrap(result)

    return call


def public(function: Function, module: str, name: str, *, has_out: bool = False) -> Function:
    """The function of a module: its name is by what it is pickled."""
    found = with_out(function) if has_out else adapted(function)
    found.__module__, found.__name__, found.__qualname__ = module, name, name
    return found


# NumPy's names of parameters, which PyTorch takes for its own.
_NUMPYS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input",
           "x2": "other"}  # fmt: skip


def _renamed(function: Function, kwargs: dict[str, Any]) -> dict[str, Any]:
    known = inspect.signature(function).parameters
    return {
        key if key in known or key not in _NUMPYS else _NUMPYS[key]: each
        for key, each in kwargs.items()
    }


def with_out(function: Function) -> Function:
    """The same with the keyword `out`: a tensor, or a tuple of as many as there are results, which
    get the results."""
    inner = adapted(function)

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        result = inner(*args, **kwargs)
        if out is None:
            return result
        places, results = (out, result) if isinstance(out, (tuple, list)) else ((out,), (result,))
        for place, each in zip(places, results, strict=True):
            _put(place, each._inner)
        return type(result)(*places) if hasattr(result, "_fields") else out

    return call


def _put(place: Tensor, result: Inner) -> None:
    if place._inner.shape != result.shape:
        if place._inner.size:
            warnings.warn(
                f"out= has shape {tuple(place._inner.shape)} and gets a result of shape "
                f"{tuple(result.shape)}: it is given new memory",
                stacklevel=4,
            )
        place._inner = result.to(place._inner.dtype)
        return
    write(place._inner, result)


def in_place(function: Function) -> Function:
    """The method `name_` of a function: writes what the function computes from the tensor into it,
    and returns the tensor."""

    @functools.wraps(function)
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        inner = self._inner
        # The derivative may need the old elements: it gets a copy of them.
        old = inner.copied() if recording.get() and inner.requires_grad else inner
        given = [old if each is self else unwrapped(each) for each in args]
        named = {key: old if each is self else unwrapped(each) for key, each in kwargs.items()}
        try:
            write(inner, function(old, *given, **named))
        except CAUGHT as error:
            raise translated(error) from None
        return self

    return call


def shown(function: Function) -> Function:
    """The method `name_` of a function whose result is a view: the tensor becomes that view."""

    @functools.wraps(function)
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        self._inner = function(self._inner, *args, **kwargs)
        return self

    return call
