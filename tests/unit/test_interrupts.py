"""Ctrl-C while a compiler, in C code, has the thread."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from treadle.core.interrupts import Uninterruptible

COMPILE = """
import sys, threading
import treadle as td
from treadle.core import background

terms = "".join(
    f"    s = td.sin(s * {k}.5) + td.cos(s) * td.exp(s - {k})\\n" for k in range(int(sys.argv[2]))
)
source = f"def big(x: td.Array[td.f32]):\\n    s = x[0]\\n{terms}    x[0] = s\\n"
big = td.kernel(source=source)
x = td.ones(32, device=sys.argv[1]).realize()
begin = background.begin

def announced(call):
    function = call._function
    call._function = lambda: print("compiling", flush=True) or function()
    begin(call)

background.begin = announced
try:
    big[1, 32](x)
except KeyboardInterrupt:
    going_on = any(thread.name == "treadle-compile" for thread in threading.enumerate())
    print("heard", going_on, flush=True)
    sys.exit(3)
"""


@pytest.mark.parametrize(("device", "terms"), [("cpu", "480"), ("webgpu", "400")])
def test_a_compilation_is_interrupted(device, terms):
    command = [sys.executable, "-c", COMPILE, device, terms]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "compiling\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert out == "heard True\n", err
    assert process.returncode == 3, err


def test_uninterruptible_code_runs_as_a_whole():
    done = []
    before = signal.getsignal(signal.SIGINT)

    def steps(fails=False):
        with Uninterruptible():
            signal.raise_signal(signal.SIGINT)
            done.append("behind the signal")
            if fails:
                raise ZeroDivisionError
        done.append("behind the block")

    with pytest.raises(KeyboardInterrupt):
        steps()
    assert done == ["behind the signal"]
    with pytest.raises(KeyboardInterrupt) as caught:
        steps(fails=True)
    assert isinstance(caught.value.__context__, ZeroDivisionError)
    assert signal.getsignal(signal.SIGINT) is before

    def elsewhere():
        with Uninterruptible():
            done.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert done[-1] is before
