"""Prefix sums and products along an axis, of any length and stride."""

from __future__ import annotations

import math
from typing import Any, Literal

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code import accumulation
from treadle.kernels.device_code.accumulation import Accumulating, Tile
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import flat, for_any_sizes, new, serial_threads, start
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_TILE_BYTES = 16384  # of shared memory, beside which sums need some
_SMALL_TILE_BYTES = 8192  # where there is too little for that
_LARGE_MEMORY = 32768
_MOST_THREADS = 256
_FEWEST_THREADS = 32
_SHORT_ROW = 32  # on GPUs, a thread does a row of up to so many
_FEWEST = 32  # elements of a thread, if a line is done in chunks
_BUSY = 1 << 17  # threads that keep a GPU busy
_FEWEST_SERIAL = 1 << 14
_BUSY_SERIAL = 32


@for_any_sizes
def accumulate(
    x: DeviceArray,
    kind: Literal["sum", "prod"],
    axis: int = -1,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> DeviceArray:
    """The sum or product of each element and those before it along an axis, with a dtype to which
    elements are cast first. With `include_initial` that of none comes before.

    >>> import treadle as td
    >>> accumulate(td.asarray([[1, 2, 3], [4, 5, 6]], device="cpu")._array, "sum").to_host()
    array([[ 1,  3,  6],
           [ 4,  9, 15]])
    """
    at = axis % len(x.shape)
    n, inner, lead = x.shape[at], math.prod(x.shape[at + 1 :]), int(include_initial)
    shape = (*x.shape[:at], n + lead, *x.shape[at + 1 :])
    result = dtype or x.dtype
    assert isinstance(result, DType)
    if math.prod(shape) >= MOST_NARROW:
        raise ShapeError(f"{math.prod(shape)} elements are too many to be accumulated at once")
    out = new(x, result, *shape)
    if out.size:
        what = Accumulating(kind, _partial(kind, result, x.device), result, False)
        _lines(flat(x), flat(out), what, n, inner, lead)
    return out


def _partial(kind: str, result: DType, device: Device) -> DType:
    """The dtype of sums and products. float64 keeps partial products from overflowing, and costs
    nothing on a CPU."""
    more_precise = result is dtypes.f32 and (kind == "prod" or serial_threads(device))
    return dtypes.f64 if more_precise and "float64" in device.features else wide(result)


def _lines(
    x: DeviceArray, out: DeviceArray, what: Accumulating, n: int, inner: int, lead: int
) -> None:
    lines = out.size // (n + lead)
    if inner == 1 and n > _SHORT_ROW and not serial_threads(x.device):
        _by_tiles(x, out, what, n, lines, lead)
    else:
        _by_chunks(x, out, what, n, inner, lines, lead)


def _by_tiles(
    x: DeviceArray, out: DeviceArray, what: Accumulating, n: int, rows: int, lead: int
) -> None:
    """A block scans a tile of a row."""
    tile = _tile(x.device, what.partial, n)
    tiles = -(-n // (tile.threads * tile.items))
    launch = (rows * tiles, tile.threads)
    totals: Any = 0
    if tiles > 1:
        totals = new(x, what.partial, rows * tiles)
        accumulation.tile_totals(what, tile)[launch](x, totals, n, tiles)
        totals = _accumulated(totals, what, tiles, 1)
        what = what._replace(carried=True)
    accumulation.tile_writer(what, tile)[launch](x, totals, out, n, tiles, lead)


def _tile(device: Device, partial: DType, n: int) -> Tile:
    large = device.limits.max_shared_memory >= _LARGE_MEMORY
    tile_bytes = _TILE_BYTES if large else _SMALL_TILE_BYTES
    items = tile_bytes // (partial.itemsize * _MOST_THREADS)
    most = min(device.limits.max_threads_per_block, _MOST_THREADS)
    needed = max(1 << (-(-n // items) - 1).bit_length(), _FEWEST_THREADS)
    return Tile(min(needed, 1 << (most.bit_length() - 1)), items)


def _by_chunks(
    x: DeviceArray, out: DeviceArray, what: Accumulating, n: int, inner: int, lines: int, lead: int
) -> None:
    """A thread scans a chunk of a line."""
    length = _chunk(x.device, n, inner, lines)
    chunks = max(-(-n // length), 1)
    threads = lines * chunks
    totals: Any = 0
    if chunks > 1:
        totals = new(x, what.partial, threads)
        total = accumulation.chunk_totals(what)
        _start(total, threads, inner, x.device, x, totals, n, inner, length, chunks)
        totals = _accumulated(totals, what, chunks, inner)
        what = what._replace(carried=True)
    write = accumulation.chunk_writer(what)
    sizes = (n, inner, length, chunks, lead, threads)
    _start(write, threads, inner, x.device, x, totals, out, *sizes)


def _chunk(device: Device, n: int, inner: int, lines: int) -> int:
    """The length of a thread's chunk of a line."""
    if serial_threads(device):
        lanes = 1 if inner == 1 else min(inner, _MOST_THREADS)
        busy, fewest = _BUSY_SERIAL * lanes, _FEWEST_SERIAL // lanes
    else:
        busy, fewest = _BUSY, _FEWEST
    if lines >= busy:
        return max(n, 1)
    return max(-(-n // (busy // lines)), fewest)


def _start(kernel: Any, threads: int, inner: int, device: Device, *arguments: Any) -> None:
    """Neighbouring columns are adjacent in memory, so a CPU handles them as lanes of vectors."""
    if inner == 1:
        start(kernel, threads, device, *arguments)
    else:
        kernel.launch(threads, *arguments)


def _accumulated(totals: DeviceArray, what: Accumulating, n: int, inner: int) -> DeviceArray:
    """The inclusive scan of the chunks' totals."""
    out = new(totals, what.partial, totals.size)
    _lines(totals, out, what._replace(result=what.partial, carried=False), n, inner, 0)
    return out
