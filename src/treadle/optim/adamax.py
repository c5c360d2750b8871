"""Adamax."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from treadle.kernels.device_code import adaptive_steps, optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.adam import logarithm
from treadle.optim.fused import Fused
from treadle.optim.groups import Group


class Adamax(Fused):
    """Adamax: Adam whose steps are divided by the greatest gradient of late, instead of the root of
    the average of squares.

    `betas` are the decays of the average of gradients, which is corrected for its beginning at 0,
    and of the greatest one, to whose candidates `eps` is added. `weight_decay` * p is a part of the
    gradient, `maximize` goes uphill. `foreach` and `capturable` are accepted for PyTorch's sake.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.Adamax([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.numpy().round(4).tolist()
    [0.5, -1.5]
    """

    _derivation = adaptive_steps.adamax_rate
    _elementwise = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "eps", "weight_decay")
        checks.decays(group["betas"])
        checks.unsupported(differentiable=group["differentiable"])

    def _numbers(self, group: Group) -> tuple[float, ...]:
        first, second = map(checks.number, group["betas"])
        lr, decay = checks.number(group["lr"]), checks.number(group["weight_decay"])
        return lr, logarithm(first), 1 - first, second, float(group["eps"]), decay

    def _states(self, group: Group) -> dict[str, float]:
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        return adaptive_steps.adamax
