"""Kullback-Leibler divergences, by pairs of classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import treadle.torch as torch
from treadle.torch.distributions.continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Laplace,
    LogNormal,
    Normal,
    Uniform,
)
from treadle.torch.distributions.counts import Binomial, Poisson
from treadle.torch.distributions.discrete import (
    Bernoulli,
    Categorical,
    Geometric,
    OneHotCategorical,
)
from treadle.torch.distributions.distribution import (
    EULER,
    HALF_LOG_2_PI,
    Distribution,
    Independent,
    summed,
)
from treadle.torch.distributions.gammas import Beta, Dirichlet, Gamma, InverseGamma
from treadle.torch.distributions.joint import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    Wishart,
)
from treadle.torch.distributions.mixtures import ContinuousBernoulli
from treadle.torch.distributions.transformed import Pareto, TransformedDistribution
from treadle.torch.tensors import Tensor

_Rule = Callable[[Any, Any], Tensor]


def _normals(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    away = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + away - 1 - ratio.log())


def _bernoullis(p: Any, q: Any) -> Tensor:
    chance = p.probs
    yes = torch.xlogy(chance, chance) - torch.xlogy(chance, q.probs)
    no = torch.xlogy(1 - chance, 1 - chance) - torch.xlogy(1 - chance, 1 - q.probs)
    return yes + no


def _categoricals(p: Any, q: Any) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = torch.where(q.probs == 0, math.inf, terms)
    return torch.where(p.probs == 0, 0.0, terms).sum(-1)


def _exponentials(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


def _laplaces(p: Any, q: Any) -> Tensor:
    away = (p.loc - q.loc).abs()
    near = (p.scale * (-away / p.scale).exp() + away) / q.scale
    return near - (p.scale / q.scale).log() - 1


def _uniforms(p: Any, q: Any) -> Tensor:
    outside = (q.low > p.low) | (q.high < p.high)
    return torch.where(outside, math.inf, ((q.high - q.low) / (p.high - p.low)).log())


def _geometrics(p: Any, q: Any) -> Tensor:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


def _joint_normals(p: Any, q: Any) -> Tensor:
    n = p.event_shape[0]
    shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    root = q.scale_tril.expand(*shape, n, n)
    ratio = torch.linalg.solve_triangular(root, p.scale_tril.expand(*shape, n, n), upper=False)
    away = (q.loc - p.loc).expand(*shape, n).unsqueeze(-1)
    z = torch.linalg.solve_triangular(root, away, upper=False)
    return q._log_root() - p._log_root() + 0.5 * (summed(ratio**2, 2) + summed(z**2, 2) - n)


def _independents(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("events of different numbers of dimensions")
    return summed(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _binomials(p: Any, q: Any) -> Tensor:
    # Counts are compared where they are: of more trials than q has no value of q is that of p.
    n = p.total_count
    found = n * _bernoullis(p, q)
    impossible = (n > q.total_count) | (n < q.total_count)
    if bool((n < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    return torch.where(impossible, math.inf, found)


def _poissons(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


def _cauchys(p: Any, q: Any) -> Tensor:
    near = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return near.log() - (4 * p.scale * q.scale).log()


def _gammas(p: Any, q: Any) -> Tensor:
    ratio = p.rate / q.rate
    return (
        q.concentration * ratio.log()
        + torch.lgamma(q.concentration)
        - torch.lgamma(p.concentration)
        + (p.concentration - q.concentration) * torch.digamma(p.concentration)
        + p.concentration * (1 / ratio - 1)
    )


def _dirichlets(p: Any, q: Any) -> Tensor:
    one, other = p.concentration, q.concentration
    whole = one.sum(-1)
    fall = (one - other) * (torch.digamma(one) - torch.digamma(whole).unsqueeze(-1))
    own = torch.lgamma(whole) - torch.lgamma(one).sum(-1)
    return own - torch.lgamma(other.sum(-1)) + torch.lgamma(other).sum(-1) + fall.sum(-1)


def _betas(p: Any, q: Any) -> Tensor:
    return _dirichlets(p._both(), q._both())


def _half_normals(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio - 1 - ratio.log())


def _gumbels(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    away = (p.loc - q.loc) / q.scale
    rest = (-away + torch.lgamma(1 + ratio)).exp()
    return -ratio.log() - EULER + away + ratio * EULER + rest - 1


def _paretos(p: Any, q: Any) -> Tensor:
    scale, alpha = p.scale / q.scale, q.alpha / p.alpha
    found = q.alpha * scale.log() - alpha.log() + alpha - 1
    return torch.where(p.scale < q.scale, math.inf, found)


def _continuous_bernoullis(p: Any, q: Any) -> Tensor:
    one = p.mean * (p.logits - q.logits)
    other = p._log_constant() + torch.log1p(-p._parts()[0])
    return one + other - q._log_constant() - torch.log1p(-q._parts()[0])


def _wisharts(p: Any, q: Any) -> Tensor:
    n = p.event_shape[0]
    log = torch.digamma(p._columns() / 2).sum(-1) + n * math.log(2) + 2 * p._log_root()
    shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    root, other = (each.scale_tril.expand(*shape, n, n) for each in (q, p))
    ratio = torch.linalg.solve_triangular(root, other, upper=False)
    density = (
        0.5 * (q.df - n - 1) * log
        - 0.5 * p.df * summed(ratio**2, 2)
        - 0.5 * q.df * n * math.log(2)
        - q.df * q._log_root()
        - q._log_multigamma()
    )
    return -p.entropy() - density  # type: ignore[no-any-return]


def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("different transforms")
    return kl_divergence(p.base_dist, q.base_dist)


def _ranked(d: Any) -> Any:
    if isinstance(d, MultivariateNormal):
        return d
    return MultivariateNormal(d.loc, scale_tril=d.scale_tril, validate_args=False)


def _low_ranked(p: Any, q: Any) -> Tensor:
    return _joint_normals(_ranked(p), _ranked(q))


# --- two classes: the expectation under p of q's density, and p's entropy -------------------------


def _log_normal(x: Any, square: Any, q: Any) -> Any:
    """The expectation of a normal log-density of a variable of the mean x and mean square."""
    variance = q.scale**2
    return -0.5 * (square - 2 * x * q.loc + q.loc**2) / variance - q.scale.log() - HALF_LOG_2_PI


def _to_normal(p: Any, q: Any) -> Tensor:
    found: Tensor = -p.entropy() - _log_normal(p.mean, p.variance + p.mean**2, q)
    return torch.where(p.alpha <= 2, math.inf, found) if isinstance(p, Pareto) else found


def _to_exponential(p: Any, q: Any) -> Tensor:
    found: Tensor = -p.entropy() - q.rate.log() + q.rate * p.mean
    return torch.where(p.low < 0, math.inf, found) if isinstance(p, Uniform) else found


def _mean_log(p: Any) -> Tensor:
    """The expectation of log x of positive variables."""
    if isinstance(p, Gamma):
        return torch.digamma(p.concentration) - p.rate.log()
    if isinstance(p, Exponential):
        return -EULER - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    if isinstance(p, Beta):
        whole = torch.digamma(p.concentration1 + p.concentration0)
        return torch.digamma(p.concentration1) - whole
    # A uniform variable.
    return (torch.xlogy(p.high, p.high) - torch.xlogy(p.low, p.low)) / (p.high - p.low) - 1


def _to_gamma(p: Any, q: Any) -> Tensor:
    found = (
        -p.entropy()
        - q.concentration * q.rate.log()
        + torch.lgamma(q.concentration)
        - (q.concentration - 1) * _mean_log(p)
        + q.rate * p.mean
    )
    return torch.where(p.low < 0, math.inf, found) if isinstance(p, Uniform) else found


def _within_unit(p: Any, found: Tensor) -> Tensor:
    return torch.where((p.high > 1) | (p.low < 0), math.inf, found)


def _uniform_to_beta(p: Any, q: Any) -> Tensor:
    other = Uniform(1 - p.high, 1 - p.low, False)
    a, b = q.concentration1, q.concentration0
    whole = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
    found = whole - p.entropy() - (a - 1) * _mean_log(p) - (b - 1) * _mean_log(other)
    return _within_unit(p, found)


def _to_uniform(p: Any, q: Any) -> Tensor:
    # Of variables from 0 to 1.
    found = -p.entropy() + (q.high - q.low).log()
    return torch.where((q.low > 0) | (q.high < 1), math.inf, found)


def _to_pareto(p: Any, q: Any) -> Tensor:
    found = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * _mean_log(p)
    return torch.where(p.low < q.scale, math.inf, found)


def _exp_of(p: Any, scale: Any) -> Any:
    """The expectation of exp(-x / scale)."""
    if isinstance(p, Normal):
        return (-p.loc / scale + 0.5 * (p.scale / scale) ** 2).exp()
    if isinstance(p, Gamma):
        return (1 + 1 / (p.rate * scale)) ** -p.concentration
    if isinstance(p, Exponential):
        return p.rate / (p.rate + 1 / scale)
    width = (p.high - p.low) / scale  # a uniform variable
    return ((-p.low / scale).exp() - (-p.high / scale).exp()) / width


def _to_gumbel(p: Any, q: Any) -> Tensor:
    away = (p.mean - q.loc) / q.scale
    return -p.entropy() + q.scale.log() + away + (q.loc / q.scale).exp() * _exp_of(p, q.scale)  # type: ignore[no-any-return]


def _normal_to_laplace(p: Any, q: Any) -> Tensor:
    z = (p.loc - q.loc) / p.scale
    away = p.scale * math.sqrt(2 / math.pi) * (-0.5 * z**2).exp()
    away = away + p.scale * z * torch.erf(z / math.sqrt(2))
    return -p.entropy() + (2 * q.scale).log() + away / q.scale  # type: ignore[no-any-return]


def _bernoulli_to_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)  # type: ignore[no-any-return]


def _to_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    found = -p.entropy() - p.mean * q.logits - torch.log1p(-q._parts()[0]) - q._log_constant()
    return found if isinstance(p, Beta) else _within_unit(p, found)


def _never(p: Any, q: Any) -> Tensor:
    """Infinity: q has no density where p may be."""
    known = next(each for each in vars(p).values() if isinstance(each, Tensor))
    shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    return torch.full(shape, math.inf, dtype=known.dtype, device=known.device)


_rules: dict[tuple[type, type], _Rule] = {
    (Normal, Normal): _normals,
    (LogNormal, LogNormal): _normals,
    (HalfNormal, HalfNormal): _half_normals,
    (Bernoulli, Bernoulli): _bernoullis,
    (Binomial, Binomial): _binomials,
    (Poisson, Poisson): _poissons,
    (Categorical, Categorical): _categoricals,
    (OneHotCategorical, OneHotCategorical): _categoricals,
    (Exponential, Exponential): _exponentials,
    (Laplace, Laplace): _laplaces,
    (Cauchy, Cauchy): _cauchys,
    (HalfCauchy, HalfCauchy): _cauchys,
    (InverseGamma, InverseGamma): _gammas,
    (Wishart, Wishart): _wisharts,
    (Gumbel, Gumbel): _gumbels,
    (Uniform, Uniform): _uniforms,
    (Geometric, Geometric): _geometrics,
    (Gamma, Gamma): _gammas,
    (Beta, Beta): _betas,
    (Dirichlet, Dirichlet): _dirichlets,
    (Pareto, Pareto): _paretos,
    (ContinuousBernoulli, ContinuousBernoulli): _continuous_bernoullis,
    (MultivariateNormal, MultivariateNormal): _joint_normals,
    (LowRankMultivariateNormal, LowRankMultivariateNormal): _low_ranked,
    (LowRankMultivariateNormal, MultivariateNormal): _low_ranked,
    (MultivariateNormal, LowRankMultivariateNormal): _low_ranked,
    (Independent, Independent): _independents,
    (TransformedDistribution, TransformedDistribution): _transformed,
    (Bernoulli, Poisson): _bernoulli_to_poisson,
    (Normal, Laplace): _normal_to_laplace,
    (Uniform, Beta): _uniform_to_beta,
    (Uniform, Pareto): _to_pareto,
    **{(p, Normal): _to_normal
       for p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)},
    **{(p, Exponential): _to_exponential
       for p in (Beta, ContinuousBernoulli, Gamma, Pareto, Uniform)},
    **{(p, Gamma): _to_gamma for p in (Beta, Exponential, Pareto, Uniform)},
    **{(p, Gumbel): _to_gumbel for p in (Exponential, Gamma, Normal, Uniform)},
    **{(p, ContinuousBernoulli): _to_continuous_bernoulli for p in (Beta, Uniform)},
    **{(p, Uniform): _to_uniform for p in (Beta, ContinuousBernoulli)},
    **{(p, q): _never
       for q, these in (
           (Beta, (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto)),
           (ContinuousBernoulli, (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto)),
           (Exponential, (Gumbel, Laplace, Normal)),
           (Gamma, (Gumbel, Laplace, Normal)),
           (Pareto, (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal)),
           (Uniform, (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto)),
           (Bernoulli, (Poisson,)),
           (Binomial, (Poisson,)),
       )
       for p in these},
}  # fmt: skip


def register_kl(type_p: type, type_q: type) -> Callable[[_Rule], _Rule]:
    """A decorator of a function `(p, q)` that gives the divergence of these classes."""

    def decorate(rule: _Rule) -> _Rule:
        _rules[type_p, type_q] = rule
        return rule

    return decorate


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expectation under `p` of the logarithm of the densities' ratio. NotImplementedError for
    pairs of classes whose divergence has no rule: `register_kl` adds one.

    >>> import treadle.torch as torch
    >>> d = torch.distributions
    >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    for one in type(p).__mro__:
        for other in type(q).__mro__:
            if (one, other) in _rules:
                return _rules[one, other](p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )
