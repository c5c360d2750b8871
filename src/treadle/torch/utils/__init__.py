"""`torch.utils`: data, checkpoints of activations."""

from treadle.core.deferred_imports import exports

_ELSEWHERE = {
    "tensorboard": "install tensorboardX, whose SummaryWriter takes numbers and NumPy arrays",
    "cpp_extension": "td.kernel and td.cuda_module compile kernels",
    "bottleneck": "treadle.profile() measures",
    "model_zoo": "nothing is loaded from the net: load files with torch.load",
}
__all__, __getattr__, __dir__ = exports(__name__, {}, "checkpoint data", _ELSEWHERE)
