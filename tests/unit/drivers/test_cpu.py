"""The CPU driver by itself: memory, launches large and small, recordings, threads, errors."""

from __future__ import annotations

import struct
import threading

import numpy as np
import pytest

from tests.support.cpu_kernels import compiled, download, upload
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, DeviceLost, LaunchError, OutOfMemory
from treadle.drivers.cpu import backend, launches, workers
from treadle.drivers.cpu.compiler import takes_bits_of_moved_conditions
from treadle.drivers.cpu.device import Device

STEP = """kernel step block(64, 1, 1) {
  buffer x: f32
  buffer y: f32
  parameter a: f32 from ("value", "a")
  parameter n: i32 from ("size", "y")
  for t: i32 in range(0, 64, 1) parallel {
    var i: i32 = (block_idx.x * 64) + t
    y[i; i in n] = (a * x[i; i in n]) + 1.0
  }
}"""
COUNT = """kernel count block(1, 1, 1) {
  buffer x: i32
  buffer visits: i32
  var sum: i32 = 0
  for j: i32 in range(0, 200, 1) {
    sum = sum + (j ^ block_idx.x)
  }
  x[block_idx.x] = sum
  atomic add visits[0], 1
}"""


@pytest.fixture
def device():
    opened = backend()
    device = opened.open(opened.list_devices()[0])
    yield device
    device.close()


def test_the_device_says_who_it_is(device):
    info = device.info
    assert (info.id, info.backend, info.kind) == ("cpu", "cpu", "cpu")
    assert info.name
    assert {"float64", "int64", "float_atomics", "subgroups"} <= info.features
    assert info.limits.max_threads_per_block == 1024
    assert "LLVM" in device.cache_key()


def test_buffers_are_aligned_and_counted(device):
    buffers = [device.allocate(size) for size in (4, 12, 4096, 100_000)]
    assert all(buffer.address() % 64 == 0 for buffer in buffers)
    assert len({buffer.identity for buffer in buffers}) == 4
    stats = device.memory_stats()
    assert (stats["allocated"], stats["buffers"]) == (104_112, 4)
    for buffer in buffers:
        device.free(buffer)
    device.free(buffers[0])  # twice does no harm
    stats = device.memory_stats()
    assert (stats["allocated"], stats["peak"], stats["buffers"]) == (0, 104_112, 0)
    with pytest.raises(DeviceLost, match="freed"):
        buffers[0].address()


def test_too_much_memory_is_refused_with_numbers(device):
    kept = device.allocate(1000)
    with pytest.raises(OutOfMemory, match=r"cannot allocate \d{15} bytes.*1000 bytes.*free"):
        device.allocate(1 << 49)
    assert device.memory_stats()["buffers"] == 1
    device.free(kept)


def test_copies_of_any_bytes(device):
    stream = device.default_stream
    a, b = device.allocate(16), device.allocate(16)
    stream.write(a, 0, memoryview(bytes(range(16))))
    stream.fill_zero(b, 0, 16)
    stream.copy(a, 3, b, 5, 7)
    stream.fill_zero(b, 6, 1)
    out = bytearray(9)
    stream.read(b, 4, memoryview(out))
    assert bytes(out) == bytes([0, 3, 0, 5, 6, 7, 8, 9, 0])
    stream.write(b, 1, memoryview(np.array([[1, 2]], np.uint16)))
    stream.read(b, 0, memoryview(out))
    assert bytes(out[:6]) == bytes([0, 1, 0, 2, 0, 3])


@pytest.mark.parametrize("blocks", [1, 3, 40, 1000])
def test_every_block_runs_once(blocks, monkeypatch):
    # However cheap the blocks seem, share them.
    monkeypatch.setattr(launches, "SHARED_SECONDS", 0.0)
    monkeypatch.setattr(launches, "_CHUNK_SECONDS", 0.0)
    kernel = compiled(COUNT)
    monkeypatch.setattr(kernel.device, "threads", 3)
    x, visits = np.zeros(blocks, np.int32), np.zeros(1, np.int32)
    buffers = [upload(x), upload(visits)]
    for _ in range(20):
        kernel.device.default_stream.launch(kernel, Dim3(blocks), buffers, b"")
    expected = [sum(j ^ i for j in range(200)) for i in range(blocks)]
    np.testing.assert_array_equal(download(buffers[0], x), expected)
    assert download(buffers[1], visits)[0] == 20 * blocks


def test_no_blocks_do_nothing():
    kernel = compiled(COUNT)
    visits = upload(np.zeros(1, np.int32))
    for grid in (Dim3(0), Dim3(3, 0), Dim3(2, 2, 0)):
        kernel.device.default_stream.launch(kernel, grid, [visits, visits], b"")
    assert download(visits, np.zeros(1, np.int32))[0] == 0


def test_launches_from_several_threads(monkeypatch):
    monkeypatch.setattr(launches, "SHARED_SECONDS", 0.0)
    monkeypatch.setattr(launches, "_CHUNK_SECONDS", 0.0)
    kernel = compiled(COUNT)
    monkeypatch.setattr(kernel.device, "threads", 2)
    wrong: list[int] = []

    def work(seed: int) -> None:
        stream = kernel.device.create_stream()
        blocks = 50 + seed
        x, visits = np.zeros(blocks, np.int32), np.zeros(1, np.int32)
        buffers = [upload(x), upload(visits)]
        for _ in range(30):
            stream.launch(kernel, Dim3(blocks), buffers, b"")
        if download(buffers[1], visits)[0] != 30 * blocks:
            wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_interrupted_launch_stops_and_leaves_the_device_usable(monkeypatch):
    monkeypatch.setattr(launches, "SHARED_SECONDS", 0.0)
    kernel = compiled(COUNT)
    monkeypatch.setattr(kernel.device, "threads", 2)
    x, visits = upload(np.zeros(100_000, np.int32)), upload(np.zeros(1, np.int32))

    def interrupted(*arguments):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    monkeypatch.setattr(workers.native, "share", lambda: interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel.device.default_stream.launch(kernel, Dim3(100_000), [x, visits], b"")
    monkeypatch.undo()
    before = download(visits, np.zeros(1, np.int32))[0]
    assert before < 100_000
    kernel.device.default_stream.launch(kernel, Dim3(10), [x, visits], b"")
    assert download(visits, np.zeros(1, np.int32))[0] == before + 10


def test_a_recording_replays_launches_and_copies():
    kernel = compiled(STEP)
    stream = kernel.device.create_stream()
    x, y = upload(np.ones(100, np.float32)), upload(np.zeros(100, np.float32))
    parameters = struct.pack(kernel.code.layout.format, 2.0, 100)
    stream.begin_capture()
    host = np.full(3, 7, np.float32)
    stream.launch(kernel, Dim3(2), [x, y], parameters)
    stream.copy(y, 0, x, 0, 400)
    stream.fill_zero(y, 0, 8)
    stream.write(y, 12, memoryview(host))
    with pytest.raises(LaunchError, match="capture"):
        stream.read(y, 0, memoryview(bytearray(4)))
    with pytest.raises(LaunchError, match="captured already"):
        stream.begin_capture()
    recording = stream.end_capture()
    host[:] = 0  # the recording has its own copy
    assert (download(x, np.ones(100, np.float32)) == 1).all()
    value = 1.0
    for _ in range(4):
        recording.replay(stream)
        value = 2 * value + 1
        assert (download(x, np.ones(100, np.float32)) == value).all()
    np.testing.assert_array_equal(download(y, np.ones(100, np.float32))[:6], [0, 0, value, 7, 7, 7])
    recording.release()


def test_object_code_loads_again(device):
    kernel = compiled(STEP)
    image = kernel.device.binary(kernel)
    again = device.compile(kernel.code, image)
    x, y = upload(np.arange(10, dtype=np.float32)), upload(np.zeros(10, np.float32))
    parameters = struct.pack(kernel.code.layout.format, 3.0, 10)
    device.default_stream.launch(again, Dim3(1), [x, y], parameters)
    np.testing.assert_array_equal(download(y, np.zeros(10, np.float32)), np.arange(10) * 3 + 1)
    with pytest.raises(CompileError, match="could not be loaded"):
        device.compile(kernel.code, b"not an object file")


def test_events_are_in_order(device):
    first = device.default_stream.record()
    second = device.default_stream.record()
    assert first.query()
    assert second.seconds() >= first.seconds()


def test_wrong_launches_are_refused():
    kernel = compiled(STEP)
    stream = kernel.device.create_stream()
    x, y = upload(np.ones(4, np.float32)), upload(np.ones(4, np.float32))
    parameters = struct.pack(kernel.code.layout.format, 3.0, 4)
    with pytest.raises(LaunchError, match="takes 2 buffers, not 1"):
        stream.launch(kernel, Dim3(1), [x], parameters)
    with pytest.raises(LaunchError, match="threads along one axis"):
        stream.launch(kernel, Dim3(1 << 26), [x, y], parameters)
    kernel.device.free(y)
    with pytest.raises(DeviceLost, match="freed"):
        stream.launch(kernel, Dim3(1), [x, y], parameters)


def test_a_closed_device_is_lost():
    opened = backend()
    device = opened.open(opened.list_devices()[0])
    assert isinstance(device, Device)
    kernel = device.compile(compiled(STEP).code)
    x = device.allocate(16)
    device.close()
    for use in (
        lambda: device.allocate(4),
        lambda: device.default_stream.launch(kernel, Dim3(1), [x, x], bytes(8)),
        lambda: device.default_stream.read(x, 0, memoryview(bytearray(4))),
        lambda: device.compile(kernel.code),
        device.default_stream.synchronize,
    ):
        with pytest.raises(DeviceLost, match="closed"):
            use()


def test_work_of_the_host_is_captured_and_replayed(device):
    stream = device.default_stream
    turns = []
    stream.call_host(lambda: turns.append("now"), ())
    stream.begin_capture()
    stream.call_host(lambda: turns.append("replayed"), ())
    recording = stream.end_capture()
    assert turns == ["now"]
    for _ in range(3):
        recording.replay(stream)
    assert turns == ["now", *["replayed"] * 3]


@pytest.mark.parametrize(
    ("condition", "is_moved"),
    [
        ("shufflevector <8 x i1> %b, <8 x i1> poison, <8 x i32> zeroinitializer", True),
        ("select <8 x i1> <i1 false, i1 true>, <8 x i1> %b, <8 x i1> %c", True),
        ("select <8 x i1> %a, <8 x i1> %b, <8 x i1> %c", True),
        ("select <8 x i1> %a, <8 x i1> %b, <8 x i1> zeroinitializer", False),  # `and`
        ("or <8 x i1> %a, %b", False),
    ],
)
def test_conditions_that_are_moved_before_their_bits_are_taken(condition, is_moved):
    module = f"%x = {condition}\n%y = bitcast <8 x i1> %x to i8\n"
    assert takes_bits_of_moved_conditions(module) == is_moved
    assert not takes_bits_of_moved_conditions(f"%x = {condition}\n")
