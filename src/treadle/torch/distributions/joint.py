"""Distributions of vectors and matrices whose elements depend on each other."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import treadle.torch as torch
from treadle.torch.distributions import constraints
from treadle.torch.distributions.distribution import (
    HALF_LOG_2_PI,
    Distribution,
    ExponentialFamily,
    broadcast,
    recorded_property,
)
from treadle.torch.distributions.gammas import log_gamma, standard_gamma
from treadle.torch.tensors import Tensor


class _Rooted(Distribution):
    """Given by a matrix, its inverse, or its Cholesky factor."""

    def _take_matrix(self, **given: Tensor | None) -> Tensor:
        """Keep the one that is given, and return it."""
        there = {name: value for name, value in given.items() if value is not None}
        if len(there) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, value),) = there.items()
        if value.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        vars(self)[name] = value
        self._matrix = name
        return value

    def _spread(self, shape: Any) -> None:
        """Expand what is given to a batch."""
        value = vars(self)[self._matrix]
        vars(self)[self._matrix] = value.expand(*shape, *value.shape[-2:])

    @recorded_property
    def scale_tril(self) -> Tensor:
        """The covariance's Cholesky factor."""
        found: Tensor = torch.linalg.cholesky(self.covariance_matrix)
        return found

    @recorded_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        if self._matrix == "precision_matrix":
            found: Tensor = torch.linalg.inv(self.precision_matrix)
            return found
        root: Tensor = self.scale_tril
        return root @ root.mT

    @recorded_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return torch.cholesky_inverse(self.scale_tril)

    def _log_root(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(_Rooted):
    """Normal variables that depend on each other: of mean `loc`, `(…, n)`, and a matrix `(…, n,
    n)`, which is the covariance, its inverse (`precision_matrix`), or the covariance's Cholesky
    factor (`scale_tril`). ValueError unless exactly one is given."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrix = self._take_matrix(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        shape = torch.broadcast_shapes(loc.shape[:-1], matrix.shape[:-2])
        n = loc.shape[-1]
        self.loc = loc.expand(*shape, n)
        self._spread(shape)
        self._arguments = (("loc", 1), (self._matrix, 2))
        super().__init__(shape, (n,), validate_args)

    @property
    def mean(self) -> Tensor:
        """The parameter `loc`."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The covariance's diagonal."""
        return (self.scale_tril**2).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        shape = self._extended_shape(sample_shape)
        drawn = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        away = (value - self.loc).unsqueeze(-1)
        shape = torch.broadcast_shapes(away.shape[:-2], self.batch_shape)
        n = self.event_shape[0]
        z = torch.linalg.solve_triangular(
            self.scale_tril.expand(*shape, n, n), away.expand(*shape, n, 1), upper=False
        )
        return -0.5 * (z**2).sum((-2, -1)) - n * HALF_LOG_2_PI - self._log_root()

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.event_shape[0] * (0.5 + HALF_LOG_2_PI) + self._log_root()


class LowRankMultivariateNormal(Distribution):
    """Normal variables of covariance `cov_factor @ cov_factor.mT + diag(cov_diag)`, with a factor
    `(…, n, rank)`: log_prob costs matrices of `rank` rows only."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _arguments = (("loc", 1), ("cov_factor", 2), ("cov_diag", 1))

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.dim() < 2 or cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.dim() < 1 or cov_diag.shape[-1] != n:
            raise ValueError(f"cov_diag must be a batch of vectors with shape ({n},)")
        shape = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand(*shape, n)
        self.cov_factor = cov_factor.expand(*shape, *cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(*shape, n)
        super().__init__(shape, (n,), validate_args)

    @recorded_property
    def _capacitance_tril(self) -> Tensor:
        # The Cholesky factor of 1 + W^T D^-1 W: the covariance's determinant is a multiple of its.
        w = self.cov_factor
        inner = w.mT @ (w / self.cov_diag.unsqueeze(-1))
        unit = torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        found: Tensor = torch.linalg.cholesky(inner + unit)
        return found

    @property
    def mean(self) -> Tensor:
        """The parameter `loc`."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The covariance's diagonal."""
        return (self.cov_factor**2).sum(-1) + self.cov_diag

    @recorded_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + torch.diag_embed(self.cov_diag)

    @recorded_property
    def scale_tril(self) -> Tensor:
        """The covariance's Cholesky factor."""
        found: Tensor = torch.linalg.cholesky(self.covariance_matrix)
        return found

    @recorded_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return torch.cholesky_inverse(self.scale_tril)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives."""
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        rank = self.cov_factor.shape[-1]
        common = torch.randn((*shape[:-1], rank, 1), **options)
        own = torch.randn(shape, **options)
        return self.loc + (self.cov_factor @ common).squeeze(-1) + self.cov_diag.sqrt() * own

    def _log_root(self) -> Tensor:
        root = self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return root + 0.5 * self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        away = value - self.loc
        scaled = away / self.cov_diag
        inner = (self.cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        root = self._capacitance_tril
        m = root.shape[-1]
        shape = torch.broadcast_shapes(inner.shape[:-1], root.shape[:-2])
        z = torch.linalg.solve_triangular(
            root.expand(*shape, m, m), inner.expand(*shape, m).unsqueeze(-1), upper=False
        )
        square = (away * scaled).sum(-1) - (z**2).sum((-2, -1))
        return -0.5 * square - self.event_shape[0] * HALF_LOG_2_PI - self._log_root()

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.event_shape[0] * (0.5 + HALF_LOG_2_PI) + self._log_root()


class Wishart(_Rooted, ExponentialFamily):
    """Sums of `df` outer products of joint normal variables of a covariance: positive definite
    matrices `(…, n, n)`. `df` is above n - 1."""

    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrix = self._take_matrix(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if not isinstance(df, Tensor):
            df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        n = matrix.shape[-1]
        shape = torch.broadcast_shapes(df.shape, matrix.shape[:-2])
        self.df = df.expand(shape)
        self._spread(shape)
        if not bool((self.df > n - 1).all()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        self._arguments = (("df", 0), (self._matrix, 2))
        super().__init__(shape, (n, n), validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """What the parameters may be."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[0] - 1),
        }

    def _columns(self) -> Tensor:
        # df, df - 1, …: the degrees of freedom of the columns.
        n = self.event_shape[0]
        return self.df.unsqueeze(-1) - torch.arange(n, dtype=self.df.dtype, device=self.df.device)

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """The most probable value; NaN where there is none."""
        factor = self.df - self.event_shape[0] - 1
        return torch.where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (v**2 + outer)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws with derivatives, by Bartlett's decomposition: a triangular matrix whose diagonal
        has roots of chi-squared variables, normal ones below it."""
        shape = self._extended_shape(sample_shape)
        columns = self._columns().expand(shape[:-1])
        normal = torch.randn(shape, dtype=self.df.dtype, device=self.df.device).tril(-1)
        root = normal + torch.diag_embed((2 * standard_gamma(columns / 2)).sqrt())
        product = self.scale_tril @ root
        return product @ product.mT

    def _log_multigamma(self) -> Tensor:
        n = self.event_shape[0]
        return n * (n - 1) / 4 * math.log(math.pi) + torch.lgamma(self._columns() / 2).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        n = self.event_shape[0]
        root = torch.linalg.cholesky(value)
        shape = torch.broadcast_shapes(value.shape[:-2], self.batch_shape)
        own = self.scale_tril.expand(*shape, n, n)
        ratio = torch.linalg.solve_triangular(own, root.expand(*shape, n, n), upper=False)
        log = root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return (
            (self.df - n - 1) * log
            - 0.5 * (ratio**2).sum((-2, -1))
            - self.df * n / 2 * math.log(2)
            - self.df * self._log_root()
            - self._log_multigamma()
        )

    def entropy(self) -> Tensor:
        """The entropy."""
        n = self.event_shape[0]
        digamma = torch.digamma(self._columns() / 2).sum(-1)
        return (
            (n + 1) * (self._log_root() + n / 2 * math.log(2))
            + self._log_multigamma()
            - 0.5 * (self.df - n - 1) * digamma
            + 0.5 * n * self.df
        )


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices `(dim, dim)`, of density in proportion to the
    determinant to the power of `concentration - 1`. Draws have no derivatives."""

    arg_constraints: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "concentration": constraints.positive
    }
    support = constraints.corr_cholesky
    _arguments = (("concentration", 0),)

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2, not {dim}")
        self.dim = dim
        (self.concentration,) = broadcast(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _another(self, given: dict[str, Any]) -> Any:
        return super()._another({"dim": self.dim, **given})

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, by the onion method: the i-th row is a direction of i numbers, drawn alike, whose
        squared length is a beta variable (Lewandowski, Kurowicka, Joe, 2009)."""
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            a = self.concentration.expand(shape[:-2]).unsqueeze(-1)
            rows = torch.arange(self.dim, dtype=a.dtype, device=a.device)
            inner = torch.cat((rows[:1] + 1, rows[1:] / 2))  # the first row has no others
            other = a + (self.dim - 1 - rows) / 2
            inner = inner.expand(other.shape)
            square = (log_gamma(inner) - log_gamma(other)).sigmoid()
            square = torch.where(rows == 0, 0.0, square).unsqueeze(-1)
            normal = torch.randn(shape, dtype=a.dtype, device=a.device).tril(-1)
            length = (normal**2).sum(-1, keepdim=True).sqrt()
            direction = normal / torch.where(length > 0, length, 1.0)
            return square.sqrt() * direction + torch.diag_embed((1 - square).sqrt().squeeze(-1))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._checked(value)
        n = self.dim
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        order = torch.arange(2, n + 1, dtype=diagonal.dtype, device=diagonal.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + n - order
        density = (powers * diagonal.log()).sum(-1)
        alpha = self.concentration + 0.5 * (n - 1)
        return density - (
            torch.mvlgamma(alpha - 0.5, n - 1)
            - (n - 1) * torch.lgamma(alpha)
            + 0.5 * (n - 1) * math.log(math.pi)
        )
