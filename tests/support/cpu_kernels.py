"""Running hand-built kernels on the cpu driver, with NumPy arrays as buffers."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from tests.support.printing import print_llvm
from treadle.codegen.llvm import LlvmOptions
from treadle.core.dim3 import Dim3
from treadle.drivers.cpu import backend
from treadle.ir import nodes as n
from treadle.ir.parser import from_text

OWN_BINDINGS = LlvmOptions()
_device = None


def device():
    global _device
    if _device is None:
        opened = backend()
        _device = opened.open(opened.list_devices()[0])
    return _device


def compiled(kernel: n.Kernel | str, options: LlvmOptions = OWN_BINDINGS):
    if isinstance(kernel, str):
        kernel = from_text(kernel)
    return device().compile(print_llvm(kernel, options))


def upload(array: np.ndarray):
    data = np.ascontiguousarray(array)
    buffer = device().allocate(max(data.nbytes, 4))
    device().default_stream.write(buffer, 0, memoryview(data.view(np.uint8).reshape(-1)))
    return buffer


def download(buffer, like: np.ndarray) -> np.ndarray:
    raw = np.empty(like.nbytes, np.uint8)
    device().default_stream.read(buffer, 0, memoryview(raw))
    return raw.view(like.dtype).reshape(like.shape)


def run(
    kernel: n.Kernel | str,
    arrays: Sequence[np.ndarray],
    parameters: Sequence[float] = (),
    grid: int | tuple[int, ...] = 1,
    options: LlvmOptions = OWN_BINDINGS,
) -> list[np.ndarray]:
    """Launch a kernel once; what the arrays hold afterwards."""
    built = compiled(kernel, options)
    buffers = [upload(array) for array in arrays]
    block = struct.pack(built.code.layout.format, *parameters)
    device().default_stream.launch(built, Dim3.of(grid), buffers, block)
    results = [download(buffer, array) for buffer, array in zip(buffers, arrays, strict=True)]
    for buffer in buffers:
        device().free(buffer)
    return results
