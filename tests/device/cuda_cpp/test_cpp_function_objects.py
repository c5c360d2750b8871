"""Functions as values in CUDA C++: lambdas, function objects, pointers to functions."""

from __future__ import annotations

import pytest

import treadle as td
from tests.support.cpp_host import check

LAMBDAS = """
template <typename F> __device__ int twice(F f, int x) { return f(f(x)); }
template <typename F> __device__ void each(int n, F &&f) { for (int i = 0; i < n; i++) f(i); }
template <typename F> __device__ void each_ref(int n, const F &f) { for (int i = 0; i < n;
    i++) f(i); }
struct Pool { int base; int *out;
  __device__ void run(int n) { auto add = [this](int i) { out[20 + i] = base + i; };
      for (int i = 0; i < n; i++) add(i); }
  __device__ int all(int n) { int s = 0; auto f = [&](int i) { s += base * i; }; for (int i = 0;
      i < n; i++) f(i); return s; }
};
__global__ void kernel(const int *in, int *out) {
    int k = 0, n = in[0];
    int m = n + 1;
    auto inc = [](int x) { return x + 1; };
    auto add = [n](int x) { return x + n; };
    auto addref = [&n](int x) { return x + n; };
    auto both = [=](int x) -> int { if (x > 3) return x + n; return x + m; };
    n = 10;
    out[k++] = inc(5);
    out[k++] = add(5);
    out[k++] = addref(5);
    out[k++] = both(1) * 100 + both(4);
    out[k++] = twice(add, 1);
    out[k++] = twice([](int x) { return x * x; }, 3);
    int sum = 0;
    each(5, [&](int i) { sum += i * n; });
    out[k++] = sum;
    int c = 0;
    auto count = [c]() mutable { return ++c; };
    count(); count();
    out[k++] = count() * 10 + c;
    auto gen = [](auto a, auto b) { return a * b; };
    out[k++] = gen(3, 4) + (int)gen(1.5f, 2.f);
    __shared__ int s[4];
    auto put = [&](int i, int v) { s[i] = v; };
    put(1, 42);
    out[k++] = s[1];
    int arr[4] = {1, 2, 3, 4};
    auto get = [arr](int i) { return arr[i]; };
    arr[2] = 9;
    auto get2 = [&arr](int i) { return arr[i]; };
    out[k++] = get(2) * 10 + get2(2);
    const int *p = in;
    auto rd = [=](int i) { return p[i]; };
    out[k++] = rd(0);
    auto outer = [&](int i) { auto inner = [&](int j) { return i * 10 + j + n; };
        return inner(2) ; };
    out[k++] = outer(4);
    out[k++] = [&] { return n * 2; }();
    auto y = [v = n * 3](int x) { return v + x; };
    out[k++] = y(1);
    auto sel = [](int x) { if (x > 2) return 1.5f; else return 2.5f; };
    out[k++] = (int)(sel(3) * 10);
    constexpr int Q = 7; const int W = 8;
    out[k++] = [](int x) { return x + Q + W; }(1);
    each_ref(3, [=](int i) { out[k + i] = i + m; });  k += 3;
    Pool pool{100, out};
    pool.run(2);
    out[k++] = pool.all(4);
}
"""

POINTERS = """
typedef int (*op_t)(int, int);
using un_t = float (*)(float);
__device__ int add(int a, int b) { return a + b; }
__device__ int sub(int a, int b) { return a - b; }
__device__ int mul(int a, int b) { return a * b; }
__device__ float half_of(float x) { return x / 2; }
__device__ void store(int *p, int v) { *p = v; }
template <typename T> __device__ T big(T a, T b) { return a > b ? a : b; }
template <typename F> __device__ int apply(F f, int a, int b) { return f(a, b); }
template <typename F> __device__ int apply2(F &&f, int a, int b) { return f(a, b); }
__device__ int apply3(op_t f, int a, int b) { return f(a, b); }
__device__ int apply4(int f(int, int), int a, int b) { return (*f)(a, b); }
template <op_t F> __device__ int apply5(int a, int b) { return F(a, b); }
template <typename R, typename A> __device__ R apply6(R (*f)(A), A a) { return f(a); }
template <typename T, T (*F)(T, T)> __device__ T apply7(T a, T b) { return F(a, b); }
struct Holder { op_t f; int v; };
__device__ op_t table[3] = {add, sub, mul};
__constant__ op_t ctable[] = {sub, add};
__device__ op_t pick(int i) { if (i == 0) return add; return mul; }
__global__ void kernel(const int *in, int *out) {
    int k = 0, n = in[0];
    out[k++] = apply(add, n, 4);
    out[k++] = apply(&sub, n, 4);
    out[k++] = apply2(mul, n, 4);
    out[k++] = apply3(mul, n, 5);
    out[k++] = apply4(add, n, 5);
    out[k++] = apply5<sub>(n, 5);
    out[k++] = (int)(apply6(half_of, 3.0f) * 10);
    out[k++] = apply7<int, mul>(n, 6);
    op_t f = n > 2 ? add : sub;
    out[k++] = f(n, 1);
    f = mul;
    out[k++] = f(n, 7);
    for (int i = 0; i < 3; i++) { op_t g[] = {add, sub, mul}; out[k++] = g[i](n, 2); }
    for (int i = 0; i < 3; i++) out[k++] = table[i](n, 3);
    out[k++] = ctable[n - 3](n, 1);
    Holder h{sub, 2};
    out[k++] = h.f(n, h.v);
    void (*st)(int *, int) = store;
    st(out + k++, 77);
    out[k++] = pick(n)(n, 2);
    out[k++] = apply3([](int a, int b) { return a * 10 + b; }, n, 4);
    op_t null = nullptr;
    if (n > 100) null = add;
    out[k++] = null == nullptr;
    out[k++] = apply3(big<int>, n, 2);
    auto af = add;
    out[k++] = af(n, 9);
    auto sf = sqrtf;
    out[k++] = (int)sf(49.f) + (int)apply6(fabsf, -2.f);
}
"""

OBJECTS = """
struct Plus { __device__ int operator()(int a, int b) const { return a + b; } };
template <typename T> struct Most {
    T floor;
    __device__ Most(T f) : floor(f) {}
    __device__ T operator()(T a, T b) const { T m = a > b ? a : b; return m < floor ? floor : m; }
};
struct Counter { int calls; __device__ int operator()(int a, int b) { calls++; return a * b; } };
template <typename Op> __device__ int fold(const int *in, int n, int first, Op op)
{
    for (int i = 0; i < n; i++) first = op(first, in[i]);
    return first;
}
template <typename Op> __device__ int fold_by(const int *in, int n, int first, Op &op)
{
    for (int i = 0; i < n; i++) first = op(first, in[i]);
    return first;
}
template <class Op, class T> struct Pair { Op op; T second; __device__ T both(T x) {
    return op(x, second); } };
template <class F, class G> struct Composed {
    F f; G g;
    __device__ int operator()(int x) const { return f(g(x)); }
};
template <class F, class G> __device__ Composed<F, G> compose(F f, G g) { return {f, g}; }
__device__ auto adder(int n) { return [n](int x) { return x + n; }; }
__device__ auto several(int n) { if (n > 2) return n * 2; for (int i = 0; ;
    i++) if (i > n) return i; }

__global__ void kernel(const int *in, int *out)
{
    int k = 0, n = in[0];
    out[k++] = fold(in, 3, 0, Plus());
    out[k++] = fold(in, 3, 1, Plus{});
    out[k++] = fold(in, 3, 0, Most<int>(n + 1));
    Counter counter{0};
    out[k++] = fold(in, 3, 1, counter);
    out[k++] = counter.calls;
    out[k++] = fold_by(in, 3, 1, counter);
    out[k++] = counter.calls;
    Pair<Plus, int> pair{Plus{}, n};
    out[k++] = pair.both(4);
    auto both = compose([n](int x) { return x * n; }, [&](int x) { return x + n; });
    out[k++] = both(5);
    out[k++] = adder(n)(10) + adder(1)(n);
    out[k++] = several(n) * 10 + several(1);
    int total = 0;
    auto add = [&total](int x) -> int & { total += x; return total; };
    add(5) += 100;
    out[k++] = total;
    auto twice = [&](auto &&self, int x) { return self(x) + self(x + 1); };
    out[k++] = twice([&](int x) { return x * n; }, 3);
    int t = 5;
    auto change = [&](int &x, int by) { x += by; };
    change(t, n);
    out[k++] = t;
    for (int i = 0; i < t; i++) { auto shrink = [&] { t--; }; shrink(); out[k++] = i * 10 + t; }
}
"""


# The arguments of a template are evaluated where the function is named: each instance is its own.
INSTANCES = """
typedef int (*Function)(int);
template <int N> __device__ int times(int x) { return x * N; }
template <class T, int N> __device__ T plus(T x) { return x + N; }
template <Function f> __device__ int apply(int x) { return f(x); }
template <Function f, int N> __device__ int apply_and_add(int x) { return f(x) + N; }
template <int N> __device__ int other(int x) {
    return apply_and_add<times<N>, 100>(x) + apply<times<N + 1>>(x); }
template <Function f> struct Applied { __device__ static int go(int x) { return f(x); } };
template <int N> struct Outer { __device__ static int go(int x) {
    return Applied<times<N>>::go(x) + Applied<plus<int, N>>::go(x) * 100; } };
struct Chosen { Function f; int n;
    __device__ constexpr Chosen(Function f, int n) : f(f), n(n) {} };
template <int N> __device__ constexpr Chosen chosen() {
    switch (N) { case 7: return Chosen(plus<int, N>, N); default: return Chosen(times<N>, N); } }
template <int N> __device__ Function got() { return times<N>; }
template <class G> __device__ int call(G g, int x) { return g(x); }
template <int M> __device__ int both(int x) {
    return call(times<M>, x) * 10 + call(&times<M + 1>, x); }
template <int N, bool wide> __device__ void tile(int *out) {
    constexpr Function f = chosen<N>().f; constexpr int n = chosen<N>().n; out[wide] = f(1) + n; }
static const __device__ int table[4] = {10, 20, 30, 40};
__global__ void kernel(const int *in, int *out) {
    int k = 0, one = in[0];
    const int item = table[one % 4], known = table[2];
    out[k++] = item + known;
    out[k++] = apply<times<2>>(one); out[k++] = apply<times<3>>(one);
    out[k++] = other<5>(one); out[k++] = other<6>(one);
    out[k++] = Applied<times<2>>::go(one); out[k++] = Applied<times<3>>::go(one);
    out[k++] = Outer<5>::go(one); out[k++] = Outer<6>::go(one);
    out[k++] = chosen<7>().f(one); out[k++] = chosen<8>().f(one); out[k++] = got<9>()(one);
    out[k++] = both<3>(one); tile<7, false>(out + k); tile<8, true>(out + k);
}
"""


@pytest.mark.parametrize(
    "source",
    [LAMBDAS, POINTERS, OBJECTS, INSTANCES],
    ids=["lambdas", "pointers", "objects", "instances"],
)
def test_beside_the_host(device, source):
    check(source, device, 3, 7, 2)


REFUSED = {
    "int n = in[0]; auto f = [](int x) { return x + n; }; out[0] = f(1);": "n is not captured",
    "auto f = [x](int y) { return y; }; out[0] = f(1);": "x is not a local variable",
    "auto f = [out](int x) { return x; }; int (*p)(int) = f; out[0] = p(1);": "with captures",
    "auto f = one; out[0] = f(1);": "one is overloaded",
    "int (*f)(int) = nullptr; out[0] = f(1);": "always null",
    "int (*f)(float) = two; out[0] = f(1);": "does not convert|is no |no function two",
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused(body):
    source = """
        __device__ int one(int a) { return a; }
        __device__ int one(float a) { return 2; }
        __device__ int two(int a) { return a; }
        __global__ void kernel(const int *in, int *out) { %s }
    """
    out = td.zeros(1, dtype=td.int32, device="cpu")
    with pytest.raises(td.errors.CompileError, match=REFUSED[body]):
        td.cuda_module(source % body).kernel("kernel")[1, 1](out, out)


FROM_HOST = """
typedef float (*Operation)(float, float);
__device__ float add(float a, float b) { return a + b; }
__device__ int add(int a, int b) { return a - b; }
namespace ns { __device__ float times(float a, float b) { return a * b; } }
template <class T> __device__ T larger(T a, T b) { return a > b ? a : b; }
__device__ Operation largest = larger<float>;
__device__ Operation sum = add;
struct Steps { Operation first; float by; Operation rest[2]; };
__global__ void map(Operation f, float *x) {
    x[threadIdx.x] = f ? f(x[threadIdx.x], 3.0f) : -1.0f;
}
__global__ void steps(Steps s, float *x) {
    x[0] = s.first(x[0], s.by);
    for (int i = 0; i < 2; i++) if (s.rest[i] != nullptr) x[0] = s.rest[i](x[0], 10.0f);
    x[1] = (s.first == add) + 2 * (ns::times == s.first);
}
__global__ void whole(int f(int, int), int (&g)(int, int), int (*h)(int, int), int *x) {
    x[0] = f(x[0], 3); x[1] = g(x[1], 4); x[2] = h(x[2], 5);
}
template <class F> __global__ void changed(F f, float *x) {
    F g = f;
    f = nullptr;
    x[0] = g(x[0], 2); x[1] = f == nullptr;
}
"""


def test_functions_from_the_host(device):
    module = td.cuda_module(FROM_HOST)
    with td.use_device(device):
        wanted = {
            "add": [4, 8], "sum": [4, 8], "ns::times": [3, 15], "times": [3, 15],
            "largest": [3, 5], None: [-1, -1],
        }  # fmt: skip
        for name, values in wanted.items():
            x = td.asarray([1.0, 5.0])
            module.map[1, 2](name, x)
            assert x.tolist() == values
        x = td.asarray([1.0, 5.0])
        module.steps[1, 1]({"first": "sum", "by": 5, "rest": ["times", None]}, x)
        assert x.tolist() == [60, 1]
        x = td.asarray([7, 7, 7], dtype=td.int32)
        module.whole[1, 1]("add", "add", "add", x)
        assert x.tolist() == [4, 3, 2]
        x = td.asarray([4.0, 7.0])
        module.kernel("changed", "float (*)(float, float)")[1, 1]("times", x)
        assert x.tolist() == [8, 1]


CALLED = """
typedef float (*Function)(float);
__device__ float half_of(float x) { return x / 2; }
__device__ Function root = sqrtf;
__device__ Function seventh = [](float x) { return x / 7; };
struct Either { Function f; int own; };
__global__ void call(const Function f, Either e, float *x) {
    e.f = e.own ? e.f : f;
    __shared__ float s[2];
    s[threadIdx.x] = e.f(x[threadIdx.x]);
    __syncthreads();
    x[threadIdx.x] = s[1 - threadIdx.x];
}
"""


def test_functions_of_variables_and_null_ones(device, monkeypatch):
    module = td.cuda_module(CALLED)
    x = td.asarray([196.0, 49.0], device=device)
    module.call[1, 2]("root", ("half_of", 0), x)
    assert x.tolist() == [7, 14]
    module.call[1, 2]("root", {"f": "seventh", "own": 1}, x)
    assert x.tolist() == [2, 1]
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    with pytest.raises(td.errors.LaunchError, match="line 10: a null pointer is dereferenced"):
        td.cuda_module(CALLED).call[1, 2](None, ("half_of", 0), x)


def test_what_is_no_function_for_a_parameter():
    module = td.cuda_module(FROM_HOST)
    x = td.asarray([1.0])
    for given, message in (
        (
            "larger",
            "argument 1 .f. of kernel map is Operation, and 'larger' is no function of this",
        ),
        (3, "number 3 was given: pass the name of one of add, ns::times, largest, sum, or None"),
    ):
        with pytest.raises(td.errors.DtypeError, match=message):
            module.map[1, 1](given, x)
    assert "int f(int, int), int(int, int) &g, int (*h)(int, int), int *x" in repr(module.whole)


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("int (*f)(float)", r"f is a pointer to functions of the type int\(float\), and the file"),
        ("float (**f)(float)", "f leads to a pointer to a function in memory: pass it as a param"),
        ("Held *f", "f leads to a pointer to a function in memory: pass it as a parameter, or in"),
    ],
)
def test_pointers_to_functions_that_are_refused(parameter, message):
    module = td.cuda_module(
        "struct Held { float (*f)(float); };"
        f"__device__ float same(float x) {{ return x; }} __global__ void run({parameter}) {{}}"
    )
    with pytest.raises(td.errors.CompileError, match=message):
        module.run[1, 1]([None])
