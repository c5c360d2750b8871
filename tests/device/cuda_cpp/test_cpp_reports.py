"""What CUDA C++ kernels say: printf, assert, traps and clocks."""

from __future__ import annotations

import re

import numpy as np
import pytest

import treadle as td
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
