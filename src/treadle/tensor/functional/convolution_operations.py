"""Convolutions as lazy operations on checked operands. There are three, which are each other's
gradients: the gradient of the input is a transposed convolution, that of the weights a product of
all windows.
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.graph.calls import call
from treadle.kernels import convolve as kernels
from treadle.tensor.composites import composite
from treadle.tensor.tensor import Tensor, from_node

Integers = tuple[int, ...]


class Geometry(NamedTuple):
    """The positions of windows: strides, zeros in front of each axis, dilations, the number of
    groups, and the extents of the result's axes; and whether float32 numbers may be rounded to
    TF32."""

    stride: Integers
    padding: Integers
    dilation: Integers
    groups: int
    extents: Integers
    rounded: bool = False


@composite
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry) -> Tensor:
    """The convolution of an input of shape (N, C, …) by weights of shape (O, C / groups, …)."""
    outs = weight.shape[0]
    shape = (input.shape[0], outs, *geometry.extents)
    kernels.check_sizes(
        input.device, input.dtype, input.shape, weight.shape, geometry.extents, outs
    )
    nodes = [each._node for each in (input, weight, bias) if each is not None]
    return from_node(call(kernels.convolve, nodes, shape, input.dtype, tuple(geometry)))


@composite
def transposed_convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry
) -> Tensor:
    """The transposed convolution of an input of shape (N, C, …) by weights of shape
    (C, O / groups, …)."""
    outs = weight.shape[1] * geometry.groups
    shape = (input.shape[0], outs, *geometry.extents)
    kernels.check_sizes(
        input.device, input.dtype, input.shape, weight.shape, geometry.extents, outs
    )
    nodes = [each._node for each in (input, weight, bias) if each is not None]
    return from_node(call(kernels.convolve_transposed, nodes, shape, input.dtype, tuple(geometry)))


@composite
def convolution_weights(input: Tensor, result: Tensor, geometry: Geometry) -> Tensor:
    """The gradient of a convolution's weights: for each output channel, input channel and element
    of the kernel (`geometry.extents`), the sum over all windows of the input's element times that
    of `result`, the gradient of the convolution's result."""
    ins = input.shape[1] // geometry.groups
    shape = (result.shape[1], ins, *geometry.extents)
    most = kernels.most_images(input.device, input.dtype, input.shape, result.shape)
    if input.shape[0] > most:
        first, rest = slice(most), slice(most, None)
        return convolution_weights(input[first], result[first], geometry) + convolution_weights(
            input[rest], result[rest], geometry
        )
    nodes = (input._node, result._node)
    return from_node(call(kernels.weight_gradient, nodes, shape, input.dtype, tuple(geometry)))
