"""Memory: what is counted, what is copied, and the arithmetic of pinned staging."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tests.support.fake_cuda_driver import FakeCard, FakeDriver
from tests.unit.drivers.cuda.conftest import open_device
from treadle.core.errors import DeviceLost, LaunchError, OutOfMemory
from treadle.drivers.cuda.staging import (
    CHUNK,
    KEPT_CHUNKS,
    RING_SEGMENTS,
    SEGMENT,
    SLOT,
    SMALL_WRITE,
    Ring,
)

SIZES = [1, 3, 4, 4097, SLOT, SLOT + 1, SMALL_WRITE, SMALL_WRITE + 1, CHUNK + 5, 4 * CHUNK + 1]


@pytest.mark.parametrize("size", SIZES)
def test_round_trip(device, rng, size):
    x, stream = device.allocate(size + 7), device.default_stream
    data = rng.bytes(size)
    stream.write(x, 7, memoryview(data))
    back = bytearray(size)
    stream.read(x, 7, memoryview(back))
    assert back == data
    later = bytearray(size)
    asyncio.run(stream.read_async(x, 7, memoryview(later)))
    assert later == data


def test_chunks_that_the_card_is_done_with_are_used_again(device, fake):
    """Pinning further ones takes longer than a copy."""
    x, stream = device.allocate(CHUNK), device.default_stream

    def pinned_by(writes):
        before = len(fake.named("cuMemHostAlloc"))
        for _ in range(writes):
            stream.write(x, 0, memoryview(bytes(SMALL_WRITE + 1)))
        return len(fake.named("cuMemHostAlloc")) - before

    assert pinned_by(5) == 1
    fake.failures["cuEventQuery"] = 600  # not ready: the host goes on while the card copies
    assert pinned_by(KEPT_CHUNKS + 2) == KEPT_CHUNKS - 1
    assert pinned_by(3) == 0


def test_many_writes_go_round_the_ring(device, fake):
    x, stream = device.allocate(1 << 20), device.default_stream
    expected = bytearray(1 << 20)
    data = np.zeros(50_001, np.uint8)
    for i in range(60):
        data[:] = i
        stream.write(x, i, memoryview(data))
        expected[i : i + 50_001] = bytes([i]) * 50_001
    back = bytearray(1 << 20)
    stream.read(x, 0, memoryview(back))
    assert back[:60_000] == expected[:60_000]
    # What comes round to a segment again waits for the card to be done with it.
    turns = (60 - 1) // (SEGMENT // 50_016)
    others = 2  # opening, and reading
    assert len(fake.named("cuEventSynchronize")) == others + turns - (RING_SEGMENTS - 1)


def test_a_ring_never_splits_and_never_overlaps(rng):
    ring = Ring(3, 1000)
    held: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: []}
    for size in rng.integers(1, 1001, 500).tolist():
        place, turned = ring.reserve(size)
        segment = place // 1000
        assert segment == ring.segment
        assert place + size <= (segment + 1) * 1000
        if turned:
            held[segment] = []
        assert all(place >= end or place + size <= start for start, end in held[segment])
        held[segment].append((place, place + size))


def test_copies_and_zeros(device, rng):
    x, y, stream = device.allocate(100), device.allocate(100), device.default_stream
    data = bytearray(rng.bytes(100))
    stream.write(x, 0, memoryview(data))
    stream.write(y, 0, memoryview(data))
    stream.copy(x, 3, y, 50, 21)
    stream.fill_zero(y, 8, 12)
    stream.fill_zero(y, 41, 3)
    data[50:71], data[8:20], data[41:44] = data[3:24], bytes(12), bytes(3)
    back = bytearray(100)
    stream.read(y, 0, memoryview(back))
    assert back == data
    for nothing in (
        lambda: stream.copy(x, 0, y, 0, 0), lambda: stream.fill_zero(x, 100, 0),
        lambda: stream.write(x, 100, memoryview(b"")),
        lambda: stream.read(x, 100, memoryview(bytearray())),
    ):  # fmt: skip
        nothing()
    for outside in (
        lambda: stream.copy(x, 90, y, 0, 11), lambda: stream.copy(x, 0, y, 90, 11),
        lambda: stream.fill_zero(x, -1, 2), lambda: stream.write(x, 99, memoryview(b"ab")),
        lambda: stream.read(x, 99, memoryview(bytearray(2))),
        lambda: stream.read(x, 0, memoryview(bytearray(1000_000))),
    ):  # fmt: skip
        with pytest.raises(LaunchError, match="within a buffer of 100 bytes"):
            outside()


@pytest.mark.parametrize("pools", [True, False])
def test_out_of_memory_has_numbers(install, pools):
    install(FakeDriver(cards=[FakeCard(memory=10_000, pools=pools)]))
    device = open_device()
    kept = device.allocate(6001)
    with pytest.raises(OutOfMemory, match=r"5,000 bytes: 6,004 bytes .* 1 buffers, and 3,996"):
        device.allocate(5000)
    device.free(kept)
    device.free(kept)
    stats = device.memory_stats()
    assert (stats["allocated"], stats["peak"], stats["buffers"]) == (0, 6004, 0)
    assert stats["free"] == stats["total"] == 10_000
    device.allocate(10_000)
    device.close()


def test_freed_memory_has_no_address(device):
    x = device.allocate(4)
    device.free(x)
    with pytest.raises(DeviceLost, match="freed"):
        x.address()
    with pytest.raises(LaunchError, match="freed"):
        device.default_stream.fill_zero(x, 0, 4)


def test_borrowed_memory_keeps_its_owner_and_is_not_counted(device):
    owner = np.arange(10, dtype=np.uint8)
    x = device.borrow_address(owner.ctypes.data, 10, owner)
    back = bytearray(10)
    device.default_stream.read(x, 0, memoryview(back))
    assert back == bytes(range(10))
    assert device.memory_stats()["buffers"] == 0
    assert device.holder_of(x.address()) == "cuda:0"
    assert x.owner is owner


def test_copies_between_cards(install, rng):
    fake = install(FakeDriver(cards=[FakeCard(), FakeCard()]))
    first, second = open_device(0), open_device(1)
    x, y = first.allocate(100), second.allocate(100)
    data = rng.bytes(100)
    first.default_stream.write(x, 0, memoryview(data))
    fake.calls.clear()
    assert second.copy_from(x, 1, y, 2, 50)
    back = bytearray(50)
    second.default_stream.read(y, 2, memoryview(back))
    assert back == data[1:51]
    names = [name for name, _ in fake.calls]
    copy = names.index("cuMemcpyPeerAsync")
    # After what the source's stream has, and what that gets later comes after the copy.
    giver, taker = first.default_stream.handle, second.default_stream.handle
    recorded = [(i, a[1]) for i, (n, a) in enumerate(fake.calls) if n == "cuEventRecord"]
    waited = [(i, a[0]) for i, (n, a) in enumerate(fake.calls) if n == "cuStreamWaitEvent"]
    assert [(i < copy, s) for i, s in recorded] == [(True, giver), (False, taker)]
    assert [(i < copy, s) for i, s in waited] == [(True, taker), (False, giver)]
    assert not first.copy_from(object(), 0, x, 0, 4)
    first.close()
    second.close()


def test_pinned_memory_of_a_stream_that_ended_serves_the_next(device, fake):
    x = device.allocate(4)
    first = device.create_stream()
    first.write(x, 0, memoryview(b"abcd"))
    pinned = len(fake.named("cuMemHostAlloc"))
    del first
    second = device.create_stream()
    before = len(fake.named("cuEventSynchronize"))
    second.write(x, 0, memoryview(b"efgh"))
    assert len(fake.named("cuMemHostAlloc")) == pinned
    assert len(fake.named("cuEventSynchronize")) > before  # what the first had been given is done
    back = bytearray(4)
    device.default_stream.read(x, 0, memoryview(back))
    assert back == b"efgh"
