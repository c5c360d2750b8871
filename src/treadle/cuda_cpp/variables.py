"""The `__constant__` and `__device__` variables of a file: one memory for each on every device.

A variable is allocated on a device when a kernel that uses it is first launched there, with the
value that the file or the host gave it. All kernels of a module share it; it lives as long as the
module does.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np

from treadle.core import forks
from treadle.core.dtypes import BY_SHORT_NAME, DType
from treadle.core.errors import CompileError, DtypeError, LaunchError, ShapeError, TreadleError
from treadle.cuda_cpp.pair_values import as_pairs, from_pairs
from treadle.cuda_cpp.program import Linked, Program, Symbol
from treadle.cuda_cpp.python_values import (
    Mismatch,
    described,
    is_gap,
    number_of,
    record_of,
)
from treadle.ir.types import Array, Scalar, Struct, Type, Vector
from treadle.lang.types import numpy_dtype
from treadle.runtime.arrays import DeviceArray, bytes_of, remember_struct
from treadle.runtime.arrays import numpy_dtype as numpy_of
from treadle.runtime.devices import Device, device


def storage_of(element: Type) -> tuple[DType | np.dtype[Any], tuple[int, ...]]:
    """The dtype of an array of such elements, and the axes that an element adds (a vector: one)."""
    match element:
        case Scalar():
            return BY_SHORT_NAME[element.name], ()
        case Vector():
            return BY_SHORT_NAME[element.element.name], (element.count,)
        case Array():
            dtype, inner = storage_of(element.element)
            return dtype, (element.length, *inner)
        case Struct():
            record = numpy_dtype(element)
            remember_struct(record, element)
            return record, ()
    raise AssertionError(element)


class Variable:
    """One variable: its value on the host, and its memory on each device that has it."""

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol
        self._element = symbol.paired or symbol.element  # as the host sees it
        self.dtype, inner = storage_of(self._element)
        self.shape = (*symbol.shape, *inner)
        self._host: np.ndarray[Any, Any] | None = None  # made of the symbol when it is first read
        self._copies: dict[Device, DeviceArray] = {}
        self._host_knows = symbol.space == "constant"  # whether `_host` is the value of every copy
        self._lock = forks.lock()

    def _known(self) -> np.ndarray[Any, Any]:
        """The value on the host."""
        if self._host is None:
            dtype, first = numpy_of(self.dtype), self.symbol.initial
            if first is None:
                self._host = np.zeros(self.shape, dtype)
            else:
                self._host = np.frombuffer(first, dtype).reshape(self.shape)
        return self._host

    def on(self, where: Device) -> DeviceArray:
        """Its memory on a device; allocated again if the device was closed since."""
        array = self._copies.get(where)
        if array is None or array.storage.pool is not where.pool:
            with self._lock:
                array = self._copies.get(where)
                if array is None or array.storage.pool is not where.pool:
                    dtype, inner = storage_of(self.symbol.element)
                    array = DeviceArray.allocate(where, dtype, (*self.symbol.shape, *inner))
                    self._first_value(array)
                    self._copies[where] = array
        return array

    def _first_value(self, array: DeviceArray) -> None:
        """Write the host's value to new memory."""
        if array.device.default_stream.capturing is None:
            array.upload(self._for_device(self._known(), array))
        else:  # a recording would write it again at each replay
            unrecorded = array.device.stream()
            unrecorded.handle.write(
                array.buffer, 0, bytes_of(self._for_device(self._known(), array))
            )
            unrecorded.synchronize()

    def _for_device(self, value: np.ndarray[Any, Any], array: DeviceArray) -> np.ndarray[Any, Any]:
        """A value as the memory of a device has it."""
        if self.symbol.paired is None:
            return value
        raw = np.frombuffer(as_pairs(value).tobytes(), numpy_of(array.dtype))
        return raw.reshape(array.shape)

    def _from_device(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        """The inverse."""
        found = array.to_host()
        if self.symbol.paired is None:
            return found
        return from_pairs(np.frombuffer(found.tobytes(), numpy_of(self.dtype))).reshape(self.shape)

    def set(self, value: Any, where: Device | None = None) -> None:
        """Set its value on one device, or on all, including those that are used later."""
        host = self._checked(value)
        if where is not None:
            array = self.on(where)
            array.upload(self._for_device(host, array))
            self._host_knows = False
            return
        with self._lock:
            self._host = host
            self._host_knows = self.symbol.space == "constant"
            for array in self._living().values():
                array.upload(self._for_device(host, array))

    def get(self, where: Device | None = None) -> np.ndarray[Any, Any]:
        """Its value as an array: a copy, which is read-only.

        LaunchError if kernels write the variable on several devices and `where` is not given.
        """
        copies = self._living()
        if where is not None and where in copies:
            found = self._from_device(copies[where])
        elif where is not None or not copies or self._host_knows:
            found = self._known().copy()
        elif len(copies) == 1:
            found = self._from_device(next(iter(copies.values())))
        else:
            names = [one.id for one in copies]
            raise LaunchError(
                f"{self.symbol.name} has a value of its own on each of {', '.join(names)}: say "
                f"which, as in constants.on({names[0]!r})[{self.symbol.name!r}]"
            )
        element = self._element
        if isinstance(element, Struct) and any(map(is_gap, element.fields)):
            found = found[[field.name for field in element.fields if not is_gap(field)]]
        found.flags.writeable = False
        return found

    def _living(self) -> dict[Device, DeviceArray]:
        """Its memory on devices that are still open."""
        copies = dict(self._copies)
        return {one: array for one, array in copies.items() if array.storage.pool is one.pool}

    def _checked(self, value: Any) -> np.ndarray[Any, Any]:
        """A value as an array of the variable's shape and dtype."""
        symbol = self.symbol
        host = np.zeros(self.shape, numpy_of(self.dtype))
        try:
            if isinstance(self._element, Scalar):
                _fill_numbers(host, self._element, value)
            elif isinstance(value, np.ndarray) and value.dtype == host.dtype:
                _check_shape(value.shape, self.shape)
                host[...] = value
            else:
                _fill_records(host, symbol.shape, self._element, value)
        except _ShapeMismatch as error:
            raise ShapeError(f"{self._written()} {error}") from None
        except Mismatch as error:
            raise DtypeError(f"{self._written()}, but {error}") from None
        return host

    def _written(self) -> str:
        """The variable in messages: "__constant__ coeff is f32[4][2]"."""
        symbol = self.symbol
        extents = "".join(f"[{extent}]" for extent in symbol.shape)
        return f"__{symbol.space}__ {symbol.name} is {self._element}{extents}"

    def __repr__(self) -> str:
        return self._written().replace(" is ", ": ")


class LinkedVariable:
    """A variable with pointers in it: its value on the host, as `items` for launches, which fill
    its memory. What kernels change in it is written back, so all devices see it."""

    def __init__(self, variable: Linked) -> None:
        self.variable = variable
        count = math.prod(variable.shape)
        self._is_table = bool(variable.shape) or variable.space == "device"
        zeros = [copy.deepcopy(variable.zero) for _ in range(count)]
        self.items: Any = zeros if self._is_table else zeros[0]

    def set(self, value: Any, where: Device | None = None) -> None:
        """Set its value."""
        shape = self.variable.shape
        if not self._is_table:
            self.items = value
        elif not shape:
            self.items[0] = value
        else:
            items = _flat_items(value, len(shape))
            if len(items) != math.prod(shape):
                raise ShapeError(
                    f"{self} is of shape {shape}, and {len(items)} values were given: pass lists"
                )
            self.items = items

    def get(self, where: Device | None = None) -> Any:
        """Its value, as it was set, with what kernels changed."""
        if not self._is_table:
            return self.items
        found: Any = list(self.items)
        for extent in reversed(self.variable.shape[1:]):
            found = [found[at : at + extent] for at in range(0, len(found), extent)]
        return found if self.variable.shape else found[0]

    def __repr__(self) -> str:
        return f"__{self.variable.space}__ {self.variable.name}: {self.variable.type}"


def _flat_items(value: Any, dimensions: int) -> list[Any]:
    if not dimensions:
        return [value]
    if not isinstance(value, (list, tuple)):
        raise DtypeError(f"{described(value)} was given: pass a list")
    return [one for item in value for one in _flat_items(item, dimensions - 1)]


class _ShapeMismatch(Exception):
    """A value of another shape than the variable."""


def _check_shape(given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if given != wanted:
        raise _ShapeMismatch(f"of shape {wanted}, but an array of shape {given} was given")


def _fill_numbers(host: np.ndarray[Any, Any], element: Scalar, value: Any) -> None:
    try:
        numbers = np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise Mismatch(f"the value is ragged: {error}") from None
    if numbers.dtype.kind not in "biuf" and numbers.dtype.name != "bfloat16":
        raise Mismatch(f"{described(value)} was given")
    _check_shape(numbers.shape, host.shape)
    if element.is_integer and (numbers.dtype != host.dtype) and numbers.size:
        for extreme in (numbers.min(), numbers.max()):
            number_of(element, extreme)
        if numbers.dtype.kind == "f" and not np.array_equal(numbers, np.trunc(numbers)):
            raise Mismatch("fractions were given, which are not whole numbers: round them")
    with np.errstate(over="ignore"):
        host[...] = numbers


def _fill_records(
    host: np.ndarray[Any, Any], shape: tuple[int, ...], element: Type, value: Any
) -> None:
    """Write structs or vectors one by one."""
    for index in np.ndindex(shape):
        item = value
        for axis, at in enumerate(index):
            try:
                count = len(item)
            except TypeError:
                raise Mismatch(f"{described(item)} was given") from None
            if count != shape[axis]:
                given = f"{count} were given along axis {axis}"
                raise _ShapeMismatch(f"of shape {shape}, but {given}")
            item = item[at]
        host[index] = record_of(element, item)


class NoVariable(TreadleError, KeyError):
    """The file has no such variable; the message lists those that it has."""

    __str__ = Exception.__str__  # a KeyError would show its repr


class Constants(MutableMapping[str, Any]):
    """The variables of a module by name. An assigned value is on every device before the next
    launch there; reading gives an array.

    A variable template has an instance for each
    of its arguments, by the name that C++ writes: `module.constants["mask<float>"]`.

    `constants.on(device)` has the values of one device: `__device__` variables that kernels write
    differ between devices.
    """

    def __init__(
        self,
        variables: dict[str, Variable | LinkedVariable],
        refused: Mapping[str, CompileError],
        instance: Callable[[str], Variable | LinkedVariable | None],
        where: Device | None = None,
    ) -> None:
        self._variables = variables
        self._refused = refused
        self._instance = instance  # of a variable template, by its name with arguments
        self._where = where

    def on(self, where: Device | str) -> Constants:
        """The variables as they are on one device."""
        found = device(where) if isinstance(where, str) else where
        return Constants(self._variables, self._refused, self._instance, found)

    def _variable(self, name: str) -> Variable | LinkedVariable:
        found = self._variables.get(name)
        if found is None:
            if name in self._refused:
                raise self._refused[name]
            found = self._instance(name)
            if found is not None:
                return found
            names = ", ".join(self._variables)
            there = f"; there are {names}" if names else ", nor any other"
            raise NoVariable(f"no __constant__ or __device__ variable {name!r}{there}")
        return found

    def __getitem__(self, name: str) -> Any:
        return self._variable(name).get(self._where)

    def __setitem__(self, name: str, value: Any) -> None:
        self._variable(name).set(value, self._where)

    def __delitem__(self, name: str) -> None:
        raise TypeError("the variables of a module live as long as it does")

    def __contains__(self, name: object) -> bool:
        return name in self._variables

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __repr__(self) -> str:
        where = "" if self._where is None else f" on {self._where.id}"
        listed = "; ".join(map(repr, self._variables.values()))
        return f"<constants{where}: {listed or 'none'}>"


def variables_of(program: Program) -> dict[str, Variable | LinkedVariable]:
    """The variables of a file, without memory on any device."""
    found: dict[str, Variable | LinkedVariable] = {
        name: Variable(symbol) for name, symbol in program.symbols.items()
    }
    return found | {name: LinkedVariable(one) for name, one in program.linked.items()}
