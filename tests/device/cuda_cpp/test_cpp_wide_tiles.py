"""Tiles of several warps in cooperative groups of CUDA C++."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

WIDE = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

template <unsigned int Size>
__global__ void wide(const int *values, int *out)
{
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<Size>(block);
    int t = block.thread_rank(), n = block.size(), v = values[t];
    out[t] = cg::reduce(tile, v, cg::plus<int>());
    out[n + t] = cg::reduce(tile, v, cg::greater<int>());
    out[2 * n + t] = cg::inclusive_scan(tile, v);
    out[3 * n + t] = cg::exclusive_scan(tile, v, cg::plus<int>());
    out[4 * n + t] = tile.shfl(v, Size - 2) + 1000 * tile.any(v == 7) + 2000 * tile.all(v < 90);
    out[5 * n + t] = 100 * tile.meta_group_rank() + 10 * tile.meta_group_size();
    if (tile.meta_group_rank() == 1)           // the others wait nowhere
        out[5 * n + t] += cg::reduce(tile, 1, cg::plus<int>()) % 10;
    out[6 * n + t] = cg::reduce(tile, make_float2(v, 1), [](float2 a, float2 b) {
        return make_float2(a.x + b.x, a.y + b.y);
    }).y;
}
"""


@pytest.mark.parametrize("size", [64, 128])
def test_tiles_of_several_warps(device, size):
    n = 256
    v = np.random.default_rng(size).integers(0, 100, n).astype(np.int32)
    out = td.zeros((7, n), dtype=td.int32, device=device)
    td.cuda_module(WIDE).kernel("wide", size)[1, n](td.asarray(v, device=device), out)
    tiles = v.reshape(-1, size)
    found = out.numpy().reshape(7, -1, size)
    sums = tiles.cumsum(1)
    assert (found[0] == tiles.sum(1)[:, None]).all()
    assert (found[1] == tiles.max(1)[:, None]).all()
    assert (found[2] == sums).all()
    assert (found[3] == sums - tiles).all()
    votes = 1000 * (tiles == 7).any(1) + 2000 * (tiles < 90).all(1)
    assert (found[4] == (tiles[:, -2] + votes)[:, None]).all()
    ranks = 100 * np.arange(n // size) + 10 * (n // size)
    ranks[1] += size % 10
    assert (found[5] == ranks[:, None]).all()
    assert (found[6] == size).all()
