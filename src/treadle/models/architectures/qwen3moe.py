"""Qwen 3 with a mixture of experts in place of each feed-forward part."""

from __future__ import annotations

from treadle.core.errors import FormatError
from treadle.models.architectures import qwen3
from treadle.models.config import DecoderConfig
from treadle.models.decoder import Decoder
from treadle.models.experts import Experts
from treadle.models.layers import Weights
from treadle.runtime.devices import Device


def build(config: DecoderConfig, weights: Weights, context: int, device: Device) -> Decoder:
    """The model."""
    experts = config.experts
    if not 0 < experts.used <= experts.count or not experts.width:
        raise FormatError(
            f"the metadata gives {experts.used} of {experts.count} experts of width "
            f"{experts.width}: a mixture of experts needs all three"
        )
    return qwen3.build(config, weights, context, device, _inner)


def _inner(config: DecoderConfig, weights: Weights, name: str) -> Experts:
    return Experts(config, weights, name)
