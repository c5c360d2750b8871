"""Drawn array programs: expressions, views, writes through views, and kernels in between.

A program is a list of instructions, four numbers each; what they mean is decided as they run, by
the arrays that there are. NumPy runs the same program: its int32 arithmetic is exact, wraps, and
aliases as ours must.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import treadle as td

MOST_ARRAYS = 12
MOST_ELEMENTS = 400


class Instruction(NamedTuple):
    what: int
    a: int
    b: int
    c: int


@td.kernel
def bump(x: td.Array[td.i32, 2], y: td.Array[td.i32, 2]):
    i, j = td.grid(2)
    x[i, j] = x[i, j] * 3 + y[i, j]


@td.elementwise
def mix(x, y):
    return (x ^ y) + 1 if x > y else x - y


class NumPy:
    """What the program does in NumPy."""

    name = "numpy"

    def array(self, data: np.ndarray) -> np.ndarray:
        return data.copy()

    def read(self, x: Any) -> np.ndarray:
        return np.array(x)

    def where(self, c: Any, x: Any, y: Any) -> Any:
        return np.where(c, x, y)

    def maximum(self, x: Any, y: Any) -> Any:
        return np.maximum(x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        return np.minimum(x, y)

    def total(self, x: Any, axis: Any, keepdims: bool) -> Any:
        return np.sum(x, axis=axis, dtype=np.int32, keepdims=keepdims)

    def largest(self, x: Any, axis: Any, keepdims: bool) -> Any:
        return np.max(x, axis=axis, keepdims=keepdims)

    def transpose(self, x: Any, axes: tuple[int, ...]) -> Any:
        return np.transpose(x, axes)

    def flip(self, x: Any, axis: int) -> Any:
        return np.flip(x, axis)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return np.reshape(x, shape)

    def spread(self, x: Any, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(x, shape)

    def copy(self, x: Any) -> Any:
        return x.copy()

    def bump(self, x: Any, y: Any) -> None:
        x[...] = x * np.int32(3) + y

    def mix(self, x: Any, y: Any) -> Any:
        return np.where(x > y, (x ^ y) + np.int32(1), x - y)

    def take(self, x: Any, rows: np.ndarray) -> Any:
        return x[rows]

    def put(self, x: Any, rows: np.ndarray, value: int) -> None:
        x[rows] = value

    def window(self, x: Any, start: int, count: int) -> Any:
        """A copy of `count` rows."""
        return x[start : start + count].copy()

    def write_window(self, x: Any, start: int, count: int, value: int) -> None:
        x[start : start + count] = value

    def sort(self, x: Any) -> Any:
        return np.sort(x, axis=-1)

    def running(self, x: Any) -> Any:
        return np.cumsum(x, axis=-1, dtype=np.int32)

    def roll(self, x: Any, shift: Any, axis: Any) -> Any:
        return np.roll(x, shift, axis)

    def concat(self, arrays: Sequence[Any], axis: int | None) -> Any:
        return np.concatenate(arrays, axis=axis)

    def stack(self, arrays: Sequence[Any], axis: int) -> Any:
        return np.stack(arrays, axis=axis)

    def pad(self, x: Any, before: int, after: int, mode: str) -> Any:
        names = {"circular": "wrap", "replicate": "edge"}
        more = {"constant_values": 5} if mode == "constant" else {}
        return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)], names.get(mode, mode), **more)


class Treadle(NumPy):
    """What it does in tensors on a device."""

    def __init__(self, device: td.Device) -> None:
        self.device = device
        self.name = device.id

    def array(self, data: np.ndarray) -> Any:
        return td.asarray(data, device=self.device)

    def read(self, x: Any) -> np.ndarray:
        return x.numpy()

    def where(self, c: Any, x: Any, y: Any) -> Any:
        return td.where(c, x, y)

    def maximum(self, x: Any, y: Any) -> Any:
        return td.maximum(x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        return td.minimum(x, y)

    def total(self, x: Any, axis: Any, keepdims: bool) -> Any:
        return td.sum(x, axis=axis, dtype=td.int32, keepdims=keepdims)

    def largest(self, x: Any, axis: Any, keepdims: bool) -> Any:
        return td.max(x, axis=axis, keepdims=keepdims)

    def transpose(self, x: Any, axes: tuple[int, ...]) -> Any:
        return td.permute_dims(x, axes)

    def flip(self, x: Any, axis: int) -> Any:
        return td.flip(x, axis=axis)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return td.reshape(x, shape)

    def spread(self, x: Any, shape: tuple[int, ...]) -> Any:
        return td.broadcast_to(x, shape)

    def copy(self, x: Any) -> Any:
        return td.asarray(x, copy=True)

    def window(self, x: Any, start: int, count: int) -> Any:
        n = td.asarray(start - x.shape[0] if count % 2 else start, device=self.device)
        return x[n : n + count]

    def write_window(self, x: Any, start: int, count: int, value: int) -> None:
        n = td.asarray(start, device=self.device)
        x[n : n + count] = value

    def bump(self, x: Any, y: Any) -> None:
        bump.launch(x.shape, x, y)

    def mix(self, x: Any, y: Any) -> Any:
        return mix(x, y)

    def sort(self, x: Any) -> Any:
        return td.sort(x, axis=-1)

    def running(self, x: Any) -> Any:
        return td.cumulative_sum(x, axis=-1, dtype=td.int32)

    def roll(self, x: Any, shift: Any, axis: Any) -> Any:
        return td.roll(x, shift, axis=axis)

    def concat(self, arrays: Sequence[Any], axis: int | None) -> Any:
        return td.concat(arrays, axis=axis)

    def stack(self, arrays: Sequence[Any], axis: int) -> Any:
        return td.stack(arrays, axis=axis)

    def pad(self, x: Any, before: int, after: int, mode: str) -> Any:
        value = 5 if mode == "constant" else None
        return td.nn.functional.pad(x, (before, after), mode, value)


_BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x & y,
    lambda x, y: x | y,
    lambda x, y: x ^ y,
]
_UNARY: list[Callable[[Any], Any]] = [lambda x: -x, lambda x: ~x, lambda x: abs(x)]
Sizes = tuple[int, int, int]  # of the arrays that a program begins with
USUAL = (2, 3, 4)


def shapes_of(sizes: Sizes) -> list[tuple[int, ...]]:
    """The shapes that arrays are reshaped or broadcast to: many have as many elements."""
    a, b, c = sizes
    row = a * b
    return [
        (row,), (c, row), (1, row), (c, 1), sizes, (1,), (), (0,), (3, 0), (7, 5), (c * row,), (37,)
    ]  # fmt: skip


class Run:
    """A program while it runs. `outputs` are what it read."""

    def __init__(self, space: NumPy, seed: int, sizes: Sizes = USUAL) -> None:
        self.space = space
        self.shapes = shapes_of(sizes)
        random = np.random.default_rng(seed)
        self.arrays: list[Any] = []
        self.writable: list[bool] = []
        self.outputs: list[np.ndarray] = []
        row, matrix = self.shapes[:2]
        for shape in (matrix, row, matrix, sizes):
            self.keep(space.array(random.integers(-99, 99, shape).astype(np.int32)), True)

    def keep(self, array: Any, writable: bool) -> None:
        if array.size > MOST_ELEMENTS:
            return
        if isinstance(array, np.generic):  # NumPy makes numbers of arrays without axes
            array = np.asarray(array)
        if isinstance(array, np.ndarray) and array.base is None:
            # NumPy gives results the order of their operands, and then reshapes them by copies.
            array = np.ascontiguousarray(array) if array.ndim else array
        self.arrays.append(array)
        self.writable.append(writable)
        if len(self.arrays) > MOST_ARRAYS:
            del self.arrays[0], self.writable[0]

    def pick(self, number: int) -> int:
        return number % len(self.arrays)

    def fitting(self, shape: tuple[int, ...], number: int) -> Any:
        """An array that broadcasts to a shape, or a number."""
        found = [x for x in self.arrays if _fits(x.shape, shape)]
        return found[number % len(found)] if found and number % 4 else number % 50 - 25

    def step(self, instruction: Instruction) -> None:
        _DO[instruction.what % len(_DO)](self, *instruction[1:])

    # --- instructions ----------------------------------------------------------------------------

    def binary(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        y = self.fitting(x.shape, b)
        self.keep(_BINARY[c % len(_BINARY)](x, y), True)

    def unary(self, a: int, b: int, c: int) -> None:
        self.keep(_UNARY[c % len(_UNARY)](self.arrays[self.pick(a)]), True)

    def extreme(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        function = self.space.maximum if c % 2 else self.space.minimum
        self.keep(function(x, self.fitting(x.shape, b)), True)

    def select(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        y = self.fitting(x.shape, b)
        condition = x > self.fitting(x.shape, c)
        self.keep(self.space.where(condition, x, y), True)

    def part(self, a: int, b: int, c: int) -> None:
        at = self.pick(a)
        x = self.arrays[at]
        self.keep(x[_slices(x.shape, b, c)], self.writable[at])

    def transpose(self, a: int, b: int, c: int) -> None:
        at = self.pick(a)
        x = self.arrays[at]
        axes = list(range(x.ndim))
        if axes:
            axes = axes[b % len(axes) :] + axes[: b % len(axes)]
        self.keep(self.space.transpose(x, tuple(axes)), self.writable[at])

    def flip(self, a: int, b: int, c: int) -> None:
        at = self.pick(a)
        x = self.arrays[at]
        if x.ndim:
            self.keep(self.space.flip(x, b % x.ndim), self.writable[at])

    def reshape(self, a: int, b: int, c: int) -> None:
        at = self.pick(a)
        x = self.arrays[at]
        fitting = [s for s in self.shapes if math.prod(s) == x.size]
        if fitting:
            self.keep(self.space.reshape(x, fitting[b % len(fitting)]), self.writable[at])

    def spread(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        fitting = [s for s in self.shapes if _fits(x.shape, s)]
        if fitting:
            self.keep(self.space.spread(x, fitting[b % len(fitting)]), False)

    def write(self, a: int, b: int, c: int) -> None:
        at = self.pick(a)
        if self.writable[at]:
            x = self.arrays[at]
            index = _slices(x.shape, b, c)
            x[index] = self.fitting(x[index].shape, c)

    def in_place(self, a: int, b: int, c: int) -> None:
        at = self.pick(a)
        if self.writable[at] and self.arrays[at].ndim:
            x = self.arrays[at]
            y = self.fitting(x.shape, b)
            if c % 3 == 0:
                x += y
            elif c % 3 == 1:
                x *= y
            else:
                x ^= y

    def masked(self, a: int, b: int, c: int) -> None:
        at = self.pick(a)
        if self.writable[at] and self.arrays[at].ndim:
            x = self.arrays[at]
            x[x > b % 60 - 30] = c % 100

    def total(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        axis = None if not x.ndim or b % 4 == 3 else b % x.ndim
        if x.ndim == 3 and b % 8 == 4:
            axis = (0, 2)
        self.keep(self.space.total(x, axis, c % 2 == 1), True)

    def largest(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        if x.size:
            axis = None if not x.ndim or b % 4 == 3 else b % x.ndim
            self.keep(self.space.largest(x, axis, c % 2 == 1), True)

    def centered(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        if x.ndim:
            self.keep(x - self.space.total(x, b % x.ndim, True), True)

    def kernel(self, a: int, b: int, c: int) -> None:
        at, by = self.pick(a), self.pick(b)
        x, y = self.arrays[at], self.arrays[by]
        fit = x.ndim == y.ndim == 2 and x.shape == y.shape and x.size > 0
        if self.writable[at] and fit and not _share(self, at, by):
            self.space.bump(x, y)

    def mix(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        others = [y for y in self.arrays if _fits(y.shape, x.shape)]
        self.keep(self.space.mix(x, others[b % len(others)]), True)

    def take(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        if x.ndim and x.shape[0]:
            rows = np.array([b, c, b + c]) % min(x.shape[0], 5)
            self.keep(self.space.take(x, rows), True)

    def put(self, a: int, b: int, c: int) -> None:
        at = self.pick(a)
        x = self.arrays[at]
        if self.writable[at] and x.ndim and x.shape[0]:
            self.space.put(x, np.array([b, c]) % min(x.shape[0], 5), c % 90)

    def window(self, a: int, b: int, c: int) -> None:
        """Rows from a position on the device on."""
        at = self.pick(a)
        x = self.arrays[at]
        if x.ndim and x.shape[0]:
            count = 1 + c % min(x.shape[0], 3)
            start = b % (x.shape[0] - count + 1)
            if self.writable[at] and b % 2:
                self.space.write_window(x, start, count, c % 90)
            else:
                self.keep(self.space.window(x, start, count), True)

    def apart(self, a: int, b: int, c: int) -> None:
        """What is a kernel of its own, of a view, too."""
        x = self.arrays[self.pick(a)]
        if x.ndim:
            self.keep((self.space.sort if b % 2 else self.space.running)(x), True)

    def roll(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        if not x.ndim or b % 7 == 0:
            self.keep(self.space.roll(x, c % 11 - 5, None), True)
        elif b % 3 == 0 and x.ndim > 1:
            axes = (b % x.ndim, (b + 1) % x.ndim)
            self.keep(self.space.roll(x, (c % 9 - 4, c % 5 - 2), axes), True)
        else:
            self.keep(self.space.roll(x, c % 9 - 4, b % x.ndim), True)

    def concat(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        if not x.ndim or b % 5 == 0:
            others = [self.arrays[self.pick(number)] for number in (b, c)]
            self.keep(self.space.concat([x, *others], None), True)
            return
        axis = b % x.ndim
        rest = (*x.shape[:axis], *x.shape[axis + 1 :])
        fitting = [
            y
            for y in self.arrays
            if y.ndim == x.ndim and (*y.shape[:axis], *y.shape[axis + 1 :]) == rest
        ]
        chosen = [fitting[number % len(fitting)] for number in (b, c)]
        self.keep(self.space.concat([*chosen[: c % 3], x, *chosen[c % 3 :]], axis), True)

    def stack(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        fitting = [y for y in self.arrays if y.shape == x.shape]
        chosen = [fitting[number % len(fitting)] for number in (b, c)]
        self.keep(self.space.stack([x, *chosen], c % (x.ndim + 1)), True)

    def pad(self, a: int, b: int, c: int) -> None:
        x = self.arrays[self.pick(a)]
        if x.ndim and x.size:
            mode = ("constant", "reflect", "replicate", "circular")[c % 4]
            most = x.shape[-1] - (mode == "reflect") if c % 4 else 3
            before, after = b % (most + 1), b // 7 % (most + 1)
            self.keep(self.space.pad(x, before, after, mode), True)

    def stencil(self, a: int, b: int, c: int) -> None:
        """Neighbours, which are read from what may be pending."""
        x = self.arrays[self.pick(a)]
        if x.ndim:
            axis = b % x.ndim
            before, after = self.space.roll(x, 1, axis), self.space.roll(x, -1, axis)
            self.keep(before + after - x * 2, True)

    def copy(self, a: int, b: int, c: int) -> None:
        self.keep(self.space.copy(self.arrays[self.pick(a)]), True)

    def read(self, a: int, b: int, c: int) -> None:
        self.outputs.append(self.space.read(self.arrays[self.pick(a)]))


_DO: list[Callable[..., None]] = [
    Run.binary, Run.binary, Run.unary, Run.extreme, Run.select, Run.part, Run.transpose, Run.flip,
    Run.reshape, Run.spread, Run.write, Run.write, Run.in_place, Run.masked, Run.total,
    Run.largest, Run.centered, Run.kernel, Run.mix, Run.take, Run.put, Run.copy, Run.read,
    Run.apart, Run.roll, Run.roll, Run.concat, Run.stack, Run.pad, Run.stencil, Run.window,
]  # fmt: skip


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    if len(shape) > len(wanted):
        return False
    tail = wanted[len(wanted) - len(shape) :]
    return all(a in (1, b) for a, b in zip(shape, tail, strict=True))


def _slices(shape: tuple[int, ...], b: int, c: int) -> tuple[Any, ...]:
    found: list[Any] = []
    for axis, extent in enumerate(shape):
        b, c = b // 3 + 7 * axis, c // 2 + 5 * axis
        if extent == 0 or b % 3 == 0:
            found.append(slice(None))
        elif b % 7 == 1:
            found.append(c % extent)
        else:
            first, last = sorted((b % (extent + 1), c % (extent + 1)))
            step = (1, 2, -1, 3)[c % 4]
            found.append(slice(first, last, step) if step > 0 else slice(None, None, step))
    return (*found, ...)


def _share(run: Run, at: int, by: int) -> bool:
    """Whether two arrays may overlap: then a kernel's threads would race."""
    x, y = run.arrays[at], run.arrays[by]
    return _owner(x) is _owner(y)


def _owner(x: Any) -> Any:
    """Who has an array's memory."""
    if not isinstance(x, np.ndarray):
        return x._cell
    while getattr(x, "base", None) is not None:
        x = x.base
    return x


def outputs(
    space: NumPy, seed: int, program: Sequence[Instruction], sizes: Sizes = USUAL
) -> list[np.ndarray]:
    """Everything that a program reads, and what its arrays hold at the end."""
    run = Run(space, seed, sizes)
    for instruction in program:
        run.step(instruction)
    return [*run.outputs, *(space.read(array) for array in run.arrays)]
