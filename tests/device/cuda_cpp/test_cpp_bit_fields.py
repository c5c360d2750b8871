"""Bit fields and packed structs: their layout and values beside g++, also of drawn ones."""

from __future__ import annotations

import random

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_host import check, in_one_kernel
from treadle.core.errors import DtypeError

# Corner cases: comparisons that are always true, among others.
pytestmark = pytest.mark.filterwarnings("ignore::treadle.core.errors.CompileWarning")

FEATURES = {
    "values": (
        """
struct A { unsigned a : 3, b : 7; int c : 5; unsigned : 0; unsigned d : 12; bool e : 1; };
struct B { char x; int y : 20; short z; unsigned long long w : 40; unsigned char v : 3; };
struct C { unsigned char p : 4, q : 4; unsigned short r : 9; signed char s : 3; };
enum Color { red, green, blue, white };
struct E { Color c : 2; int : 3; unsigned n : 9; unsigned f : 32; long long g : 50;
unsigned a : 16, b : 16; };
union U { struct { unsigned lo : 8, mid : 16, hi : 8; } s; unsigned all;
struct { unsigned sign : 1; } t; };
struct F { int a = 3; unsigned b : 4; unsigned c : 4 = 9;
__device__ F() : b(7) {} __device__ int sum() const { return a + b + c; } };
struct H : A { int more : 6; };
struct P { int *p; unsigned n : 5, m : 6; };
template <int W> struct T { unsigned v : W; int rest : 32 - W; };
__device__ int byvalue(A a) { a.a++; return a.a * 100 + a.b; }
__device__ void byref(A &a) { a.b += 100; a.c = -3; }
__device__ unsigned cref(const unsigned &x) { return x * 2; }
__device__ A made(int n) { A a = {}; a.d = n; return a; }
        """,
        """
out[k++] = sizeof(A); out[k++] = sizeof(B); out[k++] = sizeof(C); out[k++] = sizeof(E);
out[k++] = sizeof(U); out[k++]=sizeof(F); out[k++]=sizeof(H); out[k++]=sizeof(T<5>);
out[k++]=sizeof(P);
out[k++] = alignof(A)*1000+alignof(B)*100+alignof(C)*10+alignof(E);
A a = {9, 200, 20, 5000, 7}; out[k++] = a.a; out[k++] = a.b; out[k++] = a.c; out[k++] = a.d;
out[k++] = a.e;
out[k++] = (a.a - 5 < 0) + 10 * (a.b > -1); out[k++] = -a.a; out[k++] = ~a.d;
a.c--; a.c *= 2; a.d ^= 0xfff; a.e = !a.e; out[k++] = a.c; out[k++] = a.d; out[k++] = a.e;
out[k++] = a.b++; out[k++] = ++a.b;
out[k++] = byvalue(a); byref(a); out[k++] = a.b * 100 + a.c; out[k++] = cref(a.d);
out[k++] = made(n + 40).d;
B b{'a', -70000 + n, 5, 0x123456789aull, 7}; out[k++] = b.x; out[k++] = b.y; out[k++] = b.z;
out[k++] = (int)(b.w >> 8); out[k++] = b.v; B b2 = b; b2.w += 1; b2.y = 1 << 18;
out[k++] = (int)b2.w; out[k++] = b2.y; out[k++]=b2.z;
C c{1, 15, 300, -3}; c.q -= 9; out[k++] = c.p * 1000 + c.q; out[k++] = c.r * 10 + c.s;
E e{blue, 300, 0xfffffff0u, -5, 70000, 9}; out[k++] = e.c; out[k++] = e.n; out[k++] = (int)e.f;
out[k++] = (int)e.g; out[k++] = e.a; e.c = white; e.a = n; out[k++] = e.c * 10 + e.a + e.b;
        """,
    ),
    "places": (
        """
union U { struct { unsigned lo : 8, mid : 16, hi : 8; } s; unsigned all;
struct { unsigned sign : 1; } t; };
struct A { unsigned a : 3, b : 7; int c : 5; unsigned : 0; unsigned d : 12; bool e : 1; };
struct F { int a = 3; unsigned b : 4; unsigned c : 4 = 9;
__device__ F() : b(7) {} __device__ int sum() const { return a + b + c; } };
struct H : A { int more : 6; };
struct P { int *p; unsigned n : 5, m : 6; };
template <int W> struct T { unsigned v : W; int rest : 32 - W; };
struct N { char c; A a[3]; union { unsigned raw; struct { unsigned x : 4, y : 28; }; }; };
struct V { union { unsigned all; struct { unsigned short lo : 16; unsigned short hi : 16; } h;
}; };
union W { unsigned a : 5; int b : 30; unsigned all; };
__constant__ A table[2] = {{1, 2, 3, 4, 1}, {5, 6, -7, 8, 0}};
        """,
        """
U u; u.all = 0x12345678; out[k++] = u.s.lo; out[k++] = u.s.mid; out[k++] = u.s.hi;
u.s.mid = 0xabcd; u.t.sign = 1; out[k++] = u.all;
F f; out[k++] = f.sum(); F g = f; g.b = 15; out[k++] = g.sum(); f = g; out[k++] = f.b;
H h; h.a = 5; h.more = -9; h.d = 77; out[k++] = h.more * 100 + h.d; A sl = h; out[k++] = sl.a;
A &hr = h; hr.d = 11; out[k++] = h.d;
int z = 6; P p = {&z, 33, 60}; p.m -= 1; *p.p += p.n; out[k++] = z * 100 + p.m; P p2 = p;
p2.n = 9; out[k++] = p.n + p2.n * 100;
T<5> t{40, -3}; out[k++] = t.v * 10 + t.rest; T<20> t2{1 << 20, 5};
out[k++] = t2.v * 10 + t2.rest;
N nn = {}; for (int i = 0; i < n; i++) { nn.a[i].b = i * 50; nn.a[i].c = -i;
} out[k++] = nn.a[2].b * 10 + nn.a[n-1].c; nn.raw = 0x87654321; out[k++] = nn.x;
out[k++] = nn.y; nn.x = 7; out[k++] = nn.raw;
V v; v.all = 0x00050003; v.h.hi += 2; out[k++] = v.all; W w; w.all = 0xffffffff; w.a = 3;
out[k++] = w.all; out[k++] = w.b; w.b = -2; out[k++] = w.all;
out[k++] = table[n - 2].c * 10 + table[0].d; auto x = nn.a[1].b; out[k++] = x - 100 < 0;
A arr[4] = {{1}, {2, 3}, {.d = 9}}; A *q = arr; q++; q->b = 44; (q + 1)->a = 3;
out[k++] = arr[1].b * 100 + arr[2].a * 10 + arr[2].d; A &r = n > 2 ? arr[0] : arr[1]; r.c = 7;
out[k++] = arr[0].c;
unsigned char *bytes = (unsigned char *)&arr[1]; out[k++] = bytes[0]; out[k++] = bytes[1];
*(unsigned *)q = 0x55; out[k++] = arr[1].a * 100 + arr[1].b;
auto [m1, m2, m3, m4, m5] = arr[1]; out[k++] = m1 + m2 * 10;
out[k++] = (n > 2 ? arr[1].a : arr[0].b) + (arr[0].a, arr[1].b);
        """,
    ),
}


@pytest.mark.parametrize("name", FEATURES)
def test_bit_fields(name, device):
    check(in_one_kernel([FEATURES[name]]), device, 3)


_TYPES = {
    "char": 8, "unsigned char": 8, "short": 16, "unsigned short": 16, "int": 32, "unsigned": 32,
    "long long": 64, "unsigned long long": 64, "bool": 1, "float": 0, "double": 0,
}  # fmt: skip


def _drawn(rng: random.Random, name: str) -> tuple[str, str]:
    """A struct, and statements that write a hash of what its members and bytes are."""
    members, steps = [], []
    for at in range(rng.randint(1, 7)):
        type = rng.choice(list(_TYPES))
        most = _TYPES[type]
        if most > 1 and rng.random() < 0.15:
            members.append(f"{type} : {rng.randint(0, most)};")
            continue
        width = f" : {rng.randint(1, most)}" if most and rng.random() < 0.7 else ""
        members.append(f"{type} m{at}{width};")
        one = f"x.m{at}"
        steps.append(f"{one} = ({type}){rng.randint(-(2**31), 2**31)}; h = h * 31 + (int){one};")
        if type != "bool":
            steps.append(f"{one} += n;")
        steps.append(f"h = h * 31 + ({one} - 5 < 0) + ({one} > -1) * 2 + (int){one};")
    members.append("int last;")
    packed = rng.choice(["", "", "__attribute__((packed)) ", "pragma"])
    body = f"{name} {{ {' '.join(members)} }};"
    kind = "union" if not packed and rng.random() < 0.3 else "struct"
    declared = f"{kind} {packed}{body}"
    if packed == "pragma":
        most = rng.choice([1, 2, 4])
        declared = f"#pragma pack(push, {most})\nstruct {body}\n#pragma pack(pop)"
    clear = "for (int i = 0; i < (int)sizeof {0}; i++) ((unsigned char *)&{0})[i] = 0;"
    inside = f"""{{
        int h = 0;
        {name} x, y, *p = &y;
        {clear.format("x")} {clear.format("y")}
        {" ".join(steps)}
        x.last = n;
        y = x;
        for (int i = 0; i < (int)sizeof y; i++) h = h * 31 + ((unsigned char *)p)[i];
        out[k++] = sizeof({name}) * 1000 + alignof({name}) * 100;
        out[k++] = h;
    }}"""
    return declared, inside


def test_drawn_structs_are_as_gplusplus_has_them(device):
    if device.kind != "cpu":
        return  # the same IR
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    drawn = [_drawn(rng, f"S{at}") for at in range(32)]
    before = "\n".join(one for one, _ in drawn)
    inside = "\n".join(one for _, one in drawn)
    kernel = "__global__ void kernel(const int *in, int *out)"
    print(f"seed {seed}")
    check(f"{before}\n{kernel} {{ int k = 0, n = in[0];\n{inside}\n}}", device, 3)


RECORDS = """
struct R { unsigned a : 4, b : 12; short c; };
__global__ void records(R *x, R y)
{
    x[0].b += y.a;
    x[1] = y;
}
"""


def test_records_of_numpy_have_the_words(device):
    dtype = np.dtype([("bits", "<u2"), ("c", "<i2")])
    x = td.asarray(np.array([(0x1235, 7), (0, 0)], dtype), device=device)
    td.cuda_module(RECORDS).records[1, 1](x, np.array((0x0ABF, -3), dtype)[()])
    assert np.asarray(x).tolist() == [(0x1325, 7), (0x0ABF, -3)]


ROOM = """
struct __align__(16) Point { float x, y, z; };
struct Apart { char c; __align__(8) float f; short s; };
struct Bits { short id; unsigned a : 3, b : 5; float m; char tail; };
__global__ void points(Point *p, float *out)
{
    out[0] = sizeof(Point);
    out[1] = p[1].z;
    p[1].y = 7;
}
__global__ void parts(Apart *p, float *out) { out[0] = sizeof(Apart); out[1] = p[1].f + p[1].s; }
__global__ void words(Bits *p, float *out)
{
    out[0] = sizeof(Bits);
    out[1] = p[1].b + p[1].id;
    p[1].a = 6;
}
"""


def test_records_of_numpy_need_no_fields_for_room(device):
    module = td.cuda_module(ROOM)
    out = td.zeros(2, device=device)

    def run(kernel, names, formats, offsets, rows, size=16):
        layout = {"names": names, "formats": formats, "offsets": offsets, "itemsize": size}
        array = td.asarray(np.array(rows, np.dtype(layout)), device=device)
        getattr(module, kernel)[1, 1](array, out)
        assert out.tolist()[0] == size
        return out.tolist()[1], np.asarray(array)[1].tolist()

    rows = [(1, 2, 3), (4, 5, 6)]
    assert run("points", ["x", "y", "z"], ["f4"] * 3, [0, 4, 8], rows) == (6, (4, 7, 6))
    four = ["x", "y", "z", "unused"]
    found = run("points", four, ["f4"] * 3 + ["u4"], [0, 4, 8, 12], [(1, 2, 3, 4), (4, 5, 6, 9)])
    assert found == (6, (4, 7, 6, 9))
    assert run("parts", ["c", "f", "s"], ["i1", "f4", "i2"], [0, 8, 12], rows) == (11, (4, 5, 6))
    rows = [(0, 0, 0, 0), (40, 0x2D, 1.5, 3)]
    for word, size in (("bits", "u2"), ("unused", "u2"), ("low", "u1")):
        names, formats = ["id", word, "m", "tail"], ["i2", size, "f4", "i1"]
        found = run("words", names, formats, [0, 2, 4, 8], rows, 12)
        assert found == (0x2D // 8 + 40, (40, 0x2E, 1.5, 3))


def test_records_without_the_layout():
    module = td.cuda_module(ROOM)
    out = td.zeros(2, device="cpu")
    for names, formats, offsets, said in (
        (["id", "bits", "m", "tail"], ["i2", "f2", "f4", "i1"], [0, 2, 4, 8], "field, bits"),
        (["id", "m", "tail"], ["i2", "f4", "i1"], [0, 4, 9], "field tail .* begins at byte 9"),
        (["id", "bits", "m"], ["i2", "u2", "f4"], [0, 2, 4], "have no field tail"),
        (["id", "m", "tail"], ["i2", "f4", "i1"], [0, 2, 8], "at a multiple of its alignment"),
    ):
        layout = {"names": names, "formats": formats, "offsets": offsets, "itemsize": 12}
        with pytest.raises(DtypeError, match=said) as caught:
            module.words[1, 1](np.zeros(2, np.dtype(layout)), out)
        assert "align=True" in str(caught.value)
