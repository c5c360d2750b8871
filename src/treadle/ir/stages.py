"""Tiles of matrices in stages of shared memory: copied there, and multiplied, while the threads of
the block go on. What each step of such work (`nodes.Staged`) is, and how tiles lie.

A *stage* is a place for tiles, which is filled, read, and filled again. Two elements of a shared
memory of u64 belong to it, on which the arrival of its bytes and the end of its use are counted in
phases. A step that waits says for which phase, by its parity. All threads of a block say of a stage
in the same order:

    prepare     before everything else: `numbers` says how many stages there are, none of them
                filled or read, how many blocks that follow each other are a cluster, how many of
                these, again of those that follow each other, share boxes, and which threads copy:
                those of the groups (0), a warp of its own (1), or a group of its own that gives
                registers up, so that the others' threads have so many each (a multiple of 8)
    claim       wait until all groups have released the stage; its parity is 1 the first time, then
                0, 1, … Then so many bytes (`numbers`) will be copied to it
    copy        begin to copy a box of a matrix to the stage; `numbers` are its lines, how many
                blocks share it, and how far these are apart: the blocks whose rank in the cluster
                differs from this one's in the digit that counts in such steps all ask for this box
    wait        wait until all bytes have come; the parity is 0 the first time, then 1, 0, …
    release     this group of 128 threads has read the stage
    hand        a stage to which nothing is copied is as if it were: who waits for it may go on.
                Each warp does so for a stage of its own
    multiply    begin to add the product of two tiles to the sums of a group of 128 threads
    product     the same, but the sums become the product, whatever they were
    multiply_held  as multiply, with a first factor that the threads hold
    settle      wait until at most `numbers` multiplications of this group are not done, the newest;
                operands are numbers that are to be computed while these go on
    meet        wait for all groups of the cluster, whose shared memory is then as they left it
    take        elements of the shared memory of the block with a rank, one after the other
    leave       after everything else: wait for the other blocks of the cluster
    registers   each thread of this group has so many from here on, which are more (1) than it began
                with, or fewer; only `ir.passes.roles` says so

A copy may happen at any time from where it stands until the wait for its stage ends, and a
multiplication until a `settle` says that it is done. Until then nothing else writes the tiles, and
nothing touches the sums or the words of a held factor (`verify` looks for the latter two).

Blocks that share boxes read each a part of a box's lines for all, and do so when the groups of all
of these blocks have released the stage. So they claim the same stages in the same order, for as
many bytes. Where a target has no clusters, each block is one: it reads its boxes alone, and takes
from itself, whatever the rank. A kernel that takes from others must be launched there as if it were
so.

Where copies have threads of their own, claims and copies are done by these, and everything else by
the groups (`ir.passes.roles`). What is copied then depends on parameters, the block and variables
that are computed from these, and on nothing that is in memory.

A *tile* is a sequence of lines of 128 bytes. The eight pieces (16 bytes) of line l are permuted:
piece p is at place p ^ (l % 8). It begins at a multiple of 1,024 bytes. So eight lines are read at
once without two pieces in one bank.

`copy` takes a matrix in three to five axes: near (adjacent elements), far, and stacks, whose
extents and steps are given, steps in elements, of 16 bytes or multiples. Line l of the box has the
elements from `near` on of the line `far + l`; `near` counts a multiple of 16 bytes, as a card ends
the kernel with an illegal instruction otherwise. What lies outside of the extents is zeros. Numbers
of float32 are rounded to TF32 on their way: to the nearest one with 10 bits of fraction, of two to
the even one (NaN stays NaN).

`multiply` adds a product over 128 bytes of the inner axis to sums (`SUMS`): of 64 rows and 8
columns for each vec4 of a thread. Of the group's thread l in warp w (of four) the numbers i of vec4
j are in row 16 w + l / 4 + 8 (i / 2), column 8 j + 2 (l % 4) + i % 2, as in `ir.matrices`. The
first tile has the 64 rows as lines, if its inner axis is near (`numbers` has 1), else the inner
axis; the second one has the columns as lines, or it is a tile for every 64 columns, one after the
other, whose lines are the inner axis. Only elements of 16 bits may lie so that lines are the inner
axis. Of float32 the lowest 13 bits are ignored, as TF32 has none there.

A first factor that is held are vec4s of words with two elements of 16 bits each: vec4 k has the
numbers 16 k to 16 k + 15 of the inner axis, for the warp's 16 rows, as the first factor in
`ir.matrices`. Of a second one whose lines are the inner axis, a tile has as many lines as `numbers`
says, of which the product takes some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from treadle.ir import nodes as n

from treadle.ir.types import BF16, F16, F32, I8, I32, U8, Scalar

GROUP = 128  # threads
LINE_BYTES = 128
PIECE_BYTES = 16
ROWS = 64  # of a group's product
ALIGNMENT = 1024  # bytes
LINE = DEPTH = 64  # elements of 16 bits: of a line, and of the inner axis in a tile
MOST_LINES = 256  # of a copy
MOST_COLUMNS = 256
REGISTERS = 1 << 16  # of a multiprocessor
FEWEST_REGISTERS, MOST_REGISTERS, REGISTER_STEP = 24, 256, 8  # that a thread can be given
COPIERS = 32  # threads that a block has in addition where copies have threads of their own
CLUSTERS = (1, 2, 4, 8)  # blocks
INNER = 16  # elements of the inner axis in a vec4 of words of a first factor
AXES = (3, 4, 5)  # of a matrix that boxes are copied of

# What is multiplied, and what its sums are. Factors of 8 bits may differ in their signs.
SUMS: dict[Scalar, Scalar] = {F16: F32, BF16: F32, F32: F32, I8: I32, U8: I32}
TURNED_BITS = 16  # of elements whose tiles may have the inner axis as lines
TF32_BITS = 0xFFFFE000  # that a product of float32 looks at


def line_of(element: Scalar) -> int:
    """The elements of a line, and of the inner axis in a tile.

    >>> line_of(F16), line_of(F32), line_of(I8)
    (64, 32, 128)
    """
    return LINE_BYTES * 8 // element.bits


class Operation(NamedTuple):
    """How many places, operands and numbers a step has; None for any number of places, and for
    operands whose number depends on the axes of a matrix."""

    places: int | None
    operands: int | None
    numbers: int


OPERATIONS: dict[str, Operation] = {
    "prepare": Operation(1, 0, 4),
    "claim": Operation(1, 1, 1),
    # Target and stage; source, extents (near, far, stacks), steps (far, stacks), place in each
    # axis; lines, blocks that share them, ranks from one of these to the next.
    "copy": Operation(2, None, 3),
    "wait": Operation(1, 1, 0),
    "release": Operation(1, 0, 0),
    "hand": Operation(1, 0, 0),
    "multiply": Operation(None, 2, 2),
    "product": Operation(None, 2, 2),
    # The words, then the second tile; whether its inner axis is near, the lines of a tile.
    "multiply_held": Operation(None, None, 2),
    # Numbers that are to be computed before the wait.
    "settle": Operation(0, None, 1),
    "meet": Operation(0, 0, 0),
    "take": Operation(None, 2, 0),  # element, rank
    "leave": Operation(0, 0, 0),
    "registers": Operation(0, 0, 2),
}
MULTIPLICATIONS = ("multiply", "product", "multiply_held")


class Box(NamedTuple):
    """The operands of a copy: the matrix's first element, extents and steps, and the place."""

    source: n.Expression
    extents: tuple[n.Expression, ...]
    steps: tuple[n.Expression, ...]
    place: tuple[n.Expression, ...]


def box_of(operands: Sequence[n.Expression]) -> Box:
    """What the operands of a copy are."""
    source, *numbers = operands
    axes = len(operands) // 3
    cut = 2 * axes - 1
    return Box(source, tuple(numbers[:axes]), tuple(numbers[axes:cut]), tuple(numbers[cut:]))
