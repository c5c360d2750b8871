"""Kernels that are recorded before their compiler is done.

A recording runs nothing, so it need not wait for code. While a function is traced, its launches
take kernels of this class where code is not there yet; the function goes on, its other kernels are
compiled at the same time, and the recording waits for all of them at its end.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.codegen.records import KernelCode
from treadle.drivers import base


class PendingKernel(base.CompiledKernel):
    """A kernel that a worker thread compiles, for streams whose `takes_pending` is true."""

    __slots__ = ("_ready", "_wait")

    is_pending = True

    def __init__(
        self, device: base.Device, code: KernelCode, wait: Callable[[], base.CompiledKernel]
    ) -> None:
        self.device, self.code, self._wait = device, code, wait
        self._ready: base.CompiledKernel | None = None

    def ready(self) -> base.CompiledKernel:
        """The compiled kernel, waited for; or the compiler's error."""
        if self._ready is None:
            self._ready = self._wait()
        return self._ready
