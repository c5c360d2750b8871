"""Python's operators on tensors: `x + y`, `2 - x`, `x += y`, `x < y`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.errors import DtypeError, ShapeError
from treadle.tensor.conversions import cast, is_number
from treadle.tensor.dtypes import RANK
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor

# The name of the special method without underscores: the function.
BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "pow", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip
# What people write for them.
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "eq": "==", "ne": "!=",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_REFLECTED = {name: f"__r{name}__" for name in BINARY} | {
    "eq": "__eq__", "ne": "__ne__", "lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__",
}  # fmt: skip
UNARY = {"neg": "negative", "abs": "abs", "invert": "bitwise_invert"}


def is_operand(value: Any) -> bool:
    """Whether an operator takes this on its other side."""
    return type(value) is Tensor or is_number(value) or isinstance(value, (np.ndarray, list, tuple))


def unsupported(symbol: str, tensor: Tensor, other: Any, reflected: str = "") -> Any:
    """The result of an operator for something that is not an operand: NotImplemented, so that
    Python asks the other side, which may support it. TypeError for another library's array, which
    is asked here, by its reflected method if it has not been: it says what to convert."""
    if symbol == "*" and isinstance(other, (str, bytes, bytearray)):
        # A sequence would take the tensor as a number of repetitions, with a misleading error.
        kinds = f"'{type(tensor).__name__}' and '{type(other).__name__}'"
        raise TypeError(f"unsupported operand type(s) for *: {kinds}")
    if not hasattr(type(other), "__dlpack__"):
        return NotImplemented
    ask = getattr(type(other), reflected, None)
    if ask is not None:
        with contextlib.suppress(TypeError):
            found = ask(other, tensor)
            if found is not NotImplemented:
                return found
    library = type(other).__module__.partition(".")[0]
    if library == "treadle":
        where = ".".join(type(other).__module__.split(".")[:2])
        raise TypeError(
            f"{symbol} of a tensor of treadle and a {where}.{type(other).__name__}, which both "
            "define it: y.td is a tensor of treadle"
        )
    raise TypeError(
        f"{symbol} takes no {library}.{type(other).__name__} beside a tensor of treadle, as both "
        "libraries define it: make a tensor of it by td.asarray(y, device=x.device), or convert "
        f"the tensor by {library}'s from_dlpack(x)"
    )


def _binary(name: str, symbol: str, reflected: str) -> Callable[[Tensor, Any], Any]:
    def method(self: Tensor, other: Any) -> Any:
        if is_operand(other):
            return apply(name, self, other)
        return unsupported(symbol, self, other, reflected)

    return method


def _reflected(name: str, symbol: str) -> Callable[[Tensor, Any], Any]:
    def method(self: Tensor, other: Any) -> Any:
        return apply(name, other, self) if is_operand(other) else unsupported(symbol, self, other)

    return method


def _in_place(name: str) -> Callable[[Tensor, Any], Any]:
    def method(self: Tensor, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented  # Python tries the operator that is not in place
        result = apply(name, self, other)
        if self._is_kept_by(result):
            old = self.copied()
            result = apply(name, old, old if other is self else other)
        node = result._node
        if node.shape != self.shape:
            raise ShapeError(
                f"{name} in place: the result has shape {node.shape}, and {self.shape} is written "
                "to: only the right side is broadcast"
            )
        if node.dtype is not self.dtype:
            if RANK[node.dtype.kind] > RANK[self.dtype.kind]:
                raise DtypeError(
                    f"{name} in place: the result is {node.dtype}, which does not fit into "
                    f"{self.dtype}: write x = x … instead, or cast the right side"
                )
            node = cast(node, self.dtype)
        self._write(node)
        return self

    return method


def _unary(name: str) -> Callable[[Tensor], Tensor]:
    return lambda self: apply(name, self)


def _positive(self: Tensor) -> Tensor:
    return self.copied()


def named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A special method with its name, which errors show."""
    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    return method


_METHODS: dict[str, Callable[..., Any]] = {
    **{
        f"__{short}__": _binary(name, SYMBOLS[short], _REFLECTED[short])
        for short, name in (BINARY | COMPARISONS).items()
    },
    **{f"__r{short}__": _reflected(name, SYMBOLS[short]) for short, name in BINARY.items()},
    **{f"__i{short}__": _in_place(name) for short, name in BINARY.items()},
    **{f"__{short}__": _unary(name) for short, name in UNARY.items()},
    "__pos__": _positive,
}
# By their names in the class (`method_table`).
OPERATORS = {name: named(method, name) for name, method in _METHODS.items()}
