"""The architectures that can be loaded, one file each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from treadle.models.config import DecoderConfig
from treadle.models.decoder import Decoder
from treadle.models.layers import Weights
from treadle.runtime.devices import Device

Build = Callable[[DecoderConfig, Weights, int, Device], Decoder]

# From the name in a file to the module that builds it.
ARCHITECTURES = {
    "gemma3": "gemma3",
    "llama": "llama",
    "phi3": "phi3",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "qwen3moe": "qwen3moe",
}


def builder(architecture: str) -> Build:
    """The function that builds a decoder of an architecture."""
    module = import_module(f"treadle.models.architectures.{ARCHITECTURES[architecture]}")
    build: Build = module.build
    return build
