"""Samplers: in which order the items of a dataset are taken, and which make a batch.

A sampler draws all random numbers of an epoch when its iteration begins, so that a loader can
repeat the order of an epoch from the state that the generator had then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from treadle.data.draws import Draws, as_generator, drawn_from


class Sampler:
    """Numbers of items, in the order in which they are taken: a subclass has `__iter__`, and
    `__len__` where the number is known."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} needs an __iter__()")


class SequentialSampler(Sampler):
    """All items in order.

    >>> import treadle as td
    >>> list(td.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All items in random order, or `num_samples` of them; with `replacement` any item may come
    again each time. `generator` is a `td.Generator` or a seed; None is the default generator.

    >>> import treadle as td
    >>> list(td.data.RandomSampler("abcde", generator=td.Generator(0)))
    [0, 2, 1, 4, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Draws = None,
    ) -> None:
        if num_samples is not None and num_samples < 0:
            raise ValueError(f"num_samples counts items: {num_samples}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = as_generator(generator)

    @property
    def num_samples(self) -> int:
        """How many items an epoch has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, count = len(self.data_source), self.num_samples
        draw = drawn_from(self.generator)
        if not size:
            return iter(())
        if self.replacement:
            return iter(draw.integers(count, size).tolist())
        rounds = [draw.permutation(size) for _ in range(-(-count // size))]
        return iter([i for one in rounds for i in one.tolist()][:count])

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The items of these numbers, in random order."""

    def __init__(self, indices: Sequence[int], generator: Draws = None) -> None:
        self.indices = indices
        self.generator = as_generator(generator)

    def __iter__(self) -> Iterator[int]:
        order = drawn_from(self.generator).permutation(len(self.indices))
        return iter([self.indices[i] for i in order.tolist()])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """`num_samples` items, each with a probability in proportion to its weight.

    Without `replacement` no item comes twice: the items with the largest log(u) / weight are taken
    (Efraimidis and Spirakis, 2006).
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Draws = None,
    ) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        weights_are_fine = self.weights.ndim == 1 and bool(
            np.all(np.isfinite(self.weights) & (self.weights >= 0))
        )
        if not weights_are_fine or not self.weights.sum() > 0:
            raise ValueError("weights are a list of finite numbers, none negative and not all 0")
        if num_samples <= 0:
            raise ValueError(f"num_samples counts items: {num_samples}")
        if not replacement and num_samples > np.count_nonzero(self.weights):
            raise ValueError(
                f"{num_samples} different items are more than the "
                f"{np.count_nonzero(self.weights)} that have a weight: set replacement=True"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = as_generator(generator)

    def __iter__(self) -> Iterator[int]:
        draw = drawn_from(self.generator)
        if self.replacement:
            ends = np.cumsum(self.weights)
            picked = np.searchsorted(ends, draw.uniform(self.num_samples) * ends[-1], side="right")
            last = int(np.flatnonzero(self.weights)[-1])
            return iter(np.minimum(picked, last).tolist())
        with np.errstate(divide="ignore"):
            keys = np.log(1.0 - draw.uniform(self.weights.size)) / self.weights
        keys[self.weights == 0] = -np.inf
        return iter(np.argsort(-keys, kind="stable")[: self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """The numbers that another sampler gives, in lists of `batch_size`; the last one may be
    shorter, or is left out with `drop_last`.

    >>> import treadle as td
    >>> list(td.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        if isinstance(batch_size, bool) or batch_size < 1:
            raise ValueError(f"a batch has at least one item, not {batch_size}")
        self.sampler = sampler
        self.batch_size = int(batch_size)
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        return self._batches(iter(self.sampler))  # begun now: it draws

    def _batches(self, numbers: Iterator[Any]) -> Iterator[list[Any]]:
        batch: list[Any] = []
        for number in numbers:
            batch.append(number)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
