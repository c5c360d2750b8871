"""Which registers may differ between the threads of a block, and which blocks some of them skip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treadle.ptx_analysis.flow import Flow, reachable, writers_of
from treadle.ptx_analysis.operands import address_names, read, written
from treadle.ptx_analysis.text import Instruction

_VARYING = (
    "%tid", "%laneid", "%warpid", "%lanemask", "%clock", "%globaltimer",
)  # fmt: skip
"""Special registers that differ within a block, or may."""
_OWN = ("atom", "shfl", "activemask", "match", "vote", "redux", "elect", "ldmatrix", "clock")
"""Opcodes whose result each thread, or warp, has for itself."""


@dataclass(frozen=True)
class Variance:
    """What differs between the threads of a block."""

    registers: frozenset[str]
    branches: frozenset[int]
    """Blocks whose branch threads take differently."""


def variance_of(flow: Flow) -> Variance:
    """What may differ between threads of a block.

    A register varies if it is computed from one that does, if it is loaded from an address that
    does, or if threads that went different ways may have written it.
    """
    varying: set[str] = set()
    branches: set[int] = set()
    places = writers_of(flow)
    changed = True
    while changed:
        changed = False
        apart = {
            at for at, deciders in enumerate(flow.deciders) if not deciders.isdisjoint(branches)
        }
        for at, block in enumerate(flow.blocks):
            for each in block.instructions:
                for name in written(each):
                    if name not in varying and (
                        _varies(each, varying) or (at in apart and len(places[name]) > 1)
                    ):
                        varying.add(name)
                        changed = True
            branch = block.branch
            if branch and at not in branches and not varying.isdisjoint(read(branch)):
                branches.add(at)
                changed = True
    return Variance(frozenset(varying), frozenset(branches))


def partly_run(flow: Flow, variance: Variance, at: int) -> tuple[int, ...]:
    """The branches that differ between threads and decide whether block `at` runs."""
    return tuple(sorted(flow.deciders[at] & variance.branches))


def ends_otherwise(flow: Flow, branch: int, at: int, stops: Sequence[int]) -> bool:
    """Whether threads that a branch leads away from block `at` reach none of `stops` any more: they
    end, or have ended, which barriers of a block allow."""
    ways = [reachable(flow.blocks, each) for each in set(flow.blocks[branch].successors)]
    return any(at not in way and way.isdisjoint(stops) for way in ways)


def _varies(instruction: Instruction, varying: set[str]) -> bool:
    parts = instruction.parts
    if parts[0] in _OWN or (parts[0] == "ld" and "local" in parts):
        return True
    names = address_names(instruction) if parts[0] == "ld" else read(instruction)
    guard = (instruction.guard,) if instruction.guard else ()
    return any(name in varying or name.startswith(_VARYING) for name in (*names, *guard))
