"""What we know of other libraries: on which streams they work. None is imported here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treadle.runtime.dlpack import LEGACY


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """What we know of a library."""

    name: str
    # The handle of the stream that its work is on now (on CUDA device number `n`), and what keeps
    # that stream; None where that cannot be known.
    current_stream: Callable[[Any, int], tuple[int, object]] | None = None
    streams_end: bool = False  # once they are no longer referenced; others keep theirs for ever
    immutable: bool = False  # its arrays may not be written, whatever the protocol says

    def stream(self, number: int) -> tuple[int | None, object]:
        """Its current stream on a CUDA device: the handle, and what keeps it."""
        if self.current_stream is None:
            return None, None
        handle, keeper = self.current_stream(sys.modules[self.name], number)
        return handle or LEGACY, keeper


def _torch_stream(torch: Any, number: int) -> tuple[int, object]:
    stream = torch.cuda.current_stream(number)
    return stream.cuda_stream, stream


def _cupy_stream(cupy: Any, number: int) -> tuple[int, object]:
    stream = cupy.cuda.get_current_stream(number)
    return stream.ptr, stream


def _numba_stream(numba: Any, number: int) -> tuple[int, object]:
    own = getattr(numba.config, "CUDA_PER_THREAD_DEFAULT_STREAM", False)
    return (2 if own else LEGACY), None


LIBRARIES = {
    library.name: library
    for library in (
        Library("torch", _torch_stream),
        Library("cupy", _cupy_stream, streams_end=True),
        Library("numba", _numba_stream),
        # Works on streams of its own, which it makes wait when it hands an array over.
        Library("jax", immutable=True),
    )
}


def keeper_of(stream: int, number: int) -> object:
    """What keeps the stream that a consumer named by its handle, if it is its current one: a handle
    alone may be that of a stream that is gone by the time it is used."""
    for name, library in LIBRARIES.items():
        if library.streams_end and name in sys.modules:
            handle, keeper = library.stream(number)
            if handle == stream:
                return keeper
    return None


# A library, and the stream that an array of it says it is on.
Guest = tuple[Library, int | None]
