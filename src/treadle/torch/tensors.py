"""`treadle.torch.Tensor`: a tensor of treadle with PyTorch's attributes, methods and operators.

It holds the tensor of treadle and nothing else, so that both see the same elements, history and
gradient: `x.td` is the tensor of treadle, and `wrap(t)` shows one of treadle's as PyTorch's.
Functions in `operations` compute with treadle's tensors; `adapting` hands them the arguments
unwrapped and wraps what they return; `table` says which of them are functions and methods here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from treadle.tensor.tensor import Tensor as Inner
from treadle.torch import methods
from treadle.torch.declarations import Declarations


class NotDense(NotImplementedError):
    """A sparse tensor where a dense one is taken. (A NotImplementedError is a RuntimeError.)"""


class Tensor(Declarations):
    """A tensor with PyTorch's interface, over a tensor of treadle.

    >>> import treadle.torch as torch
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.size(0), x.view(-1).tolist()
    (2, [1.0, 2.0, 3.0, 4.0])
    """

    __slots__ = ("__dict__", "__weakref__", "_inner")

    _inner: Inner
    _traced_inside: ClassVar[str] = "_inner"  # what traces of functions look at

    @property
    def td(self) -> Inner:
        """The tensor of treadle: the same elements, history and gradient."""
        return self._inner

    def __new__(cls, *data: Any, device: Any = None) -> Tensor:
        """`torch.Tensor(2, 3)` has undefined elements of the default dtype, `torch.Tensor([1, 2])`
        these."""
        legacy = import_module("treadle.torch.legacy")  # which is above
        made = object.__new__(cls)
        made._inner = legacy.inner_of(data, None, device)
        return made

    def __getattr__(self, name: str) -> Any:
        from treadle.torch.lacking import missing

        advice = missing(f"Tensor.{name}")
        raise AttributeError(
            f"'Tensor' object has no attribute {name!r}" + (f": {advice}" if advice else ""),
            name=name,
            obj=self,
        )

    __hash__ = object.__hash__
    # NumPy's arrays and scalars leave `array * tensor` to the tensor.
    __array_priority__ = 1000


_new = object.__new__


def wrap(inner: Inner) -> Tensor:
    """A tensor of treadle as PyTorch's. TypeError for anything else."""
    if type(inner) is not Inner:
        raise TypeError(
            f"wrap takes a tensor of treadle, not {type(inner).__module__}.{type(inner).__name__}: "
            "torch.as_tensor makes tensors of arrays"
        )
    made: Tensor = _new(Tensor)
    made._inner = inner
    return made


# The wrappers of tensors that are asked for again and again, by the tensors' ids: parameters,
# buffers, gradients. Who asks twice gets one object, as in PyTorch.
_kept: WeakValueDictionary[int, Tensor] = WeakValueDictionary()


def keep(made: Tensor) -> Tensor:
    """Have `kept` find this wrapper."""
    _kept[id(made._inner)] = made
    return made


def kept(inner: Inner) -> Tensor:
    """The one wrapper of a tensor that has an identity."""
    known = _kept.get(id(inner))
    # `x.data = y` gives a wrapper another tensor.
    return keep(wrap(inner)) if known is None or known._inner is not inner else known


def unwrapped(value: Any) -> Any:
    """Arguments of PyTorch's as treadle's: tensors, also within lists, tuples, dicts and slices."""
    kind = type(value)
    if kind is Tensor:
        return value._inner
    if kind is tuple or kind is list:
        return kind([unwrapped(each) for each in value])
    if kind is dict:
        return {key: unwrapped(each) for key, each in value.items()}
    if kind is slice:
        return slice(unwrapped(value.start), unwrapped(value.stop), unwrapped(value.step))
    if isinstance(value, tuple):
        parts = [unwrapped(each) for each in value]
        return kind(*parts) if hasattr(value, "_fields") else kind(parts)
    if isinstance(value, dict):
        return _like(value, unwrapped)
    return value._inner if isinstance(value, Tensor) else value


def _like(mapping: dict[Any, Any], change: Callable[[Any], Any]) -> Any:
    """A dict of another class with its values changed."""
    made = copy.copy(mapping)
    for key, value in mapping.items():
        made[key] = change(value)
    return made


def wrapped(value: Any) -> Any:
    """Results of treadle's as PyTorch's."""
    kind = type(value)
    if kind is Inner:
        return wrap(value)
    if kind is tuple or kind is list:
        return kind([wrapped(each) for each in value])
    if kind is dict:
        return {key: wrapped(each) for key, each in value.items()}
    if isinstance(value, tuple):
        parts = [wrapped(each) for each in value]
        return kind(*parts) if hasattr(value, "_fields") else kind(parts)
    return _like(value, wrapped) if isinstance(value, dict) else value


methods.add_to(Tensor)
