"""What ends a look at an actor's rings that other threads may serve meanwhile."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from treadle.actors import ring_code as code
from treadle.actors.mailbox import Mailbox, aligned

FOR_EVER = 1 << 60


@pytest.fixture
def mailbox() -> Mailbox:
    made = Mailbox(8, 4, 4)
    batch = aligned(64)
    made.set_batch(batch.ctypes.data, batch.ctypes.data, 8)
    made.kept = batch  # type: ignore[attr-defined]
    return made


def watching(mailbox: Mailbox, still: int, quiet: int, bell: np.ndarray) -> threading.Thread:
    thread = threading.Thread(
        target=mailbox.functions.watch,
        args=(mailbox.address, bell.ctypes.data, int(bell[0]), still, quiet),
    )
    thread.start()
    time.sleep(0.02)
    return thread


def test_a_bell_and_silence_end_it(mailbox: Mailbox) -> None:
    bell = aligned(8).view(np.int64)
    thread = watching(mailbox, 1, FOR_EVER, bell)
    assert thread.is_alive()
    bell[0] += 1
    thread.join(20)
    assert not thread.is_alive()
    thread = watching(mailbox, 1, 100, bell)
    thread.join(20)
    assert not thread.is_alive()


def test_a_message_ends_it_once_it_has_waited(mailbox: Mailbox) -> None:
    bell, message = aligned(8).view(np.int64), np.zeros(4, np.uint8)
    thread = watching(mailbox, 1000, FOR_EVER, bell)
    mailbox.push_many(message, 0, 1, code.DROPPED)
    thread.join(20)
    assert not thread.is_alive()
    mailbox.take(8)
    thread = watching(mailbox, FOR_EVER, FOR_EVER, bell)
    for _ in range(3):  # another thread serves it
        mailbox.push_many(message, 0, 1, code.DROPPED)
        assert mailbox.take(8) == 1
    assert thread.is_alive()
    bell[0] += 1
    thread.join(20)
