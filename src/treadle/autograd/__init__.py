"""Differentiation: the backward pass over histories, and the derivatives of all operations."""

from treadle.autograd.engine import grad, run_backward
from treadle.autograd.function import Function
from treadle.autograd.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from treadle.autograd.rules import derivatives
from treadle.graph import history

backward = run_backward
history.derivatives = derivatives
history.run_backward = run_backward

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
