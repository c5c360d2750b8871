"""What the elements of blocks are, as lazy expressions of their planes.

Each function takes planes (rows, blocks, *plane) and returns float32 (rows, blocks, …), where the
axes after the second are a block's elements in their order. It consists of views, shifts and
products only, so every device fuses it into the kernel that reads the elements. Operations are in
the order of ggml's reference, so that the results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from treadle.core.dtypes import float32, int8, uint8, uint32
from treadle.kernels.device_code.quantized_formats import DOUBLED_E2M1, NONLINEAR
from treadle.lang import bitcast
from treadle.tensor.creation import full
from treadle.tensor.elementwise_decorator import elementwise
from treadle.tensor.elementwise_functions import where
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


def _over(plane: Tensor, *shape: int) -> Tensor:
    """A plane as float32 (rows, blocks, *shape)."""
    return plane.to(float32).reshape((*plane.shape[:2], *shape))


def _one_of(values: Sequence[int], index: Tensor) -> Tensor:
    """Of sixteen values of 8 bits those of indices. They are the bytes of four constant words: a
    table in memory would be a gather, which has a kernel of its own."""
    raw = bytes(value & 255 for value in values)
    low, lower, upper, high = (
        full((), int.from_bytes(raw[at : at + 4], "little"), dtype=uint32, device=index.device)
        for at in range(0, 16, 4)
    )
    wide = index.astype(uint32)
    odd = (wide & 4) != 0
    word = where(wide >= 8, where(odd, high, upper), where(odd, lower, low))
    return (word >> ((wide & 3) << 3)).astype(int8).astype(float32)


@elementwise
def _half_of_power(exponent: uint32) -> float32:  # type: ignore[valid-type]
    """2 ** (exponent - 128) by its bits; the first two are subnormal numbers."""
    if exponent < 2:
        return bitcast(uint32(1 << 21) << exponent, float32)
    return bitcast((exponent - 1) << 23, float32)


# --- blocks of 32 --------------------------------------------------------------------------------


def _q4_0(planes: Planes) -> Tensor:
    low = _unpacked(planes["low"], 16, 4)
    return _over(planes["scale"], 1, 1, 1) * (low.astype(float32) - 8)


def _q4_1(planes: Planes) -> Tensor:
    low = _unpacked(planes["low"], 16, 4).astype(float32)
    return _over(planes["scale"], 1, 1, 1) * low + _over(planes["min"], 1, 1, 1)


def _five_bits(planes: Planes) -> Tensor:
    high = planes["high"]
    shifts = arange(32, dtype=uint32, device=high.device).reshape((2, 16))
    fifth = ((high.reshape((*high.shape, 1, 1, 1)) >> shifts) & 1).astype(uint8)
    return (_unpacked(planes["low"], 16, 4) | (fifth << 4)).astype(float32)


def _q5_0(planes: Planes) -> Tensor:
    return _over(planes["scale"], 1, 1, 1) * (_five_bits(planes) - 16)


def _q5_1(planes: Planes) -> Tensor:
    return _over(planes["scale"], 1, 1, 1) * _five_bits(planes) + _over(planes["min"], 1, 1, 1)


def _q8(planes: Planes) -> Tensor:
    return planes["values"].astype(float32) * _over(planes["scale"], 1)


def _iq4_nl(planes: Planes) -> Tensor:
    return _over(planes["scale"], 1, 1, 1) * _one_of(NONLINEAR, _unpacked(planes["low"], 16, 4))


def _mxfp4(planes: Planes) -> Tensor:
    scale = _over(_half_of_power(planes["scale"].astype(uint32)), 1, 1, 1)
    return scale * _one_of(DOUBLED_E2M1, _unpacked(planes["low"], 16, 4))


# --- blocks of 256, whose parts have scales -------------------------------------------------------

# Most blocks lie in memory as parts of 64 or 128 elements: a byte has bits of elements that are 32
# apart, and 16 or 32 adjacent elements have a scale.


def _q2_k(planes: Planes) -> Tensor:
    scales = planes["scales"]
    scale = _over(planes["scale"], 1, 1, 1, 1) * _over(scales & 15, 2, 4, 2, 1)
    least = _over(planes["min"], 1, 1, 1, 1) * _over(scales >> 4, 2, 4, 2, 1)
    low = _over(_unpacked(planes["low"], 32, 2), 2, 4, 2, 16)
    return scale * low - least


def _q3_k(planes: Planes) -> Tensor:
    scale = _over(planes["scale"], 1, 1, 1, 1) * _over(planes["scales"], 2, 4, 2, 1)
    low = _over(_unpacked(planes["low"], 32, 2), 2, 4, 2, 16)
    high = _over(_unpacked(planes["high"], 32, 1), 2, 4, 2, 16)
    return scale * (low + high * 4 - 4)


def _scaled_pairs(planes: Planes, values: Tensor) -> Tensor:
    scale = _over(planes["scale"], 1, 1, 1) * _over(planes["scales"], 4, 2, 1)
    least = _over(planes["min"], 1, 1, 1) * _over(planes["mins"], 4, 2, 1)
    return scale * values.astype(float32) - least


def _q4_k(planes: Planes) -> Tensor:
    return _scaled_pairs(planes, _unpacked(planes["low"], 32, 4))


def _q5_k(planes: Planes) -> Tensor:
    low = _unpacked(planes["low"], 32, 4)
    fifth = _unpacked(planes["high"], 32, 1).reshape(low.shape)
    return _scaled_pairs(planes, low | (fifth << 4))


def _q6_k(planes: Planes) -> Tensor:
    # A half's 64 bytes have the low bits of 32 * 0 and 1 in their low nibbles, of 2 and 3 in the
    # high ones; its 32 further bytes have the two upper bits of all four.
    shape = (*planes["scale"].shape, 2, 2, 2, 2, 16)
    low = _unpacked(planes["low"], 64, 4).reshape(shape)
    high = _unpacked(planes["high"], 32, 2).reshape(shape)
    scale = _over(planes["scale"], 1, 1, 1, 1, 1) * _over(planes["scales"], 2, 2, 2, 2, 1)
    return scale * ((low | (high << 4)).astype(float32) - 32)


def _iq4_xs(planes: Planes) -> Tensor:
    scale = _over(planes["scale"], 1, 1, 1) * _over(planes["scales"], 8, 1, 1)
    return scale * _one_of(NONLINEAR, _unpacked(planes["low"], 16, 4))


def _plain(planes: Planes) -> Tensor:
    return planes["values"].astype(float32)


EXPRESSIONS: dict[str, Callable[[Planes], Tensor]] = {
    "f16": _plain,
    "bf16": _plain,
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q5_0": _q5_0,
    "q5_1": _q5_1,
    "q8_0": _q8,
    "q2_k": _q2_k,
    "q3_k": _q3_k,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
    "q8_k": _q8,
    "iq4_nl": _iq4_nl,
    "iq4_xs": _iq4_xs,
    "mxfp4": _mxfp4,
}
