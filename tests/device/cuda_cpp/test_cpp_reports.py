"""What CUDA C++ kernels say: printf, assert, traps and clocks."""

from __future__ import annotations

import re

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_host import doubles_if_any
from treadle.core.errors import CompileError, LaunchError

PRINTING = td.cuda_module(r"""
#include <stdio.h>
enum Color { RED, GREEN = 7 };
struct Point { float x; short y; };

__device__ int helper(const char *, int value)
{
    printf("<%d>", value);
    return value + 1;
}

template <typename T> __device__ void show(T a, T b) { printf("[%g %g]\n", (double)a, (double)b); }

__global__ void integers(const int *x)
{
    if (threadIdx.x != 0)
        return;
    int a = x[0], b = x[1];
    unsigned u = x[1];
    printf("%d %i|%5d|%-5d|%05d|%+d|% d\n", a, b, a, a, a, a, a);
    printf("%u %x %X %#x %o %#o\n", u, u, u, a, a, a);
    printf("%c%c %hhd %hd %hu\n", a + 23, 'z', (char)x[2], (short)x[2], (unsigned short)x[2]);
    long long wide = (long long)x[2] << 32;
    printf("%lld %llu %llx ", wide, (unsigned long long)wide, wide);
    printf("%ld %zu\n", (long)b, sizeof(Point));
    printf("%.3d|%*d|%-*d|%.*d\n", a, 6, a, 6, b, 4, a);
    printf("%d %d %d\n", (bool)a, GREEN, a > b);
    printf("100%% of %s, %5s|%-4s|%.2s\n", "it", "ab", "c", "xyz");
    for (int k = 0; k < 3; k++)
        printf("%s %d %s\n", k == 1 ? "one" : "some", k, k ? k > 1 ? "two" : "odd" : "none");
}

__global__ void floats(const float *x)
{
    if (threadIdx.x != 2)
        return;
    printf("%f %.2f %10.3f|%-8.1f|%+.0f\n", x[0], x[0], x[0], x[0], x[0]);
    printf("%e %.2E %g %G %a\n", x[1], x[1], x[0], x[1], x[0]);
    printf("%f %f %F %5.1f\n", x[2], -x[2], x[3], x[2]);
    Point p = {x[0], -3};
    printf("(%f, %d) %*.*f\n", p.x, p.y, 8, 2, p.x);
    show(x[0], 2 * x[0]);
    show(x[0], 1.0f);
    printf("no newline");
    printf("");
    printf(", and its end\n");
}

__global__ void threads(int *out)
{
    for (int k = 0; k < 2; k++)
        if (threadIdx.x % 2 == 0)
            printf("%d.%d.%d\n", blockIdx.x, threadIdx.x, k);
    out[threadIdx.x] = helper("unused", threadIdx.x) + printf("; %d %d\n", 1, 2);
}
""")


def test_integers(device, capfd):
    x = td.asarray(np.array([42, -7, 300], np.int32), device=device)
    PRINTING.integers[1, 3](x)
    wide = 300 << 32
    assert capfd.readouterr().out.splitlines() == [
        "42 -7|   42|42   |00042|+42| 42",
        "4294967289 fffffff9 FFFFFFF9 0x2a 52 052",
        "Az 44 300 300",
        f"{wide} {wide} {wide:x} -7 8",
        "042|    42|-7    |0042",
        "1 7 1",
        "100% of it,    ab|c   |xy",
        "some 0 none",
        "one 1 odd",
        "some 2 two",
    ]


def test_floats(device, capfd):
    x = td.asarray(np.array([2.5, 12345678.0, np.inf, np.nan], np.float32), device=device)
    PRINTING.floats[1, 4](x)
    assert capfd.readouterr().out.splitlines() == [
        "2.500000 2.50      2.500|2.5     |+2",
        "1.234568e+07 1.23E+07 2.5 1.23457E+07 0x1.4p+1",
        "inf -inf NAN   inf",
        "(2.500000, -3)     2.50",
        "[2.5 5]",
        "[2.5 1]",
        "no newline, and its end",
    ]


def test_many_threads(device, capfd):
    out = td.zeros(5, dtype=td.int32, device=device)
    PRINTING.threads[3, 5](out)
    printed = capfd.readouterr().out
    assert out.tolist() == [i + 1 + 2 for i in range(5)]
    lines = re.findall(r"\d\.\d\.\d\n", printed)
    assert sorted(lines) == [f"{b}.{t}.{k}\n" for b in range(3) for t in (0, 2, 4) for k in (0, 1)]
    for b in range(3):  # a thread's lines come in its order
        for t in (0, 2, 4):
            assert printed.index(f"{b}.{t}.0\n") < printed.index(f"{b}.{t}.1\n")
    assert sorted(re.findall(r"<(\d)>", printed)) == sorted("01234" * 3)
    assert printed.count("; 1 2\n") == 15


ASSERTING = r"""
#include <cassert>
__device__ float root(float x)
{
    assert(x >= 0 && "roots of negative numbers");
    return sqrtf(x);
}

__global__ void roots(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    assert(i < 64);
    out[i] = root(x[i]);
}

__global__ void stops(int *out)
{
    out[threadIdx.x] = 1;
    if (threadIdx.x == 3)
        __trap();
    out[threadIdx.x] = 2;
}
"""
CHECKED = td.cuda_module(ASSERTING)


def test_assertions(device):
    x = np.arange(10, dtype=np.float32) ** 2
    out = td.zeros(10, device=device)
    CHECKED.roots[2, 6](td.asarray(x, device=device), out, 10)
    assert out.tolist() == list(range(10))
    x[8] = -1
    with pytest.raises(LaunchError) as caught:
        CHECKED.roots[2, 6](td.asarray(x, device=device), out, 10)
    message = str(caught.value)
    assert "<cuda source>:5: root: block: [1, 0, 0], thread: [2, 0, 0]" in message
    assert 'Assertion `x >= 0 && "roots of negative numbers"` failed' in message
    x[8] = 64
    CHECKED.roots[2, 6](td.asarray(x, device=device), out, 10)
    with pytest.raises(LaunchError, match=r"<cuda source>:14: roots: .*`i < 64` failed \(and 1 mo"):
        CHECKED.roots[11, 6](td.zeros(70, device=device), td.zeros(70, device=device), 66)


def test_no_assertions(device):
    module = td.cuda_module(ASSERTING, defines={"NDEBUG": ""})
    x = td.asarray(np.array([4, -1], np.float32), device=device)
    out = td.zeros(2, device=device)
    module.roots[1, 2](x, out, 2)
    assert out.numpy()[0] == 2
    assert np.isnan(out.numpy()[1])


def test_traps(device):
    out = td.zeros(5, dtype=td.int32, device=device)
    with pytest.raises(
        LaunchError, match=r"<cuda source>:22: stops: .*thread: \[3, 0, 0\].*__trap"
    ):
        CHECKED.stops[1, 5](out)
    assert out.tolist() == [2, 2, 2, 1, 2]


CLOCKS = td.cuda_module("""
__global__ void timed(float *x, long long *took, int *order)
{
    long long begin = clock64();
    clock_t small = clock();
    float sum = 0;
    for (int k = 0; k < 500; k++)
        sum += x[k % 8] * 0.5f;
    x[8 + threadIdx.x] = sum;
    took[threadIdx.x] = clock64() - begin;
    order[threadIdx.x] = clock() >= small;
}
""")


def test_clocks(device):
    x, order = td.ones(12, device=device), td.zeros(4, dtype=td.int32, device=device)
    took = np.zeros(4, np.int64)
    with td.use_device(device):
        if device.backend == "webgpu":
            with pytest.raises(CompileError, match=r"cannot read a clock|no clock|WGSL"):
                CLOCKS.timed[1, 4](x, took, order)
            return
        CLOCKS.timed[1, 4](x, took, order)
    assert (took > 0).all()
    assert order.tolist() == [1, 1, 1, 1]
    assert x.numpy()[8:].tolist() == [250] * 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('printf("%d\\n");', "fewer arguments than its format uses"),
        ('printf("%d\\n", 1, 2, 3);', "2 arguments more than its format uses"),
        ('printf("x", 1);', "an argument more than its format uses"),
        ('printf("%d\\n", 1.5f);', "%d prints an integer, not a value of type float"),
        ('printf("%f\\n", *out);', "%f prints a floating-point number, not a value of type int"),
        ('printf("%q\\n", *out);', "printf: printf has no conversion"),
        ('printf("%n\\n", out);', "%n writes to memory"),
        ('printf("50%");', "the format ends within the conversion"),
        ("printf(out);", "the format of printf must be a string literal"),
        ('printf("%s\\n", (char *)out);', "%s takes a literal string"),
        ("assert();", "assert"),
    ],
)
def test_refusals(call, message):
    text = f"#include <assert.h>\n__global__ void k(int *out)\n{{\n    {call}\n}}\n"
    with pytest.raises(CompileError, match=re.escape(message)) as caught:
        td.cuda_module(text).k.source("llvm")
    assert caught.value.line == 4


# Accesses whose indices are known before the kernel runs, and what is reported of each.
OUTSIDE = {
    "o[0] = o[-1 - (int)threadIdx.x];": "index -1 is outside o of extent 8",
    "o[0] = *(o - 2);": "index -2 is outside o",
    "o[0] = (o + 1)[-4];": "index -3 is outside o",
    "o[-4] = 1;": "index -4 is outside o",
    "int *p = o + 2; p -= 7; *p++ = 1;": "index -5 is outside o",
    "o[-6] += 1;": "index -6 is outside o",
    "atomicAdd(o - 7, 1);": "index -7 is outside o",
    "o[0] = atomicCAS(&o[-8], 0, 1);": "index -8 is outside o",
    "o[0] = before(o);": "index -1 is outside o",
    "o[0] = ((short *)o)[-9];": "index -9 is outside o of extent 16",
    "o[0] = ((int4 *)o)[-10].y;": "index -10 is outside o of extent 2",
    "if (o[-11] == 0) o[0] = 1;": "index -11 is outside o",
    "o[0] = shared[-1];": "index -1 is outside s of extent 4",
    "shared[4] = 1;": "index 4 is outside s of extent 4",
    "o[0] = *(own - 1);": "index -1 is outside array of extent 4",
    "o[7] = (o + 8)[-8] + (o + 3)[-2] + (shared + 4)[-4] + own[3];": "",
}
REACHING = td.cuda_module(
    """
__device__ int before(const int *p) { return p[-1]; }
__global__ void reach(int *o, int which)
{
    __shared__ int s[4];
    int array[4] = {1, 2, 3, 4}, *own = array, *shared = s;
    s[0] = 5;
    switch (which) {
"""
    + "".join(f"    case {at}: {{ {one} break; }}\n" for at, one in enumerate(OUTSIDE))
    + """    }
}
#include <cooperative_groups.h>
__global__ void parts(int *o, int which)
{
    cooperative_groups::this_grid().sync();
    o[1] = o[-3];
}
"""
)


def test_checks_report_indices_that_are_always_outside(device, monkeypatch):
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    o = td.asarray(np.arange(8, dtype=np.int32), device=device)
    for at, (written, reported) in enumerate(OUTSIDE.items()):
        if reported:
            with pytest.raises(LaunchError, match=f"line {at + 9}: {reported}"):
                REACHING.reach[1, 1](o, at)
        else:
            REACHING.reach[1, 1](o, at)
            assert o.numpy()[7] == 0 + 1 + 5 + 4, written
    with pytest.raises(LaunchError, match="index -3 is outside o"):
        REACHING.parts[1, 1](o, 0)


# What C++ leaves undefined although it is inside of a memory, and what is reported of it for n = 8.
UNDEFINED = {
    "x[0] = 40 / (n - 8);": "an integer is divided by zero",
    "x[0] = 7u % (unsigned)(n - 8);": "an integer is divided by zero",
    "int a = 9; a /= n - 8; x[0] = a;": "an integer is divided by zero",
    "x[0] = 40ll / (n - 8);": "an integer is divided by zero",
    "x[0] = quotient(40, n - 8);": "an integer is divided by zero",
    "x[0] = 1 << (n + 24);": "an integer of 32 bits is shifted by 32 or more, or by less than 0",
    "unsigned a = 9; a >>= 7 - n; x[0] = a;": "an integer of 32 bits is shifted by 32 or more",
    "x[0] = 1ll << (n + 56);": "an integer of 64 bits is shifted by 64 or more",
    "x[0] = local[1][n];": r"index 8 is outside local of extent 4 \(axis 1\)",
    "local[n - 4][0] = 1;": r"index 4 is outside local of extent 4 \(axis 0\)",
    "s[0][n - 5] = 2;": r"index 3 is outside s of extent 3 \(axis 1\)",
    "atomicAdd(&s[0][0], 1); s[1][n - 9] += 2;": r"index -1 is outside s of extent 3",
    "x[0] = table[0][n - 6];": r"index 2 is outside table of extent 2 \(axis 1\)",
    "int (*row)[4] = local; x[0] = row[1][n - 4];": "index 4 is outside local of extent 4",
    "int (&row)[4] = local[1]; x[0] = row[n - 4];": "index 4 is outside local of extent 4",
    "M m = {}; m.v[n - 6][0] = 1; x[0] = m.v[1][2];": "index 2 is outside m.v of extent 2",
    "M m = {}; x[0] = m.v[0][n - 5];": "index 3 is outside m.v.* of extent 3",
    "float4 a = *(float4 *)(y + n - 7); y[0] = a.x;": "not aligned for float4, which needs a mul",
    "*(int2 *)(x + 9 - n) = make_int2(1, 2);": "not aligned for int2, which needs a multiple of 8",
    "float4 *p = (float4 *)(y + n + 2); p++; *p = p[0];": "not aligned for float4",
    "((float4 *)(y + n + 1))[1] = make_float4(1, 2, 3, 4);": "not aligned for float4",
}
UNDEFINED_CASES = """
struct M { int v[2][3]; };
__constant__ int table[2][2] = {{1, 2}, {3, 4}};
__device__ int quotient(int a, int b) { return a / b; }
__global__ void undefined(int *x, float *y, int which, int n)
{
    __shared__ int s[2][3];
    int local[4][4] = {};
    s[0][0] = s[1][0] = 0;
    switch (which) {
"""
for _at, _one in enumerate(UNDEFINED):
    UNDEFINED_CASES += f"    case {_at}: {{ {_one} break; }}\n"
UNDEFINED_CASES += """    }
}
"""


def test_checks_report_what_is_undefined(device, monkeypatch):
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    module = td.cuda_module(UNDEFINED_CASES)
    x, y = td.zeros(32, dtype=td.int32, device=device), td.zeros(32, device=device)
    for at, reported in enumerate(UNDEFINED.values()):
        with pytest.raises(LaunchError, match=f"line (4|{at + 11}): .*{reported}"):
            module.undefined[1, 1](x, y, at, 8)


# What is reported of an array of 16 that begins within its memory, of None, and of our headers.
PLACED = {
    "v[n] = 1;": "line 6 of placed.cu: index 16 is outside v of extent 16 ",
    "v[n - 17] = 1;": "line 6 of placed.cu: index -1 is outside v of extent 16 ",
    "((float2 *)v)[n / 2] = make_float2(1, 2);": "index 8 is outside v of extent 8 ",
    "v[0] = ((double *)v)[-1];": "index -1 is outside v of extent 8 ",
    "v[1] = ((char *)v)[4 * n];": "index 64 is outside v of extent 64 ",
    "v[0] = none[n - 16];": "index 0 is outside none, which is a null pointer",
    "std::sort(v, v + n + 1);": "placed.cu, in sort of sorting.cuh: index 16 is outside v",
    "v[0] = step(none, n);": "line [36] of placed.cu: index 17 is outside none",
    "v[0] += (v + n)[-1] + (v - 1)[1] + ((float2 *)v)[7].x + ((char *)v)[63];": "",
}


def test_checks_name_places_and_count_from_where_arrays_begin(device, monkeypatch, tmp_path):
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    cases = "".join(f" case {at}: {one} break;" for at, one in enumerate(PLACED))
    path = tmp_path / "placed.cu"
    path.write_text(
        "#include <algorithm>\n"
        "__device__ float step(const float *p, int n) {\n    return p[n + 1];\n}\n"
        f"__global__ void k(float *v, const float *none, int which, int n) {{ switch (which) {{\n"
        f"{cases} }} }}\n"
    )
    module = td.cuda_module(path)
    base = td.asarray(np.arange(64, dtype=np.float32), device=device)
    with doubles_if_any(device):
        for at, (written, reported) in enumerate(PLACED.items()):
            if reported:
                with pytest.raises(LaunchError, match=reported):
                    module.k[1, 1](base[8:24], None, at, 16)
            else:
                before = base.numpy()
                module.k[1, 1](base[8:24], None, at, 16)
                assert base.numpy()[8] == 2 * before[8] + before[23] + before[22] + 0x41, written


DEFINED = """
struct M { float v[2][3]; int tail[1]; };
__device__ int ratio(int a, int b) { return b == 0 ? -1 : a / b; }
__device__ int steps(int a, int b) { int s = 0; while (b && a / b > 0) { a -= b; s++; } return s; }
__device__ float sum(float (&t)[4][4])
{
    float s = 0;
    for (auto &row : t) for (float v : row) s += v;
    return s;
}
__device__ float sum_of(const float *p, int n)
{
    float s = 0;
    for (int i = 0; i < n; i++) s += p[i];
    return s;
}
template <int N> __device__ int at(int (*p)[N], int i, int j) { return p[i][j] << (i + j); }
__global__ void defined(int *x, float *y, int n, int zero)
{
    __shared__ float t[4][4];
    __shared__ __align__(16) float flat[64];
    __shared__ int q[2][3];
    int i = threadIdx.x;
    if (i < 16) t[i / 4][i % 4] = i;
    if (i < 6) q[i / 3][i % 3] = i + 1;
    for (int j = i; j < 64; j += blockDim.x) flat[j] = j;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (i < s) flat[i] += flat[i + s];
        __syncthreads();
    }
    for (int s = 0; s < n / 2; s++) { if (i == 0) t[0][0] += 1; __syncthreads(); }
    if (i != 0) return;
    x[0] = zero != 0 && 8 / zero > 1;
    x[1] = zero ? 8 / zero : 7;
    x[2] = ratio(n, zero) + ratio(n, 3) + steps(17, 5) + steps(17, zero);
    x[3] = at<3>(q, 1, n % 3);
    int a = 1000; a /= n; a %= 7; a <<= n; a >>= 2; x[4] = a;
    unsigned u = 0xf0f0f0f0u; u >>= n; x[5] = u << (31 & 33);
    long long w = 1; w <<= (n + 32); x[6] = w >> 35;
    asm("shl.b32 %0, %1, %2;" : "=r"(x[7]) : "r"(5), "r"(n + 40));
    int *h = new int[8], *e = h + 8, *mid = h + 4;
    for (int *p = h; p != e; ++p) *p = p - h;
    x[8] = mid[-2] + mid[3] + *(e - 1) + e[-8];
    delete[] h;
    float *end = &t[3][4]; x[9] = end - &t[0][0];
    x[10] = (n & 1 ? 12 / n : 5) + (n > 2 || 5 / zero);
    y[0] = sum(t) + sum_of(t[1], 4) + sum_of(&t[0][0], 16);
    float4 v = *(float4 *)(flat + 4 * n), z = reinterpret_cast<float4 *>(flat)[n];
    y[1] = v.x + v.w; y[2] = z.y;
    float3 three = *(float3 *)(y + n); y[3] = three.x;
    M m = {{{0, 1, 2}, {3, 4, 5}}, {4}};
    y[4] = m.v[1][n - 1] + m.tail[0];
}
"""


def test_checks_report_nothing_that_is_defined(device, monkeypatch):
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    x, y = td.zeros(32, dtype=td.int32, device=device), td.zeros(32, device=device)
    td.cuda_module(DEFINED, heap_bytes=1 << 14).defined[1, 32](x, y, 3, 0)
    shifted = (333 % 7 << 3) >> 2
    assert x.numpy()[:11].tolist() == [0, 7, 3, 4 << 1, shifted, 0x3C3C3C3C, 1, 0, 16, 16, 5]
    assert y.numpy()[:5].tolist() == [121 + 22 + 121, 40 + 46, 42, 0, 5 + 4]
