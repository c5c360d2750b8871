"""What distributions have in common: shapes, draws, and reinterpreted dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import treadle.torch as torch
from treadle.torch.layouts import Size
from treadle.torch.tensors import Tensor


def broadcast(*parameters: Any) -> list[Tensor]:
    """Parameters, tensors or numbers, in their common shape."""
    known = next((each for each in parameters if isinstance(each, Tensor)), None)
    dtype = torch.get_default_dtype() if known is None else known.dtype
    where = None if known is None else known.device
    return list(
        torch.broadcast_tensors(
            *(
                each if isinstance(each, Tensor) else torch.tensor(each, dtype=dtype, device=where)
                for each in parameters
            )
        )
    )


class recorded_property(cached_property[Tensor]):
    """A tensor that is computed once, with its history: draws, which are made without, may be the
    first to use it."""

    def __init__(self, function: Callable[[Any], Tensor]) -> None:
        super().__init__(function)
        self._function = function
        self.func = self._recorded

    def _recorded(self, distribution: Any) -> Tensor:
        with torch.enable_grad():
            return self._function(distribution)


class Distribution:
    """Random variables: `batch_shape` independent ones, each of shape `event_shape`."""

    has_rsample = False

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw of one variable."""
        return self._event_shape

    def _extended(self, sample_shape: Any) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        raise NotImplementedError(f"{type(self).__name__} has no mean in closed form")

    @property
    def variance(self) -> Tensor:
        """The expected square of the distance from the mean."""
        raise NotImplementedError(f"{type(self).__name__} has no variance in closed form")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws without derivatives: `sample_shape`, then the shapes of batch and event."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws whose derivatives by the parameters are known. NotImplementedError for discrete
        distributions: their draws have none."""
        raise NotImplementedError(f"draws of {type(self).__name__} have no derivatives: sample()")

    def sample_n(self, n: int) -> Tensor:
        """`n` draws."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at a value."""
        raise NotImplementedError(f"{type(self).__name__} has no density in closed form")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        raise NotImplementedError(f"{type(self).__name__} has no such function in closed form")

    def icdf(self, value: Tensor) -> Tensor:
        """The value that is not passed with a probability."""
        raise NotImplementedError(f"{type(self).__name__} has no such function in closed form")

    def entropy(self) -> Tensor:
        """The expectation of `-log_prob`."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy in closed form")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()


class Independent(Distribution):
    """The last dimensions of a batch as one event, whose densities are multiplied.

    >>> import treadle.torch as torch
    >>> one = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
    >>> torch.distributions.Independent(one, 1).log_prob(torch.zeros(3)).shape
    torch.Size([])
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        at = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if at < 0:
            raise ValueError(
                f"reinterpreted_batch_ndims is {reinterpreted_batch_ndims}, and the batch has "
                f"{len(base_distribution.batch_shape)} dimensions"
            )
        self.base_dist, self.reinterpreted_batch_ndims = (
            base_distribution,
            reinterpreted_batch_ndims,
        )
        super().__init__(shape[:at], shape[at:])

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether draws have derivatives."""
        return self.base_dist.has_rsample

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.base_dist.mean

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws without derivatives."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of whole events."""
        return summed(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """The entropy of whole events."""
        return summed(self.base_dist.entropy(), self.reinterpreted_batch_ndims)


def summed(x: Tensor, dimensions: int) -> Tensor:
    """The sum over the last dimensions."""
    return x.sum(tuple(range(-dimensions, 0))) if dimensions else x


HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
EULER = 0.57721566490153286061
