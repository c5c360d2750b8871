"""What is known of an integer across the threads of a block: its multiple and its offsets.

Thread indices are known numbers once the block's extent is, so arithmetic on them can simply be
done for every thread. That tells exactly what no rule about syntax could: that `thread_idx.x // 32`
or `(block_idx.x * 256 + thread_idx.x) >> 5` is one value in each warp, and that `lane & 16` is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from treadle.core.dim3 import Dim3
from treadle.ir.types import Scalar, Type

Offsets = npt.NDArray[Any]  # int64 or bool, one a thread, x fastest


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Thread t has the value `multiple * k + offsets[t]`, for one unknown k of the whole block.

    A multiple of 0 says that the values are known outright. Sums of indices are taken not to
    leave their type's range, as in every kernel whose indices mean what they say.
    """

    multiple: int
    offsets: Offsets
    positive: bool = True  # k is known not to be negative

    def same_as(self, other: Pattern | None) -> bool:
        """Whether both say the same."""
        return (
            other is not None
            and self.multiple == other.multiple
            and self.positive == other.positive
            and (self.offsets is other.offsets or np.array_equal(self.offsets, other.offsets))
        )

    def is_uniform_in_warps(self, width: int) -> bool:
        """Whether each run of `width` threads (the last may be shorter) has one value."""
        starts = self.offsets[np.arange(len(self.offsets)) // width * width]
        return bool(np.array_equal(self.offsets, starts))


def constant(value: int, block: Dim3) -> Pattern:
    """The same known value in every thread."""
    return Pattern(0, np.full(block.count, value))


def anything(block: Dim3, positive: bool = False) -> Pattern:
    """The same unknown value in every thread."""
    return Pattern(1, np.zeros(block.count, np.int64), positive)


def thread_index(block: Dim3, axis: int) -> Pattern:
    """thread_idx of an axis."""
    strides = (1, block.x, block.x * block.y)
    return Pattern(0, np.arange(block.count) // strides[axis] % block[axis])


def lane_index(block: Dim3, width: int) -> Pattern:
    """The lane in its warp: threads are numbered x fastest."""
    return Pattern(0, np.arange(block.count) % width)


def binary(op: str, left: Pattern, right: Pattern, type: Type) -> Pattern | None:
    """The pattern of `left op right`, or None if nothing useful is known of it."""
    if op in _EXACT and left.multiple == right.multiple == 0:
        return Pattern(0, _wrapped(_EXACT[op](left.offsets, right.offsets), type))
    if op in ("add", "sub"):
        offsets = _EXACT[op](left.offsets, right.offsets)
        positive = left.positive and right.positive and (op == "add" or right.multiple == 0)
        return Pattern(gcd(left.multiple, right.multiple), offsets, positive)
    if op in ("mul", "shl"):
        return _product(op, left, right)
    if op in ("div", "floordiv", "rem", "mod", "shr", "and"):
        return _split(op, left, right)
    return None


def negated(operand: Pattern) -> Pattern | None:
    """Logical not."""
    return Pattern(0, ~operand.offsets) if operand.offsets.dtype == np.bool_ else None


def cast(operand: Pattern, type: Type) -> Pattern | None:
    """The pattern as another scalar type."""
    if not isinstance(type, Scalar) or type.is_float:
        return None
    if operand.multiple == 0:
        return Pattern(0, _wrapped(operand.offsets, type))
    return operand if type.bits >= 32 and type.kind != "bool" else None


def _wrapped(values: Offsets, type: Type) -> Offsets:
    if not isinstance(type, Scalar) or type.kind == "bool":
        return values.astype(np.bool_)
    values = values.astype(np.int64)
    if type.bits >= 64:
        return values
    values = values & ((1 << type.bits) - 1)
    if type.kind == "int":
        values = np.where(values >> (type.bits - 1), values - (1 << type.bits), values)
    return values


def _one_value(pattern: Pattern) -> int | None:
    """The value, if it is known and the same in every thread."""
    if pattern.multiple or not len(pattern.offsets):
        return None
    first = pattern.offsets[0]
    return int(first) if bool((pattern.offsets == first).all()) else None


def _product(op: str, left: Pattern, right: Pattern) -> Pattern | None:
    if op == "mul" and _one_value(right) is None:
        left, right = right, left
    factor = _one_value(right)
    if factor is None or (op == "shl" and not 0 <= factor < 31):
        return None
    factor = factor if op == "mul" else 1 << factor
    positive = left.positive and factor >= 0
    return Pattern(abs(left.multiple * factor), left.offsets * factor, positive)


def _split(op: str, left: Pattern, right: Pattern) -> Pattern | None:
    """Quotients and remainders by a divisor that divides the unknown part."""
    if op in ("div", "rem") and not left.positive:
        return None  # they round towards zero, which changes direction within a warp
    divisor = _one_value(right)
    if divisor is None:
        return None
    if op == "shr":
        divisor = 1 << divisor if 0 <= divisor < 31 else 0
    if op == "and":
        divisor = divisor + 1 if divisor & (divisor + 1) == 0 else 0  # a mask of low bits
    if divisor <= 0 or left.multiple % divisor:
        return None
    if op in ("div", "floordiv", "shr"):
        return Pattern(left.multiple // divisor, left.offsets // divisor, left.positive)
    return Pattern(0, left.offsets % divisor)


def _division(function: Callable[[Offsets, Offsets], Offsets]) -> Any:
    """Division as the IR has it: 0 for a divisor of 0."""
    return lambda a, b: np.where(b == 0, 0, function(a, np.where(b == 0, 1, b)))


def _truncated(a: Offsets, b: Offsets) -> Offsets:
    quotient: Offsets = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return quotient


_EXACT: dict[str, Callable[[Offsets, Offsets], Offsets]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "div": _division(_truncated), "rem": _division(lambda a, b: a - _truncated(a, b) * b),
    "floordiv": _division(np.floor_divide), "mod": _division(np.mod),
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or,
}  # fmt: skip
