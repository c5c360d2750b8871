"""A language model of Llama's architecture with random weights, whose file has a megabyte.

Its tokenizer has a token for each byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS = 256, 512, 2, 4, 2
_TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
_UNKNOWN, _CONTROL, _BYTE, _NORMAL = 2, 3, 6, 1

METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.file_type": 1,
    "llama.block_count": LAYERS,
    "llama.context_length": 64,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": HIDDEN,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.dimension_count": WIDTH // HEADS,
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": _TOKENS,
    "tokenizer.ggml.scores": np.zeros(len(_TOKENS), np.float32),
    "tokenizer.ggml.token_type": [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, _NORMAL],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.unknown_token_id": 0,
}


def tensors(dtype: Any = np.float16) -> dict[str, np.ndarray[Any, Any]]:
    """The weights by their names; norms are float32."""
    drawn = np.random.default_rng(7)
    keys = WIDTH // HEADS * KV_HEADS
    ones = np.ones(WIDTH, np.float32)

    def weight(*shape: int) -> np.ndarray[Any, Any]:
        return (drawn.standard_normal(shape) * 0.05).astype(dtype)

    made = {"token_embd.weight": weight(len(_TOKENS), WIDTH), "output_norm.weight": ones}
    for layer in range(LAYERS):
        made |= {
            f"blk.{layer}.attn_norm.weight": ones,
            f"blk.{layer}.attn_q.weight": weight(WIDTH, WIDTH),
            f"blk.{layer}.attn_k.weight": weight(keys, WIDTH),
            f"blk.{layer}.attn_v.weight": weight(keys, WIDTH),
            f"blk.{layer}.attn_output.weight": weight(WIDTH, WIDTH),
            f"blk.{layer}.ffn_norm.weight": ones,
            f"blk.{layer}.ffn_gate.weight": weight(HIDDEN, WIDTH),
            f"blk.{layer}.ffn_up.weight": weight(HIDDEN, WIDTH),
            f"blk.{layer}.ffn_down.weight": weight(WIDTH, HIDDEN),
        }
    return made
