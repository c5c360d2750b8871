// <cuda/atomic>: cuda::atomic and cuda::atomic_ref of numbers.
#pragma once
#include <atomics.cuh>
namespace cuda {

enum thread_scope { thread_scope_thread, thread_scope_block, thread_scope_cluster, thread_scope_device, thread_scope_system };
enum memory_order {
    memory_order_relaxed, memory_order_consume, memory_order_acquire, memory_order_release,
    memory_order_acq_rel, memory_order_seq_cst
};
__device__ inline void atomic_thread_fence(memory_order order, thread_scope scope = thread_scope_system) {
    __nv_atomic_thread_fence(order, scope);
}

#define __treadle_operations(place) \
    __device__ T load(memory_order order = memory_order_seq_cst) const { \
        return __nv_atomic_load_n(place, order, scope); \
    } \
    __device__ operator T() const { return __nv_atomic_load_n(place, memory_order_seq_cst, scope); } \
    __device__ void store(T x, memory_order order = memory_order_seq_cst) const { \
        __nv_atomic_store_n(place, x, order, scope); \
    } \
    __device__ T operator=(T x) const { \
        __nv_atomic_store_n(place, x, memory_order_seq_cst, scope); \
        return x; \
    } \
    __device__ T exchange(T x, memory_order order = memory_order_seq_cst) const { \
        return __nv_atomic_exchange_n(place, x, order, scope); \
    } \
    __device__ bool compare_exchange_strong(T &expected, T desired, memory_order order = memory_order_seq_cst, \
                                            memory_order failed = memory_order_seq_cst) const { \
        return __nv_atomic_compare_exchange_n(place, &expected, desired, false, order, failed, scope); \
    } \
    __device__ bool compare_exchange_weak(T &expected, T desired, memory_order order = memory_order_seq_cst, \
                                          memory_order failed = memory_order_seq_cst) const { \
        return __nv_atomic_compare_exchange_n(place, &expected, desired, true, order, failed, scope); \
    } \
    __device__ T fetch_add(T x, memory_order order = memory_order_seq_cst) const { \
        return __nv_atomic_fetch_add(place, x, order, scope); \
    } \
    __device__ T fetch_sub(T x, memory_order order = memory_order_seq_cst) const { \
        return __nv_atomic_fetch_add(place, (T)-x, order, scope); \
    } \
    __device__ T fetch_and(T x, memory_order order = memory_order_seq_cst) const { \
        return __nv_atomic_fetch_and(place, x, order, scope); \
    } \
    __device__ T fetch_or(T x, memory_order order = memory_order_seq_cst) const { \
        return __nv_atomic_fetch_or(place, x, order, scope); \
    } \
    __device__ T fetch_xor(T x, memory_order order = memory_order_seq_cst) const { \
        return __nv_atomic_fetch_xor(place, x, order, scope); \
    } \
    __device__ T fetch_min(T x, memory_order order = memory_order_seq_cst) const { \
        return __nv_atomic_fetch_min(place, x, order, scope); \
    } \
    __device__ T fetch_max(T x, memory_order order = memory_order_seq_cst) const { \
        return __nv_atomic_fetch_max(place, x, order, scope); \
    } \
    __device__ T operator+=(T x) const { return __nv_atomic_fetch_add(place, x, memory_order_seq_cst, scope) + x; } \
    __device__ T operator-=(T x) const { return __nv_atomic_fetch_add(place, (T)-x, memory_order_seq_cst, scope) - x; } \
    __device__ T operator++() const { return __nv_atomic_fetch_add(place, (T)1, memory_order_seq_cst, scope) + (T)1; } \
    __device__ T operator++(int) const { return __nv_atomic_fetch_add(place, (T)1, memory_order_seq_cst, scope); } \
    __device__ T operator--() const { return __nv_atomic_fetch_add(place, (T)-1, memory_order_seq_cst, scope) - (T)1; } \
    __device__ T operator--(int) const { return __nv_atomic_fetch_add(place, (T)-1, memory_order_seq_cst, scope); }

template <class T, thread_scope scope = thread_scope_system> struct atomic_ref {
    T *at;
    __device__ explicit atomic_ref(T &given) : at(&given) {}
    __treadle_operations(at)
};
template <class T, thread_scope scope = thread_scope_system> struct atomic {
    T value;
    __treadle_operations((T *)&value)
};
#undef __treadle_operations

}  // namespace cuda
