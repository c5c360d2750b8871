"""The memory in which senders, receivers and an actor meet: rings, answers, control block."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.actors import ring_code as code

_LINE = 64
# A message of so many words of 32 bits is in the cell, too: a kernel that stays resident reads it
# with the same poll that shows that it is there.
CELL_WORDS = 6
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def aligned(size: int) -> Bytes:
    """Zeroed bytes that begin at a cache line."""
    raw = np.zeros(size + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size]


class Mailbox:
    """Rings of one actor. Numbers of bytes are those of a message and of a reply (0: none)."""

    def __init__(
        self,
        capacity: int,
        message_bytes: int,
        reply_bytes: int,
        allocate: Callable[[int], Bytes] = aligned,
        *,
        clock: int = 0,
        resident: bool = False,
        in_cell: bool = False,
        short_replies: bool = False,
    ) -> None:
        """`clock` is the address of the word from which replies get stamps, if they get any.
        `resident`: for a kernel that takes messages by itself. Messages are `in_cell`, too, if
        they are small; `short_replies`, of 32 bits, are put into the flags of answers."""
        self.capacity = capacity
        self.message_bytes = message_bytes
        self.reply_bytes = reply_bytes
        self.functions = code.ring_code()
        self.closed = aligned(8).view(np.int64)  # not 0: no message is accepted any more
        self.control_memory = allocate(8 * code.CONTROL_WORDS)
        self.words = self.control_memory.data.cast("B").cast("q")
        self.address: int = self.control_memory.ctypes.data
        self.inbox_memory = allocate(capacity * message_bytes)
        self.entries_memory = allocate(capacity * 16)
        self.outbox_memory = allocate(capacity * max(reply_bytes, 1))
        self.answer_count = max(2 * capacity, 64)
        self.answers_memory = allocate(self.answer_count * max(reply_bytes, 1))
        self._answer_bytes = self.answers_memory.data
        self.flags_memory = allocate(8 * self.answer_count)
        self.flags = self.flags_memory.data.cast("B").cast("q")
        self._flag_bytes = self.flags_memory.data
        self.flags_address: int = self.flags_memory.ctypes.data
        self.cell_memory: Bytes | None = None
        self.times_memory: Bytes | None = None
        self._answers_in_flags = short_replies
        self.taken_last = 1  # messages in the batch, as last taken
        self._scratch = aligned(max(message_bytes, 1))
        words = self.words
        words[code.MASK] = words[code.OUT_MASK] = capacity - 1
        words[code.MESSAGE_BYTES] = message_bytes
        words[code.REPLY_BYTES] = reply_bytes
        words[code.PARKED] = 1
        for word, memory in (
            (code.INBOX, self.inbox_memory), (code.ENTRIES, self.entries_memory),
            (code.OUTBOX, self.outbox_memory), (code.ANSWERS, self.answers_memory),
            (code.FLAGS, self.flags_memory),
        ):  # fmt: skip
            words[word] = memory.ctypes.data
        self.stamps: np.ndarray[Any, np.dtype[np.int64]] | None = None  # of replies, of answers
        self.stamps_memory: Bytes | None = None
        self._merged = 0  # the clock that stamps of what is received are merged into, or 0
        if clock:
            self.stamps_memory = allocate(8 * (capacity + self.answer_count))
            self.stamps = self.stamps_memory.view(np.int64)
            words[code.CLOCK_WORD] = clock
            words[code.STAMPS] = self.stamps.ctypes.data
        if resident:
            self._make_resident(allocate, in_cell, clock)

    def _make_resident(self, allocate: Callable[[int], Bytes], in_cell: bool, clock: int) -> None:
        """What only resident kernels have. They cannot keep the histogram: they write when the
        messages were sent whose replies are in the outbox; for those that ask, senders do. Nor have
        they the process's clock: its stamps are sent to them, and theirs merged into it."""
        self._merged = self.words[code.SENDER_CLOCK] = clock
        self.times_memory = allocate(8 * (self.capacity + self.answer_count))
        self._times: int = self.times_memory.ctypes.data
        self.words[code.ASKED_AT] = self._times + 8 * self.capacity
        self.cell_memory = allocate(8 * (1 + CELL_WORDS + 2))  # tag, message, stamp
        if in_cell:
            self.words[code.CELL] = self.cell_memory.ctypes.data

    def set_batch(self, messages: int, replies: int, count: int, report: int = 0) -> None:
        """Where messages are copied to be handled, and where their replies are then: addresses.
        `report` is that of the kernel's report, if the loop in machine code is to look at it."""
        self._batch_entries = aligned(16 * count)
        self.batch_entries = self._batch_entries.data.cast("B").cast("q")
        self.words[code.BATCH] = messages
        self.words[code.BATCH_REPLIES] = replies
        self.words[code.BATCH_ENTRIES] = self._batch_entries.ctypes.data
        self.words[code.REPORT] = report

    # --- senders, under their lock ---

    def push_many(self, data: Bytes, first: int, count: int, tag: int) -> int:
        """`push` of messages from the one of number `first` on."""
        address = data.ctypes.data + first * self.message_bytes
        pointer = ctypes.cast(address, ctypes.c_char_p)
        pushed: int = self.functions.push(self.address, pointer, count, tag)
        return pushed

    def drop_oldest(self) -> tuple[int, bytes] | None:
        """Drop the oldest message of a full ring: its tag and its bytes."""
        tag: int = self.functions.drop(self.address, self._scratch.ctypes.data)
        return None if tag < 0 else (tag, self._scratch[: self.message_bytes].tobytes())

    # --- the actor ---

    def take(self, limit: int) -> int:
        """Take up to so many messages into the batch."""
        taken: int = self.functions.take(self.address, limit)
        self.taken_last = taken
        return taken

    def note_taken(self, count: int, tag: int) -> None:
        """Messages with a tag were copied into the batch from elsewhere: another actor's outbox."""
        for at in range(count):
            self.batch_entries[2 * at] = tag
        self.taken_last = self.words[code.TAKEN] = count
        self.words[code.PIPED] += count

    def finish(self, first: int, last: int) -> None:
        """Publish the replies of some messages of the batch."""
        self.functions.finish(self.address, first, last)

    def drop_taken(self, at: int, flag: int) -> int:
        """A message of the batch gets no reply. Its tag; who asked finds the flag."""
        tag = self.batch_entries[2 * at]
        self.flag(tag, flag)
        self.words[code.TAKEN] -= 1
        return tag

    def flag(self, tag: int, flag: int) -> None:
        """Set the flag of an answer, if a message with this tag has one."""
        if tag >= code.ASKED:
            self.functions.announce(self.flags_address + 8 * (tag - code.ASKED), flag)

    def park(self) -> None:
        """From here on, senders and receivers wake the actor; look once more after it."""
        self.announce(code.PARKED, 1)

    def announce(self, word: int, value: int) -> None:
        """Store a word of the control block, with a fence after it."""
        self.functions.announce(self.address + 8 * word, value)

    def drop_all(self) -> list[tuple[int, bytes]]:
        """Take all messages out of the inbox, when nothing else looks at it any more: their tags
        and bytes."""
        words, size = self.words, self.message_bytes
        entries = self.entries_memory.data.cast("B").cast("q")
        found = []
        for number in range(words[code.HEAD], words[code.TAIL]):
            place = number & (self.capacity - 1)
            found.append((entries[2 * place], self.inbox_memory[place * size :][:size].tobytes()))
        words[code.HEAD] = words[code.TAIL]
        return found

    # --- receivers, under their lock ---

    def pop(self, target: Bytes, first: int, limit: int) -> int:
        """Receive replies; see the function."""
        address = target.ctypes.data + first * self.reply_bytes
        if self.times_memory is None:
            popped: int = self.functions.pop(self.address, address, limit)
            return popped
        # Before the pop, after which there may be other times in their places.
        number = min(limit, self.replies)
        place, mask = self.words[code.OUT_HEAD], self.capacity - 1
        self.functions.measure(self.address, self._times, place, mask, number)
        if self._merged and number:
            self._merge((place + number - 1) & mask)  # the last one is the latest
        return int(self.functions.pop(self.address, address, number))

    def stamps_of_next(self, limit: int) -> np.ndarray[Any, Any] | None:
        """The stamps of the next replies in the outbox, as words; None if they have none."""
        if self.stamps is None:
            return None
        head = self.words[code.OUT_HEAD]
        places = np.arange(head, head + min(self.replies, limit)) & (self.capacity - 1)
        stamps: np.ndarray[Any, Any] = self.stamps[places]
        return stamps

    def stamp_of_answer(self, which: int) -> int:
        """The stamp of the reply to a message that was asked, as a word."""
        assert self.stamps is not None
        return int(self.stamps[self.capacity + which])

    def note_answer(self, which: int) -> None:
        """An answer is received: what follows has later stamps."""
        if self._merged:
            self._merge(self.capacity + which)

    def note_life(self) -> None:
        """A resident kernel has ended: what it did may be seen in a snapshot now."""
        if self._merged:
            self.functions.merge(self._merged, self.words[code.LAST_STAMP])

    def _merge(self, place: int) -> None:
        assert self.stamps is not None
        self.functions.merge(self._merged, int(self.stamps[place]))

    def answer(self, which: int) -> bytes:
        """The reply to a message that was asked."""
        memory, start = self._answer_bytes, which * self.reply_bytes
        if self._answers_in_flags:
            memory, start = self._flag_bytes, 8 * which + 4
        return bytes(memory[start : start + self.reply_bytes])

    # --- anybody's ---

    def spinner(self, most: int) -> Callable[[int, int], int]:
        """A function that polls the word at an address until it is not a value, or for a while."""
        spin, patience = self.functions.spin, Patience(most)

        def poll(address: int, value: int) -> int:
            found: int = spin(address, value, patience.polls)
            if found == value:
                patience.missed()
            else:
                patience.found()
            return found

        return poll

    def measure_answer(self, which: int) -> None:
        """Count how long an answer took, which the polls for it have missed."""
        if self.times_memory is not None and self.flags[which] & 0xFFFFFFFF == code.ANSWERED:
            place = self._times + 8 * (self.capacity + which)
            self.functions.measure(self.address, place, 0, 0, 1)

    @property
    def waiting(self) -> int:
        """Messages in the inbox."""
        head = self.words[code.HEAD]  # first: the tail is never before it
        return max(self.words[code.TAIL] - head, 0)

    @property
    def replies(self) -> int:
        """Replies in the outbox."""
        head = self.words[code.OUT_HEAD]
        return max(self.words[code.OUT_TAIL] - head, 0)

    @property
    def has_work(self) -> bool:
        """Whether the first message has room for its reply."""
        head = self.words[code.HEAD]
        if head >= self.words[code.TAIL]:
            return False
        tags = self.entries_memory.data.cast("B").cast("q")
        plain = tags[2 * (head & (self.capacity - 1))] == code.TO_OUTBOX
        return not plain or self.replies < self.capacity

    def counts_of_latencies(self) -> list[int]:
        """How many messages took how long, by bucket of the histogram."""
        return list(self.words[code.HISTOGRAM : code.HISTOGRAM + code.BUCKETS])


class Patience:
    """How often to poll: up to `most` times, and fewer after it was in vain. Where other programs
    use the processors, polling keeps the actor's thread from running. Every 16th time in vain is
    followed by one that tries again."""

    __slots__ = ("_in_vain", "_least", "_most", "polls")

    def __init__(self, most: int) -> None:
        self._most, self._least = most, most >> 6
        self._in_vain = 0
        self.polls = most

    def found(self) -> None:
        """It was not in vain."""
        self.polls = self._most

    def missed(self) -> None:
        """It was in vain."""
        self._in_vain += 1
        self.polls = max(self.polls >> 1, self._least) if self._in_vain & 15 else self._most
