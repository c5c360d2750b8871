"""What planners with a table of tiles ask: the tile that was measured to be the fastest, or their
first guess. A table is tuned by a `TileKind`, a call of `best_tile`, and a family
(`tuned_families`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from treadle.runtime.devices import Device
from treadle.tuning.choices import choices_of, forced
from treadle.tuning.records import Candidate, Problem, power_of

ALIKE = {"bf16": "f16", "u8": "i8"}
"""Dtypes whose kernels take the same time as those of another."""

Tile = TypeVar("Tile", bound=tuple[Any, ...])


@dataclass(frozen=True)
class TileKind:
    """A kind of tiles: the family and its edition, the name of the kind, the tuple that they are,
    whether a device has room for one."""

    family: str
    edition: int
    name: str
    tile: type[Any]
    fits: Callable[[Device, Any], bool]

    def problem(self, name: str, sizes: tuple[int, ...]) -> Problem:
        """The problem of some sizes; `name` is what else decides, as the dtype."""
        powers = [power_of(size) for size in sizes]
        facts: tuple[int | str, ...] = (ALIKE.get(name, name), self.name, *powers)
        return Problem(self.family, self.edition, facts)

    def candidate(self, tile: tuple[int, ...]) -> Candidate:
        """A tile as a candidate."""
        return Candidate(self.name, tuple(map(int, tile)))


def best_tile(
    device: Device, kind: TileKind, name: str, sizes: tuple[int, ...], first: Tile
) -> Tile:
    """The tile for a problem; the first guess for sizes that a recording is made for any of."""
    if not all(type(size) is int for size in sizes):
        return first
    candidate = forced(kind.family)
    if candidate is None:
        candidate = choices_of(device).find(kind.problem(name, sizes), None)
    if candidate is None or candidate.kind != kind.name:
        return first
    tile: Tile | None = tile_of(kind.tile, candidate.numbers)
    return first if tile is None or not kind.fits(device, tile) else tile


def tile_of(kind: type[Any], numbers: Sequence[int]) -> Any:
    """A tile of a class from its numbers, without those at its end that have defaults; None if that
    is not how many it has."""
    defaults = kind._field_defaults
    names = kind._fields
    if not len(names) - len(defaults) <= len(numbers) <= len(names):
        return None
    return kind(*(
        bool(number) if isinstance(defaults.get(name), bool) else number
        for name, number in zip(names, numbers, strict=False)
    ))  # fmt: skip
