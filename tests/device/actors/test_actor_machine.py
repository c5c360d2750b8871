"""Drawn sequences of what may be done with an actor, beside a model in Python; and long runs of
several threads, after which no message is lost or doubled."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import treadle as td
from treadle.actors import Actor

CAPACITY = 4
PATIENCE = 60


def _accumulator(**options: Any) -> Actor:
    @td.actor(capacity=CAPACITY, on_error="skip", **options)
    def accumulate(message: td.i32, total: td.Array[td.i32]) -> td.i32:
        assert message != 13, "thirteen"
        total[0] = total[0] + message
        return total[0]

    return accumulate


ACTORS = {
    (policy, stamps): _accumulator(policy=policy, stamps=stamps)
    for policy in ("block", "raise", "drop_newest")
    for stamps in (False, True)
}
VALUES = st.one_of(st.integers(-100, 100), st.just(13))


class Machine(RuleBasedStateMachine):
    """While the actor is paused, the model knows exactly what is where: the inbox is `waiting`.
    Otherwise all messages whose replies have room are handled as soon as it matters."""

    device: td.Device
    mode: str | None

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Any] | None = None
        self.kept_total = 0
        self.begin(0)

    def begin(self, total: int) -> None:
        """A new actor in the model."""
        self.waiting: list[tuple[int, bool]] = []  # accepted and not handled: value, reply
        self.outbox: list[int] = []
        self.total = total
        self.handled = self.failed = 0
        self.paused = False

    @initialize(kind=st.sampled_from(sorted(ACTORS)))
    def spawn(self, kind: tuple[str, bool]) -> None:
        self.policy, self.stamps = kind[0], kind[1] and self.mode != "persistent"
        self.last = td.actors.stamp()
        self.ref = ACTORS[self.policy, self.stamps].spawn(
            total=td.zeros(1, dtype=td.int32, device=self.device),
            device=self.device,
            mode=self.mode,
        )

    def settle(self) -> None:
        """Handle in the model what the actor handles, and wait until it has."""
        while self.waiting and not self.paused:
            value, reply = self.waiting[0]
            if reply and len(self.outbox) == CAPACITY:
                break
            self.waiting.pop(0)
            if value == 13:
                self.failed += 1
                continue
            self.handled += 1
            self.total += value
            if reply:
                self.outbox.append(self.total)
        deadline = time.monotonic() + PATIENCE
        while True:
            status = self.ref.status()
            seen = status.messages_processed, status.errors_encountered, status.input_depth
            if seen == (self.handled, self.failed, len(self.waiting)):
                return
            assert time.monotonic() < deadline, (seen, self.__dict__)

    @rule(value=VALUES, reply=st.booleans(), prepared=st.booleans())
    def send(self, value: int, reply: bool, prepared: bool) -> None:
        def send(**options: Any) -> bool:
            if prepared:
                return self.ref.prepare(value).send(reply=reply, **options)
            return self.ref.send(value, reply=reply, **options)

        if len(self.waiting) < CAPACITY:
            assert send(timeout=PATIENCE)
            self.waiting.append((value, reply))
        elif self.policy == "drop_newest":
            assert not send()
        else:
            with pytest.raises(td.errors.QueueFull):
                send(timeout=0)
        self.settle()

    @rule(values=st.lists(VALUES, max_size=6))
    def send_many(self, values: list[int]) -> None:
        values = values[: CAPACITY - len(self.waiting)]
        assert self.ref.send_many(values, timeout=PATIENCE) == len(values)
        self.waiting += [(value, True) for value in values]
        self.settle()

    @precondition(lambda self: not self.paused and not self.waiting)
    @rule(value=VALUES)
    def ask(self, value: int) -> None:
        if value == 13:
            with pytest.raises(td.errors.ActorFailed, match="message 13"):
                self.ref.ask(value, timeout=PATIENCE)
            self.failed += 1
        else:
            self.total += value
            self.handled += 1
            assert self.ref.ask(value, timeout=PATIENCE) == self.total
        self.settle()

    @precondition(lambda self: len(self.waiting) < CAPACITY and (self.paused or self.waiting))
    @rule()
    def ask_in_vain(self) -> None:
        """The question times out, and is handled all the same."""
        with pytest.raises(TimeoutError):
            self.ref.ask(1, timeout=0)
        self.waiting.append((1, False))
        self.settle()

    @rule(count=st.integers(0, 6))
    def receive(self, count: int) -> None:
        n = min(count, len(self.outbox))
        if self.stamps:  # they grow with the replies
            got, rows = self.ref.receive_many(n, timeout=PATIENCE, stamps=True)
            stamps = [self.last, *(td.actors.Stamp(*row) for row in rows.tolist())]
            assert stamps == sorted(set(stamps))
            self.last = stamps[-1]
        else:
            got = self.ref.receive_many(n, timeout=PATIENCE)
        assert got.tolist() == self.outbox[:n]
        del self.outbox[:n]
        self.settle()

    @precondition(lambda self: not self.outbox)
    @rule()
    def receive_in_vain(self) -> None:
        assert len(self.ref.receive_many(1, timeout=0)) == 0
        with pytest.raises(TimeoutError):
            self.ref.receive(timeout=0)

    @rule()
    def pause(self) -> None:
        self.ref.pause(timeout=PATIENCE)
        self.paused = True

    @rule()
    def resume(self) -> None:
        self.ref.resume(timeout=PATIENCE)
        self.paused = False
        self.settle()

    @rule()
    def snapshot(self) -> None:
        self.kept = self.ref.snapshot(timeout=PATIENCE)
        self.kept_total = self.total
        assert self.kept["total"].tolist() == [self.total]

    @precondition(lambda self: self.kept is not None)
    @rule()
    def restore(self) -> None:
        assert self.kept is not None
        self.ref.restore(self.kept, timeout=PATIENCE)
        self.total = self.kept_total

    @precondition(lambda self: self.kept is not None)
    @rule(drain=st.booleans())
    def start_again(self, drain: bool) -> None:
        """The end, and a new actor with the state that was kept."""
        assert self.kept is not None
        old = self.ref
        old.terminate(drain=drain, timeout=PATIENCE)
        if drain:
            for value, reply in self.waiting:
                if value != 13:
                    self.total += value
                    self.outbox += [self.total] if reply else []
        else:
            assert sum(k == "terminated" for k, _ in old.dead_letters()) == len(self.waiting)
        assert old.receive_many(99).tolist() == self.outbox
        assert old.status().has_terminated
        self.ref = ACTORS[self.policy, self.stamps].spawn(
            **self.kept, device=self.device, mode=self.mode
        )
        self.begin(self.kept_total)

    @invariant()
    def depths(self) -> None:
        if hasattr(self, "ref"):
            assert self.ref.status().output_depth == len(self.outbox)

    def teardown(self) -> None:
        if hasattr(self, "ref"):
            self.ref.terminate(drain=False, timeout=PATIENCE)


def test_drawn_operations(device: td.Device, mode: str | None) -> None:
    where = {"device": device, "mode": mode}
    drawn = type("Drawn", (Machine,), where)
    examples = max(settings.default.max_examples // 4, 1) if settings.default else 25
    run_state_machine_as_test(
        drawn, settings=settings(max_examples=examples, stateful_step_count=25)
    )


POLICIES = ("block", "raise", "drop_oldest", "drop_newest")
REFUSED = 997  # of so many messages a handler that asserts fails for one


@td.func
def count(message, seen, sums):
    """Note that a message was handled: in `sums` their sum, their number, and how many had been
    handled before."""
    sums[0] += message
    sums[1] += 1
    word = td.i32(message // 32)
    if word < seen.size:
        bit = td.u32(1) << (message % 32)
        if (seen[word] & bit) != 0:
            sums[2] += 1
        seen[word] = seen[word] | bit


def _tally(policy: Any) -> Actor:
    @td.actor(capacity=256, policy=policy)
    def tally(message: td.u32, seen: td.Array[td.u32], sums: td.Array[td.u32]) -> td.u32:
        count(message, seen, sums)
        return message

    return tally


@td.actor(capacity=256, restarts=10**6, keep_state=True)
def strict(message: td.u32, seen: td.Array[td.u32], sums: td.Array[td.u32]) -> td.u32:
    assert message % REFUSED != 5
    count(message, seen, sums)
    return message


TALLIES = [*(_tally(policy) for policy in POLICIES), strict]


class Soak:
    """Threads send numbers in order, each in its own way; others receive, pause and take snapshots.
    One actor follows the other, with the state that the one before left: of each policy, and one
    whose handler fails now and then, after which it starts again."""

    senders = 3

    def __init__(self, device: td.Device, mode: str | None, count: int) -> None:
        self.place = {"device": device, "mode": mode}
        self.share = count // (self.senders * len(TALLIES))
        self.count = self.share * self.senders * len(TALLIES)
        self.draw = random.Random(count)
        self.errors: list[BaseException] = []

    def run(self) -> None:
        state = {
            "seen": td.zeros(-(-self.count // 32), dtype=td.uint32),
            "sums": td.zeros(3, dtype=td.uint32),
        }
        handled = 0
        for number, actor in enumerate(TALLIES):
            state, more = self.round(actor, number, state)
            handled += more
            # Each message that was handled left its bit, and was handled once.
            assert state["sums"].tolist()[1:] == [handled, 0]
            bits = np.unpackbits(state["seen"].numpy().view(np.uint8), bitorder="little")
            assert bits.sum() == handled
            numbers = np.flatnonzero(bits).astype(np.uint32)
            assert state["sums"].tolist()[0] == numbers.sum(dtype=np.uint32)

    def round(self, actor: Actor, number: int, state: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """What one actor does: the state that it leaves, and how many messages it handled."""
        self.got: list[np.ndarray[Any, Any]] = []
        self.asked = [0] * self.senders
        self.over = threading.Event()
        begin = number * self.senders * self.share
        starts = [begin + which * self.share for which in range(self.senders)]
        cut = actor is not strict and self.draw.random() < 0.5  # ended with messages that wait
        self.ref = actor.spawn(**state, **self.place)
        with self.ref as ref:
            sending = [self.guarded(self.send, n, at) for n, at in enumerate(starts)]
            receiving, disturbing = self.guarded(self.receive), self.guarded(self.disturb)
            for thread in sending:
                thread.join()
            if not cut:
                self.settle()
            self.over.set()
            disturbing.join()
            ref.pause(timeout=PATIENCE)
            receiving.join()
            if self.errors:
                raise self.errors[0]
            left = ref.snapshot(timeout=PATIENCE)
            ref.terminate(drain=False, timeout=PATIENCE)
            self.got.append(ref.receive_many(10_000, timeout=0))
            found = ref.telemetry()
        refused = {"drop_oldest": found.dropped_oldest, "drop_newest": found.dropped_newest}
        for policy, number_of in refused.items():
            assert number_of == 0 or policy == (*POLICIES, None)[number]
        assert cut or found.dropped_at_end == 0
        total = self.senders * self.share
        failing = sum(n % REFUSED == 5 for n in range(begin, begin + total))
        assert found.errors == (failing if actor is strict else 0)
        dropped = found.dropped_at_end + sum(refused.values())
        assert found.processed + found.errors + dropped == total
        replies = np.concatenate(self.got)
        assert len(replies) == found.processed - sum(self.asked)
        for at in starts:
            own = replies[(replies >= at) & (replies < at + self.share)]
            assert (np.diff(own.astype(np.int64)) > 0).all()
        return left, found.processed

    def settle(self) -> None:
        """Wait until all that was accepted is handled."""
        while not self.errors:
            found = self.ref.telemetry()
            if not found.input_depth and (
                found.processed + found.errors + found.dropped_oldest == found.accepted
            ):
                return
            time.sleep(0.001)

    def guarded(self, work: Any, *arguments: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                self.errors.append(error)
                self.over.set()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def send(self, which: int, at: int) -> None:
        draw = random.Random(at)
        end = at + self.share
        while at < end and not self.errors:
            how = draw.random()
            try:
                if how < 0.2:
                    self.ask(which, at)
                    at += 1
                elif how < 0.4:
                    if not self.ref.send(at, timeout=PATIENCE):
                        time.sleep(1e-4)  # "drop_newest": let it catch up
                    at += 1
                else:
                    n = min(draw.randrange(1, draw.choice((4, 60, 2000))), end - at)
                    numbers = np.arange(at, at + n, dtype=np.uint32)
                    if self.ref.send_many(numbers, timeout=PATIENCE) < n:
                        time.sleep(1e-4)
                    at += n
            except td.errors.QueueFull as full:
                at += getattr(full, "accepted", 0)  # policy "raise": the others once more
                time.sleep(0)

    def ask(self, which: int, number: int) -> None:
        try:
            assert self.ref.ask(number, timeout=PATIENCE) == number
            self.asked[which] += 1
        except td.errors.ActorFailed:
            assert number % REFUSED == 5
        except td.errors.QueueFull as full:
            if "dropped" not in str(full):
                raise

    def receive(self) -> None:
        while not self.over.is_set() or self.ref.status().output_depth:
            self.got.append(self.ref.receive_many(777, timeout=0.02))

    def disturb(self) -> None:
        draw = random.Random(99)
        while not self.over.wait(draw.random() / 50):
            self.ref.pause(timeout=PATIENCE)
            self.ref.snapshot(timeout=PATIENCE)
            self.ref.resume(timeout=PATIENCE)


def test_soak(device: td.Device, mode: str | None) -> None:
    Soak(device, mode, 30_000).run()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_long_soak(device: td.Device, mode: str | None) -> None:
    few = "wgsl" in device.traits.targets
    Soak(device, mode, 1_000_000 if few else 10_000_000).run()
