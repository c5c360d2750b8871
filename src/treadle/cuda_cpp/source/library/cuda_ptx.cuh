// <cuda/ptx>: instructions as functions. Each block is a cluster of its own.
#pragma once
#include <mbarrier.cuh>
#include <cuda_atomic.cuh>
namespace cuda {
namespace ptx {

struct sem_release_t {}; struct sem_acquire_t {}; struct sem_relaxed_t {}; struct sem_acq_rel_t {}; struct sem_sc_t {};
struct scope_cta_t {}; struct scope_cluster_t {}; struct scope_gpu_t {}; struct scope_sys_t {};
struct space_global_t {}; struct space_shared_t {}; struct space_cluster_t {};
constexpr sem_release_t sem_release = sem_release_t();
constexpr sem_acquire_t sem_acquire = sem_acquire_t();
constexpr sem_relaxed_t sem_relaxed = sem_relaxed_t();
constexpr sem_acq_rel_t sem_acq_rel = sem_acq_rel_t();
constexpr sem_sc_t sem_sc = sem_sc_t();
constexpr scope_cta_t scope_cta = scope_cta_t();
constexpr scope_cluster_t scope_cluster = scope_cluster_t();
constexpr scope_gpu_t scope_gpu = scope_gpu_t();
constexpr scope_sys_t scope_sys = scope_sys_t();
constexpr space_global_t space_global = space_global_t();
constexpr space_shared_t space_shared = space_shared_t();
constexpr space_cluster_t space_cluster = space_cluster_t();
template <int n> struct n32_t {};

// --- mbarrier ---
__device__ inline void mbarrier_init(uint64_t *barrier, const uint32_t &count) {
    __treadle_mbarrier_init((unsigned int *)barrier, count);
}
__device__ inline void mbarrier_inval(uint64_t *) {}
__device__ inline uint64_t mbarrier_arrive(uint64_t *barrier) {
    return __treadle_mbarrier_arrive((unsigned int *)barrier, 1u, 0u);
}
__device__ inline uint64_t mbarrier_arrive(uint64_t *barrier, const uint32_t &count) {
    return __treadle_mbarrier_arrive((unsigned int *)barrier, count, 0u);
}
template <class Sem, class Scope, class Space>
__device__ uint64_t mbarrier_arrive(Sem, Scope, Space, uint64_t *barrier) {
    return __treadle_mbarrier_arrive((unsigned int *)barrier, 1u, 0u);
}
template <class Sem, class Scope, class Space>
__device__ uint64_t mbarrier_arrive(Sem, Scope, Space, uint64_t *barrier, const uint32_t &count) {
    return __treadle_mbarrier_arrive((unsigned int *)barrier, count, 0u);
}
template <class Sem, class Scope, class Space>
__device__ uint64_t mbarrier_arrive_expect_tx(Sem, Scope, Space, uint64_t *barrier, const uint32_t &bytes) {
    __treadle_mbarrier_expect((unsigned int *)barrier, bytes);
    return __treadle_mbarrier_arrive((unsigned int *)barrier, 1u, 0u);
}
template <class Sem, class Scope, class Space>
__device__ void mbarrier_expect_tx(Sem, Scope, Space, uint64_t *barrier, const uint32_t &bytes) {
    __treadle_mbarrier_expect((unsigned int *)barrier, bytes);
}
#define __treadle_wait(name) \
    __device__ inline bool name(uint64_t *barrier, const uint64_t &state) { \
        return __treadle_mbarrier_test((unsigned int *)barrier, (unsigned int)(state >> 31)); \
    } \
    template <class Sem, class Scope> __device__ bool name(Sem, Scope, uint64_t *barrier, const uint64_t &state) { \
        return __treadle_mbarrier_test((unsigned int *)barrier, (unsigned int)(state >> 31)); \
    } \
    __device__ inline bool name##_parity(uint64_t *barrier, const uint32_t &parity) { \
        return __treadle_mbarrier_test((unsigned int *)barrier, parity); \
    } \
    template <class Sem, class Scope> __device__ bool name##_parity(Sem, Scope, uint64_t *barrier, const uint32_t &parity) { \
        return __treadle_mbarrier_test((unsigned int *)barrier, parity); \
    }
__treadle_wait(mbarrier_test_wait)
__treadle_wait(mbarrier_try_wait)
#undef __treadle_wait

// --- copies ---
template <class To>
__device__ void cp_async_bulk(To, space_global_t, void *to, const void *from, const uint32_t &bytes, uint64_t *barrier) {
    __treadle_copy_bulk((char *)to, (const char *)from, bytes);
    __treadle_mbarrier_complete((unsigned int *)barrier, bytes);
}
__device__ inline void cp_async_bulk(space_global_t, space_shared_t, void *to, const void *from, const uint32_t &bytes) {
    __treadle_copy_bulk((char *)to, (const char *)from, bytes);
}
__device__ inline void cp_async_bulk_commit_group() {}
template <int n> __device__ void cp_async_bulk_wait_group(n32_t<n>) {}
template <int n> __device__ void cp_async_bulk_wait_group_read(n32_t<n>) {}

// --- fences, and special registers ---
template <class Sem, class Scope> __device__ void fence(Sem, Scope) { __threadfence(); }
template <class Sem> __device__ void fence(Sem, scope_cta_t) { __threadfence_block(); }
template <class Sem, class Scope> __device__ void fence_mbarrier_init(Sem, Scope) {}
__device__ inline void fence_proxy_async() {}
template <class Space> __device__ void fence_proxy_async(Space) {}
__device__ inline uint32_t __treadle_thread() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
__device__ inline uint32_t get_sreg_laneid() { return __treadle_thread() & 31u; }
__device__ inline uint32_t get_sreg_warpid() { return __treadle_thread() >> 5; }
__device__ inline uint32_t get_sreg_tid_x() { return threadIdx.x; }
__device__ inline uint32_t get_sreg_tid_y() { return threadIdx.y; }
__device__ inline uint32_t get_sreg_tid_z() { return threadIdx.z; }
__device__ inline uint32_t get_sreg_ntid_x() { return blockDim.x; }
__device__ inline uint32_t get_sreg_ntid_y() { return blockDim.y; }
__device__ inline uint32_t get_sreg_ntid_z() { return blockDim.z; }
__device__ inline uint32_t get_sreg_ctaid_x() { return blockIdx.x; }
__device__ inline uint32_t get_sreg_ctaid_y() { return blockIdx.y; }
__device__ inline uint32_t get_sreg_ctaid_z() { return blockIdx.z; }
__device__ inline uint32_t get_sreg_nctaid_x() { return gridDim.x; }
__device__ inline uint32_t get_sreg_cluster_ctarank() { return 0u; }
__device__ inline uint32_t get_sreg_lanemask_lt() { return (1u << get_sreg_laneid()) - 1u; }
__device__ inline bool elect_sync(const uint32_t &mask) { return (int)get_sreg_laneid() == __ffs((int)mask) - 1; }

}  // namespace ptx
}  // namespace cuda
