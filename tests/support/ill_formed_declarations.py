# ruff: noqa: E501 - a row a program
"""Declarations and classes that C++ forbids, and programs like them: rows as in `ill_formed`."""

from __future__ import annotations

_OVERRIDDEN = (
    "struct X2 : X { __device__ X2() : X(1) {} }; struct V { virtual __device__ int f() { return 1; }"
    "virtual __device__ X *g() { return 0; } virtual __device__ const V &h() const { return *this; } };"
)

# (declarations, body, words)
ILL_FORMED_DECLARATIONS: list[tuple[str, str, str]] = [
    # --- words that do not go together ---
    ("struct P { __device__ int f() = 0; };", "", "f is pure \\(= 0\\), and not virtual"),
    ("struct P { __device__ ~P() = 0; };", "", "~P is pure"),
    ("struct P : A { __device__ int f() = 0; };", "", "f is pure"),
    ("struct P { virtual static __device__ int f() { return 1; } };", "", "both virtual and static"),
    ("struct P { template <class T> virtual __device__ int f(T v) { return 1; } };", "", "a template, which cannot be virtual"),
    ("struct P { virtual __device__ P() {} };", "", "a constructor cannot be virtual"),
    ("virtual __device__ int g() { return 1; }", "", "virtual, which is written in the class only"),
    ("struct P { virtual __device__ int f(); }; virtual __device__ int P::f() { return 1; }", "", "written in the class only"),
    ("struct P { static __device__ int f(); }; static __device__ int P::f() { return 1; }", "", "static is written in the class only"),
    ("struct P { explicit __device__ P(int); }; explicit __device__ P::P(int v) {}", "", "explicit is written in the class"),
    ("struct P { explicit __device__ int f() { return 1; } };", "", "explicit, which only constructors"),
    ("__device__ int g() const { return 1; }", "", "g is no member of a class"),
    ("struct P { static __device__ int f() const { return 1; } };", "", "f is static, so there is no object"),
    ("struct P { __device__ ~P(int v) {} };", "", "a destructor, which has no parameters"),
    ("struct P { __device__ ~Q() {} };", "", "~Q is not the destructor of this class"),
    ("struct P { __device__ void P() {} };", "", "P has the name of its class, so it is a constructor"),
    ("struct P { mutable const int v = 1; };", "", "both mutable and const"),
    # --- default arguments ---
    ("__device__ int g(int v = 1, int w);", "", "w needs a default argument, as v before it has one"),
    ("template <class T = int, class U> struct P {};", "", "U needs a default argument"),
    ("__device__ int g(int v = 1); __device__ int g(int v = 1) { return v; }", "", "default argument of v is given in line"),
    ("struct P { __device__ int f(int v = 1); }; __device__ int P::f(int v = 2) { return v; }", "", "default argument of v is given"),
    # --- names of template parameters ---
    ("template <class T> __device__ int g(T v) { int T = 1; return T; }", "", "T is a template parameter here"),
    ("template <int N> __device__ int g(int N) { return N; }", "", "N is a template parameter"),
    ("template <class T> __device__ int g(T v) { typedef int T; return 1; }", "", "T is a template parameter"),
    ("template <class T> struct P { int T; };", "", "T is a template parameter"),
    ("template <class T> struct P { __device__ int T() { return 1; } };", "", "T is a template parameter"),
    ("template <class T> struct P { struct T { int v; }; };", "", "T is a template parameter"),
    ("template <class T> struct P { __device__ int f() { int T = 1; return T; } };", "", "T is a template parameter"),
    ("template <class P> struct P {};", "", "P is a template parameter"),
    ("template <class T, int T> struct P {};", "", "two template parameters are called T"),
    # --- declarations of one name ---
    ("__device__ int g(int v); __device__ float g(int v) { return v; }", "", "has the same parameters in line .* and another result"),
    ("struct P { __device__ int f(int v) { return v; } __device__ float f(int v) { return v; } };", "", "and another result"),
    ("struct P { __device__ int f(int v) { return v; } static __device__ int f(const int v) { return v; } };", "", "P declares f with these parameters in line"),
    ("struct P { __device__ ~P() {} __device__ ~P() {} };", "", "P declares ~P with these parameters"),
    ("struct P { int f; __device__ int f(int v) { return v; } };", "", "f is a function here, and a variable in line"),
    ("__device__ int g; __device__ int g(int v) { return v; }", "", "g is a function here"),
    ("namespace q {} __device__ int q;", "", "q is a variable here, and a namespace"),
    ("struct P { int v; }; enum P { p0 };", "", "P is an enum here, and a class"),
    ("typedef int T; typedef float T;", "", "T is another type in line"),
    ("using T = int; using T = float *;", "", "T is another type in line"),
    # --- virtual functions ---
    (_OVERRIDDEN + "struct P : V { __device__ float f() override { return 1; } };", "", "f returns float, and the virtual function of r\\d+::V that it overrides returns int"),
    (_OVERRIDDEN + "struct P : V { __device__ A *g() { return 0; } };", "", "g returns A\\*, and the virtual"),
    (_OVERRIDDEN + "struct P : V { __device__ const X2 *g() { return 0; } };", "", "g returns const r\\d+::X2\\*"),
    (_OVERRIDDEN + "struct P : V { static __device__ int f() { return 1; } };", "", "f is static, and has the name"),
    (_OVERRIDDEN + "template <class T> struct P : V { __device__ T f() { return 1; } };", "P<float> p;", "f returns float"),
]  # fmt: skip

WELL_FORMED_DECLARATIONS: list[tuple[str, str]] = [
    ("struct P { virtual __device__ int f() = 0; virtual __device__ ~P() {} }; struct Q : P { __device__ int f() override = 0; }; struct R : Q { __device__ int f() { return 3; } };", "R r; x[0] = r.f();"),
    (_OVERRIDDEN + "struct P : V { __device__ X2 *g() override { return 0; } __device__ const P &h() const override { return *this; } __device__ int f(int v) { return v; } };", "P p; x[0] = p.f(2);"),
    ("template <class T> struct V { virtual __device__ T f() { return 1; } }; template <class T> struct P : V<T> { __device__ T f() override { return 2; } };", "P<float> p; x[0] = p.f();"),
    ("__device__ int g(int v, int w = 2); __device__ int g(int v = 1, int w); __device__ int g(int v, int w) { return v + w; }", "x[0] = g(1);"),
    ("template <class T = int, class U> __device__ int g(U u) { return sizeof(T) + u; } template <class T> struct P; template <class T> struct P { T v; };", "P<int> p; x[0] = g(2) + (p.v = 1);"),
    ("struct P { __device__ int f(int v = 1); explicit __device__ P(int) {} explicit __device__ operator bool() const { return true; } mutable int v = 1; }; __device__ int P::f(int v) { return v; }", "P p(1); x[0] = p.f();"),
    ("struct g { int v; }; __device__ int g(int v) { return v; } typedef int T; typedef int T; struct h; typedef struct h { int v; } h;", "h p; p.v = 1; x[0] = g(p.v);"),
    ("struct P { __device__ int f() { return 1; } __device__ int f() const { return 2; } __device__ int g() & { return 1; } __device__ int g() && { return 2; } template <class T> __device__ int h(T) { return 1; } template <class T> __device__ float h(T *) { return 2; } };", "P p; x[0] = p.f() + p.g() + p.h(1);"),
    ("template <class T> struct P { __device__ int f(int U); }; template <class U> __device__ int P<U>::f(int T) { return T; }", "P<int> p; x[0] = p.f(2);"),
    ("__device__ int g(int); __device__ int g(const int v); __device__ int g(int v) { return v; } __device__ float g(float v) { return v; }", "x[0] = g(1);"),
]  # fmt: skip
