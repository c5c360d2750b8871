"""The WebGPU driver, with small hand-written WGSL and no other part of the library; each test runs
through both libraries, wgpu-native and Dawn, unless it is about one of them."""

from __future__ import annotations

import asyncio
import gc
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.support.dawn import dawn_device
from treadle.codegen.records import Binding, KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import (
    CompileError,
    DeviceLost,
    DeviceNotFound,
    LaunchError,
    OutOfMemory,
    UnsupportedOnTarget,
)
from treadle.drivers.base import Buffer
from treadle.drivers.webgpu_native import WebgpuBackend, dawn_backend, encode_loop
from treadle.drivers.webgpu_native.device import MAX_IN_FLIGHT, WebgpuDevice
from treadle.drivers.webgpu_native.memory import LARGE_DOWNLOAD, LARGE_UPLOAD, SMALL_UPLOAD
from treadle.drivers.webgpu_native.native import OUT_OF_MEMORY_ERROR, VALIDATION_ERROR
from treadle.drivers.webgpu_native.stream import WebgpuStream

BACKENDS = {"webgpu": WebgpuBackend(), "dawn": dawn_backend()}


@pytest.fixture(scope="module", params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> WebgpuBackend:
    return backend_named(request.param)


def backend_named(name: str) -> WebgpuBackend:
    if name == "dawn":
        dawn_device()  # sees to it that there is one
    return BACKENDS[name]


def wgsl(
    body: str,
    writes: tuple[bool, ...] = (True,),
    parameters: str = "",
    *,
    width: int = 64,
    **more: object,
) -> KernelCode:
    """A kernel over buffers b0, b1, … of u32 or f32 words, with `parameters` (a struct format)."""
    element = str(more.pop("element", "u32"))
    lines = [
        f"@group(0) @binding({i}) var<storage, {'read_write' if w else 'read'}> "
        f"b{i}: array<{element}>;"
        for i, w in enumerate(writes)
    ]
    if parameters:
        types = {"I": "u32", "f": "f32"}
        fields = ", ".join(f"p{i}: {types[c]}" for i, c in enumerate(parameters))
        lines += [f"struct P {{ {fields} }}", "@group(1) @binding(0) var<uniform> p: P;"]
    lines += [
        f"@compute @workgroup_size({width})",
        "fn main(@builtin(global_invocation_id) thread: vec3<u32>,",
        "        @builtin(workgroup_id) block: vec3<u32>,",
        "        @builtin(num_workgroups) blocks: vec3<u32>) {",
        "  let i = thread.x;",
        body,
        "}",
    ]
    size = -(-4 * len(parameters) // 8) * 8
    code = KernelCode(
        target="wgsl",
        dialect="",
        name="test_kernel",
        entry="main",
        source="\n".join(lines),
        block=Dim3(width),
        workgroup=Dim3(width),
        bindings=tuple(Binding((f"b{i}",), w) for i, w in enumerate(writes)),
        layout=ParameterLayout((), size, "<" + parameters),
    )
    return replace(code, **more)  # type: ignore[arg-type]


def block(form: str, *values: float) -> bytes:
    raw = struct.pack("<" + form, *values)
    return raw.ljust(-(-len(raw) // 8) * 8, b"\0")


SAXPY = wgsl(
    "  if (i < p.p0) { b1[i] = p.p1 * b0[i] + b1[i]; }", (False, True), "If", element="f32"
)
INCREMENT = wgsl("  if (i < p.p0) { b0[i] += p.p1; }", (True,), "II")


@pytest.fixture(scope="module", params=["as it is", "memory of its own"])
def device(request: pytest.FixtureRequest, backend: WebgpuBackend) -> Iterator[WebgpuDevice]:
    """Also as a discrete GPU, whose kernels don't read parameters from the host's memory."""
    opened = backend.open(backend.list_devices()[0])
    opened.unified = opened.unified and request.param == "as it is"
    yield opened
    opened.close()


@pytest.fixture
def own_device(backend: WebgpuBackend) -> Iterator[WebgpuDevice]:
    """A device that the test may break."""
    opened = backend.open(backend.list_devices()[0])
    yield opened
    opened.close()


def upload(stream: WebgpuStream, array: np.ndarray) -> Buffer:
    buffer = stream.device.allocate(array.nbytes)
    stream.write(buffer, 0, memoryview(array))
    return buffer


def download(
    stream: WebgpuStream, buffer: Buffer, count: int, dtype: type = np.uint32
) -> np.ndarray:
    result = np.empty(count, dtype)
    stream.read(buffer, 0, memoryview(result))
    return result


# ---------------------------------------------------------------------- listing


def test_each_physical_device_is_listed_once_and_other_interfaces_on_request(
    backend: WebgpuBackend,
) -> None:
    default = backend.list_devices()
    assert default, backend.why_none()
    assert [info.id for info in default] == [f"{backend.name}:{i}" for i in range(len(default))]
    assert all(info.kind in ("discrete", "integrated", "software") for info in default)
    by_api = [
        i for api in ("vulkan", "metal", "d3d12", "gl") for i in backend.list_devices(api=api)
    ]
    assert {info.id for info in default} <= {info.id for info in by_api}
    assert len({info.id for info in by_api}) == len(by_api)
    if {info.api for info in default} != {"gl"}:
        vendors = {info.vendor for info in default if info.api != "gl"}
        assert not [info for info in default if info.api == "gl" and info.vendor in vendors]


def test_limits_and_features_are_the_adapters_not_the_defaults(device: WebgpuDevice) -> None:
    limits = device.info.limits
    assert limits.max_grid == Dim3(65535, 65535, 65535)
    assert limits.max_buffer_size > 1 << 27
    assert ("subgroups" in device.info.features) == (limits.subgroup_size > 0)
    assert device.info.driver
    assert device.info.name in device.cache_key()


def test_preferences_that_mean_nothing_are_refused(backend: WebgpuBackend) -> None:
    assert {i.id for i in backend.list_devices(power="low")} == {
        i.id for i in backend.list_devices()
    }
    with pytest.raises(ValueError, match=r"^api is one of .*vulkan.*; not 'directx'$"):
        backend.list_devices(api="directx")
    with pytest.raises(ValueError, match=r"^power is one of high, low; not 'some'$"):
        backend.list_devices(power="some")


def test_open_says_what_is_missing(backend: WebgpuBackend) -> None:
    info = replace(backend.list_devices()[0], id=f"{backend.name}:99")
    with pytest.raises(DeviceNotFound, match=f"{backend.name}:99"):
        backend.open(info)


def test_opengl_device_computes(backend: WebgpuBackend) -> None:
    """Where OpenGL reaches a device at all, it gives the same answers."""
    for info in backend.list_devices(api="gl"):
        opened = backend.open(info)
        try:
            stream = opened.default_stream
            x = upload(stream, np.arange(100, dtype=np.uint32))
            stream.launch(opened.compile(INCREMENT), Dim3(2), (x,), block("II", 99, 5))
            expected = np.arange(100, dtype=np.uint32) + 5
            expected[99] = 99
            np.testing.assert_array_equal(download(stream, x, 100), expected)
        finally:
            opened.close()


# ---------------------------------------------------------------------- launching


def test_saxpy_leaves_elements_past_its_bound_alone(device: WebgpuDevice) -> None:
    stream = device.default_stream
    x = np.linspace(-1, 1, 1001, dtype=np.float32)
    y = np.full(1001, 0.5, np.float32)
    bx, by = upload(stream, x), upload(stream, y)
    stream.launch(device.compile(SAXPY), Dim3(16), (bx, by), block("If", 1000, 2.0))
    result = download(stream, by, 1001, np.float32)
    np.testing.assert_array_equal(result[:1000], np.float32(2) * x[:1000] + y[:1000])
    assert result[1000] == 0.5


def test_launches_see_what_earlier_ones_wrote_and_keep_their_own_parameters(
    device: WebgpuDevice,
) -> None:
    stream, kernel = device.create_stream(), device.compile(INCREMENT)
    x = upload(stream, np.zeros(64, np.uint32))
    for step in range(1000):  # several batches
        stream.launch(kernel, Dim3(1), (x,), block("II", 64, step))
    np.testing.assert_array_equal(download(stream, x, 64), np.full(64, 499500))


def test_writes_copies_and_launches_keep_their_order(device: WebgpuDevice) -> None:
    stream, kernel = device.default_stream, device.compile(INCREMENT)
    x, y = device.allocate(16), device.allocate(16)
    for round in range(5):
        stream.write(x, 0, memoryview(np.full(4, 10 * round, np.uint32)))
        stream.launch(kernel, Dim3(1), (x,), block("II", 4, 1))
        stream.copy(x, 0, y, 0, 16)
        stream.write(x, 0, memoryview(np.full(4, 7, np.uint32)))
        stream.launch(kernel, Dim3(1), (y,), block("II", 4, 1))
        assert list(download(stream, y, 4)) == [10 * round + 2] * 4
        assert list(download(stream, x, 4)) == [7] * 4


def test_parameter_blocks_of_many_sizes(device: WebgpuDevice) -> None:
    stream = device.default_stream
    for count in (1, 63, 65, 1025, 4096):
        vectors = -(-count // 4)
        code = wgsl("  if (i == 0u) { b0[0] = p.values[LAST / 4u][LAST % 4u]; }")
        source = code.source.replace("LAST", f"{count - 1}u").replace(
            "@compute",
            f"struct P {{ values: array<vec4<u32>, {vectors}> }}\n"
            "@group(1) @binding(0) var<uniform> p: P;\n@compute",
        )
        kernel = device.compile(
            replace(code, source=source, layout=ParameterLayout((), 16 * vectors, ""))
        )
        x = device.allocate(4)
        for seed in (1, 2):
            values = np.arange(4 * vectors, dtype=np.uint32) + seed * 100000
            stream.launch(kernel, Dim3(1), (x,), values.tobytes())
            assert download(stream, x, 1)[0] == seed * 100000 + count - 1
        device.free(x)


def test_kernels_with_and_without_parameters_take_turns(device: WebgpuDevice) -> None:
    """What is set in a pass is not set again: also across kernels that bind otherwise."""
    stream = device.default_stream
    increment, saxpy = device.compile(INCREMENT), device.compile(SAXPY)
    double = device.compile(wgsl("  if (i < 4u) { b0[i] *= 2u; }"))
    x, y = upload(stream, np.zeros(4, np.uint32)), upload(stream, np.zeros(4, np.float32))
    ones = upload(stream, np.ones(4, np.float32))
    for _ in range(3):
        stream.launch(increment, Dim3(1), (x,), block("II", 4, 1))
        stream.launch(double, Dim3(1), (x,), b"")
        stream.launch(increment, Dim3(1), (x,), block("II", 4, 1))
        stream.launch(saxpy, Dim3(1), (ones, y), block("If", 4, 0.5))
        stream.launch(increment, Dim3(1), (x,), block("II", 4, 1))
    expected = 0
    for _ in range(3):
        expected = (expected + 1) * 2 + 2
    assert list(download(stream, x, 4)) == [expected] * 4
    assert list(download(stream, y, 4, np.float32)) == [1.5] * 4


def test_kernel_without_parameters_and_with_many_buffers(device: WebgpuDevice) -> None:
    count = min(device.info.limits.max_buffers_per_kernel, 8)
    stream = device.default_stream
    total = " + ".join(f"b{i}[i]" for i in range(count - 1))
    kernel = device.compile(
        wgsl(f"  b{count - 1}[i] = {total};", (False,) * (count - 1) + (True,), width=4)
    )
    inputs = [upload(stream, np.arange(4, dtype=np.uint32) << i) for i in range(count - 1)]
    result = device.allocate(16)
    stream.launch(kernel, Dim3(1), (*inputs, result), b"")
    expected = sum(np.arange(4, dtype=np.uint32) << i for i in range(count - 1))
    np.testing.assert_array_equal(download(stream, result, 4), expected)


def test_grid_over_the_limit_needs_folded_code(device: WebgpuDevice) -> None:
    stream = device.default_stream
    body = "  let linear = (block.z * blocks.y + block.y) * blocks.x + block.x;\n"
    body += "  if (linear < arrayLength(&b0)) { b0[linear] += 1u; }"
    code = wgsl(body, width=1)
    blocks = 70001
    x = upload(stream, np.zeros(blocks, np.uint32))
    with pytest.raises(LaunchError, match="70001"):
        stream.launch(device.compile(code), Dim3(blocks), (x,), b"")
    stream.launch(device.compile(replace(code, folded=True)), Dim3(blocks), (x,), b"")
    np.testing.assert_array_equal(download(stream, x, blocks), np.ones(blocks))


def test_empty_grid_runs_nothing(device: WebgpuDevice) -> None:
    stream = device.default_stream
    x = upload(stream, np.full(4, 9, np.uint32))
    for grid in (Dim3(0), Dim3(3, 0, 1), Dim3(1, 1, 0)):
        stream.launch(device.compile(INCREMENT), grid, (x,), block("II", 4, 1))
    assert list(download(stream, x, 4)) == [9] * 4


def test_unchecked_and_validated_builds_agree(backend: WebgpuBackend) -> None:
    for validate in (False, True):
        opened = backend.open(backend.list_devices()[0], validate=validate)
        stream = opened.default_stream
        x = upload(stream, np.arange(1000, dtype=np.uint32))
        stream.launch(opened.compile(INCREMENT), Dim3(16), (x,), block("II", 1000, 3))
        np.testing.assert_array_equal(download(stream, x, 1000), np.arange(1000) + 3)
        opened.close()


# ---------------------------------------------------------------------- transfers


@pytest.mark.parametrize(
    "size", [1, 2, 3, 4, 5, 7, 4097, 65529, 1 << 20, LARGE_UPLOAD - 1, 2 * LARGE_DOWNLOAD + 5]
)
def test_any_number_of_bytes_goes_there_and_back(device: WebgpuDevice, size: int) -> None:
    stream, rng = device.default_stream, np.random.default_rng(size)
    data = rng.integers(0, 256, size, np.uint8)
    for offset in (0, 1, 3) if size < 1 << 20 else (3,):
        buffer = device.allocate(size + 8)
        stream.fill_zero(buffer, 0, buffer.size)
        stream.write(buffer, offset, memoryview(data))
        around = download(stream, buffer, buffer.size, np.uint8)
        np.testing.assert_array_equal(around[offset : offset + size], data)
        assert not around[:offset].any()
        assert not around[offset + size :].any()
        part = np.empty(size, np.uint8)
        stream.read(buffer, offset, memoryview(part))
        np.testing.assert_array_equal(part, data)
        device.free(buffer)


@pytest.mark.slow
def test_large_odd_transfer(device: WebgpuDevice) -> None:
    stream = device.default_stream
    data = np.random.default_rng(0).integers(0, 256, (64 << 20) + 3, np.uint8)
    buffer = device.allocate(data.size)
    stream.write(buffer, 0, memoryview(data))
    np.testing.assert_array_equal(download(stream, buffer, data.size, np.uint8), data)
    device.free(buffer)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 8, 1021, (1 << 21) + 7])
@pytest.mark.parametrize(("source", "target"), [(0, 0), (1, 1), (3, 0), (0, 2), (2, 3)])
def test_copies_at_any_offset(device: WebgpuDevice, size: int, source: int, target: int) -> None:
    stream = device.default_stream
    data = np.random.default_rng(size).integers(1, 256, 2 * size + 16, np.uint8)
    one, other = upload_bytes(stream, data), upload_bytes(stream, data)
    stream.copy(one, source, other, target, size)
    expected = data.copy()
    expected[target : target + size] = data[source : source + size]
    np.testing.assert_array_equal(download(stream, other, data.size, np.uint8), expected)
    # Within one buffer: to its second half.
    half = size + 8 + target
    stream.copy(one, source, one, half, size)
    expected = data.copy()
    expected[half : half + size] = data[source : source + size]
    np.testing.assert_array_equal(download(stream, one, data.size, np.uint8), expected)
    device.free(one)
    device.free(other)


def upload_bytes(stream: WebgpuStream, data: np.ndarray) -> Buffer:
    buffer = stream.device.allocate(data.size)
    stream.write(buffer, 0, memoryview(data))
    return buffer


@pytest.mark.parametrize(("offset", "size"), [(0, 64), (1, 1), (1, 2), (3, 58), (4, 8), (5, 0)])
def test_zeroing_any_range(device: WebgpuDevice, offset: int, size: int) -> None:
    stream = device.default_stream
    buffer = upload_bytes(stream, np.full(64, 255, np.uint8))
    stream.fill_zero(buffer, offset, size)
    expected = np.full(64, 255, np.uint8)
    expected[offset : offset + size] = 0
    np.testing.assert_array_equal(download(stream, buffer, 64, np.uint8), expected)


def test_bytes_in_a_buffer_too_large_to_bind(
    own_device: WebgpuDevice, backend: WebgpuBackend
) -> None:
    limits = replace(own_device.info.limits, max_binding_size=1 << 22)
    small = backend.open(own_device.info, limits=limits)
    stream = small.default_stream
    buffer = small.allocate(1 << 23)
    stream.fill_zero(buffer, 0, buffer.size)
    stream.write(buffer, 5_000_001, memoryview(b"abcdefg"))
    result = download(stream, buffer, 1 << 23, np.uint8)
    assert bytes(result[5_000_001:5_000_008]) == b"abcdefg"
    assert np.count_nonzero(result) == 7
    with pytest.raises(LaunchError, match="at most 4,194,304 bytes"):
        stream.launch(small.compile(INCREMENT), Dim3(1), (buffer,), block("II", 1, 1))
    small.close()


def test_windows_of_a_buffer(device: WebgpuDevice) -> None:
    stream = device.default_stream
    step = device.info.limits.buffer_alignment
    buffer = upload(stream, np.arange(step, dtype=np.uint32))
    window = device.window(buffer, 2 * step, 8)
    assert device.window(buffer, 2 * step, 8) is window
    assert device.window(buffer, step, 8) is not window
    stream.launch(device.compile(INCREMENT), Dim3(1), (window,), block("II", 2, 1000))
    expected = np.arange(step, dtype=np.uint32)
    expected[2 * step // 4 :][:2] += 1000
    np.testing.assert_array_equal(download(stream, buffer, step, np.uint32), expected)
    for offset, size in ((4, 8), (-step, 8), (0, 6), (0, 0), (step, 4 * step)):
        with pytest.raises(LaunchError, match="lies within"):
            device.window(buffer, offset, size)
    with pytest.raises(LaunchError, match="for launches only"):
        stream.write(window, 0, memoryview(b"abcd"))
    device.free(buffer)
    with pytest.raises(LaunchError, match="has been freed"):
        stream.launch(device.compile(INCREMENT), Dim3(1), (window,), block("II", 1, 1))


def test_ranges_outside_the_buffer_are_refused(device: WebgpuDevice) -> None:
    stream, buffer, data = device.default_stream, device.allocate(8), memoryview(bytearray(8))
    for action in (
        lambda: stream.write(buffer, 1, data),
        lambda: stream.read(buffer, 1, data),
        lambda: stream.fill_zero(buffer, 4, 5),
        lambda: stream.copy(buffer, 0, buffer, 8, 1),
        lambda: stream.read(buffer, -1, data),
    ):
        with pytest.raises(LaunchError, match="within a buffer of 8 bytes"):
            action()


def test_staging_memory_is_reused(own_device: WebgpuDevice) -> None:
    stream = own_device.default_stream
    buffer = own_device.allocate(1 << 12)
    data = np.zeros(1 << 10, np.uint32)

    def round_trip() -> None:
        for _ in range(20):
            stream.write(buffer, 0, memoryview(data))
            stream.read(buffer, 0, memoryview(data))

    round_trip()
    before = count_buffers(own_device)
    round_trip()
    assert count_buffers(own_device) == before


def test_reads_await_without_blocking_the_event_loop(device: WebgpuDevice) -> None:
    stream, kernel = device.create_stream(), device.compile(INCREMENT)
    count = 5 << 20  # two pieces
    x = upload(stream, np.arange(count, dtype=np.uint32))
    stream.launch(kernel, Dim3(65535), (x,), block("II", count, 1))
    result = np.empty(count, np.uint32)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main() -> None:
        counter = asyncio.ensure_future(count_turns())
        await stream.read_async(x, 0, memoryview(result))
        await stream.synchronize_async()
        counter.cancel()

    asyncio.run(main())
    np.testing.assert_array_equal(result, np.arange(count) + (np.arange(count) < 65535 * 64))
    assert turns > 1


# ---------------------------------------------------------------------- recordings


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])
def test_replay_repeats_launches_copies_and_writes(
    own_device: WebgpuDevice, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        own_device.loop = encode_loop.python_loop(own_device.native)
    stream, kernel = own_device.default_stream, own_device.compile(INCREMENT)
    x = upload(stream, np.zeros(8, np.uint32))
    y = upload(stream, np.zeros(8, np.uint32))
    assert own_device.loop.compiled == compiled
    stream.begin_capture()
    for step in range(600):  # more than fits a batch
        stream.launch(kernel, Dim3(1), (x,), block("II", 8, step % 3))
    stream.copy(x, 0, y, 3, 13)
    stream.write(y, 28, memoryview(b"wxyz"))
    stream.fill_zero(y, 0, 2)
    recording = stream.end_capture()
    assert list(download(stream, x, 8)) == [0] * 8  # nothing ran
    for round in range(1, 4):
        recording.replay(stream)
        total = 600 * round
        assert list(download(stream, x, 8)) == [total] * 8
        expected = np.zeros(32, np.uint8)
        expected[3:16] = np.full(8, total, np.uint32).view(np.uint8)[:13]
        expected[28:] = list(b"wxyz")
        expected[:2] = 0
        np.testing.assert_array_equal(download(stream, y, 32, np.uint8), expected)
    recording.release()
    with pytest.raises(LaunchError, match="released"):
        recording.replay(stream)


def test_recording_keeps_its_buffers_until_it_is_released(own_device: WebgpuDevice) -> None:
    stream, kernel = own_device.default_stream, own_device.compile(INCREMENT)
    x, y = own_device.allocate(16), upload(stream, np.zeros(4, np.uint32))
    stream.begin_capture()
    stream.fill_zero(x, 0, 16)
    stream.launch(kernel, Dim3(1), (x,), block("II", 4, 5))
    stream.copy(x, 0, y, 0, 16)
    recording = stream.end_capture()
    own_device.free(x)
    assert own_device.memory_stats()["buffers"] == 2
    other = own_device.create_stream()
    recording.replay(other)
    recording.replay(other)
    assert list(download(other, y, 4)) == [5] * 4
    stream.fill_zero(y, 0, 16)
    recording.replay(other)
    recording.release()  # the pending replay still runs
    assert own_device.memory_stats()["buffers"] == 1
    assert list(download(other, y, 4)) == [5] * 4


def test_waiting_is_refused_while_capturing(device: WebgpuDevice) -> None:
    stream = device.create_stream()
    buffer = device.allocate(4)
    stream.begin_capture()
    for action in (
        stream.synchronize,
        stream.record,
        stream.begin_capture,
        lambda: stream.read(buffer, 0, memoryview(bytearray(4))),
    ):
        with pytest.raises(LaunchError, match="recorded"):
            action()
    stream.end_capture().release()
    with pytest.raises(LaunchError, match="begin_capture"):
        stream.end_capture()


# ---------------------------------------------------------------------- events, streams, threads


def test_events_are_ordered_and_in_seconds(device: WebgpuDevice) -> None:
    stream, kernel = device.create_stream(), device.compile(INCREMENT)
    x = upload(stream, np.zeros(1 << 16, np.uint32))
    first = stream.record()
    for _ in range(50):
        stream.launch(kernel, Dim3(1024), (x,), block("II", 1 << 16, 1))
    second = stream.record()
    third = stream.record()
    third.synchronize()
    assert first.query()
    assert second.query()
    assert third.query()
    assert first.seconds() < second.seconds() <= third.seconds()
    assert second.seconds() - first.seconds() < 10


def test_events_without_timestamps_use_the_hosts_clock(own_device: WebgpuDevice) -> None:
    own_device.info = replace(own_device.info, features=frozenset())
    stream = own_device.default_stream
    x = upload(stream, np.zeros(4, np.uint32))
    first = stream.record()
    stream.launch(own_device.compile(INCREMENT), Dim3(1), (x,), block("II", 4, 1))
    second = stream.record()
    assert second.query()
    assert second.seconds() > first.seconds()


def test_many_more_events_than_one_query_set_holds(device: WebgpuDevice) -> None:
    stream = device.create_stream()
    events = [stream.record() for _ in range(600)]
    times = [event.seconds() for event in events]
    assert times == sorted(times)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])
def test_many_times_are_read_at_once(own_device: WebgpuDevice, compiled: bool) -> None:
    if not compiled:
        own_device.loop = encode_loop.python_loop(own_device.native)
    stream = own_device.default_stream
    events = [stream.record() for _ in range(600)]
    gone = events[3::7]
    kept = [event for event in events if event not in gone]
    alone = kept[100].seconds()
    own_device.read_times(kept[::-1])
    waits, own_device.wait_for = own_device.wait_for, None  # type: ignore[assignment, method-assign]
    times = [event.seconds() for event in kept]  # without asking the device
    own_device.wait_for = waits  # type: ignore[method-assign]
    assert times == sorted(times)
    assert times[100] == alone
    assert 0 < times[-1] - times[0] < 10
    own_device.read_times(gone)
    assert gone[0].seconds() < kept[10].seconds()


def test_timed_work_and_its_points_are_one_submission(own_device: WebgpuDevice) -> None:
    stream, kernel = own_device.default_stream, own_device.compile(INCREMENT)
    x = upload(stream, np.zeros(4, np.uint32))
    for step in range(300):  # each with a parameter block of its own
        submitted = []

        def launch(step: int = step, submitted: list[int] = submitted) -> None:
            submitted.append(own_device.serial)
            stream.launch(kernel, Dim3(1), (x,), block("II", 4, step))
            submitted.append(own_device.serial)

        start, end = stream.timed(launch)
        assert submitted[0] == submitted[1] == own_device.serial
        if step % 100 == 0:
            assert end.seconds() >= start.seconds()
    large = np.zeros(1 << 22, np.uint32)
    y = own_device.allocate(large.nbytes)
    before = own_device.serial
    start, end = stream.timed(lambda: stream.write(y, 0, memoryview(large).cast("B")))
    after = own_device.serial
    assert after > before
    assert end.seconds() > start.seconds()
    assert own_device.serial <= after + 2  # its end was submitted with it: two reads of a time
    assert list(download(stream, x, 4)) == [sum(range(300))] * 4


def test_streams_run_in_the_order_of_appending(device: WebgpuDevice) -> None:
    one, two = device.create_stream(), device.create_stream()
    kernel = device.compile(INCREMENT)
    x = upload(one, np.zeros(4, np.uint32))
    one.flush()
    two.launch(kernel, Dim3(1), (x,), block("II", 4, 2))
    one.fill_zero(x, 0, 16)
    two.launch(kernel, Dim3(1), (x,), block("II", 4, 3))
    one.launch(kernel, Dim3(1), (x,), block("II", 4, 4))
    assert list(download(two, x, 4)) == [7] * 4


def test_a_dropped_stream_still_runs_its_work(device: WebgpuDevice) -> None:
    stream, kernel = device.create_stream(), device.compile(INCREMENT)
    x = upload(stream, np.zeros(4, np.uint32))
    stream.launch(kernel, Dim3(1), (x,), block("II", 4, 3))
    del stream
    gc.collect()
    assert list(download(device.default_stream, x, 4)) == [3] * 4


def test_threads_with_streams_of_their_own(device: WebgpuDevice) -> None:
    kernel = device.compile(INCREMENT)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            stream = device.create_stream()
            for _ in range(20):
                x = upload(stream, np.full(100, seed, np.uint32))
                for _ in range(30):
                    stream.launch(kernel, Dim3(2), (x,), block("II", 100, seed))
                np.testing.assert_array_equal(download(stream, x, 100), np.full(100, 31 * seed))
                device.free(x)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_on_one_stream(device: WebgpuDevice) -> None:
    stream, kernel = device.default_stream, device.compile(INCREMENT)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for _ in range(20):
                x = upload(stream, np.full(100, seed, np.uint32))
                for step in range(30):
                    stream.launch(kernel, Dim3(2), (x,), block("II", 100, seed + step))
                stream.write(x, 1, memoryview(b"odd"))
                expected = np.full(100, 31 * seed + 435, np.uint32)
                expected[0] = expected[0] % 256 + (int.from_bytes(b"odd", "little") << 8)
                np.testing.assert_array_equal(download(stream, x, 100), expected)
                stream.record().seconds()
                device.free(x)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ---------------------------------------------------------------------- limits and errors


def test_reduced_limits_hold(own_device: WebgpuDevice, backend: WebgpuBackend) -> None:
    limits = replace(
        own_device.info.limits,
        max_threads_per_block=16,
        max_block=Dim3(16, 16, 16),
        max_shared_memory=16384,
        max_buffers_per_kernel=8,
        subgroup_size=-1,
    )
    small = backend.open(own_device.info, limits=limits)
    assert small.info.limits.max_threads_per_block == 16
    assert small.info.limits.max_shared_memory == 16384
    assert small.info.limits.max_buffers_per_kernel == 8
    assert small.info.limits.subgroup_size == 0
    assert "subgroups" not in small.info.features
    stream = small.default_stream
    x = upload(stream, np.zeros(32, np.uint32))
    kernel = small.compile(
        replace(INCREMENT, workgroup=Dim3(16), source=INCREMENT.source.replace("(64)", "(16)"))
    )
    stream.launch(kernel, Dim3(2), (x,), block("II", 32, 1))
    stream.write(x, 1, memoryview(b"\xff"))  # the driver's own kernel fits the limits too
    assert list(download(stream, x, 2)) == [0xFF01, 1]
    for code, what in [
        (INCREMENT, "64 threads"),
        (replace(INCREMENT, workgroup=Dim3(1), shared_bytes=16388), "16388 bytes of shared"),
        (wgsl("  b0[i] = 0u;", (True,) * 9, width=1), "9 different arrays"),
    ]:
        with pytest.raises(UnsupportedOnTarget, match=what):
            small.compile(code)
    small.close()


def test_compile_errors_have_the_compilers_words_and_the_generated_text(
    device: WebgpuDevice,
) -> None:
    code = wgsl("  b0[i] = undefined_name;")
    with pytest.raises(CompileError) as caught:
        device.compile(code)
    message = str(caught.value)
    assert "test_kernel" in message
    assert "undefined_name" in message
    assert "b0[i] = undefined_name;)" in message, "the line alone"
    assert caught.value.generated == code.source
    with pytest.raises(CompileError, match="other_entry"):
        device.compile(wgsl("  b0[i] = 1u;", entry="other_entry"))
    # A kernel that uses a binding its record does not tell of.
    with pytest.raises(CompileError, match="test_kernel"):
        device.compile(replace(SAXPY, bindings=SAXPY.bindings[:1]))
    # The device is as good as before.
    x = upload(device.default_stream, np.zeros(4, np.uint32))
    device.default_stream.launch(device.compile(INCREMENT), Dim3(1), (x,), block("II", 4, 1))
    assert list(download(device.default_stream, x, 4)) == [1] * 4


def test_code_of_other_targets_and_missing_features_are_refused(device: WebgpuDevice) -> None:
    with pytest.raises(CompileError, match="llvm"):
        device.compile(replace(INCREMENT, target="llvm", dialect=""))
    (other,) = {"naga", "tint"} - {device.info.dialect}
    with pytest.raises(CompileError, match=other):
        device.compile(replace(INCREMENT, dialect=other))
    with pytest.raises(UnsupportedOnTarget, match="tensor_cores"):
        device.compile(replace(INCREMENT, requires=frozenset({"tensor_cores"})))


def test_launches_that_do_not_fit_the_kernel_are_refused(
    device: WebgpuDevice, own_device: WebgpuDevice
) -> None:
    stream, kernel = device.default_stream, device.compile(SAXPY)
    x, y, freed = device.allocate(4), device.allocate(4), device.allocate(4)
    foreign = own_device.allocate(4)
    device.free(freed)
    parameters = block("If", 1, 1.0)
    for buffers, given, message in [
        ((x,), parameters, "binds 2 buffers, not 1"),
        ((x, x), parameters, "one buffer for two bindings"),
        ((x, freed), parameters, "freed"),
        ((x, foreign), parameters, "not memory of"),
        ((x, y), parameters[:-1], "8 bytes, not 7"),
    ]:
        with pytest.raises(LaunchError, match=message):
            stream.launch(kernel, Dim3(1), buffers, given)
    with pytest.raises(LaunchError, match="freed"):
        stream.read(freed, 0, memoryview(bytearray(4)))


def test_impossible_allocations_say_why(device: WebgpuDevice) -> None:
    before = device.memory_stats()
    asked = device.info.limits.max_buffer_size + 4
    with pytest.raises(OutOfMemory, match=f"{asked:,} bytes") as caught:
        device.allocate(asked)
    assert isinstance(caught.value, MemoryError)
    assert f"{before['allocated']:,} bytes are in use" in str(caught.value)
    with pytest.raises(LaunchError, match="at least 4 bytes"):
        device.allocate(0)
    assert device.memory_stats() == before


@pytest.mark.parametrize(
    ("type", "message"),
    [
        (OUT_OF_MEMORY_ERROR, "Out of memory"),
        # As wgpu-native says it on a full GPU.
        (VALIDATION_ERROR, "Validation Error\n\nCaused by:\n    Not enough memory left."),
    ],
)
def test_the_drivers_out_of_memory_error_is_ours(
    own_device: WebgpuDevice, monkeypatch: pytest.MonkeyPatch, type: int, message: str
) -> None:
    create = own_device.native.create_buffer

    def create_and_complain(*args: object, **keywords: object) -> object:
        own_device._errors.append((type, message))
        return create(*args, **keywords)

    kept = own_device.allocate(256)
    monkeypatch.setattr(own_device.native, "create_buffer", create_and_complain)
    with pytest.raises(OutOfMemory, match=r"allocating 1,000 bytes; 256 bytes in 1 buffers"):
        own_device.allocate(1000)
    monkeypatch.undo()
    assert own_device.memory_stats()["buffers"] == 1
    own_device.default_stream.write(kept, 0, memoryview(bytes(256)))  # still usable


def test_a_refused_batch_does_not_end_the_process(own_device: WebgpuDevice) -> None:
    """The library ends the process for an invalid submission; the driver must look before."""
    stream = own_device.default_stream
    x = own_device.allocate(16)
    stream._append_copy(x, 0, x, 8, 4)  # within one buffer: WebGPU forbids it
    event = stream.record()
    with pytest.raises(LaunchError, match="same buffer"):
        stream.flush()
    with pytest.raises(LaunchError, match="never reached"):
        event.synchronize()
    stream.write(x, 0, memoryview(b"still here, yes!"))
    assert bytes(download(stream, x, 16, np.uint8)) == b"still here, yes!"


def test_device_loss_is_told_and_a_new_device_works(
    own_device: WebgpuDevice, backend: WebgpuBackend
) -> None:
    stream, kernel = own_device.default_stream, own_device.compile(INCREMENT)
    x = upload(stream, np.zeros(4, np.uint32))
    stream.launch(kernel, Dim3(1), (x,), block("II", 4, 1))
    own_device.native.destroy_device(own_device.handle)
    with pytest.raises(DeviceLost, match=r"are gone, and stay so: close\(\) of the device has its"):
        download(stream, x, 4)
    for action in (
        lambda: stream.launch(kernel, Dim3(1), (x,), block("II", 4, 1)),
        lambda: stream.write(x, 0, memoryview(bytes(4))),
        lambda: stream.read(x, 0, memoryview(bytearray(4))),
        lambda: own_device.allocate(4),
        lambda: own_device.compile(INCREMENT),
        stream.synchronize,
        own_device.create_stream,
    ):
        with pytest.raises(DeviceLost):
            action()
    own_device.free(x)
    own_device.close()
    with pytest.raises(DeviceLost, match="its next use opens it again; then make them again") as e:
        own_device.allocate(4)
    assert "closed" not in str(e.value)  # that is not why
    fresh = backend.open(own_device.info)
    y = upload(fresh.default_stream, np.arange(4, dtype=np.uint32))
    assert list(download(fresh.default_stream, y, 4)) == [0, 1, 2, 3]
    fresh.close()


def test_closed_device_says_so(own_device: WebgpuDevice) -> None:
    stream = own_device.default_stream
    x = upload(stream, np.zeros(4, np.uint32))
    own_device.close()
    own_device.close()
    with pytest.raises(DeviceLost, match=r"it was closed\. .*: its next use opens it again"):
        stream.read(x, 0, memoryview(bytearray(4)))
    own_device.free(x)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_child_is_told_that_the_device_is_its_parents(backend: WebgpuBackend) -> None:
    script = """
import os, sys
from treadle.core.errors import DeviceLost
from tests.unit.drivers.test_webgpu_native import backend_named
backend = backend_named(sys.argv[1])
device = backend.open(backend.list_devices()[0])
buffer = device.allocate(4)
child = os.fork()
if not child:
    try:
        device.default_stream.write(buffer, 0, memoryview(bytes(4)))
    except DeviceLost as error:
        os._exit(0 if "forked" in str(error) else 1)
    os._exit(2)
status = os.waitpid(child, 0)[1]
device.default_stream.write(buffer, 0, memoryview(bytes(4)))
device.default_stream.synchronize()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        # Python warns of a fork where there are threads: that is the point here.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, backend.name],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    # (That the software driver has its limits is said whenever it is opened.)
    said = [line for line in done.stderr.splitlines() if "llvmpipe" not in line]
    assert (done.returncode, said) == (0, [])


# ---------------------------------------------------------------------- nothing piles up


def count_objects(device: WebgpuDevice) -> dict[str, int]:
    gc.collect()
    device.wait_for(device.serial)
    for _ in range(10):
        device.native.poll(device.poller)
    native = device.native
    return native.provider.live_objects(native, device._instance, device.handle)


def count_buffers(device: WebgpuDevice) -> float:
    """How many buffers there are; Dawn tells bytes alone, so there it is their size in chunks."""
    counts = count_objects(device)
    return counts["buffers"] if "buffers" in counts else counts["buffer bytes"] / SMALL_UPLOAD


def test_freed_buffers_leave_nothing_behind(own_device: WebgpuDevice) -> None:
    stream, kernel = own_device.default_stream, own_device.compile(SAXPY)
    x = own_device.allocate(4)

    def use_and_free() -> None:
        for _ in range(50):
            y = own_device.allocate(4)
            stream.launch(kernel, Dim3(1), (x, y), block("If", 1, 1.0))
            own_device.free(y)  # pending
        stream.synchronize()

    use_and_free()
    counts = [count_objects(own_device)]
    for _ in range(5):  # other devices are counted, too: what is left behind grows each time
        use_and_free()
        counts.append(count_objects(own_device))
        if counts[-1] == counts[-2]:
            break
    assert counts[-1] == counts[-2]
    assert own_device.memory_stats()["buffers"] == 1
    assert own_device.memory_stats()["allocated"] == 4
    assert own_device.bind_groups.count == 0
    assert not x.groups


def test_a_closed_device_leaves_nothing_behind(backend: WebgpuBackend) -> None:
    def use_a_device() -> WebgpuDevice:
        opened = backend.open(backend.list_devices()[0])
        stream, kernel = opened.default_stream, opened.compile(INCREMENT)
        x = upload(stream, np.zeros(5, np.uint32))
        stream.write(x, 1, memoryview(b"odd"))
        stream.begin_capture()
        stream.launch(kernel, Dim3(1), (x,), block("II", 4, 1))
        recording = stream.end_capture()
        recording.replay(stream)
        stream.record().seconds()
        download(stream, x, 4)
        stream.launch(kernel, Dim3(1), (x,), block("II", 4, 1))
        opened.close()
        return opened

    keeper = backend.open(backend.list_devices()[0])
    before = count_objects(keeper)
    use_a_device()
    assert count_objects(keeper) == before
    keeper.close()


def test_the_cache_of_bind_groups_is_bounded(
    own_device: WebgpuDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treadle.drivers.webgpu_rules.memory.MOST_GROUPS", 10)
    stream, kernel = own_device.default_stream, own_device.compile(INCREMENT)
    buffers = [upload(stream, np.zeros(4, np.uint32)) for _ in range(25)]
    for _ in range(2):
        for buffer in buffers:
            stream.launch(kernel, Dim3(1), (buffer,), block("II", 4, 1))
    assert own_device.bind_groups.count <= 10
    for buffer in buffers:
        assert list(download(stream, buffer, 4)) == [2] * 4


def test_a_loop_that_never_reads_does_not_grow(own_device: WebgpuDevice) -> None:
    stream, kernel = own_device.default_stream, own_device.compile(INCREMENT)
    x = upload(stream, np.zeros(1, np.uint32))
    parameters = block("II", 1, 1)

    def launch(count: int) -> None:
        for _ in range(count):
            stream.launch(kernel, Dim3(1), (x,), parameters)

    launch(3000)
    before, buffers = count_objects(own_device), count_buffers(own_device)
    memory = resident_bytes()
    launch(10000)
    # Each batch in flight has a staging buffer; there are 50 batches here.
    assert count_buffers(own_device) - buffers <= MAX_IN_FLIGHT
    assert count_objects(own_device).get("commandBuffers") == before.get("commandBuffers")
    assert resident_bytes() - memory < 32 << 20
    assert download(stream, x, 1)[0] == 13000


def resident_bytes() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0  # the object counts alone must do
