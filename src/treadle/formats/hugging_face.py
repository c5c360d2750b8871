"""Folders of models as Hugging Face's libraries save them, and as its cache has them.

    config.json                 the architecture, and its numbers
    model.safetensors           the weights; or model.safetensors.index.json, and shards
    tokenizer.json              the tokenizer, and beside it tokenizer_config.json
    generation_config.json      how to generate

Weights in pickles (pytorch_model.bin) are not read, since these can run any program.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from treadle.core.errors import FormatError
from treadle.core.paths import as_path, no_folder
from treadle.formats.contents import file_in, read_json
from treadle.formats.safetensors_files import SafetensorsFile, read_safetensors

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth")


@dataclass(frozen=True, eq=False)
class HuggingFaceFolder:
    """What a folder has. What need not be there is an empty mapping, or None."""

    path: Path
    config: Mapping[str, Any]
    generation_config: Mapping[str, Any]
    tokenizer_config: Mapping[str, Any]
    tokenizer: Path | None  # tokenizer.json
    weights: SafetensorsFile

    def json(self, *names: str) -> Mapping[str, Any]:
        """Another JSON object of the folder, such as `json("1_Pooling", "config.json")`; empty if
        there is none. FormatError for names that lead out of the folder."""
        return _json(self.path, *names)

    def __repr__(self) -> str:
        return f"HuggingFaceFolder({str(self.path)!r}, {len(self.weights.tensors)} tensors)"


def read_folder(path: str | os.PathLike[str], /) -> HuggingFaceFolder:
    """A model's folder: its configuration, and its weights, memory-mapped.

    FormatError for a folder that is not one of a model, or has files that are truncated or forged,
    with what is wrong and where.
    """
    folder = as_path("read_folder", path)
    if not folder.is_dir():
        raise FileNotFoundError(no_folder(folder))
    if not (folder / "config.json").is_file():
        raise FormatError(f"{folder} has no config.json: it is not the folder of a model")
    tokenizer = folder / "tokenizer.json"
    return HuggingFaceFolder(
        folder,
        _json(folder, "config.json"),
        _json(folder, "generation_config.json"),
        _json(folder, "tokenizer_config.json"),
        tokenizer if tokenizer.is_file() else None,
        read_safetensors(_weights(folder)),
    )


def _json(folder: Path, *names: str) -> Mapping[str, Any]:
    path = folder
    for name in names:
        path = file_in(path, name, str(folder))
    return MappingProxyType(read_json(path, constants=True) if path.is_file() else {})


def _weights(folder: Path) -> Path:
    """The file of the weights, or their index."""
    for name in _WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    for name in _PICKLES:
        if (folder / name).exists():
            raise FormatError(
                f"{folder} has its weights in {name}, a pickle, which can run any program and is "
                "not read: where it is trusted, transformers' model.save_pretrained(folder) writes "
                "safetensors"
            )
    raise FormatError(f"{folder} has no weights: they are in {' or '.join(_WEIGHTS)}")
