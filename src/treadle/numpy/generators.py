"""`np.random.Generator`: NumPy's distributions, drawn on the device by treadle's generator."""

from __future__ import annotations

import math
from collections.abc import Callable, MutableSequence
from typing import Any

import numpy as np

import treadle as td
from treadle.numpy import promotion
from treadle.numpy.absent import WITHIN
from treadle.numpy.arrays import HELD, ndarray, unwrapped, value_of
from treadle.numpy.operations import creation, operands
from treadle.runtime.devices import Device
from treadle.tensor.checks import in_host_memory, looked_at
from treadle.tensor.compiled.tracing import is_tracing
from treadle.tensor.random import rejection
from treadle.tensor.tensor import Tensor as Inner


class BitGenerator:
    """What `rng.bit_generator` is: treadle's generator (`td`), with NumPy's `state`, a dict that
    may be kept and set again."""

    def __init__(self, generator: td.Generator) -> None:
        self.td = generator

    @property
    def state(self) -> dict[str, Any]:
        """The seed and the position."""
        seed, position = self.td.get_state()
        return {"bit_generator": "treadle", "state": {"seed": seed, "position": position}}

    @state.setter
    def state(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise TypeError("state must be a dict")
        if value.get("bit_generator") != "treadle":
            raise ValueError(
                "state must be for a treadle PRNG: draws are by treadle's generator, which cannot "
                "continue one of NumPy's"
            )
        self.td.set_state((value["state"]["seed"], value["state"]["position"]))

    def __repr__(self) -> str:
        return f"BitGenerator({self.td!r})"


class Generator:
    """A stream of random numbers: `np.random.default_rng(seed)`.

    >>> import treadle.numpy as np
    >>> rng = np.random.default_rng(7)
    >>> rng.integers(0, 10, 5).shape, 0 <= float(rng.random()) < 1
    ((5,), True)
    """

    def __init__(self, generator: Any = None, device: Any = None) -> None:
        generator = generator.td if isinstance(generator, BitGenerator) else generator
        self._generator = generator if isinstance(generator, td.Generator) else td.Generator()
        self._device = device

    @property
    def bit_generator(self) -> BitGenerator:
        """Treadle's generator, whose `state` is a seed and a position."""
        return BitGenerator(self._generator)

    def __getattr__(self, name: str) -> Any:
        reason = WITHIN.get(f"random.Generator.{name}")
        said = f": {reason}" if reason else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{said}")

    def __repr__(self) -> str:
        return f"Generator({self._generator!r})"

    def spawn(self, n_children: int) -> list[Generator]:
        """Generators with seeds that this one draws."""
        seeds = self.integers(0, 2**31, n_children).tolist()
        return [Generator(td.Generator(seed), self._device) for seed in seeds]

    # --- what the methods share -------------------------------------------------------------------

    def _where(self, *parameters: Any) -> Device:
        """Where draws are: with the arrays among the parameters, else on the generator's device."""
        given = [unwrapped(each) for each in parameters]
        if any(type(each) is Inner for each in given):
            return promotion.device_of(given)
        return promotion.place(self._device)

    def _draw(
        self, draw: Callable[..., Inner], size: Any, parameters: tuple[Any, ...], dtype: Any = None
    ) -> Inner:
        """Draw in the shape `size`, or the one to which the parameters broadcast."""
        given = [unwrapped(each) for each in parameters]
        where = self._where(*given)
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
        given = [unwrapped(each) for each in parameters]
        where = self._where(*given)
        wanted = promotion.default_float(where)
        made = [
            each
            if isinstance(each, (int, float))
            else operands.array(each, device=where).to(wanted)
            for each in given
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
        _check(high - low, np.isfinite, "high - low range exceeds valid bounds", OverflowError)
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
        where = self._where(low, high)
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
        else:
            _check(low < high, lambda x: x, "low > high" if endpoint else "low >= high")
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
            if not isinstance(x, (MutableSequence, np.ndarray)):
                raise TypeError("shuffle writes into an array or a list")
            if axis != 0 and not isinstance(x, np.ndarray):
                raise NotImplementedError("Axis argument is only supported on ndarray objects")
            count = x.shape[axis] if isinstance(x, np.ndarray) else len(x)
            order = td.random.permutation(
                count, device=self._where(), generator=self._generator
            ).tolist()
            x[:] = np.take(x, order, axis) if isinstance(x, np.ndarray) else [x[at] for at in order]
            return
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
        _check(alpha, lambda x: x >= 0, "alpha < 0")
        where = self._where(alpha)
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
        _check(mode - left, lambda x: x >= 0, "left > mode")
        _check(right - mode, lambda x: x >= 0, "mode > right")
        _check(right - left, lambda x: x != 0, "left == right")
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

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """How often each of several outcomes comes up in n trials: for each n, and each row of
        probabilities."""
        chances = operands.host(unwrapped(pvals)).astype(np.float64)
        if not chances.ndim or not chances.shape[-1]:
            raise ValueError("pvals must have at least 1 dimension, and the last one elements")
        if not ((chances >= 0) & (chances <= 1)).all():
            raise ValueError("pvals < 0, pvals > 1 or pvals contains NaNs")
        if chances.size and chances[..., :-1].sum(-1).max() > 1 + 1e-12:
            raise ValueError("sum(pvals[:-1]) > 1.0")
        trials = operands.host(unwrapped(n))
        if trials.dtype.kind not in "iub":
            trials = trials.astype(np.int64)
        if (trials < 0).any():
            raise ValueError("n < 0")
        own = np.broadcast_shapes(trials.shape, chances.shape[:-1])
        shape = own if size is None else operands.shape_of(unwrapped(size))
        if np.broadcast_shapes(shape, own) != shape:
            raise ValueError("Output size is not compatible with broadcast dimensions of inputs.")
        where = self._where()
        wanted, kind = promotion.default_float(where), promotion.default_integer(where)
        most = int(trials.max()) if trials.size else 0
        # The last outcome has what the others leave, as in NumPy.
        edges = td.asarray(np.cumsum(chances, -1)[..., :-1], device=where, dtype=wanted)
        u = td.random.uniform((*shape, most), dtype=wanted, device=where, generator=self._generator)
        if edges.ndim == 1:
            chosen = td.searchsorted(edges, u.reshape(-1), side="right").reshape(u.shape)
        else:
            beyond = td.expand_dims(u, axis=-1) >= td.expand_dims(edges, axis=-2)
            chosen = td.sum(beyond, axis=-1)
        # Of several numbers of trials each has its first ones.
        counted = td.arange(most, device=where) < td.asarray(trials[..., None], device=where)
        each = td.arange(chances.shape[-1], device=where)
        hits = (td.expand_dims(chosen, axis=-1) == each) & td.expand_dims(counted, axis=-1)
        return _result(td.sum(hits, axis=-2).to(kind))

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Any:
        """Angles near mu, from -pi to pi, of density in proportion to exp(kappa cos(x - mu))."""
        u, (mu, kappa) = self._uniform(size, mu, _not_negative("kappa", kappa))
        found = rejection.von_mises(_spread(kappa, u), self._generator) + mu
        return _result(td.remainder(found + math.pi, 2 * math.pi) - math.pi)

    def zipf(self, a: Any, size: Any = None) -> Any:
        """Whole numbers from 1 on, of probability in proportion to k ** -a."""
        _check(a, lambda x: x > 1, "a <= 1 or a is NaN")
        u, (a,) = self._uniform(size, a)
        kind = promotion.default_integer(u.device)
        most = float(2 ** (8 * kind.itemsize - 1)) * (1 - 2**-20)
        return _result(rejection.zipf(_spread(a, u), most, self._generator).to(kind))

    def logseries(self, p: Any, size: Any = None) -> Any:
        """Whole numbers from 1 on, of probability in proportion to p**k / k (Kemp, 1981)."""
        _check(p, lambda x: (x >= 0) & (x < 1), "p < 0, p >= 1 or p is NaN")
        u, (p,) = self._uniform(size, p)
        p = _spread(p, u)
        v = td.random.uniform(u.shape, dtype=u.dtype, device=u.device, generator=self._generator)
        q = -td.expm1(v * td.log1p(-p))
        u, q = 1 - u, td.maximum(q, td.finfo(q.dtype).smallest_normal)
        many = td.floor(1 + td.log(u) / td.log(q))
        found = td.where(u <= q * q, many, td.where(u <= q, 2.0, 1.0))
        # With p = 0 all are 1.
        found = td.where(u < p, td.maximum(found, 1.0), 1.0)
        return _result(found.to(promotion.default_integer(found.device)))

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Any:
        """The F distribution whose numerator is not central."""
        top = self.noncentral_chisquare(_positive("dfnum", dfnum), nonc, size)
        shape = top.shape if size is None and type(top) is ndarray else size
        low = self.chisquare(_positive("dfden", dfden), shape)
        return (top / dfnum) / (low / dfden)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Any:
        """How many of `nsample` things that are drawn are good, of `ngood` good and `nbad` bad
        ones: numbers, not arrays (NotImplementedError)."""
        counts = []
        for name, each in (("ngood", ngood), ("nbad", nbad), ("nsample", nsample)):
            given = operands.host(unwrapped(each))
            if given.ndim:
                raise NotImplementedError(
                    f"hypergeometric takes numbers, and {name} is an array: draw for each of its "
                    "elements"
                )
            if int(given) < 0:
                raise ValueError(f"{name} < 0")
            counts.append(int(given))
        good, bad, drawn = counts
        if drawn > good + bad:
            raise ValueError("ngood + nbad < nsample")
        where = self._where()
        first = max(0, drawn - bad)
        chances = _hypergeometric(good, bad, drawn)
        shape = () if size is None else operands.shape_of(unwrapped(size))
        weights = td.asarray(np.cumsum(chances)[:-1], dtype=promotion.default_float(where),
                             device=where)  # fmt: skip
        u = td.random.uniform(shape, dtype=weights.dtype, device=where, generator=self._generator)
        found = td.searchsorted(weights, u.reshape(-1), side="right").reshape(shape) + first
        return _result(found.to(promotion.default_integer(where)))

    def multivariate_hypergeometric(
        self, colors: Any, nsample: int, size: Any = None, method: str = "marginals"
    ) -> Any:
        """How many of each color are among `nsample` things that are drawn. A draw orders all
        things; `method` has no effect."""
        if method not in ("marginals", "count"):
            raise ValueError('method must be "count" or "marginals".')
        counts = operands.host(unwrapped(colors)).astype(np.int64)
        if counts.ndim != 1 or (counts < 0).any():
            raise ValueError("colors must be a one-dimensional sequence of nonnegative integers.")
        if not 0 <= int(nsample) <= counts.sum():
            raise ValueError("nsample must be nonnegative, and must not exceed sum(colors).")
        where = self._where()
        shape = () if size is None else operands.shape_of(unwrapped(size))
        kind = promotion.default_integer(where)
        things = td.asarray(np.repeat(np.arange(counts.size), counts), dtype=kind, device=where)
        keys = td.random.uniform(
            (*shape, things.size),
            dtype=promotion.default_float(where),
            device=where,
            generator=self._generator,
        )
        taken = things[td.argsort(keys, axis=-1)[..., : int(nsample)]]
        each = td.arange(counts.size, dtype=kind, device=where)
        made = td.sum(td.expand_dims(taken, axis=-1) == each, axis=-2)
        return _result(made.to(kind))

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
        where = self._where(mean, cov)
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


def _spread(parameter: Any, like: Inner) -> Inner:
    """A parameter, a number or an array, in the shape and dtype of draws."""
    given = td.asarray(parameter, dtype=like.dtype, device=like.device)
    return td.broadcast_to(given, like.shape)


def _hypergeometric(good: int, bad: int, drawn: int) -> Any:
    """The probabilities of all counts, from their ratios."""
    first, last = max(0, drawn - bad), min(drawn, good)
    k = np.arange(first, last, dtype=np.float64)
    ratios = (good - k) * (drawn - k) / ((k + 1) * (bad - drawn + k + 1))
    logs = np.concatenate(([0.0], np.cumsum(np.log(ratios))))
    chances = np.exp(logs - logs.max())
    return chances / chances.sum()


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


def _check(
    value: Any, holds: Callable[[Any], Any], message: str, error: type[Exception] = ValueError
) -> None:
    """An error for a number, a list or an array that does not hold what it must. Arrays of a
    device are looked at where that waits for nothing."""
    given = unwrapped(value)
    if isinstance(given, Inner):
        with in_host_memory():
            if not looked_at(given.device) or is_tracing.get():
                return
    if not np.all(holds(operands.host(given))):
        raise error(message)


def _not_negative(name: str, value: Any) -> Any:
    # As in NumPy, draws that are multiplied by NaN are NaN, without an error.
    takes_nan = name in ("scale", "sigma")
    _check(value, lambda x: ~(x < 0) if takes_nan else x >= 0, f"{name} < 0")
    return value


def _positive(name: str, value: Any) -> Any:
    _check(value, lambda x: x > 0, f"{name} <= 0")
    return value


def _chance(value: Any) -> Any:
    _check(value, lambda x: (x >= 0) & (x <= 1), "p < 0, p > 1 or p is NaN")
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
