"""Calls of compilers in worker threads: results, order, errors, forks, the end, the notice."""

from __future__ import annotations

import contextvars
import io
import os
import subprocess
import sys
import threading

import pytest

from treadle.core import background
from treadle.core.background import Call, Raised
from treadle.core.processors import usable_processors

SECONDS = 60


@pytest.fixture
def workers(monkeypatch):
    """Workers of the test's own, two of them."""
    made = background._Workers()
    made.most = 2
    monkeypatch.setattr(background, "_workers", made)
    return made


def begun(function, name="k"):
    call = Call(function, name)
    background.begin(call)
    return call


class Gate:
    """A function that a worker cannot leave until it is opened."""

    def __init__(self):
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self):
        self.entered.set()
        assert self.open.wait(SECONDS)
        return threading.current_thread().name


def test_calls_run_at_the_same_time(workers):
    gates = Gate(), Gate(), Gate()
    calls = [begun(gate) for gate in gates]
    assert gates[0].entered.wait(SECONDS)
    assert gates[1].entered.wait(SECONDS)
    assert len(workers.running) == 2  # the third waits for a thread
    assert list(workers.waiting) == [calls[2]]
    for gate in gates:
        gate.open.set()
    assert [call.result() for call in calls] == ["treadle-compile"] * 3
    assert [call.result() for call in calls] == ["treadle-compile"] * 3  # and once more


def test_what_is_waited_for_comes_first(workers):
    workers.most = 1
    gate, order = Gate(), []
    first = begun(gate)
    assert gate.entered.wait(SECONDS)
    calls = [begun(lambda n=n: order.append(n)) for n in range(4)]
    waiter = threading.Thread(target=calls[2].result)
    waiter.start()
    while workers.waiting[0] is not calls[2]:
        waiter.join(0.001)
    gate.open.set()
    waiter.join()
    for call in (first, *calls):
        call.result()
    assert order == [2, 0, 1, 3]


def test_results_errors_and_the_context_come_through(workers):
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(5)
    assert begun(variable.get).result() == 5

    def fails():
        raise ZeroDivisionError("in the thread")

    call = begun(fails)
    with pytest.raises(ZeroDivisionError, match="in the thread"):
        call.result()
    with pytest.raises(Raised):  # the error is not kept
        call.result()


def test_without_threads_the_waiting_one_calls(workers, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    call = Call(threading.current_thread, "k")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        background.begin(call)
        assert call.result() is threading.current_thread()
    assert not workers.running


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_waits_for_calls_and_the_child_begins_the_others(workers):
    from treadle.core import forks

    workers.most = 1
    before, after = workers.before_fork, workers.after_fork_in_parent
    forks.around(before, after)
    hook = forks.in_child(lambda half_changed: workers.in_child())
    try:
        gate = Gate()
        running = begun(gate)
        waiting = begun(lambda: "made")
        assert gate.entered.wait(SECONDS)
        opener = threading.Timer(0.05, gate.open.set)
        opener.start()
        child = os.fork()
        if child == 0:  # no thread of the parent's is here
            good = running.ended and not waiting.ended and waiting.result() == "made"
            os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert waiting.result() == "made"
        opener.join()
    finally:
        forks._around.remove((before, after))
        forks._hooks.remove(hook)


def test_while_a_process_forks_only_awaited_calls_begin(workers):
    """A thread that holds a lock and waits for a call has to finish, or the fork waits for ever."""
    workers.before_fork()
    awaited, other = begun(lambda: "made"), begun(lambda: "later")
    assert awaited.result() == "made"
    assert not other.ended
    assert list(workers.waiting) == [other]
    workers.after_fork_in_parent()
    assert other.result() == "later"


END = """
import ctypes, threading, time
from treadle.core import background
entered = threading.Event()
def compile():
    entered.set()
    {body}
for function in (compile, lambda: print("begun after the end")):
    background.begin(background.Call(function, "k"))
assert entered.wait(60)
print("end")
"""


@pytest.mark.parametrize("body", ["time.sleep(10)", "ctypes.CDLL(None).sleep(10)"])
def test_a_process_ends_while_calls_run(body):
    done = subprocess.run(
        [sys.executable, "-c", END.replace("{body}", body)],
        capture_output=True, text=True, timeout=SECONDS,
        env=os.environ | {"TREADLE_COMPILE_THREADS": "1"},
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)


# --- the notice ----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """Standard error that a person looks at, or not. `seen` is set when a text was written."""

    def __init__(self, awaited="", is_terminal=True):
        super().__init__()
        self.awaited, self.is_terminal = awaited, is_terminal
        self.seen = threading.Event()

    def isatty(self):
        return self.is_terminal

    def write(self, text):
        super().write(text)
        if self.awaited in text:
            self.seen.set()
        return len(text)


def test_a_notice_counts_kernels_and_goes_away(workers, monkeypatch):
    monkeypatch.setattr(background, "_SLOW_SECONDS", -1.0)
    terminal = Terminal("treadle: compiling 3 kernels, 1 done")
    monkeypatch.setattr(sys, "stderr", terminal)
    first = begun(lambda: None)
    calls = [begun(lambda: terminal.seen.wait(SECONDS)) for _ in range(2)]
    assert [call.result() for call in (first, *calls)] == [None, True, True]
    lines = terminal.getvalue().split("\r")
    assert lines[-1] == ""
    assert set(lines[-2]) == {" "}  # over the last notice


def test_a_notice_names_a_single_kernel(workers, monkeypatch):
    monkeypatch.setattr(background, "_SLOW_SECONDS", -1.0)
    terminal = Terminal("treadle: compiling kernel attend")
    monkeypatch.setattr(sys, "stderr", terminal)
    assert begun(lambda: terminal.seen.wait(SECONDS), "attend").result()


@pytest.mark.parametrize("stderr", [Terminal(is_terminal=False), None])
def test_other_programs_read_no_notice(workers, monkeypatch, stderr):
    monkeypatch.setattr(background, "_SLOW_SECONDS", -1.0)
    monkeypatch.setattr(sys, "stderr", stderr)
    gate = Gate()
    call = begun(gate)
    assert gate.entered.wait(SECONDS)
    background.show_notice()
    gate.open.set()
    call.result()
    assert stderr is None or stderr.getvalue() == ""


def test_a_line_that_is_being_written_is_not_overwritten(workers, monkeypatch):
    monkeypatch.setattr(background, "_SLOW_SECONDS", -1.0)
    terminal = Terminal("treadle: compiling kernel attend")
    monkeypatch.setattr(sys, "stderr", terminal)
    gate = Gate()
    call = begun(gate, "attend")
    assert gate.entered.wait(SECONDS)
    with background.without_notice():
        background.show_notice()
        assert terminal.getvalue() == ""
    background.show_notice()
    assert "compiling kernel attend" in terminal.getvalue()
    gate.open.set()
    call.result()


def test_a_short_wait_has_no_notice(workers, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    gate = Gate()
    call = begun(gate)
    background.show_notice()
    gate.open.set()
    call.result()
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("value", "most"), [("3", 3), ("", None), ("none", None)])
def test_how_many_calls_run_at_the_same_time(monkeypatch, value, most):
    monkeypatch.setenv("TREADLE_COMPILE_THREADS", value)
    usual = min(usable_processors(), background._MOST_WORKERS)
    assert background._Workers().most == (most or usual)
