"""Faults that break a context: who is told, what is said, and what works afterwards."""

from __future__ import annotations

import itertools
import os
import struct

import numpy as np
import pytest

from tests.support.fake_cuda_driver import FakeCard, FakeDriver
from tests.unit.drivers.cuda.conftest import open_device, ptx
from treadle.core.dim3 import Dim3
from treadle.core.errors import DeviceLost, LaunchError
from treadle.drivers.cuda import errors


@pytest.fixture
def broken(device, fake):
    """A device on which "scale" and "add" were launched, the second with a fault."""
    x = device.allocate(4)
    for name in ("innocent", "scale", "add"):
        device.default_stream.launch(device.compile(ptx(name)), Dim3(1), (x,), b"")
        if name == "innocent":
            device.default_stream.synchronize()
    fake.failures.update(dict.fromkeys(("cuStreamSynchronize", "cuMemcpyDtoHAsync"), 700))
    return device, x


def test_the_error_names_the_suspects(broken):
    device, x = broken
    with pytest.raises(DeviceLost) as caught:
        device.default_stream.read(x, 0, memoryview(bytearray(4)))
    message = str(caught.value)
    assert "launched since the last wait: scale, add." in message
    assert "innocent" not in message
    assert "checked=False" in message
    assert "CUDA_ERROR_700 (700)" in message


def test_every_later_use_says_so(broken, fake):
    device, x = broken
    kernel = device.compile(ptx())
    other = device.create_stream()
    with pytest.raises(DeviceLost):
        device.default_stream.synchronize()
    fake.failures.clear()
    fake.calls.clear()
    stream = device.default_stream
    for use in (
        lambda: stream.launch(kernel, Dim3(1), (x,), b""),
        lambda: other.launch(kernel, Dim3(1), (x,), b""),
        lambda: device.allocate(4),
        lambda: device.compile(ptx()),
        lambda: device.create_stream(),
        lambda: stream.write(x, 0, memoryview(b"abcd")),
        lambda: stream.read(x, 0, memoryview(bytearray(4))),
        lambda: stream.read(x, 0, memoryview(bytearray(1 << 20))),
        lambda: stream.fill_zero(x, 0, 4),
        lambda: stream.copy(x, 0, x, 0, 4),
        lambda: stream.record(),
        lambda: stream.synchronize(),
        lambda: stream.begin_capture(),
        lambda: stream.native_handle(),
        lambda: stream.wait_for(1),
        lambda: device.borrow_address(4096, 4, None),
    ):
        with pytest.raises(DeviceLost, match="scale, add"):
            use()
    assert fake.calls == []  # a broken context is left in peace
    device.free(x)
    assert device.memory_stats()["buffers"] == 0


def test_a_fault_seen_at_a_launch(device, fake):
    x, kernel = device.allocate(4), device.compile(ptx("late"))
    device.default_stream.launch(kernel, Dim3(1), (x,), b"")
    fake.failures["cuLaunchKernel"] = 719
    with pytest.raises(DeviceLost, match="late"):
        device.default_stream.launch(kernel, Dim3(1), (x,), b"")


@pytest.mark.parametrize("code", [*errors.KERNEL_FAULTS, *errors.DEVICE_FAULTS])
def test_faults_lose_the_device(device, fake, code):
    fake.failures["cuStreamSynchronize"] = code
    with pytest.raises(DeviceLost, match=rf"\({code}\)"):
        device.default_stream.synchronize()


def test_other_errors_do_not(device, fake):
    fake.failures["cuStreamSynchronize"] = 801
    with pytest.raises(LaunchError, match=r"\(801\)"):
        device.default_stream.synchronize()
    fake.failures.clear()
    device.default_stream.synchronize()


def test_another_card_works_and_the_same_one_in_no_new_device(install):
    fake = install(FakeDriver(cards=[FakeCard(), FakeCard()]))
    first, second = open_device(0), open_device(1)
    fake.failures["cuStreamSynchronize"] = 700
    with pytest.raises(DeviceLost):
        first.default_stream.synchronize()
    fake.failures.clear()
    second.default_stream.synchronize()
    assert fake.retained == {0: 1, 1: 1}
    first.close()
    assert fake.retained == {0: 0, 1: 1}  # nobody holds the broken context any more
    with pytest.raises(DeviceLost, match="new process"):
        open_device(0)
    second.close()


def test_a_closed_device_gives_everything_back_and_says_so(device, fake):
    x, before = device.allocate(4), fake.free_memory
    stream = device.create_stream()
    stream.write(x, 0, memoryview(np.zeros(4, np.uint8)))
    kernel = device.compile(ptx())
    device.close()
    device.close()
    assert fake.retained == {0: 0}
    assert fake.free_memory == before + 4
    for one in (stream, device.default_stream):
        with pytest.raises(DeviceLost, match="closed; open it again"):
            one.launch(kernel, Dim3(1), (x,), b"")
        with pytest.raises(DeviceLost, match="closed"):
            one.synchronize()
    made = {a[0] for a in fake.named("cuStreamDestroy")}
    assert len(made) == 2
    calls = len(fake.calls)
    device.free(x)
    del stream, kernel
    assert len(fake.calls) == calls


def test_a_context_that_stays_broken_cannot_be_opened(install):
    fake = install()
    fake.failures["cuStreamCreate"] = 700
    with pytest.raises(DeviceLost, match="another library"):
        open_device()
    assert fake.retained == {0: 0}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_after_a_fork(device):
    child = os.fork()
    if child == 0:
        try:
            device.default_stream.synchronize()
        except DeviceLost as error:
            os._exit(7 if "spawn" in str(error) and "After such" not in str(error) else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    device.default_stream.synchronize()


# ---------------------------------------------------------------------- events


def test_events_share_a_clock(device, fake):
    stream = device.default_stream
    times = [stream.record() for _ in range(3)]
    assert [b.seconds() - a.seconds() for a, b in itertools.pairwise(times)] == (
        pytest.approx([1.5e-3, 1.5e-3])
    )
    assert all(event.query() for event in times)
    handle = times[0].handle
    del times
    assert stream.record().handle is not None
    assert handle in {event[0] for event in fake.named("cuEventRecord")}


def test_events_far_apart_are_measured_in_steps(device, fake, monkeypatch):
    from treadle.drivers.cuda import events

    stream = device.default_stream
    old = stream.anchor
    monkeypatch.setattr(events, "_ANCHOR_AGE", -1.0)
    first, second = stream.record(), stream.record()
    assert stream.anchor is not old
    assert second.seconds() - first.seconds() == pytest.approx(3e-3)  # an anchor lies between
    measured = {(a[1], a[2]) for a in fake.named("cuEventElapsedTime")}
    assert (stream.anchor.handle, second.handle) in measured


def test_a_pending_event(device, fake):
    event = device.default_stream.record()
    fake.failures["cuEventQuery"] = 600
    assert not event.query()
    fake.failures["cuEventQuery"] = 700
    with pytest.raises(DeviceLost):
        event.query()


def test_recent_names_are_few(device):
    kernels = [device.compile(ptx(f"k{i}")) for i in range(40)]
    x = device.allocate(4)
    for kernel in kernels:
        device.default_stream.launch(kernel, Dim3(1), (x,), struct.pack("<"))
    assert list(device.default_stream.recent) == [f"k{i}" for i in range(8, 40)]
