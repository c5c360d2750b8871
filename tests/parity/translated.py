"""treadle's functions with PyTorch's arguments, and results of both that can be compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
import treadle.nn.functional as F

Function = Callable[..., Any]

# --- elementwise ---------------------------------------------------------------------------------


def add(x: Any, y: Any, alpha: Any = 1) -> Any:
    return td.add(x, y if alpha == 1 else y * alpha)


def subtract(x: Any, y: Any, alpha: Any = 1) -> Any:
    return td.subtract(x, y if alpha == 1 else y * alpha)


def rsub(x: Any, y: Any, alpha: Any = 1) -> Any:
    return y - (x if alpha == 1 else x * alpha)


def divide(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    return td.floor_divide(x, y) if rounding_mode == "floor" else td.divide(x, y)


def clamp_max(x: Any, bound: Any) -> Any:
    return td.clip(x, None, bound)


def where(x: Any, condition: Any, other: Any) -> Any:
    return td.where(condition, x, other)


def float_power(x: Any, y: Any) -> Any:
    """In the widest dtype."""
    kinds = {each.dtype.kind if isinstance(each, td.Tensor) else type(each).__name__[:7]
             for each in (x, y)}  # fmt: skip
    wide = td.complex128 if "complex" in kinds else td.float64
    x, y = (each.to(wide) if isinstance(each, td.Tensor) else each for each in (x, y))
    return td.pow(x, y)


def reflected(name: str) -> Function:
    return lambda x, y: getattr(x, name)(y)


# --- reductions and order ------------------------------------------------------------------------


def reduction(function: Function) -> Function:
    """For PyTorch no axis in a tuple means all of them."""

    def apply(x: Any, dim: Any = None, dtype: Any = None, **keywords: Any) -> Any:
        if dtype is not None and function is td.mean:
            x = x.to(dtype)
        elif dtype is not None:
            keywords["dtype"] = dtype
        return function(x, axis=None if dim in ((), []) else dim, **keywords)

    return apply


def spread(function: Function) -> Function:
    """Of a sample, unless something else is said."""

    def apply(
        x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        axis = None if dim in ((), []) else dim
        return function(x, axis=axis, correction=correction, keepdims=keepdim)

    return apply


def with_place(function: Function, place: Function) -> Function:
    def apply(x: Any, **keywords: Any) -> Any:
        return function(x, **keywords), place(x, **keywords)

    return apply


def sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return td.sort(x, axis=dim, descending=descending), argsort(x, dim, descending)


def argsort(x: Any, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return td.argsort(x, axis=dim, descending=descending)


def _at(space: Any, x: Any, places: Any, dim: int) -> Any:
    """The elements at places: those of equal ones may be in any order."""
    along = space.take_along_axis if space is td else space.take_along_dim
    return along(x, places, **{"axis" if space is td else "dim": dim})


def _dim(arguments: tuple[Any, ...], keywords: dict[str, Any], position: int) -> int:
    return arguments[position] if len(arguments) > position else keywords.get("dim", -1)


def sorted_places(function: Function, space: Any) -> Function:
    def apply(x: Any, *arguments: Any, **keywords: Any) -> Any:
        values, places = function(x, *arguments, **keywords)
        return values, _at(space, x, places, _dim(arguments, keywords, 0))

    return apply


def places_of_sorted(function: Function, space: Any) -> Function:
    def apply(x: Any, *arguments: Any, **keywords: Any) -> Any:
        places = function(x, *arguments, **keywords)
        return _at(space, x, places, _dim(arguments, keywords, 0))

    return apply


def chosen_places(function: Function, space: Any) -> Function:
    def apply(x: Any, *arguments: Any, **keywords: Any) -> Any:
        values, places = function(x, *arguments, **keywords)
        return values, _at(space, x, places, _dim(arguments, keywords, 1))

    return apply


def searchsorted(
    edges: Any, values: Any, *, right: bool = False, side: Any = None, sorter: Any = None,
    out_int32: bool = False,
) -> Any:  # fmt: skip
    side = side or ("right" if right else "left")
    found = td.searchsorted(edges, values, side=side, sorter=sorter)
    return found.to(td.int32) if out_int32 else found


def bucketize(values: Any, edges: Any, *, right: bool = False, out_int32: bool = False) -> Any:
    return searchsorted(edges, values, right=right, out_int32=out_int32)


def histogram(
    x: Any, bins: Any, range: Any = None, weight: Any = None, density: Any = False
) -> Any:
    """PyTorch counts in the elements' dtype."""
    found = td.histogram(x, bins, range=range, weights=weight, density=density)
    return found[0].to(x.dtype), found[1]


def nonzero(x: Any, as_tuple: bool = False) -> Any:
    return td.nonzero(x) if as_tuple else td.argwhere(x)


# --- other axes for the same elements ------------------------------------------------------------


def item(x: Any, index: Any) -> Any:
    is_one = isinstance(index, list) and not any(
        isinstance(each, (slice, type(None), type(...), td.Tensor, list)) for each in index
    )
    return x[index if is_one or not isinstance(index, list) else tuple(index)]


def expand(x: Any, *shape: Any) -> Any:
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    front = len(shape) - x.ndim
    return td.broadcast_to(
        x, tuple(x.shape[i - front] if e == -1 else e for i, e in enumerate(shape))
    )


def roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    return td.roll(x, shifts, axis=None if dims in (None, (), []) else dims)


def squeeze(x: Any, dim: Any = None) -> Any:
    """PyTorch leaves axes of another extent as they are."""
    several = range(x.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    return td.squeeze(x, tuple(axis for axis in several if x.ndim and x.shape[axis] == 1))


def split(x: Any, size: Any, dim: int = 0) -> Any:
    if isinstance(size, (tuple, list)):
        ends = [sum(size[: i + 1]) for i in range(len(size) - 1)]
    else:
        ends = list(range(size, x.shape[dim], size)) if size else []
    return td.split(x, ends, axis=dim)


def repeat_interleave(x: Any, repeats: Any, dim: Any = None, output_size: Any = None) -> Any:
    return td.repeat(x, repeats, axis=dim)


def diagonal(first: int, second: int) -> Function:
    def apply(x: Any, offset: int = 0, dim1: int = first, dim2: int = second) -> Any:
        return td.diagonal(x, offset=offset, axis1=dim1, axis2=dim2)

    return apply


def diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    return td.diff(x, axis=dim, n=n, prepend=prepend, append=append)


def meshgrid(first: Any, *rest: Any, indexing: str = "ij") -> Any:
    arrays = first if isinstance(first, (tuple, list)) else (first, *rest)
    return td.meshgrid(*arrays, indexing=indexing)


def take_along_dim(x: Any, index: Any, dim: Any = None) -> Any:
    if dim is None:
        return td.take(x.ravel(), index.ravel())
    return td.take_along_axis(x, index, axis=dim)


def of_shape(function: Function) -> Function:
    def apply(*shape: Any, **keywords: Any) -> Any:
        return function(shape[0] if isinstance(shape[0], (tuple, list)) else shape, **keywords)

    return apply


# --- products and linear algebra -----------------------------------------------------------------


def inner(x: Any, y: Any) -> Any:
    return td.tensordot(x, y, axes=[[-1], [-1]]) if x.ndim and y.ndim else x * y


def eigh(x: Any, UPLO: str = "L") -> Any:
    """Of the lower triangle, or the upper one."""
    return td.linalg.eigh(x if UPLO == "L" else _adjoint(x))


def _adjoint(x: Any) -> Any:
    return td.conj(x.mT) if x.dtype.kind == "complex" else x.mT


def solve(a: Any, b: Any, *, left: bool = True) -> Any:
    if left:
        return td.linalg.solve(a, b)
    return td.linalg.solve(a.mT, b.mT).mT


def lstsq(a: Any, b: Any, *, driver: Any = None) -> Any:
    return td.linalg.lstsq(a, b)


def matrix_rank(x: Any, hermitian: bool = False, **tolerances: Any) -> Any:
    """Of Hermitian matrices it is the same."""
    return td.linalg.matrix_rank(x, **tolerances)


def pinv_of_hermitian(x: Any, hermitian: bool = True, **tolerances: Any) -> Any:
    return td.linalg.pinv(x, **tolerances)


def norm(function: Function, order: Any, axes: Any) -> Function:
    def apply(
        x: Any, ord: Any = order, dim: Any = axes, keepdim: bool = False, dtype: Any = None
    ) -> Any:
        dim = None if dim in ((), []) else tuple(dim) if isinstance(dim, list) else dim
        return function(x if dtype is None else x.to(dtype), ord=ord, axis=dim, keepdims=keepdim)

    return apply


def solution(function: Function, space: Any) -> Function:
    """Residuals and ranks are other things to PyTorch and NumPy."""
    return lambda *arguments, **keywords: function(*arguments, **keywords)[0]


def of_hermitian(function: Function, space: Any) -> Function:
    """Of a matrix that stays Hermitian: the gradient has no part that nothing can follow."""

    def apply(x: Any, **keywords: Any) -> Any:
        adjoint = _adjoint(x) if space is td else x.mH
        return function((x + adjoint) * 0.5, **keywords)

    return apply


def sizes_of_vectors(function: Function, space: Any) -> Function:
    """Vectors have any sign, or phase; their elements' sizes have none."""

    def apply(x: Any, **keywords: Any) -> Any:
        values, vectors = function(x, **keywords)
        return values, space.abs(vectors)

    return apply


def eigenvalues_in_order(function: Function, space: Any) -> Function:
    """They come in the order in which a library finds them."""

    def apply(x: Any) -> Any:
        return _in_order(space, function(x))[0]

    return apply


def eigenvectors_in_order(function: Function, space: Any) -> Function:
    def apply(x: Any) -> Any:
        values, vectors = function(x)
        values, places = _in_order(space, values)
        sizes = space.abs(vectors)
        along = space.broadcast_to(places.reshape((*places.shape[:-1], 1, -1)), sizes.shape)
        return values, _at(space, sizes, along, -1)

    return apply


def _in_order(space: Any, values: Any) -> tuple[Any, Any]:
    known = values.detach()
    places = space.argsort(space.real(known) + space.imag(known) * 0.37)
    return _at(space, values, places, -1), places


def sizes_of_factors(function: Function, space: Any) -> Function:
    def apply(*arguments: Any, **keywords: Any) -> Any:
        return [space.abs(each) for each in function(*arguments, **keywords)]

    return apply


def sizes_of_singular_vectors(function: Function, space: Any) -> Function:
    """Those of the null space, which a full matrix ends with, may be any that are orthogonal."""

    def apply(x: Any, **keywords: Any) -> Any:
        left, values, right = function(x, **keywords)
        count = values.shape[-1]
        return space.abs(left[..., :count]), values, space.abs(right[..., :count, :])

    return apply


def transform(function: Function, axis: str, default: Any) -> Function:
    def apply(x: Any, n: Any = None, s: Any = None, dim: Any = default, norm: Any = None) -> Any:
        count = n if axis == "axis" else s
        return function(x, count, **{axis: dim}, norm=norm or "backward")

    return apply


# --- layers --------------------------------------------------------------------------------------


def of_log_softmax(function: Function, space: Any) -> Function:
    """PyTorch's gradient is right behind a log_softmax alone."""
    layers = space.nn.functional
    return lambda x, *rest, **keywords: function(layers.log_softmax(x, -1), *rest, **keywords)


def triplet_with_distance(*arguments: Any, distance_function: Any = None, **keywords: Any) -> Any:
    """The only function of the samples that is one of PyTorch's."""
    if type(distance_function).__name__ == "PairwiseDistance":
        distance_function = F.pairwise_distance
    return F.triplet_margin_with_distance_loss(
        *arguments, distance_function=distance_function, **keywords
    )
