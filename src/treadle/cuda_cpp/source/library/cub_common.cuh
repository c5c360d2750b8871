// CUB: what threads, warps and blocks do together. A result is what CUB documents; how it is computed
// is the same for all of an operation's algorithms. Numbers go through shuffles of the warp, other
// types through the shared memory that the caller gives. Here: operators, and what threads have.
#pragma once
#include <type_traits>
namespace cub {

// --- function objects ----------------------------------------------------------------------------

struct Sum {
    template <class T> __host__ __device__ constexpr T operator()(const T &a, const T &b) const { return a + b; }
};
struct Difference {
    template <class T> __host__ __device__ constexpr T operator()(const T &a, const T &b) const { return a - b; }
};
struct Division {
    template <class T> __host__ __device__ constexpr T operator()(const T &a, const T &b) const { return a / b; }
};
struct Max {
    template <class T> __host__ __device__ constexpr T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};
struct Min {
    template <class T> __host__ __device__ constexpr T operator()(const T &a, const T &b) const { return b < a ? b : a; }
};
struct Equality {
    template <class A, class B> __host__ __device__ constexpr bool operator()(const A &a, const B &b) const { return a == b; }
};
struct Inequality {
    template <class A, class B> __host__ __device__ constexpr bool operator()(const A &a, const B &b) const { return a != b; }
};
template <class K, class V> struct KeyValuePair {
    typedef K Key;
    typedef V Value;
    K key;
    V value;
    __host__ __device__ KeyValuePair() {}
    __host__ __device__ KeyValuePair(const K &k, const V &v) : key(k), value(v) {}
    __host__ __device__ bool operator!=(const KeyValuePair &b) const { return value != b.value || key != b.key; }
};
struct ArgMax {
    template <class K, class V>
    __host__ __device__ KeyValuePair<K, V> operator()(const KeyValuePair<K, V> &a, const KeyValuePair<K, V> &b) const {
        return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
    }
};
struct ArgMin {
    template <class K, class V>
    __host__ __device__ KeyValuePair<K, V> operator()(const KeyValuePair<K, V> &a, const KeyValuePair<K, V> &b) const {
        return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
    }
};

// --- threads -------------------------------------------------------------------------------------

struct NullType {};

// What a type is made of; numbers as bits in the order of the numbers.
enum Category { NOT_A_NUMBER, SIGNED_INTEGER, UNSIGNED_INTEGER, FLOATING_POINT };
template <int bytes> struct __treadle_bits_of_size { typedef unsigned int type; };
template <> struct __treadle_bits_of_size<1> { typedef unsigned char type; };
template <> struct __treadle_bits_of_size<2> { typedef unsigned short type; };
template <> struct __treadle_bits_of_size<8> { typedef unsigned long long type; };
template <class T> struct Traits {
    typedef typename __treadle_bits_of_size<sizeof(T)>::type UnsignedBits;
    static constexpr Category CATEGORY = !std::is_arithmetic_v<T>       ? NOT_A_NUMBER
                                         : std::is_floating_point_v<T> ? FLOATING_POINT
                                         : std::is_signed_v<T>         ? SIGNED_INTEGER
                                                                       : UNSIGNED_INTEGER;
    static constexpr bool PRIMITIVE = CATEGORY != NOT_A_NUMBER, NULL_TYPE = false;
    static constexpr UnsignedBits HIGH_BIT = (UnsignedBits)((UnsignedBits)1 << (8 * sizeof(T) - 1));
    __host__ __device__ static UnsignedBits TwiddleIn(UnsignedBits key) {
        if constexpr (CATEGORY == FLOATING_POINT)
            return key ^ (key & HIGH_BIT ? (UnsignedBits)-1 : HIGH_BIT);
        else
            return CATEGORY == SIGNED_INTEGER ? key ^ HIGH_BIT : key;
    }
    __host__ __device__ static UnsignedBits TwiddleOut(UnsignedBits key) {
        if constexpr (CATEGORY == FLOATING_POINT)
            return key ^ (key & HIGH_BIT ? HIGH_BIT : (UnsignedBits)-1);
        else
            return CATEGORY == SIGNED_INTEGER ? key ^ HIGH_BIT : key;
    }
};
__device__ inline unsigned int LaneId() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}
__device__ inline unsigned int WarpId() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
}
__device__ inline int RowMajorTid(int x, int y, int z) { return threadIdx.x + x * (threadIdx.y + y * threadIdx.z); }
__device__ inline void CTA_SYNC() { __syncthreads(); }
__device__ inline void WARP_SYNC(unsigned int mask) { __syncwarp(mask); }
template <class A, class B> __host__ __device__ constexpr A DivideAndRoundUp(A n, B d) { return (A)(n / d + (n % d != 0)); }
template <class A, class B> __host__ __device__ constexpr A RoundUpNearest(A n, B d) { return DivideAndRoundUp(n, d) * d; }
template <int n> struct Log2 { static constexpr int VALUE = n <= 1 ? 0 : 32 - __clz(n - 1); };
template <int n> struct PowerOfTwo { static constexpr bool VALUE = (n & (n - 1)) == 0; };

enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };
template <CacheLoadModifier modifier, class T> __device__ T ThreadLoad(T *from) { return *from; }
template <CacheStoreModifier modifier, class T, class U> __device__ void ThreadStore(T *to, U value) { *to = value; }

// Values of any type go through shuffles as words.
enum __treadle_shuffle { __treadle_shuffle_up, __treadle_shuffle_down, __treadle_shuffle_from };
template <__treadle_shuffle kind, int threads, class T> __device__ T __treadle_moved(T x, int by, unsigned int mask) {
    if constexpr (__treadle_is_class<T>) {
        typedef std::conditional_t<sizeof(T) % 4 == 0, unsigned int,
                                   std::conditional_t<sizeof(T) % 2 == 0, unsigned short, unsigned char>> Word;
        T other = x;
        Word *words = (Word *)&other;
#pragma unroll
        for (int i = 0; i < (int)(sizeof(T) / sizeof(Word)); ++i)
            words[i] = (Word)__treadle_moved<kind, threads>((unsigned int)words[i], by, mask);
        return other;
    } else if constexpr (kind == __treadle_shuffle_up) {
        return __shfl_up_sync(mask, x, by, threads);
    } else if constexpr (kind == __treadle_shuffle_down) {
        return __shfl_down_sync(mask, x, by, threads);
    } else {
        return __shfl_sync(mask, x, by, threads);
    }
}
template <int threads, class T> __device__ T ShuffleUp(T x, int by, int first, unsigned int mask) {
    T other = __treadle_moved<__treadle_shuffle_up, threads>(x, by, mask);
    return (int)(LaneId() % threads) - by < first ? x : other;
}
template <int threads, class T> __device__ T ShuffleDown(T x, int by, int last, unsigned int mask) {
    T other = __treadle_moved<__treadle_shuffle_down, threads>(x, by, mask);
    return (int)(LaneId() % threads) + by > last ? x : other;
}
template <int threads, class T> __device__ T ShuffleIndex(T x, int from, unsigned int mask) {
    return __treadle_moved<__treadle_shuffle_from, threads>(x, from, mask);
}

// The lanes of a group of `threads` (a power of two) in its warp.
template <int threads> __device__ unsigned int WarpMask(unsigned int group) {
    return threads == 32 ? 0xffffffffu : ((1u << (threads % 32)) - 1u) << (group * threads % 32);
}
template <int threads> __device__ unsigned int __treadle_group() {
    return WarpMask<threads>(LaneId() / threads);
}

// Whether shuffles take the type.
template <class T> constexpr bool __treadle_shuffled = __treadle_is_arithmetic<T> && sizeof(T) >= 4;

template <int items, class T, class Op> __device__ T __treadle_fold(T (&x)[items], Op op) {
    T result = x[0];
    for (int i = 1; i < items; ++i)
        result = op(result, x[i]);
    return result;
}
template <class T, int items, class Op> __device__ T ThreadReduce(T (&x)[items], Op op) { return __treadle_fold(x, op); }
template <class T, int items, class Op> __device__ T ThreadReduce(T (&x)[items], Op op, T before) {
    return op(before, __treadle_fold(x, op));
}
template <class T, int items, class Op>
__device__ T ThreadScanInclusive(T (&x)[items], T (&out)[items], Op op) {
    out[0] = x[0];
    for (int i = 1; i < items; ++i)
        out[i] = op(out[i - 1], x[i]);
    return out[items - 1];
}
template <class T, int items, class Op>
__device__ T ThreadScanExclusive(T (&x)[items], T (&out)[items], Op op, T before) {
    for (int i = 0; i < items; ++i) {
        T own = x[i];
        out[i] = before;
        before = op(before, own);
    }
    return before;
}

// --- iterators -----------------------------------------------------------------------------------

template <class T, class Offset = ptrdiff_t> struct CountingInputIterator {
    typedef T value_type;
    T first;
    __host__ __device__ CountingInputIterator(const T &value) : first(value) {}
    __host__ __device__ T operator*() const { return first; }
    template <class I> __host__ __device__ T operator[](I i) const { return (T)(first + i); }
    template <class I> __host__ __device__ CountingInputIterator operator+(I i) const { return CountingInputIterator((T)(first + i)); }
};
template <class T, class Offset = ptrdiff_t> struct ConstantInputIterator {
    typedef T value_type;
    T value;
    __host__ __device__ ConstantInputIterator(const T &given) : value(given) {}
    __host__ __device__ T operator*() const { return value; }
    template <class I> __host__ __device__ T operator[](I) const { return value; }
    template <class I> __host__ __device__ ConstantInputIterator operator+(I) const { return ConstantInputIterator(value); }
};
template <class T, class F, class In, class Offset = ptrdiff_t> struct TransformInputIterator {
    typedef T value_type;
    In from;
    F function;
    __host__ __device__ TransformInputIterator(In given, F f) : from(given), function(f) {}
    __host__ __device__ T operator*() const { return function(*from); }
    template <class I> __host__ __device__ T operator[](I i) const { return function(from[i]); }
    template <class I> __host__ __device__ TransformInputIterator operator+(I i) const { return TransformInputIterator(from + i, function); }
};
template <class In> struct __treadle_element_of { typedef typename In::value_type type; };
template <class T> struct __treadle_element_of<T *> { typedef T type; };
// An element with its place.
template <class In, class Offset = ptrdiff_t, class T = void> struct ArgIndexInputIterator {
    typedef KeyValuePair<Offset, typename __treadle_element_of<In>::type> value_type;
    In from;
    Offset place;
    __host__ __device__ ArgIndexInputIterator(In given, Offset at = 0) : from(given), place(at) {}
    __host__ __device__ value_type operator*() const { return value_type(place, from[place]); }
    template <class I> __host__ __device__ value_type operator[](I i) const { return value_type((Offset)(place + i), from[place + i]); }
    template <class I> __host__ __device__ ArgIndexInputIterator operator+(I i) const { return ArgIndexInputIterator(from, (Offset)(place + i)); }
};
template <CacheLoadModifier modifier, class T, class Offset = ptrdiff_t> struct CacheModifiedInputIterator {
    typedef T value_type;
    const T *from;
    __host__ __device__ CacheModifiedInputIterator(const T *given) : from(given) {}
    __device__ T operator*() const { return *from; }
    template <class I> __device__ T operator[](I i) const { return from[i]; }
    template <class I> __device__ CacheModifiedInputIterator operator+(I i) const { return CacheModifiedInputIterator(from + i); }
};
struct __treadle_nothing {
    template <class T> __host__ __device__ void operator=(const T &) {}
};
template <class Offset = ptrdiff_t> struct DiscardOutputIterator {
    Offset place;
    __host__ __device__ DiscardOutputIterator(Offset at = 0) : place(at) {}
    __host__ __device__ __treadle_nothing operator*() const { return __treadle_nothing(); }
    template <class I> __host__ __device__ __treadle_nothing operator[](I) const { return __treadle_nothing(); }
    template <class I> __host__ __device__ DiscardOutputIterator operator+(I i) const { return DiscardOutputIterator((Offset)(place + i)); }
};

}  // namespace cub
