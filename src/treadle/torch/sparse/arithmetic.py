"""Sums, products element by element, and functions of single elements, of sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.devices import place
from treadle.torch.dtypes import dtype_named, get_default_dtype, integers, result_type
from treadle.torch.layouts import sparse_coo
from treadle.torch.operations import arithmetic, axes, layers, pointwise
from treadle.torch.sparse.conversions import as_coo, chosen, coalesce, in_layout, scattered
from treadle.torch.sparse.patterns import Pattern
from treadle.torch.sparse.tensors import SparseTensor, sparse
from treadle.torch.tensors import Tensor, unwrapped, wrap

# --- sums of tensors -----------------------------------------------------------------------------


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The sum of two sparse tensors, which is coalesced; or of a dense one and a sparse one."""
    if not isinstance(other, SparseTensor):
        raise RuntimeError(
            "add(sparse, dense) is not supported. Use add(dense, sparse) instead: it gives a dense "
            "tensor"
        )
    if not isinstance(input, Tensor):
        raise TypeError("a number has no sparse sum: add it to x.to_dense(), or to its values")
    if not isinstance(input, SparseTensor):
        return _added_to_dense(input, other, alpha)
    _same_shape("add", input, other)
    dtype = result_type(_empty(input), _empty(other))
    scaled = other._elements if alpha == 1 else other._elements * alpha
    parts = [input._elements.to(dtype), scaled.to(dtype)]
    if input._pattern is other._pattern:
        return sparse(input._pattern, parts[0] + parts[1], input._layout)
    one, two = as_coo(input)._pattern, as_coo(other)._pattern
    if len(one.extents) != len(two.extents):
        raise RuntimeError(
            f"add: expected the same sparse_dim, but got {len(one.extents)} and {len(two.extents)}"
        )
    indices = td.concat([one.indices, two.indices], axis=1)
    made = coalesce(sparse(Pattern(indices, one.extents), td.concat(parts)))
    return in_layout(made, input._layout)


def _added_to_dense(dense: Tensor, x: SparseTensor, alpha: Any) -> Tensor:
    _same_shape("add", dense, x)
    dtype = result_type(dense._inner, _empty(x))
    x = as_coo(x)
    x = x if x._pattern.is_coalesced else coalesce(x)
    elements = x._elements.to(dtype)
    found = scattered(x._pattern, elements if alpha == 1 else elements * alpha)
    return wrap(dense._inner.to(dtype) + found.reshape(*x.shape))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The difference of two sparse tensors, or of a dense one and a sparse one."""
    return add(input, other, alpha=-alpha)


def _empty(x: SparseTensor) -> Inner:
    """A tensor without elements that counts in promotions as the sparse one."""
    return x._elements[:0] if x.shape else x._elements.reshape(-1)[:0].sum()


def _same_shape(name: str, one: Tensor, other: Tensor) -> None:
    if tuple(one.shape) != tuple(other.shape):
        raise RuntimeError(
            f"{name}: expected sparse tensors of one size, but got {list(one.shape)} and "
            f"{list(other.shape)}"
        )


# --- products of elements ------------------------------------------------------------------------


def _is_number(x: Any) -> bool:
    return not isinstance(x, Tensor) or (not isinstance(x, SparseTensor) and not x.dim())


def _scaled(x: SparseTensor, number: Any) -> Tensor:
    elements = arithmetic.mul(x._elements, unwrapped(number))
    return sparse(x._pattern, elements, x._layout)


def mul(input: Any, other: Any) -> Tensor:
    """A sparse tensor times a number, or element by element times a tensor: the result is sparse,
    with the elements that both have."""
    if _is_number(other):
        return _scaled(input, other)
    if _is_number(input):
        return _scaled(other, input)
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if not isinstance(other, SparseTensor):
        return _times_dense(input, other)
    _same_shape("mul", input, other)
    if input._pattern is other._pattern and (input._pattern.is_coalesced or not input.is_sparse):
        elements = arithmetic.mul(input._elements, other._elements)
        return sparse(input._pattern, elements, input._layout)
    one, two = coalesce(as_coo(input)), coalesce(as_coo(other))
    mine, theirs = _shared(one._pattern, two._pattern)
    pattern = Pattern(td.take(one._pattern.indices, mine, axis=1), one._pattern.extents, True)
    elements = arithmetic.mul(
        td.take(one._elements, mine, axis=0), td.take(two._elements, theirs, axis=0)
    )
    return in_layout(sparse(pattern, elements), input._layout)


def _shared(one: Pattern, two: Pattern) -> tuple[Inner, Inner]:
    """Which elements of two coalesced patterns have the same indices. How many is read."""
    mine, theirs = one.keys(), two.keys()
    if not mine.size or not theirs.size:
        none = td.zeros((0,), dtype=mine.dtype, device=mine.device)
        return none, none
    at = td.minimum(td.searchsorted(theirs, mine), two.count - 1)
    (found,) = td.nonzero(td.take(theirs, at) == mine)
    return found, td.take(at, found)


def _times_dense(x: SparseTensor, dense: Tensor) -> Tensor:
    inner = td.broadcast_to(dense._inner, tuple(x.shape))
    elements = arithmetic.mul(x._elements, chosen(inner, x._pattern))
    return sparse(x._pattern, elements, x._layout)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """A sparse tensor divided by a number."""
    if not isinstance(input, SparseTensor) or not _is_number(other):
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor: divide x.values()"
        )
    if rounding_mode is not None and input.is_sparse:
        input = coalesce(input)
    inner = arithmetic.div(input._elements, unwrapped(other), rounding_mode=rounding_mode)
    return sparse(input._pattern, inner, input._layout)


def pow(input: Any, exponent: Any) -> Tensor:
    """The elements to a power, which is a positive number."""
    if not isinstance(input, SparseTensor) or not _is_number(exponent):
        raise RuntimeError("pow: a sparse tensor to the power of a number, not of a tensor")
    if float(exponent) <= 0:
        raise RuntimeError(f"a sparse tensor to the power {exponent} has no zeros: x.to_dense()")
    x = coalesce(input) if input.is_sparse else input
    return sparse(x._pattern, arithmetic.pow(x._elements, unwrapped(exponent)), x._layout)


# --- functions of single elements ----------------------------------------------------------------

# Those of 0 that are 0, so that what is not kept stays 0.
_TABLE = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf "
    "isposinf log1p nan_to_num neg positive rad2deg round sgn sign signbit sin sinh sqrt square "
    "tan tanh trunc"
)


def _elementwise(function: Callable[..., Inner]) -> Callable[..., Tensor]:
    def call(input: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
        x = coalesce(input) if input.is_sparse else input
        return sparse(x._pattern, function(x._elements, *args, **kwargs), x._layout)

    return call


def _of(name: str) -> Callable[..., Inner]:
    found: Callable[..., Inner] = pointwise.FUNCTIONS.get(name) or getattr(pointwise, name)
    return found


# --- sums over axes ------------------------------------------------------------------------------


def sum(
    input: SparseTensor, dim: Any = None, dtype: Any = None, *, keepdim: bool = False
) -> Tensor:
    """The sum of all elements, dense; or along axes, as a sparse tensor (a dense one, if no axis
    with indices is left).

    >>> import treadle.torch as torch
    >>> x = torch.sparse_coo_tensor([[0, 0], [1, 2]], [3.0, 4.0], (2, 3))
    >>> torch.sparse.sum(x), torch.sparse.sum(x, 0).to_dense()
    (tensor(7.), tensor([0., 3., 4.]))
    """
    x, ndim = as_coo(input), input.dim()
    elements = x._elements if dtype is None else x._elements.to(dtype_named(dtype))
    wanted = axes.reduced(dim, ndim)
    if wanted is None and not keepdim:
        return wrap(td.sum(elements))
    wanted = tuple(range(ndim)) if wanted is None else wanted
    count = len(x._pattern.extents)
    inside = tuple(at - count + 1 for at in wanted if at >= count)
    if inside:
        elements = td.sum(elements, axis=inside, keepdims=keepdim)
    left = [at for at in range(count) if at not in wanted]
    if not left and not keepdim:
        return wrap(td.sum(elements, axis=0))
    if len(left) == count:
        return sparse(x._pattern, elements)
    indices, extents = x._pattern.indices, x._pattern.extents
    if keepdim:
        rows = [indices[at] if at in left else td.zeros_like(indices[at]) for at in range(count)]
        extents = tuple(extents[at] if at in left else 1 for at in range(count))
    else:
        rows, extents = [indices[at] for at in left], tuple(extents[at] for at in left)
    return coalesce(sparse(Pattern(td.stack(rows), extents), elements))


def _sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if dtype is None and input.dtype.kind not in ("float", "complex"):
        dtype = integers(input._elements.device)
    return sum(input, dim, dtype, keepdim=keepdim)


def sparse_mask(input: Tensor, mask: SparseTensor) -> Tensor:
    """The elements of a dense tensor at a sparse one's indices."""
    _same_shape("sparse_mask", input, mask)
    if isinstance(input, SparseTensor):
        ones = sparse(mask._pattern, td.ones_like(mask._elements).to(input.dtype), mask._layout)
        return mul(input, ones)
    return sparse(mask._pattern, chosen(input._inner, mask._pattern), mask._layout)


def zeros_like(input: Tensor, **options: Any) -> Tensor:
    """A sparse tensor of the same shape, without elements."""
    defaults = {"dtype": input.dtype, "device": input.device, "layout": input.layout}
    return zeros(*input.shape, **{**defaults, **options})


def zeros(
    *size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A sparse tensor without elements."""
    extents = tuple(int(each) for each in axes.listed(size))
    where = place(device)
    indices = td.zeros((len(extents), 0), dtype=integers(where), device=where)
    wanted = get_default_dtype() if dtype is None else dtype_named(dtype)
    made = sparse(Pattern(indices, extents, True), td.zeros((0,), dtype=wanted, device=where))
    found = in_layout(made, layout or sparse_coo)
    return found.requires_grad_() if requires_grad else found


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": add, "sub": sub, "mul": mul, "div": div, "pow": pow, "sum": _sum,
    "sparse_mask": sparse_mask, "zeros_like": zeros_like,
    "empty_like": zeros_like, "zeros": zeros, "empty": zeros,
    **{name: _elementwise(_of(name)) for name in _TABLE.split()},
    "relu": _elementwise(layers.relu),
    "is_complex": lambda input: input.dtype.is_complex,
    "is_floating_point": lambda input: input.dtype.kind == "float",
    "is_same_size": lambda input, other: tuple(input.shape) == tuple(other.shape),
    "numel": lambda input: input.numel(),
}  # fmt: skip
