"""`td.random`: arrays of random numbers, lazy like all others.

Element i of draw number d is a function of the generator's seed, d and i, by the counter-based
generator Philox (see `lang.math.draws`), so there is no state on the device, threads are
independent, and the draws are fused into the kernel that uses them. `uniform`, `integers`,
`bernoulli` and `permutation` have the same bits on every device; the others have the same values up
to rounding, on which may depend what is chosen by comparing (`choice`, `multinomial`, and what
`gamma`, `poisson` and `binomial` accept).
"""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.tensor.random.choices": "choice multinomial permutation shuffle",
    "treadle.tensor.random.continuous": (
        "beta cauchy chisquare dirichlet gamma laplace log_normal student_t"
    ),
    "treadle.tensor.random.discrete": "binomial geometric poisson",
    "treadle.tensor.random.elementary": (
        "bernoulli exponential integers normal standard_normal uniform"
    ),
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
