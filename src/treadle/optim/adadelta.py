"""Adadelta."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from treadle.kernels.device_code import adaptive_steps, optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.fused import Fused
from treadle.optim.groups import Group


class Adadelta(Fused):
    """Adadelta: gradients times the root of the average of the squares of steps, divided by that
    of the squares of gradients.

    `rho` is the decay of both averages; `eps` is added to them. `lr` times what comes of it is the
    step. `weight_decay` * p is a part of the gradient, `maximize` goes uphill. `foreach` and
    `capturable` are accepted for PyTorch's sake: the step is one kernel in any case.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.Adadelta([x], rho=0.75, eps=1.0)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(each, 4) for each in x.tolist()]
    [-0.4142, -0.2111]
    """

    _elementwise = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "rho", "eps", "weight_decay")
        if group["rho"] > 1:
            raise ValueError(f"rho must be at most 1, not {group['rho']}")
        checks.unsupported(differentiable=group["differentiable"])

    def _numbers(self, group: Group) -> tuple[float, ...]:
        rho, decay = float(group["rho"]), checks.number(group["weight_decay"])
        return checks.number(group["lr"]), rho, 1 - rho, float(group["eps"]), decay

    def _states(self, group: Group) -> dict[str, float]:
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        return adaptive_steps.adadelta
