"""`@td.actor`, and the object that it makes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from treadle.actors import living
from treadle.actors.core import Core, Executor
from treadle.actors.handler import Handler, HandlerKernel, Value, read_handler
from treadle.actors.mailbox import Mailbox
from treadle.actors.messages import Codec
from treadle.actors.persistent_mode import executor_of
from treadle.actors.program import Program, check_names
from treadle.actors.ref import FEW_POLLS, POLLS, Ref
from treadle.actors.relaunch_mode import LARGEST_BATCH, RelaunchExecutor
from treadle.actors.resident_program import NotResident, ResidentProgram
from treadle.actors.ring_code import ring_code
from treadle.actors.stamps import clock_address
from treadle.actors.thread_mode import IDLE_POLLS, PooledExecutor
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, TreadleError, shortened
from treadle.lang.definitions import ByName
from treadle.runtime import profiler
from treadle.runtime.convert import device_of_arguments
from treadle.runtime.devices import Device, default_device
from treadle.runtime.devices import device as find_device

Mode = Literal["thread", "relaunch", "persistent"]
Policy = Literal["block", "raise", "drop_oldest", "drop_newest"]
OnError = Literal["fail", "skip"]
_POLICIES = ("block", "raise", "drop_oldest", "drop_newest")
_MOST_MESSAGES = 1 << 24


class Actor(ByName):
    """A handler of messages, made by `@td.actor`. `spawn` starts an actor that runs it."""

    def __init__(
        self,
        handler: Handler,
        capacity: int,
        blocks: int | float,
        policy: Policy,
        on_error: OnError,
        restarts: int,
        keep_state: bool,
        stamps: bool,
    ) -> None:
        self.__name__ = handler.name
        self.__qualname__ = handler.function.__qualname__
        self.__module__ = handler.function.__module__
        self.__doc__ = handler.function.__doc__
        self.__wrapped__ = handler.function
        self._handler = handler
        self._kernels: dict[Any, HandlerKernel] = {}
        self._codecs: dict[tuple[Value, str], Codec] = {}
        self._capacity = capacity
        self._blocks = blocks
        self._policy = policy
        self._on_error = on_error
        self._restarts = restarts
        self._keep_state = keep_state
        self._stamps = stamps

    def spawn(
        self,
        *,
        device: str | Device | None = None,
        mode: Mode | None = None,
        **state: Any,
    ) -> Ref:
        """Start an actor with this state: arrays, numbers and structs by the names of the handler's
        parameters.

        Arrays that the handler writes are copied; those that it only reads are used in place. The
        device is that of the arrays, or the default one. `mode` is "thread" on the cpu,
        "persistent" on NVIDIA's cards, "relaunch" elsewhere, if it is not given; a handler of
        more blocks than run at once, or of several threads that assert or print, is relaunched.
        """
        try:
            return self._spawn(device, mode, state)
        except TreadleError as error:
            # The call of the handler in its kernel is not the user's.
            if notes := getattr(error, "__notes__", None):
                notes[:] = [note for note in notes if "<kernel source" not in note]
            raise shortened(error)  # noqa: B904 - it is the same error

    def _spawn(self, spec: str | Device | None, mode: Mode | None, state: Mapping[str, Any]) -> Ref:
        ring_code()  # first, since it says where there can be no actors
        began = profiler.clock()
        handler = self._handler
        check_names(handler, state)
        where = _device_for(spec, state)
        asked, mode = mode, _mode_for(where, mode)
        try:
            program = self._program_for(where, mode, state)
        except NotResident:
            if asked is not None:
                raise
            mode = "relaunch"
            program = self._program_for(where, mode, state)
        messages = self._codec(handler.message, "message")
        replies = None if program.reply is None else self._codec(program.reply, "reply")
        if isinstance(program, ResidentProgram):
            mailbox = program.mailbox
        else:
            reply_bytes = 0 if replies is None else replies.size
            clock = clock_address if self._stamps else 0
            mailbox = Mailbox(self._capacity, messages.size, reply_bytes, clock=clock)
        core = Core(
            handler.name,
            mailbox,
            messages,
            device=where.id,
            mode=mode,
            skips=self._on_error == "skip",
            restarts=self._restarts,
        )
        if self._restarts and not self._keep_state:
            fresh = program.snapshot()
            core.reset = lambda: program.restore(fresh)
        # With a single processor, a thread that polls keeps the other from answering.
        several = (os.cpu_count() or 1) > 1
        executor: Executor
        if mode == "thread":
            executor = PooledExecutor(core, program, IDLE_POLLS if several else 0)
        elif isinstance(program, ResidentProgram):
            executor = executor_of(core, program)
        else:
            executor = RelaunchExecutor(core, program)
        executor.start()
        core.executor = executor
        living.add(core)
        core.note("spawn", began, mode=mode)
        # Nor are the threads that a device of the processor's runs kernels in to be kept from it.
        shared = mode == "relaunch" and (where.traits.software or where.traits.on_host)
        polls = FEW_POLLS if shared else POLLS
        return Ref(core, program, replies, mode, self._policy, polls if several else 0)

    def _codec(self, type: Value, what: str) -> Codec:
        """How values of a type become bytes; actors of one handler have it in common."""
        key = type, what
        if key not in self._codecs:
            self._codecs[key] = Codec(type, f"a {what} of {self._handler.name}")
        return self._codecs[key]

    def _program_for(self, where: Device, mode: Mode, state: Mapping[str, Any]) -> Program:
        """The handler compiled for a device and a mode."""
        if mode == "persistent":
            return ResidentProgram(
                self._handler, self._kernels, where, state, self._capacity, self._blocks,
                clock_address if self._stamps else 0,
            )  # fmt: skip
        count = 1 if mode == "thread" else min(self._capacity, LARGEST_BATCH)
        return Program(self._handler, self._kernels, self._blocks, where, state, count)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """An error that shows how to start it."""
        raise TreadleError(
            f"{self.__name__} is an actor: start it with ref = {self.__name__}.spawn(…), and send "
            "messages to it with ref.ask or ref.send"
        )

    def __repr__(self) -> str:
        handler = self._handler
        return f"<treadle.actor {handler.name}({', '.join(('message', *handler.states))})>"


def _device_for(spec: str | Device | None, state: Mapping[str, Any]) -> Device:
    if spec is not None:
        return find_device(spec)
    return device_of_arguments(tuple(state.values())) or default_device()


def modes_of(device: Device) -> list[str]:
    """The modes that a device has, the usual one first."""
    traits = device.traits
    own = {"thread": traits.calls_kernels, "persistent": traits.persistent_kernels}
    return [*(mode for mode, has in own.items() if has), "relaunch"]


def _mode_for(device: Device, mode: str | None) -> Mode:
    """The mode that is asked for, if the device has it."""
    modes = modes_of(device)
    if mode is None:
        mode = modes[0]
    if mode not in modes:
        why = ""
        if mode == "persistent":
            why = ", a kernel that stays resident"
            if device.traits.cuda_memory:
                why += (
                    ": only Linux has it, on cards without a display, where the driver sets "
                    "kernels no limit of time"
                )
        raise TreadleError(
            f"actors on {device.id} have no mode {mode!r}{why}; use "
            f"{' or '.join(map(repr, modes))}, or leave mode out"
        )
    return mode  # type: ignore[return-value]


@overload
def actor(handler: Callable[..., Any], /) -> Actor: ...
@overload
def actor(
    *,
    capacity: int = ...,
    block: int | Sequence[int] | None = ...,
    blocks: int = ...,
    device_fraction: float | None = ...,
    policy: Policy = ...,
    on_error: OnError = ...,
    restarts: int = ...,
    keep_state: bool = ...,
    finite: bool = ...,
    stamps: bool = ...,
    fastmath: bool = ...,
) -> Callable[[Callable[..., Any]], Actor]: ...
def actor(
    handler: Any = None,
    /,
    *,
    capacity: int = 1024,
    block: int | Sequence[int] | None = None,
    blocks: int = 1,
    device_fraction: float | None = None,
    policy: Policy = "block",
    on_error: OnError = "fail",
    restarts: int = 0,
    keep_state: bool = False,
    finite: bool = False,
    stamps: bool = False,
    fastmath: bool = False,
) -> Any:
    """Make a function `(message, state…) -> reply` of the kernel language an actor's handler.

    `capacity`, a power of two, is how many messages wait, and how many replies. One thread of the
    device handles a message; with `block` and `blocks` so many threads handle it together, and the
    first one's reply counts. With a `device_fraction` it has that part of the blocks of `block`
    threads that run on its device at once, and at least one: the handler asks `td.grid_dim` how
    many they are. `policy` says what sending to a full inbox does: "block", "raise",
    "drop_oldest" or "drop_newest". `on_error` says what a failed `assert` of the handler does: the
    actor fails, or it drops ("skip") the message; an actor with `restarts` starts again so many
    times first, with the state of its spawning, or as it is (`keep_state`). With `finite` a reply
    that is infinite or NaN is such a failure. With `stamps` replies get times of a hybrid logical
    clock, which `receive` and `ask` give on request.
    """
    given: tuple[Any, Any] = (capacity, blocks)
    capacity, blocks = (int(n) if isinstance(n, np.integer) else n for n in given)
    if (
        isinstance(capacity, bool)
        or not isinstance(capacity, int)
        or not 0 < capacity <= _MOST_MESSAGES
        or capacity & (capacity - 1)
    ):
        raise ValueError(
            f"an actor's capacity is a power of two up to {_MOST_MESSAGES}, not {capacity!r}"
        )
    if policy not in _POLICIES:
        raise ValueError(f"an actor's policy is one of {', '.join(_POLICIES)}, not {policy!r}")
    if on_error not in ("fail", "skip"):
        raise ValueError(f'on_error is "fail" or "skip", not {on_error!r}')
    if isinstance(blocks, bool) or not isinstance(blocks, int) or blocks < 1:
        raise ValueError(f"an actor has at least one block, not {blocks!r}")
    if device_fraction is not None and (
        blocks != 1
        or isinstance(device_fraction, bool)
        or not isinstance(device_fraction, (int, float))
        or not 0 < device_fraction <= 1
    ):
        raise ValueError(
            "device_fraction is a part of the device, over 0 and up to 1, without blocks, not "
            f"{device_fraction!r}"
        )
    if isinstance(restarts, bool) or not isinstance(restarts, int) or restarts < 0:
        raise ValueError(f"restarts is a number of times, not {restarts!r}")
    threads = Dim3(1) if block is None else Dim3.of(block)
    several = blocks > 1 or device_fraction is not None
    if several and block is None:
        threads = Dim3(256)
    many = blocks if device_fraction is None else float(device_fraction)
    names = sys._getframe(1).f_locals

    def make(decorated: Any) -> Actor:
        try:
            found = read_handler(decorated, threads, several, fastmath, names)
            found = replace(found, finite=finite)
            return Actor(found, capacity, many, policy, on_error, restarts, keep_state, stamps)
        except CompileError as error:
            raise shortened(error)  # noqa: B904

    return make if handler is None else make(handler)
