"""`torch.testing`: comparisons for tests."""

from treadle.core.deferred_imports import exports

NAMES = {"treadle.torch.testing.comparing": "assert_close make_tensor"}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
