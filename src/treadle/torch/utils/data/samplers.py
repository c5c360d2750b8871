"""Samplers: treadle's, with PyTorch's generators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any

from treadle.data import samplers as inner


class Sampler(inner.Sampler):
    """Numbers of items, in the order in which they are taken: a subclass has `__iter__`, and
    `__len__` where the number is known."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


class SequentialSampler(inner.SequentialSampler, Sampler):
    """All items in order."""


class RandomSampler(inner.RandomSampler, Sampler):
    """All items in random order, or `num_samples` of them; with `replacement` any item may come
    again each time."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        super().__init__(data_source, replacement, num_samples, _inner(generator))


class SubsetRandomSampler(inner.SubsetRandomSampler, Sampler):
    """The items of these numbers, in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        super().__init__(indices, _inner(generator))


class WeightedRandomSampler(inner.WeightedRandomSampler, Sampler):
    """`num_samples` items, each with a probability in proportion to its weight."""

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        super().__init__(weights, num_samples, replacement, _inner(generator))


class BatchSampler(inner.BatchSampler, Sampler):
    """The numbers of a sampler, `batch_size` at a time."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        super().__init__(sampler, batch_size, drop_last)


def _inner(generator: Any) -> Any:
    return getattr(generator, "_inner", generator)
