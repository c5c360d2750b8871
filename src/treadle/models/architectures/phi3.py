"""Phi-3: query, key and value are one matrix of the file, and so are gate and up.

(M. Abdin and others, "Phi-3 technical report", 2024.) Files for long contexts have two sets of
divisors of the frequencies, for contexts up to the original one and beyond.
"""

from __future__ import annotations

from treadle.models.attention import Angles
from treadle.models.config import DecoderConfig
from treadle.models.decoder import Decoder
from treadle.models.layer import Kind, Layer
from treadle.models.layers import Weights
from treadle.models.rotary import rotary_of
from treadle.runtime.devices import Device


def build(config: DecoderConfig, weights: Weights, context: int, device: Device) -> Decoder:
    """The model."""
    angles = Angles(rotary_of(config, weights, context), context, device)
    kind = Kind(window=config.window, fused=True)
    return Decoder(config, weights, lambda index: Layer(config, weights, index, angles, kind))
