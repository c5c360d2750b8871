"""The pool of a device's memory."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import treadle as td
from treadle.runtime.memory import size_class


def test_classes_waste_at_most_an_eighth():
    for size in [*range(1, 5000), *(10**n + 1 for n in range(4, 12))]:
        rounded = size_class(size)
        assert rounded >= size
        assert rounded % 4 == 0
        assert rounded <= max(256, size + size // 8 + 32)
        assert size_class(rounded) == rounded


def test_blocks_suit_the_device():
    from treadle.core.dim3 import Dim3
    from treadle.runtime.launch import suitable_block

    for device in td.devices():
        most = device.limits.max_threads_per_block
        for threads in [(1,), (1000,), (7, 3), (1, 500), (64, 64, 64), (3, 1, 900)]:
            block = suitable_block(Dim3.of(threads), device)
            assert 1 <= block.count <= min(most, 1024)


def test_trim_gives_memory_back():
    device = td.device("cpu")
    x = td.empty(1 << 20, device=device)
    del x
    gc.collect()
    assert device.memory_stats()["cached"] >= 4 << 20
    before = device.memory_stats()["driver"]["allocated"]
    device.pool.trim()
    assert device.memory_stats()["cached"] == 0
    assert device.memory_stats()["driver"]["allocated"] <= before - (4 << 20)


def test_many_arrays_that_go_at_once_are_freed_one_by_one(monkeypatch):
    """Though the pool keeps no more: a graph of a large network lets go of hundreds."""
    device = td.device("cpu")
    device.pool.trim()
    monkeypatch.setattr(device.pool, "_kept_limit", 1)
    before = device.memory_stats()["driver"]["buffers"]
    many = [td.empty(64, device=device) for _ in range(2000)]
    del many
    gc.collect()
    device.pool.collect()
    assert device.memory_stats()["cached"] == 0
    assert device.memory_stats()["driver"]["buffers"] <= before


def test_a_fuller_machine_gets_another_try(monkeypatch):
    """Out of memory while the pool holds some: the pool lets go, and the allocation succeeds."""
    device = td.device("cpu")
    x = td.empty(1 << 20, device=device)
    del x
    gc.collect()
    plain = device.handle.allocate
    refused = []

    def allocate(size):
        if device.memory_stats()["cached"]:
            refused.append(size)
            raise td.errors.OutOfMemory("full")
        return plain(size)

    monkeypatch.setattr(device.handle, "allocate", allocate)
    y = td.empty(3 << 20, device=device)
    assert refused
    assert y.shape == (3 << 20,)


def test_the_error_of_a_full_machine_shows_no_other(monkeypatch):
    device = td.device("cpu")
    x = td.empty(1 << 20, device=device)
    del x
    gc.collect()
    assert device.memory_stats()["cached"]

    def allocate(size):
        raise td.errors.OutOfMemory(f"full: {size}")

    monkeypatch.setattr(device.handle, "allocate", allocate)
    with pytest.raises(td.errors.OutOfMemory, match="full") as caught:
        td.empty(5 << 20, device=device)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("count", [0, 1, 5])
def test_an_array_of_nothing_takes_little(count):
    device = td.device("cpu")
    gc.collect()
    before = device.memory_stats()["used"]
    arrays = [td.zeros((0, 7), device=device) for _ in range(count)]
    assert device.memory_stats()["used"] <= before + 256 * count
    assert all(a.numpy().shape == (0, 7) for a in arrays)
    assert np.asarray(td.zeros((3, 0), device=device)).size == 0
