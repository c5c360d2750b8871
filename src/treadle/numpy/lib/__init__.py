"""`numpy.lib`: `stride_tricks`, views of arrays by distances in memory."""

from treadle.core.deferred_imports import exports

NAMES: dict[str, str] = {}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "stride_tricks")
