"""Running sums and products along an axis."""

from __future__ import annotations

from typing import Any, Literal

from treadle.core.errors import DtypeError, ShapeError
from treadle.graph.calls import call
from treadle.kernels.accumulate import accumulate
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.axes import one_axis, scalar_as_row, takes_dim
from treadle.tensor.composites import composite
from treadle.tensor.conversions import cast
from treadle.tensor.precision import cast_by_name
from treadle.tensor.reductions import node_for, total_dtype
from treadle.tensor.tensor import Tensor, from_node


@cast_by_name
@takes_dim
@scalar_as_row
@composite
def cumulative_sum(
    x: ArrayLike,
    /,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """The running sum along an axis (which may be left out if there is only one), with the dtypes
    of `td.sum`. With `include_initial` it starts with 0.

    >>> import treadle as td
    >>> x = td.asarray([3, 1, 2], device="cpu")
    >>> td.cumulative_sum(x).tolist(), td.cumulative_sum(x, include_initial=True).tolist()
    ([3, 4, 6], [0, 3, 4, 6])
    """
    return _accumulated("cumulative_sum", "sum", x, axis, dtype, include_initial)


@cast_by_name
@takes_dim
@scalar_as_row
@composite
def cumulative_prod(
    x: ArrayLike,
    /,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """The running product along an axis (which may be left out if there is only one), with the
    dtypes of `td.prod`. With `include_initial` it starts with 1.

    >>> import treadle as td
    >>> td.cumulative_prod(td.asarray([3, 1, 2], device="cpu")).tolist()
    [3, 3, 6]
    """
    return _accumulated("cumulative_prod", "prod", x, axis, dtype, include_initial)


def _accumulated(
    name: str, kind: Literal["sum", "prod"], x: Any, axis: int | None, dtype: Any, initial: bool
) -> Tensor:
    node = node_for(name, x)
    shape = node.shape
    if axis is None:
        if len(shape) != 1:
            raise ShapeError(f"{name} of a tensor of shape {shape}: say along which axis")
        axis = 0
    at = one_axis(name, axis, len(shape))
    result = total_dtype(name, node.dtype, dtype, node.device)
    if result.kind == "bool":
        raise DtypeError(f"{name}: there are no running sums in bool: use dtype=td.int32")
    if result.kind == "complex":
        node = cast(node, result)

    made = (*shape[:at], shape[at] + bool(initial), *shape[at + 1 :])
    return from_node(call(accumulate, (node,), made, result, (kind, at, result, initial)))
