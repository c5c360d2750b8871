"""The best tile that is known for a product: what was measured on the device (`treadle.tuning`), or
the first guess of `tiles`.

Kinds of tiles that are not in `KINDS` are not tuned: they are taken as they were guessed.
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.core.sizes import has_sizes
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.kernels.device_code.group_product import MOST_STREAMED, GroupTile
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.matrix_product import Tile
from treadle.kernels.machine import Machine
from treadle.kernels.tiles import AnyTile, Problem, tile_for
from treadle.kernels.tuned_tiles import ALIKE, tile_of
from treadle.tuning import records
from treadle.tuning.records import Candidate, power_of


class Choice(NamedTuple):
    """How a product is computed: by a tile, and with the inner axis in so many parts; 0 is as many
    as `tiles.chunk_for` has it."""

    tile: AnyTile
    parts: int = 0


FAMILY = "products"
_EDITION = 1  # of the kernels; earlier results of the tuner are not used
KINDS: dict[str, type[Tile | FragmentTile | GroupTile]] = {
    "registers": Tile, "fragments": FragmentTile, "groups": GroupTile,
}  # fmt: skip
"""The kinds of tiles, by the names that candidates have."""
_MOST_COPIES = 2  # of a tile of sums in registers


def choice_for(machine: Machine, problem: Problem) -> Choice:
    """What was measured to be the fastest on the machine, or the first guess."""
    _, matrices, rows, columns, inner = problem[:5]
    plain = type(matrices) is type(rows) is type(columns) is type(inner) is int
    if not plain and has_sizes(problem):  # what is recorded for any sizes must not depend on them
        return Choice(tile_for(machine, problem))
    first = tile_for(machine, problem)
    found: Choice | None = machine.choices.recent.get((problem, first))
    if found is None:
        known = tuned(problem, first)
        if known is None:
            return Choice(first)
        found = choice_from(machine, problem, first, machine.choices.find(known, problem))
        if machine.choices.has_settled(known):
            machine.choices.recent[problem, first] = found
    return found


def kind_of(tile: AnyTile) -> str | None:
    """The kind of a tile; None for one that is not tuned."""
    for name, kind in KINDS.items():
        if isinstance(tile, kind):
            deep = isinstance(tile, Tile) and tile.copies > _MOST_COPIES
            return None if deep else name
    return None


def tuned(problem: Problem, first: AnyTile) -> records.Problem | None:
    """The problem as the tuner knows it, by its first guess: what was found for one kind of tiles
    says nothing of problems for which there are others."""
    kind = kind_of(first)
    if kind is None:
        return None
    short = problem.dtype.short
    sizes = problem.matrices, problem.rows, problem.columns, problem.inner
    powers = [power_of(size) for size in sizes]
    facts: tuple[int | str, ...] = (ALIKE.get(short, short), kind, *powers)
    return records.Problem(FAMILY, _EDITION, facts)


def choice_from(
    machine: Machine, problem: Problem, first: AnyTile, candidate: Candidate | None
) -> Choice:
    """The choice that a candidate means, if it is of the kind of the first guess and the machine
    allows it; otherwise the first guess."""
    if candidate is None or candidate.kind != kind_of(first):
        return Choice(first)
    kind = KINDS[candidate.kind]
    parts, *numbers = candidate.numbers or (0,)
    tile = tile_of(kind, numbers)
    if tile is None:
        return Choice(first)
    item = wide(problem.dtype).itemsize if kind is Tile else problem.dtype.itemsize
    fits = tile.shared_bytes(item) <= machine.shared_bytes and tile.threads <= machine.most_threads
    if isinstance(tile, GroupTile):
        fits = fits and tile.divides(problem.inner, item)
        size = problem.matrices * problem.rows * problem.columns
        fits = fits and (not tile.streamed or 2 * size <= MOST_STREAMED)
    return Choice(tile, parts) if fits and kind_of(tile) == candidate.kind else Choice(first)


def candidate_of(choice: Choice) -> Candidate:
    """The inverse of `choice_from`: the parts, then the tile's numbers."""
    kind = kind_of(choice.tile)
    assert kind is not None
    return Candidate(kind, (choice.parts, *map(int, choice.tile)))
