"""The arguments of a launch, converted to what the launch path takes for C++'s parameters.

Structs with pointers in them are split before (`struct_arguments`). Which conversions are needed
depends on the Python types of the arguments, so it is decided once for each combination of types:
tensors, and numbers of the right kind, need none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from treadle.core.errors import DtypeError, LaunchError
from treadle.cuda_cpp.pair_values import as_pairs
from treadle.cuda_cpp.program import KernelInstance
from treadle.cuda_cpp.python_values import Mismatch, OutOfRange, described, number_of, record_of
from treadle.cuda_cpp.variables import storage_of
from treadle.ir.definition import label_of
from treadle.ir.signature import DeclaredPointer
from treadle.ir.types import U8, Array, Scalar, Struct, Type, Vector, Void, size_of
from treadle.lang.types import numpy_dtype
from treadle.runtime.arguments import NUMBER_TYPES
from treadle.runtime.arrays import DeviceArray, is_array_type
from treadle.runtime.convert import Packed
from treadle.runtime.devices import Device
from treadle.runtime.foreign import kind_of

Conversion = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Marshaller:
    """How arguments of certain Python types are converted: conversions by position, and the
    positions of null pointers."""

    conversions: tuple[tuple[int, Conversion], ...]
    nulls: tuple[int, ...]

    def apply(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, converted. LaunchError or DtypeError for a value that does not fit."""
        if not self.conversions:
            return arguments
        made = list(arguments)
        for position, convert in self.conversions:
            made[position] = convert(made[position])
        return tuple(made)


def marshaller_for(instance: KernelInstance, arguments: tuple[Any, ...]) -> Marshaller:
    """The marshaller for arguments of these Python types, one for each of the instance's
    parameters. DtypeError for a type that a parameter never takes."""
    if not instance.layouts:
        check_count(instance, len(arguments))
    conversions: list[tuple[int, Conversion]] = []
    nulls: list[int] = []
    for position, value in enumerate(arguments):
        declared = instance.parameters[position].declared
        by_value = instance.uploaded.get(position)
        convert: Conversion | None
        doubles = instance.paired.get(position)
        if position in instance.functions:
            conversions.append((position, partial(_function, instance, position)))
            continue
        if doubles is not None and (
            by_value is not None or not isinstance(declared, DeclaredPointer)
        ):
            convert = partial(_paired, instance, position, doubles, by_value is None)
        elif by_value is not None:
            convert = partial(_record, instance, position, by_value)
        elif isinstance(declared, DeclaredPointer):
            if value is None:
                nulls.append(position)
                continue
            convert = _for_pointer(instance, position, value)
        elif isinstance(declared, Scalar):
            convert = _for_number(instance, position, declared, value)
        else:
            assert isinstance(declared, (Vector, Struct, Array))
            convert = partial(_packed, instance, position, declared)
        if convert is not None:
            conversions.append((position, convert))
    return Marshaller(tuple(conversions), tuple(nulls))


def check_count(instance: KernelInstance, count: int) -> None:
    """LaunchError unless there is one argument for each parameter."""
    wanted = len(instance.arguments)
    if count != wanted:
        plural = "" if wanted == 1 else "s"
        raise LaunchError(
            f"kernel {instance.name} takes {wanted} argument{plural} "
            f"({instance.declarations}), not {count}"
        )


def in_order(
    instance: KernelInstance, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[Any, ...]:
    """All arguments of a launch, some of which are given by the names of parameters. LaunchError
    for a name that is none, or has a value already."""
    names = [one.name for one in instance.arguments]
    rest = names[len(arguments) :]
    for name in keywords:
        if name not in rest:
            why = "is given twice" if name in names else "is none of its parameters"
            raise LaunchError(f"kernel {instance.name} ({instance.declarations}): {name} {why}")
    missing = [name for name in rest if name not in keywords]
    if missing:
        raise LaunchError(
            f"kernel {instance.name} ({instance.declarations}): {', '.join(missing)} is missing"
        )
    return (*arguments, *(keywords[name] for name in rest))


def check_ranges(instance: KernelInstance, arguments: tuple[Any, ...]) -> None:
    """LaunchError for the first number that is out of its parameter's range. Its message says more
    than that of the launch path's packer, after whose error it is called."""
    for position, value in enumerate(arguments):
        declared = instance.parameters[position].declared
        if isinstance(declared, Scalar) and position not in instance.functions:
            _number(instance, position, declared, value)


def memory_for(element: Type, size: int, device: Device) -> DeviceArray:
    """An array of `size` bytes of elements of a type; 0 for a null pointer."""
    element = U8 if isinstance(element, Void) else element
    dtype, inner = storage_of(element)
    return DeviceArray.allocate(device, dtype, (size // size_of(element), *inner))


def _where(instance: KernelInstance, position: int) -> str:
    label = label_of(instance.parameters, position)
    return f"{label} of kernel {instance.name} is {instance.types[position]}"


def _for_pointer(instance: KernelInstance, position: int, value: Any) -> Conversion | None:
    declared = instance.parameters[position].declared
    assert isinstance(declared, DeclaredPointer)
    vectors = isinstance(declared.element, Vector) and not declared.shaped
    if isinstance(value, np.ndarray):
        return partial(_contiguous, instance, position, vectors)
    if is_array_type(type(value)) or kind_of(value) is not None:
        return partial(_in_rows, instance, position) if vectors else None
    records = ""
    if isinstance(value, (list, tuple)):
        records = (
            "; of a list of numbers np.array(x, dtype=np.float32) makes one, of structs without "
            "pointers np.array([(1.0, 2)], dtype=[…])"
        )
    raise DtypeError(
        f"{_where(instance, position)}, but {described(value)} was given: pass an array (a tensor, "
        f"a NumPy array, or one that speaks DLPack), or None for a null pointer{records}"
    )


def _in_rows(instance: KernelInstance, position: int, value: Any) -> Any:
    """An array of numbers for a pointer to vectors, if no row of it ends within a vector."""
    shape = tuple(getattr(value, "shape", ()))
    if len(shape) < 2 or shape[-1] == 1:
        return value
    declared = instance.parameters[position].declared
    assert isinstance(declared, DeclaredPointer)
    lanes = max(size_of(declared.element) // value.dtype.itemsize, 1)
    if shape[-1] and shape[-1] % lanes and lanes % shape[-1]:
        raise LaunchError(
            f"{_where(instance, position)}, and an array of shape {shape} was given, whose rows of "
            f"{shape[-1]} are no whole vectors: pass one whose last axis is {lanes}, or a flat "
            "one, x.reshape(-1)"
        )
    return value


# NumPy's kinds of dtypes whose elements are not numbers.
_NO_NUMBERS = {"O": "Python objects", "U": "text", "S": "text", "M": "dates", "m": "time spans"}


def _contiguous(
    instance: KernelInstance, position: int, vectors: bool, value: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """A NumPy array, if its elements are contiguous, as a pointer needs them."""
    if value.dtype.kind in _NO_NUMBERS:
        raise DtypeError(
            f"{_where(instance, position)}, but an array of {_NO_NUMBERS[value.dtype.kind]} was "
            "given: make it an array of numbers, as in numpy.array(x, dtype=numpy.float32)"
        )
    if not value.flags.c_contiguous:
        raise LaunchError(
            f"{_where(instance, position)}, and an array of shape {value.shape} was given whose "
            "elements are not contiguous in row-major order: pass numpy.ascontiguousarray(x), and "
            "assign x[...] from it if the kernel writes it"
        )
    if vectors:
        _in_rows(instance, position, value)
    return value


def _for_number(
    instance: KernelInstance, position: int, declared: Scalar, value: Any
) -> Conversion | None:
    number_type = NUMBER_TYPES.get(type(value))
    checked = not declared.is_float or declared.bits >= 32  # halves become infinite in silence
    if (
        checked
        and number_type is not None
        and number_type.kind in _TAKEN_AS_THEY_ARE[declared.kind]
    ):
        return None
    return partial(_number, instance, position, declared)


# By the kind of a parameter: the kinds of numbers that the launch path packs and checks itself.
_TAKEN_AS_THEY_ARE = {
    "bool": ("bool",), "int": ("bool", "int", "uint"), "uint": ("bool", "int", "uint"),
    "float": ("bool", "int", "uint", "float"),
}  # fmt: skip


def _number(instance: KernelInstance, position: int, declared: Scalar, value: Any) -> Any:
    try:
        return number_of(declared, value)
    except OutOfRange as error:
        raise LaunchError(f"{_where(instance, position)}, but {error}") from None
    except Mismatch as error:
        raise DtypeError(f"{_where(instance, position)}, but {error}") from None


def _function(instance: KernelInstance, position: int, value: Any) -> int:
    """The number of a function of the file, which is given by its name; 0 for None."""
    if value is None:
        return 0
    known = instance.functions[position]
    if not isinstance(value, str):
        raise DtypeError(
            f"{_where(instance, position)}, a pointer to a function, but {described(value)} was "
            f"given: pass the name of one of {', '.join(known)}, or None for a null pointer"
        )
    name = value.replace(" ", "").removeprefix("&").removeprefix("::")
    found = {known[one] for one in known if name in (one, one.rpartition("::")[2])}
    number = known.get(name) if name in known or len(found) != 1 else found.pop()
    if number is None:
        why = "names several functions" if found else "is no function of this type in the file"
        raise DtypeError(
            f"{_where(instance, position)}, and {value!r} {why}: pass one of {', '.join(known)}"
        )
    return number


def _packed(
    instance: KernelInstance, position: int, declared: Vector | Struct | Array, value: Any
) -> Packed:
    return Packed(declared, _record(instance, position, declared, value))


def _paired(
    instance: KernelInstance, position: int, doubles: Type, packed: bool, value: Any
) -> Packed | np.ndarray[Any, Any]:
    """A value with a pair of floats for each double; its bytes, if they are uploaded."""
    if isinstance(doubles, Scalar):
        made = np.asarray(_number(instance, position, doubles, value), np.float64)
    else:
        made = _record(instance, position, doubles, value)
    pairs = as_pairs(made)
    declared = instance.parameters[position].declared
    if not packed:
        return pairs
    assert isinstance(declared, (Vector, Struct, Array))
    whole = np.frombuffer(pairs.tobytes(), numpy_dtype(declared))
    return Packed(declared, whole.reshape(numpy_dtype(declared).shape or ()))


def _record(
    instance: KernelInstance, position: int, declared: Type, value: Any
) -> np.ndarray[Any, Any]:
    """A vector, struct or array by value in its memory layout."""
    try:
        return record_of(declared, value)
    except Mismatch as error:
        raise DtypeError(f"{_where(instance, position)}, but {error}") from None
