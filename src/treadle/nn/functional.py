"""What layers compute, as functions of tensors."""

from treadle.tensor import functional as _functional
from treadle.tensor.functional import *  # noqa: F403  what its __all__ names

__all__ = _functional.__all__
