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
    "constraint corners": (
        """
template <class T> concept Num = std::integral<T> || std::floating_point<T>;
template <class T> concept Big = Num<T> && (sizeof(T) > 4);
template <class T> struct Box { T v; }; template <class T> struct is_box : std::false_type {};
template <class T> struct is_box<Box<T>> : std::true_type {};
template <class T> concept Boxed = is_box<T>::value;
__device__ int f(auto) { return 0; } __device__ int f(Num auto) { return 1; }
__device__ int f(Big auto) { return 2; } __device__ int f(Boxed auto b) {
return 3 + f(b.v) * 10; }
template <class T> requires Num<typename T::type> __device__ int g(T) { return 1; }
template <class T> __device__ int g(T) { return 2; } struct H { typedef int type; }; struct I {
typedef int *type; };
template <class T> struct S { __device__ int h() const { return 0; }
__device__ int h() const requires Num<T> { return 1; }
__device__ int h() const requires Big<T> { return 2; }
template <class U> requires std::same_as<T, U> __device__ int k(U) { return 5; }
template <class U> __device__ int k(U) { return 6; } };
template <class T, class U = int> requires std::convertible_to<T, U> struct D { enum { v = 1 };
};
template <class T> constexpr int vt = 0; template <Num T> constexpr int vt<T> = 1;
template <Big T> constexpr int vt<T> = 2;
        """,
        """
out[k++] = f(n); out[k++] = f(1.0); out[k++] = f(&k); out[k++] = f(Box<Box<long>>{});
out[k++] = g(H{}); out[k++] = g(I{}); out[k++] = g(4); out[k++] = S<int *>{}.h();
out[k++] = S<int>{}.h(); out[k++] = S<double>{}.h(); out[k++] = S<int>{}.k(1);
out[k++] = S<int>{}.k(1.f); out[k++] = D<float>::v;
out[k++] = vt<int *> + vt<char> * 10 + vt<long> * 100; out[k++] = requires(int a) { a + 1; };
out[k++] = requires { typename H::type; requires sizeof(H) == 1; };
        """,
    ),
    "requires categories": (
        """
struct A { int v; __device__ int &r() { return v; } __device__ const int &c() const { return v;
} __device__ int w() const { return v; } __device__ void u() {} static constexpr int z = 4; };
template <class T> concept C1 = requires(T a, const T b) { { a.r() } -> std::same_as<int &>; {
a.c() } -> std::same_as<const int &>; { b.w() } -> std::same_as<int>; { a.u() }
-> std::same_as<void>; { T::z } -> std::convertible_to<int>; { a.v } -> std::same_as<int &>; };
template <class T> concept C2 = requires(const T b) { b.r(); };
template <class T> concept C3 = requires(T a) { { a.w() } -> std::same_as<int &>; };
template <class T> concept C4 = requires(T a) { a->x; };
template <class T> concept C5 = requires(T a) { a[0]; *a; ++a; a == a; };
template <class T> concept C6 = requires(T a) { a(1, 2); };
template <class T> concept C7 = requires(T a, T b) { a = b; a += b; static_cast<float>(a); };
        """,
        """
out[k++] = C1<A>; out[k++] = C2<A>; out[k++] = C3<A>; out[k++] = C4<A>; out[k++] = C4<A *>;
out[k++] = C5<int *>; out[k++] = C5<int>; out[k++] = C5<A>; auto l = [](int a, int b) {
return a; }; out[k++] = C6<decltype(l)>; out[k++] = C6<A>; out[k++] = C7<int>; out[k++] = C7<A>;
out[k++] = C7<int *>;
        """,
    ),
    "members of numbers": (
        """
template <class T> concept Siz = requires { typename T::value_type; };
template <class T> concept In = requires { typename T::type::type; };
template <class T> concept St = requires { T::s; };
template <class T> requires Siz<T> || std::integral<T> __device__ int g(T) { return 4; }
template <class T> __device__ int g(T) { return 1; }
struct W { typedef int type; static const int s = 3; typedef int value_type; };
        """,
        """
out[k++] = g(7); out[k++] = Siz<int>; out[k++] = !Siz<float>; out[k++] = St<int>;
out[k++] = In<W>; out[k++] = g(2.f); out[k++] = g(W{}); out[k++] = Siz<int *>; out[k++] = St<W>;
        """,
    ),
    "comparison corners": (
        """
struct V { int a; double d; auto operator<=>(const V &) const = default; }; struct W { V v[2];
unsigned u; bool operator==(const W &) const = default;
auto operator<=>(const W &) const = default; }; struct B { int b;
auto operator<=>(const B &) const = default; }; struct D : B { int d;
auto operator<=>(const D &) const = default; };
struct N { int v; __device__ friend bool operator==(const N &, const N &) = default;
__device__ friend std::strong_ordering operator<=>(const N &a, const N &b) { return b.v <=> a.v;
} };
struct M { int v; __device__ int operator<=>(int o) const { return v - o; }
__device__ bool operator==(int o) const { return v == o; } };
template <class T> struct P { T x, y; __device__ bool operator==(const P &) const = default; };
enum class E { a, b };
        """,
        """
V p{1, 2.5}, q{1, 3.5}; out[k++] = p < q; out[k++] = (p <=> q) < 0; out[k++] = p == q;
W w{{p, q}, 3u}, x{{p, q}, 4u}; out[k++] = w < x; out[k++] = w == x;
out[k++] = w != x; D d{{1}, 5}, e{{2}, 4}; out[k++] = d < e; out[k++] = d > e;
out[k++] = d == d; N g{1}, h{n}; out[k++] = g > h; out[k++] = g == h; M m{n}; out[k++] = m < 4;
out[k++] = 4 > m; out[k++] = 2 < m; out[k++] = m != 3; P<float> r{1, 2}, s{1, 2};
out[k++] = r == s; s.y = 4; out[k++] = r != s; out[k++] = (E::a <=> E::b) < 0;
out[k++] = E::a < E::b; int *ip = &k; out[k++] = (ip <=> ip) == 0; out[k++] = (-1 <=> 1) < 0;
out[k++] = (n <=> 2) == std::strong_ordering::greater; std::partial_ordering po = n <=> 3;
out[k++] = po == 0;
        """,
    ),
    "requirements of types that are no classes": (
        """
template <class T> concept Siz = requires { typename T::value_type; };
template <class T> requires Siz<T> || std::integral<T> __device__ int g(T) { return 4; }
template <class T> __device__ int g(T) { return 1; }
template <class T> concept St = requires { T::s; };
template <class T> concept Deep = requires { typename T::type::type; };
template <class T> concept Cont = requires(const T &t) { typename T::value_type; t.size(); };
template <Cont C> __device__ auto sum(const C &c) { return c.size(); }
template <class T> requires (!Cont<T>) __device__ T sum(T x) { return x; }
struct W { using type = int; }; struct S { static constexpr int s = 3; using value_type = int;
__device__ int size() const { return 9; } };
        """,
        """
out[k++] = g(7); out[k++] = g(7.f); out[k++] = Siz<int>; out[k++] = !Siz<float>;
out[k++] = Siz<S>; out[k++] = St<int>; out[k++] = St<S>; out[k++] = Deep<W>;
out[k++] = Deep<int>; out[k++] = sum(4); out[k++] = sum(S{});
if constexpr (Siz<int>) out[k++] = 1; else out[k++] = 2;
        """,
    ),
    "an ellipsis is the worst match": (
        """
template <std::floating_point T> __device__ int ff(T) { return 1; }  __device__ int ff(...) {
return 0; }
template <class T> __device__ int f1(T) {return 1;} __device__ int f1(...) {return 0;}
template <class T> __device__ int f2(T*) {return 1;} __device__ int f2(...) {return 0;}
struct Mm { __device__ int m() const { return 2; } };
template <class T> __device__ auto f5(T t) -> decltype(t.m(), 0) { return 1; } __device__ int
f5(...) { return 2; }
struct Cv { int v; __device__ operator int() const { return v; } };
__device__ int f6(int) { return 1; } template <class... A> __device__ int f6(A...) { return 3; }
__device__ int f6(...) { return 2; }
__device__ int f7(int) { return 1; } __device__ int f7(...) { return 2; }
__device__ int f8(int, ...) { return 1; } template <class T> __device__ int f8(T, int) { return 2;
}
        """,
        """
out[k++] = ff(1.f); out[k++] = ff(3); out[k++] = f1(3); int x = 2; out[k++] = f2(&x);
out[k++] = f2(3); out[k++] = f5(Mm{}); out[k++] = f5(3); out[k++] = f6(3); out[k++] = f6(2.5f);
out[k++] = f6(Mm{}); Cv c{1}; out[k++] = f7(c); out[k++] = f7(Mm{}); out[k++] = f8(1, 2);
out[k++] = f8(1, 2.f); out[k++] = f8('a', 2);
        """,
    ),
    "text for pointers": (
        """
struct B2 {}; __device__ int b(B2*) { return 1; } __device__ int b(const char*) { return 2; }
__device__ int c(void*) { return 1; } __device__ int c(const char*) { return 2; }
__device__ int d(bool) { return 1; } __device__ int d(const char*) { return 2; } __device__ int
d(const B2&) { return 3; } __device__ int d(std::nullptr_t) { return 4; } __device__ int d(const
void*) { return 5; }
        """,
        """
out[k++] = b("x"); out[k++] = c("x"); out[k++] = d("x");
        """,
    ),
    "enable_if with nullptr": (
        """
template <class T, std::enable_if_t<std::is_class_v<T>>* = nullptr> __device__ int f9(T) { return
1; }
template <class T, std::enable_if_t<!std::is_class_v<T>>* = nullptr> __device__ int f9(T) { return
2; }
template <class T, typename std::enable_if<std::is_class<T>::value, int>::type* = nullptr>
__device__ int f8(T) { return 1; }
template <class T, typename std::enable_if<!std::is_class<T>::value, int>::type* = nullptr>
__device__ int f8(T) { return 2; }
struct S {};
        """,
        """
out[k++] = f9(3); out[k++] = f9(S{}); out[k++] = f8(3); out[k++] = f8(S{});
        """,
    ),
    "friend class templates": (
        """
template <class T> class C { template <class U> friend class C; T v; public: __device__ C(T x) :
v(x) {} template <class U> __device__ C(const C<U>& o) : v(o.v) {}
 friend __device__ C operator+(const C& a, const C& b) { return C(a.v + b.v); } __device__ int
get() const { return v; } __device__ C twice(int a) const { return C(a * 2); } };
        """,
        """
C<int> a(3), b(n); out[k++] = (a + b).get(); C<float> z = a; out[k++] = z.get();
out[k++] = a.twice(4).get();
        """,
    ),
    "friend classes": (
        """
class A { int v; friend class B; friend struct D; public: __device__ A(int x) : v(x) {} };
class B { public: __device__ int f(A& a) { return a.v; } };
struct D { __device__ int f(A& a); struct I { __device__ int g(A& a) { return a.v + 2; } }; };
__device__ int D::f(A& a) { return a.v + 1; }
        """,
        """
A a(n); out[k++] = B().f(a); out[k++] = D().f(a); out[k++] = D::I().g(a);
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


NAN = """
struct V { int a; double d; auto operator<=>(const V &) const = default; };
__global__ void kernel(const int *in, int *out)
{
    V nan{1, 0.0 / (in[0] - 3.0)}, p{1, 2.5};
    out[0] = nan < p; out[1] = nan >= p; out[2] = nan == nan; out[3] = nan != nan;
    out[4] = (nan <=> p) == std::partial_ordering::unordered;
}
"""


def test_unordered_objects():
    """On the CPU: WGSL does not say what comparisons with NaN give."""
    check("#include <compare>\n" + NAN, "cpu", 3, standard="gnu++20")
