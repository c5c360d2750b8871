"""The text of a tensor, in NumPy's format, and of the kernels that compute it (`td.explain`).

Of a large tensor only the corners are read.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.graph.explain import Explanation
from treadle.graph.explain import explain as explain_nodes
from treadle.graph.placeholders import within
from treadle.graph.views import View
from treadle.tensor.tensor import Tensor

_MOST_SHOWN = 1000  # elements of a tensor that is printed as a whole
_EDGES = (
    3,
    2,
    1,
)  # elements at either end of an axis; the first that shows few enough


def representation(tensor: Tensor) -> str:
    """The text of a tensor. At most about a thousand elements are read.

    >>> import treadle as td
    >>> td.arange(5000, device="cpu")
    tensor([   0,    1,    2, ..., 4997, 4998, 4999], dtype=int64, device="cpu", shape=(5000,))
    """
    shape = tensor.shape
    details = f'dtype={tensor.dtype}, device="{tensor.device.id}"'
    if within.get() is not None:
        return f"tensor(of an example within td.vmap, {details}, shape={shape})"
    if tensor.size <= _MOST_SHOWN:
        values = np.array2string(tensor._for_numpy().numpy(), separator=", ", prefix="tensor(")
        if not tensor.size and shape != (0,):  # [] does not show the shape
            details += f", shape={shape}"
        return f"tensor({values}, {details})"
    edge = next((edge for edge in _EDGES if _shown(shape, edge) <= _MOST_SHOWN), None)
    if edge is None:  # so many axes that even their ends are too many
        return f"tensor(..., {details}, shape={shape})"
    values = np.array2string(
        _corners(tensor, edge), separator=", ", prefix="tensor(", threshold=0, edgeitems=edge
    )
    return f"tensor({values}, {details}, shape={shape})"


def _shown(shape: tuple[int, ...], edge: int) -> int:
    """The number of elements at the corners."""
    return math.prod(min(extent, 2 * edge) for extent in shape)


def _corners(tensor: Tensor, edge: int) -> np.ndarray[Any, Any]:
    """The corners with one element between them where axes are longer: NumPy prints `...` there."""
    extents, steps, offset = tensor._where
    shape: list[int] = []
    strides: list[int] = []
    for extent, step in zip(extents, steps, strict=True):
        if extent > 2 * edge:  # an axis for the two ends, and one for the elements at an end
            shape += (2, edge)
            strides += ((extent - edge) * step, step)
        else:
            shape.append(extent)
            strides.append(step)
    ends = tensor._seen_through(View(tuple(shape), tuple(strides), offset))
    sizes = [min(extent, 2 * edge) for extent in extents]
    seen: np.ndarray = ends.copied()._for_numpy().numpy().reshape(sizes)
    for axis, extent in enumerate(extents):
        if extent > 2 * edge:
            seen = np.insert(seen, edge, seen.take(0, axis), axis)
    return seen


def explain(*tensors: Any) -> Explanation:
    """The kernels that computing these tensors would take, as text; nothing is computed. Of a
    function that `td.compile` made: its traces, and their guards of sizes.

    Each kernel says what it reads and computes, and why its result goes to memory. The environment
    variable `TREADLE_EXPLAIN=1` prints the same of every kernel that runs. Of a function that
    `td.compile` has made with `device="auto"`, the text says where its calls run, and why.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0], device="cpu")
    >>> print(td.explain((x + 1) * x))
    1 kernel
    1. add_multiply: t1 = float32[2] on cpu, computed because it is asked for
         reads x1 float32[2]
         t1 = (x1 + 1.0) * x1
    """
    for each in tensors:
        if not isinstance(each, Tensor):
            explained = getattr(each, "_explained", None)
            if explained is None or len(tensors) > 1:
                raise TypeError(
                    "td.explain takes tensors, or one function that td.compile has made, not "
                    f"{type(each).__name__}"
                )
            text: Explanation = explained()
            return text
    return explain_nodes([tensor._cell.value for tensor in tensors])
