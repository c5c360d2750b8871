"""Arguments of CUDA C++ kernels: structs with pointers in them, large values, functions."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import treadle as td


def ints(values, device):
    return td.asarray(np.array(values, np.int32), device=device)


# --- structs with pointers -----------------------------------------------------------------------

PARAMS = """
struct Inner { int *out; int step; };
enum Mode { ADD, SUBTRACT = 7 };
struct Params {
    const int *x;
    const int *index;
    int n;
    float4 *v;
    Inner inner;
    Mode mode;
    short w[3];
    bool twice;
    float3 at;
};
__device__ int by_reference(const Params &p, int i) { return p.x[p.index[i]]; }
__device__ int by_pointer(const Params *p, int i) { return p->x[i] + (*p).inner.step; }
__device__ int by_value(Params p, int i) { p.x += 1; p.n = 100; return p.x[i] + p.n; }
__device__ void write(Inner inner, int i, int value) { inner.out[i] = value; }
__device__ Inner further(Inner inner, int by) { inner.out += by; inner.step *= 2; return inner; }

__global__ void gather(Params p, int extra)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= p.n)
        return;
    int sum = by_reference(p, i) + extra + p.w[i % 3];
    if (p.mode == SUBTRACT) sum -= 1000;
    if (p.twice) sum *= 2;
    p.inner.out[i] = sum;
    write(p.inner, p.n + i, by_pointer(&p, i));
    Inner other = further(p.inner, 2 * p.n);
    other.out[i] = by_value(p, i) + other.step + p.inner.step + p.n;
    p.v[i].y += p.at.z;
}

__global__ void changes(Params p)
{
    Params copy = p;
    p.n--;
    p.x++;
    p.inner.out = p.inner.out + 3;
    p.inner.step = copy.inner.step + copy.n * 10 + p.n;
    Params *q = &p;
    q->inner.out[0] = p.x[0] * 1000 + q->inner.step;
    copy.inner.out[0] = copy.x[0] + (q ? 5 : 6) + (q == nullptr);
    copy.inner = q->inner;
    copy.inner.out[1] = 77;
}
"""
X, INDEX, N = np.array([10, 20, 30, 40, 50, 60], np.int32), np.array([4, 0, 5, 5], np.int32), 4
W = (1, -2, 3)


@dataclass
class Inner:
    out: object
    step: int


Params = namedtuple("Params", "x index n v inner mode w twice at")


def gathered(out: int) -> list[int]:
    sums = [(int(X[INDEX[i]]) + 1 + W[i % 3] - 1000) * 2 for i in range(N)]
    pointers = [int(X[i]) + 9 for i in range(N)]
    values = [int(X[i + 1]) + 100 + 18 + 9 + N for i in range(N)]
    return [*sums, *pointers, *values, *[0] * (out - 3 * N)]


def as_namespace(values):
    return SimpleNamespace(**values)


def as_named_tuple(values):
    return Params(**values)


def as_tuple(values):
    return tuple(values.values())


@pytest.mark.parametrize("given", [dict, as_namespace, as_named_tuple, as_tuple])
def test_struct_with_pointers(device, given):
    out = ints([0] * 13, device)
    v = np.arange(16, dtype=np.float32).reshape(4, 4)
    values = {
        "x": ints(X, device), "index": INDEX, "n": np.int64(N), "v": v, "inner": Inner(out, 9),
        "mode": 7, "w": np.array(W, np.int16), "twice": True, "at": (1, 2, 0.5),
    }  # fmt: skip
    td.cuda_module(PARAMS).gather[1, 8](given(values), 1)
    assert out.tolist() == gathered(13)
    assert v[:, 1].tolist() == [1.5, 5.5, 9.5, 13.5]  # NumPy's arrays are written back


def test_fields_are_assigned(device):
    out = ints([0] * 8, device)
    empty = td.zeros((0, 4), device=device)
    arguments = (ints(X, device), None, N, empty, (out, 2), 0, W, False, (0, 0, 0))
    td.cuda_module(PARAMS).changes[1, 1](arguments)
    step = 2 + N * 10 + N - 1
    assert out.tolist() == [15, 0, 0, 20 * 1000 + step, 77, 0, 0, 0]


METHODS = """
template <typename T> struct Span {
    T *data;
    int size;
    __device__ T &operator[](int i) const { return data[i]; }
    __device__ T *begin() const { return data; }
    __device__ T *end() const { return data + size; }
    __device__ Span<T> from(int k) const { Span<T> rest = {data + k, size - k}; return rest; }
    __device__ void drop() { data++; size--; }
};
struct Base { int *first; };
struct Derived : Base { struct { int *second; int n; }; int k; };

__global__ void spans(Span<const int> a, Span<int> b, int k)
{
    Span<const int> tail = a.from(k);
    int sum = 0;
    for (const int *at = tail.begin(); at < tail.end(); at++) sum += *at;
    for (int i = threadIdx.x; i < b.size - 1; i += blockDim.x)
        b[i] = i < tail.size ? tail[i] * 10 : -1;
    b.drop();
    if (threadIdx.x == 0) b[b.size - 1] = sum;
}

__global__ void inherited(Derived d)
{
    int i = threadIdx.x;
    if (i < d.n) d.first[i] = d.second[i] + d.k;
}
"""


def test_methods_and_templates(device):
    module = td.cuda_module(METHODS)
    out = ints([0] * 9, device)
    module.spans[1, 4]({"data": ints(range(10), device), "size": 10}, (out, 9), 4)
    assert out.tolist() == [40, 50, 60, 70, 80, 90, -1, -1, 39]
    inner = {"second": ints([5, 6, 7], device), "n": 3}
    module.inherited[1, 8]({"first": out, "anonymous0": inner, "k": 100})
    assert out.tolist() == [105, 106, 107, 70, 80, 90, -1, -1, 39]


# --- arrays of pointers --------------------------------------------------------------------------

ROWS = """
struct Rows { int *rows[3]; int n; };
__device__ int item(int *const *rows, int row, int i) { return rows[row][i]; }

__global__ void reads(Rows p, int *out)
{
    int i = threadIdx.x;
    if (i >= p.n) return;
    int sum = p.rows[0][i] + p.rows[2][1];
    for (int k = 0; k < 3; k++) sum += p.rows[k][i] * 10;
    out[i] = sum + item(p.rows, (i + 1) % 3, i) * 1000;
    p.rows[i % 3][0] = -i;
}

__global__ void moves(Rows p, int *out, int which)
{
    int *local[4] = {p.rows[0], p.rows[2], out};
    out[0] = local[3] == nullptr ? local[which][1] : 0;
    p.rows[which] = p.rows[which] + 1;
    out[1] = p.rows[which][0];
    p.rows[0]++;
    out[2] = p.rows[0][0];
    local[1] = out + 4;
    *local[1] = 9;
    Rows q = p;
    q.rows[2] = out + 5;
    *q.rows[2] = 11;
    *q.rows[0] = 1000;
    out[3] = p.rows[2][0] + (q.rows[1] != 0);
    q = p;
    out[6] = q.rows[2][0];
}

struct Layer { const int *w; int *out; int n; };
struct Net { Layer layers[2]; int count; };
__device__ void run(const Layer &l, int i, int add) { if (i < l.n) l.out[i] = l.w[i] + add; }

__global__ void net(Net net, int which)
{
    int i = threadIdx.x;
    for (int k = 0; k < net.count; k++) run(net.layers[k], i, 100 * k);
    Layer &mine = net.layers[which];
    mine.n += 5;
    mine.out++;
    if (i == 3) mine.out[mine.n] = net.layers[0].n * 10 + net.layers[1].n;
}
"""


def test_arrays_of_pointers(device):
    module = td.cuda_module(ROWS)
    whole = np.arange(30, dtype=np.int32)
    memory = ints(whole, device)
    rows = [memory[0:10], memory[10:20], memory[20:30]]
    out = ints([0] * 5, device)
    module.reads[1, 8]({"rows": rows, "n": 3}, out)
    table = whole.reshape(3, 10)
    expected = [
        int(table[0, i] + 21 + table[:, i].sum() * 10 + table[(i + 1) % 3, i] * 1000)
        for i in range(3)
    ]
    assert out.tolist() == [*expected, 0, 0]
    assert [row[0].item() for row in rows] == [0, -1, -2]


def test_arrays_of_pointers_change(device):
    rows = [ints(range(10 * k, 10 * k + 10), device) for k in range(3)]
    out = ints([0] * 8, device)
    td.cuda_module(ROWS).moves[1, 1]((rows, 0), out, 1)
    assert out.tolist() == [21, 11, 1, 21, 9, 11, 20, 0]
    assert rows[0].tolist() == [0, 1000, *range(2, 10)]


def test_arrays_of_structs(device):
    outs = [ints([0] * 12, device) for _ in range(2)]
    layers = [(ints([1, 2, 3, 4], device), outs[k], 3 + k) for k in range(2)]
    td.cuda_module(ROWS).net[1, 4]({"layers": layers, "count": 2}, 1)
    assert outs[0].tolist() == [1, 2, 3, *[0] * 9]
    assert outs[1].tolist() == [101, 102, 103, 104, *[0] * 6, 39, 0]


def test_null_fields(device):
    module = td.cuda_module("""
        struct Pair { int *a, *b; };
        __global__ void null(Pair p, int *out) { out[0] = p.a ? 1 : 2; out[1] = p.b ? 3 : 4; }
    """)
    out = ints([0, 0], device)
    module.null[1, 1]({"a": None, "b": out}, out)
    assert out.tolist() == [2, 3]


# --- large values --------------------------------------------------------------------------------

LARGE = """
struct Row { float a; short s[5]; };
struct Big { int n; float w[100]; Row rows[7]; union { int i[4]; float f[4]; } u; };
__device__ float total(const Big &b) { float t = 0; for (int i = 0; i < b.n; i++) t += b.w[i];
return t; }
__device__ float by_value(Big b) { b.w[0] += 1; return b.w[0] + b.rows[2].s[3]; }
__device__ float through(const float *p, int n) { float t = 0; while (n--) t += *p++; return t; }

__global__ void reads(const __grid_constant__ Big b, float *out)
{
    out[0] = total(b);
    out[1] = by_value(b);
    out[2] = through(b.w + 3, 5);
    out[3] = b.rows[threadIdx.x].a + b.rows[6].s[4];
    out[4] = b.u.f[1];
    Big c = b;
    c.n = 2;
    out[5] = total(c) + b.n;
}

__global__ void writes(Big b, float *out)
{
    b.w[threadIdx.x] = -1;
    b.rows[1].s[2] = 9;
    float *p = b.w;
    p[50]++;
    b.u.i[0] = 5;
    out[threadIdx.x * 2] = total(b);
    out[threadIdx.x * 2 + 1] = b.rows[1].s[2] + b.w[50] + b.u.i[0];
}

struct Table { int x[100]; };
__global__ void add(Table t, int *out) { out[threadIdx.x] += t.x[threadIdx.x]; }

struct Both { int *out; int table[80]; float4 corners[20]; int n; };
__global__ void both(Both p)
{
    int i = threadIdx.x;
    if (i < p.n) p.out[i] = p.table[79 - i] + (int)p.corners[i].z;
}
"""
WEIGHTS = np.arange(100, dtype=np.float32) / 4
ROWS_OF_BIG = [(k + 0.5, [10 * k + j for j in range(5)]) for k in range(7)]
BIG = {"n": 99, "w": WEIGHTS, "rows": ROWS_OF_BIG, "u": np.float32([1, 2, 3, 4]).tobytes()}


def test_large_structs(device):
    module = td.cuda_module(LARGE)
    out = td.zeros(6, device=device)
    module.reads[1, 1](BIG, out)
    sums = [WEIGHTS[:99].sum(), WEIGHTS[0] + 1 + 23, WEIGHTS[3:8].sum(), 64.5, 2]
    assert out.tolist() == [*sums, WEIGHTS[:2].sum() + 99]


def test_large_structs_are_copied_where_kernels_write_them(device):
    module = td.cuda_module(LARGE)
    out = td.zeros(5, device=device)
    module.writes[1, 2](BIG, out)
    expected = []
    for thread in range(2):
        mine = WEIGHTS.copy()
        mine[50] += 1
        mine[thread] = -1
        expected += [mine[:99].sum(), 9 + mine[50] + 5]
    assert out.tolist() == [*expected, 0]


def test_large_arrays_beside_pointers(device):
    module = td.cuda_module(LARGE)
    out = ints([0] * 4, device)
    corners = np.arange(80, dtype=np.float32).reshape(20, 4)
    module.both[1, 8]({"out": out, "table": range(80), "corners": corners, "n": 3})
    assert out.tolist() == [79 + 2, 78 + 6, 77 + 10, 0]


def test_launches_in_a_row_have_their_own_values(device):
    module = td.cuda_module(LARGE)
    out = ints([0] * 3, device)
    stream = device.stream()
    for k in range(5):
        value = {"x": np.full(100, 10**k, np.int32)}
        if k % 2:
            module.add[1, 3, 0, stream](value, out)
        else:
            module.add[1, 3](value, out)
    assert out.tolist() == [11111] * 3


def test_graphs_keep_the_values_they_were_recorded_with(device):
    add = td.cuda_module(LARGE).add
    out = ints([0] * 3, device)
    add[1, 3]([[3] * 100], out)
    graph = td.Graph(device)
    with graph.capture():
        add[1, 3]([[3] * 100], out)
        add[1, 3]([[10] * 100], out)
    assert out.tolist() == [3] * 3
    graph.replay()
    add[1, 3]([[1000] * 100], out)
    add[1, 3]([[10] * 100], out)
    graph.replay()
    assert out.tolist() == [3 + 13 + 1000 + 10 + 13] * 3


def test_the_largest_parameter(device):
    module = td.cuda_module("""
        struct Large { int param[8000]; };
        __global__ void sum(Large p, int *out)
        {
            int t = 0;
            for (int i = threadIdx.x; i < 8000; i += blockDim.x) t += p.param[i];
            atomicAdd(out, t);
        }
    """)
    out = ints([0], device)
    values = np.arange(8000, dtype=np.int32) & 255
    module.sum[1, 32]({"param": values}, out)
    assert out.item() == values.sum()


# --- functions -----------------------------------------------------------------------------------


def test_functions_as_template_arguments(device):
    module = td.cuda_module("""
        __constant__ int gain = 3;
        namespace ops { __device__ int apply(int x) { return x * gain; } }
        namespace other { __device__ int apply(int x) { return -x; } }
        __device__ void store(int *p, int v) { *p = v + 1; }
        struct Twice { __device__ int operator()(int x) const { return x * gain * 2; } };
        using Function = int (*)(int);

        template <Function F> __global__ void each(int *x)
        {
            x[threadIdx.x] = F(x[threadIdx.x]);
        }
        template <void (*Store)(int *, int), typename Op> __global__ void put(int *x)
        {
            Store(x + threadIdx.x, Op()(x[threadIdx.x]));
        }
    """)
    x = ints([1, 2, 3], device)
    first, second = module.kernel("each", "ops::apply"), module.kernel("each", "&other::apply")
    first[1, 3](x)
    second[1, 3](x)
    assert x.tolist() == [-3, -6, -9]
    module.kernel("put", "store", "Twice")[1, 3](x)
    assert x.tolist() == [-17, -35, -53]


def test_parameters_with_the_names_of_variables(device):
    module = td.cuda_module("""
        __constant__ int n = 100;
        __device__ int x[7];
        __device__ int file_n() { return n; }
        __global__ void k(int *x, int n) { x[threadIdx.x] = n * 1000 + file_n(); }
    """)
    x = ints([0] * 3, device)
    module.k[1, 3](x, 3)
    assert x.tolist() == [3100] * 3


@td.struct
class Step:
    by: td.i32
    at: td.vec3[td.f32]


def test_struct_values_as_fields(device):
    module = td.cuda_module("""
        struct Step { int by; float3 at; };
        struct Walk { int *x; Step step; Step *more; };
        __global__ void walk(Walk w)
        {
            w.x[0] += w.step.by * 10 + (int)w.step.at.z;
            w.x[1] = w.more[1].by + (int)w.more[1].at.y;
        }
    """)
    x = ints([1, 0, 0], device)
    step = Step(4, td.vec3[td.f32](1, 2, 3))
    more = np.zeros(2, Step)
    more[1] = (20, (5, 6, 7))
    module.walk[1, 1]((x, step, more))
    module.walk[1, 1](SimpleNamespace(x=x, step={"by": 1, "at": (0, 0, 5)}, more=more))
    assert x.tolist() == [1 + 43 + 15, 26, 0]


def test_compiled_functions_keep_the_values_they_were_traced_with(device):
    add = td.cuda_module(LARGE).add

    @td.compile
    def traced(x):
        y = x + 1
        add[1, 3]([[5] * 100], y)
        return y * 2

    x = ints([0, 1, 2], device)
    assert traced(x).tolist() == [12, 14, 16]
    add[1, 3]([[7] * 100], x)
    assert traced(x).tolist() == [26, 28, 30]
    add[1, 3]([[5] * 100], x)
    assert traced(x).tolist() == [36, 38, 40]


# --- small values with arrays --------------------------------------------------------------------

SMALL = """
struct Info { int *data; int sizes[4]; short2 at[2]; int dims; };
struct Grid { int cells[3][4]; struct { short a; int b[2]; } part; float4 weights[2]; };
__device__ int summed(const int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i];
return s; }

__global__ void rounds(Info t)
{
    for (int d = 0; d < t.dims; d++)
        for (int k = 0; k < t.sizes[d]; k++) {
            __syncthreads();
            if (threadIdx.x == k) t.data[0] += (d + 1) * t.at[d % 2].y;
            __syncthreads();
        }
    if (threadIdx.x == 0) t.data[1] = summed(t.sizes, 3) + t.sizes[t.data[2] - 1];
}

__global__ void changed(Info t, Grid g)
{
    int i = threadIdx.x;
    t.sizes[i] += 100;
    g.cells[i][i + 1] = -1;
    int *p = g.part.b;
    p[1]++;
    t.data[i] = t.sizes[0] + t.sizes[1] + g.cells[1][2] + g.part.b[1];
}

__global__ void reads(Grid g, int *out)
{
    int i = threadIdx.x;
    Grid h = g;
    h.part.a = 9;
    short2 *bytes = (short2 *)g.cells;
    out[i] = g.cells[i][3 - i] + g.part.a * 100 + h.part.a * 1000 + (int)g.weights[i].z * 10000;
    out[i + 3] = g.cells[2][i] + bytes[2 * i].x + h.cells[0][i] + (int)h.weights[1].w;
}
"""


def test_arrays_by_value_are_the_same_for_all_threads(device):
    data = ints([0, 0, 3], device)
    td.cuda_module(SMALL).rounds[1, 8]((data, [2, 3, 4, 1], [(1, 10), (2, 20)], 3))
    assert data.tolist() == [2 * 10 + 3 * 2 * 20 + 4 * 3 * 10, 9 + 4, 3]


def test_arrays_by_value_that_are_written(device):
    module = td.cuda_module(SMALL)
    data = ints([0] * 4, device)
    cells = np.arange(12, dtype=np.int32).reshape(3, 4)
    grid = {"cells": cells, "part": (7, (1, 2)), "weights": np.ones((2, 4), np.float32)}
    module.changed[1, 3]((data, [1, 2, 3, 4], [(0, 0)] * 2, 0), grid)
    assert data.tolist() == [103 + 6 + 3, 103 - 1 + 3, 3 + 6 + 3, 0]


def test_arrays_by_value_that_are_read(device):
    module = td.cuda_module(SMALL)
    out = ints([0] * 7, device)
    cells = np.arange(12, dtype=np.int32).reshape(3, 4)
    weights = np.arange(8, dtype=np.float32).reshape(2, 4)
    module.reads[1, 2]({"cells": cells, "part": (7, (1, 2)), "weights": weights}, out)
    first = [int(cells[i, 3 - i] + 700 + 9000 + weights[i, 2] * 10000) for i in range(2)]
    second = [int(cells[2, i] + 2 * i + cells[0, i] + 7) for i in range(2)]
    assert out.tolist() == [*first, 0, *second, 0, 0]


MANY_POINTERS = """
struct Layers {
    int count;
    const float *weights[40], *biases[40];
    const float *input;
    float *outputs[3];
    const float *unused0, *unused1, *unused2, *unused3, *unused4, *unused5, *unused6, *unused7;
};
__device__ float dot(const float *w, const float *x, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum += w[i] * x[i];
    return sum;
}
__device__ float of_layer(Layers a, int t)
{
    return dot(a.weights[t], a.input, a.count) + a.biases[t][0];
}
__global__ void many(Layers a, const int *which, float *out)
{
    int i = threadIdx.x, t = which[i];
    Layers b = a;
    b.count = 1;
    out[i] = of_layer(a, t) + 100 * of_layer(b, t);
    a.outputs[1][i] = i;
}
"""


@pytest.mark.parametrize("in_one_memory", [True, False])
def test_structs_with_many_pointers(device, in_one_memory):
    """Long arrays of pointers are one array; unused pointers take no binding."""
    weights = np.arange(120, dtype=np.float32).reshape(40, 3) % 7
    biases = np.arange(40, dtype=np.float32)
    tensor = td.asarray(weights, device=device)
    rows = [
        tensor[i] if in_one_memory else td.asarray(weights[i], device=device) for i in range(40)
    ]
    layers = {
        "count": 3,
        "weights": rows,
        "biases": [td.asarray(biases[i : i + 1], device=device) for i in range(40)],
        "input": td.asarray(np.float32([1, 2, 3]), device=device),
        "outputs": [td.zeros(8, device=device) for _ in range(3)],
        **{f"unused{i}": None for i in range(8)},
    }
    which = np.arange(0, 40, 5, dtype=np.int32)
    out = td.zeros(8, device=device)
    kernel = td.cuda_module(MANY_POINTERS).many
    kernel[1, 8](layers, td.asarray(which, device=device), out)
    whole, first = weights[which] @ np.float32([1, 2, 3]), weights[which, 0]
    assert out.tolist() == (whole + biases[which] + 100 * (first + biases[which])).tolist()
    assert layers["outputs"][1].tolist() == list(range(8))
    with pytest.raises(td.errors.DtypeError, match="has 40 pointers, but 39 items were given"):
        kernel[1, 8](layers | {"weights": rows[:39]}, td.asarray(which, device=device), out)
