"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from treadle.kernels.device_code import optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.fused import Fused
from treadle.optim.groups import Group


class SGD(Fused):
    """Stochastic gradient descent: p -= lr * g, with the gradient g + weight_decay * p.

    With `momentum` the average b = momentum * b + (1 - dampening) * g takes the gradient's place
    (at first b = g), or, with `nesterov`, g + momentum * b. `maximize` goes uphill. `foreach` and
    `fused` are accepted for PyTorch's sake: the step is one kernel in any case.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.SGD([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.tolist()
    [0.0, 0.0]
    """

    _has_steps = False
    _elementwise = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "momentum", "weight_decay")
        checks.unsupported(differentiable=group["differentiable"])
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("nesterov takes a momentum greater than 0, and no dampening")

    def _numbers(self, group: Group) -> tuple[float, ...]:
        momentum, dampening = float(group["momentum"]), float(group["dampening"])
        lr, decay = checks.number(group["lr"]), checks.number(group["weight_decay"])
        return lr, decay, momentum, 1 - dampening

    def _states(self, group: Group) -> dict[str, float]:
        return {"momentum_buffer": 0.0} if group["momentum"] else {}

    def _arrays(self, group: Group) -> tuple[str | None, ...]:
        return ("momentum_buffer" if group["momentum"] else None,)

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        options = {"momentum": bool(group["momentum"]), "nesterov": bool(group["nesterov"])}
        return partial(optimizer_steps.sgd, **options)
