"""Draws by rejection for whole arrays: proposals for all elements, again while one is refused.

They are for `treadle.numpy` and `treadle.torch`, whose libraries have these distributions. Each
round is a kernel and waits for its answer; a few rounds are enough for any size.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.generator import Generator
from treadle.tensor.random.elementary import uniform
from treadle.tensor.reductions import all as every
from treadle.tensor.tensor import Tensor

_asin = FUNCTIONS["asin"]
_clip = FUNCTIONS["clip"]
_floor = FUNCTIONS["floor"]
_log = FUNCTIONS["log"]
_logical_and = FUNCTIONS["logical_and"]
_logical_or = FUNCTIONS["logical_or"]
_sin = FUNCTIONS["sin"]
_sqrt = FUNCTIONS["sqrt"]
_where = FUNCTIONS["where"]


def _until_accepted(propose: Callable[[], tuple[Tensor, Tensor]]) -> Tensor:
    """Values of which every element was accepted: `propose` draws values, and which are."""
    values, accepted = propose()
    while not bool(every(accepted)):
        others, more = propose()
        values = _where(accepted, values, others)
        accepted = _logical_or(accepted, more)
    return values


def von_mises(kappa: Tensor, generator: Generator | None = None) -> Tensor:
    """Angles from -pi to pi of density in proportion to exp(kappa cos(x)), one for each element
    (Best, Fisher, 1979)."""

    def drawn() -> Tensor:
        return uniform(kappa.shape, dtype=kappa.dtype, device=kappa.device, generator=generator)

    # A wrapped Cauchy variable is proposed: 1 - cos(x) = w (1 + rho) ... in terms of s = r - 1,
    # which a large kappa does not cancel.
    flat = kappa < 1e-4
    k = _where(flat, 1.0, kappa)
    root = _sqrt(1 + 4 * k * k)
    tau = 1 + root
    rho = (tau - _sqrt(2 * tau)) / (2 * k)
    s = (1 - rho) ** 2 / (2 * rho)  # r - 1

    def propose() -> tuple[Tensor, Tensor]:
        u, v = drawn(), drawn()
        # With z = cos(pi u): 1 - f = s (1 - z) / (1 + s + z), and r - f = s + 1 - f.
        down = 2 * _sin(u * (math.pi / 2)) ** 2  # 1 - z
        away = s * down / (2 + s - down)
        c = k * (s + away)
        chance = _log(c) + 1 - c
        angle = 2 * _asin(_sqrt(_clip(away / 2, 0.0, 1.0)))
        return angle, _log(v) <= chance

    angle = _until_accepted(propose)
    angle = _where(flat, drawn() * math.pi, angle)
    return _where(drawn() < 0.5, -angle, angle)


def zipf(a: Tensor, most: float, generator: Generator | None = None) -> Tensor:
    """Whole numbers 1, 2, … up to `most`, of probability in proportion to k ** -a, as floats
    (Devroye, 1986)."""
    less = a - 1
    b = 2.0**less

    def drawn() -> Tensor:
        return uniform(a.shape, dtype=a.dtype, device=a.device, generator=generator)

    def propose() -> tuple[Tensor, Tensor]:
        u, v = 1 - drawn(), drawn()
        x = _floor(u ** (-1 / less))
        t = (1 + 1 / x) ** less
        within = _logical_and(x >= 1, x <= most)
        return x, _logical_and(within, v * x * (t - 1) / (b - 1) <= t / b)

    return _until_accepted(propose)
