"""The kernel of a persistent actor, launched on rings that hold messages already: it handles them
and parks. So it runs on devices that cannot share memory with the host, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.actors import ring_code as code
from treadle.actors.handler import ResidentKernel
from treadle.actors.mailbox import Bytes, Mailbox
from treadle.core.dim3 import Dim3
from treadle.ir.types import I32
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.build import target_of

CAPACITY = 8


@td.actor
def total(message: td.i32, sums: td.Array[td.i32]) -> td.i32:
    sums[0] = sums[0] + message
    return sums[0]


def handle(
    device: td.Device, messages: list[tuple[int, int]], received: int = 0, attention: int = 0
) -> dict[str, Any]:
    """What the kernel makes of messages with tags."""
    mailbox = Mailbox(CAPACITY, 4, 4)
    for value, tag in messages:
        data = np.array([value], np.int32).view(np.uint8)
        assert mailbox.push_many(data, 0, 1, tag) >> 1 == 1
    mailbox.words[code.ATTENTION] = attention
    mailbox.words[code.PARKED] = 0
    mailbox.words[code.OUT_HEAD] = mailbox.words[code.OUT_TAIL] = received

    def array(memory: Bytes, dtype: Any) -> DeviceArray:
        made = DeviceArray.allocate(device, dtype, (memory.nbytes // dtype.itemsize,))
        made.upload(memory.view(dtype.numpy))
        return made

    words = (mailbox.control_memory, mailbox.entries_memory, mailbox.flags_memory)
    rings = [array(memory, td.int64) for memory in words]
    values = (mailbox.inbox_memory, mailbox.outbox_memory, mailbox.answers_memory)
    rings += [array(memory, td.int32) for memory in values]
    sums = DeviceArray.allocate(device, td.int32, (1,))
    sums.upload(np.array([100], np.int32))
    launch = ResidentKernel(total._handler, I32)._launcher.bound(Dim3(1), Dim3(1))
    launch((*rings, 3, 4, sums))
    control, _, flags, _, outbox, answers = (each.to_host() for each in rings)
    return {
        "control": control, "flags": flags.tolist(), "outbox": outbox.tolist(),
        "answers": answers.tolist(), "sum": int(sums.to_host()[0]),
    }  # fmt: skip


def has_persistent(device: td.Device) -> bool:
    return target_of(device.info).language in ("ptx", "llvm")


def test_messages_and_where_replies_go(device: td.Device) -> None:
    messages = [(1, code.TO_OUTBOX), (2, code.DROPPED), (3, code.ASKED + 5), (4, code.TO_OUTBOX)]
    if not has_persistent(device):
        refused = td.errors.UnsupportedOnTarget, td.errors.CompileError
        with pytest.raises(refused, match=r"the host writes|64-bit"):
            handle(device, messages)
        return
    got = handle(device, messages, received=7)
    control = got["control"]
    assert got["sum"] == 110
    assert [int(control[word]) for word in (code.HEAD, code.TAIL, code.PROCESSED)] == [4, 4, 4]
    assert int(control[code.OUT_TAIL]) == 9
    assert [got["outbox"][place] for place in (7, 0)] == [101, 110]
    assert got["answers"][5] == 106
    assert got["flags"] == [code.ANSWERED if at == 5 else 0 for at in range(len(got["flags"]))]
    assert int(control[code.PARKED]) == 1
    assert int(control[code.HEARTBEAT]) == 3  # polls without a message


def test_attention_and_a_full_outbox(device: td.Device) -> None:
    if not has_persistent(device):
        with pytest.raises(td.errors.TreadleError, match="have no mode 'persistent'"):
            total.spawn(sums=td.zeros(1, dtype=td.int32), mode="persistent")
        return
    messages = [(1, code.TO_OUTBOX)] * CAPACITY
    waiting = handle(device, messages, attention=1)
    assert int(waiting["control"][code.PROCESSED]) == 0
    assert int(waiting["control"][code.PARKED]) == 1
    full = handle(device, messages)
    assert int(full["control"][code.PROCESSED]) == CAPACITY
    assert full["outbox"] == list(range(101, 101 + CAPACITY))
