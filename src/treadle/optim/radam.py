"""RAdam."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from treadle.kernels.device_code import adaptive_steps, optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.adam import logarithm
from treadle.optim.fused import Fused
from treadle.optim.groups import Group


class RAdam(Fused):
    """RAdam: Adam whose first steps, of which the average of squares knows too little, go without
    it (Liu et al., On the variance of the adaptive learning rate, 2020).

    `betas`, `eps`, `weight_decay` and `decoupled_weight_decay` are as Adam's. `maximize` goes
    uphill. `foreach` and `capturable` are accepted for PyTorch's sake.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.RAdam([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.numpy().round(4).tolist()
    [0.5, -1.0]
    """

    _derivation = adaptive_steps.radam_factors
    _elementwise = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "eps", "weight_decay")
        checks.decays(group["betas"])
        checks.unsupported(differentiable=group["differentiable"])

    def _numbers(self, group: Group) -> tuple[float, ...]:
        first, second = map(checks.number, group["betas"])
        lr, decay = checks.number(group["lr"]), checks.number(group["weight_decay"])
        longest = 2 / (1 - second) - 1
        return (
            lr, logarithm(first), logarithm(second), 1 - first, second, 1 - second,
            float(group["eps"]), 1 - lr * decay if group["decoupled_weight_decay"] else decay,
            longest, longest + 2 / logarithm(second),
        )  # fmt: skip

    def _states(self, group: Group) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        return partial(adaptive_steps.radam, decoupled=bool(group["decoupled_weight_decay"]))
