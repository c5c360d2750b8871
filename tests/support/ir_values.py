"""Values and memory of the reference evaluator: bytes in, Python numbers and tuples out."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.ir import arithmetic
from treadle.ir import nodes as n
from treadle.ir import types as t


class EvaluationError(Exception):
    """The kernel did what no kernel may do."""


# --- memory --------------------------------------------------------------------------------------


def bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    if not array.flags.c_contiguous:
        raise EvaluationError("buffers are contiguous arrays")
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(bytearray())


class Bytes:
    """A memory: bytes, read and written as typed values."""

    def __init__(self, name: str, data: memoryview) -> None:
        self.name = name
        self.data = data

    def read(self, offset: int, type: t.Type) -> Any:
        match type:
            case t.Scalar():
                size = type.bits // 8
                self.require(offset, size)
                bits = int.from_bytes(self.data[offset : offset + size], "little")
                return arithmetic.from_bits(bits, type)
            case t.Struct():
                return tuple(
                    self.read(offset + t.field_offset(type, f.name), f.type) for f in type.fields
                )
            case t.Vector() | t.Array():
                step = t.size_of(type.element)
                return tuple(self.read(offset + step * i, type.element) for i in _range(type))
        raise EvaluationError(f"{type} cannot lie in memory")

    def write(self, offset: int, type: t.Type, value: Any) -> None:
        match type:
            case t.Scalar():
                size = type.bits // 8
                self.require(offset, size)
                bits = arithmetic.to_bits(value, type)
                self.data[offset : offset + size] = bits.to_bytes(size, "little")
            case t.Struct():
                for part, f in zip(value, type.fields, strict=True):
                    self.write(offset + t.field_offset(type, f.name), f.type, part)
            case t.Vector() | t.Array():
                step = t.size_of(type.element)
                for i in _range(type):
                    self.write(offset + step * i, type.element, value[i])

    def require(self, offset: int, size: int) -> None:
        if offset < 0 or offset + size > len(self.data):
            raise EvaluationError(
                f"an unchecked access of bytes {offset} to {offset + size} "
                f"of {self.name!r}, which has {len(self.data)}"
            )


def _range(type: t.Vector | t.Array) -> range:
    return range(type.count if isinstance(type, t.Vector) else type.length)


def owned_memories(memories: tuple[n.Memory, ...], space: str, dynamic: int) -> dict[str, Bytes]:
    sizes = {
        memory.name: dynamic if memory.length is None else t.size_of(memory.element) * memory.length
        for memory in memories
        if memory.space == space
    }
    return {
        name: Bytes(name, memoryview(bytearray(b"\xa5" * size))) for name, size in sizes.items()
    }


def zero(type: t.Type) -> Any:
    """The value of which every bit is zero."""
    match type:
        case t.Scalar():
            return arithmetic.from_bits(0, type)
        case t.Struct():
            return tuple(zero(f.type) for f in type.fields)
        case t.Vector() | t.Array():
            return tuple(zero(type.element) for _ in _range(type))
    return None


# --- values --------------------------------------------------------------------------------------


def combine(op: str, left: Any, right: Any, type: t.Type) -> Any:
    if isinstance(type, t.Vector):
        return tuple(combine(op, a, b, type.element) for a, b in zip(left, right, strict=True))
    assert isinstance(type, t.Scalar)
    if op in n.INTRINSICS:
        return arithmetic.intrinsic(op, (left, right), type)
    return arithmetic.binary(op, left, right, type)


def exact_or_close(op: str, operands: tuple[Any, ...], type: t.Scalar) -> Any:
    exact = arithmetic.intrinsic(op, operands, type)
    if exact is not None:
        return exact
    with np.errstate(all="ignore"):
        result = _APPROXIMATE[op](*(np.float64(operand) for operand in operands))
    return arithmetic.round_float(float(result), type)


_APPROXIMATE: dict[str, Any] = {
    "fast_rsqrt": lambda a: 1 / np.sqrt(a),
    "fast_exp": np.exp,
    "fast_exp2": np.exp2,
    "fast_log": np.log,
    "fast_log2": np.log2,
    "fast_sin": np.sin,
    "fast_cos": np.cos,
    "fast_tan": np.tan,
    "fast_tanh": np.tanh,
    "fast_pow": np.power,
}


def scalar_of(type: t.Type) -> t.Scalar:
    element = type.element if isinstance(type, t.Vector) else type
    assert isinstance(element, t.Scalar)
    return element


def each_part(function: Any, value: Any, type: t.Type) -> Any:
    if isinstance(type, t.Vector):
        return tuple(function(part, type.element) for part in value)
    return function(value, type)


def position_of(type: t.Type, name: str) -> int:
    if isinstance(type, t.Vector):
        return t.COMPONENTS.index(name)
    assert isinstance(type, t.Struct)
    return [f.name for f in type.fields].index(name)


def path_of(place: n.Place) -> list[n.Place]:
    path: list[n.Place] = [place]
    while isinstance(path[0], (n.Member, n.Item)):
        path.insert(0, path[0].base)
    return path


def replaced(whole: Any, steps: list[int | None], value: Any) -> Any:
    if not steps:
        return value
    position = steps[0]
    assert position is not None
    if not 0 <= position < len(whole):
        raise EvaluationError("an unchecked write outside of an array in a struct")
    parts = list(whole)
    parts[position] = replaced(parts[position], steps[1:], value)
    return tuple(parts)
