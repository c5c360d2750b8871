"""Python's operators on arrays and elements.

Two arrays of one dtype, and an array with a number of its kind, take the short way: no promotion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

import treadle as td
from treadle.graph.placeholders import within
from treadle.numpy import printing, promotion, ufuncs
from treadle.numpy.adapting import put
from treadle.numpy.arrays import (
    HELD,
    Values,
    is_read_at_once,
    ndarray,
    result_of,
    scalar,
    unwrapped,
    value_of,
    wrap,
)
from treadle.numpy.operations import indexing, products
from treadle.numpy.operations.calling import SCALARS, call, call_all
from treadle.numpy.operations.elementwise import SAME, direct_of
from treadle.tensor.compiled.tracing import is_tracing
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor as Inner

BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
    "divmod": "divmod",
}  # fmt: skip
COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip
UNARY = {"neg": "negative", "abs": "absolute", "invert": "invert", "pos": "positive"}
_OPERANDS = (bool, int, float, complex, np.generic, np.ndarray, list, tuple)


def _values(found: tuple[Inner, ...]) -> Any:
    return tuple([value_of(each) for each in found]) if len(found) > 1 else value_of(found[0])


def _binary(name: str, *, is_reflected: bool = False) -> Callable[[Values, Any], Any]:
    """The method of a ufunc of two operands."""
    theirs, direct, floating, integral = direct_of(name)
    has_squares = name == "power" and not is_reflected

    def method(self: Values, other: Any) -> Any:
        one, kind = self._inner, type(other)
        if kind in HELD:
            two = other._inner
            if one.dtype is two.dtype and one.dtype.name in direct:
                return result_of(apply(theirs, one, two))
        elif (kind is float and one.dtype.name in floating) or (
            kind is int and (one.dtype.name in integral or one.dtype.name in floating)
        ):
            return result_of(
                apply(theirs, other, one) if is_reflected else apply(theirs, one, other)
            )
        elif SCALARS.get(kind) == one.dtype.name and one.dtype.name in direct:
            two = other.item()
            return result_of(apply(theirs, two, one) if is_reflected else apply(theirs, one, two))
        elif not isinstance(other, _OPERANDS):
            return NotImplemented
        elif has_squares and kind is int and other == 2:
            return _values(call_all("square", one))  # as NumPy: the dtype of bools differs
        two = other._inner if kind in HELD else other
        return _values(call_all(name, two, one) if is_reflected else call_all(name, one, two))

    return method


def _comparison(name: str) -> Callable[[Values, Any], Any]:
    method = _binary(name)
    is_equality = name in ("equal", "not_equal")
    if not is_equality:
        return method

    def compared(self: Values, other: Any) -> Any:
        found = method(self, other)
        # Nothing is equal to None or to text, as in NumPy.
        if found is NotImplemented and (other is None or type(other) is str):
            inner = self._inner
            different = name == "not_equal"
            return value_of(td.full(inner.shape, different, dtype=td.bool, device=inner.device))
        return found

    return compared


def _in_place(name: str) -> Callable[[ndarray, Any], Any]:
    theirs, direct, _, _ = direct_of(name)

    def method(self: ndarray, other: Any) -> Any:
        one, kind = self._inner, type(other)
        two = other._inner if kind in HELD else other
        if two.__class__ is Inner and two.dtype is one.dtype and one.dtype.name in direct:
            result = apply(theirs, one, two)
        elif isinstance(two, (Inner, *_OPERANDS)):
            result = call(name, one, two)
        else:
            return NotImplemented
        if result.shape != one.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {one.shape} doesn't match the "
                f"broadcast shape {result.shape}"
            )
        if result.dtype is not one.dtype:
            promotion.check_cast(result.dtype, one.dtype, "same_kind", f"ufunc '{name}' output")
        one[...] = result
        return self

    return method


def _matmul(self: Values, other: Any) -> Any:
    if type(other) is ndarray:
        return result_of(products.matmul(self._inner, other._inner))
    if isinstance(other, (Values, *_OPERANDS)):
        return value_of(products.matmul(self._inner, unwrapped(other)))
    return NotImplemented


def _rmatmul(self: Values, other: Any) -> Any:
    if isinstance(other, (Values, *_OPERANDS)):
        return value_of(products.matmul(unwrapped(other), self._inner))
    return NotImplemented


def _imatmul(self: ndarray, other: Any) -> Any:
    return put(self, products.matmul(self._inner, unwrapped(other)), "matmul")


def _unary(name: str) -> Callable[[Values], Any]:
    theirs = SAME[name]

    def method(self: Values) -> Any:
        inner = self._inner
        if inner.dtype.kind == "float":
            return result_of(apply(theirs, inner))
        return value_of(call(name, inner))

    return method


def _number(self: Values) -> Any:
    if self._inner.shape:
        raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
    return self._inner.item()


def _bool(self: Values) -> bool:
    inner = self._inner
    if inner.size != 1:
        if inner.size == 0:
            raise ValueError(
                "The truth value of an empty array is ambiguous. Use `array.size > 0` to check "
                "that an array is not empty."
            )
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Use a.any() or "
            "a.all()"
        )
    return bool(inner.item())


def _float(self: Values) -> float:
    number = _number(self)
    return number.real if isinstance(number, complex) else float(number)


def _int(self: Values) -> int:
    number = _number(self)
    return int(number.real if isinstance(number, complex) else number)


def _index(self: Values) -> int:
    if self._inner.shape or self._inner.dtype.kind not in ("int", "uint"):
        raise TypeError("only integer scalar arrays can be converted to a scalar index")
    return int(self._inner.item())


def _len(self: Values) -> int:
    if not self._inner.shape:
        raise TypeError("len() of unsized object")
    return self._inner.shape[0]


def _iter(self: Values) -> Iterator[Any]:
    inner = self._inner
    if not inner.shape:
        raise TypeError("iteration over a 0-d array")
    if len(inner.shape) > 1:
        return iter([wrap(inner[at]) for at in range(inner.shape[0])])
    if inner.requires_grad or within.get() is not None or is_tracing.get():
        return iter([value_of(inner[at].copied()) for at in range(inner.shape[0])])
    return _numbers(inner)


def _numbers(inner: Inner) -> Iterator[Any]:
    """The elements of a line as NumPy's scalars. They are read at once, and again after writes."""
    values, seen = inner.numpy(), inner._cell.value
    for at in range(inner.shape[0]):
        yield values[at] if inner._cell.value is seen else scalar(inner[at])


def _contains(self: Values, value: Any) -> bool:
    return bool(td.any(call("equal", self._inner, unwrapped(value))))


_PLAIN = frozenset({int, slice, type(None), type(Ellipsis)})
_BOUNDS = frozenset({int, type(None)})


def _is_plain_part(part: Any) -> bool:
    kind = type(part)
    if kind is slice:
        return (
            type(part.start) in _BOUNDS
            and type(part.stop) in _BOUNDS
            and type(part.step) in _BOUNDS
        )
    return kind in _PLAIN


def _is_plain(index: Any) -> bool:
    """Whether an index is of integers and slices, which need no checks here."""
    kind = type(index)
    if kind is int:
        return True
    if kind is tuple:
        return bool(index) and all(map(_is_plain_part, index))
    return kind is slice and _is_plain_part(index)


def _getitem(self: Values, index: Any) -> Any:
    inner = self._inner
    if type(self) is ndarray and _is_plain(index):
        found = inner[index]
        is_scalar = not found.shape and (type(index) is not tuple or Ellipsis not in index)
        return _element(found) if is_scalar else wrap(found)
    is_whole = index is Ellipsis or index is None or (type(index) is tuple and not index)
    if type(self) is not ndarray and not is_whole:
        raise IndexError("invalid index to scalar variable.")
    found, is_element = indexing.part(inner, unwrapped(index))
    return _element(found) if is_element else wrap(found)


def _element(place: Inner) -> Any:
    """What is at a place now."""
    return scalar(place) if is_read_at_once(place) else value_of(place.copied())


def _setitem(self: ndarray, index: Any, value: Any) -> None:
    inner, kind = self._inner, type(value)
    if inner.dtype.kind == "float" and _is_plain(index):
        # Numbers of the array's dtype are written as they are.
        if kind is float:
            inner[index] = value
            return
        if SCALARS.get(kind) == inner.dtype.name:
            inner[index] = value.item()
            return
    indexing.write(inner, unwrapped(index), unwrapped(value))


def _array(self: Values, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    found = self._inner.__array__(dtype, copy)
    if self._inner._locked and copy is not True:
        found.flags.writeable = False
    return found


_WRITABLE = 1  # PyBUF_WRITABLE of Python's buffers


def _buffer(self: Values, flags: int) -> memoryview:
    """The memory itself, for `memoryview`, `hashlib`, files (Python 3.12 and later ask for it)."""
    inner = self._inner
    if not inner.device.traits.host_memory:
        raise BufferError(
            f"this array's memory is of {inner.device}, where Python has no pointer to it: "
            "x.tobytes() copies it"
        )
    host = _array(self)
    if flags & _WRITABLE and not host.flags.writeable:
        raise BufferError("this array is read-only")
    try:
        return memoryview(host)  # type: ignore[arg-type]
    except ValueError:
        raise BufferError(
            f"Python's buffers have no {inner.dtype} elements: use x.tobytes()"
        ) from None


def _array_ufunc(
    self: Values, function: np.ufunc, method: str, *inputs: Any, **keywords: Any
) -> Any:
    """A ufunc of NumPy's itself on an array of this module: the ufunc of this module. What writes
    into an array of NumPy's own (`h += x`, `out=h`) is computed by NumPy, with the elements read.
    """
    outs = keywords.get("out", ())
    if any(isinstance(each, np.ndarray) for each in outs) or (
        method == "at" and isinstance(inputs[0], np.ndarray)
    ):
        return getattr(function, method)(*_read(inputs), **_read(keywords))
    if function.signature is not None:  # matmul and its like are functions here
        place = getattr(import_module("treadle.numpy"), function.__name__)
        return place(*inputs, **({**keywords, "out": outs[0]} if outs else keywords))
    found = getattr(ufuncs.named(function.__name__), method)
    if outs and len(outs) == 1:
        keywords["out"] = outs[0]
    return found(*inputs, **keywords)


def _array_function(
    self: Values, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    """A function of NumPy's itself on an array of this module: the function of this module, or
    TypeError if it has none. What writes into an array of NumPy's own is NumPy's."""
    written = [kwargs.get("out")]
    if function.__name__ in _WRITERS:
        written += [args[0] if args else None, kwargs.get("dst"), kwargs.get("a")]
    if any(isinstance(each, np.ndarray) for each in written):
        return function(*_read(args), **_read(kwargs))
    path = f"{function.__module__}.{function.__name__}".split(".")
    place: Any = import_module("treadle.numpy")
    try:
        for part in path[1:]:
            if not part.startswith("_"):
                place = getattr(place, part)
    except AttributeError as error:
        raise TypeError(f"{error}; np.asarray(x.td.numpy()) is NumPy's own array") from None
    return place(*args, **kwargs)


# NumPy's functions that write into their first argument.
_WRITERS = frozenset(["copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"])


def _read(value: Any) -> Any:
    """Arrays of this module as NumPy's own, also within tuples, lists and dicts."""
    if isinstance(value, Values):
        return value._inner.__array__()
    if type(value) in (tuple, list):
        return type(value)([_read(each) for each in value])
    if type(value) is dict:
        return {key: _read(each) for key, each in value.items()}
    return value


def _array_namespace(self: Values, *, api_version: str | None = None) -> Any:
    """The module whose functions take these arrays, for code of the Array API."""
    return import_module("treadle.numpy")


def _reduce(self: Values) -> Any:
    return (wrap if type(self) is ndarray else value_of, (self._inner,))


def _copy(self: Values) -> Any:
    return (wrap if type(self) is ndarray else value_of)(self._inner.copied())


def _deepcopy(self: Values, memo: Any) -> Any:
    return _copy(self)


def _round(self: Values, ndigits: int | None = None) -> Any:
    number = _number(self)
    return round(number, ndigits)


def _format(self: Values, spec: str) -> str:
    if self._inner.shape:
        if spec:
            raise TypeError("unsupported format string passed to numpy.ndarray.__format__")
        return printing.text(self._inner)
    if not spec:
        return printing.text(self._inner)
    return format(self._inner.dtype.numpy.type(self._inner.item()), spec)


def _trunc(self: Values) -> int:
    return math.trunc(_number(self))


def _dlpack(self: Values, **keywords: Any) -> Any:
    return self._inner.__dlpack__(**keywords)


def _dlpack_device(self: Values) -> tuple[int, int]:
    return self._inner.__dlpack_device__()


OPERATORS: dict[str, Any] = {
    **{f"__{short}__": _binary(name) for short, name in BINARY.items()},
    **{f"__r{short}__": _binary(name, is_reflected=True) for short, name in BINARY.items()},
    **{f"__i{short}__": _in_place(name) for short, name in BINARY.items() if short != "divmod"},
    **{f"__{short}__": _comparison(name) for short, name in COMPARISONS.items()},
    **{f"__{short}__": _unary(name) for short, name in UNARY.items()},
    "__array__": _array,
    "__array_function__": _array_function,
    "__array_namespace__": _array_namespace,
    "__array_ufunc__": _array_ufunc,
    "__bool__": _bool,
    "__buffer__": _buffer,
    "__bytes__": lambda self: self._inner.numpy().tobytes(),
    "__complex__": lambda self: complex(_number(self)),
    "__contains__": _contains,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "__float__": _float,
    "__format__": _format,
    "__getitem__": _getitem,
    "__imatmul__": _imatmul,
    "__index__": _index,
    "__int__": _int,
    "__iter__": _iter,
    "__len__": _len,
    "__matmul__": _matmul,
    "__reduce__": _reduce,
    "__repr__": lambda self: printing.representation(self._inner, type(self) is not ndarray),
    "__rmatmul__": _rmatmul,
    "__round__": _round,
    "__setitem__": _setitem,
    "__str__": lambda self: printing.text(self._inner),
    "__trunc__": _trunc,
}
