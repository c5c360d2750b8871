"""Mode "thread": machine code in a thread of the actor's takes messages and calls the kernel.

Python is entered only for what it is needed for: calls between messages, reports of the handler,
notifying threads that wait, and sleeping.
"""

from __future__ import annotations

import ctypes
import struct
import threading

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.program import Program, host_bytes
from treadle.core.errors import ActorFailed, TreadleError

# Polls of an empty inbox before the thread sleeps; each takes some 10 to 40 ns.
IDLE_POLLS = 10_000
_RETRY = 0.001  # seconds after which replies are sent again that an actor had no room for


class ThreadExecutor:
    """The thread of one actor."""

    def __init__(self, core: Core, program: Program, polls: int) -> None:
        self._core = core
        self._program = program
        self._polls = polls
        self._event = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"treadle actor {core.name}", daemon=True
        )
        self._prepare(core, program)

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
        """Handle messages, until there is a reason to be here again."""
        reason: int = self._core.mailbox.functions.serve(*self._arguments, polls)
        return reason

    def start(self) -> None:
        """Start the thread. TreadleError where the system allows no more."""
        try:
            self._thread.start()
        except RuntimeError as error:
            raise TreadleError(
                f"no thread for actor {self._core.name}: {error}. Each actor on the cpu has a "
                'thread: terminate some, or spawn them with mode="relaunch", which share one'
            ) from None

    def wake(self) -> None:
        """Have the thread look at messages and calls."""
        self._event.set()

    def join(self, timeout: float) -> None:
        """Wait for the thread's end."""
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        core = self._core
        try:
            core.state = "active"
            self._serve()
            core.end()
        except BaseException as error:  # noqa: BLE001 - it is raised where the actor is used
            core.end(error)

    def _serve(self) -> None:
        """Handle messages until the actor ends. ActorFailed if the handler failed."""
        core, mailbox = self._core, self._core.mailbox
        while True:
            if core.calls:
                core.run_calls()
            if core.stopping:
                return
            if core.paused and not core.draining:
                self._sleep()
                continue
            piped = core.forward()
            if core.pipe is not None:  # have it come back here once there are replies
                mailbox.announce(code.WAITERS, 1)
            reason = self._handle(0 if core.draining else self._polls)
            if reason == code.HAS_WAITERS:
                core.notify()
            elif reason == code.HAS_REPORT:
                self._reported()
            elif reason == code.HAS_PARKED:
                core.notify_waiting()
                if core.pipe is not None and (mailbox.replies or not piped) and core.forward():
                    continue
                if core.draining and core.pipe is not None:
                    if not mailbox.waiting and core.forward():
                        return
                    self._event.wait(_RETRY)
                elif core.draining:
                    if not mailbox.waiting:
                        return
                    core.make_room()
                else:
                    self._sleep()
            else:
                mailbox.words[code.ATTENTION] = 0
                core.notify_waiting()

    def _sleep(self) -> None:
        self._event.wait()
        self._event.clear()

    def _reported(self) -> None:
        """The handler printed, or failed: its message is then not finished."""
        core, mailbox = self._core, self._core.mailbox
        reason = self._program.read_report()
        if reason is None:
            mailbox.finish(0, 1)
            core.notify_waiting()
        elif not core.handler_failed(0, reason):
            raise core.error or ActorFailed(reason)


def _address(data: bytes) -> int:
    """Where the bytes of an object lie; the object is kept by its owner."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
