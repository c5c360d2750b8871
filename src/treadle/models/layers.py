"""What the layers of decoders have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, Protocol

import numpy as np

from treadle.kernels.device_code.activation_prologues import Prologue
from treadle.models.stream import Rows, Stream
from treadle.nn.containers import ModuleList
from treadle.nn.module import Module
from treadle.quant import gradients
from treadle.quant.matrix import QuantizedTensor
from treadle.quant.products import Activations
from treadle.tensor.assembly import concat
from treadle.tensor.elementwise_functions import clip, where
from treadle.tensor.functional.activations import gelu, silu
from treadle.tensor.functional.normalization import rms_norm
from treadle.tensor.tensor import Tensor


@dataclass(frozen=True, eq=False)
class RowParts:
    """A matrix of which a kernel may not see all at once: some of its rows, then the next ones."""

    parts: tuple[Tensor | QuantizedTensor, ...]


Matrix = Tensor | QuantizedTensor | RowParts
Gate = Callable[[Tensor], Tensor]


class Weights(Protocol):
    """Where a model's weights are found by their names in the file."""

    activations: Activations | None  # how they are multiplied with

    def matrix(self, name: str, rows: int, columns: int) -> Matrix:
        """A matrix, checked to have this shape."""

    def stack(self, name: str, count: int, rows: int, columns: int) -> Tensor | QuantizedTensor:
        """Matrices of one shape, checked to have it."""

    def vector(self, name: str, size: int) -> Tensor:
        """A vector in float32."""

    def joined(self, *names: str, size: int) -> Tensor:
        """Vectors of the same size, one after the other."""

    def numpy(self, name: str, size: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """A vector on the host."""

    def has(self, name: str) -> bool:
        """Whether the file has a tensor of this name."""

    def together(self, rows_of: Sequence[tuple[str, int]], columns: int) -> None:
        """Have neighbours among these matrices that are of one format one after the other in
        memory, so that a kernel reads them as one."""


def multiply(x: Tensor, matrix: Matrix, activations: Activations | None = None) -> Tensor:
    """`x @ matrix.T`, differentiable for x, from the blocks where the matrix is quantized."""
    if isinstance(matrix, RowParts):
        return concat([multiply(x, part, activations) for part in matrix.parts], axis=-1)
    if isinstance(matrix, QuantizedTensor):
        return gradients.linear(x, matrix, activations)
    return x @ matrix.T


def rows_of(matrix: Matrix, indices: Tensor) -> Tensor:
    """Rows of a matrix, as float32."""
    if isinstance(matrix, QuantizedTensor):
        return matrix.rows(indices)
    if isinstance(matrix, Tensor):
        return matrix[indices]
    found, start = None, 0
    for part in matrix.parts:
        own = rows_of(part, clip(indices - start, 0, part.shape[0] - 1)).realize()
        found = own if found is None else where((indices >= start).reshape(-1, 1), own, found)
        start += part.shape[0]
    assert found is not None
    return found


@dataclass(frozen=True, eq=False)
class Columns:
    """Where a product's result is: in rows, from one column on."""

    rows: Tensor
    start: int = 0

    def tensor(self, count: int) -> Tensor:
        """So many columns."""
        if self.start == 0 and self.rows.shape[-1] == count:
            return self.rows
        return self.rows[:, self.start : self.start + count]


class Norm(Module):
    """Division by the root mean square, and weights."""

    def __init__(self, weights: Weights, name: str, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = weights.vector(f"{name}.weight", size)
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Rows with a root mean square of 1, times the weights."""
        return rms_norm(x, x.shape[-1], self.weight, self.epsilon)


class Projection(Module):
    """A product with a matrix of the file, and a bias if the file has one. An adapter, if there is
    one, computes from the same rows what is added (`lora`)."""

    def __init__(self, weights: Weights, name: str, rows: int, columns: int) -> None:
        super().__init__()
        self.name, self.rows, self.columns = name, rows, columns
        self.adapter: Module | None = None
        self.matrix = weights.matrix(f"{name}.weight", rows, columns)
        self.bias = weights.vector(f"{name}.bias", rows) if weights.has(f"{name}.bias") else None
        self.activations = weights.activations

    def forward(self, x: Tensor) -> Tensor:
        """The product of rows with the matrix."""
        return self.completed(multiply(x, self.matrix, self.activations), x)

    def completed(self, made: Tensor, x: Tensor) -> Tensor:
        """A product of x with what is added to it."""
        if self.bias is not None:
            made = made + self.bias
        return made if self.adapter is None else made + self.adapter(x)

    def after(self, rows: Rows) -> Tensor:
        """The product of rows, which the same kernel computes where that is possible."""
        found = None
        if self.adapter is None:
            found = rows.times([self.matrix], self.activations)
        if found is None:
            made: Tensor = self(rows.tensor())
            return made
        return found[0] if self.bias is None else found[0] + self.bias


class AfterNorm(Module):
    """What comes after a norm of the stream."""

    def after_norm(self, stream: Stream, norm: Norm) -> tuple[Tensor, Stream]:
        """What it gives for the stream's rows, and the stream without anything to be added."""
        x = stream.tensor()
        return self(norm(x)), Stream(x)


class Projections(Module):
    """Several products of the same rows, which are quantized only once for all of them."""

    def __init__(self, weights: Weights, columns: int, rows_of: Sequence[tuple[str, int]]) -> None:
        super().__init__()
        weights.together([(f"{name}.weight", rows) for name, rows in rows_of], columns)
        self.parts = ModuleList(
            [Projection(weights, name, rows, columns) for name, rows in rows_of]
        )
        self.activations = weights.activations
        biases = [part.bias for part in self.parts]
        self.biases = None  # of all parts
        if all(bias is not None for bias in biases):
            self.biases = concat(biases).realize()

    def forward(self, x: Tensor) -> list[Tensor]:
        """The product with each matrix."""
        matrices = [part.matrix for part in self.parts]
        quantized = [each for each in matrices if isinstance(each, QuantizedTensor)]
        if len(quantized) < len(matrices):
            return [part(x) for part in self.parts]
        made = gradients.linears(x, quantized, self.activations)
        return [part.completed(each, x) for each, part in zip(made, self.parts, strict=True)]

    def after_norm(self, stream: Stream, norm: Norm) -> tuple[list[Columns], Stream]:
        """The products of the stream's rows after a norm, and the stream without anything to be
        added."""
        found, parts = None, list(self.parts)
        plain = all(part.adapter is None for part in parts)
        if plain and (self.biases is not None or all(part.bias is None for part in parts)):
            found = stream.normed(norm).times([part.matrix for part in parts], self.activations)
        if found is None:
            x = stream.tensor()
            return [Columns(each) for each in self(norm(x))], Stream(x)
        made, summed = found
        if self.biases is not None:
            made = made + self.biases
        starts = accumulate((part.rows for part in parts[:-1]), initial=0)
        columns = [Columns(made, start) for start in starts]
        return columns, Stream(stream.x if summed is None else summed)


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU by the hyperbolic tangent, as Gemma has it."""
    return gelu(x, approximate="tanh")


_GATES: dict[Gate, Literal["silu", "gelu_tanh"]] = {silu: "silu", gelu_tanh: "gelu_tanh"}


class FeedForward(AfterNorm):
    """down(gate(x W1) * (x W2)). Files of some architectures have W1 and W2 as one matrix."""

    def __init__(
        self, weights: Weights, name: str, width: int, inner: int, gate: Gate = silu
    ) -> None:
        super().__init__()
        self.gate, self.inner = gate, inner
        self.split = not weights.has(f"{name}.ffn_gate.weight")
        rows_of = [(f"{name}.ffn_gate", inner), (f"{name}.ffn_up", inner)]
        if self.split:
            rows_of = [(f"{name}.ffn_up", 2 * inner)]
        self.up = Projections(weights, width, rows_of)
        self.down = Projection(weights, f"{name}.ffn_down", width, inner)

    def forward(self, x: Tensor) -> Tensor:
        """Of rows of the model's width."""
        return self._down([Columns(each) for each in self.up(x)])

    def after_norm(self, stream: Stream, norm: Norm) -> tuple[Tensor, Stream]:
        """Of the stream's rows."""
        made, stream = self.up.after_norm(stream, norm)
        return self._down(made), stream

    def _down(self, made: list[Columns]) -> Tensor:
        if self.split:
            made = [made[0], Columns(made[0].rows, self.inner)]
        gated, up = made

        def product() -> Tensor:
            return self.gate(gated.tensor(self.inner)) * up.tensor(self.inner)

        known = _GATES.get(self.gate)
        if known is None or gated.rows is not up.rows:
            found: Tensor = self.down(product())
            return found
        prologue = Prologue("gated", self.inner, gate=known)
        return self.down.after(Rows(prologue, (gated.rows,), gated.rows.shape[0], product))
