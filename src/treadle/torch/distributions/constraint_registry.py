"""Transforms from unconstrained numbers to what constraints allow: `biject_to` and
`transform_to`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.torch.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

_Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """Transforms by classes of constraints. A call gives that of a constraint.

    >>> import treadle.torch as torch
    >>> to = torch.distributions.transform_to(torch.distributions.constraints.positive)
    >>> to(torch.tensor(0.0))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._registry: dict[type, _Factory] = {}

    def register(self, constraint: Any, factory: _Factory | None = None) -> Any:
        """Say which transform a constraint's class has; without `factory`, a decorator."""
        if factory is None:
            return lambda given: self.register(constraint, given)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> transforms.Transform:
        """The transform of a constraint. NotImplementedError where there is none."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _over(constraint: Any) -> transforms.Transform:
    """Above or below one bound."""
    lower = getattr(constraint, "lower_bound", None)
    bound, sign = (constraint.upper_bound, -1) if lower is None else (lower, 1)
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(bound, sign)]
    )


def _between(constraint: Any) -> transforms.Transform:
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if all(isinstance(each, (int, float)) for each in (lower, upper)) and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)]
    )


def _positive(constraint: Any) -> transforms.Transform:
    if isinstance(constraint.lower_bound, (int, float)) and constraint.lower_bound == 0:
        return transforms.ExpTransform()
    return _over(constraint)


def _parts(of: ConstraintRegistry, kind: Any) -> _Factory:
    def made(constraint: Any) -> transforms.Transform:
        given = [of(each) for each in constraint.cseq]
        if kind is transforms.CatTransform:
            return transforms.CatTransform(given, constraint.dim, constraint.lengths)
        return transforms.StackTransform(given, constraint.dim)

    return made


def _independent(of: ConstraintRegistry) -> _Factory:
    return lambda constraint: transforms.IndependentTransform(
        of(constraint.base_constraint), constraint.reinterpreted_batch_ndims
    )


_KINDS: tuple[tuple[Any, _Factory, _Factory], ...] = (
    # The constraint, a transform that is one to one, and one that is fast.
    (constraints.real, lambda c: transforms.identity_transform,
     lambda c: transforms.identity_transform),
    (constraints.greater_than, _positive, _positive),
    (constraints.greater_than_eq, _positive, _positive),
    (constraints.less_than, _over, _over),
    (constraints.interval, _between, _between),
    (constraints.half_open_interval, _between, _between),
    (constraints.simplex, lambda c: transforms.StickBreakingTransform(),
     lambda c: transforms.SoftmaxTransform()),
    (constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform(),
     lambda c: transforms.CorrCholeskyTransform()),
    (constraints.cat, _parts(biject_to, transforms.CatTransform),
     _parts(transform_to, transforms.CatTransform)),
    (constraints.stack, _parts(biject_to, transforms.StackTransform),
     _parts(transform_to, transforms.StackTransform)),
    (constraints.independent, _independent(biject_to), _independent(transform_to)),
)  # fmt: skip
for _constraint, _bijective, _fast in _KINDS:
    biject_to.register(_constraint, _bijective)
    transform_to.register(_constraint, _fast)
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
transform_to.register(
    constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform()
)
transform_to.register(
    constraints.positive_semidefinite, lambda c: transforms.PositiveDefiniteTransform()
)
