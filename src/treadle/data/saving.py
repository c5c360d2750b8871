"""`td.save` and `td.load`: states of models, optimizers and whole runs, in safetensors files.

A dictionary of tensors by names, such as `model.state_dict()`, becomes a plain file that every
reader of safetensors reads. Any other state has its structure in the file's metadata, under
`treadle.state`: its tensors are still there for every reader, by names such as
`optimizer.state.0.exp_avg`.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np

from treadle.core.dtypes import DType, as_dtype, complex128, float64
from treadle.core.errors import DtypeError, FormatError
from treadle.core.paths import as_path, naming
from treadle.data.structure import Encoded, decode, encode
from treadle.formats import safetensors
from treadle.formats.atomic import replaced
from treadle.formats.json_text import parse_json
from treadle.formats.safetensors import Source
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.tensor import Tensor, from_numpy

_STRUCTURE = "treadle.state"
_PAIRS = "treadle.complex128"  # tensors that lie in the file as pairs of float64
# Libraries ask for it before they take a file: that weights are laid out as PyTorch's are.
_FORMAT = {"format": "pt"}
_OURS = frozenset({_STRUCTURE, _PAIRS, *_FORMAT})


def save(state: Any, path: str | os.PathLike[str] | IO[bytes], /) -> None:
    """Save a state: tensors, NumPy arrays, numbers, texts, truth values and None, in dictionaries,
    lists and tuples of any depth.

    The file is safetensors. A dictionary of tensors by their names makes one that PyTorch, JAX and
    others read. What is one tensor at several places (tied weights) is saved once and is one tensor
    again when it is loaded; views of parts of one memory are saved each by itself. The file at
    `path` is replaced when the new one is complete on the disk: a kill leaves the old one whole.
    `path` may also be an object with `write`, as an `io.BytesIO`: it is written to from where it
    stands, and stays open.

    TypeError for what cannot be saved, with its place in the state; FileNotFoundError if the folder
    is missing (`~` is not expanded). Tensors are saved without their
    histories, and named tuples as tuples.

    >>> import tempfile
    >>> import treadle as td
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/run.safetensors"
    ...     td.save({"model": {"w": td.ones(2, device="cpu")}, "epoch": 3}, path)
    ...     state = td.load(path, device="cpu")
    >>> state["epoch"], state["model"]["w"].tolist()
    (3, [1.0, 1.0])
    """
    target: Any = path if _is_file("save", path, "write") else as_path("save", path)
    encoded = encode(state)
    sources = {name: _source(name, value) for name, value in encoded.table.items()}
    metadata = dict(_FORMAT)
    pairs = sorted(name for name, value in encoded.table.items() if _dtype(value) == complex128)
    if pairs:
        metadata[_PAIRS] = json.dumps(pairs)
    if encoded.ties is None or not encoded.ties.keys().isdisjoint(_OURS):
        metadata[_STRUCTURE] = json.dumps(encoded.structure, separators=(",", ":"))
    else:
        metadata |= encoded.ties  # as safetensors.torch.save_model writes them
    with replaced(target) if isinstance(target, Path) else nullcontext(target) as file:
        safetensors.write(file, sources, _elements(encoded, sources), metadata)


def _dtype(value: Tensor | np.ndarray[Any, Any]) -> DType:
    return as_dtype(value.dtype)


def _source(name: str, value: Tensor | np.ndarray[Any, Any]) -> Source:
    try:
        dtype = _dtype(value)
    except DtypeError as error:
        raise DtypeError(f"{name!r} cannot be saved: {error}") from None
    if dtype == complex128:
        return Source(float64, (*value.shape, 2))
    return Source(dtype, tuple(value.shape))


def _elements(
    encoded: Encoded, sources: dict[str, Source]
) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for name in safetensors.in_order(sources):
        value = encoded.table[name]
        data = value.numpy() if isinstance(value, Tensor) else value
        yield name, np.ascontiguousarray(data, dtype=_dtype(value).numpy)


def load(path: str | os.PathLike[str] | IO[bytes], /, device: str | Device | None = None) -> Any:
    """The state that `td.save` or another writer of safetensors saved, on a device.

    `path` may also be an object with `read`, as an `io.BytesIO` or an open file: it is read from
    where it stands to its end, and stays open.

    A file of another writer gives a dictionary of tensors by their names. Whatever a file says, no
    program in it runs, and no more memory is taken than its size explains.

    FormatError for any other file, or a truncated or forged one; DtypeError if the device
    lacks the dtype of a tensor.
    """
    where = find_device(device)
    if _is_file("load", path, "read"):
        return _state(path, where)
    source = as_path("load", path)
    with naming(source):
        opened = source.open("rb")
    with opened as file:
        try:
            return _state(file, where)
        except FormatError as error:
            raise FormatError(f"{source}: {error}") from None


def _is_file(asker: str, given: Any, method: str) -> bool:
    """Whether something is an open file for bytes, or like one. TypeError for one for text."""
    if isinstance(given, io.TextIOBase):
        raise TypeError(
            f"{asker}: the file is open for text: open it for bytes, with the mode "
            f"{'rb' if method == 'read' else 'wb'!r}"
        )
    return not isinstance(given, str | os.PathLike) and callable(getattr(given, method, None))


def _state(file: Any, device: Device) -> Any:
    """The state in an open file, from where it stands."""
    if not (hasattr(file, "readinto") and hasattr(file, "seekable") and file.seekable()):
        file = io.BytesIO(file.read())
    start = file.tell()
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    state = _Reader(file, safetensors.read_header(file, size), device).state()
    file.seek(0, os.SEEK_END)
    return state


class _Reader:
    """An open file, whose tensors are made once each."""

    def __init__(self, file: Any, header: safetensors.Header, device: Device) -> None:
        self.file = file
        self.header = header
        self.device = device
        self.tensors: dict[str, Tensor] = {}
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.pairs = _names(header.metadata.get(_PAIRS, "[]"))

    def state(self) -> Any:
        metadata, names = self.header.metadata, self.header.tensors
        if _STRUCTURE in metadata:
            structure = parse_json(metadata[_STRUCTURE], f"its {_STRUCTURE}")
            return decode(structure, self.tensor, self.array)
        state = {name: self.tensor(name) for name in names}
        for name, stored in metadata.items():
            if stored in names and name not in names and name not in _OURS:
                state[name] = state[stored]
        return state

    def tensor(self, name: str) -> Tensor:
        if name not in self.tensors:
            data = self.read(name)
            try:
                self.tensors[name] = from_numpy(data, self.device)
            except DtypeError as error:
                raise DtypeError(
                    f'the tensor {name!r}: {error}; load with device="cpu" and cast it there'
                ) from None
        return self.tensors[name]

    def array(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self.arrays:
            self.arrays[name] = self.read(name)
        return self.arrays[name]

    def read(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self.header.tensors:
            raise FormatError(f"the state has a tensor {name[:60]!r} that is not in the file")
        data = safetensors.read_tensor(self.file, self.header, name)
        if name not in self.pairs:
            return data
        if data.dtype != np.float64 or data.shape[-1:] != (2,):
            raise FormatError(f"the tensor {name[:60]!r} is not pairs of float64")
        return data.view(np.complex128).reshape(data.shape[:-1])


def _names(text: str) -> frozenset[str]:
    names = parse_json(text, f"its {_PAIRS}")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError(f"its {_PAIRS} is not a list of names")
    return frozenset(names)
