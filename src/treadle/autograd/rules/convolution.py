"""Derivatives of convolutions: convolutions again, so that gradients have gradients."""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule
from treadle.tensor.functional.convolution_operations import (
    Geometry,
    convolution,
    convolution_weights,
    transposed_convolution,
)
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor


def _axes(geometry: Geometry, array: Tensor) -> Geometry:
    """The same windows, for a result with an array's axes behind the channels."""
    return geometry._replace(extents=array.shape[2:])


def _of_bias(g: Tensor) -> Tensor:
    return total(g, axis=(0, *range(2, g.ndim)))


def _convolution(g: Tensor, input: Tensor, weight: Tensor, geometry: Geometry) -> Any:
    return {
        "input": transposed_convolution(g, weight, None, _axes(geometry, input)),
        "weight": convolution_weights(input, g, _axes(geometry, weight)),
        "bias": _of_bias(g),
    }


def _transposed_convolution(g: Tensor, input: Tensor, weight: Tensor, geometry: Geometry) -> Any:
    return {
        "input": convolution(g, weight, None, _axes(geometry, input)),
        "weight": convolution_weights(g, input, _axes(geometry, weight)),
        "bias": _of_bias(g),
    }


def _convolution_weights(g: Tensor, input: Tensor, result: Tensor, geometry: Geometry) -> Any:
    return {
        "input": transposed_convolution(result, g, None, _axes(geometry, input)),
        "result": convolution(input, g, None, _axes(geometry, result)),
    }


RULES: dict[str, Rule] = {
    "convolution": _convolution,
    "convolution_weights": _convolution_weights,
    "transposed_convolution": _transposed_convolution,
}
