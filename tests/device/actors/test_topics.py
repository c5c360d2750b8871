"""Messages that are published under topics, for all actors whose filters match."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import treadle as td
from treadle.actors import Topics


@td.actor(capacity=8)
def log(message: td.i32, seen: td.Array[td.i32]) -> td.i32:
    seen[0] = seen[0] + message
    return message


@td.actor(capacity=4, policy="drop_oldest")
def last(message: td.i32) -> td.i32:
    return message


@td.actor
def measure(message: td.f32) -> td.f32:
    return message


@pytest.fixture
def zero(device: td.Device) -> td.Tensor:
    return td.zeros(1, dtype=td.int32)


def test_wildcards(device: td.Device, mode: str | None, zero: td.Tensor) -> None:
    """Each message once to each actor, in the order of publishing."""
    topics = Topics()
    with (
        log.spawn(seen=zero, mode=mode) as one,
        log.spawn(seen=zero, mode=mode) as temperatures,
        log.spawn(seen=zero, mode=mode) as all_of_three,
    ):
        topics.subscribe("sensor/3/temp", one)
        topics.subscribe("sensor/+/temp", temperatures)
        topics.subscribe("sensor/3/#", all_of_three)
        topics.subscribe("#", all_of_three)
        assert topics.publish("sensor/3/temp", 1) == 3
        assert topics.publish("sensor/4/temp", 2) == 2
        assert topics.publish("sensor/4/temp/high", 4) == 1
        assert topics.publish("$internal", 8) == 0
        assert topics.publish_many("sensor/3/temp", np.array([16, 32], np.int32)) == 3
        assert one.receive_many(3, timeout=60).tolist() == [1, 16, 32]
        assert temperatures.receive_many(4, timeout=60).tolist() == [1, 2, 16, 32]
        assert all_of_three.receive_many(5, timeout=60).tolist() == [1, 2, 4, 16, 32]
        topics.unsubscribe("sensor/+/temp", temperatures)
        assert topics.subscribers("sensor/3/temp") == [one, all_of_three]
        topics.publish("sensor/3/temp", 64, reply=False)
        assert one.ask(0, timeout=60) == 0
        assert one.snapshot(timeout=60)["seen"].tolist() == [113]
        assert temperatures.snapshot(timeout=60)["seen"].tolist() == [51]
        for wrong in ("a/#/b", "a#", "+a", "", "a\0"):
            with pytest.raises(ValueError, match="is not a filter"):
                topics.subscribe(wrong, one)
        for wrong in ("sensor/+", "#", ""):
            with pytest.raises(ValueError, match="a topic is a name"):
                topics.publish(wrong, 1)
        with pytest.raises(ValueError, match="does not subscribe to 'a'"):
            topics.unsubscribe("a", one)
        with pytest.raises(TypeError, match="the Ref of an actor, not a function"):
            topics.subscribe("a", test_wildcards)  # type: ignore[arg-type]


def test_types_are_checked_by_those_that_subscribe(device: td.Device, zero: td.Tensor) -> None:
    topics = Topics()
    with log.spawn(seen=zero) as counts, measure.spawn() as values:
        topics.subscribe("count/+/x", counts)
        for filter in ("#", "count/#", "count/3/+", "+/3/x"):
            with pytest.raises(
                td.errors.DtypeError, match=r"measure is td.f32, and log.*takes td.i32"
            ):
                topics.subscribe(filter, values)
        topics.subscribe("count/+", values)
        topics.subscribe("value/#", values)
        assert topics.publish("value", 1.5) == 1
        assert values.receive(timeout=60) == 1.5
        with pytest.raises(td.errors.DtypeError, match=r"a message of log is td\.i32, not 1\.5"):
            topics.publish("count/3/x", 1.5)
        with pytest.raises(td.errors.DtypeError, match="many are an array"):
            topics.publish_many("count/3/x", np.zeros(2, np.float32))


def test_policies_of_receivers(device: td.Device, mode: str | None, zero: td.Tensor) -> None:
    """One that is full does not keep a message from the others."""
    topics = Topics()
    with log.spawn(seen=zero, mode=mode) as blocks, last.spawn(mode=mode) as drops:
        topics.subscribe("a", blocks)
        topics.subscribe("a", drops)
        for ref in (blocks, drops):
            ref.pause(timeout=60)
        for n in range(8):
            assert topics.publish("a", n, timeout=60) == 2
        with pytest.raises(td.errors.QueueFull, match="1 of 2 actors accepted") as full:
            topics.publish("a", 8, timeout=0.01)
        assert full.value.accepted == 1  # type: ignore[attr-defined]
        with pytest.raises(td.errors.QueueFull, match="published under 'a': 0 of 2 messages"):
            topics.publish_many("a", np.array([9, 10], np.int32), timeout=0)
        for ref in (blocks, drops):
            ref.resume(timeout=60)
        assert blocks.receive_many(8, timeout=60).tolist() == list(range(8))
        assert drops.receive_many(4, timeout=60).tolist() == [7, 8, 9, 10]


def test_actors_that_end(device: td.Device, zero: td.Tensor) -> None:
    @td.actor
    def strict(message: td.i32) -> td.i32:
        assert message >= 0
        return message

    topics = Topics()
    with log.spawn(seen=zero) as stays, strict.spawn() as fails:
        leaves = log.spawn(seen=zero)
        for ref in (leaves, fails, stays):
            topics.subscribe("a", ref)
        leaves.terminate(timeout=60)
        assert topics.publish("a", 1) == 2
        assert topics.subscribers("a") == [fails, stays]
        with pytest.raises(td.errors.ActorFailed, match="log was terminated"):
            topics.subscribe("b", leaves)
        topics.publish("a", -1)
        with pytest.raises(td.errors.ActorFailed):
            fails.ask(1, timeout=60)
        with pytest.raises(td.errors.ActorFailed, match=r"1 of 2 actors.*message -1"):
            topics.publish("a", 2)
        assert stays.receive_many(3, timeout=60).tolist() == [1, -1, 2]
        topics.unsubscribe("a", fails)
        assert topics.publish("a", 3) == 1


def test_many_publishers(device: td.Device, mode: str | None, zero: td.Tensor) -> None:
    """Nothing is lost or doubled, and the messages of one thread stay in order."""
    topics = Topics()
    with log.spawn(seen=zero, mode=mode) as first, log.spawn(seen=zero, mode=mode) as second:
        topics.subscribe("+/x", first)
        topics.subscribe("#", second)

        def publish(k: int) -> None:
            for n in range(40):
                topics.publish(f"{k}/x", 100 * k + n, timeout=60)

        threads = [threading.Thread(target=publish, args=(k,)) for k in range(3)]
        got: dict[str, list[int]] = {}

        def receive(name: str, ref: td.actors.Ref) -> None:
            got[name] = ref.receive_many(120, timeout=60).tolist()

        receivers = [
            threading.Thread(target=receive, args=(name, ref))
            for name, ref in (("first", first), ("second", second))
        ]
        for thread in threads + receivers:
            thread.start()
        for thread in threads + receivers:
            thread.join()
        for found in got.values():
            for k in range(3):
                assert [n for n in found if n // 100 == k] == [100 * k + n for n in range(40)]


def test_a_subscribed_actor_is_kept(device: td.Device, zero: td.Tensor) -> None:
    topics = Topics()
    topics.subscribe("a", log.spawn(seen=zero))
    assert topics.publish("a", 5) == 1
    (ref,) = topics.subscribers("a")
    assert ref.receive(timeout=60) == 5
    ref.terminate(timeout=60)
