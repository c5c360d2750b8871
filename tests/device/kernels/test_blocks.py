"""What threads of a block do together: shared memory, barriers, atomics, subgroups."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

BLOCK = 128


@td.kernel
def block_sums(x: td.Array[td.f32], out: td.Array[td.f32]):
    part = td.shared(BLOCK, td.f32)
    t = td.thread_idx.x
    part[t] = x[td.grid(1)]
    td.sync_threads()
    step = BLOCK // 2
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        td.sync_threads()
        step //= 2
    if t == 0:
        out[td.block_idx.x] = part[0]


@pytest.mark.parametrize("n", [1, 127, 128, 129, 5000])
def test_tree_reduction(device, rng, n):
    x = rng.standard_normal(n).astype(np.float32)
    blocks = -(-n // BLOCK)
    out = td.full(blocks, float("nan"))
    block_sums[blocks, BLOCK](td.asarray(x), out)
    padded = np.zeros(blocks * BLOCK)
    padded[:n] = x
    np.testing.assert_allclose(out.numpy(), padded.reshape(-1, BLOCK).sum(1), rtol=1e-5, atol=1e-5)


@td.kernel
def early_return(x: td.Array[td.i32], out: td.Array[td.i32], n: td.i32):
    part = td.shared(64, td.i32)
    i = td.grid(1)
    part[td.thread_idx.x] = 0
    if i >= n:
        return
    part[td.thread_idx.x] = x[i]
    td.sync_threads()
    out[i] = part[63 - td.thread_idx.x]


def test_return_before_a_barrier(device):
    x = td.arange(100, dtype=td.i32)
    out = td.full(128, -1, dtype=td.i32)
    early_return[2, 64](x, out, 100)
    part = np.zeros(128, int)
    part[:100] = np.arange(100)
    expected = part.reshape(2, 64)[:, ::-1].reshape(-1).copy()
    expected[100:] = -1
    np.testing.assert_array_equal(out.numpy(), expected)


def test_a_second_return_on_what_only_some_threads_still_know(device):
    @td.kernel
    def run(x: td.Array[td.i32], out: td.Array[td.i32], s: td.i32):
        part = td.shared(64, td.i32)
        t = td.thread_idx.x
        part[t] = x[t]
        v = x[t]
        if v > 40:
            return
        v = 0  # from here on the same for all, but threads that returned do not come here
        td.sync_threads()
        if v < s:
            return
        td.sync_threads()
        out[t] = part[63 - t]

    x = td.arange(64, dtype=td.i32)
    out = td.full(64, -1, dtype=td.i32)
    run[1, 64](x, out, 1)
    assert (out.numpy() == -1).all()
    run[1, 64](x, out, 0)
    i = np.arange(64)
    np.testing.assert_array_equal(out.numpy(), np.where(i > 40, -1, 63 - i))


@td.kernel
def transpose(x: td.Array[td.f32, 2], out: td.Array[td.f32, 2]):
    tile = td.shared((16, 17), td.f32)
    i, j = td.grid(2)
    tile[td.thread_idx.y, td.thread_idx.x] = x[i, j]
    td.sync_threads()
    row = td.block_idx.x * 16 + td.thread_idx.y
    column = td.block_idx.y * 16 + td.thread_idx.x
    out[row, column] = tile[td.thread_idx.x, td.thread_idx.y]


@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (17, 31), (64, 33)])
def test_transpose_through_a_tile(device, rng, shape):
    x = rng.standard_normal(shape).astype(np.float32)
    out = td.zeros(shape[::-1])
    grid = (-(-shape[1] // 16), -(-shape[0] // 16))
    transpose[grid, (16, 16)](td.asarray(x), out)
    np.testing.assert_array_equal(out.numpy(), x.T)


@td.kernel
def tiled_matmul(a: td.Array[td.f32, 2], b: td.Array[td.f32, 2], c: td.Array[td.f32, 2]):
    left = td.shared((16, 16), td.f32)
    right = td.shared((16, 16), td.f32)
    i, j = td.grid(2)
    ty = td.thread_idx.y
    tx = td.thread_idx.x
    total = 0.0
    for k in range(0, a.shape[1], 16):
        left[ty, tx] = a[i, k + tx]
        right[ty, tx] = b[k + ty, j]
        td.sync_threads()
        for m in range(16):
            total += left[ty, m] * right[m, tx]
        td.sync_threads()
    c[i, j] = total


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (16, 16, 16), (33, 47, 20)])
def test_tiled_matmul(device, rng, m, k, n):
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    c = td.full((m, n), float("nan"))
    tiled_matmul[(-(-n // 16), -(-m // 16)), (16, 16)](td.asarray(a), td.asarray(b), c)
    exact = a.astype(np.float64) @ b
    assert np.linalg.norm(c.numpy() - exact) <= 1e-6 * np.linalg.norm(exact)


@td.kernel
def reverse_dynamic(x: td.Array[td.f32]):
    part = td.shared(None, td.f32)
    t = td.thread_idx.x
    part[t] = x[t]
    td.sync_threads()
    x[t] = part[td.block_dim.x - 1 - t]


@pytest.mark.parametrize("n", [5, 64, 100])
def test_dynamic_shared_memory(device, n):
    x = td.arange(n, dtype=td.f32)
    reverse_dynamic[1, n, 4 * n](x)
    np.testing.assert_array_equal(x.numpy(), np.arange(n)[::-1])


def test_too_much_shared_memory_is_refused(device):
    with pytest.raises(td.errors.TreadleError, match="shared"):
        reverse_dynamic[1, 4, 1 << 24](td.zeros(4))
    x = td.arange(4, dtype=td.f32)
    reverse_dynamic[1, 4, 16](x)
    assert x.tolist() == [3, 2, 1, 0]


@td.kernel
def scan_block(x: td.Array[td.i32], out: td.Array[td.i32]):
    """Hillis and Steele's inclusive scan of one block."""
    part = td.shared(2 * 256, td.i32)
    t = td.thread_idx.x
    n = td.block_dim.x
    side = 0
    part[t] = x[t]
    td.sync_threads()
    step = 1
    while step < n:
        value = part[side * n + t]
        if t >= step:
            value += part[side * n + t - step]
        part[(1 - side) * n + t] = value
        side = 1 - side
        td.sync_threads()
        step *= 2
    out[t] = part[side * n + t]


@pytest.mark.parametrize("n", [1, 7, 64, 200, 256])
def test_scan(device, rng, n):
    x = rng.integers(-1000, 1000, n).astype(np.int32)
    out = td.zeros(n, dtype=td.i32)
    scan_block[1, n](td.asarray(x), out)
    np.testing.assert_array_equal(out.numpy(), np.cumsum(x))


def test_a_divergent_barrier_is_refused(device):
    @td.kernel
    def divergent(x: td.Array[td.f32]):
        if td.thread_idx.x < 3:
            td.sync_threads()
        x[0] = 1.0

    with pytest.raises(td.errors.CompileError, match="sync_threads") as caught:
        divergent[1, 64](td.zeros(4))
    assert caught.value.line > 0


# --- atomics -------------------------------------------------------------------------------------

_INTEGER_ATOMICS = {
    "add": lambda values: values.sum(),
    "sub": lambda values: -values.sum(),
    "min": lambda values: min(0, values.min()),
    "max": lambda values: max(0, values.max()),
    "or": lambda values: np.bitwise_or.reduce(values),
    "xor": lambda values: np.bitwise_xor.reduce(values),
}


@pytest.mark.parametrize("op", _INTEGER_ATOMICS)
@pytest.mark.parametrize("dtype", [td.i32, td.u32])
def test_integer_atomics(device, rng, op, dtype):
    atomic = getattr(td, f"atomic_{op}")

    @td.kernel
    def combine(x: td.Array[dtype], out: td.Array[dtype]):
        i = td.grid(1)
        if i < x.size:
            atomic(out, 0, x[i])

    x = rng.integers(0 if dtype is td.u32 else -1000, 1000, 777).astype(dtype.numpy)
    out = td.zeros(1, dtype=dtype)
    combine[13, 64](td.asarray(x), out)
    expected = np.asarray(_INTEGER_ATOMICS[op](x.astype(np.int64))).astype(dtype.numpy)
    assert out.numpy()[0] == expected


def test_atomic_and(device, rng):
    @td.kernel
    def combine(x: td.Array[td.u32], out: td.Array[td.u32]):
        i = td.grid(1)
        if i < x.size:
            td.atomic_and(out, 0, x[i])

    x = rng.integers(0, 1 << 32, 20, dtype=np.uint64).astype(np.uint32) | np.uint32(0x10101)
    out = td.full(1, 0xFFFFFFFF, dtype=td.u32)
    combine[1, 32](td.asarray(x), out)
    assert out.numpy()[0] == np.bitwise_and.reduce(x)


def test_atomic_add_returns_the_old_value(device):
    @td.kernel
    def tickets(counter: td.Array[td.i32], out: td.Array[td.i32]):
        out[td.grid(1)] = td.atomic_add(counter, 0, 1)

    counter, out = td.zeros(1, dtype=td.i32), td.zeros(1000, dtype=td.i32)
    tickets[10, 100](counter, out)
    np.testing.assert_array_equal(np.sort(out.numpy()), np.arange(1000))
    assert counter.item() == 1000


def test_float_atomics(device):
    @td.kernel
    def combine(out: td.Array[td.f32]):
        i = td.grid(1)
        value = td.f32(i % 17) - 8.0
        td.atomic_add(out, 0, value)
        td.atomic_min(out, 1, value)
        td.atomic_max(out, 2, value)

    out = td.zeros(3)
    combine[17, 16](out)
    assert out.tolist() == [0.0, -8.0, 8.0]


def test_exchange_and_compare(device):
    @td.kernel
    def swap(lock: td.Array[td.i32], wins: td.Array[td.i32]):
        i = td.grid(1)
        if td.atomic_cas(lock, 0, 0, i + 1) == 0:
            td.atomic_add(wins, 0, 1)
        td.atomic_exchange(lock, 1, 5)

    lock, wins = td.zeros(2, dtype=td.i32), td.zeros(1, dtype=td.i32)
    swap[4, 64](lock, wins)
    assert wins.item() == 1
    assert lock.numpy()[0] > 0
    assert lock.numpy()[1] == 5


def test_shared_histogram_with_tuple_index(device, rng):
    @td.kernel
    def histogram(x: td.Array[td.i32], out: td.Array[td.i32, 2]):
        local = td.shared((4, 8), td.i32)
        t = td.thread_idx.x
        if t < 32:
            local[t // 8, t % 8] = 0
        td.sync_threads()
        i = td.grid(1)
        if i < x.size:
            td.atomic_add(local, (x[i] // 8, x[i] % 8), 1)
        td.sync_threads()
        if t < 32:
            td.atomic_add(out, (t // 8, t % 8), local[t // 8, t % 8])

    x = rng.integers(0, 32, 1000).astype(np.int32)
    out = td.zeros((4, 8), dtype=td.i32)
    histogram[16, 64](td.asarray(x), out)
    np.testing.assert_array_equal(out.numpy().ravel(), np.bincount(x, minlength=32))


# --- subgroups -----------------------------------------------------------------------------------


def test_lane_and_size(device):
    @td.kernel
    def tell(lanes: td.Array[td.i32], sizes: td.Array[td.i32]):
        i = td.grid(1)
        lanes[i] = td.lane()
        sizes[i] = td.subgroup_size()

    lanes, sizes = td.zeros(128, dtype=td.i32), td.zeros(128, dtype=td.i32)
    tell[1, 128](lanes, sizes)
    size = sizes.numpy()[0]
    assert (sizes.numpy() == size).all()
    np.testing.assert_array_equal(lanes.numpy(), np.arange(128) % size)


def test_shuffles(device, rng):
    @td.kernel
    def exchange(x: td.Array[td.f32], out: td.Array[td.f32, 2], size: td.Array[td.i32]):
        i = td.grid(1)
        v = x[i]
        out[0, i] = td.shuffle(v, 3)
        out[1, i] = td.shuffle_up(v, 1)
        out[2, i] = td.shuffle_down(v, 1)
        out[3, i] = td.shuffle_xor(v, 1)
        size[0] = td.subgroup_size()

    x = rng.standard_normal(128).astype(np.float32)
    out, size = td.zeros((4, 128)), td.zeros(1, dtype=td.i32)
    exchange[1, 128](td.asarray(x), out, size)
    warps = x.reshape(-1, size.item())
    up, down = warps.copy(), warps.copy()
    up[:, 1:], down[:, :-1] = warps[:, :-1], warps[:, 1:]
    found = out.numpy().reshape(4, *warps.shape)
    np.testing.assert_array_equal(found[0], np.broadcast_to(warps[:, 3:4], warps.shape))
    np.testing.assert_array_equal(found[1][:, 1:], up[:, 1:])
    np.testing.assert_array_equal(found[2][:, :-1], down[:, :-1])
    swapped = warps.reshape(len(warps), -1, 2)[:, :, ::-1].reshape(warps.shape)
    np.testing.assert_array_equal(found[3], swapped)


def test_votes_and_sums(device, rng):
    @td.kernel
    def gather(x: td.Array[td.i32], out: td.Array[td.i32, 2], size: td.Array[td.i32]):
        i = td.grid(1)
        out[0, i] = td.i32(td.vote_all(x[i] > 2))
        out[1, i] = td.i32(td.vote_any(x[i] > 97))
        out[2, i] = td.i32(td.ballot(x[i] > 50))
        out[3, i] = td.subgroup_sum(x[i])
        out[4, i] = td.subgroup_min(x[i])
        out[5, i] = td.subgroup_max(x[i])
        out[6, i] = td.subgroup_prefix_sum(x[i])
        size[0] = td.subgroup_size()

    x = rng.integers(0, 100, 128).astype(np.int32)
    out, size = td.zeros((7, 128), dtype=td.i32), td.zeros(1, dtype=td.i32)
    gather[1, 128](td.asarray(x), out, size)
    warps = x.reshape(-1, size.item())
    bits = (warps > 50) @ (1 << np.arange(warps.shape[1], dtype=np.int64))
    expected = [
        (warps > 2).all(1), (warps > 97).any(1), bits.astype(np.uint32).astype(np.int32),
        warps.sum(1), warps.min(1), warps.max(1),
    ]  # fmt: skip
    found = out.numpy().reshape(7, *warps.shape)
    for row, values in zip(found, expected, strict=False):
        np.testing.assert_array_equal(row, np.broadcast_to(values[:, None], warps.shape))
    np.testing.assert_array_equal(found[6], np.cumsum(warps, axis=1) - warps)


def test_warp_reduction_under_a_uniform_if(device, rng):
    """The usual block reduction: warps reduce, then the first warp reduces their sums."""

    @td.kernel
    def block_sum(x: td.Array[td.f32], out: td.Array[td.f32]):
        sums = td.shared(256, td.f32)
        t = td.thread_idx.x
        size = td.subgroup_size()
        v = td.subgroup_sum(x[td.grid(1)])
        if t % size == 0:
            sums[t // size] = v
        td.sync_threads()
        count = td.block_dim.x // size
        if t // size == 0:
            w = 0.0
            for k in range(td.lane(), count, size):
                w += sums[k]
            w = td.subgroup_sum(w)
            if t == 0:
                out[td.block_idx.x] = w

    x = rng.standard_normal(1024).astype(np.float32)
    out = td.zeros(4)
    block_sum[4, 256](td.asarray(x), out)
    expected = x.astype(np.float64).reshape(4, 256).sum(1)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("block", [(8, 4), (4, 4, 4), (1, 32), (16, 8)])
def test_subgroups_of_a_block_with_several_axes(device, rng, block):
    """Lanes follow each other with x fastest, whatever the block's shape."""

    @td.kernel
    def gather(x: td.Array[td.f32], out: td.Array[td.f32, 2], size: td.Array[td.i32]):
        t = td.thread_idx.x + td.block_dim.x * (td.thread_idx.y + td.block_dim.y * td.thread_idx.z)
        out[0, t] = td.shuffle(x[t], 1)
        out[1, t] = td.f32(td.lane())
        out[2, t] = td.subgroup_sum(x[t])
        size[0] = td.subgroup_size()

    threads = int(np.prod(block))
    x = rng.integers(-100, 100, threads).astype(np.float32)
    out, size = td.zeros((3, threads)), td.zeros(1, dtype=td.i32)
    gather[1, block](td.asarray(x), out, size)
    warps = x.reshape(-1, size.item())
    found = out.numpy().reshape(3, *warps.shape)
    np.testing.assert_array_equal(found[0], np.broadcast_to(warps[:, 1:2], warps.shape))
    np.testing.assert_array_equal(found[1], np.indices(warps.shape)[1])
    np.testing.assert_array_equal(found[2], np.broadcast_to(warps.sum(1)[:, None], warps.shape))


@td.kernel
def shared_bools(out: td.Array[td.bool], last: td.Array[td.bool]):
    t = td.thread_idx.x
    i = td.grid(1)
    part = td.shared(33, td.bool)
    part[t] = False
    part[t] = t - 3 == 3 % i
    td.sync_threads()
    last[i] = part[6]
    value = (t != 2) ^ part[6]
    value = value ^ ((t == t) != (td.u8(32) >= td.u8(0)))
    td.sync_threads()
    out[i] = value


@td.kernel
def chained_bools(out: td.Array[td.bool], given: td.Array[td.bool]):
    i = td.grid(1)
    value = (i != 2) ^ given[i]
    out[i] = value ^ ((i == i) != (td.u8(32) >= td.u8(0)))


def test_bools_in_shared_memory(device):
    """Drawn once: webgpu on an H100 gave the opposite of `out` when these were WGSL's bools."""
    out, last = td.zeros(64, dtype=td.bool), td.zeros(64, dtype=td.bool)
    shared_bools[2, 32](out, last)
    assert last.tolist() == [True] * 64  # for t = 6, both 3 % i and t - 3 are 3
    np.testing.assert_array_equal(out.numpy(), np.arange(64) % 32 == 2)


def test_chains_of_bools(device):
    given = np.arange(64) % 3 == 0
    out = td.zeros(64, dtype=td.bool)
    chained_bools[2, 32](out, td.asarray(given))
    np.testing.assert_array_equal(out.numpy(), (np.arange(64) != 2) ^ given)
