"""`torch.utils`: data, checkpoints of activations."""

from treadle.core.deferred_imports import exports
from treadle.torch.lacking import within

__all__, __getattr__, __dir__ = exports(__name__, {}, "checkpoint data", within("utils"))
