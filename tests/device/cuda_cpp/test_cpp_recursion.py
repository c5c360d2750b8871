"""Functions of CUDA C++ that call themselves: by value, with pointers into their frames, each
other, methods, constructors and destructors, beside the same code on the host."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_host import check, in_one_kernel
from treadle.core.errors import LaunchError, TreadleError

NUMBERS = [
    # order
    (
        r"""
__device__ int f(int &c, int n) { if (n <= 0) return 1; int x = c + f(c, n - 1); c++;
return x * 2 + c - f(c, n - 2); }
__device__ int g(int n) {
return n <= 0 ? 3 : n > 2 && g(n - 1) > 5 ? g(n - 2) + n : n % 2 || g(n - 3) ? n : -n; }
""",
        r"""
    int c = n; out[k++] = f(c, 5); out[k++] = c; for (int i = 0; i < 7; i++) out[k++] = g(i);
""",
    ),
    # swap args
    (
        r"""
__device__ int f(int a, int b, int c) { if (a <= 0) return b * 100 + c;
return f(b - 1, c, a) + f(c - 3, a, b); }
__device__ void g(int a, int b, int *o) { if (a + b > 40) { *o = a * 1000 + b; return; }
g(b, a + b, o); }
""",
        r"""
    out[k++] = f(2, 2, 1); int o; g(1, 2, &o); out[k++] = o;
""",
    ),
    # references
    (
        r"""
__device__ int &pick(int *a, int n, int want) { if (n == 1 || a[0] == want) return a[0];
return pick(a + 1, n - 1, want); }
__device__ void deep(int &x, int n) { int y = x + 1; if (n == 0) { x += 100; return; }
deep(y, n - 1); x += y; }
__device__ const int *find(const int *a, int n, int v) { if (n == 0) return nullptr;
return *a == v ? a : find(a + 1, n - 1, v); }
""",
        r"""
    int a[6]; for (int i = 0; i < 6; i++) a[i] = in[i]; pick(a, 6, 9) = 55; for (int i = 0;
    i < 6; i++) out[k++] = a[i]; int x = 1; deep(x, 4); out[k++] = x;
    out[k++] = find(in, 6, 4) - in; out[k++] = find(in, 6, 44) == nullptr;
""",
    ),
    # types
    (
        r"""
__device__ long long big(long long a, short b, bool c, unsigned char d) {
if (b == 0) return a + c + d; long long r = big(a * 3, b - 1, !c, d + 200);
return r + (c ? a : -a) + d; }
""",
        r"""
    long long r = big(123456789012LL, 6, true, 7);
    out[k++] = (int)r; out[k++] = (int)(r >> 32);
""",
    ),
]
OBJECTS = [
    # loops
    (
        r"""
__device__ int f(int n, int d) { int s = 0; if (d > 4) return n;
for (int i = 0; i < 4; i++) { if (i == 1 && n % 2) continue; for (int j = 3; j > 0; j--) {
if (j == 2 && d % 2) break; s += f(n + i * j, d + 2) % 13; if (s > 60) return s; } s ^= i; }
do { s += 3; n = f(n - 1, d + 3); } while (n % 4 && s < 40); while (f(s, d + 4) % 5 == 1) { s++;
if (s % 3 == 0) break; } return s; }
""",
        r"""
    out[k++] = f(n, 0); out[k++] = f(n + 4, 1);
""",
    ),
    # const array
    (
        r"""
__device__ int walk(int n) { const int step[4] = {1, 2, 3, n}; static const int table[3] = {
5, 6, 7}; constexpr int w[2] = {3, 4}; if (n <= 0) return table[-n % 3];
int a = walk(n - step[n % 4]); return a + step[3] * w[n % 2] + table[a % 3]; }
""",
        r"""
    for (int i = 1; i < 8; i++) out[k++] = walk(i);
""",
    ),
    # destructors
    (
        r"""
struct Guard { int *log; int &at; int id;
__device__ Guard(int *l, int &a, int i) : log(l), at(a), id(i) { log[at++] = id; }
__device__ ~Guard() { log[at++] = -id; } };
__device__ int f(int *log, int &at, int n) { Guard g(log, at, n); if (n <= 1) return 1;
for (int i = 0; i < 2; i++) { Guard h(log, at, n * 10 + i);
if (f(log, at, n - 1 - i) > 2) return 9; } return n; }
""",
        r"""
    int at = 0; out[k++] = f(out + 1, at, 3); k += at;
""",
    ),
    # lambdas
    (
        r"""
template <class F> __device__ int fix(F &&f, int n) { return f(f, n); }
""",
        r"""
    int calls = 0; auto fib = [&](auto &self, int x) -> int { calls++;
    return x < 2 ? x : self(self, x - 1) + self(self, x - 2); }; out[k++] = fib(fib, 8);
    out[k++] = calls; int add = n; out[k++] = fix([add](auto &self, int x) -> int {
    return x == 0 ? add : self(self, x - 1) + add; }, 4);
    auto copy = [add](auto self, int x) -> int {
    return x == 0 ? add : self(self, x - 1) * 2 + add; }; out[k++] = copy(copy, 3);
""",
    ),
    # parser index
    (
        r"""
struct P { const int *t; int at;
__device__ int factor() { if (t[at] == -1) { at++; int v = sum(); at++; return v; }
if (t[at] == -5) { at++; return -factor(); } return t[at++]; }
__device__ int product() { int v = factor(); while (t[at] == -3) { at++; v *= factor(); }
return v; }
__device__ int sum() { int v = product(); while (t[at] == -4) { at++; v += product(); }
return v; } };
""",
        r"""
    int t[] = {2, -3, -1, 3, -4, -5, 4, -2, -4, 5, -9}; P p{t, 0}; out[k++] = p.sum();
    out[k++] = p.at;
""",
    ),
]
TREES = [
    # pointers in structs by their address, structs that point to each other
    (
        r"""
struct Link { int v; Link *next; int *row[2]; };
""",
        r"""
    int x = 5, y[2] = {6, 7};
    Link a, b{2, &a, {&x, y}};
    a.v = 1; a.next = nullptr; a.row[0] = y; a.row[1] = &x;
    int **q = &b.row[1];
    out[k++] = q[0][1];
    q[0] = &x;
    *b.row[1] += 10;
    for (Link *l = &b; l; l = l->next) out[k++] = l->v * 100 + *l->row[1];
""",
    ),
    # structs
    (
        r"""
struct Box { int lo[2], hi[2]; int n; };
struct V { float x, y; __device__ V operator+(V o) const { return {x + o.x, y + o.y}; } };
__device__ Box split(Box b, int d) { if (d == 0 || b.hi[0] - b.lo[0] < 2) { b.n++; return b; }
Box l = b, r = b; int m = (b.lo[0] + b.hi[0]) / 2; l.hi[0] = m; r.lo[0] = m;
Box x = split(l, d - 1); Box y = split(r, d - 1); x.hi[1] += y.hi[0]; x.n += y.n; return x; }
__device__ V spiral(V v, int d) { if (d == 0) return v; V w = spiral({v.y + 1, v.x - 1}, d - 1);
return w + spiral({w.x * .5f, v.y}, d / 2); }
""",
        r"""
    Box b{{0, 1}, {37, 5}, 0}; Box c = split(b, 4); out[k++] = c.n; out[k++] = c.hi[0];
    out[k++] = c.hi[1]; V v = spiral({1, 2}, 6); out[k++] = (int)(v.x * 64);
    out[k++] = (int)(v.y * 64);
""",
    ),
    # bst return
    (
        r"""
struct Node { int value; Node *left, *right;
__device__ Node(int v) : value(v), left(nullptr), right(nullptr) {}
__device__ int sum() const {
return value + (left ? left->sum() : 0) + (right ? right->sum() : 0); } };
__device__ Node *insert(Node *n, int v) { if (n == nullptr) return new Node(v);
if (v < n->value) n->left = insert(n->left, v); else n->right = insert(n->right, v); return n; }
""",
        r"""
    Node *root = nullptr; for (int i = 0; i < 6; i++) root = insert(root, in[i]);
    out[k++] = root->sum(); out[k++] = root->left->sum();
""",
    ),
]
VALUES = (3, 7, 2, 9, 4, 1)
LEVELS = 9


@pytest.mark.parametrize("features", [NUMBERS, OBJECTS], ids=["numbers", "objects"])
def test_beside_the_host(device, features):
    source = in_one_kernel(features)
    check(source, device, *VALUES, standard="c++20", recursion=LEVELS)


def test_trees_beside_the_host():
    check(in_one_kernel(TREES), "cpu", *VALUES, standard="c++20", recursion=LEVELS)


FIBONACCI = """
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ int length(int n, int so_far)
{
    if (n == 0) return so_far;
    return length(n - 1, so_far + 1);
}
__global__ void fibonacci(int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ int most;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    int found = fib(i % 11);
    atomicMax(&most, found);
    __syncthreads();
    if (i < n) out[i] = found * 100 + most;
}
__global__ void lengths(int *out) { out[threadIdx.x] = length(threadIdx.x * 50, 0); }
"""


def test_threads_and_levels(device):
    module = td.cuda_module(FIBONACCI, recursion=10)
    out = td.full((50,), -1, dtype=td.int32, device=device)
    module.fibonacci[3, 20](out, 50)
    fib = np.array([0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55])[np.arange(60) % 11]
    most = fib.reshape(3, 20).max(axis=1).repeat(20)
    assert out.tolist() == (fib * 100 + most)[:50].tolist()


def test_what_ends_with_its_own_call_needs_one_level(device):
    module = td.cuda_module(FIBONACCI, recursion=1)
    out = td.full((8,), -1, dtype=td.int32, device=device)
    module.lengths[1, 8](out)
    assert out.tolist() == [50 * i for i in range(8)]


def test_too_deep_is_reported(device):
    module = td.cuda_module(FIBONACCI, recursion=9)
    out = td.full((20,), -1, dtype=td.int32, device=device)
    with pytest.raises(LaunchError, match=r"fib calls itself at most 9 levels deep .*recursion=9"):
        module.fibonacci[1, 20](out, 20)


def test_levels_are_a_number():
    for wrong in (0, 1 << 17, True, "8"):
        with pytest.raises(TreadleError, match="recursion is a number of levels from 1 to 65,536"):
            td.cuda_module(FIBONACCI, recursion=wrong)
