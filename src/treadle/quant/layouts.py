"""The bytes of blocks, as ggml lays them out, and the planes into which they are split.

A block in a file mixes fields of several widths, so a number of 16 or 32 bits in it begins at any
byte, and the blocks of a row are not a multiple of four bytes long. A plane has one of these fields
for all blocks of a matrix: an array of one dtype, which every device reads by whole words. Fields
become planes as they are, except packed scales of six bits, which become bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import as_dtype

Array = np.ndarray[Any, Any]
Planes = dict[str, Array]


class Plane(NamedTuple):
    """A field of all blocks: its shape within a block, and its dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class Field(NamedTuple):
    """Bytes of a block in a file. `planes` names what its bytes become where it is packed."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    packing: Packing | None = None

    @property
    def nbytes(self) -> int:
        """How many bytes of a block it takes."""
        return int(np.prod(self.shape, dtype=np.int64)) * as_dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Packing:
    """A field that becomes other planes: which, and the functions there and back."""

    planes: tuple[Plane, ...]
    unpack: Callable[[Array], Planes]
    pack: Callable[[Mapping[str, Array]], Array]


def planes_of(fields: tuple[Field, ...]) -> tuple[Plane, ...]:
    """The planes of a layout, in the order of its fields."""
    found: list[Plane] = []
    for name, shape, dtype, packing in fields:
        found += packing.planes if packing else [Plane(name, shape, dtype)]
    return tuple(found)


def split(fields: tuple[Field, ...], blocks: Array) -> Planes:
    """The planes of blocks (…, bytes of a block): contiguous arrays (…, *plane)."""
    found: Planes = {}
    at = 0
    for field in fields:
        raw = np.ascontiguousarray(blocks[..., at : at + field.nbytes])
        value = raw.view(as_dtype(field.dtype).numpy).reshape(*blocks.shape[:-1], *field.shape)
        found |= field.packing.unpack(value) if field.packing else {field.name: value}
        at += field.nbytes
    return found


def join(fields: tuple[Field, ...], planes: Mapping[str, Array]) -> Array:
    """The blocks (…, bytes of a block) of planes: `split` reversed."""
    first = planes_of(fields)[0]
    stack = planes[first.name].shape[: planes[first.name].ndim - len(first.shape)]
    blocks = np.empty((*stack, sum(field.nbytes for field in fields)), np.uint8)
    at = 0
    for field in fields:
        value = field.packing.pack(planes) if field.packing else planes[field.name]
        raw = (
            np.ascontiguousarray(value, as_dtype(field.dtype).numpy)
            .reshape(*stack, -1)
            .view(np.uint8)
        )
        blocks[..., at : at + field.nbytes] = raw.reshape(*stack, field.nbytes)
        at += field.nbytes
    return blocks


# --- packed scales -------------------------------------------------------------------------------


def _unpack_pairs(packed: Array) -> Planes:
    """Q4_K and Q5_K: eight scales and eight minimums of six bits in twelve bytes. The first four of
    each have a byte, in whose two upper bits are those of the last four; the last four bytes have
    the four lower bits of these."""
    scales, mins, low = packed[..., 0:4], packed[..., 4:8], packed[..., 8:12]
    return {
        "scales": np.concatenate([scales & 63, (low & 15) | (scales >> 6 << 4)], -1),
        "mins": np.concatenate([mins & 63, (low >> 4) | (mins >> 6 << 4)], -1),
    }


def _pack_pairs(planes: Mapping[str, Array]) -> Array:
    scales, mins = planes["scales"], planes["mins"]
    upper = [each[..., :4] | (each[..., 4:] >> 4 << 6) for each in (scales, mins)]
    return np.concatenate([*upper, (scales[..., 4:] & 15) | (mins[..., 4:] << 4)], -1)


def _unpack_sixteen(packed: Array) -> Planes:
    """Q3_K: sixteen scales of six bits, less 32, in twelve bytes: the four lower bits of the first
    eight and the last eight in eight bytes, the two upper bits of all in four, by columns."""
    low, high = packed[..., :8], packed[..., 8:]
    lower = np.concatenate([low & 15, low >> 4], -1)
    upper = np.concatenate([high >> shift & 3 for shift in (0, 2, 4, 6)], -1)
    return {"scales": (lower | (upper << 4)).astype(np.int8) - np.int8(32)}


def _pack_sixteen(planes: Mapping[str, Array]) -> Array:
    scales = (planes["scales"] + np.int8(32)).astype(np.uint8)
    low = (scales[..., :8] & 15) | (scales[..., 8:] << 4)
    columns = [scales[..., 4 * at : 4 * at + 4] >> 4 << 2 * at for at in range(4)]
    return np.concatenate([low, columns[0] | columns[1] | columns[2] | columns[3]], -1)


def _unpack_eight(packed: Array) -> Planes:
    """IQ4_XS: eight scales of six bits, less 32: the upper bits in two bytes, then the lower."""
    upper = packed[..., :2].repeat(4, -1) >> np.array([0, 2, 4, 6] * 2, np.uint8) & 3
    lower = packed[..., 2:].repeat(2, -1) >> np.array([0, 4] * 4, np.uint8) & 15
    return {"scales": (lower | (upper << 4)).astype(np.int8) - np.int8(32)}


def _pack_eight(planes: Mapping[str, Array]) -> Array:
    scales = (planes["scales"] + np.int8(32)).astype(np.uint8)
    upper = (scales >> 4 << np.array([0, 2, 4, 6] * 2, np.uint8)).reshape(*scales.shape[:-1], 2, 4)
    lower = (scales & 15).reshape(*scales.shape[:-1], 4, 2)
    return np.concatenate(
        [np.bitwise_or.reduce(upper, -1), lower[..., 0] | (lower[..., 1] << 4)], -1
    )


def _sums(planes: Mapping[str, Array]) -> Array:
    values = planes["values"]
    sums: Array = values.reshape(*values.shape[:-1], 16, 16).sum(-1, dtype=np.int16)
    return sums


_SCALE = Field("scale", (), "float16")
_MIN = Field("min", (), "float16")
_PAIRS = Field(
    "packed",
    (12,),
    "uint8",
    Packing(
        (Plane("scales", (8,), "uint8"), Plane("mins", (8,), "uint8")), _unpack_pairs, _pack_pairs
    ),
)
_SIXTEEN = Field(
    "packed",
    (12,),
    "uint8",
    Packing((Plane("scales", (16,), "int8"),), _unpack_sixteen, _pack_sixteen),
)
_EIGHT = Field(
    "packed", (6,), "uint8", Packing((Plane("scales", (8,), "int8"),), _unpack_eight, _pack_eight)
)
# The sums of a block's values: they follow from the values.
_SUMS = Field("sums", (16,), "int16", Packing((), lambda sums: {}, _sums))


def _low(count: int) -> Field:
    return Field("low", (count,), "uint8")


def _high(count: int) -> Field:
    return Field("high", (count,), "uint8")


def _values(count: int) -> Field:
    return Field("values", (count,), "int8")


_HIGH_WORD = Field("high", (), "uint32")

# The fields of a block in the order of a file.
LAYOUTS: dict[str, tuple[Field, ...]] = {
    "f16": (Field("values", (), "float16"),),
    "bf16": (Field("values", (), "bfloat16"),),
    "q4_0": (_SCALE, _low(16)),
    "q4_1": (_SCALE, _MIN, _low(16)),
    "q5_0": (_SCALE, _HIGH_WORD, _low(16)),
    "q5_1": (_SCALE, _MIN, _HIGH_WORD, _low(16)),
    "q8_0": (_SCALE, _values(32)),
    "q2_k": (Field("scales", (16,), "uint8"), _low(64), _SCALE, _MIN),
    "q3_k": (_high(32), _low(64), _SIXTEEN, _SCALE),
    "q4_k": (_SCALE, _MIN, _PAIRS, _low(128)),
    "q5_k": (_SCALE, _MIN, _PAIRS, _high(32), _low(128)),
    "q6_k": (_low(128), _high(64), Field("scales", (16,), "int8"), _SCALE),
    "q8_k": (Field("scale", (), "float32"), _values(256), _SUMS),
    "iq4_nl": (_SCALE, _low(16)),
    "iq4_xs": (_SCALE, _EIGHT, _low(128)),
    "mxfp4": (Field("scale", (), "uint8"), _low(16)),
}
