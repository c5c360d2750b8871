"""Loops and branches as conditional nodes: what is asked of the driver, over the fake one."""

from __future__ import annotations

import ctypes
import struct

import pytest

from tests.support.fake_cuda_driver import FakeDriver
from tests.support.ptxas import ptxas_error
from tests.unit.drivers.cuda.conftest import open_device, ptx
from treadle.core.dim3 import Dim3
from treadle.core.dtypes import bool_, complex64, float32, int32
from treadle.core.errors import LaunchError
from treadle.drivers.cuda import decisions
from treadle.drivers.program import Branch, Condition, Loop, Work

_DECIDES = struct.Struct("<QQIIQQQI")


@pytest.fixture
def adding(fake):
    """A kernel that adds 1 to the first byte of its buffer, and what sets conditions."""

    def run(_grid, arguments):
        if len(arguments) == 8:
            ctypes.c_uint8.from_address(struct.unpack("<Q", arguments)[0]).value += 1
            return
        handle, place, width, parts, mask, counter, limit, first = _DECIDES.unpack(arguments)
        read = ctypes.string_at(place, width * parts)
        holds = any(
            int.from_bytes(read[at : at + width], "little") & mask
            for at in range(0, width * parts, width)
        )
        if counter:
            count = ctypes.c_uint64.from_address(counter)
            count.value = 0 if first else count.value + 1
            holds = holds and count.value < limit
        fake.conditions[handle] = int(holds)

    fake.kernel = run
    return ptx("adding")


def content(stream, buffer):
    back = bytearray(buffer.size)
    stream.read(buffer, 0, memoryview(back))
    return bytes(back)


def recorded(stream, *work):
    """A recording of calls."""
    stream.begin_capture()
    for each in work:
        each()
    return Work(stream.end_capture())


def bytes_of(device, data):
    made = device.allocate(len(data))
    device.default_stream.write(made, 0, memoryview(data))
    return made


def test_a_loop_and_a_branch_are_one_graph(device, fake, adding):
    stream, kernel = device.default_stream, device.compile(adding)
    x, n, flag = (bytes_of(device, bytes(4)) for _ in range(3))
    steps = bytes_of(device, bytes([1] * 8 + [0] * 8))  # the conditions of the iterations

    def add(to):
        return recorded(stream, lambda: stream.launch(kernel, Dim3(1), (to,), b""))

    shift = recorded(stream, lambda: stream.copy(steps, 1, steps, 0, 12))
    program = [
        add(n),
        Loop(Condition(steps, 0, bool_), None, [
            add(x), shift, Branch(Condition(flag, 1, bool_), [add(n)]),
        ]),
        add(n),
    ]  # fmt: skip
    recording = device.compose(program)
    assert content(stream, x) == bytes(4)
    fake.calls.clear()
    recording.replay(stream)
    assert [name for name, _ in fake.calls] == ["cuGraphLaunch"]
    assert content(stream, x)[0] == 8
    assert content(stream, n)[0] == 2
    recording.replay(stream)  # the condition is false at once
    assert content(stream, x)[0] == 8
    assert content(stream, n)[0] == 4
    stream.write(steps, 0, memoryview(bytes([1, 1, 0])))
    stream.write(flag, 0, memoryview(bytes([0, 9])))
    recording.replay(stream)
    assert content(stream, x)[0] == 10
    assert content(stream, n)[0] == 4 + 2 + 2


def test_limits_are_counted_on_the_card(device, adding):
    """In a loop in a loop, the inner one begins anew each time."""
    stream, kernel = device.default_stream, device.compile(adding)
    x, always = bytes_of(device, bytes(4)), bytes_of(device, struct.pack("<f", 0.5))
    work = recorded(stream, lambda: stream.launch(kernel, Dim3(1), (x,), b""))
    condition = Condition(always, 0, float32)
    recording = device.compose([Loop(condition, 3, [work, Loop(condition, 4, [work])])])
    for total in (15, 30):
        recording.replay(stream)
        assert content(stream, x)[0] == total
    none = device.compose([Loop(condition, 0, [work])])
    none.replay(stream)
    assert content(stream, x)[0] == 30


@pytest.mark.parametrize(
    ("dtype", "data", "holds"),
    [
        (float32, struct.pack("<f", -0.0), False), (float32, b"\1\0\0\0", True),  # a denormal
        (float32, b"\0\0\xc0\x7f", True), (complex64, struct.pack("<2f", -0.0, 1), True),
        (complex64, struct.pack("<2f", -0.0, -0.0), False), (int32, b"\0\0\0\x80", True),
    ],
)  # fmt: skip
def test_what_is_true(device, adding, dtype, data, holds):
    stream, kernel = device.default_stream, device.compile(adding)
    x, flag = bytes_of(device, bytes(4)), bytes_of(device, data)
    work = recorded(stream, lambda: stream.launch(kernel, Dim3(1), (x,), b""))
    condition = Condition(flag, 0, dtype)
    device.compose([Branch(condition, [work])]).replay(stream)
    assert content(stream, x)[0] == holds == condition.holds(data)


def test_memory_lives_as_long_as_the_graph(device, fake, adding):
    stream, kernel = device.default_stream, device.compile(adding)
    x, flag = bytes_of(device, bytes(4)), bytes_of(device, b"\1\0\0\0")
    work = recorded(stream, lambda: stream.launch(kernel, Dim3(1), (x,), b""))
    recording = device.compose([Loop(Condition(flag, 0, int32), 2, [work])])
    del work
    device.free(x)
    device.free(flag)
    assert fake.named("cuMemFreeAsync") == []
    recording.replay(stream)
    recording.release()
    assert len(fake.named("cuMemFreeAsync")) == 3  # and the counter
    assert device.memory_stats()["allocated"] == 0


def test_where_the_host_decides(install):
    """An older driver, one that refuses the graph: no recording, nothing left."""
    fake = install(FakeDriver(version=12030))
    old = open_device()
    program = [Branch(Condition(bytes_of(old, bytes(4)), 0, int32), [])]
    assert old.compose(program) is None
    old.close()
    fake = install(FakeDriver(version=12040))
    device = open_device()
    program = [Branch(Condition(bytes_of(device, bytes(4)), 0, int32), [])]
    assert device.compose(program) is not None
    made, ended = len(fake.named("cuGraphCreate")), len(fake.named("cuGraphDestroy"))
    fake.failures["cuGraphInstantiateWithFlags"] = 801
    assert device.compose(program) is None
    fake.failures = {"cuGraphAddNode": 801}
    with pytest.raises(LaunchError, match="cuGraphAddNode"):
        device.compose(program)
    assert len(fake.named("cuGraphCreate")) - made == 2
    assert len(fake.named("cuGraphDestroy")) - ended == 2
    fake.failures.clear()
    device.close()


def test_ptxas_knows_the_function_that_sets_conditions():
    assert ptxas_error(decisions._PTX.format(architecture=90), "sm_90") is None
