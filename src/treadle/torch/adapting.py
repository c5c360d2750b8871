"""Functions of treadle's tensors as functions, methods and in-place methods of PyTorch's."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from treadle.graph.history import recording
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.errors import CAUGHT, instead_of, translated
from treadle.torch.layouts import strided
from treadle.torch.return_types import TYPES
from treadle.torch.tensors import NotDense, Tensor, unwrapped, wrap, wrapped
from treadle.torch.writing import write

Function = Callable[..., Any]


def adapted(function: Function, name: str = "") -> Function:
    """A function of treadle's tensors as one of PyTorch's. `name`: the function's, as that of the
    tuples that it returns, if it does."""
    kind = TYPES.get(name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = [each._inner if type(each) is Tensor else unwrapped(each) for each in args]
            named = {key: unwrapped(each) for key, each in kwargs.items()} if kwargs else kwargs
        except NotDense:
            return _sparse(function, args, kwargs)
        if named and not named.keys().isdisjoint(_RARE):
            if not _is_dense(named.get("layout")):
                return _sparse(function, args, kwargs)
            named = _renamed(function, named)
        try:
            result = function(*given, **named)
        except CAUGHT as error:
            raise instead_of(error, [*given, *named.values()], function.__name__) from None
        if type(result) is not Inner:
            shown = wrapped(result)
            if not hasattr(shown, "_fields"):
                return shown
            return tuple(shown) if kind is None else kind(*shown)
        # What is unchanged, or changed in place, is the same object.
        return args[0] if given and result is given[0] else wrap(result)

    return call


def public(function: Function, module: str, name: str, *, has_out: bool = False) -> Function:
    """The function of a module: its name is by what it is pickled."""
    returned = f"linalg_{name}" if module.endswith(".linalg") else name
    found = (with_out if has_out else adapted)(function, returned)
    found.__module__, found.__name__, found.__qualname__ = module, name, name
    return found


def _sparse(function: Function, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function makes of arguments of which some are sparse tensors."""
    call = import_module("treadle.torch.sparse.dispatch").call  # which programs rarely need
    if not kwargs.keys().isdisjoint(_NUMPYS):
        kwargs = _renamed(function, kwargs)
    return call(function.__name__.strip("_"), *args, **kwargs)


# NumPy's names of parameters, which PyTorch takes for its own.
_NUMPYS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input",
           "x2": "other"}  # fmt: skip
_RARE = {*_NUMPYS, "layout"}


def _is_dense(layout: Any) -> bool:
    return layout is None or layout is strided


def _renamed(function: Function, kwargs: dict[str, Any]) -> dict[str, Any]:
    known = inspect.signature(function).parameters
    return {
        key if key in known or key not in _NUMPYS else _NUMPYS[key]: each
        for key, each in kwargs.items()
    }


def with_out(function: Function, name: str = "") -> Function:
    """The same with the keyword `out`: a tensor, or a tuple of as many as there are results, which
    get the results."""
    inner = adapted(function, name)

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
        try:
            inner = self._inner
        except NotDense:
            operators = import_module("treadle.torch.sparse.operators")
            return operators.in_place(function.__name__.strip("_"))(self, *args, **kwargs)  # type: ignore[no-any-return]
        try:
            given = [unwrapped(each) for each in args]
            named = {key: unwrapped(each) for key, each in kwargs.items()}
        except NotDense:
            is_recorded = recording.get() and inner.requires_grad
            before = wrap(inner.copied() if is_recorded else inner)
            write(inner, _sparse(function, (before, *args), kwargs)._inner)
            return self
        old = inner
        try:
            # The derivative may need the old elements: it gets a copy of them.
            if recording.get() and inner.requires_grad:
                old, given, named = _copied(inner, given, named)
            result = function(old, *given, **named)
            if old is inner and inner._is_kept_by(result):
                old, given, named = _copied(inner, given, named)
                result = function(old, *given, **named)
            if _is_new(result, inner, (old, *given, *named.values())):
                inner._write(result._node)
            else:
                write(inner, result)
        except CAUGHT as error:
            raise instead_of(error, [*given, *named.values()], function.__name__) from None
        return self

    return call


def _copied(
    inner: Inner, given: list[Any], named: dict[str, Any]
) -> tuple[Inner, list[Any], dict[str, Any]]:
    """A copy of a tensor, also in its place among the arguments."""
    old = inner.copied()
    arguments = [old if each is inner else each for each in given]
    return old, arguments, {key: old if each is inner else each for key, each in named.items()}


def _is_new(result: Inner, place: Inner, given: tuple[Any, ...]) -> bool:
    """Whether a result fits a place as it is, and nothing else has it: it need not be copied."""
    if result._view is not None or result._boundary is not None or place._boundary is not None:
        return False
    cell = result._cell
    node = cell.value
    return (
        node.dtype is place.dtype
        and node.device is place.device
        and node.shape == place.shape
        and bool(node.size)
        and node.array is None
        and not any(type(each) is Inner and each._cell is cell for each in given)
    )


def shown(function: Function) -> Function:
    """The method `name_` of a function whose result is a view: the tensor becomes that view."""

    @functools.wraps(function)
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        try:
            self._inner = function(self._inner, *args, **kwargs)
        except CAUGHT as error:
            raise translated(error) from None
        return self

    return call
