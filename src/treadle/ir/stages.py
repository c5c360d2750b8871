"""Tiles of matrices in stages of shared memory: copied there, and multiplied, while the threads of
the block go on. What each step of such work (`nodes.Staged`) is, and how tiles lie.

A *stage* is a place for tiles, which is filled, read, and filled again. Two elements of a shared
memory of u64 belong to it, on which the arrival of its bytes and the end of its use are counted in
phases. A step that waits says for which phase, by its parity. All threads of a block say of a stage
in the same order:

    prepare     before everything else: `numbers` stages have been neither filled nor read
    claim       wait until all groups have released the stage; its parity is 1 the first time, then
                0, 1, … Then so many bytes (`numbers`) will be copied to it
    copy        begin to copy a box of a matrix to the stage
    wait        wait until all bytes have come; the parity is 0 the first time, then 1, 0, …
    release     this group of 128 threads has read the stage
    multiply    begin to add the product of two tiles to the sums of a group of 128 threads
    settle      wait until at most `numbers` multiplications of this group are not done, the newest

A copy may happen at any time from where it stands until the wait for its stage ends, and a
multiplication until a `settle` says that it is done. Until then nothing else writes the tiles, and
nothing touches the sums (`verify` looks for the latter). Sums are ready after `settle 0`.

A *tile* is a sequence of lines of 64 elements of 16 bits. The eight pieces (16 bytes) of line l are
permuted: piece p is at place p ^ (l % 8). It begins at a multiple of 1,024 bytes. So eight lines
are read at once without two pieces in one bank.

`copy` takes a matrix in three axes: near (adjacent elements), far, and a stack, whose extents and
steps are given, steps in elements, of 16 bytes or multiples. Line l of the box has the elements
from `near` on of the line `far + l`. What lies outside of the extents is zeros.

`multiply` adds a product over `DEPTH` elements of the inner axis to sums of float32: of 64 rows and
8 columns for each vec4 of a thread. Of the group's thread l in warp w (of four) the numbers i of
vec4 j are in row 16 w + l / 4 + 8 (i / 2), column 8 j + 2 (l % 4) + i % 2, as in `ir.matrices`. The
first tile has the 64 rows as lines, if its inner axis is near (`numbers` has 1), else the inner
axis; the second one has the columns as lines, or it is a tile for every 64 columns, one after the
other, whose lines are the inner axis.
"""

from __future__ import annotations

from typing import NamedTuple

GROUP = 128  # threads
LINE = 64  # elements
PIECE = 8  # elements
DEPTH = 64  # of the inner axis in a tile
ROWS = 64  # of a group's product
ALIGNMENT = 1024  # bytes
ELEMENT_BYTES = 2
MOST_LINES = 256  # of a copy
MOST_COLUMNS = 256


class Operation(NamedTuple):
    """How many places, operands and numbers a step has; None for any number of places."""

    places: int | None
    operands: int
    numbers: int


OPERATIONS: dict[str, Operation] = {
    "prepare": Operation(1, 0, 1),
    "claim": Operation(1, 1, 1),
    # Target and stage; source, extents (near, far, stack), steps (far, stack), place in each axis;
    # lines.
    "copy": Operation(2, 9, 1),
    "wait": Operation(1, 1, 0),
    "release": Operation(1, 0, 0),
    "multiply": Operation(None, 2, 2),
    "settle": Operation(0, 0, 1),
}
