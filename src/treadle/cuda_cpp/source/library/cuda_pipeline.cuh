// <cuda/barrier>, <cuda/pipeline>, <cuda_pipeline.h>: barriers and pipelines of threads of one block,
// which are mbarriers, and copies that are done at once.
#pragma once
#include <cuda_atomic.cuh>
#include <cooperative_groups.h>
#include <mbarrier.cuh>
namespace cuda {

template <size_t alignment> struct aligned_size_t {
    size_t value;
    __host__ __device__ explicit aligned_size_t(size_t bytes) : value(bytes) {}
    __host__ __device__ operator size_t() const { return value; }
};

struct __treadle_no_completion {
    __device__ void operator()() const {}
};
template <class T> constexpr bool __treadle_completes = true;
template <> constexpr bool __treadle_completes<__treadle_no_completion> = false;

template <thread_scope scope = thread_scope_system, class Completion = __treadle_no_completion>
struct barrier {
    unsigned int __treadle_words[2];
    Completion __treadle_completion;
    using arrival_token = unsigned long long;

    __device__ unsigned long long __treadle_arrived(unsigned int count, unsigned int dropped) {
        if constexpr (__treadle_completes<Completion>) {
            // The completion sees what all wrote before they arrived. Only one thread is the last.
            __treadle_fence_wait();
            unsigned int seen = atomicSub(__treadle_words, count + (dropped << 15));
            if ((seen & 0x7fffu) == count) {
                __treadle_fence_arrive();
                __treadle_completion();
                __treadle_fence_arrive();
                __treadle_mbarrier_finish(__treadle_words);
            }
            return seen;
        } else {
            return __treadle_mbarrier_arrive(__treadle_words, count, dropped);
        }
    }
    __device__ arrival_token arrive(ptrdiff_t count = 1) { return __treadle_arrived((unsigned int)count, 0u); }
    __device__ bool try_wait(arrival_token token) {
        return __treadle_mbarrier_test(__treadle_words, (unsigned int)token >> 31);
    }
    __device__ bool try_wait_parity(bool parity) { return __treadle_mbarrier_test(__treadle_words, parity); }
    __device__ void wait(arrival_token token) {
        while (!__treadle_mbarrier_test(__treadle_words, (unsigned int)token >> 31)) {
        }
    }
    __device__ void wait_parity(bool parity) {
        while (!__treadle_mbarrier_test(__treadle_words, parity)) {
        }
    }
    __device__ void arrive_and_wait() { wait(arrive()); }
    __device__ void arrive_and_drop() { __treadle_arrived(1u, 1u); }
    __device__ static constexpr ptrdiff_t max() { return 0x7fff; }
};
template <thread_scope scope, class Completion>
__device__ void init(barrier<scope, Completion> *made, ptrdiff_t count) {
    assert(count <= 0x7fff);
    __treadle_mbarrier_init(made->__treadle_words, (unsigned int)count);
}
template <thread_scope scope, class Completion>
__device__ void init(barrier<scope, Completion> *made, ptrdiff_t count, Completion completion) {
    made->__treadle_completion = completion;
    init(made, count);
}

enum class pipeline_role { producer, consumer };
struct __treadle_stage {
    barrier<thread_scope_block> produced, consumed;
};
template <thread_scope scope, int stages = 1> struct pipeline_shared_state {
    __treadle_stage __treadle_stages[stages];
    unsigned int __treadle_producers, __treadle_left;
};
// A pipeline of one thread waits for no other. Others wait for the phases of their stages: the
// producers for what consumers have released, and consumers for what producers have committed.
template <thread_scope scope> struct pipeline {
    __treadle_stage *__treadle_stages;
    unsigned int *__treadle_left;
    int __treadle_count, __treadle_head, __treadle_tail;
    bool __treadle_free, __treadle_full;  // the parities that are waited for

    __device__ void producer_acquire() {
        if constexpr (scope != thread_scope_thread)
            __treadle_stages[__treadle_head].consumed.wait_parity(__treadle_free);
    }
    __device__ void producer_commit() {
        if constexpr (scope != thread_scope_thread) {
            __treadle_stages[__treadle_head].produced.arrive();
            if (++__treadle_head == __treadle_count) {
                __treadle_head = 0;
                __treadle_free = !__treadle_free;
            }
        }
    }
    __device__ void consumer_wait() {
        if constexpr (scope != thread_scope_thread)
            __treadle_stages[__treadle_tail].produced.wait_parity(__treadle_full);
    }
    __device__ void consumer_release() {
        if constexpr (scope != thread_scope_thread) {
            __treadle_stages[__treadle_tail].consumed.arrive();
            if (++__treadle_tail == __treadle_count) {
                __treadle_tail = 0;
                __treadle_full = !__treadle_full;
            }
        }
    }
    __device__ bool quit() {
        if constexpr (scope != thread_scope_thread)
            return atomicSub(__treadle_left, 1u) == 1u;
        else
            return true;
    }
};
__device__ inline pipeline<thread_scope_thread> make_pipeline() { return pipeline<thread_scope_thread>(); }
template <class Group, thread_scope scope, int stages>
__device__ pipeline<scope> __treadle_make_pipeline(const Group &group, pipeline_shared_state<scope, stages> *state,
                                                   unsigned int producers, unsigned int consumers) {
    if (group.thread_rank() == 0) {
        for (int stage = 0; stage < stages; ++stage) {
            init(&state->__treadle_stages[stage].produced, producers);
            init(&state->__treadle_stages[stage].consumed, consumers);
        }
        state->__treadle_left = (unsigned int)group.size();
    }
    group.sync();
    return pipeline<scope>{state->__treadle_stages, &state->__treadle_left, stages, 0, 0, true, false};
}
template <class Group, thread_scope scope, int stages>
__device__ pipeline<scope> make_pipeline(const Group &group, pipeline_shared_state<scope, stages> *state) {
    unsigned int size = (unsigned int)group.size();
    return __treadle_make_pipeline(group, state, size, size);
}
// The first threads of the group produce.
template <class Group, thread_scope scope, int stages>
__device__ pipeline<scope> make_pipeline(const Group &group, pipeline_shared_state<scope, stages> *state,
                                         size_t producers) {
    unsigned int size = (unsigned int)group.size();
    return __treadle_make_pipeline(group, state, (unsigned int)producers, size - (unsigned int)producers);
}
template <class Group, thread_scope scope, int stages>
__device__ pipeline<scope> make_pipeline(const Group &group, pipeline_shared_state<scope, stages> *state,
                                         pipeline_role role) {
    if (group.thread_rank() == 0)
        atomicExch(&state->__treadle_producers, 0u);
    group.sync();
    if (role == pipeline_role::producer)
        atomicAdd(&state->__treadle_producers, 1u);
    group.sync();
    unsigned int producers = atomicAdd(&state->__treadle_producers, 0u);
    return __treadle_make_pipeline(group, state, producers, (unsigned int)group.size() - producers);
}
template <int prior, thread_scope scope> __device__ void pipeline_consumer_wait_prior(pipeline<scope> &made) {
    made.consumer_wait();
}
// The copies have been done, so that only the arrivals of threads are left to come.
template <thread_scope scope, class Completion>
__device__ void pipeline_producer_commit(pipeline<thread_scope_thread> &, barrier<scope, Completion> &) {}

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

// Bytes that a barrier counts besides arrivals.
namespace device {
template <thread_scope scope> __device__ uint64_t *barrier_native_handle(barrier<scope> &one) {
    return (uint64_t *)one.__treadle_words;
}
template <thread_scope scope> __device__ void barrier_expect_tx(barrier<scope> &one, ptrdiff_t bytes) {
    __treadle_mbarrier_expect(one.__treadle_words, (unsigned int)bytes);
}
template <thread_scope scope>
__device__ unsigned long long barrier_arrive_tx(barrier<scope> &one, ptrdiff_t count, ptrdiff_t bytes) {
    __treadle_mbarrier_expect(one.__treadle_words, (unsigned int)bytes);
    return one.arrive(count);
}
template <class T, class Size, thread_scope scope>
__device__ void memcpy_async_tx(T *to, const T *from, Size bytes, barrier<scope> &one) {
    __treadle_copy_bulk((char *)to, (const char *)from, (unsigned int)(size_t)bytes);
    __treadle_mbarrier_complete(one.__treadle_words, (unsigned int)(size_t)bytes);
}
namespace experimental {
template <thread_scope scope>
__device__ void cp_async_bulk_global_to_shared(void *to, const void *from, uint32_t bytes, barrier<scope> &one) {
    memcpy_async_tx((char *)to, (const char *)from, bytes, one);
}
__device__ inline void cp_async_bulk_shared_to_global(void *to, const void *from, uint32_t bytes) {
    __treadle_copy_bulk((char *)to, (const char *)from, bytes);
}
__device__ inline void cp_async_bulk_commit_group() {}
template <int n> __device__ void cp_async_bulk_wait_group_read() {}
__device__ inline void fence_proxy_async_shared_cta() {}
}  // namespace experimental
}  // namespace device

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
