// What inline PTX becomes where one expression of C++ does not say it.
#pragma once
// The place of a set bit, counted from `base` on: upwards, or downwards if `offset` is negative.
__device__ inline unsigned int __fns(unsigned int mask, unsigned int base, int offset) {
    if (offset == 0)
        return mask >> base & 1u ? base : 0xffffffffu;
    unsigned int left = offset > 0 ? mask >> base : __brev(mask << (31u - base));
    for (int before = (offset > 0 ? offset : -offset) - 1; before > 0 && left != 0; --before)
        left &= left - 1u;
    if (left == 0)
        return 0xffffffffu;
    int place = __ffs((int)left) - 1;
    return (unsigned int)(offset > 0 ? (int)base + place : (int)base - place);
}
__device__ inline int __treadle_add_saturated(int x, int y) {
    int sum = (int)((unsigned int)x + (unsigned int)y);
    return ((x ^ sum) & (y ^ sum)) >= 0 ? sum : x < 0 ? (int)0x80000000u : 0x7fffffff;
}
__device__ inline int __treadle_subtract_saturated(int x, int y) {
    int rest = (int)((unsigned int)x - (unsigned int)y);
    return ((x ^ y) & (x ^ rest)) >= 0 ? rest : x < 0 ? (int)0x80000000u : 0x7fffffff;
}
// cvt.rna.tf32, and cvt.rn.tf32: ties away from zero, and to even.
__device__ inline unsigned int __treadle_tf32_rna(float x) {
    unsigned int bits = __float_as_uint(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}
__device__ inline unsigned int __treadle_tf32_rn(float x) {
    unsigned int bits = __float_as_uint(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0xfffu + (bits >> 13 & 1u)) & 0xffffe000u;
}

// cp.async of 4, 8 or 16 bytes, of which `given` are read; the others are zeros.
template <unsigned int size>
__device__ inline void __treadle_copy_async(char *to, const char *from, unsigned int given) {
    if (__treadle_is_whole(given, size)) {
        __treadle_copy_later(to, from, size, given != 0);
    } else {
#pragma unroll
        for (int at = 0; at < (int)size / 4; ++at) {
            int rest = (int)given - 4 * at;
            unsigned int word = rest > 0 ? ((const unsigned int *)from)[at] : 0u;
            ((unsigned int *)to)[at] = rest > 0 && rest < 4 ? word & ((1u << 8 * rest) - 1u) : word;
        }
    }
}

// Matrices of 8 x 8 numbers of 16 bits: lane i holds numbers 2 (i % 4) and 2 (i % 4) + 1 of row i / 4.
// Lane 8 m + i has the address of row i of matrix m.
__device__ inline void __treadle_store_matrix(unsigned int row, unsigned int matrix, bool transposed,
                                              unsigned int word) {
    unsigned int lane = ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) & 31u;
    if (!transposed) {
        unsigned int to = __shfl_sync(0xffffffffu, row, 8u * matrix + lane / 4u);
        *(unsigned int *)__treadle_shared_pointer(to + 4u * (lane % 4u)) = word;
    } else {
        unsigned int first = __shfl_sync(0xffffffffu, row, 8u * matrix + 2u * (lane % 4u));
        unsigned int second = __shfl_sync(0xffffffffu, row, 8u * matrix + 2u * (lane % 4u) + 1u);
        *(unsigned short *)__treadle_shared_pointer(first + 2u * (lane / 4u)) = (unsigned short)word;
        *(unsigned short *)__treadle_shared_pointer(second + 2u * (lane / 4u)) = (unsigned short)(word >> 16);
    }
}
__device__ inline unsigned int __treadle_transpose_matrix(unsigned int word) {
    unsigned int lane = ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) & 31u;
    unsigned int from = 8u * (lane % 4u) + lane / 8u, by = lane / 4u % 2u * 16u;
    unsigned int low = __shfl_sync(0xffffffffu, word, from) >> by;
    unsigned int high = __shfl_sync(0xffffffffu, word, from + 4u) >> by;
    return (low & 0xffffu) | high << 16;
}
// A product of matrices of 8 x 4 and 4 x 8 doubles: lane i has a(i / 4, i % 4), b(i % 4, i / 4) and
// two sums, of row i / 4 and of columns 2 (i % 4) and the next one.
__device__ inline double2 __treadle_multiply_f64(double a, double b, double first, double second) {
    int lane = ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) & 31;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        double left = __shfl_sync(0xffffffffu, a, lane / 4 * 4 + k);
        first = fma(left, __shfl_sync(0xffffffffu, b, lane % 4 * 8 + k), first);
        second = fma(left, __shfl_sync(0xffffffffu, b, lane % 4 * 8 + 4 + k), second);
    }
    return make_double2(first, second);
}
