"""Qwen 3: heads of queries and keys have norms. (Qwen Team, "Qwen3 technical report", 2025.)"""

from __future__ import annotations

from treadle.models.attention import Angles
from treadle.models.config import DecoderConfig
from treadle.models.decoder import Decoder
from treadle.models.layer import Kind, Layer, MakeInner, feed_forward
from treadle.models.layers import Weights
from treadle.models.rotary import rotary_of
from treadle.runtime.devices import Device


def build(
    config: DecoderConfig,
    weights: Weights,
    context: int,
    device: Device,
    inner: MakeInner = feed_forward,
) -> Decoder:
    """The model."""
    angles = Angles(rotary_of(config, weights, context), context, device)
    kind = Kind(window=config.window, head_norms=True, inner=inner)
    return Decoder(config, weights, lambda index: Layer(config, weights, index, angles, kind))
