"""A persistent actor of several blocks, each of which a thread of the processor runs: as on a card,
where they run at the same time."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.actors.resident_program import ResidentProgram
from treadle.core.errors import TreadleError

BLOCKS = 2


@pytest.fixture
def modes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "treadle.actors.decorator.modes_of", lambda device: ["persistent", "relaunch"]
    )


@pytest.fixture
def side_by_side(modes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of resident kernels run at the same time."""
    handle = td.device("cpu").handle
    monkeypatch.setattr(type(handle), "blocks_at_once", lambda self, kernel: BLOCKS)
    word, place = ctypes.c_int64, ctypes.c_char_p
    kernel_type = ctypes.CFUNCTYPE(None, place, place, place, word, word)

    def launch(self: ResidentProgram, life: int, quiet: int) -> None:
        parameters = self.next_parameters(life, quiet)
        addresses = [buffer.address() for buffer in self.buffers]
        bindings = struct.pack(f"{len(addresses)}Q", *addresses)
        grid = struct.pack("3I", *self.grid)
        run = kernel_type(self.prepared.compiled.entry_point())
        threads = [
            threading.Thread(target=run, args=(bindings, parameters, grid, block, block + 1))
            for block in range(self.grid.count)
        ]
        for thread in reversed(threads):  # the one that polls begins last
            thread.start()
        for thread in threads:
            thread.join()

    monkeypatch.setattr(ResidentProgram, "launch", launch)


@td.actor(blocks=BLOCKS, block=16)
def neighbours(shift: td.i32, x: td.Array[td.i32]) -> td.i32:
    """Each thread changes an element that another block's has changed for the message before."""
    i = td.grid(1)
    at = (i + shift) % x.size
    x[at] = x[at] * 3 + shift
    return shift + td.block_idx.x


def expected(shifts: list[int]) -> np.ndarray[Any, Any]:
    x = np.zeros(16 * BLOCKS, np.int32)
    for shift in shifts:
        x = x * 3 + np.int32(shift)
    return x


def test_blocks_handle_each_message_together(side_by_side: None) -> None:
    shifts = [(7 * n) % 32 for n in range(60)]
    with neighbours.spawn(x=np.zeros(16 * BLOCKS, np.int32), device="cpu") as ref:
        assert ref.status().mode == "persistent"
        for n in range(3):
            part = shifts[20 * n : 20 * (n + 1)]
            ref.send_many(part[:15])
            assert ref.receive_many(15, timeout=60).tolist() == part[:15]
            assert [ref.ask(each, timeout=60) for each in part[15:]] == part[15:]
            snapshot = ref.snapshot(timeout=60)[
                "x"
            ].numpy()  # the kernel ends, and is launched anew
            np.testing.assert_array_equal(snapshot, expected(shifts[: 20 * (n + 1)]))


def test_blocks_that_take_replies_of_another_actor(side_by_side: None) -> None:
    @td.actor(capacity=16)
    def shifted(message: td.i32) -> td.i32:
        return message + 1

    shifts = [(7 * n) % 31 + 1 for n in range(40)]
    x = np.zeros(16 * BLOCKS, np.int32)
    with shifted.spawn(device="cpu") as one, neighbours.spawn(x=x, device="cpu") as two:
        one.pipe(two)
        assert one._core.pulled
        one.send_many([shift - 1 for shift in shifts], timeout=60)
        assert two.receive_many(40, timeout=60).tolist() == shifts
        snapshot = two.snapshot(timeout=60)["x"].numpy()
        np.testing.assert_array_equal(snapshot, expected(shifts))


def test_more_blocks_than_run_at_once(modes: None) -> None:
    x = np.zeros(32, np.int32)
    with pytest.raises(TreadleError, match="runs 1 of them at once"):
        neighbours.spawn(x=x, device="cpu", mode="persistent")
    with neighbours.spawn(x=x, device="cpu") as ref:
        assert ref.status().mode == "relaunch"
        assert ref.ask(3, timeout=60) == 3


@pytest.mark.parametrize(("fraction", "blocks"), [(1, 2), (0.6, 1), (0.1, 1)])
def test_a_fraction_of_the_device(side_by_side: None, fraction: float, blocks: int) -> None:
    @td.actor(device_fraction=fraction, block=4)
    def add(message: td.i32, x: td.Array[td.i32]) -> td.i32:
        for at in range(td.grid(1), x.size, td.grid_size(1)):
            x[at] += message
        return td.grid_dim.x

    with add.spawn(x=np.zeros(30, np.int32), device="cpu") as ref:
        assert ref.status().mode == "persistent"
        assert [ref.ask(1, timeout=60) for _ in range(3)] == [blocks] * 3
        assert ref.snapshot(timeout=60)["x"].tolist() == [3] * 30
