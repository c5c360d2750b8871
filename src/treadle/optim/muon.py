"""Muon."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from treadle.core.dtypes import bfloat16
from treadle.optim import checks
from treadle.optim.groups import Group
from treadle.optim.whole_tensors import WholeTensors
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.tensor import Tensor

_WAYS = ("original", "match_rms_adamw")


class Muon(WholeTensors):
    """Muon (Jordan et al., 2024): steps of matrices along the momentum with all its singular values
    near 1.

    The momentum (or, with `nesterov`, the gradient's mean with it) is made nearly orthogonal by
    `ns_steps` steps of Newton and Schulz in bfloat16, with the polynomial of `ns_coefficients`.
    `adjust_lr_fn` says how the rate depends on the shape: "original" (None) times
    sqrt(max(1, rows / columns)), "match_rms_adamw" times 0.2 * sqrt(max(rows, columns)).
    lr * weight_decay * p is taken from p by itself. Parameters are matrices: give all others to
    AdamW. ValueError for others.

    >>> import treadle as td
    >>> x = td.asarray([[3.0, 0.0], [0.0, 4.0]], device="cpu").requires_grad_()
    >>> optimizer = td.optim.Muon([x], lr=0.5, weight_decay=0.0)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> bool((x.sum() < 6.4).item())
    True
    """

    _elementwise = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "momentum", "weight_decay")
        if group["adjust_lr_fn"] not in (None, *_WAYS):
            raise ValueError(f"adjust_lr_fn is one of {_WAYS}, not {group['adjust_lr_fn']!r}")
        if not 0 < group["ns_steps"] < 100:
            raise ValueError(f"ns_steps are at least 1 and less than 100, not {group['ns_steps']}")
        for parameter in group["params"]:
            if parameter.ndim != 2:
                raise ValueError(
                    f"Muon changes matrices, and a parameter is of shape {parameter.shape}: give "
                    "it to another optimizer, AdamW for example"
                )

    def _first_state(self, parameter: Tensor, group: Group) -> dict[str, Any]:
        return {"momentum_buffer": self.zeros(parameter.shape, parameter)}

    def _change(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: Group
    ) -> None:
        momentum, average = group["momentum"], state["momentum_buffer"]
        average[...] = average + (gradient - average) * (1 - momentum)
        update = gradient + (average - gradient) * momentum if group["nesterov"] else average
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rate = checks.number(group["lr"])
        rows, columns = parameter.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            by = 0.2 * math.sqrt(max(rows, columns))
        else:
            by = math.sqrt(max(1, rows / max(columns, 1)))
        kept = 1 - rate * group["weight_decay"]
        parameter[...] = parameter * kept - update.to(parameter.dtype) * (rate * by)


def _orthogonal(x: Tensor, coefficients: Any, steps: int, eps: float) -> Tensor:
    """The matrix with singular values near 1, in bfloat16."""
    first, second, third = coefficients
    x = x.to(bfloat16)
    is_tall = x.shape[0] > x.shape[1]
    if is_tall:
        x = x.mT
    norm = FUNCTIONS["sqrt"]((x * x).sum())
    x = (x / FUNCTIONS["maximum"](norm, eps)).realize()
    for _ in range(steps):
        # Computed here, so that all steps are the same kernels.
        gram = (x @ x.mT).realize()
        curve = (second * gram + third * (gram @ gram)).realize()
        x = (first * x + curve @ x).realize()
    return x.mT if is_tall else x
