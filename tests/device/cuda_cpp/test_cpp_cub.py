"""CUB in kernels: what its documentation says that blocks and warps compute, beside NumPy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import treadle as td

HEAD = "#include <cub/cub.cuh>\n"
REDUCTIONS = (
    HEAD
    + """
template <int N, class T> __global__ void reductions(const T *x, T *out, int valid) {
    typedef cub::BlockReduce<T, N> Reduce;
    __shared__ typename Reduce::TempStorage storage;
    T own = x[threadIdx.x];
    T sum = Reduce(storage).Sum(own);
    if (threadIdx.x == 0) out[0] = sum;
    __syncthreads();
    T most = Reduce(storage).Reduce(own, cub::Max());
    if (threadIdx.x == 0) out[1] = most;
    __syncthreads();
    T part = Reduce(storage).Sum(own, valid);
    T least = cub::BlockReduce<T, N>().Reduce(own, cub::Min());
    __syncthreads();
    T two[2] = {own, (T)1};
    T whole = Reduce(storage).Sum(two);
    if (threadIdx.x == 0) { out[2] = part; out[3] = least; out[4] = whole; }
}
template <int N> __global__ void places(const float *x, int *out) {
    typedef cub::KeyValuePair<int, float> Pair;
    typedef cub::BlockReduce<Pair, N, cub::BLOCK_REDUCE_RAKING> Reduce;
    __shared__ typename Reduce::TempStorage storage;
    Pair own;
    own.key = threadIdx.x;
    own.value = x[threadIdx.x];
    Pair most = Reduce(storage).Reduce(own, cub::ArgMax());
    __syncthreads();
    Pair least = Reduce(storage).Reduce(own, cub::ArgMin());
    if (threadIdx.x == 0) { out[0] = most.key; out[1] = least.key; }
}
struct Line { float a, b; };  // x -> a x + b: their composition does not commute
struct Then {
    __device__ Line operator()(Line f, Line g) const { return Line{f.a * g.a, f.b * g.a + g.b}; }
};
template <int N> __global__ void lines(const float *x, float *out) {
    typedef cub::BlockReduce<Line, N> Reduce;
    typedef cub::BlockScan<Line, N> Scan;
    __shared__ typename Reduce::TempStorage storage;
    __shared__ typename Scan::TempStorage scanned;
    Line own = {0.5f, x[threadIdx.x]}, all = Reduce(storage).Reduce(own, Then()), upto;
    if (threadIdx.x == 0) out[N] = all.b;
    Scan(scanned).InclusiveScan(own, upto, Then());
    out[threadIdx.x] = upto.b;
}
"""
)
SIZE = 101


opened = cache(td.cuda_module)


def on(device, array):
    return td.asarray(array, device=device)


def reduces(device, size):
    x = np.random.default_rng().integers(-99, 99, size).astype(np.int32)
    valid = size // 2 + 1
    out = td.full((5,), -77, dtype=td.int32, device=device)
    kernel = opened(REDUCTIONS).kernel("reductions", size, td.i32)
    kernel[1, size](on(device, x), out, valid)
    assert out.tolist() == [x.sum(), x.max(), x[:valid].sum(), x.min(), x.sum() + size]


def test_reductions_of_blocks(device):
    reduces(device, SIZE)


def test_small_blocks():
    reduces("cpu", 1)
    reduces("cpu", 32)


def test_reductions_of_pairs_and_in_order(device):
    size = 75
    x = np.random.default_rng().normal(size=size).astype(np.float32)
    module = opened(REDUCTIONS)
    out = td.full((2,), -77, dtype=td.int32, device=device)
    module.kernel("places", size)[1, size](on(device, x), out)
    assert out.tolist() == [x.argmax(), x.argmin()]
    out = td.full((size + 1,), -77.0, device=device)
    module.kernel("lines", size)[1, size](on(device, x), out)
    expected = [value := 0.0] + [value := 0.5 * value + float(one) for one in x]
    np.testing.assert_allclose(out.numpy(), [*expected[1:], expected[-1]], rtol=1e-5, atol=1e-6)


SCANS = (
    HEAD
    + """
struct Running {
    int total;
    __device__ Running(int first) : total(first) {}
    __device__ int operator()(int sum) { int before = total; total += sum; return before; }
};
template <int N> __global__ void scans(const int *x, int *out) {
    typedef cub::BlockScan<int, N> Scan;
    __shared__ typename Scan::TempStorage storage;
    int t = threadIdx.x, own = x[t], made, total;
    Scan(storage).InclusiveSum(own, made); out[t] = made; __syncthreads();
    Scan(storage).ExclusiveSum(own, made, total); out[N + t] = made + 1000 * total; __syncthreads();
    Scan(storage).InclusiveScan(own, made, cub::Max()); out[2 * N + t] = made; __syncthreads();
    Scan(storage).ExclusiveScan(own, made, 5, cub::Max()); out[3 * N + t] = made; __syncthreads();
    int two[2] = {own, own + 1}, to[2];
    Scan(storage).ExclusiveSum(two, to); out[4 * N + t] = to[0] - 3 * to[1]; __syncthreads();
    Scan(storage).InclusiveSum(two, two); out[5 * N + t] = two[0] - 3 * two[1]; __syncthreads();
    Running running(100);
    Scan(storage).ExclusiveSum(own, made, running); out[6 * N + t] = made; __syncthreads();
    Scan(storage).InclusiveSum(own, made, running); out[7 * N + t] = made;
}
__global__ void warps(const int *x, int *out) {
    typedef cub::WarpReduce<int> Reduce;
    __shared__ typename Reduce::TempStorage storage[2];
    int t = threadIdx.x, own = x[t];
    int sum = Reduce(storage[t / 32]).Sum(own);
    out[t] = t % 32 == 0 ? sum : 0;
    int part = Reduce(storage[t / 32]).HeadSegmentedSum(own, t % 5 == 0);
    out[64 + t] = t % 5 == 0 ? part : 0;
    typedef cub::WarpScan<int, 8> Scan;
    __shared__ typename Scan::TempStorage eights[8];
    int made, total;
    Scan(eights[t / 8]).ExclusiveSum(own, made, total);
    out[128 + t] = made + 1000 * total;
    Scan(eights[t / 8]).InclusiveScan(own, made, cub::Min());
    out[192 + t] = made + Scan(eights[t / 8]).Broadcast(own, 3);
}
"""
)


def test_scans_of_blocks(device):
    size = SIZE
    x = np.random.default_rng().integers(-99, 99, size).astype(np.int32)
    out = td.full((8 * size,), -77, dtype=td.int32, device=device)
    opened(SCANS).kernel("scans", size)[1, size](on(device, x), out)
    sums, two = x.cumsum(), np.stack([x, x + 1], 1).ravel().cumsum().reshape(size, 2)
    before = two - np.stack([x, x + 1], 1)
    expected = [
        sums, sums - x + 1000 * sums[-1], np.maximum.accumulate(x),
        np.maximum.accumulate(np.concatenate([[5], x[:-1]])),
        before[:, 0] - 3 * before[:, 1], two[:, 0] - 3 * two[:, 1],
        sums - x + 100, sums + 100 + sums[-1],
    ]  # fmt: skip
    assert (out.numpy().reshape(8, size) == expected).all()


def test_warps(device):
    x = np.random.default_rng().integers(-99, 99, 64).astype(np.int32)
    out = td.full((256,), -77, dtype=td.int32, device=device)
    opened(SCANS).warps[1, 64](on(device, x), out)
    made = out.numpy().reshape(4, 64)
    sums = np.zeros(64, int)
    sums[::32] = x.reshape(2, 32).sum(1)
    heads = np.zeros(64, int)
    for head in range(0, 64, 5):
        heads[head] = x[head : min(head + 5, 32 if head < 32 else 64)].sum()
    eights = x.reshape(8, 8)
    before = eights.cumsum(1) - eights + 1000 * eights.sum(1)[:, None]
    least = np.minimum.accumulate(eights, 1) + eights[:, 3:4]
    assert (made == [sums, heads, before.ravel(), least.ravel()]).all()


SORTS = (
    HEAD
    + """
struct Greater {
    template <class T> __device__ bool operator()(const T &a, const T &b) const { return a > b; }
};
template <int N, int I, class K> __global__ void sorts(const K *x, K *out, int *places) {
    typedef cub::BlockLoad<K, N, I, cub::BLOCK_LOAD_TRANSPOSE> Load;
    typedef cub::BlockRadixSort<K, N, I, int> Pairs;
    typedef cub::BlockRadixSort<K, N, I> Keys;
    typedef cub::BlockMergeSort<K, N, I> Merge;
    __shared__ union {
        typename Load::TempStorage load;
        typename Pairs::TempStorage pairs;
        typename Keys::TempStorage keys;
        typename Merge::TempStorage merge;
    } storage;
    K keys[I];
    int own[I], t = threadIdx.x;
    Load(storage.load).Load(x, keys);
    for (int i = 0; i < I; i++)
        own[i] = t * I + i;
    __syncthreads();
    Pairs(storage.pairs).Sort(keys, own);
    cub::StoreDirectBlocked(t, out, keys);
    cub::StoreDirectBlocked(t, places, own);
    cub::LoadDirectBlocked(t, x, keys);
    __syncthreads();
    Keys(storage.keys).SortDescending(keys);
    cub::StoreDirectBlocked(t, out + N * I, keys);
    cub::LoadDirectBlocked(t, x, keys);
    __syncthreads();
    Keys(storage.keys).SortBlockedToStriped(keys);
    cub::StoreDirectStriped<N>(t, out + 2 * N * I, keys);
    cub::LoadDirectBlocked(t, x, keys);
    __syncthreads();
    Merge(storage.merge).Sort(keys, Greater());
    cub::StoreDirectBlocked(t, out + 3 * N * I, keys);
}
"""
)


def sorted_keys(device, x, dtype, source=SORTS):
    threads, items = 11, 3
    out = td.zeros(4 * x.size, dtype=dtype, device=device)
    places = td.full((x.size,), -77, dtype=td.int32, device=device)
    module = td.cuda_module(source)
    module.kernel("sorts", threads, items, dtype)[1, threads](on(device, x), out, places)
    made, ascending = out.numpy().reshape(4, -1), np.sort(x)
    assert (made == [ascending, ascending[::-1], ascending, ascending[::-1]]).all()
    assert (places.numpy() == np.argsort(x, kind="stable")).all()


def test_sorting_in_blocks(device):
    rng = np.random.default_rng()
    sorted_keys(device, rng.integers(-5, 5, 33).astype(np.int32), td.int32)
    floats = rng.normal(size=33).astype(np.float32)
    floats[:4] = [0.0, -0.0, np.inf, -np.inf]
    sorted_keys(device, floats, td.float32)


EXCHANGES = (
    HEAD
    + """
template <int N, int I> __global__ void exchanges(const int *x, int *out, int *bins, int *more) {
    typedef cub::BlockExchange<int, N, I> Exchange;
    typedef cub::BlockDiscontinuity<int, N> Heads;
    typedef cub::BlockAdjacentDifference<int, N> Difference;
    typedef cub::BlockHistogram<int, N, I, 16> Histogram;
    typedef cub::BlockShuffle<int, N> Shuffle;
    __shared__ typename Exchange::TempStorage exchange;
    __shared__ typename Heads::TempStorage heads;
    __shared__ typename Difference::TempStorage difference;
    __shared__ typename Histogram::TempStorage histogram;
    __shared__ typename Shuffle::TempStorage shuffle;
    __shared__ int counts[16];
    int k[I], r[I], t = threadIdx.x, all = N * I;
    cub::LoadDirectStriped<N>(t, x, k);
    Exchange(exchange).StripedToBlocked(k);
    cub::StoreDirectBlocked(t, out, k);
    __syncthreads();
    Exchange(exchange).BlockedToStriped(k);
    cub::StoreDirectStriped<N>(t, out + all, k);
    cub::LoadDirectBlocked(t, x, k, all - 3, -1);
    cub::StoreDirectBlocked(t, out + 2 * all, k);
    cub::LoadDirectBlocked(t, x, k);
    Heads(heads).FlagHeads(r, k, cub::Inequality());
    cub::StoreDirectBlocked(t, out + 3 * all, r);
    Heads(heads).FlagTails(r, k, cub::Inequality());
    cub::StoreDirectBlocked(t, out + 4 * all, r);
    Difference(difference).SubtractLeft(k, r, cub::Difference());
    cub::StoreDirectBlocked(t, out + 5 * all, r);
    Histogram(histogram).Histogram(k, counts);
    __syncthreads();
    if (t < 16) bins[t] = counts[t];
    int from;
    Shuffle(shuffle).Rotate(t, from, 3);
    cub::CountingInputIterator<int> numbers(5);
    more[t] = 100 * from + numbers[t];
}
"""
)


def test_exchanges_and_neighbours(device):
    threads, items = 40, 3
    x = np.random.default_rng().integers(0, 16, threads * items).astype(np.int32)
    out = td.full((6 * x.size,), -77, dtype=td.int32, device=device)
    bins = td.full((16,), -77, dtype=td.int32, device=device)
    more = td.full((threads,), -77, dtype=td.int32, device=device)
    kernel = opened(EXCHANGES).kernel("exchanges", threads, items)
    kernel[1, threads](on(device, x), out, bins, more)
    changes = x[1:] != x[:-1]
    expected = [
        x, x, np.where(np.arange(x.size) < x.size - 3, x, -1),
        [1, *changes], [*changes, 1], np.diff(x, prepend=0),
    ]  # fmt: skip
    assert (out.numpy().reshape(6, -1) == np.array(expected)).all()
    assert bins.tolist() == np.bincount(x, minlength=16).tolist()
    ranks = np.arange(threads)
    assert (more.numpy() == 100 * ((ranks + 3) % threads) + ranks + 5).all()


TILES = (
    HEAD
    + """
template <class Op> struct Before {
    int before;
    Op op;
    __device__ int operator()(int total) {
        int old = before;
        before = op(old, total);
        return old;
    }
};
template <int N, int K> __global__ void tiles(const int *x, int *sums, int *most, int count)
{
    typedef cub::BlockScan<int, N> Scan;
    __shared__ typename Scan::TempStorage storage;
    Before<cub::Sum> sum{0, cub::Sum()};
    Before<cub::Max> max{-1, cub::Max()};
    for (int from = 0; from < count; from += N * K) {
        int k[K], s[K], m[K], at = from + threadIdx.x * K, one;
        for (int i = 0; i < K; i++) k[i] = at + i < count ? x[at + i] : 0;
        Scan(storage).ExclusiveSum(k, s, sum);
        __syncthreads();
        Scan(storage).InclusiveScan(k, m, cub::Max(), max);
        __syncthreads();
        Before<cub::Max> own{5, cub::Max()};
        Scan(storage).ExclusiveScan(k[0], one, cub::Max(), own);
        __syncthreads();
        for (int i = 0; i < K; i++)
            if (at + i < count) { sums[at + i] = s[i]; most[at + i] = m[i] + 1000 * one; }
    }
}
"""
)


def test_scans_of_tiles_after_each_other(device):
    threads, items, count = 40, 2, 187
    x = np.random.default_rng().integers(0, 100, count).astype(np.int32)
    sums, most = (td.full((count,), -77, dtype=td.int32, device=device) for _ in range(2))
    kernel = opened(TILES).kernel("tiles", threads, items)
    kernel[1, threads](on(device, x), sums, most, count)
    assert sums.tolist() == [0, *np.cumsum(x)[:-1]]
    first = np.pad(x, (0, 240 - count)).reshape(3, threads, items)[:, :, 0]
    before = np.maximum.accumulate(np.pad(first[:, :-1], ((0, 0), (1, 0)), constant_values=5), 1)
    ones = np.maximum(before, 5).repeat(items, 1).reshape(-1)[:count]
    assert most.tolist() == (np.maximum.accumulate(x) + 1000 * ones).tolist()


RUNS = (
    HEAD
    + """
template <int N, int R, int D>
__global__ void decode(const float *x, const int *lengths, float *out, int *places, int *total)
{
    typedef cub::BlockRunLengthDecode<float, N, R, D> Decode;
    __shared__ typename Decode::TempStorage storage;
    float values[R];
    unsigned counts[R];
    for (int i = 0; i < R; i++) {
        values[i] = x[threadIdx.x * R + i];
        counts[i] = lengths[threadIdx.x * R + i];
    }
    unsigned all;
    Decode runs(storage, values, counts, all);
    for (unsigned from = 0; from < all; from += N * D) {
        float items[D];
        unsigned at[D];
        runs.RunLengthDecode(items, at, from);
        for (int i = 0; i < D; i++) {
            unsigned item = from + threadIdx.x * D + i;
            if (item < all) { out[item] = items[i]; places[item] = at[i]; }
        }
    }
    if (threadIdx.x == 0) *total = all;
}
__global__ void bits(float *x, int *n, unsigned *out)
{
    int i = threadIdx.x;
    typedef cub::Traits<float> F;
    typedef cub::Traits<int> I;
    F::UnsignedBits f = reinterpret_cast<F::UnsignedBits &>(x[i]);
    out[i] = F::TwiddleIn(f);
    f = F::TwiddleOut(out[i]);
    x[i] = reinterpret_cast<float &>(f);
    out[blockDim.x + i] = I::TwiddleIn(n[i]);
    n[i] = I::TwiddleOut(out[blockDim.x + i]);
}
"""
)


def test_runs_are_decoded(device):
    rng = np.random.default_rng()
    x, lengths = rng.normal(size=32).astype(np.float32), rng.integers(0, 8, 32).astype(np.int32)
    count = int(lengths.sum())
    out, total = td.zeros(count, device=device), td.zeros(1, dtype=td.int32, device=device)
    places = td.full((count,), -1, dtype=td.int32, device=device)
    kernel = opened(RUNS).kernel("decode", 16, 2, 3)
    kernel[1, 16](on(device, x), on(device, lengths), out, places, total)
    assert total.item() == count
    np.testing.assert_array_equal(out.numpy(), np.repeat(x, lengths))
    assert places.tolist() == [place for length in lengths for place in range(length)]


def test_bits_have_the_order_of_numbers(device):
    rng = np.random.default_rng()
    x = np.concatenate([rng.normal(size=29), [0, np.inf, -np.inf]]).astype(np.float32)
    n = rng.integers(-(1 << 31), 1 << 31, 32).astype(np.int32)
    given, out = (on(device, x), on(device, n)), td.zeros(64, dtype=td.uint32, device=device)
    opened(RUNS).bits[1, 32](*given, out)
    found = out.numpy().reshape(2, 32)
    assert (np.argsort(found[0]) == np.argsort(x)).all()
    assert (np.argsort(found[1]) == np.argsort(n)).all()
    assert given[0].tolist() == x.tolist()
    assert given[1].tolist() == n.tolist()


def test_another_name_of_the_namespace_and_types_of_cufft(device):
    module = td.cuda_module(
        "#include <cufft.h>\n"
        + HEAD
        + """
        namespace blocks = cub;
        template <int N> __global__ void sum(const cufftReal *x, cufftComplex *out) {
            typedef blocks::BlockReduce<float, N> Reduce;
            __shared__ typename Reduce::TempStorage storage;
            float whole = Reduce(storage).Sum(x[threadIdx.x]);
            if (threadIdx.x == 0) *out = make_cuComplex(whole, -whole);
        }"""
    )
    x, out = td.arange(64.0, device=device).to(td.float32), td.zeros(2, device=device)
    module.kernel("sum", 64)[1, 64](x, out)
    assert out.tolist() == [2016, -2016]


RANKS = """
#include <cub/cub.cuh>
template <class Ranks, int bits> __global__ void ranks(const int *x, int *out, int *before)
{
    __shared__ typename Ranks::TempStorage storage;
    int keys[2], places[2], first[Ranks::BINS_TRACKED_PER_THREAD], t = threadIdx.x;
    for (int i = 0; i < 2; i++) keys[i] = x[2 * t + i];
    cub::BFEDigitExtractor<int> extractor(1, bits);
    Ranks(storage).RankKeys(keys, places, extractor, first);
    for (int i = 0; i < 2; i++) out[2 * t + i] = places[i];
    if (t < 1 << bits) before[t] = first[0];
}
typedef cub::BlockRadixRank<64, 3, false> Blocked;
typedef cub::BlockRadixRank<64, 3, true> Descending;
typedef cub::BlockRadixRankMatch<64, 3, false> Match;
typedef cub::BlockRadixRankMatch<64, 3, true> DescendingMatch;
"""


def test_places_in_the_order_of_digits(device):
    check_places(device, "Descending")


@pytest.mark.parametrize("name", ["Blocked", "Match", "DescendingMatch"])
def test_places_by_warps(name):
    check_places(td.device("cpu"), name)


def check_places(device, name):
    """Stable, of keys that follow each other in a thread, or in a warp 32 by 32."""
    x = np.random.default_rng().integers(0, 1 << 10, (64, 2)).astype(np.int32)
    out = td.zeros((64, 2), dtype=td.int32, device=device)
    before = td.full(8, -1, dtype=td.int32, device=device)
    kernel = opened(RANKS).kernel("ranks", name, 3)
    kernel[1, 64](td.asarray(x, device=device), out, before)
    digits, found = x >> 1 & 7, out.numpy()
    if "Match" in name:
        digits, found = (one.reshape(2, 32, 2).swapaxes(1, 2) for one in (digits, found))
    digits, sign = digits.ravel(), -1 if name.startswith("Desc") else 1
    order = np.argsort(sign * digits, kind="stable")
    places = np.empty(128, np.int32)
    places[order] = np.arange(128)
    np.testing.assert_array_equal(found.ravel(), places)
    wanted = [np.count_nonzero(sign * digits < sign * digit) for digit in range(8)]
    assert before.tolist() == wanted


ITERATORS = """
#include <cub/cub.cuh>
CUB_STATIC_ASSERT(CUB_QUOTIENT_CEILING(10, 4) == 3, three);
__global__ void places(const float *x, float *y, int *at)
{
    int i = threadIdx.x;
    cub::ArgIndexInputIterator<const float *, int> pairs(x);
    auto pair = (pairs + 2)[i];
    at[i] = pair.key + CUB_ROUND_UP_NEAREST(5, 4);
    cub::DiscardOutputIterator<> none;
    none[i] = pair.value;
    *none = 1;
    cub::CacheModifiedInputIterator<cub::LOAD_LDG, float> kept(x);
    y[i] = pair.value + kept[i] + *kept + (kept + 1)[i];
}
"""


def test_iterators_and_macros(device):
    x = np.random.default_rng().integers(0, 99, 6).astype(np.float32)
    y, at = td.zeros(4, device=device), td.zeros(4, dtype=td.int32, device=device)
    opened(ITERATORS).places[1, 4](td.asarray(x, device=device), y, at)
    assert y.tolist() == (x[2:] + x[:4] + x[0] + x[1:5]).tolist()
    assert at.tolist() == [10, 11, 12, 13]


DETAILS = (
    HEAD
    + """
const int N = 64;
typedef cub::BlockScan<int, N> Scan;
typedef cub::BlockDiscontinuity<int, N> Edges;
typedef cub::BlockAdjacentDifference<int, N> Differences;
typedef cub::BlockRakingLayout<int, N> Raking;
static_assert(Raking::UNGUARDED && Raking::SEGMENT_LENGTH == 2, "two values a raking thread");
__global__ void scans_of_two(const int *x, int *out)
{
    __shared__ typename Scan::TempStorage s;
    int t = threadIdx.x, two[2] = {x[2 * t], x[2 * t + 1]}, made[2], total, one;
    Scan(s).ExclusiveScan(two, made, cub::Max(), total); __syncthreads();
    out[0 * N + t] = t == 0 ? made[1] : made[0] + 3 * made[1]; out[1 * N + t] = total;
    Scan(s).InclusiveScan(two, made, 50, cub::Max()); __syncthreads();
    out[2 * N + t] = made[0] + 3 * made[1];
    Scan(s).InclusiveScan(two[0], one, 60, cub::Min(), total);
    out[3 * N + t] = one + 1000 * total;
}
__global__ void neighbours(const int *x, int *out)
{
    __shared__ union {
        typename Edges::TempStorage edges;
        typename Differences::TempStorage differences;
        typename Raking::TempStorage raking;
    } s;
    int t = threadIdx.x, two[2] = {x[2 * t], x[2 * t + 1]}, made[2], heads[2], tails[2];
    Edges(s.edges).FlagHeadsAndTails(heads, 7, tails, 9, two, cub::Inequality());
    __syncthreads();
    out[0 * N + t] = heads[0] + 2 * heads[1] + 4 * tails[0] + 8 * tails[1];
    Differences(s.differences).SubtractLeftPartialTile(two, made, cub::Difference(), 77);
    __syncthreads();
    out[1 * N + t] = made[0] + 1000 * made[1];
    Differences(s.differences).SubtractRight(two, made, cub::Difference(), 5);
    __syncthreads();
    out[2 * N + t] = made[0] + 1000 * made[1];
    *Raking::PlacementPtr(s.raking, t) = two[0]; __syncthreads();
    int *own = Raking::RakingPtr(s.raking, t % Raking::RAKING_THREADS);
    out[3 * N + t] = own[0] + 1000 * own[1];
}
struct Both { int a; short b, c; };
__global__ void words(const int *x, int *out)
{
    int t = threadIdx.x;
    Both both = {x[2 * t], (short)x[2 * t + 1], (short)t};
    Both moved = cub::ShuffleDown<32>(both, 3, 31, 0xffffffffu);
    out[t] = moved.a + moved.b * 3 + moved.c * 1000;
    unsigned bits = cub::BFE((unsigned)x[2 * t], 2, 3), merged = 0u;
    cub::BFI(merged, 0xffffffffu, 5u, 4, 3);
    out[N + t] = bits + 8 * (int)(merged == 0xffffffdfu);
}
"""
)


def detail(device, kernel, x, rows):
    out = td.full((rows, 64), -77, dtype=td.int32, device=device)
    opened(DETAILS).kernel(kernel)[1, 64](on(device, x), out)
    return out.numpy()


def values_with_runs():
    x = np.random.default_rng().integers(0, 99, 128).astype(np.int32)
    x[5:9] = x[5]
    return x


def test_scans_without_and_with_initial_values(device):
    x = values_with_runs()
    got = detail(device, "scans_of_two", x, 4)
    most = np.maximum.accumulate(x)
    before = np.concatenate([[0], most[:-1]])
    first = before[::2] + 3 * before[1::2]
    first[0] = before[1]
    assert (got[0] == first).all()
    assert (got[1] == x.max()).all()
    upto = np.maximum(most, 50)
    assert (got[2] == upto[::2] + 3 * upto[1::2]).all()
    least = np.minimum(np.minimum.accumulate(x[::2]), 60)
    assert (got[3] == least + 1000 * x[::2].min()).all()


def test_neighbours_and_raking_threads(device):
    x = values_with_runs()
    got = detail(device, "neighbours", x, 4)
    heads = np.concatenate([[7], x[:-1]]) != x
    tails = np.concatenate([x[1:], [9]]) != x
    assert (got[0] == heads[::2] + 2 * heads[1::2] + 4 * tails[::2] + 8 * tails[1::2]).all()
    left = np.concatenate([x[:1], np.diff(x)])
    left[77:] = x[77:]
    assert (got[1] == left[::2] + 1000 * left[1::2]).all()
    right = x - np.concatenate([x[1:], [5]])
    assert (got[2] == right[::2] + 1000 * right[1::2]).all()
    pairs = x[0:128:4] + 1000 * x[2:128:4]
    assert (got[3] == np.concatenate([pairs, pairs])).all()


def test_shuffles_of_structs_and_bits(device):
    x, t = values_with_runs(), np.arange(64)
    got = detail(device, "words", x, 2)
    source = np.where(t % 32 + 3 > 31, t, t + 3) % 64
    assert (got[0] == x[::2][source] + 3 * x[1::2][source] + 1000 * source).all()
    assert (got[1] == (x[::2] >> 2 & 7) + 8).all()
