"""Pipes: the replies of one actor as messages of another.

The executor of an actor moves them, between two messages, if both are of other modes than
"persistent". Between two persistent actors nothing moves them: the kernel of the second one takes
them out of the outbox of the first one by itself. It does so for one such actor. For others, and
where one of the two is persistent, a thread moves them, as kernels can notify nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.persistent_mode import PersistentExecutor
from treadle.actors.program import Program
from treadle.actors.resident_program import NotResident, ResidentProgram
from treadle.core import forks
from treadle.core.errors import ActorFailed, TreadleError

_POLLS = 1000  # before it sleeps
_SLEEPS = (50e-6, 2e-3)  # seconds, from the first sleep of a row on


_connecting = forks.lock()


def connect(core: Core, program: Program, target: Core, other: Program, kept: Any) -> None:
    """Pipe one actor to another, whose `Ref` is kept until the first one ends. TreadleError if it
    is piped already, ValueError for a circle, ActorFailed after the end of one of them."""
    core.call(lambda: _connect(core, target, kept), None)
    if (
        isinstance(program, ResidentProgram) and isinstance(other, ResidentProgram)
        and isinstance(core.executor, PersistentExecutor)  # which have kernels of their own
        and isinstance(target.executor, PersistentExecutor)
        and bool(program.clock) == bool(other.clock)  # else its stamps would not go along
        and _reserved(core, target)
    ):  # fmt: skip
        with contextlib.suppress(ActorFailed):  # the first one finds out, too
            target.call(lambda: _feed(core, program, target, other), None)
    elif "persistent" in (core.mode, target.mode):
        start_forwarding(core)


def _connect(core: Core, target: Core, kept: Any) -> None:
    """A call of the first one's."""
    with _connecting:  # two at once could make a circle together
        if core.pipe is not None:
            raise TreadleError(f"the replies of {core.name} are sent to {core.pipe.name} already")
        following: Core | None = target
        while following is not None:
            if following is core:
                raise ValueError(f"a pipe from {core.name} to {target.name} would go in a circle")
            following = following.pipe
        target.check_open()
        target.feeders.append(core)
        core.pipe, core.kept = target, kept
    core.notify()  # threads that wait for replies get none any more


def _reserved(core: Core, target: Core) -> bool:
    """Whether the other one's kernel takes its replies, and nothing else does from here on."""
    with _connecting, core.receivers:
        before = target.feed
        if before is not None and not (before.ended and not before.mailbox.replies):
            return False
        target.feed, core.pulled = core, True
        return True


def _feed(core: Core, program: ResidentProgram, target: Core, other: ResidentProgram) -> None:
    """Have a kernel take the replies of another one. A call of the second one's."""
    try:
        other.feed_from(program)
    except NotResident:
        with core.receivers:
            target.feed, core.pulled = None, False
        start_forwarding(core)


def start_forwarding(core: Core) -> None:
    """Move an actor's replies to the one that it is piped to, until it ends."""
    name = f"treadle pipe of {core.name}"
    threading.Thread(target=_forward, args=(core,), name=name, daemon=True).start()


def _forward(core: Core) -> None:
    mailbox = core.mailbox
    spin, tail = mailbox.functions.spin, mailbox.address + 8 * code.OUT_TAIL
    sleep = _SLEEPS[0]
    with contextlib.suppress(ActorFailed):  # the executor finds that out, too
        while not core.ended:
            before = mailbox.words[code.OUT_HEAD]
            has_sent_all = core.forward()
            if mailbox.words[code.PARKED] and mailbox.has_work:
                core.wake()  # its outbox was full
            if mailbox.words[code.OUT_HEAD] != before:
                sleep = _SLEEPS[0]
            elif not has_sent_all or spin(tail, before, _POLLS) == before:
                time.sleep(sleep)
                sleep = min(2 * sleep, _SLEEPS[1])
    if not core.ended:
        core.attend()
        core.wake()
