"""The heap of kernels: new, delete, malloc and free."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_tables_of_programs import results
from treadle.core.errors import CompileError, LaunchError, TreadleError

SOURCE = """
struct Node {
    int value;
    Node *next;
    __device__ Node(int v, Node *n) : value(v), next(n) {}
};
__global__ void lists(int *out)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    Node *head = nullptr;
    for (int i = 0; i <= t % 7; i++) head = new Node(t + i, head);
    while (head) {
        sum = sum * 3 + head->value;
        Node *next = head->next;
        delete head;
        head = next;
    }
    out[t] = sum;
}
struct Ends {
    int *count;
    __device__ Ends(int *c) : count(c) { atomicAdd(count, 1); }
    __device__ ~Ends() { atomicAdd(count, 100); }
};
__global__ void destructors(int *count, int n)
{
    for (int i = 0; i < n; i++) {
        Ends *one = new Ends(count);
        delete one;
    }
    Ends *none = nullptr;
    delete none;
}
struct Tree { Tree *left, *right; int value; };
__device__ Tree *leaf(int value) { return new Tree{nullptr, nullptr, value}; }
__global__ void sorted(int *x, int n)
{
    Tree *root = leaf(x[0]);
    for (int i = 1; i < n; i++) {
        Tree *at = root;
        while (true) {
            Tree **next = x[i] < at->value ? &at->left : &at->right;
            if (!*next) { *next = leaf(x[i]); break; }
            at = *next;
        }
    }
    Tree **stack = new Tree *[n], *at = root;
    int top = 0, k = 0;
    while (at || top) {
        while (at) { stack[top++] = at; at = at->left; }
        at = stack[--top];
        x[k++] = at->value;
        Tree *done = at;
        at = at->right;
        delete done;
    }
    delete[] stack;
}
struct Counter { short n = 5; float3 at; __device__ ~Counter() { n = 0; } };
__global__ void arrays(float *out, int n)
{
    int t = threadIdx.x;
    float *a = new float[n + t], s = 0;
    unsigned char *c = (unsigned char *)malloc(5);
    Counter *counter = new Counter;
    int *one = new int(t), *zero = new int(), *none = nullptr;
    for (int i = 0; i < n + t; i++) a[i] = i;
    for (int i = 0; i < 5; i++) c[i] = t + i;
    counter->at.y = 0.5f;
    for (int i = 0; i < n + t; i++) s += a[i];
    out[t] = s + c[4] + counter->at.y + counter->n + *one + *zero;
    delete[] a;
    delete counter;
    delete one;
    delete zero;
    delete none;
    free(c);
}
__global__ void large(int *out)
{
    char *p = (char *)malloc(2000), *q = (char *)malloc(100000);
    out[0] = p != nullptr;
    out[1] = q == nullptr;
    if (p) p[1999] = 3;
    out[2] = p[1999];
    free(p);
    free(q);
}
__global__ void shared_pointer(int *out)
{
    __shared__ int *data;
    if (threadIdx.x == 0) data = new int[blockDim.x];
    __syncthreads();
    data[threadIdx.x] = threadIdx.x * 2;
    __syncthreads();
    out[threadIdx.x] = data[blockDim.x - 1 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) delete[] data;
}
__global__ void placed(float *out) { float2 *p = new (out) float2{1, 2}; p->y += 1; }
struct Ranged {
    int *p, n;
    __device__ Ranged(int *p, int n) : p(p), n(n) {}
};
struct Seven { int v; __device__ Seven() : v(7) {} __device__ Seven(int v) : v(v) {} };
__global__ void listed(int *out)
{
    int x[2] = {4, 5}, k = 0;
    Ranged *r = new Ranged[2]{{x, 1}, {x + 1, 2}};
    out[k++] = *r[1].p * 10 + r[0].n;
    Seven *s = new Seven[3]{{1}, 2}, *t = new Seven[2]{}, *u = new Seven[2];
    out[k++] = s[0].v * 1000 + s[1].v * 100 + s[2].v * 10 + (t[1].v == 7 && u[1].v == 7);
    int *i = new int[3]{1, 2}, *z = new int[4]();
    out[k++] = i[0] * 100 + i[1] * 10 + i[2] + z[3];
    float2 *f = new float2[2]{{1, 2}, {3, 4}};
    out[k++] = f[1].x * 10 + f[0].y;
}
__global__ void listed_at_run_time(int *out, int n) { out[0] = new Seven[n]{1, 2} != nullptr; }
__global__ void leak(int *out) { out[threadIdx.x] = new int != nullptr; }
__global__ void wrong(int *out) { free(out); }
__global__ void ends(int n) { Counter *c = new Counter[n]; delete[] c; }
"""


def _sum_of_list(t: int) -> int:
    total = 0
    for value in range(t + t % 7, t - 1, -1):
        total = total * 3 + value
    return total


def test_pieces_are_taken_and_given_back(device, rng):
    module = td.cuda_module(SOURCE, heap_bytes=1 << 15)  # too little for all launches together
    out = np.zeros(64, np.int32)
    sums, found, flags = np.zeros(8, np.float32), np.zeros(8, np.int32), np.zeros(3, np.int32)
    for _ in range(6):
        module.lists[2, 32](out)
        module.arrays[1, 8](sums, 40)
        module.large[1, 1](flags)
        module.shared_pointer[1, 8](found)
        assert out.tolist() == [_sum_of_list(t) for t in range(64)]
        assert sums.tolist() == [sum(range(40 + t)) + t + 4 + 0.5 + 5 + t for t in range(8)]
        assert flags.tolist() == [1, 1, 3]
        assert found.tolist() == list(range(14, -1, -2))
    count = np.zeros(1, np.int32)
    module.destructors[1, 1](count, 7)
    assert count.tolist() == [707]
    numbers = rng.integers(0, 1000, 40).astype(np.int32)
    ordered = numbers.copy()
    module.sorted[1, 1](ordered, 40)
    np.testing.assert_array_equal(ordered, np.sort(numbers))
    pair = np.zeros(2, np.float32)
    module.placed[1, 1](pair)
    assert pair.tolist() == [1, 3]
    values = np.zeros(4, np.int32)
    module.listed[1, 1](values)
    assert values.tolist() == [51, 1271, 120, 32]


def test_a_full_heap_gives_null(device):
    module = td.cuda_module(SOURCE, heap_bytes=2048)  # 64 blocks, of which one is never given
    out = np.zeros(100, np.int32)
    module.leak[1, 100](out)
    assert out.sum() == 63


def test_what_is_refused(device):
    module = td.cuda_module(SOURCE)
    with pytest.raises(CompileError, match=r"free and delete take what malloc and new gave"):
        module.wrong.source("ir")
    with pytest.raises(CompileError, match=r"delete\[\] of objects whose destructors do something"):
        module.ends.source("ir")
    with pytest.raises(CompileError, match=r"new T\[n\] with initial values and n not a constant"):
        module.listed_at_run_time.source("ir")
    with pytest.raises(TreadleError, match=r"heap_bytes is an integer from 1024 to .*, not 0"):
        td.cuda_module(SOURCE, heap_bytes=0)


MISTAKES = """struct Node { Node *next; int four[4]; };
__device__ int &at(int *p, int i) { return p[i]; }
__device__ int read(const int *p) { return p ? *p : 7; }
__global__ void mistake(int *out, int which, int n)
{
    int *four = new int[4], local[4] = {}, sum = 0, *unset, *end = &four[4];
    int *maybe = n > 100 ? four : nullptr;
    Node one, *head = &one;
    head->next = nullptr;
    if (n > 100) { head->next = head; unset = out; }
    for (int i = 0; i < 4; i++) four[i] = i + 1;
    while (--end >= four) sum += *end;
    switch (which) {
    case 1: four[n] = 1; break;
    case 2: sum += four[-n]; break;
    case 3: sum += at(four, n + 1); break;
    case 4: sum += head->next->four[0]; break;
    case 5: *maybe = 1; break;
    case 6: atomicAdd(maybe, 1); break;
    case 7: unset[0] = 1; break;
    case 8: (n > 3 ? local : four)[n + 3] = 1; break;
    case 9: head->four[n] = 1; break;
    case 10: sum += read(maybe) + read(four); break;
    }
    out[0] = sum;
    for (int i = 0; i < 1 + (which == 11); i++)
        delete[] (four + (which == 12));
    if (which == 13) out[0] = four[3];
}
__global__ void churn(int *out, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        int *few = new int[8], *many = (int *)malloc(1500);
        few[7] = many[374] = i;
        sum += few[7] + many[374];
        delete[] few;
        free(many);
    }
    out[threadIdx.x] = sum;
}
"""
_GIVEN = "the memory of new or malloc"
_NULL = "a null pointer is dereferenced, or one that nothing has set"
REPORTS = {
    1: (14, f"index 4 is outside {_GIVEN} of extent 4 (axis 0)"),
    2: (15, f"index -4 is outside {_GIVEN} of extent 4 (axis 0)"),
    3: (16, f"index 5 is outside {_GIVEN} of extent 4 (axis 0)"),
    4: (17, _NULL),
    5: (18, _NULL),
    6: (19, _NULL),
    7: (20, _NULL),
    8: (21, "index 7 is outside local of extent 4 (axis 0)"),
    9: (22, "index 4 is outside one.four of extent 4 (axis 0)"),
    11: (27, "delete or free of what was given back before"),
    12: (27, "delete or free of a pointer that new or malloc did not give"),
    13: (28, f"{_GIVEN} is accessed after it was given back"),
}


@pytest.fixture
def checks(monkeypatch):
    monkeypatch.setattr("treadle.runtime.settings.check", True)


def test_check_mode_finds_mistakes_with_pointers(device, checks, tmp_path):
    file = tmp_path / "mistakes.cu"
    file.write_text(MISTAKES)
    module = td.cuda_module(file, heap_bytes=1 << 14)
    out = td.zeros(1, dtype=td.int32, device=device)
    for which, (line, what) in REPORTS.items():
        with pytest.raises(LaunchError) as caught:
            module.mistake[1, 1](out, which, 4)
        where = f"kernel mistake, line {line} of mistakes.cu: "
        expected = f"{where}{what}, block (0, 0, 0), thread (0, 0, 0)"
        assert str(caught.value).partition(" (and")[0] == expected
    for which, expected in ((0, 10), (10, 10 + 7 + 1)):
        module.mistake[1, 1](out, which, 4)
        assert out.item() == expected


def test_check_mode_uses_memory_again_when_none_is_left(device, checks):
    module = td.cuda_module(MISTAKES, heap_bytes=1 << 14)
    out = td.zeros(2, dtype=td.int32, device=device)
    module.churn[1, 2](out, 40)
    assert out.numpy().tolist() == [2 * 780] * 2


OF_DEDUCED_TYPES = """
struct S { int a; float b; };
__device__ int test(int k)
{
    auto *p = new auto(k * 2);
    auto q = new auto(S{k, 1.5f});
    auto *f = new auto([=](int x) { return x + k; });
    int r = *p + q->a + (int)(q->b * 2) + (*f)(3);
    delete p; delete q; delete f;
    return r;
}
"""


def test_new_of_a_deduced_type(device):
    assert results(device, OF_DEDUCED_TYPES) == [4 * k + 6 for k in range(8)]


COPIED = """
struct T {
    int *out, *at, v;
    __device__ T(int *o, int *a, int v) : out(o), at(a), v(v) { out[(*at)++] = v; }
    __device__ T(const T &t) : out(t.out), at(t.at), v(t.v + 1) { out[(*at)++] = v * 100; }
    __device__ ~T() { out[(*at)++] = -v; }
};
template <class U> struct Given { U *data; __device__ void back() { free(data); } };
__global__ void copied(int *out)
{
    int at = 0;
    T a(out, &at, 1);
    T *b = new T(a);
    delete b;
    Given<int> given = {(int *)malloc(8)};
    given.data[1] = 5;
    out[5] = given.data[1];
    given.back();
}
"""


def test_pointers_to_variables_in_objects_of_the_heap(device):
    """Their members are read before indices that have side effects."""
    out = td.zeros(6, dtype=td.int32, device=device)
    td.cuda_module(COPIED).copied[1, 1](out)
    assert out.tolist() == [1, 200, -2, -1, 0, 5]
