"""How a program's launches look for sizes that are known: what the emitters plan.

A program is one kernel or a few in a row: a reduction of one long row is done in parts, whose
results a second kernel puts together.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from treadle.core.dim3 import Dim3

# Elements of a row that is visited more than once, from which on a CPU's cores do it in parts.
IN_PARTS = 1 << 17


@dataclass(frozen=True, slots=True)
class Stage:
    """One launch of `grid` blocks of `block` threads. Its kernel is `emit(program, variant)`.

    The kernel takes the program's buffers, then the scratch buffers of these numbers; the
    program's integers, then `integers`; then the program's scalars. With `threads` the launch is
    one by threads, whose extents (x first) are these, and `grid` follows from them.
    """

    variant: Hashable
    grid: Dim3
    block: Dim3
    scratch: tuple[int, ...] = ()
    integers: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Strategy:
    """The launches for one size, and the scratch buffers they share: (short dtype, elements)."""

    stages: tuple[Stage, ...]
    scratch: tuple[tuple[str, int], ...] = ()
