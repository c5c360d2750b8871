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

_MOVES = (
    "struct P { int v; __device__ P() : v(1) {} __device__ P(P &&p) : v(p.v) {} };"
    "__device__ int g(P p) { return p.v; }"
)
_EXPLICIT = (
    "struct P { int v; __device__ explicit operator int() const { return v; } };"
    "struct Q { int v; __device__ explicit Q(int w) : v(w) {} };"
)

# (declarations, body, words)
ILL_FORMED_DECLARATIONS: list[tuple[str, str, str]] = [
    # --- jumps past initializations ---
    ("", "if (n) goto end; int v = 3; x[1] = v; end: x[0] = 1;", "goto end jumps past the initialization of v in line"),
    ("struct Made { int v; __device__ Made() : v(1) {} };", "if (n) goto end; Made p; x[1] = p.v; end: x[0] = 1;", "goto end jumps past the initialization of p"),
    ("template <class T> __device__ T g(T v) { if (v) goto end; { T w = v; v = w; end: v++; } return v; }", "", "jumps past the initialization of w"),
    ("__device__ int g(int v) { for (int i = 0; i < v; i++) { again: v--; } if (v) goto again; return v; }", "", "jumps past the initialization of i"),
    # --- explicit specializations ---
    ("template <> __device__ int late<int>(int v) { return v; }", "", "there is no template late"),
    ("template <> struct Late<int> { int v; }; template <class T> struct Late { T v; };", "", "Late is specialized before its template, of line"),
    ("template <class T> __device__ int g(T v) { return 1; } template <> __device__ int g<int>(int v) { return 2; } template <> __device__ int g<int>(int v) { return 3; }", "", "g is defined twice for <int>"),
    ("template <class T> struct P { T v; }; template <> struct P<int> { int v; }; template <> struct P<int> { int w; };", "", "P is defined twice for <int>"),
    ("template <class T> struct P { T v; }; template <class T> struct P<T *> { int v; }; template <class T> struct P<T *> { int w; };", "", "P is defined twice for <T\\*>"),
    ("template <class T> __device__ int g(T v) { return 1; }\n__device__ int h() { return g(1); }\ntemplate <> __device__ int g<int>(int v) { return 2; }", "", "g is specialized here, and used as it is in line"),
    ("template <class T> struct P { T v; };\n__device__ void h() { P<int> p; }\ntemplate <> struct P<int> { int w; };", "", "P is specialized here, and used as it is in line"),
    # --- parameters of templates, variables of the file ---
    ("template <Unknown> __device__ int g(int v) { return v; }", "", "Unknown is not declared"),
    ("template <Unknown2> struct P { int v; };", "", "Unknown2 is not declared"),
    (_HIDDEN + "__device__ int list[P::N];", "", "N is not a public member"),
    (_HIDDEN + "__constant__ int one = P::N;", "", "N is not a public member"),
    (_HIDDEN + "__device__ P::T one;", "", "T is not a public member"),
    ("__device__ int list[2] = {1, 2, 3};", "", "3 values for int\\[2\\]"),
    ("__device__ int list[-1];", "", "an array of -1 elements"),
    # --- const members, destructors of members ---
    ("struct P { int v; __device__ int &f() const { return v; } };", "", "f returns int&, which cannot refer to a const int"),
    ("struct P { int v[2]; __device__ int &operator[](int i) const { return v[i]; } };", "", "returns int&, which cannot refer to a const int"),
    ("class P { __device__ ~P() {} public: int v; }; struct Q { P p; __device__ Q() {} };", "", "the destructor of .*P, of which .*Q has the member p, is not public"),
    ("class P { __device__ ~P() {} public: int v; }; struct Q { P p; };", "Q q; q.p.v = 1;", "the destructor of .*P, of which .*Q has the member p"),
    ("class P { __device__ ~P() {} public: int v; }; struct Q : P {};", "Q q; q.v = 1;", "the destructor of .*P, a base of .*Q, is not public"),
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
    ("__device__ int g() const { return 1; }", "", "g is not a member of a class"),
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
    # --- members and objects without a value, abstract classes, copies ---
    ("struct P { const int v; int w; __device__ P() { w = 1; } };", "", "v of P is const, and this constructor gives it no value"),
    ("struct P { int &v; int w; __device__ P(int u) : w(u) {} };", "", "v of P is a reference, and this constructor"),
    ("struct P { const int v; __device__ P(); }; __device__ P::P() {}", "", "v of P is const, and this constructor"),
    ("template <class T> struct P { T &v; __device__ P(int) {} };", "P<int> p(1);", "v of P is a reference"),
    ("struct P { virtual __device__ int f() = 0; }; __device__ int g(P p) { return 1; }", "", "P is abstract"),
    ("struct P { virtual __device__ int f() = 0; }; __device__ P g(P &p) { return p; }", "", "P is abstract"),
    (_MOVES, "P p; P q = p;", "P declares how it is moved, so it has no copies"),
    (_MOVES, "P p; x[0] = g(p);", "P declares how it is moved"),
    ("struct P { P() = default; P(P &&) = default; int v; }; struct Q { P p; };", "Q p; Q q = p;", "P declares how it is moved"),
    ("struct P { int v; P() = default; __device__ P &operator=(P &&p) { v = p.v; return *this; } };", "P p; P q(p);", "P declares how it is moved"),
    # --- initializers ---
    ("struct P { int v, w; };", "P p{.w = 1, .v = 2};", "\\.v is behind \\.w: designators are in the order"),
    ("template <class T> concept Wide = sizeof(T) == 8;", "Wide auto v = 1.0f;", "float does not satisfy Wide"),
    ("", "auto v = 1, w = 2.0f;", "auto is float for w, and int for v before it"),
    ("", "for (auto i = 0, j = 1u; i < 2; i++) x[i] = j;", "auto is unsigned int for j"),
    (_EXPLICIT, "P p; int v = p;", "converts to int by a cast only"),
    (_EXPLICIT, "P p; x[0] = p;", "converts to int by a cast only"),
    (_EXPLICIT + "__device__ int g(P p) { return p; }", "", "converts to int by a cast only"),
    (_EXPLICIT, "Q q = {1};", "the constructor of .*Q is explicit, so = {"),
    # --- constants ---
    ("consteval int g(int v) { return v; }", "x[0] = g(n);", "g, which is consteval, must be known when .* n is a variable"),
    ("consteval int g(int v) { return v; }", "x[0] = g(x[1]);", "x is a variable"),
    ("__device__ int g(int v) { return v; }", "constexpr int v = g(2);", "constexpr v must be known .* g of line \\d+ is not constexpr"),
    ("", "constexpr int v = x[0];", "constexpr v must be known .* x is a variable"),
    ("", "constexpr int v = n;", "constexpr v must be known .* n is a variable"),
    ("", "int w = 1; constexpr int v = w + 1;", "w is a variable"),
    ("", "Box<int, 2.5f> b;", "parameter N is of type int, and its argument 2.5, of type float, does not"),
    ("template <unsigned N> struct P {};", "P<-1> p;", "N is of type unsigned int, and its argument -1"),
    ("", "x[0] = tn<2.0>();", "its argument 2.0, of type double"),
    # --- using-declarations ---
    ("struct P { __device__ int f() { return 1; } }; struct Q : P { using P::g; };", "Q q;", "P has no member g"),
    ("namespace q { __device__ int g() { return 1; } } using q::h;", "", "namespace q has no h"),
    ("namespace q { __device__ int g() { return 1; } }", "using q::h;", "namespace q has no h"),
    # --- constructors, bases and enums ---
    ("struct P { int v; __device__ P() : v(1), v(2) {} };", "", "initializes a member or base twice"),
    ("struct P { int v; __device__ void f() : v(1) {} };", "", "f is not a constructor, so it has no initializers"),
    ("struct P { int v, w; __device__ P(int u) : v(u) {} __device__ P() : P(1), w(2) {} };", "", "calls another one of its class"),
    ("struct P : A { __device__ P() : a(1) {} };", "", "P has no field or base a"),
    ("struct P : B { __device__ P() {} };", "", "gives the base B no value: B has no constructor without parameters"),
    ("struct P { B b; __device__ P() {} };", "", "gives the member b no value"),
    ("struct P : A, A {};", "", "A is a base already"),
    ("union U { int v; }; struct P : U {};", "", "U is a union, so it cannot be a base"),
    ("struct P : P {};", "", "P is the class itself"),
    ("union U { int v; virtual __device__ int f() { return 1; } };", "", "f is virtual, which functions of unions"),
    ("struct P { static int v = 3; };", "", "v is static and not const"),
    ("enum F { f0 = 1.5f };", "", "the value of an enumerator must be an integer"),
    ("enum F : float { f0 };", "", "float is not an integer"),
    ("enum F : unsigned char { f0 = 300 };", "", "f0 is 300, which unsigned char, the type of the enum"),
    ("__device__ int g(void v) { return 1; }", "", "g has a parameter of type void"),
    ("__device__ int g(void &v) { return 1; }", "", "or a reference to it"),
    ("__global__ void g(int *v, ...) {}", "", "the kernel g takes any number of arguments"),
    # --- casts ---
    ("", "x[0] = const_cast<int>(n);", "const_cast is for pointers and references"),
    ("", "float *p = const_cast<float *>(c);", "const_cast does not convert"),
    ("", "int *p = static_cast<int *>(c);", "static_cast to int\\* drops the const"),
    ("", "float *p = reinterpret_cast<float *>(c);", "reinterpret_cast to float\\* drops the const"),
    # --- operators and defaulted functions ---
    ("struct P { __device__ P operator+(P p, P q) { return p; } };", "", "operator\\+ has one or two operands, and this has 3"),
    ("struct P { __device__ bool operator!(P p) { return true; } };", "", "operator! has one operand, and this has 2"),
    ("__device__ int operator+(int v, int w) { return v; }", "", "operator\\+ has no operand of a class or enum"),
    ("__device__ A &operator=(A &v, const A &w) { return v; }", "", "operator= is a function of a class only"),
    ("struct P { __device__ int operator+(int v = 1) { return v; } };", "", "operator\\+ has a default argument"),
    ("struct P { __device__ P operator++(float) { return *this; } };", "", "the second parameter of operator\\+\\+"),
    ("struct P { __device__ int operator int() { return 1; } };", "", "no type before operator"),
    ("struct P { __device__ operator int(int v) { return v; } };", "", "a conversion function has no parameters"),
    ("__device__ int g(int) = default;", "", "g is not a function that C\\+\\+ can define"),
    ("struct P { int v; P(int) = default; };", "", "a constructor with such parameters"),
    ("", "static_assert(n > 0);", "the condition of static_assert must be known"),
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
    ("struct P { int v; union { int w; float u; }; int t; };", "P p{.v = 1, .w = 2, .t = 4}; x[0] = p.t;"),
    ("constexpr __device__ int g(int v) { return v * v; } struct P { int v; static const int N = 4; __device__ constexpr int size() const { return 3; } }; template <int N> __device__ int h() { constexpr int v = N * 2; constexpr int w = g(v); return w; }", "int l[4]; P p; constexpr int v = g(3), w = sizeof(l) / sizeof(l[0]), u = p.size(), t = P::N; constexpr bool b = true ? sizeof(n) == 4 : false; constexpr auto f = [](int i) { return i + 1; }; constexpr int s = f(2); constexpr int *q = nullptr; constexpr int r[] = {1, 2, g(3)}; constexpr int o = r[1]; const int m = n; x[0] = v + w + u + t + b + s + o + m + h<3>() + (q == nullptr);"),
    ("consteval int g(int v) { return v; } consteval int h(int v) { return g(v) + 1; } template <int N> __device__ int i() { return h(N); }", "constexpr int v = 3; const int w = 4; x[0] = g(2) + h(v + w) + i<3>() + g(sizeof(n));"),
    ("template <unsigned N> struct P {}; template <char N> __device__ int g() { return N; } enum F { f0 = 3 }; template <unsigned long N> __device__ int h(int (&v)[N]) { return N; } template <class T, T N> __device__ int i() { return N; }", "int v[3]; P<3> p; P<sizeof(int)> q; x[0] = g<'a'>() + tn<f0>() + h(v) + i<long, 3>() + tn<7ull>() + tn<-1>();"),
    ("", "auto v = 1, w = 2; auto *p = x, q = x[0], *r = x + 1; const auto s = 1.0f, t = 2.0f; for (auto i = 0, j = 1; i < j; i++) x[i] = j; x[0] = v + w + *p + q + *r + s + t;"),
    ("template <class T> concept Four = sizeof(T) == 4;", "Four auto v = 1; const Four auto w = 2.0f; Four auto &u = x[0]; u = v + w;"),
    ("struct P { int v; __device__ explicit operator int() const { return v; } __device__ explicit operator bool() const { return v; } }; struct Q { __device__ operator int() const { return 1; } __device__ explicit operator float() const { return 2; } }; __device__ int g(const P &p) { return static_cast<int>(p); }", "P p{3}; int v(p), w{p}, u = (int)p, t = int(p); if (p) x[0] = v + w + u + t; bool b = !p; Q q; int s = q; float r = (float)q; x[1] = p ? 1 : 0; while (!p) x[2] = g(p) + b + s + r;"),
    ("struct P { int v; __device__ explicit P(int w) : v(w) {} __device__ P(int w, int u) : v(w + u) {} __device__ P() : v(0) {} };", "P p(1), q{1}, r = {1, 2}, s = P(3), t = P{4}, u = {}, v = p; P w = {p}; x[0] = q.v + r.v + s.v + t.v + u.v + v.v + w.v;"),
    (_MOVES + "struct Q { int v; Q() = default; Q(const Q &) = default; Q(Q &&) = default; Q &operator=(const Q &) = default; }; __device__ P made() { P p; return p; }", "P p = made(); P q = static_cast<P &&>(p); Q r; r.v = 1; Q s = r; s = r; x[0] = g(static_cast<P &&>(q)) + g(made()) + s.v;"),
    ("struct P { const int v; int &r; const int w = 3; __device__ P(int &u) : v(1), r(u) {} __device__ P(int &u, int t) : P(u) {} template <class T> __device__ P(T *p) : v{2}, r(*p) {} }; struct Q : D { const int v; __device__ Q(); }; __device__ Q::Q() : v(4) {} union U { const int a; float b; __device__ U() : b(1) {} };", "P p(x[0]), q(x[0], 1), r(x); Q s; U u; x[0] = p.v + q.w + r.v + s.v;"),
    ("namespace q { __device__ int g() { return 1; } struct P { int v; }; enum F { f0 }; enum class G { g0 }; } using q::g; using q::P; struct Q : A { using A::get; using A::a; };", "using q::f0; using q::F; P p; Q r; r.a = 1; x[0] = g() + f0 + r.get();"),
    ("struct P { int v, w; static const int N = 3; __device__ P(int u) : v(u) {} __device__ P() : P(1) {} }; struct Q : A, P { B b; B d{2}; __device__ Q() : A{}, b(1) {} __device__ Q(int) : P(2), b{3} {} }; struct R { P p; union { int v; float w; }; __device__ R() : v(1) {} }; struct T; struct U { T *t; }; struct T : U {};", "Q q, r(1); R s; T t; t.t = &t; x[0] = q.b.v + r.d.v + s.v;"),
    ("enum F : unsigned char { f0 = 255 }; enum G { g0 = -1, g1 = 'a', g2 = f0 + 1 }; enum class H : bool { h0, h1 }; __device__ int g(void) { return 1; } __device__ int h(void *v) { return v != nullptr; }", "x[0] = f0 + g0 + g2 + (H::h1 == H::h0) + g() + h(x);"),
    ("template <class T> __device__ T *g(T *v) { return static_cast<T *>((void *)v); }", "int *p = const_cast<int *>(c); const float *q = reinterpret_cast<const float *>(c); float *r = reinterpret_cast<float *>(x); const int *s = static_cast<const int *>(static_cast<const void *>(x)); int &t = const_cast<int &>(*c); x[0] = *p + *q + *r + *s + t + *g(c); float *u = (float *)c; x[1] = *u;"),
    ("struct P { int v; P() = default; P(const P &) = default; P(P &&) = default; ~P() = default; P &operator=(const P &) = default; __device__ P operator+(const P &p) const { return p; } __device__ P operator-() const { return *this; } __device__ P &operator++() { return *this; } __device__ P operator++(int) { return *this; } __device__ int operator()(int v, int w = 2) const { return v + w; } __device__ int operator[](int v) const { return v; } __device__ P *operator->() { return this; } __device__ operator float() const { return 1; } friend __device__ bool operator==(const P &p, int v) { return p.v == v; } template <class... T> __device__ int operator,(T... t) { return 1; } }; __device__ E operator|(E v, int w) { return v; } __device__ float2 operator+(float2 v, float2 w) { return v; }", "P p, q; p.v = 1; q = p + -p; ++q; q++; x[0] = q(1) + q[2] + q->v + (q == 1) + (e0 | 1); static_assert(sizeof(n) == 4);"),
    ("struct P { int v; }; struct R { int v; __device__ R() : v(1) {} };", "int u; if (n) goto end; u = 3; { int v = u; R r; x[1] = v + r.v; } P p; int w; p.v = w = 2; x[1] = p.v; end: x[0] = 1; int t = 2; if (t > n) goto last; x[2] = t; last: ;"),
    ("", "int v = 1; again: v++; int w; w = v; if (w < n) goto again; for (int i = 0; i < 3; i++) { if (i == n) goto next; x[0] = i; next: ; }"),
    ("template <class T> struct P { T v; __device__ T f() { return v; } }; template <> struct P<int>; template <> struct P<int> { int v; __device__ int f(); }; __device__ int P<int>::f() { return 2; } template <> __device__ inline float P<float>::f() { return 3; } template <class T> struct P<T *> { T v; }; template <class T, int N> struct Q {}; template <class T> struct Q<T, 1> {}; template <class T> struct Q<T, 2> {};", "P<int> p; p.v = 1; P<int *> q; q.v = 1; x[0] = p.f() + q.v;"),
    ("template <class T> __device__ int g(T v) { return 1; } template <> __device__ int g<int>(int v); __device__ int h() { return g(1); } template <> __device__ int g<int>(int v) { return 2; } template <> __device__ int g(float v) { return 3; } template <class T> __device__ int i(T v) { return g(v); }", "x[0] = h() + i(2.0);"),
    ("enum class F { f0 }; template <F> struct P { int v; }; template <F f> struct Q {}; template <int, class> struct R; template <int N, class T> struct R {};", "P<F::f0> p; p.v = 1; x[0] = p.v;"),
    ("class P { static const int N = 3; static const int list[N]; typedef int T; static T other; public: static const int M = 4; }; const int P::list[P::N] = {1, 2, 3}; P::T P::other = 2; __device__ int items[P::M];", "x[0] = items[1];"),
    ("struct P { int v; mutable int w; int *p; int &r; __device__ P(int &u) : v(1), w(2), p(&u), r(u) {} __device__ const int &f() const { return v; } __device__ int &g() const { return w; } __device__ int &h() const { return *p; } __device__ int &i() const { return r; } __device__ int &j() { return v; } __device__ P &self() const { return const_cast<P &>(*this); } };", "P p(n); x[0] = p.f() + p.g() + p.h() + p.i() + p.j() + p.self().v;"),
    ("class P { __device__ ~P() {} friend class Q; public: int v; }; class Q { P p; public: __device__ Q() { p.v = 1; } __device__ int f() { return p.v; } }; class B0 { protected: __device__ ~B0() {} public: int v; }; struct R : B0 { __device__ R() { v = 2; } };", "Q q; R r; x[0] = q.f() + r.v;"),
]  # fmt: skip
