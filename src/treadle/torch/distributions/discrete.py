"""Distributions of truth values and of classes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import treadle.torch as torch
from treadle.torch.distributions import constraints
from treadle.torch.distributions.distribution import Distribution, broadcast, recorded_property
from treadle.torch.layouts import Size
from treadle.torch.tensors import Tensor


class Chosen(Distribution):
    """Distributions given by probabilities or by their logits."""

    _by_logits: bool
    # Dimensions of the probabilities of one event.
    _dimensions = 0

    def _choose(self, probs: Any, logits: Any, *others: Any) -> list[Tensor]:
        """Take one of both, in the common shape of it and others, which are returned."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._by_logits = probs is None
        given, *rest = broadcast(logits if probs is None else probs, *others)
        name = "logits" if self._by_logits else "probs"
        if given.dim() < self._dimensions:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        vars(self)[name] = self._normalized(given)
        self._arguments = (*self._arguments, (name, self._dimensions))
        return rest

    def _normalized(self, given: Tensor) -> Tensor:
        return given

    @property
    def _given(self) -> Tensor:
        found: Tensor = self.logits if self._by_logits else self.probs
        return found

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return Size(self._given.shape)

    probs: Any
    logits: Any


def support_of(of: Chosen, count: int, expand: bool) -> Tensor:
    """The numbers 0 … count - 1 along a new first dimension."""
    batch = of.batch_shape
    values = torch.arange(count, device=of._given.device).view(-1, *(1 for _ in batch))
    return values.expand(-1, *batch) if expand else values


class OfChance(Chosen):
    """Of a probability."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._choose(probs, logits)
        super().__init__(self._given.shape, validate_args=validate_args)

    @recorded_property
    def probs(self) -> Tensor:
        """The probabilities."""
        found: Tensor = self.logits.sigmoid()
        return found

    @recorded_property
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        eps = float(torch.finfo(self.probs.dtype).eps)
        p = self.probs.clamp(eps, 1 - eps)
        found: Tensor = p.log() - torch.log1p(-p)
        return found

    def _log_likelihood(self, value: Tensor) -> Tensor:
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -torch.nn.functional.binary_cross_entropy_with_logits(
            logits, value, reduction="none"
        )


class Bernoulli(OfChance):
    """1 with a probability, else 0.

    >>> import treadle.torch as torch
    >>> torch.distributions.Bernoulli(0.25).log_prob(torch.tensor(1.0)).exp()
    tensor(0.2500)
    """

    support = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        """The probability."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The more probable value, NaN where both are alike."""
        p = self.probs
        return torch.where(p == 0.5, math.nan, (p >= 0.5).to(p.dtype))

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws of 0.0 and 1.0."""
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._checked(value)
        return self._log_likelihood(value)

    def entropy(self) -> Tensor:
        """The entropy."""
        return -self._log_likelihood(self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0.0 and 1.0, along a new first dimension."""
        return support_of(self, 2, expand).to(self._given.dtype)


class Geometric(OfChance):
    """The number of failures before the first success."""

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs of distribution {self!r} to be positive, but found "
                f"invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        """0."""
        return torch.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws of 0.0, 1.0, 2.0, …"""
        with torch.no_grad():
            p = self.probs
            shape = self._extended_shape(sample_shape)
            drawn = torch.rand(shape, dtype=p.dtype, device=p.device)
            return (torch.log1p(-drawn) / torch.log1p(-p)).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._checked(value)
        return torch.xlogy(value, 1 - self.probs) + self.probs.log()

    def entropy(self) -> Tensor:
        """The entropy."""
        return Bernoulli(probs=self.probs, validate_args=False).entropy() / self.probs


class Categorical(Chosen):
    """A class 0 … n - 1 by probabilities, `(…, n)`, which need not sum to 1, or by logits.

    >>> import treadle.torch as torch
    >>> torch.distributions.Categorical(torch.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True
    _dimensions = 1

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._choose(probs, logits)
        self._num_events = self._given.shape[-1]
        super().__init__(self._given.shape[:-1], validate_args=validate_args)

    def _normalized(self, given: Tensor) -> Tensor:
        if self._by_logits:
            return given - given.logsumexp(-1, keepdim=True)
        return given / given.sum(-1, keepdim=True)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> Any:
        """What values may be."""
        return constraints.integer_interval(0, self._num_events - 1)

    @recorded_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        eps = float(torch.finfo(self.probs.dtype).eps)
        found: Tensor = self.probs.clamp(eps, 1 - eps).log()
        return found

    @recorded_property
    def probs(self) -> Tensor:
        """The probabilities, whose sum is 1."""
        found: Tensor = self.logits.softmax(-1)
        return found

    @property
    def mean(self) -> Tensor:
        """NaN: classes have none."""
        return torch.full_like(self._given.select(-1, 0), math.nan)

    @property
    def variance(self) -> Tensor:
        """NaN: classes have none."""
        return self.mean

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
        self._checked(value)
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
        return support_of(self, self._num_events, expand)


class OneHotCategorical(Chosen):
    """A class as a vector of 0.0 and one 1.0."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        self._by_logits = self._categorical._by_logits
        shape = self._given.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        inner = self._categorical.expand(batch_shape)
        return self._another({"logits" if self._by_logits else "probs": inner._given})

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

    def _vectors(self, classes: Tensor) -> Tensor:
        one_hot = torch.nn.functional.one_hot(classes, self._event_shape[0])
        return one_hot.to(self._given.dtype)

    @property
    def mode(self) -> Tensor:
        """The vector of the most probable class."""
        return self._vectors(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws of vectors."""
        return self._vectors(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a vector's class."""
        self._checked(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        """The entropy."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The vectors of all classes, along a new first dimension."""
        n = self._event_shape[0]
        values = torch.eye(n, dtype=self._given.dtype, device=self._given.device)
        values = values.view(n, *(1 for _ in self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Vectors of classes, through which gradients pass as if they were the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with the probabilities' derivatives."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
