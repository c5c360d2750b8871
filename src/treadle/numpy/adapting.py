"""Functions of treadle's tensors as functions and methods of NumPy's arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.numpy.arrays import Values, ndarray, result_of, unwrapped, value_of, wrap, wrapped
from treadle.numpy.operations.operands import converted
from treadle.numpy.promotion import check_cast
from treadle.tensor.tensor import Tensor as Inner

Function = Callable[..., Any]


def adapted(function: Function, flags: str = "") -> Function:
    """A function of treadle's tensors as one of NumPy's, by the table's flags. An array given as
    `out=` gets the result: TypeError if the result's dtype is of a higher kind, ValueError if its
    shape differs."""
    has_elements = "v" in flags
    make = value_of if has_elements else wrap
    if "l" in flags:
        like, plain = adapted(function, "v"), adapted(function)

        @functools.wraps(function)
        def alike(*args: Any, **kwargs: Any) -> Any:
            first = args[0] if args else next(iter(kwargs.values()), None)
            is_element = isinstance(first, (Values, np.generic)) and type(first) is not ndarray
            return (like if is_element else plain)(*args, **kwargs)

        return alike
    returns_same = "s" in flags
    has_out = "o" in flags
    # NumPy takes out= at a position, too.
    at = OUT_AT.get(function.__name__, 1000) if has_out else 1000

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if has_out and (len(args) > at or (kwargs and "out" in kwargs)):
            return _written(function, args, kwargs, at, make)
        given = [
            each._inner
            if type(each) is ndarray
            else each
            if type(each) in _PLAIN
            else unwrapped(each)
            for each in args
        ]
        if kwargs:
            kwargs = {
                key: each if type(each) in _PLAIN else unwrapped(each)
                for key, each in kwargs.items()
            }
        result = function(*given, **kwargs)
        if returns_same and given and result is given[0] and type(args[0]) is ndarray:
            return args[0]
        if type(result) is not Inner:
            return wrapped(result, make)
        return result_of(result) if has_elements else wrap(result)

    theirs = getattr(np, function.__name__, None)
    if isinstance(theirs, np.ufunc):  # such as matmul: what programs ask of it
        for name in _OF_UFUNCS:
            setattr(call, name, getattr(theirs, name))
    return call


_OF_UFUNCS = ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature")
# What is handed on as it is.
_PLAIN = frozenset([bool, int, float, complex, str, type(None), type])


def _written(
    function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], at: int, make: Function
) -> Any:
    """The result in `out`, which stands at a position or is a keyword."""
    out = kwargs.pop("out", None)
    if len(args) > at:
        out, args = args[at], (*args[:at], *args[at + 1 :])
    result: Inner = function(*unwrapped(args), **unwrapped(kwargs))
    if out is None:
        return wrapped(result, make)
    casting = "unsafe" if function.__name__ in _ANY_OUT.split() else "same_kind"
    return put(out, result, function.__name__, casting)


# Where NumPy's functions have the parameter `out`, if it is not only a keyword.
OUT_AT = {
    "sum": 3, "prod": 3, "mean": 3, "std": 3, "var": 3, "amax": 2, "amin": 2, "max": 2, "min": 2,
    "all": 2, "any": 2, "cumsum": 3, "cumprod": 3, "argmax": 2, "argmin": 2, "clip": 3, "take": 3,
    "round": 2, "ptp": 2, "compress": 3, "choose": 2, "dot": 2, "trace": 5, "outer": 2,
    "nansum": 3, "nanprod": 3, "nanmean": 3, "nanstd": 3, "nanvar": 3, "nanmax": 2, "nanmin": 2,
    "nancumsum": 3, "nancumprod": 3, "median": 2, "nanmedian": 2, "percentile": 3, "quantile": 3,
    "nanpercentile": 3, "nanquantile": 3, "nanargmax": 2, "nanargmin": 2, "fix": 1,
    "isneginf": 1, "isposinf": 1,
}  # fmt: skip


# Reductions whose result is cast into `out` of any dtype.
_ANY_OUT = (
    "sum prod mean var amax amin cumsum cumprod cumulative_sum cumulative_prod all any median "
    "percentile quantile nansum nanprod nanvar nanmax nanmin nancumsum nancumprod nanmedian "
    "nanpercentile nanquantile"
)


def put(place: Any, result: Inner, name: str, casting: str = "same_kind") -> Any:
    """Write a result into an array, and return the array."""
    if isinstance(place, tuple) and len(place) == 1:
        (place,) = place
    if type(place) is not ndarray:
        raise TypeError(
            f"{name}: out= takes an array of treadle.numpy, not {type(place).__name__}"
            + (": NumPy's own arrays are not written" if isinstance(place, np.ndarray) else "")
        )
    inner = place._inner
    check_cast(result.dtype, inner.dtype, casting, f"output of {name}")
    if inner.shape != result.shape:
        raise ValueError(
            f"{name}: the result has shape {result.shape}, and out= has shape {inner.shape}"
        )
    inner[...] = converted(result, inner.dtype) if casting == "unsafe" else result
    return place
