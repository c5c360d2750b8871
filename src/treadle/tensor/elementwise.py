"""`@td.elementwise`: a function of numbers becomes a function of arrays.

One small kernel is written around the function for each number of axes that is left once axes
that lie in memory as one are taken together; stretched axes have stride 0. Shapes are arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import numpy as np

from treadle.core.dtypes import BY_SHORT_NAME, DType, complex64, complex128
from treadle.core.errors import LaunchError, ShapeError
from treadle.graph.views import merge_axes
from treadle.ir.types import F32, Scalar, Struct, Type, Vector
from treadle.lang import types
from treadle.lang.captures import CaptureSet
from treadle.lang.interpreting import current_run
from treadle.lang.kernel import Function, Kernel, as_function
from treadle.lang.source import function_from_text, resolve_annotations
from treadle.lang.types import class_of, declared_type
from treadle.runtime import arguments as binding
from treadle.runtime import convert
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.definition import KernelOptions
from treadle.runtime.devices import Device, default_device
from treadle.runtime.sharing import Order
from treadle.tensor.dtypes import check_dtype
from treadle.tensor.tensor import Tensor

_MOST_AXES = 3  # that a grid has; further ones in front are counted by the first of them


def elementwise(function: Callable[..., Any], /) -> Elementwise:
    """Make a function of numbers a function of arrays, computed for every element.

    Called with tensors, NumPy arrays and numbers, it broadcasts them as NumPy does and gives a new
    tensor, whose dtype is what the kernel language gives for the expression; numbers have the type
    that they have as arguments of kernels (float32, int32, or the parameter's annotation). All
    arrays must be on one device; NumPy arrays go to the tensors' device. Kernels can call the
    function too, as they call a `@td.func`.

    ShapeError for shapes that do not broadcast, LaunchError for arrays on two devices, CompileError
    with the line for what the kernel language does not have.

    >>> import numpy as np, treadle as td
    >>> @td.elementwise
    ... def blend(x, y, t):
    ...     return x + (y - x) * t
    >>> x = td.asarray([[0.0], [10.0]], device="cpu")
    >>> blend(x, np.array([2, 4, 8], np.float32), 0.5).tolist()
    [[1.0, 2.0, 4.0], [6.0, 7.0, 9.0]]
    """
    return Elementwise(function)


class Elementwise(Function):
    """An array function made by `@td.elementwise`."""

    def __init__(self, function: Any) -> None:
        super().__init__(as_function(function))
        self._signature = inspect.signature(self.definition)
        self._kernels: dict[tuple[int, tuple[bool, ...]], Kernel] = {}
        self._results: dict[Hashable, DType | np.dtype[Any]] = {}

    @property
    def name(self) -> str:
        """The function's name."""
        return self.definition.__name__

    def __repr__(self) -> str:
        return f"<treadle.elementwise {self.definition.__qualname__}>"

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """A tensor of the function's values; inside a kernel, one value."""
        if current_run() is not None:
            return super().__call__(*arguments, **keywords)
        given = self._in_order(arguments, keywords)
        where, values, order = self._on_one_device(given)
        arrays = [value._array for value in values if hasattr(value, "_array")]
        shape = self._broadcast(values)
        dtype = self._result_dtype(values)
        check_dtype(dtype, where)
        result = DeviceArray.allocate(where, dtype, shape)
        if result.size:
            with order or nullcontext():
                self._run([*values, result], [*arrays, result])
        return Tensor(result)

    def _in_order(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        if len(arguments) == len(self._names) and not keywords:
            return arguments
        try:
            bound = self._signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise LaunchError(f"{self.name}{self._signature}: {error}") from None
        bound.apply_defaults()
        return bound.args

    # --- arguments -------------------------------------------------------------------------------

    def _on_one_device(self, given: tuple[Any, ...]) -> tuple[Device, list[Any], Order | None]:
        """The device of the result, every array on it, and the order among other libraries' work
        if arrays are theirs."""
        held = [(name, v._array) for name, v in zip(self._names, given, strict=True) if _held(v)]
        where = held[0][1].device if held else convert.device_among(given) or default_device()
        for name, array in held:
            if array.device is not where:
                raise LaunchError(
                    f"{self.name}: {name} is on {array.device.id}, but {held[0][0]} is on "
                    f'{where.id}: move one of them, as in {name}.to("{where.id}")'
                )
        if all(_held(v) or type(v) in binding.NUMBER_TYPES for v in given):
            return where, list(given), None
        kernel = self._kernel(1, (False,) * len(given))
        taken = convert.take_in(kernel, (*given, 0), where.default_stream)
        values = [
            original if isinstance(value, convert.Packed) else value
            for original, value in zip(given, taken.arguments, strict=False)
        ]
        return where, values, taken.order

    @cached_property
    def _names(self) -> list[str]:
        arguments = self.source_code.tree.args
        return [a.arg for a in arguments.posonlyargs + arguments.args]

    def _broadcast(self, values: list[Any]) -> tuple[int, ...]:
        """The common shape of all arrays."""
        shape: tuple[int, ...] = ()
        before: list[tuple[str, tuple[int, ...]]] = []
        for name, value in zip(self._names, values, strict=True):
            if not hasattr(value, "_array"):
                continue
            mine = value._array.shape
            for other, theirs in before:
                if any(
                    a != b and 1 not in (a, b)
                    for a, b in zip(mine[::-1], theirs[::-1], strict=False)
                ):
                    raise ShapeError(
                        f"{self.name}: {other} of shape {theirs} and {name} of shape {mine} do "
                        "not broadcast: counted from the right, extents must be equal or 1"
                    )
            before.append((name, mine))
            shape = np.broadcast_shapes(shape, mine)
        return shape

    def _result_dtype(self, values: list[Any]) -> DType | np.dtype[Any]:
        """The dtype of the function's value for arguments of these classes."""
        from treadle.lang.lower.functions import result_type

        classes = tuple(v._array.key if hasattr(v, "_array") else _number_class(v) for v in values)
        key = (classes, self._captures.key())
        found = self._results.get(key)
        if found is None:
            kernel = self._kernel(1, tuple(map(_held, values)))
            types: list[Type] = []
            for position, value in enumerate(values):
                argument = binding.argument_of(
                    binding.bind(kernel, position, *convert.describe(value))
                )
                types.append(getattr(argument, "type", None) or argument.element)  # type: ignore[union-attr]
            result = result_type(self.definition, self.source_code, types)
            found = self._results[key] = _dtype_of(result)
        return found

    @cached_property
    def _captures(self) -> CaptureSet:
        return CaptureSet(self.definition, self.source_code.tree)

    # --- the kernel ------------------------------------------------------------------------------

    def _run(self, values: list[Any], arrays: list[DeviceArray]) -> None:
        """Compute every element of the last of the arrays."""
        shape = arrays[-1].shape
        extents, strides = merge_axes(shape, [_stretched(array, shape) for array in arrays])
        views = iter([_seen(*each, extents) for each in zip(arrays, strides, strict=True)])
        held = tuple(map(_held, values))
        kernel = self._kernel(len(extents), held[:-1])
        front = len(extents) - _MOST_AXES
        if front > 0:
            extents = (int(np.prod(extents[: front + 1])), *extents[front + 1 :])
        kernel.launch(
            extents, *(next(views) if hold else v for hold, v in zip(held, values, strict=True))
        )

    def _kernel(self, axes: int, held: tuple[bool, ...]) -> Kernel:
        """The kernel for arrays of this many axes. `held` says which arguments are arrays."""
        found = self._kernels.get((axes, held))
        if found is None:
            text, scope = _write(self, axes, held)
            function = function_from_text(text, None, scope)
            found = self._kernels[axes, held] = Kernel(function, KernelOptions(), None)
        return found


def _dtype_of(element: Type) -> DType | np.dtype[Any]:
    """The dtype of an array of these elements."""
    match element:
        case Scalar():
            return BY_SHORT_NAME[element.name]
        case Vector(part, 2):
            return complex64 if part == F32 else complex128
        case Struct():
            found: np.dtype[Any] = class_of(element).dtype
            return found
    raise AssertionError(element)


def _held(value: Any) -> bool:
    return hasattr(value, "_array")


def _seen(array: DeviceArray, steps: tuple[int, ...], extents: tuple[int, ...]) -> Tensor:
    """The array with other axes."""
    if steps == array.strides and extents == array.shape:
        return Tensor(array)
    return Tensor(array.view(extents, steps, array.offset))


def _number_class(value: Any) -> Any:
    """What of a number, vector or struct decides the types."""
    return value.type if isinstance(value, types.Vector) else type(value)


def _stretched(array: DeviceArray, shape: tuple[int, ...]) -> tuple[int, ...]:
    """An array's strides as an array of a shape that it broadcasts to."""
    missing = len(shape) - len(array.shape)
    mine = zip(array.shape, array.strides, shape[missing:], strict=True)
    return (0,) * missing + tuple(
        0 if extent == 1 and wanted != 1 else stride for extent, stride, wanted in mine
    )


def _write(of: Elementwise, axes: int, held: tuple[bool, ...]) -> tuple[str, dict[str, Any]]:
    """The kernel's text, and what its names mean."""
    import treadle.lang as language

    names = of._names
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
    values = (f"{name}[{at}]" if array else name for name, array in zip(names, held, strict=True))
    lines.append(f"{result}[{at}] = {function}({', '.join(values)})")
    head = f"def {of.name}({', '.join([*parameters, result])}):"
    return "\n    ".join([head, *lines]) + "\n", scope


def _free(name: str, taken: list[str]) -> str:
    while any(each.startswith(name) for each in taken):
        name += "_"
    return name
