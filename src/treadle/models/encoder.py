"""Encoders: texts to vectors whose angles say how near their meanings are.

A folder as Hugging Face's libraries save it has the network, the tokenizer, and, from
sentence-transformers, how the vectors of a text's tokens become one (`1_Pooling/config.json`) and
whether it is normalized (`modules.json`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.autograd.modes import no_grad
from treadle.core.dtypes import float32
from treadle.core.errors import FormatError
from treadle.formats.hugging_face import HuggingFaceFolder, read_folder
from treadle.models.bert import Bert, BertConfig, config_of, load_bert
from treadle.models.packing import Batch, batches
from treadle.models.text.folder_tokenizer import FolderTokenizer, tokenizer_of_folder
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.assembly import concat
from treadle.tensor.compiled.decorator import recorded
from treadle.tensor.creation import zeros
from treadle.tensor.linalg import vector_norm
from treadle.tensor.tensor import Tensor, from_numpy

_MOST_TEXTS_TOKENIZED = 4096  # at a time
_TOKENS = {True: 1024, False: 16384}  # of a batch, by whether a device runs threads serially

# By the name in 1_Pooling/config.json, how much each of `size` tokens counts.
_Pooling = Callable[[int], "np.ndarray[Any, Any]"]
_POOLINGS: dict[str, _Pooling] = {
    "pooling_mode_cls_token": lambda size: np.eye(1, size)[0],
    "pooling_mode_mean_tokens": lambda size: np.full(size, 1 / size),
    "pooling_mode_mean_sqrt_len_tokens": lambda size: np.full(size, size**-0.5),
    "pooling_mode_lasttoken": lambda size: np.eye(1, size, size - 1)[0],
}
# What may follow one another in modules.json.
_MODULES = ("Transformer", "Pooling", "Normalize")
_BY_SHORT_NAME = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


class Encoder:
    """An encoder on a device: `embed` turns texts into vectors.

    `config` has its sizes, `dimensions` is the length of a vector, and `longest` how many tokens of
    a text are read.
    """

    def __init__(
        self,
        name: str,
        network: Bert,
        tokenizer: FolderTokenizer,
        device: Device,
        pooling: _Pooling,
        normalized: bool,
    ) -> None:
        self.name, self.device, self.normalized = name, device, normalized
        self.config: BertConfig = network.config
        self.dimensions = network.config.width
        self.longest: int = tokenizer.inner.truncation["max_length"]
        self.tokenizer, self._pooling = tokenizer, pooling

        def pooled(tokens: Tensor, positions: Tensor, texts: Tensor, weights: Tensor) -> Tensor:
            return weights @ network(tokens, positions, texts)

        self._pooled = recorded(pooled, device)

    def embed(self, texts: str | Sequence[str], *, normalize: bool | None = None) -> Tensor:
        """A vector for each text: (texts, dimensions), float32, on the device.

        Tokens beyond `longest` are left out. `normalize` tells whether vectors have length 1; None
        leaves it to the model. Models that want a word before each text, such as E5's `query: `,
        get it from the caller.
        """
        if not isinstance(texts, Iterable):
            raise TypeError(f"texts is a string or several strings, not {texts!r:.80}")
        texts = [texts] if isinstance(texts, str) else list(texts)
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts must be strings: texts[{index}] is {text!r:.80}")
            try:
                text.encode()
            except UnicodeEncodeError:
                raise ValueError(
                    f"texts[{index}] has half of a surrogate pair, which no text has: {text!r:.80}"
                ) from None
        if not texts:
            return zeros((0, self.dimensions), dtype=float32, device=self.device)
        tokens = self._tokens(texts)
        found, order = [], []
        with no_grad():
            for batch in batches(tokens, _TOKENS[self.device.traits.serial_threads]):
                found.append(self._run(batch, tokens))
                order += [index for row in batch.members for index in row]
            places = from_numpy(np.argsort(order).astype(np.int32), self.device)
            vectors = (found[0] if len(found) == 1 else concat(found))[places]
            if self.normalized if normalize is None else normalize:
                length = vector_norm(vectors, axis=1, keepdims=True)
                vectors = vectors / length.clip(1e-12)
            return vectors.realize()

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens of each text are read, with those that the model adds."""
        return [len(tokens) for tokens in self._tokens(texts)]

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = []
        for start in range(0, len(texts), _MOST_TEXTS_TOKENIZED):
            found += self.tokenizer.encode_batch(list(texts[start : start + _MOST_TEXTS_TOKENIZED]))
        return found

    def _run(self, batch: Batch, texts: Sequence[Sequence[int]]) -> Tensor:
        """The vectors of a batch's texts, in its order."""
        rows, length = batch.tokens.shape
        weights = np.zeros((rows, batch.room, length), np.float32)
        for row, members in enumerate(batch.members):
            at = 0
            for number, index in enumerate(members):
                size = len(texts[index])
                weights[row, number, at : at + size] = self._pooling(size)
                at += size
        arrays = (batch.tokens, batch.positions, batch.texts, weights)
        vectors = self._pooled(*(from_numpy(array, self.device) for array in arrays))
        numbers = [
            row * batch.room + number
            for row, members in enumerate(batch.members)
            for number in range(len(members))
        ]
        kept = from_numpy(np.asarray(numbers, np.int32), self.device)
        return vectors.reshape(-1, self.dimensions)[kept].realize()

    def __repr__(self) -> str:
        return f"Encoder({self.name!r}, {self.dimensions} dimensions, {self.device.id})"


def load_encoder(path: str | os.PathLike[str], device: str | Device | None = None) -> Encoder:
    """The encoder in a folder, on a device. FormatError for what is not supported, before anything
    is uploaded."""
    where = find_device(device)
    folder = read_folder(path)
    config_of(folder.config)  # first: the folder of another kind of model may lack the rest
    pooling, normalized = _pooling_of(folder)
    tokenizer = tokenizer_of_folder(folder.path, folder.tokenizer_config)
    network = load_bert(folder, where)
    longest = folder.json("sentence_bert_config.json").get("max_seq_length")
    if not isinstance(longest, int) or not 2 < longest <= network.config.longest:
        longest = network.config.longest
    tokenizer.inner.enable_truncation(longest)
    return Encoder(folder.path.name, network, tokenizer, where, pooling, normalized)


def _pooling_of(folder: HuggingFaceFolder) -> tuple[_Pooling, bool]:
    """How tokens' vectors become one, and whether that is normalized: the mean, and no, where the
    folder does not say it."""
    modules = _modules(folder)
    config: Mapping[str, Any] = folder.json(modules.get("Pooling", "1_Pooling"), "config.json")
    chosen = [name for name, value in config.items() if name.startswith("pooling_mode_") and value]
    if isinstance(config.get("pooling_mode"), str):
        chosen = [_BY_SHORT_NAME.get(config["pooling_mode"], config["pooling_mode"])]
    chosen = chosen or ["pooling_mode_mean_tokens"]
    if len(chosen) > 1 or chosen[0] not in _POOLINGS:
        raise FormatError(
            f"{folder.path} makes a text's vector by {' and '.join(chosen)}; supported is one of "
            f"{', '.join(_POOLINGS)}"
        )
    return _POOLINGS[chosen[0]], "Normalize" in modules


def _modules(folder: HuggingFaceFolder) -> dict[str, str]:
    """The folders of what computes one after the other, by their kinds."""
    path = folder.path / "modules.json"
    if not path.is_file():
        return {}
    try:
        listed = {
            str(module["type"]).rpartition(".")[2]: str(module["path"])
            for module in json.loads(path.read_bytes())
        }
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FormatError(f"{path} is not a list of modules: {error!r}") from None
    if others := [kind for kind in listed if kind not in _MODULES]:
        raise FormatError(
            f"{folder.path} has a layer {others[0]} behind the encoder; supported are "
            f"{', '.join(_MODULES)}"
        )
    return listed
