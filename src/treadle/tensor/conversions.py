"""Conversions of numbers, nodes and shapes to a common device, dtype and shape.

`operands` applies them to any arguments; the functions here make no tensors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, cast_number
from treadle.core.errors import LaunchError, ShapeError
from treadle.core.sizes import is_size
from treadle.graph import views
from treadle.graph.node import Node, view_of
from treadle.runtime.devices import Device, default_device
from treadle.tensor.dtypes import python_number
from treadle.tensor.tensor import Tensor

_PYTHON_NUMBERS = (bool, int, float, complex)


def is_number(value: Any) -> bool:
    """Whether an operand is a Python number or a NumPy scalar, which take the arrays' dtype."""
    return isinstance(value, (*_PYTHON_NUMBERS, np.generic))


def as_python(value: Any) -> Any:
    """A number as a Python number."""
    return value if type(value) in _PYTHON_NUMBERS else python_number(value)


def device_of(name: str, operands: Sequence[Any]) -> Device:
    """The device of all tensors among the operands. LaunchError if there are two."""
    found: Device | None = None
    for value in operands:
        if type(value) is Tensor:
            device = value._cell.value.device
            if found is None:
                found = device
            elif device is not found:
                raise mixed_devices(name, found, device)
    if found is None:
        return default_device()
    return found


def mixed_devices(name: str, one: Device, other: Device) -> LaunchError:
    """The error for tensors on two devices."""
    return LaunchError(
        f"{name}: one tensor is on {one.id}, another on {other.id}: move one of them, as in "
        f'x.to("{one.id}")'
    )


def common_shape(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that shapes broadcast to. ShapeError with both shapes and the axis."""
    shape = shapes[0]
    for other in shapes[1:]:
        if other == shape:
            continue
        longer, shorter = (shape, other) if len(shape) >= len(other) else (other, shape)
        front = len(longer) - len(shorter)
        merged = list(longer)
        for axis, (a, b) in enumerate(zip(longer[front:], shorter, strict=True), front):
            if a == b or b == 1:
                continue
            if a != 1:
                raise ShapeError(
                    f"{name}: the shapes {shape} and {other} do not broadcast: counted from the "
                    f"right, extents must be equal or 1, but axis {axis - len(longer)} has {a} "
                    f"and {b}"
                )
            merged[axis] = b
        shape = tuple(merged)
    return shape


def shaped(node: Node, shape: tuple[int, ...]) -> Node:
    """A node broadcast to a shape."""
    if node.shape == shape:
        return node
    return view_of(node, views.expand(views.whole(node.shape), shape))


def cast(node: Node, dtype: DType) -> Node:
    """A node as another dtype."""
    if node.dtype is dtype:
        return node
    return Node("cast", (node,), node.shape, dtype, node.device)


def number_as(value: Any, dtype: DType) -> Any:
    """A Python number as a value of a dtype: integers wrap, floats round when they are stored, and
    those beyond the dtype are infinite."""
    kind = dtype.kind
    if kind == "float":
        return float_as(value, dtype.itemsize)
    if kind == "bool":
        return value != 0
    if kind == "complex":
        number = complex(value)
        size = dtype.itemsize // 2
        return complex(float_as(number.real, size), float_as(number.imag, size))
    if is_size(value):
        return value
    return int(value) if isinstance(value, int) else int(cast_number(value, dtype))


_FLOAT32_END = 3.4028235677973366e38  # numbers from here on round to infinity in float32


_EXACT = 1 << 53  # integers up to here are floats


def float_as(value: float, itemsize: int) -> float:
    """A Python number as a float of so many bytes, which may be infinite."""
    if is_size(value) and -_EXACT <= value <= _EXACT:
        return value  # a launch makes the float of it
    try:
        number = float(value)
    except OverflowError:  # an integer
        return math.inf if value > 0 else -math.inf
    if itemsize > 4 or -_FLOAT32_END < number < _FLOAT32_END or number != number:
        return number
    return math.copysign(math.inf, number)
