"""`torch.distributions.transforms`: functions of numbers, vectors and matrices with inverses."""

from __future__ import annotations

import math
from typing import Any

import treadle.torch as torch
from treadle.torch.distributions import constraints
from treadle.torch.distributions.distribution import Distribution, summed
from treadle.torch.distributions.transform import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
    Transform,
)
from treadle.torch.layouts import Size
from treadle.torch.tensors import Tensor

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform",
    "CorrCholeskyTransform", "CumulativeDistributionTransform", "ExpTransform",
    "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
    "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]  # fmt: skip

identity_transform: ComposeTransform = ComposeTransform([])


class _Alike(Transform):
    """Transforms without parameters, which are equal to others of their class."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = Transform.__hash__


class ExpTransform(_Alike):
    """exp(x)."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """X."""
        return x


class PowerTransform(Transform):
    """x ** exponent, of positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = torch.as_tensor(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with another size of the cache."""
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @property
    def sign(self) -> Any:
        """The exponent's."""
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Log |exponent * y / x|."""
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        """The common shape with the exponent."""
        return torch.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _within(y: Tensor) -> Tensor:
    info = torch.finfo(y.dtype)
    return y.clamp(float(info.tiny), 1.0 - float(info.eps))


class SigmoidTransform(_Alike):
    """1 / (1 + exp(-x))."""

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return _within(x.sigmoid())

    def _inverse(self, y: Tensor) -> Tensor:
        y = _within(y)
        return y.log() - torch.log1p(-y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log(y * (1 - y))."""
        softplus = torch.nn.functional.softplus
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Alike):
    """log(1 + exp(x))."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return torch.nn.functional.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-torch.expm1(-y)).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log(sigmoid(x))."""
        return -torch.nn.functional.softplus(-x)


class TanhTransform(_Alike):
    """tanh(x)."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log(1 - y**2), exact where y is nearly 1, too."""
        return 2.0 * (math.log(2.0) - x - torch.nn.functional.softplus(-2.0 * x))


class AbsTransform(_Alike):
    """|x|, whose inverse gives the positive number."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """loc + scale * x, of events of `event_dim` dimensions."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        """How many dimensions an event has."""
        return self._event_dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with another size of the cache."""
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """Numbers."""
        if not self.event_dim:
            return constraints.real
        return constraints.independent(constraints.real, self.event_dim)

    codomain = domain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and all(
            bool(torch.as_tensor(one == two).all())
            for one, two in ((self.loc, other.loc), (self.scale, other.scale))
        )

    __hash__ = Transform.__hash__

    @property
    def sign(self) -> Any:
        """The scale's."""
        if isinstance(self.scale, (int, float)):
            return 1 if self.scale > 0 else -1 if self.scale < 0 else 0
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Log |scale|."""
        if isinstance(self.scale, (int, float)):
            slope = torch.full_like(x, math.log(abs(self.scale)))
        else:
            slope = self.scale.abs().log()
        own = x.shape[: x.dim() - self.event_dim]
        if self.event_dim:
            slope = summed(slope.expand(torch.broadcast_shapes(slope.shape, x.shape)),
                           self.event_dim)  # fmt: skip
        return slope.expand(torch.broadcast_shapes(slope.shape, own))

    def forward_shape(self, shape: Any) -> Any:
        """The common shape with loc and scale."""
        given = (getattr(each, "shape", ()) for each in (self.loc, self.scale))
        return torch.broadcast_shapes(shape, *given)

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """The distribution's values."""
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with another size of the cache."""
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the density."""
        return self.distribution.log_prob(x)


class SoftmaxTransform(_Alike):
    """softmax(x), whose inverse is the logarithm; without a derivative's logarithm, as the values
    of one x and of x + 1 are the same."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        """The shape."""
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Alike):
    """n numbers as n + 1 whose sum is 1: each says which part of what is left is taken."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _left(x: Tensor) -> Tensor:
        # How many parts are left at each place: with equal numbers all of them are alike.
        n = x.shape[-1]
        return torch.arange(n, 0, -1, dtype=x.dtype, device=x.device)

    def _call(self, x: Tensor) -> Tensor:
        z = (x - self._left(x).log()).sigmoid()
        rest = (1 - z).cumprod(-1)
        pad = torch.nn.functional.pad
        return pad(z, [0, 1], value=1) * pad(rest, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        taken = y[..., :-1]
        rest = (1 - taken.cumsum(-1)).clamp(min=float(torch.finfo(y.dtype).tiny))
        return taken.log() - rest.log() + self._left(taken).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum over the parts."""
        moved = x - self._left(x).log()
        return (-moved + torch.nn.functional.logsigmoid(moved) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """One number more."""
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        """One number less."""
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(_Alike):
    """Matrices as lower triangular ones whose diagonals are exponentials."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + torch.diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + torch.diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(_Alike):
    """Matrices as positive definite ones: the products of those of LowerCholeskyTransform."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        root = LowerCholeskyTransform()(x)
        return root @ root.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class CorrCholeskyTransform(_Alike):
    """n (n - 1) / 2 numbers as the Cholesky factor of a correlation matrix `(n, n)`: tanh of them,
    row by row, each a part of the length that a row has left."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    @staticmethod
    def _order(count: int) -> int:
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return n

    def _call(self, x: Tensor) -> Tensor:
        n = self._order(x.shape[-1])
        eps = float(torch.finfo(x.dtype).eps)
        parts = x.tanh().clamp(-1 + eps, 1 - eps)
        rows, columns = torch.tril_indices(n, n, -1)
        at = (rows * n + columns).to(x.device).expand(parts.shape)
        r = x.new_zeros((*x.shape[:-1], n * n)).scatter(-1, at, parts).unflatten(-1, (n, n))
        left = (1 - r**2).sqrt().cumprod(-1)
        left = torch.nn.functional.pad(left[..., :-1], [1, 0], value=1)
        unit = torch.eye(n, dtype=x.dtype, device=x.device)
        return (r + unit) * left

    def _inverse(self, y: Tensor) -> Tensor:
        n = y.shape[-1]
        left = 1 - (y * y).cumsum(-1)
        left = torch.nn.functional.pad(left[..., :-1], [1, 0], value=1)
        rows, columns = torch.tril_indices(n, n, -1)
        at = (rows * n + columns).to(y.device)
        own, others = (each.flatten(-2).index_select(-1, at) for each in (y, left))
        return (own / others.sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Of the matrix's rows, and of tanh."""
        n = y.shape[-1]
        left = 1 - (y * y).cumsum(-1)
        rows, columns = torch.tril_indices(n, n, -2) if n > 2 else torch.zeros(2, 0).long()
        at = (rows * n + columns).to(y.device)
        stick = 0.5 * left.flatten(-2).index_select(-1, at).log().sum(-1)
        slope = 2.0 * (math.log(2.0) - x - torch.nn.functional.softplus(-2.0 * x))
        return stick + slope.sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of matrices."""
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = self._order(shape[-1])
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of vectors."""
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return Size((*shape[:-2], n * (n - 1) // 2))
