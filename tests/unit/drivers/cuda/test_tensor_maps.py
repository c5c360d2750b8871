"""Launches of kernels that copy boxes of matrices: what describes these, and where it lies."""

from __future__ import annotations

import struct

import pytest

from tests.unit.drivers.cuda.conftest import ptx
from treadle.codegen.records import ParameterLayout, TensorMap
from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.drivers.tensor_maps import matrix_of
from treadle.ir.nodes import Parameter
from treadle.ir.types import I32

NAMES = ("rows", "columns", "step", "start")
LAYOUT = ParameterLayout.of(tuple(Parameter(name, I32, ("value", name)) for name in NAMES))
ROWS, COLUMNS, STEP, START = (((1, 4 * at, "i32"),) for at in range(4))
ONE = ((1, -1, ""),)
MAP = TensorMap(
    0, "bf16", ((4, 12, "i32"), (8, -1, "")), (COLUMNS, ROWS, ONE), (STEP, ()), (64, 32)
)


@pytest.fixture
def seen(fake):
    """The bytes that launches hand over, in order."""
    found = []
    fake.kernel = lambda _grid, arguments: found.append(arguments)
    fake.first_map = 1 + len(NAMES)
    return found


def numbers(rows: int, columns: int, step: int, start: int) -> bytes:
    return struct.pack("<4i", rows, columns, step, start)


def described(arguments: bytes, at: int) -> tuple[int, ...]:
    return struct.unpack_from("<I4xQ8Q", arguments, at)


def test_matrices_by_their_numbers():
    """The third axis has one element where steps along it are none."""
    made = matrix_of(MAP, struct.pack("<Q", 0x1000), numbers(10, 72, 80, 4))
    assert made.address == 0x1000 + 2 * (4 * 4 + 8)
    assert (made.extents, made.steps, made.box) == ((72, 10, 1), (160, 160), (64, 32))


def test_a_launch(device, seen):
    """The map lies where the driver says that the parameter is."""
    kernel = device.compile(ptx(layout=LAYOUT, maps=(MAP,)))
    x, stream = device.allocate(4096), device.default_stream
    stream.launch(kernel, Dim3(1), (x,), numbers(10, 72, 80, 0))
    (arguments,) = seen
    assert len(arguments) == 48 + 128
    assert arguments[8:24] == numbers(10, 72, 80, 0)
    assert described(arguments, 48) == (9, x.place + 16, 72, 10, 1, 160, 160, 64, 32, 1)


def test_maps_are_remembered(device, fake, seen):
    kernel = device.compile(ptx(layout=LAYOUT, maps=(MAP,)))
    x, y, stream = device.allocate(4096), device.allocate(4096), device.default_stream
    for buffer in (x, y, x):
        stream.launch(kernel, Dim3(1), (buffer,), numbers(10, 72, 80, 0))
    assert len(fake.named("cuTensorMapEncodeTiled")) == 2
    assert seen[0] == seen[2] != seen[1]


def test_recordings_with_other_numbers(device, seen):
    kernel = device.compile(ptx(layout=LAYOUT, maps=(MAP,)))
    x, stream = device.allocate(4096), device.default_stream
    stream.begin_capture()
    stream.launch(kernel, Dim3(1), (x,), numbers(10, 72, 80, 0))
    recording = stream.end_capture()
    recording.replay(stream)
    recording.change(0, kernel, Dim3(2), numbers(20, 64, 64, 0))
    recording.replay(stream)
    assert described(seen[0], 48)[2:4] == (72, 10)
    assert described(seen[1], 48)[1:4] == (x.place + 16, 64, 20)


def test_what_the_driver_refuses(device, fake, seen):
    kernel = device.compile(ptx(layout=LAYOUT, maps=(MAP,)))
    fake.failures["cuTensorMapEncodeTiled"] = 1
    with pytest.raises(LaunchError, match="cannot describe a matrix"):
        device.default_stream.launch(
            kernel, Dim3(1), (device.allocate(4096),), numbers(10, 72, 80, 0)
        )
    assert seen == []
