"""The protocol between the runtime and lazy arrays: the runtime does not know tensors.

An argument of a launch is an array if it has `__treadle_array__`. Memory refers to the pending
values that still have to read it (`TrackedMemory`). A higher layer computes them, through the one
object that `treadle/__init__.py` installs here.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

_FEW_READERS = 64


class Pending(Protocol):
    """A value that may still have to read memory, until it has an array of its own."""

    @property
    def array(self) -> object | None:
        """Its elements; None until they are computed."""


P = TypeVar("P", bound=Pending)


class TrackedMemory:
    """Memory that tracks the pending values which still have to read it.

    `readers` are weak references to these. `shared` counts the other libraries that have the
    memory: unless it is 0, no operation on it may be lazy.
    """

    __slots__ = ("_prune_at", "readers", "shared")

    def __init__(self, shared: int = 0) -> None:
        self.readers: list[weakref.ref[Any]] | None = None
        self.shared = shared
        self._prune_at = _FEW_READERS

    def add_reader(self, reader: weakref.ref[P]) -> None:
        """Add a pending value that reads this memory. Those that are computed or freed are pruned
        from time to time."""
        if self.readers is None:
            self.readers = [reader]
            return
        self.readers.append(reader)
        if len(self.readers) > self._prune_at:
            pending = [one for one in self.readers if (r := one()) is not None and r.array is None]
            self.readers = pending
            self._prune_at = max(_FEW_READERS, 2 * len(pending))


class UsedArrays(Protocol):
    """Arrays whose memory a recording names."""

    def prepare(self) -> None:
        """Before a replay: bring all elements back to the memory where they were, and compute
        pending values that read memory to be written."""


class LazyArrays(Protocol):
    """The implementation of lazy arrays."""

    def finish_readers(self, memory: TrackedMemory) -> None:
        """Compute the pending values that read memory which is about to be written, or lent to
        another library."""

    def compute_pending(self, device: object) -> None:
        """Compute all pending values of a device (a `runtime.devices.Device`)."""

    def carrying(self, device: object, body: str | None) -> contextlib.AbstractContextManager[None]:
        """Work within this context is recorded, to be run again: write each array from before it
        that was written to the memory that it had. `body` names a block that may also not run at
        all: arrays that it has made are not usable after it."""

    def used_arrays(
        self, device: object, touched: Iterable[object], written: Iterable[object]
    ) -> UsedArrays:
        """The arrays in the memory (`drivers.base.Buffer`s) that a recording uses, and may
        write."""


arrays: LazyArrays
_find: Callable[[], LazyArrays]


def install(find: Callable[[], LazyArrays]) -> None:
    """Set the function that finds the implementation."""
    global _find
    _find = find


def __getattr__(name: str) -> Any:
    """The implementation, which is imported at first use."""
    if name != "arrays":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _find()
    return found
