"""Sorting along the last axis: always stable, NaN last, -0 equal to 0."""

from __future__ import annotations

from typing import Any, NamedTuple

from treadle.core.dtypes import DType, i32
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code import merge_sort, radix_blocks, radix_sort
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.merge_sort import Sorting, Tile
from treadle.kernels.launching import flat, for_any_sizes, new, serial_threads, start
from treadle.kernels.scan import exclusive_sum, sums_of_stretches
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_ITEMS = 8  # of a thread, sorted in registers
_TILE_BYTES = 16384  # of shared memory, which every device has
_MOST_THREADS = 256
_FEWEST_THREADS = 32  # of a block, for rows between a thread's and a tile's
_RUN = 16  # elements that one thread sorts by insertion
_LONG_ROW = 2048  # on the CPU, rows from here on are ordered digit by digit
_DIGIT_CHUNK = 32768  # the fewest elements that a thread moves
_DIGIT_CHUNKS = 16  # the most of a row: each thread has counts for all of them
_SHORT_ROW = 32  # on GPUs, a thread sorts a row of up to so many
_DIGITS_ROW = 1 << 14  # on GPUs with subgroups, rows from here on are ordered digit by digit,
_DIGITS_SIZE = 1 << 17  # if there are so many elements in all: there are many launches
_DIGIT_ITEMS = 16  # of a thread at most
_DIGIT_BYTES = 49152  # of shared memory


@for_any_sizes
def sort(x: DeviceArray, descending: bool = False) -> DeviceArray:
    """The elements of each row in order. NaN is last in either order.

    >>> import treadle as td
    >>> rows = td.asarray([[3.0, -1.0, 2.0], [0.0, float("nan"), -5.0]], device="cpu")
    >>> sort(rows._array).to_host().tolist()
    [[-1.0, 2.0, 3.0], [-5.0, 0.0, nan]]
    """
    values, _ = _sorted(x, descending, None)
    return values


@for_any_sizes
def argsort(x: DeviceArray, descending: bool = False, dtype: DType = i32) -> DeviceArray:
    """Where in its row each element of the sorted row is found; equal elements keep their order.

    >>> import treadle as td
    >>> argsort(td.asarray([2.0, 1.0, 2.0], device="cpu")._array, descending=True).to_host()
    array([0, 2, 1], dtype=int32)
    """
    _, order = _sorted(x, descending, dtype)
    assert order is not None
    return order


def sort_with_order(
    x: DeviceArray, descending: bool = False, dtype: DType = i32
) -> tuple[DeviceArray, DeviceArray]:
    """`sort` and `argsort` at once, for the price of the second."""
    values, order = _sorted(x, descending, dtype)
    assert order is not None
    return values, order


class _Pair(NamedTuple):
    """Elements and their places, both flat; without places, a 0 that no kernel reads."""

    values: DeviceArray
    places: Any


class _Plan(NamedTuple):
    """The passes of a sort: each reads one pair of arrays and writes another."""

    final: _Pair
    what: Sorting
    spares: tuple[_Pair, ...]
    between: Sorting

    def target(self, left: int) -> tuple[_Pair, Sorting]:
        """Where a pass writes, and in which dtypes, if so many passes follow it."""
        return (self.spares[(left - 1) % 2], self.between) if left else (self.final, self.what)


def _sorted(
    x: DeviceArray, descending: bool, place: DType | None
) -> tuple[DeviceArray, DeviceArray | None]:
    if x.size >= MOST_NARROW:
        raise ShapeError(f"{x.size} elements are too many to be sorted at once: sort them in parts")
    assert isinstance(x.dtype, DType)
    n = x.shape[-1] if x.shape else 1
    values = new(x, x.dtype, *x.shape)
    order = None if place is None else new(x, place, *x.shape)
    if x.size:
        final = _Pair(flat(values), 0 if order is None else flat(order))
        what = Sorting(x.dtype, x.dtype, place, descending)
        if serial_threads(x.device) and n >= _LONG_ROW:
            _by_digits(flat(x), final, what, n)
        elif serial_threads(x.device) or n <= _SHORT_ROW:
            _by_rows(flat(x), final, what, n)
        elif _digits_suit(x, n):
            _by_tiles_of_digits(flat(x), final, what, n)
        else:
            _by_tiles(flat(x), final, what, n)
    return values, order


def _by_tiles(x: DeviceArray, final: _Pair, what: Sorting, n: int) -> None:
    """Blocks sort tiles in shared memory; passes of merges follow."""
    tile = tile_for(x.device, what, n)
    size = tile.threads * tile.items
    tiles = -(-n // size)
    passes = (tiles - 1).bit_length()
    plan = _plan(x, final, what, min(passes, 2))
    launch = (x.size // n * tiles, tile.threads)
    into, written = plan.target(passes)
    merge_sort.tile_sorter(written, tile)[launch](x, *into, n, tiles)
    for left in reversed(range(passes)):
        source = into
        into, written = plan.target(left)
        merge_sort.tile_merger(written, tile)[launch](*source, *into, n, size, tiles)
        size *= 2


def _by_rows(x: DeviceArray, final: _Pair, what: Sorting, n: int) -> None:
    """A thread sorts a row."""
    run = _RUN if serial_threads(x.device) else _SHORT_ROW
    merged = n > run
    scratch = _spare(x, what) if merged else _Pair(x, 0)
    sorter = merge_sort.row_sorter(what, run, merged)
    start(sorter, x.size // n, x.device, x, *final, *scratch, n)


def _by_digits(x: DeviceArray, final: _Pair, what: Sorting, n: int) -> None:
    """On the CPU: threads order long rows by one digit of the keys after the other."""
    log = max((n - 1) // _DIGIT_CHUNKS, _DIGIT_CHUNK - 1).bit_length()
    chunks = -(-n // (1 << log))
    threads = x.size // n * chunks
    passes = radix_sort.passes(what.dtype)
    plan = _plan(x, final, what, min(passes - 1, 2))
    counts = new(x, i32, threads * radix_sort.DIGITS)
    after = new(x, i32, threads * radix_sort.DIGITS * chunks)
    counter = radix_sort.digit_counter(what.dtype, what.descending)
    start(counter, threads, x.device, x, counts, n, 1 << log, chunks, 0)
    into = _Pair(x, 0)
    for done in range(passes):
        source = into
        into, written = plan.target(passes - 1 - done)
        before, _ = exclusive_sum(counts)
        last = done == passes - 1
        mover = radix_sort.digit_mover(written, done == 0, last)
        where = n, log, chunks, 8 * done
        start(mover, threads, x.device, *source, *into, before, after, *where)
        if not last:
            radix_sort.add_counts.launch(counts.size, after, counts, chunks)


def _digits_suit(x: DeviceArray, n: int) -> bool:
    """Whether a GPU sorts rows of this length digit by digit: passes of merges become more with the
    length, those of digits do not."""
    if x.device.limits.subgroup_size != radix_blocks.LANES:
        return False
    return n >= _DIGITS_ROW and x.size >= _DIGITS_SIZE


def _by_tiles_of_digits(x: DeviceArray, final: _Pair, what: Sorting, n: int) -> None:
    """On GPUs: blocks order tiles of long rows by one digit of the keys after the other."""
    tile = _digit_tile(x.device, what)
    tiles = -(-n // (tile.threads * tile.items))
    blocks = x.size // n * tiles
    shifts = range(radix_sort.first_bit(what.dtype), 8 * radix_sort.passes(what.dtype), 8)
    plan = _plan(x, final, what, min(len(shifts) - 1, 2))
    counts = new(x, i32, blocks * radix_sort.DIGITS)
    counter = radix_blocks.tile_counter(what.dtype, what.descending, tile)
    into = _Pair(x, 0)
    for left, shift in zip(reversed(range(len(shifts))), shifts, strict=True):
        source = into
        into, written = plan.target(left)
        counter[blocks, tile.threads](source.values, counts, n, tiles, shift)
        sums, totals, stretch = sums_of_stretches(counts)
        before, _ = exclusive_sum(totals)
        mover = radix_blocks.tile_mover(written, tile, shift == shifts[0], stretch)
        mover[blocks, tile.threads](*source, *into, sums, before, n, tiles, shift)


def _digit_tile(device: Device, what: Sorting) -> Tile:
    """As large as elements, places and counts fit the shared memory."""
    most = min(device.limits.max_shared_memory, _DIGIT_BYTES)
    threads = _MOST_THREADS if most == _DIGIT_BYTES else _MOST_THREADS // 2
    threads = min(threads, device.limits.max_threads_per_block)
    left = most - radix_blocks.bytes_of_counts(threads)
    each = wide(what.dtype).itemsize + (4 if what.place is not None else 0)
    return Tile(threads, min(left // (each * threads), _DIGIT_ITEMS))


def tile_for(device: Device, what: Sorting, n: int) -> Tile:
    """As large as its elements and places fit the shared memory, and as a row needs."""
    place_bytes = 4 if what.place is not None else 0
    items = _TILE_BYTES // (wide(what.dtype).itemsize + place_bytes) // _MOST_THREADS
    items = min(_ITEMS, 1 << (items.bit_length() - 1))
    needed = max(1 << (-(-n // items) - 1).bit_length(), _FEWEST_THREADS)
    most = 1 << (min(device.limits.max_threads_per_block, _MOST_THREADS).bit_length() - 1)
    return Tile(min(needed, most), items)


def _plan(x: DeviceArray, final: _Pair, what: Sorting, spares: int) -> _Plan:
    """Between passes, narrow elements are stored as they are computed with where a device can only
    store them atomically, and places have 32 bits."""
    stored = what.dtype if x.device.traits.narrow_stores else wide(what.dtype)
    between = what._replace(stored=stored, place=what.place and i32)
    return _Plan(final, what, tuple(_spare(x, between) for _ in range(spares)), between)


def _spare(x: DeviceArray, what: Sorting) -> _Pair:
    places = 0 if what.place is None else new(x, what.place, x.size)
    return _Pair(new(x, what.stored, x.size), places)
