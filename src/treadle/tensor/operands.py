"""What operations do with their operands: one device, one dtype, one shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, cast_number
from treadle.core.errors import DtypeError, LaunchError, ShapeError
from treadle.graph import views
from treadle.graph.kinds import CONSTANT
from treadle.graph.node import Node, constant, view_of
from treadle.runtime.devices import Device
from treadle.tensor.dtypes import check_fits, promote, promote_scalar, python_number
from treadle.tensor.tensor import Tensor

_PYTHON_NUMBERS = (bool, int, float, complex)


def node_of(name: str, value: Any, device: Device) -> Node:
    """The lazy value of an operand that is a tensor, or that becomes one on this device."""
    if type(value) is Tensor:
        node = value._node
        if type(node.dtype) is not DType:
            raise DtypeError(f"{name}: there is no arithmetic on structs ({node.dtype})")
        return node
    from treadle.tensor.creation import asarray

    if isinstance(value, (np.ndarray, list, tuple)) or hasattr(value, "__dlpack__"):
        return asarray(value, device=device)._node
    raise TypeError(f"{name} takes tensors, NumPy arrays and numbers, not {type(value).__name__}")


def is_number(value: Any) -> bool:
    """Whether an operand is a Python number or NumPy's scalar, which take others' dtype."""
    return isinstance(value, (*_PYTHON_NUMBERS, np.generic))


def as_python(value: Any) -> Any:
    """A number as Python's."""
    return value if type(value) in _PYTHON_NUMBERS else python_number(value)


def device_of(name: str, operands: Sequence[Any]) -> Device:
    """The one device of all tensors among the operands. LaunchError for two."""
    found: Device | None = None
    for value in operands:
        if type(value) is Tensor:
            device = value._cell.value.device
            if found is None:
                found = device
            elif device is not found:
                raise mixed_devices(name, found, device)
    if found is None:
        from treadle.runtime.devices import default_device

        return default_device()
    return found


def mixed_devices(name: str, one: Device, other: Device) -> LaunchError:
    """The error for tensors on two devices."""
    return LaunchError(
        f"{name}: one tensor is on {one.id}, another on {other.id}: move one of them, as in "
        f'x.to("{one.id}")'
    )


def prepare(
    name: str, operands: Sequence[Any], device: Device | None = None
) -> tuple[Device, DType, list[Any]]:
    """The device and the common dtype of operands, and the operands as nodes (numbers as they
    are, made Python's)."""
    if device is None:
        device = device_of(name, operands)
    dtype: DType | None = None
    found: list[Any] = []
    numbers: list[Any] = []
    for value in operands:
        if type(value) is not Tensor and is_number(value):
            number = as_python(value)
            numbers.append(number)
            found.append(number)
            continue
        node = node_of(name, value, device)
        found.append(node)
        if dtype is None:
            dtype = node.dtype
        elif dtype is not node.dtype:
            dtype = promote(dtype, node.dtype)
    if dtype is None:
        raise TypeError(f"{name} takes at least one array: these are all Python numbers")
    for number in numbers:
        dtype = promote_scalar(dtype, number, device)
    return device, dtype, found


def alike(operands: Sequence[Any]) -> tuple[Node, ...] | None:
    """One or two operands as nodes, if there is nothing to do: they have one dtype, shape and
    device, or one of them is a number that changes none of them. This is what most operations meet,
    so it is quick."""
    x = operands[0]
    if len(operands) == 1:
        return (x._node,) if type(x) is Tensor and type(x.dtype) is DType else None
    y = operands[1]
    if type(x) is Tensor:
        one = x._node
        if type(y) is Tensor:
            other = y._node
            if (
                one.dtype is other.dtype
                and one.shape == other.shape
                and one.device is other.device
                and type(one.dtype) is DType
            ):
                return one, other
            return None
        number = _number_beside(one, y)
        return (one, number) if number is not None else None
    if type(y) is Tensor:
        other = y._node
        number = _number_beside(other, x)
        return (number, other) if number is not None else None
    return None


def _number_beside(node: Node, value: Any) -> Node | None:
    """A Python number as a constant of a node's dtype and shape, if it clearly fits there."""
    dtype, kind = node.dtype, type(value)
    if type(dtype) is DType and (
        (dtype.kind == "float" and (kind is float or kind is int))
        or (kind is int and dtype.kind == "int" and -128 <= value < 128)
    ):
        number = float_as(value, dtype.itemsize) if dtype.kind == "float" else value
        return Node(CONSTANT, (), node.shape, dtype, node.device, number)
    return None


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
    return int(value) if isinstance(value, int) else int(cast_number(value, dtype))


_FLOAT32_END = 3.4028235677973366e38  # what is rounded to float32 from here on is infinite


def float_as(value: float, itemsize: int) -> float:
    """A Python number as a float of so many bytes, which may be infinite."""
    try:
        number = float(value)
    except OverflowError:  # an integer
        return math.inf if value > 0 else -math.inf
    if itemsize > 4 or -_FLOAT32_END < number < _FLOAT32_END or number != number:
        return number
    return math.copysign(math.inf, number)


def as_nodes(
    found: Sequence[Any], dtype: DType, shape: tuple[int, ...], device: Device
) -> tuple[Node, ...]:
    """Operands as nodes of one dtype and shape."""
    return tuple(
        [
            shaped(cast(value, dtype), shape)
            if type(value) is Node
            else constant(number_as(value, dtype), shape, dtype, device)
            for value in found
        ]
    )


def values_for(value: Any, target: Tensor) -> Node:
    """What is written into a tensor: `values_of` its shape, dtype and device."""
    return values_of(value, target.shape, target.dtype, target.device)


def values_of(value: Any, shape: tuple[int, ...], dtype: DType, device: Device) -> Node:
    """A number or an array, broadcast to a shape and cast to a dtype, as a node that is in no
    cell."""
    from treadle.graph import kinds

    if type(value) is not Tensor and is_number(value):
        number = as_python(value)
        if isinstance(number, complex) and dtype.kind != "complex":
            raise DtypeError(f"{dtype} elements have no imaginary parts, and {number} is complex")
        if isinstance(number, int):
            check_fits(number, dtype)
        return constant(number_as(number, dtype), shape, dtype, device)
    if type(value) is Tensor and value.device is not device:
        raise mixed_devices("writing into a tensor", device, value.device)
    if type(value) is not Tensor:
        from treadle.tensor.creation import asarray

        value = asarray(value, dtype=dtype, device=device)
    node = node_of("writing into a tensor", value, device)
    if node.dtype.kind == "complex" and dtype.kind != "complex":
        raise DtypeError(
            f"{node.dtype} does not fit into a tensor of {dtype}, which would drop the imaginary "
            "parts: write td.real(x)"
        )
    if len(node.shape) > len(shape):  # extents of 1 in front are dropped, as NumPy does
        extra = len(node.shape) - len(shape)
        if all(extent == 1 for extent in node.shape[:extra]):
            view = views.squeeze(views.whole(node.shape), tuple(range(extra)))
            node = view_of(node, view)
    if common_shape("writing into a tensor", (shape, node.shape)) != shape:
        raise ShapeError(
            f"an array of shape {node.shape} does not fit a part of shape {shape}: it would have "
            "to be broadcast to the part's shape"
        )
    made = shaped(cast(node, dtype), shape)
    if made.op in (kinds.VIEW, kinds.COMPUTED) or made is node:
        made = Node(kinds.COPY, (made,), shape, dtype, device)
    return made
