"""Continuous distributions in place of discrete ones, whose draws have derivatives."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import treadle.torch as torch
from treadle.torch.distributions import constraints
from treadle.torch.distributions.continuous import Normal
from treadle.torch.distributions.discrete import Categorical, Chosen, OfChance
from treadle.torch.distributions.transformed import TransformedDistribution
from treadle.torch.distributions.transforms import (
    ExpTransform,
    SigmoidTransform,
    StickBreakingTransform,
)
from treadle.torch.tensors import Tensor


def _uniform(like: Tensor, shape: Any) -> Tensor:
    eps = float(torch.finfo(like.dtype).eps)
    return torch.rand(shape, dtype=like.dtype, device=like.device).clamp(eps / 2, 1 - eps)


class LogitRelaxedBernoulli(OfChance):
    """The logit of a relaxed truth value."""

    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def _another(self, given: dict[str, Any]) -> Any:
        return super()._another({"temperature": self.temperature, **given})

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        u = _uniform(self._given, self._extended_shape(sample_shape))
        return (self.logits + u.log() - torch.log1p(-u)) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        away = self.logits - value * self.temperature
        log = torch.as_tensor(self.temperature, dtype=away.dtype, device=away.device).log()
        return log + away - 2 * torch.nn.functional.softplus(away)


class _Relaxed(TransformedDistribution):
    """What transformed relaxed distributions take from their base."""

    @property
    def temperature(self) -> Any:
        """How far values are from 0 and 1."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs  # type: ignore[no-any-return]

    @property
    def logits(self) -> Tensor:
        """The logits: logarithms of odds, or of a class's probabilities."""
        return self.base_dist.logits  # type: ignore[no-any-return]


class RelaxedBernoulli(_Relaxed):
    """Numbers from 0 to 1 near both ends, the nearer the lower the temperature."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(Chosen):
    """The logarithms of a relaxed class's vector (Maddison, Mnih, Teh, 2017)."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._categorical = Categorical(probs, logits)
        self._by_logits = self._categorical._by_logits
        shape = self._given.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        inner = self._categorical.expand(batch_shape)
        name = "logits" if self._by_logits else "probs"
        return self._another({"temperature": self.temperature, name: inner._given})

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        u = _uniform(self._given, self._extended_shape(sample_shape))
        return ((self.logits - (-u.log()).log()) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        n = self.event_shape[0]
        score = (self.logits - value * self.temperature).log_softmax(-1).sum(-1)
        temperature = torch.as_tensor(self.temperature, dtype=score.dtype, device=score.device)
        return score + math.lgamma(n) + (n - 1) * temperature.log()


class RelaxedOneHotCategorical(_Relaxed):
    """Vectors of numbers whose sum is 1, near those of classes."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)


class LogisticNormal(TransformedDistribution):
    """Vectors of numbers whose sum is 1, made from normal ones by breaking a stick."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the normal variables."""
        return self.base_dist.base_dist.loc  # type: ignore[no-any-return]

    @property
    def scale(self) -> Tensor:
        """Their standard deviations."""
        return self.base_dist.base_dist.scale  # type: ignore[no-any-return]
