"""What the thread that runs an actor and its `Ref` share: mailbox, lifecycle, waiting.

The condition's lock is taken before those of senders and receivers, which are held for moments.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from treadle.actors import ring_code as code
from treadle.actors.mailbox import Bytes, Mailbox
from treadle.actors.messages import Codec
from treadle.core import forks
from treadle.core.errors import ActorFailed
from treadle.runtime import profiler

_numbers = itertools.count(1)  # of actors
MOST_DEAD_LETTERS = 256
_MOST_FORWARDED = 1024  # replies that are piped at a time
_LOOKED_AT_ONCE = 200e-6  # seconds that an event loop looks for what nothing announces
_MOST_SHOWN = 200  # characters of a message in an error


class Executor(Protocol):
    """What takes an actor's messages."""

    def start(self) -> None:
        """Begin."""

    def wake(self) -> None:
        """Have it look at its messages and calls."""

    def join(self, timeout: float | None) -> None:
        """Wait until it uses nothing of the actor's any more."""

    def lose(self) -> None:
        """The handler is taken for one that never returns."""


class Call:
    """Work that the actor's thread does between two messages."""

    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None


class Core:
    """One actor's shared part."""

    def __init__(
        self,
        name: str,
        mailbox: Mailbox,
        messages: Codec,
        *,
        device: str,
        mode: str,
        skips: bool,
        restarts: int,
    ) -> None:
        self.name = name
        self.track = f"{name} {next(_numbers)} on {device}"  # in a profile's trace
        self.mailbox = mailbox
        self.device = device  # its id
        self.mode = mode
        self.messages = messages
        self.skips = skips
        self.restarts = restarts
        self.reset: Callable[[], None] | None = None  # before a restart with fresh state
        self.senders = forks.lock()
        self.receivers = forks.lock()
        self.condition = threading.Condition(forks.lock())
        self.executor: Executor | None = None
        # Where threads that wait for replies may handle messages themselves, for a moment: with
        # their deadline, and whether they were to wake the actor.
        self.server: Callable[[float | None, bool], None] | None = None
        self.looks: float | None = None  # seconds after which a waiting thread looks by itself
        self.calls: deque[Call] = deque()
        self.state = "created"
        self.closed: str | None = None  # why no message is accepted any more
        self.error: ActorFailed | None = None
        self.last_error: str | None = None
        self.paused = self.draining = self.stopping = self.ended = False
        self.restarted = 0
        self.errors_of_answers: dict[int, ActorFailed] = {}
        # Replies that were moved out of the outbox, with their stamps.
        self.late: deque[tuple[Bytes, Any]] = deque()
        self.dead_letters: deque[tuple[str, Any]] = deque(maxlen=MOST_DEAD_LETTERS)
        self.dropped = {"drop_oldest": 0, "drop_newest": 0, "terminated": 0}
        self.batch: Bytes = np.zeros(0, np.uint8)  # the messages being handled
        self.pipe: Core | None = None  # the actor that replies are sent to
        self.kept: Any = None  # that actor's `Ref`, so that it does not end before this one
        self.feeders: list[Core] = []  # those that send theirs here
        self.feed: Core | None = None  # the one of them whose replies the kernel takes by itself
        self.pulled = False  # whether the kernel of the other one takes its replies
        self._noted = 0  # messages that were reported
        self._unsent: Bytes | None = None  # replies that it had no room for
        self._refusal: ActorFailed | None = None  # by an actor that has ended
        self._futures: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    # --- waiting, in any thread ---

    def wait(self, ready: Callable[[], Any], deadline: float | None) -> bool:
        """Sleep until `ready`, or the actor's end, or the deadline; whether it is ready then."""
        with self.condition:
            while True:
                self.mailbox.announce(code.WAITERS, 1)
                found, pause = self._outcome(ready, deadline)
                if found is not None:
                    return found
                self.condition.wait(pause)

    async def wait_async(self, ready: Callable[[], Any], deadline: float | None) -> bool:
        """`wait`, awaiting instead of blocking."""
        loop = asyncio.get_running_loop()
        if self.looks is not None:  # nothing notifies
            soon = time.perf_counter() + _LOOKED_AT_ONCE
            while time.perf_counter() < soon:
                if ready():
                    return True
                await asyncio.sleep(0)
        while True:
            future: asyncio.Future[None] = loop.create_future()
            with self.condition:
                self._futures.append((loop, future))
                self.mailbox.announce(code.WAITERS, 1)
            found, pause = self._outcome(ready, deadline)
            if found is not None:
                return found
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(future, pause)

    def _outcome(
        self, ready: Callable[[], Any], deadline: float | None
    ) -> tuple[bool | None, float | None]:
        """What waiting comes to, if it is over; else how long to sleep."""
        if ready():
            return True, None
        if self.ended:
            return bool(ready()), None
        if deadline is None:
            return None, self.looks
        left = deadline - time.monotonic()
        if left <= 0:
            return False, None
        return None, left if self.looks is None else min(self.looks, left)

    def notify(self) -> None:
        """Have all that wait look again."""
        with self.condition:
            self.mailbox.words[code.WAITERS] = 0
            self.condition.notify_all()
            futures, self._futures = self._futures, []
        for feeder in tuple(self.feeders):
            if feeder.ended:
                feeder.leave_pipe()
            elif not feeder.pulled or feeder.waits_for(self):
                feeder.wake()
        for loop, future in futures:
            try:
                loop.call_soon_threadsafe(_resolve, future)
            except RuntimeError:  # the loop is closed
                continue

    def notify_waiting(self) -> None:
        """`notify`, if anything waits."""
        if self.mailbox.words[code.WAITERS]:
            self.notify()

    def wake(self) -> None:
        """Have the executor look at messages and calls."""
        executor = self.executor
        if executor is not None:
            executor.wake()

    @property
    def is_called(self) -> bool:
        """Whether its thread has more to do than messages."""
        return bool(self.calls) or self.stopping or self.draining or self.ended

    def call(self, work: Callable[[], Any], deadline: float | None) -> Any:
        """Have the actor's thread do something between two messages, and wait for it. Its result;
        what it raised; TimeoutError."""
        call = Call(work)
        with self.senders:
            self.check_open()
            self.calls.append(call)
        self.attend()
        self.wake()
        if not self.wait(lambda: call.done, deadline):
            if self.ended:
                self.check_open()
            raise TimeoutError(
                f"{self.name} has not come to the end of a message in time: its handler still runs"
            )
        if call.error is not None:
            raise call.error
        return call.result

    def attend(self) -> None:
        """Have the actor's thread come back to Python after the message that it handles."""
        self.mailbox.announce(code.ATTENTION, 1)

    def check_sent(self) -> None:
        """After waiting for room: ActorFailed if the actor ended meanwhile."""
        if self.ended:
            self.check_open()

    def close(self, why: str) -> None:
        """Accept no more messages; under the senders' lock."""
        self.closed = why  # first: who finds the mark looks here
        self.mailbox.closed[0] = 1

    def check_open(self) -> None:
        """ActorFailed if nothing is accepted any more."""
        if self.closed is not None:
            raise self.error or ActorFailed(f"{self.name} {self.closed}")

    def note_dropped(self, why: str, data: bytes) -> None:
        """Count messages that were dropped, and keep the last of them as dead letters: "terminated"
        or a policy's name."""
        size = self.mailbox.message_bytes
        count = len(data) // size
        self.dropped[why] += count
        reason = why if why == "terminated" else "dropped"
        for at in range(max(count - MOST_DEAD_LETTERS, 0), count):
            letter = self.messages.unpack(data[at * size : (at + 1) * size])
            self.dead_letters.append((reason, letter))

    def note(self, name: str, began: float | None = None, **facts: Any) -> None:
        """Report to the active profile what happened to the actor."""
        if profiler.active is not None:
            profiler.active.note_event(self.track, name, began, **facts)

    def note_handled(self, began: float) -> None:
        """Report the messages that were handled since the last time."""
        done = self.mailbox.words[code.PROCESSED]
        count, self._noted = done - self._noted, done
        if count:
            self.note("handle", began, messages=count)

    # --- the actor's thread ---

    def run_calls(self) -> None:
        """Do what was asked for between messages."""
        self.mailbox.words[code.ATTENTION] = 0
        done = False
        while self.calls:
            call = self.calls.popleft()
            try:
                call.result = call.work()
            except Exception as error:  # noqa: BLE001 - it is the caller's
                call.error = error
            call.done = done = True
        if done:
            self.notify()

    def set_paused(self, paused: bool) -> None:
        """Handle no messages from here on, or handle them again. A call."""
        self.paused = paused
        self.state = "paused" if paused else "active"
        self.note("pause" if paused else "resume")

    def shown(self, data: bytes | Bytes) -> str:
        """A message, for people."""
        try:
            text = repr(self.messages.unpack(bytes(data)))
        except Exception as error:  # noqa: BLE001 - any bytes may be shown
            text = f"{bytes(data)!r} ({error})"
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"

    def handler_failed(self, at: int, reason: str) -> bool:
        """The handler failed on a message of the batch. Whether the actor goes on."""
        mailbox = self.mailbox
        size = mailbox.message_bytes
        data = self.batch[at * size : (at + 1) * size]
        self.last_error = f"{self.name} failed on message {self.shown(data)}: {reason}"
        error = ActorFailed(self.last_error)
        self.note("error", error=self.last_error)
        mailbox.words[code.ERRORS] += 1
        self.dead_letters.append(("failed", self.messages.unpack(bytes(data))))
        tag = mailbox.batch_entries[2 * at]
        if tag >= code.ASKED:
            self.errors_of_answers[tag - code.ASKED] = error
        mailbox.drop_taken(at, code.FAILED)
        if self.skips:
            self.notify_waiting()
            return True
        if self.restarted < self.restarts:
            self.restarted += 1
            if self.reset is not None:
                self.reset()
            self.note("restart", count=self.restarted)
            self.notify_waiting()
            return True
        self.error = error
        return False

    def forward(self) -> bool:
        """Send replies on to the actor that they are piped to: whether it had room for all. If not,
        it wakes this one once it has. ActorFailed if it has ended."""
        target, mailbox = self.pipe, self.mailbox
        if target is None:
            return True
        if self.pulled:
            if not mailbox.replies or target.closed is None:
                return not mailbox.replies
            self._give_up_pulled(target)
            raise self._refused(target)
        size = mailbox.reply_bytes
        with self.receivers:
            if self._refusal is not None:
                raise self._refusal
            while True:
                if self._unsent is None:
                    count = min(mailbox.replies, _MOST_FORWARDED)
                    if not count:
                        return True
                    self._unsent = np.empty(count * size, np.uint8)
                    mailbox.pop(self._unsent, 0, count)
                if not self._pass_on(target):
                    target.mailbox.announce(code.WAITERS, 1)
                    if not self._pass_on(target):  # it may just have had room
                        return False

    def _pass_on(self, target: Core) -> int:
        """Send on replies that were taken out of the outbox; how many were accepted."""
        data = self._unsent
        assert data is not None
        try:
            accepted = target.accept(data, self)
        except ActorFailed as error:
            self._refusal = error  # whichever thread forwards next finds it, too
            self._unsent = None  # they are the other one's dead letters
            raise
        left = data[accepted * self.mailbox.reply_bytes :]
        self._unsent = left if len(left) else None
        return accepted

    def leave_pipe(self) -> None:
        """After the end: send on the replies that are left, as far as there is room for them; the
        other actor's notices come back here until it has all."""
        target = self.pipe
        if target is None:
            return
        if self.pulled:
            self._give_up_pulled(target)
            if self.mailbox.replies:
                return
        while not self.pulled:
            self._refusal = None
            try:
                if not self.forward():
                    return
                break
            except ActorFailed:
                if not self.mailbox.replies:
                    break
        with contextlib.suppress(ValueError):
            target.feeders.remove(self)
        self.kept = None

    def _refused(self, target: Core) -> ActorFailed:
        """The error of one whose replies are refused."""
        return ActorFailed(f"{self.name} sends its replies to {target.name}, which {target.ending}")

    def accept(self, data: Bytes, sender: Core) -> int:
        """Take messages from another actor, as many as there is room for."""
        tag = code.TO_OUTBOX if self.mailbox.reply_bytes else code.DROPPED
        count = len(data) // self.mailbox.message_bytes
        with self.senders:
            if self.closed is not None:
                self.note_dropped("terminated", data.tobytes())
                raise sender._refused(self)
            pushed = self.mailbox.push_many(data, 0, count, tag)
        if pushed & 1:
            self.wake()
        return pushed >> 1

    @property
    def is_stalled(self) -> bool:
        """Whether it waits for the actor that its replies are sent to."""
        target = self.pipe
        if target is not None and self.pulled:
            return self.has_full_outbox
        if target is None or target.mailbox.waiting < target.mailbox.capacity:
            return False
        return self._unsent is not None or self.mailbox.replies > 0

    @property
    def ending(self) -> str:
        """Why it accepts no messages, for messages."""
        return "has failed" if self.error is not None else "was terminated"

    # --- pipes between kernels: that of the second actor takes the replies of the first one ---

    @property
    def has_full_outbox(self) -> bool:
        """Whether the outbox has as many replies as it can hold."""
        mailbox = self.mailbox
        return mailbox.reply_bytes > 0 and mailbox.replies >= mailbox.capacity

    @property
    def waiting(self) -> int:
        """Messages that wait to be handled, also those that its kernel takes from another actor."""
        feed = self.feed
        return self.mailbox.waiting + (0 if feed is None else feed.mailbox.replies)

    @property
    def has_piped_work(self) -> bool:
        """Whether its kernel can take a reply of the actor that is piped to it."""
        feed = self.feed
        return feed is not None and feed.mailbox.replies > 0 and not self.has_full_outbox

    @property
    def follows_another(self) -> bool:
        """Whether it is not to sleep, as what another kernel that runs does concerns it, and no
        kernel can wake it: that of the actor that is piped to it may reply, and that of the actor
        that it is piped to and waits for may make room."""
        feed, target = self.feed, self.pipe
        if feed is not None and not feed.is_parked and not self.has_full_outbox:
            return True
        return (
            target is not None and self.pulled and not target.is_parked
            and self.has_full_outbox and self.mailbox.waiting > 0
        )  # fmt: skip

    @property
    def is_parked(self) -> bool:
        """Whether no kernel of it runs, or is about to."""
        return self.ended or self.mailbox.words[code.PARKED] != 0

    def wake_others(self) -> None:
        """Before its kernel is launched, and after `PARKED` was cleared with a fence: wake those
        that look at it before they sleep, as in `follows_another`."""
        feed, target = self.feed, self.pipe
        if target is not None and self.pulled and target.is_parked:
            target.wake()
        if feed is not None and feed.is_parked and feed.waits_for(self):
            feed.wake()

    def waits_for(self, target: Core) -> bool:
        """Whether it has something to do once the other one has taken its replies, or ended."""
        return self.mailbox.waiting > 0 or self.draining or target.closed is not None

    def take_piped(self) -> int:
        """Take the reply at which the handler has failed into the batch."""
        feed = self.feed
        assert feed is not None
        with feed.receivers:
            taken = feed.mailbox.pop(self.batch, 0, 1) >> 1
        tag = code.TO_OUTBOX if self.mailbox.reply_bytes else code.DROPPED
        self.mailbox.note_taken(taken, tag)
        return taken

    def _give_up_pulled(self, target: Core) -> None:
        """Replies that an actor has not taken before its end are its dead letters."""
        if not target.ended:
            return  # it still takes them
        mailbox = self.mailbox
        with self.receivers:
            count = mailbox.replies
            data = np.empty(count * mailbox.reply_bytes, np.uint8)
            if count:
                mailbox.pop(data, 0, count)
        target.note_dropped("terminated", data.tobytes())

    def make_room(self) -> None:
        """Move all replies out of the outbox, so that a full one does not keep the actor from
        draining."""
        with self.receivers:
            count = self.mailbox.replies
            if not count:
                return
            data = np.empty(count * max(self.mailbox.reply_bytes, 1), np.uint8)
            stamps = self.mailbox.stamps_of_next(count)
            self.mailbox.pop(data, 0, count)
            self.late.append((data[: count * self.mailbox.reply_bytes], stamps))

    def end(self, error: BaseException | None = None) -> None:
        """The end: nothing is accepted or handled after it."""
        with self.senders:
            if self.ended:
                return
            if error is not None and self.error is None:
                if isinstance(error, ActorFailed):
                    self.error = error
                else:
                    self.error = ActorFailed(f"{self.name} failed: {error}")
                    self.error.__cause__ = error
                if self.last_error is None:
                    self.last_error = str(self.error)
            self.close("failed" if self.error is not None else "was terminated")
            self._drop_all()
            self.state = "failed" if self.error is not None else "terminated"
            self.ended = True
            for call in self.calls:
                call.error = self.error or ActorFailed(f"{self.name} {self.closed}")
                call.done = True
        self.note("end", state=self.state)
        self.leave_pipe()
        self.notify()

    def _drop_all(self) -> None:
        """Drop what was accepted and is not handled; what was asked is answered with an error."""
        mailbox = self.mailbox
        size = mailbox.message_bytes
        for at in reversed(range(mailbox.words[code.TAKEN])):  # they are at the end of the batch
            place = mailbox.taken_last - 1 - at
            mailbox.flag(mailbox.batch_entries[2 * place], code.FAILED)
            self.note_dropped("terminated", bytes(self.batch[place * size : (place + 1) * size]))
        mailbox.words[code.TAKEN] = 0
        for tag, data in mailbox.drop_all():
            mailbox.flag(tag, code.FAILED)
            self.note_dropped("terminated", data)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


__all__ = ["Call", "Core", "Executor"]
