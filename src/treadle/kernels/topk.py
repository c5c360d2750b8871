"""The k first elements of each row in descending or ascending order, without sorting the row.

Rows are divided into chunks, the k best of each chunk are selected, and these are a shorter row.
That is repeated until sorting the row is cheap. On GPUs the best element of each tile is found
first: the k best elements lie in the k tiles of which these are the best. Which of equal elements
is selected is not specified. NaN counts as the greatest.
"""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import DType, i32
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code import merge_sort, top_elements
from treadle.kernels.device_code.keys import key_type
from treadle.kernels.device_code.merge_sort import Sorting
from treadle.kernels.launching import flat, for_any_sizes, new, serial_threads, start
from treadle.kernels.sort import sort_with_order, tile_for
from treadle.runtime.arrays import DeviceArray

_SHORT = 4  # times k: rows that are ordered whole
_TILE_ITEMS = 8  # of a thread that looks for the best of a tile
_TILE_THREADS = 256
_FEWER = 4  # times as many elements a row has at least as are left when its best tiles are chosen
_CHUNK = 16384  # elements of which a thread of the CPU selects k
_MOST_SELECTED = 128  # by such a thread, since it inserts each new one in order


@for_any_sizes
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
        shorter = _best_tiles(values, places, k, largest) or _shorter(values, places, k, largest)
        if shorter is None:
            break
        values, places = shorter
    ordered, order = sort_with_order(values)  # ascending, so that NaN is the greatest
    n, rows = values.shape[-1], x.size // x.shape[-1]
    best, found = new(x, x.dtype, *shape), new(x, dtype, *shape)
    finish = top_elements.ends_writer(x.dtype, dtype, largest, places is not None)
    finish.launch(
        rows * k, flat(ordered), flat(order), 0 if places is None else flat(places), flat(best),
        flat(found), n, k,
    )  # fmt: skip
    return best, found


def _best_tiles(
    values: DeviceArray, places: DeviceArray | None, k: int, largest: bool
) -> tuple[DeviceArray, DeviceArray] | None:
    """On GPUs: the k tiles of each row with the best elements, and what is behind its whole tiles;
    None if that is hardly shorter."""
    n = values.shape[-1]
    rows = values.size // n
    assert isinstance(values.dtype, DType)
    threads = min(_TILE_THREADS, values.device.limits.max_threads_per_block)
    threads = 1 << (threads.bit_length() - 1)
    size = threads * _TILE_ITEMS
    tiles = n // size
    kept = n - (tiles - k) * size
    if serial_threads(values.device) or tiles <= k or kept * _FEWER > n:
        return None
    best = new(values, key_type(values.dtype), *values.shape[:-1], tiles)
    find = top_elements.best_of_tiles(values.dtype, largest, threads, _TILE_ITEMS)
    find[rows * tiles, threads](flat(values), flat(best), n, tiles)
    _, chosen = topk(best, k, largest)
    taken, found = (
        new(values, values.dtype, *values.shape[:-1], kept),
        new(values, i32, rows * kept),
    )
    take = top_elements.tile_taker(places is not None)
    before: Any = 0 if places is None else flat(places)
    take.launch(
        rows * kept, flat(values), before, flat(chosen), flat(taken), found, n, size, tiles, k, kept
    )
    return taken, found


def _shorter(
    values: DeviceArray, places: DeviceArray | None, k: int, largest: bool
) -> tuple[DeviceArray, DeviceArray] | None:
    """The best of each chunk, and their places; None if that is hardly shorter."""
    n = values.shape[-1]
    rows = values.size // n
    assert isinstance(values.dtype, DType)
    if serial_threads(values.device):
        return _by_threads(values, places, k, largest, rows) if k <= _MOST_SELECTED else None
    what = Sorting(values.dtype, values.dtype, i32, False)
    tile = tile_for(values.device, what, n)
    size = tile.threads * tile.items
    chunks = -(-n // size)
    kept = (chunks - 1) * k + min(k, n - (chunks - 1) * size)
    if size < _SHORT * k or 2 * kept > n:
        return None
    ordered, order = new(values, values.dtype, values.size), new(values, i32, values.size)
    merge_sort.tile_sorter(what, tile)[rows * chunks, tile.threads](
        flat(values), ordered, order, n, chunks
    )
    best, found = new(values, values.dtype, *values.shape[:-1], kept), new(values, i32, rows * kept)
    select = top_elements.tile_end_selector(largest, places is not None)
    before: Any = 0 if places is None else flat(places)
    select.launch(rows * kept, ordered, order, before, flat(best), found, n, size, k, kept)
    return best, found


def _by_threads(
    values: DeviceArray, places: DeviceArray | None, k: int, largest: bool, rows: int
) -> tuple[DeviceArray, DeviceArray] | None:
    n = values.shape[-1]
    assert isinstance(values.dtype, DType)
    chunks = -(-n // _CHUNK)
    kept = (chunks - 1) * k + min(k, n - (chunks - 1) * _CHUNK)
    if 2 * kept > n:
        return None
    best, found = new(values, values.dtype, *values.shape[:-1], kept), new(values, i32, rows * kept)
    select = top_elements.chunk_selector(values.dtype, largest, places is not None)
    before: Any = 0 if places is None else flat(places)
    threads = rows * chunks
    start(
        select, threads, values.device, flat(values), before, flat(best), found, n, _CHUNK, chunks,
        k, kept,
    )  # fmt: skip
    return best, found
