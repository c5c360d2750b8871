"""What only relaunched actors do: threads that ask handle messages themselves, few messages go a
short way, and threads of a block copy for the one that handles many."""

from __future__ import annotations

import _thread
import signal
import threading
import time

import numpy as np
import pytest

import treadle as td
from treadle.actors import relaunch_mode


@td.kernel
def grow(weights: td.Array[td.f32]):
    weights[td.grid(1)] *= 3.0


@td.actor
def scaled(at: td.i32, weights: td.Array[td.f32]) -> td.f32:
    return weights[at]


@td.struct
class Order:
    kind: td.u8
    place: td.vec2[td.i16]
    price: td.f32
    marks: td.i32[2]


@td.struct
class Trade:
    number: td.i32
    cost: td.f32


@td.actor(capacity=256)
def trade(order: Order, count: td.Array[td.i32]) -> Trade:
    count[0] += 1
    return Trade(
        count[0], order.price + td.f32(order.kind) + td.f32(order.place.y + order.marks[1])
    )


@td.actor(capacity=256)
def remember(number: td.i32, seen: td.Array[td.i32]):
    seen[0] = 31 * seen[0] + number


@td.actor(capacity=256)
def narrow(number: td.u8, sum: td.Array[td.i32]) -> td.u8:
    sum[0] += td.i32(number)
    return td.u8(sum[0])


def _orders(count: int) -> np.ndarray:
    rng = np.random.default_rng()
    orders = np.zeros(count, Order.dtype)
    orders["kind"] = rng.integers(0, 256, count)
    orders["place"] = rng.integers(-99, 99, (count, 2))
    orders["price"] = rng.integers(0, 999, count)
    orders["marks"] = rng.integers(-99, 99, (count, 2))
    return orders


@pytest.mark.parametrize("copies", [False, True])
def test_batches_of_any_size(
    device: td.Device, copies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one thread alone, and by threads that copy for it; sizes around those of blocks."""
    monkeypatch.setattr("treadle.actors.program.copies_help", lambda device: copies)
    if copies and hasattr(device.handle, "mappable"):  # as where kernels reach no mapped memory
        monkeypatch.setattr(device.handle, "mappable", False)
    sizes = (1, 2, 63, 64, 65, 129, 256)
    zero = np.zeros(1, np.int32)
    with trade.spawn(mode="relaunch", count=zero) as ref:
        assert (ref._program.lanes > 0) == copies
        done = 0
        for size in sizes:
            orders = _orders(size)
            ref.pause(timeout=60)  # so that they are one batch
            ref.send_many(orders)
            ref.resume(timeout=60)
            replies = ref.receive_many(size, timeout=60)
            costs = orders["price"] + orders["kind"]
            costs = costs + orders["place"][:, 1] + orders["marks"][:, 1]
            assert replies["number"].tolist() == list(range(done + 1, done + size + 1))
            assert np.array_equal(replies["cost"], costs.astype(np.float32))
            done += size
    numbers = np.random.default_rng().integers(0, 1000, 200, np.int32)
    expected = np.zeros(1, np.int32)
    with remember.spawn(mode="relaunch", seen=zero) as ref:
        for number in numbers:
            expected = 31 * expected + number
        assert ref.ask(numbers[0], timeout=60) is None
        ref.send_many(numbers[1:])
        ref.terminate(timeout=60)
    with remember.spawn(mode="relaunch", seen=zero) as ref:
        ref.send_many(numbers)
        assert ref.ask(7, timeout=60) is None
        assert np.array_equal(ref.snapshot()["seen"].numpy(), 31 * expected + 7)
    with narrow.spawn(mode="relaunch", sum=zero) as ref:  # replies that are no whole words
        assert [ref.ask(100, timeout=60) for _ in range(3)] == [100, 200, 300 - 256]


@pytest.mark.parametrize("looks", [False, True])
def test_askers_handle_messages_themselves(
    device: td.Device, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside senders, callers and each other: each message once, in the order of each thread.
    The device's thread sleeps, or looks at the rings meanwhile."""
    zero = np.zeros(1, np.int32)
    numbers: list[int] = []
    with trade.spawn(mode="relaunch", count=zero) as ref:
        monkeypatch.setattr(ref._core.executor._dispatcher, "_looks", looks)
        order = Order(0, (0, 0), 1.0, (0, 0))

        def asks() -> None:
            mine = [ref.ask(order, timeout=60).number for _ in range(60)]
            assert mine == sorted(mine)
            numbers.extend(mine)

        def sends() -> None:
            for _ in range(60):
                ref.send(order, timeout=60)
                ref.snapshot(timeout=60)

        threads = [threading.Thread(target=each) for each in (asks, sends, asks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        received = ref.receive_many(60, timeout=60)["number"].tolist()
        assert received == sorted(received)
        assert sorted(numbers + received) == list(range(1, 181))
        assert ref.status().messages_processed == 180


def test_interrupts_lose_nothing(device: td.Device) -> None:
    """Ctrl-C at any time: what was accepted is handled, and the next one asks as before."""
    order = Order(1, (2, 3), 4.0, (5, 6))
    # A shell has its background jobs ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupts() -> None:
        for _ in range(12):
            time.sleep(0.005 + 0.002 * np.random.default_rng().random())
            _thread.interrupt_main()
        time.sleep(0.005)

    with trade.spawn(mode="relaunch", count=np.zeros(1, np.int32)) as ref:
        assert ref.ask(order, timeout=60).number == 1
        thread = threading.Thread(target=interrupts)
        thread.start()
        interrupted = 0
        while thread.is_alive():
            try:
                while thread.is_alive():
                    assert ref.ask(order, timeout=60).cost == 14.0
            except KeyboardInterrupt:
                interrupted += 1
        thread.join()
        signal.signal(signal.SIGINT, before)
        accepted = ref.telemetry().accepted
        assert interrupted > 0
        assert ref.ask(order, timeout=60).number == accepted + 1


def test_what_takes_long_is_handed_over(device: td.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Askers wait for a launch of their own only for a moment, and keep their timeout."""
    monkeypatch.setattr(relaunch_mode, "_PATIENCE", -1.0)
    with trade.spawn(mode="relaunch", count=np.zeros(1, np.int32)) as ref:
        order = Order(1, (2, 3), 4.0, (5, 6))
        for number in range(1, 20):
            reply = ref.ask(order, timeout=60)
            assert (reply.number, reply.cost) == (number, 14.0)
        ref.pause(timeout=60)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            ref.ask(order, timeout=0.05)
        assert time.monotonic() - began >= 0.05
        ref.resume(timeout=60)
        assert ref.ask(order, timeout=60).number == 21


def test_askers_see_what_was_launched_before(device: td.Device) -> None:
    """An array that is only read is used in place: launches that write it, and that no submission
    has taken to the device yet, come first."""
    weights = td.ones(64, device=device)
    with scaled.spawn(mode="relaunch", weights=weights) as ref:
        assert ref.ask(3, timeout=60) == 1.0
        for power in range(1, 5):
            grow.launch(64, weights)
            assert ref.ask(3, timeout=60) == 3.0**power
