"""How often this process did expensive work that it remembers: what a loop adds was not found.

A loop whose sizes change should add nothing after its first iterations; tests and the benchmarks
of whole programs compare the counts before and after.
"""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core import forks


@dataclass(frozen=True)
class Counts:
    """`plans` are graphs that were planned anew, `kernels` those that were printed, or compiled,
    or loaded from disk, `traces` runs of compiled functions that were traced, and `resized` replays
    for other sizes than those of the replay before."""

    plans: int = 0
    kernels: int = 0
    traces: int = 0
    resized: int = 0

    def __sub__(self, earlier: Counts) -> Counts:
        return Counts(
            self.plans - earlier.plans,
            self.kernels - earlier.kernels,
            self.traces - earlier.traces,
            self.resized - earlier.resized,
        )


_lock = forks.lock()
_plans = 0
_kernels = 0
_traces = 0
_resized = 0


def counts() -> Counts:
    """The counts since the process began.

    >>> import treadle as td
    >>> x = td.ones(8, device="cpu").realize()
    >>> before = counts()
    >>> for _ in range(3):
    ...     y = td.atan(td.sinh(x) - td.cosh(x) * x).realize()
    >>> (counts() - before).plans
    1
    """
    with _lock:
        return Counts(_plans, _kernels, _traces, _resized)


def count_plan() -> None:
    """A graph was planned that no recipe was found for."""
    global _plans
    with _lock:
        _plans += 1


def count_kernel() -> None:
    """A kernel was made ready for a device that did not have it."""
    global _kernels
    with _lock:
        _kernels += 1


def count_trace() -> None:
    """A compiled function was traced."""
    global _traces
    with _lock:
        _traces += 1


def count_resized() -> None:
    """A trace was replayed for other sizes."""
    global _resized
    with _lock:
        _resized += 1
