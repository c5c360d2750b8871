// <cooperative_groups.h>: blocks, tiles, parts of a warp, the grid, and clusters of one block. A
// `thread_group` is a block or a tile; it synchronizes the block if it has more threads than a warp.
#pragma once
#define _CG_ASM_PTR_CONSTRAINT "l"  // of a pointer, in the inline PTX of barriers like the grid's
namespace cooperative_groups {

namespace details {
// The last block to arrive at the grid's barrier changes the highest bit.
inline __device__ bool bar_has_flipped(unsigned int old_arrive, unsigned int current_arrive) {
    return ((old_arrive ^ current_arrive) & 0x80000000u) != 0;
}
}  // namespace details

struct thread_group {
    unsigned int count;
    __device__ void sync() const {
        unsigned int row = threadIdx.y + blockDim.y * threadIdx.z;
        unsigned int first = (threadIdx.x + blockDim.x * row) % 32 / count * count;
        if (count > 32)
            __syncthreads();
        else
            __syncwarp(count == 32 ? 0xffffffffu : ((1u << count) - 1u) << first);
    }
    __device__ unsigned int thread_rank() const {
        return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % count;
    }
    __device__ unsigned int size() const { return count; }
    __device__ unsigned int num_threads() const { return count; }
};

struct thread_block {
    __device__ operator thread_group() const { return thread_group{size()}; }
    struct arrival_token {};
    __device__ static void sync() { __syncthreads(); }
    __device__ static arrival_token barrier_arrive() { return arrival_token(); }
    __device__ static void barrier_wait(arrival_token) { __syncthreads(); }
    __device__ static unsigned int thread_rank() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    __device__ static unsigned int size() { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ static unsigned int num_threads() { return size(); }
    __device__ static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    __device__ static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    __device__ static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    __device__ static dim3 dim_threads() { return group_dim(); }
};

__device__ inline thread_block this_thread_block() { return thread_block(); }

struct grid_group {
    __device__ static bool is_valid() { return true; }
    __device__ static void sync() { __treadle_grid_barrier(); }
    using arrival_token = unsigned int;  // programs keep numbers of their own in one
    // The grid meets where it waits.
    __device__ static arrival_token barrier_arrive() { return 0u; }
    __device__ static void barrier_wait(arrival_token) { __treadle_grid_barrier(); }
    __device__ static unsigned long long block_rank() {
        return blockIdx.x + gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    __device__ static unsigned long long num_blocks() {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    __device__ static unsigned long long thread_rank() {
        return block_rank() * thread_block::size() + thread_block::thread_rank();
    }
    __device__ static unsigned long long size() { return num_blocks() * thread_block::size(); }
    __device__ static unsigned long long num_threads() { return size(); }
    __device__ static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    __device__ static dim3 dim_blocks() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
};

__device__ inline grid_group this_grid() { return grid_group(); }

template <int kept = 0> __device__ inline grid_group this_multi_grid() {
    static_assert(kept, "CUDA 13 has no grids of several devices: launch a kernel on each device");
    return grid_group();
}

// A launch here has no clusters, so each block is one by itself, as in CUDA.
struct cluster_group {
    struct arrival_token {};
    __device__ static void sync() { __syncthreads(); }
    __device__ static arrival_token barrier_arrive() { return arrival_token(); }
    __device__ static void barrier_wait() { __syncthreads(); }
    __device__ static void barrier_wait(arrival_token) { __syncthreads(); }
    __device__ static unsigned int query_shared_rank(const void *) { return 0; }
    template <class T> __device__ static T *map_shared_rank(T *address, int) { return address; }
    __device__ static dim3 block_index() { return dim3(0, 0, 0); }
    __device__ static unsigned int block_rank() { return 0; }
    __device__ static dim3 dim_blocks() { return dim3(1, 1, 1); }
    __device__ static unsigned int num_blocks() { return 1; }
    __device__ static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    __device__ static dim3 dim_threads() { return thread_block::group_dim(); }
    __device__ static unsigned int thread_rank() { return thread_block::thread_rank(); }
    __device__ static unsigned int num_threads() { return thread_block::size(); }
    __device__ static unsigned int size() { return thread_block::size(); }
};

__device__ inline cluster_group this_cluster() { return cluster_group(); }

// A struct, exchanged between threads in words of 32 or 8 bits.
template <class T, class Exchange> __device__ inline T __treadle_in_words(T value, Exchange exchange) {
    if constexpr (sizeof(T) % 4 == 0 && alignof(T) % 4 == 0) {
        unsigned int *words = reinterpret_cast<unsigned int *>(&value);
        for (int i = 0; i < (int)(sizeof(T) / 4); ++i)
            words[i] = exchange(words[i]);
    } else {
        unsigned char *bytes = reinterpret_cast<unsigned char *>(&value);
        for (int i = 0; i < (int)sizeof(T); ++i)
            bytes[i] = (unsigned char)exchange(bytes[i]);
    }
    return value;
}

// A tile of more than a warp waits at a barrier of PTX for some of the threads, of which a block has
// fifteen, and exchanges values through shared memory, where each warp has a place.
template <unsigned int Size, class Parent = thread_block>
struct thread_block_tile {
    static_assert(Size <= 1024 && (Size & (Size - 1)) == 0,
                  "tiles have a power of two of threads, 1024 at most");
    unsigned int __treadle_rank, __treadle_count;  // in what was partitioned
    __device__ static unsigned int first_lane() {
        return thread_block::thread_rank() % 32 / Size * Size;
    }
    __device__ static unsigned int members() {
        return Size == 32 ? 0xffffffffu : ((1u << (Size % 32)) - 1u) << first_lane();
    }
    __device__ operator thread_group() const { return thread_group{Size}; }
    __device__ static void sync() {
        if constexpr (Size <= 32)
            __syncwarp(members());
        else if (Size * 15 < blockDim.x * blockDim.y * blockDim.z)
            __syncthreads();
        else
            __treadle_barrier_of(1u + thread_block::thread_rank() / Size, Size);
    }
    __device__ static unsigned int thread_rank() { return thread_block::thread_rank() % Size; }
    __device__ static unsigned int size() { return Size; }
    __device__ static unsigned int num_threads() { return Size; }
    __device__ unsigned int meta_group_rank() const { return __treadle_rank; }
    __device__ unsigned int meta_group_size() const { return __treadle_count; }
    // The places of this tile's warps, of which the first is 0.
    template <class T> __device__ static T *__treadle_places() {
        __shared__ T places[32];
        return places + thread_block::thread_rank() / Size * (Size / 32);
    }
    template <class T> __device__ static T shfl(T value, int source) {
        if constexpr (Size > 32) {
            T *places = __treadle_places<T>();
            sync();
            if ((int)thread_rank() == source)
                places[0] = value;
            sync();
            return places[0];
        } else if constexpr (__treadle_is_class<T>)
            return __treadle_in_words(value, [=](unsigned int word) { return __shfl_sync(members(), word, source, Size); });
        else
            return __shfl_sync(members(), value, source, Size);
    }
    template <class T> __device__ static T shfl_up(T value, unsigned int by) {
        if constexpr (__treadle_is_class<T>)
            return __treadle_in_words(value, [=](unsigned int word) { return __shfl_up_sync(members(), word, by, Size); });
        else
            return __shfl_up_sync(members(), value, by, Size);
    }
    template <class T> __device__ static T shfl_down(T value, unsigned int by) {
        if constexpr (__treadle_is_class<T>)
            return __treadle_in_words(value, [=](unsigned int word) { return __shfl_down_sync(members(), word, by, Size); });
        else
            return __shfl_down_sync(members(), value, by, Size);
    }
    template <class T> __device__ static T shfl_xor(T value, unsigned int by) {
        if constexpr (__treadle_is_class<T>)
            return __treadle_in_words(value, [=](unsigned int word) { return __shfl_xor_sync(members(), word, by, Size); });
        else
            return __shfl_xor_sync(members(), value, by, Size);
    }
    __device__ static unsigned int ballot(int holds) {
        static_assert(Size <= 32, "ballot has a bit for each thread of a tile: 32 at most");
        unsigned int all = __ballot_sync(members(), holds);
        return Size == 32 ? all : (all >> first_lane()) & ((1u << (Size % 32)) - 1u);
    }
    __device__ static int any(int holds) {
        if constexpr (Size > 32)
            return __treadle_votes(holds != 0) != 0;
        else
            return ballot(holds) != 0;
    }
    __device__ static int all(int holds) {
        if constexpr (Size > 32)
            return __treadle_votes(holds == 0) == 0;
        else
            return ballot(!holds) == 0;
    }
    // Whether a condition holds in some thread of a tile of several warps.
    __device__ static unsigned int __treadle_votes(bool holds) {
        unsigned int *places = __treadle_places<unsigned int>(), found = 0;
        unsigned int own = __ballot_sync(0xffffffffu, holds);
        sync();
        if (thread_rank() % 32 == 0)
            places[thread_rank() / 32] = own;
        sync();
        for (unsigned int warp = 0; warp < Size / 32; ++warp)
            found |= places[warp];
        return found;
    }
    template <class T> __device__ static unsigned int match_any(T value) {
        return __match_any_sync(members(), value) >> first_lane();
    }
    __device__ unsigned long long num_tiles() const { return meta_group_size(); }
    template <class T> __device__ static unsigned int match_all(T value, int &same) {
        unsigned int own = __match_any_sync(members(), value);
        same = own == members();
        return same ? own >> first_lane() : 0u;
    }
};

template <unsigned int Size = 1024> struct block_tile_memory { int unused; };
template <class Memory> __device__ inline thread_block this_thread_block(Memory &) { return thread_block(); }

// One thread by itself.
__device__ inline thread_block_tile<1> this_thread() { return thread_block_tile<1>{0, 1}; }

template <unsigned int Size, class Group>
__device__ inline thread_block_tile<Size> tiled_partition(const Group &parent) {
    return thread_block_tile<Size>{parent.thread_rank() / Size, (parent.size() + Size - 1) / Size};
}

template <class Group>
__device__ inline thread_group tiled_partition(const Group &, unsigned int size) {
    return thread_group{size};
}

template <class Group> __device__ inline void sync(const Group &group) { group.sync(); }
template <class Group> __device__ inline unsigned int thread_rank(const Group &group) { return group.thread_rank(); }
template <class Group> __device__ inline unsigned int group_size(const Group &group) { return group.size(); }

struct coalesced_group {
    unsigned int members, __treadle_rank, __treadle_count;
    __device__ void sync() const { __syncwarp(members); }
    __device__ unsigned int thread_rank() const {
        unsigned int lane = thread_block::thread_rank() % 32;
        return __popc(members & ((1u << lane) - 1u));
    }
    __device__ unsigned int size() const { return __popc(members); }
    __device__ unsigned int num_threads() const { return size(); }
    __device__ int lane_of(unsigned int rank) const {
        unsigned int left = members;
        for (unsigned int before = 0; before < rank; ++before)
            left &= left - 1u;
        return __ffs((int)left) - 1;
    }
    template <class T> __device__ T shfl(T value, unsigned int source) const {
        int lane = lane_of(source);
        if constexpr (__treadle_is_class<T>)
            return __treadle_in_words(value, [&](unsigned int word) { return __shfl_sync(members, word, lane); });
        else
            return __shfl_sync(members, value, lane);
    }
    template <class T> __device__ T shfl_up(T value, unsigned int by) const {
        unsigned int rank = thread_rank();
        return shfl(value, rank < by ? rank : rank - by);
    }
    template <class T> __device__ T shfl_down(T value, unsigned int by) const {
        unsigned int rank = thread_rank();
        return shfl(value, rank + by < size() ? rank + by : rank);
    }
    __device__ unsigned int ballot(int holds) const { return in_ranks(ballot_in_warp(holds)); }
    __device__ unsigned int ballot_in_warp(int holds) const {
        return __ballot_sync(members, holds);
    }
    __device__ int any(int holds) const { return ballot_in_warp(holds) != 0; }
    __device__ int all(int holds) const { return ballot_in_warp(holds) == members; }
    template <class T> __device__ unsigned int match_any(T value) const {
        return in_ranks(__match_any_sync(members, value));
    }
    template <class T> __device__ unsigned int match_all(T value, int &same) const {
        same = __match_any_sync(members, value) == members;
        return same ? in_ranks(members) : 0u;
    }
    // Lanes of the warp as ranks in the group.
    __device__ unsigned int in_ranks(unsigned int those) const {
        unsigned int left = members, found = 0;
        for (unsigned int rank = 0; left != 0; ++rank, left &= left - 1u)
            if (those & left & (0u - left))
                found |= 1u << rank;
        return found;
    }
    __device__ unsigned int meta_group_rank() const { return __treadle_rank; }
    __device__ unsigned int meta_group_size() const { return __treadle_count; }
};

__device__ inline coalesced_group coalesced_threads() { return coalesced_group{__activemask(), 0, 1}; }

// Parts of a group of coalesced threads, by their ranks.
__device__ inline coalesced_group tiled_partition(const coalesced_group &parent, unsigned int size) {
    unsigned int first = parent.thread_rank() / size * size, those = 0;
    for (unsigned int rank = first; rank < first + size && rank < parent.size(); ++rank)
        those |= 1u << parent.lane_of(rank);
    return coalesced_group{those, first / size, (parent.size() + size - 1) / size};
}

__device__ inline coalesced_group binary_partition(const coalesced_group &group, bool holds) {
    unsigned int those = group.ballot_in_warp(holds);
    return coalesced_group{holds ? those : group.members & ~those, holds ? 0u : 1u, 2};
}

// Parts are numbered by the rank of their first thread.
template <class Label>
__device__ inline coalesced_group labeled_partition(const coalesced_group &group, Label label) {
    unsigned int those = __match_any_sync(group.members, label);
    bool leads = (those & (0u - those)) >> (thread_block::thread_rank() % 32) == 1u;
    unsigned int leaders = __ballot_sync(group.members, leads);
    unsigned int before = leaders & ((those & (0u - those)) - 1u);
    return coalesced_group{those, (unsigned int)__popc(before), (unsigned int)__popc(leaders)};
}

template <unsigned int Size>
__device__ inline coalesced_group threads_of(const thread_block_tile<Size> &tile) {
    return coalesced_group{tile.members(), 0, 1};
}

template <unsigned int Size>
__device__ inline coalesced_group
binary_partition(const thread_block_tile<Size> &tile, bool holds) {
    return binary_partition(threads_of(tile), holds);
}

template <unsigned int Size, class Label>
__device__ inline coalesced_group
labeled_partition(const thread_block_tile<Size> &tile, Label label) {
    return labeled_partition(threads_of(tile), label);
}

template <class T> struct plus {
    __device__ T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
    __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
    __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
    __device__ T operator()(T a, T b) const { return a & b; }
};
template <class T> struct bit_or {
    __device__ T operator()(T a, T b) const { return a | b; }
};
template <class T> struct bit_xor {
    __device__ T operator()(T a, T b) const { return a ^ b; }
};

template <unsigned int Size, class T, class Operation>
__device__ inline T reduce(const thread_block_tile<Size> &tile, T value, Operation operation) {
    if constexpr (Size > 32) {
        T *places = tile.template __treadle_places<T>();
        value = reduce(thread_block_tile<32>(), value, operation);
        tile.sync();
        if (tile.thread_rank() % 32 == 0)
            places[tile.thread_rank() / 32] = value;
        tile.sync();
        value = places[0];
        for (unsigned int warp = 1; warp < Size / 32; ++warp)
            value = operation(value, places[warp]);
        return value;
    } else {
        for (unsigned int by = Size / 2; by > 0; by /= 2)
            value = operation(value, tile.shfl_xor(value, by));
        return value;
    }
}

template <class T, class Operation>
__device__ inline T reduce(const coalesced_group &group, T value, Operation operation) {
    unsigned int left = group.members;
    T result = __shfl_sync(group.members, value, __ffs((int)left) - 1);
    for (left &= left - 1u; left != 0; left &= left - 1u)
        result = operation(result, __shfl_sync(group.members, value, __ffs((int)left) - 1));
    return result;
}

template <unsigned int Size, class T, class Operation>
__device__ inline T inclusive_scan(const thread_block_tile<Size> &tile, T value, Operation operation) {
    if constexpr (Size > 32) {
        T *places = tile.template __treadle_places<T>();
        value = inclusive_scan(thread_block_tile<32>(), value, operation);
        tile.sync();
        if (tile.thread_rank() % 32 == 31)
            places[tile.thread_rank() / 32] = value;
        tile.sync();
        for (int warp = (int)(tile.thread_rank() / 32) - 1; warp >= 0; --warp)
            value = operation(places[warp], value);
        return value;
    } else {
        for (unsigned int by = 1; by < Size; by *= 2) {
            T other = tile.shfl_up(value, by);
            if (tile.thread_rank() >= by)
                value = operation(other, value);
        }
        return value;
    }
}
template <unsigned int Size, class T>
__device__ inline T inclusive_scan(const thread_block_tile<Size> &tile, T value) {
    return inclusive_scan(tile, value, plus<T>());
}
template <class T, class Operation>
__device__ inline T inclusive_scan(const coalesced_group &group, T value, Operation operation) {
    int own = thread_block::thread_rank() % 32, first = __ffs((int)group.members) - 1;
    T sum = value;
    for (unsigned int left = group.members; left != 0; left &= left - 1u) {
        int lane = __ffs((int)left) - 1;
        T other = __shfl_sync(group.members, value, lane);
        if (lane <= own)
            sum = lane == first ? other : operation(sum, other);
    }
    return sum;
}
template <class T> __device__ inline T inclusive_scan(const coalesced_group &group, T value) {
    return inclusive_scan(group, value, plus<T>());
}
template <unsigned int Size, class T, class Operation>
__device__ inline T exclusive_scan(const thread_block_tile<Size> &tile, T value, Operation operation) {
    T sum = inclusive_scan(tile, value, operation), before = sum;
    if constexpr (Size > 32) {
        T *places = tile.template __treadle_places<T>();
        before = thread_block_tile<32>().shfl_up(sum, 1);
        tile.sync();
        if (tile.thread_rank() % 32 == 31)
            places[tile.thread_rank() / 32] = sum;
        tile.sync();
        if (tile.thread_rank() % 32 == 0 && tile.thread_rank() > 0)
            before = places[tile.thread_rank() / 32 - 1];
    } else {
        before = tile.shfl_up(sum, 1);
    }
    return tile.thread_rank() == 0 ? (T)0 : before;
}
// The first thread of a scan without a neutral element is undefined in CUDA, and has 0 here.
template <class Group, class T, class Operation>
__device__ inline T exclusive_scan(const Group &group, T value, Operation operation) {
    T before = group.shfl_up(inclusive_scan(group, value, operation), 1);
    return group.thread_rank() == 0 ? (T)0 : before;
}
template <class Group, class T> __device__ inline T exclusive_scan(const Group &group, T value) {
    return exclusive_scan(group, value, plus<T>());
}

template <class Group, class Function, class... Arguments>
__device__ inline void invoke_one(const Group &group, Function function, Arguments... arguments) {
    if (group.thread_rank() == 0)
        function(arguments...);
}
template <class Group, class Function, class... Arguments>
__device__ inline auto invoke_one_broadcast(const Group &group, Function function, Arguments... arguments)
    -> decltype(function(arguments...)) {
    decltype(function(arguments...)) result;
    if (group.thread_rank() == 0)
        result = function(arguments...);
    return group.shfl(result, 0);
}

// Copies are done at once; `wait` makes them known to the group.
template <class Group, class T, class Size>
__device__ inline void memcpy_async(const Group &group, T *to, const T *from, Size bytes) {
    size_t size = bytes;
    for (int i = (int)group.thread_rank(); i < (int)(size / sizeof(T)); i += (int)group.size())
        to[i] = from[i];
}
// The same with layouts, which count elements: as many are copied as both have.
template <class Group, class T, class To, class From>
__device__ inline void memcpy_async(const Group &group, T *to, const To &room, const T *from, const From &there) {
    size_t most = room, given = there;
    for (int i = (int)group.thread_rank(); i < (int)(most < given ? most : given); i += (int)group.size())
        to[i] = from[i];
}
template <class Group> __device__ inline void wait(const Group &group) { group.sync(); }
template <unsigned int Stages, class Group> __device__ inline void wait_prior(const Group &group) { group.sync(); }

}  // namespace cooperative_groups
