"""`Ref`: a running actor as its users hold it. Any thread may use it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from operator import length_hint
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.living import stop
from treadle.actors.mailbox import Patience
from treadle.actors.messages import Codec
from treadle.actors.pipes import connect
from treadle.actors.prepared import PreparedMessage
from treadle.actors.program import Program
from treadle.actors.receiving import Receiving, count_of
from treadle.actors.ring_calls import ACCEPTED, ACCEPTED_PARKED, ANSWERED, Sending
from treadle.actors.sending import Sender, WaitQueue
from treadle.actors.stamps import stamp_of, stamp_rows
from treadle.actors.status import Clock, Status, Telemetry, status_of, telemetry_of
from treadle.actors.timeouts import deadline_of, seconds_of
from treadle.core.errors import ActorFailed, DtypeError, QueueFull, TreadleError

# Polls of a waiting thread before it sleeps. An actor's thread that was in Python to notify another
# one takes up to 20 µs to be back: a thread that sleeps before that sends it there again. And to
# wake a thread takes longer than many launches.
POLLS, FEW_POLLS = 2000, 50
_POLLS_OF_LAUNCH = 20_000  # 1 ms
_FEW_MESSAGES = 64  # which a thread that waits for their replies handles itself, where it can


class Ref:
    """A running actor, from `Actor.spawn`. Leaving it as a context terminates the actor, draining.

    Timeouts are in seconds; None waits for ever.
    """

    def __init__(
        self,
        core: Core,
        program: Program,
        replies: Codec | None,
        mode: str,
        policy: str,
        polls: int,
    ) -> None:
        self._core = core
        self._program = program
        self._replies = replies
        self._mode = mode
        mailbox = self._mailbox = core.mailbox
        self._pack = core.messages.pack
        self._control = mailbox.address
        self._sending = Sending(mailbox, core.senders)
        self._push = self._sending.send
        self._with_reply = code.DROPPED if replies is None else code.TO_OUTBOX
        self._spin = mailbox.spinner(polls)
        self._sender = Sender(core, policy, self._push, self._spin)
        self._queue = WaitQueue()  # of coroutines that ask
        self._ask = self._sending.ask
        self._patience = Patience(polls)
        self._free: list[int] = []  # answers that were used and are free again
        self._unused = iter(range(mailbox.answer_count))
        self._abandoned: set[int] = set()  # answers that nothing waits for any more
        self._clock = Clock(mailbox)
        self._stops = weakref.finalize(self, stop, core)
        self._stops.atexit = False  # `living` does that

    # --- sending ---

    def send(self, message: Any, *, timeout: float | None = None, reply: bool = True) -> bool:
        """Send a message. Its reply waits in the outbox; with `reply=False` it is dropped.

        While the inbox is full the actor's policy says what happens: "block" waits, QueueFull after
        `timeout`; "raise" is QueueFull at once; "drop_oldest" and "drop_newest" drop a message.
        False if that was this one.
        """
        deadline = None if timeout is None else deadline_of(timeout)
        data = self._pack(message)
        tag = self._with_reply if reply else code.DROPPED
        pushed = self._push(data, tag)
        return pushed == ACCEPTED or self._sender.sent(pushed, data, tag, deadline)

    def prepare(self, message: Any = None) -> PreparedMessage:
        """A message whose bytes lie ready, to be changed and sent many times without being packed
        anew. It begins as this one, or as zeros."""
        self._core.check_open()
        core = self._core
        made = PreparedMessage(core.messages, self._sending, self._with_reply, self._sender.sent)
        if message is not None:
            made.set(message)
        return made

    def _tag(self, reply: bool) -> int:
        """What becomes of the reply to a message that is sent."""
        return self._with_reply if reply else code.DROPPED

    async def send_async(
        self, message: Any, *, timeout: float | None = None, reply: bool = True
    ) -> bool:
        """`send`, awaiting instead of blocking."""
        data, deadline = self._pack(message), deadline_of(timeout)
        return await self._sender.send_async(data, self._tag(reply), deadline)

    def send_many(self, messages: Any, *, timeout: float | None = None, reply: bool = True) -> int:
        """Send many messages: a NumPy array of the message's dtype, or a sequence. It waits until
        all are accepted, and gives their number. QueueFull after `timeout`, ActorFailed if the
        actor ends; the `accepted` of both is how many were. Messages of other threads may come
        between. Policies that drop are as in `send`."""
        deadline = deadline_of(timeout)
        data = self._core.messages.pack_many(messages)
        return self._sender.send_many(data, self._tag(reply), deadline)

    async def send_many_async(
        self, messages: Any, *, timeout: float | None = None, reply: bool = True
    ) -> int:
        """`send_many`, awaiting instead of blocking."""
        data, deadline = self._core.messages.pack_many(messages), deadline_of(timeout)
        return await self._sender.send_many_async(data, self._tag(reply), deadline)

    # --- asking ---

    def ask(self, message: Any, *, timeout: float | None = None, stamp: bool = False) -> Any:
        """Send a message and wait for its reply, which no other call receives; None if the handler
        has none. With `stamp` the reply and its `Stamp`. TimeoutError; ActorFailed if it is not
        handled."""
        if stamp:
            self._check_stamps(stamp)
        core = self._core
        deadline = None if timeout is None else deadline_of(timeout)
        answer = self._answer(deadline)
        sent = False
        try:
            tag = code.ASKED + answer
            data = self._pack(message)
            sent = True  # for all that is known, if Ctrl-C comes now
            server = core.server
            if server is None:
                pushed = self._ask(data, tag, self._patience.polls)
                if pushed == ANSWERED:
                    self._patience.found()
                    return self._answered(answer, stamp)
            else:
                pushed = self._push(data, tag)
            sent = pushed >= ACCEPTED
            if server is not None and sent:
                server(deadline, pushed == ACCEPTED_PARKED)
            elif pushed != ACCEPTED:
                sent = self._sender.sent(pushed, data, tag, deadline)
                if not sent:
                    raise QueueFull(f"the inbox of {core.name} is full: the message was dropped")
            flags = self._mailbox.flags
            if not self._has_come(answer, pushed):
                core.wait(lambda: flags[answer], deadline)
                self._mailbox.measure_answer(answer)
            return self._answered(answer, stamp)
        except BaseException:
            self._abandon(answer, sent)
            raise

    def _has_come(self, answer: int, pushed: int) -> bool:
        """Poll for an answer, unless `ask` has done that; whether it is there."""
        mailbox, patience = self._mailbox, self._patience
        if self._core.server is not None and mailbox.flags[answer]:
            return True
        if pushed == ACCEPTED and self._core.server is None:
            patience.missed()
            return False
        # A kernel that has to be launched first is there long before a thread that sleeps looks.
        polls = _POLLS_OF_LAUNCH if self._mode == "persistent" else patience.polls
        found: int = mailbox.functions.wait(self._control, answer, polls)
        if found != code.PENDING:
            patience.found()
            return True
        patience.missed()
        return False

    async def ask_async(
        self, message: Any, *, timeout: float | None = None, stamp: bool = False
    ) -> Any:
        """`ask`, awaiting instead of blocking."""
        self._check_stamps(stamp)
        core = self._core
        data = self._pack(message)
        deadline = deadline_of(timeout)
        answer = self._answer(deadline, blocking=False)
        if answer is None:
            answer = await self._awaited_answer(deadline)
        sent = False
        tag = code.ASKED + answer
        try:
            sent = await self._sender.send_async(data, tag, deadline)
            if not sent:
                raise QueueFull(f"the inbox of {core.name} is full: the message was dropped")
            flags = self._mailbox.flags
            await core.wait_async(lambda: flags[answer], deadline)
            self._mailbox.measure_answer(answer)
            return self._answered(answer, stamp)
        except BaseException:
            self._abandon(answer, sent)
            raise

    def _answer(self, deadline: float | None, *, blocking: bool = True) -> Any:
        """A free answer; None if there is none and it does not block."""
        while True:
            try:
                answer = self._free.pop()
            except IndexError:
                answer = next(self._unused, -1)
            if answer >= 0:
                self._mailbox.flags[answer] = code.PENDING
                return answer
            if self._has_answer():
                continue
            if not blocking:
                return None
            if not self._core.wait(self._has_answer, deadline):
                raise self._too_late()

    async def _awaited_answer(self, deadline: float | None) -> int:
        """The next answer that is free."""
        try:
            async with self._queue.take(deadline):
                while (answer := self._answer(deadline, blocking=False)) is None:
                    if not await self._core.wait_async(self._has_answer, deadline):
                        raise self._too_late()
        except TimeoutError:
            raise self._too_late() from None
        return int(answer)

    def _has_answer(self) -> bool:
        """Whether there is a free answer, after collecting those that came too late."""
        if self._abandoned:
            flags = self._mailbox.flags
            for answer in [each for each in tuple(self._abandoned) if flags[each]]:
                self._abandoned.discard(answer)
                self._core.errors_of_answers.pop(answer, None)
                self._free.append(answer)
        return bool(self._free) or length_hint(self._unused) > 0 or self._core.ended

    def _abandon(self, answer: int, sent: bool) -> None:
        """Nothing waits for an answer any more."""
        if answer < 0:
            return
        if sent:
            self._abandoned.add(answer)
        else:
            self._free.append(answer)

    def _answered(self, answer: int, stamp: bool) -> Any:
        """What an answer says, which is free again if there is one."""
        core, mailbox = self._core, self._mailbox
        flag = mailbox.flags[answer] & 0xFFFFFFFF  # a short reply may be in the other half
        if flag == code.ANSWERED:
            mailbox.note_answer(answer)
            value = None if self._replies is None else self._replies.unpack(mailbox.answer(answer))
            if stamp:
                value = value, stamp_of(mailbox.stamp_of_answer(answer))
            self._free.append(answer)
            return value
        if flag == code.PENDING:
            if core.ended:
                core.check_open()
            raise self._too_late()
        if flag == code.DISCARDED:
            raise QueueFull(f"the inbox of {core.name} was full, and the message was dropped")
        error = core.errors_of_answers.get(answer)
        if error is None:
            core.check_open()
        raise ActorFailed(str(error))

    def _too_late(self) -> TimeoutError:
        return TimeoutError(f"{self._core.name} has not answered in time")

    # --- receiving ---

    def receive(self, *, timeout: float | None = None, stamp: bool = False) -> Any:
        """The next reply to a message that was sent; with `stamp` the reply and its `Stamp`.
        TimeoutError; ActorFailed if there is none and the actor has ended."""
        replies = self._receiving(stamp)
        found = self._receive(1, deadline_of(timeout), stamp)
        return self._received(replies, found, stamp)

    async def receive_async(self, *, timeout: float | None = None, stamp: bool = False) -> Any:
        """`receive`, awaiting instead of blocking."""
        replies = self._receiving(stamp)
        found = await self._receive_async(1, deadline_of(timeout), stamp)
        return self._received(replies, found, stamp)

    def _received(self, replies: Codec, found: Receiving, stamp: bool) -> Any:
        """The one reply that was waited for."""
        if not found.is_complete:
            core = self._core
            if core.ended:
                core.check_open()
            raise TimeoutError(f"no reply of {core.name} came in time")
        value = replies.unpack(found.data.tobytes())
        return (value, stamp_of(int(found.stamps[0]))) if stamp else value

    @overload
    def receive_many(
        self, count: int, *, timeout: float | None = ..., stamps: Literal[False] = ...
    ) -> np.ndarray[Any, Any]: ...
    @overload
    def receive_many(
        self, count: int, *, timeout: float | None = ..., stamps: Literal[True]
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]: ...
    def receive_many(
        self, count: int, *, timeout: float | None = None, stamps: bool = False
    ) -> Any:
        """Up to `count` replies in order, as an array; fewer when the time is up, or when the actor
        has ended. With `stamps` also an array of their stamps, with a row of microseconds and
        counter for each. ActorFailed if there are none and it has failed."""
        replies = self._receiving(stamps)
        found = self._receive(count_of(count), deadline_of(timeout), stamps)
        return self._received_many(replies, found, stamps)

    async def receive_many_async(
        self, count: int, *, timeout: float | None = None, stamps: bool = False
    ) -> Any:
        """`receive_many`, awaiting instead of blocking."""
        replies = self._receiving(stamps)
        found = await self._receive_async(count_of(count), deadline_of(timeout), stamps)
        return self._received_many(replies, found, stamps)

    def _received_many(self, replies: Codec, found: Receiving, stamps: bool) -> Any:
        """The replies that came in time."""
        data = found.data
        if not len(data) and not found.is_complete and self._core.error is not None:
            self._core.check_open()
        values = replies.array(data, len(data) // max(replies.size, 1))
        return (values, stamp_rows(found.stamps)) if stamps else values

    def _check_stamps(self, wanted: bool) -> None:
        if wanted and self._mailbox.stamps is None:
            raise TreadleError(
                f"replies of {self._core.name} have no stamps: ask for them with "
                "@td.actor(stamps=True)"
            )

    def _receiving(self, stamps: bool) -> Codec:
        self._check_stamps(stamps)
        pipe = self._core.pipe
        if pipe is not None:
            raise TreadleError(f"the replies of {self._core.name} are sent to {pipe.name}")
        return self._replying()

    def _replying(self) -> Codec:
        if self._replies is None:
            raise TreadleError(f"{self._core.name} has no replies: its handler returns nothing")
        return self._replies

    def _receive(self, count: int, deadline: float | None, stamps: bool) -> Receiving:
        """Receive up to so many replies, until the deadline."""
        core, mailbox = self._core, self._mailbox
        found = Receiving(core, count, stamps=stamps)
        try:
            while not found.is_complete:
                if found.more():
                    continue
                if core.server is not None and 0 < mailbox.waiting <= _FEW_MESSAGES:
                    core.server(deadline, False)
                    if found.more():
                        continue
                self._spin(self._control + 8 * code.OUT_TAIL, mailbox.words[code.OUT_HEAD])
                if not found.more() and not core.wait(found.more, deadline):
                    break
        except BaseException:  # Ctrl-C, say
            found.put_back()
            raise
        return found

    async def _receive_async(self, count: int, deadline: float | None, stamps: bool) -> Receiving:
        """`_receive`, awaiting instead of blocking."""
        found = Receiving(self._core, count, stamps=stamps)
        try:
            while not found.is_complete:
                if not found.more() and not await self._core.wait_async(found.more, deadline):
                    break
        except BaseException:  # cancelled, say
            found.put_back()
            raise
        return found

    def pipe(self, other: Ref) -> Ref:
        """Send the replies to messages that are sent, from here on, to another actor on the device,
        as its messages; its `Ref`. `ask` is answered as before. The other one is kept until this
        one ends. If it is full, this one stalls; if it ends, this one fails. DtypeError if the
        types differ, ValueError for a circle."""
        if not isinstance(other, Ref):
            raise TypeError(
                f"a pipe leads to another actor's Ref, which spawn gives, not {other!r}"
            )
        core, target = self._core, other._core
        if self._replying().type != target.messages.type:
            raise DtypeError(
                f"{core.name} replies with {self._replying().named()}, and a message of "
                f"{target.name} is {target.messages.named()}: they have to be the same"
            )
        if self._program.device is not other._program.device:
            raise TreadleError(
                f"{core.name} is on {self._program.device.id}, and {target.name} on "
                f"{other._program.device.id}: a pipe stays on one device"
            )
        connect(core, self._program, target, other._program, other)
        return other

    # --- lifecycle ---

    def pause(self, *, timeout: float | None = None) -> None:
        """Handle no messages from here on; messages are still accepted. Returns when the message
        that is being handled is done."""
        self._core.call(lambda: self._core.set_paused(True), deadline_of(timeout))

    def resume(self, *, timeout: float | None = None) -> None:
        """Handle messages again."""
        self._core.call(lambda: self._core.set_paused(False), deadline_of(timeout))

    def snapshot(self, *, timeout: float | None = None) -> dict[str, Any]:
        """Copies of the state as it is between two messages, by name, as `spawn` takes them."""
        snapshot: dict[str, Any] = self._core.call(self._program.snapshot, deadline_of(timeout))
        return snapshot

    def restore(self, state: Mapping[str, Any], *, timeout: float | None = None) -> None:
        """Replace the elements of the state between two messages, by a snapshot or part of one."""
        if not isinstance(state, Mapping):
            raise TypeError(
                "restore takes what snapshot gives, a dict of arrays by the names of the state, "
                f"not {state!r}"
            )
        given = dict(state)
        self._core.call(lambda: self._program.restore(given), deadline_of(timeout))

    def status(self) -> Status:
        """The state and the counts; also after the end."""
        return status_of(self._core)

    def telemetry(self) -> Telemetry:
        """Counts, and the times that messages took; also after the end."""
        return telemetry_of(self._core, self._clock)

    def dead_letters(self) -> list[tuple[str, Any]]:
        """The last 256 messages that were accepted and not handled, or dropped by the policy, each
        with the reason: "failed", "dropped" or "terminated"."""
        return list(self._core.dead_letters)

    def terminate(self, *, drain: bool = True, timeout: float | None = 30.0) -> None:
        """Accept no more messages and end: after all that were accepted, or with `drain=False`
        after the one that is being handled. TimeoutError once no message was finished for `timeout`
        seconds. Replies can still be received. Nothing happens after the end."""
        core, patience = self._core, seconds_of(timeout)
        with core.senders:
            if core.closed is None:
                core.close("was terminated")
        if drain:
            core.draining = True
        else:
            core.stopping = True
        core.attend()
        core.wake()
        while True:
            before = self._progress()
            if core.wait(lambda: core.ended, deadline_of(patience)):
                break
            if self._progress() == before:
                if core.pipe is not None and core.is_stalled:
                    raise TimeoutError(
                        f"{core.name} has finished no message for {patience:g} s: the inbox of "
                        f"{core.pipe.name}, which its replies are sent to, is full. It ends "
                        "once there is room for them, or with terminate(drain=False)"
                    )
                if core.executor is not None:
                    core.executor.lose()
                raise TimeoutError(
                    f"{core.name} has not ended within {patience:g} s, in which it has finished no "
                    "message. If its handler does not return, the actor is lost, but does not keep "
                    "the process from exiting"
                )
        if core.executor is not None:
            core.executor.join(patience)

    def _progress(self) -> int:
        return self._mailbox.words[code.PROCESSED] + self._mailbox.words[code.ERRORS]

    def __enter__(self) -> Ref:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Terminate: draining, or at once if the block raised an error."""
        self.terminate(drain=kind is None)

    def __repr__(self) -> str:
        status = self.status()
        return (
            f"<treadle actor {self._core.name} on {self._program.device.id}: {status.state}, "
            f"{status.messages_processed} messages>"
        )
