"""Running sums and products along an axis, of lines of any length and distance."""

from __future__ import annotations

import math
from typing import Any, Literal

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code import accumulating
from treadle.kernels.device_code.accumulating import Accumulating, Tile
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import alone, flat, new, start
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_TILE_BYTES = 8192  # of shared memory
_MOST_THREADS = 256
_FEWEST_THREADS = 32
_SHORT_ROW = 32  # on GPUs, a thread does a row of up to so many
_FEWEST = 32  # elements of a thread, if a line is done in pieces
_BUSY = 1 << 17  # threads that keep a GPU busy
_FEWEST_ALONE = 1 << 14
_BUSY_ALONE = 32


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
    """What elements are gathered as. float64 keeps products of parts from overflowing; a CPU has
    it for nothing."""
    more_precise = result is dtypes.f32 and (kind == "prod" or alone(device))
    return dtypes.f64 if more_precise and "float64" in device.features else wide(result)


def _lines(
    x: DeviceArray, out: DeviceArray, what: Accumulating, n: int, inner: int, lead: int
) -> None:
    lines = out.size // (n + lead)
    if inner == 1 and n > _SHORT_ROW and not alone(x.device):
        _by_tiles(x, out, what, n, lines, lead)
    else:
        _by_pieces(x, out, what, n, inner, lines, lead)


def _by_tiles(
    x: DeviceArray, out: DeviceArray, what: Accumulating, n: int, rows: int, lead: int
) -> None:
    """A block does a tile of a row."""
    tile = _tile(x.device, what.partial, n)
    tiles = -(-n // (tile.threads * tile.items))
    launch = (rows * tiles, tile.threads)
    totals: Any = 0
    if tiles > 1:
        totals = new(x, what.partial, rows * tiles)
        accumulating.tile_totals(what, tile)[launch](x, totals, n, tiles)
        totals = _accumulated(totals, what, tiles, 1)
        what = what._replace(carried=True)
    accumulating.tile_writer(what, tile)[launch](x, totals, out, n, tiles, lead)


def _tile(device: Device, partial: DType, n: int) -> Tile:
    items = _TILE_BYTES // (partial.itemsize * _MOST_THREADS)
    most = min(device.limits.max_threads_per_block, _MOST_THREADS)
    needed = max(1 << (-(-n // items) - 1).bit_length(), _FEWEST_THREADS)
    return Tile(min(needed, 1 << (most.bit_length() - 1)), items)


def _by_pieces(
    x: DeviceArray, out: DeviceArray, what: Accumulating, n: int, inner: int, lines: int, lead: int
) -> None:
    """A thread does a piece of a line."""
    length = _piece(x.device, n, inner, lines)
    pieces = max(-(-n // length), 1)
    threads = lines * pieces
    totals: Any = 0
    if pieces > 1:
        totals = new(x, what.partial, threads)
        gather = accumulating.piece_totals(what)
        _start(gather, threads, inner, x.device, x, totals, n, inner, length, pieces)
        totals = _accumulated(totals, what, pieces, inner)
        what = what._replace(carried=True)
    write = accumulating.piece_writer(what)
    sizes = (n, inner, length, pieces, lead, threads)
    _start(write, threads, inner, x.device, x, totals, out, *sizes)


def _piece(device: Device, n: int, inner: int, lines: int) -> int:
    """The length of a thread's piece of a line."""
    if alone(device):
        lanes = 1 if inner == 1 else min(inner, _MOST_THREADS)
        busy, fewest = _BUSY_ALONE * lanes, _FEWEST_ALONE // lanes
    else:
        busy, fewest = _BUSY, _FEWEST
    if lines >= busy:
        return max(n, 1)
    return max(-(-n // (busy // lines)), fewest)


def _start(kernel: Any, threads: int, inner: int, device: Device, *arguments: Any) -> None:
    """Neighbouring columns are side by side in memory, so a CPU does them in lanes."""
    if inner == 1:
        start(kernel, threads, device, *arguments)
    else:
        kernel.launch(threads, *arguments)


def _accumulated(totals: DeviceArray, what: Accumulating, n: int, inner: int) -> DeviceArray:
    """The totals of pieces, each with those before it."""
    out = new(totals, what.partial, totals.size)
    _lines(totals, out, what._replace(result=what.partial, carried=False), n, inner, 0)
    return out
