"""Python's operators on sparse tensors, and what they cannot be."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import treadle as td
from treadle.torch.sparse import printing
from treadle.torch.sparse.dispatch import call
from treadle.torch.sparse.tensors import SparseTensor, sparse
from treadle.torch.tensors import Tensor, wrap

_OPERANDS = (Tensor, bool, int, float, complex, np.generic)


def _operand(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return wrap(td.asarray(value, device="cpu"))
    return value if isinstance(value, _OPERANDS) else None


def _binary(name: str, is_reflected: bool = False) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if (other := _operand(other)) is None:
            return NotImplemented
        return call(name, other, self) if is_reflected else call(name, self, other)

    return method


def in_place(name: str) -> Any:
    """A function's result in the place of its first operand, which is sparse."""

    def method(self: SparseTensor, *args: Any, **kwargs: Any) -> Any:
        if self.requires_grad and self._is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        made = call(name, self, *args, **kwargs)
        if not isinstance(made, SparseTensor) or made.shape != self.shape:
            raise RuntimeError(f"{name}_: the result is not a sparse tensor of this shape")
        self._pattern = made._pattern
        self._elements = made._elements.to(self.dtype)
        return self

    return method


def _deepcopy(self: SparseTensor, memo: dict[int, Any]) -> SparseTensor:
    known = memo.get(id(self))
    if known is None:
        elements = self._elements.__deepcopy__(memo)
        known = memo[id(self)] = sparse(self._pattern, elements, self._layout, self._is_leaf)
    return known


def _refused(error: type[Exception], words: str) -> Any:
    def method(self: SparseTensor, *args: Any, **kwargs: Any) -> Any:
        raise error(words)

    return method


def _reduced(self: SparseTensor, protocol: Any) -> tuple[Any, ...]:
    pickling = import_module("treadle.torch.sparse.pickling")  # which few programs need
    return pickling.rebuilt, pickling.parts(self)


_NUMPY = "can't convert sparse tensors to NumPy or numbers: x.to_dense() is the dense one"
OPERATORS: dict[str, Any] = {
    "__add__": _binary("add"), "__radd__": _binary("add", True),
    "__sub__": _binary("sub"), "__rsub__": _binary("sub", True),
    "__mul__": _binary("mul"), "__rmul__": _binary("mul", True),
    "__truediv__": _binary("div"), "__pow__": _binary("pow"),
    "__matmul__": _binary("matmul"), "__rmatmul__": _binary("matmul", True),
    "__iadd__": in_place("add"), "__isub__": in_place("sub"), "__imul__": in_place("mul"),
    "__itruediv__": in_place("div"),
    "__getitem__": lambda self, index: call("select", self, 0, index),
    "__bool__": _refused(RuntimeError, "Boolean value of a sparse tensor is ambiguous"),
    "__len__": lambda self: self.shape[0],
    "__iter__": lambda self: iter([call("select", self, 0, at) for at in range(self.shape[0])]),
    "__deepcopy__": _deepcopy,
    "__reduce_ex__": _reduced,
    "__array__": _refused(TypeError, _NUMPY), "numpy": _refused(TypeError, _NUMPY),
    "item": _refused(RuntimeError, _NUMPY), "tolist": _refused(TypeError, _NUMPY),
    "__repr__": lambda self, *, tensor_contents=None: printing.text(self),
    "__format__": object.__format__,
}  # fmt: skip
