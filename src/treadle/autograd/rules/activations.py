"""Derivatives of activations, each one formula of the input or the result."""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.derivative import Rule
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.wide import wide

_erf, _exp, _tanh = FUNCTIONS["erf"], FUNCTIONS["exp"], FUNCTIONS["tanh"]
_square, _where, _sigmoid = FUNCTIONS["square"], FUNCTIONS["where"], FUNCTIONS["sigmoid"]


def _relu(g: Any, out: Any) -> Any:
    return _where(out > 0, g, 0)


def _gelu(g: Any, input: Any, approximate: str) -> Any:
    x, _ = wide(input)
    g, _ = wide(g)
    if approximate == "none":
        inner = _erf(x * math.sqrt(0.5))
        slope = _exp(_square(x) * -0.5) * math.sqrt(2 / math.pi)
    else:
        scale = math.sqrt(2 / math.pi)
        inner = _tanh((x + _square(x) * x * 0.044715) * scale)
        slope = (1 - _square(inner)) * (_square(x) * (3 * 0.044715) + 1) * scale
    return g * ((inner + 1) * 0.5 + x * slope * 0.5)


def _silu(g: Any, input: Any) -> Any:
    x, _ = wide(input)
    part = _sigmoid(x)
    return g * (part * (1 + x * (1 - part)))


RULES: dict[str, Rule] = {"gelu": _gelu, "relu": _relu, "silu": _silu}
