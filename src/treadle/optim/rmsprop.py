"""RMSprop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from treadle.kernels.device_code import optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.fused import Fused
from treadle.optim.groups import Group


class RMSprop(Fused):
    """RMSprop: gradients divided by the root of the average of their squares.

    `alpha` is the average's decay; with `centered` the square of the gradients' average is taken
    from it; `eps` is added to the root. With `momentum` b = momentum * b + g / root takes the place
    of g / root. `weight_decay` * p is a part of the gradient, `maximize` goes uphill. `foreach` and
    `capturable` are accepted for PyTorch's sake: the step is one kernel in any case.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.RMSprop([x], lr=0.125, alpha=0.75)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.numpy().round(4).tolist()
    [0.75, -1.75]
    """

    _elementwise = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "eps", "momentum", "weight_decay", "alpha")
        checks.unsupported(differentiable=group["differentiable"])

    def _numbers(self, group: Group) -> tuple[float, ...]:
        alpha = float(group["alpha"])
        return (
            checks.number(group["lr"]), checks.number(group["weight_decay"]), alpha, 1 - alpha,
            float(group["eps"]), float(group["momentum"]),
        )  # fmt: skip

    def _states(self, group: Group) -> dict[str, float]:
        return dict.fromkeys([name for name in self._arrays(group) if name is not None], 0.0)

    def _arrays(self, group: Group) -> tuple[str | None, ...]:
        return (
            "square_avg",
            "momentum_buffer" if group["momentum"] else None,
            "grad_avg" if group["centered"] else None,
        )

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        options = {"momentum": bool(group["momentum"]), "centered": bool(group["centered"])}
        return partial(optimizer_steps.rmsprop, **options)
