"""What PyTorch leaves open in results: both are made comparable before they are compared.

Each is made of a function and of the namespace that it belongs to, `torch` or `treadle.torch`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def _at(space: Any, x: Any, places: Any, dim: int) -> Any:
    """The elements at places: those of equal ones may be in any order."""
    places = places.to(space.int64)
    return space.take_along_dim(x, places, dim) if x.ndim else x


def _chosen(position: int, default: int, name: str = "dim") -> Any:
    """Values and indices along an axis, which is an argument at a position."""

    def both(function: Function, space: Any) -> Function:
        def apply(x: Any, *arguments: Any, **keywords: Any) -> Any:
            found = function(x, *arguments, **keywords)
            if isinstance(found, space.Tensor):
                return found
            values, places = found
            at = position - 1
            dim = arguments[at] if len(arguments) > at else keywords.get(name, default)
            if not isinstance(dim, int) or isinstance(dim, bool):
                dim = keywords.get("dim", default)
            if places.ndim < x.ndim:
                return values, _at(space, x, places.unsqueeze(dim), dim)
            return values, _at(space, x, places, dim)

        return apply

    return both


def _sorting_places(function: Function, space: Any) -> Function:
    def apply(x: Any, *arguments: Any, **keywords: Any) -> Any:
        places = function(x, *arguments, **keywords)
        return _at(space, x, places, arguments[0] if arguments else keywords.get("dim", -1))

    return apply


def _of_hermitian(function: Function, space: Any) -> Function:
    """Of a matrix that stays Hermitian: the gradient has no part that nothing can follow."""

    def apply(x: Any, *arguments: Any, **keywords: Any) -> Any:
        adjoint = x.mH if x.is_complex() else x.mT
        return function((x + adjoint) * 0.5, *arguments, **keywords)

    return apply


def _of_triangle(position: int) -> Any:
    """Of a triangle: the gradient of the other one, which is not read, is not 0 in PyTorch."""

    def both(function: Function, space: Any) -> Function:
        def apply(*arguments: Any, **keywords: Any) -> Any:
            given = list(arguments)
            cut = space.triu if keywords.get("upper", False) else space.tril
            given[position] = cut(given[position])
            return function(*given, **keywords)

        return apply

    return both


def _sizes(*signed: int) -> Any:
    """Vectors have any sign, or phase; their elements' sizes have none."""

    def both(function: Function, space: Any) -> Function:
        def apply(*arguments: Any, **keywords: Any) -> Any:
            found = list(function(*arguments, **keywords))
            return [space.abs(x) if at in signed else x for at, x in enumerate(found)]

        return apply

    return both


def _in_order(space: Any, values: Any) -> tuple[Any, Any]:
    known = values.detach()
    places = space.argsort(space.real(known) + space.imag(known) * 0.37)
    return _at(space, values, places, -1), places


def _eigenvalues(function: Function, space: Any) -> Function:
    return lambda x: _in_order(space, function(x))[0]


def _eigenvectors(function: Function, space: Any) -> Function:
    def apply(x: Any) -> Any:
        values, vectors = function(x)
        values, places = _in_order(space, values)
        sizes = space.abs(vectors)
        along = space.broadcast_to(places.unsqueeze(-2), sizes.shape)
        return values, _at(space, sizes, along, -1)

    return apply


def _singular_vectors(function: Function, space: Any) -> Function:
    """Those of the null space, which a full matrix ends with, may be any that are orthogonal."""

    def apply(*arguments: Any, **keywords: Any) -> Any:
        left, values, right = function(*arguments, **keywords)
        count = values.shape[-1]
        return space.abs(left[..., :count]), values, space.abs(right[..., :count, :])

    return apply


def _singular_columns(function: Function, space: Any) -> Function:
    def apply(*arguments: Any, **keywords: Any) -> Any:
        left, values, right = function(*arguments, **keywords)
        count = values.shape[-1]
        return space.abs(left[..., :count]), values, space.abs(right[..., :count])

    return apply


def _low_rank(function: Function, space: Any) -> Function:
    """Less a matrix M it is of full rank, and random projections of fewer rows are not exact."""

    def apply(*arguments: Any, **keywords: Any) -> Any:
        left, values, right = function(*arguments, **keywords)
        found = [space.abs(left), values, space.abs(right)]
        return [x * 0 for x in found] if keywords.get("M") is not None else found

    return apply


# By PyTorch's names and variants; a name alone is all its variants.
BOTH: dict[Any, Any] = {
    "sort": _chosen(1, -1),
    "topk": _chosen(2, -1),
    "kthvalue": _chosen(2, -1),
    "mode": _chosen(1, -1),
    "median": _chosen(1, 0),
    "nanmedian": _chosen(1, 0),
    "argsort": _sorting_places,
    "linalg.eig": _eigenvectors,
    "linalg.eigvals": _eigenvalues,
    "linalg.eigh": _sizes(1),
    "linalg.qr": _sizes(0, 1),
    "qr": _sizes(0, 1),
    "linalg.svd": _singular_vectors,
    "linalg.cholesky": _of_hermitian,
    "cholesky": _of_hermitian,
    "cholesky_inverse": _of_triangle(0),
    "cholesky_solve": _of_triangle(1),
    "pca_lowrank": _sizes(0, 2),
    "svd": _singular_columns,
    "svd_lowrank": _low_rank,
    ("linalg.pinv", "hermitian"): _of_hermitian,
}
# Samples whose gradients in PyTorch are wrong, with the reason.
GRADIENTS_NOT_COMPARED = {
    "as_strided_scatter": "PyTorch's gradient is 0 where src is not written, and not where it is",
}
# How many times as far off as others results may be, where PyTorch's own are.
LOOSER = dict.fromkeys(
    # Those of float64 are off by 6e-7: SciPy's agree with treadle's to 1e-13.
    ("special.bessel_j0", "special.bessel_j1", "special.bessel_y0", "special.bessel_y1"),
    20.0,
)
# PyTorch adds up weights of float32 in float32.
LOOSER["cov"] = 20.0


def both(operator: Any) -> Any:
    """What makes results of an operator comparable, or None."""
    named = (operator.name, operator.variant_test_name)
    return BOTH.get(named) or BOTH.get(operator.name)
