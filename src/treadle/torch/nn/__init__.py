"""`torch.nn`: modules with PyTorch's interface over treadle's layers."""

from treadle.core.deferred_imports import exports
from treadle.nn import NAMES as _INNER  # type: ignore[attr-defined]
from treadle.torch.lacking import within

_CONTAINERS = "ModuleDict ModuleList ParameterDict ParameterList Sequential"
_ELSEWHERE = {*_CONTAINERS.split(), "Module", "Parameter"}

NAMES = {
    "treadle.torch.nn.added": (
        "AdaptiveLogSoftmaxWithLoss FractionalMaxPool2d FractionalMaxPool3d "
        "LinearCrossEntropyLoss LinearCrossEntropyOptions"
    ),
    "treadle.torch.nn.containers": _CONTAINERS,
    "treadle.torch.nn.layers": " ".join(
        ["RNNBase RNNCellBase"]
        + [name for each in _INNER.values() for name in each.split() if name not in _ELSEWHERE]
    ),
    "treadle.torch.nn.lazy": (
        "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d "
        "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d "
        "LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear"
    ),
    "treadle.torch.nn.module": "Module",
    "treadle.torch.nn.parallel": "DataParallel",
    "treadle.torch.nn.parameter": "Buffer Parameter",
    "treadle.torch.nn.sync_batch_norm": "SyncBatchNorm",
}
_MODULES = "functional init modules parallel parameter utils"
__all__, __getattr__, __dir__ = exports(__name__, NAMES, _MODULES, within("nn"))
