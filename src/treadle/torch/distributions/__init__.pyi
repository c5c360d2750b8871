# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.distributions`: densities, draws with derivatives, entropies and divergences.

Each is a few of `treadle.torch`'s functions, so gradients, devices and compilation are theirs.
"""

from treadle.torch.distributions.continuous import Cauchy as Cauchy
from treadle.torch.distributions.continuous import Exponential as Exponential
from treadle.torch.distributions.continuous import Gumbel as Gumbel
from treadle.torch.distributions.continuous import HalfNormal as HalfNormal
from treadle.torch.distributions.continuous import Laplace as Laplace
from treadle.torch.distributions.continuous import LogNormal as LogNormal
from treadle.torch.distributions.continuous import MultivariateNormal as MultivariateNormal
from treadle.torch.distributions.continuous import Normal as Normal
from treadle.torch.distributions.continuous import Uniform as Uniform
from treadle.torch.distributions.discrete import Bernoulli as Bernoulli
from treadle.torch.distributions.discrete import Binomial as Binomial
from treadle.torch.distributions.discrete import Categorical as Categorical
from treadle.torch.distributions.discrete import Geometric as Geometric
from treadle.torch.distributions.discrete import OneHotCategorical as OneHotCategorical
from treadle.torch.distributions.discrete import (
    OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough,
)
from treadle.torch.distributions.distribution import Distribution as Distribution
from treadle.torch.distributions.distribution import Independent as Independent
from treadle.torch.distributions.divergences import kl_divergence as kl_divergence
from treadle.torch.distributions.divergences import register_kl as register_kl

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Uniform",
    "kl_divergence",
    "register_kl",
]
