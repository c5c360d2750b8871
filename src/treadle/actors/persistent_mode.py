"""Mode "persistent": the kernel itself takes messages out of the rings, and stays resident.

The rings are in memory that the host and the kernel use at the same time. A thread of the actor's
launches the kernel and waits for its end: after its life is over, where the host asks for
attention, and where a handler fails. While messages come it is launched again at once; after a
while without any, by the next message. The kernel cannot notify threads that wait, so these look
at the rings from time to time.

Only a few kernels of a device stay at once: cards have few queues, and work behind a kernel that
stays would wait for its end. While all places are taken, an actor's kernel handles what is there
and ends. So actors of the same code beyond the first few share a kernel (`shared_mode`).
"""

from __future__ import annotations

import contextlib
import time

from treadle.actors import ring_code as code
from treadle.actors.core import Core, Executor
from treadle.actors.mailbox import aligned
from treadle.actors.program import Program
from treadle.actors.resident_places import LOOKS
from treadle.actors.resident_program import ResidentProgram
from treadle.actors.shared_mode import shared_executor
from treadle.actors.thread_mode import RETRY, ThreadExecutor
from treadle.core.errors import ActorFailed, TreadleError
from treadle.runtime.devices import Stream


class PersistentExecutor(ThreadExecutor):
    """The thread that launches an actor's kernel whenever it has ended."""

    _program: ResidentProgram

    def _prepare(self, core: Core, program: Program) -> None:
        core.batch = aligned(core.mailbox.message_bytes)
        core.mailbox.set_batch(core.batch.ctypes.data, 0, 1)  # for messages that failed
        self._busy_at = time.monotonic()  # the end of the last life with a message

    def _handle(self, polls: int) -> int:
        """Launch the kernel and wait for its end."""
        mailbox, program = self._core.mailbox, self._program
        before = mailbox.words[code.PROCESSED]
        mailbox.announce(code.PARKED, 0)
        self._core.wake_others()
        stays = program.places.stay(self._begin, self._core.attend, brief=not polls)
        mailbox.note_life()
        if program.sites:
            self._reported()
        if mailbox.words[code.ATTENTION]:
            return code.NEEDS_ATTENTION
        # What was sent before the kernel had parked woke nothing; one that failed has not parked.
        mailbox.park()
        core = self._core
        self._forget_feed()
        follows = core.follows_another  # looked at before what the others have done
        if mailbox.has_work or core.has_piped_work:
            return code.HAS_WAITERS
        now = time.monotonic()
        if mailbox.words[code.PROCESSED] != before:
            self._busy_at = now
        self._rest = None
        if stays and now - self._busy_at < program.places.idle:
            return code.HAS_WAITERS
        if follows:
            if stays:
                return code.HAS_WAITERS
            self._rest = RETRY
        return code.HAS_PARKED

    def _begin(self, stream: Stream, life: int, quiet: int) -> None:
        self._program.stream = stream
        self._program.launch(life, quiet)

    def start(self) -> None:
        """Start the thread. TreadleError where the system allows no more."""
        places = self._program.places
        places.count_own(1)
        try:
            super().start()
        except TreadleError:
            places.count_own(-1)
            raise

    def _run(self) -> None:
        places = self._program.places
        with contextlib.suppress(TreadleError):  # a device that is lost says so at a launch
            self._program.device.handle.work_apart()
        try:
            super()._run()
        finally:
            places.count_own(-1)

    def _forget_feed(self) -> None:
        """Once the actor that is piped here has ended, and its last reply is taken."""
        core, feed = self._core, self._core.feed
        if feed is not None and feed.ended and not feed.mailbox.replies:
            self._program.feed_from(None)
            core.feed = None
            feed.leave_pipe()

    def _reported(self) -> None:
        """Show what was printed; a handler that failed has ended the kernel before it took the
        message."""
        core, mailbox = self._core, self._core.mailbox
        reason = self._program.read_report()
        if reason is None:
            return
        taken = core.take_piped() if mailbox.words[code.SOURCE] else mailbox.take(1)
        if taken and not core.handler_failed(0, reason):
            raise core.error or ActorFailed(reason)


def executor_of(core: Core, program: ResidentProgram) -> Executor:
    """What takes a persistent actor's messages: a kernel of its own for the first ones of a device,
    or that of a handler of which there are many."""
    core.looks = LOOKS
    if program.is_shareable and program.places.is_crowded:
        shared = shared_executor(core, program)
        if shared is not None:
            return shared
    return PersistentExecutor(core, program, 1)
