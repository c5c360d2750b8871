"""The layer that most architectures have: a norm before attention, another before the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from treadle.models.attention import Angles, Batch, attend
from treadle.models.cache import LayerCache
from treadle.models.config import DecoderConfig
from treadle.models.layers import (
    AfterNorm,
    Columns,
    FeedForward,
    Norm,
    Projection,
    Projections,
    Weights,
)
from treadle.models.stream import Stream
from treadle.models.whole_attention import Texts
from treadle.nn.module import Module

MakeInner = Callable[[DecoderConfig, Weights, str], AfterNorm]


def feed_forward(config: DecoderConfig, weights: Weights, name: str) -> AfterNorm:
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

    def forward(self, stream: Stream, batch: Batch | Texts, cache: LayerCache | None) -> Stream:
        """The stream after this layer."""
        config = self.config
        made, stream = self.heads.after_norm(stream, self.attention_norm)
        if self.kind.fused:
            rows, few = config.heads * config.depth, config.key_heads * config.depth
            made = [Columns(made[0].rows, start) for start in (0, rows, rows + few)]
        found = attend(
            config, batch, made, cache, self.angles,
            norms=self.head_norms, window=self.kind.window,
        )  # fmt: skip
        stream = stream.plus(self.output.after(found))
        added, stream = self.inner.after_norm(stream, self.inner_norm)
        return stream.plus(added)
