"""Cooperative groups in our own words: the block, and tiles of a warp.

Written in CUDA C++ itself, on the functions that are built in. Groups of whole grids, and of the
threads that happen to be together (`coalesced_threads`), are not declared: other GPUs have no such
thing.
"""

from __future__ import annotations

COOPERATIVE_GROUPS = """
#pragma once
namespace cooperative_groups {

struct thread_block {
    __device__ static void sync() { __syncthreads(); }
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

template <unsigned int Size, class Parent = thread_block>
struct thread_block_tile {
    static_assert(Size <= 32 && (Size & (Size - 1)) == 0,
                  "tiles have a power of two of threads, 32 at most");
    __device__ static void sync() { __syncwarp(); }
    __device__ static unsigned int thread_rank() { return thread_block::thread_rank() % Size; }
    __device__ static unsigned int size() { return Size; }
    __device__ static unsigned int num_threads() { return Size; }
    __device__ static unsigned int meta_group_rank() { return thread_block::thread_rank() / Size; }
    __device__ static unsigned int meta_group_size() {
        return (thread_block::size() + Size - 1) / Size;
    }
    template <class T> __device__ static T shfl(T value, int source) {
        return __shfl_sync(0xffffffffu, value, source, Size);
    }
    template <class T> __device__ static T shfl_up(T value, unsigned int by) {
        return __shfl_up_sync(0xffffffffu, value, by, Size);
    }
    template <class T> __device__ static T shfl_down(T value, unsigned int by) {
        return __shfl_down_sync(0xffffffffu, value, by, Size);
    }
    template <class T> __device__ static T shfl_xor(T value, unsigned int by) {
        return __shfl_xor_sync(0xffffffffu, value, by, Size);
    }
    __device__ static unsigned int ballot(int holds) {
        unsigned int all = __ballot_sync(0xffffffffu, holds);
        unsigned int first = thread_block::thread_rank() % 32 / Size * Size;
        return Size == 32 ? all : (all >> first) & ((1u << (Size % 32)) - 1u);
    }
    __device__ static int any(int holds) { return ballot(holds) != 0; }
    __device__ static int all(int holds) { return ballot(!holds) == 0; }
};

template <unsigned int Size, class Group>
__device__ inline thread_block_tile<Size> tiled_partition(const Group &) {
    return thread_block_tile<Size>();
}

template <class Group> __device__ inline void sync(const Group &group) { group.sync(); }

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
    for (unsigned int by = Size / 2; by > 0; by /= 2)
        value = operation(value, tile.shfl_xor(value, by));
    return value;
}

}  // namespace cooperative_groups
"""
