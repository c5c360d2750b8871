"""NAdam."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from treadle.kernels.device_code import adaptive_steps, optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.adam import logarithm
from treadle.optim.fused import Fused
from treadle.optim.groups import Group


class NAdam(Fused):
    """NAdam: Adam with Nesterov's momentum (Dozat, 2016).

    Step number t looks ahead with the momentum mu(t) = betas[0] * (1 - 0.96 ** (t *
    momentum_decay) / 2); their product so far is `mu_product` in the state. `weight_decay` * p is a
    part of the gradient, or, with `decoupled_weight_decay`, is taken from p by itself. `maximize`
    goes uphill. `foreach` and `capturable` are accepted for PyTorch's sake.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.NAdam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(each, 4) for each in x.tolist()]
    [0.4718, -1.4718]
    """

    _derivation = adaptive_steps.nadam_factors
    _elementwise = ("exp_avg", "exp_avg_sq")
    _scalars = ("mu_product",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "eps", "weight_decay", "momentum_decay")
        checks.decays(group["betas"])
        checks.unsupported(differentiable=group["differentiable"])

    def _numbers(self, group: Group) -> tuple[float, ...]:
        first, second = map(checks.number, group["betas"])
        lr, decay = checks.number(group["lr"]), checks.number(group["weight_decay"])
        return (
            lr, logarithm(first), logarithm(second), 1 - first, second, 1 - second,
            float(group["eps"]), 1 - lr * decay if group["decoupled_weight_decay"] else decay,
            first, math.log(0.96) * float(group["momentum_decay"]),
        )  # fmt: skip

    def _states(self, group: Group) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def _remembered_numbers(self, group: Group) -> dict[str, tuple[int, float]]:
        return {"mu_product": (adaptive_steps.MU_PRODUCT, 1.0)}

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        return partial(adaptive_steps.nadam, decoupled=bool(group["decoupled_weight_decay"]))
