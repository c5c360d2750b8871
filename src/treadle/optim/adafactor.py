"""Adafactor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from treadle.core.dtypes import DType
from treadle.optim import checks
from treadle.optim.groups import Group
from treadle.optim.whole_tensors import WholeTensors
from treadle.tensor.dtypes import finfo
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.tensor import Tensor

_maximum, _sqrt = FUNCTIONS["maximum"], FUNCTIONS["sqrt"]


class Adafactor(WholeTensors):
    """Adafactor (Shazeer and Stern, 2018): of matrices only averages of the gradients' squares over
    rows and over columns are remembered.

    `lr` is the greatest relative step, which is 1 / sqrt(t) at step t if that is less; the step is
    that times the root of the mean square of p, which counts as `eps[1]` at least. The average of
    squares takes t ** beta2_decay of the new ones; eps[0] is the least of them (None: the dtype's
    epsilon). Updates whose root of the mean square is above `d` are scaled down to it.
    lr * weight_decay * p is taken from p by itself, `maximize` goes uphill. `foreach` is accepted
    for PyTorch's sake.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.Adafactor([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(each, 4) for each in x.tolist()]
    [0.2094, -1.2094]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
            "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        checks.not_negative(group, "lr", "weight_decay")
        if group["beta2_decay"] > 0:
            raise ValueError(f"beta2_decay must be 0 or less, not {group['beta2_decay']}")
        if not group["d"] >= 1:
            raise ValueError(f"d must be at least 1, not {group['d']}")

    def _first_state(self, parameter: Tensor, group: Group) -> dict[str, Any]:
        shape = parameter.shape
        if len(shape) < 2:
            return {"step": self.number(0.0), "variance": self.zeros(shape, parameter)}
        return {
            "step": self.number(0.0),
            "row_var": self.zeros((*shape[:-1], 1), parameter),
            "col_var": self.zeros((*shape[:-2], 1, shape[-1]), parameter),
        }

    def _change(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: Group
    ) -> None:
        state["step"][...] = state["step"] + 1
        step = state["step"].to(device=parameter.device, dtype=parameter.dtype)
        assert isinstance(parameter.dtype, DType)
        least = finfo(parameter.dtype).eps if group["eps"][0] is None else group["eps"][0]
        taken = step ** group["beta2_decay"]
        relative = FUNCTIONS["minimum"](1 / _sqrt(step), checks.number(group["lr"]))
        rate = _maximum(_root_mean_square(parameter), group["eps"][1]) * relative
        if "variance" in state:
            _lerp(state["variance"], gradient * gradient, taken)
            variance = state["variance"]
        else:
            squares = gradient * gradient
            _lerp(state["row_var"], squares.mean(axis=-1, keepdims=True), taken)
            _lerp(state["col_var"], squares.mean(axis=-2, keepdims=True), taken)
            rows = state["row_var"]
            mean = _maximum(rows.mean(axis=-2, keepdims=True), least)
            variance = rows * state["col_var"] / mean
        update = gradient / _sqrt(_maximum(variance, least * least))
        rate = rate / _maximum(_root_mean_square(update) / group["d"], 1.0)
        kept = 1 - checks.number(group["lr"]) * group["weight_decay"]
        parameter[...] = parameter * kept - rate * update


def _root_mean_square(x: Tensor) -> Tensor:
    return _sqrt((x * x).sum()) / math.sqrt(max(x.size, 1))


def _lerp(average: Tensor, new: Tensor, weight: Tensor) -> None:
    average[...] = average + (new - average) * weight
