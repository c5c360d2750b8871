"""Kernels that stay on a card: what they read, and what must not be called beside them."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest

from tests.support.fake_cuda_driver import FakeCard, FakeDriver
from tests.unit.drivers.cuda.conftest import open_device, ptx
from treadle.drivers.residents import Residents


def test_mapped_memory_is_pinned_once_and_used_again(device, fake):
    places = []
    for _ in range(3):
        view, buffer = device.mapped_memory(1000)
        assert bytes(view) == bytes(1000)
        view[:] = b"\xff" * 1000
        assert np.frombuffer(view, np.uint8).ctypes.data == buffer.address()
        places.append(buffer.address())
        del view, buffer
        gc.collect()
    assert len(set(places)) == 1
    assert len(fake.named("cuMemHostRegister")) == 1
    kept = [device.mapped_memory(5 << 20) for _ in range(3)]
    assert len({buffer.address() for _, buffer in kept}) == 3
    assert len(fake.named("cuMemHostRegister")) == 3  # one of 8 MiB has room for one
    assert not fake.named("cuMemFreeHost")
    device.close()
    for view, _ in kept:  # they are still the process's
        view[:4] = b"abcd"


def test_calls_that_wait_for_all_make_kernels_leave(device):
    left = []

    def leave() -> None:
        left.append(1)

    device.allocate(64)
    device.make_event()
    residents = device.residents
    residents.enter(leave)
    device.make_event()
    device.default_stream.synchronize()
    assert not left
    device.mapped_memory(64)
    assert len(left) == 1
    residents.exit(leave)
    device.mapped_memory(16 << 20)
    assert len(left) == 1


def test_none_begins_during_such_a_call():
    residents, left, began = Residents(), [], threading.Event()

    def second() -> None:
        residents.enter(began.set)
        began.set()

    def first() -> None:
        left.append(1)

    residents.enter(first)
    thread = threading.Thread(target=second)
    with residents.parked():
        assert left == [1]
        thread.start()
        assert not began.wait(0.05)
    thread.join(30)
    assert began.is_set()
    assert len(residents.inside) == 2


@pytest.mark.parametrize("limited", [False, True])
def test_cards_with_a_limit_of_time_have_no_persistent_kernels(install, limited):
    install(FakeDriver(cards=[FakeCard(time_limit=limited)]))
    opened = open_device()
    stays = sys.platform == "linux" and not limited
    assert opened.info.traits.persistent_kernels == stays
    opened.close()


def test_closing_waits_for_their_end(device):
    residents, told = device.residents, threading.Event()

    def stay() -> None:
        residents.enter(told.set)
        entered.set()
        assert told.wait(30)
        assert device.lost is None
        residents.exit(told.set)
        residents.enter(told.set)  # only when it is closed
        after.append(device.lost)

    entered, after = threading.Event(), []
    thread = threading.Thread(target=stay)
    thread.start()
    entered.wait(30)
    device.close()
    thread.join(30)
    assert after == ["it was closed"]


def test_a_thread_that_works_apart(device, fake):
    device.work_apart()
    assert len(fake.named("cuThreadExchangeStreamCaptureMode")) == 1


def test_blocks_that_run_at_once(device):
    kernel = device.compile(ptx())
    assert device.blocks_at_once(kernel) == 1024 // 64 * 3


def test_a_long_wait_lets_the_thread_sleep(device, fake):
    device.default_stream.rest()
    device.default_stream.rest()
    assert fake.named("cuEventCreate")[-1][1] == 3  # blocking, without a time
