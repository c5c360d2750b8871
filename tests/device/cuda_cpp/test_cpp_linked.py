"""Pointers that lead to structs of their own kind, are in unions, last from one launch to the next,
or are passed to kernels that a kernel launches."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import DtypeError

SOURCE = r"""
struct Draw { float4 head; union { float color[2]; float *ptr; } u; float t, r; };
struct Renderer { int n; Draw *di; };
__global__ void drawn(Renderer r, float *out, int many)
{
    __shared__ Draw list[8];
    int i = threadIdx.x;
    if (i < r.n) {
        list[i] = r.di[i];
        const Draw d = list[i];
        const float *p = many > 3 ? d.u.ptr : &d.t;
        out[i] = p[0] + (many > 3 ? p[1] : d.u.color[1]);
    }
}
__global__ void signatures(Renderer r, float *colors, int many)
{
    int i = threadIdx.x;
    Draw &d = r.di[i];
    d.t = i;
    if (many > 3) d.u.ptr = colors + 2 * i;
    else { d.u.color[0] = i; d.u.color[1] = 8; }
    if (many > 3) d.r = r.di[i].u.ptr[1];
}

struct Node { int value; Node *next; Node *kids[2]; };
__global__ void walk(Node *node, int *out)
{
    int sum = 0, steps = 0;
    for (Node *p = node; p && steps < 100; p = p->next, steps++) sum = 3 * sum + p->value;
    out[0] = sum;
    out[1] = node->kids[1] ? node->kids[1]->value : -1;
}
__global__ void reverse(Node *node)
{
    Node *last = nullptr;
    for (Node *p = node; p;) { Node *next = p->next; p->next = last; last = p; p = next; }
    node->kids[0] = last;
    node->value += 100;
}
struct Tree { Tree *left, *right; const float *key; };
struct Forest { Tree *roots[2]; Tree *all; int n; };
__global__ void smallest(Forest f, float *out)
{
    Tree *t = f.roots[threadIdx.x];
    while (t->left) t = t->left;
    out[threadIdx.x] = *t->key + (t == f.all + f.n - 1 ? 100 : 0);
}

typedef union Ends Ends;
union Ends { Ends *next; Node *node; };
__global__ void patched(Node *a, Node *b)  // lists of ends are kept in the pointers themselves
{
    Ends *list = (Ends *)&a->next, *other = (Ends *)&a->kids[1];
    list->next = other;
    other->next = nullptr;
    while (list) { Ends *next = list->next; list->node = b; list = next; }
    a->value = a->next->value + a->kids[1]->value;
}

struct Line { float2 points[2]; float2 *made; int count; };
__global__ void fill(int k, Line *lines, int n)
{
    if (threadIdx.x < n) lines[k].made[threadIdx.x] = make_float2(threadIdx.x, k);
}
__global__ void lines(Line *lines, int n)
{
    int i = threadIdx.x;
    if (i >= n) return;
    if (lines[i].made == NULL) {
        lines[i].count = 4 + i;
        cudaMalloc((void **)&lines[i].made, lines[i].count * sizeof(float2));
    }
    fill<<<1, 32>>>(i, lines, lines[i].count);
}
__global__ void totals(Line *lines, float *out)
{
    float sum = 0;
    Line &line = lines[threadIdx.x];
    for (int k = 0; k < line.count; k++) sum += line.made[k].x + 10 * line.made[k].y;
    out[threadIdx.x] = sum;
}
__global__ void release(Line *lines)
{
    cudaFree(lines[threadIdx.x].made);
    lines[threadIdx.x].made = 0;
}

struct Count { unsigned key, many; int *spare; };
__device__ Count &find(Count *in, unsigned key, int n)
{
    for (int i = 0; i < n; i++) {
        if (in[i].key == key) return in[i];
        if (in[i].key == 0) { in[i].key = key; return in[i]; }
    }
    return in[n - 1];
}
__global__ void counts_of(Count *odd, Count *even, int n, unsigned &total)
{
    for (int i = 0; i < n; i++) {
        Count &one = find(i & 1 ? odd : even, i / 2 % 3 + 1, 4);
        atomicAdd(&one.many, i);
        total += i;
    }
}

__device__ void sums(float *x, float *own, float **pairs, int n, int *flag)
{
    for (int i = 0; i < n; ++i) {
        float *data = pairs[i];
        x[i] += data[i] + own[i];
        own[i] = 0;
    }
    if (flag) *flag = 5;
}
__global__ void null_arguments(float *x, float *own, float **pairs, int n)
{
    if (n > 0) sums(x, own, pairs, n, nullptr);
    else sums(x, 0, 0, 0, 0);
}

struct Stack { uint4 *a; float *b; int n; };
__constant__ Stack stack;
__constant__ float *rows[3][2];
__device__ float *current = nullptr;
__device__ int counts[4];
__device__ int *chosen;
__device__ Node *list;
__global__ void use(float *out, float *other)
{
    int i = threadIdx.x;
    if (i < stack.n)
        out[i] = stack.b[i] + stack.a[i].y + rows[i % 3][1][i] + (current ? current[i] : 0.f);
    if (i == 0) { current = other + 1; chosen = &counts[2]; }
}
__global__ void count() { atomicAdd(chosen, 1); }
__global__ void push(int value)
{
    Node *made = new Node;
    made->value = value;
    made->next = list;
    list = made;
}
__global__ void listed(int *out)
{
    for (Node *p = list; p; p = p->next) *out++ = p->value;
}
"""
MODULE = td.cuda_module(SOURCE, heap_bytes=1 << 16)


def _draws(unions: list[Any]) -> dict[str, Any]:
    draws = [{"head": (1, 2, 3, 4), "u": one, "t": 1.0, "r": 2.0} for one in unions]
    return {"n": len(draws), "di": draws}


def test_unions_with_pointers(device, rng):
    colors = rng.normal(size=(5, 2)).astype(np.float32)
    out = np.zeros(8, np.float32)
    MODULE.drawn[1, 8](_draws([{"ptr": one.copy()} for one in colors]), out, 4)
    np.testing.assert_array_equal(out[:5], colors[:, 0] + colors[:, 1])
    given = _draws(list(colors))
    MODULE.drawn[1, 8](given, out, 3)
    np.testing.assert_array_equal(out[:5], 1 + colors[:, 1])
    MODULE.signatures[1, 5](given, colors, 4)
    assert [one["r"] for one in given["di"]] == colors[:, 1].tolist()
    MODULE.signatures[1, 5](given, colors, 3)  # the bytes of what it became
    found = [np.frombuffer(one["u"], np.float32).tolist() for one in given["di"]]
    assert found == [[k, 8] for k in range(5)]
    with pytest.raises(DtypeError, match=r"field di of kernel drawn has a union of 8 bytes"):
        MODULE.drawn[1, 8](_draws([np.zeros(3, np.float32)]), out, 3)


def _node(value: int) -> dict[str, Any]:
    return {"value": value, "next": None, "kids": [None, None]}


def test_structs_that_are_linked(device):
    nodes = [_node(k) for k in range(5)]
    for one, after in pairwise(nodes):
        one["next"] = after
    nodes[0]["kids"][1] = nodes[3]
    out, wanted = np.zeros(2, np.int32), [27 + 18 + 9 + 4, 3]
    MODULE.walk[1, 1](nodes[0], out)  # found by following the pointers
    assert out.tolist() == wanted
    MODULE.walk[1, 1](nodes, out)
    assert out.tolist() == wanted
    MODULE.reverse[1, 1](nodes[0])
    assert [one["value"] for one in nodes] == [100, 1, 2, 3, 4]
    assert all(after["next"] is one for one, after in pairwise(nodes))
    assert nodes[0]["next"] is None
    assert nodes[0]["kids"][0] is nodes[4]
    MODULE.patched[1, 1](nodes[1], nodes[3])
    assert nodes[1]["next"] is nodes[1]["kids"][1] is nodes[3]
    assert nodes[1]["value"] == 6
    dtype = [("value", np.int32), ("next", np.int64), ("kids", np.int64, 2)]
    records = np.zeros(6, dtype)  # indices stand for pointers
    records["value"], records["next"], records["kids"] = range(6), [2, -1, 4, 0, -1, 0], -1
    MODULE.walk[1, 1]([{name: one[name] if name != "kids" else [-1, 5] for name in
                        ("value", "next", "kids")} for one in records], out)  # fmt: skip
    assert out.tolist() == [2 * 3 + 4, 5]
    with pytest.raises(DtypeError, match=r"the number 9 was given: an index is from 0 to 0"):
        MODULE.walk[1, 1]([{"value": 1, "next": 9, "kids": [None, None]}], out)


@dataclass
class Tree:
    left: Tree | None
    right: Tree | None
    key: Any


def test_trees_of_objects(device):
    keys = [np.array([k], np.float32) for k in range(4)]
    leaf = Tree(None, None, keys[0])
    low, other = Tree(leaf, None, keys[1]), Tree(None, leaf, keys[2])
    out = np.zeros(2, np.float32)
    MODULE.smallest[1, 2]({"roots": [low, other], "all": [Tree(None, None, keys[3])], "n": 1}, out)
    assert out.tolist() == [0, 2]


def test_memory_that_kernels_allocate_in_structs(device):
    given = [{"points": [(0, 0)] * 2, "made": None, "count": 0} for _ in range(3)]
    stream = device.default_stream
    MODULE.lines[1, 32, 0, stream](given, 3)
    out = np.zeros(3, np.float32)
    MODULE.totals[1, 3, 0, stream](given, out)
    assert out.tolist() == [sum(range(4 + k)) + 10 * k * (4 + k) for k in range(3)]
    MODULE.release[1, 3](given)  # on the device of the pointers
    assert [one["made"] for one in given] == [None] * 3


def test_variables_of_the_file_with_pointers(device):
    module = td.cuda_module(SOURCE, heap_bytes=1 << 16)
    constants, stream = module.constants, device.default_stream
    a = np.arange(16, dtype=np.uint32).reshape(4, 4)
    constants["stack"] = {"a": td.asarray(a, device=device), "b": td.ones(4, device=device), "n": 4}
    constants["rows"] = [[None, td.full(8, 100.0 * k, device=device)] for k in range(3)]
    out, other = td.zeros(8, device=device), td.arange(10, dtype=td.float32, device=device)
    assert constants["current"] is None
    base = 1 + a[:, 1] + [0, 100, 200, 0]
    module.use[1, 8](out, other)
    assert out.tolist()[:4] == base.tolist()
    module.use[1, 8](out, other)
    assert out.tolist()[:4] == [base[k] + k + 1 for k in range(4)]
    assert constants["current"].tolist() == list(range(1, 10))
    module.count[1, 4, 0, stream]()
    assert constants.on(device)["counts"].tolist() == [0, 0, 4, 0]
    for value in (1, 2, 3):
        module.push[1, 1, 0, stream](value)
    found = td.zeros(3, dtype=td.int32, device=device)
    module.listed[1, 1](found)
    assert found.tolist() == [3, 2, 1]


def test_references_to_one_of_several_elements(device):
    odd, even = ([{"key": 0, "many": 0, "spare": None} for _ in range(4)] for _ in range(2))
    total = np.zeros(1, np.uint32)
    MODULE.counts_of[1, 1](odd, even, 12, total)
    assert [one["many"] for one in odd] == [1 + 7, 3 + 9, 5 + 11, 0]
    assert [one["many"] for one in even] == [0 + 6, 2 + 8, 4 + 10, 0]
    assert total.tolist() == [66]


def test_null_pointers_as_arguments_of_functions(device):
    x, own = np.ones(3, np.float32), np.full(3, 2, np.float32)
    MODULE.null_arguments[1, 1](x, own, None, 0)
    assert x.tolist() == [1] * 3
    pairs = [np.full(3, k, np.float32) for k in (10, 20, 30)]
    MODULE.null_arguments[1, 1](x, own, pairs, 3)
    assert x.tolist() == [13, 23, 33]
    assert not own.any()
