"""The C++ standard library in kernels: compile-time questions, pairs, tuples, arrays, complex
numbers, algorithms. Expected values are those of g++, or Python's."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

import treadle as td

TRAITS = """
#include <type_traits>
#include <limits>
struct B { int x; }; struct D : B { int y; }; enum class E : unsigned char { a };
enum Plain { p = 1 }; union U { int i; float f; };
template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
__device__ int kind(T) { return 2; }
template <class T, std::enable_if_t<std::is_integral<T>::value, int> = 0>
__device__ int kind(T) { return 3; }
#define IS(...) *out++ = (__VA_ARGS__);
__global__ void traits(int *out) {
    IS(std::is_same<int, int>::value) IS(std::is_same_v<int, float>) IS(std::is_integral<char>())
    IS(std::is_integral_v<float>) IS(std::is_floating_point_v<double>)
    IS(std::is_pointer_v<int *>)
    IS(std::is_arithmetic_v<bool>) IS(std::is_enum_v<E>) IS(std::is_scoped_enum_v<Plain>)
    IS(std::is_union_v<U>) IS(std::is_class_v<B>) IS(std::is_class_v<U>) IS(std::is_void_v<void>)
    IS(std::is_array_v<int[3]>) IS(std::is_reference_v<int &>)
    IS(std::is_rvalue_reference_v<int &>)
    IS(std::is_signed_v<unsigned>) IS(std::is_unsigned_v<unsigned char>)
    IS(std::is_signed_v<float>)
    IS(std::is_empty_v<std::true_type>) IS(std::is_base_of_v<B, D>) IS(std::is_base_of_v<D, B>)
    IS(std::is_convertible_v<int, float>) IS(std::is_convertible_v<B, int>)
    IS(std::is_convertible_v<D *, B *>) IS(std::is_convertible_v<B *, D *>)
    IS(std::conjunction_v<std::is_integral<int>, std::is_void<int>>)
    IS(std::disjunction_v<std::is_integral<int>, std::is_void<int>>)
    IS(std::negation_v<std::true_type>)
    IS(kind(1.0f)) IS(kind(1))
    IS(sizeof(std::underlying_type_t<E>)) IS(sizeof(std::make_unsigned_t<short>))
    IS(std::is_same_v<std::make_signed_t<unsigned long>, long>)
    IS(sizeof(std::common_type_t<char, double>))
    IS(std::is_same_v<std::common_type_t<int, unsigned>, unsigned>)
    IS(sizeof(std::conditional_t<true, char, int>))
    IS(std::is_same_v<std::decay_t<int[2]>, int *>)
    IS(std::is_same_v<std::remove_reference_t<int &>, int>)
    IS(std::is_same_v<std::remove_pointer_t<int *>, int>)
    IS(std::is_same_v<std::remove_extent_t<int[4]>, int>) IS(std::integral_constant<int, 7>{})
    IS(std::numeric_limits<int>::max()) IS(std::numeric_limits<int>::min())
    IS(std::numeric_limits<unsigned char>::max()) IS(std::numeric_limits<short>::lowest())
    IS(std::numeric_limits<float>::digits) IS(std::numeric_limits<double>::max_digits10)
    IS(std::numeric_limits<long long>::digits10) IS(std::numeric_limits<char>::is_signed)
    constexpr int most = std::numeric_limits<short>::max() + 1;
    IS(most)
}
__global__ void floats(float *out) {
    *out++ = std::numeric_limits<float>::max();
    *out++ = std::numeric_limits<float>::min();
    *out++ = std::numeric_limits<float>::lowest();
    *out++ = std::numeric_limits<float>::epsilon();
    *out++ = -std::numeric_limits<float>::infinity();
    *out++ = std::numeric_limits<float>::quiet_NaN();
}
"""


def ran(device, source, kernel, size, dtype=td.int32):
    out = td.full((size,), -77, dtype=dtype, device=device)
    td.cuda_module(source).kernel(kernel)[1, 1](out)
    return out.numpy().tolist()


def test_questions_about_types(device):
    expected = [
        1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0,
        2, 3, 1, 2, 1, 8, 1, 1, 1, 1, 1, 1, 7,
        2**31 - 1, -(2**31), 255, -(2**15), 24, 17, 18, 1, 2**15,
    ]  # fmt: skip
    assert ran(device, TRAITS, "traits", len(expected)) == expected


def test_limits_of_float(device):
    info = np.finfo(np.float32)
    out = ran(device, TRAITS, "floats", 6, td.float32)
    assert out[:5] == [info.max, info.tiny, info.min, info.eps, -np.inf]
    assert np.isnan(out[5])


VALUES = """
#define IS(...) *out++ = (__VA_ARGS__);
__device__ void raise(int &x) { ++x; }
__global__ void pairs(int *out) {
    std::pair<int, float> p(1, 2.5f);
    p.first += 2;
    auto q = std::make_pair(4, 5.5f);
    IS(p < q) IS(p == q) IS(p.first) IS(std::get<0>(q)) IS(std::get<1>(q) * 2)
    p.swap(q);
    IS(p.first) IS(q.second * 2) IS(std::tuple_size<std::pair<int, int>>::value)
    std::pair<short, int> r(q);
    IS(r.second) IS(sizeof(std::tuple_element_t<0, std::pair<char, int>>))
    int x = 3;
    int &same = std::move(x);
    raise(same);
    IS(x) IS(std::move(7)) IS(std::exchange(x, 9)) IS(std::forward<int>(x)) IS(*std::addressof(x))
    auto t = std::make_tuple(1, 2.5f, (short)3);
    IS(std::get<0>(t)) IS(std::get<1>(t) * 2) IS(std::get<2>(t))
    std::get<0>(t) = 9;
    std::tuple<int, float, short> u(t);
    IS(std::get<0>(u)) IS(u == t) IS(u < t) IS(std::make_tuple(1, 2) < std::make_tuple(1, 3))
    IS(std::tuple_size_v<std::tuple<int, float>>) IS(std::tuple_size_v<std::tuple<>>)
    std::array<int, 4> a{{4, 2, 3, 1}};
    IS(a.size()) IS(a[2]) IS(std::get<1>(a)) IS(a.front()) IS(a.back())
    std::sort(a.begin(), a.end());
    IS(a[0]) IS(a[3])
    a.fill(7);
    IS(a[1] + a.data()[3])
    auto [first, second, third, last] = a;
    first = 5;
    auto &[i, j, k_, l] = a;
    j = 6;
    IS(first + last) IS(a[0] * 10 + a[1])
}
"""


def test_pairs_tuples_and_arrays(device):
    expected = [
        1, 0, 3, 4, 11, 4, 5, 2, 2, 1,
        4, 7, 4, 9, 9, 1, 5, 3, 9, 1, 0, 1, 2, 0,
        4, 3, 2, 4, 1, 1, 4, 14,
    ]  # fmt: skip
    assert ran(device, VALUES, "pairs", len(expected)) == expected


ALGORITHMS = """
#include <algorithm>
#include <functional>
#define IS(...) *out++ = (__VA_ARGS__);
struct Odd { __device__ bool operator()(int x) const { return x % 2; } };
struct Twice { __device__ int operator()(int x) const { return 2 * x; } };
__global__ void algorithms(int *out) {
    int b[6] = {5, 3, 9, 3, 1, 8};
    int *end = b + 6;
    IS(std::accumulate(b, end, 10)) IS(*std::max_element(b, end)) IS(*std::min_element(b, end))
    IS(std::find(b, end, 9) - b) IS(std::find_if(b, end, Odd()) - b) IS(std::count(b, end, 3))
    IS(std::count_if(b, end, Odd())) IS(std::any_of(b, end, Odd())) IS(std::all_of(b, end, Odd()))
    std::stable_sort(b, end, std::greater<int>());
    IS(b[0]) IS(b[5]) IS(std::is_sorted(b, end))
    std::reverse(b, end);
    IS(std::is_sorted(b, end)) IS(std::lower_bound(b, end, 3) - b)
    IS(std::upper_bound(b, end, 3) - b)
    IS(std::binary_search(b, end, 4)) IS(std::unique(b, end) - b) IS(std::clamp(7, 1, 5))
    int c[6];
    std::transform(b, b + 5, c, Twice());
    IS(c[4]) IS(std::inner_product(b, b + 2, c, 1))
    std::iota(c, c + 6, 4);
    IS(c[5])
    std::fill(c, c + 6, 2);
    std::copy(b, b + 2, c);
    IS(c[1]) IS(c[2]) IS(std::gcd(12, -18)) IS(std::lcm(4, 6))
    IS(std::plus<int>()(1, 2)) IS(std::less<float>{}(1, 2)) IS(std::multiplies<>()(3, 2.5f) * 2)
    IS(std::negate<int>()(4)) IS(std::modulus<int>()(9, 5))
    IS(std::popcount(255u)) IS(std::countl_zero((unsigned short)1)) IS(std::countr_zero(8u))
    IS(std::bit_ceil(5u)) IS(std::rotl((unsigned char)0x81, 1)) IS(std::bit_cast<int>(1.0f))
}
__global__ void sorted(int *out) {
    int values[37];
    for (int i = 0; i < 37; ++i)
        values[i] = (i * 29 + 7) % 37;
    std::sort(values, values + 37);
    std::copy_n(values, 37, out);
}
"""


def test_algorithms(device):
    expected = [
        39, 9, 1, 2, 0, 2, 5, 1, 0, 9, 1, 0, 1, 1, 3, 0, 5, 5, 18, 1 + 1 * 2 + 3 * 6, 9, 3, 2, 6,
        12, 3, 1, 15, -4, 4, 8, 15, 3, 8, 3, 0x3F800000,
    ]  # fmt: skip
    assert ran(device, ALGORITHMS, "algorithms", len(expected)) == expected
    assert ran(device, ALGORITHMS, "sorted", 37) == list(range(37))


COMPLEX = """
#include <complex>
__global__ void numbers(const std::complex<float> *x, std::complex<float> *out) {
    std::complex<float> z = x[0], w = x[1];
    *out++ = z * w;
    *out++ = z / w;
    *out++ = 2.0f * z - w / 2.0f + 1.0f;
    *out++ = std::conj(z);
    *out++ = std::complex<float>(abs(w), std::arg(z));
    *out++ = std::exp(z);
    *out++ = std::log(z);
    *out++ = std::sqrt(w);
    *out++ = std::pow(z, w);
    *out++ = std::sin(z);
    *out++ = std::cos(z);
    *out++ = std::tanh(z);
    *out++ = std::polar(2.0f, 0.5f);
    z += w;
    z *= w;
    *out++ = -z;
    *out++ = std::complex<float>(z == z, std::norm(w));
}
"""


def test_complex_numbers(device):
    rng = np.random.default_rng()
    z, w = (complex(*part) for part in rng.uniform(0.2, 2, (2, 2)).astype(np.float32))
    w = complex(-w.real, w.imag)
    given = td.asarray(np.array([z, w], np.complex64).view(np.float32), device=device)
    out = td.zeros(30, device=device)
    # Macros of the user's do not change the text of headers.
    module = td.cuda_module(COMPLEX, defines={"T": "double", "re": 3})
    module.numbers[1, 1](given, out)
    expected = [
        z * w, z / w, 2 * z - w / 2 + 1, z.conjugate(), complex(abs(w), cmath.phase(z)),
        cmath.exp(z), cmath.log(z), cmath.sqrt(w), z**w, cmath.sin(z), cmath.cos(z),
        cmath.tanh(z),
        cmath.rect(2, 0.5), -(z + w) * w, complex(1, abs(w) ** 2),
    ]  # fmt: skip
    assert out.numpy().view(np.complex64) == pytest.approx(np.array(expected), rel=2e-5)


EXTREMES = """#include <complex>
typedef std::complex<double> Z;
__global__ void extremes(Z *out)
{
    double huge = 1e300, infinite = HUGE_VAL;
    *out++ = std::exp(Z(1e4, 0)); *out++ = std::sin(Z(0, 1e4)); *out++ = std::cos(Z(0, -1e4));
    *out++ = std::sinh(Z(1e4, 0)); *out++ = std::cosh(Z(-1e4, 0));
    *out++ = std::sqrt(Z(-1, infinite));
    *out++ = std::asinh(Z(-infinite, 1)); *out++ = std::acos(Z(infinite, infinite));
    *out++ = std::acosh(Z(huge, -infinite)); *out++ = std::atanh(Z(huge, huge));
    *out++ = std::atan(Z(-huge, 1)); *out++ = std::tanh(Z(huge, 1));
    *out++ = Z(1, 2) / Z(infinite, -1);
    *out++ = std::pow(Z(1, 2), 3); *out++ = std::pow(2, Z(1, 2));
    *out++ = Z(Z(2) == 2.0, 3.0 != Z(3));
}"""


def test_complex_functions_of_extreme_numbers():
    expected = [  # by g++
        complex(np.inf, 0), complex(0, np.inf), complex(np.inf, 0), complex(np.inf, 0),
        complex(np.inf, 0), complex(np.inf, np.inf), complex(-np.inf, 0),
        complex(np.pi / 4, -np.inf), complex(np.inf, -np.pi / 2), complex(5e-301, np.pi / 2),
        complex(-np.pi / 2, 0), 1, 0, -11 - 2j, 2 ** (1 + 2j), 1,
    ]  # fmt: skip
    out = td.zeros(2 * len(expected), dtype=td.float64, device="cpu")
    td.cuda_module(EXTREMES).extremes[1, 1](out)
    assert out.numpy().view(np.complex128).tolist() == pytest.approx(expected, rel=1e-12)


def test_quotients_of_large_and_small_numbers():
    given = np.array([3e38 + 3e38j, 2e38 + 1e38j, 1e-30 + 0j, 2e-30 + 0j], np.complex64)
    source = """#include <complex>
    __global__ void quotients(const std::complex<float> *x, std::complex<float> *out)
    { out[0] = x[0] / x[1]; out[1] = x[2] / x[3]; }"""
    out = td.zeros(4, device="cpu")
    x = td.asarray(given.view(np.float32), device="cpu")
    td.cuda_module(source).quotients[1, 1](x, out)
    expected = given.astype(complex)[::2] / given.astype(complex)[1::2]
    assert out.numpy().view(np.complex64) == pytest.approx(expected, rel=1e-4)


def test_a_dependent_launch_has_nothing_to_wait_for(device):
    source = """__global__ void late(int *out) {
        cudaGridDependencySynchronize();
        out[0] = 5;
        cudaTriggerProgrammaticLaunchCompletion();
    }"""
    assert ran(device, source, "late", 1) == [5]


SEQUENCES = """
#include <utility>
#include <tuple>
template <class F, std::size_t... I> __device__ int sum(F f, std::index_sequence<I...>)
{
    return (f(I) + ... + 0);
}
template <class T, T... I> __device__ T last(std::integer_sequence<T, I...>)
{
    T found = -1;
    ((found = I), ...);
    return found;
}
template <class T, std::size_t... I> __device__ auto total(T t, std::index_sequence<I...>)
{
    return (std::get<I>(t) + ...);
}
template <class... T> __device__ int count(T...) { return std::index_sequence_for<T...>::size(); }
template <class T, int n> struct Row { T x[n]; };
template <class T> using Pair = Row<T, 2>;
template <class T> __device__ T second(const Pair<T> &p) { return p.x[1]; }  // an alias, deduced
__global__ void sequences(int *out)
{
    *out++ = sum([](int i) { return i * i; }, std::make_index_sequence<5>{});
    *out++ = last(std::make_integer_sequence<int, 7>());
    *out++ = last(std::make_integer_sequence<short, 1>{});
    *out++ = last(std::integer_sequence<int, 4, 2, 9>{});
    *out++ = count(1, 2.f, 'c');
    *out++ = std::make_index_sequence<0>::size();
    *out++ = total(std::make_tuple(1, 2, 3), std::make_index_sequence<3>{});
    *out++ = std::is_same_v<std::make_index_sequence<2>, std::index_sequence<0, 1>>;
    *out++ = second(Row<int, 2>{{5, 8}});
}
"""


def test_sequences_of_numbers(device):
    out = td.zeros(9, dtype=td.int32, device=device)
    td.cuda_module(SEQUENCES).sequences[1, 1](out)
    assert out.tolist() == [30, 6, 0, 9, 3, 0, 6, 1, 8]


MORE = """
#include <cuda/cmath>
#include <cuda/functional>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/annotated_ptr>
struct Point { int x, y; };
__device__ cuda::std::optional<int> half_of(int n)
{
    if (n % 2) return cuda::std::nullopt;
    return n / 2;
}
__device__ int total(cuda::std::span<const int> values)
{
    int sum = 0;
    for (int one : values) sum += one;
    return sum;
}
__global__ void more(const int *x, int *out, int n)
{
    int i = threadIdx.x;
    if (i >= n) return;
    cuda::std::optional<int> half = half_of(x[i]);
    out[i] = half ? *half : -1;
    out[n + i] = half.value_or(77) + (half == cuda::std::nullopt ? 1000 : 0);
    std::optional<Point> p;
    if (x[i] > 5) p = Point{x[i], 1};
    out[2 * n + i] = p.has_value() ? p->x + p->y : 0;
    cuda::std::span<const int> all(x, n), some = all.subspan(i, 1);
    int own[3] = {x[i], 2, 3};
    out[3 * n + i] = total(some) + total(all.first(2)) + total(own) + (int)all.last(1).size_bytes();
    cuda::fast_mod_div<int> by(7);
    out[4 * n + i] = x[i] / by + 100 * (x[i] % by) + 10000 * cuda::ceil_div(x[i], 4) ;
    out[5 * n + i] = cuda::ilog2(x[i] + 1) + 100 * cuda::isqrt(x[i])
        + 10000 * cuda::round_up(x[i], 8);
    auto f = cuda::proclaim_return_type<int>([=](int a) { return a * 2; });
    out[6 * n + i] = f(x[i]) + cuda::maximum<>{}(x[i], 5) + cuda::minimum<int>{}(x[i], 3);
    cuda::annotated_ptr<const int, cuda::access_property::persisting> kept(x);
    out[7 * n + i] = kept[i]
        + *cuda::associate_access_property(x, cuda::access_property::streaming{});
}
"""


def test_optional_span_and_functions_of_cuda(device):
    x = np.random.default_rng().integers(0, 50, 17).astype(np.int32)
    out = td.full((8, 17), -77, dtype=td.int32, device=device)
    td.cuda_module(MORE).more[1, 32](td.asarray(x, device=device), out, 17)
    rows = [
        [v // 2 if v % 2 == 0 else -1 for v in x],
        [v // 2 if v % 2 == 0 else 1077 for v in x],
        [v + 1 if v > 5 else 0 for v in x],
        [2 * v + x[0] + x[1] + 9 for v in x],
        [v // 7 + 100 * (v % 7) + 10000 * -(-v // 4) for v in x],
        [len(f"{v + 1:b}") - 1 + 100 * math.isqrt(v) + 80000 * -(-v // 8) for v in x],
        [2 * v + max(v, 5) + min(v, 3) for v in x],
        [v + x[0] for v in x],
    ]
    assert (out.numpy() == rows).all()
