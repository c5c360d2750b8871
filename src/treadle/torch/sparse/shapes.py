"""Transposes, parts and joins of sparse tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import treadle as td
from treadle.torch.layouts import sparse_coo, sparse_csc, sparse_csr
from treadle.torch.operations import axes, bounds
from treadle.torch.sparse.conversions import as_coo, in_layout
from treadle.torch.sparse.patterns import Pattern, counted
from treadle.torch.sparse.tensors import SparseTensor, sparse
from treadle.torch.tensors import NotDense, Tensor, wrap

_TRANSPOSED = {sparse_coo: sparse_coo, sparse_csr: sparse_csc, sparse_csc: sparse_csr}


def t(input: SparseTensor) -> Tensor:
    """The transpose of a matrix; compressed rows become compressed columns."""
    if input.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.dim()}D")
    return transpose(input, 0, 1) if input.dim() == 2 else input


def transpose(input: SparseTensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
    order = list(range(input.dim()))
    one, two = axes.one(dim0, input.dim()), axes.one(dim1, input.dim())
    order[one], order[two] = order[two], order[one]
    return permute(input, order)


def permute(input: SparseTensor, *dims: Any) -> Tensor:
    """The axes in another order; those with indices stay before the others."""
    order = axes.several(axes.listed(dims), input.dim())
    count = input.sparse_dim()
    if len(order) != input.dim() or sorted(order[:count]) != list(range(count)):
        raise RuntimeError(f"permute: the first {count} axes, which have indices, stay the first")
    elements = input._elements
    if order[count:] != tuple(range(count, input.dim())):
        elements = td.permute_dims(elements, (0, *[at - count + 1 for at in order[count:]]))
    if order[:count] == tuple(range(count)):
        return sparse(input._pattern, elements, input._layout)
    if count == 2:
        return sparse(input._pattern.transposed(), elements, _TRANSPOSED[input._layout])
    indices = td.stack([input._pattern.indices[at] for at in order[:count]])
    extents = tuple(input._pattern.extents[at] for at in order[:count])
    return sparse(Pattern(indices, extents), elements)


def select(input: SparseTensor, dim: int, index: Any) -> Tensor:
    """The part at one index of an axis; how many elements it has is read."""
    if not isinstance(index, int) or isinstance(index, bool):
        raise NotDense("an integer alone is an index of a sparse tensor")
    at, x = axes.one(dim, input.dim()), as_coo(input)
    extent = x.shape[at]
    if not -extent <= index < extent:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension "
            f"{at}"
        )
    count = x.sparse_dim()
    index += extent if index < 0 else 0
    if at >= count:
        elements = td.take(x._elements, td.asarray(index, device=x._elements.device),
                           axis=at - count + 1)  # fmt: skip
        return sparse(x._pattern, elements)
    (there,) = td.nonzero(x._pattern.indices[at] == index)
    elements = td.take(x._elements, there, axis=0)
    left = [each for each in range(count) if each != at]
    if not left:
        return wrap(td.sum(elements, axis=0))
    rows = td.stack([td.take(x._pattern.indices[each], there) for each in left])
    extents = tuple(x._pattern.extents[each] for each in left)
    return sparse(Pattern(rows, extents, x._pattern.is_coalesced), elements)


def index_select(input: SparseTensor, dim: int, index: Tensor) -> Tensor:
    """The parts at some indices along an axis; how many elements they have is read."""
    at, x, wanted = axes.one(dim, input.dim()), as_coo(input), index._inner.reshape(-1)
    bounds.looking(bounds.check)(wanted, x.shape[at])
    count = x.sparse_dim()
    if at >= count:
        return sparse(x._pattern, td.take(x._elements, wanted, axis=at - count + 1))
    indices = x._pattern.indices
    order = td.argsort(indices[at])
    ends = td.arange(x.shape[at] + 1, dtype=indices.dtype, device=indices.device)
    starts = td.searchsorted(td.take(indices[at], order), ends).to(indices.dtype)
    wanted = wanted.to(indices.dtype)
    first = td.take(starts, wanted)
    place, number = counted(td.take(starts, wanted + 1) - first)
    there = td.take(order, td.take(first, place) + number)
    rows = [place.to(indices.dtype) if each == at else td.take(indices[each], there)
            for each in range(count)]  # fmt: skip
    extents = tuple(wanted.size if each == at else x.shape[each] for each in range(count))
    is_ordered = at == 0 and x._pattern.is_coalesced
    made = sparse(Pattern(td.stack(rows), extents, is_ordered), td.take(x._elements, there, axis=0))
    return in_layout(made, input._layout)


def cat(tensors: Sequence[Any], dim: int = 0) -> Tensor:
    """Sparse tensors one after the other along an axis."""
    if not all(isinstance(each, SparseTensor) for each in tensors):
        raise RuntimeError("cat: either all tensors are sparse, or none")
    parts = [as_coo(each) for each in tensors]
    first = parts[0]
    at, count = axes.one(dim, first.dim()), first.sparse_dim()
    for each in parts:
        if each.sparse_dim() != count or any(
            one != two for axis, (one, two) in enumerate(zip(each.shape, first.shape, strict=True))
            if axis != at
        ):  # fmt: skip
            raise RuntimeError("cat: sparse tensors of one shape, but for the axis, and sparse_dim")
    if at >= count:
        raise NotDense("sparse tensors are joined along an axis with indices")
    shifted, begin = [], 0
    for each in parts:
        indices = each._pattern.indices
        shifted.append(td.stack([indices[axis] + begin if axis == at else indices[axis]
                                 for axis in range(count)]))  # fmt: skip
        begin += each.shape[at]
    extents = tuple(begin if axis == at else first.shape[axis] for axis in range(count))
    elements = td.concat([each._elements for each in parts])
    return sparse(Pattern(td.concat(shifted, axis=1), extents), elements)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "t": t, "transpose": transpose, "permute": permute, "select": select,
    "index_select": index_select, "cat": cat,
}  # fmt: skip
