"""Attributes and methods of tensors that have no function of the same name."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.tensor.autograd_methods import Boundary
from treadle.tensor.computed_views import owner
from treadle.tensor.tensor import Tensor as Inner
from treadle.tensor.tensor import from_cell
from treadle.torch.devices import device as Device
from treadle.torch.errors import CAUGHT, kind_of, translated
from treadle.torch.layouts import Size
from treadle.torch.operations import complexes, shapes
from treadle.torch.tensors import Tensor, kept, unwrapped, wrap


def shape(self: Tensor) -> Size:
    """The extents, by axes."""
    return Size(self._inner.shape)


def size(self: Tensor, dim: int | None = None) -> Any:
    """The extents, or one of them. IndexError if there is no such axis."""
    found = self._inner.shape
    if dim is None:
        return Size(found)
    count = len(found)
    if not -count <= dim < count:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got "
            f"{dim})"
        )
    return found[dim]


def stride(self: Tensor, dim: int | None = None) -> Any:
    """The distances between elements along the axes, in elements; or one of them."""
    found = self._inner.strides
    return found if dim is None else found[dim]


def dtype(self: Tensor) -> DType:
    """The dtype of the elements."""
    return self._inner.dtype


def device(self: Tensor) -> Device:
    """Where the elements are."""
    return Device(self._inner.device)


def ndim(self: Tensor) -> int:
    """The number of axes."""
    return len(self._inner.shape)


def dim(self: Tensor) -> int:
    """The number of axes."""
    return len(self._inner.shape)


def numel(self: Tensor) -> int:
    """The number of elements."""
    return self._inner.size


def item(self: Tensor) -> Any:
    """The only element, as a Python number. RuntimeError if there is not exactly one."""
    if self._inner.size != 1:
        raise RuntimeError(
            f"a Tensor with {self._inner.size} elements cannot be converted to Scalar"
        )
    return self._inner.item()


def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers."""
    return self._inner.tolist()


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """The elements as a NumPy array: on the CPU the same memory, so that what is written into one
    is seen in the other; elsewhere a copy. RuntimeError for a tensor that requires gradients,
    unless `force`."""
    if self._inner.requires_grad and not force:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    return shared(self._inner)


def shared(inner: Inner) -> np.ndarray[Any, Any]:
    """The elements as a NumPy array: on the CPU their memory itself, elsewhere a copy."""
    return inner.__array__() if inner.device.traits.host_memory else inner.numpy()


def T(self: Tensor) -> Tensor:
    """A view with all axes in reverse order."""
    return wrap(shapes.reversed_axes(self._inner))


def mT(self: Tensor) -> Tensor:
    """A view with the last two axes exchanged."""
    return wrap(shapes.matrix_transpose(self._inner))


def H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    return wrap(shapes.hermitian(self._inner))


def mH(self: Tensor) -> Tensor:
    """The last two axes exchanged, and conjugated."""
    return wrap(shapes.adjoint(self._inner))


# --- gradients -----------------------------------------------------------------------------------


def _grad(self: Tensor) -> Tensor | None:
    """The gradient that backward passes have accumulated, or None."""
    found = self._inner.grad
    return None if found is None else kept(found)


def _set_grad(self: Tensor, value: Tensor | None) -> None:
    if value is not None and not isinstance(value, Tensor):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type {kind_of(value)}"
        )
    try:
        self._inner.grad = unwrapped(value)
    except CAUGHT as error:
        raise translated(error) from None


def _requires_grad(self: Tensor) -> bool:
    """Whether operations on the tensor are recorded for gradients."""
    return self._inner.requires_grad


def _set_requires_grad(self: Tensor, value: bool) -> None:
    try:
        self._inner.requires_grad_(value)
    except CAUGHT as error:
        raise translated(error) from None


def _data(self: Tensor) -> Tensor:
    """The same elements without history."""
    return wrap(self._inner.detach())


def _set_data(self: Tensor, value: Tensor) -> None:
    inner, given = self._inner, value._inner
    if inner._own_leaf is None and inner._history is None:
        # A tensor that no history knows takes on any other's memory, of another shape as well.
        inner._cell, inner._view, inner._seen = given._cell, given._view, None
        inner._boundary = None if given._history is None else Boundary(None)
        return
    inner.data = given


grad = property(_grad, _set_grad)
requires_grad = property(_requires_grad, _set_requires_grad)
data = property(_data, _set_data)


def is_leaf(self: Tensor) -> bool:
    """Whether the tensor was not computed from tensors that require gradients."""
    return self._inner.is_leaf


# Names of derivatives as PyTorch has them; others are written alike.
_BACKWARD = {
    "a product of arrays": "Mm", "assembled": "Cat", "clip": "Clamp", "divide": "Div",
    "cast": "ToCopy", "copy": "Clone", "linear": "Addmm", "moved": "ToCopy", "multiply": "Mul",
    "negative": "Neg", "subtract": "Sub", "square": "Pow", "norm_along": "LinalgVectorNorm",
    "cumulative_sum": "Cumsum", "gather_rows": "Embedding", "standardized": "NativeLayerNorm",
    "standardized_channels": "NativeBatchNorm", "kept_scaled": "Mul", "cross_entropy": "NllLoss",
    "leaky_relu_by_result": "LeakyRelu", "leaky_relu_by_input": "LeakyRelu",
}  # fmt: skip


class GradientFunction:
    """What computed a tensor that requires gradients, for looking at: each kind is a class."""

    __slots__ = ("_history",)

    def __init__(self, history: Any) -> None:
        self._history = history

    def name(self) -> str:
        """Its name, as "MulBackward0"."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[GradientFunction | None, int], ...]:
        """What computed each of its operands; None for those without gradients."""
        return tuple(
            (None if each is None else _gradient_function(each, each.derivative.name), 0)
            for each in self._history.edges
        )

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self._history):#x}>"


def _gradient_function(history: Any, known: str) -> GradientFunction:
    if getattr(history.derivative, "is_by_users", False):
        kind = _kind(f"{known}Backward")
    elif known == "a leaf":
        kind = _kind("AccumulateGrad")
    else:
        words = known.removeprefix("reduce ").replace("_", " ").split()
        plain = (
            _BACKWARD.get(known)
            or _BACKWARD.get("_".join(words))
            or "".join(each.capitalize() for each in words)
        )
        kind = _kind(f"{plain}Backward0")
    return kind(history)


@functools.cache
def _kind(name: str) -> type[GradientFunction]:
    return type(name, (GradientFunction,), {"__slots__": ()})


def grad_fn(self: Tensor) -> GradientFunction | None:
    """What computed the tensor, if it is recorded; None for leaves."""
    inner = self._inner
    if inner.is_leaf:
        return None
    history: Any = inner._history
    known = "view" if inner._node.op == "view" else history.derivative.name
    return _gradient_function(history, known)


def _version(self: Tensor) -> int:
    """How often the memory has been written in place, through this tensor or others."""
    return owner(self._inner)._cell.writes


def _base(self: Tensor) -> Tensor | None:
    """The tensor of all of the memory that this one is a part of; None if it is all of it."""
    inner = self._inner
    if inner._cell.base is not None:
        return wrap(inner._cell.base)
    return None if inner._view is None else wrap(from_cell(inner._cell, None))


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Record operations on the tensor from here on, or don't. Returns the tensor."""
    _set_requires_grad(self, requires_grad)
    return self


def detach(self: Tensor) -> Tensor:
    """The same elements, cut off from gradients."""
    return wrap(self._inner.detach())


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of this tensor to the `grad` of the leaves that it was computed from."""
    try:
        self._inner.backward(
            unwrapped(gradient),
            retain_graph=create_graph if retain_graph is None else retain_graph,
            create_graph=create_graph,
            **({} if inputs is None else {"inputs": unwrapped(inputs)}),
        )
    except CAUGHT as error:
        raise translated(error) from None


# --- parts of complex numbers --------------------------------------------------------------------


def _set_part(name: str) -> Any:
    part = getattr(complexes, name)

    def write(self: Tensor, value: Any) -> None:
        inner = self._inner
        if not inner.dtype.is_complex:
            if name == "imag":
                raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
            inner[...] = unwrapped(value)
            return
        part(inner)[...] = unwrapped(value)

    return write


def _part(name: str) -> property:
    part = getattr(complexes, name)

    def read(self: Tensor) -> Tensor:
        inner = self._inner
        found = part(inner)
        return self if found is inner else wrap(found)

    read.__doc__ = part.__doc__
    return property(read, _set_part(name))


PARTS = {name: _part(name) for name in ("real", "imag")}


def is_tensor(obj: Any) -> bool:
    """Whether it is a tensor.

    >>> import treadle.torch as torch
    >>> torch.is_tensor(torch.ones(2)), torch.is_tensor([1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


def typename(obj: Any) -> str:
    """The name of a value's class; of a tensor that of PyTorch's class for its dtype."""
    return obj.type() if isinstance(obj, Tensor) else type(obj).__qualname__


# --- hooks ---------------------------------------------------------------------------------------


def register_hook(self: Tensor, hook: Any) -> Any:
    """Have `hook(grad)` called with the gradient of this tensor; what it returns, if not None, is
    used instead. `remove()` of the result ends that. RuntimeError if the tensor requires none."""
    if not self._inner.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return self._inner.register_hook(lambda gradient: unwrapped(hook(wrap(gradient))))


def register_post_accumulate_grad_hook(self: Tensor, hook: Any) -> Any:
    """Have `hook(tensor)` called when the gradient of this leaf has been accumulated."""
    return self._inner.register_post_accumulate_grad_hook(lambda _: hook(self))


def retain_grad(self: Tensor) -> None:
    """Have backward passes keep the gradient of this tensor, which is not a leaf, in `grad`."""
    if not self._inner.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if not self._inner.is_leaf:
        self._inner.retain_grad()


def retains_grad(self: Tensor) -> bool:
    """Whether backward passes keep the gradient of this tensor, though it is not a leaf."""
    return not self._inner.is_leaf and bool(getattr(self._inner, "retains_grad", False))
