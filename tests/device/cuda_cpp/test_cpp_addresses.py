"""Addresses as integers: sums, alignment, order, and numbers that become pointers again."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError

# Statements with arrays of ints x and y, an int n that is 5, and what they write to out.
CASES = [
    (
        """
    const int *stop = (int*) min((unsigned long) (x + 3), (unsigned long) (x + n));
    out[0] = stop - x;
""",
        [3],
    ),
    (
        """
    uintptr_t a = (uintptr_t)x; a += 8; int *p = (int*)a; out[0] = *p;
""",
        [3],
    ),
    (
        """
    out[0] = ((size_t)x & 15) == 0; out[1] = ((size_t)(x + 1) & 15) == 0;
    out[2] = (reinterpret_cast<uintptr_t>(x + 2) % 8) == 0;
""",
        [1, 0, 1],
    ),
    (
        """
    uintptr_t a = (uintptr_t)(n > 100 ? x : nullptr); out[0] = a == 0;
    out[1] = (uintptr_t)x != 0;
""",
        [1, 1],
    ),
    (
        """
    int *p = n > 100 ? x : y; uintptr_t a = (uintptr_t)p + 4; out[0] = *(int*)a;
""",
        [12],
    ),
    (
        """
    ptrdiff_t d = (char*)(x + 3) - (char*)x; out[0] = d;
    out[1] = (intptr_t)(x + 5) - (intptr_t)x;
""",
        [12, 20],
    ),
    (
        """
    int *p = n > 100 ? x : y; out[0] = (p < x + 2) || (p >= x + 2); out[1] = p == x;
    out[2] = x < y || y < x;
""",
        [1, 0, 1],
    ),
    (
        """
    __shared__ uintptr_t keep[2]; keep[0] = (uintptr_t)(x + 2);
    keep[1] = (uintptr_t)(y + 1); int s = 0; for (int i = 0; i < 2;
    i++) s = 10 * s + *(int*)keep[i]; out[0] = s;
""",
        [42],
    ),
    (
        """
    out[0] = ((unsigned)(size_t)(x + 3)) & 7; out[1] = (long long)(x+1) & 3;
""",
        [4, 0],
    ),
    (
        """
    char *c = (char*)x + 1; out[0] = *c; short *s = (short*)(c + 3); out[1] = *s;
    out[2] = *(int*)((void*)(c + 7));
    unsigned long long *w = (unsigned long long*)(x + 2); out[3] = (int)(*w >> 32);
""",
        [0, 2, 3, 4],
    ),
    (
        """
    __shared__ int s[4]; int l = 1; s[0] = 3; out[0] = __isGlobal(x);
    out[1] = __isGlobal(s); out[2] = __isShared(s);
    out[3] = __isLocal(&l) + 2 * __isShared(&l); ;
""",
        [1, 0, 1, 1],
    ),
    (
        """
    __shared__ int s[8]; s[2] = 7; unsigned a = __cvta_generic_to_shared(s + 1);
    out[0] = *(int*)__cvta_shared_to_generic(a + 4);
    size_t g = __cvta_generic_to_global(x + 1);
    out[1] = *(int*)__cvta_global_to_generic(g);
""",
        [7, 2],
    ),
    (
        """
    unsigned long long h = (unsigned long long)(x + 2); h ^= (unsigned long long)x;
    out[0] = (int)h;
""",
        [8],
    ),
    (
        """
    int l[4] = {1,2,3,4}; uintptr_t a = (uintptr_t)&l[1]; out[0] = *(int*)(a + 4);
    float f = 1.f; uintptr_t b = (uintptr_t)&f; out[1] = *(int*)b == 0x3f800000;
""",
        [3, 1],
    ),
    (
        """
    char *p = (char*)x + 5; p = (char*)(((uintptr_t)p + 7) & ~(uintptr_t)7);
    out[0] = p - (char*)x; out[1] = *(int*)p;
""",
        [8, 3],
    ),
    (
        """
    out[0] = *at((unsigned long)x, 2);
""",
        [3],
    ),
]
_HEAD = """
#include <stdint.h>
__device__ int *at(unsigned long a, int i) { return (int *)(a + 4 * i); }
"""


def test_addresses_as_numbers(device):
    if "int64" not in device.features:
        return
    functions, calls = [], []
    for number, (body, _) in enumerate(CASES):
        head = f"__device__ void case{number}(int *x, int *y, int *out, int n)"
        functions.append(f"{head}\n{{{body}}}")
        calls.append(f"    case{number}(x, y, out + {4 * number}, n);")
    kernel = "__global__ void all(int *x, int *y, int *out, int n)"
    body = "\n".join(calls)
    module = td.cuda_module(_HEAD + "\n".join(functions) + f"\n{kernel} {{\n{body}\n}}")
    x = td.asarray(np.arange(1, 9, dtype=np.int32), device=device)
    out = td.zeros((len(CASES), 4), dtype=td.int32, device=device)
    module.all[1, 1](x, x + 10, out, 5)  # with the addresses of all in one kernel
    found = out.tolist()
    for (body, wanted), row in zip(CASES, found, strict=True):
        assert row[: len(wanted)] == wanted, body


def test_what_is_no_address():
    source = "__global__ void k(int *x, {type} a) {{ x[0] = *(int *)a; }}"
    with pytest.raises(CompileError, match="no address becomes a number in this kernel: pass"):
        td.cuda_module(source.format(type="unsigned long")).k.source("ptx")
    with pytest.raises(CompileError, match="an address has 64 bits, and int has 32: use uintptr_t"):
        td.cuda_module(source.format(type="int")).k.source("ptx")


ONE_ARRAY = """
struct Pair { float *a, *b; };
__global__ void compared(float *x, float *y, int *out)
{
    int i = 0;
    out[i++] = x == y; out[i++] = x != y; out[i++] = x < y; out[i++] = y < x;
    out[i++] = x <= y; out[i++] = y + 1 == x + 1; out[i++] = y == x + 3;
    out[i++] = (void *)x == (void *)y; out[i++] = (size_t)x == (size_t)y;
    out[i++] = (size_t)y - (size_t)x == 12; out[i++] = (char *)x + 12 == (char *)y;
    float *z = i > out[0] ? x : y;
    out[i++] = z == y;
    float *back = (float *)(size_t)y;
    out[i++] = back == x + 3;
    back[0] = 5;
}
__global__ void in_pair(Pair p, int *out) { out[0] = p.a == p.b; out[1] = p.a < p.b; }
__global__ void range(const float *begin, const float *end, float *out, int *count)
{
    for (const float *p = begin; p != end; ++p) out[0] += *p;
    count[0] = end - begin;
}
"""


def test_arguments_that_are_one_array(device):
    """Two parameters may be given one array, or views of one."""
    module = td.cuda_module(ONE_ARRAY)
    base, other = (td.arange(8, dtype=td.float32, device=device) + k for k in (0, 1))
    out = td.zeros(13, dtype=td.int32, device=device)
    for y, expected in (
        (base, [1, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 0]),
        (base[3:], [0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1]),
    ):
        module.compared[1, 1](base, y, out)
        assert out.tolist() == expected
    assert base.tolist() == [5, 1, 2, 5, 4, 5, 6, 7]
    module.compared[1, 1](base, other, out)
    assert [out.tolist()[at] for at in (0, 1, 5, 6, 7, 8, 10, 12)] == [0, 1, 0, 0, 0, 0, 0, 0]
    pair = td.zeros(2, dtype=td.int32, device=device)
    for y, expected in ((base, [1, 0]), (base[2:], [0, 1])):
        module.in_pair[1, 1]({"a": base, "b": y}, pair)
        assert pair.tolist() == expected
    total, count = td.zeros(1, device=device), td.zeros(1, dtype=td.int32, device=device)
    module.range[1, 1](other[2:], other[6:], total, count)
    assert (total.item(), count.item()) == (3 + 4 + 5 + 6, 4)
