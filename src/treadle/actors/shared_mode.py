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
        self._row = b"", (0, 0, 0)
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
        return bool(core.calls) or core.stopping or core.draining

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
        except BaseException as error:  # noqa: BLE001 - it is raised where the actor is used
            core.end(error)

    def row(self, numbers: tuple[int, int, int]) -> bytes:
        """The arguments of its block: its life, how long it stays without a message, the pause."""
        if self._row[1] != numbers or self._program.clock:
            self._row = self._program.row(*numbers), numbers
        return self._row[0]

    def leave(self) -> None:
        """The kernel has no block for it any more."""
        self._left.set()


class SharedKernel:
    """A resident kernel with a block for each of many actors, and the thread that launches it."""

    def __init__(self, places: Places, compiled: CompiledKernel, device: Device, row: int) -> None:
        self._places = places
        self._compiled = compiled
        self._device = device
        self._most = min(max(device.handle.blocks_at_once(compiled) // _PART, 1), _MOST)
        view, self._buffer = device.handle.mapped_memory(self._most * row)
        self._table = np.frombuffer(view, np.uint8)
        self._written = b""
        self._lock = forks.lock()
        self._event = threading.Event()
        self._members: list[SharedExecutor] = []
        self._empty = False  # whether it had no actors when its thread looked last
        self.closed = False
        self.thread = threading.Thread(
            target=self._run, name=f"treadle actors of a kernel on {device.id}", daemon=True
        )

    def join(self, core: Core, program: ResidentProgram) -> SharedExecutor | None:
        """Add an actor; None if it is full, or the thread has just ended."""
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
        self._event.set()
        if member.wants_attention or (member.has_block and not member.runs):
            self.end_life()

    def end_life(self) -> None:
        """Have all blocks end after the messages that they handle."""
        for member in tuple(self._members):
            member.core.attend()

    def _run(self) -> None:
        with contextlib.suppress(TreadleError):  # a device that is lost says so to its actors
            self._device.handle.work_apart()
        busy_at, done, stays = 0.0, 0, False
        while True:
            self._event.clear()
            members = self._attended()
            if members is None:
                return
            active = [member for member in members if member.has_block]
            before, done = done, sum(m.core.mailbox.words[code.PROCESSED] for m in active)
            now = time.monotonic()
            if done != before:
                busy_at = now
            if not (stays and now - busy_at < self._places.idle) and not self._has_work(active):
                stays = False
                draining = any(member.core.draining for member in members)  # into a pipe
                self._event.wait(RETRY if draining else None if members else _IDLE_SECONDS)
                continue
            stays = self._live(active)

    def _attended(self) -> list[SharedExecutor] | None:
        """The actors that are left, after what they are to do between messages; None if none came
        for a while."""
        with self._lock:
            members = list(self._members)
            if not members and not self._event.is_set() and self._empty:
                self.closed = True
                return None
            self._empty = not members
        for member in members:
            member.core.mailbox.words[code.ATTENTION] = 0
            if member.wants_attention:
                member.attend()
        ended = [member for member in members if member.core.ended]
        for member in ended:
            with self._lock:
                self._members.remove(member)
            member.leave()
        return [member for member in members if not member.core.ended] if ended else members

    def _has_work(self, active: list[SharedExecutor]) -> bool:
        """Whether a message waits that has not woken anybody."""
        for member in active:
            member.core.mailbox.park()
        return any(member.core.mailbox.has_work for member in active)

    def _live(self, active: list[SharedExecutor]) -> bool:
        """A life of the kernel; whether it had a place to stay."""
        draining = any(member.core.draining for member in active)
        began = profiler.clock()
        for member in active:
            member.core.mailbox.words[code.PARKED] = 0
            member.runs = True
        gap = self._places.gap * (1 + len(active) // _PATIENT_FROM)

        def begin(stream: Stream, life: int, quiet: int) -> None:
            rows = b"".join(member.row((life, quiet, gap)) for member in active)
            if rows != self._written:
                self._table[: len(rows)] = np.frombuffer(rows, np.uint8)
                self._written = rows
            self.launch(stream, len(active))

        try:
            stays = self._places.stay(begin, self.end_life, brief=draining)
        except BaseException as error:  # noqa: BLE001 - it is raised where the actors are used
            for member in active:
                member.core.end(error)
            return False
        for member in active:
            member.runs = False
            member.core.mailbox.note_life()
            member.core.note_handled(began)
        return stays

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
        kernel = SharedKernel(places, made, device, row)
        kernels.append(kernel)
        return kernel.join(core, program)


_kernels: WeakKeyDictionary[Places, dict[CompiledKernel, list[SharedKernel]]] = WeakKeyDictionary()
_lock = forks.lock()
