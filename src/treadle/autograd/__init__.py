"""Differentiation: the backward pass over histories, and the derivatives of all operations."""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.autograd.anomaly": "detect_anomaly is_anomaly_enabled set_detect_anomaly",
    "treadle.autograd.engine": "backward grad",
    "treadle.autograd.function": "Function",
    "treadle.autograd.gradient_check": "gradcheck",
    "treadle.autograd.modes": "enable_grad inference_mode is_grad_enabled no_grad set_grad_enabled",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
