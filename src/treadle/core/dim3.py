"""Three-part extents: blocks and grids, x fastest, as in CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core.sizes import index


class Dim3(NamedTuple):
    """A block or grid extent.

    >>> Dim3(4, 2).count
    8
    """

    x: int = 1
    y: int = 1
    z: int = 1

    @property
    def count(self) -> int:  # type: ignore[override]  # hides tuple.count
        """The number of points: x * y * z."""
        return self.x * self.y * self.z

    @classmethod
    def of(cls, extent: int | Sequence[int] | np.ndarray[Any, Any]) -> Dim3:
        """A Dim3 from an int or up to three ints, also in an array of NumPy, x first.

        >>> Dim3.of((8, 4))
        Dim3(x=8, y=4, z=1)
        >>> Dim3.of(np.array([8, 4]))
        Dim3(x=8, y=4, z=1)

        Raises ValueError for more than three parts, TypeError for parts that are not integers.
        """
        if isinstance(extent, Dim3):
            return extent
        return cls(*_parts(extent))

    @classmethod
    def of_shape(cls, shape: int | Sequence[int]) -> Dim3:
        """A Dim3 from an int or up to three ints in the order of an array's axes, x last.

        >>> Dim3.of_shape((8, 4))
        Dim3(x=4, y=8, z=1)

        Raises as `of` does.
        """
        return cls(*reversed(_parts(shape)))


def _parts(extent: Any) -> tuple[int, ...]:
    if isinstance(extent, np.ndarray) and extent.ndim == 1:
        extent = extent.tolist()
    parts = tuple(extent) if isinstance(extent, Sequence) else (extent,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"an extent has one to three parts, not {len(parts)}: {extent!r}")
    return tuple(_index(part) for part in parts)


def _index(part: object) -> int:
    if isinstance(part, bool) or not hasattr(part, "__index__"):
        way = " (// divides to an integer)" if isinstance(part, float) else ""
        raise TypeError(f"an extent is made of integers, not {type(part).__name__}: {part!r}{way}")
    number: int = index(part)
    return number
