"""Sending messages to an actor, for threads and coroutines alike: what its policy says where the
inbox is full."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.mailbox import Bytes
from treadle.actors.ring_calls import ACCEPTED, CLOSED
from treadle.core.errors import ActorFailed, QueueFull


class Sender:
    """One way to an actor's inbox, for packed messages. It takes the functions of machine code that
    send one (`push`) and that poll a word until it changes (`spin`)."""

    def __init__(
        self,
        core: Core,
        policy: str,
        push: Callable[[bytes, int], int],
        spin: Callable[[int, int], int],
    ) -> None:
        self._core = core
        self._mailbox = core.mailbox
        self._policy = policy
        self._push = push
        self._spin = spin
        self._queue = WaitQueue()

    def send(self, data: bytes, tag: int, deadline: float | None) -> bool:
        """Send a message; False if it was dropped."""
        pushed = self._push(data, tag)
        return pushed == ACCEPTED or self.sent(pushed, data, tag, deadline)

    def sent(self, pushed: int, data: bytes, tag: int, deadline: float | None) -> bool:
        """Go on after a message was pushed: wake the actor, or send the message as the policy says
        if the inbox was full."""
        core = self._core
        if pushed == CLOSED:
            core.check_open()
        if pushed & 1:
            core.wake()
        if pushed >= ACCEPTED:
            return True
        if self._policy != "block":
            return self._drop_one(data, tag)
        self._poll()
        if not core.wait(lambda: core.ended or self._try(data, tag), deadline):
            raise self._full()
        core.check_sent()
        return True

    async def send_async(self, data: bytes, tag: int, deadline: float | None) -> bool:
        """`send`, awaiting instead of blocking."""
        core = self._core
        if self._try(data, tag):
            return True
        if self._policy != "block":
            return self._drop_one(data, tag)
        try:
            async with self._queue.take(deadline):
                sent = await core.wait_async(lambda: core.ended or self._try(data, tag), deadline)
        except TimeoutError:
            sent = False
        if not sent:
            raise self._full()
        core.check_sent()
        return True

    def send_many(self, data: Bytes, tag: int, deadline: float | None) -> int:
        """Send many messages; how many were accepted, which are all but those that were dropped."""
        many = _Many(self._core, data, tag)
        while not many.is_complete:
            if many.more():
                continue
            if self._policy in ("drop_oldest", "drop_newest"):
                if not self._drop_for(many):
                    break
                continue
            if self._policy == "block":
                self._poll()
            if self._policy == "raise" or not self._core.wait(many.more_or_ended, deadline):
                raise many.full()
        return many.accepted

    async def send_many_async(self, data: Bytes, tag: int, deadline: float | None) -> int:
        """`send_many`, awaiting instead of blocking."""
        many = _Many(self._core, data, tag)
        while not many.is_complete:
            if many.more():
                continue
            if self._policy in ("drop_oldest", "drop_newest"):
                if not self._drop_for(many):
                    break
                continue
            if self._policy == "raise":
                raise many.full()
            try:
                async with self._queue.take(deadline):
                    found = await self._core.wait_async(many.more_or_ended, deadline)
            except TimeoutError:
                found = False
            if not found:
                raise many.full()
        return many.accepted

    def _try(self, data: bytes, tag: int) -> bool:
        """Send a message if there is room."""
        core = self._core
        core.check_open()
        pushed = self._push(data, tag)
        if pushed == CLOSED:
            core.check_open()
        if pushed & 1:
            core.wake()
        return pushed >= ACCEPTED

    def _poll(self) -> None:
        """Look for room, for a moment."""
        mailbox = self._mailbox
        self._spin(mailbox.address + 8 * code.HEAD, mailbox.words[code.HEAD])

    def _drop_one(self, data: bytes, tag: int) -> bool:
        """Send a message to a full inbox, by a policy that does not wait; whether it is there."""
        if self._policy == "raise":
            raise self._full()
        if self._policy == "drop_newest":
            self._core.note_dropped("drop_newest", data)
            return False
        self._drop_oldest(data, tag)
        return True

    def _drop_for(self, many: _Many) -> bool:
        """Send the next one of many to a full inbox, by a policy that drops; False if that drops
        all that are left."""
        if self._policy == "drop_oldest":
            self._drop_oldest(many.first, many.tag)
            many.accepted += 1
            return True
        self._core.note_dropped("drop_newest", many.rest.tobytes())
        return False

    def _drop_oldest(self, data: bytes, tag: int) -> None:
        core = self._core
        if core.mode == "persistent":
            # Only the actor's kernel takes messages out of the inbox: it ends, so that the oldest
            # one can be dropped. That waits for the handler's end.
            while not self._try(data, tag):
                core.call(self._take_oldest, None)
            return
        dropped = False
        with core.senders:
            core.check_open()
            while (pushed := self._push(data, tag)) < ACCEPTED:
                dropped |= self._note_oldest()
        if pushed & 1:
            core.wake()
        if dropped:
            core.notify_waiting()

    def _take_oldest(self) -> None:
        with self._core.senders:
            self._note_oldest()

    def _note_oldest(self) -> bool:
        """Drop the oldest message, unless the actor takes it first; under the senders' lock."""
        found = self._mailbox.drop_oldest()
        if found is None:
            return False
        self._core.note_dropped("drop_oldest", found[1])
        self._mailbox.flag(found[0], code.DISCARDED)
        return True

    def _full(self) -> QueueFull:
        core = self._core
        text = f"the inbox of {core.name} is full ({self._mailbox.capacity} messages)"
        if self._policy == "block":
            text += ", and stayed full for the timeout"
            if core.pipe is not None and core.is_stalled:
                text += f": {core.pipe.name}, which its replies are sent to, has no room for them"
            elif core.has_full_outbox:
                text += ": its outbox is full, so receive replies"
        return QueueFull(text)


class _Many:
    """Messages that are being sent, in one row."""

    def __init__(self, core: Core, data: Bytes, tag: int) -> None:
        self.tag = tag
        self.accepted = 0
        self._core = core
        self._data = data
        self._size = core.mailbox.message_bytes
        self._total = data.nbytes // self._size

    @property
    def is_complete(self) -> bool:
        """Whether all were accepted."""
        return self.accepted >= self._total

    @property
    def rest(self) -> Bytes:
        """The bytes of those that were not."""
        return self._data[self.accepted * self._size :]

    @property
    def first(self) -> bytes:
        """The bytes of the first one of these."""
        return self.rest[: self._size].tobytes()

    def more(self) -> bool:
        """Send as many as there is room for; whether there was any. ActorFailed, with the number
        that was `accepted`, if the actor has ended."""
        core = self._core
        with core.senders:
            if core.closed is not None:
                raise self._ended()
            count = self._total - self.accepted
            pushed = core.mailbox.push_many(self._data, self.accepted, count, self.tag)
        self.accepted += pushed >> 1
        if pushed & 1:
            core.wake()
        return pushed > 1

    def more_or_ended(self) -> bool:
        """`more`, to wait for; or the actor's end, which the next `more` says."""
        return self._core.ended or self.more()

    def full(self) -> QueueFull:
        """The error of an inbox that was full."""
        error = QueueFull(
            f"{self.accepted} of {self._total} messages were accepted by {self._core.name}, whose "
            f"inbox is full ({self._core.mailbox.capacity} messages)"
        )
        error.accepted = self.accepted  # type: ignore[attr-defined]
        return error

    def _ended(self) -> ActorFailed:
        core = self._core
        error = ActorFailed(
            f"{core.error or f'{core.name} {core.closed}'}; {self.accepted} of {self._total} "
            "messages were accepted before"
        )
        error.accepted = self.accepted  # type: ignore[attr-defined]
        return error


class WaitQueue:
    """A queue of coroutines for each event loop. One of them waits for what an actor has little of,
    and the others wait for that one: to wake all of them each time would take quadratic time."""

    def __init__(self) -> None:
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]
        self._locks = weakref.WeakKeyDictionary()

    @asynccontextmanager
    async def take(self, deadline: float | None) -> AsyncIterator[None]:
        """Wait until those before it are through. TimeoutError after the deadline."""
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        left = None if deadline is None else max(deadline - time.monotonic(), 0)
        async with asyncio.timeout(left):
            await lock.acquire()
        try:
            yield
        finally:
            lock.release()
