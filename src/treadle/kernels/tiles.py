"""Which tile suits a product on a device: a table, and the limits that a device has.

The entries were measured with `python -m benchmarks.shapes`; an autotuner would add to them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from treadle.core.dtypes import DType
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.kernels.device_code.group_product import GroupTile
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.matrix_product import Tile
from treadle.kernels.device_code.opaque_product import OpaqueTile
from treadle.kernels.factors import TF32
from treadle.kernels.machine import Machine

AnyTile: TypeAlias = Tile | FragmentTile | OpaqueTile | GroupTile
Class = Literal["large", "middle", "small", "thin", "narrow"]

_MODEST = Tile(32, 32, 8, 1, 1, warp_columns=8, unrolled=False)
_SMALL = Tile(32, 32, 16, 1, 1, warp_columns=8)
_MIDDLE = Tile(64, 64, 16, 1, 1)
_THIN = Tile(16, 128, 16, 1, 1, warp_columns=32)
_NARROW = Tile(128, 16, 16, 1, 1, warp_columns=4)

# By whether double buffers pay, the bytes of a sum and the class of the product; the best first, of
# which a device takes the first that its limits allow.
TILES: dict[tuple[bool, int, Class], tuple[Tile, ...]] = {
    # Without later copies it is guarded: unguarded it takes 129 registers, so that only one block
    # fits a multiprocessor.
    (True, 4, "large"): (
        Tile(128, 256, 8, 2, 4, copies=3),
        Tile(128, 128, 8, 2, 2, copies=4),
        Tile(64, 128, 8, 2, 2, copies=4),
        Tile(128, 128, 8, 2, 2, copies=2, guarded=True),
        _MIDDLE,
    ),
    (True, 4, "thin"): (
        Tile(16, 128, 16, 1, 1, copies=4, warp_columns=32),
        _THIN,
        Tile(16, 128, 8, 1, 1, warp_columns=32),
    ),
    (False, 4, "large"): (Tile(128, 128, 16, 2, 2), Tile(128, 128, 8, 2, 2), _MIDDLE),
    (True, 8, "large"): (Tile(64, 64, 8, 1, 1),),
    (False, 8, "large"): (Tile(64, 64, 8, 1, 1),),
}
_USUAL: dict[Class, tuple[Tile, ...]] = {
    "large": (_MIDDLE,),
    "middle": (_MIDDLE, Tile(64, 64, 8, 1, 1)),
    "small": (_SMALL,),
    "thin": (_THIN, Tile(16, 128, 8, 1, 1, warp_columns=32)),
    "narrow": (_NARROW, Tile(128, 16, 8, 1, 1, warp_columns=4)),
}
# Of dtypes that subgroups multiply by instructions for small matrices: rows and columns
# of a block, depth, rows and columns of a subgroup, stages. The depth is that of 16-bit elements.
FRAGMENT_TILES: dict[Class, tuple[FragmentTile, ...]] = {
    "large": (
        FragmentTile(128, 256, 64, 64, 64, 3),
        FragmentTile(128, 128, 32, 64, 64, 4),
        FragmentTile(128, 128, 64, 64, 32, 3),
        FragmentTile(128, 128, 32, 64, 32, 2),
    ),
    "middle": (FragmentTile(128, 64, 64, 64, 32, 3), FragmentTile(64, 64, 32, 32, 32, 4)),
    "small": (FragmentTile(64, 64, 64, 32, 32, 3), FragmentTile(64, 64, 32, 32, 32, 4)),
    "thin": (FragmentTile(16, 128, 64, 16, 32, 4), FragmentTile(16, 128, 32, 16, 32, 3)),
    "narrow": (FragmentTile(128, 16, 64, 32, 16, 4), FragmentTile(128, 16, 32, 32, 16, 3)),
}
# The same where the layout of these matrices is hidden (`ir.opaque`), for the classes in which that
# was measured to be quicker.
OPAQUE_TILES: dict[Class, tuple[OpaqueTile, ...]] = {
    "large": (OpaqueTile(128, 256, 32, 64, 64), OpaqueTile(128, 128, 32, 64, 64)),
    "middle": (OpaqueTile(128, 64, 32, 64, 32), OpaqueTile(64, 64, 32, 32, 32)),
    "small": (OpaqueTile(64, 64, 32, 32, 32), OpaqueTile(32, 32, 32, 16, 16)),
}


class Pace(NamedTuple):
    """How long products by groups of 128 threads take, in microseconds: a launch of blocks that
    have a tile of one step each, another step of all of them, and what is between two tiles."""

    launch: float
    step: float
    between: float


# Of dtypes that groups of 128 threads multiply from boxes in shared memory (measured on an H200).
GROUP_TILES: dict[GroupTile, Pace] = {
    GroupTile(128, 256, 4, 16): Pace(5.2, 0.64, 6.0),
    GroupTile(128, 128, 6): Pace(3.6, 0.32, 4.0),  # 1.9 for two, more where power is the limit
    GroupTile(64, 128, 8): Pace(3.2, 0.19, 2.5),
}
# Others that the autotuner tries: clusters whose blocks share boxes or the inner axis, groups that
# take registers from the threads that copy, equal shares of all steps.
OTHER_GROUP_TILES = (
    GroupTile(128, 256, 4, tall=2),
    GroupTile(128, 128, 6, tall=2),
    GroupTile(64, 128, 8, tall=2),
    GroupTile(64, 128, 6, split=2),
    GroupTile(128, 256, 4, 16, registers=240),
    GroupTile(128, 256, 4, 16, streamed=True),
    GroupTile(128, 128, 6, streamed=True),
    GroupTile(64, 128, 8, streamed=True),
)
_FEWEST_GROUPS = 64  # blocks; with fewer, fragments, and parts of the inner axis, are better
_MODEST_FRAGMENTS = FragmentTile(32, 32, 32, 16, 16, 3)
_LAST = (Tile(32, 32, 16, 1, 1, warp_columns=8), Tile(32, 32, 8, 1, 1, warp_columns=8), _MODEST)
_FEW = 24  # rows of a thin product, columns of a narrow one
_LEAST_CHUNK = 256
_FULL_BLOCKS = 256
_DEEP = 1024  # from which on an inner axis is worth splitting for larger tiles
_USUAL_LARGE = 128 * 128  # elements of a tile of which two blocks fit a multiprocessor
_MOST_TURNED = 64 * 64  # elements of a subgroup's part
_BUSY_BLOCKS = 96  # that keep a card busy: with fewer, smaller tiles are better


class Problem(NamedTuple):
    """A product: so many of matrices of (rows, inner) by (inner, columns)."""

    dtype: DType
    matrices: int
    rows: int
    columns: int
    inner: int
    boxes: bool = False  # of both factors boxes can be copied (`group_product.takes`)
    rounded: bool = False  # float32 factors to TF32
    computed: bool = False  # a factor that is not in memory
    # Whether neighbours of the first and of the second factor lie across the inner axis.
    across: tuple[bool, bool] = (False, True)
    other: DType | None = None  # of the second factor, if it is not `dtype`

    @property
    def multiplied(self) -> str:
        """What is multiplied, as `Machine.matrix_products` names it."""
        if self.rounded:
            return TF32
        return self.dtype.short + (self.other.short if self.other else "")


def tile_for(machine: Machine, problem: Problem) -> AnyTile:
    """The best tile that the machine's limits allow."""
    group = _group(machine, problem) if _takes_groups(machine, problem) else None
    if group is not None:
        return group
    if problem.multiplied in machine.matrix_products:
        for each in [tile.of(problem.dtype) for tile in _fragments(machine, problem)]:
            if _fits(machine, each, problem.dtype.itemsize):
                return each
    if machine.opaque_products and problem.dtype.short == "f16":
        for opaque in _opaque(problem):
            if _fits(machine, opaque, problem.dtype.itemsize):
                return opaque
    if machine.software:
        return _MODEST
    item = wide(problem.dtype).itemsize
    kind = class_of(problem)
    copied = _is_copied(machine, problem)
    if kind == "middle" and copied and problem.inner >= _DEEP:
        kind = "large"  # the inner axis is split
    for tile in (*TILES.get((machine.double_buffers, item, kind), _USUAL[kind]), *_LAST):
        may = not tile.is_copied or (copied and _suits(tile, problem))
        if may and _fits(machine, tile, item):
            return tile
    return _MODEST


def _suits(tile: Tile, problem: Problem) -> bool:
    """Whether a tile is not half empty, and one of which one block fits a multiprocessor is worth
    it: with a second factor that is copied by vectors, and a few blocks for each."""
    if problem.rows <= tile.rows // 2 and tile.rows > _MIDDLE.rows:
        return False
    if tile.rows * tile.columns <= _USUAL_LARGE:
        return True
    return problem.across[1] and _blocks(problem, tile.rows, tile.columns) >= _FULL_BLOCKS


def _is_copied(machine: Machine, problem: Problem) -> bool:
    """Whether what lies in shared memory is what lies in memory, and may be copied there later."""
    is_summed_in_itself = wide(problem.dtype) is problem.dtype
    copied = is_summed_in_itself and problem.dtype.itemsize == 4 and not problem.computed
    return machine.later_copies and copied


def _fragments(machine: Machine, problem: Problem) -> tuple[FragmentTile, ...]:
    if machine.software:
        return (_MODEST_FRAGMENTS,)
    kind = class_of(problem)
    tiles = FRAGMENT_TILES[kind]
    if any(problem.across) and problem.dtype.itemsize != 2:
        # Lines are turned on their way, which takes registers.
        tiles = tuple([tile for tile in tiles if tile.warp_rows * tile.warp_columns < _MOST_TURNED])
    elif kind == "large" and _blocks(problem, tiles[0].rows, tiles[0].columns) < _BUSY_BLOCKS:
        tiles = tiles[1:]
    return (*tiles, _MODEST_FRAGMENTS)


def _opaque(problem: Problem) -> tuple[OpaqueTile, ...]:
    kind = class_of(problem)
    tiles = OPAQUE_TILES.get(kind, ())
    if kind == "large" and _blocks(problem, tiles[0].rows, tiles[0].columns) < _BUSY_BLOCKS:
        tiles = tiles[1:]
    return (*tiles, *OPAQUE_TILES["small"]) if tiles else ()


def _takes_groups(machine: Machine, problem: Problem) -> bool:
    return problem.boxes and problem.inner > 0 and problem.multiplied in machine.group_products


def _group(machine: Machine, problem: Problem) -> GroupTile | None:
    """The tile of groups of threads that takes the least time, if all multiprocessors begin with
    one and go on together; None where there are few blocks, or few rows or columns."""
    if class_of(problem) in ("thin", "narrow"):
        return None
    best: tuple[float, GroupTile] | None = None
    for tile, pace in GROUP_TILES.items():
        count = _blocks(problem, tile.rows, tile.columns)
        if count < _FEWEST_GROUPS or not _fits(machine, tile, problem.dtype.itemsize):
            continue
        steps = -(-problem.inner // tile.depth_of(problem.dtype.itemsize))
        rounds = -(-count // machine.multiprocessors) if machine.multiprocessors else count
        time = pace.launch + rounds * (steps - 1) * pace.step + (rounds - 1) * pace.between
        if best is None or time < best[0]:
            best = time, tile
    return best[1] if best else None


def _blocks(problem: Problem, rows: int, columns: int) -> int:
    """How many blocks have a tile each."""
    return -(-problem.rows // rows) * -(-problem.columns // columns) * problem.matrices


def _fits(machine: Machine, tile: AnyTile, item: int) -> bool:
    return tile.threads <= machine.most_threads and tile.shared_bytes(item) <= machine.shared_bytes


def chunk_for(problem: Problem, tile: Tile | FragmentTile | OpaqueTile, blocks: int) -> int:
    """How much of the inner axis a block does: all of it, or less where so few blocks leave a card
    idle."""
    inner = max(problem.inner, 1)
    parts = min(_FULL_BLOCKS // max(blocks, 1), inner // _LEAST_CHUNK)
    if blocks >= _BUSY_BLOCKS or parts < 2:
        return -(-inner // tile.depth) * tile.depth
    return -(-inner // (parts * tile.depth)) * tile.depth


def class_of(problem: Problem) -> Class:
    """The kind of a product, as the table has it."""
    rows, columns = problem.rows, problem.columns
    if rows <= _FEW < columns:
        return "thin"
    if columns <= _FEW < rows:
        return "narrow"
    for name, size in (("large", 128), ("middle", 64)):
        if _blocks(problem, size, size) >= _BUSY_BLOCKS:
            return name  # type: ignore[return-value]
    return "small"
