// nvcc's atomic functions, __nv_atomic_…: all are relaxed, with fences for a stronger order.
#pragma once
enum __nv_memory_order {
    __NV_ATOMIC_RELAXED, __NV_ATOMIC_CONSUME, __NV_ATOMIC_ACQUIRE, __NV_ATOMIC_RELEASE,
    __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_SEQ_CST
};
enum __nv_thread_scope {
    __NV_THREAD_SCOPE_THREAD, __NV_THREAD_SCOPE_BLOCK, __NV_THREAD_SCOPE_CLUSTER,
    __NV_THREAD_SCOPE_DEVICE, __NV_THREAD_SCOPE_SYSTEM
};

// Orders and scopes are constants, so one of the branches is left.
__device__ inline void __nv_atomic_thread_fence(int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    if (order != __NV_ATOMIC_RELAXED && scope != __NV_THREAD_SCOPE_THREAD) {
        if (scope <= __NV_THREAD_SCOPE_BLOCK)
            __threadfence_block();
        else
            __threadfence();
    }
}
#define __treadle_before(order, scope) \
    if (order >= __NV_ATOMIC_RELEASE) \
        __nv_atomic_thread_fence(order, scope);
#define __treadle_after(order, scope) \
    if (order != __NV_ATOMIC_RELAXED && order != __NV_ATOMIC_RELEASE) \
        __nv_atomic_thread_fence(order, scope);

template <class T>
__device__ T __nv_atomic_load_n(T *from, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    T value = atomicAdd(from, (T)0);
    __treadle_after(order, scope)
    return value;
}
template <class T>
__device__ void __nv_atomic_load(T *from, T *to, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    *to = __nv_atomic_load_n(from, order, scope);
}
template <class T, class U>
__device__ T __nv_atomic_exchange_n(T *at, U value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    __treadle_before(order, scope)
    T old = atomicExch(at, (T)value);
    __treadle_after(order, scope)
    return old;
}
template <class T>
__device__ void __nv_atomic_exchange(T *at, T *value, T *old, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    *old = __nv_atomic_exchange_n(at, *value, order, scope);
}
template <class T, class U>
__device__ void __nv_atomic_store_n(T *to, U value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    __nv_atomic_exchange_n(to, value, order, scope);
}
template <class T>
__device__ void __nv_atomic_store(T *to, T *value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    __nv_atomic_exchange_n(to, *value, order, scope);
}
template <class T, class U>
__device__ bool __nv_atomic_compare_exchange_n(T *at, T *expected, U desired, bool weak, int order,
                                               int failed, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    __treadle_before(order, scope)
    T wanted = *expected;
    T old = atomicCAS(at, wanted, (T)desired);
    *expected = old;
    __treadle_after(order, scope)
    return old == wanted;
}
template <class T>
__device__ bool __nv_atomic_compare_exchange(T *at, T *expected, T *desired, bool weak, int order,
                                             int failed, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    return __nv_atomic_compare_exchange_n(at, expected, *desired, weak, order, failed, scope);
}
#define __treadle_fetch(name, function) \
    template <class T, class U> \
    __device__ T name(T *at, U value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) { \
        __treadle_before(order, scope) \
        T old = function(at, (T)value); \
        __treadle_after(order, scope) \
        return old; \
    }
__treadle_fetch(__nv_atomic_fetch_add, atomicAdd)
__treadle_fetch(__nv_atomic_fetch_sub, atomicSub)
__treadle_fetch(__nv_atomic_fetch_and, atomicAnd)
__treadle_fetch(__nv_atomic_fetch_or, atomicOr)
__treadle_fetch(__nv_atomic_fetch_xor, atomicXor)
__treadle_fetch(__nv_atomic_fetch_min, atomicMin)
__treadle_fetch(__nv_atomic_fetch_max, atomicMax)
__treadle_fetch(__nv_atomic_add, atomicAdd)
__treadle_fetch(__nv_atomic_sub, atomicSub)
__treadle_fetch(__nv_atomic_and, atomicAnd)
__treadle_fetch(__nv_atomic_or, atomicOr)
__treadle_fetch(__nv_atomic_xor, atomicXor)
__treadle_fetch(__nv_atomic_min, atomicMin)
__treadle_fetch(__nv_atomic_max, atomicMax)
#undef __treadle_fetch
