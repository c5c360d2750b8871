"""The rings of an actor: the layout of the control block, and the machine code that works on it.

The protocol, and why each step has the memory order that it has, is in docs/design/actors.md; the
text of the machine code is in `ring_assembly`. A ring's entry beside a message is two words: its
tag and the time at which it was sent.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

from treadle.actors.ring_assembly import source_for
from treadle.core.errors import TreadleError
from treadle.core.once import once
from treadle.runtime.host_code import host_functions, host_processor

# Words that one side writes and another polls have a cache line each.
HEAD_SEEN = 1  # the senders': HEAD as it was when they last had to know
SENT_STAMP = 2  # and a stamp that is not before what any message was sent after
TAIL, HEAD, OUT_TAIL, OUT_HEAD, ATTENTION, WAITERS = 0, 8, 16, 24, 32, 33
PARKED = 40
CELL, ASKED_AT = 41, 42  # of persistent actors: the last message, and when those asked were sent
SENDER_CLOCK = 43  # and from which clock SENT_STAMP is taken, or 0
# Constants, written by the host before anything starts.
MASK, OUT_MASK, MESSAGE_BYTES, REPLY_BYTES = 48, 49, 50, 51
INBOX, ENTRIES, OUTBOX, ANSWERS, FLAGS = 52, 53, 54, 55, 56
NOISE = 61  # what a resident kernel computes between polls, so that no compiler leaves it out
BATCH, BATCH_ENTRIES, BATCH_REPLIES, REPORT = 57, 58, 59, 60
CLOCK_WORD, STAMPS = 62, 63  # of stamps, or 0: their clock; those of replies, and of answers
PROCESSED, ERRORS, HEARTBEAT, TAKEN = 64, 65, 66, 67
# A resident kernel's: the last stamp that it has given; messages that it took from another actor's
# outbox; whether the one at hand is such a message.
LAST_STAMP, PIPED, SOURCE = 68, 69, 70
HISTOGRAM = 72  # of the time from sending to the end: eight buckets for each power of two
BUCKETS = 512
CONTROL_WORDS = HISTOGRAM + BUCKETS

# Stamps: microseconds since 1970, and a counter in the bits below.
COUNTER_BITS = 11

# Tags: what becomes of a reply. From `ASKED` on it is the number of an answer.
DROPPED, TO_OUTBOX, ASKED = 0, 1, 2
# Flags of answers.
PENDING, ANSWERED, FAILED, DISCARDED = 0, 1, 2, 3
# Why `serve` returns.
HAS_REPORT, HAS_WAITERS, NEEDS_ATTENTION, HAS_PARKED, HAS_TURNED = 1, 2, 3, 4, 5

WORDS = {
    name: value for name, value in globals().items() if name.isupper() and isinstance(value, int)
}


@dataclass(frozen=True)
class RingCode:
    """The functions. `push`, `pop`, … keep the interpreter's lock, since they take less time than
    letting go of it; `spin`, `watch`, `wait` and `serve` don't."""

    push: Any
    drop: Any
    take: Any
    finish: Any
    measure: Any
    pop: Any
    announce: Any
    spin: Any
    watch: Any
    serve: Any
    wait: Any
    clock: Any
    stamp: Any
    merge: Any
    library: Any


def _yielding() -> int:
    """The address of the system's function that gives up the processor."""
    if sys.platform == "win32":
        function: Any = ctypes.windll.kernel32.SwitchToThread
    else:
        function = getattr(ctypes.CDLL(None), "sched_yield", None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


def _wall_clock() -> int:
    """The address of the system's function that says what time it is."""
    if sys.platform == "win32":
        function: Any = ctypes.windll.kernel32.GetSystemTimePreciseAsFileTime
    else:
        function = ctypes.CDLL(None).clock_gettime
    return ctypes.cast(function, ctypes.c_void_p).value or 0


_FIELDS = {"await": "wait"}  # of those whose name is a keyword


@once
def ring_code() -> RingCode:
    """The functions, compiled at first use. TreadleError where there is no LLVM."""
    names = (
        "push", "drop", "take", "finish", "measure", "pop", "announce", "spin", "watch", "serve",
        "await", "clock", "stamp", "merge",
    )  # fmt: skip
    symbols = tuple(f"treadle.{name}" for name in names)
    try:
        source = source_for(host_processor(), WORDS, _yielding(), _wall_clock())
        loaded = host_functions(source, "the rings of actors", symbols)
    except ImportError:
        raise TreadleError(
            "actors need llvmlite, which is not installed here (web pages do not have it): launch "
            "a kernel for each message instead"
        ) from None
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    keeps, releases = ctypes.PYFUNCTYPE, ctypes.CFUNCTYPE
    prototypes = (
        keeps(word, pointer, ctypes.c_char_p, word, word),
        keeps(word, pointer, pointer),
        keeps(word, pointer, word),
        keeps(None, pointer, word, word),
        keeps(None, pointer, pointer, word, word, word),
        keeps(word, pointer, pointer, word),
        keeps(None, pointer, word),
        releases(word, pointer, word, word),
        releases(None, pointer, pointer, word, word, word),
        releases(word, pointer, pointer, pointer, pointer, pointer, word, word, word),
        releases(word, pointer, word, word),
        keeps(word),
        keeps(word, pointer, word),
        keeps(None, pointer, word),
    )
    made = {
        _FIELDS.get(name, name): prototype(loaded.addresses[symbol])
        for name, prototype, symbol in zip(names, prototypes, symbols, strict=True)
    }
    return RingCode(**made, library=loaded.library)
