"""Computing nodes: memory for the results, launches in order, and what precedes a write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

from treadle.core import forks
from treadle.core.observation import unobserved
from treadle.graph.calls import observer
from treadle.graph.compiling import compile_all
from treadle.graph.groups import Group, groups_of
from treadle.graph.history import settle_ended
from treadle.graph.node import CALL, CONSTANT, VIEW, Node, pending_readers
from treadle.graph.plan_functions import Executor
from treadle.graph.recipes import Graph, Single, Task, function_for, remember, remembered, task_of
from treadle.graph.schedule import Plan
from treadle.runtime import counters, profiler, recorded_calls
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.lazy import TrackedMemory
from treadle.runtime.varying import varying

_lock = forks.lock()
# Called with each group before it runs, to be shown (`TREADLE_EXPLAIN`).
watchers: list[Callable[[Group], None]] = []


def realize(nodes: Iterable[Node], planned: Callable[[], None] | None = None) -> None:
    """Compute nodes, and forget what they were made of. Launches only; nothing is waited for.

    `planned` is called when it is known how, before anything runs."""
    with _lock:
        pending = [node for node in nodes if node.array is None]
        if not pending:
            return
        settle_ended()
        plain = not watchers and profiler.active is None
        if recorded_calls.current is not None:
            recorded_calls.refuse_recording()
            plain = False  # the stream is another one for now
        plain = plain and pending[0].device.default_stream.capturing is None
        single = Single.of(pending[0]) if plain and len(pending) == 1 else None
        if single is not None and (function := single.function()) is not None:
            run, values = function
            taken = single.taken()
            del single, pending, nodes
            if planned is not None:
                planned()
            run(taken, values)
            return
        graph: Graph | None = Graph(pending)
        assert graph is not None
        function = function_for(graph, _executor) if plain else None
        if function is not None:
            run, values = function
            if single is not None and len(graph.order) == single.count:
                single.remember(function)
            taken = graph.taken()
            del graph, single, pending, nodes
            if planned is not None:
                planned()
            run(taken, values)
            return
        del single
        with unobserved():
            symbolic = varying.get() is not None
            tasks = remembered(graph) if not watchers and not symbolic else None
            if tasks is None:
                tasks = _planned(graph, symbolic)
            waits = not graph.order[0].device.default_stream.handle.takes_pending
            if graph.is_new and len(tasks) > 1 and not symbolic and waits:
                compile_all([task for task in tasks if not _is_cleared(task[0])])
        del graph, pending, nodes
        if planned is not None:
            planned()
        with unobserved():
            while tasks:
                # Nothing else may hold a task while it runs: what its sources need goes back to
                # the pool as soon as their last reader was launched.
                _run(tasks.pop())


def _planned(graph: Graph, symbolic: bool) -> list[Task]:
    """The tasks for a new graph, the last one first. A graph of a trace with symbols (`symbolic`)
    has sizes of that trace, and is not remembered."""
    groups = groups_of(Plan(graph.roots))
    tasks = []
    for group in groups:
        for watch in watchers:
            noted = varying.get()
            with contextlib.nullcontext() if noted is None else noted.record.unrecorded():
                watch(group)
        tasks.append(task_of(group))
    if not symbolic:
        remember(graph, tasks)
    counters.count_plan()
    tasks.reverse()
    return tasks


def _run(task: Task) -> None:
    node, leaves, _, _, _, _, target, _ = task
    if node.array is not None:
        return
    arrays = [leaf.array for leaf in leaves]
    if node.op == CALL:
        (observer.get() or node.detail.run)(node, arrays)  # type: ignore[arg-type]
        return
    if target is None:
        result = arrays[-1]
        assert result is not None
        if result.key.read_only:
            raise ValueError("this tensor is read-only: copy it first")
        # What only this kernel is made of is let go of, and so not computed once more before it.
        node.sources = ()
        try:
            finish_readers(result.storage, node)
            _launch(task, arrays)
        except BaseException as error:
            node.fail(error)
            raise
    else:
        result = target.another()
        arrays.append(result)
        if _is_cleared(node):
            _clear(result)
        else:
            _launch(task, arrays)
    node.become(result)


def _launch(task: Task, arrays: list[DeviceArray | None]) -> None:
    _, _, constants, integers, _, runner, _, repeats = task
    if runner is not None:
        scalars = [each.detail for each in constants]
        runner.run(arrays, integers, scalars, repeats)  # type: ignore[arg-type]


def _is_cleared(node: Node) -> bool:
    """Whether no kernel computes a node: its bytes are 0 (those of -0.0 are not)."""
    return node.op == CONSTANT and bool(node.detail == 0) and "-" not in str(node.detail)


def _clear(array: DeviceArray) -> None:
    """Zero new memory, by the device's own means."""
    if array.size:
        array.device.default_stream.handle.fill_zero(array.buffer, 0, array.buffer.size)


def finish_readers(storage: TrackedMemory, writer: Node | None = None) -> None:
    """Compute what still has to read memory that is about to be written, here or elsewhere, but for
    the writer."""
    found: list[Node] = []
    views: list[ref[Node]] = []
    pending, storage.readers = storage.readers, None
    for reference in pending or ():
        reader = reference()
        if reader is None or reader.array is not None:
            continue
        if reader.op != VIEW:
            found.append(reader)
            continue
        found += pending_readers(reader)
        if storage.shared:
            _make_eager(reader)
        views.append(reference)  # its tensor may use it for further readers
    for reference in views:
        storage.add_reader(reference)
    others = [reader for reader in found if reader is not writer]
    if others:
        realize(others)


def _run_constant(node: Node, constants: tuple[Node, ...], *rest: Any) -> None:
    integers, runner, target, repeats = rest
    _run((node, (), constants, integers, (), runner, target, repeats))


_executor = Executor(finish_readers, _run_constant)


def _make_eager(view: Node) -> None:
    """Let what will read memory through a view be computed at once."""
    todo = [view]
    while todo:
        node = todo.pop()
        node.eager = True
        for reference in node.readers or ():
            reader = reference()
            if reader is not None and reader.op == VIEW:
                todo.append(reader)
