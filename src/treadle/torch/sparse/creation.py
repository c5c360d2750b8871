"""`torch.sparse_coo_tensor`, compressed tensors, and PyTorch's older constructors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.checks import in_host_memory, looked_at
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.devices import place
from treadle.torch.dtypes import dtype_named, get_default_dtype, integers
from treadle.torch.errors import CAUGHT, translated
from treadle.torch.layouts import layout as Layout
from treadle.torch.layouts import sparse_coo, sparse_csc, sparse_csr
from treadle.torch.legacy import NAMES
from treadle.torch.operations import creation
from treadle.torch.sparse.conversions import in_layout
from treadle.torch.sparse.patterns import Pattern, compressed
from treadle.torch.sparse.tensors import SparseTensor, sparse
from treadle.torch.tensors import Tensor, unwrapped


class _Settings:
    looks_everywhere = False


class check_sparse_tensor_invariants:
    """Whether indices of new sparse tensors are looked at. On the CPU they always are; within this,
    or after `enable()`, on all devices.

    >>> import treadle.torch as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable

    @staticmethod
    def is_enabled() -> bool:
        """Whether they are looked at on all devices."""
        return _Settings.looks_everywhere

    @staticmethod
    def enable() -> None:
        """Look at indices on all devices."""
        _Settings.looks_everywhere = True

    @staticmethod
    def disable() -> None:
        """Look at indices on the CPU alone."""
        _Settings.looks_everywhere = False

    def __enter__(self) -> None:
        self._before, _Settings.looks_everywhere = _Settings.looks_everywhere, self._wanted

    def __exit__(self, *exception: Any) -> None:
        _Settings.looks_everywhere = self._before


def _check(indices: Inner, extents: tuple[int, ...], wanted: bool | None) -> None:
    """RuntimeError for an index outside, where indices are looked at."""
    with in_host_memory():
        looks = looked_at(indices.device) or _Settings.looks_everywhere
        if not (looks if wanted is None else wanted or looks) or not indices.shape[1]:
            return
    host = indices.numpy()
    for at, extent in enumerate(extents):
        least, greatest = int(host[at].min()), int(host[at].max())
        if least < 0:
            raise RuntimeError(f"found negative index {least} for dim {at}")
        if greatest >= extent:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {at}, size is {extent} but found "
                f"index {greatest}"
            )


def _elements(values: Any, dtype: Any, device: Any) -> Inner:
    wanted = None if dtype is None else dtype_named(dtype)
    return creation.as_tensor(unwrapped(values), dtype=wanted, device=device)


def _index(given: Any, like: Inner) -> Inner:
    """Indices on the device of the values, in the dtype of indices there."""
    given = unwrapped(given)
    if not isinstance(given, Inner):
        given = td.asarray(np.asarray(given, np.int64), device="cpu")
    if not (given.dtype.is_integer or given.dtype.kind == "bool"):
        raise RuntimeError(f"indices are integers, not {given.dtype}")
    return given.detach().to(like.device, dtype=integers(like.device))


def _finished(made: SparseTensor, requires_grad: bool) -> SparseTensor:
    if requires_grad:
        made._elements = made._elements.detach().requires_grad_()
        made._is_leaf = True
    return made


def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Any = None, *, dtype: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse tensor of a row of indices for each axis, and a value for each column of them.

    Values may be arrays: their axes are the tensor's last ones. Without a size it is the smallest
    one, for which indices are read. With a size alone there are no elements. RuntimeError for
    shapes that do not fit, and for indices outside where they are looked at (on the CPU).

    >>> import treadle.torch as torch
    >>> torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    tensor(indices=tensor([[0, 1, 1],
                           [2, 0, 2]]),
           values=tensor([3., 4., 5.]),
           size=(2, 3), nnz=3, layout=torch.sparse_coo)
    """
    try:
        if values is None:
            given_size = indices if size is None else size
            extents: tuple[int, ...] | None = tuple(int(each) for each in given_size)
            wanted = get_default_dtype() if dtype is None else dtype_named(dtype)
            elements = td.zeros((0,), dtype=wanted, device=place(device))
            given = np.zeros((len(given_size), 0), np.int64)
            is_coalesced = True
        else:
            elements, given = _elements(values, dtype, device), indices
            extents = None if size is None else tuple(int(each) for each in size)
        index = _index(given, elements)
        if len(index.shape) != 2:
            raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(index.shape)}")
        axes, count = index.shape
        if not elements.shape or elements.shape[0] != count:
            raise RuntimeError(
                f"indices and values must have same nnz, but got nnz from indices: {count}, nnz "
                f"from values: {elements.shape[0] if elements.shape else 'none'}"
            )
        rest = elements.shape[1:]
        if extents is None:
            extents = (*_least(index), *rest)
        if len(extents) != axes + len(rest):
            raise RuntimeError(
                f"number of dimensions must be sparse_dim ({axes}) + dense_dim ({len(rest)}), but "
                f"got {len(extents)}"
            )
        if extents[axes:] != tuple(rest):
            raise RuntimeError(
                f"values has incorrect size, expected {[count, *extents[axes:]]}, got "
                f"{list(elements.shape)}"
            )
        _check(index, extents[:axes], check_invariants)
    except CAUGHT as error:
        raise translated(error) from None
    pattern = Pattern(index, extents[:axes], bool(is_coalesced))
    return _finished(sparse(pattern, elements), requires_grad)


def _least(index: Inner) -> list[int]:
    """The smallest extents that have room for the indices."""
    if not index.shape[1]:
        return [0] * index.shape[0]
    return [int(each) + 1 for each in index.numpy().max(axis=1)]


def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *,
    dtype: Any = None, layout: Layout | None = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A matrix of compressed rows (`layout=torch.sparse_csr`) or columns (`torch.sparse_csc`):
    where each begins, and the end, then the index of each element within, and its value.
    RuntimeError for shapes that do not fit, and for indices outside where they are looked at."""
    if layout not in (sparse_csr, sparse_csc):
        raise RuntimeError(f"layout is torch.sparse_csr or torch.sparse_csc, not {layout}")
    axis = 0 if layout is sparse_csr else 1
    try:
        elements = _elements(values, dtype, device)
        starts, others = (_index(each, elements) for each in (compressed_indices, plain_indices))
        shapes = [each.shape for each in (starts, others, elements)]
        if any(len(each) != 1 for each in shapes):
            raise RuntimeError(
                f"compressed matrices have one axis of starts, indices and values each here, not "
                f"shapes {[tuple(each) for each in shapes]}"
            )
        if others.shape != elements.shape:
            raise RuntimeError(
                f"there are {others.shape[0]} indices for {elements.shape[0]} values"
            )
        rows = starts.shape[0] - 1
        if size is None:
            one = _least(others.reshape(1, -1))[0]
            size = (rows, one) if axis == 0 else (one, rows)
        extents = (int(size[0]), int(size[1]))
        if len(size) != 2 or extents[axis] != rows:
            raise RuntimeError(
                f"{starts.shape[0]} starts are those of {rows} rows, not of size {tuple(size)}"
            )
        _check(others.reshape(1, -1), (extents[1 - axis],), check_invariants)
        _check_starts(starts, others.shape[0], check_invariants)
        pattern = compressed(starts, others, extents, axis)
    except CAUGHT as error:
        raise translated(error) from None
    given = unwrapped(plain_indices)
    if isinstance(given, Inner) and given.dtype.is_integer:
        pattern._known["dtype"] = given.dtype
    return _finished(sparse(pattern, elements, layout), requires_grad)


def _check_starts(starts: Inner, count: int, wanted: bool | None) -> None:
    with in_host_memory():
        looks = looked_at(starts.device) or _Settings.looks_everywhere
        if not (looks if wanted is None else wanted or looks):
            return
    host = starts.numpy()
    if host[0] != 0 or host[-1] != count or (np.diff(host) < 0).any():
        raise RuntimeError(f"starts rise from 0 to the number of values, {count}")


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> Tensor:
    """A matrix of compressed rows: where each row begins, and the end, then the column of each
    element, and its value.

    >>> import treadle.torch as torch
    >>> torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0]).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, layout=sparse_csr, **options
    )


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> Tensor:
    """A matrix of compressed columns: where each column begins, and the end, then the row of each
    element, and its value."""
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, layout=sparse_csc, **options
    )


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A matrix with some diagonals: row i of `diagonals` is the one that is offsets[i] above the
    main one, by columns. Offsets are read."""
    rows, columns = (int(each) for each in shape)
    inner = unwrapped(diagonals)
    inner = inner if len(inner.shape) == 2 else inner.reshape(1, -1)
    above = np.asarray(unwrapped(offsets).numpy()).reshape(-1)
    if len(set(above.tolist())) != len(above) or len(above) != inner.shape[0]:
        raise RuntimeError("spdiags: an offset for each diagonal, each once")
    places: list[tuple[int, int, int]] = []
    for at, offset in enumerate(above.tolist()):
        last = min(columns, rows + offset, inner.shape[1])
        places += [(at, column - offset, column) for column in range(max(0, offset), last)]
    found = np.asarray(places, np.int64).reshape(-1, 3).T
    which = td.asarray(found[[0, 2]], device=inner.device)
    elements = inner[which[0], which[1]] if places else inner.reshape(-1)[:0]
    made = sparse(Pattern(_index(found[1:], inner), (rows, columns)), elements)
    return in_layout(made, layout or sparse_coo)


class _OfDtype(type):
    """The class of sparse tensors of one dtype."""

    dtype: DType

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        if data and not isinstance(data[0], int) and len(data) > 1:
            return sparse_coo_tensor(*data, dtype=cls.dtype, device=device)
        size = data[0] if len(data) == 1 and not isinstance(data[0], int) else data or (0,)
        return sparse_coo_tensor(size=size, dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, SparseTensor)
            and instance.layout is sparse_coo
            and instance.dtype is cls.dtype
        )


globals().update(
    (name, _OfDtype(name, (), {"dtype": getattr(td, dtype),
                               "__doc__": f"Sparse tensors of {dtype}."}))
    for dtype, name in NAMES.items()
)  # fmt: skip
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
