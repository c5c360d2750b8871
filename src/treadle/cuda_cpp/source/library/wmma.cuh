// <mma.h>: products of small matrices that a warp holds together (nvcuda::wmma), on the operations
// that treadle's own fragments are made of. Elements lie as in the instructions of tensor cores, on
// all devices; each is held once, so that a fragment of factors has 8 numbers, not 16.
#pragma once
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <type_traits>
#include <ptx.cuh>
namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}  // namespace precision

template <class T> struct __treadle_element { typedef T type; };
template <> struct __treadle_element<precision::tf32> { typedef float type; };

// A product has parts of 16 rows and 8 columns. `per` elements share a word, of which a lane holds
// `words` of each part. One of 8 rows is held as that of its transposed matrices, whose factors have
// changed places.
template <class Use, int rows, int columns, int k, class T, class Layout = void> struct fragment {
    static constexpr bool turned = rows == 8;
    static constexpr int m = turned ? columns : rows, n = turned ? rows : columns;
    static_assert(m % 16 == 0 && n % 8 == 0 && sizeof(T) <= 4, "fragments of this size are not supported");
    typedef typename __treadle_element<T>::type element_type;
    typedef element_type storage_element_type;
    static constexpr bool sums = std::is_same_v<Use, accumulator>;
    static constexpr bool first = !sums && std::is_same_v<Use, matrix_a> != turned;
    static constexpr int per = sums ? 1 : 4 / sizeof(element_type);
    static constexpr int words = sums ? 4 : first ? k / (2 * per) : k / (4 * per);
    static constexpr int num_elements = sums ? m * n / 32 : first ? m * k / 32 : k * n / 32;
    static constexpr int num_storage_elements = num_elements;
    element_type x[num_elements];
    __device__ static int row(int i, int lane) { return turned ? held_column(i, lane) : held_row(i, lane); }
    __device__ static int column(int i, int lane) { return turned ? held_row(i, lane) : held_column(i, lane); }
    __device__ static int held_row(int i, int lane) {
        int word = i / per % words, part = i / (per * words);
        if constexpr (sums)
            return part / (n / 8) * 16 + lane / 4 + word / 2 * 8;
        else if constexpr (first)
            return part * 16 + lane / 4 + word % 2 * 8;
        else
            return per * (lane % 4) + 4 * per * word + i % per;
    }
    __device__ static int held_column(int i, int lane) {
        int word = i / per % words, part = i / (per * words);
        if constexpr (sums)
            return part % (n / 8) * 8 + 2 * (lane % 4) + word % 2;
        else if constexpr (first)
            return per * (lane % 4) + 4 * per * (word / 2) + i % per;
        else
            return part * 8 + lane / 4;
    }
};
// Of 8 x 8 x 4 doubles.
template <class Use, class Layout> struct fragment<Use, 8, 8, 4, double, Layout> {
    typedef double element_type;
    typedef double storage_element_type;
    static constexpr bool first = std::is_same_v<Use, matrix_a>, sums = std::is_same_v<Use, accumulator>;
    static constexpr int num_elements = sums ? 2 : 1, num_storage_elements = num_elements;
    double x[num_elements];
    __device__ static int row(int i, int lane) { return first || sums ? lane / 4 : lane % 4; }
    __device__ static int column(int i, int lane) { return sums ? lane % 4 * 2 + i : first ? lane % 4 : lane / 4; }
};

__device__ inline int __treadle_lane() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}
template <class Use, int m, int n, int k, class T, class Layout, class Value>
__device__ void fill_fragment(fragment<Use, m, n, k, T, Layout> &to, const Value &value) {
#pragma unroll
    for (int i = 0; i < to.num_elements; ++i)
        to.x[i] = value;
}
template <class Use, int m, int n, int k, class T, class Layout, class Source>
__device__ void load_matrix_sync(fragment<Use, m, n, k, T, Layout> &to, const Source *from, unsigned int ldm) {
    int lane = __treadle_lane();
#pragma unroll
    for (int i = 0; i < to.num_elements; ++i) {
        int row = to.row(i, lane), column = to.column(i, lane);
        to.x[i] = std::is_same_v<Layout, row_major> ? from[row * ldm + column] : from[column * ldm + row];
    }
    __syncwarp();
}
template <int m, int n, int k, class T, class Source>
__device__ void load_matrix_sync(fragment<accumulator, m, n, k, T> &to, const Source *from, unsigned int ldm,
                                 layout_t layout) {
    int lane = __treadle_lane();
#pragma unroll
    for (int i = 0; i < to.num_elements; ++i) {
        int row = to.row(i, lane), column = to.column(i, lane);
        to.x[i] = from[layout == mem_row_major ? row * ldm + column : column * ldm + row];
    }
    __syncwarp();
}
template <int m, int n, int k, class T, class Target>
__device__ void store_matrix_sync(Target *to, const fragment<accumulator, m, n, k, T> &from, unsigned int ldm,
                                  layout_t layout) {
    int lane = __treadle_lane();
#pragma unroll
    for (int i = 0; i < from.num_elements; ++i) {
        int row = from.row(i, lane), column = from.column(i, lane);
        to[layout == mem_row_major ? row * ldm + column : column * ldm + row] = from.x[i];
    }
    __syncwarp();
}
// As the conversion of cvt.rna.tf32: ties away from zero.
__device__ inline float __float_to_tf32(float x) {
    unsigned int bits = __float_as_uint(x);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return x;
    return __uint_as_float((bits + 0x1000u) & 0xffffe000u);
}

__device__ inline unsigned int __treadle_bits(__half x) { return __half_as_ushort(x); }
__device__ inline unsigned int __treadle_bits(__nv_bfloat16 x) { return __bfloat16_as_ushort(x); }
__device__ inline unsigned int __treadle_bits(float x) { return __float_as_uint(x); }
__device__ inline unsigned int __treadle_bits(signed char x) { return (unsigned char)x; }
__device__ inline unsigned int __treadle_bits(unsigned char x) { return x; }

// Word `at` of a fragment; beyond the inner extent there are zeros.
template <class F> __device__ unsigned int __treadle_word(const F &from, int part, int at) {
    if (at >= F::words)
        return 0u;
    unsigned int word = 0;
#pragma unroll
    for (int e = 0; e < F::per; ++e)
        word |= __treadle_bits(from.x[(part * F::words + at) * F::per + e]) << (32 / F::per * e % 32);
    return word;
}
template <class T, class S> __device__ S __treadle_products(uint4 a, uint2 b, S c) {
    if constexpr (std::is_same_v<T, __half>)
        return __treadle_multiply_f16(a, b, c);
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return __treadle_multiply_bf16(a, b, c);
    else if constexpr (std::is_same_v<T, precision::tf32>)
        return __treadle_multiply_tf32(a, b, c);
    else if constexpr (std::is_same_v<T, unsigned char>)
        return __treadle_multiply_u8(a, b, c);
    else
        return __treadle_multiply_i8(a, b, c);
}
template <class T, class S, int n, class To, class A, class B, class C>
__device__ void __treadle_multiply(To &to, const A &a, const B &b, const C &c) {
#pragma unroll
    for (int part = 0; part < to.num_elements / 4; ++part) {
        int rows = part / (n / 8), columns = part % (n / 8);
        uint4 left = make_uint4(__treadle_word(a, rows, 0), __treadle_word(a, rows, 1),
                                __treadle_word(a, rows, 2), __treadle_word(a, rows, 3));
        uint2 right = make_uint2(__treadle_word(b, columns, 0), __treadle_word(b, columns, 1));
        if constexpr (std::is_same_v<S, int>) {
            int4 sums = make_int4(c.x[4 * part], c.x[4 * part + 1], c.x[4 * part + 2], c.x[4 * part + 3]);
            sums = __treadle_products<T>(left, right, sums);
            to.x[4 * part] = sums.x;
            to.x[4 * part + 1] = sums.y;
            to.x[4 * part + 2] = sums.z;
            to.x[4 * part + 3] = sums.w;
        } else {
            float4 sums = make_float4((float)c.x[4 * part], (float)c.x[4 * part + 1],
                                      (float)c.x[4 * part + 2], (float)c.x[4 * part + 3]);
            sums = __treadle_products<T>(left, right, sums);
            to.x[4 * part] = (S)sums.x;
            to.x[4 * part + 1] = (S)sums.y;
            to.x[4 * part + 2] = (S)sums.z;
            to.x[4 * part + 3] = (S)sums.w;
        }
    }
}

template <int m, int n, int k, class T, class L, class R, class S, class Q>
__device__ void mma_sync(fragment<accumulator, m, n, k, S> &to, const fragment<matrix_a, m, n, k, T, L> &a,
                         const fragment<matrix_b, m, n, k, T, R> &b,
                         const fragment<accumulator, m, n, k, Q> &c) {
    if constexpr (std::is_same_v<T, double>) {
        double2 sums = __treadle_multiply_f64(a.x[0], b.x[0], c.x[0], c.x[1]);
        to.x[0] = sums.x;
        to.x[1] = sums.y;
    } else if constexpr (m == 8) {
        __treadle_multiply<T, S, 8>(to, b, a, c);
    } else {
        __treadle_multiply<T, S, n>(to, a, b, c);
    }
}

}  // namespace wmma
}  // namespace nvcuda
