"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from treadle.kernels.device_code import optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.fused import Fused
from treadle.optim.groups import Group

_FAR_DOWN = -1e4  # the logarithm of a decay of 0: no power of it is anything


class Adam(Fused):
    """Adam: steps along the average of gradients, divided by the root of that of their squares.

    `betas` are the decays of both averages, which are corrected for their beginning at 0; `eps` is
    added to the root. `weight_decay` * p is a part of the gradient, or, with
    `decoupled_weight_decay`, is taken from p by itself as AdamW does it. `amsgrad` divides by the
    root of the greatest average of squares that there was. `maximize` goes uphill. `foreach`,
    `fused` and `capturable` are accepted for PyTorch's sake: the step is one kernel in any case.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.numpy().round(4).tolist()
    [0.5, -1.5]
    """

    _derivation = optimizer_steps.corrections
    _elementwise = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "eps", "weight_decay")
        checks.decays(group["betas"])
        checks.unsupported(differentiable=group["differentiable"])

    def _numbers(self, group: Group) -> tuple[float, ...]:
        first, second = map(checks.number, group["betas"])
        lr, decay = checks.number(group["lr"]), checks.number(group["weight_decay"])
        return (
            lr, *map(logarithm, (first, second)), 1 - first, second, 1 - second,
            float(group["eps"]), 1 - lr * decay if _is_decoupled(group) else decay,
        )  # fmt: skip

    def _states(self, group: Group) -> dict[str, float]:
        names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * bool(group["amsgrad"])
        return dict.fromkeys(names, 0.0)

    def _arrays(self, group: Group) -> tuple[str | None, ...]:
        return "exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else None

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        options = {"amsgrad": bool(group["amsgrad"]), "decoupled": _is_decoupled(group)}
        return partial(optimizer_steps.adam, **options)


class AdamW(Adam):
    """Adam whose weight decay takes lr * weight_decay * p from p by itself. Arguments are Adam's.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.AdamW([x], lr=0.5, weight_decay=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.numpy().round(4).tolist()
    [0.25, -1.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True,
        )  # fmt: skip


def _is_decoupled(group: Group) -> bool:
    # A state from before there was the option has it not.
    return bool(group.get("decoupled_weight_decay"))


def logarithm(decay: float) -> float:
    """The logarithm of a decay, of 0 too."""
    return math.log(decay) if decay else _FAR_DOWN
