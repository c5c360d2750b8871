"""Matrix fragments in the interpreter: a local array with the methods of a fragment, which are the
library's functions of the kernel language."""

from __future__ import annotations

from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from treadle.core.dtypes import as_number_dtype
from treadle.ir import types as t
from treadle.ir.opaque import SIDE
from treadle.lang import fragment_methods as methods
from treadle.lang import fragments as library
from treadle.lang.interpreter.arrays import ArrayObject, KernelArray
from treadle.lang.interpreter_state import current_run
from treadle.lang.source import source_of
from treadle.lang.types import numpy_dtype


class KernelFragment(ArrayObject):
    """A fragment as a kernel sees it. What is wrong was refused when the kernel was lowered."""

    def __init__(self, kind: library.FragmentKind, indexed: bool = True) -> None:
        element = t.SCALARS[kind.held.short]
        held = np.zeros(kind.words, numpy_dtype(element))
        super().__init__(KernelArray(held, element, "fragment"))
        self.kind = kind
        self.indexed = indexed

    @property
    def size(self) -> Any:
        """The numbers that a thread has."""
        return self.kind.words

    @property
    def shape(self) -> tuple[int, int]:
        """The extents of the matrix."""
        return self.kind.rows, self.kind.columns

    @property
    def dtype(self) -> Any:
        """The dtype of the matrix."""
        return self.kind.element

    def fill(self, value: Any) -> None:
        """Every element becomes a number."""
        run(methods.filler(self.kind), self.items, value)

    def row(self, i: Any) -> Any:
        """The row of number `i` of this thread."""
        return run(methods.place_finder(self.kind, 0), i)

    def column(self, i: Any) -> Any:
        """Its column."""
        return run(methods.place_finder(self.kind, 1), i)

    def load(
        self, array: Any, index: Any, stride: Any = 0, layout: Any = "row", aligned: bool = False
    ) -> None:
        """Load the elements from an array. The interpreter needs no alignment."""
        if not self.indexed and not _is_inside(self.kind, layout, array, index, stride):
            self.fill(0)
            return
        run(methods.loader(self.kind, layout, array.ndim), self.items, array, index, stride)

    def store(self, array: Any, index: Any, stride: Any = 0, layout: Any = "row") -> None:
        """Store the elements to an array."""
        if not self.indexed and not _is_inside(self.kind, layout, array, index, stride):
            return
        made = methods.storer(self.kind, layout, array.ndim, array.dtype)
        run(made, self.items, array, index, stride)

    def part(self, i: Any, j: Any) -> KernelFragment:
        """The part of 16 x 16 in row i and column j of these."""
        across = self.kind.columns // SIDE
        small = replace(self.kind, rows=SIDE, columns=SIDE)
        found = KernelFragment(small, False)
        start = (int(i) * across + int(j)) * small.words
        found.items = KernelArray(
            self.items.data[start : start + small.words], self.items.element, "fragment"
        )
        return found

    def multiply_add(self, a: Any, b: Any) -> None:
        """Add the product of two fragments."""
        run(methods.multiplier(a.kind, b.kind), self.items, a.items, b.items)


def run(function: FunctionType, *values: Any) -> Any:
    """Run one of the library's functions."""
    running = current_run()
    assert running is not None
    return running.call(function, source_of(function), values, {})


def _is_inside(
    kind: library.FragmentKind, layout: str, array: Any, index: Any, stride: Any
) -> bool:
    """Whether a fragment that is loaded and stored as a whole is inside an array, and aligned."""
    far, near = (kind.rows, kind.columns) if layout == "row" else (kind.columns, kind.rows)
    per = 4 if kind.use == "accumulator" else 8  # elements of 16 bytes
    place, pitch = (index, stride) if array.ndim == 1 else (index[1], array.shape[1])
    if int(place) % per or int(pitch) % per:
        return False
    if array.ndim == 1:
        start, step = int(index), int(stride)
        return start >= 0 and step >= 0 and start + (far - 1) * step + near <= int(array.size)
    ends = zip(index, array.shape, (far, near), strict=True)
    return all(0 <= int(at) <= int(extent) - length for at, extent, length in ends)


def new(
    thread: Any, rows: Any, columns: Any, dtype: Any, use: Any, indexed: Any = True
) -> KernelFragment:
    """`td.fragment`."""
    del thread
    short = as_number_dtype(dtype).short
    return KernelFragment(library.FragmentKind(int(rows), int(columns), short, use), bool(indexed))
