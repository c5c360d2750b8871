"""Rows of a window of a table."""

from __future__ import annotations

from treadle import lang as td


@td.kernel(checked=False)
def taker(table, index, out, start: td.i32, count: td.i32, columns: td.i32):  # type: ignore[no-untyped-def]
    """Write the rows whose indices are in the window: `count` rows from the row `start` on."""
    g = td.grid(1)
    if g < out.size:
        row = index[g // columns] - start
        if 0 <= row < count:
            out[g] = table[row * columns + g % columns]
