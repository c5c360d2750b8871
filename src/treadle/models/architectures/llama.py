"""Llama 2 and 3, SmolLM, and Mistral, whose layers may have a window.

(H. Touvron and others, "Llama 2", 2023.) GGUF files of this architecture have the rows of queries
and keys permuted, so that the elements of a pair are neighbours. The factors of Llama 3's longer
context are the tensor `rope_freqs`.
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
    angles = Angles(rotary_of(config, weights, context, adjacent=True), context, device)
    kind = Kind(window=config.window)
    return Decoder(config, weights, lambda index: Layer(config, weights, index, angles, kind))
