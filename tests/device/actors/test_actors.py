"""Actors on every device, in each mode that it has."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from treadle.actors import Ref


@td.struct
class Scale:
    value: td.f32
    factor: td.f32


@td.actor(capacity=64)
def scaler(message: Scale, hits: td.Array[td.i32]) -> td.f32:
    hits[0] += 1
    return message.value * message.factor


def same_again() -> type:
    """A class with the same definition, as when a cell of a notebook is run again."""

    @td.struct
    class Scale:
        value: td.f32
        factor: td.f32

    return Scale


@td.actor(capacity=8)
def counter(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] = total[0] + message
    return total[0]


@td.actor(capacity=16, on_error="skip")
def picky(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    assert message >= 0, "negative message"
    total[0] = total[0] + message
    return total[0]


def zeros(device: td.Device, n: int = 1) -> td.Tensor:
    return td.zeros(n, dtype=td.int32, device=device)


@pytest.fixture
def counting(device: td.Device, mode: str | None) -> Iterator[Ref]:
    with counter.spawn(total=zeros(device), device=device, mode=mode) as ref:
        yield ref


def usual_mode(device: td.Device) -> str:
    if device.traits.calls_kernels:
        return "thread"
    return "persistent" if device.traits.persistent_kernels else "relaunch"


def test_ask_and_send(device: td.Device, mode: str | None) -> None:
    with scaler.spawn(hits=zeros(device), device=device, mode=mode) as ref:
        assert ref.ask(Scale(2.0, 3.0), timeout=30) == 6.0
        assert ref.ask(same_again()(4.0, 3.0), timeout=30) == 12.0
        assert ref.send(Scale(1.5, 2.0), timeout=30)
        ref.send(Scale(9.0, 9.0), reply=False)
        assert ref.ask(Scale(2.0, 4.0), timeout=30) == 8.0
        assert ref.receive(timeout=30) == 3.0
        status = ref.status()
        assert (status.messages_processed, status.input_depth, status.output_depth) == (5, 0, 0)
        assert status.is_active
        assert status.mode == (mode or usual_mode(device))
    status = ref.status()
    assert (status.state, status.has_terminated, status.errors_encountered) == (
        "terminated", True, 0,
    )  # fmt: skip


def test_state_is_the_actors_own(device: td.Device, mode: str | None) -> None:
    mine = zeros(device)
    with scaler.spawn(hits=mine, device=device, mode=mode) as ref:
        for _ in range(3):
            ref.ask(Scale(1.0, 1.0), timeout=30)
        assert ref.snapshot()["hits"].tolist() == [3]
    assert mine.tolist() == [0]


def test_many_in_order(device: td.Device, mode: str | None) -> None:
    """More messages than the rings have places, while another thread receives."""
    records = np.zeros(1000, Scale.dtype)
    records["value"] = np.arange(1000)
    records["factor"] = 2
    with scaler.spawn(hits=zeros(device), device=device, mode=mode) as ref:
        sender = threading.Thread(target=lambda: ref.send_many(records))
        sender.start()
        parts = [ref.receive_many(n, timeout=30) for n in (300, 1, 600, 99)]
        sender.join()
        assert [len(part) for part in parts] == [300, 1, 600, 99]
        np.testing.assert_array_equal(np.concatenate(parts), 2 * np.arange(1000, dtype=np.float32))
        assert ref.receive_many(5, timeout=0).shape == (0,)


def test_a_full_outbox_stalls(counting: Ref) -> None:
    """Its messages wait, then its senders; nothing is lost, and asking is possible meanwhile."""
    accepted = 0
    while True:
        try:
            counting.send(1, timeout=0.05)
            accepted += 1
        except td.errors.QueueFull:  # or the actor was slow
            status = counting.status()
            if (status.input_depth, status.output_depth) == (8, 8):
                break
    assert accepted == 16  # both rings
    with pytest.raises(td.errors.QueueFull, match="receive replies"):
        counting.send(1, timeout=0)
    got = counting.receive_many(accepted, timeout=30)
    assert got.tolist() == list(range(1, accepted + 1))


def test_asks_pass_a_full_outbox(counting: Ref) -> None:
    for _ in range(8):
        counting.send(1)
    assert counting.ask(1, timeout=30) == 9
    assert counting.receive_many(8, timeout=30).tolist() == list(range(1, 9))


def test_pause_and_resume(counting: Ref) -> None:
    counting.pause(timeout=30)
    assert counting.status().state == "paused"
    counting.send(5)
    with pytest.raises(TimeoutError):
        counting.ask(1, timeout=0.05)
    assert counting.status().input_depth == 2
    counting.resume(timeout=30)
    assert counting.receive(timeout=30) == 5
    assert counting.ask(1, timeout=30) == 7  # what timed out was handled all the same


def test_restore(counting: Ref, device: td.Device) -> None:
    counting.ask(3, timeout=30)
    kept = counting.snapshot(timeout=30)
    assert counting.ask(4, timeout=30) == 7
    counting.restore(kept, timeout=30)
    assert counting.ask(1, timeout=30) == 4
    with counter.spawn(**kept, device=device) as other:
        assert other.ask(1, timeout=30) == 4
    with pytest.raises(TypeError, match="no state 'sum'"):
        counting.restore({"sum": 3})
    with pytest.raises(td.errors.LaunchError, match="takes an array of the same"):
        counting.restore({"total": td.zeros(2, dtype=td.int32, device=device)})


def test_restore_of_what_is_only_read(device: td.Device, mode: str | None) -> None:
    @td.actor
    def scaled(message: td.f32, scale: td.Array[td.f32], offset: td.f32) -> td.f32:
        return message * scale[0] + offset

    with scaled.spawn(scale=np.full(1, 2, np.float32), offset=1.0, device=device, mode=mode) as ref:
        ref.restore(ref.snapshot(timeout=30), timeout=30)
        for other in ({"scale": np.full(1, 3, np.float32)}, {"offset": 2.0}):
            with pytest.raises(td.errors.LaunchError, match="only reads its state"):
                ref.restore(other, timeout=30)
        assert ref.ask(4.0, timeout=30) == 9.0


def test_draining_and_dropping(device: td.Device, mode: str | None) -> None:
    """With drain, all that was accepted is handled, though the outbox is full."""
    ref = counter.spawn(total=zeros(device), device=device, mode=mode)
    ref.pause(timeout=30)
    for _ in range(8):
        ref.send(1)
    ref.resume()
    ref.send_many(np.ones(8, np.int32), timeout=30)
    ref.terminate(timeout=30)
    assert ref.status().messages_processed == 16
    assert ref.receive_many(99, timeout=0).tolist() == list(range(1, 17))
    ref.terminate()
    for use in (lambda: ref.send(1), lambda: ref.ask(1), ref.pause, ref.snapshot, ref.receive):
        with pytest.raises(td.errors.ActorFailed, match="counter was terminated"):
            use()

    ref = counter.spawn(total=zeros(device), device=device, mode=mode)
    ref.pause(timeout=30)
    failed: list[Exception] = []

    def ask() -> None:
        try:
            ref.ask(1, timeout=30)
        except td.errors.ActorFailed as error:
            failed.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    while not ref.status().input_depth:
        time.sleep(0.001)
    ref.terminate(drain=False, timeout=30)
    asker.join()
    assert len(failed) == 1
    assert ref.status().messages_processed == 0
    assert ref.dead_letters() == [("terminated", 1)]
    assert ref.telemetry().dropped_at_end == 1


def test_a_failed_message_is_skipped(device: td.Device, mode: str | None) -> None:
    with picky.spawn(total=zeros(device), device=device, mode=mode) as ref:
        assert ref.ask(2, timeout=30) == 2
        with pytest.raises(td.errors.ActorFailed, match=r"message -7: .*negative message"):
            ref.ask(-7, timeout=30)
        ref.send_many(np.array([1, -1, 1, -2, 1], np.int32))
        assert ref.receive_many(3, timeout=30).tolist() == [3, 4, 5]
        assert ref.ask(0, timeout=30) == 5
        status = ref.status()
        assert (status.messages_processed, status.errors_encountered) == (5, 3)
        assert "message -2" in (status.last_error or "")
        assert ref.dead_letters() == [("failed", -7), ("failed", -1), ("failed", -2)]


def test_a_failed_message_ends_the_actor(device: td.Device, mode: str | None) -> None:
    @td.actor
    def strict(message: td.i32) -> td.i32:
        assert message > 0
        return message * 2

    ref = strict.spawn(device=device, mode=mode)
    ref.pause(timeout=30)
    ref.send_many([1, 2, 0, 3])
    ref.resume(timeout=30)
    assert ref.receive_many(4, timeout=30).tolist() == [2, 4]
    with pytest.raises(td.errors.ActorFailed, match="strict failed on message 0"):
        ref.receive(timeout=30)
    with pytest.raises(td.errors.ActorFailed, match="message 0"):
        ref.send(4)
    status = ref.status()
    assert (status.state, status.messages_processed, status.dropped) == ("failed", 2, 1)
    ref.terminate()


@pytest.mark.parametrize("keep", [False, True])
def test_restarts(device: td.Device, keep: bool) -> None:
    @td.actor(restarts=2, keep_state=keep)
    def fragile(message: td.i32, total: td.Array[td.i32]) -> td.i32:
        assert message >= 0
        total[0] = total[0] + message
        return total[0]

    with fragile.spawn(total=td.full(1, 10, dtype=td.int32, device=device), device=device) as ref:
        assert ref.ask(1, timeout=30) == 11
        for _ in range(2):
            with pytest.raises(td.errors.ActorFailed):
                ref.ask(-1, timeout=30)
            ref.ask(1, timeout=30)
        assert ref.ask(0, timeout=30) == (13 if keep else 11)
        assert ref.status().restarts == 2
        with pytest.raises(td.errors.ActorFailed):
            ref.ask(-1, timeout=30)
        assert ref.status().state == "failed"


@pytest.mark.parametrize("policy", ["raise", "drop_oldest", "drop_newest"])
def test_policies(device: td.Device, policy: str) -> None:
    @td.actor(capacity=4, policy=policy)  # type: ignore[call-overload]
    def echo(message: td.i32) -> td.i32:
        return message

    with echo.spawn(device=device) as ref:
        ref.pause(timeout=30)
        accepted = [ref.send(n) for n in range(4)]
        assert accepted == [True] * 4
        if policy == "raise":
            with pytest.raises(td.errors.QueueFull, match="4 messages"):
                ref.send(4, timeout=30)
            expected = [0, 1, 2, 3]
        elif policy == "drop_oldest":
            assert ref.send(4)
            assert ref.send_many([5, 6]) == 2
            expected = [3, 4, 5, 6]
            assert ref.dead_letters() == [("dropped", n) for n in range(3)]
        else:
            assert not ref.send(4)
            assert ref.send_many([5, 6]) == 0
            assert ref.send_many(range(1000)) == 0  # the last 256 are kept
            expected = [0, 1, 2, 3]
            assert ref.dead_letters() == [("dropped", n) for n in range(744, 1000)]
        ref.resume(timeout=30)
        assert ref.receive_many(4, timeout=30).tolist() == expected
        dropped = {"raise": 0, "drop_oldest": 3, "drop_newest": 1003}[policy]
        assert ref.status().dropped == dropped


def test_letters_of_a_batch_that_failed(device: td.Device, mode: str | None) -> None:
    """Also those that were taken into the batch after the message that failed."""

    @td.actor(restarts=2, keep_state=True)
    def positive(message: td.i32) -> td.i32:
        assert message > 0
        return message

    given = [1, 2, -1, 3, 4, -2, 5, -3, 6, 7]
    with positive.spawn(device=device, mode=mode) as ref:
        ref.pause(timeout=60)
        ref.send_many(given)
        ref.resume(timeout=60)
        assert ref.receive_many(9, timeout=60).tolist() == [1, 2, 3, 4, 5]
        failed = [("failed", n) for n in (-1, -2, -3)]
        assert ref.dead_letters() == [*failed, ("terminated", 6), ("terminated", 7)]
        assert ref.status().dropped == 2


def test_a_dropped_ask(device: td.Device) -> None:
    @td.actor(capacity=1, policy="drop_oldest")
    def echo(message: td.i32) -> td.i32:
        return message

    with echo.spawn(device=device) as ref:
        ref.pause(timeout=30)
        failed: list[Exception] = []

        def ask() -> None:
            try:
                ref.ask(1, timeout=30)
            except td.errors.QueueFull as error:
                failed.append(error)

        asker = threading.Thread(target=ask)
        asker.start()
        while not ref.status().input_depth:
            time.sleep(0.001)
        ref.send(2)
        asker.join()
        assert "was dropped" in str(failed[0])
        ref.resume(timeout=30)
        assert ref.receive(timeout=30) == 2


def test_several_threads_ask(device: td.Device, mode: str | None) -> None:
    """Each gets its own reply, and every message is handled once."""
    with scaler.spawn(hits=zeros(device), device=device, mode=mode) as ref:
        wrong: list[tuple[float, float]] = []

        def ask(first: int) -> None:
            for n in range(first, first + 40):
                got = ref.ask(Scale(float(n), 2.0), timeout=60)
                if got != 2 * n:
                    wrong.append((got, 2.0 * n))

        threads = [threading.Thread(target=ask, args=(1000 * k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert ref.snapshot(timeout=30)["hits"].tolist() == [160]


def test_asyncio(counting: Ref) -> None:
    """More questions at once than the inbox has places."""

    async def ask() -> list[int]:
        return list(await asyncio.gather(*(counting.ask_async(1, timeout=60) for _ in range(40))))

    assert sorted(asyncio.run(ask())) == list(range(1, 41))

    async def late() -> None:
        counting.pause()
        with pytest.raises(TimeoutError):
            await counting.ask_async(1, timeout=0.05)
        counting.resume()

    asyncio.run(late())
    assert counting.ask(1, timeout=30) == 42


def test_sending_from_coroutines(counting: Ref) -> None:
    """More messages than both rings have places, while another coroutine receives."""

    async def run() -> list[int]:
        async def send() -> None:
            for _ in range(10):
                assert await counting.send_async(1, timeout=60)

        senders = [asyncio.create_task(send()) for _ in range(4)]
        got: list[int] = []
        while len(got) < 40:
            await asyncio.sleep(0)
            got += counting.receive_many(40 - len(got), timeout=0).tolist()
        await asyncio.gather(*senders)
        return got

    assert asyncio.run(run()) == list(range(1, 41))

    async def full() -> None:
        counting.pause()
        for _ in range(8):
            await counting.send_async(1, reply=False)
        with pytest.raises(td.errors.QueueFull, match="stayed full"):
            await counting.send_async(1, timeout=0.01)
        counting.resume()

    asyncio.run(full())
    assert counting.ask(0, timeout=30) == 48
    counting.terminate(timeout=30)
    with pytest.raises(td.errors.ActorFailed):
        asyncio.run(counting.send_async(1))


def test_abandoned_answers_come_back(counting: Ref) -> None:
    """Timeouts leave no entry behind."""
    for _ in range(40):
        counting.pause(timeout=30)
        for _ in range(4):
            with pytest.raises(TimeoutError):
                counting.ask(1, timeout=0)
        counting.resume(timeout=30)
        counting.ask(0, timeout=30)
    assert counting.ask(0, timeout=30) == 160


def test_kinds_of_messages(device: td.Device) -> None:
    @td.actor
    def flip(message: td.vec3[td.f32]) -> td.vec3[td.f32]:
        return td.vec3[td.f32](message.z, message.y, message.x)

    @td.actor
    def negate(message: td.bool) -> td.bool:
        return not message

    @td.actor
    def swap(message: Scale) -> Scale:
        return Scale(message.factor, message.value)

    @td.actor
    def narrow(message: td.u8) -> td.i16:
        return td.i16(message) - td.i16(100)

    with flip.spawn(device=device) as ref:
        got = ref.ask(td.vec3[td.f32](1, 2, 3), timeout=30)
        assert list(got) == [3, 2, 1]
        ref.send_many(np.arange(6, dtype=np.float32).reshape(2, 3))
        assert ref.receive_many(2, timeout=30).tolist() == [[2, 1, 0], [5, 4, 3]]
    with negate.spawn(device=device) as ref:
        assert ref.ask(True, timeout=30) is False
    with swap.spawn(device=device) as ref:
        assert ref.ask(Scale(1, 2), timeout=30) == Scale(2, 1)
    with narrow.spawn(device=device) as ref:
        assert ref.ask(7, timeout=30) == -93


def test_without_replies(device: td.Device, mode: str | None) -> None:
    @td.actor
    def add(message: td.i32, total: td.Array[td.i32], scale: td.i32):
        total[0] += message * scale

    with add.spawn(total=zeros(device), scale=3, device=device, mode=mode) as ref:
        assert ref.ask(2, timeout=30) is None
        ref.send_many([1, 2, 3])
        with pytest.raises(td.errors.TreadleError, match="add has no replies"):
            ref.receive(timeout=1)
        assert ref.ask(0, timeout=30) is None
        assert ref.snapshot()["total"].tolist() == [24]


def test_threads_of_a_block(device: td.Device, mode: str | None) -> None:
    """They share memory and meet at barriers; the first one's reply counts."""

    @td.actor(block=16)
    def total(message: td.f32, x: td.Array[td.f32]) -> td.f32:
        part = td.shared(16, td.f32)
        t = td.thread_idx.x
        x[t] = x[t] + message
        part[t] = x[t]
        td.sync_threads()
        s = 0.0
        for k in range(16):
            s += part[k]
        td.sync_threads()
        return s + t * 1000

    x = np.arange(16, dtype=np.float32)
    with total.spawn(x=x, device=device, mode=mode) as ref:
        assert ref.ask(1.0, timeout=30) == 136.0
        ref.send_many([1.0, 1.0])
        assert ref.receive_many(2, timeout=30).tolist() == [152.0, 168.0]
        np.testing.assert_array_equal(ref.snapshot()["x"].numpy(), x + 3)


def test_many_blocks(device: td.Device, mode: str | None) -> None:
    @td.actor(blocks=4, block=8)
    def add(message: td.f32, x: td.Array[td.f32]) -> td.f32:
        i = td.grid(1)
        if i < x.size:
            x[i] += message
        return message

    with add.spawn(x=np.zeros(30, np.float32), device=device, mode=mode) as ref:
        ref.send_many([1.0, 2.0])
        assert ref.receive_many(2, timeout=30).tolist() == [1.0, 2.0]
        assert ref.snapshot()["x"].tolist() == [3.0] * 30


def test_a_handler_that_prints(
    device: td.Device, mode: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    @td.actor
    def talks(message: td.i32) -> td.i32:
        print("got", message)
        return message

    with talks.spawn(device=device, mode=mode) as ref:
        assert ref.ask(4, timeout=30) == 4
        ref.send_many([5, 6])
        assert ref.receive_many(2, timeout=30).tolist() == [5, 6]
    assert capsys.readouterr().out == "got 4\ngot 5\ngot 6\n"


def test_many_actors(device: td.Device) -> None:
    """Each has its state; those that relaunch share a thread."""
    refs = [counter.spawn(total=zeros(device), device=device) for _ in range(40)]
    for n, ref in enumerate(refs):
        ref.send(n)
    assert [ref.receive(timeout=30) for ref in refs] == list(range(40))
    for ref in refs:
        ref.terminate(timeout=30)


def test_arrays_beside_an_actor(counting: Ref, device: td.Device) -> None:
    x = td.arange(1000, dtype=td.float32, device=device)
    for n in range(5):
        counting.send(1)
        assert float((x * n).sum()) == 499500 * n
    assert counting.receive_many(5, timeout=30).tolist() == [1, 2, 3, 4, 5]


def test_telemetry(counting: Ref) -> None:
    assert counting.telemetry().latency_median is None
    for _ in range(20):
        counting.ask(1, timeout=30)
    seen = counting.telemetry()
    assert (seen.accepted, seen.processed, seen.replies, seen.errors) == (20, 20, 0, 0)
    assert seen.latency_min is not None
    assert seen.latency_median is not None
    assert seen.latency_p99 is not None
    assert 0 < seen.latency_min <= seen.latency_median <= seen.latency_p99 < 60


@td.actor(capacity=1024)
def nearest(query: td.vec2[td.f32], points: td.Array[td.f32, 2]) -> td.i32:
    best = 0
    least = td.f32(1e30)
    for k in range(points.shape[0]):
        x = points[k, 0] - query.x
        y = points[k, 1] - query.y
        if x * x + y * y < least:
            least = x * x + y * y
            best = k
    return best


def test_messages_that_make_no_difference_to_each_other(
    device: td.Device, mode: str | None, rng: np.random.Generator
) -> None:
    """A handler that writes no state has a thread for each message, where launches have many."""
    points = rng.random((100, 2), np.float32)
    queries = rng.random((700, 2), np.float32)
    with nearest.spawn(points=points, device=device, mode=mode) as ref:
        program = ref._program
        assert program.parallel == (ref.status().mode == "relaunch")
        assert not (program.parallel and program.one_by_one)
        ref.pause(timeout=30)
        ref.send_many(queries)
        ref.resume(timeout=30)
        got = ref.receive_many(700, timeout=60)
    distances = ((queries[:, None] - points) ** 2).sum(axis=2)
    assert got.tolist() == distances.argmin(axis=1).tolist()


def test_what_depends_on_threads_is_handled_in_turn(device: td.Device) -> None:
    @td.actor
    def where(message: td.i32) -> td.i32:
        return td.grid(1) + td.thread_idx.x

    @td.actor
    def next_ticket(message: td.i32, tickets: td.Array[td.i32]) -> td.i32:
        return td.atomic_add(tickets, 0, 1)

    with where.spawn(device=device, mode="relaunch") as ref:
        ref.send_many(np.zeros(100, np.int32))
        assert ref.receive_many(100, timeout=60).tolist() == [0] * 100
    with next_ticket.spawn(tickets=zeros(device), device=device, mode="relaunch") as ref:
        ref.send_many(np.zeros(100, np.int32))
        assert ref.receive_many(100, timeout=60).tolist() == list(range(100))


def test_replies_that_are_not_finite(device: td.Device, mode: str | None) -> None:
    @td.actor(finite=True, on_error="skip")
    def inverse(message: td.vec2[td.f32]) -> td.vec2[td.f32]:
        return 1.0 / message

    @td.actor(finite=True)
    def rounded(message: td.f32) -> td.i32:
        return td.i32(message)

    with inverse.spawn(device=device, mode=mode) as ref:
        assert list(ref.ask(td.vec2[td.f32](2, 4), timeout=30)) == [0.5, 0.25]
        line = inverse._handler.function.__code__.co_firstlineno + 1
        where = rf"test_actors\.py:{line}: inverse: .*a finite reply"
        with pytest.raises(td.errors.ActorFailed, match=where):
            ref.ask(td.vec2[td.f32](2, 0), timeout=30)
        ref.send_many(np.array([[1, 1], [0, 1], [4, 4]], np.float32))
        assert ref.receive_many(2, timeout=30).tolist() == [[1, 1], [0.25, 0.25]]
    with pytest.raises(td.errors.CompileError, match="finite=True checks replies that are floats"):
        rounded.spawn(device=device, mode=mode)


def test_a_capture_beside_an_actor(counting: Ref, device: td.Device) -> None:
    """What other threads launch meanwhile is not a part of a graph."""

    @td.kernel
    def step(x: td.Array[td.i32]):
        i = td.grid(1)
        if i < x.size:
            x[i] += 1

    x = td.zeros(8, dtype=td.int32, device=device)
    step.launch(8, x)
    graph = td.Graph(device)
    with graph.capture():
        step.launch(8, x)
        other = threading.Thread(target=lambda: counting.ask(5, timeout=30))
        other.start()
        other.join()
    graph.replay()
    graph.replay()
    assert x.tolist() == [3] * 8
    assert counting.ask(0, timeout=30) == 5


@td.struct
class Mixed:
    place: td.vec2[td.f32]
    count: td.u32
    scale: td.f32
    shift: td.i32


def test_messages_of_several_words(device: td.Device, mode: str | None) -> None:
    """Small ones and large ones, short replies and long ones, asked one after the other."""

    @td.actor
    def mixed(m: Mixed) -> td.f32:
        return (m.place.x - m.place.y) * m.scale + td.f32(m.count) + td.f32(m.shift)

    @td.actor
    def swap(m: td.vec2[td.f32], seen: td.Array[td.i32]) -> td.vec2[td.f32]:
        seen[0] += 1
        return td.vec2[td.f32](m.y, m.x)

    with (
        mixed.spawn(device=device, mode=mode) as one,
        swap.spawn(seen=np.zeros(1, np.int32), device=device, mode=mode) as two,
    ):
        for n in range(20):
            message = Mixed(td.vec2[td.f32](n, 2.0), 3_000_000_000, 0.5, -n)
            expected = np.float32(np.float32((n - 2) * 0.5) + np.float32(3e9)) + np.float32(-n)
            assert one.ask(message, timeout=30) == pytest.approx(float(expected))
            assert tuple(two.ask(td.vec2[td.f32](n, -1.0), timeout=30).parts) == (-1.0, n)
            two.send(td.vec2[td.f32](5.0, n))
            assert tuple(two.receive(timeout=30).parts) == (n, 5.0)
        assert two.snapshot()["seen"].tolist() == [40]
