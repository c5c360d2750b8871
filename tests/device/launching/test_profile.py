"""Profiles: what they count, their times, their traces."""

from __future__ import annotations

import asyncio
import json
import threading

import numpy as np
import pytest

import treadle as td
from treadle.ir.definition import Work
from treadle.runtime.arrays import DeviceArray


@td.kernel
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@td.kernel
def fill(x: td.Array[td.f32], value: td.f32):
    i = td.grid(1)
    if i < x.size:
        x[i] = value


def array(shape, value=0):
    """A tensor in memory."""
    return td.asarray(np.full(shape, value, np.float32))


def rows(profile):
    return {(row.kind, row.name): row for row in profile.table().rows}


def test_kernels_are_counted_and_timed(device):
    x, y = array(1000, 1), array(1000)
    with td.profile() as p:
        for _ in range(7):
            saxpy.launch(y.size, 2.0, x, y)
        fill[8, 128](x, 3.0)
    assert y.numpy().sum() == 14000
    found = rows(p)
    assert set(found) == {("kernel", "saxpy"), ("kernel", "fill")}
    row = found["kernel", "saxpy"]
    assert (row.count, row.timed, row.device) == (7, 7, device.id)
    assert row.on_host == ("timestamps" not in device.features)
    assert row.bytes == 7 * 3 * 4000  # x is read, y read and written
    assert row.estimated
    assert row.operations is None
    assert found["kernel", "fill"].bytes == 4000
    assert 0 < row.mean < p.seconds
    assert sum(row.seconds for row in found.values()) < p.seconds
    text = str(p.table())
    for words in ("saxpy", "fill", device.id, "~84 kB"):
        assert words in text


def test_copies_reads_and_waits(device):
    data = np.arange(5000, dtype=np.float32)
    with td.profile() as p:
        x = DeviceArray.allocate(device, td.float32, data.shape)
        x.upload(data)
        y = x.copy_to(device)
        assert (y.to_host() == data).all()
        device.default_stream.handle.fill_zero(x.buffer, 0, 64)
        assert asyncio.run(td.Tensor(x).numpy_async())[16:].sum() == data[16:].sum()
        device.synchronize()
    found = rows(p)
    names = {("upload", "upload"), ("copy", "copy"), ("zero", "zero"), ("read", "read")}
    assert set(found) == names
    assert found["upload", "upload"].bytes == 20000
    assert found["copy", "copy"].bytes == 40000
    assert found["zero", "zero"].bytes == 64
    assert (found["read", "read"].count, found["read", "read"].bytes) == (2, 40000)
    assert all(row.seconds > 0 for row in found.values())
    assert any(entry.kind == "wait" for entry in p.entries)
    # What is read or made after it is no part of it.
    x.to_host()
    assert rows(p)["read", "read"].count == 2


def test_expressions_of_arrays(device):
    x, y = array((30, 50), 1), array((30, 50), 1)
    with td.profile() as p:
        for _ in range(2):
            z = (x * 2 + y) * x
            assert z.numpy().sum() == 4500
    (row,) = (row for row in p.table().rows if "multiply" in row.name)
    assert row.count == 2
    assert (row.operations, row.bytes) == (2 * 3 * 1500, 2 * 3 * 6000)


def test_the_work_that_a_definition_knows(device):
    x, y = array(100, 1), array(100)
    saxpy.work = lambda values: Work(bytes=12 * values[1].size, operations=2 * values[1].size)
    try:
        with td.profile() as p:
            saxpy.launch(100, 1.0, x, y)
            saxpy.launch(100, 1.0, x, y)
    finally:
        del saxpy.work
    (row,) = p.table().rows
    assert (row.bytes, row.operations, row.estimated) == (2400, 400, False)
    assert row.bytes_per_second == pytest.approx(2400 / row.seconds)
    assert row.operations_per_second == pytest.approx(400 / row.seconds)


def test_views_of_the_same_elements_count_once(device):
    x = array(100)
    with td.profile() as p:
        saxpy.launch(10, 1.0, x[:10], x[:10])
        saxpy.launch(10, 1.0, x[:10], x[10:20])
    assert [entry.amount.bytes for entry in p.entries if entry.kind == "kernel"] == [80, 120]


def test_replays(device):
    x, y = array(64, 1), array(64)
    before, within = td.Graph(device), td.Graph(device)
    with before.capture():
        saxpy.launch(64, 1.0, x, y)
        saxpy.launch(64, 1.0, x, y)
    with td.profile() as p:
        with within.capture():
            fill.launch(64, y, 5.0)
        within.replay()
        before.replay()
        before.replay()
    assert y.numpy().tolist() == [9.0] * 64
    found = rows(p)
    assert set(found) == {("replay", "replay of saxpy ×2"), ("replay", "replay of fill")}
    row = found["replay", "replay of saxpy ×2"]
    assert (row.count, row.bytes) == (2, 2 * 2 * 3 * 256)
    assert row.seconds > 0


def test_a_profile_within_a_capture_sees_its_replays_alone(device):
    x, graph = array(64), td.Graph(device)
    with graph.capture(), td.profile() as p:
        fill.launch(64, x, 2.0)
    assert p.table().rows == ()
    graph.replay()
    assert x.numpy().sum() == 128


def test_streams_and_threads(device):
    stream = device.stream()
    x, y = array(64), array(64)

    def work():
        for _ in range(5):
            fill[1, 64, 0, stream](y, 2.0)
        device.stream().synchronize()  # made while the profile is active

    with td.profile() as p:
        threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            fill.launch(64, x, 1.0)
        for thread in threads:
            thread.join()
    assert rows(p)["kernel", "fill"].count == 20
    assert len({entry.thread for entry in p.entries}) >= 2
    assert len({entry.stream for entry in p.entries if entry.kind == "kernel"}) == 2
    assert x.numpy().sum() + y.numpy().sum() == 64 * 3


def test_the_trace(device, tmp_path):
    x, y = array(1000, 1), array(1000)
    with td.profile() as p:
        saxpy.launch(1000, 2.0, x, y)
        fill[8, 128](x, 3.0)
        y.numpy()
        array(1000)
    p.save(tmp_path / "trace.json")
    content = json.loads((tmp_path / "trace.json").read_text())
    events = content["traceEvents"]
    assert all(event["ph"] in "XMCsf" and "pid" in event for event in events)
    spans = [event for event in events if event["ph"] == "X"]
    assert all(event["dur"] >= 0 and event["ts"] >= -1 for event in spans)
    processes = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    assert processes[1] == "host"
    here, there = (
        {event["name"]: event for event in spans if (event["pid"] == 1) == host}
        for host in (True, False)
    )
    assert {"launch saxpy", "launch fill", "read"} <= set(here)
    assert {"saxpy", "fill"} <= set(there)
    assert processes[there["saxpy"]["pid"]].startswith(device.id)
    assert there["fill"]["args"]["grid"] == [8, 1, 1]
    assert there["fill"]["args"]["block"] == [128, 1, 1]
    assert there["saxpy"]["ts"] + there["saxpy"]["dur"] <= there["fill"]["ts"] + 1
    # Arrows lead from each launch to its work.
    starts, ends = ({e["id"]: e for e in events if e["ph"] == phase} for phase in "sf")
    assert set(starts) == set(ends)
    assert {e["ts"] for e in ends.values()} == {e["ts"] for e in spans if e["pid"] != 1}
    counters = [
        event
        for event in events
        if event["ph"] == "C" and processes[event["pid"]].startswith(device.id)
    ]
    assert max(event["args"]["bytes"] for event in counters) == p.memory[device.id]


def test_memory(device):
    kept = DeviceArray.allocate(device, td.float32, (1 << 16,))
    before = td.memory_stats()["used"]
    with td.profile() as p:
        for _ in range(3):
            DeviceArray.allocate(device, td.float32, (1 << 18,))
    assert p.memory[device.id] == before + (1 << 20)
    assert td.memory_stats(device)["used"] == before
    assert td.memory_stats()["peak"] >= p.memory[device.id]
    assert "memory of arrays on " + device.id in str(p.table())
    del kept


def test_a_failing_block_is_profiled_and_the_error_goes_on(device):
    x = array(64)
    p = td.profile()

    def fail():
        with p:
            fill.launch(64, x, 1.0)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert rows(p)["kernel", "fill"].count == 1
    with pytest.raises(td.errors.LaunchError), td.profile() as p:
        fill.launch(64, x)
    assert p.table().rows == ()
    with td.profile() as p:
        fill.launch(64, x, 1.0)
    assert rows(p)["kernel", "fill"].count == 1
