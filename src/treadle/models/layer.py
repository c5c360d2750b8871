"""The layer that most architectures have: a norm before attention, another before the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from treadle.models.attention import Angles, Batch, Heads, attend
from treadle.models.cache import LayerCache
from treadle.models.config import DecoderConfig
from treadle.models.layers import FeedForward, Norm, Projection, Projections, Weights
from treadle.nn.module import Module
from treadle.tensor.tensor import Tensor

MakeInner = Callable[[DecoderConfig, Weights, str], Module]


def feed_forward(config: DecoderConfig, weights: Weights, name: str) -> Module:
    """The usual part after attention."""
    return FeedForward(weights, name, config.width, config.inner)


@dataclass(frozen=True)
class Kind:
    """What differs between architectures that have this layer."""

    window: int = 0  # keys that a query sees; 0 is all
    fused: bool = False  # whether query, key and value are one matrix in the file
    head_norms: bool = False  # whether heads of queries and keys have norms
    inner: MakeInner = feed_forward


class Layer(Module):
    """x + attention(norm(x)), then that + inner(norm(that))."""

    def __init__(
        self, config: DecoderConfig, weights: Weights, index: int, angles: Angles, kind: Kind
    ) -> None:
        super().__init__()
        name, width, depth = f"blk.{index}", config.width, config.depth
        self.config, self.angles, self.kind = config, angles, kind
        self.attention_norm = Norm(weights, f"{name}.attn_norm", width, config.epsilon)
        rows, few = config.heads * depth, config.key_heads * depth
        rows_of = [(f"{name}.attn_q", rows), (f"{name}.attn_k", few), (f"{name}.attn_v", few)]
        if kind.fused:
            rows_of = [(f"{name}.attn_qkv", rows + 2 * few)]
        self.heads = Projections(weights, width, rows_of)
        self.head_norms = None
        if kind.head_norms:
            names = f"{name}.attn_q_norm.weight", f"{name}.attn_k_norm.weight"
            self.head_norms = weights.joined(*names, size=depth)
        self.output = Projection(weights, f"{name}.attn_output", width, rows)
        self.inner_norm = Norm(weights, f"{name}.ffn_norm", width, config.epsilon)
        self.inner = kind.inner(config, weights, name)

    def forward(self, x: Tensor, batch: Batch, cache: LayerCache) -> Tensor:
        """The rows after this layer."""
        config = self.config
        made = self.heads(self.attention_norm(x))
        if self.kind.fused:
            rows, few = config.heads * config.depth, config.key_heads * config.depth
            starts = (0, rows, rows + few)
            query, key, value = (Heads(made[0], start) for start in starts)
        else:
            query, key, value = (Heads(each) for each in made)
        found = attend(
            config, batch, (query, key, value), cache, self.angles,
            norms=self.head_norms, window=self.kind.window,
        )  # fmt: skip
        x = x + self.output(found)
        after: Tensor = x + self.inner(self.inner_norm(x))
        return after
