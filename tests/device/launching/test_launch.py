"""Launching: grids, blocks, arguments, what is refused, and that the next launch still works."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import treadle as td


@td.kernel
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@td.kernel
def number_threads(out: td.Array[td.i32]):
    i = td.grid(1)
    out[i] = i


@td.kernel
def number_grid(out: td.Array[td.i32, 3]):
    i, j, k = td.grid(3)
    out[i, j, k] = i * 10000 + j * 100 + k


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 127, 1000, 4099])
def test_saxpy(device, rng, n):
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    ours = td.asarray(y)
    saxpy[-(-n // 64), 64](2.5, td.asarray(x), ours)
    np.testing.assert_allclose(ours.numpy(), np.float32(2.5) * x + y, rtol=1e-6, atol=1e-6)


def test_numpy_arrays_are_copied_in_and_back(device, rng):
    x, y = rng.standard_normal((2, 100)).astype(np.float32)
    expected = 3 * x + y
    saxpy[2, 64](3.0, x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "block", [1, 7, 32, 33, 64, 256, 512, 1024, (8, 4), (4, 3, 2), (1, 1, 64), (1, 5), (1, 3, 4)]
)
def test_every_thread_runs_once(device, block):
    @td.kernel
    def count(hits: td.Array[td.i32, 2]):
        b = td.block_idx.x + td.grid_dim.x * (td.block_idx.y + td.grid_dim.y * td.block_idx.z)
        t = td.thread_idx.x + td.block_dim.x * (td.thread_idx.y + td.block_dim.y * td.thread_idx.z)
        hits[b, t] += 1

    threads = int(np.prod(block))
    hits = td.zeros((12, threads), dtype=td.i32)
    count[(2, 3, 2), block](hits)
    assert (hits.numpy() == 1).all()


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 5003])
def test_launch_runs_exactly_that_many(device, n):
    out = td.full(n + 100, -1, dtype=td.i32)
    number_threads.launch(n, out)
    expected = np.concatenate([np.arange(n), np.full(100, -1)])
    np.testing.assert_array_equal(out.numpy(), expected)


def test_launch_in_array_order(device):
    out = td.full((3, 5, 7), -1, dtype=td.i32)
    number_grid.launch((3, 4, 6), out)
    i, j, k = np.indices((3, 5, 7))
    inside = (j < 4) & (k < 6)
    np.testing.assert_array_equal(out.numpy(), np.where(inside, i * 10000 + j * 100 + k, -1))


def test_a_launch_of_nothing_does_nothing(device):
    out = td.full(4, 7, dtype=td.i32)
    number_threads.launch(0, out)
    empty = td.zeros(0, dtype=td.i32)
    number_threads[0, 64](empty)
    number_threads[1, 64](empty)
    number_threads.launch(8, empty)
    assert out.tolist() == [7, 7, 7, 7]
    assert empty.numpy().shape == (0,)


def test_an_empty_array_beside_a_full_one(device):
    x, y = td.zeros(0), td.ones(5)
    saxpy[1, 32](2.0, x, y)
    assert y.tolist() == [1.0] * 5


def test_a_grid_over_65535_is_folded(device):
    n = 70_001
    out = td.zeros(n, dtype=td.i32)
    number_threads[n, 1](out)
    np.testing.assert_array_equal(out.numpy(), np.arange(n))


def test_a_folded_grid_has_its_three_parts(device):
    @td.kernel
    def mark(out: td.Array[td.i32]):
        if td.thread_idx.x == 0:
            out[td.block_idx.x + td.grid_dim.x * td.block_idx.y] = td.block_idx.y + td.grid_dim.y

    out = td.zeros(66_000 * 2, dtype=td.i32)
    mark[(66_000, 2), 1](out)
    np.testing.assert_array_equal(out.numpy(), np.repeat([2, 3], 66_000))


def test_the_same_array_twice(device):
    x = td.arange(100, dtype=td.f32)
    saxpy[2, 64](2.0, x, x)
    np.testing.assert_array_equal(x.numpy(), 3 * np.arange(100, dtype=np.float32))


def test_overlapping_views_of_one_array(device):
    x = td.arange(100, dtype=td.f32)
    saxpy[1, 32](1.0, x[50:82], x[10:42])
    expected = np.arange(100, dtype=np.float32)
    expected[10:42] += np.arange(50, 82)
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("cut", [slice(3, 90), slice(None, None, 3), slice(80, 10, -2)])
def test_views(device, rng, cut):
    data = rng.standard_normal(100).astype(np.float32)
    x = td.asarray(data)
    y = td.zeros(x[cut].shape)
    saxpy[2, 64](2.0, x[cut], y)
    np.testing.assert_array_equal(y.numpy(), 2 * data[cut])
    saxpy[2, 64](1.0, y, x[cut])
    data[cut] += 2 * data[cut]
    np.testing.assert_allclose(x.numpy(), data, rtol=1e-6)


def test_results_chain_without_reads(device):
    x, y = td.ones(10), td.zeros(10)
    for _ in range(2000):
        saxpy[1, 32](1.0, x, y)
    assert y.tolist() == [2000.0] * 10


def test_a_scalar_of_any_number_type(device):
    y = td.zeros(1)
    for a in (2, 2.0, True, np.float32(2), np.int8(2), np.float64(2)):
        saxpy[1, 1](a, td.ones(1), y)
    assert y.tolist() == [11.0]


@td.kernel(block=0)
def no_block(x: td.Array[td.f32]):
    x[0] = 1.0


REFUSED = {
    "block of none": (lambda x: no_block.launch(4, x), td.errors.LaunchError, "at least 1"),
    "negative bytes": (lambda x: saxpy[1, 4, -4](1.0, x, x), td.errors.LaunchError, "from 0 on"),
    "half bytes": (lambda x: saxpy[1, 4, 4.5](1.0, x, x), td.errors.LaunchError, "from 0 on"),
    "no stream": (lambda x: saxpy[1, 4, 0, "s"](1.0, x, x), td.errors.LaunchError, "a stream"),
    "threads of text": (
        lambda x: saxpy.launch("8", 1.0, x, x),
        td.errors.LaunchError,
        "launch takes",
    ),
    "four axes": (
        lambda x: saxpy.launch((1, 2, 3, 4), 1.0, x, x),
        td.errors.LaunchError,
        "three parts, not 4: (1, 2, 3, 4)",
    ),
    "count": (lambda x: saxpy[1, 1](1.0, x), td.errors.LaunchError, "takes 3 arguments"),
    "dtype": (
        lambda x: saxpy[1, 1](1.0, x, td.zeros(4, dtype=td.i32)),
        td.errors.DtypeError,
        "argument 3 (y)",
    ),
    "rank": (lambda x: saxpy[1, 1](1.0, x, td.zeros((2, 2))), td.errors.LaunchError, "shape"),
    "number": (lambda x: saxpy[1, 1](x, x, x), td.errors.DtypeError, "argument 1 (a)"),
    "array": (lambda x: saxpy[1, 1](1.0, 2.0, x), td.errors.DtypeError, "argument 2 (x)"),
    "text": (lambda x: saxpy[1, 1]("one", x, x), td.errors.DtypeError, "str"),
    "zero grid": (lambda x: saxpy[0, 64](1.0, x, x), td.errors.LaunchError, "at least 1"),
    "negative grid": (lambda x: saxpy[-1, 64](1.0, x, x), td.errors.LaunchError, "negative"),
    "zero block": (lambda x: saxpy[1, 0](1.0, x, x), td.errors.LaunchError, "at least 1"),
    "large block": (lambda x: saxpy[1, 1025](1.0, x, x), td.errors.LaunchError, "1025 threads"),
    "float into int": (
        lambda x: set_first[1, 1](2.5, td.zeros(1, dtype=td.i32)),
        td.errors.DtypeError,
        "argument 1 (value)",
    ),
    "too large": (
        lambda x: set_first[1, 1](1 << 40, td.zeros(1, dtype=td.i32)),
        td.errors.LaunchError,
        "does not fit",
    ),
}


@td.kernel
def set_first(value: td.i32, out: td.Array[td.i32]):
    out[0] = value


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_launch_is_refused_and_the_next_one_works(device, case):
    attempt, error, words = REFUSED[case]
    x = td.ones(4)
    with pytest.raises(error) as caught:
        attempt(x)
    assert words in str(caught.value)
    y = td.zeros(4)
    saxpy[1, 32](2.0, x, y)
    assert y.tolist() == [2.0] * 4


def test_arrays_on_two_devices_are_refused(device):
    other = "cpu" if device.backend != "cpu" else "webgpu"
    try:
        x = td.ones(4, device=other)
    except td.errors.DeviceNotFound:
        pytest.skip("only one device")
    with pytest.raises(td.errors.LaunchError, match=r"\.to\("):
        saxpy[1, 4](1.0, x, td.ones(4, device=device))


def test_many_launches_leave_memory_flat(device):
    x, y = td.ones(64), td.zeros(64)
    saxpy[1, 64](1.0, x, y)
    device.synchronize()
    gc.collect()
    before = device.memory_stats()
    for _ in range(5000):
        saxpy[1, 64](1.0, x, y)
    device.synchronize()
    after = device.memory_stats()
    assert after["used"] == before["used"]
    assert after["driver"]["allocated"] <= before["driver"]["allocated"] + (1 << 20)
