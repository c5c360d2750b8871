"""The operands of operations, brought to one device, one dtype and one shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, ShapeError
from treadle.core.sizes import Size
from treadle.graph import views
from treadle.graph.node import COMPUTED, CONSTANT, COPY, VIEW, Node, constant, view_of
from treadle.runtime.devices import Device
from treadle.tensor.conversions import (
    as_python,
    cast,
    common_shape,
    device_of,
    float_as,
    is_number,
    mixed_devices,
    number_as,
    shaped,
)
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import check_fits, promote, promote_scalar
from treadle.tensor.tensor import Tensor

_PYTHON_NUMBERS = (bool, int, float, complex)


def node_of(name: str, value: Any, device: Device) -> Node:
    """The node of an operand that is a tensor, or is converted to one on this device."""
    if type(value) is Tensor:
        node = value._node
        if type(node.dtype) is not DType:
            raise DtypeError(f"{name}: there is no arithmetic on structs ({node.dtype})")
        return node
    if isinstance(value, (np.ndarray, list, tuple)) or hasattr(value, "__dlpack__"):
        return asarray(value, device=device)._node
    raise TypeError(f"{name} takes tensors, NumPy arrays and numbers, not {type(value).__name__}")


def operand(name: str, x: Any) -> Tensor:
    """An argument as a tensor. TypeError if it is not an array."""
    if type(x) is Tensor:
        return x
    if isinstance(x, (np.ndarray, list, tuple)) or is_number(x) or hasattr(x, "__dlpack__"):
        return asarray(x)
    raise TypeError(f"{name} takes a tensor, not {type(x).__name__}{_method(name, x)}")


def _method(name: str, x: Any) -> str:
    """What to write for something that is not a tensor, but has functions of tensors as methods."""
    kind = type(x)
    has = hasattr(kind, "__treadle_function__") and hasattr(kind, name)
    return f": x.{name}(…) is a method of it" if has else ""


def prepare(
    name: str, operands: Sequence[Any], device: Device | None = None
) -> tuple[Device, DType, list[Any]]:
    """The device and the common dtype of operands, and the operands as nodes (numbers as Python
    numbers)."""
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


def matching_nodes(operands: Sequence[Any]) -> tuple[Node, ...] | None:
    """A fast path for the usual case: one or two operands as nodes if they have one dtype, shape
    and device, or if one is a number that changes none of these. None otherwise."""
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
        number = _number_like(one, y)
        return (one, number) if number is not None else None
    if type(y) is Tensor:
        other = y._node
        number = _number_like(other, x)
        return (number, other) if number is not None else None
    return None


def _number_like(node: Node, value: Any) -> Node | None:
    """A Python number as a constant of a node's dtype and shape, if it clearly fits the dtype."""
    dtype, kind = node.dtype, type(value)
    if type(dtype) is DType and (
        (dtype.kind == "float" and (kind is float or kind is int or kind is Size))
        or (kind is int and dtype.kind == "int" and -128 <= value < 128)
    ):
        number = float_as(value, dtype.itemsize) if dtype.kind == "float" else value
        return Node(CONSTANT, (), node.shape, dtype, node.device, number)
    return None


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
    """A value to write into a tensor: `values_of` for its shape, dtype and device."""
    return values_of(value, target.shape, target.dtype, target.device)


def values_of(value: Any, shape: tuple[int, ...], dtype: DType, device: Device) -> Node:
    """A number or an array, broadcast to a shape and cast to a dtype, as a node that is in no
    cell."""
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
    if made.op in (VIEW, COMPUTED) or made is node:
        made = Node(COPY, (made,), shape, dtype, device)
    return made
