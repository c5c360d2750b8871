"""Products of matrices of which one is sparse, or both. Sums are in a fixed order, and no sparse
factor becomes dense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.errors import CAUGHT, translated
from treadle.torch.layouts import sparse_csr
from treadle.torch.operations import products
from treadle.torch.sparse.conversions import as_coo, coalesce, in_layout, to_sparse
from treadle.torch.sparse.patterns import Pattern, counted, linear
from treadle.torch.sparse.sums import product, products_at
from treadle.torch.sparse.tensors import SparseTensor, sparse
from treadle.torch.tensors import Tensor, wrap


def _checked(name: str, *given: tuple[Tensor, int]) -> None:
    """RuntimeError for other numbers of axes, dtypes that differ, and values that are arrays."""
    products.checked(name, *given)
    places = {x.device for x, _ in given}
    if len(places) > 1:
        raise RuntimeError(
            f"{name}: Expected all tensors to be on the same device, but found at least two: "
            f"{' and '.join(sorted(map(str, places)))}. Move one: x.to(device)"
        )
    for x, _ in given:
        if isinstance(x, SparseTensor) and x.dense_dim():
            raise RuntimeError(f"{name}: a sparse matrix has no dense axes, but {x.dense_dim()}")


def mm(input: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of two matrices: dense, unless both are sparse. RuntimeError for shapes or dtypes
    that do not fit.

    With `reduce` "mean", "amax" or "amin" an element is the mean, the greatest or the least of its
    products, of a sparse matrix and a dense one; 0 where there are none.

    >>> import treadle.torch as torch
    >>> x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> torch.sparse.mm(x, torch.ones(3, 1))
    tensor([[3.],
            [4.]])
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"mm: reduce is one of {list(_REDUCTIONS)}, not {reduce!r}")
    _checked("mm", (input, 2), (mat2, 2))
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mm: mat1 and mat2 shapes cannot be multiplied ({input.shape[0]}x{input.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )
    try:
        return _mm(input, mat2) if reduce == "sum" else _reduced(input, mat2, reduce)
    except CAUGHT as error:
        raise translated(error) from None


def _mm(one: Tensor, two: Tensor) -> Tensor:
    if isinstance(one, SparseTensor) and isinstance(two, SparseTensor):
        return _both(one, two)
    if isinstance(one, SparseTensor):
        return wrap(product(one._pattern, one._elements, two._inner))
    if isinstance(two, SparseTensor):
        found = product(two._pattern, two._elements, one._inner.T, 1)
        return wrap(found.T)
    return wrap(td.matmul(one._inner, two._inner))


_REDUCTIONS = ("sum", "mean", "amax", "amin")


def _reduced(one: Tensor, two: Tensor, how: str) -> Tensor:
    if not isinstance(one, SparseTensor) or isinstance(two, SparseTensor):
        raise RuntimeError(f"mm: reduce={how!r} is of a sparse matrix and a dense one")
    dense, (rows, columns) = two._inner, (one._pattern.indices[at] for at in (0, 1))
    parts = one._elements.reshape(-1, 1) * td.take(dense, columns, axis=0)
    start = td.zeros((one.shape[0], dense.shape[1]), dtype=dense.dtype, device=dense.device)
    places = td.broadcast_to(rows.reshape(-1, 1), parts.shape)
    return wrap(td.scatter_reduce(start, 0, places, parts, how, include_self=False))


def _both(one: SparseTensor, two: SparseTensor) -> Tensor:
    """Each element of the first times the row of the second that its column names."""
    order, starts, others = two._pattern.bags(0)
    rows, columns = one._pattern.indices[0], one._pattern.indices[1]
    first = td.take(starts, columns)
    mine, number = counted((td.take(starts, columns + 1) - first).to(rows.dtype))
    theirs = td.take(first, mine) + number
    indices = td.stack([td.take(rows, mine), td.take(others, theirs).to(rows.dtype)])
    elements = td.take(one._elements, mine) * td.take(
        two._elements, theirs if order is None else td.take(order, theirs)
    )
    extents = (one._pattern.extents[0], two._pattern.extents[1])
    return in_layout(coalesce(sparse(Pattern(indices, extents), elements)), one._layout)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a sparse matrix and a vector."""
    _checked("mv", (input, 2), (vec, 1))
    return mm(input, vec.unsqueeze(1))[:, 0]


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of matrices, or of a matrix and a vector, of which one is sparse; or of stacks of
    matrices."""
    if isinstance(input, Tensor) and isinstance(other, Tensor):
        axes = (input.dim(), other.dim())
        if axes == (2, 1) and isinstance(input, SparseTensor):
            return mv(input, other)
        if axes == (1, 2) and isinstance(other, SparseTensor):
            return mm(input.unsqueeze(0), other)[0]
        if axes == (3, 3):
            return bmm(input, other)
        if axes == (2, 2):
            return mm(input, other)
        raise RuntimeError(f"matmul: no sparse product of tensors of {axes[0]} and {axes[1]} axes")
    raise TypeError("matmul: both factors are tensors")


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of a stack of sparse matrices and one of dense matrices."""
    _checked("bmm", (input, 3), (mat2, 3))
    if not isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor):
        raise RuntimeError("bmm: the first stack of matrices is sparse, the second one dense")
    (count, rows, columns), width = input.shape, mat2.shape[2]
    if tuple(mat2.shape[:2]) != (count, columns):
        raise RuntimeError(f"bmm: {list(input.shape)} does not fit {list(mat2.shape)}")

    def compute() -> Pattern:  # one matrix with the others along its diagonal
        stack, row, column = (as_coo(input)._pattern.indices[at] for at in range(3))
        wide = [linear(td.stack([stack, each]), (count, extent))
                for each, extent in ((row, rows), (column, columns))]  # fmt: skip
        return Pattern(td.stack(wide), (count * rows, count * columns))

    pattern = input._pattern.kept("blocks", compute)
    found = product(pattern, input._elements, mat2._inner.reshape(count * columns, width))
    return wrap(found.reshape(count, rows, width))


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Beta * input + alpha * (mat1 @ mat2), of which the first factor is sparse."""
    found = mm(mat1, mat2)
    if isinstance(input, SparseTensor) or isinstance(found, SparseTensor):
        if not (isinstance(input, SparseTensor) and isinstance(found, SparseTensor)):
            raise RuntimeError("addmm: what is added is sparse if both factors are, else dense")
        return (beta * input).add(found, alpha=alpha)
    return wrap(products.added(input._inner, found._inner, beta, alpha))


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one, as a sparse tensor."""
    return to_sparse(mm(input, mat))


def sampled_addmm(
    input: SparseTensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Any = 1.0,
    alpha: Any = 1.0,
    out: SparseTensor | None = None,
) -> Tensor:
    """Beta * input + alpha * (mat1 @ mat2) at the indices of the input, which is CSR: of the dense
    product no other element is computed."""
    if input.layout is not sparse_csr:
        raise RuntimeError(f"sampled_addmm: the input is torch.sparse_csr, not {input.layout}")
    _checked("sampled_addmm", (input, 2), (mat1, 2), (mat2, 2))
    if (mat1.shape[0], mat2.shape[1]) != tuple(input.shape) or mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"sampled_addmm: {list(mat1.shape)} and {list(mat2.shape)} do not fit "
            f"{list(input.shape)}"
        )
    rows, columns = input._pattern.indices[0], input._pattern.indices[1]
    found: Inner = products_at(mat1._inner, rows, mat2._inner.T, columns)
    elements = products.added(input._elements, found, beta, alpha)
    if out is None:
        return sparse(input._pattern, elements, input._layout)
    out._pattern, out._elements = input._pattern, elements.to(out.dtype)
    return out


spmm = dsmm = mm
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "addmm": addmm, "bmm": bmm, "matmul": matmul, "mm": mm, "mv": mv,
}  # fmt: skip
