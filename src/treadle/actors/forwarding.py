"""Pipes from and to persistent actors: a thread moves the replies.

In other modes the executor of an actor does that, between two messages. Here it waits for the end
of a kernel, which can notify nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.core.errors import ActorFailed

_POLLS = 1000  # before it sleeps
_SLEEPS = (50e-6, 2e-3)  # seconds, from the first sleep of a row on


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
