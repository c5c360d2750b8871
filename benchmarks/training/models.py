"""Models whose text is the same for treadle and for PyTorch: functions of named parameters.

`functional` is either library's `nn.functional`; parameters come from NumPy, so that both begin
with the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Model:
    """`shapes` of the parameters; `loss` from functional, parameters, inputs and targets; `data`
    draws a batch of inputs and targets. `operations` are those of a step, forward and back."""

    name: str
    shapes: dict[str, tuple[int, ...]]
    loss: Callable[[Any, Parameters, Any, Any], Any]
    data: Callable[[np.random.Generator], tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]
    operations: float

    def parameters(self, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
        """First values: normal, by the square root of the inputs; ones for scales, zeros for
        biases."""
        rng = np.random.default_rng(seed)
        found = {}
        for name, shape in self.shapes.items():
            if name.endswith("bias"):
                found[name] = np.zeros(shape, np.float32)
            elif name.endswith("scale"):
                found[name] = np.ones(shape, np.float32)
            else:
                spread = 1 / math.sqrt(math.prod(shape[1:]))
                found[name] = (rng.standard_normal(shape) * spread).astype(np.float32)
        return found


# --- small ones ----------------------------------------------------------------------------------


def digits_mlp(batch: int = 64) -> Model:
    """64 pixels, two hidden layers, 10 digits."""
    sizes = (64, 128, 64, 10)
    shapes: dict[str, tuple[int, ...]] = {}
    for k, (before, after) in enumerate(pairwise(sizes)):
        shapes[f"{k}.weight"] = (after, before)
        shapes[f"{k}.bias"] = (after,)

    def loss(functional: Any, p: Parameters, x: Any, target: Any) -> Any:
        for k in range(3):
            x = functional.linear(x, p[f"{k}.weight"], p[f"{k}.bias"])
            x = functional.relu(x) if k < 2 else x
        return functional.cross_entropy(x, target)

    def data(rng: np.random.Generator) -> Any:
        return rng.random((batch, 64), np.float32), rng.integers(0, 10, batch)

    work = 6 * batch * sum(a * b for a, b in pairwise(sizes))
    return Model(f"digits MLP, batch {batch}", shapes, loss, data, work)


def small_cnn(batch: int = 64) -> Model:
    """Images of 28 × 28 through two convolutions with pooling, and a hidden layer."""
    shapes: dict[str, tuple[int, ...]] = {
        "0.weight": (16, 1, 3, 3), "0.bias": (16,), "1.weight": (32, 16, 3, 3), "1.bias": (32,),
        "2.weight": (64, 32 * 7 * 7), "2.bias": (64,), "3.weight": (10, 64), "3.bias": (10,),
    }  # fmt: skip

    def loss(functional: Any, p: Parameters, x: Any, target: Any) -> Any:
        for k in range(2):
            x = functional.conv2d(x, p[f"{k}.weight"], p[f"{k}.bias"], padding=1)
            x = functional.max_pool2d(functional.relu(x), 2)
        x = x.reshape(x.shape[0], -1)
        x = functional.relu(functional.linear(x, p["2.weight"], p["2.bias"]))
        return functional.cross_entropy(functional.linear(x, p["3.weight"], p["3.bias"]), target)

    def data(rng: np.random.Generator) -> Any:
        return rng.random((batch, 1, 28, 28), np.float32), rng.integers(0, 10, batch)

    work = 6 * batch * (28**2 * 16 * 9 + 14**2 * 32 * 16 * 9 + 32 * 49 * 64 + 640)
    return Model(f"small CNN, batch {batch}", shapes, loss, data, work)


# --- a language model ----------------------------------------------------------------------------


def transformer(
    layers: int = 12, width: int = 768, heads: int = 12, words: int = 50304, batch: int = 8,
    length: int = 1024,
) -> Model:  # fmt: skip
    """A decoder as GPT-2 is: norms before, GELU, and one matrix for words in and out."""
    shapes: dict[str, tuple[int, ...]] = {"words": (words, width), "places": (length, width)}
    for k in range(layers):
        for name, shape in (
            ("attention.scale", (width,)), ("attention.bias", (width,)),
            ("qkv.weight", (3 * width, width)), ("qkv.bias", (3 * width,)),
            ("out.weight", (width, width)), ("out.bias", (width,)),
            ("mlp.scale", (width,)), ("mlp.bias", (width,)),
            ("up.weight", (4 * width, width)), ("up.bias", (4 * width,)),
            ("down.weight", (width, 4 * width)), ("down.bias", (width,)),
        ):  # fmt: skip
            shapes[f"{k}.{name}"] = shape
    shapes |= {"last.scale": (width,), "last.bias": (width,)}

    def attention(functional: Any, p: Parameters, k: int, x: Any) -> Any:
        x = functional.layer_norm(x, (width,), p[f"{k}.attention.scale"], p[f"{k}.attention.bias"])
        qkv = functional.linear(x, p[f"{k}.qkv.weight"], p[f"{k}.qkv.bias"])
        parts = qkv.reshape(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        x = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x.permute(0, 2, 1, 3).reshape(batch, length, width)
        return functional.linear(x, p[f"{k}.out.weight"], p[f"{k}.out.bias"])

    def perceptron(functional: Any, p: Parameters, k: int, x: Any) -> Any:
        x = functional.layer_norm(x, (width,), p[f"{k}.mlp.scale"], p[f"{k}.mlp.bias"])
        x = functional.gelu(functional.linear(x, p[f"{k}.up.weight"], p[f"{k}.up.bias"]))
        return functional.linear(x, p[f"{k}.down.weight"], p[f"{k}.down.bias"])

    def loss(functional: Any, p: Parameters, tokens: Any, target: Any) -> Any:
        x = functional.embedding(tokens, p["words"]) + p["places"]
        for k in range(layers):
            x = x + attention(functional, p, k, x)
            x = x + perceptron(functional, p, k, x)
        x = functional.layer_norm(x, (width,), p["last.scale"], p["last.bias"])
        scores = functional.linear(x, p["words"])
        return functional.cross_entropy(scores.reshape(-1, words), target.reshape(-1))

    def data(rng: np.random.Generator) -> Any:
        drawn = rng.integers(0, words, (batch, length + 1))
        return drawn[:, :-1].copy(), drawn[:, 1:].copy()

    tokens = batch * length
    matrices = layers * 12 * width * width + words * width
    scores = layers * 2 * length * width  # causal: half of them
    name = f"{layers} layers of {width}, {batch} × {length} tokens"
    return Model(name, shapes, loss, data, 6.0 * tokens * (matrices + scores / 2))
