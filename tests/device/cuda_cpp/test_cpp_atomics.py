"""CUDA's atomic functions: every operation, type and memory, with the old values they give."""

from __future__ import annotations

import re

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError, TreadleError

N = 120  # threads: 3 blocks of 40
GRID, BLOCK = 3, 40

OPERATIONS = td.cuda_module("""
template <typename T>
__global__ void all(const T *values, T *totals, T *olds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int n = gridDim.x * blockDim.x;
    T v = values[i];
    olds[i] = atomicAdd(&totals[0], (T)1);
    atomicAdd(totals + 1, v);
    atomicSub(&totals[2], v);
    olds[n + i] = atomicMin(&totals[3], v);
    atomicMax(&totals[4], v);
    atomicAnd(&totals[5], (T)~((T)1 << (i % 31)));
    atomicOr(&totals[6], (T)1 << (i % 29));
    olds[2 * n + i] = atomicXor(&totals[7], (T)1 << (i % 30));
    olds[3 * n + i] = atomicExch(&totals[8], v);
    T seen = totals[9], assumed;
    do {
        assumed = seen;
        seen = atomicCAS(&totals[9], assumed, assumed * 2 + 1 > 100000 ? 7 : assumed + v % 13);
    } while (assumed != seen);
    olds[4 * n + i] = seen;
    atomicAdd_block(&totals[10], v);
    atomicAdd_system(&totals[10], v);
    atomicMax_system(&totals[11], v);
}

template <typename T>
__global__ void in_shared(const T *values, T *totals, T *olds)
{
    __shared__ T sums[2][3];
    __shared__ T last;
    int i = threadIdx.x;
    if (i < 6)
        (&sums[0][0])[i] = 0;
    if (i == 6)
        last = 1000;
    __syncthreads();
    T v = values[blockIdx.x * blockDim.x + i];
    olds[blockIdx.x * blockDim.x + i] = atomicAdd(&sums[1][i % 3], 1);
    atomicMax(&sums[0][i % 3], v);
    T *least = &last;
    atomicMin(least, v);
    __syncthreads();
    if (i < 6)
        totals[blockIdx.x * 7 + i] = sums[i / 3][i % 3];
    if (i == 6)
        totals[blockIdx.x * 7 + 6] = atomicExch(&last, (T)0);
}

__global__ void wrapping(unsigned *counters, unsigned *olds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int n = gridDim.x * blockDim.x;
    __shared__ unsigned local;
    if (threadIdx.x == 0)
        local = 2;
    __syncthreads();
    olds[i] = atomicInc(&counters[0], 6);
    olds[n + i] = atomicDec(&counters[1], 6);
    atomicInc(&counters[2], 1000000);
    atomicDec(&counters[3], 1000000);
    atomicInc(&local, 4);
    __syncthreads();
    if (threadIdx.x == 0)
        counters[4 + blockIdx.x] = local;
}
""")


def run(kernel, device, dtype, totals, olds, seed):
    values = np.random.default_rng(seed).integers(1, 90, N).astype(dtype)
    given = td.asarray(values, device=device)
    sums = td.asarray(np.array(totals, dtype), device=device)
    kept = td.zeros((olds, N), dtype=getattr(td, np.dtype(dtype).name), device=device)
    kernel[GRID, BLOCK](given, sums, kept)
    return values, sums.numpy(), kept.numpy()


def has(device, name):
    return device.backend != "webgpu" or name in device.features


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_every_operation_on_integers(device, dtype):
    if np.dtype(dtype).itemsize == 8 and not has(device, "int64_atomics"):
        with pytest.raises(TreadleError, match="64"):
            run(instance("all", dtype), device, dtype, [0] * 12, 5, 1)
        return
    full = -1 if np.dtype(dtype).kind == "i" else np.iinfo(dtype).max
    start = [5, 7, 100000, 1000, 0, full, 0, 0, 77, 3, 0, 50]
    values, totals, olds = run(
        instance("all", dtype), device, dtype, np.array(start, dtype=dtype), 5, 1
    )
    v = values.astype(object)
    width = np.iinfo(dtype).bits
    ones = (1 << width) - 1
    cleared, setted, flipped = ones, 0, 0
    for i in range(N):
        cleared &= ~(1 << (i % 31))
        setted |= 1 << (i % 29)
        flipped ^= 1 << (i % 30)
    expected = [
        5 + N, 7 + sum(v), 100000 - sum(v), min(v), max(v), cleared, setted, flipped,
        None, None, 2 * sum(v), max(50, max(v)),
    ]  # fmt: skip
    for at, right in enumerate(expected):
        if right is not None:
            assert int(totals[at]) & ones == int(right) & ones, f"totals[{at}]"
    assert sorted(olds[0].tolist()) == [5 + i for i in range(N)]
    assert set(olds[1].tolist()) <= {1000, *values.tolist()}
    assert max(olds[1].tolist()) == 1000
    assert olds[2].tolist().count(0) >= 1
    # What went in came out, but for the last: exchanges lose nothing.
    assert sorted([*olds[3].tolist(), int(totals[8])]) == sorted([77, *values.tolist()])
    assert int(totals[9]) == 3 + int((values % 13).sum())
    assert len(set(olds[4][values % 13 > 0].tolist())) == int((values % 13 > 0).sum())


def instance(name, dtype):
    cpp = {"int32": "int", "uint32": "unsigned int", "int64": "long long",
           "uint64": "unsigned long long"}  # fmt: skip
    return OPERATIONS.kernel(name, cpp[np.dtype(dtype).name])


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_in_shared_memory(device, dtype):
    if np.dtype(dtype).itemsize == 8 and not has(device, "int64_atomics"):
        with pytest.raises(TreadleError, match="64"):
            run(instance("in_shared", dtype), device, dtype, [0] * 21, 1, 2)
        return
    values, totals, olds = run(instance("in_shared", dtype), device, dtype, [0] * 21, 1, 2)
    for block in range(GRID):
        own = values[block * BLOCK :][:BLOCK]
        got = totals[block * 7 :][:7].tolist()
        counts = [len(own[k::3]) for k in range(3)]
        assert got == [*(own[k::3].max() for k in range(3)), *counts, own.min()]
        mine = olds[0][block * BLOCK :][:BLOCK]
        for k in range(3):
            assert sorted(mine[k::3].tolist()) == list(range(counts[k]))


def test_counters_that_wrap(device):
    counters = td.asarray(np.array([0, 3, 0, 5, 0, 0, 0], np.uint32), device=device)
    olds = td.zeros((2, N), dtype=td.uint32, device=device)
    OPERATIONS.wrapping[GRID, BLOCK](counters, olds)
    ups, downs, value, other = [], [], 0, 3
    for _ in range(N):
        ups.append(value)
        value = 0 if value >= 6 else value + 1
        downs.append(other)
        other = 6 if other == 0 or other > 6 else other - 1
    got = olds.numpy()
    assert sorted(got[0].tolist()) == sorted(ups)
    assert sorted(got[1].tolist()) == sorted(downs)
    below = 5 - N + 1000001
    # From 2, by steps of one in 0 … 4, 40 times.
    assert counters.tolist() == [value, other, N, below, *[(2 + BLOCK) % 5] * GRID]


FLOATS = td.cuda_module("""
struct Cell { float mass; float3 center; int count; };

__device__ float atomicMaxFloat(float *address, float value)
{
    int *bits = (int *)address;
    int old = *bits, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= value)
            break;
        old = atomicCAS(bits, assumed, __float_as_int(value));
    } while (assumed != old);
    return __int_as_float(old);
}

__device__ __forceinline__ void atomicMinFloat(float *at, float value)
{
    if (value >= 0)
        atomicMin((int *)at, __float_as_int(value));
    else
        atomicMax((unsigned int *)at, __float_as_uint(value));
}

__device__ void gather(Cell *cell, float x)
{
    atomicAdd(&cell->mass, x);
    atomicAdd(&cell->center.y, 0.5f * x);
    atomicAdd(&(*cell).count, 1);
}

__global__ void floats(const float *x, float *out, float *olds)
{
    __shared__ float own[2];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 2)
        own[threadIdx.x] = 0;
    __syncthreads();
    olds[i] = atomicAdd(out, 1.0f);
    atomicAdd(&out[1], x[i]);
    atomicMaxFloat(&out[2], x[i]);
    atomicMinFloat(out + 3, x[i]);
    olds[gridDim.x * blockDim.x + i] = atomicExch(&out[4], x[i]);
    atomicAdd(&own[i & 1], x[i]);
    __syncthreads();
    if (threadIdx.x < 2)
        atomicAdd(&out[5 + threadIdx.x], own[threadIdx.x]);
    atomicAdd(&out[7], 2);                               // an int becomes a float
}

__global__ void cells(const float *x, Cell *cells)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Cell *mine = &cells[i % 2];
    gather(mine, x[i]);
    __shared__ Cell total;
    if (threadIdx.x == 0) {
        total.mass = 0;
        total.count = 0;
    }
    __syncthreads();
    atomicAdd(&total.mass, x[i]);
    int before = atomicAdd(&total.count, 2);
    __syncthreads();
    if (before == 0)
        atomicAdd(&cells[2].center.z, total.mass + total.count);
}

__device__ unsigned ticket;
__device__ int histogram[4][2];

__global__ void last_block(const int *x, int *sums, int *result)
{
    __shared__ int sum;
    __shared__ bool last;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    int value = x[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&sum, value);
    atomicAdd(&histogram[value & 3][value > 50], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicExch(&sums[blockIdx.x], sum);
        last = atomicInc(&ticket, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int total = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            total += atomicAdd(&sums[b], 0);
        *result = total;
        ticket = 0;
    }
}

__global__ void choices(int *a, int *b, unsigned char *pick)
{
    int i = threadIdx.x;
    int *to = pick[i] ? a : b;
    int old = atomicAdd(&to[i & 1], i);
    bool first = old == 0;
    atomicAdd(first ? a + 2 : b + 2, 1);
    if (atomicCAS(&b[3], 0, 1) == 0)
        a[3] = 5;
    for (int k = 0; k < 3; k++, atomicSub(a + 4, 1))
        ;
    (void)atomicOr((unsigned *)&b[4], 1u << (i % 8));
}
""")


def test_floats(device):
    x = np.random.default_rng(3).integers(-40, 40, N).astype(np.float32) / 4
    out = td.asarray(np.array([2, 0, -1e30, 1e30, 0, 0, 0, 0], np.float32), device=device)
    olds = td.zeros((2, N), device=device)
    FLOATS.floats[GRID, BLOCK](td.asarray(x, device=device), out, olds)
    got, kept = out.numpy(), olds.numpy()
    assert got[:4].tolist() == [2 + N, x.sum(), x.max(), x.min()]
    assert got[5:].tolist() == [x[::2].sum(), x[1::2].sum(), 2 * N]
    assert sorted(kept[0].tolist()) == [2 + i for i in range(N)]
    assert sorted([*kept[1].tolist(), got[4]]) == sorted([0, *x.tolist()])


def test_fields_of_structs(device):
    x = np.random.default_rng(5).integers(-40, 40, N).astype(np.float32) / 4
    record = np.dtype([("mass", "f4"), ("center", "f4", 3), ("count", "i4")])
    cells = np.zeros(3, record)
    with td.use_device(device):
        FLOATS.cells[GRID, BLOCK](td.asarray(x), cells)
    assert cells["mass"].tolist() == [x[::2].sum(), x[1::2].sum(), 0]
    assert cells["center"][:, 1].tolist() == [x[::2].sum() / 2, x[1::2].sum() / 2, 0]
    assert cells["count"].tolist() == [N // 2, N // 2, 0]
    assert cells["center"][2, 2] == x.sum() + 2 * N


def test_the_last_block_and_variables_of_the_file(device):
    x = np.random.default_rng(6).integers(0, 100, N).astype(np.int32)
    sums = td.zeros(GRID, dtype=td.int32, device=device)
    result = td.zeros(1, dtype=td.int32, device=device)
    before = FLOATS.constants.on(device)["histogram"].copy()
    for _ in range(2):
        FLOATS.last_block[GRID, BLOCK](td.asarray(x, device=device), sums, result)
        assert result.tolist() == [x.sum()]
    counted = FLOATS.constants.on(device)["histogram"] - before
    expected = [
        [2 * int(((x & 3) == k)[(x > 50) == big].sum()) for big in (0, 1)] for k in range(4)
    ]
    assert counted.tolist() == expected


def test_pointers_that_are_chosen(device):
    pick = np.array([1, 0, 0, 1, 1, 0, 1, 0, 1], np.uint8)
    a, b = (td.zeros(5, dtype=td.int32, device=device) for _ in range(2))
    FLOATS.choices[1, 9](a, b, td.asarray(pick, device=device))
    i = np.arange(9)
    sums = [[int(i[(pick == p) & (i % 2 == k)].sum()) for k in (0, 1)] for p in (1, 0)]
    got_a, got_b = a.tolist(), b.tolist()
    assert [got_a[:2], got_b[:2]] == sums
    assert got_a[2] + got_b[2] == 9
    assert got_a[3:] == [5, -27]
    assert got_b[3:] == [1, 255]


OWN = td.cuda_module("""
#if __CUDA_ARCH__ < 600
__device__ double atomicAdd(double *a, double b) { return b; }
#endif
__device__ float atomicMax(float *a, float v)
{
    int *bits = (int *)a, old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __float_as_int(fmaxf(v, __int_as_float(assumed))));
    } while (old != assumed);
    return __int_as_float(old);
}

__global__ void both(float *f, int *x)
{
    atomicMax(f, 0.5f * threadIdx.x);
    atomicMax(x, 3 * threadIdx.x);
    atomicAdd(x + 1, 2);
}
""")


def test_overloads_beside_those_of_cuda(device):
    f, x = td.zeros(1, device=device), td.zeros(2, dtype=td.int32, device=device)
    OWN.both[1, 9](f, x)
    assert f.tolist() == [4]
    assert x.tolist() == [24, 18]


DOUBLES = td.cuda_module("""
__global__ void doubles(const double *x, double *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(out, x[i]);
    double old = atomicAdd(&out[1], 1.0);
    if (old == 17.0)
        out[2] = old;
    unsigned long long *bits = (unsigned long long *)&out[3];
    unsigned long long seen = *bits, assumed;
    do {
        assumed = seen;
        seen = atomicCAS(bits, assumed, __double_as_longlong(__longlong_as_double(assumed) + x[i]));
    } while (assumed != seen);
    atomicExch(&out[4], 2.5);
}
""")


MIXED = """
struct Sum { double x; int count; float small; long long most; short s[4]; };

__global__ void mixed(const double *v, double3 *out, Sum *sums, int n)
{
    __shared__ double part[3];
    __shared__ long long best;
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t < 3) part[t] = 0.5 * t;
    if (t == 0) best = -(1ll << 60);
    __syncthreads();
    if (i < n) {
        Sum *sum = &sums[i % 2];
        atomicAdd(&part[i % 3], v[i]);
        atomicMax(&best, (long long)(v[i] * 1e6) - (1ll << 40));
        atomicAdd(&sum->x, v[i]);
        atomicAdd(&sum->count, 1);
        atomicAdd(&sum->small, 0.5f);
        atomicMax(&sum->most, (long long)(v[i] * 1e6) << 20);
        sum->s[1] = 7;
        sum->s[3] = -3;
    }
    __syncthreads();
    if (t < 3) atomicAdd(&out[0].y, part[t]);
    if (t == 0) {
        Sum own = {part[0], 0, (float)part[1], best, {1, 2, 3, 4}};
        sums[2 + blockIdx.x] = own;
        if (i == 0) out[1] = make_double3(out[2].z, out[2].y, out[2].x);
    }
}
"""


PAIRS = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class P, class T>
__global__ void add(T *values, float *olds)
{
    __shared__ P sum;
    int i = threadIdx.x;
    if (i == 0) sum = P{T(0.0f), T(0.0f)};
    __syncthreads();
    P step{T(1.0f), T(0.5f)};
    P old = atomicAdd(reinterpret_cast<P *>(values) + i % 3, step);
    olds[2 * i] = float(old.x);
    olds[2 * i + 1] = float(old.y);
    atomicAdd(&sum, step);
    __syncthreads();
    if (i == 0) reinterpret_cast<P *>(values)[3] = sum;
}
"""


def test_vectors(device):
    module = td.cuda_module("""
    __global__ void add(float2 *pairs, float4 *sum, float *olds)
    {
        int i = threadIdx.x;
        float2 old = atomicAdd(pairs + i % 2, make_float2(1, 2));
        olds[i] = old.x; olds[30 + i] = old.y;
        atomicAdd(sum, make_float4(1, 2, 3, i));
    }
    """)
    pairs, total, olds = (td.zeros(n, device=device) for n in (4, 4, 60))
    module.add[1, 30](pairs, total, olds)
    assert pairs.tolist() == [15, 30, 15, 30]
    assert total.tolist() == [30, 60, 90, 435]
    found = np.sort(olds.numpy().reshape(2, 15, 2), 1)
    assert (found == np.arange(15)[:, None] * np.array([1, 2])[:, None, None]).all()


@pytest.mark.parametrize(
    ("pair", "dtype"), [("__half2", "float16"), ("__nv_bfloat162", "bfloat16")]
)
def test_pairs_of_halves(device, pair, dtype):
    values = td.zeros(8, dtype=getattr(td, dtype), device=device)
    olds = td.full((60,), -1.0, device=device)
    td.cuda_module(PAIRS).kernel("add", pair, getattr(td, dtype))[1, 30](values, olds)
    assert values.tolist() == [10, 5] * 3 + [30, 15]
    found = olds.numpy().reshape(10, 3, 2)
    np.testing.assert_array_equal(np.sort(found[:, :, 0], 0).T, [range(10)] * 3)
    np.testing.assert_array_equal(found[:, :, 1], found[:, :, 0] / 2)


def test_doubles(device):
    x = np.random.default_rng(7).integers(-400, 400, N) / 8
    out = td.zeros(5, dtype=td.float64, device="cpu").numpy().copy()
    with td.use_device(device):
        if not has(device, "int64_atomics"):
            with pytest.raises(TreadleError, match="64"):
                DOUBLES.doubles[GRID, BLOCK](x, out)
            return
        DOUBLES.doubles[GRID, BLOCK](x, out)
    assert out.tolist() == [x.sum(), N, 17, x.sum(), 2.5]


def test_doubles_beside_other_numbers(device):
    record = np.dtype(
        [("x", "f8"), ("count", "i4"), ("small", "f4"), ("most", "i8"), ("s", "i2", 4)]
    )
    v, sums = np.random.default_rng(8).random(101), np.zeros(5, record)
    out = np.arange(9.0).reshape(3, 3)
    kernel = td.cuda_module(MIXED).mixed
    with td.use_device(device):
        if not has(device, "int64_atomics"):
            with pytest.raises(TreadleError, match="64"):
                kernel[3, 40](v, out, sums, v.size)
            return
        kernel[3, 40](v, out, sums, v.size)
    assert np.allclose(out, [[0, 1 + v.sum() + 3 * 1.5, 2], [8, 7, 6], [6, 7, 8]])
    for k in range(2):
        own = v[k::2]
        total, count, small, most, short = sums[k].tolist()
        assert (count, small, most) == (own.size, own.size / 2, int(own.max() * 1e6) << 20)
        assert list(short) == [0, 7, 0, -3]
        assert np.isclose(total, own.sum())
    for block in range(3):
        at = np.arange(block * 40, min(block * 40 + 40, v.size))
        parts = [0.5 * k + v[at[at % 3 == k]].sum() for k in range(3)]
        *numbers, most, short = sums[2 + block].tolist()
        assert most == int(v[at].max() * 1e6) - (1 << 40)
        assert list(short) == [1, 2, 3, 4]
        assert np.allclose(numbers, [parts[0], 0, parts[1]])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("atomicAdd(out);", "atomicAdd takes 2 arguments, not 1"),
        ("atomicAdd(*out, 1);", "atomicAdd takes a pointer first"),
        ("int own = 0; atomicAdd(&own, 1);", "this object is local to one thread"),
        ("int own[4]; atomicAdd(&own[1], 1);", "this object is local to one thread"),
        ("float *f = (float *)out; atomicOr(f, 1);", "atomicOr works on integers, not on float"),
        ("float *f = (float *)out; atomicMax(f, 1);", "atomicMax works on integers, not on float"),
        ("int4 *f = (int4 *)out; atomicAdd(f, *f);", "atomicAdd works on numbers"),
        ("atomicAdd(&given, 1);", "given is __constant__"),
        ("short *s = (short *)out; atomicAdd(s, 1);", "short"),
    ],
)
def test_refusals(body, message):
    text = f"__constant__ int given;\n__global__ void k(int *out)\n{{\n    {body}\n}}\n"
    with pytest.raises(CompileError, match=re.escape(message)) as caught:
        td.cuda_module(text).k.source("llvm")
    assert caught.value.line == 4


NARROW = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T> __global__ void add(const T *x, T *sum, T *old, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ T s[3];
    if (threadIdx.x < 3) s[threadIdx.x] = (T)0.0f;
    __syncthreads();
    if (i < n) {
        old[i] = atomicAdd(&sum[i % m], x[i]);
        atomicAdd(&s[1], x[i]);
    }
    __syncthreads();
    if (threadIdx.x < 3) sum[m + 3 * blockIdx.x + threadIdx.x] = s[threadIdx.x];
}
__global__ void largest(const unsigned short *x, unsigned short *most, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned short seen = most[i % m];
    while (seen < x[i]) {
        unsigned short assumed = seen;
        seen = atomicCAS(&most[i % m], assumed, x[i]);
        if (seen == assumed) break;
    }
}
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_single_halves(device, dtype):
    """Sums in places beside each other, and in shared memory between two that stay zero."""
    dtype, n, m = getattr(td, dtype), 100, 7
    x = np.random.default_rng().integers(-3, 4, n)
    given = td.asarray(x.astype(np.float32), device=device).astype(dtype)
    out = td.zeros(m + 6, dtype=dtype, device=device)
    old = td.full(n, 9, dtype=dtype, device=device)
    td.cuda_module(NARROW).kernel("add", dtype)[2, 64](given, out, old, n, m)
    sums = [x[at::m].sum() for at in range(m)]
    assert out.astype(td.float32).tolist() == [*sums, 0, x[:64].sum(), 0, 0, x[64:].sum(), 0]
    before = old.astype(td.float32).numpy()
    for at in range(m):  # each thread found what some others had added up, one of them nothing
        assert 0 in before[at::m]
        assert sums[at] in before[at::m] + x[at::m]


def test_compare_and_swap_of_16_bits(device):
    x = np.random.default_rng().integers(0, 1 << 16, 100).astype(np.uint16)
    out = td.zeros(5, dtype=td.uint16, device=device)
    td.cuda_module(NARROW).largest[2, 64](td.asarray(x, device=device), out, 100, 5)
    assert out.tolist() == [x[at::5].max() for at in range(5)]
