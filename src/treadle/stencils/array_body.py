"""A stencil's body on whole arrays: what derivatives and `td.vmap` make of it.

The body's source runs once, with the tensors of all cells in place of numbers: a neighbour is the
array shifted, with the boundary's elements at its end. So a stencil has the derivatives of its
operations, and that of a linear one is the transposed stencil.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from traceback import walk_tb
from types import FunctionType
from typing import Any

import treadle.tensor.elementwise_functions as elementwise
from treadle.core.dtypes import DType, float32, int32
from treadle.core.errors import CompileError, ShapeError, TreadleError, ValuesUnknown
from treadle.ir import types as t
from treadle.lang.builtins import BuiltinFunction
from treadle.lang.definitions import DeviceFunction
from treadle.lang.interpreter.transform import python_function
from treadle.lang.positions import NEIGHBOURS, AxisRule
from treadle.lang.source import Source
from treadle.runtime.devices import Device
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body
from treadle.tensor.assembly import stack
from treadle.tensor.creation import full
from treadle.tensor.functional.padding import pad
from treadle.tensor.manipulation import broadcast_to
from treadle.tensor.ranges import arange
from treadle.tensor.tensor import Tensor

_MODES = {"clamp": "replicate", "skip": "replicate", "wrap": "circular", "mirror": "reflect"}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
    "**": lambda a, b: a**b, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


def run_on_arrays(
    body: Body,
    analysis: Analysis,
    values: dict[str, Any],
    shape: tuple[int, ...],
    device: Device,
    outputs: dict[str, Any],
    storage: t.Scalar | None,
) -> tuple[Tensor, ...]:
    """What a body writes to its outputs, of these dtypes, for the tensors and numbers of its other
    parameters (tensors without axes are numbers) over a grid of a shape.

    CompileError if the body does what has no form for whole arrays.
    """
    run = _Run(body, analysis.rules, shape, device, storage)
    arrays: dict[str, _Array | _Stack] = {}
    for at, name in enumerate(body.names):
        value, dtype = values.get(name), outputs.get(name)
        if counts := dict(analysis.stacks).get(at):
            arrays[name] = _Stack(name, value, run, dtype, counts)
        elif name in outputs or (isinstance(value, Tensor) and value.ndim):
            arrays[name] = _Array(name, value, run, dtype)
    every = {**values, **arrays, body.position: run.position}
    try:
        run.call(body.function, body.source, [every[name] for name in body.order])
    except (TypeError, AttributeError, ValueError, ValuesUnknown) as error:
        if isinstance(error, TreadleError) and not isinstance(error, (ShapeError, ValuesUnknown)):
            raise
        line, what = _line_of(error, body.source.file), f"{error}"
        if "truth value" in what:
            what = "one decision is not that of all cells"
        raise run.refused(f"{what} (decisions are written with td.where)", line) from error
    return tuple(arrays[name].result() for name in outputs)


def _line_of(error: BaseException, file: str) -> int:
    """The innermost line of a file in an error's traceback; 0 if there is none."""
    lines = [
        line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file
    ]
    return lines[-1] if lines else 0


class _Run:
    """A body that is run on arrays of a shape."""

    def __init__(
        self,
        body: Body,
        rules: Sequence[AxisRule],
        shape: tuple[int, ...],
        device: Device,
        storage: t.Scalar | None,
    ) -> None:
        self.body = body
        self.rules = rules
        self.shape = shape
        self.device = device
        self.storage = storage
        self.position = _Position(self)
        self.reach = [[0, 0] for _ in shape]
        self.helper = _Helper(self)

    def call(self, function: FunctionType, source: Source, arguments: Sequence[Any]) -> Any:
        """The result of a function."""
        return python_function(function, source, self.helper)(*arguments)

    def refused(self, what: str, line: int = 0) -> CompileError:
        """A CompileError for what has no form for whole arrays, at a line or at the function."""
        source = self.body.source
        return CompileError(
            f"derivatives of {self.body.name}, and td.vmap, run its body on whole arrays: {what}",
            source.span_of_line(line) if line else source.span(source.tree),
            source.text,
        )

    def neighbour(self, array: Any, offsets: Sequence[int]) -> Tensor:
        """The neighbours of all cells at some offsets."""
        if not isinstance(array, _Array):
            raise self.refused("a position reads arrays alone")
        found: Tensor = array.value()
        # The first axis is shifted last, since its constant counts in corners.
        for axis in reversed(range(len(offsets))):
            offset = offsets[axis]
            self.reach[axis] = [min(self.reach[axis][0], offset), max(self.reach[axis][1], offset)]
            if offset:
                found = self.shifted(found, axis, offset)
        return found.to(float32) if self.storage is not None else found

    def shifted(self, x: Tensor, axis: int, offset: int) -> Tensor:
        rule, extent = self.rules[axis], x.shape[axis]
        if rule.function is not None:
            raise self.refused("a boundary that is a function has no derivative yet")
        if extent == 1 and rule.name in ("wrap", "mirror"):
            return x
        widths = [0] * (2 * x.ndim)
        widths[2 * (x.ndim - 1 - axis) + (offset > 0)] = abs(offset)
        mode = _MODES.get(rule.name, "constant")
        wide = pad(x, widths, mode, rule.value if mode == "constant" else None)
        part = [slice(None)] * x.ndim
        part[axis] = slice(offset, None) if offset > 0 else slice(0, extent)
        return wide[tuple(part)]

    def moved(self, x: Tensor, offsets: Sequence[int]) -> Tensor:
        """What all cells write to their neighbours at some offsets: zero where none does."""
        for axis, offset in enumerate(offsets):
            rule, extent = self.rules[axis], x.shape[axis]
            self.reach[axis] = [min(self.reach[axis][0], offset), max(self.reach[axis][1], offset)]
            if not offset or (rule.name == "wrap" and extent == 1):
                continue
            if rule.name == "skip":
                raise self.refused('a write at a neighbour beside boundary="skip" has none yet')
            widths = [0] * (2 * x.ndim)
            widths[2 * (x.ndim - 1 - axis) + (offset < 0)] = abs(offset)
            wide = pad(x, widths, "circular") if rule.name == "wrap" else pad(x, widths)
            part = [slice(None)] * x.ndim
            part[axis] = slice(-offset, None) if offset < 0 else slice(0, extent)
            x = wide[tuple(part)]
        return x

    def written(self, value: Tensor) -> Tensor:
        """What was written to an output: zero in cells that are not computed."""
        part: list[slice] = []
        widths: list[int] = []
        for rule, (low, high), extent in zip(self.rules, self.reach, self.shape, strict=True):
            if rule.name == "skip":
                first, last = min(-low, extent), max(extent - high, min(-low, extent))
                part.append(slice(first, last))
                widths[:0] = [first, extent - last]
            else:
                part.append(slice(None))
                widths[:0] = [0, 0]
        return pad(value[tuple(part)], widths) if any(widths) else value


class _Position:
    """The position of all cells at once."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    def at(self, array: Any, *offsets: Any) -> Tensor:
        return self._run.neighbour(array, [int(each) for each in offsets])

    @staticmethod
    def shifted(*offsets: Any) -> _Shifted:
        return _Shifted(tuple(int(each) for each in offsets))

    @property
    def index(self) -> tuple[Tensor, ...]:
        run, found = self._run, []
        for axis, extent in enumerate(run.shape):
            aside = [1] * len(run.shape)
            aside[axis] = extent
            numbers = arange(extent, dtype=int32, device=run.device)
            found.append(numbers.reshape(tuple(aside)))
        return tuple(found)

    def __getattr__(self, name: str) -> Callable[[Any], Tensor]:
        if name not in NEIGHBOURS:
            raise AttributeError(f"a position has no attribute {name}")
        axis, step = NEIGHBOURS[name]
        offsets = [0] * len(self._run.shape)
        offsets[-axis] = step
        return lambda array: self._run.neighbour(array, offsets)


class _Shifted:
    """The places of the neighbours of all cells at some offsets."""

    def __init__(self, offsets: tuple[int, ...]) -> None:
        self.offsets = offsets


class _Array:
    """An array of the body: an argument, or an output that is written."""

    def __init__(self, name: str, value: Any, run: _Run, dtype: Any) -> None:
        self.name = name
        self._value = value
        self._run = run
        self._dtype = dtype

    @property
    def is_blank(self) -> bool:
        """Whether it is an output that nothing was written to."""
        return self._value is None

    def value(self) -> Any:
        """Its elements."""
        if self._value is None:
            raise self._run.refused(f"{self.name} is read before it is written")
        return self._value

    def load(self, index: Any) -> Any:
        """The elements at the cells, or at computed indices."""
        if isinstance(index, _Position):
            return self._run.neighbour(self, [0] * len(self._run.shape))
        if isinstance(index, _Shifted):
            return self._run.neighbour(self, index.offsets)
        return self.value()[index]

    def store(self, index: Any, value: Any) -> None:
        """The elements of all cells."""
        if not isinstance(index, (_Position, _Shifted)):
            raise self._run.refused(f"{self.name} is written at its position alone")
        run = self._run
        if not isinstance(value, Tensor):
            value = full(run.shape, value, dtype=self._dtype, device=run.device)
        elif value.shape != run.shape:
            value = broadcast_to(value, run.shape)
        if self._dtype is not None and value.dtype != self._dtype:
            value = value.to(self._dtype)
        self._value = run.moved(value, index.offsets) if isinstance(index, _Shifted) else value

    def result(self) -> Tensor:
        """What was written to it."""
        value = self.value()
        if not isinstance(value, Tensor):
            raise self._run.refused(f"{self.name} is not written")
        return self._run.written(value)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value().shape)

    @property
    def size(self) -> int:
        return int(self.value().size)


class _Stack:
    """A stack of grids, an argument or an output, of which constants choose one."""

    def __init__(
        self, name: str, value: Any, run: _Run, dtype: Any, counts: tuple[int, ...]
    ) -> None:
        self.name = name
        self._value = value
        self._run = run
        self._dtype = dtype
        self._counts = counts
        self._grids: dict[tuple[int, ...], _Array] = {}

    def load(self, index: Any) -> Any:
        """One of its grids, or the elements at computed indices."""
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) > len(self._counts):
            return self._all()[index]
        layer = tuple(int(part) for part in parts)
        if layer not in self._grids:
            value = None if self._value is None else self._value[layer]
            name = f"{self.name}[{', '.join(map(str, layer))}]"
            self._grids[layer] = _Array(name, value, self._run, self._dtype)
        return self._grids[layer]

    def store(self, index: Any, value: Any) -> None:
        """A stack is written grid by grid."""
        del value
        raise self._run.refused(f"{self.name} is written at its position alone, not at {index}")

    def _all(self) -> Any:
        if self._value is None or self._grids:
            raise self._run.refused(f"{self.name} is accessed at its position alone")
        return self._value

    def result(self) -> Tensor:
        """All grids: zero where none was written."""
        run, found = self._run, []
        for layer in itertools.product(*map(range, self._counts)):
            grid = self._grids.get(layer)
            if grid is None or grid.is_blank:
                found.append(full(run.shape, 0, dtype=self._dtype, device=run.device))
            else:
                found.append(grid.result())
        whole: Tensor = stack(found).reshape((*self._counts, *run.shape))
        return whole

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self._counts, *self._run.shape) if self._value is None else self._value.shape


class _Place:
    """`out[pos]`, which is stored."""

    def __init__(self, base: Any, index: Any) -> None:
        self.base = base
        self.index = index

    def load(self) -> Any:
        return self._array().load(self.index)

    def store(self, value: Any) -> None:
        self._array().store(self.index, value)

    def _array(self) -> Any:
        """The array, or the grid of a stack."""
        return self.base.load() if isinstance(self.base, _Place) else self.base


class _Helper:
    """The operations that the rewritten source calls (`lang.interpreter.transform`)."""

    element = _Place

    def __init__(self, run: _Run) -> None:
        self._run = run

    def member(self, base: Any, name: str) -> Any:
        raise self._run.refused(f"structs and vectors have no derivatives (.{name})")

    @staticmethod
    def binary(op: str, left: Any, right: Any) -> Any:
        return _OPERATORS[op](left, right)

    @staticmethod
    def unary(op: str, value: Any) -> Any:
        return -value if op == "-" else ~value if op == "~" else value

    @staticmethod
    def compare(ops: str, *values: Any) -> Any:
        found: Any = True
        for op, left, right in zip(ops.split(), values, values[1:], strict=False):
            found = _OPERATORS[op](left, right) & found
        return found

    @staticmethod
    def item(owner: Any, index: Any) -> Any:
        return owner.load(index) if isinstance(owner, (_Array, _Stack)) else owner[index]

    @staticmethod
    def attribute(owner: Any, name: str) -> Any:
        return getattr(owner, name)

    def function(self, target: Any) -> Any:
        if isinstance(target, DType):
            return lambda value: value.to(target) if isinstance(value, Tensor) else target(value)
        if isinstance(target, DeviceFunction):
            return lambda *arguments: self._run.call(
                target.definition, target.source_code, arguments
            )
        if isinstance(target, BuiltinFunction):
            if target.name == "static_range":
                return range
            if target.name == "where":
                return elementwise.where
            if target.outside is None:
                raise self._run.refused(f"td.{target.name} is not a function of arrays")
            return target.outside
        return _PYTHON.get(target, target) if isinstance(target, (type, type(len))) else target

    @staticmethod
    def shown(value: Any) -> str:
        return str(value)

    @staticmethod
    def zero(name: str) -> Any:
        del name

    @staticmethod
    def local(name: str, value: Any) -> Any:
        del name
        return value

    @staticmethod
    def result(value: Any) -> Any:
        return value

    @staticmethod
    def unpacked(value: Any, count: int) -> tuple[Any, ...]:
        del count
        return tuple(value)

    @staticmethod
    def store(value: Any, place: Any) -> None:
        place.store(value)

    @staticmethod
    def opened(place: Any) -> tuple[Any, Any]:
        return place, place.load()

    @staticmethod
    def update(opened: tuple[Any, Any], op: str, value: Any) -> None:
        place, old = opened
        place.store(_OPERATORS[op](old, value))


def _extreme(name: str) -> Callable[..., Any]:
    function = elementwise.FUNCTIONS[name]

    def of(*values: Any) -> Any:
        found = values[0]
        for value in values[1:]:
            found = function(found, value)
        return found

    return of


_PYTHON: dict[Any, Callable[..., Any]] = {
    min: _extreme("minimum"), max: _extreme("maximum"),
    float: lambda x: x.to(float32) if isinstance(x, Tensor) else float(x),
}  # fmt: skip
