// <cuda/barrier>, <cuda/pipeline>, <cuda_pipeline.h>: barriers of all threads of a block, and copies
// that are done at once. A barrier of fewer threads fails its assertion: other devices have none.
#pragma once
#include <cuda_atomic.cuh>
#include <cooperative_groups.h>
#include <ptx.cuh>
namespace cuda {

template <size_t alignment> struct aligned_size_t {
    size_t value;
    __host__ __device__ explicit aligned_size_t(size_t bytes) : value(bytes) {}
    __host__ __device__ operator size_t() const { return value; }
};

template <thread_scope scope = thread_scope_system> struct barrier {
    unsigned int count;
    struct arrival_token {};
    __device__ arrival_token arrive(ptrdiff_t = 1) { return arrival_token(); }
    // What waits is reached by all threads of the block, so nothing is left to try.
    __device__ void wait(arrival_token) { __syncthreads(); }
    __device__ void wait_parity(bool) { __syncthreads(); }
    __device__ bool try_wait(arrival_token) { __syncthreads(); return true; }
    __device__ bool try_wait_parity(bool) { __syncthreads(); return true; }
    __device__ void arrive_and_wait() { __syncthreads(); }
    __device__ static constexpr ptrdiff_t max() { return (1 << 20) - 1; }
};
template <thread_scope scope> __device__ void init(barrier<scope> *made, unsigned int count) {
    assert(count == blockDim.x * blockDim.y * blockDim.z);
    made->count = count;
}

template <thread_scope scope, int stages = 1> struct pipeline_shared_state { int unused; };
template <thread_scope scope> struct pipeline {
    int unused;
    __device__ void producer_acquire() {}
    __device__ void producer_commit() {}
    __device__ void consumer_wait() {
        if constexpr (scope != thread_scope_thread)
            __syncthreads();
    }
    __device__ void consumer_release() {
        if constexpr (scope != thread_scope_thread)
            __syncthreads();
    }
    __device__ void quit() {}
};
__device__ inline pipeline<thread_scope_thread> make_pipeline() { return pipeline<thread_scope_thread>(); }
template <class Group, thread_scope scope, int stages>
__device__ pipeline<scope> make_pipeline(const Group &, pipeline_shared_state<scope, stages> *) {
    return pipeline<scope>();
}
template <int prior, thread_scope scope> __device__ void pipeline_consumer_wait_prior(pipeline<scope> &made) {
    made.consumer_wait();
}

template <class T, class Size, class Sync>
__device__ void memcpy_async(T *to, const T *from, Size bytes, Sync &) {
    size_t size = bytes;
    for (int i = 0; i < (int)(size / sizeof(T)); ++i)
        to[i] = from[i];
}
template <class Group, class T, class Size, class Sync>
__device__ void memcpy_async(const Group &group, T *to, const T *from, Size bytes, Sync &) {
    size_t size = bytes;
    for (int i = (int)group.thread_rank(); i < (int)(size / sizeof(T)); i += (int)group.size())
        to[i] = from[i];
}

}  // namespace cuda

__device__ inline void __pipeline_commit() { __treadle_end_copies(); }
__device__ inline void __pipeline_wait_prior(size_t left) { __treadle_wait_copies((unsigned int)left); }
template <unsigned int size>
__device__ inline void __treadle_copy_padded(char *to, const char *from, size_t zeros) {
    if (zeros == 0)
        __treadle_copy_later(to, from, size, true);
    else
        __treadle_copy_async<size>(to, from, size - (unsigned int)zeros);
}
__device__ inline void __pipeline_memcpy_async(void *to, const void *from, size_t size, size_t zeros = 0) {
    char *target = (char *)to;
    const char *source = (const char *)from;
    switch (size) {
    case 4: __treadle_copy_padded<4>(target, source, zeros); break;
    case 8: __treadle_copy_padded<8>(target, source, zeros); break;
    case 16: __treadle_copy_padded<16>(target, source, zeros); break;
    default:
        memcpy(target, source, size - zeros);
        memset(target + (size - zeros), 0, zeros);
    }
}
