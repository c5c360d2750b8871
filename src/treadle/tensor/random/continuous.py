"""Gamma distributions and what follows from them, and other distributions of real numbers.

A number that a distribution does not take as a parameter is a ValueError; so is one in a list or a
NumPy array, and under TREADLE_CHECK=1 one in a tensor. Otherwise tensors are not read, and the
element is NaN.
"""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import bool_
from treadle.core.errors import ShapeError
from treadle.graph.node import Node
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.conversions import is_number
from treadle.tensor.creation import Shape, extents_of
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.generator import Generator
from treadle.tensor.operands import node_of
from treadle.tensor.random.draws import Draw, check_parameter, device_for, draw_of_floats
from treadle.tensor.reductions import max as greatest
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, from_node

_exp, _isfinite, _sigmoid = (FUNCTIONS[name] for name in ("exp", "isfinite", "sigmoid"))


def _not_negative(values: Any) -> Any:
    return values >= 0


def _positive(values: Any) -> Any:
    return values > 0


def gamma(
    shape: Shape,
    alpha: Any,
    scale: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the gamma distribution, whose shape parameter is alpha, and whose mean is alpha
    times scale. Both may be arrays that broadcast to the shape; neither is negative.

    Those of a small alpha are often too small to be floats, and then 0.

    >>> import treadle as td
    >>> x = gamma(10_000, 3.0, 2.0, device="cpu", generator=td.Generator(1)).numpy()
    >>> bool(abs(x.mean() - 6) < 0.1), bool(abs(x.std() - 12**0.5) < 0.1)
    (True, True)
    """
    draw = draw_of_floats("gamma", shape, (alpha, scale), dtype, device, generator)
    check_parameter("gamma", "alpha", alpha, _not_negative, "0 or more")
    check_parameter("gamma", "scale", scale, _not_negative, "0 or more")
    return draw.result(draw.scaled(_gamma_node(draw, "random_gamma", alpha), scale, 0.0))


def _gamma_node(draw: Draw, name: str, alpha: Any) -> Node:
    given = draw.parameter(alpha, draw.working)
    return draw.node(f"{name}_f{draw.working.bits}", draw.working, *draw.key, given)


def chisquare(
    shape: Shape,
    df: Any,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the chi-square distribution with `df` degrees of freedom, a number above 0 or an
    array: sums of `df` squares of normal numbers.

    >>> import treadle as td
    >>> x = chisquare(10_000, 4, device="cpu", generator=td.Generator(1)).numpy()
    >>> bool(abs(x.mean() - 4) < 0.1)
    True
    """
    draw = draw_of_floats("chisquare", shape, (df,), dtype, device, generator)
    check_parameter("chisquare", "df", df, _positive, "above 0")
    return draw.result(draw.scaled(_of_squares(draw, df), 2.0, 0.0))


def _of_squares(draw: Draw, df: Any) -> Node:
    """Half of a sum of df squares: NaN where df is 0."""
    given = draw.parameter(df, draw.working)
    half = draw.node("multiply", draw.working, given, draw.constant(0.5, draw.working))
    found = draw.node(f"random_gamma_f{draw.working.bits}", draw.working, *draw.key, half)
    return draw.or_nan(draw.compared("greater", given, 0.0), found)


def student_t(
    shape: Shape,
    df: Any,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of Student's t distribution with `df` degrees of freedom, a number above 0 or an
    array; with infinitely many, of the standard normal distribution.

    >>> import treadle as td
    >>> student_t((2, 3), 5.0, device="cpu").shape
    (2, 3)
    """
    draw = draw_of_floats("student_t", shape, (df,), dtype, device, generator)
    check_parameter("student_t", "df", df, _positive, "above 0")
    other = draw_of_floats("student_t", shape, (df,), dtype, device, generator)
    working = draw.working
    name = "random_normal" if working.bits == 32 else "random_normal_64"
    normals = other.node(name, working, *other.key)
    given = draw.parameter(df, working)
    half = draw.node("multiply", working, given, draw.constant(0.5, working))
    ratio = draw.node("divide", working, half, _of_squares(draw, df))
    wide = draw.node("multiply", working, normals, draw.node("sqrt", working, ratio))
    endless = draw.node("isinf", bool_, given)
    return draw.result(draw.node("where", working, endless, normals, wide))


def beta(
    shape: Shape,
    a: Any,
    b: Any,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the beta distribution on [0, 1], with the density x**(a-1) (1-x)**(b-1) up to a
    factor. a and b are above 0; they may be arrays that broadcast to the shape.

    >>> import treadle as td
    >>> x = beta(10_000, 2.0, 3.0, device="cpu", generator=td.Generator(1)).numpy()
    >>> bool(abs(x.mean() - 0.4) < 0.01), float(x.min()) >= 0, float(x.max()) <= 1
    (True, True, True)
    """
    draw = draw_of_floats("beta", shape, (a, b), dtype, device, generator)
    check_parameter("beta", "a", a, _positive, "above 0")
    check_parameter("beta", "b", b, _positive, "above 0")
    other = draw_of_floats("beta", shape, (a, b), dtype, device, generator)
    first = _gamma_node(draw, "random_log_gamma", a)
    second = _gamma_node(other, "random_log_gamma", b)
    apart = draw.node("subtract", draw.working, first, second)
    return draw.result(draw.node("sigmoid", draw.working, apart))


def dirichlet(
    shape: Shape,
    alpha: ArrayLike,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Shares that add up to 1, of the Dirichlet distribution: as many as alpha has along its last
    axis. The result's shape is `shape` with that axis after it; alpha's other axes broadcast to
    `shape`. Its numbers are above 0. ShapeError if alpha has no axis.

    >>> import treadle as td
    >>> x = td.random.dirichlet(4, [1.0, 2.0, 5.0], device="cpu")
    >>> x.shape, bool(td.allclose(x.sum(axis=-1), 1))
    ((4, 3), True)
    """
    where = device_for("dirichlet", (alpha,), device)
    check_parameter("dirichlet", "alpha", alpha, _positive, "above 0")
    given = None if is_number(alpha) else from_node(node_of("dirichlet", alpha, where))
    if given is None or not given.ndim:
        raise ShapeError("dirichlet: alpha has an axis of at least one parameter, as [1.0, 2.0]")
    whole = (*extents_of(shape), given.shape[-1])
    draw = draw_of_floats("dirichlet", whole, (given,), dtype, where, generator)
    logs: Any = from_node(_gamma_node(draw, "random_log_gamma", given))
    if not logs.size:
        return draw.result(logs._node)
    sizes: Any = _exp(logs - greatest(logs, axis=-1, keepdims=True))
    shares: Any = sizes / total(sizes, axis=-1, keepdims=True)
    return draw.result(shares._node)


def laplace(
    shape: Shape,
    loc: Any = 0.0,
    scale: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the Laplace distribution around `loc`, of the standard deviation scale * sqrt(2).
    Both may be arrays that broadcast to the shape; scale is not negative.

    >>> import treadle as td
    >>> laplace((2, 3), 1.0, 0.5, device="cpu").shape
    (2, 3)
    """
    return _around("laplace", shape, loc, scale, dtype, device, generator)


def cauchy(
    shape: Shape,
    loc: Any = 0.0,
    scale: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the Cauchy distribution, whose median is `loc`: half of them are within `scale` of
    it. Both may be arrays that broadcast to the shape; scale is not negative.

    >>> import treadle as td
    >>> cauchy((2, 3), 1.0, 0.5, device="cpu").shape
    (2, 3)
    """
    return _around("cauchy", shape, loc, scale, dtype, device, generator)


def _around(
    name: str, shape: Shape, loc: Any, scale: Any, dtype: Any, device: Any, generator: Any
) -> Tensor:
    draw = draw_of_floats(name, shape, (loc, scale), dtype, device, generator)
    check_parameter(name, "scale", scale, _not_negative, "0 or more")
    found = draw.node(f"{name}_f{draw.working.bits}", draw.working, draw.word())
    return draw.result(draw.scaled(found, scale, loc))


def log_normal(
    shape: Shape,
    mean: Any = 0.0,
    std: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers whose logarithms are `normal(shape, mean, std)`.

    >>> import treadle as td
    >>> float(log_normal(100, device="cpu").numpy().min()) > 0
    True
    """
    draw = draw_of_floats("log_normal", shape, (mean, std), dtype, device, generator)
    check_parameter("log_normal", "std", std, _not_negative, "0 or more")
    name = "random_normal" if draw.working.bits == 32 else "random_normal_64"
    found = draw.scaled(draw.node(name, draw.working, *draw.key), std, mean)
    return draw.result(draw.node("exp", draw.working, found))
