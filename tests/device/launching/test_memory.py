"""Memory: pools, limits, what happens when there is not enough, and after a device is closed."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import treadle as td


def test_memory_is_counted_and_reused(device):
    gc.collect()
    before = device.memory_stats()["used"]
    x = td.empty(1 << 20)
    assert device.memory_stats()["used"] == before + (4 << 20)
    del x
    gc.collect()
    assert device.memory_stats()["used"] == before
    allocated = device.memory_stats()["driver"]["allocated"]
    for _ in range(20):
        td.empty(1 << 20)
    assert device.memory_stats()["driver"]["allocated"] <= allocated


def test_an_array_that_cannot_be(device):
    with pytest.raises(td.errors.OutOfMemory, match=r"asked for|cannot allocate"):
        td.empty((1 << 44,), dtype=td.u8)
    assert isinstance(td.errors.OutOfMemory("x"), MemoryError)
    assert td.ones(4).tolist() == [1.0] * 4


def test_a_closed_device_says_so_and_opens_again(device):
    x = td.ones(4).realize()
    device.close()
    with pytest.raises(td.errors.DeviceLost):
        x.numpy()
    assert td.ones(4, device=device).tolist() == [1.0] * 4


def test_uninitialized_memory_is_not_another_arrays(device):
    x = td.full(100, 5.0)
    y = td.empty(100)
    y[...] = np.zeros(100, np.float32)
    assert x.tolist() == [5.0] * 100
