"""`Parameter`: what a module learns.

A parameter is a plain tensor, so that everything that takes tensors takes it; what makes it a
parameter is a mark on its leaf, where backward passes leave its gradient.
"""

from __future__ import annotations

from typing import Any

from treadle.graph import views
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.tensor import Tensor, from_cell


class _IsParameter(type):
    """Whether a tensor is a parameter is said by its leaf, not by its class."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is Tensor and is_parameter(instance)


def is_parameter(tensor: Tensor) -> bool:
    """Whether a tensor is a parameter, rather than a view of one, or computed from one."""
    leaf = tensor._own_leaf
    return leaf is not None and leaf.is_parameter


class Parameter(Tensor, metaclass=_IsParameter):
    """A tensor that a module learns: assigned to an attribute of a `Module`, it is one of the
    module's `parameters()`.

    It shares the memory of `data` if it is all of a tensor's memory; a part of a tensor, numbers
    and arrays of other libraries are copied. A parameter that does not require gradients
    (`requires_grad=False` or `p.requires_grad_(False)`) stays a parameter.

    >>> import treadle as td
    >>> weight = td.nn.Parameter(td.ones(3, device="cpu"))
    >>> isinstance(weight, td.nn.Parameter), isinstance(weight * 2, td.nn.Parameter)
    (True, False)
    >>> weight.requires_grad
    True
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        """The marked tensor."""
        if data is None:
            data = zeros(0)
        found = data if isinstance(data, Tensor) else asarray(data)
        if views.is_whole(found._where, found._cell.value.shape):
            made = from_cell(found._cell, None)
        else:
            made = found.detach().copied()
        made._begin(True, requires_grad)
        return made  # type: ignore[return-value]
