"""`torch.autograd`: gradients, functions with derivatives of their own, Jacobians."""

from treadle.core.deferred_imports import exports
from treadle.torch.files import offer
from treadle.torch.lacking import within

NAMES = {
    "treadle.torch.autograd.function": "Function",
    "treadle.torch.autograd.gradients": (
        "Variable backward grad gradcheck gradgradcheck inference_mode is_inference_mode_enabled"
    ),
    "treadle.autograd.anomaly": "detect_anomaly is_anomaly_enabled set_detect_anomaly",
    "treadle.autograd.modes": "enable_grad is_grad_enabled no_grad set_grad_enabled",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "function functional", within("autograd"))
offer(__name__, "variable")
