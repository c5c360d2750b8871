// CUB: reductions and scans of blocks.
#pragma once
#include <cub_common.cuh>
namespace cub {

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS,
    BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

// A block's values are combined by some of its threads, each for a segment of adjacent ones, and the
// segments by thread 0. That keeps their order, takes few barriers, and suits all devices.
template <class T, int threads> struct __treadle_block_items {
    static constexpr int segment = threads <= 16 ? 4 : threads <= 64 ? 8 : threads <= 256 ? 16 : 32;
    static constexpr int segments = (threads + segment - 1) / segment;
    T items[threads];
    T totals[segments];
};

template <class T, int x_threads, BlockReduceAlgorithm algorithm = BLOCK_REDUCE_WARP_REDUCTIONS,
          int y_threads = 1, int z_threads = 1, int arch = 0>
struct BlockReduce {
    static constexpr int threads = x_threads * y_threads * z_threads;
    typedef __treadle_block_items<T, threads> TempStorage;
    static constexpr int segment = TempStorage::segment, segments = TempStorage::segments;
    TempStorage *storage;
    int rank;
    __device__ static TempStorage *own_storage() {
        __shared__ TempStorage shared;
        return &shared;
    }
    __device__ BlockReduce() : storage(own_storage()), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    __device__ BlockReduce(TempStorage &given)
        : storage(&given), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}

    template <class Op> __device__ T Reduce(T x, Op op, int valid) {
        storage->items[rank] = x;
        __syncthreads();
        int first = rank * segment;
        if (rank < segments && first < valid) {
            T sum = storage->items[first];
            for (int i = 1; i < segment; ++i)
                if (first + i < valid)
                    sum = op(sum, storage->items[first + i]);
            storage->totals[rank] = sum;
        }
        __syncthreads();
        if (rank == 0) {
            x = storage->totals[0];
            for (int i = 1; i < segments; ++i)
                if (i * segment < valid)
                    x = op(x, storage->totals[i]);
        }
        return x;
    }
    template <class Op> __device__ T Reduce(T x, Op op) { return Reduce(x, op, threads); }
    template <int count, class Op> __device__ T Reduce(T (&x)[count], Op op) { return Reduce(__treadle_fold(x, op), op, threads); }
    __device__ T Sum(T x) { return Reduce(x, cub::Sum(), threads); }
    __device__ T Sum(T x, int valid) { return Reduce(x, cub::Sum(), valid); }
    template <int count> __device__ T Sum(T (&x)[count]) { return Reduce(x, cub::Sum()); }
};

template <class T, int x_threads, BlockScanAlgorithm algorithm = BLOCK_SCAN_RAKING,
          int y_threads = 1, int z_threads = 1, int arch = 0>
struct BlockScan {
    static constexpr int threads = x_threads * y_threads * z_threads;
    typedef __treadle_block_items<T, threads> TempStorage;
    static constexpr int segment = TempStorage::segment, segments = TempStorage::segments;
    TempStorage *storage;
    int rank;
    __device__ static TempStorage *own_storage() {
        __shared__ TempStorage shared;
        return &shared;
    }
    __device__ BlockScan() : storage(own_storage()), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    __device__ BlockScan(TempStorage &given)
        : storage(&given), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}

    // After it, `upto(i)` is the inclusive scan of thread i.
    template <class Op> __device__ T scan(T x, Op op) {
        storage->items[rank] = x;
        __syncthreads();
        int first = rank * segment;
        if (rank < segments) {
            T sum = storage->items[first];
            for (int i = 1; i < segment; ++i)
                if (first + i < threads) {
                    sum = op(sum, storage->items[first + i]);
                    storage->items[first + i] = sum;
                }
            storage->totals[rank] = sum;
        }
        __syncthreads();
        if (rank == 0) {
            T sum = storage->totals[0];
            for (int i = 1; i < segments; ++i) {
                sum = op(sum, storage->totals[i]);
                storage->totals[i] = sum;
            }
        }
        __syncthreads();
        return upto(rank, op);
    }
    template <class Op> __device__ T upto(int i, Op op) {
        T sum = storage->items[i];
        if (i >= segment)
            sum = op(storage->totals[i / segment - 1], sum);
        return sum;
    }
    __device__ T total() { return storage->totals[segments - 1]; }
    // What the callback gives for the block's total, for all threads.
    template <class Callback> __device__ T prefix(Callback &callback) {
        T sum = total();
        T before = sum;
        if (rank < 32)
            before = callback(sum);
        __syncthreads();
        if (rank == 0)
            storage->totals[0] = before;
        __syncthreads();
        return storage->totals[0];
    }

    template <class Op> __device__ void InclusiveScan(T x, T &out, Op op) { out = scan(x, op); }
    template <class Op> __device__ void InclusiveScan(T x, T &out, Op op, T &aggregate) {
        out = scan(x, op);
        aggregate = total();
    }
    // Thread 0 of a scan without initial value is undefined in CUB, and its own value here.
    template <class Op> __device__ void ExclusiveScan(T x, T &out, Op op) {
        scan(x, op);
        out = rank > 0 ? upto(rank - 1, op) : x;
    }
    template <class Op> __device__ void ExclusiveScan(T x, T &out, T initial, Op op) {
        scan(x, op);
        out = rank > 0 ? op(initial, upto(rank - 1, op)) : initial;
    }
    template <class Op> __device__ void ExclusiveScan(T x, T &out, T initial, Op op, T &aggregate) {
        scan(x, op);
        out = rank > 0 ? op(initial, upto(rank - 1, op)) : initial;
        aggregate = total();
    }
    template <class Op> __device__ void ExclusiveScan(T x, T &out, Op op, T &aggregate) {
        ExclusiveScan(x, out, op);
        aggregate = total();
    }
    template <class Op> __device__ void InclusiveScan(T x, T &out, T initial, Op op) { out = op(initial, scan(x, op)); }
    template <class Op> __device__ void InclusiveScan(T x, T &out, T initial, Op op, T &aggregate) {
        InclusiveScan(x, out, initial, op);
        aggregate = total();
    }
    __device__ void InclusiveSum(T x, T &out) { out = scan(x, cub::Sum()); }
    __device__ void InclusiveSum(T x, T &out, T &aggregate) { InclusiveScan(x, out, cub::Sum(), aggregate); }
    __device__ void ExclusiveSum(T x, T &out) {
        scan(x, cub::Sum());
        out = rank > 0 ? upto(rank - 1, cub::Sum()) : (T)0;
    }
    __device__ void ExclusiveSum(T x, T &out, T &aggregate) {
        ExclusiveSum(x, out);
        aggregate = total();
    }
    template <class Callback, class = std::enable_if_t<__treadle_is_class<Callback>>>
    __device__ void InclusiveSum(T x, T &out, Callback &callback) {
        T sum = scan(x, cub::Sum());
        out = prefix(callback) + sum;
    }
    template <class Callback, class = std::enable_if_t<__treadle_is_class<Callback>>>
    __device__ void ExclusiveSum(T x, T &out, Callback &callback) {
        T own = (T)0;
        ExclusiveSum(x, own);
        out = prefix(callback) + own;
    }
    template <class Op, class Callback, class = std::enable_if_t<__treadle_is_class<Op> && __treadle_is_class<Callback>>>
    __device__ void InclusiveScan(T x, T &out, Op op, Callback &callback) {
        T sum = scan(x, op);
        out = op(prefix(callback), sum);
    }
    template <class Op, class Callback, class = std::enable_if_t<__treadle_is_class<Op> && __treadle_is_class<Callback>>>
    __device__ void ExclusiveScan(T x, T &out, Op op, Callback &callback) {
        scan(x, op);
        T own = rank > 0 ? upto(rank - 1, op) : x;
        T before = prefix(callback);
        out = rank > 0 ? op(before, own) : before;
    }

    template <int count, class Op> __device__ void InclusiveScan(T (&x)[count], T (&out)[count], Op op) {
        T before = x[0];
        ExclusiveScan(__treadle_fold(x, op), before, op);
        T sum = rank > 0 ? op(before, x[0]) : x[0];
        out[0] = sum;
        for (int i = 1; i < count; ++i) {
            sum = op(sum, x[i]);
            out[i] = sum;
        }
    }
    template <int count, class Op> __device__ void InclusiveScan(T (&x)[count], T (&out)[count], Op op, T &aggregate) {
        InclusiveScan(x, out, op);
        aggregate = total();
    }
    template <int count, class Op> __device__ void ExclusiveScan(T (&x)[count], T (&out)[count], T initial, Op op) {
        T before = initial;
        ExclusiveScan(__treadle_fold(x, op), before, initial, op);
        for (int i = 0; i < count; ++i) {
            T own = x[i];
            out[i] = before;
            before = op(before, own);
        }
    }
    template <int count, class Op>
    __device__ void ExclusiveScan(T (&x)[count], T (&out)[count], T initial, Op op, T &aggregate) {
        ExclusiveScan(x, out, initial, op);
        aggregate = total();
    }
    template <int count, class Op> __device__ void ExclusiveScan(T (&x)[count], T (&out)[count], Op op) {
        T before = x[0];
        ExclusiveScan(__treadle_fold(x, op), before, op);
        for (int i = 0; i < count; ++i) {
            T own = x[i];
            out[i] = before;
            before = rank + i > 0 ? op(before, own) : own;
        }
    }
    template <int count, class Op> __device__ void ExclusiveScan(T (&x)[count], T (&out)[count], Op op, T &aggregate) {
        ExclusiveScan(x, out, op);
        aggregate = total();
    }
    template <int count, class Op> __device__ void InclusiveScan(T (&x)[count], T (&out)[count], T initial, Op op) {
        T before = initial;
        ExclusiveScan(__treadle_fold(x, op), before, initial, op);
        for (int i = 0; i < count; ++i) {
            before = op(before, x[i]);
            out[i] = before;
        }
    }
    template <int count, class Op>
    __device__ void InclusiveScan(T (&x)[count], T (&out)[count], T initial, Op op, T &aggregate) {
        InclusiveScan(x, out, initial, op);
        aggregate = total();
    }
    template <int count> __device__ void InclusiveSum(T (&x)[count], T (&out)[count]) { InclusiveScan(x, out, cub::Sum()); }
    template <int count> __device__ void InclusiveSum(T (&x)[count], T (&out)[count], T &aggregate) {
        InclusiveScan(x, out, cub::Sum(), aggregate);
    }
    template <int count> __device__ void ExclusiveSum(T (&x)[count], T (&out)[count]) { ExclusiveScan(x, out, (T)0, cub::Sum()); }
    template <int count> __device__ void ExclusiveSum(T (&x)[count], T (&out)[count], T &aggregate) {
        ExclusiveScan(x, out, (T)0, cub::Sum(), aggregate);
    }
    template <int count, class Op, class Callback,
              class = std::enable_if_t<__treadle_is_class<Op> && __treadle_is_class<Callback>>>
    __device__ void InclusiveScan(T (&x)[count], T (&out)[count], Op op, Callback &callback) {
        T before = x[0];
        ExclusiveScan(__treadle_fold(x, op), before, op, callback);
        for (int i = 0; i < count; ++i) {
            before = op(before, x[i]);
            out[i] = before;
        }
    }
    template <int count, class Op, class Callback,
              class = std::enable_if_t<__treadle_is_class<Op> && __treadle_is_class<Callback>>>
    __device__ void ExclusiveScan(T (&x)[count], T (&out)[count], Op op, Callback &callback) {
        T before = x[0];
        ExclusiveScan(__treadle_fold(x, op), before, op, callback);
        for (int i = 0; i < count; ++i) {
            T own = x[i];
            out[i] = before;
            before = op(before, own);
        }
    }
    template <int count, class Callback, class = std::enable_if_t<__treadle_is_class<Callback>>>
    __device__ void InclusiveSum(T (&x)[count], T (&out)[count], Callback &callback) {
        InclusiveScan(x, out, cub::Sum(), callback);
    }
    template <int count, class Callback, class = std::enable_if_t<__treadle_is_class<Callback>>>
    __device__ void ExclusiveSum(T (&x)[count], T (&out)[count], Callback &callback) {
        ExclusiveScan(x, out, cub::Sum(), callback);
    }
};

}  // namespace cub
