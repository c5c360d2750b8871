"""Which tile suits a product on a device: what was measured there (`treadle.tuning`), otherwise the
first guess of a table, and the limits that a device has.

The table's entries were measured with `python -m benchmarks.shapes`.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from treadle.core.dtypes import DType
from treadle.core.sizes import has_sizes
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.matrix_product import Tile
from treadle.kernels.device_code.opaque_product import OpaqueTile
from treadle.kernels.machine import Machine
from treadle.tuning import records
from treadle.tuning.records import Candidate, power_of

AnyTile: TypeAlias = Tile | FragmentTile | OpaqueTile
Class = Literal["large", "middle", "small", "thin", "narrow"]

_MODEST = Tile(32, 32, 8, 1, 1, warp_columns=8, unrolled=False)
_SMALL = Tile(32, 32, 16, 1, 1, warp_columns=8)
_MIDDLE = Tile(64, 64, 16, 1, 1)
_THIN = Tile(16, 128, 16, 1, 1, warp_columns=32)
_NARROW = Tile(128, 16, 16, 1, 1, warp_columns=4)

# By whether double buffers pay, the bytes of a sum and the class of the product; the best first, of
# which a device takes the first that its limits allow.
TILES: dict[tuple[bool, int, Class], tuple[Tile, ...]] = {
    # Unguarded it takes 129 registers, so that only one block fits a multiprocessor.
    (True, 4, "large"): (Tile(128, 128, 8, 2, 2, copies=2, guarded=True), _MIDDLE),
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
# of a block, depth, rows and columns of a subgroup, stages.
FRAGMENT_TILES: dict[Class, tuple[FragmentTile, ...]] = {
    "large": (
        FragmentTile(128, 256, 64, 64, 64, 3),
        FragmentTile(128, 128, 32, 64, 64, 4),
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
_MODEST_FRAGMENTS = FragmentTile(32, 32, 32, 16, 16, 3)
_LAST = (Tile(32, 32, 16, 1, 1, warp_columns=8), Tile(32, 32, 8, 1, 1, warp_columns=8), _MODEST)
_FEW = 24  # rows of a thin product, columns of a narrow one
_LEAST_CHUNK = 256
_FULL_BLOCKS = 256
_BUSY_BLOCKS = 96  # that keep a card busy: with fewer, smaller tiles are better


class Problem(NamedTuple):
    """A product: so many of matrices of (rows, inner) by (inner, columns)."""

    dtype: DType
    matrices: int
    rows: int
    columns: int
    inner: int


class Choice(NamedTuple):
    """How a product is computed: by a tile, and with the inner axis in so many parts; 0 is as many
    as `chunk_for` has it."""

    tile: AnyTile
    parts: int = 0


FAMILY = "products"
_EDITION = 1  # of the kernels; earlier results of the tuner are not used
KINDS: dict[str, type[Tile] | type[FragmentTile]] = {"registers": Tile, "fragments": FragmentTile}
"""The kinds of tiles, by the names that candidates have."""
_ALIKE = {"bf16": "f16"}  # dtypes whose kernels take the same time


def choice_for(machine: Machine, problem: Problem) -> Choice:
    """What was measured to be the fastest on the machine, or the first guess."""
    _, matrices, rows, columns, inner = problem[:5]
    plain = type(matrices) is type(rows) is type(columns) is type(inner) is int
    if not plain and has_sizes(problem):  # what is recorded for any sizes must not depend on them
        return Choice(tile_for(machine, problem))
    key = problem, machine.matrix_products
    found: Choice | None = machine.choices.recent.get(key)
    if found is None:
        first = tile_for(machine, problem)
        known = tuned(problem, first)
        if known is None:
            return Choice(first)
        found = choice_from(machine, problem, first, machine.choices.find(known, problem))
        if machine.choices.has_settled(known):
            machine.choices.recent[key] = found
    return found


def kind_of(tile: Tile | FragmentTile) -> str | None:
    """The kind of a tile; None for one that is not tuned."""
    return next((name for name, kind in KINDS.items() if isinstance(tile, kind)), None)


def tuned(problem: Problem, first: Tile | FragmentTile) -> records.Problem | None:
    """The problem as the tuner knows it, by its first guess: what was found for one kind of tiles
    says nothing of problems for which there are others."""
    kind = kind_of(first)
    if kind is None:
        return None
    short = problem.dtype.short
    sizes = problem.matrices, problem.rows, problem.columns, problem.inner
    powers = [power_of(size) for size in sizes]
    facts: tuple[int | str, ...] = (_ALIKE.get(short, short), kind, *powers)
    return records.Problem(FAMILY, _EDITION, facts)


def choice_from(
    machine: Machine, problem: Problem, first: Tile | FragmentTile, candidate: Candidate | None
) -> Choice:
    """The choice that a candidate means, if it is of the kind of the first guess and the machine
    allows it; otherwise the first guess."""
    if candidate is None or candidate.kind != kind_of(first):
        return Choice(first)
    kind = KINDS[candidate.kind]
    if len(candidate.numbers) != len(kind._fields) + 1:
        return Choice(first)
    *numbers, parts = candidate.numbers
    values: list[Any] = [
        bool(each) if isinstance(kind._field_defaults.get(name), bool) else each
        for name, each in zip(kind._fields, numbers, strict=True)
    ]
    tile = kind(*values)
    item = problem.dtype.itemsize if kind is FragmentTile else wide(problem.dtype).itemsize
    return Choice(tile, parts) if _fits(machine, tile, item) else Choice(first)


def candidate_of(choice: Choice) -> Candidate:
    """The inverse of `choice_from`."""
    kind = kind_of(choice.tile)
    assert kind is not None
    return Candidate(kind, (*map(int, choice.tile), choice.parts))


def tile_for(machine: Machine, problem: Problem) -> AnyTile:
    """The first guess: the best tile of the table that the machine's limits allow."""
    if problem.dtype.short in machine.matrix_products:
        for each in _fragments(machine, problem):
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
    for tile in (*TILES.get((machine.double_buffers, item, kind), _USUAL[kind]), *_LAST):
        if _fits(machine, tile, item):
            return tile
    return _MODEST


def _fragments(machine: Machine, problem: Problem) -> tuple[FragmentTile, ...]:
    if machine.software:
        return (_MODEST_FRAGMENTS,)
    kind = class_of(problem)
    tiles = FRAGMENT_TILES[kind]
    if kind == "large" and _blocks(problem, tiles[0].rows, tiles[0].columns) < _BUSY_BLOCKS:
        tiles = tiles[1:]
    return (*tiles, _MODEST_FRAGMENTS)


def _opaque(problem: Problem) -> tuple[OpaqueTile, ...]:
    kind = class_of(problem)
    tiles = OPAQUE_TILES.get(kind, ())
    if kind == "large" and _blocks(problem, tiles[0].rows, tiles[0].columns) < _BUSY_BLOCKS:
        tiles = tiles[1:]
    return (*tiles, *OPAQUE_TILES["small"]) if tiles else ()


def _blocks(problem: Problem, rows: int, columns: int) -> int:
    """How many blocks have a tile each."""
    return -(-problem.rows // rows) * -(-problem.columns // columns) * problem.matrices


def _fits(machine: Machine, tile: AnyTile, item: int) -> bool:
    return tile.threads <= machine.most_threads and tile.shared_bytes(item) <= machine.shared_bytes


def chunk_for(problem: Problem, tile: AnyTile, blocks: int, wanted_parts: int = 0) -> int:
    """How much of the inner axis a block does: the part that is wanted, or all of it, or less where
    so few blocks leave a card idle."""
    inner = max(problem.inner, 1)
    if wanted_parts:
        return -(-inner // (wanted_parts * tile.depth)) * tile.depth
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
