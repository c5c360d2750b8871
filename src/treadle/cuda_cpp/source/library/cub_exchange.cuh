// CUB: loads, stores and exchanges of blocks and warps, and neighbours' values.
#pragma once
#include <cub_common.cuh>
namespace cub {

// --- loads and stores ----------------------------------------------------------------------------

template <class T, int count, class In> __device__ void LoadDirectBlocked(int rank, In from, T (&items)[count]) {
    for (int i = 0; i < count; ++i)
        items[i] = from[rank * count + i];
}
template <class T, int count, class In> __device__ void LoadDirectBlocked(int rank, In from, T (&items)[count], int valid) {
    for (int i = 0; i < count; ++i)
        if (rank * count + i < valid)
            items[i] = from[rank * count + i];
}
template <class T, int count, class In, class Default>
__device__ void LoadDirectBlocked(int rank, In from, T (&items)[count], int valid, Default other) {
    for (int i = 0; i < count; ++i)
        items[i] = rank * count + i < valid ? (T)from[rank * count + i] : (T)other;
}
template <int threads, class T, int count, class In> __device__ void LoadDirectStriped(int rank, In from, T (&items)[count]) {
    for (int i = 0; i < count; ++i)
        items[i] = from[rank + i * threads];
}
template <int threads, class T, int count, class In>
__device__ void LoadDirectStriped(int rank, In from, T (&items)[count], int valid) {
    for (int i = 0; i < count; ++i)
        if (rank + i * threads < valid)
            items[i] = from[rank + i * threads];
}
template <int threads, class T, int count, class In, class Default>
__device__ void LoadDirectStriped(int rank, In from, T (&items)[count], int valid, Default other) {
    for (int i = 0; i < count; ++i)
        items[i] = rank + i * threads < valid ? (T)from[rank + i * threads] : (T)other;
}
template <class T, int count, class Out> __device__ void StoreDirectBlocked(int rank, Out to, T (&items)[count]) {
    for (int i = 0; i < count; ++i)
        to[rank * count + i] = items[i];
}
template <class T, int count, class Out> __device__ void StoreDirectBlocked(int rank, Out to, T (&items)[count], int valid) {
    for (int i = 0; i < count; ++i)
        if (rank * count + i < valid)
            to[rank * count + i] = items[i];
}
template <int threads, class T, int count, class Out> __device__ void StoreDirectStriped(int rank, Out to, T (&items)[count]) {
    for (int i = 0; i < count; ++i)
        to[rank + i * threads] = items[i];
}
template <int threads, class T, int count, class Out>
__device__ void StoreDirectStriped(int rank, Out to, T (&items)[count], int valid) {
    for (int i = 0; i < count; ++i)
        if (rank + i * threads < valid)
            to[rank + i * threads] = items[i];
}

// Items of a warp's threads side by side, warp after warp.
template <int count> __device__ int __treadle_warp_striped(int rank, int i) { return rank / 32 * 32 * count + i * 32 + rank % 32; }
template <class T, int count, class In> __device__ void LoadDirectWarpStriped(int rank, In from, T (&items)[count]) {
    for (int i = 0; i < count; ++i)
        items[i] = from[__treadle_warp_striped<count>(rank, i)];
}
template <class T, int count, class In> __device__ void LoadDirectWarpStriped(int rank, In from, T (&items)[count], int valid) {
    for (int i = 0; i < count; ++i)
        if (__treadle_warp_striped<count>(rank, i) < valid)
            items[i] = from[__treadle_warp_striped<count>(rank, i)];
}
template <class T, int count, class In, class Default>
__device__ void LoadDirectWarpStriped(int rank, In from, T (&items)[count], int valid, Default other) {
    for (int i = 0; i < count; ++i)
        items[i] = __treadle_warp_striped<count>(rank, i) < valid ? (T)from[__treadle_warp_striped<count>(rank, i)] : (T)other;
}
template <class T, int count, class Out> __device__ void StoreDirectWarpStriped(int rank, Out to, T (&items)[count]) {
    for (int i = 0; i < count; ++i)
        to[__treadle_warp_striped<count>(rank, i)] = items[i];
}
template <class T, int count, class Out> __device__ void StoreDirectWarpStriped(int rank, Out to, T (&items)[count], int valid) {
    for (int i = 0; i < count; ++i)
        if (__treadle_warp_striped<count>(rank, i) < valid)
            to[__treadle_warp_striped<count>(rank, i)] = items[i];
}
template <class T, int count> __device__ void LoadDirectBlockedVectorized(int rank, T *from, T (&items)[count]) {
    LoadDirectBlocked(rank, from, items);
}
template <class T, int count> __device__ void StoreDirectBlockedVectorized(int rank, T *to, T (&items)[count]) {
    StoreDirectBlocked(rank, to, items);
}

enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};
template <class T, int x_threads, int count, BlockLoadAlgorithm algorithm = BLOCK_LOAD_DIRECT,
          int y_threads = 1, int z_threads = 1, int arch = 0>
struct BlockLoad {
    static constexpr int threads = x_threads * y_threads * z_threads;
    struct TempStorage { int unused; };
    int rank;
    __device__ BlockLoad() : rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    __device__ BlockLoad(TempStorage &) : rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    template <class In> __device__ void Load(In from, T (&items)[count]) {
        if constexpr (algorithm == BLOCK_LOAD_STRIPED)
            LoadDirectStriped<threads>(rank, from, items);
        else
            LoadDirectBlocked(rank, from, items);
    }
    template <class In> __device__ void Load(In from, T (&items)[count], int valid) {
        if constexpr (algorithm == BLOCK_LOAD_STRIPED)
            LoadDirectStriped<threads>(rank, from, items, valid);
        else
            LoadDirectBlocked(rank, from, items, valid);
    }
    template <class In, class Default> __device__ void Load(In from, T (&items)[count], int valid, Default other) {
        if constexpr (algorithm == BLOCK_LOAD_STRIPED)
            LoadDirectStriped<threads>(rank, from, items, valid, other);
        else
            LoadDirectBlocked(rank, from, items, valid, other);
    }
};
template <class T, int x_threads, int count, BlockStoreAlgorithm algorithm = BLOCK_STORE_DIRECT,
          int y_threads = 1, int z_threads = 1, int arch = 0>
struct BlockStore {
    static constexpr int threads = x_threads * y_threads * z_threads;
    struct TempStorage { int unused; };
    int rank;
    __device__ BlockStore() : rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    __device__ BlockStore(TempStorage &) : rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    template <class Out> __device__ void Store(Out to, T (&items)[count]) {
        if constexpr (algorithm == BLOCK_STORE_STRIPED)
            StoreDirectStriped<threads>(rank, to, items);
        else
            StoreDirectBlocked(rank, to, items);
    }
    template <class Out> __device__ void Store(Out to, T (&items)[count], int valid) {
        if constexpr (algorithm == BLOCK_STORE_STRIPED)
            StoreDirectStriped<threads>(rank, to, items, valid);
        else
            StoreDirectBlocked(rank, to, items, valid);
    }
};
enum WarpLoadAlgorithm { WARP_LOAD_DIRECT, WARP_LOAD_STRIPED, WARP_LOAD_VECTORIZE, WARP_LOAD_TRANSPOSE };
enum WarpStoreAlgorithm { WARP_STORE_DIRECT, WARP_STORE_STRIPED, WARP_STORE_VECTORIZE, WARP_STORE_TRANSPOSE };
template <class T, int count, WarpLoadAlgorithm algorithm = WARP_LOAD_DIRECT, int threads = 32, int arch = 0>
struct WarpLoad {
    struct TempStorage { int unused; };
    int rank;
    __device__ WarpLoad() : rank(LaneId() % threads) {}
    __device__ WarpLoad(TempStorage &) : rank(LaneId() % threads) {}
    template <class In> __device__ void Load(In from, T (&items)[count]) {
        if constexpr (algorithm == WARP_LOAD_STRIPED)
            LoadDirectStriped<threads>(rank, from, items);
        else
            LoadDirectBlocked(rank, from, items);
    }
    template <class In> __device__ void Load(In from, T (&items)[count], int valid) {
        if constexpr (algorithm == WARP_LOAD_STRIPED)
            LoadDirectStriped<threads>(rank, from, items, valid);
        else
            LoadDirectBlocked(rank, from, items, valid);
    }
};
template <class T, int count, WarpStoreAlgorithm algorithm = WARP_STORE_DIRECT, int threads = 32, int arch = 0>
struct WarpStore {
    struct TempStorage { int unused; };
    int rank;
    __device__ WarpStore() : rank(LaneId() % threads) {}
    __device__ WarpStore(TempStorage &) : rank(LaneId() % threads) {}
    template <class Out> __device__ void Store(Out to, T (&items)[count]) {
        if constexpr (algorithm == WARP_STORE_STRIPED)
            StoreDirectStriped<threads>(rank, to, items);
        else
            StoreDirectBlocked(rank, to, items);
    }
    template <class Out> __device__ void Store(Out to, T (&items)[count], int valid) {
        if constexpr (algorithm == WARP_STORE_STRIPED)
            StoreDirectStriped<threads>(rank, to, items, valid);
        else
            StoreDirectBlocked(rank, to, items, valid);
    }
};

// --- exchanges -----------------------------------------------------------------------------------

template <class T, int x_threads, int count, bool warp_slices = false, int y_threads = 1, int z_threads = 1, int arch = 0>
struct BlockExchange {
    static constexpr int threads = x_threads * y_threads * z_threads;
    static constexpr int lanes = threads < 32 ? threads : 32;
    struct TempStorage { T items[threads * count]; };
    TempStorage *storage;
    int rank;
    __device__ static TempStorage *own_storage() {
        __shared__ TempStorage shared;
        return &shared;
    }
    __device__ BlockExchange() : storage(own_storage()), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    __device__ BlockExchange(TempStorage &given)
        : storage(&given), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    __device__ static int blocked(int rank, int i) { return rank * count + i; }
    __device__ static int striped(int rank, int i) { return rank + i * threads; }
    __device__ static int warp_striped(int rank, int i) {
        return rank / lanes * lanes * count + rank % lanes + i * lanes;
    }
#define __treadle_exchange(name, from, to) \
    __device__ void name(const T (&in)[count], T (&out)[count]) { \
        for (int i = 0; i < count; ++i) \
            storage->items[from(rank, i)] = in[i]; \
        __syncthreads(); \
        for (int i = 0; i < count; ++i) \
            out[i] = storage->items[to(rank, i)]; \
    } \
    __device__ void name(T (&items)[count]) { name(items, items); }
    __treadle_exchange(StripedToBlocked, striped, blocked)
    __treadle_exchange(BlockedToStriped, blocked, striped)
    __treadle_exchange(WarpStripedToBlocked, warp_striped, blocked)
    __treadle_exchange(BlockedToWarpStriped, blocked, warp_striped)
#undef __treadle_exchange
    template <class Rank> __device__ void ScatterToBlocked(const T (&in)[count], T (&out)[count], Rank (&ranks)[count]) {
        for (int i = 0; i < count; ++i)
            storage->items[ranks[i]] = in[i];
        __syncthreads();
        for (int i = 0; i < count; ++i)
            out[i] = storage->items[blocked(rank, i)];
    }
    template <class Rank> __device__ void ScatterToBlocked(T (&items)[count], Rank (&ranks)[count]) {
        ScatterToBlocked(items, items, ranks);
    }
    template <class Rank> __device__ void ScatterToStriped(const T (&in)[count], T (&out)[count], Rank (&ranks)[count]) {
        for (int i = 0; i < count; ++i)
            storage->items[ranks[i]] = in[i];
        __syncthreads();
        for (int i = 0; i < count; ++i)
            out[i] = storage->items[striped(rank, i)];
    }
    template <class Rank> __device__ void ScatterToStriped(T (&items)[count], Rank (&ranks)[count]) {
        ScatterToStriped(items, items, ranks);
    }
    template <class Rank> __device__ void ScatterToStripedGuarded(const T (&in)[count], T (&out)[count], Rank (&ranks)[count]) {
        for (int i = 0; i < count; ++i)
            if (ranks[i] >= 0)
                storage->items[ranks[i]] = in[i];
        __syncthreads();
        for (int i = 0; i < count; ++i)
            out[i] = storage->items[striped(rank, i)];
    }
    template <class Rank, class Flag>
    __device__ void ScatterToStripedFlagged(const T (&in)[count], T (&out)[count], Rank (&ranks)[count], Flag (&valid)[count]) {
        for (int i = 0; i < count; ++i)
            if (valid[i])
                storage->items[ranks[i]] = in[i];
        __syncthreads();
        for (int i = 0; i < count; ++i)
            out[i] = storage->items[striped(rank, i)];
    }
};

template <class T, int x_threads, int y_threads = 1, int z_threads = 1, int arch = 0> struct BlockShuffle {
    static constexpr int threads = x_threads * y_threads * z_threads;
    struct TempStorage { T items[threads]; };
    TempStorage *storage;
    int rank;
    __device__ BlockShuffle(TempStorage &given)
        : storage(&given), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    __device__ void Offset(T x, T &out, int distance = 1) {
        storage->items[rank] = x;
        __syncthreads();
        if (rank + distance >= 0 && rank + distance < threads)
            out = storage->items[rank + distance];
    }
    __device__ void Rotate(T x, T &out, unsigned int distance = 1) {
        storage->items[rank] = x;
        __syncthreads();
        out = storage->items[(rank + distance) % threads];
    }
    template <int count> __device__ void Up(T (&x)[count], T (&out)[count]) {
        storage->items[rank] = x[count - 1];
        __syncthreads();
        for (int i = count - 1; i > 0; --i)
            out[i] = x[i - 1];
        if (rank > 0)
            out[0] = storage->items[rank - 1];
    }
    // And the last item of the block, for all threads; of Down the first one.
    template <int count> __device__ void Up(T (&x)[count], T (&out)[count], T &last) {
        Up(x, out);
        last = storage->items[threads - 1];
    }
    template <int count> __device__ void Down(T (&x)[count], T (&out)[count], T &first) {
        Down(x, out);
        first = storage->items[0];
    }
    template <int count> __device__ void Down(T (&x)[count], T (&out)[count]) {
        storage->items[rank] = x[0];
        __syncthreads();
        for (int i = 0; i < count - 1; ++i)
            out[i] = x[i + 1];
        if (rank < threads - 1)
            out[count - 1] = storage->items[rank + 1];
    }
};

// --- neighbours ----------------------------------------------------------------------------------

template <class T, int x_threads, int y_threads = 1, int z_threads = 1, int arch = 0> struct BlockDiscontinuity {
    static constexpr int threads = x_threads * y_threads * z_threads;
    struct TempStorage { T items[threads]; T last[threads]; };
    TempStorage *storage;
    int rank;
    __device__ BlockDiscontinuity(TempStorage &given)
        : storage(&given), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    template <int count, class Flag, class Op> __device__ void FlagHeads(Flag (&heads)[count], T (&x)[count], Op op) {
        storage->last[rank] = x[count - 1];
        __syncthreads();
        heads[0] = rank == 0 ? (Flag)1 : (Flag)op(storage->last[rank > 0 ? rank - 1 : 0], x[0]);
        for (int i = 1; i < count; ++i)
            heads[i] = op(x[i - 1], x[i]);
    }
    template <int count, class Flag, class Op>
    __device__ void FlagHeads(Flag (&heads)[count], T (&x)[count], Op op, T before) {
        storage->last[rank] = x[count - 1];
        __syncthreads();
        T left = rank == 0 ? before : storage->last[rank > 0 ? rank - 1 : 0];
        heads[0] = op(left, x[0]);
        for (int i = 1; i < count; ++i)
            heads[i] = op(x[i - 1], x[i]);
    }
    template <int count, class Flag, class Op> __device__ void FlagTails(Flag (&tails)[count], T (&x)[count], Op op) {
        storage->items[rank] = x[0];
        __syncthreads();
        for (int i = 0; i < count - 1; ++i)
            tails[i] = op(x[i], x[i + 1]);
        int right = rank < threads - 1 ? rank + 1 : rank;
        tails[count - 1] = rank == threads - 1 ? (Flag)1 : (Flag)op(x[count - 1], storage->items[right]);
    }
    template <int count, class Flag, class Op>
    __device__ void FlagTails(Flag (&tails)[count], T (&x)[count], Op op, T after) {
        storage->items[rank] = x[0];
        __syncthreads();
        for (int i = 0; i < count - 1; ++i)
            tails[i] = op(x[i], x[i + 1]);
        T right = rank == threads - 1 ? after : storage->items[rank < threads - 1 ? rank + 1 : rank];
        tails[count - 1] = op(x[count - 1], right);
    }
    template <int count, class Flag, class Op>
    __device__ void FlagHeadsAndTails(Flag (&heads)[count], Flag (&tails)[count], T (&x)[count], Op op) {
        FlagHeads(heads, x, op);
        FlagTails(tails, x, op);
    }
    template <int count, class Flag, class Op>
    __device__ void FlagHeadsAndTails(Flag (&heads)[count], Flag (&tails)[count], T after, T (&x)[count], Op op) {
        FlagHeads(heads, x, op);
        FlagTails(tails, x, op, after);
    }
    template <int count, class Flag, class Op>
    __device__ void FlagHeadsAndTails(Flag (&heads)[count], T before, Flag (&tails)[count], T (&x)[count], Op op) {
        FlagHeads(heads, x, op, before);
        FlagTails(tails, x, op);
    }
    template <int count, class Flag, class Op>
    __device__ void FlagHeadsAndTails(Flag (&heads)[count], T before, Flag (&tails)[count], T after, T (&x)[count], Op op) {
        FlagHeads(heads, x, op, before);
        FlagTails(tails, x, op, after);
    }
};

template <class T, int x_threads, int y_threads = 1, int z_threads = 1, int arch = 0> struct BlockAdjacentDifference {
    static constexpr int threads = x_threads * y_threads * z_threads;
    struct TempStorage { T items[threads]; };
    TempStorage *storage;
    int rank;
    __device__ BlockAdjacentDifference(TempStorage &given)
        : storage(&given), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    template <int count, class Out, class Op> __device__ void SubtractLeft(T (&x)[count], Out (&out)[count], Op op) {
        storage->items[rank] = x[count - 1];
        __syncthreads();
        for (int i = count - 1; i > 0; --i)
            out[i] = op(x[i], x[i - 1]);
        out[0] = rank == 0 ? (Out)x[0] : (Out)op(x[0], storage->items[rank > 0 ? rank - 1 : 0]);
    }
    template <int count, class Out, class Op>
    __device__ void SubtractLeft(T (&x)[count], Out (&out)[count], Op op, T before) {
        storage->items[rank] = x[count - 1];
        __syncthreads();
        for (int i = count - 1; i > 0; --i)
            out[i] = op(x[i], x[i - 1]);
        T left = rank == 0 ? before : storage->items[rank > 0 ? rank - 1 : 0];
        out[0] = op(x[0], left);
    }
    template <int count, class Out, class Op> __device__ void SubtractRight(T (&x)[count], Out (&out)[count], Op op) {
        storage->items[rank] = x[0];
        __syncthreads();
        for (int i = 0; i < count - 1; ++i)
            out[i] = op(x[i], x[i + 1]);
        int right = rank < threads - 1 ? rank + 1 : rank;
        out[count - 1] = rank == threads - 1 ? (Out)x[count - 1] : (Out)op(x[count - 1], storage->items[right]);
    }
    template <int count, class Out, class Op>
    __device__ void SubtractRight(T (&x)[count], Out (&out)[count], Op op, T after) {
        storage->items[rank] = x[0];
        __syncthreads();
        for (int i = 0; i < count - 1; ++i)
            out[i] = op(x[i], x[i + 1]);
        T right = rank == threads - 1 ? after : storage->items[rank < threads - 1 ? rank + 1 : rank];
        out[count - 1] = op(x[count - 1], right);
    }
    // Of the first `valid` items; the others stay as they are.
    template <int count, class Out, class Op>
    __device__ void SubtractLeftPartialTile(T (&x)[count], Out (&out)[count], Op op, int valid) {
        storage->items[rank] = x[count - 1];
        __syncthreads();
        T left = storage->items[rank > 0 ? rank - 1 : 0];
        for (int i = count - 1; i >= 0; --i) {
            int place = rank * count + i;
            if (place > 0 && place < valid)
                out[i] = op(x[i], i > 0 ? x[i > 0 ? i - 1 : 0] : left);
            else
                out[i] = x[i];
        }
    }
    template <int count, class Out, class Op>
    __device__ void SubtractLeftPartialTile(T (&x)[count], Out (&out)[count], Op op, int valid, T before) {
        T first = x[0];
        SubtractLeftPartialTile(x, out, op, valid);
        if (rank == 0 && valid > 0)
            out[0] = op(first, before);
    }
    template <int count, class Out, class Op>
    __device__ void SubtractRightPartialTile(T (&x)[count], Out (&out)[count], Op op, int valid) {
        storage->items[rank] = x[0];
        __syncthreads();
        T right = storage->items[rank < threads - 1 ? rank + 1 : rank];
        for (int i = 0; i < count; ++i) {
            if (rank * count + i < valid - 1)
                out[i] = op(x[i], i < count - 1 ? x[i < count - 1 ? i + 1 : i] : right);
            else
                out[i] = x[i];
        }
    }
};

}  // namespace cub
