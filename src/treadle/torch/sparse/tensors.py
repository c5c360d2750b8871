"""Sparse tensors: a pattern and the elements there. They are tensors of `treadle.torch` without a
dense tensor of treadle inside, so functions that do not know them refuse them by name."""

from __future__ import annotations

from typing import Any

from treadle.core.deferred_imports import DeferredAttribute
from treadle.core.dtypes import DType
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch import attributes
from treadle.torch.devices import device as Device
from treadle.torch.layouts import Size, layout, sparse_coo, sparse_csc, sparse_csr
from treadle.torch.sparse.patterns import Pattern
from treadle.torch.tensors import NotDense, Tensor, wrap

# What is computed elsewhere, and imported when it is first used.
_METHODS = {
    "treadle.torch.sparse.operators:OPERATORS": (
        "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __pow__ __matmul__ "
        "__rmatmul__ __iadd__ __isub__ __imul__ __itruediv__ __getitem__ __bool__ __len__ __iter__ "
        "__deepcopy__ __reduce_ex__ __array__ __repr__ __format__ numpy item tolist"
    ),
    "treadle.torch.sparse.conversions:METHODS": (
        "to cpu cuda type type_as bool byte char short int long half bfloat16 float double cfloat "
        "cdouble coalesce is_coalesced indices values crow_indices col_indices ccol_indices "
        "row_indices to_dense to_sparse to_sparse_coo to_sparse_csr to_sparse_csc clone detach "
        "requires_grad_ get_device element_size"
    ),
}


class SparseTensor(Tensor):
    """A sparse tensor: `torch.sparse_coo_tensor` and `x.to_sparse()` make them.

    >>> import treadle.torch as torch
    >>> x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> x.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """

    _pattern: Pattern
    _elements: Inner  # (count, *dense axes)
    _layout: layout
    _is_leaf: bool  # it has a gradient of its own, and not the tensor that its elements came from
    _traced_inside = "_tensors"

    def __new__(cls, *data: Any, device: Any = None) -> SparseTensor:
        """TypeError: `torch.sparse_coo_tensor` makes them."""
        raise TypeError("torch.sparse_coo_tensor makes sparse tensors")

    @property
    def _inner(self) -> Any:  # type: ignore[override]
        raise NotDense("it does not take sparse tensors: x.to_dense() is the dense one")

    @property
    def _tensors(self) -> tuple[Inner, Inner]:
        return self._pattern.indices, self._elements

    # --- what it is ------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The extents, by axes."""
        return Size((*self._pattern.extents, *self._elements.shape[1:]))

    def size(self, dim: int | None = None) -> Any:
        """The extents, or one of them. IndexError if there is no such axis."""
        found = self.shape
        if dim is None:
            return found
        if not -len(found) <= dim < len(found):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-len(found)}, "
                f"{len(found) - 1}], but got {dim})"
            )
        return found[dim]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def dim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    ndimension = dim

    def numel(self) -> int:
        """The number of elements of the dense tensor."""
        return self.shape.numel()

    nelement = numel

    def sparse_dim(self) -> int:
        """The number of axes that have indices."""
        return len(self._pattern.extents)

    def dense_dim(self) -> int:
        """The number of axes of each of the values."""
        return len(self._elements.shape) - 1

    def _nnz(self) -> int:
        return self._pattern.count

    def _indices(self) -> Tensor:
        return wrap(self._pattern.indices)

    def _values(self) -> Tensor:
        return wrap(self._elements.detach())

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._elements.dtype

    @property
    def device(self) -> Device:
        """Where indices and values are."""
        return Device(self._elements.device)

    @property
    def layout(self) -> layout:
        """`torch.sparse_coo`, `sparse_csr` or `sparse_csc`."""
        return self._layout

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is `torch.sparse_coo`."""
        return self._layout is sparse_coo

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is `torch.sparse_csr`."""
        return self._layout is sparse_csr

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a CUDA device."""
        return self.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        """Whether the elements are on the CPU."""
        return self.device.type == "cpu"

    # --- gradients -------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor are recorded for gradients."""
        return self._elements.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._elements.requires_grad_(value)
        self._is_leaf = True

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was not computed from tensors that require gradients."""
        return self._is_leaf or not self._elements.requires_grad

    @property
    def grad(self) -> Tensor | None:
        """The gradient of a leaf: a sparse tensor with the same indices, or None."""
        found = self._elements.grad if self._is_leaf else None
        return None if found is None else sparse(self._pattern, found, self._layout)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, SparseTensor):
            raise RuntimeError("the gradient of a sparse tensor is a sparse tensor, or None")
        self._elements.grad = None if value is None else value._elements

    @property
    def grad_fn(self) -> attributes.GradientFunction | None:
        """What computed the tensor, if it is recorded; None for leaves."""
        return None if self.is_leaf else attributes.grad_fn(wrap(self._elements))

    @property
    def data(self) -> Tensor:
        """The same elements without history."""
        return sparse(self._pattern, self._elements.detach(), self._layout)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, SparseTensor) or value.shape != self.shape:
            raise RuntimeError("the data of a sparse tensor is a sparse tensor of its shape")
        self._pattern, self._layout = value._pattern, value._layout
        self._elements.data = value._elements

    @property
    def T(self) -> Tensor:
        """The transpose of a matrix."""
        return self.t()  # type: ignore[no-any-return]

    def __abs__(self) -> Tensor:
        return self.abs()  # type: ignore[no-any-return]

    __hash__ = object.__hash__


def sparse(
    pattern: Pattern, elements: Inner, form: layout = sparse_coo, is_leaf: bool = False
) -> SparseTensor:
    """A sparse tensor of a pattern and as many elements."""
    made: SparseTensor = object.__new__(SparseTensor)
    made._pattern, made._elements, made._layout, made._is_leaf = pattern, elements, form, is_leaf
    return made


_COMPRESSED = {sparse_csr: 0, sparse_csc: 1}


def compressed_axis(x: SparseTensor) -> int:
    """The axis that is compressed: 0 for rows."""
    return _COMPRESSED[x._layout]


def _add_methods() -> None:
    for place, names in _METHODS.items():
        for name in names.split():
            DeferredAttribute(place, name).add_to(SparseTensor, name)


_add_methods()
