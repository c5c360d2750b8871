"""The arguments that name axes: `axis=-1`, `axis=(0, 2)`, and PyTorch's names for the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from numpy.exceptions import AxisError

from treadle.core.overriding import overridden
from treadle.core.sizes import fixed, index
from treadle.tensor.operands import operand

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R", covariant=True)

# PyTorch's name of a parameter, and ours.
OTHER_NAMES = {
    "dim": "axis", "keepdim": "keepdims", "dims": "axis", "start_dim": "start_axis",
    "end_dim": "end_axis",
}  # fmt: skip


class TakesDim(Protocol[P, R]):
    """For type checkers: a function that takes `dim` or `dims` in place of `axis`."""

    __name__: str

    @overload
    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R: ...
    @overload
    def __call__(self, *arguments: Any, dim: int | Sequence[int] | None, **keywords: Any) -> R: ...
    @overload
    def __call__(self, *arguments: Any, dims: int | Sequence[int] | None, **keywords: Any) -> R: ...


def takes_dim(function: Callable[P, R]) -> TakesDim[P, R]:
    """Let a function take `dim=` for `axis=` (and `keepdim=` for `keepdims=`).

    >>> import treadle as td
    >>> x = td.zeros((2, 3), device="cpu")
    >>> td.sort(x, dim=0).shape
    (2, 3)
    """

    @wraps(function)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        if keywords:
            for other in OTHER_NAMES.keys() & keywords.keys():
                ours = OTHER_NAMES[other]
                if ours in keywords:
                    raise TypeError(f"{function.__name__}: {other}= is {ours}=: give one of them")
                keywords[ours] = keywords.pop(other)
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            return overridden(error, function.__name__, arguments, keywords)

    wrapper.takes_dim = True  # type: ignore[attr-defined]  # for tools/stubs.py
    return cast(TakesDim[P, R], wrapper)


def integer(name: str, value: Any, what: str) -> int:
    """An integer as Python's. TypeError for anything else."""
    try:
        number: int = index(value)
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: {what} is an integer, not {type(value).__name__}") from None
    return number


def one_axis(name: str, axis: Any, ndim: int) -> int:
    """An axis counted from the front. NumPy's AxisError, an IndexError and ValueError, if the
    tensor lacks it; TypeError if it is not an integer."""
    at: int = fixed(integer(name, axis, "an axis"))
    if -ndim <= at < ndim:
        return at if at >= 0 else at + ndim
    if not ndim:
        raise AxisError(f"{name}: axis {at} of a tensor that has no axes (ndim is 0)")
    raise AxisError(f"{name}: axis {at} is not from {-ndim} to {ndim - 1} (ndim is {ndim})")


def some_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front: one, a tuple of them, or all for None. ValueError if one is
    named twice. A tensor without axes accepts 0 and -1, as one of shape (1,) does, and the result
    is empty."""
    if axis is None:
        return tuple(range(ndim))
    found: tuple[int, ...]
    if not isinstance(axis, (tuple, list)):
        found = (one_axis(name, axis, ndim or 1),)
    else:
        found = tuple([one_axis(name, each, ndim or 1) for each in axis])
        if len(set(found)) != len(found):
            raise ValueError(f"{name}: an axis is named twice in {tuple(axis)} (ndim is {ndim})")
    return found if ndim else ()


def scalar_as_row(function: F) -> F:
    """Let a function along an axis take a tensor without axes: it is computed as one of shape (1,),
    and the result has no axes either."""

    @wraps(function)
    def wrapper(x: Any, /, *arguments: Any, **keywords: Any) -> Any:
        if getattr(x, "shape", None) or isinstance(x, (list, tuple)):  # the usual case
            return function(x, *arguments, **keywords)
        x = operand(function.__name__, x)
        if x.shape:
            return function(x, *arguments, **keywords)
        found = function(x.reshape(1), *arguments, **keywords)
        return found.reshape(()) if found.size == 1 else found

    return cast(F, wrapper)
