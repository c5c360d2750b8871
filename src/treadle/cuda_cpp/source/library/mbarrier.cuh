// mbarrier of PTX: an object of 64 bits in shared memory that counts arrivals, and bytes of copies.
// The first word has the arrivals that are still to come (15 bits), those of a phase (15 bits) and the
// phase, the second word the bytes that are still to come. Threads that wait ask for the phase.
#pragma once
#include <ptx.cuh>
__device__ inline void __treadle_mbarrier_init(unsigned int *barrier, unsigned int count) {
    atomicExch(barrier, count | count << 15);
    atomicExch(barrier + 1, 0u);
}
// End the phase if nothing is left to come. Of those who find that, one has the turn.
__device__ inline void __treadle_mbarrier_finish(unsigned int *barrier) {
    unsigned int seen = atomicAdd(barrier, 0u);
    if ((seen & 0x7fffu) == 0u && atomicAdd(barrier + 1, 0u) == 0u)
        atomicCAS(barrier, seen, (seen ^ 0x80000000u) | (seen >> 15 & 0x7fffu));
}
// The state before the arrival, with the phase that it is of.
__device__ inline unsigned long long __treadle_mbarrier_arrive(unsigned int *barrier, unsigned int count, unsigned int dropped) {
    __treadle_fence_arrive();
    unsigned int seen = atomicSub(barrier, count + (dropped << 15));
    if ((seen & 0x7fffu) == count)
        __treadle_mbarrier_finish(barrier);
    return seen;
}
__device__ inline void __treadle_mbarrier_expect(unsigned int *barrier, unsigned int bytes) {
    atomicAdd(barrier + 1, bytes);
}
__device__ inline void __treadle_mbarrier_complete(unsigned int *barrier, unsigned int bytes) {
    __treadle_fence_arrive();
    if (atomicSub(barrier + 1, bytes) == bytes)
        __treadle_mbarrier_finish(barrier);
}
// Whether the phase with this parity has ended.
__device__ inline bool __treadle_mbarrier_test(unsigned int *barrier, unsigned int parity) {
    __treadle_fence_wait();
    unsigned int phase = atomicAdd(barrier, 0u) >> 31;
    __treadle_fence_arrive();
    return phase != (parity & 1u);
}
// cp.async.bulk: multiples of 16 bytes, by the thread that asks for them.
__device__ inline void __treadle_copy_bulk(char *to, const char *from, unsigned int bytes) {
    for (unsigned int at = 0u; at < bytes; at += 16u)
        *(uint4 *)(to + at) = *(const uint4 *)(from + at);
}
