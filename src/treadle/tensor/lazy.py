"""Tensors, as the runtime knows them: as arrays that are computed later."""

from __future__ import annotations

from treadle.graph.realize import finish_readers
from treadle.runtime.lazy import Awaited
from treadle.tensor.cells import compute_pending


class LazyTensors:
    """What `runtime.lazy.LazyArrays` asks for."""

    def finish_readers(self, memory: Awaited) -> None:
        """Compute what still has to read memory."""
        finish_readers(memory)

    def compute_pending(self, device: object) -> None:
        """Compute all tensors that are pending on a device."""
        compute_pending(device)
