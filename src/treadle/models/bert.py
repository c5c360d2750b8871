"""BERT and its kind: encoders whose tokens see the whole text.

One file for BERT, MiniLM, BGE and E5, which are BERT in several sizes, and for RoBERTa and
XLM-RoBERTa, which count positions from another number.

The rows that go through the network hold several texts one after the other, so that little is
padding and few shapes occur; a token sees those of its own text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from treadle.core.errors import FormatError
from treadle.formats.hugging_face import HuggingFaceFolder
from treadle.models.conversion.families import FAMILIES
from treadle.runtime.devices import Device
from treadle.tensor.assembly import concat
from treadle.tensor.functional.activations import gelu, relu, silu
from treadle.tensor.functional.attention import scaled_dot_product_attention
from treadle.tensor.functional.normalization import layer_norm
from treadle.tensor.tensor import Tensor, from_numpy

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu,
    "gelu_new": lambda x: gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: gelu(x, approximate="tanh"),
    "relu": relu,
    "silu": silu,
}
# By `model_type`, whether positions are counted from the number of the padding token on.
_AFTER_PADDING = {"bert": False, "roberta": True, "xlm-roberta": True}
_PREFIXES = ("", "bert.", "roberta.")  # the last two where the file has a head beside the encoder


@dataclass(frozen=True)
class BertConfig:
    """The sizes of an encoder."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    inner: int
    positions: int
    first_position: int
    epsilon: float
    activation: str

    @property
    def longest(self) -> int:
        """How many tokens a text may have."""
        return self.positions - self.first_position


def config_of(config: Mapping[str, Any]) -> BertConfig:
    """The sizes in a config.json. FormatError for an architecture that is not here."""
    kind = config.get("model_type")
    if kind in FAMILIES:
        raise FormatError(
            f"config.json has a language model, of the type {kind!r}: these are loaded from GGUF "
            "files, and `treadle quantize FOLDER model.gguf` makes one of its folder"
        )
    if kind not in _AFTER_PADDING:
        raise FormatError(
            f"config.json has a model of the type {kind!r}; encoders that are supported are "
            f"{', '.join(_AFTER_PADDING)}"
        )
    positions = config.get("position_embedding_type") or "absolute"
    if positions != "absolute":
        raise FormatError(f"positions of the type {positions!r} are not supported, only absolute")
    activation = config.get("hidden_act", "gelu")
    if activation not in ACTIVATIONS:
        raise FormatError(
            f"the activation {activation!r} is not supported; {', '.join(ACTIVATIONS)} are"
        )
    try:
        made = BertConfig(
            vocabulary=config["vocab_size"],
            width=config["hidden_size"],
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            inner=config["intermediate_size"],
            positions=config["max_position_embeddings"],
            first_position=config.get("pad_token_id", 1) + 1 if _AFTER_PADDING[kind] else 0,
            epsilon=config.get("layer_norm_eps", 1e-12),
            activation=activation,
        )
    except KeyError as error:
        raise FormatError(f"config.json does not say {error.args[0]}") from None
    sizes = (made.vocabulary, made.width, made.layers, made.heads, made.inner, made.positions)
    if not all(isinstance(size, int) and size > 0 for size in sizes) or made.longest <= 0:
        raise FormatError(f"config.json has sizes that no encoder has: {made}")
    if made.width % made.heads:
        raise FormatError(f"{made.width} elements are not {made.heads} heads of as many each")
    return made


@dataclass(frozen=True)
class Affine:
    """A matrix, with a row for each element that goes in, and what is added."""

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """The product, and the bias added."""
        return x @ self.weight + self.bias


@dataclass(frozen=True)
class Norm:
    """Normalization of a token's vector, with learned scale and shift."""

    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        """The normalized vectors."""
        return layer_norm(x, (x.shape[-1],), self.weight, self.bias, self.epsilon)


@dataclass(frozen=True)
class Layer:
    """Attention and a feed-forward network, each added to what goes in, then normalized."""

    into_heads: Affine  # queries, keys and values
    out_of_heads: Affine
    attention_norm: Norm
    widen: Affine
    narrow: Affine
    norm: Norm
    heads: int
    activation: str

    def __call__(self, x: Tensor, seen: Tensor) -> Tensor:
        """Vectors (n, length, width), and which tokens see which."""
        n, length, width = x.shape
        into_heads = self.into_heads(x).reshape(n, length, 3, self.heads, width // self.heads)
        query, key, value = (into_heads[:, :, i].swapaxes(1, 2) for i in range(3))
        attended = scaled_dot_product_attention(query, key, value, seen)
        attended = attended.swapaxes(1, 2).reshape(n, length, width)
        x = self.attention_norm(x + self.out_of_heads(attended))
        return self.norm(x + self.narrow(ACTIVATIONS[self.activation](self.widen(x))))


@dataclass(frozen=True, eq=False)
class Bert:
    """Tokens to the vectors of the last layer."""

    config: BertConfig
    words: Tensor
    positions: Tensor
    norm: Norm
    layers: tuple[Layer, ...]

    def __call__(self, tokens: Tensor, positions: Tensor, texts: Tensor) -> Tensor:
        """(n, length, width), from tokens, their positions in their texts and the numbers of
        their texts, each (n, length)."""
        x = self.norm(self.words[tokens] + self.positions[positions])
        seen = texts[:, None, :, None] == texts[:, None, None, :]
        for layer in self.layers:
            x = layer(x, seen)
        return x


def load_bert(folder: HuggingFaceFolder, device: Device) -> Bert:
    """The network in a folder. FormatError for what is missing or has another shape."""
    config = config_of(folder.config)
    stored = folder.weights
    prefix = next(
        (p for p in _PREFIXES if p + "embeddings.word_embeddings.weight" in stored.tensors), ""
    )
    width, inner = config.width, config.inner

    def tensor(name: str, *shape: int) -> Tensor:
        if prefix + name not in stored.tensors:
            raise FormatError(f"{stored.path} has no tensor {prefix + name}")
        found = stored.tensors[prefix + name].shape
        if found != shape:
            raise FormatError(
                f"{stored.path}: {prefix + name} has the shape {found}, where config.json says "
                f"{shape}"
            )
        array = stored.array(prefix + name).astype("float32")
        return from_numpy(array, device)

    def affine(rows: int, columns: int, *names: str) -> Affine:
        # A product reads the matrix fastest if what is summed over is its first axis.
        weights = [tensor(name + ".weight", rows, columns).T for name in names]
        biases = [tensor(name + ".bias", rows) for name in names]
        return Affine(concat(weights, axis=1).realize(), concat(biases).realize())

    def norm(name: str) -> Norm:
        weight, bias = tensor(name + ".weight", width), tensor(name + ".bias", width)
        return Norm(weight, bias, config.epsilon)

    def layer(index: int) -> Layer:
        at = f"encoder.layer.{index}."
        attention = at + "attention.self."
        return Layer(
            affine(width, width, *(attention + name for name in ("query", "key", "value"))),
            affine(width, width, at + "attention.output.dense"),
            norm(at + "attention.output.LayerNorm"),
            affine(inner, width, at + "intermediate.dense"),
            affine(width, inner, at + "output.dense"),
            norm(at + "output.LayerNorm"),
            config.heads,
            config.activation,
        )

    types = stored.tensors.get(prefix + "embeddings.token_type_embeddings.weight")
    positions = tensor("embeddings.position_embeddings.weight", config.positions, width)
    if types is not None:  # all tokens are of the first of two texts: it is added here, once
        kinds = tensor("embeddings.token_type_embeddings.weight", types.shape[0], width)
        positions = positions + kinds[0]
    return Bert(
        config,
        tensor("embeddings.word_embeddings.weight", config.vocabulary, width),
        positions[config.first_position :].realize(),
        norm("embeddings.LayerNorm"),
        tuple(layer(index) for index in range(config.layers)),
    )
