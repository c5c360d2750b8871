"""Sending as Python calls it: built-in functions in machine code.

A call through ctypes takes longer than the sending itself, most of it to convert its arguments. So
the two functions that senders call are built-in functions of Python's, whose machine code reads the
arguments as Python has them. They hold the interpreter's lock throughout, so nothing else happens
between the look whether the actor is open and the message's place in the ring, and no other lock is
needed. On free-threaded builds of Python the same is done through ctypes, under the senders' lock.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.actors import ring_code as code
from treadle.actors.mailbox import Bytes, Mailbox
from treadle.actors.ring_code import ring_code
from treadle.core.once import once
from treadle.runtime.host_code import host_functions, keep_forever

# Free-threaded builds of Python have none.
HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
# What sending returns: the message is in the ring, and the actor is awake or has to be woken; the
# actor has ended. And of asking: the flag of the answer is set, too.
ACCEPTED, ACCEPTED_PARKED, CLOSED, ANSWERED = 2, 3, -2, 4

# A slot is five words: the control block, where the message lies (for `ready`), how many (1), its
# tag (for `ready`), and where the host says that the actor accepts nothing any more. That is memory
# of the process itself: in a forked child there are no rings of a card's.
_SOURCE = """
define internal i64 @send(ptr %slot, ptr %source, i64 %tag) alwaysinline {
  %closed.at.at = getelementptr i64, ptr %slot, i64 4
  %closed.at = load ptr, ptr %closed.at.at
  %closed = load atomic i64, ptr %closed.at acquire, align 8
  %open = icmp eq i64 %closed, 0
  br i1 %open, label %push, label %refuse
push:
  %c = load ptr, ptr %slot
  %result = call i64 PUSH(ptr %c, ptr %source, i64 1, i64 %tag)
  ret i64 %result
refuse:
  ret i64 -2
}

; send(bytes, tag), a METH_FASTCALL. `self` is the slot's address.
define ptr @treadle.send.bytes(ptr %self, ptr %arguments, i64 %count) {
  %slot = call ptr PyLong_AsVoidPtr(ptr %self)
  %data = load ptr, ptr %arguments
  %tag.at = getelementptr ptr, ptr %arguments, i64 1
  %tag.object = load ptr, ptr %tag.at
  %source = call ptr PyBytes_AsString(ptr %data)
  %tag = call i64 PyLong_AsLongLong(ptr %tag.object)
  %pushed = call i64 @send(ptr %slot, ptr %source, i64 %tag)
  %result = call ptr PyLong_FromLongLong(i64 %pushed)
  ret ptr %result
}

; ready(), a METH_NOARGS: what the slot says.
define ptr @treadle.send.ready(ptr %self, ptr %none) {
  %slot = call ptr PyLong_AsVoidPtr(ptr %self)
  %source.at = getelementptr i64, ptr %slot, i64 1
  %source = load ptr, ptr %source.at
  %tag.at = getelementptr i64, ptr %slot, i64 3
  %tag = load i64, ptr %tag.at
  %pushed = call i64 @send(ptr %slot, ptr %source, i64 %tag)
  %result = call ptr PyLong_FromLongLong(i64 %pushed)
  ret ptr %result
}

; ask(bytes, tag, polls), a METH_FASTCALL: `send`, and polls for the answer if the actor is awake.
; Meanwhile other threads have the interpreter's lock.
define ptr @treadle.send.ask(ptr %self, ptr %arguments, i64 %count) {
entry:
  %slot = call ptr PyLong_AsVoidPtr(ptr %self)
  %data = load ptr, ptr %arguments
  %tag.at = getelementptr ptr, ptr %arguments, i64 1
  %tag.object = load ptr, ptr %tag.at
  %polls.at = getelementptr ptr, ptr %arguments, i64 2
  %polls.object = load ptr, ptr %polls.at
  %source = call ptr PyBytes_AsString(ptr %data)
  %tag = call i64 PyLong_AsLongLong(ptr %tag.object)
  %polls = call i64 PyLong_AsLongLong(ptr %polls.object)
  %pushed = call i64 @send(ptr %slot, ptr %source, i64 %tag)
  %awake = icmp eq i64 %pushed, 2
  br i1 %awake, label %wait, label %done
wait:
  %c = load ptr, ptr %slot
  %which = sub i64 %tag, ASKED
  %thread = call ptr PyEval_SaveThread()
  %flag = call i64 AWAIT(ptr %c, i64 %which, i64 %polls)
  call void PyEval_RestoreThread(ptr %thread)
  %none = icmp eq i64 %flag, PENDING
  %found = select i1 %none, i64 2, i64 4
  br label %done
done:
  %outcome = phi i64 [ %pushed, %entry ], [ %found, %wait ]
  %result = call ptr PyLong_FromLongLong(i64 %outcome)
  ret ptr %result
}
"""
_PYTHONS = (
    "PyLong_AsVoidPtr", "PyLong_AsLongLong", "PyLong_FromLongLong", "PyBytes_AsString",
    "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
_NO_ARGUMENTS, _FAST_CALL = 0x0004, 0x0080  # METH_NOARGS, METH_FASTCALL


class _Method(ctypes.Structure):
    """A PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@dataclass(frozen=True)
class _Methods:
    """The functions, of which built-in functions are made by `make` with what is their `self`."""

    bytes: Any
    ready: Any
    ask: Any
    make: Callable[[Any, int, None], Callable[..., int]]


@once
def _methods() -> _Methods:
    text = _SOURCE
    rings = ring_code()
    addresses = {
        "PUSH": ctypes.cast(rings.push, ctypes.c_void_p).value,
        "AWAIT": ctypes.cast(rings.wait, ctypes.c_void_p).value,
    } | {
        name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        for name in _PYTHONS
    }
    for name, address in addresses.items():
        text = text.replace(f"{name}(", f"inttoptr (i64 {address} to ptr)(")
    text = text.replace("ASKED", str(code.ASKED)).replace("PENDING", str(code.PENDING))
    symbols = ("treadle.send.bytes", "treadle.send.ready", "treadle.send.ask")
    loaded = host_functions(text, "sending to actors", symbols)
    methods = [
        _Method(name, loaded.addresses[symbol], flags, None)
        for name, symbol, flags in zip(
            (b"send", b"ready", b"ask"),
            symbols,
            (_FAST_CALL, _NO_ARGUMENTS, _FAST_CALL),
            strict=True,
        )
    ]
    # Built-in functions refer to both, and may be called while the interpreter ends.
    keep_forever((loaded, methods))
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.POINTER(_Method), ctypes.py_object, ctypes.c_void_p
    )
    of_bytes, ready, ask = methods
    return _Methods(of_bytes, ready, ask, prototype(("PyCFunction_NewEx", ctypes.pythonapi)))


class Sending:
    """Sends messages to the rings of one actor, one at a time; each call gives what `push` does, or
    `CLOSED`."""

    def __init__(self, mailbox: Mailbox, senders: Any) -> None:
        """`senders` is the senders' lock."""
        self._mailbox, self._senders = mailbox, senders
        self._slots: list[np.ndarray[Any, Any]] = []  # alive as long as the functions
        slot = self._slot(None, 0)
        # A message's bytes, which are so many, and its tag; `ask` polls so many times.
        self.send: Callable[[bytes, int], int] = self._send
        self.ask: Callable[[bytes, int, int], int] = self._ask
        if HAS_GIL:
            methods = _methods()
            self.send = methods.make(methods.bytes, slot.ctypes.data, None)
            self.ask = methods.make(methods.ask, slot.ctypes.data, None)

    def _slot(self, memory: Bytes | None, tag: int) -> np.ndarray[Any, Any]:
        mailbox = self._mailbox
        place = 0 if memory is None else memory.ctypes.data
        words = [mailbox.address, place, 1, tag, mailbox.closed.ctypes.data]
        slot = np.array(words, np.int64)
        self._slots.append(slot)
        return slot

    def ready(self, memory: Bytes, tag: int) -> Callable[[], int]:
        """A function that sends what lies in some memory then."""
        if not HAS_GIL:
            return lambda: self._send(memory.tobytes(), tag)
        methods = _methods()
        return methods.make(methods.ready, self._slot(memory, tag).ctypes.data, None)

    def _send(self, data: bytes, tag: int) -> int:
        mailbox = self._mailbox
        with self._senders:
            if mailbox.closed[0]:
                return CLOSED
            pushed: int = mailbox.functions.push(mailbox.address, data, 1, tag)
            return pushed

    def _ask(self, data: bytes, tag: int, polls: int) -> int:
        pushed = self._send(data, tag)
        if pushed != ACCEPTED:
            return pushed
        mailbox = self._mailbox
        found = mailbox.functions.wait(mailbox.address, tag - code.ASKED, polls)
        return ACCEPTED if found == code.PENDING else ANSWERED
