"""`np.random.Generator`: NumPy's distributions, drawn on the device by treadle's generator."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.numpy import promotion
from treadle.numpy.arrays import HELD, ndarray, unwrapped, value_of
from treadle.numpy.operations import creation, operands
from treadle.runtime.devices import Device
from treadle.tensor.tensor import Tensor as Inner


class Generator:
    """A stream of random numbers: `np.random.default_rng(seed)`.

    >>> import treadle.numpy as np
    >>> rng = np.random.default_rng(7)
    >>> rng.integers(0, 10, 5).shape, 0 <= float(rng.random()) < 1
    ((5,), True)
    """

    def __init__(self, generator: Any = None, device: Any = None) -> None:
        self._generator = generator if isinstance(generator, td.Generator) else td.Generator()
        self._device = device

    @property
    def bit_generator(self) -> td.Generator:
        """Treadle's generator, whose state is a seed and a position."""
        return self._generator

    def __repr__(self) -> str:
        return f"Generator({self._generator!r})"

    def spawn(self, n_children: int) -> list[Generator]:
        """Generators with seeds that this one draws."""
        seeds = self.integers(0, 2**31, n_children).tolist()
        return [Generator(td.Generator(seed), self._device) for seed in seeds]

    # --- what the methods share -------------------------------------------------------------------

    def _where(self) -> Device:
        return promotion.place(self._device)

    def _draw(
        self, draw: Callable[..., Inner], size: Any, parameters: tuple[Any, ...], dtype: Any = None
    ) -> Inner:
        """Draw in the shape `size`, or the one to which the parameters broadcast."""
        given = [unwrapped(each) for each in parameters]
        where = (
            promotion.device_of(given) if any(type(e) is Inner for e in given) else self._where()
        )
        wanted = promotion.default_float(where) if dtype is None else promotion.named(dtype, where)
        made: list[Any] = []
        for each in given:
            if isinstance(each, (int, float)) and not isinstance(each, bool):
                made.append(each)
                continue
            each = operands.array(each, device=where)
            # The elements that a draw takes are of its dtype.
            made.append(each if each.dtype is wanted or each.dtype.is_integer else each.to(wanted))
        shapes = [each.shape for each in made if type(each) is Inner]
        shape = np.broadcast_shapes(*shapes) if size is None else operands.shape_of(unwrapped(size))
        if size is not None and np.broadcast_shapes(shape, *shapes) != shape:
            raise ValueError("Output size is not compatible with broadcast dimensions of inputs.")
        made = [each.item() if type(each) is Inner and not each.shape else each for each in made]
        made = [each.to(wanted) if type(each) is Inner else each for each in made]
        return draw(shape, *made, dtype=wanted, device=where, generator=self._generator)

    def _uniform(self, size: Any, *parameters: Any) -> tuple[Inner, list[Any]]:
        """Numbers in [0, 1), and the parameters as tensors or numbers."""
        return self._standard(td.random.uniform, size, parameters)

    def _standard(
        self, draw: Callable[..., Inner], size: Any, parameters: tuple[Any, ...]
    ) -> tuple[Inner, list[Any]]:
        where = self._where()
        wanted = promotion.default_float(where)
        made = [
            each
            if isinstance(each, (int, float))
            else operands.array(unwrapped(each), device=where).to(wanted)
            for each in parameters
        ]
        shapes = [each.shape for each in made if type(each) is Inner]
        shape = np.broadcast_shapes(*shapes) if size is None else operands.shape_of(unwrapped(size))
        found = draw(shape, dtype=wanted, device=where, generator=self._generator)
        return found, made

    # --- plain draws ------------------------------------------------------------------------------

    def random(self, size: Any = None, dtype: Any = None, out: ndarray | None = None) -> Any:
        """Numbers in [0, 1)."""
        return _result(self._draw(td.random.uniform, _size(size, out), (), _kind(dtype, out)), out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Numbers in [low, high)."""
        u, (low, high) = self._uniform(size, low, high)
        return _result(u * (high - low) + low)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = None,
        endpoint: bool = False,
    ) -> Any:
        """Integers from `low` on, before `high` (up to it with `endpoint`)."""
        if high is None:
            low, high = 0, low
        where = self._where()
        kind = (
            promotion.default_integer(where)
            if dtype is None or dtype is int
            else promotion.named(dtype, where)
        )
        low, high = (_numbers(each, where) for each in (low, high))
        high = high + 1 if endpoint else high
        if not isinstance(low, Inner) and not isinstance(high, Inner):
            limits = td.iinfo(kind) if kind.is_integer else None
            least, most = (limits.min, limits.max) if limits else (0, 1)
            if low < least:
                raise ValueError(f"low is out of bounds for {kind.name}")
            if high - 1 > most:
                raise ValueError(f"high is out of bounds for {kind.name}")
            if low >= high:
                raise ValueError("low >= high" if not endpoint else "low > high")
        shapes = [each.shape for each in (low, high) if type(each) is Inner]
        shape = np.broadcast_shapes(*shapes) if size is None else operands.shape_of(unwrapped(size))
        work = td.uint8 if kind.kind == "bool" else kind
        made = td.random.integers(
            shape, low, high, dtype=work, device=where, generator=self._generator
        )
        return value_of(made.to(kind))

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        return self.integers(0, 256, length, dtype=np.uint8).tobytes()  # type: ignore[no-any-return]

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0,
        shuffle: bool = True,
    ) -> Any:  # fmt: skip
        """Elements of an array (of arange(a), if it is an integer)."""
        where = self._where()
        if isinstance(a, (int, np.integer)):
            if a < 0 or (a == 0 and size not in (0, (0,))):
                raise ValueError("a must be a positive integer unless no samples are taken")
            x = creation.arange(int(a), device=where)
        else:
            x = operands.array(unwrapped(a))
            if not x.shape:
                x = creation.arange(int(x.item()), device=where)
        shape = () if size is None else operands.shape_of(unwrapped(size))
        if not replace and math.prod(shape) > x.shape[axis]:
            raise ValueError("Cannot take a larger sample than population when replace is False")
        weights = None
        if p is not None:
            chances = operands.host(unwrapped(p)).astype(np.float64)
            if chances.ndim != 1 or chances.size != x.shape[axis]:
                raise ValueError("a and p must have same size")
            if (chances < 0).any():
                raise ValueError("Probabilities are not non-negative")
            if abs(chances.sum() - 1) > 1e-8 * max(chances.size, 1):
                raise ValueError(
                    "Probabilities do not sum to 1. See Notes section of docstring for more "
                    "information."
                )
            weights = td.asarray(chances.astype(np.float32), device=x.device)
        made = td.random.choice(x, shape, replace, weights, axis=axis, generator=self._generator)
        return value_of(made)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """The elements in a random order (of arange(x), if it is an integer)."""
        if isinstance(x, (int, np.integer)):
            x = creation.arange(int(x), device=self._where())
        given = operands.array(unwrapped(x))
        at = operands.axis_of(axis, len(given.shape))
        order = td.random.permutation(
            given.shape[at], device=given.device, generator=self._generator
        )
        return _result(given[(*(slice(None),) * at, order)])

    def permuted(self, x: Any, *, axis: Any = None, out: ndarray | None = None) -> Any:
        """The elements along each line of an axis in a random order of its own."""
        given = operands.array(unwrapped(x))
        flat = given.reshape(-1) if axis is None else given
        at = operands.axis_of(0 if axis is None else axis, len(flat.shape))
        keys = td.random.uniform(flat.shape, device=flat.device, generator=self._generator)
        made = td.take_along_axis(flat, td.argsort(keys, axis=at), axis=at)
        return _result(made.reshape(given.shape), out)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Bring the elements along an axis into a random order, in place."""
        if type(x) is not ndarray:
            raise TypeError("shuffle writes into an array of treadle.numpy")
        inner = x._inner
        order = td.random.permutation(
            inner.shape[axis], device=inner.device, generator=self._generator
        )
        inner[...] = inner[(*(slice(None),) * (axis % len(inner.shape)), order)]

    # --- distributions ----------------------------------------------------------------------------

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """The normal distribution."""
        z, (loc, scale) = self._standard(
            td.random.normal, size, (loc, _not_negative("scale", scale))
        )
        return _result(z * scale + loc)

    def standard_normal(
        self, size: Any = None, dtype: Any = None, out: ndarray | None = None
    ) -> Any:
        """The normal distribution of mean 0 and variance 1."""
        return _result(self._draw(td.random.normal, _size(size, out), (), _kind(dtype, out)), out)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """The exponential distribution."""
        e, (scale,) = self._standard(td.random.exponential, size, (_not_negative("scale", scale),))
        return _result(e * scale)

    def standard_exponential(
        self, size: Any = None, dtype: Any = None, method: str = "zig", out: ndarray | None = None
    ) -> Any:
        """The exponential distribution of mean 1."""
        return _result(
            self._draw(td.random.exponential, _size(size, out), (), _kind(dtype, out)), out
        )

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """The gamma distribution."""
        given = (_not_negative("shape", shape), _not_negative("scale", scale))
        return _result(self._draw(td.random.gamma, size, given))

    def standard_gamma(
        self, shape: Any, size: Any = None, dtype: Any = None, out: ndarray | None = None
    ) -> Any:
        """The gamma distribution of scale 1."""
        return _result(
            self._draw(
                td.random.gamma,
                _size(size, out),
                (_not_negative("shape", shape),),
                _kind(dtype, out),
            ),
            out,
        )

    def beta(self, a: Any, b: Any, size: Any = None) -> Any:
        """The beta distribution."""
        return _result(self._draw(td.random.beta, size, (_positive("a", a), _positive("b", b))))

    def chisquare(self, df: Any, size: Any = None) -> Any:
        """The chi-square distribution."""
        return _result(self._draw(td.random.chisquare, size, (_positive("df", df),)))

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Any:
        """Chi-square of normal numbers whose means are not 0."""
        df, nonc = _positive("df", df), _not_negative("nonc", nonc)
        z, (freedom, moved) = self._standard(td.random.normal, size, (df, nonc))
        # A Poisson mixture of chi-squares, which holds for every df.
        count = self._draw(td.random.poisson, z.shape, (_half(moved),))
        return _result(self._draw(td.random.chisquare, z.shape, (freedom + 2 * count,)))

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Any:
        """The F distribution."""
        dfnum, dfden = _positive("dfnum", dfnum), _positive("dfden", dfden)
        z, (one, other) = self._uniform(size, dfnum, dfden)
        top = self._draw(td.random.chisquare, z.shape, (one,)) / one
        return _result(top / (self._draw(td.random.chisquare, z.shape, (other,)) / other))

    def standard_t(self, df: Any, size: Any = None) -> Any:
        """Student's t distribution."""
        return _result(self._draw(td.random.student_t, size, (_positive("df", df),)))

    def dirichlet(self, alpha: Any, size: Any = None) -> Any:
        """The Dirichlet distribution: numbers that add up to 1."""
        where = self._where()
        wanted = promotion.default_float(where)
        given = operands.array(unwrapped(alpha), device=where).to(wanted)
        shape = () if size is None else operands.shape_of(unwrapped(size))
        return _result(
            td.random.dirichlet(shape, given, dtype=wanted, device=where, generator=self._generator)
        )

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
        """Numbers whose logarithm is normal."""
        z, (mean, sigma) = self._standard(
            td.random.normal, size, (mean, _not_negative("sigma", sigma))
        )
        return _result(td.exp(z * sigma + mean))

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """The Laplace distribution."""
        e, (loc, scale) = self._standard(
            td.random.exponential, size, (loc, _not_negative("scale", scale))
        )
        side = td.random.bernoulli(e.shape, 0.5, device=e.device, generator=self._generator)
        return _result(td.where(side, e, -e) * scale + loc)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """The Gumbel distribution."""
        e, (loc, scale) = self._standard(
            td.random.exponential, size, (loc, _not_negative("scale", scale))
        )
        return _result(loc - scale * td.log(e))

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """The logistic distribution."""
        u, (loc, scale) = self._uniform(size, loc, _not_negative("scale", scale))
        u = td.clip(u, 1e-300 if u.dtype is td.float64 else 1e-30)
        return _result(loc + scale * (td.log(u) - td.log1p(-u)))

    def pareto(self, a: Any, size: Any = None) -> Any:
        """The Lomax distribution."""
        e, (a,) = self._standard(td.random.exponential, size, (_positive("a", a),))
        return _result(td.expm1(e / a))

    def power(self, a: Any, size: Any = None) -> Any:
        """Numbers in [0, 1] with density a * x**(a - 1)."""
        e, (a,) = self._standard(td.random.exponential, size, (_positive("a", a),))
        return _result((-td.expm1(-e)) ** (1.0 / a))

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Any:
        """The Rayleigh distribution."""
        e, (scale,) = self._standard(td.random.exponential, size, (_not_negative("scale", scale),))
        return _result(scale * td.sqrt(2 * e))

    def standard_cauchy(self, size: Any = None) -> Any:
        """The Cauchy distribution."""
        u, _ = self._uniform(size)
        return _result(td.tan(math.pi * (u - 0.5)))

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Any:
        """The triangular distribution."""
        u, (left, mode, right) = self._uniform(size, left, mode, right)
        if all(isinstance(each, (int, float)) for each in (left, mode, right)):
            if left > mode:
                raise ValueError("left > mode")
            if mode > right:
                raise ValueError("mode > right")
            if left == right:
                raise ValueError("left == right")
        base = right - left
        below = left + td.sqrt(u * base * (mode - left))
        above = right - td.sqrt((1 - u) * base * (right - mode))
        return _result(td.where(u < (mode - left) / base, below, above))

    def weibull(self, a: Any, size: Any = None) -> Any:
        """The Weibull distribution."""
        e, (a,) = self._standard(td.random.exponential, size, (_not_negative("a", a),))
        return _result(e ** (1.0 / a))

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Any:
        """The inverse Gaussian distribution."""
        z, (mean, scale) = self._standard(
            td.random.normal, size, (_positive("mean", mean), _positive("scale", scale))
        )
        y = mean * z * z
        low = mean + mean * (y - td.sqrt(y * (4 * scale + y))) / (2 * scale)
        u = td.random.uniform(z.shape, dtype=z.dtype, device=z.device, generator=self._generator)
        return _result(td.where(u <= mean / (mean + low), low, mean * mean / low))

    def _counts(self, draw: Callable[..., Inner], size: Any, parameters: tuple[Any, ...]) -> Inner:
        made = self._draw(draw, size, parameters)
        return made.to(promotion.default_integer(made.device))

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """The Poisson distribution."""
        return _result(self._counts(td.random.poisson, size, (_not_negative("lam", lam),)))

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """The binomial distribution."""
        return _result(self._counts(td.random.binomial, size, (_not_negative("n", n), _chance(p))))

    def geometric(self, p: Any, size: Any = None) -> Any:
        """The number of trials until one succeeds."""
        e, (p,) = self._standard(td.random.exponential, size, (_chance(p),))
        least = td.log1p(-p) if type(p) is Inner else math.log1p(-p) if p < 1 else -math.inf
        made = td.maximum(td.ceil(-e / least), 1.0)
        return _result(made.to(promotion.default_integer(made.device)))

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """The number of failures before n successes."""
        u, (n, p) = self._uniform(size, _positive("n", n), _chance(p))
        rate = self._draw(td.random.gamma, u.shape, (n,)) * ((1 - p) / p)
        return _result(self._counts(td.random.poisson, u.shape, (value_of(rate),)))

    def multinomial(self, n: int, pvals: Any, size: Any = None) -> Any:
        """How often each of several outcomes comes up in n trials."""
        chances = operands.host(unwrapped(pvals)).astype(np.float64)
        if chances[..., :-1].sum(-1).max() > 1 + 1e-12:
            raise ValueError("sum(pvals[:-1]) > 1.0")
        shape = () if size is None else operands.shape_of(unwrapped(size))
        where = self._where()
        trials, kinds = int(n), chances.shape[-1]
        edges = td.asarray(
            np.cumsum(chances)[:-1], device=where, dtype=promotion.default_float(where)
        )
        u = td.random.uniform(
            (*shape, trials), dtype=edges.dtype, device=where, generator=self._generator
        )
        chosen = td.searchsorted(edges, u.reshape(-1), side="right").reshape(u.shape)
        each = td.arange(kinds, device=where)
        made = td.sum(td.expand_dims(chosen, axis=-1) == each, axis=-2)
        return _result(made.to(promotion.default_integer(where)))

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> Any:
        """The normal distribution of several numbers with covariances."""
        where = self._where()
        wanted = promotion.default_float(where)
        center, spread = (
            operands.array(unwrapped(each), device=where).to(wanted) for each in (mean, cov)
        )
        if len(center.shape) != 1:
            raise ValueError("mean must be 1 dimensional")
        if spread.shape != (center.size, center.size):
            raise ValueError(
                "mean and cov must have same length"
                if len(spread.shape) == 2
                else "cov must be 2 dimensional and square"
            )
        shape = () if size is None else operands.shape_of(unwrapped(size))
        z = td.random.normal(
            (*shape, center.size), dtype=wanted, device=where, generator=self._generator
        )
        _, s, vh = td.linalg.svd(spread)
        return _result(td.matmul(z, td.sqrt(s).reshape((-1, 1)) * vh) + center)


def number(drawn: Any) -> Any:
    """One draw as a number of Python's, where its device need not be waited for."""
    return drawn if type(drawn) in HELD else drawn.item()


def _result(made: Inner, out: ndarray | None = None) -> Any:
    if out is None:
        return number(value_of(made))
    if out._inner.shape != made.shape:
        raise ValueError("size must match out.shape when used together")
    out._inner[...] = made
    return out


def _size(size: Any, out: ndarray | None) -> Any:
    return out._inner.shape if out is not None and size is None else size


def _kind(dtype: Any, out: ndarray | None) -> Any:
    return out._inner.dtype.numpy if out is not None and dtype is None else dtype


def _numbers(value: Any, where: Device) -> Any:
    given = unwrapped(value)
    if isinstance(given, (int, float, np.generic)):
        return int(given)
    made = operands.array(given, device=where)
    return made if made.shape else int(made.item())


def _half(value: Any) -> Any:
    return value / 2


def _not_negative(name: str, value: Any) -> Any:
    if isinstance(value, (int, float, np.number)) and not float(value) >= 0:
        raise ValueError(f"{name} < 0")
    return value


def _positive(name: str, value: Any) -> Any:
    if isinstance(value, (int, float, np.number)) and not float(value) > 0:
        raise ValueError(f"{name} <= 0")
    return value


def _chance(value: Any) -> Any:
    if isinstance(value, (int, float, np.number)) and not 0 <= float(value) <= 1:
        raise ValueError("p < 0, p > 1 or p is NaN")
    return value


def seed_of(seed: Any) -> int | None:
    """A seed of NumPy's as treadle's: numbers, arrays of them, a SeedSequence."""
    if seed is None:
        return None
    if isinstance(seed, (list, tuple, np.ndarray)):
        return int(
            np.random.SeedSequence([int(each) for each in seed]).generate_state(1, np.uint64)[0]
        )
    if isinstance(seed, np.random.SeedSequence):
        return int(seed.generate_state(1, np.uint64)[0])
    number = int(operands.host(unwrapped(seed)))
    if number < 0:
        raise ValueError("expected non-negative integer")
    return number % 2**64
