"""GGUF files, which llama.cpp and its like keep language models in.

    "GGUF", version, number of tensors, number of metadata values
    each value: its key, its type, itself
    each tensor: its name, its shape (rows last), its type, its place among the elements
    the elements, each tensor's at a multiple of `general.alignment`

(https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). What comes from a file is not trusted:
everything that it says of itself is checked against its size before memory is taken for it. The
elements are memory-mapped, so opening a file reads its header alone.
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from treadle.core.errors import FormatError
from treadle.core.paths import as_path
from treadle.formats.atomic import replaced
from treadle.formats.contents import Buffer, mapped, shortened
from treadle.formats.ggml_types import NUMBERED, REMOVED, TYPES, GgmlType
from treadle.formats.gguf_values import (
    Encoded,
    Metadata,
    Place,
    decode,
    encode,
    encoded_text,
    require,
    skip,
    text_end,
)

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32  # unless `general.alignment` is another power of two

_HEAD = struct.Struct("<4sIQQ")
_LEAST_VALUE = 13  # bytes of the shortest value with its key, and of the shortest tensor's record
_LEAST_TENSOR = 24
_MOST = 100_000  # tensors or values: a Python object takes many times a short record's bytes
_LONGEST_NAME = 65_535  # the format's own limit of keys
_MOST_AXES = 4
_PLAIN = {
    "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "int8": "i8",
    "int16": "i16", "int32": "i32", "int64": "i64",
}  # fmt: skip
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)


class GgufTensor(NamedTuple):
    """A tensor in a file: what it is, and where its bytes are."""

    name: str
    shape: tuple[int, ...]  # as NumPy's: the elements of a row, which lie side by side, last
    type: str  # a name of `ggml_types.TYPES`
    offset: int  # from the beginning of its file
    nbytes: int
    part: int = 0  # which file of a split model


@dataclass(frozen=True, eq=False)
class GgufFile:
    """An open GGUF file, or all files of a split one. Nothing needs to be closed."""

    path: Path
    metadata: Metadata
    tensors: Mapping[str, GgufTensor]  # in the order of their bytes
    parts: tuple[np.ndarray[Any, Any], ...]  # the bytes of each file, memory-mapped

    def raw(self, name: str) -> np.ndarray[Any, Any]:
        """The bytes of a tensor, memory-mapped and read-only."""
        tensor = self.tensors[name]
        return self.parts[tensor.part][tensor.offset : tensor.offset + tensor.nbytes]

    def __repr__(self) -> str:
        return f"GgufFile({str(self.path)!r}, {len(self.tensors)} tensors)"


class GgufPart(NamedTuple):
    """One file, checked."""

    data: Buffer
    metadata: Metadata
    tensors: dict[str, GgufTensor]


# --- reading -------------------------------------------------------------------------------------


def read_gguf(path: str | os.PathLike[str], /) -> GgufFile:
    """The metadata and tensors of a GGUF file, whose elements are read when they are asked for.

    Any file of a split model (`…-00001-of-00004.gguf`) stands for all of them. FormatError for
    what is truncated, forged, or of another format, with what is wrong and where.
    """
    source = as_path("read_gguf", path)
    first = _read_part(source)
    count = _number(source, first, "split.count", 1)
    parts = [first] if count <= 1 else _all_parts(source, count)
    tensors: dict[str, GgufTensor] = {}
    for number, part in enumerate(parts):
        for name, tensor in part.tensors.items():
            if name in tensors:
                raise FormatError(f"{source}: two files of it have a tensor {shortened(name)}")
            tensors[name] = tensor._replace(part=number)
    stated = _number(source, parts[0], "split.tensors.count", len(tensors))
    if len(parts) > 1 and stated != len(tensors):
        raise FormatError(
            f"{source}: the {len(parts)} files of this model have {len(tensors)} tensors, and "
            f"split.tensors.count is {stated}: they do not belong together"
        )
    return GgufFile(
        source,
        parts[0].metadata,
        MappingProxyType(tensors),
        tuple(np.frombuffer(part.data, np.uint8) for part in parts),
    )


def _number(path: Path, part: GgufPart, key: str, default: int) -> int:
    value = part.metadata.get(key, default)
    if type(value) is not int:
        raise FormatError(f"{path}: {key} is {shortened(value)}, not a number")
    return value


def _all_parts(source: Path, count: int) -> list[GgufPart]:
    """The files of a split model, of which `source` is one."""
    found = _PART.fullmatch(source.name)
    if found is None or int(found[3]) != count:
        raise FormatError(
            f"{source} is one of {count} files of a model: they are found by their names, which "
            f"end in -00001-of-{count:05}.gguf and so on"
        )
    paths = [source.with_name(f"{found[1]}-{n + 1:05}-of-{found[3]}.gguf") for n in range(count)]
    for place in paths:
        if not place.is_file():
            raise FormatError(
                f"{source} is one of {count} files of a model, and {place} is missing"
            )
    parts = []
    total = 0
    for number, place in enumerate(paths):
        part = _read_part(place)
        stated = _number(place, part, "split.no", -1), _number(place, part, "split.count", 1)
        if stated != (number, count):
            raise FormatError(
                f"{place} says that it is the file {stated[0]} (from 0) of {stated[1]}, which its "
                "name contradicts"
            )
        total += len(part.tensors)
        _check_count(total, "tensors")
        parts.append(part)
    return parts


def _read_part(path: Path) -> GgufPart:
    """One file, mapped and checked."""
    data = mapped(path)
    try:
        return parse(data)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def parse(data: Buffer) -> GgufPart:
    """One file's content, checked: FormatError says what is wrong with it."""
    tensor_count, value_count, at = _head(data)
    places: dict[str, Place] = {}
    for number in range(value_count):
        key, at = _name(data, at, f"the key of metadata value {number}")
        what = f"the metadata value {shortened(key)}"
        if key in places:
            raise FormatError(f"{what} is there twice")
        require(data, at + 4, what)
        (kind,) = struct.unpack_from("<I", data, at)
        stop = skip(data, kind, at + 4, what)
        places[key] = Place(kind, at + 4, stop)
        at = stop
    metadata = Metadata(data, places)
    alignment = metadata.get("general.alignment", ALIGNMENT)
    if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1):
        raise FormatError(f"general.alignment is {shortened(alignment)}, not a power of two")
    records: dict[str, tuple[tuple[int, ...], int, int]] = {}
    for number in range(tensor_count):
        name, at = _name(data, at, f"the name of tensor {number}")
        if name in records:
            raise FormatError(f"two tensors have the name {shortened(name)}")
        shape, kind, offset, at = _record(data, at, f"the record of the tensor {shortened(name)}")
        records[name] = shape, kind, offset
    begin = _aligned(at, alignment)
    tensors = {
        name: _tensor(name, *record, begin, alignment, len(data))
        for name, record in records.items()
    }
    return GgufPart(data, metadata, _in_order(tensors))


def _head(data: Buffer) -> tuple[int, int, int]:
    """The numbers of tensors and of metadata values, and where the values begin."""
    if data[:4] != MAGIC:
        raise FormatError(
            "the file is empty" if not len(data) else
            f"this is not a GGUF file: those begin with the letters GGUF, and this one with "
            f"{bytes(data[:4])!r}"
        )  # fmt: skip
    require(data, _HEAD.size, "the header")
    _, version, tensor_count, value_count = _HEAD.unpack_from(data)
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        raise FormatError(
            "this GGUF file is big-endian, for IBM's mainframes, and treadle reads little-endian "
            "ones: the program gguf-convert-endian of the package gguf changes it"
            if swapped in VERSIONS
            else f"this GGUF file has version {version}, and treadle reads the versions 2 and 3"
            + (": convert the model again with today's llama.cpp" if version == 1 else "")
        )
    room = len(data) - _HEAD.size
    for count, least, what in (
        (value_count, _LEAST_VALUE, "metadata values"),
        (tensor_count, _LEAST_TENSOR, "tensors"),
    ):
        if count * least > room:
            raise FormatError(
                f"the header announces {count} {what}, which do not fit into the {len(data)} bytes "
                "of the file: it is truncated or corrupt"
            )
        _check_count(count, what)
    return tensor_count, value_count, _HEAD.size


def _check_count(count: int, what: str) -> None:
    if count > _MOST:
        raise FormatError(f"the file has {count} {what}, and treadle reads at most {_MOST}")


def _name(data: Buffer, at: int, what: str) -> tuple[str, int]:
    stop = text_end(data, at, what)
    if stop - at - 8 > _LONGEST_NAME:
        raise FormatError(
            f"{what} has {stop - at - 8} bytes, and names have {_LONGEST_NAME} at most"
        )
    return str(data[at + 8 : stop], "utf-8"), stop


def _record(data: Buffer, at: int, what: str) -> tuple[tuple[int, ...], int, int, int]:
    """A tensor's shape, the numbers of its type and of its first byte, and the record's end."""
    require(data, at + 4, what)
    (axes,) = struct.unpack_from("<I", data, at)
    if axes > _MOST_AXES:
        raise FormatError(f"{what} has {axes} axes at byte {at}, and ggml's have {_MOST_AXES}")
    layout = struct.Struct(f"<{axes}QIQ")
    require(data, at + 4 + layout.size, what)
    *extents, kind, offset = layout.unpack_from(data, at + 4)
    return tuple(reversed(extents)), kind, offset, at + 4 + layout.size


def _tensor(
    name: str, shape: tuple[int, ...], kind: int, offset: int, begin: int, alignment: int, size: int
) -> GgufTensor:
    """A tensor whose type is known, and whose bytes are within a file of so many."""

    def fault(what: str) -> FormatError:
        return FormatError(f"the tensor {shortened(name)} {what}")

    found = NUMBERED.get(kind)
    if found is None:
        raise fault(
            f"has the type {REMOVED[kind]}, which ggml has removed: quantize the model again"
            if kind in REMOVED
            else f"has the type number {kind}, and treadle knows {', '.join(TYPES)}"
        )
    # An extent of 0 must not hide another that no array can have.
    if math.prod(max(n, 1) for n in shape) >= 2**63:
        raise fault(f"has a shape that is too large: {shape}")
    row = shape[-1] if shape else 1
    if row % found.elements:
        raise fault(
            f"has rows of {row} elements, and {found.name} has blocks of {found.elements}: rows "
            "are made of whole blocks"
        )
    nbytes = math.prod(shape) // found.elements * found.nbytes
    if offset % alignment:
        raise fault(f"begins at byte {offset} of the elements, which is not aligned to {alignment}")
    if begin + offset + nbytes > size and nbytes:
        raise fault(
            f"of shape {shape} and type {found.name} takes the bytes {begin + offset} to "
            f"{begin + offset + nbytes}, and the file has {size}: it is truncated or corrupt"
        )
    return GgufTensor(name, shape, found.name, min(begin + offset, size), nbytes)


def _in_order(tensors: dict[str, GgufTensor]) -> dict[str, GgufTensor]:
    """Tensors in the order of their bytes, none of which belong to two."""
    ordered = sorted(tensors.values(), key=lambda tensor: (tensor.offset, tensor.nbytes))
    filled = [tensor for tensor in ordered if tensor.nbytes]
    for one, other in pairwise(filled):
        if one.offset + one.nbytes > other.offset:
            raise FormatError(
                f"the tensors {shortened(one.name)} and {shortened(other.name)} overlap: byte "
                f"{other.offset} belongs to both"
            )
    return {tensor.name: tensor for tensor in ordered}


# --- writing -------------------------------------------------------------------------------------


class GgufSource(NamedTuple):
    """A tensor to be written: what it is, and where its bytes will come from."""

    shape: tuple[int, ...]
    type: str
    read: Callable[[], np.ndarray[Any, Any]]  # its elements or blocks, of whatever dtype


def write_gguf(
    path: str | os.PathLike[str],
    metadata: Mapping[str, Any],
    tensors: Mapping[str, GgufSource | np.ndarray[Any, Any]],
    /,
) -> None:
    """Write a GGUF file as a whole: until it is complete, what was at `path` stays there.

    Values of the metadata are written as `gguf_values.encode` says, and those of
    `GgufFile.metadata.encoded` as they were. A tensor is an array of plain numbers, or a
    `GgufSource`, which is read when its turn comes, so that one of them at most need be in memory.
    """
    target = as_path("write_gguf", path)
    alignment = metadata.get("general.alignment", ALIGNMENT)
    if isinstance(alignment, Encoded):
        alignment = decode(alignment.data, Place(alignment.type, 0, len(alignment.data)))
    if int(alignment) <= 0 or int(alignment) & (int(alignment) - 1):
        raise ValueError(f"general.alignment is {alignment}, not a power of two")
    sources = {name: _source(name, tensor) for name, tensor in tensors.items()}
    header = bytearray(_HEAD.pack(MAGIC, VERSIONS[-1], len(sources), len(metadata)))
    for key, value in metadata.items():
        header += _encoded_name(key)
        kind, raw = encode(value, f"the metadata value {shortened(key)}")
        header += struct.pack("<I", kind) + raw
    place = 0
    sizes: dict[str, int] = {}
    for name, source in sources.items():
        ggml, sizes[name] = _size(name, source)
        header += _encoded_name(name)
        axes = len(source.shape)
        header += struct.pack(f"<I{axes}QIQ", axes, *reversed(source.shape), ggml.number, place)
        place += _aligned(sizes[name], alignment)
    with replaced(target) as file:
        file.write(header.ljust(_aligned(len(header), alignment), b"\0"))
        for name, source in sources.items():
            data = np.ascontiguousarray(source.read()).reshape(-1).view(np.uint8)
            if data.nbytes != sizes[name]:
                raise ValueError(
                    f"the tensor {shortened(name)} of shape {source.shape} and type {source.type} "
                    f"has {sizes[name]} bytes, and {data.nbytes} were given"
                )
            file.write(data.data)
            file.write(b"\0" * (_aligned(data.nbytes, alignment) - data.nbytes))


def _source(name: str, tensor: GgufSource | np.ndarray[Any, Any]) -> GgufSource:
    if isinstance(tensor, GgufSource):
        return tensor
    kind = _PLAIN.get(tensor.dtype.name)
    if kind is None:
        raise ValueError(
            f"the tensor {shortened(name)} has the dtype {tensor.dtype}, and a GGUF file has "
            f"{', '.join(_PLAIN)}"
        )
    return GgufSource(tensor.shape, kind, lambda: tensor)


def _size(name: str, source: GgufSource) -> tuple[GgmlType, int]:
    """The type of a tensor to be written, and how many bytes it takes."""
    kind = TYPES.get(source.type)
    if kind is None:
        raise ValueError(
            f"the tensor {shortened(name)} has the type {source.type!r}, and ggml has "
            f"{', '.join(TYPES)}"
        )
    if len(source.shape) > _MOST_AXES:
        raise ValueError(
            f"the tensor {shortened(name)} has {len(source.shape)} axes, and a GGUF file has room "
            f"for {_MOST_AXES}"
        )
    row = source.shape[-1] if source.shape else 1
    if row % kind.elements:
        raise ValueError(
            f"the tensor {shortened(name)} has rows of {row} elements, and {kind.name} has blocks "
            f"of {kind.elements}: rows are made of whole blocks"
        )
    return kind, math.prod(source.shape) // kind.elements * kind.nbytes


def _encoded_name(name: str) -> bytes:
    raw = encoded_text(name, f"the name {shortened(name)}")
    if len(raw) - 8 > _LONGEST_NAME:
        raise ValueError(f"the name {shortened(name)} is longer than {_LONGEST_NAME} bytes")
    return raw


def _aligned(place: int, alignment: int) -> int:
    return -(-place // alignment) * alignment
