"""Captures and their replays."""

from __future__ import annotations

import ctypes
import struct

import pytest

from tests.unit.drivers.cuda.conftest import open_device, ptx
from treadle.codegen.records import ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import DeviceLost, LaunchError


def content(stream, buffer):
    back = bytearray(buffer.size)
    stream.read(buffer, 0, memoryview(back))
    return bytes(back)


@pytest.fixture
def adding(fake):
    """A kernel that adds 1 to the first byte of its buffer."""

    def run(_grid, arguments):
        (place,) = struct.unpack("<Q", arguments)
        byte = ctypes.c_uint8.from_address(place)
        byte.value += 1

    fake.kernel = run
    return ptx("adding")


def test_replays_do_what_was_captured_in_order(device, fake, adding):
    stream, kernel = device.default_stream, device.compile(adding)
    x, y = device.allocate(8), device.allocate(8)
    stream.write(x, 0, memoryview(bytes(8)))
    stream.begin_capture()
    stream.launch(kernel, Dim3(3), (x,), b"")
    stream.copy(x, 0, y, 4, 4)
    stream.fill_zero(y, 1, 1)
    stream.fill_zero(y, 2, 2)
    data = bytearray(b"A")
    stream.write(y, 0, memoryview(data))
    data[0] = 0
    recording = stream.end_capture()
    assert content(stream, x) == bytes(8)
    recording.replay(stream)
    recording.replay(stream)
    assert content(stream, x)[0] == 2
    assert content(stream, y) == b"A\0\0\0\x02\0\0\0"
    fake.calls.clear()
    recording.replay(stream)
    assert [name for name, _ in fake.calls] == ["cuGraphLaunch"]


def test_a_launch_with_another_grid_and_other_parameters(device, fake):
    seen = []
    fake.kernel = lambda grid, arguments: seen.append((grid, arguments[8:]))
    kernel = device.compile(ptx(layout=ParameterLayout((), 4, "<")))
    stream, x = device.default_stream, device.allocate(8)
    stream.begin_capture()
    stream.fill_zero(x, 0, 4)
    assert stream.recorded == 1
    stream.launch(kernel, Dim3(3), (x,), b"1234")
    assert stream.recorded == 2
    stream.launch(kernel, Dim3(2), (x,), b"abcd")
    recording = stream.end_capture()
    recording.replay(stream)
    recording.change(1, kernel, Dim3(5, 2), b"5678")
    recording.replay(stream)
    assert seen == [
        ((3, 1, 1), b"1234"), ((2, 1, 1), b"abcd"), ((5, 2, 1), b"5678"), ((2, 1, 1), b"abcd"),
    ]  # fmt: skip


def test_a_recording_in_a_recording(device, adding):
    stream, kernel, x = device.default_stream, device.compile(adding), device.allocate(4)
    stream.fill_zero(x, 0, 4)
    stream.begin_capture()
    stream.launch(kernel, Dim3(1), (x,), b"")
    inner = stream.end_capture()
    stream.begin_capture()
    inner.replay(stream)
    stream.launch(kernel, Dim3(1), (x,), b"")
    inner.replay(stream)
    outer = stream.end_capture()
    outer.replay(stream)
    assert content(stream, x)[0] == 3


def test_what_the_host_does_at_each_replay(device, adding):
    stream, kernel, x = device.default_stream, device.compile(adding), device.allocate(4)
    done = []
    stream.at_submission(lambda: done.append("now"))
    stream.begin_capture()
    stream.at_submission(lambda: done.append("inner"))
    stream.launch(kernel, Dim3(1), (x,), b"")
    inner = stream.end_capture()
    stream.begin_capture()
    inner.replay(stream)
    stream.at_submission(lambda: done.append("outer"))
    outer = stream.end_capture()
    assert done == ["now"]
    for recording in (outer, inner, outer):
        recording.replay(stream)
    assert done == ["now", "inner", "outer", "inner", "inner", "outer"]


def test_nothing_to_replay(device):
    device.default_stream.begin_capture()
    device.default_stream.end_capture().replay(device.default_stream)


def test_what_a_capture_refuses(device):
    stream, x = device.default_stream, device.allocate(4)
    with pytest.raises(LaunchError, match="begin_capture"):
        stream.end_capture()
    stream.begin_capture()
    for refused in (
        lambda: content(stream, x), stream.synchronize, stream.record,
        lambda: stream.wait_for(1), lambda: stream.precede(1),
    ):  # fmt: skip
        with pytest.raises(LaunchError, match="while launches are being recorded"):
            refused()
    with pytest.raises(LaunchError, match="captured already"):
        stream.begin_capture()
    stream.end_capture()
    stream.synchronize()
    assert stream.plain


def test_memory_lives_as_long_as_its_recording(device, fake, adding):
    stream, kernel, x = device.default_stream, device.compile(adding), device.allocate(4)
    stream.fill_zero(x, 0, 4)
    stream.begin_capture()
    stream.launch(kernel, Dim3(1), (x,), b"")
    stream.write(x, 0, memoryview(b"ab"))
    recording = stream.end_capture()
    device.free(x)
    assert fake.named("cuMemFreeAsync") == []
    recording.replay(stream)
    recording.release()
    recording.release()
    assert len(fake.named("cuMemFreeAsync")) == 2  # and the bytes that were written
    assert device.memory_stats()["allocated"] == 0
    with pytest.raises(LaunchError, match="released"):
        recording.replay(stream)


def test_a_recording_belongs_to_a_device(device):
    other = open_device()
    device.default_stream.begin_capture()
    recording = device.default_stream.end_capture()
    with pytest.raises(LaunchError, match="cuda:0"):
        recording.replay(other.default_stream)
    other.close()
    device.close()
    with pytest.raises(DeviceLost):
        recording.replay(device.default_stream)


def test_a_graph_that_the_driver_refuses(device, fake):
    x = device.allocate(4)
    device.default_stream.begin_capture()
    device.default_stream.fill_zero(x, 0, 4)
    fake.failures["cuGraphInstantiateWithFlags"] = 801
    with pytest.raises(LaunchError, match="801"):
        device.default_stream.end_capture()
    assert x.holds == 0
    device.default_stream.synchronize()
