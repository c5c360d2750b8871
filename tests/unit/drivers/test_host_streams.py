"""What streams of both drivers for the CPU check of the buffers that they copy."""

from __future__ import annotations

import pytest

from treadle.core.errors import DeviceLost, LaunchError
from treadle.drivers import cpu, cpu_numpy


@pytest.fixture(params=[cpu.backend, cpu_numpy.numpy_backend])
def device(request):
    opened = request.param()
    device = opened.open(opened.list_devices()[0])
    yield device
    device.close()


def _attempts(stream, buffer, offset):
    """Each copy, of 8 bytes from an offset on."""
    other = stream.device.allocate(16)
    yield lambda: stream.write(buffer, offset, memoryview(bytes(8)))
    yield lambda: stream.copy(other, 0, buffer, offset, 8)
    yield lambda: stream.copy(buffer, offset, other, 0, 8)
    yield lambda: stream.fill_zero(buffer, offset, 8)


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("offset", [-8, 9, 1 << 40])
def test_bytes_outside_a_buffer(device, offset, captured):
    stream, buffer = device.create_stream(), device.allocate(16)
    with pytest.raises(LaunchError, match="are not in the buffer"):
        stream.read(buffer, offset, memoryview(bytearray(8)))
    if captured:
        stream.begin_capture()
    for attempt in _attempts(stream, buffer, offset):
        with pytest.raises(LaunchError, match=f"bytes {offset} to {offset + 8} are not in the"):
            attempt()


@pytest.mark.parametrize("captured", [False, True])
def test_buffers_that_were_freed(device, captured):
    stream, buffer = device.create_stream(), device.allocate(16)
    if captured:
        stream.begin_capture()
    attempts = list(_attempts(stream, buffer, 0))
    device.free(buffer)
    for attempt in attempts:
        with pytest.raises(DeviceLost, match="freed"):
            attempt()


def test_copies_of_a_part(device):
    stream, left, right = device.default_stream, device.allocate(16), device.allocate(16)
    stream.write(left, 0, memoryview(bytes(range(16))))
    stream.fill_zero(right, 0, 16)
    stream.copy(left, 3, right, 5, 4)
    stream.fill_zero(right, 6, 1)
    found = bytearray(8)
    stream.read(right, 4, memoryview(found))
    assert list(found) == [0, 3, 0, 5, 6, 0, 0, 0]
