"""What planners with a table of tiles ask: the tile that was measured to be the fastest, or their
first guess. A table is tuned by a `TileKind`, a call of `chosen`, and a family (`tuned_families`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from treadle.runtime.devices import Device
from treadle.tuning.choices import choices_of, forced
from treadle.tuning.records import Candidate, Problem, power_of

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
        return Problem(self.family, self.edition, (name, self.name, *map(power_of, sizes)))

    def candidate(self, tile: tuple[int, ...]) -> Candidate:
        """A tile as a candidate."""
        return Candidate(self.name, tuple(map(int, tile)))


def chosen(device: Device, kind: TileKind, name: str, sizes: tuple[int, ...], first: Tile) -> Tile:
    """The tile for a problem; the first guess for sizes that a recording is made for any of."""
    if not all(type(size) is int for size in sizes):
        return first
    candidate = forced(kind.family)
    if candidate is None:
        candidate = choices_of(device).find(kind.problem(name, sizes), None)
    if candidate is None or candidate.kind != kind.name:
        return first
    if len(candidate.numbers) != len(kind.tile._fields):
        return first
    tile: Tile = kind.tile(*candidate.numbers)
    return tile if kind.fits(device, tile) else first
