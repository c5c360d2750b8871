"""What the elements of blocks are, as lazy expressions of their planes.

Each function takes planes (rows, blocks, *plane) and returns float32 (rows, blocks, …, run), where
the last axes together are a block's elements in their order. They are views, shifts and products
only: every device fuses them into the kernel that reads the elements. Operations are in the order
in which ggml's reference computes them, so the results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from treadle.core.dtypes import float32, uint8, uint32
from treadle.tensor.ranges import arange
from treadle.tensor.tensor import Tensor

Planes = Mapping[str, Tensor]


def _unpacked(packed: Tensor, run: int, width: int) -> Tensor:
    """Numbers of `width` bits from bytes (rows, blocks, count): (rows, blocks, count // run,
    8 // width, run). Of each `run` bytes, the lowest bits of all come first."""
    rows, blocks, count = packed.shape
    shifts = arange(0, 8, width, dtype=uint8, device=packed.device)
    groups = packed.reshape((rows, blocks, count // run, 1, run))
    return (groups >> shifts.reshape((-1, 1))) & ((1 << width) - 1)


def _bits(words: Tensor) -> Tensor:
    """The bits of words (rows, blocks) of 32 bits, the lowest first: (rows, blocks, 1, 2, 16)."""
    shifts = arange(32, dtype=uint32, device=words.device).reshape((2, 16))
    return ((words[:, :, None, None, None] >> shifts) & 1).astype(uint8)


def _over(plane: Tensor, *shape: int) -> Tensor:
    """A plane as float32 with the axes of a block's elements: (rows, blocks, *shape)."""
    return plane.astype(float32).reshape((*plane.shape[:2], *shape))


# --- blocks of 32 --------------------------------------------------------------------------------


def _q4_0(planes: Planes) -> Tensor:
    low = _unpacked(planes["low"], 16, 4)
    return _over(planes["scale"], 1, 1, 1) * (low.astype(float32) - 8)


def _q4_1(planes: Planes) -> Tensor:
    low = _unpacked(planes["low"], 16, 4)
    return _over(planes["scale"], 1, 1, 1) * low.astype(float32) + _over(planes["min"], 1, 1, 1)


def _five(planes: Planes) -> Tensor:
    return (_unpacked(planes["low"], 16, 4) | (_bits(planes["high"]) << 4)).astype(float32)


def _q5_0(planes: Planes) -> Tensor:
    return _over(planes["scale"], 1, 1, 1) * (_five(planes) - 16)


def _q8_0(planes: Planes) -> Tensor:
    return planes["values"].astype(float32) * _over(planes["scale"], 1)


# --- blocks of 256, with scales of parts ---------------------------------------------------------


def _q4_k(planes: Planes) -> Tensor:
    scale = _over(planes["scale"], 1, 1, 1) * _over(planes["scales"], 4, 2, 1)
    least = _over(planes["min"], 1, 1, 1) * _over(planes["mins"], 4, 2, 1)
    return scale * _unpacked(planes["low"], 32, 4).astype(float32) - least


def _q6_k(planes: Planes) -> Tensor:
    rows, blocks = planes["scale"].shape
    shape = (rows, blocks, 2, 2, 2, 2, 16)  # halves, nibbles, halves of 64, scales, run
    low = _unpacked(planes["low"], 64, 4).reshape(shape)
    high = _unpacked(planes["high"], 32, 2).reshape(shape)
    scale = _over(planes["scale"], 1, 1, 1, 1, 1) * _over(planes["scales"], 2, 2, 2, 2, 1)
    return scale * ((low | (high << 4)).astype(float32) - 32)


EXPRESSIONS: dict[str, Callable[[Planes], Tensor]] = {
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q5_0": _q5_0,
    "q8_0": _q8_0,
    "q4_k": _q4_k,
    "q6_k": _q6_k,
}
