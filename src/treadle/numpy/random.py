"""NumPy's `random`: `default_rng`, Generator's methods, and the older functions. The numbers are
drawn on the device, by treadle's generator (Philox): they are not NumPy's of the same seed, but the
same on every device."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.numpy.absent import WITHIN
from treadle.numpy.generators import BitGenerator, Generator, number, seed_of
from treadle.tensor.generator import default_generator

_METHODS = [
    "beta",
    "binomial",
    "chisquare",
    "dirichlet",
    "exponential",
    "f",
    "gamma",
    "geometric",
    "gumbel",
    "hypergeometric",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "power",
    "rayleigh",
    "shuffle",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "triangular",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
    "zipf",
]
_LEGACY = [
    "choice",
    "rand",
    "randint",
    "randn",
    "random",
    "random_integers",
    "random_sample",
    "ranf",
    "sample",
    "seed",
]
__all__ = sorted(
    [
        *_METHODS,
        *_LEGACY,
        "Generator",
        "RandomState",
        "default_rng",
        "get_state",
        "set_state",
        "bytes",
    ]
)


class RandomState(Generator):
    """NumPy's older interface: a Generator with `rand`, `randn`, `randint`, `seed`, ….

    >>> import treadle.numpy as np
    >>> np.random.RandomState(3).randint(0, 5, size=(2, 2)).shape
    (2, 2)
    """

    def __init__(self, seed: Any = None) -> None:
        super().__init__(td.Generator(seed_of(seed)))

    def seed(self, seed: Any = None) -> None:
        """Begin anew with a seed."""
        self._generator.manual_seed(td.Generator(seed_of(seed)).seed)

    def rand(self, *args: int) -> Any:
        """Numbers in [0, 1), in a shape given as arguments."""
        return self.random(args or None)

    def randn(self, *args: int) -> Any:
        """Normal numbers, in a shape given as arguments."""
        return self.standard_normal(args or None)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        """Integers from `low` on, before `high`."""
        found = self.integers(low, high, size, dtype)
        return number(found) if dtype is int else found

    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> Any:
        """Integers from `low` to `high`."""
        low, high = (1, low) if high is None else (low, high)
        return number(self.integers(low, high, size, endpoint=True))

    def random_sample(self, size: Any = None) -> Any:
        """Numbers in [0, 1)."""
        return self.random(size)

    ranf = sample = random_sample

    def tomaxint(self, size: Any = None) -> Any:
        """Integers from 0 on."""
        return number(self.integers(0, 2**31 - 1, size))

    def get_state(self, legacy: bool = True) -> tuple[int, int]:
        """The seed and the position."""
        return self._generator.get_state()

    def set_state(self, state: tuple[int, int]) -> None:
        """Continue from a state."""
        self._generator.set_state(state)


class _Global(RandomState):
    """The draws of the module's functions: by treadle's default generator."""

    def __init__(self) -> None:
        Generator.__init__(self, default_generator())


def default_rng(seed: Any = None, device: Any = None) -> Generator:
    """A generator of random numbers; draws are on `device`, else on the default device.

    >>> import treadle.numpy as np
    >>> np.random.default_rng(1).normal(size=3).shape
    (3,)
    """
    if isinstance(seed, Generator):
        return seed
    if isinstance(seed, (td.Generator, BitGenerator)):
        return Generator(seed, device)
    return Generator(td.Generator(seed_of(seed)), device)


_state = _Global()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        reason = WITHIN.get(f"random.{name}", "")
        said = f": {reason}" if reason else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{said}")
    found = globals()[name] = getattr(_state, name)
    return found


def __dir__() -> list[str]:
    return __all__
