"""Loops around small kernels: Jacobi's method, which reads at each step, and a Monte-Carlo loop."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.cli.bench.harness import Figure
from treadle.cli.bench.programs.setting import Measurement, Setting, compare, numbers, one
from treadle.core.errors import TreadleError

_TOLERANCE = 1e-4
_ERRORS = 6.0  # standard errors that a mean may be off


def measurements(setting: Setting) -> list[Measurement]:
    """Both loops."""
    return [functools.partial(_jacobi, setting), functools.partial(_monte_carlo, setting)]


# --- Jacobi's method -----------------------------------------------------------------------------


def jacobi(u: Any, most: int, accepted: float) -> tuple[Any, int]:
    """Heat in a plate whose edges stay as they are, until it changes no more than `accepted`."""
    for iteration in range(most):
        new = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25
        change = float(abs(new - u[1:-1, 1:-1]).max())
        u[1:-1, 1:-1] = new
        if change <= accepted:
            return u, iteration + 1
    return u, most


def _jacobi(setting: Setting) -> list[Figure]:
    edge, most = setting.sizes.grid, setting.sizes.iterations
    plate = np.zeros((edge, edge), np.float32)
    plate[0] = 1.0
    right, _ = jacobi(plate.astype(np.float64), most, 0.0)
    # Less than the last iteration changes, so that each library does as many iterations.
    accepted = 1e-9

    def loop(make: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: jacobi(make(), most, accepted)[0]

    ours, peer = setting.ours, setting.peer
    run = loop(lambda: ours.array(plate.copy()))
    compare("Jacobi's method", numbers(run()), right, _TOLERANCE)
    theirs = None if peer is None else loop(lambda: peer.array(plate.copy()))
    plain = loop(plate.copy)
    took = one(ours.wait, run) / most
    peers = None if peer is None or theirs is None else one(peer.wait, theirs) / most
    others = ((("NumPy", one(lambda: None, plain) / most),)) if setting.on_host else ()
    name = f"Jacobi's method, {edge} × {edge}, an iteration and its test on the host"
    return [
        Figure(
            setting.suite, name, "s", took, peer="PyTorch" if peers else "", peers=peers,
            others=others,
        )
    ]  # fmt: skip


# --- Monte Carlo ---------------------------------------------------------------------------------

_RATE, _VOLATILITY, _PRICE, _STRIKE = 0.05, 0.2, 100.0, 105.0


def _monte_carlo(setting: Setting) -> list[Figure]:
    paths, steps = setting.sizes.paths, setting.sizes.steps
    drift = (_RATE - _VOLATILITY**2 / 2) / steps
    spread = _VOLATILITY / math.sqrt(steps)

    def price(draw: Callable[[], Any]) -> Any:
        """What an option pays on each of some paths."""
        log: Any = math.log(_PRICE)
        for _ in range(steps):
            log = log + drift + spread * draw()
        return log

    td, device = setting.ours.module, setting.device
    td.manual_seed(0)

    def run() -> float:
        ends = td.exp(price(lambda: td.random.normal((paths,), device=device)))
        return float(td.mean(td.maximum(ends - _STRIKE, 0.0)))

    theirs = None
    if (peer := setting.peer) is not None:
        torch = peer.module

        def theirs() -> float:
            ends = torch.exp(price(lambda: torch.randn(paths, device=peer.device)))
            return float(torch.mean(torch.clamp(ends - _STRIKE, min=0.0)))

    rng = np.random.default_rng(0)

    def plain() -> float:
        ends = np.exp(price(lambda: rng.standard_normal(paths, np.float32)))
        return float(np.mean(np.maximum(ends - _STRIKE, 0.0)))

    _compare_mean(run)
    name = f"Monte-Carlo loop, {steps} draws of {paths} and a read"
    return [setting.figure(name, run, theirs, others=setting.numpy(plain))]


def _compare_mean(run: Callable[[], float], repeats: int = 20) -> None:
    """TreadleError unless the mean of several runs is that of Black and Scholes."""
    found = np.array([run() for _ in range(repeats)])
    root = _VOLATILITY
    d = (math.log(_PRICE / _STRIKE) + _RATE + root**2 / 2) / root

    def normal(x: float) -> float:
        return 0.5 * (1 + math.erf(x / math.sqrt(2)))

    right = _PRICE * math.exp(_RATE) * normal(d) - _STRIKE * normal(d - root)
    error = float(found.std(ddof=1)) / math.sqrt(repeats)
    if not abs(float(found.mean()) - right) <= _ERRORS * error:
        raise TreadleError(
            f"the Monte-Carlo loop is wrong: {found.mean():.3f} ± {error:.3f} where {right:.3f} "
            f"is right. Nothing was timed; please report it"
        )
