"""Programs over arrays that are larger than what a device binds, done chunk by chunk.

A WebGPU device binds at most `max_binding_size` bytes of a buffer, which may be larger. So the loop
axes are cut until each access of a chunk stays within a window of that size, and the program runs
once for each chunk, with its own extents and with offsets that count from the windows' beginnings.
All chunks are one program, whose indices need 32 bits only. Where a reduced axis has to be cut,
`partial_reductions` makes two programs of one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from treadle.core.errors import UnsupportedOnTarget
from treadle.core.limits import MOST_NARROW
from treadle.graph.emit.body import dtype_named
from treadle.graph.fused import Runner, fused_for
from treadle.graph.node import WRITE, Node
from treadle.graph.program import FIXED, NEXT, Access, Program
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.runtime.launch import Repeat
from treadle.runtime.windows import LEAST, window

_STEP = 64  # elements; chunks are multiples of that, so that vectors of neighbours stay whole
_MOST_ELEMENTS = MOST_NARROW - (1 << 16)
_MOST_NUMBER = 1 << 31


class Reach(NamedTuple):
    """What an access reaches: strides for all loop axes, the first element, and the elements that
    it reaches wherever it is (1, or all that a gather may read). `jumps` is how far it moves from
    one chunk to the next along an axis, beside that."""

    buffer: int
    strides: tuple[int, ...]
    offset: int
    elements: int = 1
    jumps: tuple[int, ...] = ()

    def bounds(self, starts: Sequence[int], lengths: Sequence[int], box: Sequence[int]) -> Span:
        """Where it begins in a chunk, and the first and the last element that it reaches there."""
        first = self.offset + sum(
            s * stride for s, stride in zip(starts, self.strides, strict=True)
        )
        if self.jumps:
            jumps = zip(starts, lengths, self.jumps, strict=True)
            first += sum(s // max(n, 1) * jump for s, n, jump in jumps)
        moves = [stride * max(n - 1, 0) for stride, n in zip(self.strides, box, strict=True)]
        low = first + sum(move for move in moves if move < 0)
        high = first + sum(move for move in moves if move > 0) + self.elements - 1
        return Span(first, low, high)


class Span(NamedTuple):
    """The elements of an access."""

    first: int
    low: int
    high: int


class _Chunk(NamedTuple):
    """A launch: for each binding the number of an array, and of its window the first byte and the
    bytes (0: all of it)."""

    runner: Runner
    bindings: tuple[tuple[int, int, int], ...]
    integers: tuple[int, ...]
    repeats: list[Repeat]


@dataclass(frozen=True, slots=True)
class Chunks:
    """A program that runs chunk by chunk."""

    chunks: tuple[_Chunk, ...]

    def run(
        self,
        arrays: Sequence[DeviceArray],
        integers: tuple[int, ...],
        scalars: Sequence[Any],
        repeats: list[Repeat],
    ) -> None:
        """Compute the outputs, which are the last of the arrays."""
        for chunk in self.chunks:
            bound = [
                window(arrays[k], start, size) if size else arrays[k]
                for k, start, size in chunk.bindings
            ]
            chunk.runner.run(bound, chunk.integers, scalars, chunk.repeats)


def memory_of(node: Node, leaves: Sequence[Node]) -> tuple[int, ...]:
    """The bytes of the buffers of a kernel, the last one that of its result."""
    nodes = leaves if node.op == WRITE else (*leaves, node)
    return tuple(
        [n.array.buffer.size if n.array is not None else n.size * n.dtype.itemsize for n in nodes]
    )


def cuts_rows(
    device: Device, program: Program, integers: Sequence[int], memory: tuple[int, ...]
) -> bool:
    """Whether a reduced axis of a program has to be cut."""
    most = device.limits.max_binding_size
    if not any(bytes > most for bytes in memory):
        return False
    cut = Cut(device, program, tuple(integers), memory, reaches_of(program, integers))
    return cut.is_in_rows(cut.lengths(integers))


def reaches_of(program: Program, integers: Sequence[int]) -> tuple[Reach, ...]:
    """What each access of a program reaches."""
    axes = program.kept + program.reduced
    gathered = {
        step.detail[0]: integers[step.detail[1]] for step in program.steps if step.op == "gather"
    }
    found = []
    for number, access in enumerate(program.accesses):
        strides = [0 if m == FIXED else 1 if m == NEXT else integers[m] for m in access.axes]
        strides += [0] * (axes - len(strides))
        offset = 0 if access.offset == FIXED else integers[access.offset]
        found.append(Reach(access.buffer, tuple(strides), offset, gathered.get(number, 1)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Cut:
    """A program that has to be cut. `memory` is the bytes of its buffers."""

    device: Device
    program: Program
    integers: tuple[int, ...]
    memory: tuple[int, ...]
    reaches: tuple[Reach, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the loop axes."""
        return self.integers[: self.program.kept + self.program.reduced]

    def is_in_rows(self, lengths: Sequence[int]) -> bool:
        """Whether chunks of these extents have parts of rows."""
        kept = self.program.kept
        return tuple(lengths[kept:]) != self.extents[kept:]

    def item(self, buffer: int) -> int:
        """The bytes of an element."""
        return dtype_named(self.program.buffers[buffer]).itemsize

    def is_wide(self, buffer: int) -> bool:
        """Whether it can't be bound as a whole."""
        return buffer >= 0 and self.memory[buffer] > self.device.limits.max_binding_size

    def room(self, buffer: int) -> int:
        """The elements of a window, wherever it begins."""
        limits = self.device.limits
        within = (limits.max_binding_size - limits.buffer_alignment) // self.item(buffer)
        return min(within, _MOST_ELEMENTS)

    # --- how long chunks are ----------------------------------------------------------------------

    def lengths(self, largest: Sequence[int]) -> list[int]:
        """The extents of a chunk, which are at most these: each time the access that reaches
        farthest beyond a window is cut along the axis that takes it farthest."""
        lengths = list(largest[: len(self.extents)])
        wide = [reach for reach in self.reaches if self.is_wide(reach.buffer)]
        while wide:
            worst = max(wide, key=lambda reach: self._over(reach, lengths))
            over = self._over(worst, lengths)
            if over <= 0:
                break
            moves = [abs(s) * max(n - 1, 0) for s, n in zip(worst.strides, lengths, strict=True)]
            axis = moves.index(max(moves))
            if not moves[axis]:
                raise self.error("it may read any element of it")
            length = lengths[axis] - -(-over // abs(worst.strides[axis]))
            lengths[axis] = length // _STEP * _STEP if length > _STEP else max(length, 1)
        return lengths

    def _over(self, reach: Reach, lengths: Sequence[int]) -> int:
        """How many elements more than a window has an access reaches."""
        moves = (abs(s) * max(n - 1, 0) for s, n in zip(reach.strides, lengths, strict=True))
        return reach.elements + sum(moves) - self.room(reach.buffer)

    def error(self, why: str) -> UnsupportedOnTarget:
        """Why it can't be done."""
        limit = self.device.limits.max_binding_size
        return UnsupportedOnTarget(
            f"{self.program.name} on an array of {max(self.memory):,} bytes: a kernel on "
            f"{self.device.id} sees at most {limit:,} bytes of one array, and {why}; "
            "compute it on slices of the array, or on a device without that limit"
        )

    # --- the chunks -------------------------------------------------------------------------------

    def chunks(self, lengths: Sequence[int]) -> Chunks:
        """The program once for each chunk."""
        extents = self.extents
        boxes = [
            (starts, tuple(min(n, e - s) for n, e, s in zip(lengths, extents, starts, strict=True)))
            for starts in itertools.product(*map(_starts, extents, lengths))
        ]
        spans = [
            [reach.bounds(starts, lengths, box) for reach in self.reaches] for starts, box in boxes
        ]
        groups = self._bindings(spans)
        if len(groups) > self.device.limits.max_buffers_per_kernel:
            raise self.error(f"it reads {len(groups)} places of arrays that are too far apart")
        program, moved = self._chunk_program(groups, boxes)
        fused = fused_for(self.device, program)
        chunks = []
        for (_, box), found in zip(boxes, spans, strict=True):
            windows = tuple(self._window(buffer, found, group) for buffer, group in groups)
            begins = dict.fromkeys(range(len(self.reaches)), 0)
            for (buffer, group), (_, start, _) in zip(groups, windows, strict=True):
                begins |= dict.fromkeys(group, start // self.item(buffer))
            integers = self._numbers(box)
            integers += [found[number].first - begins[number] for number in moved]
            if any(abs(number) >= _MOST_NUMBER for number in integers):
                raise self.error("its elements are counted beyond 31 bits")
            chunks.append(_Chunk(fused.sized(tuple(integers)), windows, tuple(integers), []))
        return Chunks(tuple(chunks))

    def _bindings(self, spans: Sequence[Sequence[Span]]) -> list[tuple[int, tuple[int, ...]]]:
        """What is bound: buffers, and the accesses that go through that binding."""
        groups: list[tuple[int, tuple[int, ...]]] = []
        for buffer in range(len(self.program.buffers)):
            mine = tuple(k for k, reach in enumerate(self.reaches) if reach.buffer == buffer)
            room = self.room(buffer)
            if not self.is_wide(buffer) or all(
                max(found[k].high for k in mine) - min(found[k].low for k in mine) < room
                for found in spans
            ):
                groups.append((buffer, mine))
                continue
            alike: dict[Reach, list[int]] = {}
            for k in mine:
                alike.setdefault(self.reaches[k], []).append(k)
            groups += [(buffer, tuple(numbers)) for numbers in alike.values()]
        return groups

    def _window(
        self, buffer: int, spans: Sequence[Span], accesses: Sequence[int]
    ) -> tuple[int, int, int]:
        if not self.is_wide(buffer):
            return buffer, 0, 0
        item, alignment = self.item(buffer), self.device.limits.buffer_alignment
        whole = -(-self.memory[buffer] // LEAST) * LEAST
        start = min(spans[k].low for k in accesses) * item
        start = min(start, whole - LEAST) // alignment * alignment
        end = (max(spans[k].high for k in accesses) + 1) * item
        return buffer, start, min(-(-(end - start) // LEAST) * LEAST, whole - start)

    def _chunk_program(
        self,
        groups: Sequence[tuple[int, tuple[int, ...]]],
        boxes: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    ) -> tuple[Program, list[int]]:
        """The program of all chunks, and the accesses to which it adds an offset."""
        program = self.program
        binding = {number: k for k, (_, group) in enumerate(groups) for number in group}
        accesses: list[Access] = []
        moved: list[int] = []
        for number, access in enumerate(program.accesses):
            reach = self.reaches[number]
            offset = access.offset
            if any(reach.strides) or any(reach.jumps) or self.is_wide(access.buffer):
                offset = program.integers + len(moved)
                moved.append(number)
            accesses.append(
                access._replace(buffer=binding.get(number, access.buffer), offset=offset)
            )
        vectors = all(starts[-1] % 4 == 0 == box[-1] % 4 for starts, box in boxes)
        return program._replace(
            accesses=tuple(accesses),
            buffers=tuple([program.buffers[buffer] for buffer, _ in groups]),
            integers=program.integers + len(moved),
            big=False,
            lanes=program.lanes if vectors else 1,
        ), moved

    def _numbers(self, box: Sequence[int]) -> list[int]:
        """The program's own integers for a chunk. Strides of axes of one element, and offsets that
        others replace, may be any number."""
        numbers = [*box, *self.integers[len(box) :]]
        for access in self.program.accesses:
            for axis, move in enumerate(access.axes):
                if move >= 0 and box[axis] == 1:
                    numbers[move] = 0
            if access.offset >= 0 and abs(numbers[access.offset]) >= _MOST_NUMBER:
                numbers[access.offset] = 0
        return numbers


def _starts(extent: int, length: int) -> range:
    """Where chunks of an axis start; there is one chunk of nothing (a row may be empty)."""
    return range(0, max(extent, 1), max(length, 1))
