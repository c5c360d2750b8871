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


def handle(
    device: td.Device,
    messages: list[tuple[int, int]],
    received: int = 0,
    attention: int = 0,
    form: Form = Form.SINGLE,
    unseen: int = 0,
) -> dict[str, Any]:
    """What the kernel makes of messages with tags."""
    mailbox = Mailbox(CAPACITY, 4, 4, resident=True, in_cell=True, short_replies=True)
    for value, tag in messages:
        data = np.array([value], np.int32).view(np.uint8)
        assert mailbox.push_many(data, 0, 1, tag) >> 1 == 1
    mailbox.words[code.ATTENTION] = attention
    mailbox.words[code.TAIL] -= unseen
    mailbox.words[code.PARKED] = 0
    mailbox.words[code.OUT_HEAD] = mailbox.words[code.OUT_TAIL] = received

    def array(memory: Bytes, dtype: Any) -> DeviceArray:
        made = DeviceArray.allocate(device, dtype, (memory.nbytes // dtype.itemsize,))
        made.upload(memory.view(dtype.numpy))
        return made

    assert mailbox.times_memory is not None
    assert mailbox.cell_memory is not None
    words = (mailbox.entries_memory, mailbox.flags_memory, mailbox.times_memory)
    control_array = array(mailbox.control_memory, td.int64)
    cell = array(mailbox.cell_memory, td.int64)
    rings = [control_array, control_array, cell, *(array(memory, td.int64) for memory in words)]
    values = (mailbox.inbox_memory, mailbox.outbox_memory, mailbox.answers_memory)
    rings += [array(memory, td.int32) for memory in values]
    sums = DeviceArray.allocate(device, td.int32, (1,))
    sums.upload(np.array([100], np.int32))
    actor, block = total, Dim3(threads_of(form, I32, I32))
    if form is Form.TOGETHER:
        actor, block = total_of_first, Dim3(32)
    kernel = ResidentKernel(actor._handler, I32, form)
    kernel._launcher.bound(Dim3(1), block)((*rings, MOMENT, 0, 1, 0, sums))
    control, _, _, entries, flags, times, _, outbox, answers = (each.to_host() for each in rings)
    sent = entries[1::2].tolist()
    return {
        "control": control, "flags": flags.tolist(), "outbox": outbox.tolist(),
        "sent": sent, "times": times.tolist(),
        "answers": answers.tolist(), "sum": int(sums.to_host()[0]),
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
