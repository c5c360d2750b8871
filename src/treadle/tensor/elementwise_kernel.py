"""Kernels around a function of numbers, for the cases that cannot be fused: functions with memory
or effects of their own, structs, other libraries' arrays in place, the interpreter.

There is one kernel for each number of axes after contiguous axes are merged; broadcast axes have
stride 0. Shapes are arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.graph.views import merge_axes
from treadle.ir.definition import KernelOptions
from treadle.ir.types import Scalar
from treadle.lang.decorators import Function, Kernel
from treadle.lang.source import function_from_text, resolve_annotations
from treadle.lang.types import declared_type
from treadle.runtime.arrays import DeviceArray
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.tensor import Tensor

_MOST_AXES = 3  # of a grid; its last dimension counts all further axes in front


class ElementwiseKernels:
    """The kernels around one function. `names` are its parameters."""

    def __init__(self, function: Function, names: list[str]) -> None:
        self.function = function
        self.names = names
        self._kernels: dict[tuple[int, tuple[bool, ...]], Kernel] = {}

    def run(self, values: list[Any], arrays: list[DeviceArray]) -> None:
        """Compute every element of the result, which is the last of the arrays and of the
        values."""
        shape = arrays[-1].shape
        extents, strides = merge_axes(shape, [_broadcast_strides(array, shape) for array in arrays])
        views = iter([_viewed(*each, extents) for each in zip(arrays, strides, strict=True)])
        held = tuple(map(is_held, values))
        kernel = self.kernel(len(extents), held[:-1])
        front = len(extents) - _MOST_AXES
        if front > 0:
            extents = (int(np.prod(extents[: front + 1])), *extents[front + 1 :])
        kernel.launch(
            extents, *(next(views) if hold else v for hold, v in zip(held, values, strict=True))
        )

    def kernel(self, axes: int, held: tuple[bool, ...]) -> Kernel:
        """The kernel for arrays with this number of axes. `held` says which arguments are
        arrays."""
        found = self._kernels.get((axes, held))
        if found is None:
            text, scope = _write(self.function, self.names, axes, held)
            function = function_from_text(text, None, scope)
            found = self._kernels[axes, held] = Kernel(function, KernelOptions(), None)
        return found


def is_held(value: ArrayLike) -> bool:
    """Whether an argument is an array in memory."""
    return isinstance(value, (Tensor, DeviceArray))


def _viewed(array: DeviceArray, steps: tuple[int, ...], extents: tuple[int, ...]) -> Tensor:
    """The array with other axes."""
    if steps == array.strides and extents == array.shape:
        return Tensor(array)
    return Tensor(array.view(extents, steps, array.offset))


def _broadcast_strides(array: DeviceArray, shape: tuple[int, ...]) -> tuple[int, ...]:
    """An array's strides when it is broadcast to a shape."""
    missing = len(shape) - len(array.shape)
    mine = zip(array.shape, array.strides, shape[missing:], strict=True)
    return (0,) * missing + tuple(
        0 if extent == 1 and wanted != 1 else stride for extent, stride, wanted in mine
    )


def _write(
    of: Function, names: list[str], axes: int, held: tuple[bool, ...]
) -> tuple[str, dict[str, Any]]:
    """The kernel's source, and the values of its names."""
    import treadle.lang as language

    result, function, grid, t, i, td = (
        _free(name, names) for name in ("result", "function", "grid", "t", "i", "td")
    )
    scope: dict[str, Any] = {function: of, grid: language.grid}
    annotations = resolve_annotations(of.definition)
    parameters = []
    for name, array in zip(names, held, strict=True):
        kind = annotations.get(name)
        if kind is not None and not array and isinstance(declared_type(kind), Scalar):
            scope[f"{td}_{name}"] = kind
            name += f": {td}_{name}"
        parameters.append(name)
    index = [f"{i}{axis}" for axis in range(axes)]
    front = max(axes - _MOST_AXES, 0)
    threads = [t, *index[front + 1 :]] if front else index
    lines = [f"{', '.join(threads)} = {grid}({len(threads)})"]
    for axis in range(front, 0, -1):
        lines += [
            f"{index[axis]} = {t} % {result}.shape[{axis}]",
            f"{t} = {t} // {result}.shape[{axis}]",
        ]
    if front:
        lines.append(f"{index[0]} = {t}")
    at = ", ".join(index)
    by_name = {each.arg for each in of.source_code.tree.args.kwonlyargs}
    values = (
        (f"{name}=" if name in by_name else "") + (f"{name}[{at}]" if array else name)
        for name, array in zip(names, held, strict=True)
    )
    lines.append(f"{result}[{at}] = {function}({', '.join(values)})")
    head = f"def {of.definition.__name__}({', '.join([*parameters, result])}):"
    return "\n    ".join([head, *lines]) + "\n", scope


def _free(name: str, taken: list[str]) -> str:
    while any(each.startswith(name) for each in taken):
        name += "_"
    return name
