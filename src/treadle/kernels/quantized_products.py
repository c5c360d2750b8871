"""Products of rows of activations with quantized matrices, whose planes are arrays of a device."""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import DType, float32, int32, uint32
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code.quantized_formats import FORMS, GROUP, PLANES
from treadle.kernels.device_code.quantized_products import (
    LANES,
    PACKED,
    PACKED_FLOATS,
    Packing,
    Spread,
    Work,
    multiplier,
    multiplier_cpu,
    packer,
)
from treadle.kernels.launching import flat, new, serial_threads
from treadle.kernels.machine import Machine, machine_of
from treadle.runtime.arrays import DeviceArray

MOST_ROWS = 8
"""The rows of activations of one launch."""
_PACKED_TOGETHER = 8  # groups of a block, on GPUs


def packed_shape(rows: int, n: int, floats: bool) -> tuple[tuple[int, ...], DType]:
    """The shape and dtype of packed activations."""
    words = PACKED_FLOATS if floats else PACKED
    return (rows, n // GROUP * words), float32 if floats else int32


def pack(x: DeviceArray, packing: Packing) -> DeviceArray:
    """Rows of activations, float32, as the kernels take them."""
    rows, n = x.shape
    shape, dtype = packed_shape(rows, n, packing.floats)
    out = new(x, dtype, *shape)
    if out.size:
        together = 1 if packing.serial else _PACKED_TOGETHER
        groups = n // GROUP
        kernel = packer(packing, together)
        kernel[(-(-groups // together), rows), LANES * together](flat(x), flat(out), groups)
    return out


def multiply_packed(act: DeviceArray, *more: Any) -> DeviceArray:
    """The product of packed activations, a few rows, with a matrix of a format. `more` are the
    planes that the format has, in the order of `PLANES`; the format, whether activations are
    floats, and the matrix's rows and columns."""
    *planes, name, present, floats, rows, n = more
    out = new(act, float32, act.shape[0], rows)
    if out.size:
        given = dict(zip(present, planes, strict=True))
        words = [flat_words(given["values"])]
        words.append(flat_words(given["high"]) if "high" in given else words[0])
        others = [flat(given[plane]) if plane in given else words[0] for plane in PLANES[2:]]
        groups = n // GROUP
        many = act.shape[0]
        arguments = (*words, *others, flat(act), flat(out), rows, groups)
        work = Work(name, floats, many)
        if serial_threads(act.device):
            multiplier_cpu(work)[rows, LANES](*arguments)
        else:
            spread = spread_for(machine_of(act.device), work)
            teams = spread.threads // spread.span * spread.lines
            multiplier(work, spread)[-(-rows // teams), spread.threads](*arguments)
    return out


def spread_for(machine: Machine, work: Work) -> Spread:
    """How a GPU's threads share the work."""
    lines = 2 if work.rows <= 4 else 1
    return Spread(128, 32, lines, machine.subgroup == 32)


def flat_words(array: DeviceArray) -> DeviceArray:
    """The bytes of a contiguous array as words of 32 bits."""
    item = array.dtype.itemsize
    count, offset = array.size * item // 4, array.offset * item // 4
    return DeviceArray(array.device, array.storage, uint32, (count,), None, offset)


def can_multiply(name: str, rows: int, n: int) -> bool:
    """Whether the kernels take a matrix of this format and size."""
    form = FORMS.get(name)
    if form is None or n % (GROUP * (2 if form.paired else 1)):
        return False
    return 0 < rows * n // 4 < MOST_NARROW


__all__ = ["MOST_ROWS", "can_multiply", "multiply_packed", "pack", "packed_shape"]
