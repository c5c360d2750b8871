"""Compiled kernels of the CPU."""

from __future__ import annotations

import struct

from treadle.codegen.records import KernelCode
from treadle.core.dim3 import Dim3
from treadle.drivers import base
from treadle.drivers.cpu.compiler import ENTRY, compiler


class CompiledKernel(base.CompiledKernel):
    """Machine code of a kernel, loaded into the process."""

    __slots__ = ("entry", "grids", "image", "library", "pack", "pointer", "seconds")

    def __init__(self, device: base.Device, code: KernelCode, image: bytes) -> None:
        loaded = compiler().load_object(image, (code.entry,))
        self.device = device
        self.code = code
        self.image = image
        self.library = loaded.library
        self.pointer = loaded.addresses[code.entry]
        self.entry = ENTRY(self.pointer)
        self.pack = struct.Struct(f"{len(code.bindings)}Q").pack
        self.grids: dict[Dim3, tuple[bytes, int]] = {}  # as `launch` hands them on
        self.seconds = 0.0  # that one block takes, as last measured; 0.0 before

    def entry_point(self) -> int:
        """The address of its machine code."""
        return self.pointer
