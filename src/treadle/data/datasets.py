"""Datasets: what has items by number, what gives them one after the other, and parts of those."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from treadle.core.errors import ShapeError
from treadle.data.draws import Draws, drawn_from
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.searching import take
from treadle.tensor.tensor import Tensor, from_numpy


class Dataset:
    """Items by number, from 0 to `len(dataset) - 1`: a subclass has `__getitem__` and `__len__`.

    Any object with these two will do. One that also has `__getitems__(indices)`, which gives a list
    of items, is asked for a whole batch at once.
    """

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a __getitem__(index)")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Items in an order of their own: a subclass has `__iter__`, which begins anew at each call."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} needs an __iter__()")

    def __getitem__(self, index: int) -> Any:
        raise TypeError(f"{type(self).__name__} has no items by number: iterate over it")


class TensorDataset(Dataset):
    """Arrays of one length side by side: item i is the tuple of their rows i.

    They are NumPy arrays or tensors. A loader takes the rows of a batch by one indexing operation.

    >>> import numpy as np
    >>> import treadle as td
    >>> data = td.data.TensorDataset(np.eye(3, dtype=np.float32), np.arange(3, dtype=np.int32))
    >>> data[1]
    (array([0., 1., 0.], dtype=float32), np.int32(1))
    """

    def __init__(self, *tensors: Any) -> None:
        if not tensors:
            raise ValueError("TensorDataset needs at least one array")
        arrays = [one if isinstance(one, Tensor) else np.asarray(one) for one in tensors]
        if any(array.ndim == 0 for array in arrays) or len({len(array) for array in arrays}) > 1:
            shapes = ", ".join(str(array.shape) for array in arrays)
            raise ShapeError(f"arrays side by side need first axes of one length, not {shapes}")
        self.tensors = tuple(arrays)

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple([array[index] for array in self.tensors])

    takes_rows = __getitem__  # a subclass with another `__getitem__` has no `batch` of its items

    def __len__(self) -> int:
        return len(self.tensors[0])

    def batch(self, indices: Sequence[int], device: str | Device | None = None) -> list[Tensor]:
        """The rows of these numbers as tensors, as `default_collate` makes them of the items."""
        rows = np.asarray(indices, dtype=np.int32 if len(self) < 2**31 else np.int64)
        if rows.size and not -len(self) <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"items {rows.min()} to {rows.max()} of a dataset of {len(self)}")
        where = find_device(device)
        return [
            from_numpy(array[rows], where)
            if isinstance(array, np.ndarray)
            else take(array, from_numpy(rows, array.device), axis=0)
            for array in self.tensors
        ]


class ConcatDataset(Dataset):
    """The items of several datasets, one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset needs at least one dataset")
        if any(isinstance(one, IterableDataset) for one in self.datasets):
            raise TypeError("ConcatDataset numbers items, which an IterableDataset does not have")
        self.cumulative_sizes = list(accumulate(len(one) for one in self.datasets))

    def __getitem__(self, index: int) -> Any:
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"item {index} of a dataset of {len(self)}")
        which = bisect_right(self.cumulative_sizes, number)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][number - before]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class Subset(Dataset):
    """The items of a dataset that have these numbers, in this order."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Draws = None) -> list[Subset]:
    """A dataset in random parts of these lengths, or of these fractions if they add up to 1.

    What fractions leave over goes to the first parts, an item each. ValueError for lengths that do
    not add up to the dataset's.

    >>> import treadle as td
    >>> training, test = td.data.random_split(range(10), [0.75, 0.25], td.Generator(1))
    >>> len(training), len(test), sorted([*training, *test]) == list(range(10))
    (8, 2, True)
    """
    total = len(dataset)
    if math.isclose(math.fsum(lengths), 1) and all(0 <= part <= 1 for part in lengths):
        counts = [math.floor(total * part) for part in lengths]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
    else:
        counts = [int(length) for length in lengths]
    if sum(counts) != total or min(counts, default=0) < 0:
        raise ValueError(
            f"{list(lengths)} are not lengths of parts of {total} items: they add up to {total}, "
            "or are fractions that add up to 1"
        )
    order = drawn_from(generator).permutation(total).tolist()
    ends = list(accumulate(counts))
    parts = zip([0, *ends], ends, strict=False)
    return [Subset(dataset, order[start:end]) for start, end in parts]
