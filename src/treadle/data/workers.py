"""Threads that make batches ahead of the loop that takes them."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from treadle.core import forks

_JOIN_SECONDS = 5.0  # for an item that is being made while the loop is left
_WAKE_SECONDS = 0.25  # how long Ctrl-C may have to wait where a wait cannot be interrupted


class WorkerInfo(NamedTuple):
    """Which worker this is, of how many, and of what dataset."""

    id: int
    num_workers: int
    dataset: Any


_info = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """In a loader's worker thread: which one it is. None in every other thread."""
    found: WorkerInfo | None = getattr(_info, "worker", None)
    return found


class Task:
    """A batch to be made: its number, the numbers of its items, and what came of it."""

    __slots__ = ("done", "error", "indices", "number", "value")

    def __init__(self, number: int, indices: Any) -> None:
        self.number = number
        self.indices = indices
        self.value: Any = None
        self.error: BaseException | None = None
        self.done = threading.Event()


class Fetcher(Protocol):
    """What makes the batches."""

    def ahead(self, task: Task) -> Any:
        """The batch of a task, computed, or the end of the stream."""

    def close(self) -> None:
        """Wake all workers that wait."""


_running: set[weakref.ref[Workers]] = set()  # not a WeakSet, whose callbacks are Python


@forks.in_child
def _no_threads(half_changed: bool) -> None:
    """Threads do not come along with a fork."""
    for reference in _running.copy():
        workers = reference()
        if workers is not None:
            workers.are_gone = True


class Workers:
    """Some threads that take tasks in order. They hold no reference to the loop that waits for
    them, so that an abandoned loop is collected and stops them."""

    def __init__(
        self,
        fetch: Fetcher,
        count: int,
        dataset: Any,
        init: Callable[[int], Any] | None,
    ) -> None:
        self.fetch = fetch
        self.init = init
        self.tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self.stopped = threading.Event()
        self.threads = []
        self.are_gone = False
        _running.add(weakref.ref(self, _running.discard))
        for i in range(count):
            context = contextvars.copy_context()  # the default device, modes
            run = WorkerInfo(i, count, dataset)
            thread = threading.Thread(
                target=context.run, args=(self._work, run), name=f"DataLoader worker {i}",
                daemon=True,
            )  # fmt: skip
            self.threads.append(thread)
            thread.start()

    def submit(self, task: Task) -> None:
        """Have a task done by the next thread that is free."""
        self.tasks.put(task)

    def close(self) -> None:
        """Stop the threads: those that are making an item finish it first."""
        if self.are_gone:
            return
        self.stopped.set()
        self.fetch.close()
        for _ in self.threads:
            self.tasks.put(None)
        limit = time.monotonic() + _JOIN_SECONDS
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, limit - time.monotonic()))

    def _work(self, info: WorkerInfo) -> None:
        _info.worker = info
        failed: BaseException | None = None
        try:
            if self.init is not None:
                self.init(info.id)
        except BaseException as error:  # noqa: BLE001  it is raised where the batch is taken
            failed = error
        while (task := self.tasks.get()) is not None:
            try:
                if not self.stopped.is_set():
                    if failed is not None:
                        raise failed
                    task.value = self.fetch.ahead(task)
            except BaseException as error:  # noqa: BLE001
                task.error = error
            task.done.set()
            del task  # the batch is not kept until the next one comes


def wait_for(task: Task, timeout: float, workers: Workers) -> None:
    """Wait until a task is done; TimeoutError after so many seconds, if they are not 0."""
    if workers.are_gone:
        raise RuntimeError(
            "this loop over a DataLoader was begun before the process was forked, and its workers "
            "are threads of the parent: begin a new loop in the child"
        )
    limit = time.monotonic() + timeout if timeout else None
    while not task.done.wait(_WAKE_SECONDS):
        if limit is not None and time.monotonic() >= limit:
            raise TimeoutError(
                f"batch {task.number} was not there after {timeout} s: give the DataLoader more "
                "workers (num_workers) or a longer timeout, or see why its items take so long"
            )
