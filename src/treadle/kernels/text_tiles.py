"""The table of tiles of packed texts: made on the device, for tiles of as many rows as a kernel
has. It says which text a block computes."""

from __future__ import annotations

from treadle.core.dtypes import i32
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code.text_tiles import FIELDS, most_tiles, tabler
from treadle.kernels.launching import flat, new
from treadle.runtime.arrays import DeviceArray

# The first row of each text, with the end of the last, of two operands (int32).
Starts = tuple[DeviceArray, DeviceArray]


def texts_of(starts: Starts) -> int:
    """How many texts there are."""
    return starts[0].size - 1


def text_tiles(starts: Starts, rows: int, others: int, tile: int) -> DeviceArray:
    """The table of tiles of `tile` rows (`device_code.text_tiles`), five numbers for each tile.

    `starts` are those of `rows` rows, and those of the `others` rows that a tile goes over.

    >>> import treadle as td
    >>> starts = td.asarray([1, 4, 9], dtype=td.int32, device="cpu")._array
    >>> text_tiles((starts, starts), 9, 9, 4).to_host().reshape(-1, 5)[:, :3].tolist()
    [[0, 0, 1], [0, 1, 3], [0, 4, 5], [4, 4, 5], [0, 9, 0]]
    """
    texts = texts_of(starts)
    if (rows + (texts + 2) * tile) * FIELDS >= MOST_NARROW:
        raise ShapeError(
            f"attention of {texts} packed texts with {rows} rows has more tiles than 32 bits can "
            "count: split the texts"
        )
    table = new(starts[0], i32, most_tiles(rows, texts, tile) * FIELDS)
    own, other = (flat(each) for each in starts)
    tabler().launch(table.size // FIELDS, own, other, table, tile, rows, others)
    return table
