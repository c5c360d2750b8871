"""What is tuned, as plain data: problems, candidates, families, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from treadle.runtime.devices import Device

_CLOSE = 2e-2  # of the largest element: how far results that are rounded otherwise may differ


@dataclass(frozen=True, slots=True)
class Problem:
    """What a choice is made for: the family, and the facts that the choice depends on. Sizes are
    among these as powers of two (`power_of`), so that a result serves neighbouring sizes. `edition`
    counts changes of the family's kernels after which earlier results say nothing."""

    family: str
    edition: int
    facts: tuple[int | str, ...]

    @property
    def name(self) -> str:
        """As text, in the table of results that is shipped.

        >>> Problem("products", 1, ("f16", "fragments", 0, 12, 12, 10)).name
        'products 1 f16 fragments 0 12 12 10'
        """
        return " ".join(map(str, (self.family, self.edition, *self.facts)))


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way of computing it: the kind of kernel, and its numbers (a tile's, as a rule)."""

    kind: str
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kind} {'x'.join(map(str, self.numbers))}"


def power_of(size: int) -> int:
    """The power of two that is nearest to a size, as its logarithm.

    >>> [power_of(size) for size in (0, 1, 5, 6, 1000, 1024, 1500)]
    [0, 0, 2, 3, 10, 10, 11]
    """
    size = max(size, 1)
    low = size.bit_length() - 1
    return low + (size * size > 1 << (2 * low + 1))


def are_close(reference: np.ndarray[Any, Any], result: np.ndarray[Any, Any]) -> bool:
    """Whether results agree that may be rounded otherwise."""
    one, other = (array.astype(np.float64) for array in (reference, result))
    most = max(float(np.abs(one).max(initial=0.0)), 1e-30)
    return bool(np.all(np.abs(one - other) <= _CLOSE * most))  # false for NaN


@dataclass(frozen=True)
class Bench:
    """A problem with its arrays, ready to be computed by any of its candidates.

    `first` is what is chosen without results; its result is what others are compared with. `near`
    gives those that differ from a candidate in one thing, to be tried around the best.
    `run(candidate, number)` launches it once, on one of several `sets` of arrays, so that a cache
    does not have what memory would have to give. `begin` has a candidate's kernels compiled by
    other threads. `clear` overwrites the result of set 0, `result` reads it.
    """

    first: Candidate
    candidates: Sequence[Candidate]
    near: Callable[[Candidate], Sequence[Candidate]]
    run: Callable[[Candidate, int], None]
    begin: Callable[[Candidate], None]
    clear: Callable[[], None]
    result: Callable[[], np.ndarray[Any, Any]]
    sets: int = 1
    agrees: Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], bool] = np.array_equal


@dataclass(frozen=True)
class Workload:
    """A problem of certain sizes: `sizes` is what the family's planner has of it."""

    problem: Problem
    label: str
    sizes: Any
    operations: float


def _name_of(problem: Problem) -> str:
    return problem.name


@dataclass(frozen=True)
class Family:
    """Problems of a kind. `workloads` are those that a device is tuned for, none where nothing is
    to be chosen; `workload` is that of any sizes, as planners meet them, None for those that are
    not tuned; `prepare` makes its arrays. `label` says in words what a problem is that came up in
    a program."""

    name: str
    title: str
    workloads: Callable[[Device], Sequence[Workload]]
    workload: Callable[[Device, Any], Workload | None]
    prepare: Callable[[Device, Workload], Bench]
    label: Callable[[Problem], str] = _name_of


@dataclass(frozen=True, slots=True)
class Result:
    """What was found for a problem: the fastest candidate, its seconds and those of the first
    guess, how many of the bench's candidates were measured, and whether those were all."""

    chosen: Candidate
    seconds: float
    first_seconds: float
    tried: int
    complete: bool
