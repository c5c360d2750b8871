# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`td.random`: arrays of random numbers, lazy like all others.

Element i of draw number d is a function of the generator's seed, d and i, by the counter-based
generator Philox (see `lang.math.draws`), so there is no state on the device, threads are
independent, and the draws are fused into the kernel that uses them. `uniform`, `integers`,
`bernoulli` and `permutation` have the same bits on every device; the others have the same values up
to rounding, on which may depend what is chosen by comparing (`choice`, `multinomial`, and what
`gamma`, `poisson` and `binomial` accept).
"""

from treadle.tensor.random.choices import choice as choice
from treadle.tensor.random.choices import multinomial as multinomial
from treadle.tensor.random.choices import permutation as permutation
from treadle.tensor.random.choices import shuffle as shuffle
from treadle.tensor.random.continuous import beta as beta
from treadle.tensor.random.continuous import cauchy as cauchy
from treadle.tensor.random.continuous import chisquare as chisquare
from treadle.tensor.random.continuous import dirichlet as dirichlet
from treadle.tensor.random.continuous import gamma as gamma
from treadle.tensor.random.continuous import laplace as laplace
from treadle.tensor.random.continuous import log_normal as log_normal
from treadle.tensor.random.continuous import student_t as student_t
from treadle.tensor.random.discrete import binomial as binomial
from treadle.tensor.random.discrete import geometric as geometric
from treadle.tensor.random.discrete import poisson as poisson
from treadle.tensor.random.elementary import bernoulli as bernoulli
from treadle.tensor.random.elementary import exponential as exponential
from treadle.tensor.random.elementary import integers as integers
from treadle.tensor.random.elementary import normal as normal
from treadle.tensor.random.elementary import standard_normal as standard_normal
from treadle.tensor.random.elementary import uniform as uniform

__all__ = [
    "bernoulli",
    "beta",
    "binomial",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "exponential",
    "gamma",
    "geometric",
    "integers",
    "laplace",
    "log_normal",
    "multinomial",
    "normal",
    "permutation",
    "poisson",
    "shuffle",
    "standard_normal",
    "student_t",
    "uniform",
]
