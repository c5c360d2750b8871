"""Lion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from treadle.kernels.device_code import optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.fused import Fused
from treadle.optim.groups import Group


class Lion(Fused):
    """Lion (Chen et al., Symbolic discovery of optimization algorithms, 2023): steps of lr in each
    direction, by the sign of betas[0] * m + (1 - betas[0]) * g.

    After it m = betas[1] * m + (1 - betas[1]) * g, which begins at 0. lr * weight_decay * p is
    taken from p by itself. `maximize` goes uphill. Rates are to be three to ten times less than
    AdamW's.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.Lion([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.tolist()
    [0.75, -1.75]
    """

    _has_steps = False
    _elementwise = ("exp_avg",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "weight_decay")
        checks.decays(group["betas"])

    def _numbers(self, group: Group) -> tuple[float, ...]:
        first, second = map(checks.number, group["betas"])
        lr, decay = checks.number(group["lr"]), checks.number(group["weight_decay"])
        return lr, first, second, 1 - first, 1 - second, 1 - lr * decay

    def _states(self, group: Group) -> dict[str, float]:
        return {"exp_avg": 0.0}

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        return optimizer_steps.lion
