"""Kernels as functions of Python, and how a grid goes through one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from treadle.codegen.numpy.printer import LOCAL, SPLITS
from treadle.codegen.records import KernelCode
from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.drivers import base
from treadle.drivers.cpu_numpy import accesses, atomics, masks
from treadle.drivers.cpu_numpy.chunks import Array, Chunk, chunks, times
from treadle.drivers.cpu_numpy.numbers import NUMBERS
from treadle.drivers.cpu_numpy.warps import warp, warp_matrices

_TYPES: dict[str, Any] = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32,
    "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f16": np.float16, "f32": np.float32,
    "f64": np.float64,
}  # fmt: skip
_GLOBALS: dict[str, Any] = {
    **_TYPES, **NUMBERS, "bool_": np.bool_, "view": accesses.view, "own": accesses.own,
    "times": times, "load": accesses.load, "store": accesses.store,
    "atomic_number": atomics.atomic_number,
    "atomic_bf16": atomics.atomic_bf16, "warp": warp, "warp_matrices": warp_matrices,
    "Trips": masks.Trips,
    **{name: getattr(masks, name) for name in (
        "both", "without", "minus", "either", "all_of", "merge", "select", "inside",
    )},
}  # fmt: skip
"""What printed code calls."""
_PARAMETERS = {**_TYPES, "bool": np.bool_, "bf16": np.float32}
Run = Callable[[Chunk, Sequence[Array], tuple[Any, ...]], None]


class CompiledKernel(base.CompiledKernel):
    """A kernel that is ready to run."""

    __slots__ = ("_memory", "_splits", "_types", "_unpack", "run")

    def __init__(self, device: base.Device, code: KernelCode) -> None:
        self.device = device
        self.code = code
        program: CodeType = compile(code.source, f"<{code.name} by NumPy>", "exec")
        names = dict(_GLOBALS)
        exec(program, names)
        self.run: Run = names[code.entry]
        self._splits: tuple[int, ...] = names[SPLITS]
        # Bytes that a block has for itself.
        self._memory = code.shared_bytes + names[LOCAL] * code.block.count
        self._unpack = struct.Struct(code.layout.format).unpack_from
        self._types = [_PARAMETERS[slot.parameter.type.name] for slot in code.layout.slots]

    def launch(self, grid: Dim3, arrays: Sequence[Array], parameters: bytes) -> None:
        """Run a grid on the bytes of its buffers."""
        values = self._unpack(parameters) if self._types else ()
        with np.errstate(all="ignore"):  # numbers wrap and overflow as on every device
            numbers = tuple(kind(value) for kind, value in zip(self._types, values, strict=True))
            try:
                for chunk in chunks(grid, self.code.block, self._splits, self._memory):
                    self.run(chunk, arrays, numbers)
            except (IndexError, ValueError) as error:
                raise LaunchError(
                    f"`{self.code.name}` was stopped at an access outside of its memory, which it "
                    f"promised not to make ({error}): check the indices that it does not check"
                ) from error
