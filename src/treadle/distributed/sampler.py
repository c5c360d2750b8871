"""Which items of a dataset a rank takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from typing import Any

import numpy as np

from treadle.data.datasets import IterableDataset
from treadle.data.samplers import Sampler
from treadle.distributed.group import current


class DistributedSampler(Sampler):
    """This rank's part of a dataset: of an order that is the same on all ranks, every `size`-th
    item from `rank` on. For `td.data.DataLoader(dataset, sampler=…)`.

    With `shuffle` the order is random, another one for each epoch that `set_epoch` names. All ranks
    take equally many items: without `drop_last` the first items come again at the end, with it the
    last ones are left out. `rank` and `size` are those of `td.distributed` if they are None.

    >>> import treadle as td
    >>> sampler = td.distributed.DistributedSampler("abcde", rank=1, size=2, shuffle=False)
    >>> list(sampler), len(sampler)
    ([1, 3, 0], 3)
    """

    def __init__(
        self,
        dataset: Sized,
        rank: int | None = None,
        size: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.dataset = dataset
        self.rank = current().rank if rank is None else rank
        self.size = current().size if size is None else size
        if not 0 <= self.rank < self.size:
            raise ValueError(f"rank {self.rank} of {self.size}: ranks count from 0")
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch; on all ranks, before it begins."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            order = np.random.default_rng((self.seed, self.epoch)).permutation(count)
        else:
            order = np.arange(count)
        whole = len(self) * self.size
        if count:
            order = np.resize(order, whole)  # repeats it from the beginning, or cuts it
        return iter(order[self.rank : whole : self.size].tolist())

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.size if self.drop_last else -(-count // self.size)


class DistributedIterable(IterableDataset):
    """This rank's part of a dataset whose items come one after the other (an `IterableDataset`, a
    file's lines): of each `size` items one. Each rank goes through all of them.

    All ranks get equally many: where the last round is incomplete, it is left out with `drop_last`;
    else ranks for which there is none take one of its items again. `rank` and `size` are those of
    `td.distributed` if they are None.

    >>> import treadle as td
    >>> list(td.distributed.DistributedIterable("abcde", rank=1, size=2))
    ['b', 'd', 'e']
    """

    def __init__(
        self,
        dataset: Iterable[Any],
        rank: int | None = None,
        size: int | None = None,
        drop_last: bool = False,
    ) -> None:
        self.dataset = dataset
        self.rank = current().rank if rank is None else rank
        self.size = current().size if size is None else size
        if not 0 <= self.rank < self.size:
            raise ValueError(f"rank {self.rank} of {self.size}: ranks count from 0")
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[Any]:
        items = iter(self.dataset)
        while found := [*islice(items, self.size)]:
            if len(found) == self.size or not self.drop_last:
                yield found[self.rank % len(found)]
