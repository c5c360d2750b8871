"""`torch.distributions.constraints`: what parameters and values may be, as objects with a method
`check`, which says of each event whether it is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import treadle.torch as torch
from treadle.core.errors import ValuesUnknown
from treadle.torch.tensors import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values. `event_dim` is how many dimensions a value has.

    >>> import treadle.torch as torch
    >>> torch.distributions.constraints.positive.check(torch.tensor([1.0, 0.0]))
    tensor([ True, False])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """Whether values are in the set: a tensor of bool, one for each event."""
        raise NotImplementedError

    def __repr__(self) -> str:
        given = ", ".join(
            f"{name}={value}" for name, value in vars(self).items() if name.endswith("_bound")
        )
        return f"{type(self).__name__.removeprefix('_')}({given})"


class _Dependent(Constraint):
    """A set that other parameters decide."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> _Dependent:
        return type(self)(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Any) -> Any:
        """ValueError: only an instance knows its set."""
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property that is a set, which other parameters decide."""

    def __init__(self, fn: Any = None, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        property.__init__(self, fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Any) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether other parameters decide what a constraint allows."""
    return isinstance(constraint, _Dependent)


class _Bounded(Constraint):
    """Numbers between bounds."""

    def __init__(self, lower_bound: Any = None, upper_bound: Any = None) -> None:
        if lower_bound is not None:
            self.lower_bound = lower_bound
        if upper_bound is not None:
            self.upper_bound = upper_bound


class _GreaterThan(_Bounded):
    def check(self, value: Any) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_Bounded):
    def check(self, value: Any) -> Any:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        super().__init__(None, upper_bound)

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_Bounded):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_GreaterThanEq):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _Real(Constraint):
    def check(self, value: Any) -> Any:
        return value == value


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _Matrix(Constraint):
    event_dim = 2


class _LowerTriangular(_Matrix):
    def check(self, value: Any) -> Any:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Any) -> Any:
        positive = (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)
        return super().check(value) & positive


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Any) -> Any:
        room = 10 * value.shape[-1] * float(torch.finfo(value.dtype).eps)
        near = ((value**2).sum(-1).sqrt() - 1).abs() <= room
        return super().check(value) & near.all(-1)


class _Square(_Matrix):
    def check(self, value: Any) -> Any:
        same = value.shape[-2] == value.shape[-1]
        return torch.full(value.shape[:-2], same, dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        square = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return square
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & (torch.linalg.cholesky_ex(value).info == 0)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & (torch.linalg.eigvalsh(value) >= 0).all(-1)


class _IndependentConstraint(Constraint):
    """A set for each of the last dimensions' elements, all of which are one event."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the elements are whole numbers."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The elements' dimensions and the reinterpreted ones."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        """Whether all elements of an event are in their set."""
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        found = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        return found.flatten(-count).all(-1) if count else found

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What components of a mixture allow, whose values have no dimension of components."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether values are whole numbers."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """How many dimensions a value has."""
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        """Whether all components allow a value."""
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return found.all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Parts(Constraint):
    """Sets for the parts of values along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether any part is of whole numbers."""
        return any(each.is_discrete for each in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The most dimensions that a part has."""
        return max(each.event_dim for each in self.cseq)


class _Cat(_Parts):
    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Any) -> Any:
        parts = torch.split(value, self.lengths, self.dim)
        found = [one.check(part) for one, part in zip(self.cseq, parts, strict=True)]
        return torch.cat(found, self.dim)


class _Stack(_Parts):
    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """With the dimension of the parts, where it is one of an event."""
        found = super().event_dim
        return found + 1 if self.dim + found < 0 else found

    def check(self, value: Any) -> Any:
        parts = value.unbind(self.dim)
        found = [one.check(part) for one, part in zip(self.cseq, parts, strict=True)]
        return torch.stack(found, self.dim)


dependent = _Dependent()
dependent_property: Callable[..., Callable[[Any], Any]] = _DependentProperty
independent: Callable[[Constraint, int], Constraint] = _IndependentConstraint
boolean, one_hot, real, simplex = _Boolean(), _OneHot(), _Real(), _Simplex()
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
integer_interval, interval, half_open_interval = _IntegerInterval, _Interval, _HalfOpenInterval
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
multinomial = _Multinomial
positive, nonnegative = _GreaterThan(0.0), _GreaterThanEq(0.0)
unit_interval = _Interval(0.0, 1.0)
real_vector = independent(real, 1)
lower_triangular, lower_cholesky, corr_cholesky = (
    _LowerTriangular(),
    _LowerCholesky(),
    _CorrCholesky(),
)
square, symmetric = _Square(), _Symmetric()
positive_definite, positive_semidefinite = _PositiveDefinite(), _PositiveSemidefinite()
cat, stack = _Cat, _Stack


def violated(allowed: Iterable[Constraint], values: Iterable[Tensor]) -> bool:
    """Whether some value of batches is known not to be allowed: within `vmap` none is known."""
    found: Any = True
    try:
        for constraint, value in zip(allowed, values, strict=True):
            found = torch.as_tensor(constraint.check(value)).all() & found
        return not bool(found)
    except ValuesUnknown:
        return False
