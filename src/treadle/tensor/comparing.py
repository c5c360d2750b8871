"""Comparing numbers within tolerances, replacing those that are not finite, and numbers between two
others: `isclose`, `allclose`, `nan_to_num`, `lerp`."""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import DType, bfloat16, bool_, float16, float32
from treadle.core.errors import DtypeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.computed_views import complex_of
from treadle.tensor.conversions import as_python, cast, is_number
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import default_integer, finfo
from treadle.tensor.elementwise_functions import FUNCTIONS, apply
from treadle.tensor.operands import as_nodes, operand, prepare
from treadle.tensor.reductions import all as every
from treadle.tensor.tensor import Tensor, as_device_dtype, from_node

__all__ = ["allclose", "isclose", "lerp", "nan_to_num"]

_HALVES = (float16, bfloat16)
_where = FUNCTIONS["where"]


def isclose(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Whether |x1 - x2| <= atol + rtol * |x2|, element by element: bools of the shape to which x1
    and x2 broadcast.

    Infinite numbers are close to themselves alone, and NaN to nothing, or with `equal_nan` to NaN.
    Differences of integers are exact, those of float16 and bfloat16 are computed in float32.
    ValueError for a negative tolerance.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 100.0, float("nan")], device="cpu")
    >>> td.isclose(x, td.asarray([1.000001, 101.0, float("nan")], device="cpu")).tolist()
    [True, False, False]
    """
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if is_number(tolerance) and not as_python(tolerance) >= 0:
            raise ValueError(f"isclose: {name} is 0 or more, not {tolerance}")
    one, other = _together("isclose", x1, x2)
    same = apply("equal", one, other)
    if one.dtype.is_integer:
        distance = _distance(one, other)
        return apply("logical_or", same, _within(distance, other.to(float32), rtol, atol))
    if one.dtype in _HALVES:
        one, other = one.to(float32), other.to(float32)
    near = _within(abs(one - other), other, rtol, atol)
    near = apply("logical_and", near, apply("isfinite", other))
    found = apply("logical_or", near, same)
    if equal_nan:
        both = apply("logical_and", apply("isnan", one), apply("isnan", other))
        found = apply("logical_or", found, both)
    return found


def _together(name: str, x1: ArrayLike, x2: ArrayLike) -> tuple[Tensor, Tensor]:
    """Both operands in their common dtype; bools as integers."""
    if is_number(x1) and is_number(x2):
        x1 = asarray(x1)
    device, dtype, found = prepare(name, (x1, x2))
    if dtype is bool_:
        dtype = default_integer(device)
    one, other = (
        from_node(as_nodes((each,), dtype, getattr(each, "shape", ()), device)[0]) for each in found
    )
    return one, other


def _within(distance: Tensor, other: Tensor, rtol: ArrayLike, atol: ArrayLike) -> Tensor:
    most = apply("add", atol, apply("multiply", rtol, abs(other)))
    return apply("less_equal", distance, most)


def _distance(one: Tensor, other: Tensor) -> Tensor:
    """|one - other| of integers, as float32: the difference wraps, and is right as an unsigned
    number."""
    dtype = one.dtype
    found = apply("maximum", one, other) - apply("minimum", one, other)
    if dtype.kind == "int":
        unsigned = as_device_dtype(f"uint{dtype.bits}")
        assert isinstance(unsigned, DType)
        found = found.to(unsigned)
    return found.to(float32)


def allclose(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements are close, as by `isclose`: a Python bool, so the device is waited for.
    (`td.isclose(x1, x2).all()` is a tensor.)

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0], device="cpu")
    >>> td.allclose(x, x + 1e-7), td.allclose(x, x + 0.1)
    (True, False)
    """
    return bool(every(isclose(x1, x2, rtol, atol, equal_nan)).item())


def nan_to_num(
    x: ArrayLike, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """X with NaN replaced by `nan`, infinity by `posinf` (without it the greatest number of the
    dtype), and -infinity by `neginf` (the least number). Of complex numbers both parts are
    replaced. Shape and dtype are x's. The gradient of what is replaced is 0.

    >>> import treadle as td
    >>> x = td.asarray([1.0, float("nan"), float("inf")], device="cpu")
    >>> td.nan_to_num(x, posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    x = operand("nan_to_num", x)
    if not isinstance(x.dtype, DType):
        raise DtypeError(f"nan_to_num takes numbers, not structs ({x.dtype})")
    if x.dtype.kind == "complex":
        parts = [nan_to_num(apply(part, x), nan, posinf, neginf) for part in ("real", "imag")]
        return complex_of(*parts)
    if x.dtype.kind != "float":
        return apply("positive", x) if x.dtype is not bool_ else x.copied()
    limits = finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    found = _where(apply("isnan", x), nan, x)
    ends = _where(apply("greater", x, 0), high, apply("multiply", low, apply("equal", x, x)))
    return _where(apply("isinf", x), ends.to(x.dtype), found)


def lerp(start: ArrayLike, end: ArrayLike, /, weight: ArrayLike) -> Tensor:
    """Start + weight * (end - start), which is `end` itself for a weight of 1. The three broadcast;
    of integers in float32. NaN where one is NaN.

    >>> import treadle as td
    >>> x = td.asarray([0.0, 10.0], device="cpu")
    >>> td.lerp(x, td.asarray([4.0, 20.0], device="cpu"), 0.25).tolist()
    [1.0, 12.5]
    """
    device, dtype, found = prepare("lerp", (start, end, weight))
    if dtype.kind not in ("float", "complex"):
        dtype = float32
    work = float32 if dtype in _HALVES else dtype
    first, last, by = (
        from_node(as_nodes((each,), work, getattr(each, "shape", ()), device)[0]) for each in found
    )
    distance = last - first
    far: Any = apply("greater_equal", abs(by), 0.5)
    made = _where(far, last - distance * (1 - by), first + distance * by)
    return from_node(cast(made._node, dtype))
