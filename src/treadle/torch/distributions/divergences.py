"""Kullback-Leibler divergences, by pairs of classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import treadle.torch as torch
from treadle.torch.distributions.continuous import (
    Exponential,
    Laplace,
    LogNormal,
    MultivariateNormal,
    Normal,
    Uniform,
)
from treadle.torch.distributions.discrete import (
    Bernoulli,
    Categorical,
    Geometric,
    OneHotCategorical,
)
from treadle.torch.distributions.distribution import Distribution, Independent, summed
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


_rules: dict[tuple[type, type], _Rule] = {
    (Normal, Normal): _normals,
    (LogNormal, LogNormal): _normals,
    (Bernoulli, Bernoulli): _bernoullis,
    (Categorical, Categorical): _categoricals,
    (OneHotCategorical, OneHotCategorical): _categoricals,
    (Exponential, Exponential): _exponentials,
    (Laplace, Laplace): _laplaces,
    (Uniform, Uniform): _uniforms,
    (Geometric, Geometric): _geometrics,
    (MultivariateNormal, MultivariateNormal): _joint_normals,
    (Independent, Independent): _independents,
}


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
