"""Tiles of rows of packed texts, for kernels of attention: a tile has rows of one text alone.

Where a tile had rows of several texts, their weights for each other's keys would be zeros, and zero
times NaN is NaN. So a block begins at the first row of its tile, goes over the keys of its text
alone, and what lies behind the text's end is zeros in its tiles.

Tiles are numbered without knowing how many each text has: those of text i begin at number
(first row + i * (tile - 1)) // tile. From a text to the next that grows by the text's tiles at
least, and all numbers are below a bound that is known from the shapes. Those that are too many have
no rows. The rows before the first text are a text without keys, and so are those after the last.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core import dtypes
from treadle.lang.decorators import Kernel

TABLE = dtypes.i32  # in place of a mask's dtype, where a kernel has a table of tiles instead
FIELDS = 5


def most_tiles(rows: int, texts: int, tile: int) -> int:
    """The tiles of a table for so many texts of so many rows in all."""
    return (rows + (texts + 2) * (tile - 1)) // tile


@td.func
def tile_at(table, number):
    """A tile: its first row, counted from its text's; the text's first row and how many it has;
    and the same of the rows that it goes over."""
    at = number * FIELDS
    return table[at], table[at + 1], table[at + 2], table[at + 3], table[at + 4]


@td.func
def _start(starts, text, rows):
    """The first row of a text, of which there is one before the first and one after the last."""
    found = 0
    if text > 0:
        found = rows
        if text <= starts.size:
            found = td.minimum(td.maximum(starts[text - 1], 0), rows)
    return found


@functools.cache
def tabler() -> Kernel:
    """A kernel that writes the table of tiles of `tile` rows: a thread for each. `starts` has the
    first row of each text and the end of the last, `other_starts` the same of the rows that a tile
    goes over. What lies outside of the rows that there are is left out."""

    @td.kernel(checked=False)
    def tile_texts(
        starts: td.Array[td.i32], other_starts: td.Array[td.i32], table: td.Array[td.i32],
        tile: td.i32, rows: td.i32, others: td.i32,
    ):  # fmt: skip
        number = td.grid(1)
        at = number * FIELDS
        if at < table.size:
            # The last text whose tiles begin at this number, or before it.
            low = 0
            high = starts.size + 1
            while high - low > 1:
                middle = low + ((high - low) >> 1)
                if (_start(starts, middle, rows) + middle * (tile - 1)) // tile <= number:
                    low = middle
                else:
                    high = middle
            begin = _start(starts, low, rows)
            count = td.maximum(_start(starts, low + 1, rows) - begin, 0)
            row = (number - (begin + low * (tile - 1)) // tile) * tile
            first = 0
            many = 0
            if low > 0 and low < starts.size:
                first = _start(other_starts, low, others)
                many = td.maximum(_start(other_starts, low + 1, others) - first, 0)
            if row >= count:  # one too many
                row = 0
                count = 0
                many = 0
            table[at] = row
            table[at + 1] = begin
            table[at + 2] = count
            table[at + 3] = first
            table[at + 4] = many

    return tile_texts
