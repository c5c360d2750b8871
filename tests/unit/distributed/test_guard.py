"""Processes that are found by their environment, and ended."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from treadle.distributed import guard

pytestmark = pytest.mark.skipif(
    not guard.can_find(), reason="environments of processes are Linux's"
)

# Ignores what asks it to end, and says when it does.
WAITS = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("waits", flush=True)
time.sleep(100)
"""


def waiting(variables):
    found = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", WAITS], stdout=subprocess.PIPE,
        env={**os.environ, **variables},
    )  # fmt: skip
    found.stdout.readline()
    return found


def test_what_a_launcher_leaves_is_ended_with_it():
    mine, other = waiting({"OF_JOB": "one"}), waiting({"OF_JOB": "one more"})
    script = (
        "import os\n"
        "from treadle.distributed.guard import Guard\n"
        "guard = Guard('OF_JOB=one')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    try:
        assert guard.processes_with("OF_JOB=one") == [mine.pid]
        subprocess.run([sys.executable, "-c", script], check=False)
        assert mine.wait(30) == -9
        assert other.poll() is None
    finally:
        for each in (mine, other):
            each.kill()
            each.communicate()


def test_nothing_is_ended_when_all_is_done():
    left = waiting({"OF_JOB": "two"})
    try:
        made = guard.Guard("OF_JOB=two")
        made.close()
        assert left.poll() is None
        made.end()
        assert left.wait(30) == -9
    finally:
        left.kill()
        left.communicate()
