"""Classes of the C++ standard library that hold one of several things, or refer to others:
optional, variant, expected, string_view. Expected values are those of g++."""

from __future__ import annotations

import pytest

import treadle as td
from tests.support.cpp_host import doubles_if_any


def ran(device, source, kernel, size):
    out = td.full((size,), -77, dtype=td.int32, device=device)
    td.cuda_module(source).kernel(kernel)[1, 1](out)
    return out.numpy().tolist()


VARIANTS = """
#include <variant>
#define IS(...) *out++ = (__VA_ARGS__);
struct Circle { float r; }; struct Box { float w, h; };
struct Area { __device__ float operator()(const Circle &c) const { return 3 * c.r * c.r; }
    __device__ float operator()(const Box &b) const { return b.w * b.h; } };
template <class... F> struct overloaded : F... { using F::operator()...; };
template <class... F> overloaded(F...) -> overloaded<F...>;
__global__ void variants(int *out)
{
    {
        std::variant<int, float, char> v; IS(v.index()) IS(std::get<0>(v))
        v = 2.5f; IS(v.index()) IS(std::get<float>(v) * 2) IS(std::holds_alternative<float>(v))
        IS(std::holds_alternative<int>(v))
        v = 'c'; IS(std::get<2>(v)) IS(std::get_if<int>(&v) == nullptr)
        IS(*std::get_if<char>(&v))
        std::variant<int, float, char> w(7); IS(v == w) IS(w < v)
        w = v; IS(w == v)
        v.emplace<0>(5); IS(std::get<int>(v))
        v.emplace<float>(1.5f); IS(v.index()) IS(std::variant_size_v<decltype(v)>)
        v.swap(w); IS(v.index()) IS(sizeof(v))
        std::variant<std::monostate, short> m; IS(m.index())
        m = (short)4; IS(std::get<short>(m))
        std::variant<int, float> x(std::in_place_index<1>, 2.f); IS(x.index())
    }
    {
        std::variant<Circle, Box> s = Circle{2}; IS(std::visit(Area{}, s))
        s = Box{3, 4}; IS(std::visit(Area{}, s))
        IS(std::visit([](auto &x) { return (int)sizeof(x); }, s))
        std::variant<int, float> a = 3, b = 2.5f;
        IS(std::visit([](auto x, auto y) { return (int)(x * y * 2); }, a, b))
        IS(std::visit(overloaded{[](int x) { return x + 100; }, [](float x) { return (int)(x *
            10); }}, a))
        IS(std::visit(overloaded{[](int x) { return x + 100; }, [](float x) { return (int)(x *
            10); }}, b))
        std::visit([](auto &x) { x += 1; }, a); IS(std::get<0>(a))
        IS(std::visit<int>([](auto x) { return x * 3; }, b))
    }
    {
        int a = 1;
        float b = 2;
        std::variant<int *, float *> v = &a;
        *std::get<0>(v) = 9;
        v = &b;
        *std::get<1>(v) = 4; IS(a) IS(b) IS(v.index())
    }
}
"""


def test_variants(device):
    expected = [
        0, 0, 1, 5, 1, 0, 99, 1, 99, 0, 1, 1, 5, 1, 3, 2, 8, 0, 4, 1, 12, 12, 8, 15, 103,
        25, 4, 7, 9, 4, 1,
    ]  # fmt: skip
    assert ran(device, VARIANTS, "variants", len(expected)) == expected


ENDS = """
#include <variant>
#define IS(...) *out++ = (__VA_ARGS__);
struct D { int *p; int v; __device__ D(int *p, int v) : p(p), v(v) {} __device__ D(const D &o) :
    p(o.p), v(o.v + 100) {} __device__ ~D() { *p += v; } };
__global__ void ends(int *out)
{
    int total = 0;
    { std::variant<int, D> v = 3; IS(total) v = D(&total, 7); IS(total) IS(std::get<1>(v).v)
        std::variant<int, D> w(v); IS(std::get<D>(w).v) w = 5; IS(total) v.emplace<1>(&total,
        1000); IS(total) w = v; IS(std::get<1>(w).v) }
    IS(total)
}
"""


def test_variants_of_classes_with_destructors(device):
    expected = [
        0, 7, 107, 207, 214, 321, 1100, 2421,
    ]  # fmt: skip
    assert ran(device, ENDS, "ends", len(expected)) == expected


OPTIONALS = """
#include <optional>
#define IS(...) *out++ = (__VA_ARGS__);
struct D { int *p; int v; __device__ D(int *p, int v) : p(p), v(v) {} __device__ D(const D &o) :
    p(o.p), v(o.v + 100) {} __device__ D &operator=(const D &o) { v = o.v + 7; return *this; }
    __device__ ~D() { *p += v; } };
struct N { int v; __device__ explicit N(int v) : v(v) {} };
__global__ void optionals(int *out)
{
    int total = 0;
    { std::optional<D> none, v(std::in_place, &total, 1); IS(total) IS(v->v) std::optional<D>
        w(v); IS(w->v) v = none; IS(total) IS(v.has_value()) v.emplace(&total, 50); w = v;
        IS(w->v) IS(total) w.reset(); IS(total) IS(v.value().v) }
    IS(total)
    std::optional<N> n;
    n = N(4); IS(n->v)
    n = std::nullopt; IS(n.has_value())
    std::optional<N> k = n; IS(k.has_value())
    k = N(8);
    n = k; IS(n->v)
    std::optional<int> o = 4; IS(*o.transform([](int x) { return x + 1; }))
    IS(o.and_then([](int x) -> std::optional<int> { if (x > 5) return x; return std::nullopt;
        }).has_value())
    IS(*std::optional<int>().or_else([] { return std::optional<int>(9); }))
    std::optional<float> f = o; IS(*f) IS(std::make_optional<std::pair<int, int>>(1, 2)->second)
}
"""


def test_optional_values_of_classes_with_destructors(device):
    expected = [
        0, 1, 101, 1, 0, 57, 1, 58, 50, 108, 4, 0, 0, 8, 5, 0, 9, 4, 2,
    ]  # fmt: skip
    assert ran(device, OPTIONALS, "optionals", len(expected)) == expected


EXPECTED = """
#include <expected>
#define IS(...) *out++ = (__VA_ARGS__);
enum class Error { none, negative, large };
__device__ std::expected<int, Error> half(int x) { if (x < 0) return
    std::unexpected(Error::negative); if (x > 100) return std::unexpected(Error::large); return x
    / 2; }
struct D { int *p; int v; __device__ D(int *p, int v) : p(p), v(v) {} __device__ D(const D &o) :
    p(o.p), v(o.v + 100) {} __device__ ~D() { *p += v; } };
__global__ void expected_values(int *out)
{
    auto a = half(8), b = half(-1); IS(a.has_value()) IS(*a) IS(b.has_value())
    IS((int)b.error()) IS(b.value_or(77)) IS((bool)half(200)) IS((int)half(200).error())
    IS(half(6) == 3) IS(a == half(8)) IS(a != b)
    a = b; IS(a.has_value())
    a = 5; IS(a.value())
    b = std::unexpected(Error::large); IS((int)b.error()) IS(*half(40).and_then(half))
    IS(*half(40).transform([](int x) { return x * 3; }))
    IS(half(-5).transform_error([](Error e) { return (int)e + 50; }).error())
    IS(*half(-5).or_else([](Error) -> std::expected<int, Error> { return 9; }))
    std::expected<void, int> v; IS(v.has_value())
    v = std::unexpected(4); IS(v.error())
    int total = 0;
    { std::expected<D, int> d(std::in_place, &total, 7), e(std::unexpect, 3); e = d; IS(e->v) d
        = std::unexpected(1); IS(total) }
    IS(total)
}
"""


def test_expected_values(device):
    expected = [
        1, 4, 0, 1, 77, 0, 2, 1, 1, 1, 0, 5, 2, 10, 60, 51, 9, 1, 4, 107, 7, 114,
    ]  # fmt: skip
    assert ran(device, EXPECTED, "expected_values", len(expected)) == expected


OTHERS = """
#include <string_view>
#include <array>
#include <bit>
#include <functional>
#define IS(...) *out++ = (__VA_ARGS__);
__global__ void others(int *out)
{
    {
        std::string_view s("hello world"); IS(s.size()) IS(s[1]) IS(s.find('o'))
        IS(s.find("wor")) IS(s.find("xyz") == std::string_view::npos) IS(s.substr(6) == "world")
        IS(s.starts_with("hell")) IS(s.ends_with('d')) IS(s < "help") IS(s.compare("hello") > 0)
        s.remove_prefix(6); IS(s.front())
        s.remove_suffix(1); IS(s.back()) IS(s.rfind('l')) IS(s.find_first_of("lr"))
        int n = 0;
        for (char c : s) n += c; IS(n) IS(std::string_view("abc", 2).size())
    }
    {
        int three[3] = {1, 2, 3};
        auto a = std::to_array(three);
        auto b = a; IS(a.size())
        b[0] = 7;
        a.swap(b); IS(a[0]) IS(a.at(1))
        for (auto i = a.rbegin(); i != a.rend(); ++i) { IS(*i) }
        constexpr std::array<int, 0> e{}; IS(e.size()) IS(a > b) IS(a <= b) IS(*a.cbegin())
        IS(a.cend() - a.cbegin())
        std::swap(a, b); IS(a[0])
    }
    {
        IS(std::byteswap(0x01020304)) IS(std::byteswap((unsigned short)0x1234))
        IS(std::not_fn([](int x) { return x > 3; })(2)) IS(std::negate<>()(4))
        IS(std::logical_not<>()(0)) IS(std::in_range<unsigned char>(256))
        IS(std::in_range<int>(7u))
        int x = 3;
        auto r = std::ref(x);
        r.get() = 8; IS(x) IS(std::as_const(x)) IS(std::invoke(std::plus<>(), 1, 2))
    }
}
"""


def test_views_of_characters_arrays_and_bits(device):
    expected = [
        11, 101, 4, 6, 1, 1, 1, 1, 1, 1, 119, 108, 3, 2, 452, 2, 3, 7, 2, 3, 2, 7, 0, 1,
        0, 7, 3, 1, 67305985, 13330, 1, -4, 1, 0, 1, 8, 8, 3,
    ]  # fmt: skip
    assert ran(device, OTHERS, "others", len(expected)) == expected


NEWER = """
#include <array>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <ratio>
#include <span>
struct Place { int x, y; };
struct Grid {
    int v[12];
    __device__ int &operator[](int i, int j) { return v[i * 4 + j]; }
    __device__ int &operator[](Place p) { return v[p.x * 4 + p.y]; }
    template <class... I> __device__ int at(I... i) { return (*this)[i...]; }
};
struct Row { int v[4]; __device__ int operator[](int i) const { return v[i]; } };
template <int N> __device__ int digits(const int (&x)[N])
{
    int sum = 0;
    for (int i = 0; i < N; ++i) sum = sum * 10 + x[i];
    return sum;
}
template <class T, int N,
int M> __device__ int corner(T (&&x)[N][M]) { return x[N - 1][0] * 10 + M; }
__device__ int ends(std::span<const int> s) { return s.front() * 10 + s.back(); }
#define IS(...) *out++ = (int)(__VA_ARGS__);
__global__ void newer(int *out)
{
    {
        Grid g; Row r{{4, 5, 6, 7}}; int n = 0;
        for (int i = 0; i < 12; ++i) g.v[i] = i;
        g[1, 2] += 20; IS(g[1, 2]) IS(g[{2, 1}]) IS(g.at(1, 2)) IS(g[n++, n++]) IS(n)
        IS(r[(0, 3)])
        IS(digits({1, 2, 3})) IS(corner({{1, 2, 3}, {4, 5, 6}}))
        auto a = std::to_array<int>({n, 5, 6}); IS(a.size()) IS(a[0] + a[2])
    }
    {
        int b[6] = {1, 2, 3, 4, 5, 6};
        std::array<int, 3> a{7, 8, 9};
        std::span s(b); std::span t(a); std::span u(b, 4);
        IS(s.extent) IS(t.extent) IS(u.size()) IS(s.first(3).back()) IS(s.last<2>()[0])
        IS(s.subspan<2>().extent) IS(s.subspan<1, 3>().back()) IS(u.subspan(1, 2)[1])
        IS(ends(a)) IS(ends(b)) IS(*s.rbegin()) IS(s.rend() - s.rbegin())
        auto bytes = std::as_writable_bytes(s);
        bytes[4] = std::byte{9} << 1 | std::byte{1}; IS(bytes.size()) IS(b[1])
        IS(std::to_integer<int>(std::as_bytes(s)[4] & std::byte{0x1c}))
    }
    {
        std::bitset<100> b(5), c; std::bitset<10> d(0x2a5);
        b.set(70); b[99] = true; c = b << 1; c |= std::bitset<100>(64); c[6].flip();
        IS(b.count()) IS(c.count()) IS(c[71]) IS((c >> 40).to_ullong() == 1ull << 31)
        IS((b << 35).count())
        IS((~d).to_ulong()) IS((d ^ std::bitset<10>(7)).to_ulong()) IS(d.any()) IS(d.all())
        IS(d.flip(0).test(0))
        IS(d.reset(9).to_ulong()) IS(d == std::bitset<10>(0xa4)) IS(d.size())
    }
    {
        typedef std::ratio_add<std::ratio<1, 3>, std::ratio<1, 6>> half;
        IS(half::num * 10 + half::den)
        typedef std::ratio_divide<std::ratio<2, -4>, std::ratio<3>> r; IS(r::num * 10 + r::den)
        IS(std::ratio_less_v<std::micro, std::milli>)
        IS(std::ratio_multiply<std::milli, std::kilo>::den)
    }
    {
        using namespace std::chrono_literals;
        namespace ch = std::chrono;
        constexpr auto a = 5ms;
        ch::microseconds u = a; auto sum = u + 2s; IS(u.count()) IS(sum.count())
        IS(ch::duration_cast<ch::milliseconds>(sum).count()) IS((1h + 2min - 3s).count())
        IS((1.5s).count() * 4)
        IS(ch::floor<ch::seconds>(-1500ms).count()) IS(ch::ceil<ch::seconds>(1500ms).count())
        IS(ch::round<ch::seconds>(2500ms).count()) IS(a < u) IS(a == u)
        IS((10s % 7s).count()) IS(10s / 3s)
        ch::time_point<ch::system_clock, ch::seconds> t(10s); t += 1min;
        IS(t.time_since_epoch().count())
        IS((t - ch::time_point<ch::system_clock, ch::milliseconds>(500ms)).count())
        IS((a * 3).count())
    }
}
"""


def test_classes_of_newer_standards(device):
    expected = [  # by g++
        26, 9, 26, 1, 2, 7, 123, 43, 3, 8, 6, 3, 4, 3, 5, 4, 4, 3, 79, 16, 6, 6, 24, 19, 16, 4,
        3, 1, 1,
        2, 346, 674, 1, 0, 0, 164, 1, 10, 12, -4, 1, 1, 5000, 2005000, 2005, 3717, 6, -2, 2, 2,
        0, 1, 3,
        3, 70, 69500, 15,
    ]  # fmt: skip
    with doubles_if_any(device):
        assert ran(device, NEWER, "newer", len(expected)) == expected


INPLACE = """
#include <cuda/std/inplace_vector>
#include <cuda/std/mdspan>
#define IS(...) *out++ = (__VA_ARGS__);
__global__ void vectors(int *out)
{
    cuda::std::inplace_vector<int, 6> v{1, 2, 3};
    v.push_back(4); v.emplace_back(5); IS(v.size()) IS(v.back()) IS(v.capacity())
    v.insert(v.begin() + 1, 9); IS(v[1]) IS(v[2]) IS(v.try_push_back(7) == nullptr)
    v.erase(v.begin()); v.pop_back();
    int sum = 0;
    for (int x : v) sum = sum * 10 + x;
    IS(sum) IS(*v.rbegin())
    v.resize(2); IS(v.size()) IS(v == cuda::std::inplace_vector<int, 6>{9, 2})
    v.clear(); IS(v.empty())
    int a[12];
    for (int i = 0; i < 12; ++i) a[i] = i;
    cuda::std::mdspan<int, cuda::std::extents<int, 3, 4>> m(a);
    IS(m[1, 2]) IS(m[cuda::std::array<int, 2>{2, 1}])
}
"""


def test_vectors_in_place_and_indices_of_views(device):
    expected = [5, 5, 6, 9, 2, 1, 9234, 4, 2, 1, 1, 6, 9]
    assert ran(device, INPLACE, "vectors", len(expected)) == expected


VIEWS = """
#include <cuda/std/mdspan>
namespace cs = cuda::std;
template <class M> __device__ int total(M m)
{
    int sum = 0;
    for (int i = 0; i < (int)m.extent(0); ++i)
        for (int j = 0; j < (int)m.extent(1); ++j)
            sum += m(i, j) * (i + 1);
    return sum;
}
#define IS(...) *out++ = (__VA_ARGS__);
__global__ void views(int *out)
{
    int a[24];
    for (int i = 0; i < 24; ++i)
        a[i] = i;
    cs::mdspan<int, cs::extents<int, 4, 6>> m(a);
    IS(m(1, 2)) IS(m.rank()) IS(m.extent(1)) IS(m.size()) IS(m.stride(0)) IS(total(m))
    m(3, 5) = 100; IS(a[23])
    cs::mdspan<int, cs::dextents<int, 3>> d(a, 2, 3, 4);
    IS(d(1, 2, 3)) IS(d(1, 0, 2)) IS(d.stride(1))
    cs::mdspan<int, cs::extents<int, 4, cs::dynamic_extent>, cs::layout_left> l(a, 6);
    IS(l(1, 2)) IS(l.extent(1)) IS(l.stride(1)) IS(l.static_extent(0))
    cs::layout_stride::mapping<cs::dextents<int, 2>> map(
        cs::dextents<int, 2>(2, 3), cs::array<int, 2>{12, 2});
    cs::mdspan<int, cs::dextents<int, 2>, cs::layout_stride> s(a, map);
    IS(s(1, 2)) IS(s.mapping().required_span_size())
    cs::mdspan k(a, 3, 8); IS(k(2, 1)) IS(k.rank_dynamic())
    cs::mdspan<int, cs::dextents<int, 1>> v(a, 6); IS(v[3])
}
__global__ void turned(cs::mdspan<const float, cs::dextents<int, 2>> from,
                       cs::mdspan<float, cs::extents<int, 5, cs::dynamic_extent>> to)
{
    int i = threadIdx.x, j = threadIdx.y;
    if (i < from.extent(0) && j < from.extent(1))
        to(j, i) = from(i, j);
}
__global__ void left(cs::mdspan<float, cs::dextents<int, 2>, cs::layout_left> m) { m(0, 0) = 1; }
"""


def test_views_of_several_dimensions(device):
    expected = [  # by hand: 0 to 23 in rows of 6, in blocks of 3 by 4, and in columns of 4
        8, 2, 6, 24, 6, 15 + 2 * 51 + 3 * 87 + 4 * 123, 100,
        100, 14, 4, 9, 6, 4, 4, 16, 17, 17, 2, 3,
    ]  # fmt: skip
    assert ran(device, VIEWS, "views", len(expected)) == expected


def test_arrays_as_arguments_that_are_views(device):
    module = td.cuda_module(VIEWS)
    x = td.arange(15, dtype=td.float32, device=device).reshape(3, 5)
    out = td.zeros((5, 3), device=device)
    module.turned[1, (4, 8)](x, out)
    assert out.tolist() == x.numpy().T.tolist()
    with pytest.raises(td.errors.DtypeError, match=r"it takes lengths of \(5, any\)"):
        module.turned[1, (4, 8)](x, td.zeros((4, 3), device=device))
    with pytest.raises(td.errors.DtypeError, match="in the order of layout_right"):
        module.left[1, 1](out)


TARGETS = """
#include <nv/target>
__host__ __device__ int known(int k)
{
    NV_IF_TARGET(NV_IS_HOST, (return of_the_host(k);), (return k + 1;))
}
__device__ int newest()
{
    NV_DISPATCH_TARGET(NV_PROVIDES_SM_100, (return 100;),
                       NV_PROVIDES_SM_80, (int a = 70, b = 10; return a + b;),
                       NV_ANY_TARGET, (return 0;))
}
__global__ void targets(int *out)
{
    out[0] = known(4);
    out[1] = newest();
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (out[2] = 7;), (out[2] = 8;))
    NV_IF_TARGET(NV_IS_HOST, (out[2] = 9;))
    NV_DISPATCH_TARGET(NV_IS_HOST, (out[2] = 9;))
}
"""


def test_code_for_one_target(device):
    assert ran(device, TARGETS, "targets", 3) == [5, 80, 7]
