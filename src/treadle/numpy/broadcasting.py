"""`np.broadcast`: the shape that arrays broadcast to."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.numpy.arrays import unwrapped
from treadle.numpy.operations import operands


class broadcast:
    """The shape of arrays that are broadcast; NumPy's iterator over them is not here.

    >>> import treadle.numpy as np
    >>> np.broadcast(np.ones((2, 1)), np.ones(3)).shape
    (2, 3)
    """

    def __init__(self, *args: Any) -> None:
        shapes = [operands.array(unwrapped(each)).shape for each in args]
        self.shape: tuple[int, ...] = np.broadcast_shapes(*shapes)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    nd = ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=object)) if self.shape else 1
