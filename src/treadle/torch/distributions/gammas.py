"""Distributions that are made from gamma variables, whose draws have derivatives by the shape."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

import treadle as td
import treadle.torch as torch
from treadle.torch.distributions import constraints
from treadle.torch.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    broadcast,
)
from treadle.torch.tensors import Tensor

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def drawn_gamma(concentration: Tensor) -> Tensor:
    """Draws of the gamma distribution of rate 1, without derivatives. Where the concentration is
    0, they are 0."""
    given = concentration.detach()._inner
    return Tensor(td.random.gamma(given.shape, given, dtype=given.dtype))


def gamma_slope(a: Tensor, x: Tensor) -> Tensor:
    """The derivative by the shape `a` of the draw `x` of a gamma variable that keeps its quantile:
    `-(dP/da) / p` of the distribution function P and its density p (implicit reparameterization:
    Figurnov, Mohamed, Mnih, 2018).

    dP/da is the integral from 0 to x of p(t) (ln t - digamma(a)), and that over all t is 0, so that
    it is taken on the side of x away from the mode. With t = x exp(-+u) p(t) / p(x) falls along u
    from 1 without another maximum, and ends before u = L, where it is below exp(-40).
    """
    nodes, weights = (
        torch.tensor(each, dtype=a.dtype, device=a.device) for each in (_NODES, _WEIGHTS)
    )
    y, dy = (nodes + 1) / 2, weights / 2
    away = a - x
    below = away >= 0
    # Below: -a u + x (1 - exp(-u)) <= -(a - x) u - x u**2 / (2 + u).
    half = 40 - 2 * away
    end_below = (half + (half * half + 320 * a).sqrt()) / (2 * a)
    # Above: a u - x (exp(u) - 1) <= (a - x) u - x u**2 / 2, and exp(u) - 1 - u is at most 40 / x.
    end_above = (away + (away * away + 80 * x).sqrt()) / x
    ended = torch.log1p(40 / x + (80 / x).sqrt())
    end = torch.where(below, end_below, torch.minimum(end_above, ended))
    u = end.unsqueeze(-1) * y**3
    du = end.unsqueeze(-1) * 3 * y**2 * dy
    sign = torch.where(below, -1.0, 1.0).to(a.dtype).unsqueeze(-1)
    away, x_, a_ = away.unsqueeze(-1), x.unsqueeze(-1), a.unsqueeze(-1)
    v = sign * u
    # exp(v) - 1 - v, whose leading parts cancel where v is small.
    small = (
        v
        * v
        * (
            1 / 2
            + v
            * (
                1 / 6
                + v
                * (
                    1 / 24
                    + v * (1 / 120 + v * (1 / 720 + v * (1 / 5040 + v * (1 / 40320 + v / 362880))))
                )
            )
        )
    )
    more = torch.where(v.abs() < 0.25, small, torch.expm1(v) - v)
    falls = (away * v - x_ * more).exp()
    # ln x - digamma(a), which nearly cancel where a is large.
    inverse = 1 / a_
    square = inverse * inverse
    rest = inverse / 2 + square * (1 / 12 - square * (1 / 120 - square / 252))
    near = torch.log1p(-away * inverse) + rest
    log = torch.where(a_ > 20, near, x_.log() - torch.digamma(a_))
    return x * sign.squeeze(-1) * ((log + v) * falls * du).sum(-1)


class _Gamma(torch.autograd.Function):
    """Draws of shape `a` and rate 1 as functions of `a`."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        """Draw."""
        x = drawn_gamma(a).clamp(min=float(torch.finfo(a.dtype).tiny))
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        """The implicit derivative."""
        a, x = ctx.saved_tensors
        return cotangent * gamma_slope(a, x)


def standard_gamma(a: Tensor) -> Tensor:
    """Draws with derivatives by the shape."""
    drawn: Tensor = _Gamma.apply(a)
    return drawn


class _GammaChance(torch.autograd.Function):
    """The probability of at most x for a gamma variable of shape a and rate 1."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, x: Tensor) -> Tensor:
        """The incomplete gamma function."""
        ctx.save_for_backward(a, x)
        return torch.special.gammainc(a, x)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, Tensor]:
        """By a it is the density times what a quantile moves by, with the other sign."""
        a, x = ctx.saved_tensors
        inside = x > 0
        held = torch.where(inside, x, 1.0)
        density = (torch.xlogy(a - 1, x) - x - torch.lgamma(a)).exp()
        slope = torch.where(inside, density * gamma_slope(a, held), 0.0)
        return -cotangent * slope, cotangent * density


def log_gamma(a: Tensor) -> Tensor:
    """Logarithms of draws with derivatives, also where draws are too small for their dtype: a
    variable of the shape a + 1 times U**(1 / a) has the shape a."""
    e = -torch.rand_like(a.detach()).clamp(min=float(torch.finfo(a.dtype).tiny)).log()
    return standard_gamma(a + 1).log() - e / a


def _log_beta(*shapes: Tensor) -> Tensor:
    whole = shapes[0]
    for each in shapes[1:]:
        whole = whole + each
    logs = [torch.lgamma(each) for each in shapes]
    return sum(logs[1:], logs[0]) - torch.lgamma(whole)


class Gamma(ExponentialFamily):
    """The gamma distribution of shape `concentration`, of draws divided by `rate`. Draws of
    `rsample` have derivatives by both.

    >>> import treadle.torch as torch
    >>> torch.distributions.Gamma(2.0, 1.0).log_prob(torch.tensor(1.0))
    tensor(-1.)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support: Any = constraints.nonnegative
    has_rsample = True
    _arguments = (("concentration", 0), ("rate", 0))

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        shape = self._extended_shape(sample_shape)
        tiny = float(torch.finfo(self.rate.dtype).tiny)
        return (standard_gamma(self.concentration.expand(shape)) / self.rate).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        a, rate = self.concentration, self.rate
        return torch.xlogy(a, rate) + torch.xlogy(a - 1, value) - rate * value - torch.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        given = torch.broadcast_tensors(self.concentration, self.rate * value)
        found: Tensor = _GammaChance.apply(*given)
        return found

    def entropy(self) -> Tensor:
        """The entropy."""
        a = self.concentration
        return a - self.rate.log() + torch.lgamma(a) + (1 - a) * torch.digamma(a)


class Chi2(Gamma):
    """The sum of `df` squares of normal variables."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "df": constraints.positive
    }

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (self.df,) = broadcast(df)
        super().__init__(0.5 * self.df, 0.5, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        return self._another({"df": self.df.expand(batch_shape)})


class InverseGamma(Distribution):
    """The reciprocal of a gamma variable."""

    arg_constraints = Gamma.arg_constraints
    support = constraints.positive
    has_rsample = True
    _arguments = (("concentration", 0), ("rate", 0))

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    def _gamma(self) -> Gamma:
        return Gamma(self.concentration, self.rate, False)

    @property
    def mean(self) -> Tensor:
        """The expectation: infinite for shapes up to 1."""
        a = self.concentration
        return torch.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """The variance: infinite for shapes up to 2."""
        a = self.concentration
        return torch.where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return self._gamma().rsample(sample_shape).reciprocal()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        return self._gamma().log_prob(value.reciprocal()) - 2 * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return 1 - self._gamma().cdf(value.reciprocal())

    def entropy(self) -> Tensor:
        """The entropy."""
        a = self.concentration
        return a + self.rate.log() + torch.lgamma(a) - (1 + a) * torch.digamma(a)


class Dirichlet(ExponentialFamily):
    """Numbers from 0 to 1 whose sum is 1, `(…, n)`.

    >>> import treadle.torch as torch
    >>> torch.distributions.Dirichlet(torch.tensor([1.0, 1.0])).log_prob(torch.tensor([0.25, 0.75]))
    tensor(0.)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True
    _arguments = (("concentration", 1),)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        """The most probable value; the first corner of several where all shapes are below 1."""
        least = (self.concentration - 1).clamp(min=0.0)
        found = least / least.sum(-1, keepdim=True)
        first = torch.zeros(self.batch_shape, dtype=torch.int64, device=found.device)
        corner = torch.nn.functional.one_hot(first, found.shape[-1]).to(found.dtype)
        return torch.where((self.concentration < 1).all(-1, keepdim=True), corner, found)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        whole = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (whole - self.concentration) / (whole**2 * (whole + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives: gamma variables divided by their sum."""
        shape = self._extended_shape(sample_shape)
        return log_gamma(self.concentration.expand(shape)).softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        a = self.concentration
        return torch.xlogy(a - 1, value).sum(-1) + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        """The entropy."""
        a = self.concentration
        whole, n = a.sum(-1), a.shape[-1]
        return (
            torch.lgamma(a).sum(-1)
            - torch.lgamma(whole)
            - (n - whole) * torch.digamma(whole)
            - ((a - 1) * torch.digamma(a)).sum(-1)
        )


class Beta(ExponentialFamily):
    """Numbers from 0 to 1, of density in proportion to `x**(concentration1 - 1) * (1 -
    x)**(concentration0 - 1)`."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _arguments = (("concentration1", 0), ("concentration0", 0))

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self._one, self._zero = broadcast(concentration1, concentration0)
        super().__init__(self._one.shape, validate_args=validate_args)

    def _check_parameters(self) -> None:
        self._both()._check_parameters()

    def _both(self) -> Dirichlet:
        return Dirichlet(torch.stack((self._one, self._zero), -1), False)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        one, zero = (each.expand(batch_shape) for each in (self._one, self._zero))
        return self._another({"concentration1": one, "concentration0": zero})

    @property
    def concentration1(self) -> Tensor:
        """The first shape."""
        return self._one

    @property
    def concentration0(self) -> Tensor:
        """The second shape."""
        return self._zero

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self._one / (self._one + self._zero)

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self._both().mode[..., 0]

    @property
    def variance(self) -> Tensor:
        """The variance."""
        whole = self._one + self._zero
        return self._one * self._zero / (whole**2 * (whole + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return self._both().rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        # 1 - x of a small x keeps less of it than a logarithm of its own does.
        one, zero = self._one, self._zero
        powers = torch.xlogy(one - 1, value) + torch.special.xlog1py(zero - 1, -value)
        return powers - _log_beta(one, zero)

    def entropy(self) -> Tensor:
        """The entropy."""
        return self._both().entropy()


class StudentT(Distribution):
    """Student's t distribution of `df` degrees of freedom."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _arguments = (("df", 0), ("loc", 0), ("scale", 0))

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The parameter `loc`; NaN up to 1 degree of freedom."""
        return torch.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        """The parameter `loc`."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance: infinite up to 2 degrees of freedom, NaN up to 1."""
        found = torch.where(self.df > 2, self.scale**2 * self.df / (self.df - 2), math.inf)
        return torch.where(self.df > 1, found, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives: a normal variable over the root of a squared one's mean."""
        shape = self._extended_shape(sample_shape)
        df = self.df.expand(shape)
        normal = torch.randn(shape, dtype=df.dtype, device=df.device)
        return self.loc + self.scale * normal * (df / (2 * standard_gamma(df / 2))).sqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        z = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1) * torch.log1p(z**2 / self.df) - self._log_whole()

    def _log_whole(self) -> Tensor:
        df = self.df
        ratio = torch.lgamma(0.5 * df) - torch.lgamma(0.5 * (df + 1))
        return self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi) + ratio

    def entropy(self) -> Tensor:
        """The entropy."""
        df = self.df
        change = torch.digamma(0.5 * (df + 1)) - torch.digamma(0.5 * df)
        return self._log_whole() + 0.5 * (df + 1) * change


class FisherSnedecor(Distribution):
    """The ratio of the means of `df1` and of `df2` squares of normal variables."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "df1": constraints.positive,
        "df2": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True
    _arguments = (("df1", 0), ("df2", 0))

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The expectation; NaN up to 2 degrees of freedom below."""
        return torch.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        """The most probable value; NaN up to 2 degrees of freedom above."""
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return torch.where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Tensor:
        """The variance; NaN up to 4 degrees of freedom below."""
        one, two = self.df1, self.df2
        found = 2 * two**2 * (one + two - 2) / (one * (two - 2) ** 2 * (two - 4))
        return torch.where(two > 4, found, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        shape = self._extended_shape(sample_shape)
        one, two = self.df1.expand(shape), self.df2.expand(shape)
        tiny = float(torch.finfo(one.dtype).tiny)
        below = (standard_gamma(two / 2) / two).clamp(min=tiny)
        return (standard_gamma(one / 2) / one / below).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        one, two = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        powers = (
            one * ratio.log() + (one - 1) * value.log() - (one + two) * torch.log1p(ratio * value)
        )
        return powers - _log_beta(one, two)
