"""`torch.autograd`: gradients, functions with a derivative of their own, derivatives of functions."""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.torch.autograd.function": "Function",
    "treadle.torch.autograd.gradients": (
        "Variable backward grad gradcheck gradgradcheck inference_mode is_inference_mode_enabled"
    ),
    "treadle.autograd.anomaly": "detect_anomaly is_anomaly_enabled set_detect_anomaly",
    "treadle.autograd.modes": "enable_grad is_grad_enabled no_grad set_grad_enabled",
}
_ELSEWHERE = {
    "profiler": "treadle.profile() measures, and its table shows what ran",
    "graph": "hooks of saved tensors are not there: torch.utils.checkpoint saves memory",
    "forward_ad": "torch.func.jvp computes derivatives along a direction",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "function functional", _ELSEWHERE)
