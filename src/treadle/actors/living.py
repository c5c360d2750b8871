"""The actors of the process: how they end with it, and what a forked child finds of them."""

from __future__ import annotations

import atexit
import contextlib
import time
import weakref

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.relaunch_mode import forget_dispatchers
from treadle.actors.thread_pool import forget_pool
from treadle.core import forks
from treadle.core.errors import ActorFailed
from treadle.runtime import profiler

_PATIENCE = 2.0  # seconds that the process waits at its exit for handlers that still run
_PATIENCE_OF_PROFILES = 0.2  # seconds

living: weakref.WeakSet[Core] = weakref.WeakSet()


def add(core: Core) -> None:
    """An actor was spawned."""
    living.add(core)
    profiler.settlers.add(settle)


def settle() -> None:
    """Have actors come back to Python that handle messages, so that profiles see what they have
    done; for a moment, as a handler may never return."""
    deadline = time.monotonic() + _PATIENCE_OF_PROFILES
    for core in list(living):
        if not core.ended and not core.mailbox.words[code.PARKED]:
            with contextlib.suppress(TimeoutError, ActorFailed):
                core.call(lambda: None, deadline)


def stop(core: Core) -> None:
    """Have an actor end after the message that it handles, without waiting."""
    with core.senders:
        if core.closed is None:
            core.close("was terminated")
    core.stopping = True
    core.attend()
    core.wake()


def _at_exit() -> None:
    """Stop all actors; wait for a while, so that their devices are closed after their last use."""
    cores = [core for core in living if not core.ended and core.executor is not None]
    for core in cores:
        stop(core)
    deadline = time.monotonic() + _PATIENCE
    for core in cores:
        if core.executor is not None:
            core.executor.join(max(deadline - time.monotonic(), 0.0))


@forks.in_child
def _in_child(amidst: bool) -> None:
    """The threads are the parent's: in the child all actors have failed."""
    forget_dispatchers()
    forget_pool()
    for core in list(living):
        core.error = ActorFailed(
            f"{core.name} runs in the process that this one was forked from: spawn it here, or "
            "start workers with multiprocessing's 'spawn'"
        )
        # The rings are not touched: those of a card are not there in the child.
        core.mailbox.closed[0] = 1
        core.closed, core.state, core.ended, core.executor = "failed", "failed", True, None


atexit.register(_at_exit)
