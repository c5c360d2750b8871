"""Products of vectors, matrices and tensors, and sums of them with others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.tensor.einstein_summation import rearranged
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import floating
from treadle.torch.operations.operands import cast, promoted


def checked(name: str, *given: tuple[Any, int]) -> None:
    """RuntimeError for another number of axes, or for dtypes that differ."""
    for x, ndim in given:
        if len(x.shape) != ndim:
            raise RuntimeError(f"{name}: expected {ndim}-D tensors, but got a {len(x.shape)}-D one")
    dtypes = {x.dtype for x, _ in given}
    if len(dtypes) > 1:
        raise RuntimeError(
            f"{name}: expected tensors of one dtype, but got {', '.join(sorted(map(str, dtypes)))}"
        )


def mm(input: Inner, mat2: Inner, *, out_dtype: Any = None) -> Inner:
    """The product of two matrices."""
    checked("mm", (input, 2), (mat2, 2))
    return td.matmul(input, mat2, dtype=out_dtype)


def bmm(input: Inner, mat2: Inner, *, out_dtype: Any = None) -> Inner:
    """The products of two stacks of matrices of one length."""
    checked("bmm", (input, 3), (mat2, 3))
    if input.shape[0] != mat2.shape[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{input.shape[0]}, "
            f"{input.shape[2]}] but got: {list(mat2.shape[:2])}."
        )
    return td.matmul(input, mat2, dtype=out_dtype)


def mv(input: Inner, vec: Inner) -> Inner:
    """The product of a matrix and a vector."""
    checked("mv", (input, 2), (vec, 1))
    return td.matmul(input, vec)


def dot(input: Inner, tensor: Inner) -> Inner:
    """The sum of the products of two vectors' elements."""
    checked("dot", (input, 1), (tensor, 1))
    if input.size != tensor.size:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{input.size}] and src [{tensor.size}] to "
            "have the same number of elements"
        )
    return td.matmul(input, tensor)


def vdot(input: Inner, other: Inner) -> Inner:
    """`dot` with the first vector conjugated."""
    return dot(td.conj(input) if input.dtype.kind == "complex" else input, other)


def inner(input: Inner, other: Inner) -> Inner:
    """The sums of products along the last axes."""
    if not input.shape or not other.shape:
        return promoted("multiply", input, other)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return td.inner(input, other)


def outer(input: Inner, vec2: Inner) -> Inner:
    """All products of an element of each vector."""
    if len(input.shape) != 1 or len(vec2.shape) != 1:
        raise RuntimeError(
            f"outer: Expected 1-D arguments, but got {len(input.shape)}-D and {len(vec2.shape)}-D"
        )
    return promoted("multiply", input.reshape(input.size, 1), vec2)


def added(input: Inner, product: Inner, beta: Any, alpha: Any) -> Inner:
    """Beta * input + alpha * product; an input that is taken 0 times may be NaN."""
    if alpha != 1:
        product = product * _number(alpha, product)
    if beta == 0:
        return product
    if input.dtype is not product.dtype:
        raise RuntimeError(
            f"expected tensors of one dtype, but got {input.dtype} and {product.dtype}"
        )
    return (input if beta == 1 else input * _number(beta, input)) + product


def _number(value: Any, like: Inner) -> Any:
    if like.dtype.kind == "bool":
        return bool(value)
    return int(value) if like.dtype.is_integer else value


def addmm(input: Inner, mat1: Inner, mat2: Inner, *, beta: Any = 1, alpha: Any = 1) -> Inner:
    """Beta * input + alpha * (mat1 @ mat2)."""
    return added(input, mm(mat1, mat2), beta, alpha)


def addmv(input: Inner, mat: Inner, vec: Inner, *, beta: Any = 1, alpha: Any = 1) -> Inner:
    """Beta * input + alpha * (mat @ vec)."""
    return added(input, mv(mat, vec), beta, alpha)


def addr(input: Inner, vec1: Inner, vec2: Inner, *, beta: Any = 1, alpha: Any = 1) -> Inner:
    """Beta * input + alpha * outer(vec1, vec2)."""
    product = outer(vec1, vec2)
    if alpha != 1:
        product = product * alpha if product.dtype.kind != "bool" else product & bool(alpha)
    if beta == 0:
        return product
    if input.dtype.kind == "bool" and product.dtype.kind == "bool":
        return (input & bool(beta)) | product
    return promoted("add", input if beta == 1 else input * _number(beta, input), product)


def baddbmm(input: Inner, batch1: Inner, batch2: Inner, *, beta: Any = 1, alpha: Any = 1) -> Inner:
    """Beta * input + alpha * (batch1 @ batch2)."""
    return added(input, bmm(batch1, batch2), beta, alpha)


def addbmm(input: Inner, batch1: Inner, batch2: Inner, *, beta: Any = 1, alpha: Any = 1) -> Inner:
    """Beta * input + alpha * the sum of the products batch1 @ batch2."""
    product = bmm(batch1, batch2)
    return added(input, td.sum(product, axis=0, dtype=product.dtype), beta, alpha)


def einsum(equation: Any, *operands: Any) -> Inner:
    """Sums of products that an equation names the axes of; also with operands and lists of axes in
    turn."""
    if isinstance(equation, str):
        given = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else (
            operands
        )  # fmt: skip
        known = [equation, *given]
    else:
        known = [list(x) if isinstance(x, (tuple, list)) else x for x in (equation, *operands)]
    is_of_one = 2 <= len(known) <= 3 and all(type(x) in (Inner, str, list) for x in known)
    view = rearranged(known) if is_of_one else None
    return td.einsum(*known) if view is None else view


def tensordot(a: Inner, b: Inner, dims: Any = 2) -> Inner:
    """Sums of products along several axes of both."""
    if isinstance(dims, Inner):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        count = len(a.shape)
        pair: tuple[Sequence[int], Sequence[int]] = (
            list(range(count - dims, count)), list(range(dims)),
        )  # fmt: skip
    else:
        pair = (list(dims[0]), list(dims[1]))
    # An axis of extent 1 is summed over where the other's is longer.
    for at, (one, other) in enumerate(zip(*pair, strict=True)):
        if a.shape[one] != b.shape[other]:
            if a.shape[one] == 1:
                b = td.sum(b, axis=other, keepdims=True)
            elif b.shape[other] == 1:
                a = td.sum(a, axis=one, keepdims=True)
            else:
                raise RuntimeError(
                    f"contracted dimensions need to match, but first has size {a.shape[one]} in "
                    f"dim {one} and second has size {b.shape[other]} in dim {other} ({at})"
                )
    return td.tensordot(a, b, axes=pair)


def kron(input: Inner, other: Inner) -> Inner:
    """The Kronecker product."""
    return td.kron(input, other)


def cdist(
    x1: Inner, x2: Inner, p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Inner:  # fmt: skip
    """The distances between the rows of two stacks of matrices."""
    return td.cdist(x1, x2, p)


def cov(
    input: Inner, *, correction: int = 1, fweights: Inner | None = None,
    aweights: Inner | None = None,
) -> Inner:  # fmt: skip
    """The covariances of rows."""
    if len(input.shape) > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with "
            f"{len(input.shape)} dimensions"
        )
    return td.cov(input, ddof=correction, fweights=fweights, aweights=aweights)


def corrcoef(input: Inner) -> Inner:
    """The correlations of rows."""
    if len(input.shape) > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{len(input.shape)} dimensions"
        )
    return td.corrcoef(input)


def gradient(
    input: Inner, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Inner, ...]:
    """The derivatives of a sampled function along axes, by differences of second order."""
    input = cast(input, floating(input.dtype)) if input.dtype.kind == "bool" else input
    axes = range(len(input.shape)) if dim is None else dim
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    spacing = 1 if spacing is None else spacing
    if isinstance(spacing, (tuple, list)):
        steps = [x.to(input.dtype) if isinstance(x, Inner) else x for x in spacing]
    else:
        steps = [spacing] * len(axes)
    found = td.gradient(input, *steps, axis=axes, edge_order=edge_order)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)
