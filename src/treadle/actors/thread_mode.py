"""Mode "thread": machine code in a thread takes messages and calls the kernel.

An actor has a thread of the pool's while it has messages. Python is entered only for what it is
needed for: calls between messages, reports of the handler, notifying threads that wait, and
sleeping.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterator

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.program import Program, host_bytes
from treadle.actors.thread_pool import Member, thread_pool
from treadle.core.errors import ActorFailed, TreadleError
from treadle.drivers.host_memory import HostDevice
from treadle.runtime import profiler

# Polls of an empty inbox before the thread sleeps; each takes some 10 to 40 ns.
IDLE_POLLS = 10_000
RETRY = 0.001  # seconds after which replies are sent again that an actor had no room for


class ServingExecutor:
    """What takes an actor's messages in a thread: the same for one of its own and for one of a
    pool's."""

    _rest: float | None = None  # seconds that it sleeps after it has parked; None: until woken

    def __init__(self, core: Core, program: Program, polls: int) -> None:
        self._core = core
        self._program = program
        self._polls = polls
        self._prepare(core, program)

    def _prepare(self, core: Core, program: Program) -> None:
        """Set up the batch."""
        raise NotImplementedError

    def _handle(self, polls: int) -> int:
        """Handle messages, until there is a reason to be here again."""
        raise NotImplementedError

    def _has_to_wait(self) -> bool:
        """Whether it has run for long enough, as others wait for the thread."""
        return False

    def steps(self) -> Iterator[float | None]:
        """Handle messages until the actor ends. Yields None to sleep until it is woken, or the
        seconds after which it goes on, woken or not."""
        core = self._core
        try:
            core.state = "active"
            yield from self._serve()
            core.end()
        except BaseException as error:  # noqa: BLE001 - it is raised where the actor is used
            core.end(error)

    def _serve(self) -> Iterator[float | None]:
        """ActorFailed if the handler failed."""
        core, mailbox = self._core, self._core.mailbox
        while True:
            if core.calls:
                core.run_calls()
            if core.stopping:
                return
            if core.paused and not core.draining:
                yield None
                continue
            piped = core.forward()
            if core.pipe is not None and not core.pulled:  # have it come back here with replies
                mailbox.announce(code.WAITERS, 1)
            began = profiler.clock()
            reason = self._handle(0 if core.draining else self._polls)
            core.note_handled(began)
            if reason == code.HAS_WAITERS:
                core.notify()
            elif reason == code.HAS_REPORT:
                self._reported()
                core.note_handled(began)
            elif reason == code.HAS_PARKED:
                core.notify_waiting()
                if core.pipe is not None and (mailbox.replies or not piped) and core.forward():
                    continue
                if core.draining and core.pipe is not None:
                    if not core.waiting and core.forward():
                        return
                    yield RETRY
                elif core.draining:
                    if not core.waiting:
                        return
                    core.make_room()
                else:
                    yield self._rest
                continue
            else:
                mailbox.words[code.ATTENTION] = 0
                core.notify_waiting()
            if self._has_to_wait():
                yield 0.0

    def _reported(self) -> None:
        """The handler printed, or failed: its message is then not finished."""
        core, mailbox = self._core, self._core.mailbox
        reason = self._program.read_report()
        if reason is None:
            mailbox.finish(0, 1)
            core.notify_waiting()
        elif not core.handler_failed(0, reason):
            raise core.error or ActorFailed(reason)


class ThreadExecutor(ServingExecutor):
    """An actor with a thread of its own."""

    def __init__(self, core: Core, program: Program, polls: int) -> None:
        self._event = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"treadle actor {core.name}", daemon=True
        )
        super().__init__(core, program, polls)

    def start(self) -> None:
        """Start the thread. TreadleError where the system allows no more."""
        try:
            self._thread.start()
        except RuntimeError as error:
            raise TreadleError(
                f"no thread for actor {self._core.name}: {error}. Each actor of this mode has a "
                'thread: terminate some, or spawn them with mode="relaunch", which share one'
            ) from None

    def wake(self) -> None:
        """Have the thread look at messages and calls."""
        self._event.set()

    def join(self, timeout: float | None) -> None:
        """Wait for the thread's end."""
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def lose(self) -> None:
        """Its handler is taken for one that never returns."""

    def _run(self) -> None:
        for pause in self.steps():
            self._event.wait(pause)
            self._event.clear()


class PooledExecutor(ServingExecutor, Member):
    """An actor that has a thread while it has messages."""

    def __init__(self, core: Core, program: Program, polls: int) -> None:
        ServingExecutor.__init__(self, core, program, polls)
        Member.__init__(self)
        self._pool = thread_pool()
        driver = program.stream.handle.device
        assert isinstance(driver, HostDevice)  # others do not call kernels
        self._check_open = driver.check_open

    def _prepare(self, core: Core, program: Program) -> None:
        """What a call of the loop in machine code takes."""
        core.batch = host_bytes(program.messages)
        replies = 0 if program.replies is None else program.replies.buffer.address()
        report = 0 if program.report is None else program.report.buffer.address()
        core.mailbox.set_batch(program.messages.buffer.address(), replies, 1, report)
        addresses = [buffer.address() for buffer in program.buffers]
        self._bindings = struct.pack(f"{len(addresses)}Q", *addresses)
        self._parameters = program.parameters(0, 1)
        self._grid = struct.pack("3I", *program.grid)
        self._arguments = (
            core.mailbox.address, program.prepared.compiled.entry_point(),
            _address(self._bindings), _address(self._parameters), _address(self._grid),
            program.grid.count,
        )  # fmt: skip

    def _handle(self, polls: int) -> int:
        """Handle messages; for some milliseconds, if others wait for the thread, or a profile for
        what was done."""
        self._check_open()
        crowded = self._pool.crowded
        limited = crowded or profiler.active is not None
        serve = self._core.mailbox.functions.serve
        reason: int = serve(*self._arguments, 0 if crowded else polls, int(limited))
        return reason

    def _has_to_wait(self) -> bool:
        return self._pool.crowded

    def start(self) -> None:
        """Nothing: its first message wakes it."""
        self._core.state = "active"

    def wake(self) -> None:
        """Have its messages and calls looked at."""
        self._pool.wake(self)

    def ask_for_turn(self) -> None:
        """Have the loop return after the message at hand."""
        self._core.attend()

    def join(self, timeout: float | None) -> None:
        """Wait until no thread runs it any more."""
        self.wait_for_end(timeout)

    def lose(self) -> None:
        """Its handler is taken for one that never returns: others are not to lack its thread."""
        self._pool.lose(self)


def _address(data: bytes) -> int:
    """Where the bytes of an object lie; the object is kept by its owner."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
