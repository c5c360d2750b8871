"""Arguments for structs with pointers in them, which a launch passes field by field."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.errors import DtypeError
from treadle.cuda_cpp.arguments import check_count
from treadle.cuda_cpp.pointer_records import Tables
from treadle.cuda_cpp.pointer_tables import fill_tables, gather, tables_of
from treadle.cuda_cpp.program import ArgumentLayout, Direct, KernelInstance, Table, Within
from treadle.cuda_cpp.python_values import Mismatch, described, fields_of
from treadle.runtime.arrays import is_array_type


def split_arguments(
    instance: KernelInstance, arguments: Sequence[Any], linked: Sequence[Any] = ()
) -> tuple[tuple[Any, ...], Tables]:
    """The arguments of a launch in the order of the instance's parameters, each struct with
    pointers replaced by its fields, and what is done before and after the launch. DtypeError for a
    value without these fields or items, LaunchError for another number of arguments. `linked` are
    the values of variables of the file with pointers in them.

    A struct may be a dictionary or an object with the names of its fields, or a tuple or list of
    them; an array of pointers is a sequence.
    """
    check_count(instance, len(arguments))
    made: list[Any] = [None] * len(instance.parameters)
    tables = Tables(known={one.position: one for one in tables_of(instance.layouts)})
    given = (*arguments, *linked)
    for number, (layout, value) in enumerate(zip(instance.layouts, given, strict=True)):
        if number < len(arguments):
            what = f"argument {number + 1} ({instance.arguments[number].name})"
        else:
            what = f"variable {instance.linked[number - len(arguments)]}"
        try:
            _flatten(made, tables, instance, layout, value, "")
        except _FieldMismatch as error:
            field = f", field {error.path}" if error.path else ""
            raise DtypeError(f"{what}{field} of kernel {instance.name} {error}") from None
    fill_tables(made, tables, instance)
    return tuple(made), tables


class _FieldMismatch(Mismatch):
    """A value without the fields or items of its type; `path` leads to it from the argument."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def _flatten(
    made: list[Any],
    tables: Tables,
    instance: KernelInstance,
    layout: ArgumentLayout,
    value: Any,
    path: str,
) -> None:
    if isinstance(layout, Direct):
        made[layout.position] = value
        return
    if isinstance(layout, (Table, Within)):
        try:
            gather(made, tables, instance, layout, value)
        except Mismatch as error:
            raise _FieldMismatch(path, str(error)) from None
        return
    names = [name for name, _ in layout.parts]
    try:
        if names[0] == 0:
            values = _items(value, len(names))
        elif names[:2] == ["data_", "size0"] and is_array_type(type(value)):
            values = _accessed(value, names)
        elif names == _TENSOR_INFO and is_array_type(type(value)):
            values = _described(value)
        elif names == _MDSPAN and is_array_type(type(value)):
            values = _spanned(value, layout.type)
        else:
            values = fields_of(value, names)
    except Mismatch as error:
        raise _FieldMismatch(path, f"is {layout.type}, but {error}") from None
    for (name, part), one in zip(layout.parts, values, strict=True):
        inner = f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}".lstrip(".")
        _flatten(made, tables, instance, part, one, inner)


def _accessed(value: Any, names: list[Any]) -> list[Any]:
    """The fields of an accessor of PyTorch's (`source/library/torch.cuh`) for an array: its data,
    sizes, and the distances of its elements, which lie without gaps as those of all pointers."""
    dimensions = (len(names) - 1) // 2
    if len(value.shape) != dimensions:
        raise Mismatch(f"{described(value)} was given: it takes {dimensions} dimensions")
    strides = [math.prod(value.shape[axis + 1 :]) for axis in range(dimensions)]
    return [value, *value.shape, *strides]


_TENSOR_INFO = ["data", "sizes", "strides", "dims"]
_MOST_DIMENSIONS = 25  # of PyTorch's TensorInfo


def _described(value: Any) -> list[Any]:
    """The fields of PyTorch's TensorInfo for an array."""
    shape = value.shape
    if len(shape) > _MOST_DIMENSIONS:
        raise Mismatch(f"{described(value)} was given: it takes {_MOST_DIMENSIONS} dimensions")
    shape = shape or (1,)
    rest = [0] * (_MOST_DIMENSIONS - len(shape))
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return [value, [*shape, *rest], [*strides, *rest], len(shape)]


_MDSPAN = ["__treadle_data", "__treadle_map"]
_EXTENTS = re.compile(r"\bextents<[^,<>]+((?:, \d+)*)>")
_DYNAMIC = 2**64 - 1


def _spanned(value: Any, type: str) -> list[Any]:
    """The fields of a std::mdspan (`source/library/mdspan.cuh`) for an array, whose elements lie in
    C's order: its data, and a mapping with its shape."""
    if "layout_right" not in type:
        raise Mismatch(
            f"{described(value)} was given, whose elements are in the order of layout_right: "
            "declare the mdspan with it, or make the mdspan in the kernel"
        )
    written = _EXTENTS.search(type)
    assert written is not None
    wanted = [int(one) for one in written[1].split(", ")[1:]]
    shape = tuple(value.shape)
    fits = [one in (_DYNAMIC, length) for one, length in zip(wanted, shape, strict=False)]
    if len(wanted) != len(shape) or not all(fits):
        lengths = ", ".join("any" if one == _DYNAMIC else str(one) for one in wanted)
        raise Mismatch(f"{described(value)} was given: it takes lengths of ({lengths})")
    return [value, {"__treadle_extents": {"__treadle_given": list(shape) or [0]}}]


def _items(value: Any, count: int) -> list[Any]:
    """The items of an array of pointers or structs."""
    is_array = isinstance(value, np.ndarray) or is_array_type(type(value))
    if not is_array and not isinstance(value, (list, tuple)):
        raise Mismatch(f"{described(value)} was given: pass a list or tuple of {count}")
    shape = getattr(value, "shape", None)
    length = (shape[0] if shape else 0) if is_array else len(value)
    if length != count:
        raise Mismatch(f"{length} items were given")
    return [value[at] for at in range(count)]
