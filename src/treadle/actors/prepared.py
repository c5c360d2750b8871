"""A message that is sent many times: its bytes lie ready, so that sending packs nothing."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.mailbox import Bytes, aligned
from treadle.actors.timeouts import deadline_of

# Free-threaded builds of Python have none.
_HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()


class Slot:
    """What one call of `RingCode.send` takes: whose rings, where the message lies, its tag."""

    __slots__ = ("address", "words")

    def __init__(self, control: int, memory: Bytes, tag: int) -> None:
        self.words = np.array([control, memory.ctypes.data, 1, tag], np.int64)
        # One argument that ctypes need not convert: it takes longer than the sending itself.
        self.address = ctypes.c_void_p(self.words.ctypes.data)


class PreparedMessage:
    """A message of `Ref.prepare`, to be changed and sent as often as you like, by one thread at a
    time."""

    __slots__ = (
        "_addresses", "_codec", "_core", "_memory", "_push", "_send_to_full", "_senders", "_slots",
        "_value",
    )  # fmt: skip

    def __init__(
        self,
        core: Core,
        with_reply: int,
        send_to_full: Callable[[bytes, int, float | None], bool],
    ) -> None:
        """`send_to_full` sends bytes with a tag as the policy says, where the inbox was full."""
        codec, control = core.messages, core.mailbox.address
        self._core, self._codec, self._send_to_full = core, codec, send_to_full
        self._memory = aligned(codec.size)[: codec.size]
        base, shape = codec.dtype.subdtype or (codec.dtype, ())
        self._value: np.ndarray[Any, Any] = self._memory.view(base).reshape(shape)
        self._push = core.mailbox.functions.send
        self._senders = core.senders
        self._slots = [Slot(control, self._memory, tag) for tag in (code.DROPPED, with_reply)]
        self._addresses = [slot.address for slot in self._slots]

    @property
    def value(self) -> np.ndarray[Any, Any]:
        """The message as an array of no dimensions (of one, for a vector) over its memory:
        `value["field"] = 3` changes a struct's field, `value[0] = 3` a vector's component.
        Assigned to, `prepared.value = 3` is `prepared.set(3)`."""
        return self._value

    @value.setter
    def value(self, message: Any) -> None:
        self.set(message)

    def set(self, message: Any) -> None:
        """Make it another message of the actor's type."""
        self._codec.pack_into(message, self._memory.data)

    def send(self, *, timeout: float | None = None, reply: bool = True) -> bool:
        """Send it as it is now; as `Ref.send`."""
        deadline = None if timeout is None else deadline_of(timeout)
        if self._core.closed is not None:
            self._core.check_open()
        # It may end after that look: then the call says so.
        if _HAS_GIL:  # which the call keeps, so nothing else happens meanwhile
            pushed: int = self._push(self._addresses[reply])
        else:
            with self._senders:
                pushed = self._push(self._addresses[reply])
        if pushed & 1:
            self._core.wake()
        if pushed > 1:
            return True
        self._core.check_open()
        tag = int(self._slots[reply].words[3])
        return self._send_to_full(self._memory.tobytes(), tag, deadline)

    def __repr__(self) -> str:
        return f"<{self._codec.what}, prepared: {self._codec.unpack(self._memory.tobytes())!r}>"
