"""The stencils of a loop's step, and the arrays among their arguments that change places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle.stencils.analysis import Analysis
from treadle.stencils.decorator import Stencil


@dataclass(frozen=True, slots=True)
class Part:
    """One stencil of a step. `slots` are the arrays among its arguments, by their numbers among
    all arrays of the loop; `cycles` are those that change places after it, the newest first."""

    stencil: Stencil
    analysis: Analysis
    arguments: tuple[Any, ...]
    slots: tuple[tuple[int, int], ...]  # (position among the arguments, number)
    cycles: tuple[tuple[int, ...], ...]
    newest: tuple[int, ...]  # the numbers of what it writes, after the change of places


def rotate_places(places: list[int], cycles: Sequence[Sequence[int]]) -> None:
    """The newest array of each cycle takes the place of the next one, and the oldest is written
    next."""
    for cycle in cycles:
        before = [places[number] for number in cycle]
        for number, place in zip((*cycle[1:], cycle[0]), before, strict=True):
            places[number] = place


def period_of(parts: Sequence[Part], count: int) -> int:
    """The steps after which all of so many arrays are back in their places."""
    start = list(range(count))
    places, steps = list(start), 0
    while True:
        for part in parts:
            rotate_places(places, part.cycles)
        steps += 1
        if places == start:
            return steps
