// The Metal Shading Language as plain C++, as far as printed kernels use it. Shared memory is made
// static before (see cpp_kernels.py); other address spaces are nothing here.
#pragma once
#include "block_shim.h"

#define kernel static
#define device
#define constant
#define threadgroup
#define thread

namespace metal {

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

template <class To, class From> To as_type(From value) { return shim::bits_as<To>(value); }

// --- numbers -------------------------------------------------------------------------------------

struct half {
    ushort bits;
    half() = default;
    template <class T> half(T value) : bits(shim::float_to_half((float)value)) {}
    operator float() const { return shim::half_to_float(bits); }
};
inline half operator""h(long double value) { return half((float)value); }
#define HALF_OPERATOR(sign) \
    inline half operator sign(half a, half b) { return half((float)a sign (float)b); }
HALF_OPERATOR(+)
HALF_OPERATOR(-)
HALF_OPERATOR(*)
#define HALF_COMPARISON(sign) \
    inline bool operator sign(half a, half b) { return (float)a sign (float)b; }
HALF_COMPARISON(==)
HALF_COMPARISON(!=)
HALF_COMPARISON(<)
HALF_COMPARISON(<=)
HALF_COMPARISON(>)
HALF_COMPARISON(>=)
inline half operator-(half a) {
    a.bits ^= 0x8000;
    return a;
}
template <> inline ushort as_type<ushort, half>(half value) { return value.bits; }
template <> inline short as_type<short, half>(half value) { return (short)value.bits; }
inline half half_of(ushort bits) {
    half result;
    result.bits = bits;
    return result;
}
template <> inline half as_type<half, ushort>(ushort bits) { return half_of(bits); }
template <> inline half as_type<half, short>(short bits) { return half_of((ushort)bits); }

using std::ceil;
using std::fabs;
using std::floor;
using std::fma;
using std::isfinite;
using std::isinf;
using std::isnan;
using std::rint;
using std::signbit;
using std::trunc;
inline bool isnan(half a) { return std::isnan((float)a); }
inline float fmin(float a, float b) { return shim::lesser(a, b); }
inline float fmax(float a, float b) { return shim::greater(a, b); }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return b > a ? b : a; }

namespace precise {
inline float sqrt(float a) { return std::sqrt(a); }
}  // namespace precise
namespace fast {
inline float rsqrt(float a) { return 1 / std::sqrt(a); }
inline float exp(float a) { return std::exp(a); }
inline float exp2(float a) { return std::exp2(a); }
inline float log(float a) { return std::log(a); }
inline float log2(float a) { return std::log2(a); }
inline float sin(float a) { return std::sin(a); }
inline float cos(float a) { return std::cos(a); }
inline float tan(float a) { return std::tan(a); }
inline float tanh(float a) { return std::tanh(a); }
inline float pow(float a, float b) { return std::pow(a, b); }
}  // namespace fast

inline uint popcount(uint a) { return __builtin_popcount(a); }
inline uint clz(uint a) { return a ? __builtin_clz(a) : 32; }
inline uint ctz(uint a) { return a ? __builtin_ctz(a) : 32; }
inline int popcount(int a) { return popcount((uint)a); }
inline int clz(int a) { return clz((uint)a); }
inline int ctz(int a) { return ctz((uint)a); }
inline uint reverse_bits(uint a) {
    uint result = 0;
    for (int i = 0; i < 32; i++) {
        result |= (a >> i & 1) << (31 - i);
    }
    return result;
}
inline int reverse_bits(int a) { return (int)reverse_bits((uint)a); }
inline int mulhi(int a, int b) { return (int)(((long)a * b) >> 32); }
inline uint mulhi(uint a, uint b) { return (uint)(((ulong)a * b) >> 32); }

// --- vectors: in variables aligned to a power of two, packed ones to their components ------------

#define EACH2(f) f(x) f(y)
#define EACH3(f) EACH2(f) f(z)
#define EACH4(f) EACH3(f) f(w)
#define COPY(axis) axis = other.axis;
#define ADD(axis) result.axis = (decltype(result.axis))(a.axis + b.axis);
#define SUBTRACT(axis) result.axis = (decltype(result.axis))(a.axis - b.axis);
#define MULTIPLY(axis) result.axis = (decltype(result.axis))(a.axis * b.axis);
#define DIVIDE(axis) result.axis = (decltype(result.axis))(a.axis / b.axis);
#define NEGATE(axis) result.axis = -a.axis;
#define INVERT(axis) result.axis = ~a.axis;
#define OPERATOR(V, sign, EACH, f) \
    inline V operator sign(V a, V b) { V result; EACH(f) return result; }
#define UNARY(V, sign, EACH, f) \
    inline V operator sign(V a) { V result; EACH(f) return result; }
#define RING(V, EACH) \
    OPERATOR(V, +, EACH, ADD) OPERATOR(V, -, EACH, SUBTRACT) OPERATOR(V, *, EACH, MULTIPLY)

#define VECTORS(T)                                                                        \
    struct alignas(2 * sizeof(T)) T##2 {                                                  \
        T x, y;                                                                           \
        T##2() = default;                                                                 \
        T##2(T a, T b) : x(a), y(b) {}                                                    \
    };                                                                                    \
    struct packed_##T##3;                                                                 \
    struct alignas(4 * sizeof(T)) T##3 {                                                  \
        T x, y, z;                                                                        \
        T##3() = default;                                                                 \
        T##3(T a, T b, T c) : x(a), y(b), z(c) {}                                         \
        T##3(packed_##T##3 other);                                                        \
    };                                                                                    \
    struct packed_##T##3 {                                                                \
        T x, y, z;                                                                        \
        packed_##T##3() = default;                                                        \
        packed_##T##3(T##3 other) : x(other.x), y(other.y), z(other.z) {}                 \
    };                                                                                    \
    inline T##3::T##3(packed_##T##3 other) : x(other.x), y(other.y), z(other.z) {}        \
    struct alignas(4 * sizeof(T)) T##4 {                                                  \
        T x, y, z, w;                                                                     \
        T##4() = default;                                                                 \
        T##4(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}                              \
    };
VECTORS(char)
VECTORS(uchar)
VECTORS(short)
VECTORS(ushort)
VECTORS(int)
VECTORS(uint)
VECTORS(long)
VECTORS(ulong)
VECTORS(half)
VECTORS(float)
#define RINGS(T) RING(T##2, EACH2) RING(T##3, EACH3) RING(T##4, EACH4)
RINGS(uint)
RINGS(ulong)
RINGS(half)
RINGS(float)
#define NEGATIONS(T) \
    UNARY(T##2, -, EACH2, NEGATE) UNARY(T##3, -, EACH3, NEGATE) UNARY(T##4, -, EACH4, NEGATE)
NEGATIONS(half)
NEGATIONS(float)
#define INVERSIONS(T) \
    UNARY(T##2, ~, EACH2, INVERT) UNARY(T##3, ~, EACH3, INVERT) UNARY(T##4, ~, EACH4, INVERT)
INVERSIONS(uint)
INVERSIONS(ulong)
OPERATOR(float2, /, EACH2, DIVIDE)
OPERATOR(float3, /, EACH3, DIVIDE)
OPERATOR(float4, /, EACH4, DIVIDE)
#define FUNCTION(name)                                                                   \
    inline float2 name(float2 a) { return float2(name(a.x), name(a.y)); }                \
    inline float3 name(float3 a) { return float3(name(a.x), name(a.y), name(a.z)); }     \
    inline float4 name(float4 a) { return float4(name(a.x), name(a.y), name(a.z), name(a.w)); }
FUNCTION(fabs)
FUNCTION(floor)
FUNCTION(ceil)
FUNCTION(trunc)
FUNCTION(rint)
#define FMA(axis) result.axis = fma(a.axis, b.axis, c.axis);
inline float2 fma(float2 a, float2 b, float2 c) { float2 result; EACH2(FMA) return result; }
inline float3 fma(float3 a, float3 b, float3 c) { float3 result; EACH3(FMA) return result; }
inline float4 fma(float4 a, float4 b, float4 c) { float4 result; EACH4(FMA) return result; }
inline float dot(float2 a, float2 b) { return a.x * b.x + a.y * b.y; }
inline float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

// --- threads -------------------------------------------------------------------------------------

namespace mem_flags {
enum flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
inline flags operator|(flags a, flags b) { return (flags)((int)a | (int)b); }
}  // namespace mem_flags
inline void threadgroup_barrier(mem_flags::flags) { shim::wait(false); }
inline void simdgroup_barrier(mem_flags::flags) { shim::wait(true); }

inline uint shim_lane() { return shim::now().current->number % 32; }
template <class T> T simd_shuffle(T value, ushort lane) { return shim::exchange(value, lane); }
struct simd_vote {
    typedef ulong vote_t;
    vote_t bits;
    explicit operator vote_t() const { return bits; }
};
inline simd_vote simd_ballot(bool yes) { return {shim::ballot(yes)}; }
inline bool simd_any(bool yes) { return shim::ballot(yes) != 0; }
inline bool simd_all(bool yes) { return shim::ballot(yes) == shim::full_warp(); }

template <class T> T shim_wrapped(T a, T b) { return a + b; }
inline int shim_wrapped(int a, int b) { return (int)((uint)a + (uint)b); }
template <class T, class F> T shim_together(T value, T start, uint lanes, F function) {
    T result = start;
    for (uint lane = 0; lane < 32; lane++) {
        T other = shim::exchange(value, lane);
        result = lane < lanes && shim::has_lane(lane) ? function(result, other) : result;
    }
    return result;
}
template <class T> T simd_sum(T value) {
    return shim_together(value, T(0), 32, [](T a, T b) { return shim_wrapped(a, b); });
}
template <class T> T simd_prefix_exclusive_sum(T value) {
    return shim_together(value, T(0), shim_lane(), [](T a, T b) { return shim_wrapped(a, b); });
}
template <class T> T simd_min(T value) {
    return shim_together(value, value, 32, [](T a, T b) { return b < a ? b : a; });
}
template <class T> T simd_max(T value) {
    return shim_together(value, value, 32, [](T a, T b) { return b > a ? b : a; });
}

template <class T> T simd_and(T value) {
    return shim_together(value, value, 32, [](T a, T b) { return T(a & b); });
}
template <class T> T simd_or(T value) {
    return shim_together(value, value, 32, [](T a, T b) { return T(a | b); });
}
template <class T> T simd_xor(T value) {
    return shim_together(value, T(0), 32, [](T a, T b) { return T(a ^ b); });
}

// --- matrices of a SIMD group: each lane has all elements ------------------------------------------

template <class T, int columns, int rows> struct simdgroup_matrix {
    T values[rows][columns];
};
template <class T, int columns, int rows> simdgroup_matrix<T, columns, rows>
make_filled_simdgroup_matrix(T value) {
    simdgroup_matrix<T, columns, rows> result;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) result.values[i][j] = value;
    return result;
}
template <class T, int columns, int rows>
void simdgroup_load(simdgroup_matrix<T, columns, rows>& result, const T* from, ulong stride,
                    ulong2, bool transposed) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            result.values[i][j] = transposed ? from[j * stride + i] : from[i * stride + j];
}
template <class T, int columns, int rows>
void simdgroup_store(simdgroup_matrix<T, columns, rows> value, T* to, ulong stride, ulong2,
                     bool transposed) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            (transposed ? to[j * stride + i] : to[i * stride + j]) = value.values[i][j];
}
template <class T, class U, int columns, int rows, int inner>
void simdgroup_multiply_accumulate(simdgroup_matrix<T, columns, rows>& result,
                                   simdgroup_matrix<U, inner, rows> a,
                                   simdgroup_matrix<U, columns, inner> b,
                                   simdgroup_matrix<T, columns, rows> sums) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            T total = sums.values[i][j];
            for (int k = 0; k < inner; k++) total += (T)a.values[i][k] * (T)b.values[k][j];
            result.values[i][j] = total;
        }
}

// --- atomics: fibers do not come between ----------------------------------------------------------

enum memory_order { memory_order_relaxed };
struct atomic_int { int value; };
struct atomic_uint { uint value; };
struct atomic_float { float value; };

#define ATOMIC(name, A, T, updated)                     \
    inline T name(A* place, T value, memory_order) {    \
        T old = place->value;                           \
        place->value = updated;                         \
        return old;                                     \
    }
#define INTEGER_ATOMICS(A, T)                                                    \
    ATOMIC(atomic_fetch_add_explicit, A, T, (T)((uint)old + (uint)value))        \
    ATOMIC(atomic_fetch_sub_explicit, A, T, (T)((uint)old - (uint)value))        \
    ATOMIC(atomic_fetch_min_explicit, A, T, value < old ? value : old)           \
    ATOMIC(atomic_fetch_max_explicit, A, T, value > old ? value : old)           \
    ATOMIC(atomic_fetch_and_explicit, A, T, old & value)                         \
    ATOMIC(atomic_fetch_or_explicit, A, T, old | value)                          \
    ATOMIC(atomic_fetch_xor_explicit, A, T, old ^ value)                         \
    ATOMIC(atomic_exchange_explicit, A, T, value)
INTEGER_ATOMICS(atomic_int, int)
INTEGER_ATOMICS(atomic_uint, uint)
ATOMIC(atomic_fetch_add_explicit, atomic_float, float, old + value)
ATOMIC(atomic_fetch_sub_explicit, atomic_float, float, old - value)
inline uint atomic_load_explicit(atomic_uint* place, memory_order) { return place->value; }
inline bool atomic_compare_exchange_weak_explicit(
    atomic_uint* place, uint* expected, uint desired, memory_order, memory_order) {
    static uint calls = 0;
    if (++calls % 3 == 0) {
        *expected = place->value;  // it may fail without a reason
        return false;
    }
    if (place->value == *expected) {
        place->value = desired;
        return true;
    }
    *expected = place->value;
    return false;
}

}  // namespace metal
