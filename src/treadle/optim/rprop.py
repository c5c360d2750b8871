"""Rprop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from treadle.kernels.device_code import adaptive_steps, optimizer_steps
from treadle.lang.decorators import Kernel
from treadle.optim import checks
from treadle.optim.fused import Fused
from treadle.optim.groups import Group


class Rprop(Fused):
    """Rprop: steps of a size of each element's own, by the signs of gradients (Riedmiller and
    Braun, 1993).

    Sizes begin at `lr`. They are multiplied with etas[1] where the gradient keeps its sign, and
    with etas[0] where it changes it, and no step is taken; `step_sizes` are the least and greatest.
    `maximize` goes uphill. `foreach` and `capturable` are accepted for PyTorch's sake.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.Rprop([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.tolist()
    [0.5, -1.5]
    """

    _elementwise = ("prev", "step_size")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr")
        less, more = group["etas"]
        if not 0 < less < 1 < more:
            raise ValueError(f"etas are a number between 0 and 1 and one above 1, not {less, more}")
        checks.unsupported(differentiable=group["differentiable"])

    def _numbers(self, group: Group) -> tuple[float, ...]:
        return (*map(float, group["etas"]), *map(float, group["step_sizes"]))

    def _states(self, group: Group) -> dict[str, float]:
        return {"prev": 0.0, "step_size": checks.number(group["lr"])}

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        return adaptive_steps.rprop
