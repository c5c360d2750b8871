"""Distributions of whole numbers and of classes."""

from __future__ import annotations

import math
from typing import Any

import treadle.torch as torch
from treadle.torch.distributions.distribution import Distribution, broadcast, recorded_property
from treadle.torch.layouts import Size
from treadle.torch.tensors import Tensor


class _Chosen(Distribution):
    """Distributions given by probabilities or by their logits."""

    _given: Tensor
    _by_logits: bool

    def _choose(self, probs: Any, logits: Any) -> Tensor:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._by_logits = probs is None
        (self._given,) = broadcast(logits if probs is None else probs)
        return self._given

    def _pick(self, at: Any) -> dict[str, Any]:
        return {"logits" if self._by_logits else "probs": at}


def _support(of: _Chosen, count: int, expand: bool) -> Tensor:
    batch = of.batch_shape
    values = torch.arange(count, device=of._given.device).view(-1, *(1 for _ in batch))
    return values.expand(-1, *batch) if expand else values


class _Truth(_Chosen):
    """Of a probability."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._choose(probs, logits).shape)

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution for a larger batch."""
        return type(self)(**self._pick(self._given.expand(batch_shape)))

    @recorded_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._given.sigmoid() if self._by_logits else self._given

    @recorded_property
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        if self._by_logits:
            return self._given
        eps = float(torch.finfo(self._given.dtype).eps)
        p = self._given.clamp(eps, 1 - eps)
        return p.log() - torch.log1p(-p)

    def _log_likelihood(self, value: Tensor) -> Tensor:
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -torch.nn.functional.binary_cross_entropy_with_logits(
            logits, value, reduction="none"
        )


class Bernoulli(_Truth):
    """1 with a probability, else 0.

    >>> import treadle.torch as torch
    >>> torch.distributions.Bernoulli(0.25).log_prob(torch.tensor(1.0)).exp()
    tensor(0.2500)
    """

    @property
    def mean(self) -> Tensor:
        """The probability."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws of 0.0 and 1.0."""
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        return self._log_likelihood(value)

    def entropy(self) -> Tensor:
        """The entropy."""
        return -self._log_likelihood(self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0.0 and 1.0, along a new first dimension."""
        return _support(self, 2, expand).to(self._given.dtype)


class Geometric(_Truth):
    """The number of failures before the first success."""

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return 1 / self.probs - 1

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws of 0.0, 1.0, 2.0, …"""
        with torch.no_grad():
            p = self.probs
            drawn = torch.rand(self._extended(sample_shape), dtype=p.dtype, device=p.device)
            return (torch.log1p(-drawn) / torch.log1p(-p)).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        return torch.xlogy(value, 1 - self.probs) + self.probs.log()

    def entropy(self) -> Tensor:
        """The entropy."""
        return Bernoulli(probs=self.probs).entropy() / self.probs


class Binomial(_Truth):
    """The number of successes in `total_count` trials, the same for all variables."""

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits)
        self.total_count = int(total_count)

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution for a larger batch."""
        return Binomial(self.total_count, **self._pick(self._given.expand(batch_shape)))

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, each the sum of its trials."""
        with torch.no_grad():
            trials = (self.total_count, *self._extended(sample_shape))
            return torch.bernoulli(self.probs.expand(trials)).sum(0)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        n = self.total_count
        ways = math.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        softplus = torch.nn.functional.softplus(self.logits)
        return ways + value * self.logits - n * softplus

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0.0, 1.0, …, total_count, along a new first dimension."""
        return _support(self, self.total_count + 1, expand).to(self._given.dtype)

    def entropy(self) -> Tensor:
        """The entropy."""
        log = self.log_prob(self.enumerate_support(False))
        return -(log.exp() * log).sum(0)


class Categorical(_Chosen):
    """A class 0 … n - 1 by probabilities, `(…, n)`, which need not sum to 1, or by logits.

    >>> import treadle.torch as torch
    >>> torch.distributions.Categorical(torch.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = self._choose(probs, logits)
        if given.dim() < 1:
            raise ValueError(
                f"`{'logits' if self._by_logits else 'probs'}` parameter must be at least "
                "one-dimensional."
            )
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1])

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution for a larger batch."""
        return type(self)(**self._pick(self._given.expand(*batch_shape, self._num_events)))

    @recorded_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        if self._by_logits:
            return self._given - self._given.logsumexp(-1, keepdim=True)
        eps = float(torch.finfo(self._given.dtype).eps)
        return self.probs.clamp(eps, 1 - eps).log()

    @recorded_property
    def probs(self) -> Tensor:
        """The probabilities, whose sum is 1."""
        if self._by_logits:
            return self._given.softmax(-1)
        return self._given / self._given.sum(-1, keepdim=True)

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return Size(self._given.shape)

    @property
    def mean(self) -> Tensor:
        """NaN: classes have none."""
        return torch.full_like(self._given.select(-1, 0), math.nan)

    variance = mean

    @property
    def mode(self) -> Tensor:
        """The most probable class."""
        return self._given.argmax(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws: int64 of `sample_shape`, then the batch's shape."""
        with torch.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = torch.multinomial(rows, math.prod(sample_shape), True)
            return drawn.T.reshape(*sample_shape, *self._batch_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithms of the classes' probabilities."""
        at = value.long().unsqueeze(-1)
        shape = torch.broadcast_shapes(at.shape[:-1], self._batch_shape)
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, at.expand(*shape, 1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """The entropy."""
        least = float(torch.finfo(self.logits.dtype).min)
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All classes, along a new first dimension."""
        return _support(self, self._num_events, expand)


class OneHotCategorical(_Chosen):
    """A class as a vector of 0.0 and one 1.0."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self._given, self._by_logits = self._categorical._given, self._categorical._by_logits
        shape = self._given.shape
        super().__init__(shape[:-1], shape[-1:])

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
        """The probabilities."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws of vectors."""
        drawn = self._categorical.sample(sample_shape)
        one_hot = torch.nn.functional.one_hot(drawn, self._event_shape[0])
        return one_hot.to(self._given.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a vector's class."""
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        """The entropy."""
        return self._categorical.entropy()


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Vectors of classes, through which gradients pass as if they were the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with the probabilities' derivatives."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
