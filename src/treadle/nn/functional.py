"""What layers compute, as functions of tensors."""

from treadle.core.deferred_imports import exports
from treadle.tensor.functional import NAMES

__all__, __getattr__, __dir__ = exports(__name__, NAMES)
