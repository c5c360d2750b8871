"""What is refused, and in which words; and how actors end with their process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td


@td.struct
class Pair:
    a: td.f32
    b: td.f32


@td.actor
def count(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] = total[0] + message
    return total[0]


@td.actor
def add(message: Pair) -> td.f32:
    return message.a + message.b


def spawn(**state: Any) -> Callable[[], Any]:
    return lambda: count.spawn(device="cpu", **state)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: td.actor(capacity=3), ValueError, "a power of two up to 16777216, not 3"),
        (lambda: td.actor(capacity=True), ValueError, "a power of two"),
        (lambda: td.actor(policy="keep"), ValueError, "one of block, raise, drop_oldest"),
        (lambda: td.actor(on_error="stop"), ValueError, '"fail" or "skip"'),
        (lambda: td.actor(blocks=0), ValueError, "at least one block"),
        (lambda: td.actor(device_fraction=1.5), ValueError, "over 0 and up to 1"),
        (lambda: td.actor(device_fraction=0.5, blocks=2), ValueError, "without blocks"),
        (lambda: td.actor(restarts=-1), ValueError, "number of times"),
        (lambda: count(3), td.errors.TreadleError, "start it with ref = count.spawn"),
        (spawn(), TypeError, "needs its state: total="),
        (spawn(total=np.zeros(1, np.int32), x=1), TypeError, "no state 'x'; its state: total"),
        (spawn(total=np.zeros(1, np.float32)), td.errors.DtypeError, "state total"),
        (spawn(total=np.zeros((1, 1), np.int32)), td.errors.LaunchError, "state total"),
        (spawn(total=1), td.errors.DtypeError, "a number was given"),
        (spawn(total=np.zeros(1, np.int32), mode="fast"), td.errors.TreadleError, "no mode 'fast'"),
        (
            spawn(total=np.zeros(1, np.int32), mode="persistent"),
            td.errors.TreadleError,
            "use 'thread' or 'relaunch'",
        ),
    ],
)
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words.replace("(", r"\(")):
        call()


def without_annotation(message, x):
    return message


def of_an_array(message: td.Array[td.f32]):
    pass


def without_message():
    pass


def with_device(message: td.i32, device: td.i32):
    pass


def with_default(message: td.i32, x: td.i32 = 3):
    pass


def summing(message: td.i32, total: td.i32) -> td.i32:
    total += message
    return total


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (without_annotation, "annotate it, as in without_annotation"),
        (of_an_array, "a dtype, a vector or a td.struct"),
        (without_message, "its parameters are the message"),
        (with_device, "spawn by name, which has its own device"),
        (with_default, "not by default values"),
        (summing, r"keep it in an array, as in total: td.Array\[td.f32\], and assign total\[0\]"),
    ],
)
def test_handlers_that_are_refused(handler: Callable[..., Any], words: str) -> None:
    with pytest.raises(td.errors.CompileError, match=words):
        td.actor(handler)


@td.struct
class Sum:
    total: td.i32


def by_field(message: td.i32, state: Sum) -> td.i32:
    state.total += message
    return state.total


def by_component(message: td.i32, state: td.vec2[td.i32]) -> td.i32:
    state[1] = message
    return state[1]


def by_component_of_any(message: td.i32, state) -> td.i32:
    state.x += message
    return state.x


@pytest.mark.parametrize("handler", [by_field, by_component, by_component_of_any])
def test_state_that_would_be_lost(handler: Callable[..., Any]) -> None:
    """The next message would not see it."""
    kept = Sum(1) if handler is by_field else td.vec2[td.i32](1, 2)
    with pytest.raises(td.errors.CompileError, match="would be lost after the message") as found:
        td.actor(handler).spawn(state=kept, device="cpu")
    assert "^^^^" in str(found.value)


def test_a_reply_of_several_values() -> None:
    @td.actor
    def two(message: td.i32):
        return message, message

    with pytest.raises(td.errors.CompileError, match="is several values"):
        two.spawn(device="cpu")


def test_an_error_in_a_handler_shows_its_line() -> None:
    @td.actor
    def wrong(message: td.i32) -> td.i32:
        return message + missing  # noqa: F821

    with pytest.raises(td.errors.CompileError, match="missing is not defined") as error:
        wrong.spawn(device="cpu")
    assert "return message + missing" in str(error.value)
    assert not getattr(error.value, "__notes__", None)


@pytest.mark.parametrize("message", ["x", None, 1.5, 2**40, True, np.float32(1.5), [1]])
def test_messages_that_are_refused(message: Any) -> None:
    with count.spawn(total=np.zeros(1, np.int32), device="cpu") as ref:
        for send in (ref.send, ref.ask):
            with pytest.raises(td.errors.DtypeError, match=r"a message of count is td\.i32"):
                send(message)
        assert ref.ask(np.int64(4), timeout=30) == 4


def test_structs_that_are_refused() -> None:
    with add.spawn(device="cpu") as ref:
        for wrong in ((1.0, 2.0), 1.0, np.zeros(1, Pair.dtype)):
            with pytest.raises(td.errors.DtypeError, match="a message of add is a Pair"):
                ref.send(wrong)
        with pytest.raises(td.errors.DtypeError, match="many are an array of shape"):
            ref.send_many(np.zeros(3, np.float32))
        with pytest.raises(td.errors.DtypeError, match="an array or a sequence"):
            ref.send_many(3)
        assert ref.send_many([]) == 0
        assert ref.send_many([Pair(1, 2), Pair(3, 4)]) == 2
        assert ref.receive_many(2, timeout=30).tolist() == [3, 7]


HEAD = """
import os
import numpy as np, treadle as td

@td.actor
def count(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] = total[0] + message
    return total[0]
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    """A process that runs a program, in which `count` is an actor."""
    return subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(program)],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def test_actors_that_live_at_exit() -> None:
    """They end with the process, whichever way it ends."""
    done = run("""
    refs = [count.spawn(total=np.zeros(1, np.int32), device="cpu", mode=mode)
            for mode in ("thread", "relaunch")]
    for ref in refs:
        ref.send(1)
    raise SystemExit(3)
    """)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child() -> None:
    done = run("""
    ref = count.spawn(total=np.zeros(1, np.int32), device="cpu")
    ref.ask(1, timeout=30)
    child = os.fork()
    if not child:
        try:
            ref.ask(1, timeout=30)
        except td.errors.ActorFailed as error:
            print("forked" in str(error), flush=True)
        own = count.spawn(total=np.zeros(1, np.int32), device="cpu")
        print(own.ask(7, timeout=30), flush=True)
        own.terminate()
        os._exit(0)
    os.waitpid(child, 0)
    print(ref.ask(1, timeout=30))
    """)
    assert (done.stdout.split(), done.stderr) == (["True", "7", "2"], "")


def test_threads_end_after_their_actors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.actors.thread_pool._IDLE_SECONDS", 0.01)
    monkeypatch.setattr("treadle.actors.thread_pool._pools", [])
    before = threading.active_count()
    for _ in range(5):
        count.spawn(total=np.zeros(1, np.int32), device="cpu").ask(1, timeout=30)
    refs = [count.spawn(total=np.zeros(1, np.int32), device="cpu") for _ in range(5)]
    for ref in refs:
        ref.send(1)
        ref.terminate(timeout=30)
    for thread in threading.enumerate():
        if thread.name == "treadle actors":
            thread.join(30)
    assert threading.active_count() <= before
