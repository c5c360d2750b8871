"""The numbers of config.json, under the keys of GGUF files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from treadle.core.errors import FormatError
from treadle.formats.contents import shortened

_GEMMA_PATTERN = 6  # every sixth layer of Gemma 3 sees the whole context
_WITH_WINDOWS = ("llama", "phi3")  # all of whose layers have the window, if there is one
_YARN = {"beta_fast": 32, "beta_slow": 1}  # what files without these mean
_SILU = ("hidden_act", "silu", ("silu", "swish"))
# What llama.cpp takes for granted of an architecture, as files have no key for it: the setting, its
# value where config.json does not say, and the values that it may have.
_TAKEN_FOR_GRANTED: dict[str, tuple[tuple[str, Any, tuple[Any, ...]], ...]] = {
    "llama": (_SILU,),
    "qwen2": (_SILU,),
    "qwen3": (_SILU,),
    "qwen3moe": (_SILU, ("norm_topk_prob", False, (True,))),
    "phi3": (_SILU,),
    "gemma3": (
        ("hidden_activation", "gelu_pytorch_tanh", ("gelu_pytorch_tanh",)),
        ("final_logit_softcapping", None, (None,)),
        ("attn_logit_softcapping", None, (None,)),
    ),
}
_LARGE_GEMMA = 62  # layers of the one Gemma 3 whose scores are scaled by its width


class Config:
    """Values of config.json, checked as they are read."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        inner = values.get("text_config")
        self.values: Mapping[str, Any] = inner if isinstance(inner, dict) else values
        self.where = where

    def get(self, name: str, default: Any = None) -> Any:
        """A value, or the default where there is none or null."""
        value = self.values.get(name)
        return default if value is None else value

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number. FormatError where it is missing, or of another kind."""
        value = self.get(name, default)
        if type(value) is not int or not 0 < value < 2**31:
            raise FormatError(f"{self.where}: {name} is {shortened(value)}, which cannot be a size")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A number above 0, as `whole` gives one."""
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
            raise FormatError(f"{self.where}: {name} is {shortened(value)}, not a number above 0")
        return float(value)

    def numbers(self, name: str, count: int) -> np.ndarray[Any, Any]:
        """A list of so many numbers above 0, as float32."""
        value = self.get(name)
        if not isinstance(value, list) or len(value) != count:
            raise FormatError(f"{self.where}: {name} is not a list of {count} numbers")
        if not all(isinstance(x, int | float) and 0 < x < 1e30 for x in value):
            raise FormatError(f"{self.where}: {name} has what is not a number above 0")
        return np.array(value, np.float32)

    def inner(self, name: str) -> Config:
        """The values of an object among the values; none if it is not there."""
        value = self.get(name, {})
        if not isinstance(value, dict):
            raise FormatError(f"{self.where}: {name} is not an object")
        made = Config({}, f"{self.where}: {name}")
        made.values = value
        return made


def sizes(config: Config, architecture: str) -> dict[str, Any]:
    """Metadata of a GGUF file: what the architecture's keys say. FormatError where the model is
    one that they cannot describe."""
    for name, usual, possible in _TAKEN_FOR_GRANTED[architecture]:
        if (value := config.get(name, usual)) not in possible:
            raise FormatError(
                f"{config.where}: {name} is {shortened(value)}; GGUF files of the architecture "
                f"{architecture} have no key for it, and models are computed as with "
                f"{' or '.join(map(repr, possible))}"
            )
    heads, width, depth = (
        config.whole("num_attention_heads"),
        config.whole("hidden_size"),
        _depth(config),
    )
    made: dict[str, Any] = {
        "block_count": config.whole("num_hidden_layers"),
        "context_length": _context(config, architecture),
        "embedding_length": width,
        "feed_forward_length": config.whole("intermediate_size"),
        "attention.head_count": heads,
        "attention.head_count_kv": config.whole("num_key_value_heads", heads),
        "attention.key_length": depth,
        "attention.value_length": depth,
        "attention.layer_norm_rms_epsilon": config.number("rms_norm_eps", 1e-6),
        "vocab_size": config.whole("vocab_size"),
    }
    rope = _rope(config)
    made["rope.dimension_count"] = _rotated(config, rope)
    made["rope.freq_base"] = rope.number("rope_theta", config.number("rope_theta", 10000.0))
    made |= _scaling(rope, config)
    if architecture == "gemma3":
        made |= _gemma3(config, depth)
    if config.get("sliding_window") and architecture in _WITH_WINDOWS:
        made["attention.sliding_window"] = config.whole("sliding_window")
    if architecture == "qwen3moe":
        made |= {
            "expert_count": config.whole("num_experts", config.get("num_local_experts")),
            "expert_used_count": config.whole("num_experts_per_tok"),
            "expert_feed_forward_length": config.whole("moe_intermediate_size"),
        }
        if config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1:
            raise FormatError(f"{config.where}: layers with and without experts are not supported")
    return {f"{architecture}.{key}": value for key, value in made.items()}


def rope_factors(config: Config) -> dict[str, np.ndarray[Any, Any]]:
    """Tensors by which the frequencies of rotary embeddings are divided, where they have such."""
    rope = _rope(config)
    kind = _kind(rope)
    if kind == "llama3":
        return {"rope_freqs.weight": _llama3_factors(rope, config)}
    if kind == "longrope":
        count = _rotated(config, rope) // 2
        return {
            f"rope_factors_{name}.weight": rope.numbers(f"{name}_factor", count)
            for name in ("long", "short")
        }
    return {}


def _context(config: Config, architecture: str) -> int:
    """The context; only what the window shows where some of the layers have it, since files cannot
    say which."""
    context = config.whole("max_position_embeddings")
    has_window = config.get("sliding_window") and config.get("use_sliding_window", True)
    if has_window and architecture not in ("gemma3", *_WITH_WINDOWS):
        return min(context, config.whole("sliding_window"))
    return context


def _rope(config: Config) -> Config:
    """How positions are encoded, in whichever of three forms the file has it."""
    rope = config.inner("rope_parameters")
    if "full_attention" in rope.values:  # Gemma 3's two kinds of layers
        rope = rope.inner("full_attention")
    return rope if rope.values else config.inner("rope_scaling")


def _depth(config: Config) -> int:
    """Elements of a head."""
    heads, width = config.whole("num_attention_heads"), config.whole("hidden_size")
    return config.whole("head_dim", max(width // heads, 1))


def _rotated(config: Config, rope: Config) -> int:
    """Elements of a head that are rotated."""
    share = rope.number("partial_rotary_factor", config.number("partial_rotary_factor", 1.0))
    rotated = int(_depth(config) * share)
    if not 0 < share <= 1 or rotated % 2 or not rotated:
        raise FormatError(f"{config.where}: {share:g} of a head of {_depth(config)} cannot rotate")
    return rotated


def _kind(rope: Config) -> str:
    return str(rope.get("rope_type", rope.get("type", "default")))


def _scaling(rope: Config, config: Config) -> dict[str, Any]:
    kind = _kind(rope)
    name = "original_max_position_embeddings"
    if kind in ("default", "llama3"):  # the latter in a tensor
        return {}
    if kind == "linear":
        return {"rope.scaling.type": "linear", "rope.scaling.factor": rope.number("factor")}
    if kind == "yarn":
        for option in ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"):
            if rope.get(option) not in (None, _YARN.get(option)):
                raise FormatError(f"{rope.where}: {option} of yarn is not supported")
        return {
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": rope.number("factor"),
            "rope.scaling.original_context_length": rope.whole(
                name, config.whole("max_position_embeddings")
            ),
        }
    if kind == "longrope":
        original = rope.whole(name, config.get(name))
        factor = config.whole("max_position_embeddings") / original
        scaled = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
        return {
            "rope.scaling.original_context_length": original,
            "rope.scaling.attn_factor": rope.number("attention_factor", scaled),
        }
    raise FormatError(
        f"{rope.where}: rotary embeddings of the kind {kind!r} are not supported; supported are "
        "default, linear, yarn, llama3 and longrope"
    )


def _llama3_factors(rope: Config, config: Config) -> np.ndarray[Any, Any]:
    """Llama 3's: long waves are stretched, short ones stay, and those between are blended."""
    depth = _depth(config)
    base = rope.number("rope_theta", config.number("rope_theta", 10000.0))
    factor, low, high = (
        rope.number("factor"), rope.number("low_freq_factor"), rope.number("high_freq_factor"),
    )  # fmt: skip
    if not low < high:
        raise FormatError(f"{rope.where}: low_freq_factor is not below high_freq_factor")
    waves = 2 * np.pi * base ** (np.arange(0, depth, 2) / depth)
    periods = rope.whole("original_max_position_embeddings") / waves
    smooth = np.clip((periods - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)


def _gemma3(config: Config, depth: int) -> dict[str, Any]:
    """What files of Gemma 3 say; and what llama.cpp takes for granted, which must hold."""
    layers, heads = config.whole("num_hidden_layers"), config.whole("num_attention_heads")
    kinds = config.get("layer_types")
    pattern = config.get("sliding_window_pattern", config.get("_sliding_window_pattern", 6))
    expected = [
        "full_attention" if (at + 1) % _GEMMA_PATTERN == 0 else "sliding_attention"
        for at in range(layers)
    ]
    scale = config.number("query_pre_attn_scalar", depth)
    usual = config.whole("hidden_size") / heads if layers == _LARGE_GEMMA else depth
    if (kinds is not None and kinds != expected) or pattern != _GEMMA_PATTERN or scale != usual:
        raise FormatError(
            f"{config.where}: GGUF files of Gemma 3 have every sixth layer without a window and "
            f"scores divided by the root of {usual:g}, and this model differs"
        )
    return {"attention.sliding_window": config.whole("sliding_window")}
