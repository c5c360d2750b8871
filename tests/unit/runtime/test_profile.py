"""Profiles: misuse, and how the table and the trace look."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest
from rich.console import Console

import treadle as td
from treadle.core.errors import DeviceLost, TreadleError
from treadle.runtime import profiler
from treadle.runtime.profile.records import Amount, Entry
from treadle.runtime.profile.session import Profile
from treadle.runtime.profile.trace import trace_events


@td.kernel
def fill(x: td.Array[td.f32], value: td.f32):
    i = td.grid(1)
    if i < x.size:
        x[i] = value


@pytest.fixture(autouse=True)
def cpu():
    with td.use_device("cpu") as device:
        yield device


def test_profiles_do_not_nest():
    with td.profile() as outer:
        with pytest.raises(TreadleError, match="active already"), td.profile():
            pass
        with pytest.raises(TreadleError, match="active already"), outer:
            pass
        fill.launch(8, td.zeros(8), 1.0)
    assert profiler.active is None
    assert "fill" in str(outer.table())


def test_a_profile_is_for_one_use_and_tells_at_its_end():
    p = td.profile()
    for ask in (p.table, lambda: p.save("never.json"), lambda: p.seconds):
        with pytest.raises(TreadleError, match="after the with block"):
            ask()
    with p, pytest.raises(TreadleError, match="after the with block"):
        p.table()
    with pytest.raises(TreadleError, match=r"td\.profile\(\)"), p:
        pass
    assert profiler.active is None


def test_streams_are_the_drivers_own_again(cpu):
    before = cpu.default_stream.handle
    with td.profile():
        assert cpu.default_stream.handle is not before
        made = cpu.stream()
    assert cpu.default_stream.handle is before
    assert made.handle.__class__ is before.__class__


def test_profiles_begin_and_end_while_others_launch():
    x, over = td.zeros(8), threading.Event()
    failures = []

    def launch():
        try:
            while not over.is_set():
                fill.launch(8, x, 1.0)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=launch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        with td.profile() as p:
            fill.launch(8, x, 1.0)
        assert p.table().rows
    over.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_empty_profile(tmp_path):
    with td.profile() as p:
        pass
    assert p.table().rows == ()
    assert "nothing ran" in str(p.table())
    p.save(tmp_path / "trace.json")
    assert p.seconds >= 0


def test_a_place_that_cannot_be_written(tmp_path):
    with td.profile() as p:
        pass
    with pytest.raises(OSError, match="absent"):
        p.save(tmp_path / "absent" / "trace.json")


def test_compilations_are_noted():
    kernel = td.kernel(source="def fresh(x: td.Array[td.f32]):\n    x[td.grid(1)] = 4.5\n")
    with td.profile() as p:
        kernel.launch(8, td.zeros(8))
        kernel.launch(8, td.zeros(8))
    found = [entry for entry in p.entries if entry.kind == "compile"]
    assert [entry.name.split(",")[0] for entry in found] == ["fresh"]
    assert "compiled or loaded: 1 time" in str(p.table())


def test_arrays_of_numpy_are_uploaded_and_read_back():
    with td.profile() as p:
        fill.launch(100, np.zeros(200, np.float32)[::2], 1.0)
    kinds = {row.kind for row in p.table().rows}
    assert kinds == {"kernel", "upload", "read"}


def test_what_is_repeated_along_an_axis_counts_once():
    kernel = td.kernel(
        source="def add(x: td.Array[td.f32, 2], y: td.Array[td.f32, 2]):\n"
        "    i, j = td.grid(2)\n    y[i, j] += x[i, j]\n"
    )
    x, y = td.zeros((5, 3)), td.zeros((4, 3))
    row = x._array.view((4, 3), (0, 1), 0)
    with td.profile() as p:
        kernel.launch((4, 3), row, y)
    (entry,) = (entry for entry in p.entries if entry.kind == "kernel")
    assert entry.amount == Amount(4 * (3 + 2 * 12), None, estimated=True)


class Point:
    """An event of a device that may be lost."""

    def __init__(self, at):
        self.at = at

    def seconds(self):
        if self.at is None:
            raise DeviceLost("gone")
        return self.at


def made(*entries, timed=True):
    """A profile of a GPU's entries that has ended."""
    p = Profile()
    p.began, p.ended, p.timed, p._offsets = 10.0, 11.0, {"gpu:0": timed}, {"gpu:0": 0.5}
    p.gpus, p.threads = {"gpu:0"}, {1: "MainThread"}
    p.entries += entries
    for entry in entries:
        p._place_on_device(entry)
    return p


def entry(kind, name, start, end, **more):
    points = (Point(start), Point(end)) if kind not in ("read", "wait") else None
    return Entry(kind, name, "gpu:0", 0, 1, 10.0, 10.25, points=points, **more)


def test_the_table_says_what_it_knows():
    p = made(
        entry("kernel", "matmul", 9.7, 9.8, amount=Amount(2_000_000_000, 51_000_000_000)),
        entry("kernel", "other", 9.8, 9.82, amount=Amount(10_000_000, None, estimated=True)),
        entry("read", "read", 0, 0, amount=Amount(4096)),
    )
    lines = str(p.table()).splitlines()
    assert lines[0] == "profile of 1 s"
    columns = {line.split()[0]: line.split() for line in lines}
    assert columns["matmul"] == [
        "matmul", "gpu:0", "1", "100", "ms", "100", "ms", "2", "GB", "20", "51", "G", "510",
    ]  # fmt: skip
    assert columns["other"][-4:] == ["MB", "~0.5", "–", "–"]
    assert columns["other"][7] == "~10"
    assert columns["(read)"][3:5] == ["250", "ms*"]
    assert "~ the sizes of the arrays" in str(p.table())
    assert "* of reads: the host's time" in str(p.table())


def test_the_table_says_where_a_device_has_no_timestamps():
    p = made(entry("kernel", "k", 9.7, 9.8, amount=Amount(1000)), timed=False)
    assert p.table().rows[0].on_host
    assert "100 ms*" in str(p.table())
    assert "* gpu:0 has no timestamps" in str(p.table())


def test_work_on_a_lost_device_has_no_time():
    p = made(entry("kernel", "k", 9.7, 9.8, amount=Amount(8)), entry("kernel", "k", 9.8, None))
    (row,) = p.table().rows
    assert (row.count, row.timed, row.bytes_per_second) == (2, 1, None)
    assert row.mean == pytest.approx(0.1)
    assert "1 without a time: gone" in str(p.table())


def test_times_of_a_device_lie_on_the_hosts_clock_in_a_trace():
    p = made(entry("kernel", "k", 9.75, 10.0))
    host, device = (event for event in trace_events(p) if event["ph"] == "X")
    assert (host["ts"], host["dur"]) == (0.0, 250_000.0)
    assert (device["ts"], device["dur"]) == (250_000.0, 250_000.0)


def test_rich_shows_the_same_cells():
    p = made(entry("kernel", "[bold]odd", 9.7, 9.8, amount=Amount(1000)))
    out = io.StringIO()
    Console(file=out, width=120).print(p.table())
    assert "[bold]odd" in out.getvalue()
    assert "100 ms" in out.getvalue()
