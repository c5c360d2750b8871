// CUB: histograms, and sorting in blocks and warps.
#pragma once
#include <cub_block.cuh>
namespace cub {

enum BlockHistogramAlgorithm { BLOCK_HISTO_ATOMIC, BLOCK_HISTO_SORT };
template <class T, int x_threads, int count, int bins, BlockHistogramAlgorithm algorithm = BLOCK_HISTO_SORT,
          int y_threads = 1, int z_threads = 1, int arch = 0>
struct BlockHistogram {
    static constexpr int threads = x_threads * y_threads * z_threads;
    struct TempStorage { int unused; };
    int rank;
    __device__ BlockHistogram(TempStorage &) : rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    template <class Counter> __device__ void InitHistogram(Counter *histogram) {
        for (int bin = rank; bin < bins; bin += threads)
            histogram[bin] = 0;
    }
    template <class Counter> __device__ void Composite(T (&x)[count], Counter *histogram) {
        for (int i = 0; i < count; ++i)
            atomicAdd(&histogram[x[i]], (Counter)1);
    }
    template <class Counter> __device__ void Histogram(T (&x)[count], Counter *histogram) {
        InitHistogram(histogram);
        __syncthreads();
        Composite(x, histogram);
    }
};

// Keys as unsigned numbers in the same order. Both zeros are one key, as in CUB.
template <class K> __device__ auto __treadle_ordered(K key) {
    if constexpr (std::is_same_v<K, float>) {
        unsigned int bits = __float_as_uint(key == 0.0f ? 0.0f : key);
        return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    } else if constexpr (std::is_same_v<K, double>) {
        unsigned long long bits = (unsigned long long)__double_as_longlong(key == 0.0 ? 0.0 : key);
        return bits >> 63 ? ~bits : bits | 1ull << 63;
    } else if constexpr (__treadle_is_signed<K>) {
        typedef __treadle_make_unsigned<K> U;
        return (U)((U)key ^ (U)((U)1 << (8 * sizeof(K) - 1)));
    } else {
        return key;
    }
}
template <class K, int x_threads, int count, class V = NullType, int bits_a_pass = 4, bool memoize = true,
          BlockScanAlgorithm algorithm = BLOCK_SCAN_WARP_SCANS, int shared_config = 0, int y_threads = 1,
          int z_threads = 1, int arch = 0>
struct BlockRadixSort {
    static constexpr int threads = x_threads * y_threads * z_threads;
    typedef BlockScan<int, x_threads, BLOCK_SCAN_WARP_SCANS, y_threads, z_threads> Scan;
    struct TempStorage {
        typename Scan::TempStorage scan;
        K keys[threads * count];
        V values[threads * count];
    };
    TempStorage *storage;
    int rank;
    __device__ static TempStorage *own_storage() {
        __shared__ TempStorage shared;
        return &shared;
    }
    __device__ BlockRadixSort() : storage(own_storage()), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    __device__ BlockRadixSort(TempStorage &given)
        : storage(&given), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}

    // A stable split by each bit, from the lowest: zeros first, or ones in descending order.
    template <bool descending, bool striped, bool with_values>
    __device__ void sort(K (&keys)[count], V (&values)[count], int first, int last) {
        for (int bit = first; bit < last; ++bit) {
            int low[count];
            int own = 0;
            for (int i = 0; i < count; ++i) {
                bool one = (__treadle_ordered(keys[i]) >> bit) & 1;
                low[i] = one == descending;
                own += low[i];
            }
            int before = 0, zeros = 0;
            Scan(storage->scan).ExclusiveSum(own, before, zeros);
            for (int i = 0; i < count; ++i) {
                int place = low[i] ? before : zeros + rank * count + i - before;
                before += low[i];
                storage->keys[place] = keys[i];
                if constexpr (with_values)
                    storage->values[place] = values[i];
            }
            __syncthreads();
            bool spread = striped && bit == last - 1;
            for (int i = 0; i < count; ++i) {
                int place = spread ? rank + i * threads : rank * count + i;
                keys[i] = storage->keys[place];
                if constexpr (with_values)
                    values[i] = storage->values[place];
            }
            __syncthreads();
        }
    }
#define __treadle_sort(name, descending, striped) \
    __device__ void name(K (&keys)[count], int first = 0, int last = sizeof(K) * 8) { \
        V none[count]; \
        sort<descending, striped, false>(keys, none, first, last); \
    } \
    __device__ void name(K (&keys)[count], V (&values)[count], int first = 0, int last = sizeof(K) * 8) { \
        sort<descending, striped, true>(keys, values, first, last); \
    }
    __treadle_sort(Sort, false, false)
    __treadle_sort(SortDescending, true, false)
    __treadle_sort(SortBlockedToStriped, false, true)
    __treadle_sort(SortDescendingBlockedToStriped, true, true)
#undef __treadle_sort
};

// By merging sorted runs: each element finds its place by a search in the other run. Stable.
template <class K, int count, class V, int threads, bool of_warp> struct __treadle_merge_sort {
    struct TempStorage {
        K keys[threads * count];
        V values[threads * count];
    };
    TempStorage *storage;
    int rank;
    __device__ __treadle_merge_sort(TempStorage *given, int own) : storage(given), rank(own) {}
    __device__ static void wait() {
        if constexpr (of_warp)
            __syncwarp(__treadle_group<threads>());
        else
            __syncthreads();
    }
    template <bool with_values, class Less>
    __device__ void sort(K (&keys)[count], V (&values)[count], Less less, int valid) {
        for (int i = 0; i < count; ++i) {
            storage->keys[rank * count + i] = keys[i];
            if constexpr (with_values)
                storage->values[rank * count + i] = values[i];
        }
        wait();
        for (int run = 1; run < threads * count; run *= 2) {
            int places[count];
            for (int i = 0; i < count; ++i) {
                int at = rank * count + i, start = at / (2 * run) * (2 * run);
                bool right = at - start >= run;
                int low = right ? start : start + run, high = right ? start + run : start + 2 * run;
                low = low < valid ? low : valid;
                high = high < valid ? high : valid;
                int begin = low;
                K key = storage->keys[at];
                while (low < high) {
                    int middle = (low + high) / 2;
                    K other = storage->keys[middle];
                    bool before = right ? !less(key, other) : less(other, key);
                    if (before)
                        low = middle + 1;
                    else
                        high = middle;
                }
                places[i] = right ? at - run + (low - begin) : at + (low - begin);
                keys[i] = key;
                if constexpr (with_values)
                    values[i] = storage->values[at];
            }
            wait();
            for (int i = 0; i < count; ++i)
                if (rank * count + i < valid) {
                    storage->keys[places[i]] = keys[i];
                    if constexpr (with_values)
                        storage->values[places[i]] = values[i];
                }
            wait();
        }
        for (int i = 0; i < count; ++i) {
            keys[i] = storage->keys[rank * count + i];
            if constexpr (with_values)
                values[i] = storage->values[rank * count + i];
        }
    }
    template <class Less> __device__ void Sort(K (&keys)[count], Less less) {
        V none[count];
        sort<false>(keys, none, less, threads * count);
    }
    template <class Less> __device__ void Sort(K (&keys)[count], Less less, int valid, K other) {
        V none[count];
        for (int i = 0; i < count; ++i)
            if (rank * count + i >= valid)
                keys[i] = other;
        sort<false>(keys, none, less, valid);
    }
    template <class Less> __device__ void Sort(K (&keys)[count], V (&values)[count], Less less) {
        sort<true>(keys, values, less, threads * count);
    }
    template <class Less> __device__ void Sort(K (&keys)[count], V (&values)[count], Less less, int valid, K other) {
        for (int i = 0; i < count; ++i)
            if (rank * count + i >= valid)
                keys[i] = other;
        sort<true>(keys, values, less, valid);
    }
    template <class Less> __device__ void StableSort(K (&keys)[count], Less less) { Sort(keys, less); }
    template <class Less> __device__ void StableSort(K (&keys)[count], V (&values)[count], Less less) { Sort(keys, values, less); }
};
template <class K, int x_threads, int count, class V = NullType, int y_threads = 1, int z_threads = 1>
struct BlockMergeSort : __treadle_merge_sort<K, count, V, x_threads * y_threads * z_threads, false> {
    typedef __treadle_merge_sort<K, count, V, x_threads * y_threads * z_threads, false> Base;
    typedef typename Base::TempStorage TempStorage;
    __device__ BlockMergeSort(TempStorage &given) : Base(&given, RowMajorTid(x_threads, y_threads, z_threads)) {}
};
template <class K, int count, int threads = 32, class V = NullType, int arch = 0>
struct WarpMergeSort : __treadle_merge_sort<K, count, V, threads, true> {
    typedef __treadle_merge_sort<K, count, V, threads, true> Base;
    typedef typename Base::TempStorage TempStorage;
    __device__ WarpMergeSort(TempStorage &given) : Base(&given, LaneId() % threads) {}
};

}  // namespace cub
