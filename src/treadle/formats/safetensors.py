"""safetensors files: the length of a header in eight bytes, the header in JSON, the elements.

    {"__metadata__": {"format": "pt"}, "weight": {"dtype": "F32", "shape": [2, 3],
                                                  "data_offsets": [0, 24]}, …}

The places count from the end of the header, and the tensors fill the rest of the file without holes
or overlaps (https://github.com/huggingface/safetensors). Nothing in such a file is a program. What
comes from a file is not trusted: everything that it says of itself is checked against its size
before memory is taken for it.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from treadle.core.dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from treadle.core.errors import FormatError
from treadle.formats.contents import shortened
from treadle.formats.json_text import parse_json

DTYPES: dict[str, DType] = {
    "BOOL": bool_, "U8": uint8, "I8": int8, "U16": uint16, "I16": int16, "U32": uint32,
    "I32": int32, "U64": uint64, "I64": int64, "F16": float16, "BF16": bfloat16, "F32": float32,
    "F64": float64, "C64": complex64,
}  # fmt: skip
NAMES: dict[DType, str] = {dtype: name for name, dtype in DTYPES.items()}

_LENGTH_BYTES = 8
_LONGEST_HEADER = 100_000_000  # the format's own limit
_ALIGNMENT = 8
_MOST_AXES = 64  # NumPy's limit
_METADATA = "__metadata__"
# What people hand over instead, by its first bytes.
_OTHERS = (
    (b"PK\x03\x04", "a zip archive, as torch.save and numpy.savez write"),
    (b"\x80\x02", "a pickle, as torch.save wrote before PyTorch 1.6"),
    (b"\x80\x03", "a pickle"),
    (b"\x80\x04", "a pickle"),
    (b"\x80\x05", "a pickle"),
    (b"GGUF", "a GGUF file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "an array of numpy.save: load it with numpy.load"),
)
_INSTEAD = (
    "; pickles are not read, since they can run any program: where the file is trusted, "
    "safetensors.torch.save_file(torch.load(old, weights_only=True), new) makes a file that is"
)


class Entry(NamedTuple):
    """Where a tensor lies, in bytes after the header."""

    dtype: DType
    shape: tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """What a file has: its tensors in the order of the header, and free text."""

    tensors: dict[str, Entry]
    metadata: dict[str, str]
    data: int  # the place of the first element in the file


# --- reading -------------------------------------------------------------------------------------


def read_header(file: BinaryIO, size: int) -> Header:
    """The checked header of a file of so many bytes from where it stands; FormatError says what is
    wrong with it."""
    first = file.read(_LENGTH_BYTES)
    length = int.from_bytes(first, "little")
    room = size - _LENGTH_BYTES
    # A length may begin with the bytes of another format: 640 does with those of a pickle.
    if len(first) < _LENGTH_BYTES or length > min(room, _LONGEST_HEADER):
        _refuse_others(first)
    if len(first) < _LENGTH_BYTES:
        raise FormatError(
            f"this is no safetensors file, or a truncated one: it has {size} bytes, and the length "
            f"of the header alone takes {_LENGTH_BYTES}"
        )
    if length > min(room, _LONGEST_HEADER):
        raise FormatError(
            f"this is no safetensors file, or a truncated one: its header should take {length} "
            f"bytes, and {room} are left (headers take at most {_LONGEST_HEADER})"
        )
    raw = file.read(length)
    if len(raw) < length:
        raise FormatError("the file became shorter while it was read")
    parsed = parse_json(raw, "the header of the safetensors file")
    return _checked(parsed, file.tell(), room - length)


def _refuse_others(first: bytes) -> None:
    """FormatError that names the format of a file, if it is a known one."""
    for begin, what in _OTHERS:
        if first.startswith(begin):
            advice = "" if "numpy.load" in what or "GGUF" in what else _INSTEAD
            raise FormatError(f"this is {what}, not a safetensors file{advice}")


def read_tensor(file: BinaryIO, header: Header, name: str) -> np.ndarray[Any, Any]:
    """The elements of one tensor, in memory of their own."""
    dtype, shape, start, stop = header.tensors[name]
    raw = np.empty(stop - start, np.uint8)
    file.seek(header.data + start)
    view = raw.data
    done = 0
    while done < raw.size:
        count = file.readinto(view[done:])  # type: ignore[attr-defined]
        if not count:
            raise FormatError(f"the file ends within the tensor {name!r}")
        done += count
    data = raw != 0 if dtype is bool_ else raw.view(dtype.stored)
    try:
        return data.reshape(shape)
    except ValueError:
        raise FormatError(f"the shape of the tensor {shortened(name)} is too large") from None


def _checked(header: Any, data: int, room: int) -> Header:
    """The header's contents, if they are what the format says and fill `room` bytes."""
    if not isinstance(header, dict):
        raise FormatError("the header of a safetensors file is a JSON object, and this one is not")
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FormatError(f"{_METADATA} of a safetensors file maps texts to texts, not to others")
    tensors = {name: _entry(name, entry) for name, entry in header.items()}
    place = 0
    for name, entry in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].stop)):
        if entry.start != place:
            raise FormatError(
                f"the tensor {shortened(name)} begins at byte {entry.start} of the data, where "
                f"{'a hole' if entry.start > place else 'another tensor'} is: the last one ended "
                f"at {place}"
            )
        place = entry.stop
    if place != room:
        raise FormatError(
            f"the file is truncated: its tensors take {place} bytes, and it has {room}"
            if place > room
            else f"{room - place} bytes after the last tensor belong to none"
        )
    return Header(tensors, metadata, data)


def _entry(name: str, entry: Any) -> Entry:
    def fault(what: str) -> FormatError:
        return FormatError(f"the tensor {shortened(name)} of the safetensors file {what}")

    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise fault("has to tell its dtype, shape and data_offsets, and nothing else")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _are_counts(shape) or len(shape) > _MOST_AXES:
        raise fault(f"has no shape: that is a list of at most {_MOST_AXES} extents")
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise fault("has no place: data_offsets are its first byte and the one after its last")
    dtype = DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise fault(
            f"has the dtype {shortened(entry['dtype'])}, and treadle reads {', '.join(DTYPES)}: "
            "cast it to one of them with what wrote the file"
        )
    start, stop = offsets
    if math.prod(shape) * dtype.itemsize != stop - start:
        raise fault(
            f"has {stop - start} bytes, and its shape {shortened(shape)} of {dtype} needs "
            f"{shortened(math.prod(shape) * dtype.itemsize)}"
        )
    return Entry(dtype, tuple(shape), start, stop)


def _are_counts(value: Any) -> bool:
    """Whether a value is a list of numbers of elements or bytes, as 64 bits hold them."""
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)


# --- writing -------------------------------------------------------------------------------------


class Source(NamedTuple):
    """A tensor to be written: what it is, and where its elements will come from."""

    dtype: DType
    shape: tuple[int, ...]


def write(
    file: BinaryIO,
    sources: Mapping[str, Source],
    elements: Iterable[tuple[str, np.ndarray[Any, Any]]],
    metadata: Mapping[str, str],
) -> None:
    """Write a file. `elements` gives the tensors in the order of `in_order(sources)`, one at a
    time, so that one of them at most need be in the host's memory."""
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    places: dict[str, tuple[int, int]] = {}
    place = 0
    for name in in_order(sources):
        dtype, shape = sources[name]
        stop = place + math.prod(shape) * dtype.itemsize
        places[name] = place, stop
        place = stop
    for name, (dtype, shape) in sources.items():
        header[name] = {"dtype": NAMES[dtype], "shape": list(shape), "data_offsets": places[name]}
    try:
        raw = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"a text that is no Unicode cannot be saved: {error}") from None
    raw += b" " * (-len(raw) % _ALIGNMENT)
    if len(raw) > _LONGEST_HEADER:
        raise ValueError(
            f"names, texts and numbers of the state take {len(raw)} bytes, and a safetensors file "
            f"has room for {_LONGEST_HEADER}: save large data as tensors"
        )
    _write_all(file, memoryview(len(raw).to_bytes(_LENGTH_BYTES, "little") + raw))
    for _, data in elements:
        _write_all(file, np.ascontiguousarray(data).reshape(-1).view(np.uint8).data)


def _write_all(file: BinaryIO, data: memoryview) -> None:
    """Write bytes to a file, also to one without a buffer, which may take a part at a time."""
    while len(data):
        count = file.write(data)
        if not count and isinstance(file, io.RawIOBase):
            raise BlockingIOError("the file takes no bytes at present: open it with a buffer")
        # Objects that are like files may say nothing of how much they took.
        data = data[count:] if isinstance(count, int) and count < len(data) else data[:0]


def in_order(sources: Mapping[str, Source]) -> Iterator[str]:
    """The names as the tensors lie in a file: the widest dtypes first, so that all are aligned."""
    yield from sorted(sources, key=lambda name: -sources[name].dtype.itemsize)
