"""The kernel of a persistent actor, launched on rings that hold messages already: it handles them
and parks. So it runs on devices that cannot share memory with the host, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.actors import ring_code as code
from treadle.actors.mailbox import Bytes, Mailbox
from treadle.actors.resident_kernel import Form, ResidentKernel, threads_of
from treadle.core.dim3 import Dim3
from treadle.ir.types import I32
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.build import target_of

CAPACITY = 8
MOMENT = 1 << 40  # cycles that do not pass while a test runs


@td.actor
def total(message: td.i32, sums: td.Array[td.i32]) -> td.i32:
    sums[0] = sums[0] + message
    return sums[0]


@td.actor(block=32)
def total_of_first(message: td.i32, sums: td.Array[td.i32]) -> td.i32:
    if td.thread_idx.x == 0:
        sums[0] = sums[0] + message
    return sums[0]


class Rings:
    """The rings of an actor, on a device."""

    def __init__(self, device: td.Device, messages: list[tuple[int, int]], **words: int) -> None:
        self.device = device
        mailbox = Mailbox(CAPACITY, 4, 4, resident=True, in_cell=True, short_replies=True)
        for value, tag in messages:
            data = np.array([value], np.int32).view(np.uint8)
            assert mailbox.push_many(data, 0, 1, tag) >> 1 == 1
        mailbox.words[code.ATTENTION] = words.get("attention", 0)
        mailbox.words[code.TAIL] -= words.get("unseen", 0)
        mailbox.words[code.PARKED] = 0
        received = words.get("received", 0)
        mailbox.words[code.OUT_HEAD] = mailbox.words[code.OUT_TAIL] = received
        assert mailbox.times_memory is not None
        assert mailbox.cell_memory is not None
        others = (mailbox.entries_memory, mailbox.flags_memory, mailbox.times_memory)
        self.control = self._array(mailbox.control_memory, td.int64)
        self.cell = self._array(mailbox.cell_memory, td.int64)
        self.words = [self._array(memory, td.int64) for memory in others]
        values = (mailbox.inbox_memory, mailbox.outbox_memory, mailbox.answers_memory)
        self.values = [self._array(memory, td.int32) for memory in values]
        self.sums = DeviceArray.allocate(device, td.int32, (1,))
        self.sums.upload(np.array([100], np.int32))

    def _array(self, memory: Bytes, dtype: Any) -> DeviceArray:
        made = DeviceArray.allocate(self.device, dtype, (memory.nbytes // dtype.itemsize,))
        made.upload(memory.view(dtype.numpy))
        return made

    def run(self, form: Form, feed: Rings | None = None) -> None:
        """A life of the kernel, which takes the replies in the outbox of `feed`, too."""
        actor, block = total, Dim3(threads_of(form, I32, I32))
        if form is Form.TOGETHER:
            actor, block = total_of_first, Dim3(32)
        rings = [self.control, self.control, self.cell, *self.words, *self.values]
        if feed is not None:
            rings += [feed.control, feed.control, feed.words[2], feed.values[1]]
        kernel = ResidentKernel(actor._handler, I32, form, fed=feed is not None)
        launch = kernel._launcher.bound(Dim3(1), block)
        launch((*rings, MOMENT, 0, 1, 0, self.sums))


def handle(
    device: td.Device, messages: list[tuple[int, int]], form: Form = Form.SINGLE, **words: int
) -> dict[str, Any]:
    """What the kernel makes of messages with tags."""
    rings = Rings(device, messages, **words)
    rings.run(form)
    entries, flags, times = (each.to_host() for each in rings.words)
    _, outbox, answers = (each.to_host() for each in rings.values)
    return {
        "control": rings.control.to_host(), "flags": flags.tolist(), "outbox": outbox.tolist(),
        "sent": entries[1::2].tolist(), "times": times.tolist(),
        "answers": answers.tolist(), "sum": int(rings.sums.to_host()[0]),
    }  # fmt: skip


def has_persistent(device: td.Device) -> bool:
    return target_of(device.info).language in ("ptx", "llvm")


@pytest.mark.parametrize("form", [Form.SINGLE, Form.IN_TURN, Form.TOGETHER])
def test_messages_and_where_replies_go(device: td.Device, form: Form) -> None:
    messages = [(1, code.TO_OUTBOX), (2, code.DROPPED), (3, code.ASKED + 5), (4, code.TO_OUTBOX)]
    if not has_persistent(device):
        refused = td.errors.UnsupportedOnTarget, td.errors.CompileError
        with pytest.raises(refused, match=r"the host writes|64-bit"):
            handle(device, messages, form=form)
        return
    got = handle(device, messages, received=7, form=form)
    control = got["control"]
    assert got["sum"] == 110
    assert [int(control[word]) for word in (code.HEAD, code.TAIL, code.PROCESSED)] == [4, 4, 4]
    assert int(control[code.OUT_TAIL]) == 9
    assert [got["outbox"][place] for place in (7, 0)] == [101, 110]
    answer = 106 << 32 | code.ANSWERED
    assert got["flags"] == [answer if at == 5 else 0 for at in range(len(got["flags"]))]
    assert int(control[code.PARKED]) == 1
    assert int(control[code.HEARTBEAT]) == 1  # polls without a message
    times, sent = got["times"], got["sent"]
    assert [times[place] for place in (7, 0, CAPACITY + 5)] == [sent[at] for at in (0, 3, 2)]


@pytest.mark.parametrize("form", [Form.SINGLE, Form.IN_TURN, Form.TOGETHER])
def test_attention_and_a_full_outbox(device: td.Device, form: Form) -> None:
    if not has_persistent(device):
        with pytest.raises(td.errors.TreadleError, match="have no mode 'persistent'"):
            total.spawn(sums=td.zeros(1, dtype=td.int32), mode="persistent")
        return
    messages = [(1, code.TO_OUTBOX)] * CAPACITY
    waiting = handle(device, messages, attention=1, form=form)
    assert int(waiting["control"][code.PROCESSED]) == 0
    assert int(waiting["control"][code.PARKED]) == 1
    full = handle(device, messages, form=form)
    assert int(full["control"][code.PROCESSED]) == CAPACITY
    assert full["outbox"] == list(range(101, 101 + CAPACITY))


@pytest.mark.parametrize("form", [Form.SINGLE, Form.IN_TURN, Form.TOGETHER])
@pytest.mark.parametrize("tag", [code.DROPPED, code.TO_OUTBOX, code.ASKED + 3])
def test_a_message_in_the_cell(device: td.Device, form: Form, tag: int) -> None:
    """It is handled before the kernel sees the counter, unless its reply goes to the outbox, or
    messages that are before it were not handled."""
    if not has_persistent(device):
        return
    got = handle(device, [(-7, tag)], form=form, unseen=1)
    handled = tag != code.TO_OUTBOX
    assert got["sum"] == 100 + -7 * handled
    assert int(got["control"][code.HEAD]) == handled
    assert int(got["control"][code.PROCESSED]) == handled
    if tag >= code.ASKED:
        assert got["flags"][3] == 93 << 32 | code.ANSWERED
    later = handle(device, [(1, code.DROPPED), (2, tag)], form=form, unseen=2)
    assert later["sum"] == 100
    assert int(later["control"][code.HEAD]) == 0


@pytest.mark.parametrize("form", [Form.SINGLE, Form.IN_TURN, Form.TOGETHER])
def test_replies_of_another_kernel(device: td.Device, form: Form) -> None:
    """A kernel takes what is in the outbox of another one, beside its own messages in turn, as far
    as there is room for its replies."""
    if not has_persistent(device):
        return
    first = Rings(device, [(n, code.TO_OUTBOX) for n in range(CAPACITY)], received=5)
    first.run(form)
    own = [(1000, code.DROPPED), (2000, code.ASKED + 5)]
    second = Rings(device, own, received=3)
    second.run(form, first)
    piped = [100, 101, 103, 106, 110, 115, 121, 128]
    control, other = second.control.to_host(), first.control.to_host()
    assert int(second.sums.to_host()[0]) == 100 + sum(piped) + 3000
    assert [int(control[word]) for word in (code.HEAD, code.PROCESSED, code.PIPED)] == [2, 10, 8]
    assert int(control[code.PARKED]) == 1
    assert [int(other[word]) for word in (code.OUT_HEAD, code.OUT_TAIL)] == [13, 13]
    assert int(control[code.OUT_TAIL]) == 3 + CAPACITY
    outbox = np.roll(second.values[1].to_host(), -3).tolist()
    assert outbox[-1] <= 100 + sum(piped) + 3000
    assert outbox == sorted(outbox)
    assert (np.diff(outbox) >= piped[1:]).all()
    times, sent = second.words[2].to_host(), first.words[2].to_host()
    assert np.roll(times[:CAPACITY], -3).tolist() == np.roll(sent[:CAPACITY], -5).tolist()
    # With a full outbox it takes none.
    third = Rings(device, [(n, code.TO_OUTBOX) for n in range(3)])
    third.run(form)
    second.run(form, third)
    assert int(second.control.to_host()[code.PROCESSED]) == 10
    assert int(third.control.to_host()[code.OUT_HEAD]) == 0
