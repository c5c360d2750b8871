"""Uniform, normal and exponential numbers, integers, and trials: a function of a draw's words."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import DType, bool_, float32, uint32, uint64
from treadle.core.errors import DtypeError
from treadle.graph.node import Node
from treadle.runtime.devices import Device
from treadle.tensor.annotations import DTypeLike
from treadle.tensor.conversions import as_python, cast, is_number
from treadle.tensor.creation import Shape
from treadle.tensor.dtypes import check_fits, default_integer
from treadle.tensor.generator import Generator
from treadle.tensor.random.draws import (
    WORD,
    Draw,
    check_not_negative,
    device_for,
    draw_of_floats,
    dtype_for,
    new_draw,
)
from treadle.tensor.tensor import Tensor, as_device_dtype, from_node

# --- floats --------------------------------------------------------------------------------------


def uniform(
    shape: Shape,
    low: Any = 0.0,
    high: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers uniformly distributed from low up to high, without high itself.

    low and high may be arrays that broadcast to the shape; where high is not above low, the element
    is low. There are 2**24 steps from low to high (2**53 in float64).

    >>> import treadle as td
    >>> g = td.Generator(1)
    >>> x = uniform((100, 100), -1.0, 1.0, device="cpu", generator=g)
    >>> x.shape, float(x.numpy().min()) >= -1, float(x.numpy().max()) < 1
    ((100, 100), True, True)
    """
    draw = draw_of_floats("uniform", shape, (low, high), dtype, device, generator)
    bits = draw.working.bits
    unit = draw.node(f"unit_f{bits}", draw.working, draw.word())
    given, working = draw.dtype, draw.working
    if given is working and is_number(low) and is_number(high) and (low, high) == (0, 1):
        return from_node(unit)
    if is_number(low) and is_number(high):
        ends = [draw.constant(number, working) for number in _interval(low, high, given, working)]
    else:
        first, end = draw.parameter(low, given), draw.parameter(high, given)
        last = cast(draw.node("nextafter", given, end, first), working)
        first, end = cast(first, working), cast(end, working)
        ends = [first, draw.node("subtract", working, end, first), last]
    return draw.result(draw.node(f"interval_f{bits}", working, unit, *ends))


def _interval(low: Any, high: Any, dtype: DType, working: DType) -> tuple[float, float, float]:
    """The start of an interval, its width, and the greatest number below its end."""
    made, wide = dtype.host.type, working.host.type
    with np.errstate(over="ignore", invalid="ignore"):
        start, end = made(as_python(low)), made(as_python(high))
        width = float(wide(end) - wide(start))
    if not 0 <= width < np.inf:
        raise ValueError(
            f"uniform: low={low} and high={high} must be finite, low not above high, and their "
            f"difference a {working}"
        )
    return float(start), width, float(np.nextafter(end, start))


def normal(
    shape: Shape,
    mean: Any = 0.0,
    std: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the normal distribution. mean and std may be arrays that broadcast to the shape.

    >>> import treadle as td
    >>> x = normal(10_000, 5.0, 2.0, device="cpu", generator=td.Generator(1)).numpy()
    >>> bool(abs(x.mean() - 5) < 0.1), bool(abs(x.std() - 2) < 0.1)
    (True, True)
    """
    draw = draw_of_floats("normal", shape, (mean, std), dtype, device, generator)
    check_not_negative("normal", "std", std)
    name = "random_normal" if draw.working is float32 else "random_normal_64"
    found = draw.node(name, draw.working, *draw.key)
    return draw.result(draw.scaled(found, std, mean))


def standard_normal(
    shape: Shape,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the normal distribution of mean 0 and standard deviation 1: `normal(shape)`.

    >>> import treadle as td
    >>> td.random.standard_normal((2, 3), device="cpu").shape
    (2, 3)
    """
    return normal(shape, dtype=dtype, device=device, generator=generator)


def exponential(
    shape: Shape,
    scale: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the exponential distribution with the mean `scale`, a number or an array."""
    draw = draw_of_floats("exponential", shape, (scale,), dtype, device, generator)
    check_not_negative("exponential", "scale", scale)
    found = draw.node(f"exponential_f{draw.working.bits}", draw.working, draw.word())
    return draw.result(draw.scaled(found, scale, 0.0))


# --- integers and bools --------------------------------------------------------------------------


def integers(
    shape: Shape,
    low: Any,
    high: Any = None,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Integers from low up to high, without high itself; with one bound, from 0 up to it.

    Without a dtype they have the device's default integer. low and high may be integer arrays that
    broadcast to the shape; where high is not above low, the element is low. The probabilities of
    the integers differ by a factor of less than 1 + 2**-32.

    >>> import treadle as td
    >>> dice = integers(1000, 1, 7, device="cpu", generator=td.Generator(3)).numpy()
    >>> int(dice.min()), int(dice.max())
    (1, 6)
    """
    low, high = (0, low) if high is None else (low, high)
    where = device_for("integers", (low, high), device)
    given = default_integer(where) if dtype is None else dtype_for(dtype, where)
    if not given.is_integer:
        raise DtypeError(f"integers makes integer dtypes, not {given}: cast them with .to(dtype)")
    draw = new_draw("integers", shape, (low, high), given, where, generator)
    low, high = (_integer("integers", bound) for bound in (low, high))
    if isinstance(low, int) and isinstance(high, int):
        return from_node(_integers_between(draw, low, high))
    return from_node(_integers_from_arrays(draw, low, high))


def _integers_between(draw: Draw, low: int, high: int) -> Node:
    if low >= high:
        raise ValueError(f"integers: low={low} must be below high={high}")
    dtype = draw.dtype
    check_fits(low, dtype)
    check_fits(high - 1, dtype)
    count = high - low
    if dtype.itemsize < 8:  # sums wrap, and the results fit
        found = draw.integer_below(count % WORD)
        if low:
            found = draw.node("add", uint32, found, draw.constant(low % WORD, uint32))
        return cast(found, dtype)
    found = draw.integer_below(count % WORD) if count <= WORD else draw.long_below(count % 2**64)
    found = cast(found, dtype)
    return draw.node("add", dtype, found, draw.constant(low, dtype)) if low else found


def _integers_from_arrays(draw: Draw, low: Any, high: Any) -> Node:
    dtype = draw.dtype
    narrow = dtype.itemsize < 4
    for bound, room in ((low, 0), (high, 1 if narrow else 0)):
        if isinstance(bound, int):
            check_fits(bound - room, dtype)
    words = uint64 if dtype.itemsize == 8 else uint32
    start, end = draw.parameter(low, words), draw.parameter(high, words)
    count = draw.node("subtract", words, end, start)
    name = "random_below_64" if words is uint64 else "random_below"
    found = draw.node("add", words, draw.node(name, words, *draw.key, count), start)
    signed = as_device_dtype(f"int{words.bits}") if dtype.kind == "int" else words
    assert isinstance(signed, DType)
    none = draw.node("less_equal", bool_, cast(end, signed), cast(start, signed))
    return cast(draw.node("where", words, none, start, found), dtype)


def bernoulli(
    shape: Shape,
    p: Any = 0.5,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """True with probability p, else False; p may be an array that broadcasts to the shape. With a
    dtype, ones and zeros of it.

    >>> import treadle as td
    >>> bernoulli(4, 1.0, device="cpu").tolist()
    [True, True, True, True]
    """
    where = device_for("bernoulli", (p,), device)
    given = bool_ if dtype is None else dtype_for(dtype, where)
    draw = new_draw("bernoulli", shape, (p,), given, where, generator)
    if is_number(p) and not 0 <= as_python(p) <= 1:
        raise ValueError(f"bernoulli: a probability is from 0 to 1, not {p}")
    found = draw.node("random_chance", bool_, *draw.key, draw.parameter(p, float32))
    return draw.result(found)


def _integer(name: str, bound: Any) -> Any:
    """A bound: a Python integer, or an integer array."""
    if is_number(bound):
        number = as_python(bound)
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"{name}: a bound is an integer, not {bound!r}")
        return int(number)
    dtype = getattr(bound, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") not in ("int", "uint", "i", "u"):
        raise DtypeError(f"{name}: bounds are integers, not {dtype}: cast them with .to(td.int32)")
    return bound
