"""Pooling as lazy operations on checked operands, and the operations of their gradients."""

from __future__ import annotations

import math

from treadle.core.dtypes import DType, int32
from treadle.graph import history
from treadle.graph.calls import call, call_of_several
from treadle.graph.placeholders import record_composite
from treadle.kernels import pool, pool_gradients
from treadle.kernels.pool import Windows
from treadle.tensor.advanced_indexing import gathered, index_dtype
from treadle.tensor.composites import composite
from treadle.tensor.elementwise_functions import where
from treadle.tensor.ranges import arange
from treadle.tensor.tensor import Tensor, from_node

# --- maximum -------------------------------------------------------------------------


def max_pool(x: Tensor, windows: Windows) -> Tensor:
    """The greatest element of each window. If gradients are recorded, the indices are kept."""
    if x._history is not None and history.recording.get():
        return max_pool_with_indices(x, windows, int32)[0]
    node = call(pool.max_pool, (x._node,), windows.shape(x.shape), x.dtype, (windows,))
    return from_node(node)


def max_pool_with_indices(x: Tensor, windows: Windows, index: DType) -> tuple[Tensor, Tensor]:
    """The greatest element of each window and its index in the image."""
    shape = windows.shape(x.shape)
    results, source = ((shape, x.dtype), (shape, index)), x._node
    with history.recorded(False):
        values, places = call_of_several(
            pool.max_pool_with_places, (source,), results, (windows, index)
        )
    if source.history is not None and history.recording.get():
        derivative = history.derivatives["max_pool"]
        record_composite(derivative, [values], [source], windows, extra=[places])
    return from_node(values), from_node(places)


@composite
def max_pool_gradient(
    given: Tensor, places: Tensor, windows: Windows, shape: tuple[int, ...]
) -> Tensor:
    """The gradient of the maximum: an array of a shape with the values of windows added at their
    indices in its images."""
    sources = (given._node, places._node)
    return from_node(
        call(pool_gradients.give_to_places, sources, shape, given.dtype, (windows, shape))
    )


def indices_into_all(places: Tensor, image: tuple[int, ...]) -> Tensor:
    """Indices in each image as linear indices into all images; -1 for those outside."""
    axes, size = len(image), math.prod(image)
    front = places.shape[: places.ndim - axes]
    dtype = index_dtype(math.prod(front) * size)
    starts = arange(math.prod(front), dtype=dtype, device=places.device) * size
    starts = starts.reshape(*front, *(1,) * axes)
    return where((places >= 0) & (places < size), places.to(dtype) + starts, -1)


def gather_from_images(x: Tensor, at: Tensor) -> Tensor:
    """The elements at linear indices into all images; 0 for those outside."""
    return from_node(gathered(x.copied()._node, at._node))


@composite
def scatter_to_images(x: Tensor, at: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros of a shape with the elements of x written at linear indices into all images; of several
    for one index the last one stays."""
    return from_node(call(pool.spread, (x._node, at._node), shape, x.dtype, (shape,)))


# --- mean -------------------------------------------------------------------------------------


@composite
def mean_pool(x: Tensor, windows: Windows, include: bool, divisor: int) -> Tensor:
    """The mean of each window of floats."""
    options = (windows, include, divisor)
    return from_node(call(pool.mean_pool, (x._node,), windows.shape(x.shape), x.dtype, options))


@composite
def mean_pool_gradient(
    given: Tensor, windows: Windows, include: bool, divisor: int, shape: tuple[int, ...]
) -> Tensor:
    """The gradient of the mean: the value of each window, divided equally among its elements."""
    options = (windows, include, divisor, shape)
    return from_node(
        call(pool_gradients.share_equally, (given._node,), shape, given.dtype, options)
    )
