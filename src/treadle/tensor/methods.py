"""The methods of `Tensor` that are also functions: `x.flip(axis=0)` is `td.flip(x, axis=0)`.

`install` adds those of the tables to the class; a name that it has already is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from treadle.core.errors import ShapeError
from treadle.runtime.arrays import is_contiguous
from treadle.tensor import (
    advanced_indexing,
    assembly,
    creation,
    functional,
    manipulation,
    products,
    ranges,
    reductions,
    scans,
    scattering,
    searching,
    sorting,
)
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.representation import representation
from treadle.tensor.tensor import Tensor

# --- methods without a function
# -----------------------------------------------------------------------


def clone(x: Tensor) -> Tensor:
    """A copy of the tensor in new memory.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> y = x.clone()
    >>> y += 1
    >>> x.tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return x.copied()


def contiguous(x: Tensor) -> Tensor:
    """The tensor itself if its elements are contiguous in row-major order, else a copy.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> x.T.contiguous().strides
    (2, 1)
    """
    return x if is_contiguous(x.shape, x.strides) else x.copied()


def where(x: Tensor, condition: Any, other: Any) -> Tensor:
    """The tensor's elements where the condition holds, else those of `other`.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> x.where(x > 1, 0).tolist()
    [[0.0, 2.0], [3.0, 4.0]]
    """
    return FUNCTIONS["where"](condition, x, other)


def permute(x: Tensor, *axes: Any) -> Tensor:
    """A view with the axes in another order, as `x.permute(1, 0)` or `x.permute((1, 0))`.

    >>> import treadle as td
    >>> x = td.zeros((2, 3, 4), device="cpu")
    >>> x.permute(2, 0, 1).shape
    (4, 2, 3)
    """
    return manipulation.permute_dims(x, _several(axes))


def transpose(x: Tensor, *axes: Any) -> Tensor:
    """A view with the axes in another order, as NumPy's `transpose`: all axes are named, or
    reversed if none is. Use `swapaxes` to exchange two axes.

    >>> import treadle as td
    >>> x = td.zeros((2, 3, 4), device="cpu")
    >>> x.transpose().shape
    (4, 3, 2)
    """
    if not axes or axes == (None,):
        return manipulation.permute_dims(x, range(len(x.shape))[::-1])
    return manipulation.permute_dims(x, _several(axes))


def _several(axes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes


def _iterator(x: Tensor) -> Iterator[Tensor]:
    """The parts along the first axis."""
    if not x.shape:
        raise TypeError("a tensor without axes cannot be iterated over")
    return iter(manipulation.unstack(x))


# --- attributes ----------------------------------------------------------------------------------


def _transposed(x: Tensor) -> Tensor:
    """A view with the two axes exchanged. ShapeError unless there are two; see `mT`.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> x.T.tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    if len(x.shape) != 2:
        raise ShapeError(
            f"x.T takes tensors of two axes, not of shape {x.shape}: use x.mT for the last two "
            "axes, or x.transpose() to reverse them all"
        )
    return manipulation.swapaxes(x, 0, 1)


_ATTRIBUTES: dict[str, Callable[[Tensor], Tensor]] = {
    "T": _transposed,
    "mT": manipulation.matrix_transpose,
    "real": FUNCTIONS["real"],
    "imag": FUNCTIONS["imag"],
}

# --- the tables ----------------------------------------------------------------------------------


_FURTHER: dict[str, Callable[..., Any]] = {
    "__contains__": searching.contains,
    "__getitem__": advanced_indexing.part_of,
    "__iter__": _iterator,
    "__repr__": representation,
    "__setitem__": advanced_indexing.write_part,
    "argsort": sorting.argsort,
    "argwhere": searching.argwhere,
    "astype": creation.astype,
    "broadcast_to": manipulation.broadcast_to,
    "clone": clone,
    "contiguous": contiguous,
    "cumprod": scans.cumulative_prod,
    "cumsum": scans.cumulative_sum,
    "cumulative_prod": scans.cumulative_prod,
    "cumulative_sum": scans.cumulative_sum,
    "diagonal": manipulation.diagonal,
    "diff": assembly.diff,
    "dot": products.dot,
    "expand_dims": manipulation.expand_dims,
    "flatten": manipulation.flatten,
    "flip": manipulation.flip,
    "matmul": products.matmul,
    "matrix_transpose": manipulation.matrix_transpose,
    "moveaxis": manipulation.moveaxis,
    "nonzero": searching.nonzero,
    "outer": products.outer,
    "permute": permute,
    "permute_dims": manipulation.permute_dims,
    "ravel": manipulation.ravel,
    "repeat": assembly.repeat,
    "roll": assembly.roll,
    "searchsorted": searching.searchsorted,
    "sort": sorting.sort,
    "split": manipulation.split,
    "squeeze": manipulation.squeeze,
    "swapaxes": manipulation.swapaxes,
    "take": searching.take,
    "take_along_axis": searching.take_along_axis,
    "tensordot": products.tensordot,
    "tile": assembly.tile,
    "topk": sorting.topk,
    "transpose": transpose,
    "tril": ranges.tril,
    "triu": ranges.triu,
    "unsqueeze": manipulation.expand_dims,
    "unstack": manipulation.unstack,
    "vecdot": products.vecdot,
    "where": where,
}  # fmt: skip


def install() -> None:
    """Add the methods and attributes to `Tensor`."""
    for name, function in _ATTRIBUTES.items():
        setattr(Tensor, name, property(function))
    others = (*_ATTRIBUTES, "where")
    _add({name: FUNCTIONS[name] for name in FUNCTIONS if name not in others})
    _add(functional.METHODS)
    _add(scattering.METHODS)
    _add({name: getattr(reductions, name) for name in reductions.METHODS})
    _add(_FURTHER)


def _add(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Add functions as methods; the tensor is their first parameter."""
    for name, function in functions.items():
        if name in Tensor.__dict__:
            raise AssertionError(f"Tensor.{name} is there already")
        setattr(Tensor, name, function)
