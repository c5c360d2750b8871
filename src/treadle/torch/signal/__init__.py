"""`torch.signal`: windows."""

from treadle.core.deferred_imports import exports

__all__, __getattr__, __dir__ = exports(__name__, {}, "windows")
