"""Sparse tensors in files and pickles, in PyTorch's words: their layout and parts."""

from __future__ import annotations

from typing import Any

from treadle.torch import layouts
from treadle.torch.sparse.creation import sparse_compressed_tensor, sparse_coo_tensor
from treadle.torch.sparse.tensors import SparseTensor
from treadle.torch.tensors import Tensor


def parts(x: SparseTensor) -> tuple[Any, ...]:
    """A sparse tensor's layout, and the parts that it is made of again."""
    if x.layout is layouts.sparse_coo:
        given: tuple[Any, ...] = x._indices(), x._values(), x.shape, x._pattern.is_coalesced
        return x.layout, given
    first, second = (
        ("crow_indices", "col_indices")
        if x.layout is layouts.sparse_csr
        else ("ccol_indices", "row_indices")
    )
    return x.layout, (getattr(x, first)(), getattr(x, second)(), x.detach().values(), x.shape)


def rebuilt(layout: layouts.layout, given: tuple[Any, ...]) -> Tensor:
    """The sparse tensor of a layout and its parts, on the device of the values."""
    if layout is layouts.sparse_coo:
        indices, values, size, *flags = given
        return sparse_coo_tensor(
            indices, values, size, device=values.device, is_coalesced=flags[0] if flags else None
        )
    starts, others, values, size = given
    return sparse_compressed_tensor(
        starts, others, values, size, layout=layout, device=values.device
    )


def layout_named(name: str) -> layouts.layout:
    """A layout by its name, as "torch.sparse_coo". ValueError for others."""
    found = getattr(layouts, name.removeprefix("torch."), None)
    if not isinstance(found, layouts.layout):
        raise ValueError(f"{name} is not a layout of sparse tensors here")
    return found
