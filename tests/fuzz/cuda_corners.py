# ruff: noqa: E501 (lines of C++ are as long as they are)
"""Corner cases of C++ drawn from a seed: order of evaluation, conversions, overloads, templates,
classes. What they compute g++ knows; nothing in them hangs on what C++ leaves open.

A case is declarations and the body of a function that writes ints to `out`. Calls whose overloads
may be ambiguous stand in `ASK(name, arguments)`, which g++ answers with `AMBIGUOUS` if they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

AMBIGUOUS = -987654321
INPUTS = (3, -5, 7, 100, -1, 0, 2147483647, -2147483648)

_INTEGERS = (
    "bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int",
    "unsigned int", "long long", "unsigned long long",
)  # fmt: skip


@dataclass
class Case:
    """A drawn case. `theme` names what it is about."""

    theme: str
    declarations: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    count: int = 0

    def out(self, expression: str) -> None:
        """One more number that the case computes."""
        self.body.append(f"out[{self.count}] = {expression};")
        self.count += 1

    @property
    def text(self) -> str:
        """Its declarations, and the function `run`."""
        lines = "\n    ".join(self.body)
        head = "\n".join(self.declarations)
        return f"{head}\n__device__ void run(const int *in, int *out)\n{{\n    {lines}\n}}\n"


# --- order of evaluation -------------------------------------------------------------------------

_BY = {"value": "C o", "reference": "C &o", "constant": "const C &o", "number": "int o"}


def order(draw: Random) -> Case:
    """Operators of a class whose operands change each other."""
    case = Case("order")
    takes = {op: draw.choice(list(_BY)) for op in ("+=", "-=", "*=", "<<", ">>", "^", "()")}

    def operator(op: str, body: str) -> str:
        value = "o" if takes[op] == "number" else "o.v"
        return f"    __device__ C &operator{op}({_BY[takes[op]]}) {{ {body.format(value)} return *this; }}"

    inside = [op for op in ("+=", "-=", "*=", "<<", ">>", "^") if draw.random() < 0.6]
    case.declarations += [
        "struct C {", "    int v;",
        "    __device__ C &bump() { v = v * 2 + 1; return *this; }",
        "    __device__ C &set(int o) { v = v * 3 + o; return *this; }",
        "    __device__ int take(int o) { v += o; return v; }",
        "    __device__ int operator[](int i) const { return v * 10 + i; }",
        "    __device__ C *operator->() { v += 1; return this; }",
        *(operator(op, "v = v * 7 + {};") for op in inside),
        operator("()", "v = v * 5 - {};"),
        "};",
    ]  # fmt: skip
    for op in ("+=", "-=", "*=", "<<", ">>", "^"):
        if op not in inside:
            value = "o" if takes[op] == "number" else "o.v"
            case.declarations.append(
                f"__device__ C &operator{op}(C &a, {_BY[takes[op]]}) "
                f"{{ a.v = a.v * 11 + {value}; return a; }}"
            )
    case.declarations.append("__device__ int bump(int &x) { x = x * 2 + 3; return x; }")
    case.body += ["C q{in[0]}, r{in[2]};", "C a[3] = {{1}, {2}, {3}};", "int i = 0, n = in[0];"]

    def right(op: str) -> str:
        if takes[op] == "number":
            return draw.choice(["q.v", "r.v", "q.bump().v", "q[1]", "bump(q.v)", "a[1].take(2)"])
        return draw.choice(["q", "r", "q.bump()", "a[1]", "a[1].set(1)", "r.bump()"])

    def left() -> str:
        return draw.choice(["q", "q.bump()", "a[1]", "a[1].bump()", "r.set(2)", "q.bump().bump()"])

    for _ in range(draw.randint(4, 8)):
        kind = draw.randrange(8)
        if kind < 3:
            op = draw.choice(["+=", "-=", "*="])
            case.body.append(f"{left()} {op} {right(op)};")
        elif kind == 3:
            op = draw.choice(["<<", ">>"])
            case.body.append(f"{left()} {op} {right(op)} {op} {right(op)};")
        elif kind == 4:
            case.body.append(f"{draw.choice(['q', 'q.bump()', 'a[1]'])}({right('()')});")
        elif kind == 5:
            case.body.append("i = 0; a[i].set(i++).set(i).v += 1;")
            case.body.append("{ int t[3] = {i, i++, bump(i)}; n = t[0] * 100 + t[1] * 10 + t[2]; }")
        elif kind == 6:
            case.body.append("i = 1; a[i++] = a[i - 1]; q->set(q->v);")
            case.body.append("{ C s{q.take(1)}, u = {q.bump().v}; n += s.v * 3 + u.v; }")
        else:
            choice = draw.choice(["q.bump().v > 9 && q.bump().v > 20", "q.v & 1 || r.bump().v < 0"])
            case.body.append(f"n += ({choice}) ? q.take(1) : (r.take(2), r[3]);")
        case.out(draw.choice(["q.v", "r.v", "n", "a[0].v + a[1].v * 10 + a[2].v * 100"]))
    case.out("q.v * 31 + r.v")
    return case


# --- conversions ---------------------------------------------------------------------------------

_KINDS = "\n".join(
    f"__device__ int kind({type}) {{ return {number}; }}"
    for number, type in enumerate((*_INTEGERS, "long", "unsigned long", "float", "double"))
)


def conversions(draw: Random) -> Case:
    """Numbers of all types that meet: their values, and the types of what comes out."""
    case = Case("conversions", [_KINDS])
    case.declarations.append(
        "enum E { LOW = -3, HIGH = 200 }; enum class S : unsigned char { A = 7 };"
    )
    names = []
    for number, type in enumerate(draw.sample(_INTEGERS, 6)):
        case.body.append(f"{type} x{number} = ({type})in[{draw.randrange(8)}];")
        names.append(f"x{number}")
    case.body += ["float f = in[0] * 0.5f; E e = in[1] < 0 ? LOW : HIGH;"]

    def operand() -> str:
        return draw.choice([
            *names, draw.choice(names), "e", "'a'", "1u", "-1", "3ll", "7ull", "true", "(short)-9",
            f"({draw.choice(_INTEGERS)}){draw.choice(names)}", "0x80000000", "2147483648",
            "static_cast<int>(S::A)", f"~{draw.choice(names)}", f"-{draw.choice(names)}",
            f"+{draw.choice(names)}", f"!{draw.choice(names)}",
        ])  # fmt: skip

    def expression(depth: int) -> str:
        if depth == 0:
            return operand()
        one, other = expression(depth - 1), expression(depth - 1)
        match draw.randrange(6):
            case 0 | 1:
                return f"({one} {draw.choice(['+', '-', '*', '&', '|', '^'])} {other})"
            case 2:
                return f"({one} {draw.choice(['<', '<=', '>', '>=', '==', '!='])} {other})"
            case 3:
                return f"({one} {draw.choice(['<<', '>>'])} ({operand()} & 7))"
            case 4:
                return f"({one} ? {other} : {operand()})"
        return f"({one} {draw.choice(['/', '%'])} (({other} & 15) + 2))"

    for _ in range(8):
        one = expression(draw.randint(1, 3))
        case.out(f"(int)({one}) + kind({one}) * 1000")
    for _ in range(3):
        target = draw.choice(_INTEGERS)
        case.body.append(f"{{ {target} t = ({target})in[{draw.randrange(8)}];")
        op = draw.choice(["+=", "-=", "*=", "&=", "|=", "^=", "<<=", ">>="])
        by = f"({operand()} & 5)" if op in ("<<=", ">>=") else operand()
        case.body.append(f"t {op} {by}; t{draw.choice(['++', '--']) if target != 'bool' else ''};")
        case.out("(int)t")
        case.body.append("}")
    case.out("(int)(f + x0 % 7) + kind(f + e) + kind(f * 2) + kind(in[0] ? f : 1)")
    case.out("(unsigned char)(f * 3) + (bool)f * 10 + (short)70000")
    return case


# --- overloads -----------------------------------------------------------------------------------

_PARAMETERS = (
    *_INTEGERS[:9], "float", "const int &", "int &", "const float &", "A", "const A &", "B &",
    "const B &", "const D &", "int *", "const int *", "void *", "const void *", "E", "S", "W",
)  # fmt: skip
_ARGUMENTS = (
    "c", "s", "i", "u", "l", "f", "b", "uc", "ci", "a", "bb", "d", "rb", "p", "cp", "e", "sc", "w",
    "1", "1u", "'x'", "2.5f", "1ll", "true", "i + 1", "(short)1", "&d.y", "A{}", "D{}",
)  # fmt: skip
_CLASSES = """struct A { int x; }; struct B { int y; }; struct D : A, B { int z; };
struct W { int w; __device__ W(int v) : w(v) {} __device__ operator float() const { return w; } };
enum E { FIRST, SECOND }; enum class S { ONE, TWO };"""


def overloads(draw: Random) -> Case:
    """Functions of one name, and which of them calls mean."""
    case = Case("overloads", [_CLASSES])
    case.body += [
        "char c = 1; short s = 2; int i = 3; unsigned u = 4; long long l = 5; float f = 6;",
        "bool b = true; unsigned char uc = 7; const int ci = 8; A a{1}; B bb{2}; D d; d.x = 1;",
        "d.y = 2; d.z = 3; B &rb = d; int *p = &i; const int *cp = &i; E e = SECOND; S sc = S::TWO;",
        "W w(9);",
    ]
    for number in range(2):
        two = draw.random() < 0.4
        seen: set[tuple[str, ...]] = set()
        for answer in range(draw.randint(2, 5)):
            types = tuple(draw.choice(_PARAMETERS) for _ in range(2 if two else 1))
            plain = tuple(_unqualified(one) for one in types)  # const alone tells none apart
            if plain not in seen:
                seen.add(plain)
                listed = ", ".join(types)
                case.declarations.append(
                    f"__device__ int g{number}({listed}) {{ return {answer + 1}; }}"
                )
        if draw.random() < 0.5:
            second = ", T" if two and draw.random() < 0.5 else ", U" if two else ""
            head = "class T, class U" if second == ", U" else "class T"
            form = draw.choice(["T", "T *", "const T &"])
            case.declarations.append(
                f"template <{head}> __device__ int g{number}({form}{second}) {{ return 9; }}"
            )
        for _ in range(6):
            given = ", ".join(draw.choice(_ARGUMENTS) for _ in range(2 if two else 1))
            case.out(f"ASK(g{number}, {given})")
    return case


def _unqualified(type: str) -> str:
    return type.replace("const ", "").rstrip(" &")


# --- templates -----------------------------------------------------------------------------------

_TYPES = (
    "int",
    "float",
    "unsigned char",
    "long long",
    "int *",
    "const int *",
    "A<int>",
    "A<float>",
)


def templates(draw: Random) -> Case:
    """Specializations, deduction, values and defaults of templates."""
    case = Case("templates")
    base, step = draw.randint(1, 9), draw.randint(1, 4)
    case.declarations.append(
        "template <class T> struct A { T t; static const int size = sizeof(T); };"
    )
    case.declarations.append("template <class T, int N = 4> struct Is { static const int v = 0; };")
    chosen = draw.sample(["T *", "const T *", "A<T>"], 2)
    types = [one for one in _TYPES if one != "const int *" or "const T *" in chosen]
    for number, form in enumerate(chosen):
        case.declarations.append(
            f"template <class T, int N> struct Is<{form}, N> {{ static const int v = {number + 1}"
            f" + Is<T, N + 1>::v * 10 + N * 100; }};"
        )
    case.declarations += [
        f"template <> struct Is<int, {draw.randint(3, 6)}> {{ static const int v = 7; }};",
        "template <int N> struct Sum { static constexpr int v = N + Sum<N - 1>::v; };",
        f"template <> struct Sum<0> {{ static constexpr int v = {base}; }};",
        "template <class T, int N> __device__ int length(const T (&a)[N]) { return N * sizeof(T); }",
        "template <class T> __device__ int kind(T) { return 1; }",
        "template <class T> __device__ int kind(T *) { return 2; }",
        "template <class T> __device__ int kind(A<T>) { return 3 + sizeof(T); }",
        "template <> __device__ int kind<float>(float) { return 50; }",
        f"template <int N, class T> __device__ T scale(T x, int by = N * {step}) {{ return x * by; }}",
        "template <bool UP, class T> __device__ T pick(T a, T b)",
        "{ if constexpr (UP) return a > b ? a : b; else return a < b ? a : b; }",
        "template <class T> struct Box {",
        "    T v; template <class U> __device__ Box<U> as() const { return Box<U>{(U)v}; }",
        "    __device__ Box operator+(const Box &o) const { return Box{(T)(v + o.v)}; }",
        "    __device__ bool operator<(T o) const { return v < o; }",
        "    using type = T; enum { bytes = sizeof(T) * 2 };",
        "};",
        "template <class X> __device__ int bytes_of(const X &) { typename X::type t = 3; return X::bytes + (int)t; }",
        "template <class T> using Pair = Box<A<T>>;",
        "template <class F> __device__ int twice(F f, int x) { return f(f(x)); }",
        f"struct Add {{ int by; __device__ int operator()(int x) const {{ return x + by * {step}; }} }};",
    ]
    case.body += [
        "int i = in[0]; float f = 1.5f; A<int> ai{4}; A<long long> al{5}; short a[5] = {};"
    ]
    for _ in range(4):
        case.out(f"Is<{draw.choice(types)}{draw.choice(['', ', 2', ', 5'])}>::v")
    case.out(f"Sum<{draw.randint(0, 9)}>::v * 100 + length(a)")
    for _ in range(3):
        case.out(f"kind({draw.choice(['i', 'f', '&i', 'ai', 'al', 'in', '&ai', 'a[1]', '2.5f'])})")
    case.out(f"scale<{draw.randint(1, 5)}>(i) + scale<2>(i, {draw.randint(1, 9)})")
    case.out(f"pick<{draw.choice(['true', 'false'])}>(i, in[{draw.randrange(8)}])")
    narrow = draw.choice(["unsigned char", "short", "int", "long long"])
    case.body.append(
        f"Box<int> bi{{{draw.randint(-300, 300)}}}; Box<{narrow}> bn = bi.as<{narrow}>();"
    )
    case.out(f"(int)(bn + bn).v + (bn < {draw.randint(-5, 100)}) * 1000 + bytes_of(bn)")
    case.out("(int)sizeof(Pair<double>) + A<short>::size + twice(Add{i}, 1)")
    return case


# --- classes -------------------------------------------------------------------------------------


def classes(draw: Random) -> Case:
    """Layouts, bases, hidden functions, constructors, copies."""
    case = Case("classes")
    fields = []
    types = (
        "char",
        "short",
        "int",
        "long long",
        "float",
        "double",
        "bool",
        "In",
        "In[2]",
        "char[3]",
    )
    for number in range(draw.randint(2, 6)):
        type, _, rest = draw.choice(types).partition("[")
        fields.append(f"{type} f{number}{'[' + rest if rest else ''};")
    first, second = draw.randint(1, 9), draw.randint(1, 9)
    case.declarations += [
        f"struct In {{ {draw.choice(['char c; short s;', 'int i; char c;', 'long long l; char c;'])} }};",
        f"struct {draw.choice(['', 'alignas(16) '])}L {{ {' '.join(fields)} }};",
        f"struct P {{ int x; int p = {first}; __device__ int who() const {{ return x + 1; }}",
        "    __device__ int ask() { return who() * 10 + this->who(); } };",
        "struct Q { int y, z; __device__ Q(int a, int b = 2) : y(a), z(b) {}",
        "    __device__ int who() const { return y * 2 + z; } __device__ Q &up(int by) { z += by; return *this; } };",
        f"struct R : P, Q {{ int w; __device__ R(int a) : Q(a + {second}), w(Q::y * 2) {{ x = a; }}",
        "    __device__ int who() const { return P::who() + Q::who() * 100; }",
        "    __device__ explicit operator int() const { return w; }",
        "    __device__ bool operator==(const R &o) const { return w == o.w && z == o.z; } };",
        "__device__ int through(const Q *q) { return q->z; }",
        "__device__ int changed(Q &q) { q.up(3).y++; return q.who(); }",
        "__device__ int copied(Q q) { q.up(100); return q.who(); }",
        "__device__ R made(int a) { R r(a); r.z = a * 3; return r; }",
    ]
    case.out("(int)sizeof(L) * 100 + (int)alignof(L)")
    case.out("(int)(sizeof(In) * 1000 + sizeof(L[3]) + sizeof(R))")
    case.body += [
        f"R r(in[{draw.randrange(3)}]), s = r, *t = &r; Q &q = r; Q *u = &s; R k[2] = {{R(1), R(2)}};"
    ]
    steps = [
        "through(&r)", "changed(r)", "copied(s)", "r.who()", "q.who()", "t->Q::who()", "u->who()",
        "r.ask()", "static_cast<R *>(u)->w + static_cast<R &>(q).x", "(int)r", "r == s",
        "made(in[0]).z + made(1).who()", "(k[1].up(2), k[1].z * 10 + k[0].z)", "through(k + 1)",
        "changed(k[in[0] & 1])", "(r = k[0], r.z + r.w)", "(q = Q(4, 5), r.y * 10 + r.z)",
        "(*u = q, s.y + s.z)", "t->p + k[1].p", "(u = k, u->z)",
    ]  # fmt: skip
    for one in draw.sample(steps, 9):
        case.out(one)
    return case


THEMES: tuple[Callable[[Random], Case], ...] = (order, conversions, overloads, templates, classes)


def drawn(seed: int) -> Case:
    """The case of a seed."""
    return THEMES[seed % len(THEMES)](Random(seed))
