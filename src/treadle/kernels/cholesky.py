"""Cholesky factors of matrices on GPUs, a launch for each block on the diagonal."""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.kernels.device_code.cholesky_steps import (
    COLUMNS,
    REMAINDER,
    WHOLE,
    Step,
    cholesky_step,
)
from treadle.kernels.launching import flat
from treadle.kernels.triangular import copy_of, stretches
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_USUAL = 256, 32, 64  # threads, rows of a block on the diagonal, rows and columns of a tile
_SOFTWARE = 64, 4, 32  # code that is compiled quickly
# Tiles from which on it pays to factor in a launch of its own what all of them need.
_MANY_TILES = 400


def factor(a: DeviceArray, out: DeviceArray, status: DeviceArray) -> None:
    """Write the lower factors, and to `status` where a matrix has none (counted from 1)."""
    assert isinstance(a.dtype, DType)
    count, n, _ = a.shape
    what, work = step_of(a.device, a.dtype, n), flat(copy_of(a))
    for at, end in stretches(0, n, what.width):
        high = max(1, -(-(n - end) // what.tile))
        tiles = high * (high + 1) // 2
        kinds = [(WHOLE, tiles)]
        if high > 1 and count * tiles >= _MANY_TILES:
            kinds = [(COLUMNS, high), (REMAINDER, tiles)]
        for kind, blocks in kinds:
            kernel = cholesky_step(what._replace(kind=kind))
            kernel[count * blocks, what.threads](work, flat(out), status, n, at, end)


def step_of(device: Device, dtype: DType, n: int) -> Step:
    """The widest steps that the shared memory of a device has room for."""
    serial = device.traits.software or device.traits.serial_threads
    threads, width, tile = _SOFTWARE if serial else _USUAL
    width = min(width, 128 // dtype.itemsize)  # a row, twice, is in the registers of a thread
    if n <= 64:
        threads, tile = min(threads, 128), 32
    threads = min(threads, device.limits.max_threads_per_block)
    width = min(width, threads)
    while (what := Step(dtype, threads, width, tile)).shared_bytes > (
        device.limits.max_shared_memory
    ):
        width //= 2
    return what
