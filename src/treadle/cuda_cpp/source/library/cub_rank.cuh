// CUB: the places of a block's keys in the order of their digits.
#pragma once
#include <cub_block.cuh>
namespace cub {

template <class K> struct BFEDigitExtractor {
    typedef typename Traits<K>::UnsignedBits UnsignedBits;
    unsigned int start, bits;
    __device__ BFEDigitExtractor(unsigned int start = 0, unsigned int bits = 0) : start(start), bits(bits) {}
    __device__ unsigned int Digit(UnsignedBits key) const { return (unsigned int)(key >> start) & ((1u << bits) - 1u); }
};
template <class K> struct ShiftDigitExtractor {
    typedef typename Traits<K>::UnsignedBits UnsignedBits;
    unsigned int start, bits;
    __device__ ShiftDigitExtractor(unsigned int start = 0, unsigned int bits = 0) : start(start), bits(bits) {}
    __device__ unsigned int Digit(UnsignedBits key) const { return (unsigned int)(key >> start) & ((1u << bits) - 1u); }
};

// How many keys have digits before those that a thread has: `counts` are sums by then.
template <int digits, int columns, bool descending, class Storage, int count>
__device__ void __treadle_before_digits(const Storage &storage, int rank, int (&before)[count]) {
    for (int i = 0; i < count; ++i) {
        int digit = rank * count + i;
        if (digit < digits)
            before[i] = storage.counts[(descending ? digits - 1 - digit : digit) * columns];
    }
}

// Counts of each digit, for each thread or warp, become sums of those before.
template <int threads, int digits, int columns, class Storage>
__device__ void __treadle_sums_before(Storage &storage, int rank) {
    constexpr int each = (digits * columns + threads - 1) / threads;
    int first = rank * each, sum = 0;
    for (int at = first; at < first + each && at < digits * columns; ++at)
        sum += storage.counts[at];
    storage.sums[rank] = sum;
    __syncthreads();
    int before = 0;
    for (int other = 0; other < rank; ++other)
        before += storage.sums[other];
    for (int at = first; at < first + each && at < digits * columns; ++at) {
        int count = storage.counts[at];
        storage.counts[at] = before;
        before += count;
    }
    __syncthreads();
}

// The order of keys: those of a thread follow each other.
template <int x_threads, int radix_bits, bool descending, bool memoize = false,
          BlockScanAlgorithm algorithm = BLOCK_SCAN_WARP_SCANS, int shared_config = 0, int y_threads = 1,
          int z_threads = 1, int arch = 0>
struct BlockRadixRank {
    static constexpr int threads = x_threads * y_threads * z_threads;
    static constexpr int digits = 1 << radix_bits;
    static constexpr int BINS_TRACKED_PER_THREAD = digits > threads ? (digits + threads - 1) / threads : 1;
    struct TempStorage {
        unsigned short counts[digits * threads];
        int sums[threads];
    };
    TempStorage *storage;
    int rank;
    __device__ BlockRadixRank(TempStorage &given) : storage(&given), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    template <class Key, int count, class Digits>
    __device__ void RankKeys(Key (&keys)[count], int (&ranks)[count], Digits extractor) {
        for (int digit = 0; digit < digits; ++digit)
            storage->counts[digit * threads + rank] = 0;
        for (int i = 0; i < count; ++i) {
            int at = place(extractor.Digit(keys[i]));
            ranks[i] = storage->counts[at];
            storage->counts[at] = ranks[i] + 1;
        }
        __syncthreads();
        __treadle_sums_before<threads, digits, threads>(*storage, rank);
        for (int i = 0; i < count; ++i)
            ranks[i] += storage->counts[place(extractor.Digit(keys[i]))];
    }
    template <class Key, int count, class Digits>
    __device__ void RankKeys(Key (&keys)[count], int (&ranks)[count], Digits extractor, int (&before)[BINS_TRACKED_PER_THREAD]) {
        RankKeys(keys, ranks, extractor);
        __treadle_before_digits<digits, threads, descending>(*storage, rank, before);
    }
    __device__ int place(unsigned int digit) const { return (int)(descending ? digits - 1 - digit : digit) * threads + rank; }
};

// The order of keys: 32 of a warp, the first of each thread, then the next ones.
template <int x_threads, int radix_bits, bool descending, BlockScanAlgorithm algorithm = BLOCK_SCAN_WARP_SCANS,
          int y_threads = 1, int z_threads = 1, int arch = 0>
struct BlockRadixRankMatch {
    static constexpr int threads = x_threads * y_threads * z_threads;
    static constexpr int warps = (threads + 31) / 32;
    static constexpr int digits = 1 << radix_bits;
    static constexpr int BINS_TRACKED_PER_THREAD = digits > threads ? (digits + threads - 1) / threads : 1;
    struct TempStorage {
        int counts[digits * warps];
        int sums[threads];
    };
    TempStorage *storage;
    int rank;
    __device__ BlockRadixRankMatch(TempStorage &given) : storage(&given), rank(RowMajorTid(x_threads, y_threads, z_threads)) {}
    template <class Key, int count, class Digits>
    __device__ void RankKeys(Key (&keys)[count], int (&ranks)[count], Digits extractor) {
        for (int at = rank; at < digits * warps; at += threads)
            storage->counts[at] = 0;
        __syncthreads();
        unsigned int lower = (1u << (rank & 31)) - 1u;
        for (int i = 0; i < count; ++i) {
            int at = place(extractor.Digit(keys[i]));
            unsigned int same = __match_any_sync(0xffffffffu, at);
            ranks[i] = storage->counts[at] + __popc(same & lower);
            __syncwarp();
            if ((same & lower) == 0u)
                storage->counts[at] += __popc(same);
            __syncwarp();
        }
        __syncthreads();
        __treadle_sums_before<threads, digits, warps>(*storage, rank);
        for (int i = 0; i < count; ++i)
            ranks[i] += storage->counts[place(extractor.Digit(keys[i]))];
    }
    template <class Key, int count, class Digits>
    __device__ void RankKeys(Key (&keys)[count], int (&ranks)[count], Digits extractor, int (&before)[BINS_TRACKED_PER_THREAD]) {
        RankKeys(keys, ranks, extractor);
        __treadle_before_digits<digits, warps, descending>(*storage, rank, before);
    }
    __device__ int place(unsigned int digit) const { return (int)(descending ? digits - 1 - digit : digit) * warps + rank / 32; }
};

}  // namespace cub
