"""The k first elements of each row in descending or ascending order, without ordering the rest.

Rows are cut into pieces, each piece keeps its own k best, and what was kept is one shorter row: so
until ordering it whole is cheap. Of equal elements any may be kept. NaN counts as greatest.
"""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import DType, i32
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code import keeping, merging
from treadle.kernels.device_code.merging import Sorting
from treadle.kernels.launching import alone, flat, new, start
from treadle.kernels.sort import sort_with_order, tile_for
from treadle.runtime.arrays import DeviceArray

_SHORT = 4  # times k: rows that are ordered whole
_PIECE = 16384  # elements of which a thread that works alone keeps k
_MOST_KEPT = 128  # by such a thread, which looks for the place of each new one


def topk(
    x: DeviceArray, k: int, largest: bool = True, dtype: DType = i32
) -> tuple[DeviceArray, DeviceArray]:
    """The k greatest (or least) elements of each row in order, and their places in the row.

    >>> import treadle as td
    >>> values, places = topk(td.asarray([3.0, 9.0, 1.0, 7.0], device="cpu")._array, 2)
    >>> values.to_host().tolist(), places.to_host().tolist()
    ([9.0, 7.0], [1, 3])
    """
    if x.size >= MOST_NARROW:
        raise ShapeError(f"{x.size} elements are too many to be ordered at once: do it in parts")
    assert isinstance(x.dtype, DType)
    shape = (*x.shape[:-1], k)
    if not k or not x.size:
        return new(x, x.dtype, *shape), new(x, dtype, *shape)
    values, places = x, None
    while values.shape[-1] > _SHORT * k:
        shorter = _shorter(values, places, k, largest)
        if shorter is None:
            break
        values, places = shorter
    ordered, order = sort_with_order(values)  # ascending, so that NaN is the greatest
    n, rows = values.shape[-1], x.size // x.shape[-1]
    best, found = new(x, x.dtype, *shape), new(x, dtype, *shape)
    finish = keeping.ends_writer(x.dtype, dtype, largest, places is not None)
    finish.launch(
        rows * k, flat(ordered), flat(order), 0 if places is None else flat(places), flat(best),
        flat(found), n, k,
    )  # fmt: skip
    return best, found


def _shorter(
    values: DeviceArray, places: DeviceArray | None, k: int, largest: bool
) -> tuple[DeviceArray, DeviceArray] | None:
    """A row with the best of each piece, and where they were; None if that is hardly shorter."""
    n = values.shape[-1]
    rows = values.size // n
    assert isinstance(values.dtype, DType)
    if alone(values.device):
        return _by_threads(values, places, k, largest, rows) if k <= _MOST_KEPT else None
    what = Sorting(values.dtype, values.dtype, i32, False)
    tile = tile_for(values.device, what, n)
    size = tile.threads * tile.items
    pieces = -(-n // size)
    kept = (pieces - 1) * k + min(k, n - (pieces - 1) * size)
    if size < _SHORT * k or 2 * kept > n:
        return None
    ordered, order = new(values, values.dtype, values.size), new(values, i32, values.size)
    merging.tile_sorter(what, tile)[rows * pieces, tile.threads](
        flat(values), ordered, order, n, pieces
    )
    best, found = new(values, values.dtype, *values.shape[:-1], kept), new(values, i32, rows * kept)
    keep = keeping.tile_ends_keeper(largest, places is not None)
    before: Any = 0 if places is None else flat(places)
    keep.launch(rows * kept, ordered, order, before, flat(best), found, n, size, k, kept)
    return best, found


def _by_threads(
    values: DeviceArray, places: DeviceArray | None, k: int, largest: bool, rows: int
) -> tuple[DeviceArray, DeviceArray] | None:
    n = values.shape[-1]
    assert isinstance(values.dtype, DType)
    pieces = -(-n // _PIECE)
    kept = (pieces - 1) * k + min(k, n - (pieces - 1) * _PIECE)
    if 2 * kept > n:
        return None
    best, found = new(values, values.dtype, *values.shape[:-1], kept), new(values, i32, rows * kept)
    keep = keeping.piece_keeper(values.dtype, largest, places is not None)
    before: Any = 0 if places is None else flat(places)
    threads = rows * pieces
    start(
        keep, threads, values.device, flat(values), before, flat(best), found, n, _PIECE, pieces, k,
        kept,
    )  # fmt: skip
    return best, found
