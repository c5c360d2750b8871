"""What a small device cannot do is said before anything runs, and with numbers."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.small_devices import BUFFERS, SHARED_MEMORY

THREADS = 16


@td.kernel
def nine(a, b, c, d, e, f, g, h, out):
    i = td.grid(1)
    out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i]


def test_the_same_array_again_is_not_one_more(device):
    assert BUFFERS == 8
    arrays = [td.full(3, float(k)) for k in range(9)]
    nine[1, 3](*arrays[:7], arrays[6], arrays[8])
    assert arrays[8].tolist() == [0 + 1 + 2 + 3 + 4 + 5 + 6 + 6] * 3


def test_just_enough_shared_memory_and_too_much(device):
    words = SHARED_MEMORY // 4

    def kernel_with(length):
        @td.kernel
        def reverse(out: td.Array[td.i32]):
            part = td.shared(length, td.i32)
            t = td.thread_idx.x
            part[t] = t
            part[length - 1 - t] = t
            td.sync_threads()
            out[t] = part[td.block_dim.x - 1 - t] + part[length - 1]

        return reverse

    out = td.zeros(40, dtype=td.i32)
    kernel_with(words)[1, 40](out)
    np.testing.assert_array_equal(out.numpy(), np.arange(40)[::-1])
    with pytest.raises(td.errors.LaunchError, match=rf"{SHARED_MEMORY + 4} bytes.*{SHARED_MEMORY}"):
        kernel_with(words + 1)[1, 40](out)


def test_the_largest_block_runs_in_rounds(device):
    @td.kernel
    def rotate(out: td.Array[td.i32]):
        part = td.shared(1024, td.i32)
        t = td.thread_idx.x
        part[t] = t * t
        td.sync_threads()
        out[t] = part[(t + 100) % 1024]

    out = td.zeros(1024, dtype=td.i32)
    rotate[1, 1024](out)
    np.testing.assert_array_equal(out.numpy(), ((np.arange(1024) + 100) % 1024) ** 2)


def test_the_limits_are_this_devices_own(device):
    ordinary = td.device(device.id)
    assert device.limits.max_threads_per_block == THREADS
    assert ordinary.limits.max_threads_per_block > THREADS
    x = td.zeros(3, device=ordinary)
    assert x.device is ordinary
    with pytest.raises(td.errors.LaunchError, match="is on"):
        nine[1, 3](*[x] * 8, td.zeros(3))
