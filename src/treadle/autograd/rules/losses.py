"""Derivatives of losses whose parts have worse ones. (Most losses are as good as their parts.)"""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.element_losses import softplus_of_negative
from treadle.tensor.tensor import Tensor

_log, _log1p, _maximum = FUNCTIONS["log"], FUNCTIONS["log1p"], FUNCTIONS["maximum"]
_sigmoid = FUNCTIONS["sigmoid"]
_LEAST_VARIANCE = 1e-12  # of a truth value with a probability; PyTorch's


def _unlikeliness(g: Tensor, p: Tensor, t: Tensor) -> Any:
    return {
        "p": g * (p - t) / _maximum((1 - p) * p, _LEAST_VARIANCE),
        "t": g * (_log1p(-p) - _log(p)),
    }


def _unlikeliness_of_logits(g: Tensor, x: Tensor, t: Tensor, positive: Tensor | None) -> Any:
    rest = softplus_of_negative(x)
    if positive is None:
        return {"x": g * (_sigmoid(x) - t), "t": -g * x}
    counts = (positive - 1) * t + 1
    return {
        "x": g * ((1 - t) - counts * _sigmoid(-x)),
        "t": g * ((positive - 1) * rest - x),
        "positive": g * t * rest,
    }


RULES: dict[str, Rule] = {
    "unlikeliness": _unlikeliness,
    "unlikeliness_of_logits": _unlikeliness_of_logits,
}
