// CUB: what its classes are made of, which programs use by themselves: bits, storage without
// constructors, the layout of raking threads, operators of segments, searches, sorts of a thread.
#pragma once
#include <cub_common.cuh>
namespace cub {

template <class T> struct Uninitialized {
    typedef T DeviceWord;
    T __treadle_storage;
    __device__ T &Alias() { return __treadle_storage; }
};
template <int value> struct Int2Type { enum { VALUE = value }; };
template <bool holds, class A, class B> struct If { typedef std::conditional_t<holds, A, B> Type; };
template <class A, class B> struct Equals { enum { VALUE = std::is_same_v<A, B>, NEGATE = !VALUE }; };
template <class A, class B> __host__ __device__ void Swap(A &a, B &b) {
    A kept = a;
    a = b;
    b = kept;
}

// --- bits ----------------------------------------------------------------------------------------

template <class T> __device__ unsigned int BFE(T source, unsigned int start, unsigned int bits) {
    unsigned long long word = (unsigned long long)(std::make_unsigned_t<T>)source;
    return (unsigned int)(word >> start) & (unsigned int)((1ull << bits) - 1ull);
}
__device__ inline void BFI(unsigned int &to, unsigned int x, unsigned int y, unsigned int start, unsigned int bits) {
    unsigned int mask = (unsigned int)((1ull << bits) - 1ull) << start;
    to = (x & ~mask) | (y << start & mask);
}
__device__ inline unsigned int SHR_ADD(unsigned int x, unsigned int shift, unsigned int add) { return (x >> shift) + add; }
__device__ inline unsigned int SHL_ADD(unsigned int x, unsigned int shift, unsigned int add) { return (x << shift) + add; }
__device__ inline unsigned int IADD3(unsigned int x, unsigned int y, unsigned int z) { return x + y + z; }
__device__ inline int PRMT(unsigned int a, unsigned int b, unsigned int index) { return (int)__byte_perm(a, b, index); }
__device__ inline unsigned int LaneMaskLt() { return (1u << LaneId()) - 1u; }
__device__ inline unsigned int LaneMaskLe() { return (2u << LaneId()) - 1u; }
__device__ inline unsigned int LaneMaskGt() { return ~LaneMaskLe(); }
__device__ inline unsigned int LaneMaskGe() { return ~LaneMaskLt(); }
__device__ inline int WARP_ALL(int holds, unsigned int mask) { return __all_sync(mask, holds); }
__device__ inline int WARP_ANY(int holds, unsigned int mask) { return __any_sync(mask, holds); }
__device__ inline unsigned int WARP_BALLOT(int holds, unsigned int mask) { return __ballot_sync(mask, holds); }
__device__ inline int CTA_SYNC_AND(int holds) { return __syncthreads_and(holds); }
__device__ inline int CTA_SYNC_OR(int holds) { return __syncthreads_or(holds); }
// The lanes of the warp with the same low `bits`.
template <int bits> __device__ unsigned int MatchAny(unsigned int label) {
    return __match_any_sync(0xffffffffu, label & (unsigned int)((1ull << bits) - 1ull));
}

// --- the layout of raking threads ----------------------------------------------------------------

// Each thread of a block has an item, and each raking thread a segment of adjacent ones.
template <class T, int threads, int arch = 0> struct BlockRakingLayout {
    static constexpr int SHARED_ELEMENTS = threads;
    static constexpr int MAX_RAKING_THREADS = threads < 32 ? threads : 32;
    static constexpr int SEGMENT_LENGTH = (SHARED_ELEMENTS + MAX_RAKING_THREADS - 1) / MAX_RAKING_THREADS;
    static constexpr int RAKING_THREADS = (SHARED_ELEMENTS + SEGMENT_LENGTH - 1) / SEGMENT_LENGTH;
    static constexpr int UNGUARDED = SHARED_ELEMENTS % RAKING_THREADS == 0;
    static constexpr int GRID_ELEMENTS = RAKING_THREADS * SEGMENT_LENGTH;
    struct _TempStorage { T buff[GRID_ELEMENTS]; };
    struct TempStorage : Uninitialized<_TempStorage> {};
    __device__ static T *PlacementPtr(TempStorage &storage, unsigned int rank) { return storage.Alias().buff + rank; }
    __device__ static T *RakingPtr(TempStorage &storage, unsigned int rank) {
        return storage.Alias().buff + rank * SEGMENT_LENGTH;
    }
};

// --- operators -----------------------------------------------------------------------------------

template <class To> struct CastOp {
    template <class T> __host__ __device__ To operator()(const T &x) const { return (To)x; }
};
template <class Op> struct SwizzleScanOp {
    Op op;
    __host__ __device__ SwizzleScanOp(Op given) : op(given) {}
    template <class T> __host__ __device__ T operator()(const T &a, const T &b) const { return op(b, a); }
};
template <class Op> struct InequalityWrapper {
    Op op;
    __host__ __device__ InequalityWrapper(Op given) : op(given) {}
    template <class T> __host__ __device__ bool operator()(const T &a, const T &b) const { return !op(a, b); }
};
// Of pairs whose key counts the heads of segments.
template <class Op> struct ReduceBySegmentOp {
    Op op;
    __host__ __device__ ReduceBySegmentOp() {}
    __host__ __device__ ReduceBySegmentOp(Op given) : op(given) {}
    template <class Pair> __host__ __device__ Pair operator()(const Pair &first, const Pair &second) const {
        Pair sum;
        sum.key = first.key + second.key;
        sum.value = second.key ? second.value : op(first.value, second.value);
        return sum;
    }
};
template <class Op> struct ReduceByKeyOp {
    Op op;
    __host__ __device__ ReduceByKeyOp() {}
    __host__ __device__ ReduceByKeyOp(Op given) : op(given) {}
    template <class Pair> __host__ __device__ Pair operator()(const Pair &first, const Pair &second) const {
        Pair sum = second;
        if (first.key == second.key)
            sum.value = op(first.value, second.value);
        return sum;
    }
};

// --- of one thread -------------------------------------------------------------------------------

template <class In, class I, class T> __device__ I LowerBound(In input, I count, T value) {
    I first = 0;
    while (count > 0) {
        I half = count >> 1;
        if (input[first + half] < value) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first;
}
template <class In, class I, class T> __device__ I UpperBound(In input, I count, T value) {
    I first = 0;
    while (count > 0) {
        I half = count >> 1;
        if (value < input[first + half]) {
            count = half;
        } else {
            first += half + 1;
            count -= half + 1;
        }
    }
    return first;
}
// Where a diagonal crosses the path that merges two sorted lists.
template <class A, class B, class I, class Place>
__host__ __device__ void MergePathSearch(I diagonal, A a, B b, I a_count, I b_count, Place &place) {
    I low = diagonal > b_count ? diagonal - b_count : 0, high = diagonal < a_count ? diagonal : a_count;
    while (low < high) {
        I middle = (low + high) >> 1;
        if (a[middle] <= b[diagonal - middle - 1])
            low = middle + 1;
        else
            high = middle;
    }
    place.x = low < a_count ? low : a_count;
    place.y = diagonal - low;
}
template <class A, class B, class I, class Less>
__device__ I MergePath(A a, B b, I a_count, I b_count, I diagonal, Less less) {
    I low = diagonal > b_count ? diagonal - b_count : 0, high = diagonal < a_count ? diagonal : a_count;
    while (low < high) {
        I middle = (low + high) >> 1;
        if (less(b[diagonal - 1 - middle], a[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
template <class K, class V, class Less, int count>
__device__ void StableOddEvenSort(K (&keys)[count], V (&values)[count], Less less) {
    for (int round = 0; round < count; ++round)
        for (int i = round % 2; i < count - 1; i += 2)
            if (less(keys[i + 1], keys[i])) {
                Swap(keys[i], keys[i + 1]);
                Swap(values[i], values[i + 1]);
            }
}
template <class K, int count, class Less> __device__ void StableOddEvenSort(K (&keys)[count], Less less) {
    for (int round = 0; round < count; ++round)
        for (int i = round % 2; i < count - 1; i += 2)
            if (less(keys[i + 1], keys[i]))
                Swap(keys[i], keys[i + 1]);
}
template <int count, CacheLoadModifier modifier, class In, class T>
__device__ void UnrolledThreadLoad(In from, T (&items)[count]) {
    for (int i = 0; i < count; ++i)
        items[i] = from[i];
}
template <int count, CacheStoreModifier modifier, class Out, class T>
__device__ void UnrolledThreadStore(Out to, T (&items)[count]) {
    for (int i = 0; i < count; ++i)
        to[i] = items[i];
}
template <CacheStoreModifier modifier, class T, class Offset = ptrdiff_t> struct CacheModifiedOutputIterator {
    typedef void value_type;
    T *to;
    __host__ __device__ CacheModifiedOutputIterator(T *given) : to(given) {}
    __device__ T &operator*() const { return *to; }
    template <class I> __device__ T &operator[](I i) const { return to[i]; }
    template <class I> __device__ CacheModifiedOutputIterator operator+(I i) const { return CacheModifiedOutputIterator(to + i); }
};

}  // namespace cub
