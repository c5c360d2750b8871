"""Mode "persistent": the kernel itself takes messages out of the rings, and stays resident.

The rings are in memory that the host and the kernel use at the same time. A thread of the actor's
launches the kernel and waits for its end: where the host asks for attention, where a handler fails,
and after a while without messages. Then the next message launches it again. The kernel cannot
notify threads that wait, so these look at the rings from time to time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.handler import Handler, HandlerKernel, ResidentKernel
from treadle.actors.mailbox import Bytes, Mailbox, aligned
from treadle.actors.program import Program, array_of
from treadle.actors.thread_mode import ThreadExecutor
from treadle.core.errors import ActorFailed, TreadleError
from treadle.drivers.base import Buffer
from treadle.ir.types import I64, Scalar, Struct, Vector, size_of
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

# Polls without a message before the kernel ends, and steps of arithmetic between two of them: a
# poll reads the host's memory, and polls without a pause would take all of the bus.
IDLE_POLLS = 20_000
PAUSE = 500
LOOKS = 0.0005  # seconds between looks of a thread that waits


class ResidentProgram(Program):
    """A handler's resident kernel, and its rings."""

    # Other work on an array would wait for the stream on which the kernel stays.
    owns_all = True

    def __init__(
        self,
        handler: Handler,
        kernels: dict[Any, HandlerKernel],
        device: Device,
        state: Mapping[str, Any],
        capacity: int,
    ) -> None:
        if handler.together:
            raise TreadleError(
                f"{handler.name} has several threads for a message, and a persistent actor has "
                'one: use mode="relaunch"'
            )
        super().__init__(handler, kernels, 1, device, state, capacity)

    def _make_kernel(self) -> HandlerKernel:
        return ResidentKernel(self.handler, self.reply)

    def _is_independent(self) -> bool:
        return False  # one thread takes messages

    def _allocate(self) -> None:
        """The rings, which the kernel has as arrays."""
        self.stream = self.device.stream()
        buffers: dict[int, Buffer] = {}

        def allocate(size: int) -> Bytes:
            view, buffer = self.device.handle.mapped_memory(size)
            memory = np.frombuffer(view, np.uint8)
            buffers[memory.ctypes.data] = buffer
            return memory

        message, reply = self.handler.message, self.reply
        reply_bytes = 0 if reply is None else size_of(reply)
        mailbox = self.mailbox = Mailbox(self.count, size_of(message), reply_bytes, allocate)

        def array(memory: Bytes, type: Scalar | Vector | Struct) -> DeviceArray:
            return array_of(self.device, buffers[memory.ctypes.data], memory, type)

        words = (mailbox.control_memory, mailbox.entries_memory, mailbox.flags_memory)
        self._rings = [*(array(each, I64) for each in words), array(mailbox.inbox_memory, message)]
        if reply is not None:
            self._rings += [
                array(mailbox.outbox_memory, reply), array(mailbox.answers_memory, reply)
            ]  # fmt: skip

    def _front(self, first: int, last: int) -> list[Any]:
        """Its rings; polls and the pause between two."""
        return [*self._rings, first, last]


class PersistentExecutor(ThreadExecutor):
    """The thread that launches an actor's kernel whenever it has ended."""

    _program: ResidentProgram

    def _prepare(self, core: Core, program: Program) -> None:
        core.looks = LOOKS
        core.batch = aligned(core.mailbox.message_bytes)
        core.mailbox.set_batch(core.batch.ctypes.data, 0, 1)  # for messages that failed

    def _handle(self, polls: int) -> int:
        """Launch the kernel and wait for its end."""
        mailbox = self._core.mailbox
        mailbox.words[code.PARKED] = 0
        self._program.launch(max(polls, 1), PAUSE)
        self._program.stream.synchronize()
        if self._program.sites:
            self._reported()
        if mailbox.words[code.ATTENTION]:
            return code.NEEDS_ATTENTION
        # What was sent before the kernel had parked woke nothing; one that failed has not parked.
        mailbox.park()
        return code.HAS_WAITERS if mailbox.has_work else code.HAS_PARKED

    def _reported(self) -> None:
        """Show what was printed; a handler that failed has ended the kernel before it took the
        message."""
        core, mailbox = self._core, self._core.mailbox
        reason = self._program.read_report()
        if reason is not None and mailbox.take(1) and not core.handler_failed(0, reason):
            raise core.error or ActorFailed(reason)
