"""What runs the kernels of a group: whole, chunk by chunk where it has to be, or part by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core.sizes import fixed
from treadle.graph.chunks import Cut, memory_of, reaches_of
from treadle.graph.fused import Runner, Sized, fused_for
from treadle.graph.groups import Group
from treadle.graph.partial_reductions import partial_reduction
from treadle.graph.program import Kind, Program
from treadle.kernels.product import Filling
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.runtime.launch import Repeat


def runner_for(
    device: Device, program: Program, integers: tuple[int, ...], memory: tuple[int, ...]
) -> Runner:
    """What runs a program for these extents, whose buffers have so many bytes each.
    UnsupportedOnTarget if it can't be cut so that the device binds what each chunk reaches."""
    most = device.limits.max_binding_size
    if all(bytes <= most for bytes in memory):
        return fused_for(device, program).sized(integers)
    integers, memory = fixed(integers), fixed(memory)  # chunks are for one size
    return _cut_runner(Cut(device, program, integers, memory, reaches_of(program, integers)))


def _runner_of(cut: Cut) -> Runner:
    if max(cut.memory) <= cut.device.limits.max_binding_size:
        return fused_for(cut.device, cut.program).sized(cut.integers)
    return _cut_runner(cut)


def _cut_runner(cut: Cut) -> Runner:
    if cut.program.kind == Kind.PRODUCT:
        raise cut.error("a product is not cut into chunks")
    lengths = cut.lengths(cut.integers)
    if cut.is_in_rows(lengths):
        return partial_reduction(cut, lengths, _runner_of)
    return cut.chunks(lengths)


class _Part(NamedTuple):
    """A launch: what runs it, and which of all the arrays, integers and numbers are its own."""

    runner: Runner
    arrays: slice
    integers: slice
    scalars: slice
    repeats: list[Repeat]


class JoinedParts:
    """What runs the kernels of a joined array's parts."""

    __slots__ = ("is_sized", "parts")

    def __init__(self, group: Group) -> None:
        self.parts: list[_Part] = []
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
            self.parts.append(
                _Part(
                    runner, slice(arrays, ends[0]), slice(integers, ends[1]),
                    slice(scalars, ends[2]), [],
                )
            )  # fmt: skip
            arrays, integers, scalars = ends
        self.is_sized = all(type(part.runner) is Sized for part in self.parts)

    def run(
        self,
        arrays: Sequence[DeviceArray],
        integers: tuple[int, ...],
        scalars: Sequence[Any],
        repeats: list[Repeat],
    ) -> None:
        """Compute all parts of the last of the arrays from the others."""
        target = arrays[-1]
        for part in self.parts:
            part.runner.run(
                [*arrays[part.arrays], target],
                integers[part.integers],
                scalars[part.scalars],
                part.repeats,
            )


class ProductRunner:
    """What runs a product that a library or a kernel of its own computes."""

    __slots__ = ("fill",)

    def __init__(self, fill: Filling) -> None:
        self.fill = fill

    def run(
        self,
        arrays: Sequence[DeviceArray],
        integers: tuple[int, ...],
        scalars: Sequence[Any],
        repeats: list[Repeat],
    ) -> None:
        """Compute the last of the arrays from the others."""
        self.fill(*arrays)
