"""`torch.distributions`: densities, draws with derivatives, entropies and divergences.

Each is a few of `treadle.torch`'s functions, so gradients, devices and compilation are theirs.
"""

from treadle.core.deferred_imports import exports
from treadle.torch.files import offer
from treadle.torch.lacking import within

NAMES = {
    "treadle.torch.distributions.distribution": "Distribution ExponentialFamily Independent",
    "treadle.torch.distributions.discrete": (
        "Bernoulli Categorical Geometric OneHotCategorical OneHotCategoricalStraightThrough"
    ),
    "treadle.torch.distributions.counts": "Binomial Multinomial NegativeBinomial Poisson",
    "treadle.torch.distributions.continuous": (
        "Cauchy Exponential Gumbel HalfCauchy HalfNormal Laplace LogNormal Normal Uniform"
    ),
    "treadle.torch.distributions.gammas": (
        "Beta Chi2 Dirichlet FisherSnedecor Gamma InverseGamma StudentT"
    ),
    "treadle.torch.distributions.joint": (
        "LKJCholesky LowRankMultivariateNormal MultivariateNormal Wishart"
    ),
    "treadle.torch.distributions.mixtures": "ContinuousBernoulli MixtureSameFamily VonMises",
    "treadle.torch.distributions.relaxed": (
        "LogisticNormal RelaxedBernoulli RelaxedOneHotCategorical"
    ),
    "treadle.torch.distributions.transformed": (
        "GeneralizedPareto Kumaraswamy Pareto TransformedDistribution Weibull"
    ),
    "treadle.torch.distributions.transforms": (
        "AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform "
        "CumulativeDistributionTransform ExpTransform IndependentTransform "
        "LowerCholeskyTransform PositiveDefiniteTransform PowerTransform ReshapeTransform "
        "SigmoidTransform SoftmaxTransform SoftplusTransform StackTransform "
        "StickBreakingTransform TanhTransform Transform identity_transform"
    ),
    "treadle.torch.distributions.constraint_registry": "biject_to transform_to",
    "treadle.torch.distributions.divergences": "kl_divergence register_kl",
}
__all__, __getattr__, __dir__ = exports(
    __name__, NAMES, "constraint_registry constraints transforms", within("distributions")
)
offer(
    __name__,
    "bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet exp_family "
    "exponential fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy half_normal "
    "independent inverse_gamma kl kumaraswamy laplace lkj_cholesky log_normal logistic_normal "
    "lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal "
    "negative_binomial normal one_hot_categorical pareto poisson relaxed_bernoulli "
    "relaxed_categorical studentT transformed_distribution uniform von_mises weibull wishart",
)
