"""ASGD."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from treadle.kernels.device_code import adaptive_steps, optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.fused import Fused
from treadle.optim.groups import Group


class ASGD(Fused):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992): `ax` in the state is the
    average of the parameters from step `t0` on.

    A step takes lambd * eta * p and eta * g from p, with the rate eta = lr / (1 + lambd * lr *
    step) ** alpha of the step before. `weight_decay` * p is a part of the gradient, `maximize` goes
    uphill. `foreach` and `capturable` are accepted for PyTorch's sake.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.ASGD([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.numpy().round(4).tolist()
    [0.5, -1.0]
    """

    _derivation = adaptive_steps.asgd_rates
    _elementwise = ("ax",)
    _scalars = ("eta", "mu")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "weight_decay")
        checks.unsupported(differentiable=group["differentiable"])

    def _numbers(self, group: Group) -> tuple[float, ...]:
        return (
            checks.number(group["lr"]), float(group["lambd"]), float(group["alpha"]),
            float(group["t0"]), checks.number(group["weight_decay"]),
        )  # fmt: skip

    def _states(self, group: Group) -> dict[str, float]:
        return {"ax": 0.0}

    def _remembered_numbers(self, group: Group) -> dict[str, tuple[int, float]]:
        rate = checks.number(group["lr"])
        return {"eta": (adaptive_steps.ETA, rate), "mu": (adaptive_steps.MU, 1.0)}

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        return adaptive_steps.asgd
