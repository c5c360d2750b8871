"""A mixture of experts: each token goes through a few of many feed-forward parts.

For few tokens the experts' matrices are taken by index, so that only those that are used are read.
For many tokens, as in a prompt, all experts are used by some token: each is read once, for all.
"""

from __future__ import annotations

from treadle.core.dtypes import int32
from treadle.models.config import DecoderConfig
from treadle.models.layers import AfterNorm, Projection, Weights, multiply
from treadle.quant.matrix import QuantizedTensor
from treadle.tensor.elementwise_functions import where
from treadle.tensor.functional.activations import silu
from treadle.tensor.functional.normalization import softmax
from treadle.tensor.products import matmul
from treadle.tensor.ranges import arange
from treadle.tensor.sorting import topk
from treadle.tensor.tensor import Tensor

Stack = Tensor | QuantizedTensor


class Experts(AfterNorm):
    """The sum of a token's experts, weighted by the router's probabilities, which add up to 1."""

    def __init__(self, config: DecoderConfig, weights: Weights, name: str) -> None:
        super().__init__()
        self.sizes = config.experts
        count, inner, width = self.sizes.count, self.sizes.width, config.width
        self.activations = weights.activations
        self.router = Projection(weights, f"{name}.ffn_gate_inp", count, width)
        self.gate = weights.stack(f"{name}.ffn_gate_exps.weight", count, inner, width)
        self.up = weights.stack(f"{name}.ffn_up_exps.weight", count, inner, width)
        self.down = weights.stack(f"{name}.ffn_down_exps.weight", count, width, inner)

    def forward(self, x: Tensor) -> Tensor:
        """Of rows of the model's width."""
        shares, chosen = topk(softmax(self.router(x), -1), self.sizes.used)
        shares = shares / shares.sum(axis=-1, keepdims=True)
        if chosen.size < self.sizes.count:
            return self._few(x, shares, chosen)
        return self._all(x, shares, chosen)

    def _few(self, x: Tensor, shares: Tensor, chosen: Tensor) -> Tensor:
        n, used = chosen.shape
        which = chosen.reshape(-1).to(int32)
        rows = x.reshape(n, 1, -1).broadcast_to((n, used, x.shape[-1])).reshape(n * used, -1, 1)
        inner = silu(matmul(_taken(self.gate, which), rows)) * matmul(_taken(self.up, which), rows)
        found = matmul(_taken(self.down, which), inner).reshape(n, used, -1)
        return (found * shares.reshape(n, used, 1)).sum(axis=1)

    def _all(self, x: Tensor, shares: Tensor, chosen: Tensor) -> Tensor:
        found = None
        for index in range(self.sizes.count):
            share = where(chosen == index, shares, 0.0).sum(axis=-1, keepdims=True)
            gate, up, down = (self._expert(each, index) for each in (self.gate, self.up, self.down))
            inner = silu(multiply(x, gate, self.activations))
            inner = inner * multiply(x, up, self.activations)
            own = multiply(inner, down, self.activations) * share
            found = own if found is None else found + own
        assert found is not None
        return found

    @staticmethod
    def _expert(stack: Stack, index: int) -> Stack:
        return stack[index]


def _taken(stack: Stack, which: Tensor) -> Tensor:
    """Matrices of a stack, in float32."""
    if not isinstance(stack, QuantizedTensor):
        return stack[which]
    _, rows, columns = stack.shape
    lines = which.reshape(-1, 1) * rows + arange(rows, dtype=int32, device=which.device)
    flat = lines.reshape(-1)
    planes = {name: plane[flat] for name, plane in stack.planes.items()}
    return stack.format.dequantize(planes).reshape(which.shape[0], rows, columns)
