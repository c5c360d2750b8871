"""Tracing: a function runs once while its work is recorded and its dependencies are found.

The function gets tensors with memory of the trace in place of its arguments. All other arrays that
it uses are found by comparing the existing arrays before and after, and by the memory that the
recording touches.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import WeakSet

from treadle.core import forks
from treadle.core.sizes import has_sizes, is_size, valued
from treadle.drivers.base import Buffer
from treadle.graph import views
from treadle.graph.history import Leaf, observed
from treadle.graph.node import Node, computed
from treadle.graph.realize import realize, watchers
from treadle.runtime import counters
from treadle.runtime.arrays import DeviceArray, array_dtype
from treadle.runtime.traced_graph import TracedGraph
from treadle.runtime.varying import Varying, varying
from treadle.tensor.carried_writes import OutsideArrays, copy_over, write_over
from treadle.tensor.cells import Cell, cells_of, computable_cells, written
from treadle.tensor.compiled import gradients
from treadle.tensor.compiled import trace as traces
from treadle.tensor.compiled.arguments import Arguments, Content, Source
from treadle.tensor.compiled.call_events import report_calls
from treadle.tensor.compiled.dependencies import Dependencies
from treadle.tensor.compiled.draws import Draws
from treadle.tensor.compiled.reachable_tensors import tensors_within
from treadle.tensor.compiled.size_guards import SizeGuards, Symbols
from treadle.tensor.compiled.structure import (
    Builder,
    builder,
    collect,
    is_array,
    named_leaves,
    with_leaves,
)
from treadle.tensor.compiled.trace import Input, Output, Result, Trace
from treadle.tensor.computed_views import owner
from treadle.tensor.tensor import Tensor, from_cell

# Whether this thread is tracing: a compiled function called then becomes a part of the trace.
is_tracing: ContextVar[bool] = ContextVar("is_tracing", default=False)
# One trace at a time in a process: it wraps all streams.
lock = forks.lock()
# Callbacks before a function is traced, for work that within the trace would be repeated by each
# replay.
preparing: WeakSet[Any] = WeakSet()
# Counts changes of dependencies of training steps that guards do not find by name: the states and
# options of an optimizer, the factors of a scaler.
training_structure = [0]
_PACKAGE = str(Path(__file__).parents[2])


class Split:
    """Why a function cannot be one recording: its Python runs at every call."""

    def __init__(self, why: str, where: str) -> None:
        self.why = why
        self.where = where

    def __str__(self) -> str:
        return f"{self.why} at {self.where}" if self.where else self.why


class SizesRefused(Exception):
    """A TypeError in a function that was given sizes in place of integers. It has had no effects
    on tensors."""


class Tracing:
    """One run of a function for its trace."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Arguments,
        symbols: Symbols | None = None,
        guarded: bool = True,
    ) -> None:
        self.name = name
        self._guarded = guarded  # whether what the function reads from outside is observed
        self.sizes: SizeGuards | None = None  # that hold for what is found, if there are symbols
        self._symbols = symbols
        self._varying = None if symbols is None else Varying(symbols.record)
        self._function = function
        self._arguments = arguments
        self.escaped = 0  # arrays that it makes and that are kept outside of it
        self._split: Split | None = None
        self._lasting = True  # whether the reason will hold at the next call
        realize([s.cell.value for s in arguments.sources if s.data is None])
        given = None if symbols is None else arguments.with_sizes(symbols.numbers)
        self._integers = None if given is None else given.integers
        shapes = [None] * len(arguments.sources) if given is None else given.shapes
        self._memory = [
            _memory_for(source, arguments, shape)
            for source, shape in zip(arguments.sources, shapes, strict=True)
        ]
        self._cells = [Cell(computed(array)) for array in self._memory]
        self._nodes = [cell.value for cell in self._cells]
        places = arguments.places if given is None else given.places
        self._tensors = [from_cell(self._cells[at], view) for at, view in places]
        for tensor, leaf in zip(self._tensors, arguments.leaves, strict=True):
            tensor._locked = type(leaf) is Tensor and leaf._locked
        self._draws = Draws(arguments.device)
        self._graph = TracedGraph(arguments.device, self._interrupted)
        self._before: dict[Cell, Node] = {}
        self.dependencies = Dependencies(self._before)
        self._written: dict[Cell, Node] = {}  # by this thread, with the earlier values
        self._containers: list[tuple[Any, Content]] = []
        self._results: list[Result] = []
        self._outputs: list[Output] = []
        self._observed: dict[Leaf, tuple[bool, Any]] = {}

    def run(self) -> tuple[Any, Trace | Split | None]:
        """The function's result for the arguments, and the trace (or `Split`) for later calls; None
        if these are to be traced anew."""
        graph = self._graph
        counters.count_trace()
        for each in list(preparing):
            each.prepare_trace(graph.device)
        # The values are taken once: other threads may give their arrays new ones meanwhile.
        traced = set(self._cells)
        values = [(each, each.value) for each in computable_cells(graph.device)]
        realize([value for _, value in values])
        self._before.update((each, value) for each, value in values if each not in traced)
        del traced, values
        noting = varying.set(self._varying)
        try:
            graph.begin()
            result, trace = self._recorded()
        finally:
            varying.reset(noting)
            if self._symbols is not None:
                self._symbols.record.close()
            graph.close()
        if trace is None:
            graph.release()
            self._explain()
            self._settle()
            return result, self._split if self._lasting else None
        del result
        if self._guarded:
            self.dependencies.end()
        escaped = self._escaped()
        if self.sizes is None:
            found = trace.run(self._arguments, first=True)
        else:
            numbers = self.sizes.numbers(self._arguments.sizes)
            assert numbers is not None, "the sizes that were traced hold the facts of the trace"
            found = trace.run(self._arguments, True, numbers)
        self._separate(escaped)
        self.escaped = len(escaped)
        if not self._guarded:
            return found, trace
        self.dependencies.settle()
        own = (each.after for each in gradients.given(self._observed))
        self.dependencies.check_reached(trace.outside_cells, own)
        return found, trace

    def _settle(self) -> None:
        """The end of a run without a trace."""
        if self._guarded:
            self.dependencies.end()
            self.dependencies.settle()

    def _recorded(self) -> tuple[Any, Trace | None]:
        """Call the function. Returns its result, and the trace if the recording was complete. In
        every case the effects are those of a call without recording."""
        draws = self._draws
        tracing, noting = is_tracing.set(True), written.set(self._written)
        observing = observed.set(self._observed)
        draws.begin()
        try:
            result = self._called()
            if self._graph.failed is not None:  # and the function went on
                raise self._graph.failed
            if self._symbols is not None and self.dependencies.asks_for_types:
                raise TypeError(f"{self.dependencies.asks_for_types} asks whether a type is int")
            self._check_gradients(result)
            trace = self._finished(result) if self._split is None else None
        except BaseException as error:
            if self._graph.failed is not None:  # a kernel was not compiled, and nothing has run
                self._undo()
                raise
            if self._is_refused(error):
                self._undo()
                asks = self.dependencies.asks_for_types
                why = f"with a size in place of an int it raises TypeError: {error}"
                raise SizesRefused(str(error) if asks else why) from error
            self._graph.interrupt("an exception is raised")
            if self._split is None:  # the recording is complete, and has not run
                self._interrupted("an exception is raised", True)
            self._write_back()
            raise
        finally:
            draws.end()
            is_tracing.reset(tracing)
            written.reset(noting)
            observed.reset(observing)
        return (self._unrecorded_result(result), None) if trace is None else (result, trace)

    def _is_refused(self, error: BaseException) -> bool:
        """Whether something may have wanted an int, and got a size; then nothing has run yet."""
        if self._symbols is None or self._split is not None:
            return False
        asks = self.dependencies.asks_for_types and isinstance(error, Exception)
        return bool(isinstance(error, TypeError) or asks) and self._graph.finish()

    def _undo(self) -> None:
        """Let everything be as it was before the function was called, but for what its Python did
        elsewhere."""
        for cell, old in self._written.items():
            if cell in self._before:
                cell.value, old.overwritten = old, False
        for leaf, (_, before) in self._observed.items():
            leaf._gradient = before
        for container, content in self._containers:
            content.put(container, content.values)
        self._draws.undo()

    def _called(self) -> Any:
        """The function's result for tensors of the trace."""
        made: list[tuple[Any, Any]] = []
        rest = iter(self._tensors)
        integers = None if self._integers is None else iter(self._integers)
        given = [
            with_leaves(
                value, lambda _: next(rest), made,
                (lambda number: number) if integers is None else lambda _: next(integers),
            )
            for _, value in self._arguments.named()
        ]  # fmt: skip
        self._containers = [(mine, Content(mine)) for _, mine in made]
        count = len(self._arguments.args)
        kwargs = dict(zip(self._arguments.kwargs, given[count:], strict=True))
        given_objects = [
            (path, each)
            for name, value in self._arguments.named()
            for path, each in named_leaves(name, value)
            if not is_array(each)
        ]
        with self._observing(given_objects):
            result = self._function(*given[:count], **kwargs)
        if inspect.isgenerator(result) or inspect.isawaitable(result):
            raise TypeError(
                f"{self.name} returns a {type(result).__name__}, which runs "
                "later: td.compile takes functions that compute before they return"
            )
        return result

    @contextlib.contextmanager
    def _observing(self, given: list[tuple[str, Any]]) -> Iterator[None]:
        """Observe what the function reads from outside, if its trace is to be guarded."""
        if not self._guarded:
            yield
            return
        self.dependencies.begin(self._function, given)
        with report_calls(self.dependencies):
            yield

    def _check_gradients(self, result: Any) -> None:
        """End the recording if a replay would lose gradients."""
        found: list[Tensor] = []
        for value in (result, *(Content(mine).values for mine, _ in self._containers)):
            collect(value, found)
        why = gradients.reason(found, gradients.given(self._observed), self._before)
        if why and self._split is None:
            self._graph.interrupt(why)
            self._split = Split(why, "")
            self._lasting = True

    # ------------------------------------------------------------------ the end of a recording

    def _finished(self, result: Any) -> Trace | None:
        """The trace, if the recording was not interrupted."""
        graph = self._graph
        changed = self._changed()
        write_over(changed)
        found: list[Tensor] = []
        contents = [Content(container) for container, _ in self._containers]
        for value in (result, *(content.values for content in contents)):
            collect(value, found)
        _with_memory(found)
        own = [*(cell for cell, _ in changed), *self._cells, *(each._cell for each in found)]
        realize([cell.value for cell in own])
        del found, own
        copy_over(changed)
        places: dict[int, int] = {}
        build = builder(result, lambda value: self._place(value, places))
        changes: list[tuple[int, Content, Builder]] = []
        for at, (container, before) in enumerate(self._containers):
            content = contents[at]
            if not content.same(before):
                made = builder(content.values, lambda value: self._place(value, places))
                content.values = []
                before.put(container, before.values)  # it may be the caller's
                changes.append((at, content, made))
        self._check_disjoint()
        outside, inputs = self._outside(), self._inputs()
        if not graph.finish():
            return None
        self._draws.finish()
        if self._symbols is not None and self._varying is not None:
            self.sizes = self._symbols.guards(self._varying)
        return Trace(
            self.name, graph, inputs, outside, self._draws, self._outputs, self._results, build,
            changes, gradients.given(self._observed),
            [] if self._varying is None else self._varying.changes,
        )  # fmt: skip

    def _changed(self) -> list[tuple[Cell, Node]]:
        """The cells from outside that the function has written, with their earlier values."""
        return [
            (cell, old)
            for cell, old in self._written.items()
            if cell in self._before and cell.value is not old
        ]

    def _place(self, value: Any, places: dict[int, int]) -> int | None:
        """The number of the result for a tensor, or for a container of the arguments."""
        known = places.get(id(value))
        if known is not None:
            return known
        if is_size(value):
            result: Result | None = traces.size_result(self._want(value) or 0)
        else:
            result = self._result(value) if isinstance(value, Tensor) else self._container(value)
        if result is None:
            return None
        places[id(value)] = len(self._results)
        self._results.append(result)
        return len(self._results) - 1

    def _want(self, numbers: Any) -> int | None:
        """The place of numbers that replays compute anew; None if they are fixed."""
        if self._varying is None or self._varying.is_over or not has_sizes(numbers):
            return None
        return self._varying.want(numbers)

    def _container(self, value: Any) -> Result | None:
        for at, (container, _) in enumerate(self._containers):
            if value is container:
                return traces.container_result(at)
        return None

    def _result(self, tensor: Tensor) -> Result:
        cell, view = tensor._cell, tensor._view
        sources = self._arguments.sources
        for at, mine in enumerate(self._tensors):
            if tensor is mine and sources[self._arguments.places[at][0]].data is None:
                return traces.leaf_result(at)
        for number, own in enumerate(self._cells):
            if cell is own and sources[number].data is None:
                source, memory = sources[number], self._memory[number]
                if view is None and valued(memory.shape) != source.cell.value.shape:
                    view = views.whole(memory.shape)
                place = None if view is None else self._want(tuple(view))
                return traces.source_result(number, valued(view), place)
        if cell in self._before:
            place = None if view is None else self._want(tuple(view))
            return traces.outside_result(tensor if place is None else cell, place)
        array = cell.value.whole_array
        place = None if view is None else self._want(tuple(view))
        for number, output in enumerate(self._outputs):
            if output.array is array:
                return traces.output_result(number, view, place)
        shape = cell.value.shape
        like = DeviceArray.described(array.device, array.dtype, valued(shape))
        self._outputs.append(Output(array, like, self._want((shape, array.offset))))
        return traces.output_result(len(self._outputs) - 1, view, place)

    def _inputs(self) -> list[Input]:
        """The trace's memory for the arguments, and where their elements are at the end."""
        found: list[Input] = []
        for cell, node, array in zip(self._cells, self._nodes, self._memory, strict=True):
            final = None
            if cell.value is not node or array.buffer in self._graph.written:
                final = cell.value.whole_array
            offset = None if final is None else self._want(final.offset)
            found.append(Input(array, final, offset))
        return found

    def _outside(self) -> OutsideArrays:
        """The arrays from outside that the recording uses, and that may have been written."""
        graph = self._graph
        used = [
            (cell, old)
            for cell, old in self._before.items()
            if old.whole_array.buffer in graph.touched or cell in self._written
        ]
        written = {
            id(old.whole_array.storage): old.whole_array.storage
            for _, old in used
            if old.whole_array.buffer in graph.written
        }
        return OutsideArrays([cell for cell, _ in used], list(written.values()))

    # ------------------------------------------------------------------ interrupted recordings

    def _interrupted(self, why: str, own: bool) -> None:
        """The recording was interrupted: run what it has, so that the function can continue."""
        self._split = Split(why, _users_line() if own else "")
        self._lasting = own
        if self._varying is not None and self._symbols is not None:
            self.sizes = self._symbols.guards(self._varying)  # for which it comes to this
            self._varying.is_over = True
            self._varying.record.close()
        self._draws.finish()
        touched, written = dict(self._graph.touched), dict(self._graph.written)
        for source, array in zip(self._arguments.sources, self._memory, strict=True):
            traces.copy_in(source, array)
        self._draws.fill(first=True)
        self._graph.replay()
        self._graph.touched, self._graph.written = touched, written  # only by the function itself

    def _unrecorded_result(self, result: Any) -> Any:
        """A result that was computed without a recording, with the caller's own tensors."""
        realize([cell.value for cell in (*self._cells, *(cell for cell, _ in self._changed()))])
        self._check_disjoint()
        self._write_back()
        taken = self._arguments.containers()
        swapped: dict[int, Any] = {}
        for at, (container, before) in enumerate(self._containers):
            content = Content(container)
            if not content.same(before) and container is not taken[at]:
                content.put(
                    taken[at], [with_leaves(v, self._callers_tensor, []) for v in content.values]
                )
            swapped[id(container)] = taken[at]
        if id(result) in swapped:
            return swapped[id(result)]
        return with_leaves(result, self._callers_tensor, [])

    def _callers_tensor(self, value: Any) -> Any:
        """The caller's tensor for one of the trace's."""
        if not isinstance(value, Tensor):
            return value
        cell = value._cell
        if cell not in self._cells:
            return value
        number = self._cells.index(cell)
        if self._arguments.sources[number].data is not None:
            return value
        return self._result(value)(self._arguments, (), ())

    def _write_back(self) -> None:
        """Write the elements that were written into the trace's tensors back to the arguments."""
        pairs = zip(self._cells, self._nodes, self._memory, self._arguments.sources, strict=True)
        for cell, node, memory, source in pairs:
            untouched = memory.buffer not in self._graph.written and not memory.storage.shared
            if cell.value is node and untouched:
                continue
            realize((cell.value,))
            final = cell.value.whole_array
            traces.copy_back(final, int(final.offset), source)

    def _check_disjoint(self) -> None:
        """LaunchError if an argument is also an array from outside, and written."""
        traces.check_disjoint(self.name, self._arguments.sources, self._inputs(), self._outside())

    def _explain(self) -> None:
        """Under TREADLE_EXPLAIN, print why there is no recording."""
        if watchers and self._split is not None and self._lasting:
            sys.stderr.write(
                f"treadle: {self.name}, which is compiled, is not one recording: {self._split}. "
                "Its Python runs at every call. Return the tensor and read it outside, or use "
                "td.where and tensors as indices\n"
            )

    # ------------------------------------------------------------------ arrays that outlive a trace

    def _escaped(self) -> list[Cell]:
        """The arrays of the trace that are kept elsewhere, where replays would not update them."""
        self._tensors, self._cells, self._containers, self._written = [], [], [], {}
        found = self._kept()
        if found:
            del found
            gc.collect()
            found = self._kept()
        return found

    def _kept(self) -> list[Cell]:
        own = {*self._graph.touched, *(array.buffer for array in self._memory)}
        own.update(self._draws.buffers)
        own.difference_update(node.whole_array.buffer for node in self._before.values())
        found = {
            cell: None
            for cell in cells_of(self._graph.device)
            if cell not in self._before and _reads(cell.value, own)
        }
        # Pending values of arrays from outside only may be another thread's, unless they are
        # reachable from the function's own objects.
        given = [value for _, value in self._arguments.named()]
        for tensor in tensors_within([*given, *self.dependencies.roots]):
            cell = owner(tensor)._cell
            if cell.value.device is self._graph.device and _is_pending(cell.value):
                found[cell] = None
        return list(found)

    def _separate(self, escaped: list[Cell]) -> None:
        """Give kept arrays their own values, those of the first call."""
        for cell in escaped:
            if cell.value.array is None:
                realize((cell.value,))
            else:
                cell.value = computed(cell.value.array.copy_to(self._graph.device))
            if has_sizes(cell.value.shape):
                cell.value = computed(_of_integers(cell.value.whole_array))


def _with_memory(results: list[Tensor]) -> None:
    """Give results that are computed views memory of their own."""
    for each in results:
        if each._cell.base is not None:
            each._cell, each._view, each._seen = each.copied()._cell, None, None


def _of_integers(array: DeviceArray) -> DeviceArray:
    """A contiguous array whose sizes are those of a trace, with the integers that they are."""
    shape, offset = valued((array.shape, array.offset))
    return DeviceArray(array.device, array.storage, array.dtype, shape, None, offset)


def _memory_for(source: Source, arguments: Arguments, shape: tuple[Any, ...] | None) -> DeviceArray:
    """New memory for the range of a source that arguments use, of a shape that is given for a trace
    with symbols."""
    device = arguments.device
    if source.data is not None:
        shape = source.data.shape if shape is None else shape
        return DeviceArray.allocate(device, array_dtype(source.data.dtype), shape)
    array = source.cell.value.whole_array
    node = source.cell.value
    if shape is None:
        shape = node.shape
        if (source.low, source.high) != (0, node.size):
            shape = (source.high - source.low,)
    made = DeviceArray.allocate(device, array.dtype, shape)
    if array.key.read_only:
        return DeviceArray(device, made.storage, array.dtype, shape, None, 0, True)
    return made


def _is_pending(node: Node) -> bool:
    """Whether a value is pending; none from before the trace is."""
    return node.array is None and bool(node.sources)


def _reads(node: Node, buffers: set[Buffer]) -> bool:
    """Whether a value is in one of these buffers, or will be computed from values that are."""
    todo, seen = [node], set()
    while todo:
        each = todo.pop()
        if each.array is not None:
            if each.array.buffer in buffers:
                return True
        elif each not in seen:
            seen.add(each)
            todo += each.sources
    return False


def _users_line() -> str:
    """The file and line of the user's code that is running."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
