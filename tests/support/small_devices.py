"""WebGPU devices with lower limits, such as phones have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import treadle as td
from tests.support.dawn import dawn_device
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.drivers.webgpu_native import WebgpuBackend, dawn_backend
from treadle.runtime.devices import Device

_FOUND: dict[str, tuple[Callable[[], td.Device], Callable[[], WebgpuBackend]]] = {
    "webgpu": (lambda: td.device("webgpu"), WebgpuBackend),
    "dawn": (dawn_device, dawn_backend),
}
SHARED_MEMORY = 16 << 10
BUFFERS = 8


@cache
def small_device(threads: int, provider: str = "webgpu") -> td.Device:
    """A provider's device, opened for workgroups of at most `threads` invocations."""
    ordinary, backend = _FOUND[provider]
    limits = Limits(
        max_threads_per_block=threads,
        max_block=Dim3(threads, threads, min(threads, 64)),
        max_shared_memory=SHARED_MEMORY,
        max_buffers_per_kernel=BUFFERS,
    )
    device = Device(backend(), ordinary().info, limits=limits)
    assert device.limits.max_threads_per_block == threads
    assert device.limits.max_shared_memory == SHARED_MEMORY
    assert device.limits.max_buffers_per_kernel == BUFFERS
    return device


@cache
def windowed_device(binding: int, provider: str = "webgpu") -> td.Device:
    """A provider's device, whose kernels see at most `binding` bytes of a buffer, of which it can
    have much larger ones."""
    ordinary, backend = _FOUND[provider]
    info = ordinary().info
    limits = replace(info.limits, max_binding_size=binding)
    device = Device(backend(), info, limits=limits)
    assert device.limits.max_binding_size == binding < device.limits.max_buffer_size
    return device
