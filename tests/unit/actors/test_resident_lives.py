"""Persistent actors whose kernels end all the time, on the CPU: what is sent around the end of one
is handled by the next, once."""

from __future__ import annotations

import asyncio
import threading
import time
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import treadle as td
from treadle.actors import resident_places


@td.actor(capacity=64)
def echo(message: td.i32, sums: td.Array[td.i32]) -> td.i32:
    sums[0] += message
    return message


@td.actor(capacity=64)
def checked(message: td.i32, sums: td.Array[td.i32]) -> td.i32:
    assert message >= 0, "it is negative"
    sums[0] += message
    return message


@pytest.fixture(autouse=True)
def modes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "treadle.actors.decorator.modes_of", lambda device: ["persistent", "relaunch"]
    )


@pytest.mark.parametrize("places", [4, 0])
@pytest.mark.parametrize("life", [3_000, 300_000])
@pytest.mark.parametrize("actor", [echo, checked])
def test_messages_across_lives(
    monkeypatch: pytest.MonkeyPatch, actor: td.actors.Actor, life: int, places: int
) -> None:
    """Bulk and single ones, those that ask and those that are dropped, from several threads."""
    monkeypatch.setattr(resident_places, "LIFE", life)
    monkeypatch.setattr(resident_places, "SHORT_LIFE", life)
    monkeypatch.setattr(resident_places, "IDLE", 0.001)
    monkeypatch.setattr(resident_places, "PLACES", places)
    monkeypatch.setattr(resident_places, "_places", WeakKeyDictionary())
    total = 6000
    with actor.spawn(sums=np.zeros(1, np.int32), device="cpu") as ref:
        assert ref.status().mode == "persistent"
        got: list[int] = []
        replies: list[list[int]] = [[], []]

        def receive() -> None:
            while len(got) < total:
                got.extend(ref.receive_many(total - len(got), timeout=1).tolist())

        def ask(into: list[int]) -> None:
            for n in range(200):
                into.append(ref.ask(n, timeout=60))
                ref.send(1, reply=False)

        threads = [threading.Thread(target=receive)]
        threads += [threading.Thread(target=ask, args=(into,)) for into in replies]
        for thread in threads:
            thread.start()
        for start in range(0, total, 300):
            ref.send_many(np.arange(start, start + 300, dtype=np.int32), timeout=60)
            time.sleep(0.0005)
        for thread in threads:
            thread.join(60)
        assert got == list(range(total))
        assert replies == [list(range(200))] * 2
        ref.ask(0, timeout=60)
        expected = sum(range(total)) + 2 * sum(range(200)) + 400
        assert ref.snapshot(timeout=60)["sums"].tolist() == [expected]
        assert ref.status().messages_processed == total + 2 * 400 + 1


def test_an_event_loop_that_waits() -> None:
    """A kernel notifies nothing: the loop looks by itself, soon and then from time to time."""

    async def ask(ref: td.actors.Ref) -> list[int]:
        some = await asyncio.gather(*(ref.ask_async(n, timeout=60) for n in range(50)))
        ref.pause(timeout=60)
        waiting = asyncio.ensure_future(ref.ask_async(7, timeout=60))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        ref.resume(timeout=60)
        return [*some, await waiting]

    with echo.spawn(sums=np.zeros(1, np.int32), device="cpu") as ref:
        assert asyncio.run(ask(ref)) == [*range(50), 7]
