"""Python's operators on tensors.

Two tensors of one dtype, and floating tensors with numbers, take the short way: no promotion, no
table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import treadle as td
from treadle.core.errors import TreadleError
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.operators import OPERATORS as THEIRS
from treadle.torch import adapting
from treadle.torch.errors import kind_of, translated
from treadle.torch.operations import arithmetic, indexing, pointwise
from treadle.torch.tensors import Tensor, keep, unwrapped, wrap

_OPERANDS = (Tensor, bool, int, float, complex, np.generic)


def _as_operand(value: Any) -> Any:
    """What an operator takes on its other side, NumPy's arrays as tensors; None for the rest."""
    if isinstance(value, np.ndarray):
        return wrap(td.asarray(value, device="cpu"))
    return value if isinstance(value, _OPERANDS) else None


_NUMERIC = frozenset({"int", "uint", "float", "complex"})
_FLOATS = frozenset({"float", "complex"})
_ANY = _NUMERIC | {"bool"}
_BITS = frozenset({"bool", "int", "uint"})
_REAL = frozenset({"float"})  # integers that are divided are looked at first

# The special method: the name in treadle, for which kinds of one dtype it means the same, the
# function in general.
_BINARY: dict[str, tuple[str, frozenset[str], Callable[..., Any]]] = {
    "add": ("add", _ANY, arithmetic.add),
    "sub": ("subtract", _NUMERIC, arithmetic.sub),
    "mul": ("multiply", _ANY, arithmetic.mul),
    "truediv": ("divide", _FLOATS, arithmetic.div),
    "floordiv": ("floor_divide", _REAL, arithmetic.floor_divide),
    "mod": ("remainder", _REAL, arithmetic.remainder),
    "pow": ("pow", _FLOATS, arithmetic.pow),
    "and": ("bitwise_and", _BITS, pointwise.FUNCTIONS["bitwise_and"]),
    "or": ("bitwise_or", _BITS, pointwise.FUNCTIONS["bitwise_or"]),
    "xor": ("bitwise_xor", _BITS, pointwise.FUNCTIONS["bitwise_xor"]),
    "lshift": ("", _BITS, arithmetic.bitwise_left_shift),
    "rshift": ("", _BITS, arithmetic.bitwise_right_shift),
}
_COMPARISONS = {
    "eq": ("equal", _ANY), "ne": ("not_equal", _ANY), "lt": ("less", _ANY),
    "le": ("less_equal", _ANY), "gt": ("greater", _ANY), "ge": ("greater_equal", _ANY),
}  # fmt: skip


def _is_plain(own: str, kinds: frozenset[str], kind: type, number: Any) -> bool:
    """Whether an operation on a tensor of a kind and a number needs no promotion."""
    if own == "float":
        return True
    return own == "int" and kind is int and own in kinds and -128 <= number < 128


def _unsupported(short: str, tensor: Tensor, other: Any, *, asks: bool) -> Any:
    """NotImplemented, so that Python asks the other side. TypeError for another library's array,
    which has been asked: it says what to convert."""
    if not hasattr(type(other), "__dlpack__"):
        return NotImplemented
    ask = getattr(type(other), f"__r{short}__", None) if asks else None
    if ask is not None:
        with contextlib.suppress(TypeError):
            found = ask(other, tensor)
            if found is not NotImplemented:
                return found
    way = "torch.wrap(y)" if isinstance(other, td.Tensor) else "torch.from_dlpack(y)"
    raise TypeError(
        f"{_SYMBOLS.get(short, short)} of a tensor of treadle.torch and a {kind_of(other)}, which "
        f"both define it: {way} makes a tensor of treadle.torch"
    )


_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "matmul": "@", "eq": "==",
    "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


def _binary(short: str, name: str, kinds: frozenset[str], function: Callable[..., Any]) -> Any:
    general = adapting.adapted(function)

    def method(self: Tensor, other: Any) -> Any:
        one, kind = self._inner, type(other)
        if kind is Tensor:
            two = other._inner
            dtype = one.dtype
            if dtype is two.dtype and name and dtype.kind in kinds:
                try:
                    return wrap(apply(name, one, two))
                except TreadleError as error:
                    if one.device is two.device:
                        raise translated(error) from None
        elif kind is float or kind is int:
            if name and _is_plain(one.dtype.kind, kinds, kind, other):
                return wrap(apply(name, one, other))
        elif (operand := _as_operand(other)) is None:
            return _unsupported(short, self, other, asks=True)
        else:
            other = operand
        return general(self, other)

    return method


def _reflected(short: str, name: str, kinds: frozenset[str], function: Callable[..., Any]) -> Any:
    general = adapting.adapted(function)

    def method(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if kind is float or kind is int:
            one = self._inner
            if name and _is_plain(one.dtype.kind, kinds, kind, other):
                return wrap(apply(name, other, one))
        operand = _as_operand(other)
        if operand is None:
            return _unsupported(short, self, other, asks=False)
        return general(operand, self)

    return method


def _in_place(short: str, name: str, kinds: frozenset[str], function: Callable[..., Any]) -> Any:
    general = adapting.in_place(function)
    quick = THEIRS[f"__i{short}__"]

    def method(self: Tensor, other: Any) -> Any:
        one, kind = self._inner, type(other)
        if kind is Tensor:
            two = other._inner
            if one.dtype is two.dtype and name and one.dtype.kind in kinds:
                try:
                    quick(one, two)
                except TreadleError as error:
                    if one.device is two.device:
                        raise translated(error) from None
                else:
                    return self
        elif kind is float or kind is int:
            if name and _is_plain(one.dtype.kind, kinds, kind, other):
                try:
                    quick(one, other)
                except TreadleError as error:
                    raise translated(error) from None
                return self
        elif (other := _as_operand(other)) is None:
            return NotImplemented
        return general(self, other)

    return method


def _item(self: Tensor) -> Any:
    if self._inner.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return self._inner.item()


def _bool(self: Tensor) -> bool:
    if self._inner.size != 1:
        what = "more than one value" if self._inner.size else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(self._inner.item())


def _index(self: Tensor) -> int:
    inner = self._inner
    if inner.size != 1 or inner.dtype.kind not in ("int", "uint", "bool"):
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(inner.item())


def _iter(self: Tensor) -> Iterator[Tensor]:
    if not self._inner.shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter([wrap(self._inner[index]) for index in range(len(self._inner))])


def _len(self: Tensor) -> int:
    if not self._inner.shape:
        raise TypeError("len() of a 0-d tensor")
    return self._inner.shape[0]


def _contains(self: Tensor, element: Any) -> bool:
    if not isinstance(element, _OPERANDS):
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )
    return bool(td.any((self == element)._inner).item())


def _getitem(self: Tensor, index: Any) -> Tensor:
    try:
        return wrap(indexing.getitem(self._inner, unwrapped(index)))
    except TreadleError as error:
        raise translated(error) from None


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    try:
        indexing.setitem(self._inner, unwrapped(index), unwrapped(value))
    except TreadleError as error:
        raise translated(error) from None


def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    from treadle.torch.printing import text

    return text(self, tensor_contents)


def _format(self: Tensor, spec: str) -> str:
    if not self._inner.shape:
        return format(self._inner.item(), spec)
    return object.__format__(self, spec)


def _array_wrap(
    self: Tensor, array: Any, context: Any = None, return_scalar: bool = False
) -> Tensor:
    """What NumPy's functions make of a tensor, as a tensor."""
    return wrap(td.asarray(array, device=self._inner.device))


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    inner = self._inner
    if inner.requires_grad:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    return inner.__array__(dtype, copy)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    known = memo.get(id(self))
    if known is not None:
        return known
    if not self._inner.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment: copy x.detach(), or use x.clone()"
        )
    made: Tensor = object.__new__(type(self))
    made._inner = memo[id(self._inner)] = self._inner.__deepcopy__(memo)
    made.__dict__.update(self.__dict__)
    memo[id(self)] = made
    return keep(made)


def _dlpack(self: Tensor, **options: Any) -> Any:
    return self._inner.__dlpack__(**options)


def _reduce(self: Tensor, protocol: Any) -> tuple[Any, ...]:
    return wrap, (self._inner,)


_OLD = {"div": _BINARY["truediv"]}  # names that PyTorch still has
OPERATORS: dict[str, Any] = {
    **{f"__{name}__": _binary(name, *each) for name, each in (_BINARY | _OLD).items()},
    **{f"__r{name}__": _reflected(name, *each) for name, each in (_BINARY | _OLD).items()},
    **{f"__i{name}__": _in_place(name, *each) for name, each in _BINARY.items()},
    **{
        f"__{name}__": _binary(name, *each, pointwise.FUNCTIONS[name])
        for name, each in _COMPARISONS.items()
    },
    "__matmul__": _binary("matmul", "", _NUMERIC, arithmetic.matmul),
    "__rmatmul__": _reflected("matmul", "", _NUMERIC, arithmetic.matmul),
    "__imatmul__": adapting.in_place(arithmetic.matmul),
    "__neg__": adapting.adapted(pointwise.FUNCTIONS["neg"]),
    "__pos__": adapting.adapted(pointwise.positive),
    "__abs__": adapting.adapted(pointwise.FUNCTIONS["abs"]),
    "__invert__": adapting.adapted(pointwise.FUNCTIONS["bitwise_not"]),
    "__bool__": _bool,
    "__float__": lambda self: float(_item(self)),
    "__int__": lambda self: int(_item(self)),
    "__complex__": lambda self: complex(_item(self)),
    "__index__": _index,
    "__len__": _len,
    "__iter__": _iter,
    "__contains__": _contains,
    "__reversed__": lambda self: wrap(td.flip(self._inner, axis=0) if self._inner.shape
                                      else self._inner),
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "__repr__": _repr,
    "__format__": _format,
    "__array__": _array,
    "__array_wrap__": _array_wrap,
    "__deepcopy__": _deepcopy,
    "__dlpack__": _dlpack,
    "__dlpack_device__": lambda self: self._inner.__dlpack_device__(),
    "__reduce_ex__": _reduce,
}  # fmt: skip
