"""Timeouts: what is a number of seconds, and what waits for ever."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import treadle as td


@td.actor(capacity=2)
def count(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] = total[0] + message
    return total[0]


@pytest.mark.parametrize("forever", [None, math.inf, 1e300, 10**400, np.float32(np.inf)])
def test_waiting_for_ever(device: td.Device, forever: Any) -> None:
    """Each of these is waited for, in the functions that block and in those that await."""
    with count.spawn(total=np.zeros(1, np.int32)) as ref, ThreadPoolExecutor(2) as pool:
        ref.pause(timeout=forever)
        asked = pool.submit(ref.ask, 1, timeout=forever)
        while not ref.status().input_depth:
            time.sleep(0.001)
        awaited = pool.submit(lambda: asyncio.run(ref.ask_async(2, timeout=forever)))
        while ref.status().input_depth < 2:
            time.sleep(0.001)
        ref.resume(timeout=forever)
        assert (asked.result(60), awaited.result(60)) == (1, 3)
        received = pool.submit(ref.receive_many, 2, timeout=forever)
        assert ref.send(3, timeout=forever)
        assert ref.send_many([4], timeout=forever) == 1
        assert received.result(60).tolist() == [6, 10]
        assert ref.snapshot(timeout=forever)["total"].tolist() == [10]
        ref.terminate(timeout=forever)


def test_what_is_no_timeout(device: td.Device) -> None:
    """Refused by every call that takes one, before anything is sent."""
    topics = td.actors.Topics()
    with count.spawn(total=np.zeros(1, np.int32)) as ref:
        topics.subscribe("a", ref)
        prepared = ref.prepare(1)
        calls: list[Callable[[Any], Any]] = [
            lambda given: ref.send(1, timeout=given),
            lambda given: prepared.send(timeout=given),
            lambda given: ref.send_many([1], timeout=given),
            lambda given: ref.ask(1, timeout=given),
            lambda given: asyncio.run(ref.send_async(1, timeout=given)),
            lambda given: asyncio.run(ref.ask_async(1, timeout=given)),
            lambda given: ref.receive(timeout=given),
            lambda given: ref.receive_many(1, timeout=given),
            lambda given: asyncio.run(ref.receive_async(timeout=given)),
            lambda given: asyncio.run(ref.receive_many_async(1, timeout=given)),
            lambda given: ref.pause(timeout=given),
            lambda given: ref.resume(timeout=given),
            lambda given: ref.snapshot(timeout=given),
            lambda given: ref.restore({}, timeout=given),
            lambda given: ref.terminate(timeout=given),
            lambda given: topics.publish("a", 1, timeout=given),
            lambda given: topics.publish_many("a", [1], timeout=given),
        ]
        for call in calls:
            for wrong in ("1", True, [1.0]):
                with pytest.raises(TypeError, match="a timeout is a number of seconds, or None"):
                    call(wrong)
            with pytest.raises(ValueError, match="not NaN"):
                call(math.nan)
        for at_once in (0, -1, -math.inf):
            with pytest.raises(TimeoutError):
                ref.receive(timeout=at_once)
        assert ref.ask(0, timeout=60) == 0
        for wrong, error in (
            (1.5, TypeError),
            ("2", TypeError),
            (True, TypeError),
            (-1, ValueError),
        ):
            with pytest.raises(error, match="receive_many takes a number of replies"):
                ref.receive_many(wrong, timeout=0)


def test_receiving_in_a_coroutine(device: td.Device, mode: str | None) -> None:
    """Replies come in order, while the loop goes on."""
    with count.spawn(total=np.zeros(1, np.int32), mode=mode) as ref:

        async def work() -> tuple[Any, ...]:
            waiting = asyncio.create_task(ref.receive_async(timeout=60))
            for _ in range(3):  # it has begun to wait
                await asyncio.sleep(0)
            await ref.send_async(1)
            first = await waiting
            several = asyncio.create_task(ref.receive_many_async(3, timeout=60))
            for each in (2, 3, 4):
                await ref.send_async(each, timeout=60)
            values = await several
            nothing = await ref.receive_many_async(2, timeout=0.01)
            with pytest.raises(TimeoutError):
                await ref.receive_async(timeout=0.01)
            return first, values.tolist(), len(nothing)

        assert asyncio.run(work()) == (1, [3, 6, 10], 0)
        waiter = threading.Thread(target=lambda: asyncio.run(_until_the_end(ref)))
        waiter.start()
        ref.terminate(timeout=60)
        waiter.join(60)
        assert not waiter.is_alive()


async def _until_the_end(ref: td.actors.Ref) -> None:
    with pytest.raises(td.errors.ActorFailed, match="was terminated"):
        await ref.receive_async()


def test_waiting_is_sleeping(device: td.Device, mode: str | None) -> None:
    """What waits for an actor that has nothing to do, or cannot go on, leaves processors alone."""

    def fails(wait: Callable[[], Any]) -> None:
        with pytest.raises((TimeoutError, td.errors.QueueFull)):
            wait()

    with count.spawn(total=np.zeros(1, np.int32), mode=mode) as ref:
        assert ref.ask(1, timeout=60) == 1
        waits: list[Callable[[], Any]] = [
            lambda: ref.receive_many(1, timeout=0.12),
            lambda: fails(lambda: ref.receive(timeout=0.12)),
            lambda: fails(lambda: asyncio.run(ref.receive_async(timeout=0.12))),
        ]
        full: list[Callable[[], Any]] = [
            lambda: fails(lambda: ref.send(1, timeout=0.12)),
            lambda: fails(lambda: ref.send_many([1, 2], timeout=0.12)),
            lambda: fails(lambda: ref.ask(1, timeout=0.12)),
        ]
        for wait in waits:
            began = time.process_time()
            wait()
            assert time.process_time() - began < 0.06
        ref.send_many([1] * 4, timeout=60)  # two replies fill the outbox, two messages the inbox
        while ref.status().output_depth < 2:
            time.sleep(0.001)
        for wait in full:
            began = time.process_time()
            wait()
            assert time.process_time() - began < 0.06


def test_an_end_without_patience(device: td.Device, mode: str | None) -> None:
    """What is not known is not said: it may well end."""
    ref = count.spawn(total=np.zeros(1, np.int32), mode=mode)
    try:
        ref.terminate(timeout=-1)
    except TimeoutError as error:
        assert "has not ended within 0 s" in str(error)  # noqa: PT017 - it may be quick enough
    ref.terminate(timeout=60)
    assert ref.status().state == "terminated"


def test_sending_many_while_it_ends(device: td.Device, mode: str | None) -> None:
    """The error says how many were accepted, which are handled."""
    ref = count.spawn(total=np.zeros(1, np.int32), mode=mode)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(ref.send_many, [1] * 20, timeout=60)
        while ref.status().output_depth < 2:
            time.sleep(0.001)
        ref.terminate(timeout=60)
        with pytest.raises(td.errors.ActorFailed, match="of 20 messages were accepted") as found:
            sent.result(60)
    assert found.value.accepted == ref.status().messages_processed  # type: ignore[attr-defined]
    assert len(ref.receive_many(20, timeout=0)) == ref.status().messages_processed


@td.actor(capacity=64, stamps=True)
def stamped(message: td.i32) -> td.i32:
    return message


def test_what_is_interrupted_loses_nothing(device: td.Device, mode: str | None) -> None:
    """Replies that a call had taken before it was cancelled are there for the next one, in order
    and with their stamps."""

    async def interrupted() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(ref.receive_many_async(9), 0.05)

    with stamped.spawn(mode=mode) as ref:
        ref.send_many([1, 2, 3], timeout=60)
        asyncio.run(interrupted())
        ref.send_many([4, 5], timeout=60)
        assert ref.receive(timeout=60) == 1
        values, rows = ref.receive_many(4, timeout=60, stamps=True)
        assert values.tolist() == [2, 3, 4, 5]
        times = [tuple(row) for row in rows.tolist()]
        assert times == sorted(set(times))


def test_many_coroutines_and_little_room(device: td.Device, mode: str | None) -> None:
    """They take turns: 3,000 of them that all woke at each reply did not end in 20 s."""

    async def ask() -> list[int]:
        return await asyncio.gather(*(ref.ask_async(1, timeout=60) for _ in range(200)))

    async def send() -> list[bool]:
        sent = asyncio.gather(*(ref.send_async(1, timeout=60) for _ in range(100)))
        many = asyncio.create_task(ref.send_many_async([1] * 100, timeout=60))
        got = 0
        while got < 200:
            got += len(await ref.receive_many_async(200 - got, timeout=60))
        assert await many == 100
        return await sent

    async def too_many() -> None:
        sent = (ref.send_async(1, timeout=0.1) for _ in range(9))
        found = await asyncio.gather(*sent, return_exceptions=True)
        assert [each for each in found if each is True] == [True] * 2
        assert sum(isinstance(each, td.errors.QueueFull) for each in found) == 7
        with pytest.raises(td.errors.QueueFull, match="0 of 3 messages") as error:
            await ref.send_many_async([1, 2, 3], timeout=0.1)
        assert error.value.accepted == 0  # type: ignore[attr-defined]
        with pytest.raises(td.errors.QueueFull):
            await ref.ask_async(1, timeout=0.1)

    with count.spawn(total=np.zeros(1, np.int32), mode=mode) as ref:
        assert sorted(asyncio.run(ask())) == list(range(1, 201))
        assert asyncio.run(send()) == [True] * 100
        ref.pause(timeout=60)
        asyncio.run(too_many())
        ref.terminate(drain=False, timeout=60)
