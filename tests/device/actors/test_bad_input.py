"""What goes wrong around actors: errors in words, in time, and nothing hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.actors import ring_code as code
from treadle.drivers.webgpu_native.dawn import swiftshader


@td.actor(capacity=8)
def count(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] = total[0] + message
    return total[0]


def test_a_device_that_is_lost(device: td.Device, mode: str | None) -> None:
    """Those that ask meanwhile hear of it, and the next actor works."""
    ref = count.spawn(total=np.zeros(1, np.int32), device=device, mode=mode)
    assert ref.ask(1, timeout=60) == 1
    ref.pause(timeout=60)
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            ref.ask(1, timeout=60)
        except td.errors.TreadleError as error:
            failed.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    while not ref.status().input_depth:
        time.sleep(0.001)
    device.close()
    ref.resume(timeout=60)
    asker.join()
    assert isinstance(failed[0], td.errors.ActorFailed)
    for use in (lambda: ref.ask(1, timeout=60), lambda: ref.send(1), ref.snapshot):
        with pytest.raises(td.errors.ActorFailed, match="closed") as error:
            use()
        assert isinstance(error.value.__cause__, td.errors.DeviceLost)
    ref.terminate(timeout=60)
    assert (ref.status().state, ref.status().dropped) == ("failed", 1)
    with count.spawn(total=np.zeros(1, np.int32), device=device, mode=mode) as other:
        assert other.ask(2, timeout=60) == 2


def test_messages_of_other_types(device: td.Device, mode: str | None) -> None:
    """They are refused where they are sent; the actor goes on."""
    with count.spawn(total=np.zeros(1, np.int32), mode=mode) as ref:
        for wrong in ("x", 1.5, 2**31, None):
            for use in (
                lambda given=wrong: ref.send(given),
                lambda given=wrong: ref.ask(given, timeout=60),
                lambda given=wrong: ref.send_many([1, given]),
                lambda given=wrong: asyncio.run(ref.ask_async(given, timeout=60)),
            ):
                with pytest.raises(td.errors.DtypeError, match=r"a message of count is td\.i32"):
                    use()
        assert ref.ask(3, timeout=60) == 3


def test_state_of_another_dtype(device: td.Device, mode: str | None) -> None:
    for wrong in (np.zeros(1, np.float32), td.zeros(1, device=device), np.zeros(1, "M8[s]"), 1.5):
        with pytest.raises(td.errors.DtypeError):
            count.spawn(total=wrong, device=device, mode=mode)
    with count.spawn(total=np.zeros(1, np.int32), device=device, mode=mode) as ref:
        with pytest.raises(td.errors.TreadleError, match="total"):
            ref.restore({"total": np.zeros(1, np.float32)}, timeout=60)
        assert ref.ask(1, timeout=60) == 1


def test_an_actor_that_is_asked_after_its_end(device: td.Device, mode: str | None) -> None:
    ref = count.spawn(total=np.zeros(1, np.int32), mode=mode)
    ref.terminate(timeout=60)
    uses: list[Callable[[], Any]] = [
        lambda: ref.ask(1, timeout=60),
        lambda: asyncio.run(ref.ask_async(1, timeout=60)),
        lambda: ref.send(1),
        lambda: ref.send_many([1]),
        lambda: ref.receive(timeout=60),
        lambda: ref.restore({}, timeout=60),
        lambda: ref.resume(timeout=60),
    ]
    for use in uses:
        with pytest.raises(td.errors.ActorFailed, match="count was terminated"):
            use()


@td.actor(capacity=8)
def stuck(message: td.i32, x: td.Array[td.i32]) -> td.i32:
    while td.atomic_add(x, 0, 0) < message:
        x[1] = x[1] + 1
    return message


@pytest.mark.parametrize("cpu_mode", ["thread", "relaunch"])
def test_a_handler_that_does_not_return(cpu_mode: str) -> None:
    """Every wait ends with its timeout. Here it returns in the end, when the test says so."""
    ref = stuck.spawn(x=np.zeros(2, np.int32), device="cpu", mode=cpu_mode)
    memory = ref._program.states[0].buffer.host_bytes().cast("i")
    assert ref.ask(0, timeout=60) == 0
    for use in (
        lambda: ref.ask(1, timeout=0.05),
        lambda: asyncio.run(ref.ask_async(0, timeout=0.05)),
        lambda: ref.receive(timeout=0.05),
        lambda: ref.pause(timeout=0.05),
        lambda: ref.snapshot(timeout=0.05),
    ):
        with pytest.raises(TimeoutError):
            use()
    with pytest.raises(td.errors.QueueFull):
        ref.send_many(np.zeros(9, np.int32), timeout=0.05)
    with pytest.raises(TimeoutError, match=r"has not ended within 0\.05 s"):
        ref.terminate(timeout=0.05)
    if cpu_mode == "thread":  # it has cost a thread of many
        with count.spawn(total=np.zeros(1, np.int32), device="cpu") as other:
            assert other.ask(1, timeout=60) == 1
    memory[0] = 1
    ref.terminate(timeout=60)
    assert ref.status().state == "terminated"
    assert ref._mailbox.words[code.ERRORS] == 0


_PROGRAM = """
import os, signal, sys, threading, time
import numpy as np, treadle as td

@td.actor
def count(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] = total[0] + message
    return total[0]

@td.actor
def stuck(message: td.i32, x: td.Array[td.i32]) -> td.i32:
    while td.atomic_add(x, 0, 0) < message:
        x[1] = x[1] + 1
    return message

device, mode = sys.argv[1:]
ref = count.spawn(total=np.zeros(1, np.int32), device=device, mode=mode)
assert ref.ask(1, timeout=60) == 1
ref.send_many(np.ones(500, np.int32))
if device == "cpu":
    never = stuck.spawn(x=np.zeros(2, np.int32), device=device)
    never.send(1)
    while never.status().input_depth:
        time.sleep(0.001)
print("alive", flush=True)
"""
_WAYS = {
    "the end": ("", 0),
    "an exception": ("raise ValueError('on purpose')", 1),
    "Ctrl-C": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -signal.SIGINT),
    "os._exit": ("os._exit(5)", 5),
    "a signal": ("os.kill(os.getpid(), signal.SIGKILL); time.sleep(60)", -9),
}


@pytest.mark.parametrize(
    ("way", "cpu_mode"), [*((way, "thread") for way in _WAYS), ("an exception", "relaunch")]
)
def test_processes_that_end_with_living_actors(way: str, cpu_mode: str) -> None:
    """One with messages, one whose handler never returns."""
    program, code_of_exit = _WAYS[way]
    done = _run(_PROGRAM + program, "cpu", cpu_mode)
    assert (done.returncode, done.stdout) == (code_of_exit, "alive\n"), done.stderr


def test_a_process_that_ends_with_an_actor_of_a_gpu(device: td.Device) -> None:
    if device.id not in ("webgpu:0", "dawn:0", "cuda:0"):  # another process has no other
        return
    driver = swiftshader()
    chosen = {"VK_DRIVER_FILES": str(driver)} if device.id == "dawn:0" and driver else {}
    done = _run(_PROGRAM, device.id, "relaunch", **chosen)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def _run(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
    )  # fmt: skip
