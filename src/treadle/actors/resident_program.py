"""A persistent actor's program: its kernel, compiled, with its rings and state."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from treadle.actors import ring_code as code
from treadle.actors.handler import Handler, HandlerKernel
from treadle.actors.mailbox import Bytes, Mailbox
from treadle.actors.program import Program, array_of
from treadle.actors.program import allocate as allocate_on
from treadle.actors.resident_kernel import Form, ResidentKernel, fits_cell, is_short, threads_of
from treadle.actors.resident_places import GAP, places_of
from treadle.core.dim3 import Dim3
from treadle.core.dtypes import int32, int64
from treadle.core.errors import TreadleError
from treadle.drivers.base import Buffer
from treadle.ir.types import I64, Scalar, Struct, Vector, size_of
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device


class NotResident(TreadleError):
    """Why an actor cannot be persistent."""


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
        blocks: int | float,
        clock: int = 0,
    ) -> None:
        """`clock` is the address of the process's clock, if replies get stamps."""
        self.clock = clock
        self._feed: list[DeviceArray] = []  # the outbox of another actor
        self._gap = GAP
        self.form = Form.TOGETHER if handler.together else Form.SINGLE
        if isinstance(blocks, float) or blocks > 1:
            self.form = Form.BLOCKS
        self.places = places_of(device)
        self._life = 0  # the number of the last one
        super().__init__(handler, kernels, blocks, device, state, capacity)
        most = device.handle.blocks_at_once(self.prepared.compiled)
        if self.grid.count > most:
            raise NotResident(
                f"{handler.name} has {blocks} blocks for a message, and {device.id} runs {most} of "
                'them at once, as a persistent actor\'s must: take fewer, or mode="relaunch"'
            )
        if handler.together and self.sites:
            raise NotResident(
                f"{handler.name} asserts, prints or is checked in several threads, and a "
                'persistent actor would not see which message it was: use mode="relaunch"'
            )

    def _key(self) -> tuple[object, ...]:
        return *super()._key(), self.form, bool(self.clock), bool(self._feed)

    def _make_kernel(self) -> HandlerKernel:
        return ResidentKernel(
            self.handler, self.reply, self.form, stamped=bool(self.clock), fed=bool(self._feed)
        )

    def _specialize(self) -> None:
        """Several threads, where the handler does the same in one of them."""
        if (
            self.form is not Form.SINGLE or self.prepared.built.sites
            or not self.kernel.is_for_any_thread
        ):  # fmt: skip
            return
        independent = not self.written and self.reply is not None and self.kernel.is_independent
        self.form = Form.EACH if independent else Form.IN_TURN
        self.kernel = self._kernel()
        self.prepared = self._prepared()

    def _block(self) -> Dim3:
        if self.handler.together:
            return super()._block()
        return Dim3(threads_of(self.form, self.handler.message, self.reply))

    def _allocate(self) -> None:
        """The rings, which the kernel has as arrays."""
        self.stream = self.places.shared
        buffers = self._buffers = dict[int, Buffer]()  # by the host's address of the memory

        def allocate(size: int) -> Bytes:
            view, buffer = self.device.handle.mapped_memory(size)
            memory = np.frombuffer(view, np.uint8)
            buffers[memory.ctypes.data] = buffer
            return memory

        message, reply = self.handler.message, self.reply
        reply_bytes = 0 if reply is None else size_of(reply)
        mailbox = self.mailbox = Mailbox(
            self.count, size_of(message), reply_bytes, allocate, clock=self.clock, resident=True,
            in_cell=fits_cell(message), short_replies=is_short(reply),
        )  # fmt: skip

        def array(memory: Bytes, type: Scalar | Vector | Struct) -> DeviceArray:
            return array_of(self.device, buffers[memory.ctypes.data], memory, type)

        assert mailbox.times_memory is not None
        assert mailbox.cell_memory is not None
        control = array(mailbox.control_memory, I64)
        words = (mailbox.entries_memory, mailbox.flags_memory, mailbox.times_memory)
        cell = array(mailbox.cell_memory, I64)
        self._rings = [control, control, cell, *(array(each, I64) for each in words)]
        self._rings.append(array(mailbox.inbox_memory, message))
        if reply is not None:
            self._rings += [
                array(mailbox.outbox_memory, reply), array(mailbox.answers_memory, reply)
            ]  # fmt: skip
        if self.form is Form.BLOCKS:
            turn, arrivals = _zeros(self.device, int64, 1), _zeros(self.device, int32, 2)
            self._rings += [turn, turn, arrivals, arrivals, allocate_on(self.device, message, 1)]

        if mailbox.stamps_memory is not None:
            self._rings.append(array(mailbox.stamps_memory, I64))

    def outbox(self) -> list[DeviceArray]:
        """What the kernel of another actor needs to take the replies. They are buffers of their
        own for the same memory: streams wait for each other's launches that use one buffer, and
        the two kernels would run one after the other."""
        mailbox, reply = self.mailbox, self.reply
        assert reply is not None
        assert mailbox.times_memory is not None

        def array(memory: Bytes, type: Scalar | Vector | Struct) -> DeviceArray:
            place = self._buffers[memory.ctypes.data].address()
            buffer = self.device.handle.borrow_address(place, memory.nbytes, memory)
            return array_of(self.device, buffer, memory, type)

        control = array(mailbox.control_memory, I64)
        found = [control, control, array(mailbox.times_memory, I64)]
        found.append(array(mailbox.outbox_memory, reply))
        if mailbox.stamps_memory is not None:
            found.append(array(mailbox.stamps_memory, I64))
        return found

    def feed_from(self, source: ResidentProgram | None) -> None:
        """Have the kernel take the replies of another one as messages, too; None: no longer. It is
        between two launches. NotResident if such a kernel needs too much for its blocks."""
        feed = self._feed
        self._compile_with([] if source is None else source.outbox())
        most = self.device.handle.blocks_at_once(self.prepared.compiled)
        if self.grid.count > most:
            self._compile_with(feed)
            raise NotResident(f"{self.handler.name} takes no replies of another actor by itself")
        if source is None:
            self.mailbox.words[code.SOURCE] = 0

    def _compile_with(self, feed: list[DeviceArray]) -> None:
        self._feed = feed
        self.stream = self.places.shared
        self.kernel = self._kernel()
        self._first_state = len(self._front(0, 0))
        self.prepared = self._prepared()
        self.stream.synchronize()  # a launch for no message was part of it
        self._bind()

    def _front(self, *times: int) -> list[Any]:
        """Its rings, and its numbers."""
        life, quiet = times[:2]
        return [*self._rings, *self._feed, *self._numbers(life, quiet)]

    def _numbers(self, life: int, quiet: int) -> list[int]:
        """Its life, how long it stays without a message, the life's number, the longest pause, and
        a stamp of the launch, if it gives stamps."""
        launched = [self.mailbox.functions.stamp(self.clock, 1)] if self.clock else []
        return [life, quiet, self._life, self._gap, *launched]

    def next_parameters(self, life: int, quiet: int) -> bytes:
        """The parameter block of the next launch."""
        self._life += 1
        at = self._first_state
        numbers = self._numbers(life, quiet)
        self._values[at - len(numbers) : at] = numbers
        return self.prepared.pack(self._values, self.grid, ())

    def launch(self, life: int, quiet: int) -> None:
        """Append a launch."""
        parameters = self.next_parameters(life, quiet)
        self.stream.handle.launch(self.prepared.compiled, self.grid, self.buffers, parameters)

    # --- as a block among those of other actors ---

    @property
    def is_shareable(self) -> bool:
        """Whether a block of a kernel that it shares does what its own kernel does: no index of
        blocks is asked for, and there is no report that says which block it is about."""
        return self.form in (Form.IN_TURN, Form.EACH)

    def row(self, life: int, quiet: int, gap: int) -> bytes:
        """The arguments of such a block."""
        self._gap = gap
        addresses = [buffer.address() for buffer in self.buffers]
        pointers = struct.pack(f"<{len(addresses)}Q", *addresses)
        return pointers + self.next_parameters(life, quiet)


def _zeros(device: Device, dtype: Any, count: int) -> DeviceArray:
    made = DeviceArray.allocate(device, dtype, (count,))
    made.upload(np.zeros(count, dtype.numpy))
    return made
