"""Functions of CUDA C++: overloads, templates, constant functions, memory inside of functions."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


def check(device, source, kernel, expected, inputs=(0,)):
    out = td.zeros(len(expected) + 1, dtype=td.int32, device=device)
    values = td.asarray(np.array(inputs, np.int32), device=device)
    td.cuda_module(source).kernel(kernel)[1, 1](values, out)
    assert out.tolist() == [*expected, 0]


OVERLOADS = """
struct Vec { float x, y; };
__device__ int kind(int) { return 1; }
__device__ int kind(unsigned) { return 2; }
__device__ int kind(float) { return 3; }
__device__ int kind(long long) { return 5; }
__device__ int kind(const int *) { return 6; }
__device__ int kind(float *p) { return 7; }
__device__ int kind(char) { return 8; }
__device__ int kind(bool) { return 9; }
__device__ int kind(Vec v) { return 10; }
__device__ int kind(float2) { return 11; }
__device__ int kind(int, int = 4) { return 12; }
__device__ int kind(int a, float b, int c) { return 13; }
template <typename T> __device__ int kind(T *, T) { return 14; }
template <typename T, typename U> __device__ int kind(T, U, float) { return 15; }

__device__ int narrow(int x) { return x; }
__device__ int narrow(float x) { return (int)(x * 100); }
__device__ int three(int a, int b = 2, int c = 2 + 1) { return a * 100 + b * 10 + c; }
__device__ int later(int x, int y = 7);
__device__ int by_value(int x) { x += 5; return x; }
__device__ int by_reference(int &x) { x += 5; return x; }
__device__ int by_constant(const int &x) { return x + 5; }
__device__ int moved(int &&x) { return x * 2; }
__device__ void nothing() {}
__device__ void also(int) { return; }
static __forceinline__ __device__ float4 twice(float4 v)
{
    v.x *= 2; v.y *= 2; v.z *= 2; v.w *= 2; return v;
}
__noinline__ __device__ float dot(float4 a, float4 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
__host__ __device__ inline int shared_by_both(int x) { return x + 1000; }
__device__ __host__ constexpr int square(int x) { return x * x; }
extern "C" __device__ int plain_c(int x) { return -x; }
__device__ auto deduced(int a) { return a * 0.5f; }
__device__ auto trailing(int a) -> unsigned char { return a; }
__device__ bool odd(int n) { return n & 1; }
__device__ unsigned char wraps(int x) { return x; }
__device__ float single(double x) { return x; }
__device__ int until(int n)
{
    for (int i = 0; ; i++) { if (i * i > n) return i; if (i > 100) return -1; }
}

__global__ void overloads(const int *in, int *out)
{
    int k = 0, n = in[0];                                     // 3
    float f = n;
    char c = n;
    short s = n;
    out[k++] = kind(1u) * 100 + kind(f);                      // 203
    out[k++] = kind(1LL) * 100 + kind(in);                    // 506
    out[k++] = kind(&f) * 100 + kind(c);                      // 708
    out[k++] = kind(n == 3) * 100 + kind('a');                // 908
    out[k++] = kind(Vec{1, 2}) * 100 + kind(make_float2(1, 2));   // 1011
    out[k++] = kind(n, 4) * 100 + kind(n, f, n);              // 1213
    out[k++] = kind(&f, f) * 100 + kind(f, n, f);             // 1415
    out[k++] = narrow(s) + narrow(c) + narrow(true);          // promotions: 7
    out[k++] = narrow(1.5f);
    out[k++] = three(1) + three(1, n) + three(n, n, n);       // 123 + 133 + 333
    out[k++] = later(n) + later(n, 1);                        // 21 + 3
    int a = n;
    out[k++] = by_value(a) * 100 + a;                         // 803
    out[k++] = by_reference(a) * 100 + a;                     // 808
    out[k++] = by_constant(a) + by_constant(2) + by_constant('a' + f);   // 13 + 7 + 105
    out[k++] = moved(a + 1);                                  // 18
    nothing();
    also(a++);
    out[k++] = a;                                             // 9
    out[k++] = dot(twice(make_float4(1, 2, n, 4)), make_float4(1, 1, 1, 1));   // 20
    out[k++] = shared_by_both(n) + plain_c(n);                // 1000
    out[k++] = deduced(n) * 10;                               // 15
    out[k++] = trailing(n + 256) + wraps(-1);                 // 258
    out[k++] = odd(n) + odd(n + 1) * 10;                      // 1
    out[k++] = until(n * 10) * 10 + until(n - 3) + until(1000000);   // 60 + 1 - 1
    int table[square(3)];
    out[k++] = sizeof(table) / sizeof(int) + square(n);       // 18
    auto first = f * 2;
    decltype(first) second = 1.5f;
    decltype(n + 1u) third = -1;
    const auto fourth = third > 0;
    out[k++] = (int)(first + second * 10) * 10 + fourth;      // 211
    int prototype(int, int);
    out[k++] = (later)(1, 1) + later(2, 1);                   // 3
}
__device__ int later(int x, int y) { return x * y; }
"""


def test_overloads_and_arguments(device):
    expected = [
        203, 506, 708, 908, 1011, 1213, 1415, 7, 150, 589, 24, 803, 808, 125, 18, 9, 20, 1000, 15,
        258, 1, 60, 18, 211, 3,
    ]  # fmt: skip
    check(device, OVERLOADS, "overloads", expected, [3])


TEMPLATES = """
template <typename T> __device__ T largest(T a, T b) { return a > b ? a : b; }
template <> __device__ float largest<float>(float a, float b) { return 1000; }
template <typename T, int N> __device__ T sum(const T (&values)[N])
{
    T s = 0; for (int i = 0; i < N; i++) s += values[i]; return s;
}
template <int N, typename T> __device__ T times(T x) { return x * N; }
template <int N> __device__ int power(int x) { return N == 0 ? 1 : N % 2 ? x : x * x; }
template <bool UP, typename T> __device__ bool before(T a, T b)
{
    if (UP) return a < b; else return b < a;
}
template <bool CHECK> __device__ int checked(const int *p, int i)
{
    if constexpr (CHECK) { return i < 3 ? p[i] : -1; }
    else return p[i];
}
template <class T> __device__ void swap(T &a, T &b) { T t = a; a = b; b = t; }
template <typename T, int N, bool UP> __device__ void sort(T *p)
{
    for (int i = 0; i < N; i++)
        for (int j = i + 1; j < N; j++)
            if (before<UP>(p[j], p[i])) swap(p[i], p[j]);
}
template <int N> struct Factorial { static const int value = N * Factorial<N - 1>::value; };
template <> struct Factorial<0> { static const int value = 1; };
template <typename T, int N> struct Array {
    T data[N];
    static constexpr int size = N;
    __device__ T &operator[](int i) { return data[i]; }
    __device__ const T &operator[](int i) const { return data[i]; }
    __device__ T sum() const { T s = T(); for (int i = 0; i < N; i++) s += data[i]; return s; }
    template <typename U> __device__ U as(int i) const { return (U)data[i]; }
};
template <typename T> struct Traits { typedef int wide; enum { BITS = 32 }; };
template <> struct Traits<unsigned char> { typedef unsigned wide; enum { BITS = 8 }; };
template <typename T> struct Traits<T *> { typedef T wide; enum { BITS = 64 }; };
template <typename T> __device__ typename Traits<T>::wide widened(T x)
{
    typename Traits<T>::wide w = x; return w * 2;
}
template <typename T> using Pair = Array<T, 2>;
template <typename T> constexpr int WIDTH = sizeof(T) * 8;
template <typename A, typename B = A> struct Both { A a; B b; };
template <int LOW, int HIGH = LOW * 2> __device__ int between() { return LOW * 100 + HIGH; }
struct Add { __device__ int operator()(int a, int b) const { return a + b; } };
struct Multiply { __device__ static int apply(int a, int b) { return a * b; } };
template <typename Op> __device__ int fold(const int *p, int n, Op op)
{
    int r = p[0]; for (int i = 1; i < n; i++) r = op(r, p[i]); return r;
}
template <typename Op> __device__ int reduce(const int *p, int n)
{
    int r = p[0]; for (int i = 1; i < n; i++) r = Op::apply(r, p[i]); return r;
}
template <typename T> __device__ T identity(T x) { return x; }
template <typename T> __device__ T through(T x) { return identity<T>(x) + identity(x); }
enum Order { UP, DOWN };
template <Order O> __device__ int sign() { return O == UP ? 1 : -1; }
template <unsigned N> __device__ unsigned unrolled(unsigned x) {
    #pragma unroll
    for (unsigned i = 0; i < N; i++) x += i;
    return x;
}

__global__ void templates(const int *in, int *out)             // 3 1 2
{
    int k = 0, n = in[0];
    out[k++] = largest(n, 5) * 10 + largest<int>(n, 2.9f);     // 53
    out[k++] = largest(1.0f, 2.0f) + largest<float>(1, 2);     // 2000
    out[k++] = largest(-1, n) + (largest<unsigned>(-1, n) > 100);   // 4
    float f[3] = {0.5f, 1, 1.5f};
    int values[] = {1, 2, 3, 4};
    out[k++] = sum(f) * 10 + sum(values);                      // 40
    out[k++] = times<3>(n) + times<2>(1.5f) * 100;             // 309
    out[k++] = power<0>(n) + power<1>(n) * 10 + power<2>(n) * 100;   // 931
    int data[3] = {in[0], in[1], in[2]};
    sort<int, 3, true>(data);
    out[k++] = data[0] * 100 + data[1] * 10 + data[2];         // 123
    sort<int, sizeof(data) / 4, false>(data);
    out[k++] = data[0] * 100 + data[1] * 10 + data[2];         // 321
    out[k++] = checked<true>(in, n) + checked<false>(in, 1);   // 0
    out[k++] = Factorial<5>::value;                            // 120
    Array<float, 3> array = {{1, 2, 3}};
    array[1] += n;
    out[k++] = array.sum() * 10 + array.size + array.as<int>(1);   // 90 + 3 + 5
    Pair<int> pair = {{n, 4}};
    out[k++] = pair.sum() + Pair<char>::size + sizeof(Pair<short>);   // 7 + 2 + 4
    unsigned char byte = 200;
    out[k++] = widened(byte) + widened(n) + Traits<char>::BITS + Traits<int *>::BITS;   // 502
    out[k++] = WIDTH<double> + WIDTH<short>;                   // 80
    Both<int> both = {1, 2};
    Both<int, char> other = {1, 'a'};
    out[k++] = both.b + other.b + sizeof(both) + sizeof(Both<char>);   // 2 + 97 + 8 + 2
    out[k++] = between<3>() + between<1, 9>();                 // 306 + 109
    out[k++] = fold(in, 3, Add()) * 100 + reduce<Multiply>(in, 3);   // 606
    out[k++] = through(n) + through<short>(n);                 // 12
    out[k++] = sign<UP>() * 10 + sign<DOWN>();                 // 9
    out[k++] = unrolled<4u>(1);                                // 7
    Array<Array<int, 2>, 2> nested;
    nested[1][0] = 5; nested[0][1] = 6;
    out[k++] = nested.data[1].data[0] * 10 + nested[0][1];     // 56
}

template <typename T, int SCALE, bool NEGATE = false>
__global__ void scaled(const T *x, T *y, int n)
{
    __shared__ T held[SCALE * 4];
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        held[threadIdx.x] = x[i] * (T)SCALE;
        y[i] = NEGATE ? -held[threadIdx.x] : held[threadIdx.x];
    }
}
"""


def test_templates(device):
    expected = [
        53, 2000, 4, 40, 309, 931, 123, 321, 0, 120, 98, 13, 502, 80, 109, 415, 606, 12, 9, 7, 56,
    ]  # fmt: skip
    check(device, TEMPLATES, "templates", expected, [3, 1, 2])


TYPES_OF_VALUES = """
enum class Op { other, names, here };
namespace outer {
enum class Op { same, twice };
enum Plain { one = 1, ten = 10 };
typedef unsigned char Byte;
using Number = int;
template <Op op> __device__ int by_enum(int x) { return op == Op::same ? x : 2 * x; }
template <Plain plain> __device__ int by_plain_enum(int x) { return plain * x; }
template <Byte byte> __device__ int by_typedef() { return byte; }
template <Number number, Op op = Op::twice> __device__ int by_default() {
    return by_enum<op>(number);
}
template <Op op> struct Functor {
    __device__ int operator()(int x) const { return op == Op::same ? x : 3 * x; }
};
template <> struct Functor<Op::same> { __device__ int operator()(int x) const { return -x; } };
template <Op op> __device__ int deduced(const Functor<op> &f) { return f(int(op)); }
namespace inner {
template <Op op> __device__ Op itself() { return op; }
}
}
struct Scope {
    enum class Op { same, four_times };
    template <Op op> __device__ static int by_member(int x) { return op == Op::same ? x : 4 * x; }
};
template <typename T> struct Generic {
    typedef T Element;
    template <Element element> __device__ T get() const { return element; }
};
template <typename T, T value> __device__ T by_earlier_parameter() { return value; }
__global__ void values(const int *in, int *out) {
    out[0] = outer::by_enum<outer::Op::twice>(3);
    out[1] = outer::by_plain_enum<outer::ten>(3);
    out[2] = outer::by_typedef<255>();
    out[3] = outer::by_default<5>();
    outer::Functor<outer::Op::twice> f;
    outer::Functor<outer::Op::same> g;
    out[4] = f(3) + g(1);
    out[5] = outer::deduced(f);
    out[6] = (int)outer::inner::itself<outer::Op::twice>();
    out[7] = Scope::by_member<Scope::Op::four_times>(3);
    Generic<short> generic;
    out[8] = generic.get<7>();
    out[9] = by_earlier_parameter<signed char, -3>();
}
"""


def test_types_of_template_parameters_are_those_of_the_template(device):
    check(device, TYPES_OF_VALUES, "values", [6, 30, 255, 10, 8, 3, 1, 12, 7, -3])


@pytest.mark.parametrize(("dtype", "arguments"), [("float32", (3,)), ("int32", (2, True))])
def test_templates_of_kernels(device, dtype, arguments):
    x = td.asarray(np.arange(11), dtype=getattr(td, dtype), device=device)
    y = td.zeros(11, dtype=getattr(td, dtype), device=device)
    kernel = td.cuda_module(TEMPLATES).kernel("scaled", getattr(td, dtype), *arguments)
    kernel[1, 4](x, y, 11)
    factor = arguments[0] * (-1 if len(arguments) > 1 else 1)
    np.testing.assert_array_equal(y.numpy(), np.arange(11) * factor)


CONSTANTS = """
constexpr int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
constexpr unsigned log2_of(unsigned n) { unsigned r = 0; while (n >>= 1) r++; return r; }
__host__ __device__ constexpr bool is_power(int n) { return n > 0 && (n & (n - 1)) == 0; }
constexpr int pick(int n) { if (n > 5) return 1; switch (n) { case 1: return 10;
case 2: return 20; } return 30; }
constexpr int SIDE = 4, AREA = SIDE * SIDE;
constexpr float HALF = 1.0f / 2;
constexpr unsigned bits_of(float x) { unsigned n = 0; if (1.0f / x < 0) n = 7; return n; }
constexpr int wide(long n) { int r = 0; for (long i = n; i > 0; i /= 10) r++; return r; }
struct Config { static constexpr int BLOCK = 8; static const int WARPS = BLOCK / 4; int x; };
static_assert(is_power(AREA), "a power of two");

__global__ void known(const int *in, int *out)
{
    constexpr int bits = log2_of(AREA) + 1;
    __shared__ int shared[factorial(3)][bits];
    int local[is_power(8) ? pick(2) : 1];
    const int twice = Config::BLOCK * 2;
    float line[twice + Config::WARPS];
    int k = 0;
    out[k++] = sizeof(shared) / sizeof(shared[0]) * 100 + sizeof(shared[0]) / 4;   // 605
    out[k++] = sizeof(local) / 4;                              // 20
    out[k++] = sizeof(line) / 4;                               // 18
    out[k++] = HALF * 10 + pick(in[0]);                        // 35
    out[k++] = pick(6) + pick(1) + factorial(5);               // 131
    switch (in[0]) { case log2_of(8): out[k++] = 8; }
    if constexpr (sizeof(int) == 8) out[k++] = 1; else out[k++] = 9;
    constexpr int some = wide(123), same = wide(123) * 10, more = wide(1234567890123l) * 100;
    constexpr unsigned zero = bits_of(0.0f), minus = bits_of(-0.0f), again = bits_of(0.0f);
    out[k++] = some + same + more;                             // 1333
    out[k++] = zero + minus * 10 + again * 100;                // 70
}
"""


def test_constant_functions(device):
    check(device, CONSTANTS, "known", [605, 20, 18, 35, 131, 8, 9, 1333, 70], [3])


SHARED = """
extern __shared__ float dynamic[];
__device__ float *scratch() { __shared__ float own[8]; return own; }
__device__ float block_sum(float x)
{
    __shared__ float part[8];
    part[threadIdx.x] = x;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step >>= 1) {
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    float sum = part[0];
    __syncthreads();
    return sum;
}
__device__ float neighbour(const float *p, int i, int n)
{
    if (i < 0) return -1;
    if (i >= n) return -2;
    if (p[i] > 5) return 100;
    return p[i];
}
__device__ int &counter() { __shared__ int count; return count; }
__device__ void add(int *to, int x) { if (x < 0) return; atomicAdd(to, x); }

__global__ void together(const float *x, float *out, int n)
{
    extern __shared__ int words[];
    int i = threadIdx.x;
    float *mine = scratch();
    mine[i] = x[i];
    dynamic[i] = -x[i];
    if (i == 0) { words[n] = 7; counter() = 0; }
    __syncthreads();
    out[i] = mine[n - 1 - i] + scratch()[i] * 10 + dynamic[n - 1 - i] * 100;
    out[n + i] = block_sum(x[i]) + block_sum(1) * 1000;
    add(&counter(), i - 2);
    out[2 * n + i] = neighbour(x, i - 1, n) + neighbour(mine, i + 1, n) * 1000;
    out[2 * n + i] += neighbour(x, i, n) * 10;
    __syncthreads();
    out[3 * n + i] = counter() + words[n];
}
"""


def test_shared_memory_in_functions(device):
    x = np.arange(8).astype(np.float32)
    out = td.zeros(32, device=device)
    td.cuda_module(SHARED).together[1, 8, 9 * 4](td.asarray(x, device=device), out, 8)
    found = out.numpy().reshape(4, 8)
    np.testing.assert_array_equal(found[0], x[::-1] + x * 10 - x[::-1] * 100)
    np.testing.assert_array_equal(found[1], np.full(8, 28 + 8000))

    def neighbour(i):
        return -1 if i < 0 else -2 if i >= 8 else 100 if i > 5 else i

    expected = [neighbour(i - 1) + neighbour(i + 1) * 1000 + neighbour(i) * 10 for i in range(8)]
    np.testing.assert_array_equal(found[2], expected)
    np.testing.assert_array_equal(found[3], np.full(8, 0 + 1 + 2 + 3 + 4 + 5 + 7))


MANY = "\n".join([
    "__device__ float step(const float *p, float x, int i)",
    "{",
    "    if (x > 100) return x - 100;",
    "    if (i % 3 == 0) return x + p[0];",
    "    for (int j = 0; j < 2; j++) { if (p[j] > x) return p[j]; }",
    "    return x * 2;",
    "}",
    "__global__ void many(const float *p, float *out)",
    "{",
    "    float x = threadIdx.x;",
    *(f"    x = step(p, x, {i});" for i in range(40)),
    "    out[threadIdx.x] = x;",
    "}",
])  # fmt: skip


def test_many_calls_of_one_function(device):
    def step(p, x, i):
        if x > 100:
            return x - 100
        if i % 3 == 0:
            return x + p[0]
        return next((one for one in p if one > x), x * 2)

    out = td.zeros(5, device=device)
    td.cuda_module(MANY).many[1, 5](td.asarray(np.array([3, 7], np.float32), device=device), out)
    expected = []
    for x in range(5):
        for i in range(40):
            x = step([3, 7], x, i)
        expected.append(x)
    assert out.tolist() == expected


COPIES = "\n".join([
    "__device__ int step(int a, int *other)",
    "{",
    "    int own[1] = {a}, x = a;",
    "    int *p = &x;",
    "    for (int i = 0; i < 2; i++) { *p += 1; if (a % 3 == i) p = own; }",
    "    *other += own[0] - a;",
    "    return x;",
    "}",
    "__global__ void copies(const int *in, int *out)",
    "{",
    *(f"    out[0] += step(in[0] + {i}, &out[1]);" for i in range(20)),
    "}",
])  # fmt: skip


def test_many_copies_of_variables_with_addresses(device):
    sums = [0, 0]
    for a in range(5, 25):
        x, own, p = a, a, "x"
        for i in range(2):
            x, own = (x + 1, own) if p == "x" else (x, own + 1)
            p = "own" if a % 3 == i else p
        sums = [sums[0] + x, sums[1] + own - a]
    check(device, COPIES, "copies", sums, [5])


CHOICES = """
template <class T> struct A { T t; };
template <class T, int N = 4> struct Is { static const int v = 0; };
template <class T, int N> struct Is<T *, N> { static const int v = 1; };
template <class T, int N> struct Is<const T *, N> { static const int v = 2; };
template <class T, int N> struct Is<A<T>, N> { static const int v = 3 + Is<T, N>::v * 10; };
template <class T> struct Is<T *, 9> { static const int v = 4; };
struct B { int y; };
struct D : B { };
enum E { FIRST };
struct W { int w; __device__ operator float() const { return w; } };
template <class T> __device__ int base_or(const T &) { return 9; }
__device__ int base_or(B &) { return 1; }
template <class T> __device__ int pointer_or(T) { return 9; }
__device__ int pointer_or(const int *) { return 1; }
__device__ int through(int *) { return 1; }
__device__ int through(const void *) { return 2; }
__device__ int behind(char) { return 1; }
__device__ int behind(float) { return 2; }
__device__ int behind(E) { return 3; }
template <class T> __device__ int special(T) { return 1; }
template <class T> __device__ int special(T *) { return 2; }
template <class T> __device__ int special(A<T>) { return 3; }

__global__ void choices(const int *in, int *out)
{
    int n = 0, *p = out;
    D d;
    B &b = d;
    W w{in[0]};
    out[n++] = Is<int>::v * 1000 + Is<int *>::v * 100 + Is<const int *>::v * 10 + Is<int *, 9>::v;
    out[n++] = Is<A<int>>::v * 100 + Is<A<const float *>>::v;
    out[n++] = base_or(d) * 10 + base_or(b);            // as it is, before as a base
    out[n++] = pointer_or(p) * 10 + pointer_or(in);
    out[n++] = through(p) * 10 + through(in);           // const is not lost
    out[n++] = behind(w);                               // the float as it is
    out[n++] = special(n) * 100 + special(in) * 10 + special(A<int>{1});
}
"""


def test_the_most_special_and_the_nearest(device):
    check(device, CHOICES, "choices", [124, 323, 91, 91, 12, 2, 123], [3])
