"""Small models with random weights, and what transformers computes for them.

`python -m tests.models.peer_models` writes the file of references, with transformers 5 and PyTorch,
which the tests do not need.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treadle.formats.gguf import GgufSource, write_gguf
from treadle.models.rope import frequencies, llama3_factors
from treadle.quant.blocks import FORMATS

Arrays = dict[str, np.ndarray]
VOCABULARY = 96
CONTEXT = 256
LENGTHS = {"phi3-long": 70, "phi3-short": 40}  # of texts, where the usual one is not meant
_FILE = Path(__file__).parent / "peer_models.json"
_SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-6, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    "attention_dropout": 0.0, "attn_implementation": "eager",
}  # fmt: skip
# From the names of GGUF files to those of transformers.
_NAMES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
}  # fmt: skip
_GEMMA = {
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}  # fmt: skip


class Peer(NamedTuple):
    """A kind of model: transformers' names, what its configuration has beside the usual, and the
    metadata and further tensors of its GGUF file."""

    config: str
    model: str
    options: dict[str, Any]
    metadata: dict[str, Any]
    names: dict[str, str] = {}
    further: Callable[[], Arrays] = dict


def _llama3() -> Arrays:
    """The divisors that GGUF files have in place of Llama 3's numbers."""
    factors = llama3_factors(frequencies(8, 10000.0), 8.0, 1.0, 4.0, 64)
    return {"rope_freqs.weight": factors.astype(np.float32)}


_SHORT, _LONG = (np.linspace(1, end, 8).astype(np.float32) for end in (1.5, 4.0))
_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
_PHI3 = Peer(
    "Phi3Config", "Phi3ForCausalLM",
    {"original_max_position_embeddings": 64, "sliding_window": None, "rope_parameters": {
        "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": _SHORT.tolist(),
        "long_factor": _LONG.tolist(), "original_max_position_embeddings": 64,
    }},
    {"rope.scaling.original_context_length": 64, "rope.scaling.type": "longrope"},
    further=lambda: {
        "rope_factors_short.weight": _SHORT, "rope_factors_long.weight": _LONG,
    },
)  # fmt: skip
PEERS = {
    "llama": Peer("LlamaConfig", "LlamaForCausalLM", {}, {}),
    "llama-tied": Peer(
        "LlamaConfig", "LlamaForCausalLM",
        {"tie_word_embeddings": True, "num_key_value_heads": 4}, {},
    ),
    "llama-3": Peer(
        "LlamaConfig", "LlamaForCausalLM",
        {"rope_parameters": {
            "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
        }}, {}, further=_llama3,
    ),
    "llama-linear": Peer(
        "LlamaConfig", "LlamaForCausalLM",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}},
        {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
    ),
    "mistral": Peer(
        "MistralConfig", "MistralForCausalLM", {"sliding_window": 7, "head_dim": 16},
        {"attention.sliding_window": 7},
    ),
    "qwen2": Peer("Qwen2Config", "Qwen2ForCausalLM", {}, {}),
    "qwen2-yarn": Peer(
        "Qwen2Config", "Qwen2ForCausalLM", {"rope_parameters": {**_YARN, "rope_theta": 10000.0}},
        {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
         "rope.scaling.original_context_length": 64},
    ),
    "qwen3": Peer(
        "Qwen3Config", "Qwen3ForCausalLM", {"head_dim": 32},
        {"attention.key_length": 32, "attention.value_length": 32},
    ),
    "qwen3moe": Peer(
        "Qwen3MoeConfig", "Qwen3MoeForCausalLM",
        {"head_dim": 16, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
         "norm_topk_prob": True, "mlp_only_layers": [], "decoder_sparse_step": 1},
        {"attention.key_length": 16, "expert_count": 6, "expert_used_count": 2,
         "expert_feed_forward_length": 64},
    ),
    "phi3": Peer(
        "Phi3Config", "Phi3ForCausalLM", {"sliding_window": 9},
        {"attention.sliding_window": 9},
    ),
    "phi3-short": _PHI3,
    "phi3-long": _PHI3,
    "gemma3": Peer(
        "Gemma3TextConfig", "Gemma3ForCausalLM",
        {"num_hidden_layers": 7, "head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 6,
         "hidden_activation": "gelu_pytorch_tanh"},
        {"block_count": 7, "attention.key_length": 32, "attention.value_length": 32,
         "attention.sliding_window": 6, "rope.freq_base": 1e6},
        _GEMMA,
    ),
}  # fmt: skip


def drawn(name: str, shapes: dict[str, list[int]]) -> Arrays:
    """Random weights by transformers' names: matrices large enough that attention and gates are far
    from uniform."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    found: Arrays = {}
    for key, shape in sorted(shapes.items()):
        value = rng.standard_normal(shape) * (0.2 if len(shape) == 1 else 0.12)
        is_norm = "norm" in key and not name.startswith("gemma")
        found[key] = (value + (1 if is_norm else 0)).astype(np.float32)
    return found


def references() -> dict[str, Any]:
    """What transformers computes, as this module's `main` wrote it."""
    found: dict[str, Any] = json.loads(_FILE.read_text())
    return found


def main() -> None:
    """Write the file of references, with transformers and PyTorch."""
    import torch
    import transformers

    rng = np.random.default_rng(0)
    found = {}
    for name, kind in PEERS.items():
        options = {**_SIZES, "tie_word_embeddings": False, **kind.options}
        config = getattr(transformers, kind.config)(**options)
        model = getattr(transformers, kind.model)(config).float().eval()
        state = model.state_dict()
        tied = "lm_head.weight" if options["tie_word_embeddings"] else ""
        shapes = {key: list(value.shape) for key, value in state.items() if key != tied}
        model.load_state_dict(
            {key: torch.tensor(v) for key, v in drawn(name, shapes).items()}, strict=not tied
        )
        tokens = rng.integers(3, VOCABULARY, LENGTHS.get(name, 40)).tolist()
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0].numpy()
        rows = {str(at): np.round(logits[at], 4).tolist() for at in (0, len(tokens) - 1)}
        found[name] = {"shapes": shapes, "tokens": tokens, "logits": rows}
    _FILE.write_text(json.dumps(found, separators=(",", ":")) + "\n")


def write_peer(name: str, path: Path, kind_of_matrices: str | None = None, **changed: Any) -> Path:
    """The weights of a reference as a GGUF file, with matrices in a format of `td.quant`, if one is
    given, and metadata that is changed, or left out where it is None."""
    kind = PEERS[name]
    options = {**_SIZES, **kind.options}
    state = drawn(name, references()[name]["shapes"])
    architecture = {"mistral": "llama"}.get(name.split("-")[0], name.split("-")[0])
    heads, few = options["num_attention_heads"], options["num_key_value_heads"]
    metadata = {
        "general.architecture": architecture,
        "general.name": f"small {name}",
        **{f"{architecture}.{key}": value for key, value in {
            "context_length": CONTEXT, "embedding_length": options["hidden_size"],
            "block_count": options["num_hidden_layers"],
            "feed_forward_length": options["intermediate_size"],
            "attention.head_count": heads, "attention.head_count_kv": few,
            "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 10000.0, **kind.metadata,
        }.items()},
    }  # fmt: skip
    tensors: Arrays = kind.further()
    for key in ("token_embd", "output_norm", "output"):
        value = state.get(f"{_NAMES[key]}.weight")
        if value is not None:
            tensors[f"{key}.weight"] = value
    for layer in range(options["num_hidden_layers"]):
        for key, own in {**_NAMES, **kind.names}.items():
            for part in ("weight", "bias"):
                value = state.get(f"model.layers.{layer}.{own}.{part}")
                if value is None:
                    continue
                if architecture == "llama" and key in ("attn_q", "attn_k"):
                    value = _permuted(value, heads if key == "attn_q" else few)
                tensors[f"blk.{layer}.{key}.{part}"] = value
        _merge(tensors, state, layer)
    if architecture == "gemma3":
        tensors = {key: v + 1 if "norm" in key else v for key, v in tensors.items()}
    for key, value in changed.items():
        full = key if "general" in key or "tokenizer" in key else f"{architecture}.{key}"
        metadata[full.replace("__", ".")] = value
    arrays: dict[str, Any] = {key: np.ascontiguousarray(v) for key, v in tensors.items()}
    if kind_of_matrices is not None:
        for key, value in arrays.items():
            if value.ndim > 1:
                arrays[key] = _in_blocks(value, kind_of_matrices)
    write_gguf(path, {key: v for key, v in metadata.items() if v is not None}, arrays)
    return path


def _in_blocks(value: np.ndarray, kind: str) -> GgufSource:
    """A tensor of a file in a block format."""
    blocks = FORMATS[kind].quantize(value.reshape(-1, value.shape[-1]))
    return GgufSource(value.shape, kind, lambda: np.ascontiguousarray(blocks).reshape(-1))


def _permuted(rows: np.ndarray, heads: int) -> np.ndarray:
    """As llama.cpp's converter has rows: the elements of a rotated pair are neighbours."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def _merge(tensors: Arrays, state: Arrays, layer: int) -> None:
    """What one of the two has as one tensor, and the other as several."""
    name, own = f"blk.{layer}", f"model.layers.{layer}.mlp"
    both = state.get(f"{own}.gate_up_proj.weight")
    if both is not None:
        tensors[f"{name}.ffn_up.weight"] = both
    experts = state.get(f"{own}.experts.gate_up_proj")
    if experts is not None:
        gate, up = np.split(experts, 2, axis=1)
        tensors[f"{name}.ffn_gate_exps.weight"] = gate
        tensors[f"{name}.ffn_up_exps.weight"] = up
        tensors[f"{name}.ffn_down_exps.weight"] = state[f"{own}.experts.down_proj"]


if __name__ == "__main__":
    main()
