"""Datasets: treadle's, with items of PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from treadle.data import datasets as inner
from treadle.tensor.searching import take
from treadle.tensor.tensor import from_numpy
from treadle.torch.tensors import Tensor, wrap


class Dataset(inner.Dataset):
    """Items by number: a subclass has `__getitem__` and `__len__`."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(inner.IterableDataset, Dataset):
    """Items in an order of their own: a subclass has `__iter__`, which begins anew at each call."""

    def __add__(self, other: Any) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Tensors of one length side by side: item i is the tuple of their rows i.

    >>> import treadle.torch as torch
    >>> from treadle.torch.utils.data import TensorDataset
    >>> TensorDataset(torch.eye(2), torch.arange(2))[1]
    (tensor([0., 1.]), tensor(1))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if len({each.shape[0] for each in tensors}) > 1:  # type: ignore[attr-defined]
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple([each[index] for each in self.tensors])  # type: ignore[index]

    takes_rows = __getitem__

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])  # type: ignore[attr-defined]

    def batch(self, indices: Sequence[int], device: Any = None) -> list[Tensor]:
        """The rows of these numbers, of each tensor by one operation."""
        rows = np.asarray(indices, dtype=np.int32 if len(self) < 2**31 else np.int64)
        if rows.size and not -len(self) <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"items {rows.min()} to {rows.max()} of a dataset of {len(self)}")
        inners = [each._inner for each in self.tensors]
        return [
            wrap(take(each, from_numpy(rows, each.device), axis=0).realize()) for each in inners
        ]


class StackDataset(Dataset):
    """Datasets side by side: item i is the tuple of their items i, or a dict of those by names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset takes datasets, or datasets by names")
        self.datasets: Any = args or kwargs
        listed = args or tuple(kwargs.values())
        if len({len(each) for each in listed}) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length = len(listed[0])

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: each[index] for name, each in self.datasets.items()}
        return tuple(each[index] for each in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(inner.ConcatDataset, Dataset):
    """The items of several datasets, one after the other."""

    @property
    def cummulative_sizes(self) -> list[int]:
        """`cumulative_sizes`, as it was spelled once."""
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """The items of several datasets with orders of their own, one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for each in self.datasets:
            yield from each

    def __len__(self) -> int:
        return sum(len(each) for each in self.datasets)


class Subset(inner.Subset, Dataset):
    """The items of a dataset that have these numbers, in this order."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return super().__getitem__(index)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """A dataset in random parts of these lengths, or of these fractions if they add up to 1.
    ValueError for lengths that do not add up to the dataset's."""
    parts = inner.random_split(dataset, lengths, getattr(generator, "_inner", generator))
    return [Subset(each.dataset, each.indices) for each in parts]
