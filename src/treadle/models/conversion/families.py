"""Architectures by the names that config.json gives them, and what llama.cpp calls their parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.qkv_proj": "attn_qkv",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.gate": "ffn_gate_inp",
}
_ROUND_NORMS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
_WHOLE = {
    "embed_tokens.weight": "token_embd.weight",
    "norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_LAYER = re.compile(r"layers\.(\d+)\.(.+)\.(weight|bias)")
_EXPERT = re.compile(r"mlp\.experts\.(\d+)\.(gate|up|down)_proj")
_PREFIXES = ("model.language_model.", "language_model.model.", "language_model.", "model.")
# Tables that are computed, and the parts of models that see or hear.
_SKIPPED = re.compile(r"rotary_emb\.inv_freq$|^(model\.)?(vision_tower|multi_modal_projector)\.")


@dataclass(frozen=True)
class Family:
    """An architecture of llama.cpp's, and how its weights differ from Hugging Face's."""

    architecture: str
    parts: Mapping[str, str] = field(default_factory=lambda: _PARTS)
    permuted: bool = False  # rows of query and key: pairs that rotate lie side by side
    norm_offset: float = 0.0  # what is added to the weights of norms


@dataclass(frozen=True)
class Place:
    """Where a tensor goes: its name, and which expert of those in one tensor it is."""

    name: str
    expert: int | None = None


_LLAMA = Family("llama", permuted=True)
_GEMMA_3 = Family("gemma3", _PARTS | _ROUND_NORMS, norm_offset=1.0)
FAMILIES: dict[str, Family] = {
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": Family("qwen2"),
    "qwen3": Family("qwen3"),
    "qwen3_moe": Family("qwen3moe"),
    "phi3": Family("phi3"),
    "gemma3": _GEMMA_3,
    "gemma3_text": _GEMMA_3,
}


def place_of(name: str, family: Family) -> Place | None:
    """Where a tensor of Hugging Face's goes; None if nowhere. KeyError if that is not known."""
    if _SKIPPED.search(name):
        return None
    prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
    inner = name.removeprefix(prefix)
    if inner in _WHOLE:
        return Place(_WHOLE[inner])
    found = _LAYER.fullmatch(inner)
    if found is None:
        raise KeyError(name)
    layer, part, kind = found.groups()
    expert = _EXPERT.fullmatch(part)
    if expert is not None:
        return Place(f"blk.{layer}.ffn_{expert[2]}_exps.{kind}", int(expert[1]))
    return Place(f"blk.{layer}.{family.parts[part]}.{kind}")
