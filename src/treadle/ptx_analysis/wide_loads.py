"""Loads of neighbours in shared memory that the assembler makes one wide load of.

A compiler that does not know where a row begins writes two loads of 4 bytes for a pair. ptxas sees
through the addresses: if both are 8 bytes that begin at a multiple of 8, it loads these at once,
and up to 16 bytes likewise. Bank conflicts are those of the wide load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from treadle.ptx_analysis.lanes import Lanes
from treadle.ptx_analysis.text import Instruction

_WIDEST = 16  # bytes
_ENDS = frozenset({
    "st", "atom", "red", "bar", "barrier", "membar", "fence", "mbarrier", "cp", "call", "stmatrix",
})  # fmt: skip
"""Opcodes across which no loads are joined."""


@dataclass(frozen=True)
class Access:
    """What the lanes of a warp access at once: so many bytes each, by one or several of the text's
    instructions."""

    places: tuple[Instruction, ...]
    address: Lanes
    width: int


def wide_loads(
    instructions: Sequence[Instruction],
    accesses: Mapping[Instruction, Access],
    alignments: Mapping[str, int],
) -> Iterator[Access]:
    """The loads that the assembler makes of those of a stretch of code without branches.
    `accesses` are the loads from shared memory whose addresses are known, `alignments` those of
    variables."""
    run: list[Access] = []
    for each in instructions:
        if each.parts[0] in _ENDS:
            yield from _joined(run, alignments)
            run = []
        elif each in accesses:
            run.append(accesses[each])
    yield from _joined(run, alignments)


def _joined(run: list[Access], alignments: Mapping[str, int]) -> list[Access]:
    width = 4
    while width < _WIDEST:
        for first in [each for each in run if _may_begin(each, width, alignments)]:
            wanted = tuple(number + width for number in first.address.numbers)
            for other in run:
                if (
                    other.width == width
                    and other.address.numbers == wanted
                    and other.address.symbols == first.address.symbols
                ):
                    both = Access(first.places + other.places, first.address, 2 * width)
                    run = [both if each is first else each for each in run if each is not other]
                    break
        width *= 2
    return run


def _may_begin(access: Access, width: int, alignments: Mapping[str, int]) -> bool:
    """Whether a load of twice a width may begin where one of that width does."""
    whole = 2 * width
    return (
        access.width == width
        and not any(number % whole for number in access.address.numbers)
        and not any(
            factor * alignments.get(name, 1) % whole for name, factor in access.address.symbols
        )
    )
