"""Pointers kept in memory: tables of pointers, structs with pointers, shared pointers."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError, DtypeError

MODULE = td.cuda_module("""
__global__ void rows(float **rows, const int *lengths)
{
    float *row = rows[blockIdx.x];
    if (row && threadIdx.x < lengths[blockIdx.x])
        row[threadIdx.x] += 10 * blockIdx.x;
}
__global__ void gather(float3 *out, const float3 *const *from, int n)
{
    int i = threadIdx.x;
    if (i < n) out[i] = from[i % 2][i / 2];
}
struct Cluster { short n; float *means; const float *weights; double scale; float *rows[2]; };
__global__ void clusters(Cluster *c, float *out)
{
    Cluster s = c[blockIdx.x];
    int j = threadIdx.x;
    if (j < s.n) {
        s.means[j] *= (float)s.scale;
        out[8 * blockIdx.x + j] = s.weights[j] + c[blockIdx.x].rows[j & 1][j];
        if (j == 0) c[blockIdx.x].n = -s.n;
    }
}
__global__ void turns(float *x, float *y)
{
    __shared__ float *from, *to, spare[32];
    int t = threadIdx.x;
    if (t == 0) { from = x; to = y; }
    __syncthreads();
    for (int round = 0; round < 3; round++) {
        to[t] = from[t] + 1;
        __syncthreads();
        if (t == 0) { float *last = from; from = to; to = round == 1 ? spare : last; }
        __syncthreads();
    }
    x[t] += from[t];
}
__device__ void swap_pointers(void **a, void **b) { void *c = *a; *a = *b; *b = c; }
__global__ void swapped(int *x, int *y)
{
    int *a = x, *b = y;
    swap_pointers((void **)&a, (void **)&b);
    a[threadIdx.x] = 1;
    b[threadIdx.x] = 2;
}
__global__ void deep(int *out, int ***table)
{
    out[threadIdx.x] = *table[threadIdx.x / 2][threadIdx.x % 2];
}
struct Stack { int *top; int n; };
__global__ void stacks(int *out, int *space)
{
    __shared__ Stack stack[4];
    __shared__ int *marks[100];
    int t = threadIdx.x;
    stack[t] = Stack{space + 8 * t, t};
    Stack &own = stack[t];
    for (int i = 0; i <= t; i++) *own.top++ = 10 * t + i;
    marks[t] = own.top;
    __syncthreads();
    Stack other = stack[(t + 1) % 4];
    out[t] = other.top[-1] + 100 * other.n + 1000 * (marks[(t + 1) % 4] == other.top);
    out[t] += 10000 * (other.top - (space + 8 * other.n));
}
__global__ void through_member(Cluster *c) { float **p = &c->means; (*p)[0] = 2; }
__global__ void shares(Cluster *c) { __shared__ float own[4]; c->means = own; }
__global__ void turned(float **rows, Cluster *c, float *other)
{
    float *first = rows[0];
    rows[0] = rows[1];
    rows[1] = first;
    if (c) c->means = other;
}
""")


@pytest.mark.parametrize("on_device", [False, True])
def test_tables_of_pointers(device, rng, on_device):
    make = td.asarray if on_device else np.asarray
    lengths = np.array([3, 0, 5, 2], np.int32)
    before = [rng.normal(size=k).astype(np.float32) for k in lengths]
    table = [make(one.copy()) if one.size else None for one in before]
    MODULE.rows[4, 8](table, lengths)
    for k, one in enumerate(before):
        if one.size:
            np.testing.assert_array_equal(np.asarray(table[k]), one + np.float32(10 * k))
    if on_device:  # views of one tensor are not copied
        whole = td.zeros((4, 5))
        MODULE.rows[4, 8]([whole[k] for k in (1, 0, 3, 2)], np.full(4, 5, np.int32))
        assert whole.numpy()[:, 0].tolist() == [10, 0, 30, 20]
    out = np.zeros((7, 3), np.float32)
    points = rng.normal(size=(2, 4, 3)).astype(np.float32)
    MODULE.gather[1, 8](out, [make(one) for one in points], 7)
    np.testing.assert_array_equal(out, points.transpose(1, 0, 2).reshape(8, 3)[:7])
    found = np.zeros(4, np.int32)
    numbers = [[make(np.array([k + j], np.int32)) for j in (0, 1)] for k in (10, 20)]
    MODULE.deep[1, 4](found, numbers)
    assert found.tolist() == [10, 11, 20, 21]


def test_structs_with_pointers_in_memory(device, rng):
    if "float64" not in device.features:  # the struct has a double
        return
    means, weights = rng.normal(size=(2, 2, 8)).astype(np.float32)
    rows = rng.normal(size=(2, 2, 8)).astype(np.float32)
    given = [
        {"n": 3 + k, "means": means[k].copy(), "weights": weights[k], "scale": 2.0 + k,
         "rows": list(rows[k])}
        for k in range(2)
    ]  # fmt: skip
    out = np.zeros((2, 8), np.float32)
    MODULE.clusters[2, 8](given, out)
    for k in range(2):
        n = 3 + k
        scaled = np.where(np.arange(8) < n, means[k] * np.float32(2 + k), means[k])
        np.testing.assert_array_equal(given[k]["means"], scaled)
        chosen = np.where(np.arange(8) % 2, rows[k, 1], rows[k, 0])
        np.testing.assert_array_equal(out[k], np.where(np.arange(8) < n, weights[k] + chosen, 0))
        assert given[k]["n"] == -n
    MODULE.clusters[1, 8](given[0], out)  # one struct: n is below 0 now


def test_pointers_that_a_kernel_stores(device):
    if "float64" not in device.features:  # the struct has a double
        return
    rows = [np.zeros(2, np.float32), None]
    first = rows[0]
    MODULE.turned[1, 1](rows, None, None)
    assert rows[0] is None
    assert rows[1] is first
    one = {"n": 3, "means": first, "weights": None, "scale": 2.0, "rows": [None, None]}
    other = np.ones(2, np.float32)
    MODULE.turned[1, 1](rows, one, other)  # another argument
    assert one["means"].tolist() == [1, 1]
    with pytest.warns(RuntimeWarning, match=r"stored pointers to float in it .*elsewhere"):
        MODULE.shares[1, 1](one)
    MODULE.through_member[1, 1](one)
    assert one["means"].tolist() == [2, 1]


def test_pointers_in_shared_memory(device):
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    MODULE.turns[1, 32](x, y)
    np.testing.assert_array_equal(x, 2 * np.arange(32) + 5)
    out, space = np.zeros(4, np.int32), np.zeros(32, np.int32)
    MODULE.stacks[1, 4](out, space)
    k = np.roll(np.arange(4), -1)
    np.testing.assert_array_equal(out, 10 * k + k + 100 * k + 1000 + 10000 * (k + 1))
    a, b = np.zeros((2, 4), np.int32)
    MODULE.swapped[1, 4](a, b)
    assert a.tolist() == [2] * 4
    assert b.tolist() == [1] * 4


def test_what_is_refused(device):
    lengths, one = np.ones(2, np.int32), np.zeros(4, np.float32)
    with pytest.raises(DtypeError, match=r"is float\*\*, but an array of float32 and shape \(4,\)"):
        MODULE.rows[1, 8](one, lengths)
    with pytest.raises(DtypeError, match=r"arrays that overlap were given: pass tensors"):
        MODULE.rows[1, 8]([one[:3], one[1:]], lengths)
    with pytest.raises(DtypeError, match=r"but the number 3 was given: pass tensors, or NumPy"):
        MODULE.rows[1, 8]([one, 3], lengths)
    with pytest.raises(DtypeError, match=r"there are n, means, weights, scale, rows"):
        MODULE.clusters[1, 8]([{"n": 3}], one)


_BEFORE = """
__global__ void drawn(int *a, int *b, int *out, int zero)
{
    __shared__ int s[8];
    __shared__ int *p[4];
    __shared__ Q q[2];
    for (int i = 0; i < 8; i++) s[i] = 0;
    p[0] = a; p[1] = b; p[2] = s; p[3] = nullptr;
    q[0] = Q{a, 1}; q[1] = Q{b + 2, 2};
"""
_AFTER = """
    for (int i = 0; i < 8; i++) out[i] = s[i];
    for (int i = 0; i < 4; i++) out[8 + i] = p[i] ? *p[i] : -1;
    out[12] = p[0] == p[1]; out[13] = q[0].at == q[1].at; out[14] = q[0].n; out[15] = q[1].n;
}
"""


def _drawn(rng: np.random.Generator) -> tuple[str, dict[str, list[int]], list[int]]:
    """Statements on pointers in shared memory, what they leave in arrays, and their results."""
    arrays = {"a": list(range(8)), "b": [10 * i for i in range(8)], "s": [0] * 8}
    p: list[tuple[str, int] | None] = [("a", 0), ("b", 0), ("s", 0), None]
    at, n = [("a", 0), ("b", 2)], [1, 2]
    lines = []
    for _ in range(25):
        kind, i, j, x = (int(rng.integers(most)) for most in (7, 4, 4, 2))
        one, other = p[i], p[j]
        match kind:
            case 0:
                lines.append(f"p[{i}] = p[zero + {j}];")
                p[i] = other
            case 1 if one:
                by = int(rng.integers(-one[1], 8 - one[1]))
                lines.append(f"p[zero + {i}] += {by};")
                p[i] = one[0], one[1] + by
            case 2 if one:
                lines.append(f"*p[{i}] += {x + 5};")
                arrays[one[0]][one[1]] += x + 5
            case 3 if one and other:
                lines.append(f"*p[{i}] = *p[{j}] + 1;")
                arrays[one[0]][one[1]] = arrays[other[0]][other[1]] + 1
            case 4:
                lines.append(f"{{ int *t = q[0].at; q[0].at = q[1].at; q[1].at = t; q[{x}].n++; }}")
                at.reverse()
                n[x] += 1
            case 5:
                lines.append(f"if (p[{i}]) q[{x}].at = p[{i}]; *q[{x}].at += q[{x}].n;")
                at[x] = one or at[x]
                arrays[at[x][0]][at[x][1]] += n[x]
            case 6:
                lines.append(f"{{ Q w = q[{x}]; p[{i}] = w.at; w.n = 7; q[{1 - x}] = w; }}")
                p[i] = at[1 - x] = at[x]
                n[1 - x] = 7
    found = [-1 if one is None else arrays[one[0]][one[1]] for one in p]
    results = [*arrays["s"], *found, int(p[0] == p[1]), int(at[0] == at[1]), *n]
    text = "struct Q { int *at; int n; };" + _BEFORE + "\n".join(lines) + _AFTER
    return text, arrays, results


def test_drawn_statements(device, rng):
    for _ in range(3):
        text, arrays, results = _drawn(rng)
        a, b, out = np.arange(8, dtype=np.int32), 10 * np.arange(8, dtype=np.int32), np.zeros(16)
        out = out.astype(np.int32)
        td.cuda_module(text).drawn[1, 1](a, b, out, 0)
        assert (out.tolist(), a.tolist(), b.tolist()) == (results, arrays["a"], arrays["b"]), text


NODES = """
struct Node { int v; Node *next; };
struct List { Node *first; };
__device__ Node pool[5];
__device__ Node *head;
__device__ List list;
__global__ void fill(int n)
{
    for (int i = 0; i < 4; i++) { pool[i].v = n + i; pool[i].next = &pool[i + 1]; }
    pool[4].v = n * n;
}
__global__ void walk(int *out)
{
    out[0] = pool[0].next->v; out[1] = pool[2].next->next->v;
    pool[1].next->v = 3;
    out[2] = pool[2].v; out[3] = pool[3].next == pool + 4;
}
__global__ void make(int n)
{
    head = new Node{n, nullptr};
    head->next = new Node{n + 1, nullptr};
    list.first = new Node{n + 2, nullptr};
    list.first->next = new Node{n + 3, nullptr};
}
__global__ void visit(int *out)
{
    out[0] = head->v; out[1] = head->next->v; out[2] = list.first->next->v;
    out[3] = head->next->next == nullptr;
}
__global__ void root(Node **r) { *r = &pool[0]; }
"""


def test_nodes_of_the_file(device, rng):
    n = int(rng.integers(5, 90))
    module = td.cuda_module(NODES)
    out = td.zeros(4, dtype=td.int32, device=device)
    with td.use_device(device):
        module.fill[1, 1](n)
        module.walk[1, 1](out)
        assert out.tolist() == [n + 1, n * n, 3, 1]
        module.make[1, 1](n)
        module.visit[1, 1](out)
        assert out.tolist() == [n, n + 1, n + 3, 1]


def test_nodes_of_the_file_and_of_an_argument_are_refused():
    with pytest.raises(CompileError, match="pool holds objects of Node, and an argument points to"):
        td.cuda_module(NODES).root[1, 1]([None])
