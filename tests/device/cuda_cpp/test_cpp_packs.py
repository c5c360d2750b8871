"""Parameter packs and fold expressions in CUDA C++, beside g++."""

from __future__ import annotations

import pytest

import treadle as td
from tests.support.cpp_host import check, in_one_kernel

FEATURES = {
    "sums": (
        """
__device__ int sum() { return 0; }
template <typename T, typename... Ts> __device__ int sum(T first, Ts... rest) {
    return first + sum(rest...); }
template <typename... Ts> __device__ int folded(Ts... args) { return (args + ... + 0); }
template <typename... Ts> __device__ int left(Ts... args) { return (... - args); }
template <typename... Ts> __device__ int right(Ts... args) { return (args - ...); }
template <typename... Ts> __device__ int started(int x, Ts... args) { return (x - ... - args); }
template <typename... Ts> __device__ bool all(Ts... args) { return (args && ...); }
template <typename... Ts> __device__ bool any(Ts... args) { return (... || (args > 2)); }
template <int... Is> __device__ int most() { int m = 0; ((m = m < Is ? Is : m), ...); return m; }
template <typename... Ts> __device__ int count(Ts...) { return sizeof...(Ts); }
template <typename T, typename... Ts> __device__ T one_of(T a) { return a; }
template <typename... Ts> __device__ int bytes() { return (sizeof(Ts) + ... + 0); }
    """,
        """
out[k++] = sum(); out[k++] = sum(1); out[k++] = sum(n, 2, 3); out[k++] = folded(n, 2,
    4) + folded();
out[k++] = left(n, 2, 4); out[k++] = right(n, 2, 4); out[k++] = started(100, n, 1);
    out[k++] = started(7);
out[k++] = all(1, n) * 10 + all(1, 0); out[k++] = all(); out[k++] = any(1, 2, n) * 10 + any(1);
out[k++] = most<3, 9, 2>(); out[k++] = count() * 100 + count(1, 2.f); out[k++] = one_of(n);
out[k++] = bytes<int, char, short>();
    """,
    ),
    "references": (
        """
template <typename... Ts> __device__ void bump(int by, Ts &... args) { ((args += by), ...); }
template <typename F, typename... Ts> __device__ int call(F &&f, Ts &&... args) {
    return f(static_cast<Ts &&>(args)...); }
template <typename F, typename... Ts> __device__ void each(F f, Ts... args) { (f(args), ...); }
__device__ int three(int a, int b, int c) { return a * 100 + b * 10 + c; }
template <typename... Ts> __device__ int scaled(int by, Ts... args) { return three(args * by...); }
template <typename... Ts> __device__ int stored(int *p, Ts... args) { int v[] = {args...};
    int s = 0; for (int x : v) s = s * 10 + x; *p = s; return sizeof...(args); }
template <typename... A, typename... B> __device__ int two(int (*f)(A...), B... b) {
    return f(b...) + sizeof...(A); }
__device__ int pairs(int a, float b) { return a + (int)b; }
    """,
        """
int a = 1, b = 2; bump(n, a, b); out[k++] = a * 10 + b;
out[k++] = call(three, 1, 2, n); out[k++] = call([&](int x, int y) { return x + y * n; }, a, 5);
int s = 0; each([&](int x) { s = s * 2 + x; }, 1, n, 4); out[k++] = s;
out[k++] = scaled(2, 1, n, 4); int w; out[k++] = stored(&w, 4, 5, n); out[k++] = w;
    out[k++] = two(pairs, 1, 2.5f);
auto l = [](auto... xs) { return (xs * ... * 1); }; out[k++] = l(2, n, 4) + l();
auto cap = [=](auto x) { return x + n; }; out[k++] = cap(2);
    """,
    ),
    "types with & and *": (
        """
template <class A, class B> struct Same_ { static constexpr int is = 0; };
template <class A> struct Same_<A, A> { static constexpr int is = 1; };
template <class... T> struct Held {};
template <class... T> __device__ int held(T &...x) {
    return Same_<Held<T &...>, Held<int &, float &>>::is; }
template <class... T> __device__ int moved(T &&...x) {
    return Same_<Held<T &&...>, Held<int &, float &&>>::is; }
template <class... T> __device__ int pointed(T *...x) {
    return Same_<Held<T **...>, Held<int **, float **>>::is; }
template <class T> struct Boxed { T x; __device__ Boxed(const T &x) : x(x) {} };
__device__ int first_at(int *const &p) { return p[0]; }
__device__ int second_at(int *&&p) { return p[1]; }
    """,
        """
int a = 0; float b = 0; out[k++] = held(a, b); out[k++] = moved(a, 2.f);
out[k++] = pointed(&a, &b);
int v[2] = {5, n}; Boxed<int *> boxed(v); boxed.x[1] += 9; out[k++] = v[1];
out[k++] = first_at(v); out[k++] = second_at(v);
    """,
    ),
    "tuples": (
        """
template <typename... Ts> struct Tuple;
template <> struct Tuple<> { static constexpr int size = 0; };
template <typename H, typename... T> struct Tuple<H, T...> : Tuple<T...> {
    H head;
    static constexpr int size = 1 + Tuple<T...>::size;
    __device__ Tuple() {}
    __device__ Tuple(H h, T... t) : Tuple<T...>(t...), head(h) {}
};
template <int I> struct Get {
    template <typename H, typename... T> static __device__ auto get(const Tuple<H, T...> &t) {
        return Get<I - 1>::get(static_cast<const Tuple<T...> &>(t)); }
};
template <> struct Get<0> { template <typename H,
    typename... T> static __device__ H get(const Tuple<H, T...> &t) { return t.head; } };
template <int... Is> struct Seq {};
template <int N, int... Is> struct Make : Make<N - 1, N - 1, Is...> {};
template <int... Is> struct Make<0, Is...> { typedef Seq<Is...> type; };
template <int... Is> __device__ int dot(const int *p, Seq<Is...>) {
    return ((p[Is] * (Is + 1)) + ...); }
template <typename... Ts> struct Count { static const int n = sizeof...(Ts); };
template <template <typename...> class C,
    typename... Ts> __device__ int size_of_list(C<Ts...> *) { return sizeof...(Ts); }
template <typename T, typename... Rest> struct First { typedef T type; };
template <typename... Ts> using FirstOf = typename First<Ts...>::type;
template <typename R, typename... A> struct Traits;
template <typename R, typename... A> struct Traits<R(A...)> { static const int n = sizeof...(A);
    typedef R result; };
    """,
        """
Tuple<int, short, float> t(1, 2, 3.5f); Tuple<int, char> u(7, 'a');
out[k++] = Tuple<int, float, int>::size * 10 + Tuple<>::size; out[k++] = sizeof(Count<int,
    int>) + Count<int, char, int>::n;
out[k++] = dot(in, typename Make<3>::type{}); out[k++] = size_of_list((Tuple<int,
    float> *)nullptr);
FirstOf<int, float> f = 2.5f; out[k++] = f; out[k++] = Traits<int(float, char, int)>::n;
    Traits<short(int)>::result r = 70000; out[k++] = r;
    """,
    ),
    "classes": (
        """
struct A { int a; __device__ int fa() { return a; } };
struct B { int b; __device__ int fb() { return b * 2; } };
template <typename... Bases> struct All : Bases... { int own; };
template <typename Op, typename... Args> struct Bound { Op op;
    __device__ int operator()(Args... args) const { return op(args...); } };
template <typename... Ts> struct Caller { template <typename F> __device__ int run(F f,
    Ts... ts) { return f(ts...) + (int)sizeof...(Ts); } __device__ int many(Ts... ts); };
template <typename... Ts> __device__ int Caller<Ts...>::many(Ts... ts) { return (ts + ...); }
struct Add { __device__ int operator()(int a, int b) const { return a + b; } };
template <typename T, int... D> struct Dims { static constexpr int total = (D * ...);
    T v[total]; static constexpr int list[] = {D...}; };
#define UNUSED(...) do { (void)sizeof(__VA_ARGS__); } while (0)
template <typename... Ts> __device__ constexpr void unused(const Ts &...) {}
template <typename T, typename... Ts> __device__ bool is_any(T v, Ts... vs) {
    return ((v == vs) || ...); }
    """,
        """
All<A, B> all; all.a = 1; all.b = 2; all.own = 3;
    out[k++] = all.fa() + all.fb() * 10 + all.own * 100;
Bound<Add, int, int> bound{}; out[k++] = bound(n, 4); Caller<int, int> c;
    out[k++] = c.run(Add(), 1, n); out[k++] = c.many(5, n);
Dims<int, 2, 3> d; d.v[5] = 4; out[k++] = d.v[5] + d.total; unused(n, out, all);
    out[k++] = is_any(n, 1, 2, 3) * 10 + is_any(n, 5);
    """,
    ),
}


@pytest.mark.parametrize("name", FEATURES)
def test_beside_the_host(device, name):
    check(in_one_kernel([FEATURES[name]]), device, 3, 7, 2, standard="gnu++20")


KERNEL = """
template <typename... Ts> __global__ void total(float *out, Ts... values)
{
    out[0] = (values + ... + 0.0f);
    out[1] = sizeof...(Ts);
}
"""


def test_a_kernel_with_a_pack(device):
    module = td.cuda_module(KERNEL)
    out = td.zeros(3, dtype=td.float32, device=device)
    module.kernel("total", td.int32, td.float32, td.int32)[1, 1](out, 3, 0.5, -7)
    assert out.tolist() == [-3.5, 3, 0]
    module.kernel("total")[1, 1](out)
    assert out.tolist() == [0, 0, 0]


REFUSED = {
    "template <class... A> __device__ int f(A... a) { return (a + ...); }": (
        "out[0] = f();",
        "a fold of no operands has no value for",
    ),
    """template <class A, class... B> struct P {};
    template <class... A, class... B> __device__ int f(P<A...>, P<B...>) { return (A(B()) + ...); }
    """: ("out[0] = f(P<int>(), P<int, int>());", "have different lengths"),
}


@pytest.mark.parametrize("before", REFUSED)
def test_refused(before):
    body, message = REFUSED[before]
    kernel = td.cuda_module(f"{before}__global__ void k(int *out) {{ {body} }}").kernel("k")
    with pytest.raises(td.errors.CompileError, match=message):
        kernel.source("ir")
