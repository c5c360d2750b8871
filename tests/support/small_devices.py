"""The webgpu device with lower limits, such as phones have."""

from __future__ import annotations

from functools import cache

import treadle as td
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.drivers.webgpu_native import WebgpuBackend
from treadle.runtime.devices import Device

SHARED_MEMORY = 16 << 10
BUFFERS = 8


@cache
def small_device(threads: int) -> td.Device:
    """The webgpu device, opened for workgroups of at most `threads` invocations."""
    limits = Limits(
        max_threads_per_block=threads,
        max_block=Dim3(threads, threads, min(threads, 64)),
        max_shared_memory=SHARED_MEMORY,
        max_buffers_per_kernel=BUFFERS,
    )
    device = Device(WebgpuBackend(), td.device("webgpu").info, limits=limits)
    assert device.limits.max_threads_per_block == threads
    assert device.limits.max_shared_memory == SHARED_MEMORY
    assert device.limits.max_buffers_per_kernel == BUFFERS
    return device
