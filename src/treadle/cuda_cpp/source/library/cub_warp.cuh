// CUB: reductions, scans and exchanges of warps.
#pragma once
#include <cub_common.cuh>
namespace cub {

template <class T, int threads> struct __treadle_warp_items { T items[threads]; };

// The values of lanes `lane` to the last valid one, in this order: lane 0 has the result.
template <int threads, class T, class Op>
__device__ T __treadle_warp_reduce(T *items, T x, Op op, int valid, unsigned int mask) {
    int lane = LaneId() % threads;
    if constexpr (__treadle_shuffled<T>) {
        for (int by = 1; by < threads; by *= 2) {
            T other = __shfl_down_sync(mask, x, by, threads);
            if (lane + by < valid)
                x = op(x, other);
        }
        return x;
    } else {
        items[lane] = x;
        __syncwarp(mask);
        for (int by = 1; by < threads; by *= 2) {
            if (lane % (2 * by) == 0 && lane + by < valid)
                items[lane] = op(items[lane], items[lane + by]);
            __syncwarp(mask);
        }
        return items[lane];
    }
}
template <int threads, class T, class Op>
__device__ T __treadle_warp_scan(T *items, T x, Op op, unsigned int mask) {
    int lane = LaneId() % threads;
    if constexpr (__treadle_shuffled<T>) {
        for (int by = 1; by < threads; by *= 2) {
            T other = __shfl_up_sync(mask, x, by, threads);
            if (lane >= by)
                x = op(other, x);
        }
    } else {
        items[lane] = x;
        __syncwarp(mask);
        for (int by = 1; by < threads; by *= 2) {
            T other = items[lane >= by ? lane - by : lane];
            __syncwarp(mask);
            if (lane >= by)
                x = op(other, x);
            items[lane] = x;
            __syncwarp(mask);
        }
    }
    return x;
}
template <int threads, class T>
__device__ T __treadle_from_lane(T *items, T x, int lane, unsigned int mask) {
    if constexpr (__treadle_shuffled<T>) {
        return __shfl_sync(mask, x, lane, threads);
    } else {
        __syncwarp(mask);
        items[LaneId() % threads] = x;
        __syncwarp(mask);
        return items[lane];
    }
}

template <class T, int threads = 32, int arch = 0> struct WarpReduce {
    static_assert((threads & (threads - 1)) == 0, "a logical warp has a power of two of threads");
    typedef __treadle_warp_items<T, threads> TempStorage;
    T *items;
    __device__ WarpReduce(TempStorage &storage) : items(storage.items) {}
    template <class Op> __device__ T Reduce(T x, Op op) {
        return __treadle_warp_reduce<threads>(items, x, op, threads, __treadle_group<threads>());
    }
    template <class Op> __device__ T Reduce(T x, Op op, int valid) {
        return __treadle_warp_reduce<threads>(items, x, op, valid, __treadle_group<threads>());
    }
    __device__ T Sum(T x) { return Reduce(x, cub::Sum()); }
    __device__ T Sum(T x, int valid) { return Reduce(x, cub::Sum(), valid); }
    __device__ T Max(T x) { return Reduce(x, cub::Max()); }
    __device__ T Min(T x) { return Reduce(x, cub::Min()); }
    template <class Flag, class Op> __device__ T HeadSegmentedReduce(T x, Flag head, Op op) {
        int lane = LaneId() % threads, first = LaneId() - lane;
        unsigned int heads = __ballot_sync(__treadle_group<threads>(), head) >> first;
        unsigned int later = lane == 31 ? 0u : heads & (0xfffffffeu << lane);
        int end = later == 0 ? threads : __ffs(later) - 1;
        return Reduce(x, op, end < threads ? end : threads);
    }
    template <class Flag> __device__ T HeadSegmentedSum(T x, Flag head) { return HeadSegmentedReduce(x, head, cub::Sum()); }
    template <class Flag, class Op> __device__ T TailSegmentedReduce(T x, Flag tail, Op op) {
        int lane = LaneId() % threads, first = LaneId() - lane;
        unsigned int tails = __ballot_sync(__treadle_group<threads>(), tail) >> first & (0xffffffffu << lane);
        int end = tails == 0 ? threads : __ffs(tails);
        return Reduce(x, op, end < threads ? end : threads);
    }
    template <class Flag> __device__ T TailSegmentedSum(T x, Flag tail) { return TailSegmentedReduce(x, tail, cub::Sum()); }
};

template <class T, int threads = 32, int arch = 0> struct WarpScan {
    static_assert((threads & (threads - 1)) == 0, "a logical warp has a power of two of threads");
    typedef __treadle_warp_items<T, threads> TempStorage;
    T *items;
    __device__ WarpScan(TempStorage &storage) : items(storage.items) {}
    template <class Op> __device__ void InclusiveScan(T x, T &out, Op op) {
        out = __treadle_warp_scan<threads>(items, x, op, __treadle_group<threads>());
    }
    template <class Op> __device__ void InclusiveScan(T x, T &out, Op op, T &aggregate) {
        T sum = __treadle_warp_scan<threads>(items, x, op, __treadle_group<threads>());
        out = sum;
        aggregate = Broadcast(sum, threads - 1);
    }
    template <class Op> __device__ void InclusiveScan(T x, T &out, T initial, Op op) {
        out = op(initial, __treadle_warp_scan<threads>(items, x, op, __treadle_group<threads>()));
    }
    template <class Op> __device__ void InclusiveScan(T x, T &out, T initial, Op op, T &aggregate) {
        InclusiveScan(x, out, op, aggregate);
        out = op(initial, out);
    }
    // Lane 0 of a scan without initial value is undefined in CUB, and its own value here.
    template <class Op> __device__ void ExclusiveScan(T x, T &out, Op op, T &aggregate) {
        T sum = __treadle_warp_scan<threads>(items, x, op, __treadle_group<threads>());
        int lane = LaneId() % threads;
        T before = __treadle_from_lane<threads>(items, sum, lane > 0 ? lane - 1 : 0, __treadle_group<threads>());
        aggregate = Broadcast(sum, threads - 1);
        out = lane > 0 ? before : x;
    }
    template <class Op> __device__ void ExclusiveScan(T x, T &out, Op op) {
        T sum = __treadle_warp_scan<threads>(items, x, op, __treadle_group<threads>());
        int lane = LaneId() % threads;
        T before = __treadle_from_lane<threads>(items, sum, lane > 0 ? lane - 1 : 0, __treadle_group<threads>());
        out = lane > 0 ? before : x;
    }
    template <class Op> __device__ void ExclusiveScan(T x, T &out, T initial, Op op) {
        T before = x;
        ExclusiveScan(x, before, op);
        out = LaneId() % threads > 0 ? op(initial, before) : initial;
    }
    template <class Op> __device__ void ExclusiveScan(T x, T &out, T initial, Op op, T &aggregate) {
        T sum = __treadle_warp_scan<threads>(items, x, op, __treadle_group<threads>());
        int lane = LaneId() % threads;
        T before = __treadle_from_lane<threads>(items, sum, lane > 0 ? lane - 1 : 0, __treadle_group<threads>());
        aggregate = Broadcast(sum, threads - 1);
        out = lane > 0 ? op(initial, before) : initial;
    }
    __device__ void InclusiveSum(T x, T &out) { InclusiveScan(x, out, cub::Sum()); }
    __device__ void InclusiveSum(T x, T &out, T &aggregate) { InclusiveScan(x, out, cub::Sum(), aggregate); }
    __device__ void ExclusiveSum(T x, T &out) { ExclusiveScan(x, out, (T)0, cub::Sum()); }
    __device__ void ExclusiveSum(T x, T &out, T &aggregate) { ExclusiveScan(x, out, (T)0, cub::Sum(), aggregate); }
    template <class Op> __device__ void Scan(T x, T &inclusive, T &exclusive, T initial, Op op) {
        T sum = __treadle_warp_scan<threads>(items, x, op, __treadle_group<threads>());
        int lane = LaneId() % threads;
        T before = __treadle_from_lane<threads>(items, sum, lane > 0 ? lane - 1 : 0, __treadle_group<threads>());
        exclusive = lane > 0 ? op(initial, before) : initial;
        inclusive = op(initial, sum);
    }
    template <class Op> __device__ void Scan(T x, T &inclusive, T &exclusive, Op op) {
        T sum = __treadle_warp_scan<threads>(items, x, op, __treadle_group<threads>());
        int lane = LaneId() % threads;
        T before = __treadle_from_lane<threads>(items, sum, lane > 0 ? lane - 1 : 0, __treadle_group<threads>());
        exclusive = lane > 0 ? before : x;
        inclusive = sum;
    }
    __device__ T Broadcast(T x, unsigned int lane) {
        return __treadle_from_lane<threads>(items, x, (int)lane, __treadle_group<threads>());
    }
};

enum WarpExchangeAlgorithm { WARP_EXCHANGE_SMEM, WARP_EXCHANGE_SHUFFLE };
template <class T, int count, int threads = 32, int arch = 0, WarpExchangeAlgorithm algorithm = WARP_EXCHANGE_SMEM>
struct WarpExchange {
    struct TempStorage { T items[count * threads]; };
    T *items;
    __device__ WarpExchange(TempStorage &storage) : items(storage.items) {}
    __device__ void BlockedToStriped(const T (&in)[count], T (&out)[count]) {
        int lane = LaneId() % threads;
        for (int i = 0; i < count; ++i)
            items[lane * count + i] = in[i];
        __syncwarp(__treadle_group<threads>());
        for (int i = 0; i < count; ++i)
            out[i] = items[i * threads + lane];
    }
    __device__ void StripedToBlocked(const T (&in)[count], T (&out)[count]) {
        int lane = LaneId() % threads;
        for (int i = 0; i < count; ++i)
            items[i * threads + lane] = in[i];
        __syncwarp(__treadle_group<threads>());
        for (int i = 0; i < count; ++i)
            out[i] = items[lane * count + i];
    }
    template <class Rank> __device__ void ScatterToStriped(const T (&in)[count], T (&out)[count], Rank (&ranks)[count]) {
        int lane = LaneId() % threads;
        for (int i = 0; i < count; ++i)
            items[ranks[i]] = in[i];
        __syncwarp(__treadle_group<threads>());
        for (int i = 0; i < count; ++i)
            out[i] = items[i * threads + lane];
    }
    template <class Rank> __device__ void ScatterToStriped(T (&x)[count], Rank (&ranks)[count]) { ScatterToStriped(x, x, ranks); }
};

}  // namespace cub
