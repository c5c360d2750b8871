"""Class templates, their specializations, members and bases in kernels, beside g++."""

from __future__ import annotations

import pytest

from tests.support.cpp_host import check, in_one_kernel

# A name, what stands before, and what computes: it writes to `out[k++]`, and `n` is 3.
FEATURES = {
    "methods of instances": (
        """
template <class T, int N> struct V {
    T v[N];
    __device__ V(T x);
    __device__ T sum() const;
    template <class U> __device__ U as() const;
    struct Inner { T w; };
};
template <class T, int N> __device__ V<T, N>::V(T x) { for (int i = 0; i < N; i++) v[i] = x + i; }
template <class A, int M> __device__ A V<A, M>::sum() const
{
    A s = 0;
    for (int i = 0; i < M; i++) s += v[i];
    return s;
}
template <class T, int N> template <class U> __device__ U V<T, N>::as() const {
    return U(v[0]) / 2; }
template <class T> struct V<T, 1> { T only; __device__ T sum() const; };
template <class T> __device__ T V<T, 1>::sum() const { return only * 100; }
template <> __device__ float V<float, 2>::sum() const { return -v[1]; }
struct Plain { int a; __device__ int get() const; };
__device__ int Plain::get() const { return a + 1; }
    """,
        """
V<int, 3> a(4); V<float, 3> b(1); V<float, 2> c(5); V<int, 1> d{7}; Plain e{8};
out[k++] = a.sum(); out[k++] = b.sum(); out[k++] = c.sum(); out[k++] = d.sum(); out[k++] = e.get();
out[k++] = a.as<int>(); out[k++] = 10 * a.as<float>();
    """,
    ),
    "injected &": (
        """
template <class T> struct S { T v;
__device__ void swap(S &other) { T t = v; v = other.v; other.v = t; }
__device__ S<T>& operator+=(const S<T>& r) { v += r.v; return *this; } };
    """,
        """
S<int> a{1}, b{2}; a.swap(b); a += b;
out[k++] = a.v;
out[k++] = b.v;
    """,
    ),
    "spec members": (
        """
template <class T, int N> struct V;
template <class T> struct V<T, 3> { T x, y, z;
__device__ V(T a) : x(a), y(a), z(a) {}
__device__ V<T, 3>& operator=(const V<T, 3>& o) { x = o.x; y = o.y; z = o.z; return *this; }
__device__ bool operator<(const V<T, 3> &o) const { return x < o.x; } };
    """,
        """
V<int, 3> a(1), b(2);
out[k++] = a < b; a = b;
out[k++] = a.x;
    """,
    ),
    "enum template int": (
        """
enum class Op { Add = 0, Mul = 1 };
enum E { A, B };
template <Op op> __device__ int f(int a, int b) { return op == Op::Add ? a + b : a * b; }
template <E e> __device__ int g() { return e; }
    """,
        """
out[k++] = f<Op::Mul>(n, 4) + f<(Op)0>(1, 2) + g<B>();
    """,
    ),
    "out of class spec": (
        """
template <class T> struct S { __device__ T f(T x);
__device__ static int g(); T v; };
template <class T> __device__ T S<T>::f(T x) { return x + v; }
template <> __device__ float S<float>::f(float x) { return x * 10; }
template <class T> __device__ int S<T>::g() { return sizeof(T); }
template<> __device__ int S<char>::g() { return 77; }
    """,
        """
S<int> a{3};
S<float> b{1.f};
out[k++] = a.f(4);
out[k++] = b.f(4.f);
out[k++] = S<char>::g() + S<double>::g();
    """,
    ),
    "template template": (
        """
template <class T> struct Sum { __device__ T operator()(T a, T b) { return a + b; } };
template <class T> struct Mul { __device__ T operator()(T a, T b) { return a * b; } };
template <template <class> class Op, class T> __device__ T apply(T a, T b) { return Op<T>()(a,
    b); }
template <class T, template <typename...> class C> struct Holder { C<T> c; };
    """,
        """
out[k++] = apply<Sum>(n, 4) + apply<Mul>(n, 5);
    """,
    ),
    "instances of variable templates": (
        """
template <int N> constexpr int fact = N * fact<N - 1>;
template <> constexpr int fact<0> = 1; template <typename T> constexpr bool is_f = false;
template <> constexpr bool is_f<float> = true;
template <typename T> constexpr bool is_f<T *> = true;
    """,
        """
int a[fact<3>]; a[5] = n; out[k++] = sizeof(a) + fact<4>;
out[k++] = is_f<float> + is_f<int> * 10 + is_f<int *> * 100;
    """,
    ),
    "specializations for members": (
        """
struct S { int v; using type = int; }; template <typename T, typename = void> struct has {
static constexpr int value = 0; };
template <typename T> struct has<T, std::void_t<typename T::type>> {
static constexpr int value = 1; };  template <typename T, typename = void> struct hv {
static constexpr int value = 0; };
template <typename T> struct hv<T, decltype((void)std::declval<T>().v)> {
static constexpr int value = 1; };
    """,
        """
out[k++] = has<S>::value; out[k++] = has<int>::value; out[k++] = hv<S>::value;
out[k++] = hv<int>::value;
    """,
    ),
    "recursive template": (
        """
template <int N> struct Fact { static const int value = N * Fact<N - 1>::value; };
template <> struct Fact<0> { static const int value = 1; };
template <int N> __device__ int sum(const int *p) { return p[N - 1] + sum<N - 1>(p); }
template <> __device__ int sum<0>(const int *p) { return 0; }
template <int N> __device__ int pw(int x) { if constexpr (N == 0) return 1;
    else return x * pw<N - 1>(x); }
    """,
        """
out[k++] = Fact<5>::value;
out[k++] = sum<2>(in);
out[k++] = pw<3>(n);
    """,
    ),
    "partial derives primary": (
        """
template <class T, int N> struct B { T v;
__device__ T get() { return v + N; }
int d = 4; };
template <class T> struct B<T, 0> : B<T, 1> { __device__ T zero() { return this->get() + 100; }
int e = 5; };
    """,
        """
B<int, 0> b; b.v = 3;
out[k++] = b.zero();
out[k++] = b.e;
    """,
    ),
    "variable template": (
        """
template <class T> constexpr int size_v = sizeof(T);
template <class A, class B> constexpr bool same_v = false;
template <class A> constexpr bool same_v<A, A> = true;
template <int N> __device__ constexpr int twice = N * 2;
    """,
        """
out[k++] = size_v<double> + same_v<int, int> * 10 + same_v<int, float> * 100 + twice<4>;
    """,
    ),
    "crtp": (
        """
template <class D> struct Base { __device__ int f() { return static_cast<D *>(this)->g() * 2; }
__device__ int h() const { return static_cast<const D &>(*this).v; } };
struct D : Base<D> { int v;
__device__ int g() { return v + 1; } };
    """,
        """
D d; d.v = 5;
out[k++] = d.f();
out[k++] = d.h();
    """,
    ),
    "empty bases": (
        """
struct E {};
struct F { __device__ int f() { return 3; } };
struct D : E, F { int v; };
    """,
        """
D d; d.v = 5;
out[k++] = d.f() + d.v + (int)sizeof(D);
    """,
    ),
    "sfinae": (
        """
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <class T> __device__ typename enable_if<sizeof(T) == 4, int>::type f(T x) { return 4; }
template <class T> __device__ typename enable_if<sizeof(T) == 2, int>::type f(T x) { return 2; }
    """,
        """
out[k++] = f(n);
out[k++] = f((short)2);
    """,
    ),
    "method template": (
        """
struct S { template <int N> __device__ int f(int x) { return x * N; }
template <class T> __device__ T g(T x) { return x + 1; } };
    """,
        """
S s;
out[k++] = s.f<3>(n) + s.template f<2>(1) + s.g(2);
    """,
    ),
    "nested class template": (
        """
template <class T> struct O { struct I { T v; };
template <class U> struct J { T a;
U b; }; I i; J<char> j; };
    """,
        """
O<int> o; o.i.v = 4; o.j.b = 'a'; o.j.a = 3;
O<int>::I q{2};
out[k++] = o.i.v + o.j.a + o.j.b + q.v;
    """,
    ),
    "default template": (
        """
template <class T = int, int N = 2> struct D { T v[N]; };
    """,
        """
D<> d; d.v[1] = 3; D<float> e; e.v[0] = 1;
out[k++] = d.v[1] + (int)e.v[0] + (int)(sizeof(e));
    """,
    ),
    "alias template": (
        """
template <class T, int N> struct A { T v[N]; };
template <int N> using IA = A<int, N>;
template <class T> using Ptr = T *;
    """,
        """
IA<3> a; a.v[2] = 5; Ptr<int> q = a.v;
out[k++] = q[2];
    """,
    ),
    "static members": (
        """
struct S { static constexpr int N = 4;
static const int M = N * 2;
enum { Q = 3 };
static __device__ int f(int x) { return x + N; } };
    """,
        """
out[k++] = S::N + S::M + S::Q + S::f(1);
    """,
    ),
    "inherit ctor": (
        """
struct B { int v;
__device__ B(int x) : v(x) {} };
struct D : B { using B::B;
__device__ int f() { return v * 2; } };
    """,
        """
D d(4);
out[k++] = d.f();
    """,
    ),
    "using base fn": (
        """
struct B { __device__ int f(int) { return 1; } };
struct D : B { using B::f;
__device__ int f(float) { return 2; } };
    """,
        """
D d;
out[k++] = d.f(1) * 10 + d.f(1.f);
    """,
    ),
}
_AT_ONCE = 8
NAMES = sorted(FEATURES)
GROUPS = [NAMES[at : at + _AT_ONCE] for at in range(0, len(NAMES), _AT_ONCE)]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_beside_the_host(device, group):
    check(in_one_kernel([FEATURES[name] for name in group]), device, 3, 7, 2, standard="gnu++20")
