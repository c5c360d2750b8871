// Kernels that are launched by kernels: a record for each, which the host reads after the kernel.
// Its words are the number of the kernel, the grid, the block, the bytes of shared memory, and two
// words for each number and pointer among the arguments.
#pragma once
#define __treadle_launch_words 64
#define __treadle_most_launches 16384
__device__ unsigned int __treadle_launch_count;
__device__ unsigned int __treadle_launch_queue[__treadle_launch_words * __treadle_most_launches];

// The first word of the record's arguments; -1 if there is no room.
__device__ inline int __treadle_enqueue(unsigned int kernel, dim3 grid, dim3 block, unsigned int shared_bytes) {
    unsigned int number = atomicAdd(&__treadle_launch_count, 1u);
    int at = -1;
    if (number < __treadle_most_launches) {
        at = (int)(__treadle_launch_words * number);
        __treadle_launch_queue[at] = kernel;
        __treadle_launch_queue[at + 1] = grid.x;
        __treadle_launch_queue[at + 2] = grid.y;
        __treadle_launch_queue[at + 3] = grid.z;
        __treadle_launch_queue[at + 4] = block.x;
        __treadle_launch_queue[at + 5] = block.y;
        __treadle_launch_queue[at + 6] = block.z;
        __treadle_launch_queue[at + 7] = shared_bytes;
        at += 8;
    }
    return at;
}
__device__ inline int __treadle_enqueue_word(int at, unsigned int low, unsigned int high) {
    if (at >= 0) {
        __treadle_launch_queue[at] = low;
        __treadle_launch_queue[at + 1] = high;
        at += 2;
    }
    return at;
}

// Streams of device code: launches run one after the other, whatever their streams are.
typedef int cudaStream_t;
enum __treadle_stream_flags { cudaStreamDefault, cudaStreamNonBlocking };
__device__ inline int cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
    *stream = 0;
    return 0;
}
__device__ inline int cudaStreamDestroy(cudaStream_t stream) { return 0; }
__device__ inline int cudaGetLastError() { return 0; }
