"""The arguments `dim` and shapes, checked as PyTorch checks them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import integers


def one(dim: Any, ndim: int) -> int:
    """An axis counted from the front; a tensor without axes has axis 0. IndexError if there is no
    such axis."""
    count = ndim or 1
    at = int(dim.__index__())
    if not -count <= at < count:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got "
            f"{at})"
        )
    return at + count if at < 0 else at


def several(dims: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front: one or a sequence. RuntimeError if one is named twice."""
    given = dims if isinstance(dims, (tuple, list)) else (dims,)
    found = tuple([one(each, ndim) for each in given])
    if len(set(found)) != len(found):
        raise RuntimeError(f"dim {max(found, key=found.count)} appears multiple times in the list")
    return found


def reduced(dims: Any, ndim: int) -> tuple[int, ...] | None:
    """The axes of a reduction: None, and a sequence without axes, are all of them."""
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        return None
    return several(dims, ndim)


def listed(given: Sequence[Any]) -> tuple[Any, ...]:
    """What may be given as several arguments, or as one sequence."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        return tuple(given[0])
    return tuple(given)


def last(input: Inner, count: int) -> tuple[int, ...]:
    """The last so many axes."""
    return tuple(range(len(input.shape) - count, len(input.shape)))


def spread(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let what a function takes as `*name` be given as `name=` too."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if name in keywords:
                arguments = (*arguments, keywords.pop(name))
            return function(*arguments, **keywords)

        return call

    return decorate


def long(x: Inner) -> Inner:
    """A tensor of integers or bools with the dtype of indices: int64, where the device has that."""
    dtype = integers(x.device)
    return x if x.dtype is dtype else x.to(dtype)


def again(input: Inner) -> Inner:
    """A view of the whole tensor."""
    return input._seen_through(input._where)
