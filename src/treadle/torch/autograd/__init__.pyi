# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.autograd`: gradients, functions with derivatives of their own, Jacobians."""

from treadle.autograd.anomaly import detect_anomaly as detect_anomaly
from treadle.autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from treadle.autograd.anomaly import set_detect_anomaly as set_detect_anomaly
from treadle.autograd.modes import enable_grad as enable_grad
from treadle.autograd.modes import is_grad_enabled as is_grad_enabled
from treadle.autograd.modes import no_grad as no_grad
from treadle.autograd.modes import set_grad_enabled as set_grad_enabled
from treadle.torch.autograd import function as function
from treadle.torch.autograd import functional as functional
from treadle.torch.autograd.function import Function as Function
from treadle.torch.autograd.gradients import Variable as Variable
from treadle.torch.autograd.gradients import backward as backward
from treadle.torch.autograd.gradients import grad as grad
from treadle.torch.autograd.gradients import gradcheck as gradcheck
from treadle.torch.autograd.gradients import gradgradcheck as gradgradcheck
from treadle.torch.autograd.gradients import inference_mode as inference_mode
from treadle.torch.autograd.gradients import is_inference_mode_enabled as is_inference_mode_enabled

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
