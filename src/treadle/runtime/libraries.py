"""The libraries that arrays are exchanged with, and the streams that they work on. None is imported
here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treadle.runtime.dlpack import LEGACY


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """A library that arrays are exchanged with."""

    name: str
    # The handle of its current stream (on CUDA device number `n`), and that stream's owner; None
    # where it cannot be found out.
    current_stream: Callable[[Any, int], tuple[int, object]] | None = None
    streams_end: bool = False  # streams are destroyed once unreferenced; other libraries keep them
    immutable: bool = False  # its arrays are read-only, even if the protocol does not say so

    def stream(self, number: int) -> tuple[int | None, object]:
        """Its current stream on a CUDA device: the handle, and the stream's owner."""
        if self.current_stream is None:
            return None, None
        handle, owner = self.current_stream(sys.modules[self.name], number)
        return handle or LEGACY, owner


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
        # It works on streams of its own, which it synchronizes when it exports an array.
        Library("jax", immutable=True),
    )
}


def owner_of_stream(stream: int, number: int) -> object:
    """The owner of the stream with this handle, if it is a library's current one. The handle alone
    would not keep the stream from being destroyed before it is used."""
    for name, library in LIBRARIES.items():
        if library.streams_end and name in sys.modules:
            handle, owner = library.stream(number)
            if handle == stream:
                return owner
    return None


# A library, and the stream that an array of it names.
ForeignStream = tuple[Library, int | None]
