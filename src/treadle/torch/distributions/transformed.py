"""Distributions of functions of random variables, and those of powers of simple ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import treadle.torch as torch
from treadle.torch.distributions import constraints
from treadle.torch.distributions.distribution import (
    EULER,
    Distribution,
    Independent,
    broadcast,
    summed,
)
from treadle.torch.distributions.transform import ComposeTransform, Transform
from treadle.torch.layouts import Size
from treadle.torch.tensors import Tensor


class TransformedDistribution(Distribution):
    """The distribution of `transforms(x)`, one after another, for x of `base_distribution`.

    >>> import treadle.torch as torch
    >>> d = torch.distributions
    >>> made = d.TransformedDistribution(d.Normal(0.0, 1.0), d.transforms.ExpTransform())
    >>> made.log_prob(torch.tensor(1.0)) == d.LogNormal(0.0, 1.0).log_prob(torch.tensor(1.0))
    tensor(True)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        listed = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(listed, (list, tuple)) or not all(
            isinstance(each, Transform) for each in listed
        ):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = list(listed)
        chain = ComposeTransform(self.transforms)
        own = (*base_distribution.batch_shape, *base_distribution.event_shape)
        dimensions = len(base_distribution.event_shape)
        if len(own) < chain.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least "
                f"{chain.domain.event_dim}, but got {own}."
            )
        made = chain.forward_shape(own)
        wider = chain.inverse_shape(made)
        if tuple(wider) != own:
            base_distribution = base_distribution.expand(wider[: len(wider) - dimensions])
        more = chain.domain.event_dim - dimensions
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist: Any = base_distribution
        event = chain.codomain.event_dim + max(dimensions - chain.domain.event_dim, 0)
        at = len(made) - event
        super().__init__(made[:at], made[at:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        made = self.__new__(type(self))
        vars(made).update(vars(self))
        chain = ComposeTransform(self.transforms)
        shape = chain.inverse_shape((*batch_shape, *self.event_shape))
        made.base_dist = self.base_dist.expand(
            shape[: len(shape) - len(self.base_dist.event_shape)]
        )
        made._batch_shape = Size(batch_shape)
        return made

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether draws have derivatives."""
        return bool(self.base_dist.has_rsample)

    @constraints.dependent_property()
    def support(self) -> Any:
        """What values may be."""
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws without derivatives."""
        with torch.no_grad():
            x: Tensor = self.base_dist.sample(sample_shape)
            for each in self.transforms:
                x = each(x)
            return x

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives, where those of the base have them."""
        x: Tensor = self.base_dist.rsample(sample_shape)
        for each in self.transforms:
            x = each(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        dimensions = len(self.event_shape)
        log: Any = 0.0
        y = value
        for each in reversed(self.transforms):
            x = each.inv(y)
            dimensions += each.domain.event_dim - each.codomain.event_dim
            slope = each.log_abs_det_jacobian(x, y)
            log = log - summed(slope, dimensions - each.domain.event_dim)
            y = x
        density = self.base_dist.log_prob(y)
        return log + summed(density, dimensions - len(self.base_dist.event_shape))  # type: ignore[no-any-return]

    def _turned(self, value: Tensor) -> Tensor:
        # Where the transforms fall, at most a value means at least what it is made from.
        sign: Any = 1
        for each in self.transforms:
            sign = sign * each.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        for each in reversed(self.transforms):
            value = each.inv(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        value = self.base_dist.icdf(self._turned(value))
        for each in self.transforms:
            value = each(value)
        return value


class _Exponentials(Distribution):
    """Functions of exponential variables, by their quantiles."""

    has_rsample = True
    _like: str

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        like = vars(self)[self._like]
        drawn = torch.rand(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)
        eps = float(torch.finfo(like.dtype).eps)
        return self.icdf(drawn.clamp(eps / 2, 1 - eps))


class Weibull(_Exponentials):
    """`scale * e ** (1 / concentration)` of an exponential variable."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive
    _arguments = (("scale", 0), ("concentration", 0))
    _like = "scale"

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.scale * torch.lgamma(1 + 1 / self.concentration).exp()

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        k = self.concentration
        return torch.where(k > 1, self.scale * (((k - 1) / k).clamp(min=0)) ** (1 / k), 0.0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        k = self.concentration
        squares = torch.lgamma(1 + 2 / k).exp() - (2 * torch.lgamma(1 + 1 / k)).exp()
        return self.scale**2 * squares

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        k, ratio = self.concentration, (value / self.scale).log()
        return k.log() - self.scale.log() + (k - 1) * ratio - (k * ratio).exp()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return -torch.expm1(-((value / self.scale) ** self.concentration))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return self.scale * (-torch.log1p(-value)) ** (1 / self.concentration)

    def entropy(self) -> Tensor:
        """The entropy."""
        k = self.concentration
        return EULER * (1 - 1 / k) + (self.scale / k).log() + 1


class Pareto(_Exponentials):
    """Numbers from `scale` on, of density in proportion to `x ** (-alpha - 1)`."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "alpha": constraints.positive,
        "scale": constraints.positive,
    }
    _arguments = (("scale", 0), ("alpha", 0))
    _like = "scale"

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @constraints.dependent_property()
    def support(self) -> Any:
        """What values may be."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """The expectation: infinite for alpha up to 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        """The parameter `scale`."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """The variance: infinite for alpha up to 2."""
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        return self.alpha.log() + self.alpha * (self.scale / value).log() - value.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return -torch.expm1(self.alpha * (self.scale / value).log())

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        return self.scale * (-torch.log1p(-value) / self.alpha).exp()

    def entropy(self) -> Tensor:
        """The entropy."""
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()


class GeneralizedPareto(_Exponentials):
    """`loc + scale * (exp(concentration * e) - 1) / concentration` of an exponential variable."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    _arguments = (("loc", 0), ("scale", 0), ("concentration", 0))
    _like = "scale"

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast(loc, scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @constraints.dependent_property()
    def support(self) -> Any:
        """What values may be: from loc on, and bounded where the concentration is negative."""
        k = self.concentration
        upper = torch.where(k < 0, self.loc - self.scale / torch.where(k < 0, k, -1.0), math.inf)
        return constraints.interval(self.loc, upper)

    def _exponential(self, value: Tensor) -> Tensor:
        # The exponential variable that a value is made from.
        z, k = (value - self.loc) / self.scale, self.concentration
        flat = k == 0
        return torch.where(flat, z, torch.log1p(k * z) / torch.where(flat, 1.0, k))

    @property
    def mean(self) -> Tensor:
        """The expectation: infinite for a concentration of 1 or more."""
        k = self.concentration
        found = self.loc + self.scale / (1 - torch.where(k < 1, k, 0.0))
        return torch.where(k < 1, found, math.inf)

    @property
    def mode(self) -> Tensor:
        """The parameter `loc`."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance: infinite for a concentration of 1/2 or more."""
        k = torch.where(self.concentration < 0.5, self.concentration, 0.0)
        found = self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))
        return torch.where(self.concentration < 0.5, found, math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        return -(1 + self.concentration) * self._exponential(value) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return -torch.expm1(-self._exponential(value))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        e, k = -torch.log1p(-value), self.concentration
        flat = k == 0
        return self.loc + self.scale * torch.where(
            flat, e, torch.expm1(k * e) / torch.where(flat, 1.0, k)
        )

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.scale.log() + self.concentration + 1


class Kumaraswamy(_Exponentials):
    """Numbers from 0 to 1, of distribution function `1 - (1 - x**a)**b`."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    _arguments = (("concentration1", 0), ("concentration0", 0))
    _like = "concentration1"

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return (b.log() + torch.lgamma(first) + torch.lgamma(b) - torch.lgamma(first + b)).exp()

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """The most probable value; NaN where the density is infinite at an end."""
        a, b = self.concentration1, self.concentration0
        found = ((a - 1) / (a * b - 1)) ** (1 / a)
        return torch.where((a < 1) | (b < 1), math.nan, found)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self._moment(2) - self.mean**2

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        a, b = self.concentration1, self.concentration0
        rest = torch.special.xlog1py(b - 1, -(value**a))
        return a.log() + b.log() + torch.xlogy(a - 1, value) + rest

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        a, b = self.concentration1, self.concentration0
        return -torch.expm1(b * torch.log1p(-(value**a)))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        a, b = self.concentration1, self.concentration0
        return (-torch.expm1(torch.log1p(-value) / b)) ** (1 / a)

    def entropy(self) -> Tensor:
        """The entropy."""
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(b + 1) + EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()
