"""Numbers of events: Poisson, binomial and geometric distributions.

They are computed in float32, or in float64 for that dtype or a parameter of it. What samplers give
is the distance from the integer below the mean, so integers are exact where they have no floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import DType, bool_, float32, float64, int32, int64, integer_range
from treadle.core.errors import DtypeError
from treadle.graph.node import Node
from treadle.runtime.devices import Device
from treadle.tensor.annotations import DTypeLike
from treadle.tensor.conversions import as_python, cast, is_number
from treadle.tensor.creation import Shape
from treadle.tensor.dtypes import check_fits, default_integer
from treadle.tensor.generator import Generator
from treadle.tensor.random.draws import Draw, check_parameter, device_for, dtype_for, new_draw
from treadle.tensor.tensor import Tensor


def poisson(
    shape: Shape,
    rate: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of events of the Poisson distribution, whose mean is `rate`, a number of 0 or more or
    an array that broadcasts to the shape.

    Without a dtype they have the device's default integer; a floating dtype is allowed, too. A rate
    that is negative or NaN is a ValueError if it is a number or in a list or NumPy array, and under
    TREADLE_CHECK=1; in a tensor, which is not read, it gives NaN, and -1 in integer dtypes. What an
    integer dtype does not hold becomes its greatest number.

    >>> import treadle as td
    >>> x = poisson(10_000, 3.5, device="cpu", generator=td.Generator(1)).numpy()
    >>> bool(abs(x.mean() - 3.5) < 0.1), bool(abs(x.var() - 3.5) < 0.2)
    (True, True)
    """
    draw = _counts("poisson", shape, (rate,), dtype, device, generator)
    check_parameter("poisson", "rate", rate, lambda x: x >= 0, "0 or more")
    _check_expected("poisson", rate, draw.dtype)
    working = draw.working
    mean = draw.parameter(rate, working)
    base = draw.node("floor", working, mean)
    offset = draw.node(f"random_poisson_f{working.bits}", working, *draw.key, mean)
    is_rate = draw.compared("greater_equal", mean, 0.0)
    is_finite = draw.node("isfinite", bool_, mean)
    if draw.dtype.kind == "float":
        found = draw.node("add", working, base, offset)
        found = draw.node("where", working, is_finite, found, mean)
        return draw.result(draw.or_nan(is_rate, found))
    found = _sum_of_whole(draw, base, offset)
    return draw.result(_or_minus_one(draw, is_rate, found))


def binomial(
    shape: Shape,
    n: Any,
    p: Any = 0.5,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of successes in n trials, each with the probability p. Both may be arrays that
    broadcast to the shape.

    Without a dtype they have the device's default integer; a floating dtype is allowed, too. n is
    an integer of 0 or more, and p from 0 to 1: others are a ValueError if they are numbers or in a
    list or NumPy array, and under TREADLE_CHECK=1; in a tensor, which is not read, they give NaN,
    and -1 in integer dtypes.

    >>> import treadle as td
    >>> x = binomial(10_000, 20, 0.3, device="cpu", generator=td.Generator(1)).numpy()
    >>> bool(abs(x.mean() - 6) < 0.1), bool(abs(x.var() - 4.2) < 0.3)
    (True, True)
    """
    draw = _counts("binomial", shape, (n, p), dtype, device, generator)
    check_parameter("binomial", "n", n, _is_count, "an integer of 0 or more")
    check_parameter("binomial", "p", p, lambda x: (x >= 0) & (x <= 1), "from 0 to 1")
    if is_number(n) and draw.dtype.is_integer:
        check_fits(int(as_python(n)), draw.dtype)
    working = draw.working
    trials, chance = draw.parameter(n, working), draw.parameter(p, working)
    one = draw.constant(1.0, working)
    other = draw.node("subtract", working, one, chance)
    less = draw.node("minimum", working, chance, other)
    mean = draw.node("multiply", working, trials, less)
    base = draw.node("floor", working, mean)
    name = f"random_binomial_f{working.bits}"
    offset = draw.node(name, working, *draw.key, trials, less, mean)
    often = draw.node("greater", bool_, chance, other)
    valid = draw.all_of(
        draw.compared("greater_equal", trials, 0.0),
        draw.node("equal", bool_, trials, draw.node("floor", working, trials)),
        draw.node("isfinite", bool_, trials),
        draw.compared("greater_equal", chance, 0.0),
        draw.compared("less_equal", chance, 1.0),
    )
    if draw.dtype.kind == "float":
        found = draw.node("add", working, base, offset)
        rest = draw.node("subtract", working, trials, found)
        found = draw.node("where", working, often, rest, found)
        return draw.result(draw.or_nan(valid, found))
    wide = _wide(draw.dtype)
    found = _sum_of_whole(draw, base, offset)
    whole = draw.parameter(n, wide) if _is_integral(n) else cast(trials, wide)
    rest = draw.node("subtract", wide, whole, found)
    return draw.result(_or_minus_one(draw, valid, draw.node("where", wide, often, rest, found)))


def geometric(
    shape: Shape,
    p: Any,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of trials up to the first success, of a probability p above 0 and up to 1 each; p may
    be an array that broadcasts to the shape.

    The dtype is as in `binomial`, and so are values of p that are no such probability. The trials
    are rounded to float32, or to float64 if that is the dtype or p's.

    >>> import treadle as td
    >>> x = geometric(10_000, 0.25, device="cpu", generator=td.Generator(1)).numpy()
    >>> int(x.min()), bool(abs(x.mean() - 4) < 0.2)
    (1, True)
    """
    draw = _counts("geometric", shape, (p,), dtype, device, generator)
    check_parameter("geometric", "p", p, lambda x: (x > 0) & (x <= 1), "above 0 and up to 1")
    working = draw.working
    chance = draw.parameter(p, working)
    waiting = draw.node(f"exponential_f{working.bits}", working, draw.word())
    failing = draw.node("log1p", working, draw.node("negative", working, chance))
    trials = draw.node("divide", working, waiting, draw.node("negative", working, failing))
    trials = draw.node("ceil", working, trials)
    trials = draw.node("maximum", working, trials, draw.constant(1.0, working))
    valid = draw.all_of(
        draw.compared("greater", chance, 0.0), draw.compared("less_equal", chance, 1.0)
    )
    if draw.dtype.kind == "float":
        return draw.result(draw.or_nan(valid, trials))
    return draw.result(_or_minus_one(draw, valid, cast(trials, _wide(draw.dtype))))


# --- shared parts --------------------------------------------------------------------------------


def _counts(
    name: str, shape: Shape, parameters: tuple[Any, ...], dtype: Any, device: Any, generator: Any
) -> Draw:
    """A draw of counts, and whether it is computed in float32 or float64."""
    where = device_for(name, parameters, device)
    given = default_integer(where) if dtype is None else dtype_for(dtype, where)
    if given.kind not in ("int", "uint", "float"):
        raise DtypeError(f"random.{name} makes integer or floating dtypes, not {given}")
    wide = given is float64 or any(isinstance(p, Tensor) and p.dtype is float64 for p in parameters)
    draw = new_draw(name, shape, parameters, given, where, generator)
    return draw._replace(working=float64 if wide else float32)


def _is_count(values: Any) -> Any:
    return (values >= 0) & (values == np.floor(values)) & (values < np.inf)


def _is_integral(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return isinstance(value, int) or getattr(dtype, "kind", "") in ("int", "uint", "i", "u")


def _wide(dtype: DType) -> DType:
    """The integers that counts of a dtype are computed in: narrow ones are cut to their range
    afterwards."""
    return dtype if dtype.itemsize >= 4 else int32


def _signed(dtype: DType) -> DType:
    return int64 if dtype.itemsize == 8 else int32


def _sum_of_whole(draw: Draw, base: Node, offset: Node) -> Node:
    """Base + offset, two whole floats, in the integers of a draw; the greatest one where it would
    be above."""
    wide = _wide(draw.dtype)
    top = integer_range(wide)[1]
    limit = draw.constant(float(np.float32(top - 10 * top**0.5)), base.dtype)
    steps = cast(cast(offset, _signed(wide)), wide)
    found = draw.node("add", wide, cast(base, wide), steps)
    fits = draw.node("less", bool_, base, limit)
    return draw.node("where", wide, fits, found, draw.constant(top, wide))


def _or_minus_one(draw: Draw, valid: Node, found: Node) -> Node:
    """Counts, cut to the range of the draw's dtype, and -1 where parameters are not valid."""
    dtype = draw.dtype
    if found.dtype is not dtype:
        top = draw.constant(integer_range(dtype)[1], found.dtype)
        found = cast(draw.node("minimum", found.dtype, found, top), dtype)
    least, greatest = integer_range(dtype)
    none = draw.constant(greatest if least == 0 else -1, dtype)
    return draw.node("where", dtype, valid, found, none)


def _check_expected(name: str, mean: Any, dtype: DType) -> None:
    """ValueError for a number of expected events that is far from the range of an integer dtype."""
    if dtype.is_integer and is_number(mean) and as_python(mean) > integer_range(dtype)[1]:
        raise ValueError(
            f"{name}: {dtype} does not hold {mean} events; a floating dtype does: dtype=td.float32"
        )
