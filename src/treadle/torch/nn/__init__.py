"""`torch.nn`: modules with PyTorch's interface over treadle's layers."""

from treadle.core.deferred_imports import exports
from treadle.nn import NAMES as _INNER

_CONTAINERS = "ModuleDict ModuleList ParameterDict ParameterList Sequential"
_ELSEWHERE = {*_CONTAINERS.split(), "Module", "Parameter"}

NAMES = {
    "treadle.torch.nn.containers": _CONTAINERS,
    "treadle.torch.nn.layers": " ".join(
        ["RNNBase RNNCellBase"]
        + [name for each in _INNER.values() for name in each.split() if name not in _ELSEWHERE]
    ),
    "treadle.torch.nn.module": "Module",
    "treadle.torch.nn.parameter": "Buffer Parameter",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "functional init parameter utils")
