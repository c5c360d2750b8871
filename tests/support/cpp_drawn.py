"""The fuzz suite's drawn kernels, printed and run through g++ in batches, without Hypothesis."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.programs import Program, program_from
from tests.fuzz.test_kernels import arguments_of, differences, interpreted, kernel_of
from tests.support.cpp_kernels import Batch
from treadle.codegen import pipeline
from treadle.codegen.records import KernelCode, Options
from treadle.codegen.target import find_target
from treadle.core.dim3 import Dim3
from treadle.ir.signature import ArrayArgument, Signature
from treadle.lang.interpreter.arguments import take_arguments
from treadle.runtime.arrays import array_class


@dataclass(frozen=True)
class Drawn:
    """A program, its kernel and what it must leave in its arrays."""

    program: Program
    kernel: Any
    code: KernelCode

    def grid(self) -> tuple[int, ...]:
        """Blocks enough for what is launched."""
        if self.program.threads is None:
            return self.program.grid
        return (-(-self.program.threads // Dim3.of(self.program.block).count),)


def drawn_batch(language: str, seeds: range) -> tuple[Batch, dict[str, Drawn]]:
    """Programs from pseudorandom tapes, compiled together."""
    found = {}
    for seed in seeds:
        tape = random.Random(seed).randbytes(400 + 60 * (seed % 20))
        program = program_from(tape)
        kernel = kernel_of(program)
        found[str(seed)] = Drawn(program, kernel, _printed(program, kernel, language))
    return Batch(language, {seed: drawn.code for seed, drawn in found.items()}), found


def _wholes(program: Program) -> dict[str, np.ndarray[Any, Any]]:
    return {array.name: array.whole() for array in program.arrays}


def _views(program: Program, wholes: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Each array parameter's view of its array."""
    arguments = arguments_of(program, wholes)
    return {
        name: value
        for name, value in zip(program.order, arguments, strict=True)
        if isinstance(value, np.ndarray)
    }


def _base(program: Program, name: str) -> str:
    """The array that a parameter is, or is a twin of."""
    return dict(program.same).get(name, name)


def _layout(program: Program, argument: ArrayArgument, view: Any, whole: Any) -> ArrayArgument:
    strides = tuple(stride // view.itemsize for stride in view.strides)
    offset = (view.ctypes.data - whole.ctypes.data) // view.itemsize if view.size else 0
    known = array_class(None, view.dtype, view.shape, strides, offset)
    return ArrayArgument(argument.element, argument.ndim, known.contiguous, known.has_offset)


def _printed(program: Program, kernel: Any, language: str) -> KernelCode:
    wholes = _wholes(program)
    views = _views(program, wholes)
    taken = take_arguments(kernel, arguments_of(program, wholes)).signature
    arguments = tuple(
        _layout(program, argument, views[name], wholes[_base(program, name)])
        if isinstance(argument, ArrayArgument)
        else argument
        for name, argument in zip(program.order, taken, strict=True)
    )
    lowered = kernel.lower(Signature(arguments, 0 if program.threads is None else 1)).kernel
    bases = list(dict.fromkeys(_base(program, buffer.name) for buffer in lowered.buffers))
    slots = tuple((b.name, bases.index(_base(program, b.name))) for b in lowered.buffers)
    options = Options(Dim3.of(program.block), slots)
    ready = pipeline.lower(lowered, options, find_target(language).generic)
    return pipeline.print_code(ready, options, find_target(language).generic)


def wrong_drawn(batch: Batch, name: str, drawn: Drawn) -> list[str]:
    """Where the printed text differs from the kernel as plain Python."""
    program = drawn.program
    expected = interpreted(program, drawn.kernel)
    wholes = _wholes(program)
    views = _views(program, wholes)
    given: dict[str, Any] = dict(program.scalars)
    for slot in drawn.code.layout.slots:
        match slot.parameter.origin:
            case ("threads", 0):
                given[slot.parameter.name] = program.threads
            case ("offset", str(array)):
                whole = wholes[_base(program, array)]
                apart = views[array].ctypes.data - whole.ctypes.data
                given[slot.parameter.name] = apart // whole.itemsize
    pointers = {array: wholes[_base(program, array)] for array in views}
    batch.run(name, drawn.grid(), views, given, pointers=pointers)
    return list(differences(expected, wholes))
