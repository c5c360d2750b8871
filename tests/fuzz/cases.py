"""Drawn kernels of every family, each made from a tape of bytes and run the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import treadle as td
from tests.fuzz.cuda_expressions import LANES, Drawing, drawing_from
from tests.fuzz.programs import Program, program_from
from tests.fuzz.running import Arrays, kernel_of, run_on


class Case(Protocol):
    """A kernel with its arguments."""

    @property
    def text(self) -> str:
        """The kernel's source."""

    def run(self, device: td.Device) -> Arrays:
        """The arrays after a run on a device."""

    def with_text(self, text: str) -> Case:
        """The same launch of another source."""


@dataclass(frozen=True)
class PythonCase:
    """A kernel in Python."""

    program: Program

    @property
    def text(self) -> str:
        return self.program.source

    @cached_property
    def kernel(self) -> Any:
        """The kernel; each device compiles it for itself."""
        return kernel_of(self.program)

    def run(self, device: td.Device) -> Arrays:
        return run_on(device, self.program, self.kernel)

    def with_text(self, text: str) -> PythonCase:
        return PythonCase(replace(self.program, source=text))

    def __str__(self) -> str:
        return str(self.program)


@dataclass(frozen=True)
class CudaCase:
    """A kernel in CUDA C++."""

    drawing: Drawing

    @property
    def text(self) -> str:
        return self.drawing.text

    @cached_property
    def kernel(self) -> Any:
        """The kernel; each device compiles it for itself."""
        return td.cuda_module(self.text).drawn

    def run(self, device: td.Device) -> Arrays:
        out = td.zeros(self.drawing.words.shape, dtype=td.int32, device=device)
        inputs = (self.drawing.integers, self.drawing.floats)
        given = [td.asarray(array, device=device) for array in inputs]
        self.kernel[1, LANES](*given, out)
        return {"out": out.numpy()}

    def with_text(self, text: str) -> CudaCase:
        return CudaCase(replace(self.drawing, text=text))

    def __str__(self) -> str:
        given = f"// in: {self.drawing.integers.tolist()}\n// reals: {self.drawing.floats.tolist()}"
        return f"{self.text}{given}"


FAMILIES: dict[str, Callable[[bytes], Case]] = {
    "python": lambda tape: PythonCase(program_from(tape, wide=True)),
    "cuda-cpp": lambda tape: CudaCase(drawing_from(tape, wide=True)),
}
