"""Fused programs written by hand, to be run and compared."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import as_dtype
from treadle.graph.fused import Fused
from treadle.graph.program import (
    FIXED,
    NEXT,
    Access,
    Kind,
    Output,
    Program,
    Reduce,
    Step,
    Style,
)
from treadle.runtime.arrays import DeviceArray, packed_strides

_POISON = 0xA5


class Draft:
    """A program over loop axes of these extents, and the arrays that it runs on."""

    def __init__(self, kind: Kind, kept: Sequence[int], reduced: Sequence[int] = ()) -> None:
        self.kind = kind
        self.big = False
        self.kept, self.reduced = tuple(kept), tuple(reduced)
        self.steps: list[Step] = []
        self.accesses: list[tuple[int, tuple[int, ...], int]] = []
        self.outputs: list[Output] = []
        self.arrays: list[tuple[np.ndarray[Any, Any], bool]] = []  # and whether they are results
        self.scalars: list[tuple[str, Any]] = []

    def step(self, op: str, *sources: int, type: str, detail: Hashable = None) -> int:
        """A step; its number."""
        self.steps.append(Step(op, sources, type, detail))
        return len(self.steps) - 1

    def load(self, base: np.ndarray[Any, Any], view: np.ndarray[Any, Any] | None = None) -> int:
        """Elements of an array, seen through a view of it that has the loop axes' extents, or only
        the kept ones'."""
        view = base if view is None else view
        shape = self.kept + self.reduced
        view = np.broadcast_to(view, shape if view.ndim == len(shape) else self.kept)
        start = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        strides = tuple(s // base.itemsize for s in view.strides)
        access = self._access(base, False, strides, start // base.itemsize)
        return self.step("load", type=as_dtype(base.dtype).short, detail=access)

    def scalar(self, value: Any, short: str) -> int:
        """A number that is a parameter."""
        self.scalars.append((short, value))
        return self.step("scalar", type=short, detail=len(self.scalars) - 1)

    def reduce(self, kind: str, source: int, type: str | None = None) -> int:
        """A reduction."""
        return self.step(
            "reduce", source, type=type or self.steps[source].type, detail=Reduce(kind)
        )

    def store(self, step: int, each: bool = False) -> None:
        """Ask for a step's value: for every element, or for every row."""
        shape = self.kept + self.reduced if each else self.kept
        result = np.empty(shape, as_dtype(self.steps[step].type).numpy)
        access = self._access(result, True, packed_strides(shape), 0)
        self.outputs.append(Output(step, access))

    def _access(
        self, base: np.ndarray[Any, Any], result: bool, strides: tuple[int, ...], offset: int
    ) -> int:
        found = [k for k, (array, _) in enumerate(self.arrays) if array is base]
        if not found:
            self.arrays.append((base, result))
            found = [len(self.arrays) - 1]
        self.accesses.append((found[0], strides, offset))
        return len(self.accesses) - 1

    def program(self, device: td.Device, lanes: int = 1) -> tuple[Program, tuple[int, ...]]:
        """The program, and its integers."""
        integers = [*self.kept, *self.reduced]
        accesses: list[Access] = []
        for buffer, strides, start in self.accesses:
            axes: list[int] = []
            for stride in strides:
                if stride in (0, 1):
                    axes.append(NEXT if stride else FIXED)
                else:
                    axes.append(len(integers))
                    integers.append(stride)
            if start:
                integers.append(start)
            offset = len(integers) - 1 if start else FIXED
            accesses.append(Access(buffer, tuple(axes), offset))
        program = Program(
            self.kind,
            Style.LOOPS if device.backend == "cpu" else Style.THREADS,
            len(self.kept),
            len(self.reduced),
            tuple(self.steps),
            tuple(accesses),
            tuple(self.outputs),
            tuple(as_dtype(array.dtype).short for array, _ in self.arrays),
            tuple(short for short, _ in self.scalars),
            len(integers),
            self.big,
            1 if device.backend == "cpu" else lanes,
        )
        return program, tuple(integers)

    def prepared(self, device: td.Device, lanes: int = 1) -> tuple[Any, list[DeviceArray]]:
        """A function that runs the program, and the arrays that it writes."""
        program, integers = self.program(device, lanes)
        fused = Fused(program, device).sized(integers)
        arrays = []
        for array, result in self.arrays:
            content = array
            if result:  # what is not written is seen
                content = np.full(array.nbytes, _POISON, np.uint8).view(array.dtype)
            given = DeviceArray.allocate(device, as_dtype(array.dtype), (array.size,))
            given.upload(np.ascontiguousarray(content).reshape(-1))
            arrays.append(given)
        scalars = [value for _, value in self.scalars]
        written = [given for given, (_, result) in zip(arrays, self.arrays, strict=True) if result]
        repeats: list[Any] = []
        return lambda: fused.run(arrays, integers, scalars, repeats), written

    def run(self, device: td.Device, lanes: int = 1) -> list[np.ndarray[Any, Any]]:
        """The results."""
        launch, written = self.prepared(device, lanes)
        launch()
        shapes = [array.shape for array, result in self.arrays if result]
        return [a.to_host().reshape(s) for a, s in zip(written, shapes, strict=True)]
