"""Gemma 3: five layers with a window, then one without, and norms before and after each part.

(Gemma Team, "Gemma 3 technical report", 2025.) The weights of norms have 1 added in GGUF files.
"""

from __future__ import annotations

import math

from treadle.models.attention import Angles, Batch, attend
from treadle.models.cache import LayerCache
from treadle.models.config import DecoderConfig
from treadle.models.decoder import Decoder
from treadle.models.layers import FeedForward, Norm, Projection, Projections, Weights, gelu_tanh
from treadle.models.rope import Rotary, frequencies, linear
from treadle.models.stream import Stream
from treadle.models.whole_attention import Texts
from treadle.nn.module import Module
from treadle.runtime.devices import Device

_PERIOD = 6  # the last of so many layers has no window
_LARGEST = 62  # layers of the model whose scores are scaled by the width of a head of its own


class Layer(Module):
    """Attention and a feed-forward part."""

    def __init__(
        self, config: DecoderConfig, weights: Weights, index: int, angles: Angles, window: int
    ) -> None:
        super().__init__()
        name, width, depth = f"blk.{index}", config.width, config.depth
        self.config, self.angles, self.window = config, angles, window
        self.scale = depth**-0.5
        if config.layers == _LARGEST:
            self.scale = (width / config.heads) ** -0.5
        self.attention_norm = self._norm(weights, f"{name}.attn_norm", width)
        rows, few = config.heads * depth, config.key_heads * depth
        rows_of = [(f"{name}.attn_q", rows), (f"{name}.attn_k", few), (f"{name}.attn_v", few)]
        self.heads = Projections(weights, width, rows_of)
        self.head_norms = weights.joined(
            f"{name}.attn_q_norm.weight", f"{name}.attn_k_norm.weight", size=depth
        )
        self.output = Projection(weights, f"{name}.attn_output", width, config.heads * depth)
        self.after_attention = self._norm(weights, f"{name}.post_attention_norm", width)
        self.inner_norm = self._norm(weights, f"{name}.ffn_norm", width)
        self.inner = FeedForward(weights, name, width, config.inner, gelu_tanh)
        self.after_inner = self._norm(weights, f"{name}.post_ffw_norm", width)

    def _norm(self, weights: Weights, name: str, size: int) -> Norm:
        return Norm(weights, name, size, self.config.epsilon)

    def forward(self, stream: Stream, batch: Batch | Texts, cache: LayerCache | None) -> Stream:
        """The stream after this layer."""
        made, stream = self.heads.after_norm(stream, self.attention_norm)
        found = attend(
            self.config, batch, made, cache, self.angles,
            norms=self.head_norms, window=self.window, scale=self.scale,
        )  # fmt: skip
        stream = stream.plus(self.output.after(found), self.after_attention)
        added, stream = self.inner.after_norm(stream, self.inner_norm)
        return stream.plus(added, self.after_inner)


def build(config: DecoderConfig, weights: Weights, context: int, device: Device) -> Decoder:
    """The model."""
    pairs, rope = config.rope.dims // 2, config.rope
    local = Angles(Rotary(frequencies(pairs, rope.local_base)), context, device)
    wide = Angles(Rotary(linear(frequencies(pairs, rope.base), rope.factor)), context, device)

    def layer(index: int) -> Layer:
        is_wide = index % _PERIOD == _PERIOD - 1
        angles, window = (wide, 0) if is_wide else (local, config.window)
        return Layer(config, weights, index, angles, window)

    return Decoder(config, weights, layer, math.sqrt(config.width))
