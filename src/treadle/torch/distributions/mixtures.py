"""Mixtures, angles, and the continuous form of truth values."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import treadle.torch as torch
from treadle.tensor.random.rejection import von_mises
from treadle.torch.distributions import constraints
from treadle.torch.distributions.discrete import Categorical, OfChance
from treadle.torch.distributions.distribution import Distribution, broadcast, recorded_property
from treadle.torch.tensors import Tensor


class MixtureSameFamily(Distribution):
    """Variables of one of several distributions of a class, `component_distribution`, along its
    batch's last dimension, which `mixture_distribution` draws. Draws have no derivatives.

    >>> import treadle.torch as torch
    >>> d = torch.distributions
    >>> middle = d.Normal(torch.tensor([-1.0, 1.0]), torch.ones(2))
    >>> d.MixtureSameFamily(d.Categorical(torch.ones(2)), middle).mean
    tensor(0.)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of torch.distributions."
                "Categorical"
            )
        if not isinstance(component, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of torch.distributions."
                "Distribution"
            )
        self._mixture, self._component = mixture, component
        shape = component.batch_shape[:-1]
        for one, other in zip(reversed(mixture.batch_shape), reversed(shape), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture.batch_shape}) is not compatible "
                    f"with `component_distribution.batch_shape[:-1]`({shape})"
                )
        if mixture.param_shape[-1] != component.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({mixture.param_shape[-1]}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({component.batch_shape[-1]})"
            )
        self._events = len(component.event_shape)
        super().__init__(shape, component.event_shape, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        count = self._component.batch_shape[-1]
        made = MixtureSameFamily(
            self._mixture.expand(batch_shape),
            self._component.expand((*batch_shape, count)),
            validate_args=False,
        )
        made._validate_args = self._validate_args
        return made

    @property
    def mixture_distribution(self) -> Categorical:
        """Which component is drawn."""
        return self._mixture

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component

    @constraints.dependent_property()
    def support(self) -> Any:
        """What values may be."""
        return constraints.MixtureSameFamilyConstraint(self._component.support)

    def _weights(self) -> Tensor:
        probs = self._mixture.probs
        return probs.reshape(*probs.shape, *(1 for _ in range(self._events)))

    def _weighted(self, values: Tensor) -> Tensor:
        return (self._weights() * values).sum(-1 - self._events)

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self._weighted(self._component.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances, and the variance of the means."""
        away = self._component.mean - self.mean.unsqueeze(-1 - self._events)
        return self._weighted(self._component.variance + away**2)

    def _padded(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - self._events)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        log = self._component.log_prob(self._padded(value))
        return (log + self._mixture.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        return (self._component.cdf(self._padded(value)) * self._mixture.probs).sum(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws."""
        with torch.no_grad():
            chosen = self._mixture.sample(sample_shape)
            drawn = self._component.sample(sample_shape)
            dim = len(sample_shape) + len(self._batch_shape)
            # A mixture for each row, or one for all rows.
            batch = len(self._mixture.batch_shape)
            fitted = (*sample_shape, *(1 for _ in range(len(self._batch_shape) - batch)))
            chosen = chosen.reshape(*fitted, *self._mixture.batch_shape)
            chosen = chosen.expand(*sample_shape, *self._batch_shape)
            at = chosen.reshape(*chosen.shape, *(1 for _ in range(self._events + 1)))
            at = at.expand(*chosen.shape, 1, *self._event_shape)
            return drawn.gather(dim, at).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture!r},\n  {self._component!r})"


class VonMises(Distribution):
    """Angles near `loc`, of density in proportion to `exp(concentration * cos(x - loc))`. Draws
    have no derivatives."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real
    _arguments = (("loc", 0), ("concentration", 0))

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The parameter `loc`."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The parameter `loc`."""
        return self.loc

    @recorded_property
    def variance(self) -> Tensor:
        """1 minus the length of the mean direction."""
        k = self.concentration
        return 1 - torch.special.i1e(k) / torch.special.i0e(k)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws from -pi to pi, by rejection (Best, Fisher, 1979)."""
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            drawn = Tensor(von_mises(self.concentration.detach().expand(shape)._inner))
            return (drawn + self.loc + math.pi) % (2 * math.pi) - math.pi

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        k = self.concentration
        whole = math.log(2 * math.pi) + torch.special.i0e(k).log()
        return k * ((value - self.loc).cos() - 1) - whole


class ContinuousBernoulli(OfChance):
    """Numbers from 0 to 1, of density in proportion to `p**x * (1 - p)**(1 - x)` (Loaiza-Ganem,
    Cunningham, 2019). Between the `lims` of p, where formulas cancel, they are series."""

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        super().__init__(probs, logits, validate_args)

    def _another(self, given: dict[str, Any]) -> Any:
        return super()._another({"lims": self._lims, **given})

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """P within what formulas take, where it is near 1/2, and p away from there."""
        eps = float(torch.finfo(self.probs.dtype).eps)
        p = self.probs.clamp(eps, 1 - eps)
        near = (p > self._lims[0]) & (p < self._lims[1])
        return p, near, torch.where(near, self._lims[0], p)

    def _log_constant(self) -> Tensor:
        p, near, cut = self._parts()
        slope = torch.log1p(-cut) - cut.log()  # 2 atanh(1 - 2 p)
        square = (p - 0.5) ** 2
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * square) * square
        return torch.where(near, series, (slope / (1 - 2 * cut)).log())

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        p, near, cut = self._parts()
        x = p - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x
        found = cut / (2 * cut - 1) + 1 / (torch.log1p(-cut) - cut.log())
        return torch.where(near, series, found)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        p, near, cut = self._parts()
        square = (p - 0.5) ** 2
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * square) * square
        found = cut * (cut - 1) / (1 - 2 * cut) ** 2 + 1 / (torch.log1p(-cut) - cut.log()) ** 2
        return torch.where(near, series, found)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        p = self.probs
        return self.icdf(
            torch.rand(self._extended_shape(sample_shape), dtype=p.dtype, device=p.device)
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        return self._log_likelihood(value) + self._log_constant()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        self._checked(value)
        _, near, cut = self._parts()
        found = (cut**value * (1 - cut) ** (1 - value) + cut - 1) / (2 * cut - 1)
        return torch.where(near, value, found).clamp(0.0, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile."""
        _, near, cut = self._parts()
        low = torch.log1p(-cut)
        found = (torch.log1p(-cut + value * (2 * cut - 1)) - low) / (cut.log() - low)
        return torch.where(near, value, found)

    def entropy(self) -> Tensor:
        """The entropy."""
        p, _, _ = self._parts()
        no, yes = torch.log1p(-p), p.log()
        return self.mean * (no - yes) - self._log_constant() - no
