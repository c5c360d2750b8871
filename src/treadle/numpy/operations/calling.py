"""Ufuncs on tensors: NumPy says the dtypes, `elementwise` computes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.core.dtypes import ALL_DTYPES, DType, integer_range
from treadle.numpy import promotion
from treadle.numpy.operations.elementwise import FUNCTIONS, Computation
from treadle.numpy.operations.operands import array, converted
from treadle.runtime.devices import Device
from treadle.tensor.tensor import Tensor as Inner

_NUMBERS = (bool, int, float, complex)
# NumPy's own scalars: numbers with a dtype.
SCALARS = {each.host.type: each.name for each in ALL_DTYPES if each.name != "bfloat16"}
# Comparisons of integers with Python's integers outside their range are not errors.
_COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


class _Plan(NamedTuple):
    """A ufunc for operands of some dtypes: what computes it, the dtypes of operands and results."""

    compute: Computation
    operands: tuple[DType, ...]
    results: tuple[DType, ...]


# By the ufunc's name, the device, and the operands' dtypes or classes of numbers.
_plans: dict[Any, _Plan] = {}


def call(name: str, *operands: Any) -> Inner:
    """What NumPy's ufunc of this name computes, of one result."""
    return call_all(name, *operands)[0]


def call_all(
    name: str, *operands: Any, dtype: Any = None, casting: str = "same_kind", signature: Any = None
) -> tuple[Inner, ...]:
    """What NumPy's ufunc of this name computes: all its results."""
    where: Device | None = None
    for each in operands:
        if type(each) is Inner:
            where = each.device
            break
    where = promotion.place() if where is None else where
    given = []
    key: list[Any] = [name, where.id]
    for each in operands:
        kind = type(each)
        if kind is not Inner and kind not in _NUMBERS and kind not in SCALARS:
            each = array(each, device=where)
            kind = Inner
        given.append(each)
        key.append(each.dtype.name if kind is Inner else kind)
    if dtype is None and signature is None and casting == "same_kind":
        plan = _plans.get(tuple(key))
        if plan is None:
            plan = _plans[tuple(key)] = _plan(name, given, where, casting, None, False)
    else:
        if signature is None and dtype is not None:
            function: np.ufunc = getattr(np, name)
            signature = (*(None,) * function.nin, *(np.dtype(dtype),) * function.nout)
        plan = _plan(name, given, where, casting, signature, signature is not None)
    if name in _COMPARISONS and _is_beyond(given):
        values = given
    else:
        values = [
            (each if each.dtype is wanted else converted(each, wanted))
            if type(each) is Inner
            else _number(each.item() if type(each) in SCALARS else each, wanted)
            for each, wanted in zip(given, plan.operands, strict=True)
        ]
    if not any(type(each) is Inner for each in values):
        first = td.full((), values[0], dtype=plan.operands[0], device=where)
        values = [first, *values[1:]]
    found = plan.compute(*values)
    if type(found) is Inner:
        (wanted,) = plan.results
        return (found if found.dtype is wanted else found.to(wanted),)
    return tuple([each.to(kind) for each, kind in zip(found, plan.results, strict=True)])


def _plan(
    name: str, given: list[Any], where: Device, casting: str, signature: Any, is_named: bool
) -> _Plan:
    """The dtypes are those that NumPy says; `is_named` if the program names them, which the device
    then must have."""
    function: np.ufunc = getattr(np, name)
    compute = FUNCTIONS.get(name)
    kinds = tuple([promotion.kind_of(each) for each in given])
    loop = promotion.loop(function, kinds, casting, signature)
    if compute is None:
        raise NotImplementedError(f"np.{name} has no form for devices")
    find = promotion.named if is_named else promotion.held
    dtypes = [find(each, where) for each in loop]
    return _Plan(compute, tuple(dtypes[: function.nin]), tuple(dtypes[function.nin :]))


def _number(value: Any, wanted: DType) -> Any:
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
