"""Views that strides cannot express: the parts of complex numbers, and bits as another dtype.

Nodes have one dtype, so such a view has a cell of its own, whose value is computed from the tensor
that it is a view of whenever it is read; what is written is written into that tensor. Programs for
other libraries write through `x.real`. The functions of the Array API (`td.real`) return copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, complex64, complex128, float64
from treadle.graph.history import recorded, recording
from treadle.graph.node import Node
from treadle.tensor.cells import Cell
from treadle.tensor.conversions import common_shape
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.joining import stacked
from treadle.tensor.manipulation import broadcast_to
from treadle.tensor.tensor import Tensor, from_cell, from_node

_Host = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


class ComputedCell(Cell):
    """A cell whose elements are computed from a tensor, and written back into it."""

    __slots__ = ("_back", "_key", "_read", "_shown", "base", "host", "name")

    def __init__(
        self,
        name: str,
        base: Tensor,
        read: Callable[[Tensor], Tensor],
        back: Callable[[Tensor, Tensor], Tensor],
        host: _Host,
    ) -> None:
        """`read` computes the elements, which `name` says what they are, from the base; `back` the
        base's new elements from new ones and the base; `host` does what `read` does by a view of
        NumPy's.

        The cell is not among all cells: there is nothing to compute or to recover beside the base.
        """
        self.base, self.name = base, name
        self._read, self._back, self.host = read, back, host
        self._key: Node | None = None
        self._shown: Node | None = None
        self.before = None
        self.versions = ()
        self.writes = 0

    @property
    def value(self) -> Node:  # type: ignore[override]
        """The elements, computed anew where the base may have changed: memory is also written by
        kernels and by other libraries."""
        key, shown = self.base._cell.value, self._shown
        # What is pending reads the memory as it will be, or is computed before it is written.
        is_fixed = key.array is None and not key.eager
        if shown is not None and self._key is key and (shown.array is None or is_fixed):
            return shown
        with recorded(True):
            made = self._read(self.base)._cell.value
        before = None if shown is None else shown.history
        if before is not None and made.history is not None and before.edges == made.history.edges:
            made.history = before  # hooks and retained gradients refer to it
        self._key, self._shown = key, made
        return made

    def put(self, value: Node) -> None:
        """Write elements, a node that no cell has."""
        base = self.base
        base._write(self._back(from_node(value), base)._node)
        self._key, self._shown = base._cell.value, value

    def recover(self, retry: bool) -> bool:
        """Have the base return to a version that can be computed."""
        found: bool = self.base._cell.recover(retry)
        return found


def complex_of(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of their parts, which are floats of one dtype and broadcast. (A sum with
    `imag * 1j` would be NaN where a part is infinite.)

    >>> import treadle as td
    >>> complex_of(td.asarray([1.0], device="cpu"), td.asarray([2.0], device="cpu")).tolist()
    [(1+2j)]
    """
    shape = common_shape("complex", [real.shape, imag.shape])
    dtype = complex128 if real.dtype is float64 else complex64
    component = dtype.component
    parts = tuple(
        (each if each.shape == shape else broadcast_to(each, shape)).to(component)._node
        for each in (real, imag)
    )
    return from_node(Node("complex", parts, shape, dtype, parts[0].device))


def real_part(x: Tensor) -> Tensor:
    """The real parts of complex numbers, as a view: writing it writes them."""
    return _view(
        "real",
        x,
        lambda base: apply("real", base),
        lambda new, base: complex_of(new, apply("imag", base)),
        lambda array: array.real,
    )


def imaginary_part(x: Tensor) -> Tensor:
    """The imaginary parts of complex numbers, as a view."""
    return _view(
        "imag",
        x,
        lambda base: apply("imag", base),
        lambda new, base: complex_of(apply("real", base), new),
        lambda array: array.imag,
    )


def pairs(x: Tensor) -> Tensor:
    """Complex numbers as their parts along a new last axis of 2, as a view."""
    component = x.dtype.component
    return _view(
        "pairs",
        x,
        _stacked,
        lambda new, _: complex_of(new[..., 0], new[..., 1]),
        lambda array: array[..., None].view(component.numpy),
    )


def _stacked(x: Tensor) -> Tensor:
    return stacked([apply("real", x), apply("imag", x)], len(x.shape))


def complex_of_pairs(x: Tensor) -> Tensor:
    """Floats whose last axis is 2 as complex numbers, as a view."""
    dtype: DType = complex128 if x.dtype is float64 else complex64
    return _view(
        "complex",
        x,
        lambda base: complex_of(base[..., 0], base[..., 1]),
        lambda new, base: _stacked(new).to(base.dtype),
        lambda array: array.view(dtype.numpy)[..., 0],
    )


def owner(x: Tensor) -> Tensor:
    """The tensor that has the memory: of a computed view what it is a view of."""
    while x._cell.base is not None:
        x = x._cell.base
    return x


def _view(name: str, x: Tensor, read: Any, back: Any, host: _Host) -> Tensor:
    # A view that is made while nothing is recorded has no history, as others.
    base = x._seen_through(x._where) if recording.get() or x._history is None else x.detach()
    made = from_cell(ComputedCell(name, base, read, back, host), None)
    made._locked = x._locked
    return made
