"""What WebGPU is like on a device, and which of its limits and features kernels can use."""

from __future__ import annotations

from typing import Literal

from treadle.core.dtypes import int32
from treadle.core.traits import Traits

WARP_WIDTH = 32  # of kernels
MOST_BOUND = 2**31 - 16
"""Bytes of one array that a kernel sees: it counts them in 32 bits, with a sign."""

Kind = Literal["discrete", "integrated", "software", "cpu"]

# Our own code for the CPU is faster than a software driver.
_RANKS: dict[Kind, int] = {"discrete": 1, "integrated": 2, "software": 4}


def traits_of(kind: Kind) -> Traits:
    """What WebGPU is like on such a device."""
    return Traits(
        targets=("wgsl",),
        rank=_RANKS.get(kind, 9),
        software=kind == "software",
        slow_compiler=kind == "software",
        exact_division=False,  # to 2.5 ULP
        atomics_64=False,
        narrow_stores=False,
        default_integer=int32,
        changes_recordings=True,
    )


def subgroup_size(sizes: tuple[int, int]) -> int:
    """The size that kernels can rely on, given the smallest and the largest, or 0.

    Kernels are written for subgroups of 32. A device with another size, or with one that may vary
    between kernels, gets emulated subgroups.

    >>> subgroup_size((32, 32)), subgroup_size((8, 32)), subgroup_size((4, 4))
    (32, 0, 0)
    """
    return WARP_WIDTH if sizes == (WARP_WIDTH, WARP_WIDTH) else 0


def whole_vectors(size: int) -> int:
    """The part of a size in bytes that is whole vectors of four numbers: as such a kernel may see
    an array.

    >>> whole_vectors(2**28 + 20)
    268435472
    """
    return size // 16 * 16
