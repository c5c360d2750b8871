"""`td.distributed` through `treadle launch` and MPI: a launch for many checks."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from treadle.distributed.guard import processes_with
from treadle.distributed.launching import Launch, Shown, run

HERE = Path(__file__).parent


def launched(count, script, *arguments, device="cpu", backend="mpi", variables=()):
    """What `treadle launch` gives: its status, and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    launch = Launch(
        count, [str(HERE / script), *map(str, arguments)], backend,
        variables={"TREADLE_DEVICE": device, **dict(variables)},
    )  # fmt: skip
    status = run(launch, lambda line: err.write(f"treadle: {line}\n"), Shown(out, err))
    return subprocess.CompletedProcess(script, status, out.getvalue(), err.getvalue())


@pytest.mark.parametrize(
    ("count", "device", "script", "drawn", "parts"),
    [
        (2, "cpu", "everything.py", 24, ["all"]),
        # Where more ranks do the same, none compiles kernels for it.
        (3, "numpy", "everything.py", 12, ["training"]),
        (2, "webgpu", "everything.py", 12, []),
        (4, "numpy", "everything.py", 0, ["programs"]),
        (2, "cpu", "nccl_by_mpi.py", 18, ["compiled", "uneven", "groups", "messages", "traces"]),
    ],
    ids=["2", "3", "webgpu", "4", "nccl"],
)
def test_collectives(count, device, script, drawn, parts):
    seed = int.from_bytes(os.urandom(4), "little")
    done = launched(count, script, device, seed, drawn, *parts, device=device)
    assert done.returncode == 0, done.stdout + done.stderr
    backend = "nccl" if script.startswith("nccl") else "mpi"
    found = sorted(re.findall(rf"\[(\d)\] right (\d) of (\d) through {backend}", done.stdout))
    assert found == [(str(rank), str(rank), str(count)) for rank in range(count)]


# What the launcher, and what the other rank says, by what goes wrong.
FAILURES = {
    "raised": (
        r"rank 1 failed first: ZeroDivisionError: one over nothing \(failing.py, line \d+\)",
        r"\[0\].*rank 1 has failed: ZeroDivisionError: one over nothing",
    ),
    # MPICH's mpiexec then kills the others at once, so rank 0 may not get to say so.
    "killed": ("rank 1 failed first: it ended without a word", "then rank 0 ended"),
    "left": (
        "rank 0 failed first: DistributedError: .* number 3 cannot end: rank 1 has ended",
        r"\[0\].*rank 1 has ended, after all_reduce .* number 2, and has not started it",
    ),
    "late": (
        "rank 0 failed first: DistributedError: all_reduce",
        r"number 3 has not ended within 3 s: rank 1 has not started it. Where each rank is:\n"
        r".*rank 0 is in all_reduce \(sum\) of float32\[3\] number 3\n"
        r".*rank 1 is after all_reduce \(sum\) of float32\[3\] number 2",
    ),
    "recv": (
        "rank 0 failed first: DistributedError: recv from rank 1 of float32",
        r"recv from rank 1 of float32\[3\] has not ended within 3 s: rank 1 has not done",
    ),
    "other": (
        r"rank 0 failed first: DistributedError: recv from rank 1 of float32\[2\]: the message "
        r"that arrives is float32\[3\].*\(failing.py, line \d+; recv was called at failing.py:",
        r"\[0\] recv was called at failing.py:\d+\n",
    ),
    "busy": ("rank 1 failed first: KeyError: 'gone'", r"rank 0 is ended: rank 1 has failed"),
    "check-shape": (
        "failed first: DistributedError: the ranks do not start the same operation number 3",
        r"rank 0: all_reduce \(sum\) of float32\[3\]\n.*rank 1: all_reduce \(sum\) of float32\[4\]",
    ),
    "group": (
        "rank 0 failed first: DistributedError: all_reduce",
        r"number 2 among ranks 1, 0 has not ended within 3 s: rank 1 has not started it. Where "
        r"each rank is:\n.*rank 0 is in all_reduce \(sum\) of float32\[3\] number 2 among",
    ),
    "check-group": (
        "failed first: DistributedError: the ranks do not start the same operation number 1",
        r"rank 1: all_gather of int32\[4\]\n.*rank 0: all_gather of int32\[3\]",
    ),
    "check-message": (
        r"rank 1 failed first: 2 messages were sent, and not received: send to "
        r"rank 0 of float32\[2\], called at failing.py:\d+; send to rank 0 of float32\[3\], called",
        r"\[1\] treadle: rank 1: 2 messages were sent",
    ),
    "forgotten": (
        r"failed first: DistributedError: this process is rank \d of 2",
        r"call td.distributed.init\(\) at the beginning",
    ),
}


@pytest.fixture(scope="module")
def failed():
    modes = [*FAILURES, "unused", "message"]
    with ThreadPoolExecutor(3) as threads:
        runs = threads.map(lambda mode: launched(2, "failing.py", mode), modes)
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


def stopped(mode, number):
    """The status of a launcher that is sent a signal, once no process of its job is there."""
    command = [sys.executable, "-m", "treadle", "launch", "-n", "2", "--device", "cpu"]
    launcher = subprocess.Popen(
        [*command, str(HERE / "failing.py"), mode], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    keys = {launcher.stdout.readline().split()[-1] for _ in range(2)}
    (variable,) = {f"TREADLE_STORE_KEY={key}" for key in keys}
    assert len(processes_with(variable)) >= 3
    launcher.send_signal(number)
    _, said = launcher.communicate()
    until = time.monotonic() + 60
    while processes_with(variable) and time.monotonic() < until:
        time.sleep(0.05)
    assert not processes_with(variable)
    assert "Exception ignored" not in said
    assert "Traceback" not in said
    return launcher.returncode


@pytest.mark.parametrize(
    ("mode", "number", "status"),
    [
        # An mpiexec that waits for ever, and a launcher that cannot end it.
        ("alone", signal.SIGKILL, -signal.SIGKILL),
        ("late", signal.SIGINT, 128 + signal.SIGINT),
        ("late", signal.SIGTERM, 128 + signal.SIGTERM),
    ],
)
def test_a_launcher_that_is_stopped_leaves_nothing(mode, number, status):
    assert stopped(mode, number) == status


def test_a_script_without_init_is_noticed(failed):
    done = failed["unused"]
    assert done.returncode == 0
    assert "the script has not called td.distributed.init(): 2 processes ran" in done.stderr


def test_messages_without_a_receive_are_named_in_debug_mode_alone(failed):
    done = failed["message"]
    assert done.returncode == 0, done.stderr
    assert "--check names those that have none" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("backend", ["mpi", "nccl"])
def test_several_hosts(tmp_path, backend):
    """This host by two names: each has one rank."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "import treadle as td\n"
        "from treadle.distributed.environment import launched\n"
        "found = launched()\n"
        "if found.backend == 'mpi':\n"
        "    td.distributed.init()\n"
        "    assert td.distributed.all_reduce(td.ones(2)).tolist() == [2.0, 2.0]\n"
        "print(found.rank, found.size, found.local_rank, found.store_is_open, found.backend)\n"
    )
    out, err = io.StringIO(), io.StringIO()
    launch = Launch(
        2, [str(script)], backend, ("localhost", "127.0.0.1"), variables={"TREADLE_DEVICE": "cpu"}
    )
    assert run(launch, lambda line: None, Shown(out, err)) == 0, err.getvalue()
    assert sorted(out.getvalue().splitlines()) == [
        f"[0] 0 2 0 True {backend}", f"[1] 1 2 0 True {backend}",
    ]  # fmt: skip


def test_a_host_without_an_address():
    said = []
    launch = Launch(1, [str(HERE / "failing.py"), "unused"], "mpi", ("no-such-host.invalid:1",))
    assert run(launch, said.append, Shown(io.StringIO(), io.StringIO())) == 1
    assert "'no-such-host.invalid:1' has no address (is --hosts right?)" in said[0]


def test_the_command(tmp_path):
    def treadle(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "treadle", "launch", "--device", "cpu", *map(str, arguments)],
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

    done = treadle("-n", 2, tmp_path / "no-such-file.py")
    assert done.returncode == 2
    assert "there is no file" in done.stderr
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, treadle as td\n"
        "td.distributed.init()\n"
        "print(sys.argv, td.distributed.all_reduce(td.ones(2)).tolist())\n"
    )
    trace = tmp_path / "trace.json"
    done = treadle("-n", 1, "--no-prefix", "--profile", trace, script, "--own", "option", "-n", 7)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[str(script), '--own', 'option', '-n', '7']} [1.0, 1.0]\n"
    events = json.loads(trace.read_text())["traceEvents"]
    assert "rank 0: cpu" in {each["args"].get("name") for each in events if each["ph"] == "M"}


def test_pytorchs_interface_in_processes_of_its_own(tmp_path):
    seed = int.from_bytes(os.urandom(4), "little")
    done = subprocess.run(
        [sys.executable, HERE / "torch_door.py", "2", str(seed), tmp_path],
        capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "TREADLE_DEVICE": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines[1:] == ["named", "right 0 of 2", "right 1 of 2"]
    losses = [float(each) for each in lines[0].removeprefix("losses ").split()]
    assert losses[0] > losses[-1]


@pytest.mark.timeout(300)
def test_ray_starts_a_training_again_from_its_checkpoint(tmp_path):
    # Sockets' paths are short.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as temporary:
        done = subprocess.run(
            [sys.executable, HERE / "ray_trained.py", tmp_path, temporary],
            capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "right" in done.stdout.splitlines()
