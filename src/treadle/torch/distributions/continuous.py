"""Distributions of real numbers."""

from __future__ import annotations

import math
from typing import Any

import treadle.torch as torch
from treadle.torch.distributions.distribution import (
    EULER,
    HALF_LOG_2_PI,
    Distribution,
    broadcast,
)
from treadle.torch.tensors import Tensor


class _Scaled(Distribution):
    """`loc + scale * z` of a fixed distribution of z."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        super().__init__(self.loc.shape)

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution for a larger batch."""
        return type(self)(self.loc.expand(batch_shape), self.scale.expand(batch_shape))

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def _uniform(self, sample_shape: Any) -> Tensor:
        # Never 0 or 1, of which logarithms and quantiles are infinite.
        tiny = float(torch.finfo(self.loc.dtype).eps)
        drawn = torch.rand(
            self._extended(sample_shape), dtype=self.loc.dtype, device=self.loc.device
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
        shape = self._extended(sample_shape)
        drawn = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + self.scale * drawn

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return -0.5 * self._standard(value) ** 2 - self.scale.log() - HALF_LOG_2_PI

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        return 0.5 * torch.erfc(-self._standard(value) / math.sqrt(2))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return self.loc + self.scale * math.sqrt(2) * torch.erfinv(2 * value - 1)

    def entropy(self) -> Tensor:
        """The expectation of `-log_prob`."""
        return 0.5 + HALF_LOG_2_PI + self.scale.log()


class LogNormal(_Scaled):
    """The exponential of a normal distribution."""

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def variance(self) -> Tensor:
        """The variance."""
        square = self.scale**2
        return torch.expm1(square) * (2 * self.loc + square).exp()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return Normal(self.loc, self.scale).rsample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return Normal(self.loc, self.scale).log_prob(value.log()) - value.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        return Normal(self.loc, self.scale).cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return Normal(self.loc, self.scale).icdf(value).exp()

    def entropy(self) -> Tensor:
        """The entropy."""
        return Normal(self.loc, self.scale).entropy() + self.loc


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
        return -(2 * self.scale).log() - self._standard(value).abs()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
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
    def variance(self) -> Tensor:
        """The variance."""
        return math.pi**2 / 6 * self.scale**2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return self.icdf(self._uniform(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        z = self._standard(value)
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
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
    def variance(self) -> Tensor:
        """Infinity."""
        return torch.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return self.icdf(self._uniform(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return -math.log(math.pi) - self.scale.log() - torch.log1p(self._standard(value) ** 2)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Tensor:
        """The entropy."""
        return math.log(4 * math.pi) + self.scale.log()


class HalfNormal(_Scaled):
    """The distance of a normal variable from its mean."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.0, scale)

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution for a larger batch."""
        return HalfNormal(self.scale.expand(batch_shape))

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale**2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return Normal(self.loc, self.scale).rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        log = Normal(self.loc, self.scale).log_prob(value) + math.log(2)
        return torch.where(value >= 0, log, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        return 2 * Normal(self.loc, self.scale).cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return Normal(self.loc, self.scale).icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        """The entropy."""
        return Normal(self.loc, self.scale).entropy() - math.log(2)


class Uniform(Distribution):
    """All numbers from `low` to below `high` alike."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast(low, high)
        super().__init__(self.low.shape)

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution for a larger batch."""
        return Uniform(self.low.expand(batch_shape), self.high.expand(batch_shape))

    @property
    def mean(self) -> Tensor:
        """The middle."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        drawn = torch.rand(
            self._extended(sample_shape), dtype=self.low.dtype, device=self.low.device
        )
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        within = (value >= self.low) & (value < self.high)
        return torch.where(within, -(self.high - self.low).log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        """The entropy."""
        return (self.high - self.low).log()


class Exponential(Distribution):
    """The density `rate * exp(-rate * x)`."""

    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast(rate)
        super().__init__(self.rate.shape)

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution for a larger batch."""
        return Exponential(self.rate.expand(batch_shape))

    @property
    def mean(self) -> Tensor:
        """1 / rate."""
        return self.rate.reciprocal()

    @property
    def stddev(self) -> Tensor:
        """1 / rate."""
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        """1 / rate**2."""
        return self.rate**-2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        drawn = torch.rand(
            self._extended(sample_shape), dtype=self.rate.dtype, device=self.rate.device
        )
        return -torch.log1p(-drawn) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return torch.where(value >= 0, self.rate.log() - self.rate * value, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        return -torch.expm1(-self.rate * value.clamp(min=0))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        """The entropy."""
        return 1 - self.rate.log()


class MultivariateNormal(Distribution):
    """Normal variables that depend on each other: of mean `loc`, `(…, n)`, and a matrix `(…, n,
    n)`, which is the covariance, its inverse (`precision_matrix`), or the covariance's Cholesky
    factor (`scale_tril`). ValueError unless exactly one is given."""

    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if sum(each is not None for each in (covariance_matrix, precision_matrix, scale_tril)) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if scale_tril is None:
            if precision_matrix is not None:
                covariance_matrix = torch.linalg.inv(precision_matrix)
            given: Any = covariance_matrix
            scale_tril = torch.linalg.cholesky(given)
        shape = torch.broadcast_shapes(loc.shape[:-1], scale_tril.shape[:-2])
        n = loc.shape[-1]
        self.loc = loc.expand(*shape, n)
        self.scale_tril = scale_tril.expand(*shape, n, n)
        super().__init__(shape, (n,))

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return torch.cholesky_inverse(self.scale_tril)

    @property
    def mean(self) -> Tensor:
        """The parameter `loc`."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The covariance's diagonal."""
        return (self.scale_tril**2).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        shape = self._extended(sample_shape)
        drawn = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def _log_root(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        away = (value - self.loc).unsqueeze(-1)
        shape = torch.broadcast_shapes(away.shape[:-2], self.batch_shape)
        n = self.event_shape[0]
        z = torch.linalg.solve_triangular(
            self.scale_tril.expand(*shape, n, n), away.expand(*shape, n, 1), upper=False
        )
        return -0.5 * (z**2).sum((-2, -1)) - n * HALF_LOG_2_PI - self._log_root()

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.event_shape[0] * (0.5 + HALF_LOG_2_PI) + self._log_root()
