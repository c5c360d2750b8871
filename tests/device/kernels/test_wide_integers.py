"""64-bit integers in kernels of every device, those without any of their own among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from treadle.drivers.webgpu_native import WebgpuBackend
from treadle.runtime.devices import Device


@pytest.fixture
def without() -> Iterator[td.Device]:
    """WebGPU's device with 64-bit integers taken away."""
    try:
        found = td.device("webgpu")
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    device = Device(WebgpuBackend(), found.info, limits=found.limits)
    device._info = replace(
        device.info, features=device.features - {"int64", "int64_atomics", "float64"}
    )
    assert "int64" not in device.features
    with td.use_device(device):
        yield device


EDGES = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 1000, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1,
         1 << 32, (1 << 33) + 5, (1 << 53) + 1, (1 << 40) + (1 << 16), (1 << 40) + (1 << 16) + 1,
         (1 << 62) + 77, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2, (1 << 64) - 99,
         ]  # fmt: skip


def numbers(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    drawn = rng.integers(0, 1 << 64, 20, dtype=np.uint64) >> rng.integers(0, 64, 20, np.uint64)
    values = np.concatenate([np.array(EDGES, np.uint64), drawn])
    shifted = [np.roll(values, by) for by in (0, 1, 6, 17, 29)]
    return np.tile(values, len(shifted)), np.concatenate(shifted)


@td.kernel
def unsigned(a: td.Array[td.u64], b: td.Array[td.u64], out: td.Array[td.u64], n: td.u64):
    i = td.u64(td.block_idx.x) * td.u64(td.block_dim.x) + td.u64(td.thread_idx.x)
    if i < n:
        x = a[i]
        y = b[i]
        out[i * 16] = x + y
        out[i * 16 + 1] = x - y
        out[i * 16 + 2] = x * y
        out[i * 16 + 3] = x // y
        out[i * 16 + 4] = x % y
        out[i * 16 + 5] = (x & y) | (~x ^ y)
        out[i * 16 + 6] = x << (y % 64)
        out[i * 16 + 7] = x >> (y % 64)
        out[i * 16 + 8] = td.minimum(x, y)
        out[i * 16 + 9] = td.maximum(x, y)
        out[i * 16 + 10] = td.u64(x < y) + td.u64(x == y) * 2 + td.u64(x >= y) * 4
        out[i * 16 + 11] = td.u64(td.f32(x) * 0.5)
        out[i * 16 + 12] = td.u64(td.popcount(x)) + td.u64(td.clz(y)) * 100
        out[i * 16 + 13] = td.u64(td.u32(x)) + td.u64(td.i16(y))
        out[i * 16 + 14] = x // 1000 + x % 10
        out[i * 16 + 15] = y if x > 5000 else x


@td.kernel
def signed(a: td.Array[td.i64], b: td.Array[td.i64], out: td.Array[td.i64], size: td.i32):
    i = td.grid(1)
    if i < size:
        x = a[i]
        y = b[i]
        at = td.i64(i) * 10
        out[at] = x + y * 3
        out[at + 1] = -x - y
        out[at + 2] = x // y
        out[at + 3] = x % y
        out[at + 4] = x >> (y & 63)
        out[at + 5] = td.minimum(x, y) ^ td.maximum(y, 12)
        out[at + 6] = abs(x)
        out[at + 7] = td.i64(x < y) + td.i64(x <= 0) * 2
        out[at + 8] = td.i64(td.f32(x))
        out[at + 9] = td.i64(td.i32(x)) * 1000003


def check_unsigned(rng):
    a, b = numbers(rng)
    out = np.zeros((len(a), 16), np.uint64)
    unsigned[-(-len(a) // 64), 64](a, b, out.reshape(-1), len(a))
    b_or_one = np.where(b == 0, 1, b)
    with np.errstate(over="ignore", invalid="ignore"):
        half = a.astype(np.float32) * np.float32(0.5)
        columns = [
            a + b,
            a - b,
            a * b,
            np.where(b == 0, 0, a // b_or_one),
            np.where(b == 0, 0, a % b_or_one),
            (a & b) | (~a ^ b),
            a << (b % 64),
            a >> (b % 64),
            np.minimum(a, b),
            np.maximum(a, b),
            (a < b) + (a == b) * 2 + (a >= b) * 4,
            half.astype(np.uint64),
            np.bitwise_count(a) + np.array([64 - int(y).bit_length() for y in b]) * 100,
            (a & 0xFFFFFFFF) + b.astype(np.int16).astype(np.uint64),
            a // 1000 + a % 10,
            np.where(a > 5000, b, a),
        ]
    for number, wanted in enumerate(columns):
        np.testing.assert_array_equal(out[:, number], wanted.astype(np.uint64), f"{number}")


def check_signed(rng):
    a, b = (part.view(np.int64) for part in numbers(rng))
    out = np.zeros((len(a), 10), np.int64)
    signed[-(-len(a) // 32), 32](a, b, out.reshape(-1), len(a))
    wholes = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    with np.errstate(over="ignore", invalid="ignore"):
        single = a.astype(np.float32)
        back = np.where(single >= 2.0**63, np.iinfo(np.int64).max, single.astype(np.int64))
        columns = [
            a + b * 3,
            -a - b,
            [_wrapped(x // y if y else 0) for x, y in wholes],
            [x % y if y else 0 for x, y in wholes],
            a >> (b & 63),
            np.minimum(a, b) ^ np.maximum(b, 12),
            np.abs(a),
            (a < b) + (a <= 0) * 2,
            back,
            a.astype(np.int32).astype(np.int64) * 1000003,
        ]
    for number, wanted in enumerate(columns):
        np.testing.assert_array_equal(out[:, number], np.array(wanted, np.int64), f"{number}")


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def test_unsigned(device, rng):
    check_unsigned(rng)


def test_signed(device, rng):
    check_signed(rng)


def test_without_the_feature(without, rng):
    check_unsigned(rng)
    check_signed(rng)


@td.kernel
def loops(out: td.Array[td.u64], start: td.i64, stop: td.i64):
    part = td.shared(32, td.i64)
    t = td.thread_idx.x
    total = td.i64(0)
    for k in range(start + td.i64(t), stop, 7):
        if k % 5 == 3:
            continue
        total += k * k
    part[t] = total
    td.sync_threads()
    neighbour = td.shuffle_xor(part[t], 1)
    out[t] = td.u64(neighbour) ^ td.u64(part[31 - t])


def check_loops():
    out = np.zeros(32, np.uint64)
    start, stop = -(1 << 40), -(1 << 40) + 90
    loops[1, 32](out, start, stop)
    sums = [sum(k * k for k in range(start + t, stop, 7) if k % 5 != 3) for t in range(32)]
    wanted = [(sums[t ^ 1] ^ sums[31 - t]) % (1 << 64) for t in range(32)]
    assert out.tolist() == wanted


def test_loops_shared_memory_and_shuffles(device):
    check_loops()


def test_loops_without_the_feature(without):
    check_loops()


def test_atomics_are_refused_where_there_are_none(without):
    @td.kernel
    def add(x: td.Array[td.u64]):
        td.atomic_add(x, 0, td.u64(1))

    with pytest.raises(td.errors.UnsupportedOnTarget, match="atomics on u64"):
        add[2, 32](np.zeros(1, np.uint64))
