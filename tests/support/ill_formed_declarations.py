# ruff: noqa: E501 - a row a program
"""Declarations and classes that C++ forbids, and programs like them: rows as in `ill_formed`."""

from __future__ import annotations

_OVERRIDDEN = (
    "struct X2 : X { __device__ X2() : X(1) {} }; struct V { virtual __device__ int f() { return 1; }"
    "virtual __device__ X *g() { return 0; } virtual __device__ const V &h() const { return *this; } };"
)

_BASED = "struct B0 { int v; __device__ int f() { return v; } }; class P : B0 { public: int w; };"
_HIDDEN = (
    "class P { static const int N = 3; enum E { p0 }; enum class F { p1 }; struct T { int v; };"
    "typedef int U; static __device__ int f() { return 1; } };"
)
_MIXED = (
    "class P { int v; __device__ P(int w) : v(w) {} __device__ P(const P &p) : v(p.v) {} __device__ "
    "int f(int w) { return w; } __device__ P &operator=(const P &p) { v = p.v; return *this; }"
    "__device__ int operator+(const P &p) { return v; } __device__ int operator[](int w) { return w; }"
    "__device__ operator int() { return v; } public: __device__ P() : v(1) {} __device__ int f(float w)"
    "{ return w; } };"
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
    # --- who may use what ---
    (_BASED, "P p; B0 *q = &p; x[0] = q->v;", "B0 is a base of r\\d+::P that is not public"),
    (_BASED, "P p; B0 *q; q = &p;", "B0 is a base of r\\d+::P that is not public"),
    (_BASED, "P p; B0 b; b = p;", "B0 is a base of r\\d+::P that is not public"),
    (_BASED, "P p; B0 &b = static_cast<B0 &>(p);", "B0 is a base of r\\d+::P that is not public"),
    (_BASED + "__device__ B0 *g(P *p) { return p; }", "", "B0 is a base of r\\d+::P that is not public"),
    (_BASED + "__device__ int g(const B0 &b) { return b.v; }", "P p; x[0] = g(p);", "B0 is a base of r\\d+::P that is not public"),
    (_BASED, "P p; x[0] = p.v;", "v is a member of r\\d+::B0, which is a private base of r\\d+::P"),
    (_BASED, "P p; x[0] = p.f();", "f is a member of r\\d+::B0, which is a private base"),
    (_BASED + "struct Q : protected B0 {};", "Q q; x[0] = q.v;", "which is a protected base of"),
    (_BASED + "struct Q : P { __device__ int h() { return v; } };", "", "v is a member of r\\d+::B0, which is a private base"),
    (_BASED + "struct Q : P { __device__ int h() { return f(); } };", "", "f is a member of r\\d+::B0, which is a private base"),
    (_HIDDEN, "x[0] = P::N;", "N is not a public member of r\\d+::P"),
    (_HIDDEN, "x[0] = P::p0;", "p0 is not a public member"),
    (_HIDDEN, "P::T t; t.v = 1;", "T is not a public member"),
    (_HIDDEN, "P::U u = 1;", "U is not a public member"),
    (_HIDDEN, "x[0] = (int)P::F::p1;", "F is not a public member"),
    (_HIDDEN, "x[0] = P::f();", "f is not a public member"),
    (_HIDDEN, "Box<P::T, 2> b;", "T is not a public member"),
    (_HIDDEN + "__device__ int g(P::T t) { return t.v; }", "", "T is not a public member"),
    (_HIDDEN + "struct Q { int items[P::N]; };", "Q q; q.items[0] = 1;", "N is not a public member"),
    ("template <class T> class P { static const int N = 3; };", "x[0] = P<int>::N;", "N is not a public member of P<int>"),
    ("class P { protected: int v; }; struct Q : P { __device__ int f(P &p) { return p.v; } };", "", "v is a protected member of r\\d+::P"),
    ("class P { int v; friend __device__ int g(P &); }; __device__ int g(P &p) { return p.v; } __device__ int h(P &p) { return p.v; }", "", "v is not a public member of r\\d+::P"),
    ("class P { int v; friend struct Q; }; struct Q {}; struct R : Q { __device__ int f(P &p) { return p.v; } };", "", "v is not a public member"),
    ("struct Q; class P { int v; friend Q; };", "P p; x[0] = p.v;", "v is not a public member"),
    (_MIXED, "P p(1);", "this P of r\\d+::P, of line \\d+, is private"),
    (_MIXED, "P p; P q = p;", "this P of r\\d+::P, of line \\d+, is private"),
    (_MIXED, "P p; x[0] = p.f(1);", "this f of r\\d+::P, of line \\d+, is private"),
    (_MIXED, "P p, q; p = q;", "this operator= of .* is private"),
    (_MIXED, "P p, q; p + q;", "this operator\\+ of .* is private"),
    (_MIXED, "P p; x[0] = p[1];", "this operator\\[\\] of .* is private"),
    (_MIXED, "P p; x[0] = p;", "this operator .* of .* is private"),
    ("class P { __device__ P() {} }; struct Q : P { __device__ Q() {} };", "Q q;", "this P of .* is private"),
    ("class P { int v; public: int w; };", "P p = {1, 2};", "its member v is not public, so its members have no values in braces"),
    ("class P { int v, w; };", "P p; auto [q, r] = p;", "v is not a public member"),
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
    ("struct P { int v; __device__ int f() { return 1; } }; __device__ int g(const P &p) { return p.v; } struct R { int v; __device__ R(const P &p) : v(p.v) {} }; class Q : P { public: using P::f; __device__ int h() { P *p = this; P &q = *this; R r(*this); return v + P::f() + g(*this) + p->v + q.v + r.v; } __device__ P *base() { return this; } };", "Q q; x[0] = q.h() + q.f() + q.base()->v; P *p = (P *)&q; x[1] = p->v;"),
    ("class P { protected: int v; static const int N = 3; typedef int T; __device__ int g() { return 1; } __device__ P() : v(1) {} }; struct Q : P { __device__ int f(Q &q) { T t = q.v + this->v + v + P::N + Q::N; P::T u = g() + P::g(); return t + u; } };", "Q p, q; x[0] = p.f(q);"),
    ("class P { int v; enum { N = 3 }; struct T { int v; }; __device__ P(int w) : v(w) {} friend __device__ int g(int w); friend __device__ int operator+(const P &p, int w); template <class U> friend __device__ U h(U u); friend class Q; public: struct In { __device__ int of(const P &p) { return p.v + N; } }; __device__ static P made() { return P(4); } }; __device__ int g(int w) { P p(w); auto l = [&] { return p.v + P::N; }; P::T t; t.v = 1; return l() + t.v; } __device__ int operator+(const P &p, int w) { return p.v + w; } template <class U> __device__ U h(U u) { P p(1); return p.v + u; } class Q { public: __device__ int f() { P p(2); return p.v + in(p); } private: __device__ int in(P &p) { P::T t{1}; return p.v + t.v; } };", "P p = P::made(); P::In i; Q q; x[0] = g(1) + (p + 1) + h(2) + i.of(p) + q.f();"),
    ("template <class T> class P { friend T; int v; __device__ P() : v(1) {} }; struct Q : P<Q> { __device__ int f() { return v; } };", "Q q; x[0] = q.f();"),
    ("class P { int v; public: __device__ P() : v(1) {} friend __global__ void k(int *x, const int *c, float *y, int n, A a); };", "P p; x[0] = p.v;"),
    ("class P { struct T { int v; }; public: __device__ T f() { T t; t.v = 1; return t; } __device__ T g(T t); friend __device__ T h(T t); }; __device__ P::T P::g(P::T t) { return t; } __device__ P::T h(P::T t) { return t; }", "P p; auto t = p.f(); x[0] = p.g(t).v + h(t).v;"),
    ("class P { int v; __device__ P(const P &p) : v(p.v) {} public: __device__ P() : v(0) {} __device__ P(int w) : v(w) {} __device__ int twice() const { P p(*this); p.v *= 2; return p.v; } };", "P p(2); x[0] = p.twice();"),
    ("class P { protected: int v; __device__ P() : v(1) {} __device__ P(int w) : v(w) {} __device__ P(const P &p) : v(p.v + 1) {} __device__ ~P() { v = 0; } }; class Q : public P { public: __device__ Q() {} __device__ Q(int w) : P(w) {} }; struct R : P {}; struct T { Q q; R r; };", "Q p, q(2), u = q; R r; T t; Q *o = new Q; delete o;"),
    ("class P { protected: int v; __device__ int f() { return 1; } }; struct Q : P { using P::v; using P::f; }; struct R : protected Q { __device__ int g() { Q *q = this; return v + q->v + f(); } }; struct T : R { __device__ int h() { return v + f(); } };", "Q q; q.v = 1; R r; T t; x[0] = q.f() + r.g() + t.h();"),
    ("class P { protected: int v; }; class Q : public P { public: struct In { __device__ int f(Q &q) { return q.v; } }; };", "Q q; Q::In i; x[0] = i.f(q);"),
    ("template <class T> class P { int v; template <class U> friend class Q; public: __device__ P() : v(1) {} }; template <class T> class Q { public: __device__ int f() { P<T> p; P<float> q; return p.v + q.v; } };", "Q<int> q; x[0] = q.f();"),
    ("class P { int v; public: int w; }; class Q { int v; public: __device__ Q(int w) : v(w) {} };", "P p = P(), q = {}, r = {p}; Q s = {1}; x[0] = p.w + q.w + r.w;"),
]  # fmt: skip
