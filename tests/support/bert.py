"""BERT in NumPy's float64, one text at a time: what encoders are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_erf = np.vectorize(math.erf, otypes=[np.float64])


def bert(weights: Mapping[str, Array], config: Mapping[str, Any], tokens: list[int]) -> Array:
    """The vectors of a text's tokens, from the tensors of a file by their names there."""

    def get(name: str) -> Array:
        return weights[name].astype(np.float64)

    def affine(x: Array, name: str) -> Array:
        return x @ get(name + ".weight").T + get(name + ".bias")

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return centred / scale * get(name + ".weight") + get(name + ".bias")

    first = config["pad_token_id"] + 1 if config["model_type"] == "roberta" else 0
    x = get("embeddings.word_embeddings.weight")[tokens]
    x = x + get("embeddings.position_embeddings.weight")[first : first + len(tokens)]
    x = norm(x + get("embeddings.token_type_embeddings.weight")[0], "embeddings.LayerNorm")
    heads = config["num_attention_heads"]
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}."
        query, key, value = (
            affine(x, f"{at}attention.self.{name}").reshape(len(tokens), heads, -1).swapaxes(0, 1)
            for name in ("query", "key", "value")
        )
        scores = np.exp(query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1]))
        attended = scores / scores.sum(-1, keepdims=True) @ value
        attended = attended.swapaxes(0, 1).reshape(len(tokens), -1)
        added = x + affine(attended, at + "attention.output.dense")
        x = norm(added, at + "attention.output.LayerNorm")
        inner = affine(x, at + "intermediate.dense")
        inner = inner * (1 + _erf(inner / math.sqrt(2))) / 2
        x = norm(x + affine(inner, at + "output.dense"), at + "output.LayerNorm")
    return x
