"""The threads of a block as coroutines: a thread runs until it waits, then the next one runs.

A kernel without barriers and subgroup operations runs its threads one after the other on the
caller's Python thread. With them, each thread has a Python thread of its own, of which one runs at
a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.ir import types as t
from treadle.ir.matrix_values import exchanged
from treadle.ir.nodes import MATRIX_OPERATIONS
from treadle.lang.interpreter import numbers
from treadle.lang.types import Vector

SUBGROUP = 32


@dataclass
class Request:
    """A barrier that a thread waits at, or a subgroup operation with its operands."""

    kind: str  # "block", "subgroup", or the subgroup operation's name
    site: tuple[str, int, int]  # file, line and instruction of the call
    operands: tuple[Any, ...] = ()


@dataclass
class BlockState:
    """The state that the threads of a block share."""

    grid: Dim3
    block: Dim3
    index: Dim3
    shared_bytes: int
    shared: dict[Hashable, Any] = field(default_factory=dict)


@dataclass
class ThreadState:
    """One thread of a kernel."""

    block: BlockState
    index: Dim3
    wait: Callable[[Request], Any]
    types: list[dict[str, t.Type]] = field(default_factory=list)  # of locals, innermost call last
    occurrences: dict[Hashable, int] = field(default_factory=dict)

    @property
    def linear(self) -> int:
        """The thread's number in its block."""
        size = self.block.block
        return self.index.x + size.x * (self.index.y + size.y * self.index.z)


class Abandoned(BaseException):
    """Ends the threads of a block after one of them failed."""


class _Worker:
    """A thread of the kernel on a Python thread of its own, which runs from `step` to its next
    `wait`."""

    def __init__(self, yielded: threading.Semaphore, number: int) -> None:
        self.number = number
        self.request: Request | None = None
        self.finished = False
        self.error: BaseException | None = None
        self._answer: Any = None
        self._yielded = yielded
        self._resume = threading.Semaphore(0)
        self._abandon = False
        self._thread: threading.Thread | None = None

    def start(self, body: Callable[[], None]) -> None:
        def run() -> None:
            self._resume.acquire()
            try:
                if not self._abandon:
                    body()
            except Abandoned:
                pass
            except BaseException as error:  # noqa: BLE001 - raised again by the block
                self.error = error
            self.finished = True
            self._yielded.release()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def wait(self, request: Request) -> Any:
        """Called on the worker's thread: yield until there is an answer."""
        self.request = request
        self._yielded.release()
        self._resume.acquire()
        if self._abandon:
            raise Abandoned
        return self._answer

    def step(self, answer: Any = None) -> None:
        """Resume it until it waits or ends."""
        self._answer = answer
        self.request = None
        self._resume.release()
        self._yielded.acquire()
        if self.error is not None:
            raise self.error

    def abandon(self) -> None:
        """Stop it while it waits."""
        if not self.finished:
            self._abandon = True
            self._resume.release()
            if self._thread is not None:
                self._thread.join(timeout=5)


def run_block(states: list[ThreadState], body: Callable[[ThreadState], None]) -> None:
    """Run the threads of a block of a kernel with barriers or subgroup operations."""
    yielded = threading.Semaphore(0)
    workers = [_Worker(yielded, number) for number in range(len(states))]
    for worker, state in zip(workers, states, strict=True):
        state.wait = worker.wait
        worker.start(lambda state=state: body(state))  # type: ignore[misc]
    try:
        for worker in workers:
            worker.step()
        while True:
            waiting = [worker for worker in workers if not worker.finished]
            if not waiting:
                return
            if not _answer_subgroups(waiting):
                _answer_barrier(waiting)
    finally:
        for worker in workers:
            worker.abandon()


def _answer_barrier(waiting: list[_Worker]) -> None:
    sites = {worker.request.site for worker in waiting if worker.request is not None}
    if len(sites) > 1:
        lines = " and ".join(f"line {line}" for line in sorted({site[1] for site in sites}))
        raise LaunchError(
            f"threads of one block wait at different barriers ({lines}): every thread of a block "
            "must reach the same td.sync_threads()"
        )
    for worker in waiting:
        worker.step()


def _answer_subgroups(waiting: list[_Worker]) -> bool:
    """Resume the threads that wait in subgroup operations; False if there are none."""
    groups: dict[tuple[int, Any], list[_Worker]] = {}
    for worker in waiting:
        request = worker.request
        if request is not None and request.kind != "block":
            key = (worker.number // SUBGROUP, (request.kind, request.site))
            groups.setdefault(key, []).append(worker)
    for group in groups.values():
        answers = _exchange(group)
        for worker, answer in zip(group, answers, strict=True):
            worker.step(answer)
    return bool(groups)


def _exchange(group: list[_Worker]) -> list[Any]:
    """The result of a subgroup operation for each thread that takes part, by lane."""
    requests = [worker.request for worker in group]
    assert all(request is not None for request in requests)
    kind = requests[0].kind  # type: ignore[union-attr]
    lanes = [worker.number % SUBGROUP for worker in group]
    operands = [request.operands for request in requests]  # type: ignore[union-attr]
    if kind == "subgroup":
        return [None] * len(group)
    values = [each[0] for each in operands]
    if kind in MATRIX_OPERATIONS:
        words = [
            np.array([each.parts for each in column]) for column in zip(*operands, strict=True)
        ]
        found = exchanged(kind, words)
        type = operands[0][-1].type
        return [Vector(type, *(found[lane].tolist())) for lane in range(len(group))]
    if kind in ("vote_all", "vote_any"):
        result = all(values) if kind == "vote_all" else any(values)
        return [np.bool_(result)] * len(group)
    if kind == "ballot":
        bits = sum(1 << lane for lane, value in zip(lanes, values, strict=True) if value)
        return [np.uint32(bits)] * len(group)
    if kind.startswith("shuffle"):
        by_lane = dict(zip(lanes, values, strict=True))
        sources = [
            _source(kind, lane, int(each[1])) for lane, each in zip(lanes, operands, strict=True)
        ]
        return [by_lane.get(at, own) for at, own in zip(sources, values, strict=True)]
    return _reduced(kind, values)


def _source(kind: str, lane: int, by: int) -> int:
    if kind == "shuffle":
        return by
    if kind == "shuffle_xor":
        return lane ^ by
    return lane - by if kind == "shuffle_up" else lane + by


def _reduced(kind: str, values: list[Any]) -> list[Any]:
    type = numbers.scalar_type(values[0])
    if kind == "prefix_sum":
        total, sums = numbers.make(0, type), []
        for value in values:
            sums.append(total)
            total = numbers.binary("+", total, value)
        return sums
    total = values[0]
    for value in values[1:]:
        if kind == "sum":
            total = numbers.binary("+", total, value)
        else:
            total = numbers.intrinsic(kind, [total, value], type)
    return [total] * len(values)
