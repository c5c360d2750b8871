"""Ufuncs on tensors: NumPy says the dtypes, `elementwise` computes."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import integer_range
from treadle.numpy import promotion
from treadle.numpy.operations.elementwise import FUNCTIONS
from treadle.numpy.operations.operands import array, converted
from treadle.tensor.tensor import Tensor as Inner

_NUMBERS = (bool, int, float, complex)
# Comparisons of integers with Python's integers outside their range are not errors.
_COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


def call(name: str, *operands: Any) -> Inner:
    """What NumPy's ufunc of this name computes, of one result."""
    return call_all(name, *operands)[0]


def call_all(
    name: str, *operands: Any, dtype: Any = None, casting: str = "same_kind", signature: Any = None
) -> tuple[Inner, ...]:
    """What NumPy's ufunc of this name computes: all its results."""
    function: np.ufunc = getattr(np, name)
    where = promotion.device_of(operands)
    given = [
        each if type(each) is Inner or type(each) in _NUMBERS else array(each, device=where)
        for each in operands
    ]
    kinds = tuple([promotion.kind_of(each) for each in given])
    if signature is None and dtype is not None:
        signature = (*(None,) * function.nin, *(np.dtype(dtype),) * function.nout)
    loop = promotion.loop(function, kinds, casting, signature)
    compute = FUNCTIONS.get(name)
    if compute is None:
        raise NotImplementedError(f"np.{name} has no form for devices")
    if name in _COMPARISONS and given.__class__ is list and _is_beyond(given):
        values = given
    else:
        asked = dtype is not None or signature is not None
        values = [_cast(each, loop[at], where, asked) for at, each in enumerate(given)]
    if not any(type(each) is Inner for each in values):
        own = promotion.held(loop[0], where)
        values = [td.full((), values[0], dtype=own, device=where), *values[1:]]
    found = compute(*values)
    results = found if type(found) is tuple else (found,)
    return tuple(
        [
            each.to(promotion.held(kind, where))
            for each, kind in zip(results, loop[function.nin :], strict=True)
        ]
    )


def _cast(value: Any, kind: np.dtype[Any], where: Any, asked: bool) -> Any:
    wanted = promotion.named(kind, where) if asked else promotion.held(kind, where)
    if type(value) is Inner:
        return value if value.dtype is wanted else converted(value, wanted)
    if wanted.kind in ("int", "uint"):
        low, high = integer_range(wanted)
        if not low <= value <= high:
            raise OverflowError(f"Python integer {value} out of bounds for {wanted.name}")
        return int(value)
    if wanted.kind == "bool":
        return bool(value)
    return complex(value) if wanted.kind == "complex" else float(value)


def _is_beyond(given: list[Any]) -> bool:
    """Whether one of two operands is a Python integer that the other's dtype does not hold."""
    for number, other in (given, given[::-1]):
        if type(number) is int and type(other) is Inner and other.dtype.kind in ("int", "uint"):
            low, high = integer_range(other.dtype)
            return not low <= number <= high
    return False
