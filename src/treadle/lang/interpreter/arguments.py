"""The arguments of an interpreted launch, checked as for a device and converted to NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treadle.core.errors import DtypeError, LaunchError
from treadle.core.limits import Limits
from treadle.ir import types as t
from treadle.ir.definition import KernelDefinition
from treadle.ir.signature import (
    Argument,
    ArrayArgument,
    DeclaredArray,
    DeclaredParameter,
    ScalarArgument,
    ValueArgument,
)
from treadle.lang.interpreter import numbers
from treadle.lang.interpreter.arrays import KernelArray
from treadle.lang.types import Vector, annotation_of, ir_type, is_struct, make_value, numpy_dtype
from treadle.runtime import arguments as binding
from treadle.runtime import convert, lazy
from treadle.runtime.arrays import array_dtype, element_type, is_array_type
from treadle.runtime.foreign import kind_of
from treadle.runtime.sharing import share


@dataclass
class InterpretedArguments:
    """Arguments in the form that the interpreter uses."""

    signature: tuple[Argument, ...] = ()
    values: list[Any] = field(default_factory=list)
    copies: list[Callable[[], None]] = field(default_factory=list)
    limits: Limits | None = None  # of the device that an array is on

    def copy_back(self) -> None:
        """Copy arrays that had to be copied back to their memory."""
        for write in self.copies:
            write()


def take_arguments(kernel: KernelDefinition, arguments: Sequence[Any]) -> InterpretedArguments:
    """One value for each parameter; LaunchError or DtypeError as for a launch on a device."""
    binding.check_count(kernel, len(arguments))
    taken = InterpretedArguments()
    kinds: list[Argument] = []
    for position, (parameter, value) in enumerate(zip(kernel.parameters, arguments, strict=True)):
        if isinstance(value, (Vector, np.void)) or is_struct(type(value)):
            type_ = _value_type(value)
            bound = binding.bind(kernel, position, type_, value)
            assert isinstance(bound, ValueArgument)
            kinds.append(bound)
            taken.values.append(make_value(annotation_of(bound.type), value))
        elif numbers.is_number(value):
            number = binding.bind(kernel, position, type(value), value)
            assert isinstance(number, ScalarArgument)
            kinds.append(number)
            taken.values.append(numbers.cast(value, number.type))
        else:
            where = f"argument {position + 1} ({parameter.name}) of kernel {kernel.name}"
            if is_array_type(type(value)):
                value.__treadle_array__(kernel.name)  # an error, if the kernel may not have it
            array = _array(parameter, _as_numpy(value, taken, where), where)
            kinds.append(ArrayArgument(array.element, array.ndim))
            taken.values.append(array)
    taken.signature = tuple(kinds)
    return taken


def _value_type(value: Any) -> Any:
    """The IR type of a vector or struct value."""
    if isinstance(value, np.void):
        return element_type(value.dtype)
    return value.type.ir if isinstance(value, Vector) else ir_type(type(value))


def _as_numpy(value: Any, taken: InterpretedArguments, where: str) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        return value
    if is_array_type(type(value)):  # of any device
        taken.limits = value.device.info.limits
        copy: np.ndarray[Any, Any] = np.array(value.numpy())
        before = copy.tobytes()

        def put_back() -> None:
            if copy.tobytes() != before:  # unchanged: it may be a tensor that can't be written
                array = value.__treadle_array__()
                if array.storage.readers is not None:
                    lazy.arrays.finish_readers(array.storage)
                array.assign(copy)
                value.__treadle_written__()

        taken.copies.append(put_back)
        return copy
    if kind_of(value) is not None:
        array = share(value, where)
        if array.device.traits.host_memory:
            return convert.as_numpy(value, where)
        there = array.to_host()
        if array.key.read_only:
            there.flags.writeable = False
        else:
            taken.copies.append(lambda: array.assign(there))
        return there
    raise DtypeError(f"{where}: {binding.not_taken(type(value))}")


def _number_dtype(matrix: t.Type) -> Any:
    inner = t.numbers_in(matrix)
    assert inner is not None
    return numpy_dtype(inner[1])


def _array(parameter: DeclaredParameter, data: np.ndarray[Any, Any], where: str) -> KernelArray:
    declared = parameter.declared
    if declared is None:
        if data.ndim == 0:
            data = data.reshape(1)
        return KernelArray(data, element_type(array_dtype(data.dtype)), parameter.name)
    if not isinstance(declared, DeclaredArray):
        raise DtypeError(f"{where} is {declared}, but an array was given")
    element = declared.element
    if isinstance(element, t.Vector) and data.dtype == numpy_dtype(element.element):
        if data.shape[declared.ndim :] != (element.count,):
            rows = data.reshape(-1, element.count)
            if declared.ndim != 1 or not np.shares_memory(rows, data):
                raise LaunchError(
                    f"{where} is {declared}: the last axis must be {element.count}, but the shape "
                    f"is {data.shape}"
                )
            data = rows
    elif (shape := t.matrix_shape(element)) is not None and data.dtype == _number_dtype(element):
        if data.shape[declared.ndim :] != shape or not data.flags.c_contiguous:
            raise LaunchError(
                f"{where} is {declared}: it takes a contiguous array whose last axes are {shape}, "
                f"not one of shape {data.shape}"
            )
        data = data.reshape(*data.shape[:-2], -1).view(numpy_dtype(element))[..., 0]
    elif data.dtype.itemsize != t.size_of(element) or t.leaves(
        element_type(array_dtype(data.dtype))
    ) != t.leaves(element):
        raise DtypeError(f"{where} is {declared}, but an array of {data.dtype} was given")
    elif data.ndim != declared.ndim:
        if (data.ndim, declared.ndim) != (0, 1):
            raise LaunchError(
                f"{where} has {declared.ndim} dimensions, but the given array has shape "
                f"{data.shape}"
            )
        data = data.reshape(1)
    return KernelArray(data, element, parameter.name)
