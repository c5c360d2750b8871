"""`@td.elementwise`: a function of numbers becomes a function of arrays.

The results are lazy: the function is lowered once for the types of its operands, and fused into the
kernels that need them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import BY_SHORT_NAME, DType, complex64, complex128, integer_range
from treadle.core.errors import CompileError, LaunchError, ShapeError, shortened
from treadle.graph.node import Node, constant
from treadle.graph.operations import Applied
from treadle.ir.types import F32, Scalar, Struct, Type, Vector
from treadle.lang import types
from treadle.lang.captures import CaptureSet
from treadle.lang.decorators import Function, as_function
from treadle.lang.interpreter_state import current_run, state
from treadle.lang.source import parameters_of
from treadle.lang.types import class_of
from treadle.runtime import arguments as binding
from treadle.runtime import convert, settings
from treadle.runtime.arguments import NUMBER_TYPES
from treadle.runtime.arrays import DeviceArray, element_type
from treadle.runtime.devices import Device, default_device
from treadle.runtime.sharing import Order
from treadle.tensor.conversions import cast, number_as, shaped
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import check_dtype, python_number
from treadle.tensor.elementwise_kernel import ElementwiseKernels, is_held
from treadle.tensor.tensor import Tensor, from_node


def elementwise(function: Callable[..., Any], /) -> Elementwise:
    """Make a function of numbers a function of arrays, computed for every element.

    Called with tensors, NumPy arrays and numbers, it broadcasts them as NumPy does and returns a
    new tensor, with the dtype that the expression has in the kernel language; numbers have the type
    that they have as arguments of kernels (float32, int32, or the parameter's annotation). All
    arrays must be on one device; NumPy arrays are copied to the tensors' device. As with other
    operations the elements are computed when they are needed, fused with the operations that use
    them. Kernels can call the function too, as they call a `@td.func`.

    ShapeError for shapes that do not broadcast, LaunchError for arrays on two devices, CompileError
    with the line for anything that the kernel language does not have.

    >>> import numpy as np, treadle as td
    >>> @td.elementwise
    ... def blend(x, y, t):
    ...     return x + (y - x) * t
    >>> x = td.asarray([[0.0], [10.0]], device="cpu")
    >>> blend(x, np.array([2, 4, 8], np.float32), 0.5).tolist()
    [[1.0, 2.0, 4.0], [6.0, 7.0, 9.0]]
    """
    return Elementwise(function)


class _Version(NamedTuple):
    """The function lowered for arguments of some types. `applied` is None if it needs a kernel of
    its own; otherwise `parameters` are the dtypes of its parameters, by their annotations."""

    result: DType | np.dtype[Any]
    applied: Applied | None
    parameters: tuple[Any, ...]


class Elementwise(Function):
    """An array function made by `@td.elementwise`."""

    def __init__(self, function: Any) -> None:
        super().__init__(as_function(function))
        self._signature = inspect.signature(self.definition)
        self._versions: dict[Hashable, _Version] = {}

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
        try:
            return self._applied(self._in_order(arguments, keywords))
        except CompileError as error:
            raise shortened(error)  # noqa: B904 - it is the same error

    def _applied(self, given: tuple[Any, ...]) -> Tensor:
        if not state.active and all(map(_is_usual, given)):
            where = self._device_of(given)
            values = [
                asarray(value, device=where) if type(value) is np.ndarray else value
                for value in given
            ]
            version = self._version(values)
            check_dtype(version.result, where)
            if version.applied is not None:
                return self._lazy(version, values, where)
            return self._computed(version, values, where, None)
        where, values, order = self._on_one_device(given)
        version = self._version(values)
        check_dtype(version.result, where)
        return self._computed(version, values, where, order)

    def _in_order(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        if len(arguments) == len(self._names) and not keywords and not self._by_name:
            return arguments
        try:
            bound = self._signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise LaunchError(f"{self.name}{self._signature}: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self._names)

    @cached_property
    def _names(self) -> list[str]:
        return [parameter.arg for parameter in parameters_of(self.source_code.tree)]

    @cached_property
    def _by_name(self) -> bool:
        """Whether arguments are given by name only."""
        return bool(self.source_code.tree.args.kwonlyargs)

    # --- lazily ----------------------------------------------------------------------------------

    def _lazy(self, version: _Version, values: list[Any], where: Device) -> Tensor:
        """A node that applies the function."""
        shape = self._broadcast(values)
        sources = tuple(
            [
                shaped(cast(value._node, dtype), shape)
                if type(value) is Tensor
                else constant(_number_as(value, dtype, name), shape, dtype, where)
                for name, value, dtype in zip(self._names, values, version.parameters, strict=True)
            ]
        )
        return from_node(Node("apply", sources, shape, version.result, where, version.applied))  # type: ignore[arg-type]

    def _computed(
        self, version: _Version, values: list[Any], where: Device, order: Order | None
    ) -> Tensor:
        """The result of a kernel around the function, launched now."""
        arrays = [value.__treadle_array__() for value in values if is_held(value)]
        result = DeviceArray.allocate(where, version.result, self._broadcast(values))
        if result.size:
            with order or nullcontext():
                self._kernels.run([*values, result], [*arrays, result])
        return Tensor(result)

    # --- arguments -------------------------------------------------------------------------------

    def _device_of(self, given: tuple[Any, ...]) -> Device:
        """The device of all tensors. LaunchError if there are two."""
        held = [(n, v.device) for n, v in zip(self._names, given, strict=True) if is_held(v)]
        for name, device in held:
            if device is not held[0][1]:
                raise LaunchError(
                    f"{self.name}: {name} is on {device.id}, but {held[0][0]} is on "
                    f'{held[0][1].id}: move one of them, as in {name}.to("{held[0][1].id}")'
                )
        return held[0][1] if held else default_device()

    def _on_one_device(self, given: tuple[Any, ...]) -> tuple[Device, list[Any], Order]:
        """The device of the result, all arrays on it in their own layout, and the order with other
        libraries' work if arrays are theirs."""
        tensors = any(map(is_held, given))
        where = self._device_of(given) if tensors else convert.device_of_arguments(given)
        where = where or default_device()
        kernel = self._kernels.kernel(1, (False,) * len(given))
        taken = convert.convert_arguments(kernel, (*given, 0), where.default_stream)
        values = [
            original if isinstance(value, convert.Packed) else value
            for original, value in zip(given, taken.arguments, strict=False)
        ]
        return where, values, taken.order

    def _broadcast(self, values: list[Any]) -> tuple[int, ...]:
        """The common shape of all arrays."""
        shape: tuple[int, ...] = ()
        before: list[tuple[str, tuple[int, ...]]] = []
        for name, value in zip(self._names, values, strict=True):
            mine = getattr(value, "shape", ()) if is_held(value) else ()
            if not mine:
                continue
            for other, theirs in before:
                if mine != theirs and any(
                    a != b and 1 not in (a, b)
                    for a, b in zip(mine[::-1], theirs[::-1], strict=False)
                ):
                    raise ShapeError(
                        f"{self.name}: {other} of shape {theirs} and {name} of shape {mine} do "
                        "not broadcast: counted from the right, extents must be equal or 1"
                    )
            before.append((name, mine))
            shape = mine if shape in ((), mine) else np.broadcast_shapes(shape, mine)
        return shape

    # --- types -----------------------------------------------------------------------------------

    def _version(self, values: list[Any]) -> _Version:
        """The function lowered for arguments of these classes and for its current captures."""
        key = (tuple(map(_class_of, values)), self._captures.key())
        found = self._versions.get(key)
        if found is None:
            found = self._versions[key] = self._lowered(values)
        return found

    def _lowered(self, values: list[Any]) -> _Version:
        kernel = self._kernels.kernel(1, tuple(map(is_held, values)))
        given: list[Type] = []
        for position, value in enumerate(values):
            if is_held(value):
                given.append(element_type(value.dtype))
            else:
                number = binding.bind(kernel, position, *convert.describe(value))
                given.append(number.type)  # type: ignore[union-attr]
        from treadle.lang.lower.standalone import lower_elementwise  # imports the compiler

        result, functions = lower_elementwise(
            self.definition, self.source_code, given, asserts=settings.check
        )
        if functions is None or isinstance(result, Struct):
            return _Version(_dtype_of(result), None, ())
        parameters = [_dtype_of(part.type) for part in functions[-1].parameters]  # type: ignore[union-attr]
        return _Version(_dtype_of(result), Applied(self.name, functions), tuple(parameters))

    @cached_property
    def _captures(self) -> CaptureSet:
        return CaptureSet(self.definition)

    @cached_property
    def _kernels(self) -> ElementwiseKernels:
        return ElementwiseKernels(self, self._names)


def _is_usual(value: Any) -> bool:
    """Whether an argument is a number, or an array of numbers of ours or NumPy's."""
    kind = type(value)
    if kind is Tensor:
        return type(value.dtype) is DType
    return kind in NUMBER_TYPES or (kind is np.ndarray and value.dtype.names is None)


def _class_of(value: Any) -> Any:
    """The key of an argument that decides types."""
    if is_held(value):
        return value.dtype
    return value.type if isinstance(value, types.Vector) else type(value)


def _number_as(value: Any, dtype: DType, name: str) -> Any:
    """A number as a value of a parameter. LaunchError for an integer that does not fit."""
    number = python_number(value)
    if dtype.is_integer:
        low, high = integer_range(dtype)
        if not low <= number <= high:  # type: ignore[operator]
            raise LaunchError(
                f"{name} = {value} does not fit {dtype}, which holds {low} to {high}: annotate the "
                "parameter with a wider type, or pass a tensor"
            )
    return number_as(number, dtype)


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
