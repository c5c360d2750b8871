"""Structs, unions, classes, enums and namespaces of CUDA C++."""

from __future__ import annotations

import struct

import numpy as np

import treadle as td
from tests.support.cpp_host import doubles_if_any


def check(device, source, kernel, expected, inputs=(0,)):
    out = td.zeros(len(expected) + 1, dtype=td.int32, device=device)
    values = td.asarray(np.array(inputs, np.int32), device=device)
    td.cuda_module(source).kernel(kernel)[1, 1](values, out)
    assert out.tolist() == [*expected, 0]


def bits(value: float) -> int:
    return struct.unpack("<i", struct.pack("<f", value))[0]


VALUES = """
struct Point { int x, y; };
struct Box { Point low; Point high; int tag; };
struct Line { int count; int cells[4]; Point ends[2]; };
struct Grid { short rows[2][3]; unsigned char flag; Line line; };
struct Defaults { int a = 5; int b = a * 2; Point p = {7, 8}; int c[3] = {1, 2}; bool on = true; };
typedef struct { int first; float second; } Pair;
typedef struct Node { int value; int next; } Node;

__device__ Point make(int x, int y) { Point p; p.x = x; p.y = y; return p; }
__device__ Point swapped(Point p) { int t = p.x; p.x = p.y; p.y = t; return p; }
__device__ Box grown(Box b, int by)
{
    if (by == 0)
        return b;
    b.low.x -= by;
    b.high = make(b.high.x + by, b.high.y + by);
    return b;
}
__device__ void move(Point *p, const Point &by) { p->x += by.x; p->y += by.y; }
__device__ void reset(Box &b) { b = Box{}; b.tag = -1; }
__device__ int area(const Box &b) { return (b.high.x - b.low.x) * (b.high.y - b.low.y); }
__device__ Line lined(int n) { Line l = {n}; for (int i = 0; i < n; i++) l.cells[i] = i * i;
return l; }
__device__ int total(Line l) { l.count++; int s = 0; for (int c : l.cells) s += c;
return s * 10 + l.count; }

__global__ void values(const int *in, int *out)
{
    int k = 0, n = in[0];                                     // 3
    Point p = {n, 4}, q = p;
    q.x = 10;
    out[k++] = p.x * 100 + q.x + q.y;                         // 314
    p = swapped(q);
    out[k++] = p.x * 100 + p.y + q.x;                         // 420
    Box b = {{1, 2}, {n, 6}, 9};
    out[k++] = area(b) + b.tag;                               // 17
    Box c = grown(b, n - 2);
    out[k++] = c.low.x * 1000 + c.high.x * 100 + c.high.y * 10 + b.high.x;   // 0 4 7 3
    out[k++] = grown(b, 0).high.y;                            // 6
    move(&b.low, p);
    out[k++] = b.low.x * 100 + b.low.y;                       // 5 12
    move(&b.high, b.low);
    out[k++] = b.high.x * 100 + b.high.y;                     // 8 18
    reset(b);
    out[k++] = b.low.x + b.high.y + b.tag;                    // -1
    Point flat[2] = {1, 2, 3, 4};
    Point partly[3] = {{1}, {2, 3}};
    out[k++] = flat[1].x * 10 + flat[0].y + partly[0].y + partly[1].y + partly[2].x;   // 35
    Point named = {.x = 5, .y = n};
    Box inner = {.low = {.x = 1}, .tag = 4};
    out[k++] = named.x * 100 + named.y * 10 + inner.low.y + inner.tag + inner.high.x;  // 534
    Defaults d;
    out[k++] = d.a + d.b + d.p.x + d.p.y + d.c[1] + d.c[2] + d.on;                     // 33
    Defaults e{1};
    out[k++] = e.a * 100 + e.b;                               // 102
    Line l = lined(n);
    out[k++] = l.count * 100 + l.cells[2] * 10 + l.cells[3] + l.ends[1].y;             // 340
    out[k++] = total(l) * 10 + l.count;                       // 543: a copy was changed
    Line m = l;
    m.cells[1] = 50;
    m.ends[1] = p;
    l.ends[0] = m.ends[1];
    out[k++] = l.cells[1] * 1000 + m.cells[1] * 10 + l.ends[0].x;                      // 1504
    Grid g = {{{1, 2, 3}, {4, 5, 6}}, 255, l};
    g.rows[1][n - 1] += g.rows[0][1];
    g.flag += 2;
    out[k++] = g.rows[1][2] * 100 + g.flag * 10 + g.line.ends[0].y % 10;               // 810
    Grid h = g, all[2] = {g, h};
    all[1].line.cells[n] = 77;
    all[0] = all[1];
    out[k++] = all[0].line.cells[3] + h.line.cells[3] + (int)sizeof(Grid);   // 77 + 0 + 52
    Pair pair = {n, 2.5f};
    auto twin = pair;
    twin.second *= 2;
    out[k++] = twin.first + twin.second + pair.second * 2;    // 13
    Node nodes[3] = {{5, 2}, {6, -1}, {7, 1}};
    int sum = 0;
    for (int at = 0; at >= 0; at = nodes[at].next) sum = sum * 10 + nodes[at].value;
    out[k++] = sum;                                           // 576
    Point *last = &flat[1];
    last->x = 9;
    (*last).y++;
    --last;
    last->y += flat[1].x;
    out[k++] = flat[0].y * 100 + flat[1].x * 10 + flat[1].y;  // 11 9 5
    out[k++] = (n > 2 ? p : q).x;                             // 4
    struct Local { int a; __device__ int twice() { return a * 2; } } local = {21};
    out[k++] = local.twice();
    out[k++] = make(n, n).x + Point{1, 2}.y + Point({5, 6}).x;   // 10
    int *cells = l.cells;
    cells[2] = 5;
    *(cells + 1) = l.cells[2] + 1;
    out[k++] = l.cells[1] * 10 + l.cells[2];                  // 65
    Point empty{}, also = {};
    out[k++] = empty.x + also.y;
    p.x = p.y = 3;
    p = {p.y + 1, p.x + 2};
    out[k++] = p.x * 10 + p.y;                                // 45
    const struct { int w, h; } size = {4, 5};
    out[k++] = size.w * size.h;
}
"""


def test_values(device):
    expected = [
        314, 420, 17, 473, 6, 512, 818, -1, 35, 534, 33, 102, 340, 543, 1504, 810, 129, 13, 576,
        1195, 4, 42, 10, 65, 0, 45, 20,
    ]  # fmt: skip
    check(device, VALUES, "values", expected, [3])


ARRAYS = """
struct __align__(16) Body { float3 at; float mass; int links[2][2]; };
struct Cell { unsigned char kind; short weight; int count; };
struct Settings { float scale; int2 shift; Cell cell; float table[3]; };

__global__ void update(Body *bodies, Cell *cells, int n, Settings settings, Cell extra)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __shared__ Body held[4];
    held[threadIdx.x] = bodies[i];
    __syncthreads();
    Body *b = &held[threadIdx.x ^ 1];
    b->at.y += settings.scale;
    b->links[1][0] = b->links[0][1] + settings.shift.y;
    __syncthreads();
    Body copy = held[threadIdx.x];
    copy.mass *= settings.table[i % 3];
    bodies[i] = copy;
    bodies[i].at.x = -bodies[i].at.x;
    Cell *c = cells + i;
    c->weight = c->weight * 2 + settings.cell.weight;
    c->kind = settings.cell.kind + i;
    (*c).count += extra.count;
    if (i == 3) {
        cells[i] = extra;
        Cell &first = cells[0];
        first.count = -first.count;
        int *count = &cells[1].count;
        *count = 1000;
    }
}
"""


def test_arrays_of_structs(device):
    body = np.dtype(
        {
            "names": ["at", "mass", "links"],
            "formats": [("<f4", 3), "<f4", ("<i4", (2, 2))],
            "offsets": [0, 12, 16],
            "itemsize": 32,
        }
    )
    cell = np.dtype(
        {
            "names": ["kind", "weight", "count"],
            "formats": ["u1", "<i2", "<i4"],
            "offsets": [0, 2, 4],
            "itemsize": 8,
        }
    )
    bodies, cells = np.zeros(4, body), np.zeros(4, cell)
    bodies["at"] = np.arange(12).reshape(4, 3)
    bodies["mass"] = [1, 2, 3, 4]
    bodies["links"] = np.arange(16).reshape(4, 2, 2)
    cells["weight"] = [1, -2, 30000, 4]
    cells["count"] = [5, 6, 7, 8]
    settings = {
        "scale": 0.5, "shift": (1, 100), "cell": (250, 3, 0), "table": (2.0, 4.0, 8.0),
    }  # fmt: skip
    was, had = bodies.copy(), cells.copy()
    with td.use_device(device):
        td.cuda_module(ARRAYS).update[1, 4](bodies, cells, 4, settings, (7, 8, 9))
    at = was["at"] * [-1, 1, 1] + [0, 0.5, 0]
    np.testing.assert_array_equal(bodies["at"], at)
    np.testing.assert_array_equal(bodies["mass"], was["mass"] * [2, 4, 8, 2])
    links = was["links"].copy()
    links[:, 1, 0] = links[:, 0, 1] + 100
    np.testing.assert_array_equal(bodies["links"], links)
    assert cells["kind"].tolist() == [250, 251, 252, 7]
    weights = (had["weight"].astype(np.int64) * 2 + 3).astype(np.int16)
    assert cells["weight"].tolist() == [*weights[:3].tolist(), 8]
    assert cells["count"].tolist() == [-14, 1000, 16, 9]


UNIONS = """
union Bits { float f; int i; unsigned u; };
union Vec { float4 v; float a[4]; struct { float x, y, z, w; }; };
union Bytes { unsigned word; unsigned char b[4]; short s[2]; };
struct Tagged { int kind; union { int number; float real; }; union Bits bits; };

__device__ int as_int(float x) { Bits b; b.f = x; return b.i; }

__global__ void unions(const int *in, int *out)
{
    int k = 0, n = in[0];                                    // 3
    Bits b;
    b.f = 1.0f;
    out[k++] = b.i;
    b.u |= 0x80000000u;
    out[k++] = b.f * 10;                                     // -10
    out[k++] = as_int(n * 0.5f);
    Bits c = {2.5f}, d = c;
    d.i++;
    out[k++] = c.i == d.i - 1 && c.f < d.f;
    Vec v;
    v.v = make_float4(1, 2, n, 4);
    v.a[1] = 20;
    v.w = v.a[2] + 5;
    out[k++] = v.v.x + v.v.y + v.v.z + v.v.w;                // 32
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += v.a[i] * (i + 1);
    out[k++] = sum;                                          // 1 + 40 + 9 + 32
    Bytes bytes;
    bytes.word = 0x01020304;
    out[k++] = bytes.b[0] * 1000 + bytes.b[n];               // 4001
    bytes.s[1] = -1;
    out[k++] = bytes.word;
    bytes.b[n - 1] ^= 0xf0;
    out[k++] = bytes.word;
    Tagged t = {1, {5}, {0.5f}};
    out[k++] = t.number + t.bits.i;
    t.real = 2.0f;
    t.kind = t.number >> 23;
    out[k++] = t.kind;                                       // 128
    Tagged other = t, many[2];
    other.number = 0;
    many[1] = t;
    many[0] = other;
    out[k++] = (t.real + many[1].real) * 10 + many[0].number;   // 40
    float x = 3.0f;
    out[k++] = *(int *)&x;
    *reinterpret_cast<unsigned *>(&x) ^= 0x80000000u;
    out[k++] = x;                                            // -3
    out[k++] = reinterpret_cast<int &>(x) < 0;
    int word = 0x3f800000;
    out[k++] = *(float *)&word + 1;                          // 2
    out[k++] = __float_as_int(__int_as_float(word) * 2);
    unsigned char *raw = (unsigned char *)&word;
    out[k++] = raw[3] * 256 + raw[2];                        // 0x3f80
    float pairs[2] = {1, 2};
    int *view = (int *)pairs;
    view[1] = view[0];
    out[k++] = pairs[1] * 10;                                // 10
}
"""


def test_unions_and_bits(device):
    expected = [
        bits(1), -10, bits(1.5), 1, 32, 82, 4001, -64764, (0xFFFF0304 ^ 0xF00000) - 2**32,
        5 + bits(0.5), 128, 40, bits(3), -3, 1, 2, bits(2), 0x3F80, 10,
    ]  # fmt: skip
    check(device, UNIONS, "unions", expected, [3])


CLASSES = """
struct Complex {
    float re, im;
    __device__ Complex() : re(0), im(0) {}
    __device__ Complex(float r, float i = 0) : re(r), im(i) {}
    __device__ Complex operator+(const Complex &o) const { return Complex(re + o.re, im + o.im); }
    __device__ Complex operator-() const { return {-re, -im}; }
    __device__ Complex &operator*=(float s) { re *= s; im *= s; return *this; }
    __device__ Complex &operator++() { ++re; return *this; }
    __device__ Complex operator++(int) { Complex old = *this; re += 10; return old; }
    __device__ bool operator==(const Complex &o) const { return re == o.re && im == o.im; }
    __device__ float operator[](int i) const { return i ? im : re; }
    __device__ float operator()(float a, float b) const { return re * a + im * b; }
    __device__ explicit operator bool() const { return re != 0 || im != 0; }
    __device__ operator int() const { return (int)re; }
    __device__ float norm() const { return re * re + im * im; }
    __device__ static Complex unit() { return Complex(0, 1); }
    friend __device__ Complex operator*(const Complex &a, const Complex &b)
    {
        return Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    }
};
__device__ Complex operator*(float s, Complex c) { return c *= s; }
__device__ bool operator!=(const Complex &a, const Complex &b) { return !(a == b); }
inline __device__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
inline __device__ void operator+=(float2 &a, float s) { a.x += s; a.y += s; }

class Counter {
    int count;
    static const int STEP = 3;
    enum State { IDLE, BUSY = 4 };
    State state;

public:
    static constexpr int LIMIT = 10;
    struct Range { int low, high; };
    typedef int value_type;
    __device__ Counter(int start) { count = start; state = IDLE; }
    __device__ void step(int times = 1);
    __device__ int get() const { return count * 10 + state; }
    __device__ Range range() const { Range r = {count - 1, this->count + LIMIT}; return r; }
    __device__ Counter &twice() { step(); step(2); return *this; }
    __device__ int &value() { return count; }
};
__device__ void Counter::step(int times) { count += STEP * times; state = count > 5 ? BUSY : IDLE; }

struct Base { int id; __device__ int doubled() const { return id * 2; }
__device__ int name() { return 1; } };
struct Middle : public Base { int more; __device__ int name() { return 2 + Base::name(); } };
struct Derived : Middle {
    int last;
    __device__ Derived(int i) : last(i * 3) { id = i; more = doubled() + 1; }
    __device__ int sum() { return id + more + last + name(); }
};
__device__ int of_base(const Base &b) { return b.id + b.doubled(); }
__device__ void rename(Base *b) { b->id = 100; }

struct Point2 { int x, y; };
struct Stack {
    int items[8];
    int size = 0;
    __device__ void push(int x) { items[size++] = x; }
    __device__ int pop() { return items[--size]; }
    __device__ bool empty() const { return !size; }
    __device__ int &top() { return items[size - 1]; }
};

struct Seven { int x; __device__ Seven() { x = 7; } };
struct Parts : Seven {
    Seven inner, several[2];
    int y = x + 1;
    __device__ Parts(int more, Point2 p = {1, 2}) { y += more + p.y; }
};
struct Plain { Seven one; int z = 4; };
__device__ int both(Point2 p, int a) { return p.x * 10 + p.y + a; }

__global__ void classes(const int *in, int *out)
{
    int k = 0, n = in[0];                                    // 3
    Complex a(n, 4), b = a + Complex(1), c;
    out[k++] = b.re * 10 + b.im + c.re;                      // 44
    out[k++] = a.norm() + (-a).re;                           // 22
    a *= 2;
    (a *= 2) *= 0.5f;
    out[k++] = a[0] * 100 + a[1];                            // 608
    c = 2.0f * a * Complex::unit();
    out[k++] = c.re * 100 + c.im;                            // -16 * 100 + 12
    out[k++] = (a == b) * 2 + (a != b);                      // 1
    ++a;
    Complex was = a++;
    out[k++] = was.re * 100 + a.re;                          // 7 17
    out[k++] = a(1, 2);                                      // 17 + 16
    if (a) out[k++] = 1; else out[k++] = 0;
    int whole = a;
    out[k++] = whole;                                        // 17
    out[k++] = !Complex() ? 5 : 6;
    Complex list[3] = {Complex(1, 1), {2, 2}, 3.0f};
    out[k++] = list[0].re + list[1].im * 10 + list[2].re * 100;   // 321
    float2 f = make_float2(1, 2) + make_float2(n, n);
    f += 0.5f;
    out[k++] = f.x * 10 + f.y * 10;                          // 45 + 55
    Counter counter(n);
    out[k++] = counter.get();                                // 30
    counter.step();
    out[k++] = counter.get();                                // 64
    counter.twice().twice();
    out[k++] = counter.get() + Counter::LIMIT;               // 24 -> 244 + 10
    Counter::Range range = counter.range();
    counter.value() -= 20;
    Counter::value_type got = counter.get();
    out[k++] = range.high * 1000 + range.low * 10 + got;     // 34000 + 230 + 44
    Derived d(n);
    out[k++] = d.sum() + of_base(d);                         // 3 + 7 + 9 + 3 + 9
    rename(&d);
    out[k++] = d.id + d.name();                              // 103
    Stack stack;
    for (int i = 0; i < 5; i++) stack.push(i * i);
    stack.top() += 100;
    int popped = stack.pop() * 10 + stack.pop();
    out[k++] = popped + stack.size + stack.empty();          // 1160 + 9 + 3
    Stack copy = stack;
    while (!copy.empty()) copy.pop();
    out[k++] = copy.size * 10 + stack.size;                  // 3
    Parts parts(n), others(n, {5, 6});
    out[k++] = parts.x + parts.inner.x + parts.several[1].x;  // 21
    out[k++] = parts.y * 100 + others.y;                     // 13 17
    Plain plain, again{}, given = {{}, 5};
    out[k++] = plain.one.x + plain.z + again.one.x + again.z + given.one.x + given.z;   // 34
    out[k++] = both({n, 4}, 100);                            // 134
    out[k++] = sizeof(Counter) + sizeof(Derived) + sizeof(Counter::Range);   // 8 + 12 + 8
}
"""


def test_classes(device):
    expected = [
        44, 22, 608, -1588, 1, 717, 33, 1, 17, 5, 321, 100, 30, 64, 254, 34274, 31, 103, 1172, 3,
        21, 1317, 34, 134, 28,
    ]  # fmt: skip
    check(device, CLASSES, "classes", expected, [3])


NAMES = """
enum Flags { NONE = 0, READ = 1 << 0, WRITE = 1 << 1, ALL = READ | WRITE };
enum class Level : short { LOW = -1, MIDDLE, HIGH = 10 };
enum { WIDTH = 4, HEIGHT = WIDTH * 2 };
typedef unsigned int uint_type;
using Row = int[WIDTH];
typedef float3 Vec3;
namespace outer {
    const int SIZE = 7;
    enum Kind { A, B = 5 };
    struct Item { int v; __device__ int doubled() const { return v * SIZE; } };
    __device__ int f(int x) { return x + SIZE; }
    namespace inner {
        __device__ int f(int x) { return outer::f(x) * 2; }
        __device__ int g(int x) { return f(x) + SIZE; }
        __constant__ int table[2] = {11, 22};
    }
    inline namespace v1 { __device__ int h() { return 9; } }
}
namespace { __device__ int hidden(int x) { return -x; } }
namespace alias = outer::inner;
__device__ int f(int x) { return x; }
__device__ int SIZE = 1;
using outer::Item;

__device__ Flags both(Flags a, Flags b) { return (Flags)(a | b); }
__device__ int level(Level l) { return static_cast<int>(l); }
struct Holder { enum Mode { OFF, ON }; Mode mode; static const int COUNT = 3; using type = short; };

__global__ void names(const int *in, int *out)
{
    int k = 0, n = in[0];                                    // 3
    Flags flags = both(READ, WRITE);
    out[k++] = flags == ALL && flags & READ;
    flags = Flags(n - 2);
    out[k++] = flags + WRITE * 10;                           // 21
    out[k++] = level(Level::HIGH) * 10 + level(Level::MIDDLE) + (int)Level::LOW;   // 99
    Level l = (Level)n;
    out[k++] = l < Level::HIGH && l != Level::LOW;
    Row row = {1, 2, 3, 4};
    out[k++] = row[n] * sizeof(Row) + HEIGHT;                // 4 * 16 + 8
    uint_type big = -1;
    out[k++] = big > 0;
    Vec3 v = {1, 2, 3};
    out[k++] = v.x + v.z;
    out[k++] = f(n) * 1000 + outer::f(n) * 100 + ::f(1);     // 3000 + 1000 + 1
    out[k++] = outer::inner::g(n) + alias::f(1) + outer::h();   // 20 + 7, 16, 9
    out[k++] = hidden(n) + outer::inner::table[1] + alias::table[0];
    Item item = {n};
    out[k++] = item.doubled() + outer::B + SIZE + outer::SIZE;   // 21 + 5 + 1 + 7
    {
        using namespace outer;
        out[k++] = inner::f(0) + B;                          // 19
    }
    using outer::inner::g;
    out[k++] = g(1);                                         // 16 + 7
    Holder holder = {Holder::ON};
    Holder::type s = (Holder::type)70000;
    out[k++] = holder.mode * 10 + Holder::COUNT + (holder.mode == Holder::OFF);   // 13
    out[k++] = s;                                            // 4464
    outer::Kind kind = outer::A;
    kind = n > 2 ? outer::B : outer::A;
    switch (kind) { case outer::A: out[k++] = 0; break; case outer::B: out[k++] = 1; }
    int WIDTH = 100;
    out[k++] = WIDTH + ::WIDTH;
    Level levels[2] = {Level::LOW, Level::HIGH};
    out[k++] = (int)levels[n & 1] + (int)sizeof(levels);     // 14
    ++k; --k;
    static const float half_of[] = {0.5f, 1.5f};
    out[k++] = half_of[n - 2] * 10;                          // 15
}
"""


def test_enums_and_namespaces(device):
    expected = [
        1, 21, 99, 1, 72, 1, 4, 4001, 52, 30, 34, 19, 23, 13, 4464, 1, 104, 14, 15,
    ]  # fmt: skip
    check(device, NAMES, "names", expected, [3])


BASES = """
struct Base {
    int b;
    __device__ int get() const { return 1; }
    __device__ int twice() const { return 2 * get(); }
};
struct Derived : Base { __device__ int get() const { return 2 + b; } };
struct Marked {
    int v;
    __device__ Marked(int q) : v(q) {}
    __device__ Marked(const Marked &o) : v(o.v) {}
    __device__ Marked &operator=(const Marked &o) { v = o.v + 100; return *this; }
};
struct Same {
    int v[2];
    __device__ int at(int i) const { return v[i]; }
    __device__ int &at(int i) { return v[i]; }
};
struct Pair { Marked first, second; };
__device__ float &item(float4 &v, int i) { return reinterpret_cast<float *>(&v)[i]; }
__device__ float item(const float4 &v, int i) { return reinterpret_cast<const float *>(&v)[i]; }
__device__ int of_base(const Base &b) { return b.get(); }
template <class T> __device__ int of(const T &b) { return b.get(); }
__device__ Marked given(int q) { Marked m(q); if (q > 7) return m; Marked n(q + 1); return n; }

__global__ void bases(const int *in, int *out)
{
    Derived d;
    d.b = in[0];
    Base &r = d;
    const Derived &same = d;
    int k = 0;
    out[k++] = r.get();
    out[k++] = of_base(d);
    out[k++] = of<Base>(d);
    out[k++] = of(d);
    out[k++] = same.get();
    out[k++] = r.twice();
    r.b = 9;
    out[k++] = d.get();
    Marked a(in[0]);
    Marked copy = a;
    Marked two[2] = {a, copy};
    Pair pair = {a, copy};
    out[k++] = copy.v;
    out[k++] = two[0].v + two[1].v;
    out[k++] = pair.first.v + pair.second.v;
    copy = a;
    out[k++] = copy.v;
    two[1] = given(7);
    out[k++] = two[1].v;
    Marked made = given(8);
    out[k++] = made.v;
    Same s = {{in[0], 3}};
    s.at(1) = 4;
    const Same &c = s;
    out[k++] = c.at(0) + c.at(1);
    float4 v = make_float4(1, 2, 3, in[0]);
    item(v, 1) = 7;
    const float4 &w = v;
    out[k++] = item(w, 1) + item(v, 3);
}
"""


def test_references_to_bases_and_initialization(device):
    expected = [1, 1, 1, 7, 7, 2, 11, 5, 10, 10, 105, 108, 8, 9, 12]
    check(device, BASES, "bases", expected, [5])


MEMBER_CLASSES = """
template <int N> struct Outer {
    struct Inner { unsigned char data[N]; };
    template <class T> struct Deeper { T items[N]; };
};
__global__ void member_classes(int *x, const Outer<4>::Inner *y)
{
    __shared__ Outer<16>::Inner space;
    int *four = (int *)&space;
    four[1] = 6;
    x[0] = four[1] + y[0].data[1];
    x[1] = sizeof(Outer<16>::Inner) * 100 + sizeof(Outer<4>::Inner);
    x[2] = sizeof(Outer<3>::Deeper<short>) * 100 + sizeof(Outer<5>::Deeper<short>);
    Outer<2>::Deeper<int> two;
    Outer<3>::Deeper<int> three;
    three.items[2] = 5;
    two.items[1] = three.items[2] + 1;
    x[3] = two.items[1];
}
"""


def test_a_member_class_of_each_instance_of_a_template(device):
    """They share their text, not their fields: a smaller one was taken for a larger one before."""
    x = td.zeros(4, dtype=td.int32, device=device)
    y = td.full((4,), 3, dtype=td.uint8, device=device)
    td.cuda_module(MEMBER_CLASSES).member_classes[1, 1](x, y)
    assert x.tolist() == [9, 1604, 610, 6]


INCOMPLETE = """
class Impl;
template <class T> struct Table;
class Raster {
public:
    enum { Flag = 4 };
    Raster(void);
    Impl *impl() const { return m_impl; }
private:
    Impl *m_impl;
    Table<int> *m_table;
};
struct Part { int n; Impl *hidden; };
struct Whole {
    Part part;
    Impl *other;
    __device__ int total() const { return part.n + (part.hidden == nullptr ? 10 : 20); }
};
template <class T> __host__ __device__ T alpha(T x, T least = 255) { return least; }
template <> __host__ __device__ int alpha(int x, int least) { return x + least; }
template <> __host__ __device__ float alpha<float>(float x, float least) { return x; }
__device__ int pointed(const Impl *p, Impl &) { return p == nullptr; }
__global__ void incomplete(int *out, Whole whole, Impl *given)
{
    out[0] = Raster::Flag;
    out[1] = whole.total();
    out[2] = given == whole.other;
    out[3] = ((int *)given)[1];
    out[4] = alpha(out[3]);
    out[5] = alpha(1.0f) + alpha(1.0) + alpha(1, 2);
}
"""


def test_pointers_to_classes_without_definitions(device):
    out = td.zeros(6, dtype=td.int32, device=device)
    given = td.asarray([7, 8], dtype=td.int32, device=device)
    whole = {"part": {"n": 3, "hidden": None}, "other": None}
    with doubles_if_any(device):
        td.cuda_module(INCOMPLETE).incomplete[1, 1](out, whole, given)
        assert out.tolist() == [4, 13, 0, 8, 263, 259]


CHOSEN = """
struct Rows { int *rows[2]; int n; };
__global__ void chosen(Rows p, Rows r, int *out, int i)
{
    Rows q = i ? p : r;
    out[0] = q.n; q.n = 99; out[1] = p.n; out[2] = r.n;
    out[3] = q.rows[0][1]; out[4] = (i ? p : r).rows[1][0];
    Rows &z = i ? p : r;
    z.n += 5; out[5] = p.n; out[6] = r.n;
    q.rows[1][1] = 7;
}
"""


def test_one_of_two_structs_with_pointers(device):
    kernel = td.cuda_module(CHOSEN).chosen
    for i in (0, 1):
        rows = [td.arange(4, dtype=td.int32, device=device) + 10 * k for k in range(4)]
        rows = [each.realize() for each in rows]
        out = td.zeros(7, dtype=td.int32, device=device)
        kernel[1, 1]({"rows": rows[:2], "n": 3}, {"rows": rows[2:], "n": 4}, out, i)
        base = 0 if i else 20
        assert out.tolist() == [3 if i else 4, 3, 4, base + 1, base + 10, 3 + 5 * i, 9 - 5 * i]
        assert [each.tolist()[1] for each in rows] == ([1, 7, 21, 31] if i else [1, 11, 21, 7])
