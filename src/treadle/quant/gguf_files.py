"""`td.load_gguf`: the tensors of GGUF files, on a device."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from treadle.core.dtypes import as_dtype
from treadle.core.errors import DtypeError, FormatError
from treadle.formats.contents import release
from treadle.formats.gguf import GgufFile, GgufTensor, read_gguf
from treadle.quant.blocks import FORMATS
from treadle.quant.matrix import QuantizedTensor
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.tensor import Tensor, from_numpy

# Types of plain numbers, by the names of dtypes. ggml's names are treadle's short ones.
_NUMBERS = frozenset({"f64", "f32", "f16", "bf16", "i8", "i16", "i32", "i64"})


class Gguf(Mapping[str, "Tensor | QuantizedTensor"]):
    """An open GGUF file, or all files of a split one: a mapping of its tensors by their names.

    A tensor is read and copied to the device each time that it is asked for: a `QuantizedTensor` if
    the file has it in blocks, else a `Tensor`. Nothing needs to be closed.
    """

    def __init__(self, file: GgufFile, device: Device) -> None:
        self._file = file
        self.device = device

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the file says of the model, by keys such as `general.architecture`."""
        return self._file.metadata

    @property
    def tensors(self) -> Mapping[str, GgufTensor]:
        """What the tensors are, without reading them: `name`, `shape`, `type`, `nbytes`."""
        return self._file.tensors

    def __getitem__(self, name: str) -> Tensor | QuantizedTensor:
        return self.tensor(name)

    def tensor(self, name: str, *, device: str | Device | None = None) -> Tensor | QuantizedTensor:
        """A tensor on a device, the file's if none is given."""
        self.check([name])
        where = self.device if device is None else find_device(device)
        found = self.tensors[name]
        raw = self._file.raw(name)
        if found.type not in _NUMBERS:
            made: Tensor | QuantizedTensor
            made = QuantizedTensor.from_blocks(raw, found.shape, found.type, where)
        else:
            data = np.frombuffer(raw, as_dtype(found.type).stored).reshape(found.shape)
            try:
                made = from_numpy(data, where)
            except DtypeError as error:
                raise DtypeError(f"the tensor {name!r}: {error}") from None
        release(raw)
        return made

    def check(self, names: Iterable[str] | None = None) -> None:
        """FormatError if one of these tensors, or of all, has a type that is not read. It takes no
        time, so a program knows before it copies the first one."""
        for name in self.tensors if names is None else names:
            kind = self.tensors[name].type
            if kind not in _NUMBERS and kind not in FORMATS:
                known = ", ".join(sorted(_NUMBERS | FORMATS.keys()))
                raise FormatError(
                    f"{self._file.path}: the tensor {name!r} is {kind}, which is not one of the "
                    f"types that are read: {known}. Convert the model to one of them from its "
                    "original"
                )

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __repr__(self) -> str:
        size = sum(each.nbytes for each in self.tensors.values()) / 1e6
        return (
            f"Gguf({str(self._file.path)!r}: {len(self)} tensors, {size:.1f} MB, "
            f"device={self.device.id!r})"
        )


def load_gguf(path: str | os.PathLike[str], /, device: str | Device | None = None) -> Gguf:
    """The tensors and the metadata of a GGUF file, for a device.

    Opening reads the header alone. Any file of a split model stands for all of them. FormatError
    for what is truncated, forged, or of another format.
    """
    where = find_device(device)
    return Gguf(read_gguf(path), where)
