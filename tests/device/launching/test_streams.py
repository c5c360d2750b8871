"""Streams, events, graphs, reads and copies."""

from __future__ import annotations

import asyncio
import gc
import threading

import numpy as np
import pytest

import treadle as td


@td.kernel
def add_one(x: td.Array[td.f32]):
    i = td.grid(1)
    if i < x.size:
        x[i] = x[i] + 1.0


def test_a_stream_of_its_own(device):
    stream = device.stream()
    x = td.zeros(100)
    device.synchronize()
    add_one[2, 64, 0, stream](x)
    stream.synchronize()
    assert x.numpy().sum() == 100


def test_streams_see_each_others_work(device):
    """What was launched first comes first, whatever its stream."""
    first, second = device.stream(), device.stream()
    x = td.zeros(100)
    add_one[2, 64, 0, first](x)
    add_one[2, 64](x)
    add_one[2, 64, 0, second](x)
    assert x.numpy().sum() == 300
    host = np.zeros(100, np.float32)
    add_one[2, 64, 0, first](host)
    assert host.sum() == 100


def test_memory_passes_from_one_stream_to_another(device):
    stream = device.stream()
    x = td.zeros(100)
    add_one[2, 64, 0, stream](x)
    del x
    fresh = td.zeros(100)  # the same memory, most likely
    assert fresh.numpy().sum() == 0
    stream.synchronize()
    assert fresh.numpy().sum() == 0


@td.kernel
def combine(x: td.Array[td.i32], y: td.Array[td.i32], out: td.Array[td.i32], rounds: td.i32):
    i = td.grid(1)
    if i < out.size:
        v = x[i] * 3 + y[i]
        for _ in range(rounds):  # to be late, by another while each time
            v = v * 5 + 1
        for _ in range(rounds):
            v = (v - 1) * -858993459  # the inverse of 5
        out[i] = v


def overlaps(device):
    """Whether the device runs work of several streams at once."""
    return device.backend == "cuda" and device.kind != "software"


def test_streams_race_for_memory(device, rng):
    """Arrays that several streams read and write, and whose memory passes from one stream's arrays
    to another's while work is pending: the values are those of one thing after the other."""
    size = 1 << (16 if overlaps(device) else 8)
    rounds = 600 if overlaps(device) else 60
    longest = 4000 if overlaps(device) else 4
    streams = [None, device.stream(), device.stream()]
    expected = [rng.integers(-1000, 1000, size).astype(np.int32) for _ in range(5)]
    arrays = [td.asarray(data) for data in expected]
    for number in range(rounds):
        a, b, c = rng.integers(0, len(arrays), 3)
        stream = streams[rng.integers(0, 3)]
        late = int(rng.integers(0, longest))
        value = expected[a] * 3 + expected[b]
        if rng.random() < 0.7:  # into new memory; what c held is free while it may be in use
            out = td.empty(size, dtype=td.int32)
            combine[-(-size // 128), 128, 0, stream](arrays[a], arrays[b], out, late)
            arrays[c] = out
        else:
            combine[-(-size // 128), 128, 0, stream](arrays[a], arrays[b], arrays[c], late)
        expected[c] = value
        if number % 50 == 0:
            at = rng.integers(0, len(arrays))
            np.testing.assert_array_equal(arrays[at].numpy(), expected[at])
        if number % 70 == 0:
            expected[a] = np.full(size, number, np.int32)
            arrays[a][:] = expected[a]
    for array, data in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array.numpy(), data)


def test_a_graph_and_streams_race_for_memory(device, rng):
    """A recording uses memory of arrays that are gone; what is made beside its replays does not."""
    size = 1 << (16 if overlaps(device) else 8)
    stream = device.stream()
    x, y = (td.asarray(rng.integers(-9, 9, size).astype(np.int32)) for _ in range(2))
    start, step = x.numpy(), y.numpy()
    graph = td.Graph(device)
    with graph.capture():
        for _ in range(3):
            held = td.empty(size, dtype=td.int32)
            combine[-(-size // 128), 128](x, y, held, 50)
            combine[-(-size // 128), 128](held, y, x, 50)
            del held
    for _ in range(10):
        graph.replay(stream)
        others = [td.full(size, 77, dtype=td.int32) for _ in range(3)]
        combine[-(-size // 128), 128, 0, stream](x, y, others[0], 3)
        graph.replay()
        combine[-(-size // 128), 128](others[1], others[2], others[1], 3)
        assert (others[1].numpy() == 4 * 77).all()
        for _ in range(6):
            start = (start * 3 + step) * 3 + step
    np.testing.assert_array_equal(x.numpy(), start)
    graph.release()


def test_work_before_a_capture_is_not_forgotten(device):
    stream = device.stream()
    x, y = td.zeros(100), td.zeros(100)
    add_one[2, 64](x)
    graph = td.Graph(device)
    with graph.capture():
        add_one[2, 64](y)
        add_one[2, 64, 0, stream](x)
    assert x.numpy().sum() == 200
    assert y.numpy().sum() == 0


def test_events_measure_time(device):
    start, end = td.Event(), td.Event()
    x = td.zeros(1 << 16)
    stream = device.default_stream
    start.record(stream)
    for _ in range(20):
        add_one[256, 256](x)
    end.record(stream)
    end.synchronize()
    assert end.query()
    assert 0 <= start.elapsed(end) < 10
    assert x.numpy().mean() == 20


def test_an_event_that_was_not_recorded(device):
    with pytest.raises(td.errors.LaunchError, match="record"):
        td.Event().synchronize()


def test_graph_replays(device):
    x = td.zeros(100)
    graph = td.Graph(device)
    with graph.capture():
        add_one[2, 64](x)
        add_one[2, 64](x)
    assert x.numpy().sum() == 0
    for _ in range(5):
        graph.replay()
    assert x.tolist() == [10.0] * 100
    add_one[2, 64](x)
    graph.replay()
    assert x.tolist() == [13.0] * 100


def test_graph_keeps_its_arrays(device):
    graph = td.Graph(device)
    out = td.zeros(64)

    @td.kernel
    def copy(x: td.Array[td.f32], y: td.Array[td.f32]):
        i = td.grid(1)
        y[i] = x[i]

    x = td.full(64, 3.0)
    with graph.capture():
        add_one[1, 64](x)
        copy[1, 64](x, out)
    del x
    gc.collect()
    others = [td.full(64, 99.0) for _ in range(4)]
    graph.replay()
    assert out.tolist() == [4.0] * 64
    assert all(other.tolist() == [99.0] * 64 for other in others)


def test_an_empty_graph_refuses_to_replay(device):
    with pytest.raises(td.errors.LaunchError, match="capture"):
        td.Graph(device).replay()


def test_an_error_while_capturing_leaves_the_stream_usable(device):
    x = td.zeros(4)
    graph = td.Graph(device)
    with pytest.raises(ZeroDivisionError), graph.capture():  # noqa: PT012
        add_one[1, 64](x)
        raise ZeroDivisionError
    add_one[1, 64](x)
    assert x.tolist() == [1.0] * 4


@pytest.mark.parametrize("size", [1, 2, 3, 5, 4097, 1 << 20, (1 << 24) + 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_round_trip(device, rng, size, dtype):
    data = rng.integers(0, 255, size).astype(dtype)
    np.testing.assert_array_equal(td.asarray(data).numpy(), data)


def test_reading_a_part(device, rng):
    data = rng.integers(0, 255, 1001).astype(np.uint8)
    x = td.asarray(data)
    np.testing.assert_array_equal(x[3:998].numpy(), data[3:998])
    np.testing.assert_array_equal(x[7:8].numpy(), data[7:8])
    x[5:9] = np.array([1, 2, 3, 4], np.uint8)
    data[5:9] = [1, 2, 3, 4]
    x[1::3] = 9
    data[1::3] = 9
    np.testing.assert_array_equal(x.numpy(), data)


def test_reads_that_await(device):
    x = td.zeros(100)
    add_one[2, 64](x)

    async def both():
        return await asyncio.gather(x.numpy_async(), x[:10].numpy_async())

    whole, part = asyncio.run(both())
    assert whole.sum() == 100
    assert part.sum() == 10
    asyncio.run(device.synchronize_async())


def test_a_read_that_began_is_of_what_was_there(device):
    """What is written after it does not change it, and another read may end before it."""
    x = td.arange(100, dtype=td.int32).realize()
    whole = x._array.begin_host()
    of_part = x[10:90:4]._array.begin_host()
    x *= 2
    assert x.realize().numpy().tolist() == list(range(0, 200, 2))
    assert whole.wait().tolist() == list(range(100))
    assert of_part.wait().tolist() == list(range(10, 90, 4))
    assert td.zeros((0, 3)).realize()._array.begin_host().wait().shape == (0, 3)
    dropped = x._array.begin_host()
    del dropped  # its memory is free again
    awaited = x._array.begin_host()
    x += 1
    x.realize()
    assert asyncio.run(awaited.wait_async())[99] == 198
    x -= 1
    assert x.numpy()[99] == 198


def test_all_that_waits_can_be_awaited(device):
    x = td.arange(5, dtype=td.int32) * 3
    ticks = []

    async def other():
        for _ in range(3):
            ticks.append(len(ticks))
            await asyncio.sleep(0)

    async def work():
        event = td.Event()
        event.record(device.default_stream)
        await event.synchronize_async()
        assert event.query()
        with pytest.raises(td.errors.ShapeError, match="one element"):
            await x.item_async()
        with pytest.raises(td.errors.LaunchError, match="not recorded"):
            await td.Event().synchronize_async()
        moved = await (x + 1).to_async("cpu")
        assert moved.device.id == "cpu"
        assert (await x.to_async(device)) is x
        halves = await x.to_async("cpu", dtype=td.float16)
        assert halves.dtype == td.float16
        return await asyncio.gather(
            x.tolist_async(), x[2].item_async(), moved.tolist_async(), other()
        )

    assert asyncio.run(work())[:3] == [[0, 3, 6, 9, 12], 6, [1, 4, 7, 10, 13]]
    assert ticks == [0, 1, 2]


def test_threads_share_a_device(device):
    results: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        with td.use_device(device):
            x = td.full(1000, float(number))
            for step in range(20):
                add_one[16, 64](x)
                assert x.numpy()[number] == number + step + 1
            results[number] = x.numpy()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert (results[number] == number + 20).all()


def test_what_another_thread_does_is_in_no_capture(device):
    """A capture may begin after another thread has asked for its work, and before the driver has
    appended that."""
    x, y = td.zeros(4, device=device), td.zeros(4, device=device)
    x.realize()
    array = y.realize().__treadle_array__()
    handle = device.default_stream.handle  # which another thread has from before the capture
    found = np.zeros(4, np.float32)

    def other() -> None:
        handle.write(array.buffer, 0, memoryview(np.full(4, 7, np.float32)).cast("B"))
        handle.read(array.buffer, 0, memoryview(found).cast("B"))

    graph = td.Graph(device)
    with graph.capture():
        x += 1
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found.tolist() == [7] * 4
    y += 1
    graph.replay()
    graph.replay()
    assert (x.tolist(), y.tolist()) == ([2] * 4, [8] * 4)
