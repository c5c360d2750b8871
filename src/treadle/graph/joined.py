"""Arrays that are joined in memory: a kernel for each part, which writes it into its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.graph.fused import Runner, Sized
from treadle.graph.groups import Group
from treadle.graph.pieces import memory_of, runner_for
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.launch import Repeat


class _Part(NamedTuple):
    """A launch: what runs it, and which of all the arrays, integers and numbers are its own."""

    runner: Runner
    arrays: slice
    integers: slice
    scalars: slice
    repeats: list[Repeat]


class Parts:
    """What runs the kernels of a joined array's parts."""

    __slots__ = ("_parts", "is_sized")

    def __init__(self, group: Group) -> None:
        self._parts: list[_Part] = []
        arrays = integers = scalars = 0
        for part in group.parts:
            program = part.program
            assert program is not None
            memory = memory_of(part.node, part.leaves)
            runner = runner_for(part.node.device, program, part.integers, memory)
            ends = (
                arrays + len(part.leaves),
                integers + len(part.integers),
                scalars + len(part.constants),
            )
            self._parts.append(
                _Part(
                    runner, slice(arrays, ends[0]), slice(integers, ends[1]),
                    slice(scalars, ends[2]), [],
                )
            )  # fmt: skip
            arrays, integers, scalars = ends
        self.is_sized = all(type(part.runner) is Sized for part in self._parts)

    def run(
        self,
        arrays: Sequence[DeviceArray],
        integers: tuple[int, ...],
        scalars: Sequence[Any],
        repeats: list[Repeat],
    ) -> None:
        """Compute all parts of the last of the arrays from the others."""
        target = arrays[-1]
        for part in self._parts:
            part.runner.run(
                [*arrays[part.arrays], target],
                integers[part.integers],
                scalars[part.scalars],
                part.repeats,
            )
