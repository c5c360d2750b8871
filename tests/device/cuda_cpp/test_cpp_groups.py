"""Cooperative groups of CUDA C++: blocks, tiles, parts of a warp, and the grid's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

SOURCE = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__device__ int sum_of(cg::thread_group group, int *space, int value)
{
    int rank = group.thread_rank();
    for (int half = group.size() / 2; half > 0; half /= 2) {
        space[rank] = value;
        group.sync();
        if (rank < half)
            value += space[rank + half];
        cg::sync(group);
    }
    return value;
}

__global__ void any_group(const int *values, int *out)
{
    __shared__ int space[64];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    int value = values[block.thread_rank()];
    int whole = sum_of(block, space, value);
    block.sync();
    int first = block.thread_rank() - tile.thread_rank();
    int part = sum_of(tile, space + first, value);
    cg::thread_group eight = cg::tiled_partition(block, 8);
    if (block.thread_rank() == 0)
        out[64] = whole;
    out[block.thread_rank()] = tile.thread_rank() == 0 ? part : (int)eight.thread_rank();
}

__global__ void tiles(const int *values, int *out)
{
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int i = threadIdx.x, n = blockDim.x;
    int value = values[i];
    out[i] = cg::reduce(tile, value, cg::plus<int>());
    out[n + i] = cg::reduce(tile, value, cg::greater<int>());
    out[2 * n + i] = tile.shfl_up(value, 1) + tile.shfl(value, 3);
    out[3 * n + i] = tile.ballot(value % 2);
    out[4 * n + i] = tile.meta_group_rank() * 100 + tile.any(value > 90) * 10 + tile.all(value > 9);
}

template <unsigned int Size> struct Sized {
    __device__ static int twice() { return 2 * size(); }
    __device__ static int size() { return Size; }
};

__global__ void sizes(const int *values, int *out)
{
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int i = threadIdx.x;
    int sum = cg::reduce(warp, values[i], cg::plus<int>());
    out[i] = sum * 100 + warp.size() + Sized<32>::twice();
    if (i < 8) {
        auto eight = cg::tiled_partition<8>(block);
        out[i] = cg::reduce(eight, values[i], cg::plus<int>()) * 100 + Sized<8>::twice();
        out[i] += eight.size() + cg::tiled_partition<4>(block).thread_rank();
    }
}

__global__ void parts(const int *values, int *sums, int *ranks, int *counts, int n)
{
    auto grid = cg::this_grid();
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int i = (int)grid.thread_rank();
    int value = values[i];
    auto odd = cg::binary_partition(warp, value % 2);
    sums[i] = cg::reduce(odd, value, cg::plus<int>());
    ranks[i] = odd.thread_rank() * 100 + odd.size();
    auto same = cg::labeled_partition(warp, value % 3);
    sums[n + i] = cg::reduce(same, value, cg::less<int>());
    ranks[n + i] = same.shfl(value, 0);
    if (value > 50) {
        auto active = cg::coalesced_threads();
        int start = 0;
        if (active.thread_rank() == 0)
            start = atomicAdd(counts, (int)active.size());
        start = active.shfl(start, 0);
        counts[1 + start + active.thread_rank()] = value;
    }
    if (i == 0)
        sums[2 * n] = (int)grid.size();
}
"""
VALUES = np.random.default_rng(3).integers(0, 100, 128).astype(np.int32)


def run(device, kernel, grid, block, *sizes, more=()):
    outputs = [td.zeros(size, dtype=td.int32, device=device) for size in sizes]
    values = td.asarray(VALUES, device=device)
    td.cuda_module(SOURCE).kernel(kernel)[grid, block](values, *outputs, *more)
    return [output.numpy() for output in outputs]


def test_a_function_takes_any_group(device):
    (out,) = run(device, "any_group", 1, 64, 65)
    expected = np.arange(64) % 8
    expected[::16] = VALUES[:64].reshape(-1, 16).sum(1)
    assert out.tolist() == [*expected, VALUES[:64].sum()]


def test_tiles(device):
    out = run(device, "tiles", 1, 96, 480)[0].reshape(5, 12, 8)
    tiles = VALUES[:96].reshape(12, 8)
    assert (out[0] == tiles.sum(1)[:, None]).all()
    assert (out[1] == tiles.max(1)[:, None]).all()
    before = np.concatenate([tiles[:, :1], tiles[:, :-1]], axis=1)
    assert (out[2] == before + tiles[:, 3:4]).all()
    assert (out[3] == ((tiles % 2) << np.arange(8)).sum(1)[:, None]).all()
    last = np.arange(12) * 100 + (tiles > 90).any(1) * 10 + (tiles > 9).all(1)
    assert (out[4] == last[:, None]).all()


def test_tiles_of_several_sizes(device):
    """Methods of one text, of which each instance has its own; and tiles where others are not."""
    (out,) = run(device, "sizes", 1, 64, 64)
    expected = VALUES[:64].reshape(2, 32).sum(1).repeat(32) * 100 + 96
    expected[:8] = VALUES[:8].sum() * 100 + 24 + np.arange(8) % 4
    assert out.tolist() == expected.tolist()


def test_parts_of_a_warp(device):
    n = 128
    sums, ranks, counts = run(device, "parts", 2, 64, 2 * n + 1, 2 * n, n + 1, more=(n,))
    for first in range(0, n, 32):
        warp = VALUES[first : first + 32]
        for i, value in enumerate(warp):
            odd = np.flatnonzero(warp % 2 == value % 2)
            same = warp[warp % 3 == value % 3]
            assert sums[first + i] == warp[odd].sum()
            assert ranks[first + i] == (odd < i).sum() * 100 + odd.size
            assert sums[n + first + i] == same.min()
            assert ranks[n + first + i] == same[0]
    kept = np.sort(VALUES[VALUES > 50])
    assert (sums[2 * n], counts[0]) == (n, kept.size)
    assert np.sort(counts[1 : 1 + kept.size]).tolist() == kept.tolist()


def test_arrivals_and_names_of_cuda_std(device):
    module = td.cuda_module("""
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    __global__ void reversed(const int *x, int *out)
    {
        __shared__ int s[64];
        cg::thread_block block = cg::this_thread_block();
        int i = cg::thread_rank(block), last = cg::group_size(block) - 1;
        s[i] = x[i];
        auto token = block.barrier_arrive();
        int most = cuda::std::numeric_limits<int>::max();
        block.barrier_wait(cuda::std::move(token));
        out[i] = cuda::std::min(s[last - i], most);
    }
    """)
    out = td.zeros(64, dtype=td.int32, device=device)
    module.reversed[1, 64](td.asarray(VALUES[:64], device=device), out)
    assert out.tolist() == VALUES[63::-1].tolist()


OTHERS = """
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

__global__ void others(const int *values, int *out)
{
    auto block = cg::this_thread_block();
    __shared__ int staged[64];
    cg::memcpy_async(block, staged, 64, values, 50);
    cg::wait(block);
    auto warp = cg::tiled_partition<32>(block);
    auto four = cg::tiled_partition<4>(warp);
    int t = block.thread_rank(), lane = warp.thread_rank();
    out[t] = t < 50 ? staged[t] : 0;
    out[64 + t] = 10 * four.meta_group_rank() + four.meta_group_size();
    if (lane % 3 == 0) {
        auto some = cg::coalesced_threads();
        auto pair = cg::tiled_partition(some, 2);
        out[64 + t] += 100 * pair.meta_group_rank() + 10000 * pair.size();
    }
    auto same = cg::labeled_partition(warp, (long long)(values[t] % 4));
    out[128 + t] = same.meta_group_rank() + 10 * same.meta_group_size();
    cg::invoke_one(same, [&] { out[128 + t] += 100; });
    out[192 + t] = cg::invoke_one_broadcast(warp, [](int a) { return a + 1; }, t);
    auto cluster = cg::this_cluster();
    cluster.sync();
    int *first = cluster.map_shared_rank(staged, 0);
    out[256 + t] = first[3] + cluster.num_blocks() + cluster.block_rank();
}
"""


def test_parts_of_parts(device):
    out = td.zeros((5, 64), dtype=td.int32, device=device)
    td.cuda_module(OTHERS).others[1, 64](td.asarray(VALUES, device=device), out)
    found, t = out.numpy(), np.arange(64)
    lane = t % 32
    assert (found[0] == np.where(t < 50, VALUES[:64], 0)).all()
    expected = 10 * (lane // 4) + 8
    rank = lane // 3
    pairs = 100 * (rank // 2) + 10000 * np.where(rank == 10, 1, 2)
    assert (found[1] == expected + np.where(lane % 3 == 0, pairs, 0)).all()
    for warp in range(2):
        labels = VALUES[warp * 32 :][:32] % 4
        order = list(dict.fromkeys(labels.tolist()))
        own = [order.index(one) + 10 * len(order) for one in labels]
        for k, label in enumerate(labels):
            own[k] += 100 * (labels.tolist().index(label) == k)
        assert found[2, warp * 32 :][:32].tolist() == own
    assert (found[3] == t // 32 * 32 + 1).all()
    assert (found[4] == VALUES[3] + 1).all()


def test_grids_of_several_devices_are_refused():
    module = td.cuda_module("""
        #include <cooperative_groups.h>
        __global__ void k(float *x) { cooperative_groups::this_multi_grid().sync(); x[0] = 1; }
    """)
    with pytest.raises(td.errors.CompileError, match="CUDA 13 has no grids of several devices"):
        module.k.source("ir")
