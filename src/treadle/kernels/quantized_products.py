"""Products of rows of activations with quantized matrices, whose planes are arrays of a device."""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import DType, float32, int32, uint32
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code.quantized_activations import (
    LANES,
    PACKED,
    PACKED_FLOATS,
    Packing,
    packer,
)
from treadle.kernels.device_code.quantized_formats import FORMS, GROUP, PLANES
from treadle.kernels.device_code.quantized_products import Spread, Work, multiplier
from treadle.kernels.device_code.quantized_products_cpu import (
    LINES,
    TILE_LANES,
    multiplier_cpu,
    tile_multiplier_cpu,
)
from treadle.kernels.launching import flat, new, serial_threads
from treadle.kernels.machine import Machine, machine_of
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

MOST_ROWS = 8
"""The rows of activations for which a kernel has sums in registers."""
_MOST_LAUNCHES = 4  # of such rows, until a GPU is faster by tiles
_PACKED_TOGETHER = 8  # groups of a block, on GPUs
_BUSY = 1 << 16  # threads that keep a GPU busy


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
    """The product of packed activations with a matrix of a format, whose planes are read. `more`
    are arrays with the planes that the format has, in the order of `PLANES`; the format, the names
    of the planes, where each begins in its array and how many elements it has, whether activations
    are floats, and the matrix's rows and columns."""
    *arrays, name, present, places, floats, rows, n = more
    planes = [
        array.view((size,), (1,), array.offset + start)
        for array, (start, size) in zip(arrays, places, strict=True)
    ]
    many = act.shape[0]
    out = new(act, float32, many, rows)
    if out.size:
        given = dict(zip(present, planes, strict=True))
        words = [flat_words(given["values"])]
        words.append(flat_words(given["high"]) if "high" in given else words[0])
        others = [given.get(plane, words[0]) for plane in PLANES[2:]]
        matrix, groups = (*words, *others), n // GROUP
        if serial_threads(act.device):
            arguments = (*matrix, flat(act), flat(out), rows, groups)
            _multiply_on_host(Work(name, floats, many), arguments, rows)
            return out
        launches = -(-many // MOST_ROWS)
        for launch in range(launches):
            first, last = (many * at // launches for at in (launch, launch + 1))
            part = act.view((last - first, act.shape[1]), act.strides, first * act.shape[1])
            into = out.view((last - first, rows), out.strides, first * rows)
            arguments = (*matrix, flat(part), flat(into), rows, groups)
            _multiply_by_warps(Work(name, floats, last - first), arguments, rows, groups)
    return out


def _multiply_by_warps(work: Work, arguments: tuple[Any, ...], rows: int, groups: int) -> None:
    many = work.rows
    spread = spread_for(machine_of(arguments[0].device), work, rows, groups)
    if not spread.unrolled:  # one kernel for any number of rows
        work = work._replace(rows=MOST_ROWS)
    teams = spread.threads // spread.span * spread.lines
    multiplier(work, spread)[-(-rows // teams), spread.threads](*arguments, many)


def _multiply_on_host(work: Work, arguments: tuple[Any, ...], rows: int) -> None:
    if work.rows > MOST_ROWS:
        blocks = -(-rows // TILE_LANES)
        tile_multiplier_cpu(work.format)[blocks, TILE_LANES](*arguments, work.rows)
    else:
        multiplier_cpu(work)[-(-rows // LINES), LANES](*arguments)


def spread_for(machine: Machine, work: Work, rows: int, groups: int) -> Spread:
    """How a GPU's threads share the work: a thread reads at least four vec4s of a row, and several
    rows as long as there are threads for all multiprocessors."""
    if machine.slow_to_compile:
        return Spread(64, 32, 1, False, unrolled=False)
    step = FORMS[work.format].step
    vectors = groups // step * 2
    span = 32 if vectors >= 128 else 16 if vectors >= 64 else 8
    lines = 2 if work.rows == 1 or step == 4 else 4
    if rows * span // lines < _BUSY:
        span, lines = 32, 1
    return Spread(128, span, lines, machine.subgroup == 32)


def flat_words(array: DeviceArray) -> DeviceArray:
    """The bytes of a contiguous array as words of 32 bits."""
    item = array.dtype.itemsize
    count, offset = array.size * item // 4, array.offset * item // 4
    return DeviceArray(array.device, array.storage, uint32, (count,), None, offset)


def can_multiply(device: Device, name: str, floats: bool, many: int, rows: int, n: int) -> bool:
    """Whether there are kernels for a matrix of a format and size, and if they are faster for so
    many rows of activations than a product of matrices."""
    form = FORMS.get(name)
    if form is None or n % (GROUP * (2 if form.paired else 1)):
        return False
    if many * max(rows, n) >= MOST_NARROW:
        return False
    most = MOST_ROWS * _MOST_LAUNCHES
    if serial_threads(device):
        most = MOST_ROWS if floats else MOST_NARROW
    size = rows * n  # of the largest plane at most, in bytes
    return 0 < many <= most and 0 < size < min(4 * MOST_NARROW, device.limits.max_binding_size)


__all__ = ["MOST_ROWS", "can_multiply", "multiply_packed", "pack", "packed_shape"]
