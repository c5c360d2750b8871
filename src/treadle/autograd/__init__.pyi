# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Differentiation: the backward pass over histories, and the derivatives of all operations."""

from treadle.autograd.anomaly import detect_anomaly as detect_anomaly
from treadle.autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from treadle.autograd.anomaly import set_detect_anomaly as set_detect_anomaly
from treadle.autograd.engine import backward as backward
from treadle.autograd.engine import grad as grad
from treadle.autograd.function import Function as Function
from treadle.autograd.gradient_check import gradcheck as gradcheck
from treadle.autograd.modes import enable_grad as enable_grad
from treadle.autograd.modes import inference_mode as inference_mode
from treadle.autograd.modes import is_grad_enabled as is_grad_enabled
from treadle.autograd.modes import no_grad as no_grad
from treadle.autograd.modes import set_grad_enabled as set_grad_enabled

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
