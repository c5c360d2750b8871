"""safetensors files that are memory-mapped: one, or the shards that an index names.

An index is JSON, with the file of each tensor:

    {"metadata": {…}, "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", …}}
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from treadle.core.dtypes import DType, bool_
from treadle.core.errors import FormatError
from treadle.core.paths import as_path
from treadle.formats.contents import file_in, mapped, read_json, shortened
from treadle.formats.safetensors import Header, read_header


class StoredTensor(NamedTuple):
    """A tensor in a file: what it is, and where its bytes are."""

    dtype: DType
    shape: tuple[int, ...]
    offset: int  # from the beginning of its file
    nbytes: int
    part: int = 0  # which file of a sharded model


@dataclass(frozen=True, eq=False)
class SafetensorsFile:
    """An open safetensors file, or all shards of an index. Nothing needs to be closed."""

    path: Path
    metadata: Mapping[str, str]  # of the first file
    tensors: Mapping[str, StoredTensor]  # in the order of their bytes
    parts: tuple[np.ndarray[Any, Any], ...]  # the bytes of each file, memory-mapped

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """The elements of a tensor, memory-mapped and read-only."""
        tensor = self.tensors[name]
        raw = self.parts[tensor.part][tensor.offset : tensor.offset + tensor.nbytes]
        elements: np.ndarray[Any, Any]
        if tensor.dtype is bool_:  # any byte but 0 is true
            elements = raw != 0
            elements.flags.writeable = False
        else:
            elements = raw.view(tensor.dtype.stored)
        try:
            return elements.reshape(tensor.shape)
        except ValueError:  # no elements, and extents whose product overflows
            raise FormatError(f"the shape of the tensor {shortened(name)} is too large") from None

    def __repr__(self) -> str:
        return f"SafetensorsFile({str(self.path)!r}, {len(self.tensors)} tensors)"


def read_safetensors(path: str | os.PathLike[str], /) -> SafetensorsFile:
    """The tensors of a safetensors file, or of the shards of an index (`….safetensors.index.json`).

    Their elements are read when they are asked for. FormatError for what is truncated, forged, or
    of another format, with what is wrong and where.
    """
    source = as_path("read_safetensors", path)
    if source.suffix == ".json":
        return _read_shards(source)
    header, data = _opened(source)
    return SafetensorsFile(source, header.metadata, MappingProxyType(_stored(header)), (data,))


def _opened(path: Path) -> tuple[Header, np.ndarray[Any, Any]]:
    data = mapped(path)
    file = cast(BinaryIO, data) if len(data) else io.BytesIO()  # a mapped file can be read as one
    try:
        return read_header(file, len(data)), np.frombuffer(data, np.uint8)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def _stored(header: Header, part: int = 0) -> dict[str, StoredTensor]:
    ordered = sorted(header.tensors.items(), key=lambda item: (item[1].start, item[1].stop))
    return {
        name: StoredTensor(dtype, shape, header.data + start, stop - start, part)
        for name, (dtype, shape, start, stop) in ordered
    }


def _read_shards(index: Path) -> SafetensorsFile:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise FormatError(f"{index} has no weight_map, which says in which file each tensor is")
    for name in weight_map.values():
        if not isinstance(name, str) or not name.endswith(".safetensors"):
            raise FormatError(f"{index} names {shortened(name)}, which is not a safetensors file")
    names = sorted(set(weight_map.values()))
    paths = [file_in(index.parent, name, str(index)) for name in names]
    for path in paths:
        if not path.is_file():
            raise FormatError(f"{path}, which {index} names, is missing")
    opened = [_opened(path) for path in paths]
    tensors: dict[str, StoredTensor] = {}
    for part, (header, _) in enumerate(opened):
        stored = _stored(header, part)
        tensors |= {name: stored[name] for name in stored if weight_map.get(name) == names[part]}
    missing = [name for name in weight_map if name not in tensors]
    if missing:
        raise FormatError(
            f"{index} says that the tensor {shortened(missing[0])} is in "
            f"{weight_map[missing[0]]}, and it is not ({len(missing)} are missing in all)"
        )
    return SafetensorsFile(
        index, opened[0][0].metadata, MappingProxyType(tensors), tuple(data for _, data in opened)
    )
