"""A kernel in IR on a real device: lowered, printed, compiled and launched, with NumPy arrays."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

import treadle as td
from treadle.codegen import pipeline
from treadle.codegen.records import KernelCode, Options
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.runtime.build import target_of


def printed(device: td.Device, kernel: n.Kernel) -> KernelCode:
    """The kernel's text for a device; every buffer has a binding of its own."""
    device.handle  # noqa: B018 - opening it tells what it has
    slots = tuple((buffer.name, number) for number, buffer in enumerate(kernel.buffers))
    assert kernel.block is not None
    options = Options(kernel.block, slots)
    target = target_of(device.info)
    return pipeline.print_code(pipeline.lower(kernel, options, target), options, target)


def launch(
    device: td.Device,
    kernel: n.Kernel,
    grid: int,
    buffers: dict[str, np.ndarray[Any, Any]],
    parameters: dict[str, Any] | None = None,
) -> KernelCode:
    """Run a kernel; the arrays are changed in place. Parameters are given, but for sizes."""
    code = printed(device, kernel)
    handle = device.handle
    compiled = handle.compile(code)
    stream = handle.default_stream
    bound = []
    for array in buffers.values():
        buffer = handle.allocate(max(-(-array.nbytes // 16) * 16, 16))
        stream.write(buffer, 0, memoryview(array.reshape(-1).view(np.uint8)))
        bound.append(buffer)
    values = [(parameters or {}).get(slot.parameter.name, None) for slot in code.layout.slots]
    block = struct.pack(code.layout.format, *values)
    stream.launch(compiled, Dim3.of(grid), bound, block)
    for array, buffer in zip(buffers.values(), bound, strict=True):
        stream.read(buffer, 0, memoryview(array.reshape(-1).view(np.uint8)))
        handle.free(buffer)
    return code
