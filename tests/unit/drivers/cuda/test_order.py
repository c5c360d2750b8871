"""Who waits for whom when several streams use the same memory."""

from __future__ import annotations

import itertools

import pytest

from tests.unit.drivers.cuda.conftest import ptx
from treadle.core.dim3 import Dim3
from treadle.drivers.cuda import order


class Memory:
    def __init__(self):
        self.writer = None
        self.readers = {}


class Streams:
    """Two timelines, whose events are named by their order of making."""

    def __init__(self):
        self.events = itertools.count(1)
        self.done = set()
        self.a, self.b = self.timeline(), self.timeline()

    def timeline(self):
        return order.Timeline(lambda: next(self.events), lambda event: None, self.done.__contains__)

    def run(self, timeline, reads=(), writes=()):
        """The events waited for, and the one recorded."""
        waited = list(order.waits(timeline, reads, writes))
        event = timeline.next_event()
        order.note(timeline, reads, writes)
        return waited, event


@pytest.fixture
def streams():
    return Streams()


def test_a_reader_waits_for_the_writer_once(streams):
    x = Memory()
    _, written = streams.run(streams.a, writes=[x])
    assert streams.run(streams.b, reads=[x])[0] == [written]
    assert streams.run(streams.b, reads=[x])[0] == []
    assert streams.run(streams.a, reads=[x])[0] == []


def test_a_writer_waits_for_readers_and_readers_not_for_each_other(streams):
    x = Memory()
    assert streams.run(streams.a, reads=[x])[0] == []
    waited, read = streams.run(streams.b, reads=[x])
    assert waited == []
    waited, written = streams.run(streams.a, writes=[x])
    assert waited == [read]
    assert x.readers == {}
    assert streams.run(streams.b, writes=[x])[0] == [written]


def test_waiting_for_the_last_covers_what_came_before(streams):
    x, y = Memory(), Memory()
    streams.run(streams.a, writes=[x])
    _, last = streams.run(streams.a, writes=[y])
    assert streams.run(streams.b, reads=[y])[0] == [last]
    assert streams.run(streams.b, reads=[x])[0] == []


def test_one_wait_for_several_buffers(streams):
    x, y = Memory(), Memory()
    streams.run(streams.a, writes=[x])
    _, last = streams.run(streams.a, writes=[y])
    assert streams.run(streams.b, reads=[x], writes=[y])[0] == [last]


def test_unrelated_work_is_not_waited_for(streams):
    x, y = Memory(), Memory()
    _, written = streams.run(streams.a, writes=[x])
    streams.run(streams.a, writes=[y])
    assert streams.run(streams.b, reads=[x])[0] == [written]


def test_what_left_the_ring_is_covered_by_the_oldest_in_it(streams):
    x, y = Memory(), Memory()
    streams.run(streams.a, writes=[x])
    events = [streams.run(streams.a, writes=[y])[1] for _ in range(order.RING + 5)]
    assert len(set(events)) == order.RING
    assert streams.run(streams.b, reads=[x])[0] == [events[-order.RING]]


def test_readers_that_are_done_are_forgotten(streams):
    x = Memory()
    many = [streams.timeline() for _ in range(20)]
    for timeline in many:
        streams.done.add(streams.run(timeline, reads=[x])[1])
    assert len(x.readers) < 12
    pending = streams.run(streams.b, reads=[x])[1]
    assert pending in streams.run(streams.a, writes=[x])[0]


# ---------------------------------------------------------------------- on a device


def crossings(fake):
    """Which stream waited for which since the last look."""
    seen, fake.crossings = fake.crossings, []
    return seen


def test_one_stream_costs_nothing(device, fake):
    kernel, x = device.compile(ptx()), device.allocate(4)
    device.default_stream.read(x, 0, memoryview(bytearray(4)))
    fake.calls.clear()
    device.default_stream.launch(kernel, Dim3(1), (x,), b"")
    device.default_stream.fill_zero(x, 0, 4)
    device.default_stream.read(x, 0, memoryview(bytearray(4)))
    assert [name for name, _ in fake.calls] == [
        "cuLaunchKernel", "cuMemsetD32Async", "cuMemcpyDtoHAsync", "cuStreamSynchronize",
    ]  # fmt: skip


def test_a_new_stream_comes_after_everything_so_far(device, fake):
    stream = device.create_stream()
    assert crossings(fake) == [(stream.handle, device.default_stream.handle)]


def test_streams_that_share_memory_keep_its_order(device, fake):
    first, second = device.default_stream, device.create_stream()
    writer, reader = device.compile(ptx()), device.compile(ptx(writes=(False,)))
    x, y = device.allocate(4), device.allocate(4)
    third = device.create_stream()
    crossings(fake)
    second.launch(writer, Dim3(1), (x,), b"")
    assert crossings(fake) == [(second.handle, first.handle)]  # x was allocated there
    first.launch(reader, Dim3(1), (x,), b"")
    third.launch(writer, Dim3(1), (y,), b"")
    assert crossings(fake) == [(first.handle, second.handle)]
    second.write(x, 0, memoryview(b"abcd"))
    assert crossings(fake) == [(second.handle, first.handle)]
    back = bytearray(4)
    third.read(x, 0, memoryview(back))
    assert back == b"abcd"
    assert crossings(fake) == [(third.handle, second.handle)]


def test_memory_is_freed_after_its_users(device, fake):
    other = device.create_stream()
    x = device.allocate(4)
    other.launch(device.compile(ptx()), Dim3(1), (x,), b"")
    fake.calls.clear()
    device.free(x)
    names = [name for name, _ in fake.calls]
    assert names.index("cuStreamWaitEvent") < names.index("cuMemFreeAsync")


def test_use_is_a_launch_without_one(device, fake):
    other = device.create_stream()
    x = device.allocate(4)
    other.fill_zero(x, 0, 4)
    crossings(fake)
    device.default_stream.use([x])
    other.fill_zero(x, 0, 4)
    first, second = device.default_stream.handle, other.handle
    assert crossings(fake) == [(first, second), (second, first)]


def test_recordings_take_part(device, fake):
    first, second = device.default_stream, device.create_stream()
    x, y = device.allocate(4), device.allocate(4)
    first.begin_capture()
    first.copy(x, 0, y, 0, 4)
    recording = first.end_capture()
    second.write(x, 0, memoryview(b"abcd"))
    crossings(fake)
    recording.replay(first)
    second.read(y, 0, memoryview(bytearray(4)))
    second.fill_zero(x, 0, 4)
    assert crossings(fake) == [(first.handle, second.handle), (second.handle, first.handle)]


def test_other_libraries_streams(device, fake):
    stream = device.default_stream
    crossings(fake)
    stream.wait_for(1)
    stream.precede(0x77)
    assert stream.native_handle() == stream.handle
    assert crossings(fake) == [(stream.handle, 1), (0x77, stream.handle)]
