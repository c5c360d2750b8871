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
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from treadle.actors import ring_code as code
from treadle.actors.core import Core, Executor
from treadle.actors.handler import Handler, HandlerKernel
from treadle.actors.mailbox import Bytes, Mailbox, aligned
from treadle.actors.program import Program, array_of
from treadle.actors.program import allocate as allocate_on
from treadle.actors.resident_kernel import Form, ResidentKernel, fits_cell, is_short, threads_of
from treadle.actors.shared_mode import SharedExecutor, SharedKernel
from treadle.actors.thread_mode import RETRY, ThreadExecutor
from treadle.core import forks
from treadle.core.dim3 import Dim3
from treadle.core.dtypes import int32, int64
from treadle.core.errors import ActorFailed, TreadleError
from treadle.drivers.base import Buffer, CompiledKernel
from treadle.ir.types import I64, Scalar, Struct, Vector, size_of
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device, Stream

# Cycles of a device's clock, of which there are some 1.5 × 10⁹ in a second. The life of a kernel is
# how long another library's call that waits for all that runs may have to wait; and what a killed
# process leaves behind ends with it. A poll reads the host's memory: the pause between two is at
# most GAP.
LIFE = 75_000_000
SHORT_LIFE = 7_500_000  # of one without a place
GAP = 15_000
IDLE = 0.2  # seconds without a message after which the kernel is not launched again
LOOKS = 0.0005  # seconds between looks of a thread that waits
PLACES = 4  # kernels of a device that stay at once
OWN = PLACES - 1  # actors from which on others share kernels, which need a place, too


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
        if stays and now - self._busy_at < IDLE:
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
        shared = program.places.shared_executor(core, program)
        if shared is not None:
            return shared
    return PersistentExecutor(core, program, 1)


class Places:
    """A device's streams on which kernels stay."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lock = forks.lock()
        self._free: list[Stream] = []
        self._made = 0
        self.shared = device.stream()  # of kernels that do not stay
        self._sharing = forks.lock()
        self._own = 0  # actors with a kernel of their own
        self._kernels: dict[CompiledKernel, list[SharedKernel]] = {}

    @property
    def is_crowded(self) -> bool:
        """Whether there are enough actors that have a kernel of their own."""
        return self._own >= OWN

    def count_own(self, change: int) -> None:
        """An actor comes that has a kernel of its own, or leaves."""
        with self._lock:
            self._own += change

    @property
    def idle(self) -> float:
        """Seconds without a message after which a kernel is not launched again."""
        return IDLE

    @property
    def gap(self) -> int:
        """Cycles of the longest pause between two polls."""
        return GAP

    def shared_executor(self, core: Core, program: ResidentProgram) -> SharedExecutor | None:
        """A block for an actor in a kernel; None where the device has no such kernels."""
        compiled = program.prepared.compiled
        with self._sharing:
            kernels = self._kernels.setdefault(compiled, [])
            kernels[:] = [kernel for kernel in kernels if not kernel.closed]
            for kernel in kernels:
                if (member := kernel.join(core, program)) is not None:
                    return member
            made = self._device.handle.with_rows(compiled)
            if made is None:
                return None
            row = len(program.row(LIFE, LIFE, GAP))
            kernel = SharedKernel(self, made, self._device, row, bool(program.clock))
            kernels.append(kernel)
            return kernel.join(core, program)

    def stay(self, begin: Callable[[Stream, int, int], None], leave: Any, *, brief: bool) -> bool:
        """Have a kernel launched on a stream, with its life and how long it stays without a
        message, and wait for its end: whether it had a place to stay. With `brief` it ends when
        there are no messages."""
        stream = None if brief else self._take()
        where = self.shared if stream is None else stream
        residents = where.handle.device.residents
        if residents is not None:
            residents.enter(leave)
        try:
            begin(where, *((SHORT_LIFE, 0) if stream is None else (LIFE, LIFE)))
            where.handle.rest()
        finally:
            if residents is not None:
                residents.exit(leave)
            if stream is not None:
                with self._lock:
                    self._free.append(stream)
        return stream is not None

    def _take(self) -> Stream | None:
        with self._lock:
            if self._free:
                return self._free.pop()
            if self._made == PLACES:
                return None
            self._made += 1
        return self._device.stream()


def places_of(device: Device) -> Places:
    """The places of a device, for as long as it is the one that is open."""
    with _lock:
        found = _places.get(device)
        if found is None or found.shared.handle.device is not device.handle:
            found = _places[device] = Places(device)
        return found


_places: WeakKeyDictionary[Device, Places] = WeakKeyDictionary()
_lock = forks.lock()
