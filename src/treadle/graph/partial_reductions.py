"""A reduction of rows that no window holds: reduced part by part, and then the parts' results.

The first program leaves each part's results in arrays, those of a row side by side, so that these
arrays may be large, too. The second one reduces these, and does what the program does with a row's
result. What wants the place of a value (argmax) keeps the values, too, which say from what part the
place is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from treadle.graph.chunks import Cut, Reach
from treadle.graph.emit.body import dtype_named
from treadle.graph.emit.row_analysis import needed
from treadle.graph.fused import Runner
from treadle.graph.program import FIXED, NEXT, Access, Kind, Output, Program, Reduce, Step
from treadle.runtime.arrays import DeviceArray, packed_strides
from treadle.runtime.devices import Device
from treadle.runtime.launch import Repeat

_VALUES = {
    Reduce.ARGMAX: Reduce.MAX,
    Reduce.ARGMIN: Reduce.MIN,
}  # the reductions that find the value at a place


class _Partial(NamedTuple):
    """An array of the parts' results: a step of the first program, and its dtype's short name."""

    step: int
    type: str


@dataclass(frozen=True, slots=True)
class PartialReduction:
    """Both programs. The first reads some of the arrays; the second others, and has the output."""

    device: Device
    partials: tuple[_Partial, ...]
    elements: int  # of each of them
    runners: tuple[Runner, Runner]
    reads: tuple[tuple[int, ...], tuple[int, ...]]
    integers: tuple[tuple[int, ...], tuple[int, ...]]
    repeats: tuple[list[Repeat], list[Repeat]] = field(default_factory=lambda: ([], []))

    def run(
        self,
        arrays: Sequence[DeviceArray],
        integers: tuple[int, ...],
        scalars: Sequence[Any],
        repeats: list[Repeat],
    ) -> None:
        """Compute the outputs, which are the last of the arrays."""
        partials = [
            DeviceArray.allocate(self.device, dtype_named(partial.type), (self.elements,))
            for partial in self.partials
        ]
        first, second = ([arrays[k] for k in numbers] for numbers in self.reads)
        self.runners[0].run([*first, *partials], self.integers[0], scalars, self.repeats[0])
        self.runners[1].run([*partials, *second], self.integers[1], scalars, self.repeats[1])


def partial_reduction(
    cut: Cut, lengths: Sequence[int], runner_of: Callable[[Cut], Runner]
) -> PartialReduction:
    """A program in two, whose chunks have these extents. `runner_of` makes what runs the second
    one, which may be cut as well."""
    program, kept = cut.program, cut.program.kept
    if program.kind != Kind.REDUCE:
        raise cut.error("its rows are longer than that in memory")
    pairs = zip(cut.extents[kept:], lengths[kept:], strict=True)
    counts = [-(-max(extent, 1) // max(length, 1)) for extent, length in pairs]
    rows, parts = math.prod(cut.extents[:kept]), math.prod(counts)
    steps, partials = _with_values(program)
    placed = len(steps) > len(program.steps)
    if placed and any(count > 1 for count in counts[1:]):
        raise cut.error("places are counted along whole rows")
    sizes = [rows * parts * dtype_named(partial.type).itemsize for partial in partials]

    first = _Draft(cut, steps)
    first.add([partial.step for partial in partials], {})
    reads = tuple(first.arrays)
    packed = packed_strides((*cut.extents[:kept], parts))[:-1]
    jumps = (*[0] * kept, *packed_strides(counts))
    for partial, size in zip(partials, sizes, strict=True):
        strides = (*packed, *[0] * program.reduced)
        reach = Reach(first.new_buffer(partial.type, size), strides, 0, 1, jumps)
        access = first.new_access(reach, kept)
        first.outputs.append(Output(first.numbers[partial.step], access))
    whole = first.cut(program, list(cut.integers), program.lanes)

    length = lengths[kept] * math.prod(cut.extents[kept + 1 :])
    second = _Draft(cut, program.steps, kept + 1 - len(cut.extents))
    _add_joins(second, partials, sizes, packed, parts, length)
    second.add([output.step for output in program.outputs], second.numbers)
    for output in program.outputs:
        access = second.access(output.access)
        second.outputs.append(Output(second.numbers[output.step], access))
    rest = cut.integers[len(cut.extents) :]
    end = second.cut(program._replace(reduced=1), [*cut.extents[:kept], parts, *rest], lanes=1)
    return PartialReduction(
        cut.device,
        tuple(partials),
        rows * parts,
        (
            whole.chunks(whole.lengths(lengths)),
            runner_of(end),
        ),
        (reads, tuple(second.arrays)),
        (whole.integers, end.integers),
    )


def _with_values(program: Program) -> tuple[list[Step], list[_Partial]]:
    """The program's steps, behind them those for values at places; and what is left of a part, the
    values behind their places."""
    steps = list(program.steps)
    partials: list[_Partial] = []
    for number, step in enumerate(program.steps):
        if step.op != "reduce":
            continue
        partials.append(_Partial(number, step.type))
        kind = _VALUES.get(step.detail)
        if kind is not None:
            type = steps[step.sources[0]].type
            partials.append(_Partial(len(steps), type))
            steps.append(Step("reduce", step.sources, type, kind))
    return steps, partials


def _add_joins(
    draft: _Draft,
    partials: Sequence[_Partial],
    sizes: Sequence[int],
    packed: tuple[int, ...],
    parts: int,
    length: int,
) -> None:
    """The second program's reductions, each known as the one that it completes. `packed` are the
    strides of the partials for rows."""
    buffers = [draft.new_buffer(p.type, n) for p, n in zip(partials, sizes, strict=True)]
    for number, (step, type) in enumerate(partials):
        if step >= len(draft.steps):
            continue  # values: used with their places
        kind = draft.steps[step].detail
        of = number + (kind in _VALUES)
        access = draft.new_access(Reach(buffers[of], (*packed, 1), 0), len(packed) + 1)
        load = draft.new_step(Step("load", (), partials[of].type, access))
        found = draft.new_step(Step("reduce", (load,), type, kind))
        if kind in _VALUES:
            found = _place(draft, buffers[number], found, packed, parts, length)
        draft.numbers[step] = found


def _place(
    draft: _Draft, buffer: int, part: int, packed: tuple[int, ...], parts: int, length: int
) -> int:
    """The place in a row, given the part that has the value: the place there, and the elements of
    the parts before."""
    type = draft.found[part].type
    new = draft.new_step
    # The gather is seen from a chunk's first row on, so rows are counted from there, too.
    nowhere, count = Reach(-1, (0,) * (len(packed) + 1), 0), len(packed)
    row = new(Step("index", (), type, draft.new_access(nowhere, count, packed)))
    at = new(Step("add", (row, part), type))
    reach = Reach(buffer, (*packed, 0), 0, parts)
    access = draft.new_access(reach, count, nowhere.strides)
    size = draft.new_integer(draft.memory[buffer] // dtype_named(type).itemsize)
    place = new(Step("gather", (at,), type, (access, size)))
    before = new(Step("multiply", (part, new(Step("constant", (), type, length))), type))
    return new(Step("add", (place, before), type))


class _Draft:
    """A new program made of an old one's steps. `shift` is how much farther its integers lie."""

    def __init__(self, old: Cut, steps: Sequence[Step], shift: int = 0) -> None:
        self.old = old
        self.steps = steps
        self.shift = shift
        self.found: list[Step] = []
        self.numbers: dict[int, int] = {}  # of old steps
        self.accesses: list[Access] = []
        self.outputs: list[Output] = []
        self.arrays: list[int] = []  # the old buffers that it has
        self.types: list[str] = []
        self.memory: list[int] = []
        self._reaches: list[Reach] = []
        self._integers: list[int] = []
        self._count = len(old.integers) + shift
        self._accesses: dict[int, int] = {}
        self._buffers: dict[int, int] = {}

    def add(self, wanted: Iterable[int], known: dict[int, int]) -> None:
        """Old steps, and what they need."""
        program = self.old.program._replace(steps=tuple(self.steps))
        for number in needed(program, wanted, dict(known)):
            step = self.steps[number]
            detail = step.detail
            if step.op in ("load", "index"):
                detail = self.access(detail)
            elif step.op == "gather":
                detail = (self.access(detail[0]), detail[1] + self.shift)
            sources = tuple(self.numbers[source] for source in step.sources)
            self.numbers[number] = self.new_step(Step(step.op, sources, step.type, detail))

    def access(self, old: int) -> int:
        """An old access."""
        known = self._accesses.get(old)
        if known is not None:
            return known
        access, reach = self.old.program.accesses[old], self.old.reaches[old]
        buffer = access.buffer
        if buffer >= 0:
            if buffer not in self._buffers:
                self.arrays.append(buffer)
                self._buffers[buffer] = self.new_buffer(
                    self.old.program.buffers[buffer], self.old.memory[buffer]
                )
            buffer = self._buffers[buffer]
        shift = self.shift
        axes = tuple(move + shift if move >= 0 else move for move in access.axes)
        offset = access.offset + shift if access.offset >= 0 else FIXED
        self.accesses.append(Access(buffer, axes, offset))
        self._reaches.append(reach._replace(buffer=buffer))
        self._accesses[old] = len(self.accesses) - 1
        return len(self.accesses) - 1

    def new_step(self, step: Step) -> int:
        """One more step."""
        self.found.append(step)
        return len(self.found) - 1

    def new_integer(self, value: int) -> int:
        """One more integer."""
        self._integers.append(value)
        return self._count + len(self._integers) - 1

    def new_buffer(self, type: str, size: int) -> int:
        """One more buffer."""
        self.types.append(type)
        self.memory.append(size)
        return len(self.types) - 1

    def new_access(self, reach: Reach, axes: int, strides: tuple[int, ...] | None = None) -> int:
        """One more access, which has so many axes: with the strides of its reach, or others."""
        moves = [
            FIXED if step == 0 else NEXT if step == 1 else self.new_integer(step)
            for step in (strides or reach.strides)[:axes]
        ]
        self.accesses.append(Access(reach.buffer, tuple(moves), FIXED))
        self._reaches.append(reach)
        return len(self.accesses) - 1

    def cut(self, like: Program, integers: list[int], lanes: int) -> Cut:
        """The new program, to be cut."""
        program = like._replace(
            steps=tuple(self.found),
            accesses=tuple(self.accesses),
            outputs=tuple(self.outputs),
            buffers=tuple(self.types),
            integers=self._count + len(self._integers),
            lanes=lanes,
        )
        memory, reaches = tuple(self.memory), tuple(self._reaches)
        return Cut(self.old.device, program, (*integers, *self._integers), memory, reaches)
