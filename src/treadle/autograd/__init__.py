"""Differentiation: the backward pass over histories, and the derivatives of all operations."""

from treadle.autograd.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from treadle.autograd.engine import grad, run_backward
from treadle.autograd.function import Function
from treadle.autograd.gradcheck import gradcheck
from treadle.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

backward = run_backward

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "inference_mode",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
