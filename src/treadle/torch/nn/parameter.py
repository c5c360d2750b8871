"""`torch.nn.Parameter` and `torch.nn.Buffer`: tensors that modules take on when assigned."""

from __future__ import annotations

from typing import Any

from treadle.graph.views import is_whole
from treadle.nn.parameter import Parameter as InnerParameter
from treadle.nn.parameter import is_parameter
from treadle.tensor.creation import zeros
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.devices import place
from treadle.torch.dtypes import get_default_dtype
from treadle.torch.errors import kind_of, of_another_library
from treadle.torch.tensors import Tensor, keep, wrap


class _IsParameter(type):
    """Whether a tensor is a parameter is said by treadle's tensor that it shows."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is Tensor and is_parameter(instance._inner)


class Parameter(Tensor, metaclass=_IsParameter):
    """A tensor that a module learns: assigned to an attribute of a `Module`, it is one of the
    module's `parameters()`. It shares the memory of `data`.

    >>> import treadle.torch as torch
    >>> weight = torch.nn.Parameter(torch.zeros(3))
    >>> isinstance(weight, torch.nn.Parameter), weight.requires_grad
    (True, True)
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """The tensor, of PyTorch's interface, that is marked as a parameter."""
        if data is None:
            inner = zeros(0, dtype=get_default_dtype(), device=place())
        elif isinstance(data, Tensor):
            inner = data._inner
        else:
            raise of_another_library([data], "Parameter") or TypeError(
                f"a parameter is made of a tensor, not of a {kind_of(data)}: write "
                "torch.nn.Parameter(torch.tensor(…))"
            )
        if requires_grad and inner.dtype.kind not in ("float", "complex"):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        if is_whole(inner._where, inner._cell.value.shape):
            made: Inner = InnerParameter(inner, requires_grad)
        else:
            made = inner._seen_again()
            made._begin(True, requires_grad)
        return keep(wrap(made))  # type: ignore[return-value]


class _IsBuffer(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is Tensor and "_is_persistent_buffer" in instance.__dict__


class Buffer(Tensor, metaclass=_IsBuffer):
    """A tensor that belongs to a module and is not learned: assigned to an attribute of a `Module`,
    it is one of the module's `buffers()`, and in its state dict if it is `persistent`."""

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        """The tensor, marked as a buffer."""
        inner = zeros(0, dtype=get_default_dtype(), device=place()) if data is None else data._inner
        made = keep(wrap(inner.detach()))
        made.__dict__["_is_persistent_buffer"] = persistent
        return made  # type: ignore[return-value]
