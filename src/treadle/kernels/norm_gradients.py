"""The gradients of a norm of rows: of its input, and of its factors and terms."""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.norm_gradients import (
    LANES,
    Deriving,
    Reducing,
    norm_deriver,
    row_reducer_cpu,
)
from treadle.kernels.launching import flat, for_any_sizes, new, serial_threads
from treadle.kernels.machine import machine_of
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_MOST_COLUMNS = 16  # columns of a thread that are in registers, where a block has a row
_MOST_OF_SUBGROUPS = 32  # and where a subgroup has one
_BLOCKS = 256
_THREADS = 256
_LANES = 16  # of the CPU


def fits(device: Device, rows: int, columns: int) -> bool:
    """Whether `norm_backward`, or on the CPU `norm_gradients`, takes rows of so many columns."""
    threads = min(_THREADS, device.limits.max_threads_per_block)
    fits = serial_threads(device) or columns <= threads * _MOST_COLUMNS
    return fits and 0 < rows * columns < MOST_NARROW


def blocks_of(device: Device, rows: int, columns: int) -> int:
    """How many sums there are to be added up."""
    together = 1 if serial_threads(device) else _rows_together(device, columns)
    most = _LANES if serial_threads(device) else _BLOCKS
    groups = -(-rows // together)
    each = -(-groups // most)
    return -(-groups // each)


def _threads(device: Device) -> int:
    return min(_THREADS, device.limits.max_threads_per_block)


def _rows_together(device: Device, columns: int) -> int:
    """How many rows a block has at a time: one for each subgroup, if subgroups have rows."""
    machine = machine_of(device)
    by_subgroups = (
        machine.subgroup == LANES
        and not machine.software
        and columns <= LANES * _MOST_OF_SUBGROUPS
        and _threads(device) % LANES == 0
        and machine.shared_bytes >= 2 * 4 * LANES * _MOST_OF_SUBGROUPS
    )
    return _threads(device) // LANES if by_subgroups else 1


@for_any_sizes
def norm_backward(
    x: DeviceArray, g: DeviceArray, scale: DeviceArray, columns: int, centered: bool, eps: float
) -> tuple[DeviceArray, DeviceArray]:
    """Of the input of a norm over rows of so many columns, the gradient of what came of it and the
    norm's factors: the gradient of the input, in its dtype, and sums over some rows each of the
    gradient times the standardized input, and of the gradient: (blocks, 2, columns), in the dtype
    that is computed in. For GPUs."""
    assert isinstance(x.dtype, DType)
    assert isinstance(g.dtype, DType)
    assert isinstance(scale.dtype, DType)
    partial, device = wide(x.dtype), x.device
    rows = x.size // columns
    blocks = blocks_of(device, rows, columns)
    out, sums = new(x, x.dtype, *x.shape), new(x, partial, blocks, 2, columns)
    together = _rows_together(device, columns)
    vectors = all(n % 4 == 0 for n in (columns, x.offset, g.offset, scale.offset))
    lanes = 4 if vectors else 1
    width = columns // lanes
    threads = _threads(device)
    if together == 1:
        while threads > LANES and threads >= 2 * width:
            threads //= 2
    of_row = LANES if together > 1 else threads
    kernel = norm_deriver(
        Deriving(
            (x.dtype, g.dtype, scale.dtype), partial, centered, threads, together > 1, lanes,
            -(-width // of_row),
        )
    )  # fmt: skip
    each = -(-rows // (blocks * together))
    kernel[blocks, threads](
        flat(x), flat(g), flat(scale), flat(out), flat(sums), rows, width, each, 1.0 / columns, eps
    )
    return out, sums


@for_any_sizes
def norm_gradients(x: DeviceArray, g: DeviceArray, centered: bool, eps: float) -> DeviceArray:
    """The same sums alone, of (rows, columns) arrays, on the CPU: there the gradient of the input
    is a fused expression, whose rows are in its cache."""
    assert isinstance(x.dtype, DType)
    (rows, columns), partial, device = x.shape, wide(x.dtype), x.device
    blocks = blocks_of(device, rows, columns)
    out = new(x, partial, blocks, 2, columns)
    each = -(-rows // blocks)
    kernel = row_reducer_cpu(Reducing(partial, centered, _LANES))
    kernel[blocks, _LANES](flat(x), flat(g), flat(out), rows, columns, each, 1.0 / columns, eps)
    return out
