"""`torch.utils`: data, checkpoints of activations, files for TensorBoard."""

from treadle.core.deferred_imports import exports
from treadle.torch.lacking import within

NAMES: dict[str, str] = {}
__all__, __getattr__, __dir__ = exports(
    __name__, NAMES, "checkpoint data tensorboard", within("utils")
)
