"""How the items of one batch are taken from a dataset, in whichever thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import islice
from typing import Any

from treadle.data.collate import default_collate, placed, realized
from treadle.data.datasets import Subset
from treadle.data.workers import Task, get_worker_info
from treadle.runtime.devices import Device

END = object()  # what comes after the last batch of a stream


class Fetch:
    """Makes the batch of a task."""

    def __init__(
        self,
        dataset: Any,
        has_batches: bool,
        collate: Callable[[Any], Any],
        device: Device | None,
    ) -> None:
        self.dataset = dataset
        self.has_batches = has_batches
        self.collate = collate
        self.device = device

    def here(self, task: Task) -> Any:
        """The batch of the next task, or END. What raises says where."""
        raise NotImplementedError

    def ahead(self, task: Task) -> Any:
        """The same in a worker, which computes the batch's tensors too."""
        return realized(self.here(task))

    def close(self) -> None:
        """Wake all workers that wait."""

    def made(self, items: Any) -> Any:
        """A list of items as a batch on the device; without batches, an item there."""
        if self.collate is default_collate:
            return default_collate(items, self.device)
        return placed(self.collate(items), self.device)


class Items(Fetch):
    """Items by number."""

    def __init__(self, dataset: Any, *options: Any) -> None:
        super().__init__(dataset, *options)
        self.at_once = hasattr(self.collate, "makes_rows") and _gives_batches(dataset)

    def here(self, task: Task) -> Any:
        """See `Fetch`."""
        numbers = at = task.indices
        with ErrorContext(task, lambda: f"item{'s' * isinstance(at, list)} {at}"):
            if not self.has_batches:
                return self.made(self.dataset[at])
            if self.at_once:
                return placed(_batch_of(self.dataset, numbers, self.device), self.device)
            if hasattr(self.dataset, "__getitems__"):
                return self.made(self.dataset.__getitems__(numbers))
            items = []
            for at in numbers:
                items.append(self.dataset[at])  # noqa: PERF401  `at` says which one failed
            at = numbers
            return self.made(items)


class Stream(Fetch):
    """Items one after the other. Workers take turns at the stream, in the order of the batches."""

    def __init__(
        self, drop_last: bool, skipped: int, size: int, dataset: Any, *options: Any
    ) -> None:
        super().__init__(dataset, *options)
        self.drop_last = drop_last
        self.items = iter(dataset)
        self.turn = threading.Condition()
        self.next_number = skipped  # whose turn it is
        self.is_closed = False
        for _ in islice(self.items, skipped * size):  # what an interrupted epoch had already
            pass

    def here(self, task: Task) -> Any:
        """See `Fetch`."""
        with ErrorContext(task, lambda: "items of a stream"):
            items = self._pulled(task)
            if not items or (self.drop_last and len(items) < task.indices):
                return END
            return self.made(items if self.has_batches else items[0])

    def close(self) -> None:
        """See `Fetch`."""
        with self.turn:
            self.is_closed = True
            self.turn.notify_all()

    def _pulled(self, task: Task) -> list[Any]:
        """The next items, when it is this batch's turn."""
        with self.turn:
            self.turn.wait_for(lambda: self.is_closed or task.number == self.next_number)
            if self.is_closed:
                return []
            try:
                return list(islice(self.items, task.indices))
            finally:
                self.next_number += 1
                self.turn.notify_all()


def _gives_batches(dataset: Any) -> bool:
    """Whether a dataset is arrays, of which a batch is one indexing operation."""
    if isinstance(dataset, Subset) and type(dataset).__getitem__ is Subset.__getitem__:
        return _gives_batches(dataset.dataset)
    rows = getattr(type(dataset), "takes_rows", None)
    return rows is not None and type(dataset).__getitem__ is rows


def _batch_of(dataset: Any, numbers: list[int], device: Device | None) -> list[Any]:
    while isinstance(dataset, Subset):
        numbers = [dataset.indices[i] for i in numbers]
        dataset = dataset.dataset
    made: list[Any] = dataset.batch(numbers, device)
    return made


class ErrorContext:
    """Adds to an exception of the block which batch and item it belongs to. A StopIteration, which
    would end the loop silently, becomes a RuntimeError."""

    def __init__(self, task: Task, what: Callable[[], str]) -> None:
        self.task = task
        self.what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, StopIteration):
            raise RuntimeError(f"the dataset raised {error!r} for {self.what()}") from error
        if error is not None:
            worker = get_worker_info()
            who = "" if worker is None else f" in worker {worker.id}"
            what = self.what()[:200]
            error.add_note(f"while the DataLoader made batch {self.task.number}{who}: {what}")
