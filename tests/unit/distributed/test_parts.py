"""Which items of a dataset a rank takes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import treadle as td
from treadle.distributed import DistributedIterable, DistributedSampler


class Lines(td.data.IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("count", "size"), [(0, 2), (1, 3), (7, 1), (12, 3), (13, 4), (15, 4)])
def test_ranks_have_equally_many_items_and_batches(count, size, drop_last):
    numbered, following = [], []
    for rank in range(size):
        sampler = DistributedSampler(range(count), rank, size, drop_last=drop_last)
        sampler.set_epoch(3)
        data = td.data.TensorDataset(np.arange(count, dtype=np.int32))
        loader = td.data.DataLoader(data, batch_size=2, sampler=sampler, device="cpu")
        numbered.append([x.tolist() for (x,) in loader])
        part = DistributedIterable(Lines(count), rank, size, drop_last)
        assert list(part) == list(part)
        loader = td.data.DataLoader(part, batch_size=2, device="cpu")
        following.append([x.tolist() for x in loader])
    for found in (numbered, following):
        lengths = {tuple(len(batch) for batch in batches) for batches in found}
        assert len(lengths) == 1
        items = Counter(item for batches in found for batch in batches for item in batch)
        total = count // size if drop_last else -(-count // size)
        assert sum(items.values()) == total * size
        if drop_last:
            assert set(items.values()) <= {1}
        else:
            assert items.keys() == {*range(count)}


def test_ranks_that_are_not_there():
    with pytest.raises(ValueError, match="rank 2 of 2: ranks count from 0"):
        DistributedIterable("abc", 2, 2)
