"""Python's operators on tensors.

Two tensors of one dtype take the short way: no promotion, no table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from treadle.core.errors import ShapeError
from treadle.tensor.elementwise_functions import apply
from treadle.torch import adapting
from treadle.torch.errors import TorchShapeError
from treadle.torch.operations import indexing, pointwise
from treadle.torch.tensors import Tensor, unwrapped, wrap

_NUMBERS = (bool, int, float, complex, np.generic)


def _binary(name: str, function: Callable[..., Any], *, is_reflected: bool = False) -> Any:
    general = adapting.adapted(function)

    def method(self: Tensor, other: Any) -> Any:
        if type(other) is Tensor:
            one, two = self._inner, other._inner
            if name and one.dtype is two.dtype:
                try:
                    return wrap(apply(name, one, two))
                except ShapeError as error:
                    raise TorchShapeError.of(error) from None
        elif not isinstance(other, _NUMBERS):
            return NotImplemented
        return general(other, self) if is_reflected else general(self, other)

    return method


_BINARY = {
    "add": ("add", pointwise.add), "sub": ("subtract", pointwise.sub),
    "mul": ("multiply", pointwise.mul), "truediv": ("", pointwise.div),
}  # fmt: skip
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip


def _item(self: Tensor) -> Any:
    if self._inner.size != 1:
        raise RuntimeError(
            f"a Tensor with {self._inner.size} elements cannot be converted to Scalar"
        )
    return self._inner.item()


def _bool(self: Tensor) -> bool:
    if self._inner.size != 1:
        what = "more than one value" if self._inner.size else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(self._inner.item())


def _iter(self: Tensor) -> Iterator[Tensor]:
    if not self._inner.shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter([wrap(self._inner[index]) for index in range(len(self._inner))])


def _getitem(self: Tensor, index: Any) -> Tensor:
    return wrap(indexing.getitem(self._inner, unwrapped(index)))


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    try:
        indexing.setitem(self._inner, unwrapped(index), unwrapped(value))
    except ShapeError as error:
        raise TorchShapeError.of(error) from None


def _repr(self: Tensor) -> str:
    return repr(self._inner)


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    return np.asarray(self._inner.numpy(), dtype)


OPERATORS: dict[str, Any] = {
    **{f"__{name}__": _binary(*each) for name, each in _BINARY.items()},
    **{f"__r{name}__": _binary("", each[1], is_reflected=True) for name, each in _BINARY.items()},
    **{f"__i{name}__": adapting.in_place(each[1]) for name, each in _BINARY.items()},
    **{
        f"__{name}__": _binary(theirs, pointwise.FUNCTIONS[name])
        for name, theirs in _COMPARISONS.items()
    },
    "__neg__": adapting.adapted(pointwise.FUNCTIONS["neg"]),
    "__abs__": adapting.adapted(pointwise.FUNCTIONS["abs"]),
    "__bool__": _bool,
    "__float__": lambda self: float(_item(self)),
    "__int__": lambda self: int(_item(self)),
    "__len__": lambda self: len(self._inner),
    "__iter__": _iter,
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "__repr__": _repr,
    "__array__": _array,
}
