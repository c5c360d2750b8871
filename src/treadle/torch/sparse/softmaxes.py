"""Softmax along an axis of a sparse tensor, whose elements that are not kept count as -inf."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import dtype_named
from treadle.torch.operations import axes
from treadle.torch.sparse.conversions import as_coo, coalesce
from treadle.torch.sparse.patterns import Merge, Pattern
from treadle.torch.sparse.sums import in_rows, merged, spread
from treadle.torch.sparse.tensors import SparseTensor, sparse
from treadle.torch.tensors import Tensor


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The exponentials of the elements that are kept, divided by their sum along an axis.

    >>> import treadle.torch as torch
    >>> x = torch.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [3.0, 3.0, 4.0], (2, 3))
    >>> torch.sparse.softmax(x, 1).to_dense()
    tensor([[0.5000, 0.0000, 0.5000],
            [0.0000, 1.0000, 0.0000]])
    """
    x, merge, values = _parts(input, dim, dtype)
    if merge is None:
        from treadle.tensor.functional import softmax as dense

        return sparse(x._pattern, dense(values, _inside(x, dim)))
    powers = td.exp(values - _greatest(values, merge))
    return sparse(x._pattern, powers / spread(merged(powers, merge), merge))


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithms of `softmax`."""
    x, merge, values = _parts(input, dim, dtype)
    if merge is None:
        from treadle.tensor.functional import log_softmax as dense

        return sparse(x._pattern, dense(values, _inside(x, dim)))
    shifted = values - _greatest(values, merge)
    sums = merged(td.exp(shifted), merge)
    return sparse(x._pattern, shifted - spread(td.log(sums), merge))


def _inside(x: SparseTensor, dim: int) -> int:
    return axes.one(dim, x.dim()) - x.sparse_dim() + 1


def _parts(input: Any, dim: int, dtype: Any) -> tuple[SparseTensor, Merge | None, Inner]:
    """The tensor, which elements share a sum (None: those of each value), and the elements."""
    if not isinstance(input, SparseTensor):
        raise RuntimeError("torch.sparse.softmax takes a sparse tensor: torch.softmax a dense one")
    x = coalesce(as_coo(input))
    at, count = axes.one(dim, x.dim()), x.sparse_dim()
    values = x._elements if dtype is None else x._elements.to(dtype_named(dtype))
    if at >= count:
        return x, None, values

    def compute() -> Merge:
        left = [axis for axis in range(count) if axis != at]
        indices, extents = x._pattern.indices, x._pattern.extents
        rows = [indices[axis] for axis in left] or [td.zeros_like(indices[0])]
        found = Pattern(td.stack(rows), tuple(extents[axis] for axis in left) or (1,))
        return found.merge()

    return x, x._pattern.kept(("softmax", at), compute), values


def _greatest(values: Inner, merge: Merge) -> Inner:
    """The greatest element of each sum, for every element of it."""
    flat = in_rows(values.detach())
    start = td.zeros((merge.pattern.count, flat.shape[1]), dtype=flat.dtype, device=flat.device)
    places = td.broadcast_to(merge.group.reshape(-1, 1), flat.shape)
    found = td.scatter_reduce(start, 0, places, flat, "amax", include_self=False)
    return td.take(found, merge.group, axis=0).reshape(values.shape)
