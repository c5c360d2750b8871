"""Messages that lie ready to be sent."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import treadle as td
from treadle.actors import ring_calls


@td.struct
class Pair:
    a: td.f32
    b: td.i32


@td.actor(capacity=8)
def product(message: Pair) -> td.f32:
    return message.a * message.b


@td.actor(capacity=4, policy="drop_newest")
def length(message: td.vec3[td.f32]) -> td.f32:
    return td.dot(message, message)


@td.actor(capacity=64)
def add_up(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] = total[0] + message
    return total[0]


def test_changed_and_sent_again(device: td.Device, mode: str | None) -> None:
    with product.spawn(mode=mode) as ref:
        slot = ref.prepare(Pair(1.5, 2))
        assert slot.send(timeout=60)
        slot.value["b"] = 10
        slot.send()
        slot.set(Pair(2.0, 3))
        slot.send(reply=False)
        slot.send()
        assert ref.ask(Pair(4.0, 4), timeout=60) == 16
        assert ref.receive_many(3, timeout=60).tolist() == [3, 15, 6]
        assert "Pair(a=2.0, b=3)" in repr(slot)
        with pytest.raises(td.errors.DtypeError, match="a message of product is a Pair"):
            slot.set(3.0)
        with pytest.raises(td.errors.DtypeError):
            ref.prepare((1, 2))
        empty = ref.prepare()
        assert (float(empty.value["a"]), int(empty.value["b"])) == (0, 0)
        ref.pause(timeout=60)
        for _ in range(8):
            slot.send()
        with pytest.raises(td.errors.QueueFull):
            slot.send(timeout=0)
        ref.resume(timeout=60)
        assert ref.receive_many(8, timeout=60).tolist() == [6] * 8
        ref.terminate(timeout=60)
        for use in (slot.send, ref.prepare):
            with pytest.raises(td.errors.ActorFailed, match="product was terminated"):
                use()


def test_vectors_and_policies(device: td.Device, mode: str | None) -> None:
    with length.spawn(mode=mode) as ref:
        ref.pause(timeout=60)
        slot = ref.prepare(td.vec3[td.f32](1, 2, 3))
        sent = []
        for k in range(6):
            slot.value[0] = k
            sent.append(slot.send())
        assert sent == [True] * 4 + [False] * 2
        ref.resume(timeout=60)
        assert ref.receive_many(4, timeout=60).tolist() == [13, 14, 17, 22]


@pytest.mark.parametrize("locks", [False, True])
def test_one_for_each_thread(
    device: td.Device, locks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost or doubled beside threads that send otherwise; also by locks, as where the
    interpreter has none of its own."""
    if locks:
        monkeypatch.setattr(ring_calls, "HAS_GIL", False)
    total = np.zeros(1, np.int32)
    with add_up.spawn(total=total) as ref:

        def prepared() -> None:
            slot = ref.prepare(1)
            for _ in range(300):
                slot.send(reply=False, timeout=60)

        def plain() -> None:
            for _ in range(300):
                ref.send(1000, reply=False, timeout=60)

        threads = [threading.Thread(target=each) for each in (prepared, plain) * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ref.ask(0, timeout=60) == 2 * 300 * 1001
