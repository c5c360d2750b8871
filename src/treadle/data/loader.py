"""`DataLoader`: batches of a dataset, made ahead by threads, in an order that can be resumed."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from treadle.data.collate import default_collate, default_convert
from treadle.data.datasets import IterableDataset
from treadle.data.draws import Draws, as_generator
from treadle.data.fetching import END, Fetch, Items, Stream
from treadle.data.samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler
from treadle.data.workers import Task, Workers, wait_for
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.generator import Generator, default_generator

_State = tuple[int, int]
_PREFETCH = 2


class DataLoader:
    """Batches of a dataset: `for batch in loader` is one epoch.

    `dataset` has items by number (`dataset[i]`, `len(dataset)`), or is an `IterableDataset`.
    `batch_size` items make a batch (None: each item by itself), the last one may be shorter
    unless `drop_last`. Their order is that of the dataset, random with `shuffle`, or comes from
    `sampler` or `batch_sampler`; random numbers come from `generator` (a `td.Generator` or a seed;
    None is the default one). `collate_fn` makes a batch of a list of items.

    `num_workers` threads make `prefetch_factor` batches each ahead of the loop; the order and the
    batches are the same for any number. (What waits for a disk or runs in NumPy gains from
    threads; what computes in Python doesn't.) `worker_init_fn(i)` is called first in each.
    `timeout` seconds are waited for a batch at most, if it is not 0. Leaving the loop stops them.

    With `device`, batches come as tensors there; workers upload them while the device computes.
    NumPy arrays and numbers go to the default device else, and tensors stay where they are.

    `state_dict()` says at any time where the loader is, within an epoch too, and
    `load_state_dict` goes on from there: the same batches come as would have come.

    `pin_memory` and `persistent_workers` are taken for PyTorch's sake: uploads go through pinned
    memory anyway, and threads start at once.

    >>> import numpy as np
    >>> import treadle as td
    >>> data = td.data.TensorDataset(np.arange(5, dtype=np.float32))
    >>> loader = td.data.DataLoader(data, batch_size=2, shuffle=True, generator=3, device="cpu")
    >>> [x.tolist() for x, in loader]
    [[1.0, 2.0], [4.0, 3.0], [0.0]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        *,
        generator: Draws = None,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        device: str | Device | None = None,
    ) -> None:
        _check(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        ahead = _PREFETCH if prefetch_factor is None else prefetch_factor
        if num_workers < 0 or timeout < 0 or ahead < 1:
            raise ValueError("num_workers and timeout are at least 0, and prefetch_factor 1")
        self.dataset = dataset
        self.num_workers = num_workers
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.prefetch_factor = ahead
        self.device = None if device is None else find_device(device)
        self.generator = as_generator(generator)
        self.is_stream = isinstance(dataset, IterableDataset)
        if batch_sampler is not None:
            batch_size = None
        if sampler is None and not self.is_stream:
            sampler = (
                RandomSampler(dataset, generator=self.generator)
                if shuffle
                else SequentialSampler(dataset)
            )
        self.sampler = sampler
        if batch_size is not None and not self.is_stream:
            assert sampler is not None
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        elif batch_size is not None and batch_size < 1:
            raise ValueError(f"a batch has at least one item, not {batch_size}")
        self.batch_size = batch_size
        self.batch_sampler = batch_sampler
        has_batches = batch_size is not None or batch_sampler is not None
        self.has_batches = has_batches
        self.collate_fn = collate_fn or (default_collate if has_batches else default_convert)
        self._epoch = 0
        self._handed_out = 0
        self._start: list[_State] | None = None  # of the generators, when the epoch began
        self._goes_on = False  # at the next iteration, instead of beginning an epoch

    @property
    def epoch(self) -> int:
        """The number of the epoch that is running, or else comes next."""
        return self._epoch

    def __len__(self) -> int:
        """The number of batches in an epoch; TypeError if the dataset or sampler has no length."""
        if not self.is_stream:
            return len(self._order())  # type: ignore[arg-type]
        count = len(self.dataset)
        size = self.batch_size or 1
        return count // size if self.drop_last else -(-count // size)

    def __iter__(self) -> Iterator[Any]:
        if not self._goes_on:
            if self._start is not None:  # the last epoch was left early
                self._epoch += 1
            self._handed_out = 0
            self._start = [one.get_state() for one in self._generators()]
            return _Epoch(self, iter(self._order()), 0)
        self._goes_on = False
        assert self._start is not None
        now = [one.get_state() for one in self._generators()]
        self._set_generators(self._start)
        order = iter(self._order())
        for _ in range(self._handed_out):
            next(order, None)
        self._set_generators(now)
        return _Epoch(self, order, self._handed_out)

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is: epoch, batches handed out, generators. `td.save` takes it."""
        return {
            "epoch": self._epoch,
            "batch": self._handed_out if self._start is not None else 0,
            "batches": self._length(),
            "start": None if self._start is None else [list(state) for state in self._start],
            "generators": [list(one.get_state()) for one in self._generators()],
        }

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        """Go on from a state: the next iteration gives the rest of its epoch.

        The generators that the order comes from are set too (the default one, where none was
        named). ValueError for the state of a loader with another number of batches.
        """
        if state["batches"] != self._length():
            raise ValueError(
                f"this loader has {self._length()} batches, and the state is that of one with "
                f"{state['batches']}: make it with the same dataset and batch_size"
            )
        if len(state["generators"]) != len(self._generators()):
            raise ValueError(
                f"this loader draws from {len(self._generators())} generators, and the state's "
                f"from {len(state['generators'])}: make it with the same sampler"
            )
        self._epoch = state["epoch"]
        self._handed_out = state["batch"]
        self._set_generators(state["generators"])
        start = state["start"]
        self._start = None if start is None else [(seed, position) for seed, position in start]
        self._goes_on = start is not None

    def _length(self) -> int | None:
        try:
            return len(self)
        except TypeError:
            return None

    def _order(self) -> Iterable[Any]:
        """What gives the numbers of the items of each batch."""
        if self.is_stream:
            return _Endless(1 if self.batch_size is None else self.batch_size)
        order = self.batch_sampler if self.batch_sampler is not None else self.sampler
        assert order is not None
        return order

    def _generators(self) -> list[Generator]:
        """The generators that the order comes from, each once."""
        found: dict[int, Generator] = {}
        samplers = (self.sampler, self.batch_sampler, getattr(self.batch_sampler, "sampler", None))
        for sampler in samplers:
            if sampler is not None and hasattr(sampler, "generator"):
                one = sampler.generator or default_generator()
                if isinstance(one, Generator):
                    found[id(one)] = one
        return list(found.values())

    def _set_generators(self, states: Iterable[Any]) -> None:
        for one, state in zip(self._generators(), states, strict=True):
            one.set_state((state[0], state[1]))

    def _took(self) -> None:
        self._handed_out += 1

    def _ended(self) -> None:
        self._epoch += 1
        self._handed_out = 0
        self._start = None


class _Endless(Sampler):
    """Batches of a stream, which ends by itself."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[int]:
        while True:
            yield self.size


class _Epoch:
    """One iteration over a loader."""

    def __init__(self, loader: DataLoader, order: Iterator[Any], skipped: int) -> None:
        self.loader = loader
        self.order = order
        self.number = skipped
        self.pending: deque[Task] = deque()
        self.fetch = _fetch(loader, skipped)
        self.workers: Workers | None = None
        self.close: Callable[[], Any] = self.fetch.close
        if loader.num_workers:
            self.workers = Workers(
                self.fetch, loader.num_workers, loader.dataset, loader.worker_init_fn
            )
            self.most_ahead = loader.num_workers * loader.prefetch_factor
            # At the end of the loop, of the iterator, or of the process, whichever comes first.
            self.close = weakref.finalize(self, self.workers.close)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        try:
            batch = self._next() if self.workers is None else self._next_of_workers(self.workers)
        except BaseException:  # Ctrl-C too
            self._leave()
            raise
        if batch is END:
            if self.order is not _OVER:
                self._leave()
                self.loader._ended()
            raise StopIteration
        self.loader._took()
        return batch

    def _leave(self) -> None:
        self.order = _OVER
        self.pending.clear()
        self.close()

    def _task(self) -> Task | None:
        indices = next(self.order, END)
        if indices is END:
            return None
        self.number += 1
        return Task(self.number - 1, indices)

    def _next(self) -> Any:
        task = self._task()
        return END if task is None else self.fetch.here(task)

    def _next_of_workers(self, workers: Workers) -> Any:
        while len(self.pending) < self.most_ahead and (task := self._task()) is not None:
            self.pending.append(task)
            workers.submit(task)
        if not self.pending:
            return END
        task = self.pending.popleft()
        wait_for(task, self.loader.timeout, workers)
        if task.error is None:
            return task.value
        try:
            raise task.error
        finally:
            del task  # which has the error, whose traceback has this frame


_OVER: Iterator[Any] = iter(())


def _fetch(loader: DataLoader, skipped: int) -> Fetch:
    options = loader.dataset, loader.has_batches, loader.collate_fn, loader.device
    if loader.is_stream:
        return Stream(loader.drop_last, skipped, loader.batch_size or 1, *options)
    return Items(*options)


def _check(
    dataset: Any,
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
) -> None:
    """ValueError for arguments that contradict each other."""
    if isinstance(dataset, IterableDataset) and (shuffle or sampler or batch_sampler):
        raise ValueError(
            "an IterableDataset has an order of its own: shuffle within it, without shuffle=True "
            "or a sampler"
        )
    if sampler is not None and shuffle:
        raise ValueError("a sampler is the order of items: leave shuffle out")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler or drop_last):
        raise ValueError(
            "a batch_sampler says which items make each batch: leave batch_size, shuffle, sampler "
            "and drop_last out"
        )
    if batch_size is None and drop_last:
        raise ValueError("without batches (batch_size=None) there is no last one to drop")
