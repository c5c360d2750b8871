"""Algorithms and numeric functions of the C++ standard library in kernels, and tuples. Expected
values are those of g++."""

from __future__ import annotations

import treadle as td


def ran(device, source, kernel, size):
    out = td.full((size,), -77, dtype=td.int32, device=device)
    td.cuda_module(source).kernel(kernel)[1, 1](out)
    return out.numpy().tolist()


TUPLES = """
#include <tuple>
#define IS(...) *out++ = (__VA_ARGS__);
template <class... T> __device__ int size(const std::tuple<T...> &) { return sizeof...(T); }
struct P { int a; float b; __device__ P(int a, float b) : a(a), b(b) {} };
__device__ int add(int a, int b) { return a + b; }
__global__ void tuples(int *out)
{
    {
        auto t = std::make_tuple(1, 2.5f, (short)3); IS(std::get<0>(t)) IS(std::get<1>(t) * 2)
        IS(std::get<2>(t)) IS(std::get<short>(t))
        std::get<0>(t) = 9;
        std::tuple<int, float, short> u(t); IS(std::get<0>(u)) IS(u == t) IS(u < t)
        IS(std::make_tuple(1, 2) < std::make_tuple(1, 3))
        IS(std::tuple_size_v<std::tuple<int, float>>) IS(std::tuple_size_v<std::tuple<>>)
        IS(sizeof(std::tuple<char, short, int>)) IS(sizeof(std::tuple<char>))
        std::tuple<long long, float, int> w(t); IS(std::get<1>(w)*4)
        std::tuple q(1, 'b', 3.f); IS(std::get<1>(q))
        auto [a, b, c] = q; IS(a+b)
        auto &[a2, b2, c2] = q;
        a2 = 70; IS(std::get<0>(q)) IS(q != q) IS(q >= q)
    }
    {
        IS(size(std::make_tuple(1, 2.f)))
        IS(size(std::tuple_cat(std::make_tuple(1), std::make_tuple(2.f,3), std::make_tuple('c'))))
        auto t = std::tuple_cat(std::make_tuple(1), std::make_tuple(2.f,3), std::make_tuple('c'));
        IS(std::get<2>(t)) IS(std::get<3>(t)) IS(std::tuple_size_v<decltype(std::tuple_cat())>)
    }
    {
        int a=0;
        float b=0;
        std::tie(a, b) = std::make_tuple(3, 4.5f); IS(a) IS(b*2)
        std::tie(a, std::ignore) = std::make_pair(8, 9); IS(a)
        std::tie(std::ignore, b) = std::tuple<int, float>(1, 2.f); IS(b)
        int x=1, y=2;
        std::tie(x, y) = std::make_tuple(y, x); IS(x) IS(y) IS(std::tie(x, y) < std::tie(y, x))
    }
    {
        int i = 4;
        auto f = std::forward_as_tuple(i, 5);
        std::get<0>(f) = 6; IS(i)
        auto p = std::make_from_tuple<P>(std::make_tuple(3, 2.5f)); IS(p.a) IS(p.b*2)
        IS(std::apply(add, std::make_tuple(1, 2)))
        IS(std::apply([](int a, int b, int c) { return a*b*c; }, std::make_tuple(2, 3, 4)))
        auto r = std::make_tuple(std::ref(i), 2);
        std::get<0>(r) = 77; IS(i)
        std::ignore = 5;
    }
    {
        std::tuple<int, int> a(1, 2), b(3, 4);
        a.swap(b); IS(std::get<0>(a))
        std::swap(a, b); IS(std::get<1>(a))
        a = std::make_pair(8, 9); IS(std::get<0>(a))
        std::tuple<int, float> c = std::make_pair(1, 2.f); IS(std::get<1>(c))
        std::tuple<> e; IS(sizeof(e))
        auto m = std::make_tuple(); IS(std::tuple_size_v<decltype(m)>)
    }
    {
        auto t = std::make_tuple(std::make_tuple(1, 2), std::make_pair(3, 4));
        IS(std::get<1>(std::get<0>(t))) IS(std::get<1>(t).first)
        int v[2] = {5, 6};
        auto p = std::make_tuple(v, 1);
        std::get<0>(p)[1] = 9; IS(v[1])
    }
}
"""


def test_tuples(device):
    expected = [
        1, 5, 3, 3, 9, 1, 0, 1, 2, 0, 8, 1, 10, 98, 99, 70, 0, 1, 2, 4, 3, 99, 0, 3, 9, 8,
        2, 2, 1, 0, 6, 3, 5, 3, 24, 77, 3, 2, 8, 2, 1, 0, 2, 3, 9,
    ]  # fmt: skip
    assert ran(device, TUPLES, "tuples", len(expected)) == expected


ALGORITHMS = """
#include <algorithm>
#define IS(...) *out++ = (__VA_ARGS__);
__global__ void algorithms(int *out)
{
    {
        auto p = std::minmax(3, 2); IS(p.first) IS(p.second) IS(std::min({3, 1, 2}))
        IS(std::max({3, 1, 2})) IS(std::min(2, 5))
        IS(std::min(7, 4, [](int a, int b) { return a > b; }))
        float f = std::min(1.5f, 2.f); IS(f*2) IS(std::max<int>(3, 2.5f))
        IS(std::clamp(7, 1, 5, [](int a, int b) { return a < b; }))
        int a[5] = {3, 1, 4, 1, 5};
        auto q = std::minmax_element(a, a+5); IS(q.first - a) IS(q.second - a)
        IS(std::minmax({4, 2, 8}).second)
    }
    {
        int a[6]={1, 2, 3, 4, 5, 6}, b[6];
        std::rotate(a, a+2, a+6); IS(a[0]) IS(a[5])
        std::replace(a, a+6, 4, 40); IS(a[1]) IS(std::remove(a, a+6, 40)-a) IS(a[1])
        auto m = std::stable_partition(a, a+5, [](int x) { return x%2==0; }); IS(m-a) IS(a[0])
        IS(a[1]) IS(a[2])
        std::copy_backward(a, a+4, a+5); IS(a[4])
        std::reverse_copy(a, a+6, b); IS(b[0])
        std::swap_ranges(a, a+6, b); IS(b[5])
        int n=0;
        std::generate(a, a+6, [&] { return n++; }); IS(a[5])
        auto f = std::for_each(a, a+6, [](int &x) { x*=2; }); IS(a[5])
        std::generate_n(b, 6, [] { return 3; });
        std::move(b, b+2, a); IS(a[1]) IS(std::unique(b, b+6)-b)
        std::iter_swap(a, a+5); IS(a[0])
        auto pc = std::partition(a, a+6, [](int x) { return x>5; }); IS(pc - a)
    }
}
"""


def test_algorithms_that_change_a_range(device):
    expected = [
        2, 3, 1, 3, 2, 7, 3, 3, 5, 1, 4, 8, 3, 2, 40, 5, 5, 2, 6, 2, 3, 5, 2, 2, 5, 10, 3,
        1, 10, 3,
    ]  # fmt: skip
    assert ran(device, ALGORITHMS, "algorithms", len(expected)) == expected


QUESTIONS = """
#include <algorithm>
#include <iterator>
#define IS(...) *out++ = (__VA_ARGS__);
__global__ void questions(int *out)
{
    {
        int a[6]={1, 2, 2, 3, 4, 4}, b[3]={2, 3, 4}; IS(std::adjacent_find(a, a+6)-a)
        IS(std::search(a, a+6, b, b+2)-a) IS(std::find_end(a, a+6, b+2, b+3)-a)
        IS(std::search_n(a, a+6, 2, 4)-a) IS(std::equal(a+2, a+4, b))
        IS(std::equal(a, a+3, b, b+3))
        IS(std::equal(a, a+3, b, [](int x, int y) { return x<=y; }))
        IS(std::mismatch(a, a+3, b).first-a) IS(std::lexicographical_compare(a, a+3, b, b+3))
        IS(std::find_first_of(a, a+6, b+1, b+3)-a)
        IS(std::find_if_not(a, a+6, [](int x) { return x<3; })-a)
        int c[3]={4, 2, 3}; IS(std::is_permutation(b, b+3, c)) IS(std::includes(a, a+6, b, b+3))
        int o[9]; IS(std::merge(a, a+6, b, b+3, o)-o) IS(o[4])
        IS(std::set_union(a, a+6, b, b+3, o)-o) IS(std::set_intersection(a, a+6, b, b+3, o)-o)
        IS(std::set_difference(a, a+6, b, b+3, o)-o) IS(o[1])
        IS(std::set_symmetric_difference(a, a+6, b, b+3, o)-o)
        IS(std::equal_range(a, a+6, 2).second - a)
        IS(std::upper_bound(a, a+6, 2, [](int x, int y) { return x<y; }) - a)
    }
    {
        int a[3]={1, 2, 3}; IS(std::distance(a, a+3))
        int *q=a;
        std::advance(q, 2); IS(*q) IS(*std::next(a)) IS(*std::prev(q)) IS(std::size(a))
        IS(*std::begin(a)) IS(std::end(a)-a)
        for (auto i = std::rbegin(a); i != std::rend(a); ++i) { IS(*i) }
        std::array<int, 2> b{7, 8}; IS(std::size(b)) IS(*std::begin(b))
        IS(std::end(b)-std::begin(b)) IS(std::data(b)[1]) IS(std::empty(b))
        IS(sizeof(std::iterator_traits<short*>::value_type))
    }
}
"""


def test_questions_about_ranges(device):
    expected = [
        1, 2, 5, 4, 1, 0, 1, 0, 1, 3, 3, 1, 1, 9, 3, 6, 3, 3, 2, 3, 3, 3, 3, 3, 2, 2, 3,
        1, 3, 3, 2, 1, 2, 7, 2, 8, 0, 2,
    ]  # fmt: skip
    assert ran(device, QUESTIONS, "questions", len(expected)) == expected


SORTING = """
#include <algorithm>
#define IS(...) *out++ = (__VA_ARGS__);
__global__ void sorting(int *out)
{
    int a[7]={5, 2, 7, 1, 6, 3, 4};
    std::nth_element(a, a+3, a+7); IS(a[3])
    int b[7]={5, 2, 7, 1, 6, 3, 4};
    std::partial_sort(b, b+2, b+7); IS(b[0]) IS(b[1])
    std::make_heap(b, b+7); IS(b[0]) IS(std::is_heap(b, b+7))
    std::pop_heap(b, b+7); IS(b[6])
    b[6]=9;
    std::push_heap(b, b+7); IS(b[0])
    std::sort_heap(b, b+7); IS(std::is_sorted(b, b+7))
    int p[3]={1, 2, 3};
    int k=1;
    while(std::next_permutation(p, p+3)) ++k; IS(k) IS(std::prev_permutation(p, p+3)) IS(p[0])
    std::sort(b, b+7, [](int x, int y) { return x>y; }); IS(b[0])
    std::inplace_merge(p, p+2, p+3);
    IS(std::is_sorted(b, b+7, [](int x, int y) { return x>y; }))
}
"""


def test_sorting_heaps_and_permutations(device):
    expected = [
        4, 1, 2, 7, 1, 7, 9, 1, 6, 0, 3, 9, 1,
    ]  # fmt: skip
    assert ran(device, SORTING, "sorting", len(expected)) == expected


NUMBERS = """
#include <numeric>
#define IS(...) *out++ = (__VA_ARGS__);
__global__ void numbers(int *out)
{
    int a[5]={1, 2, 3, 4, 5}, b[5]; IS(std::reduce(a, a+3)) IS(std::reduce(a, a+3, 10))
    IS(std::transform_reduce(a, a+3, a, 0))
    std::exclusive_scan(a, a+3, b, 10); IS(b[2])
    std::inclusive_scan(a, a+5, b); IS(b[4])
    std::inclusive_scan(a, a+5, b, [](int x, int y) { return x*y; }); IS(b[4])
    std::adjacent_difference(b, b+5, b); IS(b[4]) IS(std::midpoint(2, 7))
    IS(std::midpoint(7, 2)) IS(std::midpoint(2147483647, 2147483645))
    IS(std::midpoint(-2147483647, 2147483647)) IS((int)std::midpoint(2.f, 8.f))
    IS(std::midpoint((unsigned char)250, (unsigned char)100)) IS(std::gcd(12, 18u))
    IS(std::lcm(4, 6L)) IS(std::lerp(2.f, 8.f, 0.25f)*2) IS(*std::midpoint(a, a+4))
    IS(std::accumulate(a, a+5, 1, [](int x, int y) { return x*y; }))
    IS(std::transform_reduce(a, a+5, 0, [](int x, int y) { return x+y; }, [](int x) { return
        x*x; }))
    std::iota(a, a+5, 7); IS(a[4])
    IS(std::inner_product(a, a+2, a, 0, [](int x, int y) { return x+y; }, [](int x, int y) {
        return x*y; }))
}
"""


def test_numeric_functions(device):
    expected = [
        6, 16, 14, 13, 15, 120, 96, 4, 5, 2147483646, 0, 5, 175, 6, 12, 7, 3, 120, 55, 11,
        113,
    ]  # fmt: skip
    assert ran(device, NUMBERS, "numbers", len(expected)) == expected
