"""Adagrad."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from treadle.kernels.device_code import optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.fused import Fused
from treadle.optim.groups import Group


class Adagrad(Fused):
    """Adagrad: gradients divided by the root of the sum of their squares until now.

    The sum begins with `initial_accumulator_value`, and `eps` is added to the root. Step number k
    has the rate lr / (1 + (k - 1) * lr_decay). `weight_decay` * p is a part of the gradient,
    `maximize` goes uphill. `foreach` and `fused` are accepted for PyTorch's sake: the step is one
    kernel in any case.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.Adagrad([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.numpy().round(4).tolist()
    [0.5, -1.5]
    """

    _derivation = optimizer_steps.falling
    _remembers_at_once = True
    _elementwise = ("sum",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        names = "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"
        checks.not_negative(group, *names)
        checks.unsupported(differentiable=group["differentiable"])

    def _numbers(self, group: Group) -> tuple[float, ...]:
        lr, decay = checks.number(group["lr"]), checks.number(group["weight_decay"])
        return lr, float(group["lr_decay"]), decay, float(group["eps"])

    def _states(self, group: Group) -> dict[str, float]:
        return {"sum": float(group["initial_accumulator_value"])}

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        return optimizer_steps.adagrad
