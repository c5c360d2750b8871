"""`td.distributed` through `treadle launch` and MPI: a launch for many checks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def launch(*arguments, device="cpu", **variables):
    return subprocess.run(
        [sys.executable, "-m", "treadle", "launch", "--device", device, *map(str, arguments)],
        capture_output=True, text=True, env=os.environ | variables, timeout=100, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("count", "device"), [(2, "cpu"), (4, "cpu"), (2, "webgpu")])
def test_collectives(count, device):
    seed = int.from_bytes(os.urandom(4), "little")
    drawn = 60 if device == "cpu" else 18
    done = launch("-n", count, HERE / "everything.py", device, seed, drawn, device=device)
    assert done.returncode == 0, done.stdout + done.stderr
    found = sorted(re.findall(r"\[(\d)\] right (\d) of (\d) through mpi", done.stdout))
    assert found == [(str(rank), str(rank), str(count)) for rank in range(count)]


# What the launcher, and what the other rank says, by what goes wrong.
FAILURES = {
    "raised": (
        r"rank 1 failed first: ZeroDivisionError: one over nothing \(failing.py, line \d+\)",
        r"\[0\].*rank 1 has failed: ZeroDivisionError: one over nothing",
    ),
    "killed": ("rank 1 failed first: it ended without a word", r"\[0\].*rank 1 has failed"),
    "exit": ("rank 1 failed first: exit status 3", r"\[0\].*rank 1 has failed: exit status 3"),
    "left": (
        "rank 0 failed first: DistributedError: .* number 3 cannot end: rank 1 has ended",
        r"\[0\].*rank 1 has ended, after all_reduce .* number 2, and has not started it",
    ),
    "late": (
        "rank 0 failed first: DistributedError: all_reduce",
        r"number 3 has not ended within 1.5 s: rank 1 has not started it. Where each rank is:\n"
        r".*rank 0 is in all_reduce \(sum\) of float32\[3\] number 3\n"
        r".*rank 1 is after all_reduce \(sum\) of float32\[3\] number 2",
    ),
    "recv": (
        "rank 0 failed first: DistributedError: recv from rank 1 of float32",
        r"recv from rank 1 of float32\[3\] has not ended within 1.5 s: rank 1 has not done",
    ),
    "busy": ("rank 1 failed first: KeyError: 'gone'", r"rank 0 is ended: rank 1 has failed"),
    "check-shape": (
        "failed first: DistributedError: the ranks do not start the same operation number 3",
        r"rank 0: all_reduce \(sum\) of float32\[3\]\n.*rank 1: all_reduce \(sum\) of float32\[4\]",
    ),
    "check-order": (
        "failed first: DistributedError: the ranks do not start the same operation number 3",
        r"rank 0: all_reduce \(sum\) of float32\[3\]\n.*rank 1: broadcast with root 0 of float32",
    ),
    "forgotten": (
        r"failed first: DistributedError: this process is rank \d of 2",
        r"call td.distributed.init\(\) at the beginning",
    ),
}


@pytest.fixture(scope="module")
def failed():
    modes = [*FAILURES, "unused"]
    with ThreadPoolExecutor(4) as threads:
        runs = threads.map(lambda mode: launch("-n", 2, HERE / "failing.py", mode), modes)
        return dict(zip(modes, runs, strict=True))


@pytest.mark.parametrize("mode", FAILURES)
def test_failures_end_all_ranks(failed, mode):
    done = failed[mode]
    first, others = FAILURES[mode]
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search("treadle: .*" + first, done.stderr), done.stderr
    assert re.search(others, done.stderr), done.stderr
    pids = [int(each) for each in re.findall(r"pid (\d+)", done.stdout)]
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_script_without_init_is_noticed(failed):
    done = failed["unused"]
    assert done.returncode == 0
    assert "the script has not called td.distributed.init(): 2 processes ran" in done.stderr


def test_wrong_usage():
    done = launch("-n", 2, "no-such-file.py")
    assert done.returncode == 2
    assert "there is no file" in done.stderr
