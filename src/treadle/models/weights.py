"""The weights of a GGUF file, uploaded one by one as a model asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from treadle.core.errors import FormatError
from treadle.formats.contents import release
from treadle.formats.gguf import GgufFile
from treadle.kernels.launching import serial_threads
from treadle.models.layers import Matrix, RowParts
from treadle.quant.blocks import FORMATS
from treadle.quant.matrix import QuantizedTensor
from treadle.quant.products import Activations
from treadle.runtime.devices import Device
from treadle.tensor.tensor import Tensor, from_numpy

# Of vectors, which are made float32.
_PLAIN: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
}
SUPPORTED = ("f32", *FORMATS)
Uploaded = Callable[[int], None]  # called with the number of bytes that were uploaded


class GgufWeights:
    """Tensors of a file by name. A tensor that several ask for is uploaded once."""

    def __init__(
        self,
        file: GgufFile,
        device: Device,
        uploaded: Uploaded | None = None,
        activations: Activations | None = None,
    ) -> None:
        self.file, self.device, self.activations = file, device, activations
        self._uploaded = uploaded or (lambda _: None)
        self._found: dict[str, Any] = {}

    def has(self, name: str) -> bool:
        """Whether the file has a tensor of this name."""
        return name in self.file.tensors

    def matrix(self, name: str, rows: int, columns: int) -> Matrix:
        """A matrix, in blocks if it is quantized."""
        found: Matrix = self._tensor(name, (rows, columns))
        return found

    def together(self, rows_of: Sequence[tuple[str, int]], columns: int) -> None:
        """Have neighbours among these matrices that are of one format one after the other in
        memory, so that a kernel reads them as one. On a CPU a kernel is not worth that."""
        if serial_threads(self.device):
            return
        for name, rows in rows_of:
            self._check(name, (rows, columns))
        for kind, each in groupby(rows_of, lambda one: self.file.tensors[one[0]].type):
            group = list(each)
            tensors = [self.file.tensors[name] for name, _ in group]
            size = sum(tensor.nbytes for tensor in tensors)
            known = any(name in self._found for name, _ in group)
            if (
                kind not in FORMATS
                or len(group) < 2
                or known
                or size > self.device.limits.max_binding_size
            ):
                continue
            self._upload_together(kind, group, columns)

    def _upload_together(self, kind: str, group: list[tuple[str, int]], columns: int) -> None:
        raws = [self.file.raw(name) for name, _ in group]
        blocks = np.concatenate([raw.reshape(-1) for raw in raws])
        whole = QuantizedTensor.from_blocks(
            blocks, (sum(rows for _, rows in group), columns), kind, self.device
        )
        at = 0
        for (name, rows), raw in zip(group, raws, strict=True):
            self._found[name] = whole[at : at + rows]
            at += rows
            release(raw)
            self._uploaded(self.file.tensors[name].nbytes)

    def stack(self, name: str, count: int, rows: int, columns: int) -> Tensor | QuantizedTensor:
        """Matrices of one shape, one after the other."""
        self._check(name, (count, rows, columns))
        nbytes, most = self.file.tensors[name].nbytes, self.device.limits.max_binding_size
        if nbytes > most:
            raise FormatError(
                f"{name} has {nbytes} bytes, and a kernel on {self.device.id} sees at most {most} "
                "of an array: take another device, or a file with fewer bits"
            )
        found: Tensor | QuantizedTensor = self._tensor(name, (count, rows, columns))
        return found

    def vector(self, name: str, size: int) -> Tensor:
        """A vector in float32."""
        return from_numpy(self.numpy(name, size), self.device)

    def joined(self, *names: str, size: int) -> Tensor:
        """Vectors of the same size, one after the other."""
        return from_numpy(np.concatenate([self.numpy(name, size) for name in names]), self.device)

    def numpy(self, name: str, size: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """A vector on the host, in float32."""
        self._check(name, (size,))
        kind = self.file.tensors[name].type
        if kind not in _PLAIN:
            raise FormatError(f"{name} is {kind}, where f32 or f16 is needed")
        self._uploaded(self.file.tensors[name].nbytes)
        found = self.file.raw(name).view(_PLAIN[kind])
        return np.asarray(found, np.float32)

    def _check(self, name: str, shape: tuple[int, ...]) -> None:
        found = self.file.tensors.get(name)
        if found is None:
            raise FormatError(f"{self.file.path.name} has no tensor {name}")
        if tuple(found.shape) != shape:
            raise FormatError(
                f"{name} has shape {tuple(found.shape)}, and the metadata says {shape}"
            )

    def _tensor(self, name: str, shape: tuple[int, ...]) -> Any:
        if name not in self._found:
            self._check(name, shape)
            self._found[name] = self._upload(name, shape)
        return self._found[name]

    def _upload(self, name: str, shape: tuple[int, ...]) -> Any:
        tensor, raw = self.file.tensors[name], self.file.raw(name)
        count = -(-tensor.nbytes // self.device.limits.max_binding_size)
        if count == 1:
            made = self._part(raw, shape, tensor.type)
        else:
            step, each = -(-shape[0] // count), tensor.nbytes // shape[0]
            parts = [
                self._part(
                    raw[at * each : (at + step) * each],
                    (min(step, shape[0] - at), *shape[1:]),
                    tensor.type,
                )
                for at in range(0, shape[0], step)
            ]
            made = RowParts(tuple(parts))
        release(raw)
        self._uploaded(tensor.nbytes)
        return made

    def _part(self, raw: np.ndarray[Any, Any], shape: tuple[int, ...], kind: str) -> Any:
        if kind in FORMATS:
            return QuantizedTensor.from_blocks(raw, shape, kind, self.device)
        return from_numpy(raw.view(np.float32).reshape(shape), self.device)


class CheckedWeights(GgufWeights):
    """The same, but nothing is uploaded: a model that is built with it only checks that the file
    has all it needs, in the shapes that the metadata gives."""

    def vector(self, name: str, size: int) -> Any:
        """A check."""
        self.numpy(name, size)

    def joined(self, *names: str, size: int) -> Any:
        """A check."""
        for name in names:
            self.numpy(name, size)

    def _upload(self, name: str, shape: tuple[int, ...]) -> Any:
        return None

    def _upload_together(self, kind: str, group: list[tuple[str, int]], columns: int) -> None:
        """Nothing: each is checked as it is asked for."""
