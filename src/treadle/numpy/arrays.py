"""`np.ndarray` and `np.generic`: tensors of treadle with NumPy's attributes, methods and operators.

Both hold a tensor of treadle and nothing else. What NumPy returns as a scalar (`x[0]`, `x.sum()`)
is a `generic` here: an element on the device, which is computed when it is needed, as other values
are, and which is never written to. `x.td` is the tensor, and `wrap(t)` shows one of treadle's as an
array. Functions in `operations` compute with tensors; `adapting` hands them the arguments unwrapped
and wraps what they return.
"""

from __future__ import annotations

import operator
from importlib import import_module
from typing import Any

from treadle.numpy import methods
from treadle.numpy.declarations import Declarations
from treadle.tensor.tensor import Tensor as Inner


class Values(Declarations):
    """What arrays and their elements have in common."""

    __slots__ = ("__weakref__", "_inner")

    _inner: Inner
    __array_priority__ = 100.0

    @property
    def td(self) -> Inner:
        """The tensor of treadle: the same elements."""
        return self._inner


class ndarray(Values):
    """An array of NumPy's interface, over a tensor of treadle. Made by `np.array`, `np.zeros`, ….

    >>> import treadle.numpy as np
    >>> x = np.array([[1, 2], [3, 4]])
    >>> x.T.tolist(), x.mean(axis=0)
    ([[1, 3], [2, 4]], array([2., 3.]))
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __new__(cls, shape: Any, dtype: Any = float, **keywords: Any) -> ndarray:
        """An array with undefined contents, as NumPy's class makes it."""
        if keywords:
            raise TypeError("ndarray takes a shape and a dtype: use np.frombuffer for a buffer")
        made: ndarray = import_module("treadle.numpy.functions").empty(shape, dtype)
        return made


class generic(Values):
    """An element on its device, where NumPy has a scalar: read-only, computed when it is needed.

    >>> import treadle.numpy as np
    >>> x = np.arange(4.0)
    >>> x[3], float(x.sum()), f"{x.mean():.2f}"
    (np.float64(3.0), 6.0, '1.50')
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(self._inner.item())


def wrap(inner: Inner) -> ndarray:
    """A tensor of treadle as an array."""
    made: ndarray = object.__new__(ndarray)
    made._inner = inner
    return made


def value_of(inner: Inner) -> Any:
    """A tensor of treadle as a result of NumPy's: without axes it is an element."""
    made: Any = object.__new__(ndarray if inner.shape else generic)
    made._inner = inner
    return made


def unwrapped(value: Any) -> Any:
    """Arguments of NumPy's as treadle's: arrays, also within lists, tuples, dicts and slices."""
    kind = type(value)
    if kind is ndarray or kind is generic:
        return value._inner
    if kind is tuple or kind is list:
        return kind([unwrapped(each) for each in value])
    if kind is dict:
        return {key: unwrapped(each) for key, each in value.items()}
    if kind is slice:
        return slice(_bound(value.start), _bound(value.stop), _bound(value.step))
    if isinstance(value, Values):
        return value._inner
    return value


def _bound(value: Any) -> Any:
    return value if value is None else operator.index(value)


def wrapped(value: Any, make: Any = wrap) -> Any:
    """Results of treadle's as NumPy's; `make` is `wrap` or `value_of`."""
    kind = type(value)
    if kind is Inner:
        return make(value)
    if kind is tuple or kind is list:
        return kind([wrapped(each, make) for each in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*[wrapped(each, make) for each in value])
    return value


methods.add_to(Values, ndarray)
