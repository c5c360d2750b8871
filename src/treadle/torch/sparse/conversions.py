"""Sparse tensors in another dtype, layout or place; dense tensors as sparse ones and back."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.core.dtypes import DType
from treadle.core.limits import MOST_NARROW
from treadle.runtime.devices import Device as TheirDevice
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch import conversions as dense
from treadle.torch.devices import device as Device
from treadle.torch.devices import place
from treadle.torch.dtypes import dtype_named, integers
from treadle.torch.errors import CAUGHT, translated
from treadle.torch.layouts import layout, sparse_coo, sparse_csc, sparse_csr, strided
from treadle.torch.legacy import NAMES
from treadle.torch.sparse.patterns import Bags, Pattern
from treadle.torch.sparse.sums import merged
from treadle.torch.sparse.tensors import SparseTensor, compressed_axis, sparse
from treadle.torch.tensors import Tensor, wrap


def as_coo(x: SparseTensor) -> SparseTensor:
    """The tensor with coordinates."""
    if x._layout is sparse_coo:
        return x
    known = x._pattern
    is_ordered = x._layout is sparse_csr
    return sparse(Pattern(known.indices, known.extents, is_ordered, known.sorted_by), x._elements)


def coalesce(self: SparseTensor) -> SparseTensor:
    """The tensor with its indices in row-major order, each once: values of equal ones are added.
    How many remain is read."""
    _expect(self, sparse_coo, "coalesce")
    if self._pattern.is_coalesced:
        return self
    merge = self._pattern.merge()
    return sparse(merge.pattern, merged(self._elements, merge))


def _expect(x: Tensor, wanted: layout, name: str) -> None:
    if x.layout is not wanted:
        kind = {sparse_coo: "coordinate", sparse_csr: "row compressed"}.get(wanted, "compressed")
        raise RuntimeError(f"{name} expected sparse {kind} tensor layout but got {x.layout}")


def is_coalesced(self: SparseTensor) -> bool:
    """Whether the indices are known to be in row-major order, each once."""
    _expect(self, sparse_coo, "is_coalesced")
    return self._pattern.is_coalesced


def _coalesced(x: SparseTensor, what: str) -> SparseTensor:
    if not x._pattern.is_coalesced:
        raise RuntimeError(
            f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first"
        )
    return x


def indices(self: SparseTensor) -> Tensor:
    """The indices of a coalesced tensor: a row for each of its axes. RuntimeError for others."""
    _expect(self, sparse_coo, "indices")
    return wrap(_coalesced(self, "indices")._pattern.indices)


def values(self: SparseTensor) -> Tensor:
    """The elements at the indices. RuntimeError for a tensor that is not coalesced."""
    if not isinstance(self, SparseTensor):
        raise RuntimeError(f"values expected sparse tensor layout but got {self.layout}")
    return wrap((_coalesced(self, "values") if self.is_sparse else self)._elements)


def _compressed(wanted: layout, name: str, is_plain: bool) -> Any:
    def method(self: SparseTensor) -> Tensor:
        _expect(self, wanted, name)
        bags = self._pattern.bags(compressed_axis(self))
        dtype = self._pattern._known.get("dtype", integers(self._elements.device))
        return wrap((bags.others if is_plain else bags.starts).to(dtype))

    method.__name__ = name
    method.__doc__ = (
        "The index of each element along the other axis." if is_plain
        else "Where the elements of each row or column begin, and the end of the last."
    )  # fmt: skip
    return method


def to_dense(self: SparseTensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The dense tensor, with zeros elsewhere.

    >>> import treadle.torch as torch
    >>> torch.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,)).to_dense()
    tensor([0., 5., 0.])
    """
    x = as_coo(self)
    x = x if x._pattern.is_coalesced else coalesce(x)
    pattern, elements = x._pattern, x._elements
    if dtype is not None:
        elements = elements.to(dtype_named(dtype))
    return wrap(scattered(pattern, elements).reshape(*pattern.extents, *elements.shape[1:]))


def scattered(pattern: Pattern, elements: Inner) -> Inner:
    """The elements of a coalesced tensor in a dense one, whose sparse axes are one."""
    count = 1
    for extent in pattern.extents:
        count *= extent
    zeros = td.zeros((count, *elements.shape[1:]), dtype=elements.dtype, device=elements.device)
    if count >= MOST_NARROW and pattern.indices.dtype.itemsize < 8:
        raise RuntimeError(f"a dense tensor of {count} elements is too large for this device")
    return td.index_copy(zeros, 0, pattern.keys(), elements)


def to_sparse(
    self: Tensor, *args: Any, layout: Any = None, blocksize: Any = None, dense_dim: Any = None,
    sparse_dim: int | None = None,
) -> Tensor:  # fmt: skip
    """The tensor as a sparse one, of its elements that are not zero; how many there are is read.
    An integer says how many axes have indices, `layout` which layout it is.

    >>> import treadle.torch as torch
    >>> torch.tensor([[0.0, 5.0], [0.0, 0.0]]).to_sparse()
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([5.]),
           size=(2, 2), nnz=1, layout=torch.sparse_coo)
    """
    for each in args:
        if isinstance(each, int):
            sparse_dim = each
        else:
            layout = each
    if blocksize is not None or dense_dim is not None:
        raise NotImplementedError("sparse tensors have no blocks here: to_sparse(sparse_dim)")
    if isinstance(self, SparseTensor):
        return in_layout(self, layout or sparse_coo)
    try:
        made = _of_dense(self._inner, self.dim() if sparse_dim is None else sparse_dim)
    except CAUGHT as error:
        raise translated(error) from None
    return in_layout(made, layout or sparse_coo)


def _of_dense(x: Inner, axes: int) -> SparseTensor:
    if not 0 <= axes <= len(x.shape):
        raise IndexError(f"sparse_dim must be in range [0, {len(x.shape)}], but got {axes}")
    is_there, dtype = x.detach() != 0, integers(x.device)
    if axes < len(x.shape):
        is_there = td.any(is_there, axis=tuple(range(axes, len(x.shape))))
    if not axes:
        indices = td.zeros((0, 1), dtype=dtype, device=x.device)
        return sparse(Pattern(indices, (), True), x.reshape(1, *x.shape))
    found = td.stack([each.to(dtype) for each in td.nonzero(is_there)])
    pattern = Pattern(found, x.shape[:axes], True)
    return sparse(pattern, chosen(x, pattern))


def chosen(x: Inner, pattern: Pattern) -> Inner:
    """The elements of a dense tensor at a pattern's indices."""
    return x[tuple(pattern.indices[at] for at in range(len(pattern.extents)))]


def in_layout(x: SparseTensor, wanted: layout) -> Tensor:
    """The tensor in another layout; matrices alone are compressed."""
    if wanted is strided:
        return to_dense(x)
    if wanted is x._layout:
        return x
    if wanted is sparse_coo:
        return as_coo(x) if x._layout is sparse_csr else coalesce(as_coo(x))
    if wanted not in (sparse_csr, sparse_csc):
        raise NotImplementedError(f"{wanted} has blocks, and is not there: sparse_coo, sparse_csr")
    if len(x._pattern.extents) != 2 or len(x.shape) != 2:
        raise RuntimeError(f"matrices alone are {wanted} here, not a tensor of shape {x.shape}")
    x = coalesce(as_coo(x))
    if wanted is sparse_csr:
        pattern, elements = x._pattern, x._elements
        made = Pattern(pattern.indices, pattern.extents, False, 0, pattern._known)
        return sparse(made, elements, wanted)
    order, starts, others = x._pattern.bags(1)
    assert order is not None, "coalesced tensors are sorted by rows"
    known = {("bags", 1): Bags(None, starts, others)}
    indices = td.take(x._pattern.indices, order, axis=1)
    return sparse(
        Pattern(indices, x._pattern.extents, False, 1, known), td.take(x._elements, order), wanted
    )


# --- dtypes and places ---------------------------------------------------------------------------


def _as(
    self: SparseTensor, dtype: DType | None, where: TheirDevice | None, copy: bool = False
) -> Tensor:
    try:
        made = self._elements.to(where, dtype=dtype)
        if made is self._elements:
            return clone(self) if copy else self
        pattern = self._pattern
        if where is not None and where.id != pattern.indices.device.id:
            pattern = _moved(pattern, where)
    except CAUGHT as error:
        raise translated(error) from None
    return sparse(pattern, made, self._layout)


def _moved(pattern: Pattern, where: Any) -> Pattern:
    indices = pattern.indices.to(where, dtype=integers(where))
    found = Pattern(indices, pattern.extents, pattern.is_coalesced, pattern.sorted_by)
    if "dtype" in pattern._known:
        found._known["dtype"] = pattern._known["dtype"]
    return found


def to(
    self: SparseTensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor in a dtype, on a device, or as another tensor is; itself if nothing changes."""
    return _as(self, *dense.wanted(args, dtype, device, other, copy))


def cpu(self: SparseTensor) -> Tensor:
    """The tensor on the CPU."""
    return _as(self, None, place("cpu"))


def cuda(self: SparseTensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """The tensor on a CUDA device."""
    if isinstance(device, int):
        device = Device("cuda", device)
    return _as(self, None, place("cuda" if device is None else device))


def type_name(self: SparseTensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of PyTorch's class for the dtype and device; with a dtype, the elements in it."""
    if dtype is None:
        kind = "" if self.is_cpu else f"{self.device.type}."
        return f"torch.{kind}sparse.{NAMES[self.dtype.name]}"
    return _as(self, dtype_named(getattr(dtype, "dtype", dtype)), None)


def type_as(self: SparseTensor, other: Tensor) -> Tensor:
    """The tensor with another's dtype, on its device."""
    return to(self, other)


def clone(self: SparseTensor, *, memory_format: Any = None) -> Tensor:
    """A copy."""
    return sparse(self._pattern, self._elements.copied(), self._layout)


def detach(self: SparseTensor) -> Tensor:
    """The same elements, cut off from gradients."""
    return sparse(self._pattern, self._elements.detach(), self._layout)


def requires_grad_(self: SparseTensor, requires_grad: bool = True) -> Tensor:
    """Record operations on the tensor from here on, or don't. Returns the tensor."""
    self.requires_grad = requires_grad
    return self


def _caster(name: str, dtype: DType) -> Any:
    def method(self: SparseTensor, memory_format: Any = None) -> Tensor:
        return _as(self, dtype, None)

    method.__name__, method.__doc__ = name, f"The elements as {dtype}."
    return method


METHODS: dict[str, Any] = {
    "to": to, "cpu": cpu, "cuda": cuda, "type": type_name, "type_as": type_as,
    **{name: _caster(name, getattr(td, each)) for name, each in dense.SHORT.items()},
    "coalesce": coalesce, "is_coalesced": is_coalesced, "indices": indices, "values": values,
    "crow_indices": _compressed(sparse_csr, "crow_indices", False),
    "col_indices": _compressed(sparse_csr, "col_indices", True),
    "ccol_indices": _compressed(sparse_csc, "ccol_indices", False),
    "row_indices": _compressed(sparse_csc, "row_indices", True),
    "to_dense": to_dense, "to_sparse": to_sparse,
    "to_sparse_coo": lambda self: to_sparse(self, sparse_coo),
    "to_sparse_csr": lambda self, dense_dim=None: to_sparse(self, sparse_csr, dense_dim=dense_dim),
    "to_sparse_csc": lambda self, dense_dim=None: to_sparse(self, sparse_csc, dense_dim=dense_dim),
    "sparse_dim": lambda self: 0, "dense_dim": lambda self: self.dim(),  # of dense tensors
    "clone": clone, "detach": detach, "requires_grad_": requires_grad_,
    "get_device": lambda self: wrap(self._elements).get_device(),
    "element_size": lambda self: self._elements.dtype.itemsize,
}  # fmt: skip
