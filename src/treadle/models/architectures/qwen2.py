"""Qwen 2 and 2.5: queries, keys and values have biases. (Qwen Team, "Qwen2", 2024.)"""

from __future__ import annotations

from treadle.models.attention import Angles
from treadle.models.config import DecoderConfig
from treadle.models.decoder import Decoder
from treadle.models.layer import Kind, Layer
from treadle.models.layers import Weights
from treadle.models.rotary import rotary_of
from treadle.runtime.devices import Device


def build(config: DecoderConfig, weights: Weights, context: int, device: Device) -> Decoder:
    """The model. Biases are used where the file has them."""
    angles = Angles(rotary_of(config, weights, context), context, device)
    kind = Kind(window=config.window)
    return Decoder(config, weights, lambda index: Layer(config, weights, index, angles, kind))
