"""Functions of CUDA's warps of 32 threads: shuffles, votes, matches, reductions, with masks."""

from __future__ import annotations

import re

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError

FULL = 0xFFFFFFFF
LANES = np.arange(32)


def source_lane(op, lane, by, width):
    """Which lane CUDA reads: its own where there is none in reach."""
    first = lane // width * width
    if op == "":
        return first + by % width
    if op == "_up":
        return lane - by if lane - by >= first else lane
    if op == "_down":
        return lane + by if lane + by < first + width else lane
    return lane ^ by if lane ^ by < first + width else lane


CASES = [
    (op, width, by)
    for op in ("", "_up", "_down", "_xor")
    for width, by in ((32, 1), (16, 5), (4, 3))
]
SHUFFLES = td.cuda_module(
    "__global__ void shuffles(const int *x, int *out, int width, int by)\n{\n"
    "    int i = threadIdx.x, n = blockDim.x;\n    int v = x[i];\n"
    + "\n".join(
        f"    out[{k} * n + i] = __shfl{op}_sync(0xffffffff, v, {by}"
        + (f", {width});" if width != 32 else ");")
        for k, (op, width, by) in enumerate(CASES)
    )
    + "\n    out += "
    + str(len(CASES))
    + """ * n;
    out[i] = __shfl_sync(~0u, v, (threadIdx.x * 7 + 3) % 32);
    out[n + i] = __shfl_sync(0xffffffffu, v, i * 3, width);
    out[2 * n + i] = __shfl_down_sync(-1, v, by, width);
    out[3 * n + i] = __shfl_up_sync(0xffffffff, v, by, width);
    out[4 * n + i] = __shfl_xor_sync(0xffffffff, v, by, width);
    out[5 * n + i] = __shfl_sync(0xffffffff, v, -1);
    out[6 * n + i] = __shfl_sync(0xffffffff, v, 37);
}
"""
)


def test_shuffles_of_every_kind_and_width(device):
    n = 64
    x = np.random.default_rng(1).integers(-1000, 1000, n).astype(np.int32)
    given = td.asarray(x, device=device)
    for width, by in ((8, 3), (32, 9)):
        out = td.zeros((len(CASES) + 7, n), dtype=td.int32, device=device)
        SHUFFLES.shuffles[1, n](given, out, width, by)
        got = out.numpy()
        warps = x.reshape(2, 32)

        def read(lanes, warps=warps):
            return warps[:, np.array(lanes)].ravel()

        for row, (op, segment, step) in enumerate(CASES):
            right = read([source_lane(op, lane, step, segment) for lane in range(32)])
            np.testing.assert_array_equal(got[row], right, str(CASES[row]))
        rest = got[len(CASES) :]
        np.testing.assert_array_equal(rest[0], read((LANES * 7 + 3) % 32))
        by_threads = [source_lane("", lane, lane * 3, width) for lane in range(32)]
        odd = [source_lane("", lane, (lane + 32) * 3, width) for lane in range(32)]
        np.testing.assert_array_equal(rest[1][:32], warps[0][by_threads])
        np.testing.assert_array_equal(rest[1][32:], warps[1][odd])
        for row, op in ((2, "_down"), (3, "_up"), (4, "_xor")):
            right = read([source_lane(op, lane, by, width) for lane in range(32)])
            np.testing.assert_array_equal(rest[row], right, op)
        np.testing.assert_array_equal(rest[5], read([31] * 32))
        np.testing.assert_array_equal(rest[6], read([5] * 32))


TYPES = td.cuda_module("""
template <typename T> __global__ void of(const T *x, T *out)
{
    int i = threadIdx.x;
    T v = x[i];
    out[i] = __shfl_xor_sync(0xffffffff, v, 5);
    out[blockDim.x + i] = __shfl_down_sync(0xffffffff, v, 3, 8);
    out[2 * blockDim.x + i] = __shfl_sync(0xffffffff, v, i & 7);
    out[3 * blockDim.x + i] = __shfl_up_sync(0xffffffff, v, 1);
}

#include <cuda_fp16.h>
__global__ void halves(const half *x, half *out)
{
    int i = threadIdx.x;
    half2 pair = __halves2half2(x[i], x[i ^ 1]);
    pair = __shfl_xor_sync(0xffffffff, pair, 2);
    out[i] = __low2half(pair);
    out[32 + i] = __high2half(pair);
    half sum = x[i];
    for (int k = 16; k > 0; k /= 2)
        sum = __hadd(sum, __shfl_down_sync(0xffffffff, sum, k));
    out[64 + i] = __shfl_sync(0xffffffff, sum, 0);
}

__global__ void small(const short *x, int *out)
{
    int i = threadIdx.x;
    bool odd = x[i] & 1;
    out[i] = __shfl_xor_sync(0xffffffff, x[i], 1) + 100000 * __shfl_xor_sync(0xffffffff, odd, 1);
}
""")


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32", "int64", "uint64", "float64"])
def test_shuffles_of_every_type(device, dtype):
    wide = dtype.endswith("64")
    if dtype == "float64" and device.backend == "webgpu" and "float64" not in device.features:
        return
    cpp = {"int32": "int", "uint32": "unsigned", "float32": "float", "int64": "long long",
           "uint64": "unsigned long long", "float64": "double"}[dtype]  # fmt: skip
    rng = np.random.default_rng(2)
    x = rng.integers(0, 1 << (62 if wide else 30), 32)
    x = (x / 3 if dtype.startswith("float") else x).astype(dtype)
    out = np.zeros((4, 32), dtype)
    with td.use_device(device):
        TYPES.kernel("of", cpp)[1, 32](x, out)
    sources = [
        [source_lane(op, lane, by, width) for lane in range(32)]
        for op, by, width in (("_xor", 5, 32), ("_down", 3, 8))
    ] + [LANES & 7, np.maximum(LANES - 1, 0)]
    np.testing.assert_array_equal(out, [x[np.array(one)] for one in sources])


def test_shuffles_of_halves_and_small_integers(device):
    x = np.random.default_rng(3).integers(-8, 8, 32).astype(np.float16)
    out = np.zeros((3, 32), np.float16)
    with td.use_device(device):
        TYPES.halves[1, 32](x, out)
    np.testing.assert_array_equal(out, [x[LANES ^ 2], x[LANES ^ 3], np.full(32, x.sum())])
    shorts = np.arange(-16, 16, dtype=np.int16) * 1001
    sums = td.zeros(32, dtype=td.int32, device=device)
    TYPES.small[1, 32](td.asarray(shorts, device=device), sums)
    other = shorts[LANES ^ 1].astype(np.int32)
    np.testing.assert_array_equal(sums.numpy(), other + 100000 * (other & 1))


VOTES = td.cuda_module("""
__global__ void votes(const int *x, unsigned *out)
{
    int i = threadIdx.x + blockDim.x * threadIdx.y;
    int n = blockDim.x * blockDim.y;
    int v = x[i];
    const unsigned full = 0xffffffff;
    out[i] = __ballot_sync(full, v > 0);
    out[n + i] = __ballot_sync(0x0000ffff | 0xffff0000, v & 4);
    out[2 * n + i] = __any_sync(full, v == 7) + 2 * __all_sync(full, v > -50);
    out[3 * n + i] = __activemask();
}

__global__ void matches(const int *x, unsigned *out)
{
    int i = threadIdx.x + blockDim.x * threadIdx.y;
    int n = blockDim.x * blockDim.y;
    int v = x[i];
    const unsigned full = 0xffffffff;
    out[i] = __match_any_sync(full, v % 4);
    int same = 5;
    out[n + i] = __match_all_sync(full, v > -1000, &same);
    out[2 * n + i] = same;
    out[3 * n + i] = __match_all_sync(full, v, &same) + same;
    out[4 * n + i] = __match_any_sync(full, 0.5f * (v & 3));
}

__global__ void reductions(const int *x, unsigned *out)
{
    int i = threadIdx.x + blockDim.x * threadIdx.y;
    int n = blockDim.x * blockDim.y;
    int v = x[i];
    const unsigned full = 0xffffffff;
    out[i] = __reduce_add_sync(full, (unsigned)v);
    out[n + i] = __reduce_max_sync(full, v);
    out[2 * n + i] = __reduce_min_sync(full, v);
    out[3 * n + i] = __reduce_and_sync(full, v | 1);
    out[4 * n + i] = __reduce_or_sync(full, v) ^ __reduce_xor_sync(full, v);
}
""")


def mask_of(flags):
    return sum(1 << k for k, flag in enumerate(flags) if flag)


def voted(v, here):
    return [mask_of(v > 0), mask_of(v & 4), int((v == 7).any()) + 2 * int((v > -50).all()), here]


def matched(v, here):
    remainder = np.fmod(v, 4)
    return [
        [mask_of(remainder == r) for r in remainder], here, 1, 0,
        [mask_of((v & 3) == k) for k in v & 3],
    ]  # fmt: skip


def reduced(v, here):
    u = v.astype(np.uint32)
    some = np.bitwise_or.reduce(u) ^ np.bitwise_xor.reduce(u)
    extremes = [int(v.max()) & FULL, int(v.min()) & FULL]
    return [int(v.sum()) & FULL, *extremes, np.bitwise_and.reduce(u | np.uint32(1)), some]


@pytest.mark.parametrize("block", [(64, 1), (5, 7)])
@pytest.mark.parametrize(
    ("name", "right"), [("votes", voted), ("matches", matched), ("reductions", reduced)]
)
def test_votes_matches_and_reductions(device, name, right, block):
    n = block[0] * block[1]
    x = np.random.default_rng(4).integers(-40, 60, n).astype(np.int32)
    rows = len(right(x[:32], FULL))
    out = td.zeros((rows, n), dtype=td.uint32, device=device)
    VOTES.kernel(name)[1, block](td.asarray(x, device=device), out)
    for first in range(0, n, 32):
        v = x[first : first + 32]
        expected = right(v, (1 << len(v)) - 1)
        for row, values in zip(out.numpy(), expected, strict=True):
            np.testing.assert_array_equal(row[first : first + len(v)], values)


PATTERNS = td.cuda_module("""
#define FULL_MASK 0xffffffff

template <typename T> __inline__ __device__ T warpReduceSum(T val)
{
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        val += __shfl_down_sync(FULL_MASK, val, offset);
    return val;
}

__inline__ __device__ float blockReduceSum(float val)
{
    static __shared__ float shared[32];
    int lane = threadIdx.x % warpSize;
    int wid = threadIdx.x / warpSize;
    val = warpReduceSum(val);
    if (lane == 0)
        shared[wid] = val;
    __syncthreads();
    val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
    if (wid == 0)
        val = warpReduceSum(val);
    return val;
}

__global__ void sums(const float *x, float *out, int n)
{
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        sum += x[i];
    sum = blockReduceSum(sum);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

__device__ int warp_scan(int value, int lane)
{
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        int other = __shfl_up_sync(FULL_MASK, value, d);
        if (lane >= d)
            value += other;
    }
    return value;
}

__global__ void scan(const int *x, int *out, int *sorted)
{
    __shared__ int totals[32];
    int i = threadIdx.x, lane = i & 31, warp = i >> 5;
    int value = warp_scan(x[i], lane);
    if (lane == 31)
        totals[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int total = lane < (blockDim.x + 31) / 32 ? totals[lane] : 0;
        totals[lane] = warp_scan(total, lane);
    }
    __syncthreads();
    out[i] = value + (warp > 0 ? totals[warp - 1] : 0);

    int v = x[i];
    for (int k = 2; k <= 32; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int partner = __shfl_xor_sync(FULL_MASK, v, j);
            bool up = (lane & k) == 0, lower = (lane & j) == 0;
            v = (up == lower) ? min(v, partner) : max(v, partner);
        }
    sorted[i] = v;
}

__global__ void uniform_ifs(const float *x, float *out)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float best = x[threadIdx.x];
    int at = threadIdx.x;
    if (warp == 1) {
        for (int offset = 16; offset; offset >>= 1) {
            float other = __shfl_xor_sync(FULL_MASK, best, offset);
            int where = __shfl_xor_sync(FULL_MASK, at, offset);
            if (other > best || (other == best && where < at)) {
                best = other;
                at = where;
            }
        }
    } else if (__any_sync(FULL_MASK, x[threadIdx.x] > 0.5f)) {
        best = __popc(__ballot_sync(FULL_MASK, x[threadIdx.x] > 0.5f));
    }
    out[threadIdx.x] = best;
    out[blockDim.x + threadIdx.x] = at + 0 * lane;
}
""")


def test_reductions_as_people_write_them(device):
    x = np.random.default_rng(5).integers(-50, 50, 1000).astype(np.float32)
    out = td.zeros(3, device=device)
    PATTERNS.sums[3, 96](td.asarray(x, device=device), out, 1000)
    steps = np.arange(1000) // 96 % 3
    assert out.tolist() == [x[steps == k].sum() for k in range(3)]


def test_scans_and_bitonic_sorts(device):
    x = np.random.default_rng(6).integers(0, 1000, 96).astype(np.int32)
    out, ordered = (td.zeros(96, dtype=td.int32, device=device) for _ in range(2))
    PATTERNS.scan[1, 96](td.asarray(x, device=device), out, ordered)
    np.testing.assert_array_equal(out.numpy(), np.cumsum(x))
    np.testing.assert_array_equal(ordered.numpy(), np.sort(x.reshape(3, 32), axis=1).ravel())


def test_conditions_that_a_warp_shares(device):
    x = np.random.default_rng(7).random(96).astype(np.float32)
    x[40] = x[50] = 2
    x[64:] = 0.25
    out = td.zeros((2, 96), device=device)
    PATTERNS.uniform_ifs[1, 96](td.asarray(x, device=device), out)
    got = out.numpy()
    assert (got[0, :32] == (x[:32] > 0.5).sum()).all()
    assert (got[0, 32:64] == 2).all()
    assert (got[1, 32:64] == 40).all()
    np.testing.assert_array_equal(got[0, 64:], x[64:])


PARTED = td.cuda_module("""
#define FULL 0xffffffffu

__device__ int sum_of(unsigned mask, int v)
{
    for (int k = 8; k > 0; k /= 2)
        v += __shfl_down_sync(mask, v, k, 16);
    return v;
}

__global__ void sides(const int *x, int *out)
{
    int lane = threadIdx.x;
    int v = x[lane];
    if (lane < 16)
        v = sum_of(0x0000ffff, v);
    else
        v = __reduce_max_sync(0xffff0000, v);
    out[lane] = v;
    unsigned mask = __ballot_sync(FULL, lane % 3 == 0);
    int count = 0;
    if (lane % 3 == 0) {
        count = __popc(__ballot_sync(mask, x[lane] > 0));
        count += 100 * __shfl_sync(mask, x[lane], 3);
        count += 100000 * (__activemask() == mask);
        __syncwarp(mask);
    }
    out[32 + lane] = count;
}

__global__ void early(const int *x, int *out, int n)
{
    int i = threadIdx.x;
    unsigned mask = __ballot_sync(FULL, i < n);
    if (i >= n)
        return;
    int v = x[i];
    int total = __reduce_add_sync(mask, v);
    int low = __shfl_sync(mask, v, 0);
    out[i] = __any_sync(mask, v == 7) ? total : -total;
    out[32 + i] = low * __all_sync(mask, v > -100);
}

__global__ void aggregated(const int *keys, int *counters, int *places)
{
    int lane = threadIdx.x & 31;
    int key = keys[threadIdx.x];
    if (key >= 0) {
        unsigned peers = __match_any_sync(__activemask(), key);
        int leader = __ffs(peers) - 1;
        int base = 0;
        if (lane == leader)
            base = atomicAdd(&counters[key], __popc(peers));
        base = __shfl_sync(peers, base, leader);
        places[threadIdx.x] = base + __popc(peers & ((1u << lane) - 1));
    }
}

__global__ void loops(const int *x, int *out)
{
    int lane = threadIdx.x, v = x[lane] & 7, turns = 0, seen = 0;
    unsigned active = FULL;
    while (v > 0) {
        active = __activemask();
        seen += __popc(active);
        v--;
        turns++;
    }
    out[lane] = seen * 10 + turns;
    v = x[lane];
    int found = 1000;
    for (unsigned left = __ballot_sync(FULL, v & 1); left; left &= left - 1) {
        int other = __shfl_sync(FULL, v, __ffs(left) - 1);
        if (found == 1000 && other > v)
            found = other;
    }
    out[32 + lane] = found;
    switch (lane & 3) {
    case 0:
        out[64 + lane] = __popc(__ballot_sync(0x11111111, v > 0));
        break;
    case 1:
        out[64 + lane] = __shfl_xor_sync(0x22222222, v, 4);
        break;
    default:
        out[64 + lane] = 0;
    }
}
""")


def test_sides_of_a_condition(device):
    x = np.random.default_rng(8).integers(-40, 60, 32).astype(np.int32)
    out = td.zeros((2, 32), dtype=td.int32, device=device)
    PARTED.sides[1, 32](td.asarray(x, device=device), out)
    got = out.numpy()
    assert got[0, 0] == x[:16].sum()
    assert (got[0, 16:] == x[16:].max()).all()
    third = LANES % 3 == 0
    right = (x[third] > 0).sum() + 100 * x[3] + 100000
    np.testing.assert_array_equal(got[1], np.where(third, right, 0))


def test_after_an_early_return(device):
    x = np.random.default_rng(9).integers(-40, 60, 32).astype(np.int32)
    for seven, n in ((7, 21), (8, 32)):
        x[11] = seven
        x[x == 7] = 7 if seven == 7 else 6
        out = td.zeros((2, 32), dtype=td.int32, device=device)
        PARTED.early[1, 32](td.asarray(x, device=device), out, n)
        total = x[:n].sum() * (1 if seven == 7 else -1)
        np.testing.assert_array_equal(out.numpy()[0], np.where(n > LANES, total, 0))
        np.testing.assert_array_equal(out.numpy()[1], np.where(n > LANES, x[0], 0))


def test_aggregated_atomics(device):
    keys = np.random.default_rng(10).integers(-1, 4, 64).astype(np.int32)
    counters = td.zeros(4, dtype=td.int32, device=device)
    places = td.asarray(np.full(64, -1, np.int32), device=device)
    PARTED.aggregated[1, 64](td.asarray(keys, device=device), counters, places)
    assert counters.tolist() == [int((keys == k).sum()) for k in range(4)]
    got = places.numpy()
    assert (got[keys < 0] == -1).all()
    for k in range(4):
        assert sorted(got[keys == k].tolist()) == list(range((keys == k).sum()))


def test_loops_and_switches(device):
    x = np.random.default_rng(11).integers(-40, 60, 32).astype(np.int32)
    out = td.zeros((3, 32), dtype=td.int32, device=device)
    PARTED.loops[1, 32](td.asarray(x, device=device), out)
    got = out.numpy()
    turns = x & 7
    seen = [sum(int((turns > t).sum()) for t in range(one)) for one in turns]
    np.testing.assert_array_equal(got[0], 10 * np.array(seen) + turns)
    odd = [int(v) for v in x if v & 1]
    found = [next((o for o in odd if o > v), 1000) for v in x]
    np.testing.assert_array_equal(got[1], found)
    zero = LANES % 4 == 0
    right = np.where(zero, (x[zero] > 0).sum(), np.where(LANES % 4 == 1, x[LANES ^ 4], 0))
    np.testing.assert_array_equal(got[2], right)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("__shfl_down(1, 2)", "__shfl_down was removed from CUDA with Volta: __shfl_down_sync"),
        ("__shfl_sync(~0u, 1)", "__shfl_sync takes 3 or 4 arguments, not 2"),
        ("__shfl_sync(~0u, out, 1)", "a number is needed here, not a value of type int*"),
        ("__reduce_add_sync(~0u, 1.5f)", "__reduce_add_sync takes an int or an unsigned"),
        ("__match_all_sync(~0u, 1, 2)", "__match_all_sync takes a pointer last"),
        ("__ballot_sync(~0u)", "__ballot_sync takes 2 arguments, not 1"),
    ],
)
def test_refusals(call, message):
    text = f"__global__ void k(int *out)\n{{\n    *out = {call};\n}}\n"
    with pytest.raises(CompileError, match=re.escape(message)) as caught:
        td.cuda_module(text).k.source("llvm")
    assert caught.value.line == 3
