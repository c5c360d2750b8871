"""What distributions have in common: shapes, checks of arguments, draws, independent events."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import treadle.torch as torch
from treadle.torch.distributions import constraints
from treadle.torch.layouts import Size
from treadle.torch.tensors import Tensor


def broadcast(*parameters: Any) -> list[Tensor]:
    """Parameters, tensors or numbers, in their common shape."""
    for each in parameters:
        if not isinstance(each, (Tensor, int, float)):
            raise ValueError("Input arguments must all be instances of Number, torch.Tensor")
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
    """Random variables: `batch_shape` independent ones, each of shape `event_shape`.

    Parameters and values are checked, as PyTorch does by default: what a constraint does not allow
    is a ValueError. `validate_args=False` has them taken as they are, which saves waiting for the
    device. Within `torch.func.vmap` values are not known, and not checked.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # The arguments that stand for a batch, with the number of dimensions of one event's parameter.
    _arguments: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and values are checked where `validate_args` is not given."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            return
        looked_at = {
            name: constraint
            for name, constraint in wanted.items()
            if name in vars(self) and not constraints.is_dependent(constraint)
        }
        # All at once: each answer that is waited for takes its time.
        if not constraints.violated(looked_at.values(), [vars(self)[each] for each in looked_at]):
            return
        for name, constraint in looked_at.items():
            value = vars(self)[name]
            if constraints.violated([constraint], [value]):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        count = len(self._event_shape)
        own = (*self._batch_shape, *self._event_shape)
        if tuple(value.shape[value.dim() - count :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs "
                f"{self._event_shape}."
            )
        for one, other in zip(reversed(value.shape), reversed(own), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs "
                    f"{Size(own)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            return
        if support is not None and constraints.violated([support], [value]):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _checked(self, value: Any) -> Any:
        """A value that `log_prob` and `cdf` take, looked at where arguments are."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw of one variable."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """What the parameters may be, by their names."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """What values may be: a constraint."""
        raise NotImplementedError

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """The shape of draws: `sample_shape`, then the shapes of batch and event."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch. NotImplementedError for a class of one's own
        whose constructor takes other arguments."""
        if not self._arguments:
            raise NotImplementedError
        given = {
            name: value.expand(*batch_shape, *value.shape[value.dim() - count :])
            for name, count in self._arguments
            if isinstance(value := vars(self).get(name), Tensor)
        }
        return self._another(given)

    def _another(self, given: dict[str, Any]) -> Any:
        try:
            made = type(self)(**given, validate_args=False)
        except TypeError as error:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} that has its own __init__ must define expand, too"
            ) from error
        made._validate_args = self._validate_args
        return made

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        # What `expand` of distributions that are written for PyTorch calls.
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        raise NotImplementedError(f"{type(self).__name__} has no mean in closed form")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self).__name__} does not implement mode")

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

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first dimension. NotImplementedError where they are no finite
        list."""
        raise NotImplementedError(f"values of {type(self).__name__} are no finite list")

    def entropy(self) -> Tensor:
        """The expectation of `-log_prob`."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy in closed form")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def __repr__(self) -> str:
        try:
            names = [name for name in self.arg_constraints if name in vars(self)]
        except NotImplementedError:
            names = []
        shown = (
            (name, value if value.numel() == 1 else value.size())
            for name in names
            for value in (vars(self)[name],)
        )
        return f"{type(self).__name__}({', '.join(f'{name}: {value}' for name, value in shown)})"


class ExponentialFamily(Distribution):
    """Distributions whose densities are exponentials of sums of parameters' functions times
    values' functions: a class that others are instances of."""


class Independent(Distribution):
    """The last dimensions of a batch as one event, whose densities are multiplied.

    >>> import treadle.torch as torch
    >>> one = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
    >>> torch.distributions.Independent(one, 1).log_prob(torch.zeros(3)).shape
    torch.Size([])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]

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
        super().__init__(shape[:at], shape[at:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        count = self.reinterpreted_batch_ndims
        base = self.base_dist.expand((*batch_shape, *self.event_shape[:count]))
        made = Independent(base, count, validate_args=False)
        made._validate_args = self._validate_args
        return made

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether draws have derivatives."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether values are a finite list: only without reinterpreted dimensions."""
        return self.base_dist.has_enumerate_support and not self.reinterpreted_batch_ndims

    @constraints.dependent_property()
    def support(self) -> Any:
        """What values may be."""
        base = self.base_dist.support
        count = self.reinterpreted_batch_ndims
        return constraints.independent(base, count) if count else base

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self.base_dist.mode

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

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values. NotImplementedError with reinterpreted dimensions: their products are too
        many."""
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def entropy(self) -> Tensor:
        """The entropy of whole events."""
        return summed(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


def summed(x: Tensor, dimensions: int) -> Tensor:
    """The sum over the last dimensions."""
    return x.sum(tuple(range(-dimensions, 0))) if dimensions else x


HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
EULER = 0.57721566490153286061
