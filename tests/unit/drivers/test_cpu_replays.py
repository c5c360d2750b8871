"""Recordings of the CPU, whose launches are shared by threads that spin between them."""

from __future__ import annotations

import struct
import threading
import time

import numpy as np
import pytest

from tests.support.cpu_kernels import compiled, download, upload
from treadle.core.dim3 import Dim3
from treadle.drivers.cpu import launches, native, recording, workers

# Each element of y is made of three elements of x, which other blocks have written.
STEP = """kernel step block(64, 1, 1) {
  buffer x: i32
  buffer y: i32
  parameter a: i32 from ("value", "a")
  parameter n: i32 from ("size", "y")
  for t: i32 in range(0, 64, 1) parallel {
    var i: i32 = (block_idx.x * 64) + t
    var left: i32 = ((i + n) - 70) % n
    var right: i32 = (i + 70) % n
    if (i < n) {
      y[i; i in n] = ((a * x[i; i in n]) + x[left; left in n]) - x[right; right in n]
    }
  }
}"""
SIZE, CALLS = 3000, 30


def stepped(x, a):
    return a * x + np.roll(x, 70) - np.roll(x, -70)


@pytest.fixture
def kernel(monkeypatch):
    """Its launches are shared by three threads, however short they are."""
    monkeypatch.setattr(recording, "_TOGETHER_SECONDS", 0.0)
    monkeypatch.setattr(recording, "_CHUNK_SECONDS", 0.0)
    monkeypatch.setattr(recording, "_HELPER_SECONDS", 1e-9)
    monkeypatch.setattr(launches, "SHARED_SECONDS", 0.0)
    found = compiled(STEP)
    monkeypatch.setattr(found.device, "threads", 3)
    return found


def parameters(kernel, a):
    return struct.pack(kernel.code.layout.format, a, SIZE)


def recorded(kernel, x, y):
    """Launches from one array to the other and back, and between them a copy, and the host."""
    stream, turns = kernel.device.create_stream(), []
    blocks = Dim3(-(-SIZE // 64))
    stream.begin_capture()
    for at in range(CALLS):
        source, target = (x, y) if at % 2 == 0 else (y, x)
        stream.launch(kernel, blocks, [source, target], parameters(kernel, 1))
        if at == CALLS // 2:
            stream.call_host(lambda: turns.append(1), ())
        if at == CALLS // 3:
            stream.copy(target, 0, source, 0, 4 * SIZE)
    return stream, stream.end_capture(), turns


def start():
    return np.random.default_rng(3).integers(-4, 5, SIZE).astype(np.int32)


def after(x, count=CALLS):
    for _ in range(count):
        x = stepped(x, np.int32(1))
    return x


def test_replays_are_as_launches_one_after_the_other(kernel):
    values = start()
    x, y = upload(values), upload(values)
    stream, made, turns = recorded(kernel, x, y)
    for turn in range(20):
        stream.write(x, 0, memoryview(values))
        made.replay(stream)
        np.testing.assert_array_equal(download(x, values), after(values))
        assert len(turns) == turn + 1
    shared = [step for step in made._steps if isinstance(step, recording._Step) and step.helpers]
    assert len(shared) >= 2  # before the host's work, and after it


def test_changed_launches_are_replayed_so(kernel):
    values = start()
    x, y = upload(values), upload(values)
    stream = kernel.device.create_stream()
    stream.begin_capture()
    stream.launch(kernel, Dim3(-(-SIZE // 64)), [x, y], parameters(kernel, 1))
    made = stream.end_capture()
    made.replay(stream)
    for a, blocks in ((2, 47), (3, 1), (4, 20), (5, 47)):
        stream.fill_zero(y, 0, 4 * SIZE)
        made.change(0, kernel, Dim3(blocks), parameters(kernel, a))
        made.replay(stream)
        expected = stepped(values, np.int32(a))
        expected[blocks * 64 :] = 0
        np.testing.assert_array_equal(download(y, values), expected)


def test_helpers_that_come_late_take_nothing(kernel, monkeypatch):
    """They find what is published by then, maybe of a later replay, or that all is done."""
    values = start()
    x, y = upload(values), upload(values)
    stream, made, _ = recorded(kernel, x, y)
    for _ in range(2):
        made.replay(stream)  # the first measures, the second starts threads
    late, put = [], workers._tasks.put
    tasks = type("Tasks", (), {"put": staticmethod(late.append)})()
    monkeypatch.setattr(workers, "_tasks", tasks)
    for _ in range(2):
        stream.write(x, 0, memoryview(values))
        made.replay(stream)
        np.testing.assert_array_equal(download(x, values), after(values))
    assert len(late) == 2 * 2 * 2  # replays, parts of each, helpers
    monkeypatch.undo()
    for task in late:
        put(task)
    for work, _ in late:
        work()  # as a helper does that begins now
    np.testing.assert_array_equal(download(x, values), after(values))


def test_threads_may_replay_one_recording(kernel):
    """One has the helpers; what the launches write is their affair."""
    values = start()
    x, y = upload(values), upload(values)
    stream, made, turns = recorded(kernel, x, y)
    made.replay(stream)
    threads = [threading.Thread(target=lambda: [made.replay(stream) for _ in range(30)])
               for _ in range(4)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(turns) == 1 + 4 * 30
    stream.write(x, 0, memoryview(values))
    made.replay(stream)
    np.testing.assert_array_equal(download(x, values), after(values))


def test_an_interrupted_replay_leaves_the_recording_usable(kernel, monkeypatch):
    values = start()
    x, y = upload(values), upload(values)
    stream, made, _ = recorded(kernel, x, y)
    made.replay(stream)
    real = native.lead()

    def interrupted(calls, at, count, team, spins):
        """Helpers are not done when the leader gives up waiting, and Ctrl-C is heard."""
        real(calls, at, 1, team, spins)
        team[native.WAITS], team[native.FINISHED] = 1, team[native.LAST] - 1
        threading.Timer(0.05, finish, (team,)).start()
        raise KeyboardInterrupt

    def finish(team):
        ended.append(time.monotonic())
        team[native.FINISHED] += 1

    ended = []
    monkeypatch.setattr(native, "lead", lambda: interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.replay(stream)
    assert ended
    monkeypatch.undo()
    stream.write(x, 0, memoryview(values))
    made.replay(stream)
    np.testing.assert_array_equal(download(x, values), after(values))


def test_a_leader_waits_for_blocks_of_others(kernel, monkeypatch):
    """Its loop in machine code ends now and then, so that Python hears interrupts."""
    values = start()
    x, y = upload(values), upload(values)
    monkeypatch.setattr(workers, "_SPINS_OF_LEADERS", 0)
    stream, made, _ = recorded(kernel, x, y)
    for _ in range(30):
        stream.write(x, 0, memoryview(values))
        made.replay(stream)
        np.testing.assert_array_equal(download(x, values), after(values))


def test_short_launches_are_not_shared_while_helpers_have_no_processor(kernel, monkeypatch):
    values = start()
    x, y = upload(values), upload(values)
    stream, made, _ = recorded(kernel, x, y)
    monkeypatch.setattr(launches, "SHARED_SECONDS", 1.0)  # all are short
    made.replay(stream)
    monkeypatch.setattr(launches, "SHARED_SECONDS", 0.0)
    made._prepare()
    shared, stalls, lead = [], 5, workers.lead

    def led(start, count, team, helpers, keep):
        shared.append(team[native.SHARED_FROM] == native.SHORT)
        lead(start, count, team, helpers, keep)
        return stalls

    monkeypatch.setattr(workers, "lead", led)
    for turn in range(1 + 4 + 1 + 8 + 1):
        if turn == 14:
            stalls = 0
        stream.write(x, 0, memoryview(values))
        made.replay(stream)
        np.testing.assert_array_equal(download(x, values), after(values))
    assert shared[::2] == [True, *[False] * 4, True, *[False] * 8, True]
    shared.clear()
    made.replay(stream)
    assert shared == [True, True]


def test_the_loops_are_kept_between_processes(monkeypatch):
    """So that a process that finds its kernels on disk need not load LLVM's code generator."""
    from treadle.drivers.cpu.compiler import Compiler

    kept, compiled = {}, []

    class Store:
        def load(self, *parts):
            return kept.get(parts)

        def save(self, content, *parts):
            kept[parts] = content

    def noted(host, source, name):
        compiled.append(name)
        return compile(host, source, name)

    compile = Compiler.compile_object
    monkeypatch.setattr(Compiler, "compile_object", noted)
    monkeypatch.setattr(native, "store", [Store()])
    load = native._loaded.__wrapped__
    assert len(load().addresses) == len(load().addresses) == 6
    assert compiled == ["the driver's loops"]
    kept[next(iter(kept))] = b"not an object file"
    assert len(load().addresses) == 6
    assert len(compiled) == 2
