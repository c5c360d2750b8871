"""Kernels that stay on a card, beside everything else that uses it; and what is left when their
process ends in one way or another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td

pytestmark = pytest.mark.cuda
_PATIENCE = 100  # seconds for a process

_COUNTER = """
import os, sys, threading, time
import numpy as np
import treadle as td

@td.actor(capacity=256)
def count(step: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] += step
    return total[0]

def spawned(**more):
    ref = count.spawn(total=td.zeros(1, dtype=td.int32), device="cuda", **more)
    assert ref.status().mode == "persistent", ref.status()
    return ref
"""
_LEFT_RUNNING = """
ref = spawned()
assert ref.ask(1, timeout=60) == 1

def go_on():
    while True:
        ref.ask(1, timeout=60)

threading.Thread(target=go_on, daemon=True).start()
time.sleep(0.05)
print("ready", flush=True)
sys.stdin.readline()
"""
_ENDS = {
    "killed": (_LEFT_RUNNING, -9),
    "interrupted": (_LEFT_RUNNING, None),
    "raised": (_LEFT_RUNNING + "raise RuntimeError('this is wanted')", 1),
    "left at once": (_LEFT_RUNNING + "os._exit(3)", 3),
    "ended": (_LEFT_RUNNING, 0),
}
_AFTERWARDS = """
ref = spawned()
assert [ref.ask(1, timeout=60) for _ in range(1000)] == list(range(1, 1001))
x = td.ones(1 << 24, device="cuda")
assert float((x * 2.0).sum()) == 2.0 ** 25
ref.terminate()
print("works")
"""
_NEVER_RETURNS = """
@td.actor
def hang(message: td.i32, stop: td.Array[td.i32]) -> td.i32:
    while stop[0] == 0:
        stop[1] += 1
    return message

ref = hang.spawn(stop=td.zeros(2, dtype=td.int32), device="cuda")
try:
    ref.ask(1, timeout=0.5)
except TimeoutError as error:
    print("ask:", error)
try:
    ref.terminate(timeout=0.5)
except TimeoutError as error:
    print("terminate:", error)
"""


@pytest.fixture
def card() -> Iterator[td.Device]:
    try:
        found = td.device("cuda")
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    with td.use_device(found):
        yield found


@td.actor(capacity=4096)
def count(step: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] += step
    return total[0]


def spawned() -> td.actors.Ref:
    ref = count.spawn(total=td.zeros(1, dtype=td.int32))
    assert ref.status().mode == "persistent"
    return ref


def start(folder: Path, text: str) -> subprocess.Popen[str]:
    script = folder / f"{len(list(folder.iterdir()))}.py"
    script.write_text(_COUNTER + text, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, script], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("way", _ENDS)
def test_the_end_of_a_process(card: td.Device, tmp_path: Path, way: str) -> None:
    text, expected = _ENDS[way]
    process = start(tmp_path, text)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate(timeout=_PATIENCE)
    if way == "killed":
        process.kill()
    elif way == "interrupted":
        process.send_signal(signal.SIGINT)
    _, err = process.communicate("go on\n", timeout=_PATIENCE)
    assert expected is None or process.returncode == expected, err
    next_one = start(tmp_path, _AFTERWARDS)
    out, err = next_one.communicate(timeout=_PATIENCE)
    assert out == "works\n", err


def test_a_handler_that_never_returns(card: td.Device, tmp_path: Path) -> None:
    """Calls keep their timeouts, and the process ends; the card is there for the next one."""
    process = start(tmp_path, _NEVER_RETURNS)
    out, err = process.communicate(timeout=_PATIENCE)
    assert process.returncode == 0, err
    assert "ask: hang has not answered" in out
    assert "If its handler does not return, the actor is lost" in out
    next_one = start(tmp_path, _AFTERWARDS)
    out, err = next_one.communicate(timeout=_PATIENCE)
    assert out == "works\n", err


def test_all_kinds_of_work_beside_it(card: td.Device) -> None:
    """What a driver may do only when nothing runs is done all the same."""
    with spawned() as ref:
        stop = threading.Event()
        asked = 0

        def ask() -> None:
            nonlocal asked
            while not stop.is_set():
                asked += 1
                assert ref.ask(1, timeout=60) == asked

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            for n in range(3):

                @td.kernel
                def fresh(x: td.Array[td.f32]) -> None:
                    i = td.grid(1)
                    if i < x.size:
                        x[i] = x[i] * 2.0 + n  # noqa: B023 - a constant of this kernel

                x = td.ones(1000)
                fresh.launch(1000, x)
                assert x.tolist() == [2.0 + n] * 1000
                big = td.zeros(1 << 28).realize()
                assert float(big[-1]) == 0.0
                del big
                y = td.ones(1 << 20)
                graph = td.Graph()
                with graph.capture():
                    fresh.launch(y.size, y)
                graph.replay()
                assert float(y[0]) == 2.0 + n
                with spawned() as other:
                    assert other.ask(5, timeout=60) == 5
                    assert other.snapshot(timeout=60)["total"].tolist() == [5]
                data = np.random.default_rng(n).random(1 << 22, np.float32)
                assert (td.asarray(data).numpy() == data).all()
        finally:
            stop.set()
            thread.join(60)
        assert ref.ask(0, timeout=60) == asked


def test_hundreds_of_actors(card: td.Device) -> None:
    refs = [count.spawn(total=np.array([n], np.int32)) for n in range(300)]
    try:
        for _ in range(2):
            for ref in refs:
                ref.send(1)
        for n, ref in enumerate(refs):
            assert ref.receive_many(2, timeout=60).tolist() == [n + 1, n + 2]
    finally:
        for ref in refs:
            ref.terminate(timeout=60)


def test_pytorch_trains_beside_it(card: td.Device) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA here")

    def train() -> list[float]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)
        ).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x = torch.randn(4096, 64, device="cuda")
        y = x.sum(1, keepdim=True)
        losses = []
        for _ in range(100):
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    alone = train()
    with spawned() as ref:
        done = threading.Event()
        asked = 0

        def ask() -> None:
            nonlocal asked
            while not done.is_set():
                asked += 1
                assert ref.ask(1, timeout=60) == asked

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            beside = train()
        finally:
            done.set()
            thread.join(60)
    assert asked > 100
    assert beside[-1] < beside[0] / 10
    np.testing.assert_allclose(beside, alone, rtol=1e-3)


@pytest.mark.parametrize("way", ["persistent", "relaunch"])
def test_pytorch_records_a_graph_beside_it(card: td.Device, way: Any) -> None:
    """Its captures forbid many calls in all threads of the process."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA here")
    x, graph = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
    y = x * 2  # what it needs is loaded
    torch.cuda.synchronize()
    with count.spawn(total=td.zeros(1, dtype=td.int32), mode=way) as ref:
        done, asked = threading.Event(), 0

        def ask() -> None:
            nonlocal asked
            while not done.is_set():
                asked += 1
                assert ref.ask(1, timeout=60) == asked

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            with torch.cuda.graph(graph):
                for _ in range(2000):
                    y = x * 2
            graph.replay()
            torch.cuda.synchronize()
        finally:
            done.set()
            thread.join(60)
        assert y.tolist() == [2.0] * 1000
        assert ref.ask(0, timeout=60) == asked


def test_ten_million_messages(card: td.Device) -> None:
    """In chunks of any size, with pauses and snapshots: each is handled once, in order."""
    total = int(os.environ.get("TREADLE_SOAK_MESSAGES", "10000000"))
    rng = np.random.default_rng(5)

    @td.actor(capacity=1 << 14)
    def echo(message: td.i32, sums: td.Array[td.i64]) -> td.i32:
        sums[0] += td.i64(message)
        sums[1] += 1
        return message

    with echo.spawn(sums=td.zeros(2, dtype=td.int64)) as ref:
        assert ref.status().mode == "persistent"
        wrong: list[tuple[int, int]] = []

        def receive() -> None:
            got = 0
            while got < total:
                part = ref.receive_many(min(1 << 14, total - got), timeout=10)
                if not np.array_equal(part, np.arange(got, got + len(part), dtype=np.int32)):
                    wrong.append((got, len(part)))
                    return
                got += len(part)

        receiver = threading.Thread(target=receive)
        receiver.start()
        sent = 0
        while sent < total and not wrong:
            chunk = min(int(rng.integers(1, 1 << 15)), total - sent)
            ref.send_many(np.arange(sent, sent + chunk, dtype=np.int32), timeout=60)
            sent += chunk
            if rng.random() < 0.02:
                ref.pause(timeout=60)
                ref.resume(timeout=60)
            if rng.random() < 0.01:
                ref.snapshot(timeout=60)
        receiver.join(100)
        assert not receiver.is_alive()
        assert not wrong
        assert ref.snapshot(timeout=60)["sums"].tolist() == [total * (total - 1) // 2, total]
        assert ref.status().messages_processed == total
