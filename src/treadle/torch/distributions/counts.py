"""Distributions of counts."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle.torch as torch
from treadle.torch.distributions import constraints
from treadle.torch.distributions.discrete import Categorical, Chosen, OfChance, support_of
from treadle.torch.distributions.distribution import (
    ExponentialFamily,
    broadcast,
)
from treadle.torch.tensors import Tensor


class Binomial(OfChance):
    """The number of successes in `total_count` trials.

    >>> import treadle.torch as torch
    >>> torch.distributions.Binomial(2, 0.5).log_prob(torch.tensor(1.0)).exp()
    tensor(0.5000)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _arguments = (("total_count", 0),)

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._choose(probs, logits, total_count)
        self.total_count = count.to(self._given.dtype)
        super(OfChance, self).__init__(self._given.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> Any:
        """What values may be."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return torch.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws."""
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._checked(value)
        n = self.total_count
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        softplus = torch.nn.functional.softplus(self.logits)
        return ways + value * self.logits - n * softplus

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0.0, 1.0, …, total_count, along a new first dimension. NotImplementedError where the
        counts differ."""
        count = int(self.total_count.max())
        if int(self.total_count.min()) != count:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        return support_of(self, count + 1, expand).to(self._given.dtype)

    def entropy(self) -> Tensor:
        """The entropy."""
        log = self.log_prob(self.enumerate_support(False))
        return -(log.exp() * log).sum(0)


class Poisson(ExponentialFamily):
    """The number of events, of which `rate` are expected.

    >>> import treadle.torch as torch
    >>> torch.distributions.Poisson(2.0).log_prob(torch.tensor(0.0))
    tensor(-2.)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "rate": constraints.nonnegative
    }
    support = constraints.nonnegative_integer
    _arguments = (("rate", 0),)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The parameter `rate`."""
        return self.rate

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        """The parameter `rate`."""
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws."""
        with torch.no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._checked(value)
        return torch.xlogy(value, self.rate) - self.rate - torch.lgamma(value + 1)


class NegativeBinomial(OfChance):
    """The number of successes, each of the chance `probs`, before `total_count` failures."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _arguments = (("total_count", 0),)

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._choose(probs, logits, total_count)
        self.total_count = count.to(self._given.dtype)
        super(OfChance, self).__init__(self._given.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws: of a Poisson distribution whose rate is drawn."""
        from treadle.torch.distributions.gammas import drawn_gamma

        with torch.no_grad():
            rate = drawn_gamma(self.total_count.expand(self._extended_shape(sample_shape)))
            return torch.poisson(rate * self.logits.exp())

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._checked(value)
        sigmoid = torch.nn.functional.logsigmoid
        n = self.total_count
        chance = n * sigmoid(-self.logits) + value * sigmoid(self.logits)
        ways = torch.lgamma(n + value) - torch.lgamma(value + 1) - torch.lgamma(n)
        return chance + torch.where(n + value == 0, 0.0, ways)


class Multinomial(Chosen):
    """How often each class comes in `total_count` trials."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args)
        self._by_logits = self._categorical._by_logits
        shape = self._given.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        inner = self._categorical.expand(batch_shape)
        name = "logits" if self._by_logits else "probs"
        return self._another({"total_count": self.total_count, name: inner._given})

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """What values may be."""
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Tensor:
        """The probabilities, whose sum is 1."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws of counts."""
        chosen = self._categorical.sample((*sample_shape, self.total_count))
        chosen = chosen.movedim(len(sample_shape), -1)
        counts = torch.zeros(
            self._extended_shape(sample_shape), dtype=self._given.dtype, device=self._given.device
        )
        ones = torch.ones(chosen.shape, dtype=counts.dtype, device=counts.device)
        return counts.scatter_add(-1, chosen, ones)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._checked(value)
        impossible = (value == 0) & (self.logits == -torch.inf)
        chance = torch.where(impossible, 0.0, self.logits * value).sum(-1)
        return torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1) + chance

    def entropy(self) -> Tensor:
        """The entropy."""
        n = self.total_count
        each = Binomial(n, probs=self.probs, validate_args=False)
        values = each.enumerate_support(False)[1:]
        ways = (each.log_prob(values).exp() * torch.lgamma(values + 1)).sum((0, -1))
        most = torch.lgamma(torch.tensor(n + 1.0, dtype=ways.dtype, device=ways.device))
        return n * self._categorical.entropy() - most + ways
