"""What the runtime asks of arrays that are computed later. It knows no tensors, it knows this.

An argument of a launch is an array if it has `__treadle_array__`, and memory refers to the pending
values that still have to read it (`Awaited`). How these are computed is known above: by the one
object that `treadle/__init__.py` installs here.
"""

from __future__ import annotations

import weakref
from typing import Any, Protocol, TypeVar

_FEW_READERS = 64


class Pending(Protocol):
    """A value that may still have to read memory: as long as it has no array of its own."""

    @property
    def array(self) -> object | None:
        """Its elements, once they are computed."""


P = TypeVar("P", bound=Pending)


class Awaited:
    """Memory, as far as pending values matter to it.

    `readers` refer to those that may still have to read it. `shared` counts the libraries that
    have the memory too: nothing about it may be lazy.
    """

    __slots__ = ("_prune_at", "readers", "shared")

    def __init__(self, shared: int = 0) -> None:
        self.readers: list[weakref.ref[Any]] | None = None
        self.shared = shared
        self._prune_at = _FEW_READERS

    def add_reader(self, reader: weakref.ref[P]) -> None:
        """Remember a pending value that reads this memory. Those that are computed or gone are
        forgotten now and then."""
        if self.readers is None:
            self.readers = [reader]
            return
        self.readers.append(reader)
        if len(self.readers) > self._prune_at:
            pending = [one for one in self.readers if (r := one()) is not None and r.array is None]
            self.readers = pending
            self._prune_at = max(_FEW_READERS, 2 * len(pending))


class LazyArrays(Protocol):
    """The arrays that are computed later."""

    def finish_readers(self, memory: Awaited) -> None:
        """Compute what still has to read memory that is about to be written, or given to another
        library."""

    def compute_pending(self, device: object) -> None:
        """Compute all that is pending on a device (a `runtime.devices.Device`)."""


arrays: LazyArrays


def install(lazy_arrays: LazyArrays) -> None:
    """Have these asked from here on."""
    global arrays
    arrays = lazy_arrays
