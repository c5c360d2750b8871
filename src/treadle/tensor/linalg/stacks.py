"""The operands and results of functions of matrices: stacks with one axis, dtypes, errors for
singular ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from treadle.core.dtypes import DType, bfloat16, float16, float32
from treadle.core.errors import DtypeError, HostWarning, ShapeError
from treadle.graph.calls import Several, call_of_several
from treadle.graph.placeholders import within
from treadle.kernels import eigen
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.manipulation import matrix_transpose
from treadle.tensor.operands import operand
from treadle.tensor.tensor import Tensor, from_node

_HALVES = (float16, bfloat16)


@dataclass(frozen=True, slots=True)
class Stack:
    """Matrices along one axis, in the dtype to compute in, with their original shape and dtype."""

    matrices: Tensor
    front: tuple[int, ...]  # the shape of the stack
    dtype: DType  # of the results

    @property
    def rows(self) -> int:
        """The rows of each matrix."""
        return self.matrices.shape[1]

    @property
    def columns(self) -> int:
        """The columns of each matrix."""
        return self.matrices.shape[2]

    @property
    def count(self) -> int:
        """The number of matrices."""
        return self.matrices.shape[0]

    @property
    def work(self) -> DType:
        """The dtype to compute in."""
        return self.matrices.dtype

    def unstacked(self, x: Tensor, dtype: DType | None = None) -> Tensor:
        """A result whose first axis is the stack, reshaped to the stack's shape."""
        return x.reshape((*self.front, *x.shape[1:])).to(dtype=dtype or self.dtype)


def stack_of(name: str, x: ArrayLike, *, square: bool = False) -> Stack:
    """The matrices of an operand. ShapeError if it has less than two axes, DtypeError if it is not
    floating or complex."""
    x = floating(name, operand(name, x))
    if x.ndim < 2:
        raise ShapeError(
            f"{name} takes matrices, stacked or not, and not an array of shape {x.shape}"
        )
    rows, columns = x.shape[-2:]
    if square and rows != columns:
        raise ShapeError(
            f"{name} takes square matrices, not {rows} × {columns} ones: shape {x.shape}"
        )
    return Stack(stacked(in_compute_dtype(x)), x.shape[:-2], x.dtype)


def stacked(x: Tensor) -> Tensor:
    """An array's matrices along one axis."""
    return x.reshape((math.prod(x.shape[:-2]), *x.shape[-2:]))


def floating(name: str, x: Tensor) -> Tensor:
    """The operand itself. DtypeError if its dtype is not floating or complex."""
    if type(x.dtype) is not DType or x.dtype.kind not in ("float", "complex"):
        raise DtypeError(
            f"{name} takes floating and complex dtypes, not {x.dtype}: cast with x.to(td.float32)"
        )
    return x


def in_compute_dtype(x: Tensor) -> Tensor:
    """An operand in the dtype to compute in."""
    return x.to(float32) if x.dtype in _HALVES else x


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of each matrix."""
    transposed = matrix_transpose(x)
    return FUNCTIONS["conj"](transposed) if x.dtype.kind == "complex" else transposed


# --- kernels -------------------------------------------------------------------------------------


def call_several(
    function: Several,
    sources: Sequence[Tensor],
    results: Sequence[tuple[tuple[int, ...], DType]],
    *options: Any,
) -> list[Tensor]:
    """Lazy results of a function of the kernel library."""
    nodes = call_of_several(function, [source._node for source in sources], results, options)
    return [from_node(node) for node in nodes]


def checked_result(name: str, words: str, stack: Stack, x: Tensor, status: Tensor) -> Tensor:
    """A result, if the status of each matrix is 0, else LinAlgError. Waits for the device.

    While work is recorded for a replay, statuses cannot be read, and results for such matrices are
    NaN instead.
    """
    if is_recording(x.device):
        good = FUNCTIONS["equal"](status, 0).reshape((stack.count, 1, 1))
        return where(good, x, float("nan"))
    found = status.numpy()
    if found.any():
        at = np.unravel_index(int(found.argmax()), stack.front) if stack.front else ()
        which = f"matrix {tuple(map(int, at))} of the stack" if stack.front else "the matrix"
        raise LinAlgError(f"{name}: {which} is {words}")
    return x


def is_recording(device: Device) -> bool:
    """Whether work on a device is being recorded in a graph, or only traced, within td.vmap."""
    return device.default_stream.capturing is not None or within.get() is not None


# --- computed on the host --------------------------------------------------------------------

_warned: set[str] = set()


def warn_of_host(name: str, device: Device, level: int = 3) -> None:
    """Warn, once for each function, that it computes a device's elements on the host."""
    if not device.traits.host_memory and name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"td.linalg.{name} is computed by NumPy's LAPACK on the host: the elements of a tensor "
            f"on {device.id} are copied there and back, and both wait for each other",
            HostWarning,
            stacklevel=level,
        )


def warn_where_on_host(name: str, x: Tensor, level: int = 4) -> None:
    """The same for a function of eigenvalues or singular values, if those of x are computed
    there."""
    if eigen.route(x.device, x.dtype, max(x.shape[-2:])) == "host":
        warn_of_host(name, x.device, level)
