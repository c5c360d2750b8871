"""`numpy.typing`: names for annotations. `NDArray[np.float64]` is an array of treadle.numpy."""

from __future__ import annotations

from types import GenericAlias
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from treadle.numpy.arrays import ndarray

__all__ = ["ArrayLike", "DTypeLike", "NDArray"]
_Scalar = TypeVar("_Scalar", bound=np.generic)
NDArray: Any = GenericAlias(ndarray, (Any, np.dtype[_Scalar]))  # type: ignore[valid-type]
