"""Distributions of real numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import treadle.torch as torch
from treadle.torch.distributions import constraints
from treadle.torch.distributions.distribution import (
    EULER,
    HALF_LOG_2_PI,
    Distribution,
    broadcast,
)
from treadle.torch.tensors import Tensor


class _Scaled(Distribution):
    """`loc + scale * z` of a fixed distribution of z."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }  # type: ignore[misc]
    support: Any = constraints.real
    _arguments: tuple[tuple[str, int], ...] = (("loc", 0), ("scale", 0))

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def _uniform(self, sample_shape: Any) -> Tensor:
        # Never 0 or 1, of which logarithms and quantiles are infinite.
        tiny = float(torch.finfo(self.loc.dtype).eps)
        drawn = torch.rand(
            self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device
        )
        return drawn.clamp(tiny / 2, 1 - tiny)


class Normal(_Scaled):
    """The normal distribution of mean `loc` and standard deviation `scale`.

    >>> import treadle.torch as torch
    >>> torch.distributions.Normal(0.0, 2.0).log_prob(torch.tensor(1.0))
    tensor(-1.7371)
    """

    @property
    def mean(self) -> Tensor:
        """The parameter `loc`."""
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Tensor:
        """The parameter `scale`."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """The square of `scale`."""
        return self.scale**2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives by loc and scale."""
        shape = self._extended_shape(sample_shape)
        drawn = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + self.scale * drawn

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        return -0.5 * self._standard(value) ** 2 - self.scale.log() - HALF_LOG_2_PI

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return 0.5 * torch.erfc(-self._standard(value) / math.sqrt(2))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return self.loc + self.scale * math.sqrt(2) * torch.erfinv(2 * value - 1)

    def entropy(self) -> Tensor:
        """The expectation of `-log_prob`."""
        return 0.5 + HALF_LOG_2_PI + self.scale.log()


class LogNormal(_Scaled):
    """The exponential of a normal distribution."""

    support = constraints.positive

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        """The variance."""
        square = self.scale**2
        return torch.expm1(square) * (2 * self.loc + square).exp()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return Normal(self.loc, self.scale, False).rsample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        return Normal(self.loc, self.scale, False).log_prob(value.log()) - value.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return Normal(self.loc, self.scale, False).cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return Normal(self.loc, self.scale, False).icdf(value).exp()

    def entropy(self) -> Tensor:
        """The entropy."""
        return Normal(self.loc, self.scale, False).entropy() + self.loc


class Laplace(_Scaled):
    """The density `exp(-|x - loc| / scale) / (2 * scale)`."""

    @property
    def mean(self) -> Tensor:
        """The parameter `loc`."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return 2 * self.scale**2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return self.icdf(self._uniform(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        return -(2 * self.scale).log() - self._standard(value).abs()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * torch.expm1(-z.abs())

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        away = value - 0.5
        return self.loc - self.scale * away.sign() * torch.log1p(-2 * away.abs())

    def entropy(self) -> Tensor:
        """The entropy."""
        return 1 + (2 * self.scale).log()


class Gumbel(_Scaled):
    """The distribution of extremes: less than x has the chance `exp(-exp(-(x - loc) / scale))`."""

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return math.pi**2 / 6 * self.scale**2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return self.icdf(self._uniform(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        z = self._standard(value)
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.scale.log() + (1 + EULER)


class Cauchy(_Scaled):
    """The density `1 / (pi * scale * (1 + z**2))`, which has no mean."""

    @property
    def mean(self) -> Tensor:
        """NaN: there is none."""
        return torch.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinity."""
        return torch.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return self.icdf(self._uniform(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        return -math.log(math.pi) - self.scale.log() - torch.log1p(self._standard(value) ** 2)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Tensor:
        """The entropy."""
        return math.log(4 * math.pi) + self.scale.log()


class HalfNormal(_Scaled):
    """The distance of a normal variable from its mean."""

    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive}  # type: ignore[misc]
    support = constraints.nonnegative
    _arguments = (("scale", 0),)

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.0, scale, validate_args)

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return torch.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale**2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return Normal(self.loc, self.scale, False).rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        log = Normal(self.loc, self.scale, False).log_prob(value) + math.log(2)
        return torch.where(value >= 0, log, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return 2 * Normal(self.loc, self.scale, False).cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return Normal(self.loc, self.scale, False).icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        """The entropy."""
        return Normal(self.loc, self.scale, False).entropy() - math.log(2)


class HalfCauchy(_Scaled):
    """The distance of a Cauchy variable from its middle."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "scale": constraints.positive
    }
    support = constraints.nonnegative
    _arguments = (("scale", 0),)

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.0, scale, validate_args)

    @property
    def mean(self) -> Tensor:
        """Infinity."""
        return torch.full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        """0."""
        return torch.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """Infinity."""
        return torch.full_like(self.scale, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return self._whole().rsample(sample_shape).abs()

    def _whole(self) -> Cauchy:
        return Cauchy(self.loc, self.scale, False)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        return torch.where(value >= 0, self._whole().log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return 2 * self._whole().cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return self._whole().icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        """The entropy."""
        return self._whole().entropy() - math.log(2)


class Uniform(Distribution):
    """All numbers from `low` to below `high` alike."""

    has_rsample = True
    _arguments = (("low", 0), ("high", 0))

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """What the parameters may be."""
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property()
    def support(self) -> Any:
        """What values may be."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        """The middle."""
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        """NaN: all values are alike."""
        return torch.full_like(self.low, math.nan)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        drawn = torch.rand(
            self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device
        )
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        within = (value >= self.low) & (value < self.high)
        return torch.where(within, -(self.high - self.low).log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        """The entropy."""
        return (self.high - self.low).log()


class Exponential(Distribution):
    """The density `rate * exp(-rate * x)`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.positive}  # type: ignore[misc]
    support = constraints.nonnegative
    _arguments = (("rate", 0),)

    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """1 / rate."""
        return self.rate.reciprocal()

    @property
    def stddev(self) -> Tensor:
        """1 / rate."""
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return torch.zeros_like(self.rate)

    @property
    def variance(self) -> Tensor:
        """1 / rate**2."""
        return self.rate**-2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        drawn = torch.rand(
            self._extended_shape(sample_shape), dtype=self.rate.dtype, device=self.rate.device
        )
        return -torch.log1p(-drawn) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        return torch.where(value >= 0, self.rate.log() - self.rate * value, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return -torch.expm1(-self.rate * value.clamp(min=0))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        """The entropy."""
        return 1 - self.rate.log()
