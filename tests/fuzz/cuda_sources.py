"""Small files of CUDA C++ that have much in them, and how they are broken."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import treadle as td
from treadle.core.errors import TreadleError
from treadle.core.nesting import deep_nesting
from treadle.ir.verify import verify

LANGUAGE = r"""
#include <cuda_runtime.h>
#include <math.h>
#define N 16
#define SQUARE(x) ((x) * (x))
#define CHECK(call, ...) do { auto e = (call); report(e, #call, __VA_ARGS__); } while (0)
#if defined(__CUDACC__) && N > 8
# define PICK(a, b) a ## b
#else
# error "never"
#endif

enum Kind { PLAIN, TWICE = 2, LAST = TWICE << 1 };
typedef unsigned int uint32;
using real = float;
struct Base { int id; __device__ int twice() const { return 2 * id; } };
struct Body : Base {
    float3 at;
    float mass = 1.0f;
    int tags[3];
    union { float f; unsigned u; };
    __host__ __device__ Body() : Base{7}, mass(2) {}
    __device__ Body &operator+=(float by) { mass += by; return *this; }
};

constexpr int limit(int n) { return n < 2 ? 1 : n * 2; }
__constant__ float table[4] = {1.0f, 0.5f, .25f, 1e-3f};
__device__ int counters[2][3];
static const int steps = sizeof(float4) / 2;

template <typename T, int COUNT = 4> __device__ __forceinline__ T total(const T *x)
{
    T sum = T(0);
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        sum += x[i];
    return sum;
}

__device__ void swap_them(int &a, int *b) { int c = a; a = *b; *b = c; }

__global__ void __launch_bounds__(128)
language(const float *__restrict__ in, float *out, int n, Body given)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float local[N / 2][2] = {{1}, {2, 3}}, *p = &local[1][0];
    Body b = given;
    b += in[i];
    uint32 bits = 0xffu, k = i & 7;
    switch (k) {
    case 0: bits <<= 2; break;
    case 1: case TWICE: bits ^= 0b101; /* falls */
    default: bits = ~bits + 'a';
    }
    while (k-- > 0) {
        if (k == 3) continue;
        *p++ += SQUARE(k) * 1.5e0f;
        if (p - &local[0][0] > 9) break;
    }
    do { swap_them(b.id, &b.tags[i % 3]); } while (b.id && --n > limit(3));
    auto pick = b.mass > 0 ? b.mass : -b.mass;
    b.f = __uint_as_float(bits);
    long long wide = (long long)i << 33 | b.u;
    out[i] = total<real, N / 4>(p - 4) + table[i & 3] + pick + (float)(wide % 1000003);
    out[i] -= b.twice() + steps;
    atomicAdd(&counters[i & 1][k % 3], PICK(T, WICE));
}

int main(int argc, char **argv)
{
    float *d; cudaMalloc(&d, N * sizeof(float));
    language<<<dim3(1, 2), 32, 0>>>(d, d, N, Body());
    CHECK(cudaDeviceSynchronize(), 1);
    std::vector<int> v{1, 2, 3};
    return 0;
}
"""

DEVICE = r"""
#include <cuda_fp16.h>
#include <stdio.h>
#include <assert.h>
namespace math { namespace detail { __device__ inline float half_of(float x) { return x / 2; } } }
using namespace math;
struct __align__(8) Pair { float value; int index; };
typedef Pair (*Combine)(Pair, Pair);
struct Max {
    __device__ Pair operator()(Pair a, Pair b) const { return a.value < b.value ? b : a; }
};

template <class Op> __device__ Pair reduce(Pair mine, Op op, unsigned mask = 0xffffffff)
{
    for (int offset = 16; offset; offset >>= 1) {
        Pair other;
        other.value = __shfl_down_sync(mask, mine.value, offset);
        other.index = __shfl_xor_sync(mask, mine.index, offset, 16);
        mine = op(mine, other);
    }
    return mine;
}

template <typename T, unsigned BLOCK>
__global__ void device(T *x, int n, half *h, Pair *best)
{
    __shared__ T tile[BLOCK][2 + 1];
    __shared__ int last;
    extern __shared__ unsigned char raw[];
    Pair *pairs = reinterpret_cast<Pair *>(raw);
    const int t = threadIdx.x;
    tile[t][t % 3] = x[t];
    if (t == 0) last = 0;
    __syncthreads();
    for (unsigned s = BLOCK / 2; s > 0; s >>= 1) {
        if (t < s) tile[t][0] += tile[t + s][1];
        __syncthreads();
    }
    pairs[t] = Pair{(float)tile[t][2], t};
    int ahead = __syncthreads_count(pairs[t].value > 0.5f);
    Pair top = reduce(pairs[t], Max());
    unsigned vote = __ballot_sync(0xffffffffu, t < n) & __match_any_sync(__activemask(), t & 3);
    h[t] = __hadd(__float2half(top.value), h[t]) * half(2);
    half2 two = __half2half2(h[t]);
    float s, c;
    sincosf(__low2float(two), &s, &c);
    if (atomicCAS(&last, 0, t + 1) == 0 && !isnan(s)) {
        best[blockIdx.x] = top;
        printf("%d %5.2f %s %*d\n", __popc(vote), detail::half_of(c), "text", 4, ahead);
    }
    assert(n > 0 && "given");
    T *end = x + n;
    for (T *q = x + t; q < end; q += BLOCK) *q = max(*q, T(1)) - powf(s, 2.0f) + __ldg(q);
}

__global__ void vectors(float4 *v, const int2 *k, dim3 size)
{
    float4 a = v[threadIdx.x], b = make_float4(a.x, a.y, 1.f, 2.f);
    a.x += b.w; a.y = b.z * (k->x + k[1].y); (&a)->z = -a.z;
    v[threadIdx.x] = a.x > 0 ? a : b;
    uchar4 c = {1, 2, 3, 4}; c.w <<= 1;
    double d = 1.0 / 3; float f = d; int m = f > .2 ? c.w : size.z;
    ((float *)v)[threadIdx.y] = (float)m + *(int *)&f;
}
"""
SOURCES = (LANGUAGE, DEVICE)

_TOKEN = re.compile(
    r"\w+|\s+|\"[^\"\n]*\"|'[^'\n]*'|<<<|>>>|##|::|->|\+\+|--|<<=?|>>=?|&&|\|\||[-+*/%&|^=!<>]=|.",
    re.DOTALL,
)
# What makes trouble anywhere.
NASTY = (
    "1000000000", "0x7fffffffffffffff", "99999999999999999999", "1e999", "-1", "0", "1u << 40", "{",
    "}", "(", ")", "[", "]", "<", ">", ";", ",", "template <typename T>", "typename", "T", "auto",
    "this", "operator", "sizeof", "&", "*", "**", "&&", "...", "#", "##", "#define A A(A)",
    "\n#if\n", '\n#include ""\n', "/*", "*/", "//", '"', "'", "\\", "\0", "\x80", "é", "?:",
    "goto x", "return", "struct S { S s; };", "int a[1 << 30];", "f<f<f<", "((((((((", "constexpr",
    "union", "virtual", "asm", "for(;;)", "[[", "@", "enum", "class", "float", "void", "double",
    "const", "__shared__", "static", "extern", "__device__", "__global__", "N", "i", "x", "0.5f",
    "%", "/ 0", "% 0", "<< 99",
)  # fmt: skip


# Statements that are right somewhere, or nowhere.
STATEMENTS = (
    "int z = 1 << 40;", "int z = 1 << n << -3;", "x[0] = x[1 / 0];", "i %= 0;", "int z = 5 % 0;",
    "float y[1 << 20]; y[i] = 0;", "int y[0];", "int y[-1];", "int y[i];",
    "int y[1000000000] = {1};", "__shared__ int w[1000000000];",
    "for (int q = 0; q < 1000000000; q++) x[q % 4] += 1;",
    "#pragma unroll\nfor (int q = 0; q < 1000000000; q++) x[q] += 1;\n",
    "#pragma unroll 1000000\nfor (int q = 0; q < n; q++) x[q] += 1;\n", "for (;;);", "while (1) {}",
    "int *p0 = 0; *p0 = 1;", "int *p1 = &i; p1[5] = 2; p1 += i;", "auto l = x; l++;",
    "auto &r = *x;", "struct L { int a; L *next; }; L l;",
    "struct L { int a[3]; float b; } l = {{1, 2}, 3}; l.a[i] = 4;",
    "switch (n) { case 1: case 1: break; }", "switch (n) { int q; default: q = 1; case 3: q++; }",
    "switch (n) { case 1 << 40: break; case -1: return; }", "break;", "continue;", "return;",
    "return 5;", "goto end;", "end: ;", "if (int q = n) q++;", "int a0 = a0;", "const int c0;",
    "c0 = 1;", "n = n++ + ++n;", "x = x + 1, x++;", "*x++ = *--x;", "x[0, 1] = 2;",
    "(x)[0] += (float)(int)(char)300.7;", "(void)x;", "int (*f)(int);", "int &bad;",
    "int q = {1, 2};", "int q{};", "float3 q{1, 2, 3, 4};", "float q(3);", "x[0] = (1 ? x : 0)[0];",
    "bool q = x == nullptr || !x;", "int q = sizeof(int[n]);", "throw 1;", "new int;", "delete x;",
    "try {} catch (...) {}", "__syncthreads();", "if (threadIdx.x) __syncthreads();",
    "int q = __shfl_sync(1, 2, 3, 5);", "if (threadIdx.x & 1) x[0] = __shfl_down_sync(~0, 1, n);",
    "atomicAdd(&n, 1);", "atomicAdd((char *)x, 1);", "atomicAdd((double *)x, 1.0);",
    "long long q = 1ll << 63;", "unsigned q = -1; q >>= 33;", "int q = 2147483647 + 1;",
    "int q = -2147483648 / -1;", "float q = 1e999;", "short q = 'ab';",
    'char q[] = "abc"; x[0] = q[3];', 'char q[2] = "abc";', 'printf("%d");',
    'printf("%*.*f|%99999999d", 1, 2, 3.0, 4);', "assert(0);", "typedef int T0[3]; T0 q; q[0] = 1;",
    "using U0 = U0;", "enum { E0 = 1 << 31, E1 };", "enum E2 : char { E3 = 1000 }; E2 q = E3;",
    "union { int a; float b; } q; q.a = 1; x[0] = q.b;", "union { int a; double b; } q;",
    "decltype(n) q = 1;", "static int q = 3;", "extern __shared__ int q[]; q[0] = 1;",
    "extern __shared__ double q2[]; q2[i] = 1;",
    "int q[2][3] = {1, 2, 3, 4}; (*q)[1] = 1; int *z = q[1]; z[-1] = 0;",
    "reinterpret_cast<int &>(x[0]) = 1;", "*(int *)(x + 1) = 3; *(double *)x = 1;",
    "x[0] = *(float *)&n;", "(&x[1] - x)[x] = 1;", "memcpy(x, x + 1, 1000000000);",
    "memset(x, 0, sizeof(x));", "x->y = 1;", "n.y = 1;", "n();", "1 = n;", "i++ = 1;",
    "threadIdx.x = 1;", "::n = 1;", "std::swap(x[0], x[1]);", "int q = std::max(1, 2.0f);",
    "half q = x[0]; q += q; x[0] = q;", "__nv_bfloat16 q = 1.0f;", "dim3 q(1, 2); x[q.z] = q.y;",
    "int4 q; q.x = q.w;", "{ { { { } } } }", ";;;;", "case 3:", "default:", "else",
    "do x[0]++; while (0);", "#define Q Q Q\nQ;\n",
    "unsigned long long q = 0xffffffffffffffffull; x[q] = 1;", "x[1ll << 40] = 1;",
    "bool b0 = true; b0++; b0 <<= 1;",
)  # fmt: skip


def tokens_of(text: str) -> list[str]:
    """The text in pieces that are tokens, more or less; joined, they are the text."""
    return _TOKEN.findall(text)


POOL = tuple(dict.fromkeys([t for s in SOURCES for t in tokens_of(s) if t.strip()])) + NASTY


@dataclass(frozen=True)
class Mutation:
    """One thing done to a text: `kind` is a key of MUTATIONS; numbers are taken modulo lengths."""

    kind: str
    at: int
    other: int


def _delete(tokens: list[str], at: int, other: int) -> None:
    del tokens[at : at + 1 + other % 4]


def _duplicate(tokens: list[str], at: int, other: int) -> None:
    tokens[at:at] = tokens[at : at + 1 + other % 6]


def _swap(tokens: list[str], at: int, other: int) -> None:
    other %= len(tokens)
    tokens[at], tokens[other] = tokens[other], tokens[at]


def _replace(tokens: list[str], at: int, other: int) -> None:
    tokens[at] = POOL[other % len(POOL)]


def _insert(tokens: list[str], at: int, other: int) -> None:
    tokens[at:at] = [" ", POOL[other % len(POOL)], " "]


def _nasty(tokens: list[str], at: int, other: int) -> None:
    tokens[at] = NASTY[other % len(NASTY)]


def _statement(tokens: list[str], at: int, other: int) -> None:
    """A statement where one may stand."""
    ends = [k for k, token in enumerate(tokens) if token in (";", "{", "}")]
    if ends:
        place = ends[at % len(ends)] + 1
        tokens[place:place] = [f" {STATEMENTS[other % len(STATEMENTS)]} "]


def _kind_of(token: str) -> str:
    if token.isspace():
        return "space"
    return (
        "number"
        if token[0].isdigit()
        else "word"
        if token[0].isalpha() or token[0] == "_"
        else "sign"
    )


def _alike(tokens: list[str], at: int, other: int) -> None:
    """A name instead of a name, a number instead of a number, an operator for an operator."""
    kind = _kind_of(tokens[at])
    choices = [token for token in POOL if _kind_of(token) == kind]
    if choices:
        tokens[at] = choices[other % len(choices)]


def _truncate(tokens: list[str], at: int, other: int) -> None:
    del tokens[at:]


def _splice(tokens: list[str], at: int, other: int) -> None:
    """A piece of another file in the middle of this one."""
    theirs = tokens_of(SOURCES[other % len(SOURCES)])
    start = other // 2 % len(theirs)
    tokens[at:at] = theirs[start : start + other // 7 % 40]


def _byte(tokens: list[str], at: int, other: int) -> None:
    token = tokens[at]
    place = other % len(token)
    tokens[at] = token[:place] + chr(other // 3 % 256) + token[place + 1 :]


def _repeat(tokens: list[str], at: int, other: int) -> None:
    """A token very often: nesting, long operators, many declarations."""
    tokens[at] = tokens[at] * (10 ** (other % 4))


MUTATIONS: dict[str, Callable[[list[str], int, int], None]] = {
    "delete": _delete, "duplicate": _duplicate, "swap": _swap, "replace": _replace,
    "insert": _insert, "nasty": _nasty, "truncate": _truncate, "splice": _splice, "byte": _byte,
    "repeat": _repeat, "statement": _statement, "alike": _alike,
}  # fmt: skip


def mutated(source: str, mutations: Sequence[Mutation]) -> str:
    """The text after the mutations, one after another."""
    tokens = tokens_of(source)
    for one in mutations:
        if not tokens:
            break
        MUTATIONS[one.kind](tokens, one.at % len(tokens), one.other)
        tokens = tokens_of("".join(tokens)) if one.kind in ("byte", "repeat") else tokens
    return "".join(tokens)


def lowered(text: str) -> list[str]:
    """Read a file and lower each of its kernels: the names of those with which nothing is wrong.
    TreadleError says what is wrong with the file."""
    module = td.cuda_module(text)
    found = []
    for name in module.kernels:
        arguments = ["float" if one.kind == "type" else "32"
                     for one in module.template(name).template]  # fmt: skip
        try:
            kernel = module.kernel(name, *arguments)
            made = kernel.lower(kernel.signature).kernel
            with deep_nesting(name):
                verify(made)
        except TreadleError:
            continue
        found.append(name)
    return found
