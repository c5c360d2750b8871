"""Derivatives of losses that would be less accurate if they were derived from their parts."""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.derivative import Rule, tensor_of
from treadle.autograd.rules.moving import added_at
from treadle.graph.calls import call
from treadle.graph.history import RESULT, History
from treadle.kernels.ctc import align_backward
from treadle.kernels.device_code.ctc import IMPOSSIBLE
from treadle.tensor.advanced_indexing import index_dtype
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.element_losses import negative_log_sigmoid
from treadle.tensor.manipulation import expand_dims
from treadle.tensor.ranges import arange
from treadle.tensor.tensor import Tensor, from_node

_log, _log1p, _maximum = FUNCTIONS["log"], FUNCTIONS["log1p"], FUNCTIONS["maximum"]
_exp, _sigmoid, _where = FUNCTIONS["exp"], FUNCTIONS["sigmoid"], FUNCTIONS["where"]
_LEAST_VARIANCE = 1e-12  # of a truth value with a probability; PyTorch's


def _binary_nll(g: Tensor, p: Tensor, t: Tensor) -> Any:
    return {
        "p": g * (p - t) / _maximum((1 - p) * p, _LEAST_VARIANCE),
        "t": g * (_log1p(-p) - _log(p)),
    }


def _binary_nll_of_logits(g: Tensor, x: Tensor, t: Tensor, positive: Tensor | None) -> Any:
    rest = negative_log_sigmoid(x)
    if positive is None:
        return {"x": g * (_sigmoid(x) - t), "t": -g * x}
    counts = (positive - 1) * t + 1
    return {
        "x": g * ((1 - t) - counts * _sigmoid(-x)),
        "t": g * ((positive - 1) * rest - x),
        "positive": g * t * rest,
    }


def _aligned(g: Tensor, made: History) -> tuple[Any]:
    """By a log-probability it is minus the probability that its class comes at its time, given the
    target. `made` has labels, where they begin, lengths and the forward variables."""
    losses, g = expand_dims(tensor_of(made, RESULT), 1), expand_dims(g, 1)
    scores, labels, starts, lengths, sizes, alpha = (tensor_of(made, place) for place in range(6))
    states, blank = made.options
    sources = [each._node for each in (scores, labels, starts, lengths, sizes)]
    beta = from_node(call(align_backward, sources, alpha.shape, alpha.dtype, (states, blank)))
    possible = losses < -IMPOSSIBLE / 10
    occupied = _exp(_where(possible, alpha + beta + losses, 0))
    of_each = _where(possible, g, _where(g == 0, 0, math.nan))
    times, batch, classes = scores.shape
    state = arange(states, dtype=labels.dtype, device=labels.device)
    at = expand_dims(starts, 1) + state // 2
    if labels.size:
        labelled = labels[_where(at < labels.size, at, 0)]
        label = _where(state % 2 == 1, labelled, blank)
    else:
        label = _where(at < 0, at, blank)
    known = (state < expand_dims(sizes, 1) * 2 + 1) & (label >= 0) & (label < classes)
    row = arange(times * batch, dtype=index_dtype(scores.size), device=labels.device) * classes
    places = row.reshape(times, batch, 1) + label.to(row.dtype)
    time = arange(times, dtype=lengths.dtype, device=labels.device).reshape(-1, 1, 1)
    places = _where(known & (time < expand_dims(lengths, 1)), places, -1)
    return (added_at(places, -occupied * of_each, scores.shape),)


NODES: dict[str, tuple[Rule, tuple[int, ...]]] = {"aligned": (_aligned, (0, RESULT))}
RULES: dict[str, Rule] = {
    "binary_nll": _binary_nll,
    "binary_nll_of_logits": _binary_nll_of_logits,
}
