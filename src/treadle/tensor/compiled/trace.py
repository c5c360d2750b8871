"""A trace: one recording of a function, and the copies before and after its replay.

Before a replay the arguments' elements are copied into the trace's memory, and random draws get
their numbers. After it, elements written into arguments are copied back, and results to new memory.
All of this is prepared, so that a call is a few copies and a replay, however large the function is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.drivers.base import Buffer
from treadle.graph.node import computed
from treadle.graph.realize import finish_readers, realize
from treadle.graph.views import View
from treadle.runtime import counters
from treadle.runtime.arrays import DeviceArray, bytes_of, numpy_dtype
from treadle.runtime.traced_graph import TracedGraph
from treadle.runtime.varying import HostChange, VaryingLaunch
from treadle.tensor.carried_writes import OutsideArrays
from treadle.tensor.cells import Cell
from treadle.tensor.compiled.arguments import Arguments, Content, Source
from treadle.tensor.compiled.draws import Draws
from treadle.tensor.compiled.gradients import GradientChange
from treadle.tensor.compiled.size_guards import Numbers
from treadle.tensor.compiled.structure import Builder
from treadle.tensor.generator import Generator
from treadle.tensor.tensor import Tensor, from_cell

if TYPE_CHECKING:
    from treadle.tensor.compiled.work import Recorded

# A place among the numbers that depend on sizes (`Varying.want`).
Sizes = int | None


class Input(NamedTuple):
    """Memory of a trace for one source of its arguments."""

    array: DeviceArray
    final: DeviceArray | None  # where the elements are at the end, if they were written
    offset: Sizes = None  # of the final elements, where it depends on sizes


class Output(NamedTuple):
    """Elements that a trace computes, and the layout that they are copied to."""

    array: DeviceArray
    like: DeviceArray
    layout: Sizes = None  # shape and offset, where they depend on sizes


# Makes a result of a call from its arguments, the cells of its outputs, and numbers that depend on
# sizes.
Result = Callable[[Arguments, Sequence[Cell], Sequence[Any]], Any]


class Trace:
    """The recorded work of a function for arguments of one kind."""

    def __init__(
        self,
        name: str,
        graph: TracedGraph,
        inputs: Sequence[Input],
        outside: OutsideArrays,
        draws: Draws,
        outputs: Sequence[Output],
        results: Sequence[Result],
        build: Builder,
        changes: Sequence[tuple[int, Content, Builder]],
        gradients: Sequence[GradientChange],
        varying: Sequence[VaryingLaunch | HostChange] = (),
    ) -> None:
        self.name = name
        self._varying = list(varying)
        self._last: Sequence[Any] = (None,) * len(self._varying)  # the numbers of the last replay
        self._graph = graph
        self._inputs = list(inputs)
        self._outside = outside
        self._draws = draws
        self._outputs = list(outputs)
        self._results = list(results)
        self._build = build
        self.recorded: Recorded | None = None  # its work, if it is placed by measurement
        self._changes = list(changes)  # containers among the arguments that the function changes
        self.gradients = list(gradients)

    @property
    def outside_cells(self) -> list[Cell]:
        """The arrays from outside that it uses."""
        return self._outside.cells

    @property
    def used(self) -> list[object]:
        """The launches and the other work of the recording."""
        return self._graph.used

    @property
    def results(self) -> list[DeviceArray]:
        """What a call copies to new memory, as it is laid out there."""
        return [each.like for each in self._outputs]

    @property
    def changes_arguments(self) -> bool:
        """Whether it writes to an argument, or changes a list, dict or dataclass among them."""
        return bool(self._changes) or any(each.final is not None for each in self._inputs)

    @property
    def makes_results(self) -> bool:
        """Whether each tensor among the results is new and has memory of its own: none is an
        argument, a tensor from outside or a view of another one."""
        return len(self._results) == len(self._outputs)

    @property
    def generators(self) -> list[Generator]:
        """The generators that it draws from, or whose state it sets."""
        return self._draws.generators

    def is_current(self) -> bool:
        """Whether gradients are as the function found them."""
        return not self.gradients or all(each.is_current for each in self.gradients)

    def run(self, arguments: Arguments, first: bool = False, numbers: Numbers = ((), ())) -> Any:
        """Replay the function with these arguments; `numbers` are those for their sizes."""
        changed, now = numbers
        sources = arguments.sources
        pending = [s.cell.value for s in sources if s.data is None and s.cell.value.array is None]
        if pending:
            realize(pending)
        outside = self._outside
        if outside.buffers:
            check_disjoint(self.name, sources, self._inputs, outside)
            outside.prepare()
        for source, taken in zip(sources, self._inputs, strict=True):
            copy_in(source, taken.array)
        self._draws.fill(first)
        if changed != self._last:
            self._change(changed)
            if not first:
                counters.count_resized()
        self._graph.replay()
        for source, taken in zip(sources, self._inputs, strict=True):
            if taken.final is not None:
                offset = taken.final.offset if taken.offset is None else now[taken.offset]
                copy_back(taken.final, offset, source)
        for each in self.gradients:
            each.put()
        cells = [Cell(computed(copied(output, now))) for output in self._outputs]
        values = [result(arguments, cells, now) for result in self._results]
        if self._changes:
            containers = arguments.containers()
            for at, content, build in self._changes:
                content.put(containers[at], build(values))
        return self._build(values)

    def _change(self, numbers: Sequence[Any]) -> None:
        """Let the recording be that of other sizes."""
        recording = self._graph.captured
        pairs = zip(self._varying, numbers, self._last, strict=True)
        self._last = numbers
        for change, now, before in pairs:
            if now == before:
                continue
            if isinstance(change, VaryingLaunch):
                grid = Dim3(now[0], now[1], now[2])
                recording.change(change.place, change.kernel, grid, change.pack(*now[3:]))
            else:
                change(now)

    def release(self) -> None:
        """Release the recording and its memory."""
        self._graph.release()


def check_disjoint(
    name: str, sources: Sequence[Source], inputs: Sequence[Input], outside: OutsideArrays
) -> None:
    """LaunchError if an argument is memory that the function also has from outside, and one of the
    two is written: the trace has a copy of the argument, which would not follow."""
    for source, taken in zip(sources, inputs, strict=True):
        if source.data is not None:
            continue
        buffer: Buffer = source.cell.value.whole_array.buffer
        if buffer in outside.buffers and (
            taken.final is not None or buffer in outside.written_buffers
        ):
            raise LaunchError(
                f"{name}, which is compiled, gets an array as an argument that it also has from "
                "outside (as a global, in a closure or in an object), and writes it: leave it out "
                "of the arguments, or have it as an argument only"
            )


# --- copies --------------------------------------------------------------------------------------


def copy_in(source: Source, target: DeviceArray) -> None:
    """Copy an argument's elements into a trace's memory."""
    size = source.high - source.low
    if not size:
        return
    handle = target.device.default_stream.handle
    item = target.dtype.itemsize
    if source.data is not None:
        native = np.asarray(source.data, numpy_dtype(target.dtype))
        handle.write(target.buffer, 0, bytes_of(native))
        return
    array = source.cell.value.whole_array
    place = (array.offset + source.low) * item
    handle.copy(array.buffer, place, target.buffer, 0, _rounded(size * item, place, array, target))


def copy_back(final: DeviceArray, offset: int, source: Source) -> None:
    """Copy elements written into an argument, which begin at an offset, back to the argument."""
    size = source.high - source.low
    if not size:
        return
    if source.data is not None:
        shape = source.data.shape
        written = DeviceArray(final.device, final.storage, final.dtype, shape, None, offset)
        source.data[...] = written.to_host()
        return
    array = source.cell.value.whole_array
    if array.storage.readers is not None:
        finish_readers(array.storage)
    item = final.dtype.itemsize
    final.device.default_stream.handle.copy(
        final.buffer, offset * item, array.buffer, (array.offset + source.low) * item,
        size * item,
    )  # fmt: skip


def copied(output: Output, numbers: Sequence[Any]) -> DeviceArray:
    """A result in new memory."""
    array = output.array
    if output.layout is None:
        made, offset = output.like.another(), array.offset
    else:
        shape, offset = numbers[output.layout]
        made = DeviceArray.allocate(array.device, array.dtype, shape)
    size = made.size
    if size:
        item = array.dtype.itemsize
        place = offset * item
        made.device.default_stream.handle.copy(
            array.buffer, place, made.buffer, 0, _rounded(size * item, place, array, made)
        )
    return made


def _rounded(size: int, place: int, source: DeviceArray, target: DeviceArray) -> int:
    """The number of elements rounded up to whole words, if the memory of both arrays has room:
    WebGPU copies only whole words. The target has nothing after its elements."""
    whole = -(-size // 4) * 4
    return whole if place + whole <= source.buffer.size and whole <= target.buffer.size else size


# --- results -------------------------------------------------------------------------------------


def leaf_result(at: int) -> Result:
    """An argument itself."""
    return lambda arguments, *_: arguments.leaves[at]


def container_result(at: int) -> Result:
    """A list, dict or dataclass of the arguments."""
    return lambda arguments, *_: arguments.containers()[at]


def source_result(number: int, view: View | None, place: Sizes = None) -> Result:
    """A view of an argument's memory, relative to the start of the trace's range of it. With a
    place, the view depends on sizes."""

    def result(arguments: Arguments, _: Sequence[Cell], numbers: Sequence[Any]) -> Tensor:
        source = arguments.sources[number]
        if view is None:
            return from_cell(source.cell, None)
        shape, strides, offset = view if place is None else numbers[place]
        return from_cell(source.cell, View(shape, strides, offset + source.low))

    return result


def outside_result(seen: Tensor | Cell, place: Sizes = None) -> Result:
    """A tensor from outside; with a place, a view of a cell that depends on sizes."""
    if isinstance(seen, Cell) and place is not None:
        return lambda _, __, numbers: from_cell(seen, View(*numbers[place]))
    return lambda *_: seen


def output_result(number: int, view: View | None, place: Sizes = None) -> Result:
    """A tensor that the function makes. With a place, its view depends on sizes."""
    if place is None:
        return lambda _, cells, __: from_cell(cells[number], view)
    return lambda _, cells, numbers: from_cell(cells[number], View(*numbers[place]))


def size_result(place: int) -> Result:
    """An integer that depends on sizes."""
    return lambda _, __, numbers: numbers[place]
