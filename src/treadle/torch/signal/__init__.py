"""`torch.signal`: windows."""

from treadle.core.deferred_imports import exports

NAMES: dict[str, str] = {}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "windows")
