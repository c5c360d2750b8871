"""What a device could do at best: moving bytes, and multiplying and adding.

A computation takes at least as long as its bytes and its operations do; the larger of the two is
its roofline (Williams, Waterman and Patterson, 2009). Both rates are measured on the device.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

import treadle as td
from benchmarks.harness import device_seconds, wall_seconds

_BYTES = 256 << 20
_CHAINS = 8  # independent sums of a thread, so that none waits for the one before
_TURNS = 2048
_EDGE = 8192  # of the product whose rate is that of tensor cores


class Ceiling(NamedTuple):
    """Bytes and float32 operations in a second; operations of half precision where a vendor's
    library multiplies on tensor cores, else as many as of float32."""

    bytes: float
    operations: float
    half_operations: float

    def seconds(self, moved: float, operations: float, halves: bool) -> float:
        """The least time for so much."""
        rate = self.half_operations if halves else self.operations
        return max(moved / self.bytes, operations / rate)


@td.kernel(checked=False)
def multiply_and_add(out: td.Array[td.f32], factor: td.f32):
    """Chains of fused multiplications and additions in registers."""
    i = td.grid(1)
    sums = td.local(_CHAINS, td.f32)
    for k in td.static_range(_CHAINS):
        sums[k] = td.f32(i + k)
    for _ in range(_TURNS):
        for k in td.static_range(_CHAINS):
            sums[k] = td.fma(sums[k], factor, 1.0)
    total = td.f32(0.0)
    for k in td.static_range(_CHAINS):
        total += sums[k]
    out[i] = total


@functools.cache
def ceiling(device: td.Device) -> Ceiling:
    """A device's rates."""
    source = td.ones(_BYTES // 4, device=device).realize()
    threads = (1 << 20) if device.kind == "discrete" else (1 << 14)
    out = td.zeros(threads, device=device).realize()
    runs = [
        lambda: source.copied().realize(),
        lambda: multiply_and_add[threads // 256, 256](out, 0.5),
    ]
    if device.kind == "discrete":
        copying, adding = device_seconds(device, *runs)
    else:
        copying, adding = wall_seconds(device.synchronize, *runs)
    operations = 2 * _CHAINS * _TURNS * threads / adding
    return Ceiling(2 * _BYTES / copying, operations, _halves(device) or operations)


def _halves(device: td.Device) -> float | None:
    if device.backend != "cuda" or device.handle.blas is None:
        return None
    x = td.asarray(np.ones((_EDGE, _EDGE), np.float16), device=device).realize()
    (took,) = device_seconds(device, lambda: (x @ x).realize())
    return 2 * _EDGE**3 / took
