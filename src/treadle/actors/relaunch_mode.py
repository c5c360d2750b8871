"""Mode "relaunch": one thread for all such actors of a device launches kernels while messages wait.

A round takes messages of each actor that has some and launches them, all before the first result is
waited for; so actors share the device, and none waits for another for longer than a batch. A batch
grows while messages come faster than they are handled, and as long as it takes little time: an
actor with few messages answers at once, and one with many handles thousands in a launch.

A thread that asks an actor which does nothing handles what waits itself: to wake another thread
and to be woken by it takes longer than many launches. One thread at a time has an actor in its
hands, by `claim`; what takes long is handed over to the device's thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.mailbox import aligned
from treadle.actors.program import Program
from treadle.core import forks
from treadle.core.errors import ActorFailed, TreadleError
from treadle.core.interrupts import Uninterruptible
from treadle.drivers.base import Exchange
from treadle.drivers.pending_read import PendingRead
from treadle.runtime import profiler
from treadle.runtime.devices import Device

LARGEST_BATCH = 4096
_FIRST_LIMIT = 64
# Messages up to which each number of them has a short way, and the bytes of a batch up to which
# powers of two above have one, which batches are that grow.
_FEW, _MOST_BYTES = 64, 1 << 20
# Seconds of a batch below which the next may be larger, and above which it is smaller.
_SHORT, _LONG = 5e-3, 20e-3
_LOOKS = 2000  # some 0.1 ms
_PATIENCE = 2e-3  # seconds that a thread waits for what it has launched itself
# Looks at an actor that threads which ask serve, some 25 µs and 1 ms: how long a message waits for
# such a thread, and how long nothing happens before the dispatcher sleeps.
_STILL, _QUIET = 500, 20_000
_IDLE_SECONDS = 1.0  # after which a device's thread ends that has no actor any more


@dataclass(slots=True)
class _Batch:
    """Messages that were launched."""

    count: int
    began: float
    read: PendingRead | None  # of the replies
    exchange: Exchange | None = None  # the short way, if they went it,
    begun: Any = None  # and what it waits for
    arrived: bool = False  # whether the replies are there


class RelaunchExecutor:
    """One actor among those of a device."""

    def __init__(self, core: Core, program: Program) -> None:
        self._core = core
        self._program = program
        self._limit = min(_FIRST_LIMIT, program.count)
        mailbox = core.mailbox
        self._messages = core.batch = aligned(program.count * mailbox.message_bytes)
        self._bytes = mailbox.message_bytes + mailbox.reply_bytes
        self._replies = aligned(program.count * max(mailbox.reply_bytes, 1))
        self._messages_at, self._replies_at = self._messages.ctypes.data, self._replies.ctypes.data
        mailbox.set_batch(self._messages_at, self._replies_at, program.count)
        self._left = threading.Event()
        self.claimed = False  # whether a thread has it in its hands; the dispatcher's to change
        self._watched = False  # whether the dispatcher looks at its rings
        # Short ways: for each number of messages that has one, the exchange and its launch. None
        # until it is first asked for.
        self._ways: dict[int, tuple[Exchange, int]] | None = None
        if program.report is not None:
            self._ways = {}

    def start(self) -> None:
        """Give it to the thread of its device."""
        self._core.state = "active"
        self._dispatcher = dispatcher_of(self._program.device, self)
        self._core.server = self.serve

    def wake(self) -> None:
        """Have its messages and calls looked at."""
        self._dispatcher.wake(self)

    def woken(self) -> None:
        """It is in the queue: senders need not wake it until it has been looked at. The dispatcher
        takes nothing from the queue meanwhile."""
        self._core.mailbox.words[code.PARKED] = 0

    def join(self, timeout: float | None) -> None:
        """Wait until the dispatcher has left it."""
        if threading.current_thread() is not self._dispatcher.thread:
            self._left.wait(timeout)

    def lose(self) -> None:
        """Its handler is taken for one that never returns: nothing more is launched on the device
        until it does."""

    def serve(self, deadline: float | None, parked: bool) -> None:
        """Handle what waits in the calling thread, for a moment and until the deadline, if no other
        thread does and the device has a short way; else have the dispatcher do it, which has to be
        woken if the actor was `parked`."""
        core, dispatcher = self._core, self._dispatcher
        with Uninterruptible():  # what is claimed is let go of, and what was taken is answered
            if not self.is_servable or not dispatcher.claim(self):
                if parked:
                    self.wake()
                return
            batch = self.begin()
            if batch is not None:
                until = time.perf_counter() + _PATIENCE
                if deadline is not None:
                    until = min(until, time.perf_counter() + deadline - time.monotonic())
                if not self._comes_soon(batch, until):
                    dispatcher.hand_over(self, batch)
                    return
                self.end(batch)
            words = core.mailbox.words
            if not self._watched:
                core.mailbox.park()
            dispatcher.release(self)
            # A thread that has sent or called, or stopped watching, meanwhile found it claimed.
            unseen = not words[code.PARKED] and not self._watched
            if unseen or core.is_called or (words[code.PARKED] and core.mailbox.waiting):
                self.wake()

    @property
    def is_servable(self) -> bool:
        """Whether threads that ask may handle its messages: there is a short way, and nothing but
        messages to see to."""
        core = self._core
        return self._ways != {} and core.pipe is None and not core.is_called

    # --- in the thread that has claimed it ---

    def look(self) -> None:
        """Wait for its next message for a moment, in machine code: to wake a thread that sleeps
        takes longer than most launches."""
        mailbox = self._core.mailbox
        tail = mailbox.words[code.TAIL]
        if tail == mailbox.words[code.HEAD] and not self._core.ended:
            mailbox.functions.spin(mailbox.address + 8 * code.TAIL, tail, _LOOKS)

    def watch(self, bell: int, rung: int) -> None:
        """Before it is claimed, leave what is sent for a moment to who asks next: what was sent
        until then is launched together, and no thread has to be woken for it. Until the word at
        `bell` is another than `rung`, or nothing happens any more."""
        mailbox = self._core.mailbox
        self._watched = True
        mailbox.announce(code.PARKED, 0)
        mailbox.functions.watch(mailbox.address, bell, rung, _STILL, _QUIET)
        self._watched = False

    def begin(self) -> _Batch | None:
        """Launch what waits; None if there is nothing to wait for."""
        try:
            return self._begin()
        except BaseException as error:  # noqa: BLE001 - it is raised where the actor is used
            self._core.end(error)
            return None

    def _comes_soon(self, batch: _Batch, until: float) -> bool:
        """Whether `end` waits no longer than to a time."""
        try:
            return batch.exchange is not None and self._arrives(batch, until)
        except Exception as error:  # noqa: BLE001
            self._core.end(error)
            return True

    def end(self, batch: _Batch) -> None:
        """Wait for a batch and publish its replies."""
        if self._core.ended:
            return
        try:
            self._end(batch)
        except BaseException as error:  # noqa: BLE001
            self._core.end(error)

    @property
    def ended(self) -> bool:
        """Whether it is to be left."""
        return self._core.ended

    def leave(self) -> None:
        """The dispatcher looks at it no more."""
        for exchange, _ in (self._ways or {}).values():
            exchange.release()
        self._left.set()

    def _begin(self) -> _Batch | None:
        core, mailbox = self._core, self._core.mailbox
        if core.calls:
            core.run_calls()
        if core.stopping:
            core.end()
            return None
        if core.paused and not core.draining:
            return None
        count = self._take()
        if not count:
            return None
        began = profiler.clock()
        mailbox.words[code.HEARTBEAT] += 1
        program = self._program
        size = count * mailbox.message_bytes
        way = self._way_for(count) if profiler.active is None else None
        if way is not None:
            exchange, which = way
            replies = count * mailbox.reply_bytes
            begun = exchange.begin(which, self._messages_at, size, replies)
            return _Batch(count, began, None, exchange, begun)
        program.stream.handle.write(program.messages.buffer, 0, self._messages[:size].data)
        if program.report is not None:
            return _Batch(count, began, None)
        if program.one_by_one:
            for at in range(count):
                program.launch(at, at + 1)
        else:
            program.launch(0, count)
        return _Batch(count, began, self._begin_read(0, count))

    def _way_for(self, count: int) -> tuple[Exchange, int] | None:
        """The short way of so many messages. All are made when one is first asked for."""
        if self._ways is None:
            self._ways = {}
            program = self._program
            few = range(1, 2 if program.one_by_one else min(program.count, _FEW) + 1)
            most = 0 if program.one_by_one else min(program.count, _MOST_BYTES // self._bytes)
            many = [_FEW << power for power in range(1, 20) if _FEW << power <= most]
            for counts, near in ((few, True), (many, False)):
                exchange = program.exchange(counts, near=near) if counts else None
                if exchange is not None:
                    self._ways |= {each: (exchange, at) for at, each in enumerate(counts)}
        return self._ways.get(count)

    def _arrives(self, batch: _Batch, until: float | None = None) -> bool:
        """Wait for the replies that come the short way; False if they are not there by then."""
        assert batch.exchange is not None
        batch.arrived = batch.exchange.wait(batch.begun, self._replies_at, until)
        return batch.arrived

    def _begin_read(self, first: int, last: int) -> PendingRead:
        """Start to copy replies to the host; without replies, a word that shows the end."""
        program, size = self._program, self._core.mailbox.reply_bytes
        if program.replies is None:
            self._word = np.zeros(4, np.uint8)
            return program.stream.handle.begin_read(program.done.buffer, 0, self._word.data)
        target = self._replies[first * size : last * size].data
        return program.stream.handle.begin_read(program.replies.buffer, first * size, target)

    def _take(self) -> int:
        """Take messages; 0 after which senders wake the actor."""
        core, mailbox = self._core, self._core.mailbox
        mailbox.words[code.PARKED] = 0
        while True:
            count = mailbox.take(self._limit)
            if count:
                return count
            mailbox.park()
            count = mailbox.take(self._limit)
            if count:
                mailbox.words[code.PARKED] = 0
                return count
            core.notify_waiting()
            piped = core.forward()
            if core.pipe is not None and mailbox.has_work:  # its outbox was full
                mailbox.words[code.PARKED] = 0
                continue
            if not core.draining:
                return 0
            if not mailbox.waiting and piped:
                core.end()
                return 0
            if core.pipe is not None:
                self.wake()  # the other one is to have its turn
                return 0
            core.make_room()

    def _end(self, batch: _Batch) -> None:
        core, mailbox = self._core, self._core.mailbox
        if batch.exchange is not None:
            if not batch.arrived:
                self._arrives(batch)
            mailbox.finish(0, batch.count)
        elif batch.read is None:
            self._handle_with_reports(batch.count, batch.began)
        else:
            batch.read.wait()
            mailbox.finish(0, batch.count)
        core.forward()
        core.notify_waiting()
        core.note_handled(batch.began)
        seconds = profiler.clock() - batch.began
        if seconds > _LONG:
            self._limit = max(1, self._limit // 2)
        elif seconds < _SHORT and batch.count == self._limit:
            self._limit = min(2 * self._limit, self._program.count)

    def _handle_with_reports(self, count: int, began: float) -> None:
        """Handle a batch whose handler prints or asserts: its report is read after each launch."""
        core, mailbox, program = self._core, self._core.mailbox, self._program
        first = 0
        while first < count:
            last = first + 1 if program.one_by_one else count
            program.begin_count(first)
            program.launch(first, last)
            read = self._begin_read(first, last)
            reason = program.read_report()
            read.wait()
            if reason is None:
                mailbox.finish(first, last)
                first = last
                continue
            failed = first if program.one_by_one else program.failed_at()
            mailbox.finish(first, failed)
            core.note_handled(began)
            if not core.handler_failed(failed, reason):
                raise core.error or ActorFailed(reason)
            first = failed + 1


class Dispatcher:
    """The thread that launches for the actors of a device."""

    def __init__(self, device: Device) -> None:
        self._lock = forks.lock()
        self._event = threading.Event()
        self._ready: deque[RelaunchExecutor] = deque()
        self._queued: set[RelaunchExecutor] = set()
        self._members: set[RelaunchExecutor] = set()
        self._begun: deque[tuple[RelaunchExecutor, _Batch]] = deque()  # that were handed over
        # Changed where there is something to see to, in case a member is watched.
        memory = aligned(8)
        self._bell, self._bell_at = memory.data.cast("B").cast("q"), memory.ctypes.data
        self.closed = False
        self._device = device
        # Where the device needs the processors itself, a thread that looks is in its way.
        shared = device.traits.software or device.traits.on_host
        self._looks = not shared and (os.cpu_count() or 1) > 1
        self.thread = threading.Thread(
            target=self._run, name=f"treadle actors on {device.id}", daemon=True
        )
        self.thread.start()

    def join(self, member: RelaunchExecutor) -> bool:
        """Add an actor; False if the thread has just ended."""
        with self._lock:
            if self.closed:
                return False
            self._members.add(member)
            return True

    def wake(self, member: RelaunchExecutor) -> None:
        """Put an actor into the queue."""
        if member in self._queued:
            return  # its messages have not been looked at yet
        with self._lock:
            self._event.set()
            if member not in self._queued:
                self._queued.add(member)
                self._ready.append(member)
            self._bell[0] += 1
            member.woken()

    def claim(self, member: RelaunchExecutor) -> bool:
        """Take an actor into the calling thread's hands; False if another thread has it."""
        with self._lock:
            ours = not member.claimed
            member.claimed = True
            return ours

    def release(self, member: RelaunchExecutor) -> None:
        """Let go of an actor."""
        member.claimed = False

    def hand_over(self, member: RelaunchExecutor, batch: _Batch) -> None:
        """Give an actor that the calling thread has claimed to the dispatcher, with a batch that
        was launched."""
        with self._lock:
            self._begun.append((member, batch))
            self._bell[0] += 1
        self._event.set()

    def _run(self) -> None:
        last: RelaunchExecutor | None = None  # that had messages, if it was the only one
        slept = False
        with contextlib.suppress(TreadleError):  # a device that is lost says so to its actors
            self._device.handle.work_apart()
        while True:
            with self._lock:
                rung = self._bell[0]
                members = list(self._ready)
                self._ready.clear()
                self._queued.clear()
                begun = list(self._begun)
                self._begun.clear()
                if (
                    not members and not begun and not self._members
                    and not self._event.is_set() and self._idle
                ):  # fmt: skip
                    self.closed = True
                    return
            if self._looks and not begun:
                if not members and last is not None:
                    if last.is_servable:
                        members = [last]
                        slept = True
                    else:
                        last.look()
                    last = None
                if slept and len(members) == 1 and members[0].is_servable:
                    members[0].watch(self._bell_at, rung)
            if not members and not begun:
                self._idle = not self._event.wait(None if self._members else _IDLE_SECONDS)
                self._event.clear()
                slept = True
                continue
            slept = False
            for member in members:
                if not self.claim(member):
                    continue  # the thread that has it wakes it if there is more
                batch = member.begin()
                if batch is None:
                    self.release(member)
                else:
                    begun.append((member, batch))
            for member, batch in begun:
                member.end(batch)
                self.release(member)
                self.wake(member)
            if begun:
                last = begun[0][0] if len(begun) == 1 else None
            for member in members:
                if member.ended:
                    with self._lock:
                        self._members.discard(member)
                    member.leave()

    _idle = False


_dispatchers: dict[Device, Dispatcher] = {}
_lock = forks.lock()


def dispatcher_of(device: Device, member: RelaunchExecutor) -> Dispatcher:
    """The dispatcher of a device, with one more actor."""
    with _lock:
        found = _dispatchers.get(device)
        while found is None or not found.join(member):  # it may have ended just now
            found = _dispatchers[device] = Dispatcher(device)
        return found


def forget_dispatchers() -> None:
    """In a forked child: their threads are the parent's."""
    _dispatchers.clear()
