"""What the layers of decoders have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from treadle.nn.module import Module
from treadle.quant import products
from treadle.quant.matrix import QuantizedTensor
from treadle.tensor.functional.activations import gelu, silu
from treadle.tensor.functional.normalization import rms_norm
from treadle.tensor.tensor import Tensor

Matrix = Tensor | QuantizedTensor
Gate = Callable[[Tensor], Tensor]


class Weights(Protocol):
    """Where a model's weights are found by their names in the file."""

    def matrix(self, name: str, rows: int, columns: int) -> Matrix:
        """A matrix, checked to have this shape."""

    def vector(self, name: str, size: int) -> Tensor:
        """A vector in float32."""

    def joined(self, *names: str, size: int) -> Tensor:
        """Vectors of the same size, one after the other."""

    def has(self, name: str) -> bool:
        """Whether the file has a tensor of this name."""


def multiply(x: Tensor, matrix: Matrix) -> Tensor:
    """`x @ matrix.T`, from the blocks where the matrix is quantized."""
    if isinstance(matrix, QuantizedTensor):
        return products.linear(x, matrix)
    return x @ matrix.T


class Projection(Module):
    """A product with a matrix of the file, and a bias if the file has one."""

    def __init__(self, weights: Weights, name: str, rows: int, columns: int) -> None:
        super().__init__()
        self.matrix = weights.matrix(f"{name}.weight", rows, columns)
        self.bias = weights.vector(f"{name}.bias", rows) if weights.has(f"{name}.bias") else None

    def forward(self, x: Tensor) -> Tensor:
        """The product of rows with the matrix."""
        made = multiply(x, self.matrix)
        return made if self.bias is None else made + self.bias


class Norm(Module):
    """Division by the root mean square, and weights."""

    def __init__(self, weights: Weights, name: str, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = weights.vector(f"{name}.weight", size)
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Rows with a root mean square of 1, times the weights."""
        return rms_norm(x, x.shape[-1], self.weight, self.epsilon)


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU by the hyperbolic tangent, as Gemma has it."""
    return gelu(x, approximate="tanh")


class FeedForward(Module):
    """down(gate(x W1) * (x W2))."""

    def __init__(
        self, weights: Weights, name: str, width: int, inner: int, gate: Gate = silu
    ) -> None:
        super().__init__()
        self.gate_function = gate
        self.gate = Projection(weights, f"{name}.ffn_gate", inner, width)
        self.up = Projection(weights, f"{name}.ffn_up", inner, width)
        self.down = Projection(weights, f"{name}.ffn_down", width, inner)

    def forward(self, x: Tensor) -> Tensor:
        """Of rows of the model's width."""
        return self.down(self.gate_function(self.gate(x)) * self.up(x))
