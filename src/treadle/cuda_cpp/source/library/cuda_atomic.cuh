// <cuda/atomic>, <cuda/std/atomic>: atomic numbers, and references to them.
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
        return __nv_atomic_fetch_sub(place, x, order, scope); \
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
    __device__ T operator--(int) const { return __nv_atomic_fetch_add(place, (T)-1, memory_order_seq_cst, scope); } \
    __device__ T operator&=(T x) const { return __nv_atomic_fetch_and(place, x, memory_order_seq_cst, scope) & x; } \
    __device__ T operator|=(T x) const { return __nv_atomic_fetch_or(place, x, memory_order_seq_cst, scope) | x; } \
    __device__ T operator^=(T x) const { return __nv_atomic_fetch_xor(place, x, memory_order_seq_cst, scope) ^ x; } \
    __device__ void wait(T old, memory_order order = memory_order_seq_cst) const { \
        for (bool same = true; same;) { \
            __treadle_fence_wait(); \
            same = __nv_atomic_load_n(place, __NV_ATOMIC_RELAXED, scope) == old; \
            __treadle_fence_arrive(); \
        } \
    } \
    __device__ void notify_one() const {} \
    __device__ void notify_all() const {} \
    __device__ bool is_lock_free() const { return true; } \
    static constexpr bool is_always_lock_free = true; \
    typedef T value_type;

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
template <thread_scope scope = thread_scope_system> struct atomic_flag {
    unsigned int value;
    __device__ bool test_and_set(memory_order order = memory_order_seq_cst) {
        return __nv_atomic_exchange_n(&value, 1u, order, scope) != 0u;
    }
    __device__ bool test(memory_order order = memory_order_seq_cst) const {
        return __nv_atomic_load_n((unsigned int *)&value, order, scope) != 0u;
    }
    __device__ void clear(memory_order order = memory_order_seq_cst) { __nv_atomic_store_n(&value, 0u, order, scope); }
};

}  // namespace cuda
namespace std {

typedef ::cuda::memory_order memory_order;
constexpr ::cuda::memory_order memory_order_relaxed = ::cuda::memory_order_relaxed;
constexpr ::cuda::memory_order memory_order_consume = ::cuda::memory_order_consume;
constexpr ::cuda::memory_order memory_order_acquire = ::cuda::memory_order_acquire;
constexpr ::cuda::memory_order memory_order_release = ::cuda::memory_order_release;
constexpr ::cuda::memory_order memory_order_acq_rel = ::cuda::memory_order_acq_rel;
constexpr ::cuda::memory_order memory_order_seq_cst = ::cuda::memory_order_seq_cst;
__device__ inline void atomic_thread_fence(memory_order order) { ::cuda::atomic_thread_fence(order); }
template <class T> using atomic = ::cuda::atomic<T>;
template <class T> using atomic_ref = ::cuda::atomic_ref<T>;
typedef ::cuda::atomic_flag<> atomic_flag;

}  // namespace std
