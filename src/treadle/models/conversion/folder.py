"""A model's folder as the metadata and tensors that a GGUF file of it has."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from treadle.core.errors import FormatError
from treadle.formats.contents import shortened
from treadle.formats.hugging_face import HuggingFaceFolder, read_folder
from treadle.formats.safetensors_files import StoredTensor
from treadle.models.conversion.families import FAMILIES, Family, place_of
from treadle.models.conversion.rows import interleaved
from treadle.models.conversion.sizes import Config, rope_factors, sizes
from treadle.models.conversion.vocabulary import vocabulary
from treadle.quant.requantizing import StoredWeights

_TYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class Converted:
    """What a GGUF file of a folder's model has. Tensors are read when they are asked for."""

    metadata: dict[str, Any]
    tensors: dict[str, StoredWeights]


def converted_folder(path: Path) -> Converted:
    """A model's folder as a GGUF file has it.

    FormatError, before a tensor is read, for architectures, tensors and tokenizers that are not
    supported.
    """
    folder = read_folder(path)
    kind = folder.config.get("model_type")
    family = FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        raise FormatError(
            f"{folder.path}: the architecture {shortened(kind)} is not supported; supported are "
            f"{', '.join(FAMILIES)}"
        )
    config = Config(folder.config, str(folder.path / "config.json"))
    tensors = _weights(folder, family, config)
    rows = tensors["token_embd.weight"].shape[0]
    metadata = {
        "general.architecture": family.architecture,
        "general.name": Path(os.path.abspath(folder.path)).name,
        **sizes(config, family.architecture),
        f"{family.architecture}.vocab_size": rows,
        **vocabulary(folder, rows),
    }
    for name, factors in rope_factors(config).items():
        tensors[name] = StoredWeights(name, factors.shape, "f32", partial(_bytes, factors))
    return Converted(metadata, tensors)


def _weights(folder: HuggingFaceFolder, family: Family, config: Config) -> dict[str, StoredWeights]:
    """The weights by GGUF's names; experts of a layer become one tensor."""
    found: dict[str, dict[int | None, str]] = {}
    for name in folder.weights.tensors:
        try:
            place = place_of(name, family)
        except KeyError:
            raise FormatError(
                f"{folder.path}: the tensor {shortened(name)} is not one that models of the "
                f"architecture {family.architecture} have"
            ) from None
        if place is not None:
            found.setdefault(place.name, {})[place.expert] = name
    if config.get("tie_word_embeddings", family.architecture == "gemma3"):
        found.pop("output.weight", None)
    if "token_embd.weight" not in found:
        raise FormatError(f"{folder.path} has no tensor of the tokens' embeddings")
    made = {}
    for name, sources in found.items():
        parts = [sources[expert] for expert in sorted(sources, key=lambda at: at or 0)]
        if None not in sources and sorted(sources) != list(range(len(sources))):  # type: ignore[type-var]
            raise FormatError(f"{folder.path}: experts of {name} are missing")
        made[name] = _one(folder, name, parts, None in sources, family, config)
    return made


def _one(
    folder: HuggingFaceFolder,
    name: str,
    parts: list[str],
    whole: bool,
    family: Family,
    config: Config,
) -> StoredWeights:
    first: StoredTensor = folder.weights.tensors[parts[0]]
    for part in parts:
        stored = folder.weights.tensors[part]
        if stored.dtype.name not in _TYPES:
            raise FormatError(
                f"{folder.path}: the tensor {shortened(part)} is {stored.dtype}; supported are "
                f"{', '.join(_TYPES)}"
            )
        if (stored.shape, stored.dtype) != (first.shape, first.dtype):
            raise FormatError(f"{folder.path}: the parts of {name} are not alike")
    shape = first.shape if whole else (len(parts), *first.shape)
    is_vector = len(shape) < 2  # llama.cpp computes with these in float32
    change = _change(name, shape, family, config)
    read = partial(_read, folder, parts, shape, is_vector, change)
    return StoredWeights(name, shape, "f32" if is_vector else _TYPES[first.dtype.name], read)


def _change(
    name: str, shape: tuple[int, ...], family: Family, config: Config
) -> Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] | None:
    """What is done with the elements of a tensor."""
    part = name.split(".")[-2]
    if family.norm_offset and part.endswith("norm"):
        return partial(np.add, np.float32(family.norm_offset))
    if family.permuted and part in ("attn_q", "attn_k"):
        heads = config.whole("num_attention_heads")
        heads = heads if part == "attn_q" else config.whole("num_key_value_heads", heads)
        if shape[0] % (2 * heads):
            raise FormatError(f"{config.where}: {name} has {shape[0]} rows for {heads} heads")
        return partial(interleaved, heads)
    return None


def _read(
    folder: HuggingFaceFolder,
    parts: list[str],
    shape: tuple[int, ...],
    is_vector: bool,
    change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] | None,
) -> np.ndarray[Any, Any]:
    arrays = [folder.weights.array(part) for part in parts]
    array = arrays[0] if len(arrays) == 1 else np.stack(arrays)
    array = array.reshape(shape)
    if is_vector:
        array = array.astype(np.float32)
    return _bytes(array if change is None else change(array))


def _bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
