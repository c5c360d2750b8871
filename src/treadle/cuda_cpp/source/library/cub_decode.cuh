// CUB: runs of a block as their items.
#pragma once
#include <cub_block.cuh>
namespace cub {

template <class T, int x_threads, int runs, int count, class Offset = unsigned int, int y_threads = 1, int z_threads = 1>
struct BlockRunLengthDecode {
    static constexpr int threads = x_threads * y_threads * z_threads;
    typedef BlockScan<Offset, x_threads, BLOCK_SCAN_WARP_SCANS, y_threads, z_threads> Scan;
    struct TempStorage {
        typename Scan::TempStorage scan;
        T values[threads * runs];
        Offset ends[threads * runs];  // of the runs
    };
    TempStorage *storage;
    int rank;
    template <class Length, class Total>
    __device__ BlockRunLengthDecode(TempStorage &given, T (&values)[runs], Length (&lengths)[runs], Total &total)
        : storage(&given), rank(RowMajorTid(x_threads, y_threads, z_threads)) {
        Offset ends[runs], sum;
        for (int i = 0; i < runs; ++i)
            ends[i] = (Offset)lengths[i];
        Scan(storage->scan).InclusiveSum(ends, ends, sum);
        for (int i = 0; i < runs; ++i) {
            storage->values[rank * runs + i] = values[i];
            storage->ends[rank * runs + i] = ends[i];
        }
        total = (Total)sum;
        __syncthreads();
    }
    // The items of this thread, from one of the decoded items on, and their places in their runs.
    template <class Place> __device__ void RunLengthDecode(T (&items)[count], Place (&places)[count], Offset from = 0) {
        for (int i = 0; i < count; ++i) {
            Offset item = from + (Offset)(rank * count + i);
            int low = 0, high = threads * runs - 1;  // the first run that ends behind the item
            while (low < high) {
                int middle = (low + high) / 2;
                if (storage->ends[middle] <= item)
                    low = middle + 1;
                else
                    high = middle;
            }
            items[i] = storage->values[low];
            places[i] = (Place)(item - (low > 0 ? storage->ends[low - 1] : (Offset)0));
        }
    }
    __device__ void RunLengthDecode(T (&items)[count], Offset from = 0) {
        Offset places[count];
        RunLengthDecode(items, places, from);
    }
};

}  // namespace cub
