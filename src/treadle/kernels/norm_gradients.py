"""The gradients of a norm's factors and terms, both in one pass over input and gradient."""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.norm_gradients import (
    Reducing,
    row_reducer,
    row_reducer_cpu,
)
from treadle.kernels.launching import flat, for_any_sizes, new, serial_threads
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_MOST_COLUMNS = 16  # columns of a thread that are in registers
_BLOCKS = 256
_LANES = 16


def fits(device: Device, rows: int, columns: int) -> bool:
    """Whether `norm_gradients` takes rows of so many columns."""
    threads = min(256, device.limits.max_threads_per_block)
    fits = serial_threads(device) or columns <= threads * _MOST_COLUMNS
    return fits and 0 < rows * columns < MOST_NARROW


def blocks_of(device: Device, rows: int) -> int:
    """How many sums there are to be added up."""
    each = -(-rows // (_LANES if serial_threads(device) else _BLOCKS))
    return -(-rows // each)


@for_any_sizes
def norm_gradients(x: DeviceArray, g: DeviceArray, centered: bool, eps: float) -> DeviceArray:
    """Of (rows, columns) arrays, the input of a norm and the gradient of what came of it: sums over
    some rows each of the gradient times the standardized input, and of the gradient: (blocks, 2,
    columns), in the dtype that is computed in."""
    assert isinstance(x.dtype, DType)
    (rows, columns), partial, device = x.shape, wide(x.dtype), x.device
    blocks = blocks_of(device, rows)
    out = new(x, partial, blocks, 2, columns)
    each = -(-rows // blocks)
    if serial_threads(device):
        threads = _LANES
        kernel = row_reducer_cpu(Reducing(partial, centered, threads, 0))
    else:
        threads = min(256, device.limits.max_threads_per_block)
        while threads > 32 and threads >= 2 * columns:
            threads //= 2
        kernel = row_reducer(Reducing(partial, centered, threads, -(-columns // threads)))
    kernel[blocks, threads](flat(x), flat(g), flat(out), rows, columns, each, 1.0 / columns, eps)
    return out
