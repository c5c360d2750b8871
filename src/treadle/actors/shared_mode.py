"""Persistent actors that share a resident kernel: each has a block of it.

A device has few places for kernels that stay. Actors beyond the first few have one together, if
their kernels are the same code: a block each, which takes its arguments out of a row of a table
(see `codegen.ptx.rows`) and works on its actor's rings as a kernel of its own would. A thread
launches the blocks of all actors again and again, and does for each what `PersistentExecutor` does
for one: calls between messages, the end. To have one actor look up it makes all blocks end, which
takes some microseconds, and launches them anew.

Only handlers that neither ask for indices nor assert or print have this, so no message can fail.
"""

from __future__ import annotations

import contextlib
import threading
import time
from weakref import WeakKeyDictionary

import numpy as np

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.mailbox import aligned
from treadle.actors.resident_places import GAP, LIFE, Places
from treadle.actors.resident_program import ResidentProgram
from treadle.actors.thread_mode import RETRY
from treadle.core import forks
from treadle.core.dim3 import Dim3
from treadle.core.errors import TreadleError
from treadle.drivers.base import CompiledKernel
from treadle.runtime import profiler
from treadle.runtime.devices import Device, Stream

_MOST = 1024  # actors of a kernel, which leaves
_PART = 4  # three quarters of the blocks that run at once to others
_PATIENT_FROM = 64  # actors above which idle ones look less often, as all read the host's memory
_IDLE_SECONDS = 1.0  # after which the thread ends of a kernel that has no actors any more


class SharedExecutor:
    """One actor among those of a kernel."""

    def __init__(self, core: Core, program: ResidentProgram, kernel: SharedKernel) -> None:
        self.core = core
        self._program = program
        self._kernel = kernel
        core.batch = aligned(core.mailbox.message_bytes)
        core.mailbox.set_batch(core.batch.ctypes.data, 0, 1)
        self._left = threading.Event()
        self.runs = False  # whether it has a block in the launch that is under way

    def start(self) -> None:
        """Its first message wakes it."""
        self.core.state = "active"

    def wake(self) -> None:
        """Have its messages and calls looked at."""
        self._kernel.wake(self)

    def join(self, timeout: float | None) -> None:
        """Wait until no block works for it any more."""
        if threading.current_thread() is not self._kernel.thread:
            self._left.wait(timeout)

    def lose(self) -> None:
        """Its handler is taken for one that never returns: neither do those that share its kernel,
        and no other kernel of the group is launched until it does."""

    # --- in the kernel's thread ---

    @property
    def wants_attention(self) -> bool:
        """Whether there is something to do between messages."""
        core = self.core
        return bool(core.calls) or core.stopping or core.draining or core.pipe is not None

    @property
    def has_block(self) -> bool:
        """Whether a block is to handle its messages."""
        core = self.core
        return not core.ended and (not core.paused or core.draining)

    def attend(self) -> None:
        """Do what is to be done between messages."""
        core = self.core
        try:
            if core.calls:
                core.run_calls()
            if core.stopping:
                core.end()
            elif core.draining:
                if not core.mailbox.waiting and core.forward():
                    core.end()
                elif core.pipe is None:
                    core.make_room()
            elif core.pipe is not None:
                core.forward()  # or find out that the other one has ended
        except BaseException as error:  # noqa: BLE001 - it is raised where the actor is used
            core.end(error)

    def row(self, numbers: tuple[int, int, int]) -> bytes:
        """The arguments of its block: its life, how long it stays without a message, the pause."""
        return self._program.row(*numbers)

    def leave(self) -> None:
        """The kernel has no block for it any more."""
        self._left.set()


class SharedKernel:
    """A resident kernel with a block for each of many actors, and the thread that launches it."""

    def __init__(
        self, places: Places, compiled: CompiledKernel, device: Device, row: int, stamped: bool
    ) -> None:
        """`row` is the size of a row of the table; `stamped` says whether each life has others."""
        self._places = places
        self._compiled = compiled
        self._device = device
        self._most = min(max(device.handle.blocks_at_once(compiled) // _PART, 1), _MOST)
        view, self._buffer = device.handle.mapped_memory(self._most * row)
        self._table = np.frombuffer(view, np.uint8)
        self._written: tuple[int, int, int] | None = None  # the numbers of the rows in it
        self._stamped = stamped
        self._lock = forks.lock()
        self._event = threading.Event()
        self._members: list[SharedExecutor] = []
        self._changed = False  # whether actors came, or want attention, since they were looked at
        self._rang = False  # whether all blocks were made to end
        self._active: list[SharedExecutor] = []  # that have blocks
        self._words: list[memoryview] = []  # their control blocks
        self._done = 0  # messages that these have handled
        self.closed = False
        self.thread = threading.Thread(
            target=self._run, name=f"treadle actors of a kernel on {device.id}", daemon=True
        )

    def join(self, core: Core, program: ResidentProgram) -> SharedExecutor | None:
        """Add an actor; None if there is no room, or the thread has just ended."""
        with self._lock:
            if self.closed or len(self._members) == self._most:
                return None
            member = SharedExecutor(core, program, self)
            self._members.append(member)
            if not self.thread.is_alive():
                self.thread.start()
            return member

    def wake(self, member: SharedExecutor) -> None:
        """Have an actor attended to, or given a block."""
        asked = member.core.mailbox.words[code.ATTENTION] and member.wants_attention
        if asked or (member.has_block and not member.runs):
            self._changed = True
            self.end_life()
        self._event.set()

    def end_life(self) -> None:
        """Have all blocks end after the messages that they handle."""
        self._rang = True
        for member in tuple(self._members):
            member.core.attend()

    def _run(self) -> None:
        with contextlib.suppress(TreadleError):  # a device that is lost says so to its actors
            self._device.handle.work_apart()
        busy_at, stays, pause = 0.0, False, None
        while True:
            self._event.clear()
            if self._changed or self._rang or not self._active:
                left = self._look()
                if not left and pause and not self._event.is_set() and self._has_closed():
                    return
                draining = any(member.core.draining for member in left)  # into a pipe
                pause = RETRY if draining else None if left else _IDLE_SECONDS
            before = self._done
            self._done = sum(words[code.PROCESSED] for words in self._words)
            now = time.monotonic()
            if self._done != before:
                busy_at = now
            if not (stays and now - busy_at < self._places.idle) and not self._has_work():
                stays = False
                self._event.wait(pause)
                continue
            stays = self._live()

    def _has_closed(self) -> bool:
        """End, unless an actor has come meanwhile."""
        with self._lock:
            self.closed = not self._members
            return self.closed

    def _look(self) -> list[SharedExecutor]:
        """Do for the actors what is to be done between messages; those that are left."""
        # Before the look: what comes later has it looked at again.
        self._changed = self._rang = False
        with self._lock:
            members = list(self._members)
        for member in members:
            member.core.mailbox.words[code.ATTENTION] = 0
            if member.wants_attention:
                member.attend()
                self._changed |= member.core.draining
            member.core.note_handled(profiler.clock())
        for member in members:
            if member.core.ended:
                with self._lock:
                    self._members.remove(member)
                member.leave()
        left = [member for member in members if not member.core.ended]
        active = [member for member in left if member.has_block]
        for member in left:
            member.runs = False
        for member in active:
            member.runs = True
        self._active = active
        self._words = [member.core.mailbox.words for member in active]
        self._written = None
        return left

    def _has_work(self) -> bool:
        """Whether a message waits that has not woken anybody."""
        for member in self._active:
            member.core.mailbox.park()
        return any(member.core.mailbox.has_work for member in self._active)

    def _live(self) -> bool:
        """A life of the kernel; whether it had a place to stay."""
        active, began = self._active, profiler.clock()
        draining = any(member.core.draining for member in active) if self._changed else False
        for words in self._words:
            words[code.PARKED] = 0
        try:
            stays = self._places.stay(self._begin, self.end_life, brief=draining)
        except BaseException as error:  # noqa: BLE001 - it is raised where the actors are used
            for member in active:
                member.core.end(error)
            self._changed = True
            return False
        if self._stamped:
            for member in active:
                member.core.mailbox.note_life()
        if profiler.active is not None:
            for member in active:
                member.core.note_handled(began)
        return stays

    def _begin(self, stream: Stream, life: int, quiet: int) -> None:
        gap = self._places.gap * (1 + len(self._active) // _PATIENT_FROM)
        numbers = life, quiet, gap
        if self._written != numbers or self._stamped:
            rows = b"".join(member.row(numbers) for member in self._active)
            self._table[: len(rows)] = np.frombuffer(rows, np.uint8)
            self._written = numbers
        self.launch(stream, len(self._active))

    def launch(self, stream: Stream, blocks: int) -> None:
        """Append a launch for so many rows of the table."""
        stream.handle.launch(self._compiled, Dim3(blocks), [self._buffer], b"")


def shared_executor(core: Core, program: ResidentProgram) -> SharedExecutor | None:
    """A block for an actor in a kernel; None where the device has no such kernels."""
    places, compiled, device = program.places, program.prepared.compiled, program.device
    with _lock:
        kernels = _kernels.setdefault(places, {}).setdefault(compiled, [])
        kernels[:] = [kernel for kernel in kernels if not kernel.closed]
        for kernel in kernels:
            if (member := kernel.join(core, program)) is not None:
                return member
        made = device.handle.with_rows(compiled)
        if made is None:
            return None
        row = len(program.row(LIFE, LIFE, GAP))
        kernel = SharedKernel(places, made, device, row, bool(program.clock))
        kernels.append(kernel)
        return kernel.join(core, program)


_kernels: WeakKeyDictionary[Places, dict[CompiledKernel, list[SharedKernel]]] = WeakKeyDictionary()
_lock = forks.lock()
