"""Locks before and after a fork, and what has threads of the parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import treadle

LOCKS = """
import os, threading, time
from treadle.core import forks

first, second = forks.lock(), forks.lock()
half = []
forks.in_child(half.append)
over = False

def work():  # in both orders, so that no order of taking them is right
    while not over:
        with first, second: time.sleep(1e-3)
        time.sleep(1e-3)
        with second, first: time.sleep(1e-3)
        time.sleep(1e-3)

thread = threading.Thread(target=work)
thread.start()
codes = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        free = first.acquire(timeout=5) and second.acquire(timeout=5)
        os._exit(0 if free and half == [False] else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
with first:  # ours already
    child = os.fork()
    if child == 0:
        free = []
        other = threading.Thread(target=lambda: free.append(first.acquire(blocking=False)))
        other.start()
        other.join()
        os._exit(0 if free == [False] else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
over = True
thread.join()
print(codes)
"""

LOADER = """
import os
import treadle as td

data = td.data.TensorDataset(td.arange(40, device="cpu"))
batches = iter(td.data.DataLoader(data, batch_size=2, num_workers=2))
next(batches)
child = os.fork()
if child == 0:
    try:
        for _ in batches: pass
    except RuntimeError as error:
        fresh = len(list(td.data.DataLoader(data, batch_size=2, num_workers=2)))
        os._exit(0 if "begin a new loop in the child" in str(error) and fresh == 20 else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(list(batches)))
"""


def run(code):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_locks_are_free_in_the_child():
    assert run(LOCKS) == "[0, 0, 0, 0, 0, 0]"


def test_a_loop_over_a_loader_does_not_go_on_in_a_child():
    assert run(LOADER) == "0 19"


def test_every_lock_that_outlives_a_call_is_made_for_forks():
    root = Path(treadle.__file__).parent
    allowed = {"core/forks.py"}
    found = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if "threading.Lock()" in (text := path.read_text()) or "threading.RLock()" in text
    ]
    assert set(found) <= allowed, f"make these with core.forks.lock(): {found}"
