"""What a decoder's file says about it: its sizes, by the metadata's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treadle.core.errors import FormatError
from treadle.models import rope


@dataclass(frozen=True)
class RopeConfig:
    """How positions are encoded; `rope` has what the numbers mean."""

    dims: int  # elements of a head that are rotated
    base: float
    local_base: float  # of layers with a window, where they differ
    scaling: rope.Scaling = "none"
    factor: float = 1.0
    original: int = 0  # the context that the model was first trained with
    attention_factor: float | None = None
    fast: float = 32.0
    slow: float = 1.0


@dataclass(frozen=True)
class ExpertsConfig:
    """A mixture of experts: how many there are, how many a token uses, and their width."""

    count: int = 0
    used: int = 0
    width: int = 0


@dataclass(frozen=True)
class DecoderConfig:
    """The sizes of a decoder, the same for all its layers but where a sequence says otherwise."""

    architecture: str
    name: str
    layers: int
    width: int  # of a token's vector
    heads: int
    key_heads: int
    depth: int  # of a head
    inner: int  # width of the feed-forward part
    vocabulary: int
    context: int  # tokens that the model was trained for
    epsilon: float
    rope: RopeConfig
    window: int = 0  # keys that a query sees in layers with a window, 0 without
    experts: ExpertsConfig = field(default_factory=ExpertsConfig)
    attention_cap: float = 0.0  # of scores; 0 is none
    logits_cap: float = 0.0

    @property
    def group(self) -> int:
        """Heads of the query that share a head of keys."""
        return self.heads // self.key_heads


class Metadata:
    """Values under an architecture's name, checked as they are read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.architecture = str(values.get("general.architecture", ""))

    def get(self, name: str, default: Any = None) -> Any:
        """A value, or the default where the file has none."""
        return self.values.get(f"{self.architecture}.{name}", default)

    def number(self, name: str, default: float | None = None) -> float:
        """A number. FormatError where it is missing and there is no default."""
        value = self.get(name, default)
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            said = "has none" if value is None else f"has {type(value).__name__}"
            raise FormatError(
                f"the model's metadata {said} under {self.architecture}.{name}, "
                "where a number is needed"
            )
        return float(value)

    def whole(self, name: str, default: int | None = None, least: int = 1) -> int:
        """A whole number from `least` on; of a list for all layers, one that all have."""
        value = self.get(name, default)
        if isinstance(value, (list, tuple, np.ndarray)):
            each = set(value)
            if len(each) > 1 and all(hasattr(one, "__int__") for one in each):
                raise FormatError(
                    f"{self.architecture}.{name} differs between layers, which "
                    "no supported architecture has"
                )
            value = each.pop() if len(each) == 1 else str(value)
        if value is None:
            raise FormatError(f"the model's metadata has no {self.architecture}.{name}")
        found = int(value) if hasattr(value, "__int__") else least - 1
        if not least <= found < 1 << 31 or found != value:
            raise FormatError(f"{self.architecture}.{name} is {value!r}, which cannot be a size")
        return found


def config_of(values: Mapping[str, Any], vocabulary: int) -> DecoderConfig:
    """The sizes that a GGUF file's metadata gives; `vocabulary` is the rows of its embedding."""
    given = Metadata(values)
    heads = given.whole("attention.head_count")
    key_heads = given.whole("attention.head_count_kv", heads)
    width = given.whole("embedding_length")
    depth = given.whole("attention.key_length", max(width // heads, 1))
    if heads % key_heads:
        raise FormatError(f"{heads} heads of queries cannot share {key_heads} heads of keys")
    if given.whole("attention.value_length", depth) != depth:
        raise FormatError("keys and values of different sizes are not supported")
    context = given.whole("context_length")
    return DecoderConfig(
        architecture=given.architecture,
        name=str(values.get("general.name", given.architecture)),
        layers=given.whole("block_count"),
        width=width,
        heads=heads,
        key_heads=key_heads,
        depth=depth,
        inner=given.whole("feed_forward_length", 0, 0),
        vocabulary=vocabulary,
        context=context,
        epsilon=given.number("attention.layer_norm_rms_epsilon", 1e-6),
        rope=_rope_of(given, depth, context),
        window=given.whole("attention.sliding_window", 0, 0),
        experts=ExpertsConfig(
            given.whole("expert_count", 0, 0),
            given.whole("expert_used_count", 0, 0),
            given.whole("expert_feed_forward_length", 0, 0),
        ),
        attention_cap=given.number("attn_logit_softcapping", 0.0),
        logits_cap=given.number("final_logit_softcapping", 0.0),
    )


def _rope_of(given: Metadata, depth: int, context: int) -> RopeConfig:
    dims = given.whole("rope.dimension_count", depth, 2)
    if dims % 2 or dims > depth:
        raise FormatError(
            f"{given.architecture}.rope.dimension_count is {dims}, and a head has "
            f"{depth} elements: an even number up to that is needed"
        )
    base = given.number("rope.freq_base", 10000.0)
    factor = given.number("rope.scaling.factor", given.number("rope.scale_linear", 1.0))
    said = given.get("rope.scaling.type", "linear" if factor > 1 else "none")
    if said not in rope.SCALINGS:
        raise FormatError(
            f"rope scaling {said!r} is unknown: supported are {', '.join(rope.SCALINGS)}"
        )
    attention = given.get("rope.scaling.attn_factor")
    return RopeConfig(
        dims=dims,
        base=base,
        local_base=given.number("rope.freq_base_swa", 10000.0),
        scaling=said,
        factor=factor or 1.0,
        original=given.whole("rope.scaling.original_context_length", context),
        attention_factor=None if attention is None else float(attention),
        fast=given.number("rope.scaling.yarn_beta_fast", 32.0),
        slow=given.number("rope.scaling.yarn_beta_slow", 1.0),
    )
