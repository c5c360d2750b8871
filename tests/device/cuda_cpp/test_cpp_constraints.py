"""Concepts, constraints and comparisons of C++20 in kernels, beside g++."""

from __future__ import annotations

import pytest

from tests.support.cpp_host import check, in_one_kernel

HEADERS = """
#include <compare>
#include <concepts>
#include <type_traits>
"""
# A name, what stands before, and what computes: it writes to `out[k++]`, and `n` is 3.
FEATURES = {
    "concept basic": (
        """
template <class T> concept Small = sizeof(T) <= 4;
template <Small T> __device__ int f(T) { return 1; }
template <class T> __device__ int f(T) { return 2; }
        """,
        """
out[k++] = f(n); out[k++] = f(1.0); out[k++] = f('a'); out[k++] = Small<int>;
out[k++] = Small<double>;
        """,
    ),
    "requires clause": (
        """
template <class T> requires std::integral<T> __device__ int f(T) { return 1; }
template <class T> requires std::floating_point<T> __device__ int f(T) { return 2; }
        """,
        """
out[k++] = f(n); out[k++] = f(1.0f); out[k++] = f('a'); out[k++] = f(true);
        """,
    ),
    "trailing requires": (
        """
template <class T> __device__ int f(T x) requires (sizeof(T) == 4) { return x + 1; }
template <class T> __device__ int f(T x) requires (sizeof(T) != 4) { return x + 2; }
        """,
        """
out[k++] = f(n); out[k++] = f((short)n);
        """,
    ),
    "abbreviated constrained auto": (
        """
__device__ int f(std::integral auto x) { return x + 1; }
__device__ int f(std::floating_point auto x) { return x * 2; }
__device__ int g(const std::integral auto &x, auto y) { return x * y; }
        """,
        """
out[k++] = f(n); out[k++] = f(2.5f); out[k++] = g(n, 4);
        """,
    ),
    "same_as convertible": (
        """
template <class T, class U> concept Both = std::same_as<T, U> || std::convertible_to<T, U>;
struct A {}; struct B : A {};
        """,
        """
out[k++] = std::same_as<int, int>; out[k++] = std::same_as<int, const int>;
out[k++] = std::convertible_to<int, float>; out[k++] = std::convertible_to<A, int>;
out[k++] = std::derived_from<B, A>; out[k++] = std::derived_from<A, B>; out[k++] = Both<A, B>;
out[k++] = Both<B, A>; out[k++] = std::signed_integral<int>;
out[k++] = std::unsigned_integral<int>; out[k++] = std::unsigned_integral<unsigned char>;
        """,
    ),
    "partial ordering by constraints": (
        """
template <class T> concept A = sizeof(T) >= 2;
template <class T> concept B = A<T> && sizeof(T) >= 4;
template <A T> __device__ int f(T) { return 1; }
template <B T> __device__ int f(T) { return 2; }
template <class T> __device__ int f(T) { return 0; }
        """,
        """
out[k++] = f(n); out[k++] = f((short)1); out[k++] = f('c'); out[k++] = f(1.0);
        """,
    ),
    "requires expression simple": (
        """
template <class T> concept HasSize = requires(T t) { t.size(); };
struct A { __device__ int size() const { return 4; } }; struct B {};
template <class T> __device__ int f(const T &t) { if constexpr (HasSize<T>) return t.size();
else return -1; }
        """,
        """
out[k++] = f(A{}); out[k++] = f(B{}); out[k++] = HasSize<int>;
        """,
    ),
    "requires expression compound": (
        """
template <class T> concept Addable = requires(T a, T b) { { a + b } -> std::same_as<T>; };
template <class T> concept Container = requires(T t) { typename T::value_type; { t.get(0) }
-> std::convertible_to<typename T::value_type>; requires sizeof(T) > 1; };
struct A { typedef int value_type; int x; __device__ short get(int) { return 4; } }; struct B {
char c; };
        """,
        """
out[k++] = Addable<int>; out[k++] = Addable<short>; out[k++] = Container<A>;
out[k++] = Container<B>; out[k++] = Addable<A>;
        """,
    ),
    "requires in if constexpr": (
        """
template <class T> __device__ int f(T t) { if constexpr (requires { t.x; }) return t.x;
else if constexpr (requires { *t; }) return *t; else return t; }
struct A { int x; };
        """,
        """
A a{n}; out[k++] = f(a); out[k++] = f(&a.x); out[k++] = f(9);
        """,
    ),
    "requires requires": (
        """
template <class T> requires requires(T t) { t++; } __device__ int f(T) { return 1; }
template <class T> __device__ int f(T) { return 2; }
struct S {};
        """,
        """
out[k++] = f(n); out[k++] = f(S{}); out[k++] = f(1.f);
        """,
    ),
    "constrained class specialization": (
        """
template <class T> struct V { enum { v = 0 }; };
template <std::integral T> struct V<T> { enum { v = 1 }; };
template <class T> requires std::floating_point<T> struct V<T> { enum { v = 2 }; };
        """,
        """
out[k++] = V<int>::v; out[k++] = V<float>::v; out[k++] = V<int *>::v;
        """,
    ),
    "constrained method": (
        """
template <class T> struct V { T x; __device__ int f() requires std::integral<T> { return x + 1;
} __device__ int f() requires std::floating_point<T> { return x * 2; } };
        """,
        """
V<int> v{n}; V<float> w{1.5f}; out[k++] = v.f(); out[k++] = w.f();
        """,
    ),
    "concept of two parameters": (
        """
template <class T, class U> concept Same = std::is_same_v<T, U>;
template <class T, Same<T> U> __device__ int f(T, U) { return 1; }
template <class T, class U> __device__ int f(T, U) { return 2; }
        """,
        """
out[k++] = f(1, 2); out[k++] = f(1, 2.f);
        """,
    ),
    "concept with pack": (
        """
template <std::integral... T> __device__ int sum(T... x) { return (x + ... + 0); }
template <class T, class... U> concept AnyOf = (std::same_as<T, U> || ...);
        """,
        """
out[k++] = sum(1, n, 'a'); out[k++] = AnyOf<int, float, int>; out[k++] = AnyOf<int, float>;
        """,
    ),
    "constrained lambda": (
        """

        """,
        """
auto f = [](std::integral auto x) { return x + 1; };
auto g = []<class T>(T x) requires (sizeof(T) == 4) { return x + 2; }; out[k++] = f(n);
out[k++] = g(n);
        """,
    ),
    "invocable": (
        """
template <class F> requires std::invocable<F, int> __device__ int f(F g) { return g(3); }
        """,
        """
out[k++] = f([](int x) { return x * 5; }); auto h = [](int x) { return x * 5; };
out[k++] = std::is_invocable_v<decltype(h), int>;
        """,
    ),
    "concept not": (
        """
template <class T> concept N = !std::integral<T>;
template <N T> __device__ int f(T) { return 1; }
template <class T> requires (!N<T>) __device__ int f(T) { return 2; }
        """,
        """
out[k++] = f(1); out[k++] = f(1.f);
        """,
    ),
    "constrained auto variable": (
        """

        """,
        """
std::integral auto x = n + 1; const std::floating_point auto y = 2.5f; out[k++] = x;
out[k++] = y * 2;
        """,
    ),
    "constrained return": (
        """
__device__ std::integral auto f(int x) { return x * 3; }
        """,
        """
out[k++] = f(n);
        """,
    ),
    "default comparable concepts": (
        """
struct A { int x; __device__ bool operator==(const A &o) const { return x == o.x; } };
struct B {};
        """,
        """
out[k++] = std::equality_comparable<A>; out[k++] = std::equality_comparable<B>;
out[k++] = std::equality_comparable<int>; out[k++] = std::totally_ordered<float>;
out[k++] = std::default_initializable<A>; out[k++] = std::copyable<A>;
        """,
    ),
    "spaceship default": (
        """
struct A { int x, y; __device__ auto operator<=>(const A &) const = default; };
        """,
        """
A a{1, n}, b{1, 4}; out[k++] = a < b; out[k++] = a > b; out[k++] = a == b; out[k++] = a != b;
out[k++] = a <= a; out[k++] = b >= a;
        """,
    ),
    "spaceship numbers": (
        """

        """,
        """
out[k++] = (n <=> 3) == 0; out[k++] = (n <=> 4) < 0; out[k++] = (n <=> 2) > 0;
auto c = 1.5f <=> 2.5f; out[k++] = c < 0; out[k++] = c == std::partial_ordering::less;
out[k++] = std::is_lt(n <=> 5);
        """,
    ),
    "default equality": (
        """
struct A { int x; float y; bool operator==(const A &) const = default; }; struct B { A a[2];
int z; friend bool operator==(const B &, const B &) = default; };
        """,
        """
A a{1, 2}, b{1, 2}, c{2, 2}; out[k++] = a == b; out[k++] = a == c; out[k++] = a != c;
B d{{a, b}, 3}, e{{a, c}, 3}; out[k++] = d == e; out[k++] = d == d; out[k++] = d != e;
        """,
    ),
    "rewritten operators": (
        """
struct A { int x; __device__ bool operator==(int o) const { return x == o; } };
        """,
        """
A a{n}; out[k++] = a == 3; out[k++] = 3 == a; out[k++] = a != 4; out[k++] = 4 != a;
        """,
    ),
    "user spaceship": (
        """
struct A { int x; __device__ std::strong_ordering operator<=>(const A &o) const {
return o.x <=> x; } __device__ bool operator==(const A &o) const { return x == o.x; } };
        """,
        """
A a{1}, b{n}; out[k++] = a < b; out[k++] = a > b; out[k++] = a >= b; out[k++] = (a <=> b) > 0;
out[k++] = a != b;
        """,
    ),
}  # fmt: skip

_AT_ONCE = 8
NAMES = sorted(FEATURES)
GROUPS = [NAMES[at : at + _AT_ONCE] for at in range(0, len(NAMES), _AT_ONCE)]


@pytest.mark.parametrize("group", GROUPS, ids=lambda names: names[0].replace(" ", "_"))
def test_beside_the_host(device, group):
    source = HEADERS + in_one_kernel([FEATURES[name] for name in group])
    check(source, device, 3, 7, 2, standard="gnu++20")
