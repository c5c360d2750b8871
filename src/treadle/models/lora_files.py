"""Adapters as the folders that PEFT writes and reads: `adapter_config.json`, and the matrices in
`adapter_model.safetensors`, by the names that modules have in transformers.

GGUF files of Llama's architecture have the rows of queries and keys in another order, and so have
the rows of `b` here: they are put back on the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from treadle.core.errors import FormatError
from treadle.core.paths import as_path
from treadle.data.saving import save
from treadle.formats.atomic import replaced
from treadle.formats.contents import read_json, shortened
from treadle.formats.safetensors_files import SafetensorsFile, read_safetensors
from treadle.models.config import DecoderConfig
from treadle.models.conversion.families import family_of, hugging_face_parts
from treadle.models.conversion.rows import halved, interleaved
from treadle.models.layers import Projection
from treadle.models.lora import Lora, layer_of, part_of
from treadle.runtime.devices import Device
from treadle.tensor.tensor import Tensor, from_numpy

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
Array = np.ndarray[Any, Any]
_NAME = re.compile(r"(?:base_model\.)?.*?layers\.(\d+)\.(.+)\.lora_([AB])\.weight")
# What a configuration may ask for that is not supported, unless it has one of these values.
_PLAIN: dict[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",), "bias": (None, "none"), "use_dora": (None, False),
    "fan_in_fan_out": (None, False), "lora_bias": (None, False), "modules_to_save": (None, []),
    "rank_pattern": (None, {}), "alpha_pattern": (None, {}), "layer_replication": (None, []),
    "megatron_config": (None,), "trainable_token_indices": (None, [], {}),
    "target_parameters": (None, []), "use_qalora": (None, False),
    "alora_invocation_tokens": (None,),
}  # fmt: skip


def save_lora(
    path: str | PathLike[str], lora: Lora, config: DecoderConfig, projections: Mapping[str, Any]
) -> None:
    """Write a folder, which is made if it is missing."""
    folder = as_path("save_lora", path)
    folder.mkdir(parents=True, exist_ok=True)
    own = _own_names(config, projections)
    tensors: dict[str, Array] = {}
    for name, adapter in zip(lora.names, lora.adapters, strict=True):
        stem = f"base_model.model.model.{own[name]}"
        tensors[f"{stem}.lora_A.weight"] = adapter.a.numpy()
        tensors[f"{stem}.lora_B.weight"] = _ordered(halved, name, config, adapter.b.numpy())
    settings = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": config.name,
        "r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": lora.dropout,
        "target_modules": list(dict.fromkeys(part_of(own[name]) for name in lora.names)),
        "bias": "none", "fan_in_fan_out": False, "inference_mode": True,
        "use_rslora": lora.by_root, "use_dora": False, "modules_to_save": None,
    }  # fmt: skip
    save(tensors, folder / WEIGHTS)
    with replaced(folder / CONFIG) as file:
        file.write((json.dumps(settings, indent=2) + "\n").encode())


def read_lora(
    path: str | PathLike[str], config: DecoderConfig, projections: Mapping[str, Projection],
    device: Device,
) -> Lora:  # fmt: skip
    """The adapters of a folder. FormatError if they are not for this model, or need what is not
    supported."""
    folder = as_path("load_lora", path)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: save_lora(path) writes one")
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise FormatError(f"{folder} has no {name}: it is not the folder of an adapter")
    lora = _lora_of(folder / CONFIG)
    file = read_safetensors(folder / WEIGHTS)
    names = {own: name for name, own in _own_names(config, projections).items()}
    pairs: dict[str, dict[str, str]] = {}
    for key in file.tensors:
        found = _NAME.fullmatch(key)
        name = names.get(f"layers.{found[1]}.{found[2]}", "") if found else ""
        if not found or not name:
            raise FormatError(f"{file.path}: {config.name} has no product for {shortened(key)}")
        pairs.setdefault(name, {})[found[3]] = key
    for name in projections:  # in the order of layers
        if name in pairs:
            a, b = _matrices(file, pairs[name], projections[name], lora.rank)
            b = _ordered(interleaved, name, config, b)
            lora.add(name, _uploaded(a, device), _uploaded(b, device))
    if not lora.names:
        raise FormatError(f"{file.path} has no matrices of adapters")
    return lora


def _lora_of(path: Path) -> Lora:
    """Adapters without matrices yet, as the configuration describes them."""
    given = read_json(path)
    for key, plain in _PLAIN.items():
        if given.get(key) not in plain:
            raise FormatError(
                f"{path}: {key} is {shortened(given.get(key))}, and adapters are read that have "
                f"{plain[-1]!r} there"
            )
    rank: Any = given.get("r")
    alpha: Any = given.get("lora_alpha")
    dropout: Any = given.get("lora_dropout", 0.0)
    if type(rank) is not int or not 0 < rank < 1 << 16:
        raise FormatError(f"{path}: r is {shortened(rank)}, and a rank is a whole number above 0")
    for key, value in (("lora_alpha", alpha), ("lora_dropout", dropout)):
        if type(value) not in (int, float) or not 0 <= value < 1 << 32:
            raise FormatError(f"{path}: {key} is {shortened(value)}, where a number is needed")
    if dropout >= 1:
        raise FormatError(f"{path}: lora_dropout is {dropout}, which would drop everything")
    return Lora(rank, float(alpha), float(dropout), bool(given.get("use_rslora")))


def _matrices(
    file: SafetensorsFile, pair: Mapping[str, str], projection: Projection, rank: int
) -> tuple[Array, Array]:
    """Both matrices of an adapter, checked."""
    wanted = {"A": (rank, projection.columns), "B": (projection.rows, rank)}
    for kind, shape in wanted.items():
        if kind not in pair:
            raise FormatError(f"{file.path} has no lora_{kind} for {projection.name}")
        stored = file.tensors[pair[kind]]
        if tuple(stored.shape) != shape or stored.dtype.kind != "float":
            raise FormatError(
                f"{file.path}: {shortened(pair[kind])} is {stored.dtype} of shape "
                f"{tuple(stored.shape)}, and {projection.name} needs numbers of shape {shape}"
            )
    return file.array(pair["A"]), file.array(pair["B"])


def _own_names(config: DecoderConfig, projections: Mapping[str, Any]) -> dict[str, str]:
    """What transformers calls the modules, from the names in the GGUF file."""
    present = dict.fromkeys(part_of(name) for name in projections)
    parts = hugging_face_parts(config.architecture, present)
    return {name: f"layers.{layer_of(name)}.{parts[part_of(name)]}" for name in projections}


def _ordered(
    change: Callable[[int, Array], Array], name: str, config: DecoderConfig, b: Array
) -> Array:
    """Rows of `b` in the other's order, if they differ."""
    heads = {"attn_q": config.heads, "attn_k": config.key_heads}.get(part_of(name))
    if heads is None or not family_of(config.architecture).permuted:
        return b
    return change(heads, b)


def _uploaded(x: Array, device: Device) -> Tensor:
    return from_numpy(np.ascontiguousarray(x, np.float32), device)
