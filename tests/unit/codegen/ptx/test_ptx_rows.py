"""Kernels whose blocks take their arguments out of the rows of a table."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support.ptx_device import ptx_device
from tests.support.ptxas import ptxas_error
from treadle.actors import ring_code as code
from treadle.actors.mailbox import Mailbox
from treadle.actors.resident_kernel import Form, ResidentKernel, threads_of
from treadle.codegen.ptx.rows import row_bytes, with_rows
from treadle.core.dim3 import Dim3
from treadle.ir.types import I32
from treadle.runtime.arrays import DeviceArray

BLOCK, ROWS = 32, 5


@td.kernel
def turned(
    x: td.Array[td.f32], y: td.Array[td.f32], scale: td.f32, turns: td.i32, wide: td.i64,
    exact: td.f64, negative: td.bool,
) -> None:  # fmt: skip
    """Elements of a block in another order, which takes shared memory and a barrier."""
    kept = td.shared(BLOCK, td.f32)
    i = td.thread_idx.x
    kept[i] = x[i]
    td.sync_threads()
    value = kept[(i + turns) % BLOCK] * scale + td.f32(wide) + td.f32(exact)
    y[i] = -value if negative else value


@td.actor
def total(message: td.i32, sums: td.Array[td.i32]) -> td.i32:
    sums[0] = sums[0] + message
    return sums[0]


def uploaded(device: td.Device, values: np.ndarray[Any, Any], dtype: Any) -> DeviceArray:
    made = DeviceArray.allocate(device, dtype, values.shape)
    made.upload(values)
    return made


class Table:
    """Rows of arguments, and the kernel that takes them."""

    def __init__(self, device: td.Device, launch: Any) -> None:
        self.device, self.launch = device, launch
        self.rows = b""
        self.kept: list[Any] = []  # rows have addresses alone
        self.count = 0

    def add(self, *arguments: Any) -> None:
        """Launch for one row alone, and add that."""
        repeat = self.launch(arguments)
        if repeat is None:  # it was still being compiled
            self.device.synchronize()
            repeat = self.launch(arguments)
        arrays = [each for each in arguments if isinstance(each, DeviceArray)]
        buffers = dict.fromkeys(array.buffer for array in arrays)
        self.rows += struct.pack(f"<{len(buffers)}Q", *(each.address() for each in buffers))
        self.rows += repeat.prepared.pack(list(arguments), Dim3(1), ())
        self.kept += arrays
        self.count += 1
        self.code = repeat.prepared.compiled.code

    def run(self) -> None:
        """Launch a block for each row."""
        assert len(self.rows) == self.count * row_bytes(self.code)
        code = with_rows(self.code)
        assert code.source.count("ld.param") == 1
        assert ptxas_error(code.source, "sm_90") is None
        table = uploaded(self.device, np.frombuffer(self.rows, np.uint8), td.uint8)
        kernel = self.device.handle.compile(code)
        stream = self.device.default_stream.handle
        stream.launch(kernel, Dim3(self.count), [table.buffer], b"")


def test_each_block_has_its_own_arguments() -> None:
    x = np.random.default_rng().standard_normal((ROWS, BLOCK)).astype(np.float32)
    with ptx_device("sm_90") as device:
        table = Table(device, turned._launcher.bound(Dim3(1), Dim3(BLOCK)))
        results = []
        for n in range(ROWS):
            result = uploaded(device, np.full(BLOCK, np.nan, np.float32), td.float32)
            numbers = 0.5 * n - 1.0, 3 * n, n << 40, 0.25 * n, n % 2 == 1
            table.add(uploaded(device, x[n], td.float32), result, *numbers)
            results.append((result, result.to_host().copy()))
        for result, alone in results:
            assert np.isfinite(alone).all()
            result.upload(np.full(BLOCK, np.nan, np.float32))
        table.run()
        for result, alone in results:
            np.testing.assert_array_equal(result.to_host(), alone)


@pytest.mark.parametrize("form", [Form.IN_TURN, Form.EACH])
def test_resident_kernels(form: Form) -> None:
    """Blocks with the rings and the states of several actors."""
    with ptx_device("sm_90") as device:
        kernel = ResidentKernel(total._handler, I32, form)
        table = Table(device, kernel._launcher.bound(Dim3(1), Dim3(threads_of(form, I32, I32))))
        found = []
        for n in range(3):
            mailbox = Mailbox(8, 4, 4, resident=True, in_cell=True, short_replies=True)
            words = [uploaded(device, mailbox.control_memory.view(np.int64), td.int64)]
            words.append(words[0])
            assert mailbox.cell_memory is not None
            assert mailbox.times_memory is not None
            others = (
                mailbox.cell_memory, mailbox.entries_memory, mailbox.flags_memory,
                mailbox.times_memory,
            )  # fmt: skip
            words += [uploaded(device, memory.view(np.int64), td.int64) for memory in others]
            inbox, outbox, answers = (
                uploaded(device, memory.view(np.int32), td.int32)
                for memory in (mailbox.inbox_memory, mailbox.outbox_memory, mailbox.answers_memory)
            )
            sums = uploaded(device, np.array([100 * n], np.int32), td.int32)
            table.add(*words, inbox, outbox, answers, 1 << 40, 0, 1, 0, sums)  # no message yet
            data = np.arange(n + 1, dtype=np.int32)
            mailbox.words[code.PARKED] = 0
            mailbox.push_many(data.view(np.uint8), 0, n + 1, code.TO_OUTBOX)
            words[0].upload(mailbox.control_memory.view(np.int64))
            words[3].upload(mailbox.entries_memory.view(np.int64))
            inbox.upload(mailbox.inbox_memory.view(np.int32))
            found.append((words[0], outbox, sums))
        table.run()
        for n, (control, outbox, sums) in enumerate(found):
            wanted = 100 * n + np.cumsum(np.arange(n + 1))
            assert control.to_host()[[code.HEAD, code.PROCESSED, code.PARKED]].tolist() == [
                n + 1, n + 1, 1,
            ]  # fmt: skip
            if form is Form.IN_TURN:
                assert outbox.to_host()[: n + 1].tolist() == wanted.tolist()
            assert int(sums.to_host()[0]) == wanted[-1] or form is Form.EACH
