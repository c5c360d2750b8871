// <cuda/latch>, <cuda/std/latch>: a count that threads of one block wait for once, an mbarrier with
// one phase.
#pragma once
#include <cuda_atomic.cuh>
#include <mbarrier.cuh>
namespace cuda {

template <thread_scope scope = thread_scope_system> struct latch {
    unsigned int __treadle_words[2];
    latch() = default;
    __device__ explicit latch(ptrdiff_t count) {
        assert(count <= 0x7fff);
        __treadle_mbarrier_init(__treadle_words, (unsigned int)count);
    }
    __device__ void count_down(ptrdiff_t by = 1) { __treadle_mbarrier_arrive(__treadle_words, (unsigned int)by, 0u); }
    __device__ bool try_wait() { return __treadle_mbarrier_test(__treadle_words, 0u); }
    __device__ void wait() {
        while (!__treadle_mbarrier_test(__treadle_words, 0u)) {
        }
    }
    __device__ void arrive_and_wait(ptrdiff_t by = 1) {
        count_down(by);
        wait();
    }
    __device__ static constexpr ptrdiff_t max() { return 0x7fff; }
};
template <thread_scope scope> __device__ void init(latch<scope> *made, ptrdiff_t count) {
    assert(count <= 0x7fff);
    __treadle_mbarrier_init(made->__treadle_words, (unsigned int)count);
}

}  // namespace cuda
namespace std {

typedef ::cuda::latch<> latch;

}  // namespace std
