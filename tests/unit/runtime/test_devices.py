"""Which devices there are, and which one is meant."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest

import treadle as td
from tests.support.dawn import dawn_device
from treadle.runtime import devices


def test_the_cpu_is_always_there():
    cpu = td.device("cpu")
    assert cpu.id == "cpu"
    assert cpu.backend == "cpu"
    assert cpu.kind == "cpu"
    assert cpu in td.devices()
    assert td.device(cpu) is cpu
    assert td.device("cpu") is cpu


def test_best_first():
    ranks = [d.traits.rank for d in td.devices()]
    assert ranks == sorted(ranks)


def test_one_entry_for_each_physical_device():
    ids = [d.id for d in td.devices()]
    assert len(set(ids)) == len(ids)
    for provider in ("webgpu", "dawn"):
        names = [d.name for d in td.devices() if d.id.startswith(provider)]
        assert len(set(names)) == len(names)


def test_dawn_is_found_by_name_alone():
    """The automatic choice does not even load it."""
    script = """
import sys
import treadle as td
print(td.default_device().id, "wgpudawn" in sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("TREADLE_DEVICE", None)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    chosen, loaded = done.stdout.split()
    assert not chosen.startswith("dawn")
    assert loaded == "False"
    dawn = dawn_device()
    assert dawn.id == "dawn:0"
    assert dawn is td.device("dawn") is td.device("dawn:0")
    assert td.is_available("dawn")
    assert (dawn.backend, dawn.info.dialect) == ("webgpu", "tint")
    with pytest.raises(td.errors.DeviceNotFound, match="dawn:7"):
        td.device("dawn:7")


def test_opengl_when_asked_for():
    assert td.device("webgpu", api="gl").info.api == "gl"
    assert td.device("webgpu").info.api != "gl"


@pytest.mark.parametrize("spec", ["webgpu:99", "vulkan", "", "cpu:1", "CPUs"])
def test_an_unknown_device_says_what_there_is(spec):
    with pytest.raises(td.errors.DeviceNotFound, match="cpu"):
        td.device(spec)
    assert not td.is_available(spec)


def test_capital_letters_do_not_matter():
    assert td.device("CPU") is td.device("cpu")
    assert td.device("WebGPU:0") is td.device("webgpu:0")


def test_what_an_unknown_device_is_told_are_sentences():
    with pytest.raises(td.errors.DeviceNotFound, match=r"Found: .*\. Backends are"):
        td.device("abacus")
    with pytest.raises(td.errors.DeviceNotFound, match="api chooses among WebGPU"):
        td.device("cpu", api="vulkan")
    with pytest.raises(td.errors.DeviceNotFound, match="api and power choose among WebGPU"):
        td.device("cpu", api="vulkan", power="low")


def test_cuda_is_there_or_says_why_not():
    if td.is_available("cuda"):
        assert td.device("cuda").id == "cuda:0"
        return
    with pytest.raises(td.errors.DeviceNotFound, match=r"Found: .*\)\. [A-Z].*NVIDIA"):
        td.device("cuda")


def test_a_missing_package_is_hinted_at_once_where_it_would_help(monkeypatch, caplog):
    backend = devices._backend("cuda")
    monkeypatch.setattr(type(backend), "hint", lambda self: "do this")
    monkeypatch.setattr(devices, "_default", None)
    monkeypatch.delenv("TREADLE_DEVICE", raising=False)
    for _ in range(3):
        chosen = td.default_device()
    assert [r.getMessage() for r in caplog.records] == [
        f"do this (until then kernels run on {chosen.id})"
    ]
    assert devices.hints() == ["do this"]
    caplog.clear()
    monkeypatch.setenv("TREADLE_DEVICE", "cpu")
    monkeypatch.setattr(devices, "_default", None)
    td.default_device()
    assert caplog.records == []


def test_a_device_is_a_string_or_a_device():
    with pytest.raises(TypeError, match="int"):
        td.device(0)


def test_choices_go_with_webgpu():
    with pytest.raises(td.errors.DeviceNotFound, match="WebGPU"):
        td.device("cpu", api="gl")
    with pytest.raises((ValueError, td.errors.TreadleError)):
        td.device("webgpu", power="enormous")
    assert td.device("webgpu", power="low").backend == "webgpu"


def test_scopes_nest_and_end():
    outside = td.default_device()
    with td.use_device("cpu"):
        assert td.default_device().id == "cpu"
        with td.use_device("webgpu"):
            assert td.zeros(1).device.backend == "webgpu"
        assert td.zeros(1).device.id == "cpu"
    assert td.default_device() is outside


def test_setting_the_default():
    try:
        td.set_default_device("webgpu")
        assert td.default_device().backend == "webgpu"
    finally:
        td.set_default_device(None)


def test_the_environment_sets_the_default():
    code = "import treadle as td; print(td.default_device().id)"
    for wanted in ("cpu", "webgpu"):
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"TREADLE_DEVICE": wanted},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.startswith(wanted)


def test_devices_travel_by_id():
    assert pickle.loads(pickle.dumps(td.device("cpu"))) is td.device("cpu")


FORK = """
import os, sys, treadle as td
x = td.ones(4, device=sys.argv[1]).realize()
child = os.fork()
if child == 0:
    try:
        ok = x.tolist() == [1.0] * 4
    except td.errors.DeviceLost as error:
        os._exit(7 if "spawn" in str(error) and "anew" not in str(error) else 8)
    os._exit(6 if ok else 9)
_, status = os.waitpid(child, 0)
assert x.tolist() == [1.0] * 4
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize(("device", "status"), [("cpu", "6"), ("webgpu", "7")])
def test_after_a_fork(device, status):
    """The CPU's memory comes along with the child; a GPU's driver does not, and says so."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, device],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == status


FORKS = """
import os, sys, threading, time
import treadle as td
from treadle.core import forks

device = sys.argv[1]
x = td.ones(100_000, device="cpu").realize()
td.ones(1, device=device).tolist()  # a device that is not open yet is the child's to open
done = threading.Event()

def compute():
    there = td.ones(100_000, device=device)
    step = td.compile(lambda t: td.sin(t) * 2)
    number = 0
    while not done.is_set():
        number += 1
        y = step(there) + number
        y += td.random.uniform((100_000,), device=device)
        y.sum().item()

threads = [threading.Thread(target=compute) for _ in range(2)]
for thread in threads:
    thread.start()
codes = []
for turn in range(6):
    time.sleep(0.05 * turn)
    child = os.fork()
    if child == 0:
        y = td.sqrt(x + turn) @ td.ones(100_000, device="cpu") + td.random.uniform((), device="cpu")
        f = td.compile(lambda t: td.cos(t) + turn)
        ok = abs(y.item() - 100_000 * (1 + turn) ** 0.5) < 100 and f(x).shape == (100_000,)
        try:
            there = td.ones(4, device=device).tolist()
        except td.errors.DeviceLost as error:
            ok = ok and device != "cpu" and "spawn" in str(error)
        else:
            ok = ok and device == "cpu" and there == [1.0] * 4
        os._exit(0 if ok else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.set()
for thread in threads:
    thread.join()
print(codes)
"""


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_forks_while_other_threads_compute(device):
    """The locks of threads that the child lacks are free there, and what they guard is whole."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, device],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.stdout.strip() == "[0, 0, 0, 0, 0, 0]", done.stderr


FORK_AMIDST = """
import os, threading
import treadle as td
from treadle.core import forks, nesting
from treadle.graph import realize

forks.PATIENCE = 0.05
x = td.ones(4, device="cpu").realize()
begun, over = threading.Event(), threading.Event()

def hold():
    with realize._lock, nesting.deep_nesting():
        begun.set()
        over.wait()

thread = threading.Thread(target=hold)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    try:
        x.tolist()
    except td.errors.DeviceLost as error:
        os._exit(7 if "spawn" in str(error) and not nesting._inside else 8)
    os._exit(9)
over.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), x.tolist())
"""


def test_a_fork_amidst_a_computation_that_does_not_end():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK_AMIDST],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "7 [1.0, 1.0, 1.0, 1.0]", done.stderr
