// The heap of malloc and new: blocks of 32 bytes, and a bit for each that is taken. A piece begins
// with 16 bytes, whose first word is the number of its blocks. Block 0 is never given away.
#pragma once
#ifndef __treadle_heap_words
#define __treadle_heap_words 8192
#endif
__device__ unsigned int __treadle_heap_taken[__treadle_heap_words] = {1u};
__device__ uint4 __treadle_heap[__treadle_heap_words * 64];

// Bit i: the bits of `free` from i on are set, `count` of them.
__device__ inline unsigned int __treadle_runs(unsigned int free, unsigned int count) {
    unsigned int more = min(1u, count - 1u), length = 1u + more;
    free &= free >> more;
    for (int step = 0; step < 4; step++) {
        more = min(length, count - length);
        free &= free >> more;
        length += more;
    }
    return free;
}
// The first of up to 32 blocks, which have bits in one word; 0 if there are none.
__device__ inline unsigned int __treadle_take_bits(unsigned int count) {
    unsigned int mask = count == 32u ? 0xffffffffu : (1u << count) - 1u;
    unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * (threadIdx.z + blockIdx.x));
    unsigned int word = thread % (unsigned int)__treadle_heap_words, left = __treadle_heap_words;
    unsigned int first = 0u, taken = atomicOr(&__treadle_heap_taken[word], 0u);
    while (left > 0u) {
        unsigned int runs = __treadle_runs(~taken, count);
        if (runs == 0u) {
            word = word + 1u == __treadle_heap_words ? 0u : word + 1u;
            taken = atomicOr(&__treadle_heap_taken[word], 0u);
            left--;
        } else {
            unsigned int bit = __ffs((int)runs) - 1;
            unsigned int before = atomicCAS(&__treadle_heap_taken[word], taken, taken | mask << bit);
            if (before == taken) {
                first = 32u * word + bit;
                left = 0u;
            }
            taken = before;
        }
    }
    return first;
}
// The first of more blocks, in whole words. Others may hold words for a moment that they give back.
__device__ inline unsigned int __treadle_take_words(unsigned int words) {
    unsigned int found = 0u;
    for (int attempt = 0; attempt < 4 && found == 0u; attempt++) {
        unsigned int run = 0u;
        for (unsigned int word = 1u; word < __treadle_heap_words && found == 0u; word++) {
            if (atomicCAS(&__treadle_heap_taken[word], 0u, 0xffffffffu) == 0u) {
                run++;
                if (run == words)
                    found = 32u * (word + 1u - words);
            } else {
                for (; run > 0u; run--)
                    atomicExch(&__treadle_heap_taken[word - run], 0u);
            }
        }
        if (found == 0u)
            for (; run > 0u; run--)
                atomicExch(&__treadle_heap_taken[__treadle_heap_words - run], 0u);
    }
    return found;
}
__device__ inline unsigned int __treadle_take(unsigned int count) {
    unsigned int first = 0u;
    if (count > 32u)
        first = __treadle_take_words((count + 31u) / 32u);
    else if (count > 0u)
        first = __treadle_take_bits(count);
    return first;
}
#ifdef __treadle_guarded
// With checks (`lower/guards.py`), the mark of a block is the number of its piece's first one, plus
// 1 << 31 once the piece was given back; the second word of a piece is the number of its bytes. A
// piece has a block more than it needs, so that an index just behind it is one of no other piece.
// What is given back stays taken until nothing else is left: `spent` has its bits. New memory is
// filled with bytes 0xcd, which are no pointer and strange numbers.
#define __treadle_spare 32u
__device__ unsigned int __treadle_heap_marks[__treadle_heap_words * 32];
__device__ unsigned int __treadle_heap_spent[__treadle_heap_words];
__device__ inline void __treadle_reuse() {
    for (unsigned int word = 0u; word < __treadle_heap_words; word++) {
        unsigned int spent = atomicExch(&__treadle_heap_spent[word], 0u);
        if (spent != 0u)
            atomicAnd(&__treadle_heap_taken[word], ~spent);
    }
}
__device__ inline void __treadle_mark(unsigned int first, unsigned int count, unsigned int mark) {
    for (unsigned int block = first; block < first + count; block++)
        __treadle_heap_marks[block] = mark;
}
__device__ inline void __treadle_begin(unsigned int first, unsigned int count, unsigned int bytes) {
    __treadle_heap[2u * first].y = bytes;
    __treadle_mark(first, count, first);
    for (unsigned int place = 2u * first + 1u; place < 2u * (first + count); place++)
        __treadle_heap[place] = make_uint4(0xcdcdcdcdu, 0xcdcdcdcdu, 0xcdcdcdcdu, 0xcdcdcdcdu);
}
#else
#define __treadle_spare 0u
#endif
__device__ inline void *malloc(size_t bytes) {
    unsigned int count = bytes > 1024u * (size_t)__treadle_heap_words ? 0u : ((unsigned int)bytes + 47u + __treadle_spare) / 32u;
    unsigned int first = __treadle_take(count);
#ifdef __treadle_guarded
    if (first == 0u && count > 0u) {
        __treadle_reuse();
        first = __treadle_take(count);
    }
#endif
    uint4 *piece = 0;
    if (first != 0u) {
        piece = __treadle_heap + 2u * first;
        piece->x = count;
#ifdef __treadle_guarded
        __treadle_begin(first, count, (unsigned int)bytes);
#endif
        piece++;
    }
    return piece;
}
__device__ inline void __treadle_give_back(uint4 *piece) {
    unsigned int count = piece[-1].x, first = (unsigned int)(piece - __treadle_heap) / 2u;
#ifdef __treadle_guarded
    __treadle_mark(first, count, 0x80000000u | first);
    if (count > 32u) {
        for (unsigned int word = first / 32u; word < first / 32u + (count + 31u) / 32u; word++)
            atomicExch(&__treadle_heap_spent[word], 0xffffffffu);
    } else {
        unsigned int mask = count == 32u ? 0xffffffffu : (1u << count) - 1u;
        atomicOr(&__treadle_heap_spent[first / 32u], mask << first % 32u);
    }
#else
    if (count > 32u) {
        for (unsigned int word = first / 32u; word < first / 32u + (count + 31u) / 32u; word++)
            atomicExch(&__treadle_heap_taken[word], 0u);
    } else {
        unsigned int mask = count == 32u ? 0xffffffffu : (1u << count) - 1u;
        atomicAnd(&__treadle_heap_taken[first / 32u], ~(mask << first % 32u));
    }
#endif
}
// The host's functions, which device code has for its own memory: cudaSuccess, or cudaErrorMemoryAllocation.
template <class T>
__device__ inline int cudaMalloc(T **pointer, size_t bytes) {
    *pointer = (T *)malloc(bytes);
    return *pointer ? 0 : 2;
}
__device__ inline int cudaFree(void *pointer) {
    free(pointer);
    return 0;
}
