"""A message that is sent many times: its bytes lie ready, so that sending packs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.actors import ring_code as code
from treadle.actors.mailbox import aligned
from treadle.actors.messages import Codec
from treadle.actors.ring_calls import ACCEPTED, Sending
from treadle.actors.timeouts import deadline_of


class PreparedMessage:
    """A message of `Ref.prepare`, to be changed and sent as often as you like, by one thread at a
    time."""

    __slots__ = (
        "_codec", "_memory", "_push", "_push_dropped", "_sent", "_value", "_with_reply",
    )  # fmt: skip

    def __init__(
        self,
        codec: Codec,
        sending: Sending,
        with_reply: int,
        sent: Callable[[int, bytes, int, float | None], bool],
    ) -> None:
        """`sent` goes on where a message was not just accepted."""
        self._codec, self._sent = codec, sent
        self._memory = aligned(codec.size)[: codec.size]
        base, shape = codec.dtype.subdtype or (codec.dtype, ())
        self._value: np.ndarray[Any, Any] = self._memory.view(base).reshape(shape)
        self._with_reply = with_reply
        self._push = sending.ready(self._memory, with_reply)
        self._push_dropped = sending.ready(self._memory, code.DROPPED)

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
        pushed = self._push() if reply else self._push_dropped()
        if pushed == ACCEPTED:
            return True
        tag = self._with_reply if reply else code.DROPPED
        return self._sent(pushed, self._memory.tobytes(), tag, deadline)

    def __repr__(self) -> str:
        return f"<{self._codec.what}, prepared: {self._codec.unpack(self._memory.tobytes())!r}>"
