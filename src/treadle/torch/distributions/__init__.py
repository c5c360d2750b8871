"""`torch.distributions`: densities, draws with derivatives, entropies and divergences.

Each is a few of `treadle.torch`'s functions, so gradients, devices and compilation are theirs.
"""

from treadle.core.deferred_imports import exports
from treadle.torch.files import offer
from treadle.torch.lacking import within

NAMES = {
    "treadle.torch.distributions.distribution": "Distribution Independent",
    "treadle.torch.distributions.discrete": (
        "Bernoulli Binomial Categorical Geometric OneHotCategorical "
        "OneHotCategoricalStraightThrough"
    ),
    "treadle.torch.distributions.continuous": (
        "Cauchy Exponential Gumbel HalfNormal Laplace LogNormal MultivariateNormal Normal Uniform"
    ),
    "treadle.torch.distributions.divergences": "kl_divergence register_kl",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "", within("distributions"))
offer(
    __name__,
    "bernoulli binomial categorical cauchy exponential geometric gumbel half_normal independent "
    "kl laplace log_normal multivariate_normal normal one_hot_categorical uniform",
)
