"""`np.ndarray` and its elements: tensors of treadle with NumPy's attributes, methods and operators.

Both hold a tensor of treadle and nothing else. What NumPy returns as a scalar (`x[0]`, `x.sum()`)
is NumPy's own scalar where memory is the process's own, as on the CPU. A GPU would have to be
waited for, so there it is an `Element` of the device, which is computed when it is needed, as other
values are, and which is never written to. `x.td` is the tensor, and `wrap(t)` shows one of
treadle's as an array. Functions in `operations` compute with tensors; `adapting` hands
them the arguments unwrapped and wraps what they return.
"""

from __future__ import annotations

import operator
from importlib import import_module
from types import GenericAlias
from typing import Any

import numpy as np

from treadle.core.dtypes import ALL_DTYPES
from treadle.graph.placeholders import within
from treadle.numpy import methods
from treadle.numpy.declarations import Declarations
from treadle.tensor.compiled.tracing import is_tracing
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
    __class_getitem__: Any = classmethod(GenericAlias)  # for annotations

    def __new__(cls, shape: Any, dtype: Any = float, **keywords: Any) -> ndarray:
        """An array with undefined contents, as NumPy's class makes it."""
        if keywords:
            raise TypeError("ndarray takes a shape and a dtype: use np.frombuffer for a buffer")
        made: ndarray = import_module("treadle.numpy.functions").empty(shape, dtype)
        return made


class Element(Values):
    """An element on its device, where NumPy has a scalar: read-only, computed when it is needed.
    There is a class of them for each dtype, which `isinstance` takes for NumPy's: `np.float64`, and
    so `float`.
    """

    __slots__ = ()

    def __new__(cls, *args: Any) -> Any:
        """A scalar of NumPy's: `type(x.sum())(3)` is `np.float64(3)`."""
        return _SCALARS[cls.__name__](*args)

    def __hash__(self) -> int:
        return hash(self._inner.item())

    def __getattr__(self, name: str) -> Any:
        """What only NumPy's scalars have, such as `as_integer_ratio`: of the number, read."""
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(scalar(self._inner), name)


def _element_class(kind: type[np.generic]) -> type[Element]:
    names = {"__slots__": (), "__class__": property(lambda self: kind), "__module__": __name__}
    return type(kind.__name__, (Element,), names)


# By names of dtypes: NumPy's scalars, and the classes of elements on devices.
_SCALARS = {each.name: each.numpy.type for each in ALL_DTYPES if each.name != "bfloat16"}
_ELEMENTS = {name: _element_class(kind) for name, kind in _SCALARS.items()}
_OTHERS = _element_class(np.generic)  # type: ignore[type-abstract]
HELD: frozenset[type] = frozenset([ndarray, _OTHERS, *_ELEMENTS.values()])


def is_read_at_once(inner: Inner) -> bool:
    """Whether the number of a tensor is known without waiting for a device, and nothing else is to
    be known of it, as its history."""
    node = inner._cell.value
    if node.history is not None or not node.device.traits.host_memory:
        return False
    return node.dtype.name in _SCALARS and within.get() is None and not is_tracing.get()


def scalar(inner: Inner) -> Any:
    """The number of a tensor as NumPy's scalar: it is read."""
    return _SCALARS[inner.dtype.name](inner.item())


def wrap(inner: Inner) -> ndarray:
    """A tensor of treadle as an array."""
    made: ndarray = object.__new__(ndarray)
    made._inner = inner
    return made


def value_of(inner: Inner) -> Any:
    """A tensor of treadle as a result of NumPy's: without axes it is an element."""
    if not inner.shape and is_read_at_once(inner):
        return scalar(inner)
    kind: Any = ndarray if inner.shape else _ELEMENTS.get(inner.dtype.name, _OTHERS)
    made: Any = object.__new__(kind)
    made._inner = inner
    return made


def result_of(inner: Inner) -> Any:
    """The same, short for results that have axes."""
    if not inner.shape:
        return value_of(inner)
    made: ndarray = _new(ndarray)
    made._inner = inner
    return made


_new = object.__new__


def unwrapped(value: Any) -> Any:
    """Arguments of NumPy's as treadle's: arrays, also within lists, tuples, dicts and slices."""
    kind = type(value)
    if kind in HELD:
        return value._inner
    if kind is tuple or kind is list:
        return kind([each._inner if type(each) is ndarray else unwrapped(each) for each in value])
    if kind is dict:
        return {key: unwrapped(each) for key, each in value.items()}
    if kind is slice:
        return slice(_bound(value.start), _bound(value.stop), _bound(value.step))
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
