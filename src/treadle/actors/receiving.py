"""Taking replies out of an actor's outbox, for threads and coroutines alike."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from treadle.actors.core import Core
from treadle.actors.mailbox import Bytes
from treadle.core.errors import TreadleError


class Receiving:
    """Replies that are being collected, up to so many."""

    def __init__(self, core: Core, count: int, *, stamps: bool) -> None:
        self._core = core
        self._count = count
        self._size = core.mailbox.reply_bytes
        try:
            self._target = np.empty(count * self._size, np.uint8)
        except ValueError:
            raise MemoryError(f"no memory holds {count} replies at once: receive fewer") from None
        self._stamps: list[np.ndarray[Any, Any]] | None = None
        if stamps or core.mailbox.stamps is not None:  # in case they are put back
            self._stamps = [np.zeros(0, np.int64)]
        self._got = 0

    @property
    def is_complete(self) -> bool:
        """Whether there are all."""
        return self._got >= self._count

    @property
    def data(self) -> Bytes:
        """The bytes of those that have come."""
        return self._target[: self._got * self._size]

    @property
    def stamps(self) -> np.ndarray[Any, Any]:
        """Their stamps, as words."""
        assert self._stamps is not None
        return np.concatenate(self._stamps)

    def more(self) -> bool:
        """Take what is there; whether there was any, or there will be no more. TreadleError if the
        replies are sent to another actor since it began to wait."""
        core, mailbox, before = self._core, self._core.mailbox, self._got
        popped = 0
        with core.receivers:
            if core.pipe is not None:
                if not self._got:
                    raise TreadleError(f"the replies of {core.name} are sent to {core.pipe.name}")
                self._count = self._got
                return True
            self._take_late()
            left = self._count - self._got
            if left and self._stamps is not None:
                next_ones = mailbox.stamps_of_next(left)
                assert next_ones is not None
                self._stamps.append(next_ones)
                left = len(next_ones)
            if left:
                popped = mailbox.pop(self._target, self._got, left)
            self._got += popped >> 1
        if popped & 1:
            core.wake()
        return self._got > before

    def put_back(self) -> None:
        """Leave those that have come to the next call, since this one does not return."""
        core = self._core
        with core.receivers:
            if self._got:
                stamps = None if self._stamps is None else self.stamps
                core.late.appendleft((self.data, stamps))
                self._got = 0
        core.notify_waiting()

    def _take_late(self) -> None:
        """Take those that were moved out of the outbox, or put back."""
        core, size = self._core, self._size
        while core.late and self._got < self._count:
            data, times = core.late[0]
            n = min(len(data) // size, self._count - self._got)
            self._target[self._got * size : (self._got + n) * size] = data[: n * size]
            self._got += n
            if self._stamps is not None:
                self._stamps.append(times[:n])
            if n * size == len(data):
                core.late.popleft()
            else:
                core.late[0] = data[n * size :], None if times is None else times[n:]


def count_of(count: int) -> int:
    """How many replies are asked for. TypeError for what is not an integer, ValueError below 0."""
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise TypeError(f"receive_many takes a number of replies, an integer, not {count!r}")
    if index(count) < 0:
        raise ValueError(f"receive_many takes a number of replies, from 0 on, not {count}")
    return index(count)
