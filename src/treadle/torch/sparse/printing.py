"""The text of a sparse tensor, as PyTorch writes it."""

from __future__ import annotations

from treadle.tensor.tensor import Tensor as Inner
from treadle.torch import printing
from treadle.torch.dtypes import integers
from treadle.torch.layouts import sparse_coo, sparse_csr
from treadle.torch.sparse.tensors import SparseTensor, compressed_axis

_PREFIX = "tensor("


def text(x: SparseTensor) -> str:
    """Indices, values, shape and number of values."""
    bare = [("values", x._elements)]
    if x.layout is sparse_coo:
        bare.insert(0, ("indices", x._pattern.indices))
    else:
        bags = x._pattern.bags(compressed_axis(x))
        dtype = x._pattern._known.get("dtype", integers(x._elements.device))
        names = ("crow_indices", "col_indices") if x.layout is sparse_csr else (
            "ccol_indices", "row_indices")  # fmt: skip
        bare[:0] = [(names[0], bags.starts.to(dtype)), (names[1], bags.others.to(dtype))]
    between = "),\n" + " " * len(_PREFIX)
    contents = between.join(f"{name}=tensor({_inside(name, part)}" for name, part in bare) + ")"
    suffixes = printing.device_suffix(x._elements)
    suffixes += [f"size={tuple(x.shape)}", f"nnz={x._nnz()}"]
    suffixes += [*printing.dtype_suffix(x._elements), f"layout={x.layout}"]
    if x.grad_fn is not None:
        suffixes.append(f"grad_fn=<{x.grad_fn.name()}>")
    elif x.requires_grad:
        suffixes.append("requires_grad=True")
    return printing.with_suffixes(_PREFIX, contents, suffixes, x.layout is sparse_coo)


def _inside(name: str, part: Inner) -> str:
    written = printing.contents_of(part, len(_PREFIX) + len(f"{name}=tensor("))
    return written if part.size else f"{written}, size={tuple(part.shape)}"
