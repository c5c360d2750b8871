# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.distributions`: densities, draws with derivatives, entropies and divergences.

Each is a few of `treadle.torch`'s functions, so gradients, devices and compilation are theirs.
"""

from treadle.torch.distributions import constraint_registry as constraint_registry
from treadle.torch.distributions import constraints as constraints
from treadle.torch.distributions import transforms as transforms
from treadle.torch.distributions.constraint_registry import biject_to as biject_to
from treadle.torch.distributions.constraint_registry import transform_to as transform_to
from treadle.torch.distributions.continuous import Cauchy as Cauchy
from treadle.torch.distributions.continuous import Exponential as Exponential
from treadle.torch.distributions.continuous import Gumbel as Gumbel
from treadle.torch.distributions.continuous import HalfCauchy as HalfCauchy
from treadle.torch.distributions.continuous import HalfNormal as HalfNormal
from treadle.torch.distributions.continuous import Laplace as Laplace
from treadle.torch.distributions.continuous import LogNormal as LogNormal
from treadle.torch.distributions.continuous import Normal as Normal
from treadle.torch.distributions.continuous import Uniform as Uniform
from treadle.torch.distributions.counts import Binomial as Binomial
from treadle.torch.distributions.counts import Multinomial as Multinomial
from treadle.torch.distributions.counts import NegativeBinomial as NegativeBinomial
from treadle.torch.distributions.counts import Poisson as Poisson
from treadle.torch.distributions.discrete import Bernoulli as Bernoulli
from treadle.torch.distributions.discrete import Categorical as Categorical
from treadle.torch.distributions.discrete import Geometric as Geometric
from treadle.torch.distributions.discrete import OneHotCategorical as OneHotCategorical
from treadle.torch.distributions.discrete import (
    OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough,
)
from treadle.torch.distributions.distribution import Distribution as Distribution
from treadle.torch.distributions.distribution import ExponentialFamily as ExponentialFamily
from treadle.torch.distributions.distribution import Independent as Independent
from treadle.torch.distributions.divergences import kl_divergence as kl_divergence
from treadle.torch.distributions.divergences import register_kl as register_kl
from treadle.torch.distributions.gammas import Beta as Beta
from treadle.torch.distributions.gammas import Chi2 as Chi2
from treadle.torch.distributions.gammas import Dirichlet as Dirichlet
from treadle.torch.distributions.gammas import FisherSnedecor as FisherSnedecor
from treadle.torch.distributions.gammas import Gamma as Gamma
from treadle.torch.distributions.gammas import InverseGamma as InverseGamma
from treadle.torch.distributions.gammas import StudentT as StudentT
from treadle.torch.distributions.joint import LKJCholesky as LKJCholesky
from treadle.torch.distributions.joint import LowRankMultivariateNormal as LowRankMultivariateNormal
from treadle.torch.distributions.joint import MultivariateNormal as MultivariateNormal
from treadle.torch.distributions.joint import Wishart as Wishart
from treadle.torch.distributions.mixtures import ContinuousBernoulli as ContinuousBernoulli
from treadle.torch.distributions.mixtures import MixtureSameFamily as MixtureSameFamily
from treadle.torch.distributions.mixtures import VonMises as VonMises
from treadle.torch.distributions.relaxed import LogisticNormal as LogisticNormal
from treadle.torch.distributions.relaxed import RelaxedBernoulli as RelaxedBernoulli
from treadle.torch.distributions.relaxed import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from treadle.torch.distributions.transformed import GeneralizedPareto as GeneralizedPareto
from treadle.torch.distributions.transformed import Kumaraswamy as Kumaraswamy
from treadle.torch.distributions.transformed import Pareto as Pareto
from treadle.torch.distributions.transformed import (
    TransformedDistribution as TransformedDistribution,
)
from treadle.torch.distributions.transformed import Weibull as Weibull
from treadle.torch.distributions.transforms import AbsTransform as AbsTransform
from treadle.torch.distributions.transforms import AffineTransform as AffineTransform
from treadle.torch.distributions.transforms import CatTransform as CatTransform
from treadle.torch.distributions.transforms import ComposeTransform as ComposeTransform
from treadle.torch.distributions.transforms import CorrCholeskyTransform as CorrCholeskyTransform
from treadle.torch.distributions.transforms import (
    CumulativeDistributionTransform as CumulativeDistributionTransform,
)
from treadle.torch.distributions.transforms import ExpTransform as ExpTransform
from treadle.torch.distributions.transforms import IndependentTransform as IndependentTransform
from treadle.torch.distributions.transforms import LowerCholeskyTransform as LowerCholeskyTransform
from treadle.torch.distributions.transforms import (
    PositiveDefiniteTransform as PositiveDefiniteTransform,
)
from treadle.torch.distributions.transforms import PowerTransform as PowerTransform
from treadle.torch.distributions.transforms import ReshapeTransform as ReshapeTransform
from treadle.torch.distributions.transforms import SigmoidTransform as SigmoidTransform
from treadle.torch.distributions.transforms import SoftmaxTransform as SoftmaxTransform
from treadle.torch.distributions.transforms import SoftplusTransform as SoftplusTransform
from treadle.torch.distributions.transforms import StackTransform as StackTransform
from treadle.torch.distributions.transforms import StickBreakingTransform as StickBreakingTransform
from treadle.torch.distributions.transforms import TanhTransform as TanhTransform
from treadle.torch.distributions.transforms import Transform as Transform
from treadle.torch.distributions.transforms import identity_transform as identity_transform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraint_registry",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]
