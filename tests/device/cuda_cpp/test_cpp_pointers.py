"""Pointers, references and arrays of CUDA C++, in global, shared and local memory."""

from __future__ import annotations

from itertools import product

import numpy as np

import treadle as td


def check(device, source, kernel, expected, inputs=(0,)):
    out = td.zeros(len(expected) + 1, dtype=td.int32, device=device)
    values = td.asarray(np.array(inputs, np.int32), device=device)
    td.cuda_module(source).kernel(kernel)[1, 1](values, out)
    assert out.tolist() == [*expected, 0]


MOVING = """
__device__ int sum(const int *from, const int *to)
{
    int s = 0;
    for (; from != to; ++from) s += *from;
    return s;
}
__device__ int length(const char *text) { const char *p = text; while (*p) p++; return p - text; }
__device__ const int *find(const int *p, int n, int wanted)
{
    for (int i = 0; i < n; i++, p++)
        if (*p == wanted) return p;
    return nullptr;
}
__device__ int *middle(int *p, int n) { return p + n / 2; }
__device__ void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; }
__device__ void swap_by_reference(int &a, int &b) { int t = a; a = b; b = t; }
__device__ void advance(const int *&p, int by) { p += by; }
__device__ int &larger(int &a, int &b) { return a > b ? a : b; }
__device__ int total(int values[], int n) { int s = 0; while (n--) s += *values++; return s; }
__device__ void minmax(const int *p, int n, int *low, int &high)
{
    *low = high = p[0];
    for (int i = 1; i < n; i++) { if (p[i] < *low) *low = p[i]; if (p[i] > high) high = p[i]; }
}

__global__ void moving(const int *in, int *out)
{
    int *o = out;                                              // in: 5 3 9 1 7 2
    int a[6];
    for (int i = 0; i < 6; i++) a[i] = in[i];
    *o++ = sum(in, in + 6);                                    // 27
    *o++ = sum(a + 1, &a[4]);                                  // 13
    *o++ = sum(&in[2], &in[2]);                                // 0
    const int *p = in;
    *o++ = *p++ * 100 + *p;                                    // 503
    *o++ = *++p;                                               // 9
    *o++ = *(p + 2) + p[-1] + *(p - 2);                        // 15
    p += 3;
    *o++ = *p--;                                               // 2
    *o++ = p - in;                                             // 4
    *o++ = (in + 6 - p) * 10 + (p > in) + (p == &in[4]) + (p <= in);   // 22
    *o++ = *p-- - *p;                                          // 7 - 1
    int *q = a;
    *q++ = 50;
    (*q)++;
    *++q += 1;
    *o++ = a[0] * 100 + a[1] * 10 + a[2];                      // 5000 + 40 + 10
    *(a + 5) = 3[a];
    5[a] += 1;
    *o++ = a[5];                                               // 2
    swap(a, a + 1);
    swap(&a[2], &a[3]);
    *o++ = a[0] * 1000 + a[1] * 10 + a[2];                     // 4 50 1
    swap_by_reference(a[0], a[4]);
    *o++ = a[0] * 10 + a[4];                                   // 74
    larger(a[0], a[1]) = 6;
    *o++ = a[1];                                               // 6
    const int *found = find(in, 6, 9);
    *o++ = found ? found - in : -1;                            // 2
    found = find(in, 6, 100);
    *o++ = found ? found - in : -1;                            // -1
    *middle(a, 6) = 77;
    *o++ = a[3] + *(middle(a, 4) + 1);                         // 154
    p = in;
    advance(p, 4);
    *o++ = *p;                                                 // 7
    *o++ = total(a, 3);                                        // 7 + 6 + 1
    int low, high;
    minmax(in, 6, &low, high);
    *o++ = low * 10 + high;                                    // 19
    int x = 4, *px = &x;
    *px += 3;
    px[0] *= 2;
    *o++ = x;                                                  // 14
    int &r = x, &s = a[2], *pr = &r, &t = x > 3 ? a[2] : x;
    const float &f = x;
    r = 20; s += x; *pr += 1; t += 100 * f;
    *o++ = x * 100 + a[2];                                     // 21, 21 + 1400
    (void)sizeof(int *);
    int *first = a, *last = a + 5;
    while (first < last) { int t = *first; *first++ = *last; *last-- = t; }
    for (const int *w = a; w < a + 6; w++) *o++ = *w;          // reversed
    const int *volatile_free = in + 1;
    if (volatile_free) *o++ = *volatile_free;                  // 3
    *o = o - out;
}
"""


PARENTHESIZED = """
struct Range {
    int from;
    __device__ Range(int from) : from(from) {}
    __device__ int next() { Range (r)(from + 1); return r.from; }
};
__device__ int twice(int (x)) { return 2 * x; }
__constant__ int (table)[2] = {3, 4};
__global__ void parenthesized(const int *in, int (*out))
{
    int (*q) = &out[1];                                        // in: 5 3 9
    *q = 7;
    int (a) = in[0], (b[2]) = {1, in[1]}, *(c)(&out[2]), (&d) = out[3];
    *c = a + b[1];
    d = twice(4) + table[1];
    for (const int (*p) = in; p < in + 3; ++p) out[0] += *p;
    const int (*const e){in + 2};
    if (int (*f) = out) f[4] = *e;
    out[5] = Range(6).next();
}
"""


def test_parenthesized_declarators(device):
    expected = [17, 7, 8, 12, 9, 7]
    check(device, PARENTHESIZED, "parenthesized", expected, inputs=(5, 3, 9))


def test_moving(device):
    expected = [
        27, 13, 0, 503, 9, 15, 2, 4, 22, 6, 5050, 2, 4501, 74, 6, 2, -1, 154, 7, 14, 19, 14, 3521,
        2, 4, 77, 1421, 6, 7, 3, 30,
    ]  # fmt: skip
    check(device, MOVING, "moving", expected, [5, 3, 9, 1, 7, 2])


CHOOSING = """
__device__ int at(const float *p, int i) { return p ? (int)p[i] : -5; }
__device__ float *side(float *a, float *b, bool left) { if (left) return a; return b; }

__global__ void choosing(const float *a, const float *b, const float *none, float *c, float *d,
                         int *out, int n)
{
    __shared__ float shared[2][8];
    float local[4] = {100, 200, 300, 400};
    int k = 0;
    for (int i = 0; i < n; i++) { shared[0][i] = a[i] + 1; shared[1][i] = 0; }
    const float *p = n > 3 ? a : b;
    out[k++] = p[1];                                           // 2
    p = n > 3 ? b + 1 : a;
    out[k++] = *p;                                             // 20
    p = local + 1;
    out[k++] = p[1];                                           // 300
    for (int i = 0; i < 4; i++) {
        p = i == 0 ? a : i == 1 ? b : i == 2 ? shared[0] : local;
        out[k++] = p[i];                                       // 1 20 4 400
    }
    float *from = shared[0], *to = shared[1];                  // ping-pong
    for (int step = 1; step < n; step *= 2) {
        for (int i = 0; i < n; i++) to[i] = i < step ? from[i] : from[i] + from[i - step];
        float *t = from; from = to; to = t;
    }
    for (int i = 0; i < n; i++) out[k++] = from[i];            // sums of 2 3 4 5 6
    float *x = c, *y = d;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < n; i++) y[i] = x[i] * 2 + round;
        float *t = x;
        x = y;
        y = t;
    }
    out[k++] = x == d;
    out[k++] = at(a, 2) * 100 + at(none, 0) * 10 + at(nullptr, 1);   // 300 - 50 - 5
    *side(local, shared[0], n > 10) = 9;
    side(local, c, true)[1] = 8;
    out[k++] = shared[0][0] * 10 + local[1];                   // 98
    if (none == nullptr && a != NULL && !none && c) out[k++] = 1;
    const float *walk = none ? none : a;
    if (n > 100) walk = nullptr;
    if (walk) walk += 2;
    out[k++] = walk ? *walk : -1;                              // 3
    float *end = nullptr;
    for (int i = 0; i < 3; i++) if (local[i] > 250) { end = &local[i]; break; }
    out[k++] = end - local;                                    // 2
    out[k++] = end == &local[2];
    while (n) { if (n & 1) a++; else b++; n--; }               // parameters move
    out[k++] = *a + *b;                                        // 4 + 30
}
"""


def test_choosing(device):
    a = td.asarray(np.arange(1, 6), dtype=td.float32, device=device)
    b = td.asarray(np.arange(1, 6) * 10, dtype=td.float32, device=device)
    c = td.asarray(np.arange(5), dtype=td.float32, device=device)
    d = td.zeros(5, device=device)
    sums = np.cumsum([2, 3, 4, 5, 6]).tolist()
    expected = [
        2, 20, 300, 1, 20, 4, 400, *sums, 1, 245, 98, 1, 3, 2, 1, 34,
    ]  # fmt: skip
    out = td.zeros(len(expected) + 1, dtype=td.int32, device=device)
    td.cuda_module(CHOOSING).choosing[1, 1](a, b, None, c, d, out, 5)
    assert out.tolist() == [*expected, 0]
    np.testing.assert_array_equal(c.numpy(), np.arange(5) * 4 + 1)
    np.testing.assert_array_equal(d.numpy(), np.arange(5) * 8 + 4)


GRIDS = """
#define ROWS 3
#define COLUMNS 4
typedef int Table[ROWS][COLUMNS];
__device__ int trace(int m[][COLUMNS], int n) { int s = 0; for (int i = 0; i < n; i++) s += m[i][i];
return s; }
__device__ int row_sum(const int *row) { int s = 0; for (int i = 0; i < COLUMNS; i++) s += row[i];
return s; }
__device__ void fill(int (&m)[ROWS][COLUMNS], int by)
{
    for (auto &row : m)
        for (int &cell : row) cell = by++;
}
__device__ int corner(const int (*m)[COLUMNS]) { return m[ROWS - 1][COLUMNS - 1]; }
template <int N> __device__ int size_of(const int (&)[N]) { return N; }

__global__ void grids(const int *in, int *out)
{
    int k = 0, n = in[0];                                      // 2
    int local[ROWS][COLUMNS] = {{1, 2}, {5, 6, 7, 8}};
    __shared__ int shared[ROWS][COLUMNS];
    __shared__ Table tables[2];
    out[k++] = local[1][n] * 10 + local[0][3] + local[2][1];   // 70
    out[k++] = trace(local, n);                                // 7
    out[k++] = row_sum(local[1]) + row_sum(&local[0][0]);      // 29
    fill(shared, 10);
    fill(tables[1], 100);
    for (int i = 0; i < ROWS; i++) for (int j = 0; j < COLUMNS;
    j++) tables[0][i][j] = shared[i][j] - local[i][j];
    out[k++] = shared[n][1] * 1000 + tables[1][1][n];          // 19106
    out[k++] = tables[0][1][0] + tables[0][2][3];              // 9 + 21
    int (*row)[COLUMNS] = shared;
    row++;
    out[k++] = (*row)[2] + row[1][0];                          // 16 + 18
    out[k++] = corner(shared) + corner(tables[1]);             // 21 + 111
    int *flat = &shared[0][0];
    flat[5] = 500;
    *(*(shared + 2) + 1) = 600;
    out[k++] = shared[1][1] + flat[9];                         // 1100
    out[k++] = &shared[n][3] - &shared[0][1];                  // 10
    out[k++] = *shared[2] + **shared;                          // 18 + 10
    int cube[2][3][4];
    for (int i = 0; i < 24; i++) (&cube[0][0][0])[i] = i;
    out[k++] = cube[1][n][3] * 100 + cube[0][1][n];            // 2306
    int (*plane)[4] = cube[1];
    plane[0][0] = -1;
    out[k++] = cube[1][0][0] + (int)(sizeof(cube) / sizeof(cube[0]));   // 1
    int few[7];
    out[k++] = size_of(few) + size_of(local[0]);               // 11
    char text[] = "hello";
    text[0] -= 32;
    out[k++] = text[0] * 100 + sizeof(text) + text[5];         // 7206
    const int *view = (const int *)in;
    out[k++] = ((const int (*)[2])view)[1][1];                 // 5
    int &cell = shared[n][n];
    cell = 1;
    int *p = &cell;
    p[-1] = 2;
    out[k++] = shared[2][2] * 10 + shared[2][1];               // 12
    auto *whole = &shared;
    out[k++] = (*whole)[0][1];                                 // 11
    int index[3] = {2, 0, 1}, data[3] = {10, 20, 30};
    out[k++] = data[index[index[0]]];                          // data[1]
    data[index[1]++] += 5;
    out[k++] = data[0] * 10 + index[1];                        // 151
}
"""


def test_arrays_of_arrays(device):
    expected = [
        70, 7, 29, 19106, 30, 34, 132, 1100, 10, 28, 2306, 1, 11, 7206, 5, 12, 11, 20, 151,
    ]  # fmt: skip
    check(device, GRIDS, "grids", expected, [2, 3, 4, 5])


VIEWS = """
struct Pair { short low, high; };

__global__ void views(int *data, float *floats, unsigned char *bytes, void *raw, int *out)
{
    __shared__ __align__(16) float shared[16];
    float local[8];
    int k = 0;
    float4 *fours = reinterpret_cast<float4 *>(floats);
    float4 v = fours[1];
    out[k++] = v.x + v.y * 10 + v.z * 100 + v.w * 1000;        // 7654
    fours[0] = make_float4(v.w, v.z, v.y, v.x);
    ((float2 *)floats)[4].y = 90;
    out[k++] = floats[9] + floats[0];                          // 97
    ((float4 *)shared)[2] = v;
    *(float2 *)(shared + 2) = make_float2(20, 30);
    out[k++] = shared[8] + shared[11] + shared[3];             // 4 + 7 + 30
    float4 *s4 = (float4 *)shared;
    s4++;
    *s4 = *(s4 + 1);
    (*s4).z = 1;
    s4[0].w += 1;
    out[k++] = shared[4] + shared[6] * 10 + shared[7] * 100;   // 4 + 10 + 800
    for (int i = 0; i < 8; i++) local[i] = i;
    float2 pair = *(float2 *)&local[4];
    ((float2 *)local)[3] = pair;
    out[k++] = local[6] * 10 + local[7];                       // 45
    int *bits = (int *)floats;
    bits[2] = 0x40000000;
    out[k++] = floats[2] * 10;                                 // 20
    out[k++] = __float_as_int(floats[3]) == bits[3];
    *(float *)&data[0] = 1.5f;
    out[k++] = data[0];                                        // 0x3fc00000
    unsigned *u = (unsigned *)data;
    u[1] -= 1;
    out[k++] = u[1] > 5;
    char *c = (char *)(data + 2);
    c[0] = 1; c[1] = 2; c[3] = -1;
    out[k++] = data[2];                                        // 0xff000201
    out[k++] = c[3] * 10 + ((unsigned char *)data)[2 * 4 + 3];  // -10 + 255
    short *shorts = (short *)bytes;
    out[k++] = shorts[1];                                      // 0x0403
    shorts[2] = -2;
    out[k++] = bytes[4] * 1000 + bytes[5];                     // 254 255
    *(int *)(bytes + 8) = 0x0a0b0c0d;
    out[k++] = bytes[8] + bytes[11] * 100;                     // 13 + 1000
    out[k++] = *(const unsigned *)bytes;                       // 0x04030201
    uchar4 four = *(uchar4 *)(bytes + 12);
    out[k++] = four.x + four.w * 100;                          // 13 + 1600
    Pair *pairs = (Pair *)data;
    pairs[3].low = 7; pairs[3].high = -1;
    out[k++] = data[3];                                        // 0xffff0007
    void *anything = data + 4;
    float *at = (float *)anything;
    *at++ = 2.0f; *at = 3.0f;
    out[k++] = data[4] == 0x40000000 && data[5] == 0x40400000;
    int *ints = static_cast<int *>(raw);
    ints[1] = ints[0] + 1;
    ((float *)raw)[2] = 1.0f;
    out[k++] = ints[1] + (ints[2] == 0x3f800000);
    const char *end = (const char *)(ints + 3);
    out[k++] = end - (const char *)raw;                        // 12
    int2 two = *(int2 *)(data + 6);
    *reinterpret_cast<int2 *>(&data[6]) = make_int2(two.y, two.x);
    out[k++] = data[6] * 10 + data[7];                         // 76
    float x = local[1];
    unsigned raw_bits = *(unsigned *)&x;
    out[k++] = raw_bits >> 23;                                 // 127
    float3 *threes = (float3 *)(floats + 10);
    float3 t = threes[1];
    threes[0] = make_float3(t.z, t.y, t.x);
    threes[1].y = -1;
    out[k++] = floats[10] + floats[11] * 10 + floats[14];      // 15 + 140 - 1
    unsigned long long address = (unsigned long long)(floats + 4);
    out[k++] = address % 16 == 0;
}
"""


def test_views(device):
    floats = td.asarray(np.arange(16), dtype=td.float32, device=device)
    data = td.asarray(np.arange(8), dtype=td.int32, device=device)
    data_of_bytes = td.asarray(np.arange(1, 17), dtype=td.uint8, device=device)
    raw = td.asarray(np.array([41, 0, 0]), dtype=td.int32, device=device)
    expected = [
        7654, 97, 41, 814, 45, 20, 1, 0x3FC00000, 0, 0xFF000201 - 2**32, 245, 0x0403, 254255, 1013,
        0x04030201, 1613, 0xFFFF0007 - 2**32, 1, 43, 12, 76, 127, 154, 1,
    ]  # fmt: skip
    out = td.zeros(len(expected) + 1, dtype=td.int32, device=device)
    td.cuda_module(VIEWS).views[1, 1](data, floats, data_of_bytes, raw, out)
    assert out.tolist() == [*expected, 0]


STRUCTS = """
struct Particle { float3 at; int kind; float history[4]; };
struct Slice { const int *data; int n; __device__ int sum() const { int s = 0; for (int i = 0;
i < n; i++) s += data[i]; return s; } };
struct Cursor { int *p; int left; __device__ void put(int x) { if (left-- > 0) *p++ = x; } };

__device__ Slice sliced(const int *p, int from, int to) { Slice s = {p + from, to - from};
return s; }
__device__ float nudge(float *x, float by) { float old = *x; *x += by; return old; }
__device__ void age(Particle *p, int n) { while (n-- > 0) { p->kind++; p++; } }

__global__ void structs(Particle *particles, const int *in, int *out)
{
    int k = 0;
    Particle *second = particles + 1;
    second->at.y = 4;
    float *h = second->history;
    h[1] = 5;
    *(h + 2) = h[1] + 1;
    out[k++] = second->history[2] * 10 + particles[1].at.y;    // 64
    out[k++] = nudge(&second->at.x, 2) + nudge(&particles[0].history[3], 1);   // 3
    out[k++] = second->at.x * 10 + particles->history[3];      // 31
    age(particles, 3);
    out[k++] = particles[2].kind;
    int *kind = &particles[2].kind;
    *kind += 100;
    Particle copy = *kind > 50 ? particles[2] : particles[0];
    Particle *local = &copy;
    local->history[0] = -1;
    local->at.z++;
    out[k++] = copy.kind + copy.history[0] + copy.at.z;        // 103 - 1 + 1
    out[k++] = particles[2].at.z;                              // 0
    Slice s = sliced(in, 1, 4);
    out[k++] = s.sum() + s.data[0];                            // 12
    s.data++;
    s.n = 1;
    out[k++] = s.sum();                                        // 3
    Slice t = s;
    t.data = in;
    out[k++] = t.sum() * 10 + s.sum();                         // 13
    Cursor cursor = {out + 20, 3};
    for (int i = 0; i < 5; i++) cursor.put(i + 1);
    out[k++] = cursor.p - out;                                 // 23
    Particle &ref = particles[0];
    ref.at = make_float3(7, 8, 9);
    float *xyz = &ref.at.x;
    out[k++] = xyz[0] + xyz[2];                                // 16
    second = &particles[0];
    second++;
    out[k++] = second - particles + (second == &particles[1]); // 2
}
"""


def test_pointers_to_structs(device):
    particle = np.dtype([("at", "<f4", 3), ("kind", "<i4"), ("history", "<f4", 4)])
    particles = np.zeros(3, particle)
    particles["at"][1, 0] = 1
    particles["history"][0, 3] = 2
    particles["kind"] = [0, 1, 2]
    out = td.zeros(24, dtype=td.int32, device=device)
    with td.use_device(device):
        td.cuda_module(STRUCTS).structs[1, 1](particles, np.arange(1, 6, dtype=np.int32), out)
    expected = [64, 3, 33, 3, 103, 0, 11, 3, 13, 23, 16, 2]
    assert out.tolist() == [*expected, *[0] * 8, 1, 2, 3, 0]
    assert particles["at"][0].tolist() == [7, 8, 9]
    assert particles["kind"].tolist() == [1, 2, 103]
    assert particles["history"].tolist() == [[0, 0, 0, 3], [0, 5, 6, 0], [0, 0, 0, 0]]


ADDRESSES = """
__global__ void addresses(const unsigned char *rows, float *out, int step)
{
    int i = threadIdx.x;
    const float *number = (float *)((uintptr_t)rows + i * step);
    const int *whole = (const int *)((size_t)i * step + (unsigned long long)rows);
    uintptr_t odd = (uintptr_t)rows & 3;
    out[i] = number[1] + whole[0] + odd;
    float *next = reinterpret_cast<float *>(reinterpret_cast<uintptr_t>(out) + sizeof(float) * 8);
    next[i] = 1;
}
"""


def test_sums_of_addresses_become_pointers(device, rng):
    rows = np.zeros((8, 16), np.uint8)
    whole, number = rng.integers(0, 100, 8, np.int32), rng.normal(size=8).astype(np.float32)
    rows[:, :4], rows[:, 4:8] = whole[:, None].view(np.uint8), number[:, None].view(np.uint8)
    out = np.zeros(16, np.float32)
    with td.use_device(device):
        td.cuda_module(ADDRESSES).addresses[1, 8](rows, out, 16)
    np.testing.assert_allclose(out, [*(number + whole), *[1] * 8], rtol=1e-6)


COMPARED = """
__global__ void compared(const float *a, const float *b, const float *c, int pick, int *out)
{
    const float *p = pick ? a : b;
    const float *q = pick == 2 ? nullptr : c;
    out[0] = a == b; out[1] = a != b; out[2] = p == q; out[3] = q == a;
    out[4] = p == nullptr; out[5] = p == a; out[6] = p == b; out[7] = q == p;
}
"""


def test_null_pointers_are_equal(device):
    kernel = td.cuda_module(COMPARED).compared
    arrays = [td.ones(4, device=device) for _ in range(3)]
    for given in product((False, True), repeat=3):
        for pick in range(3):
            out = td.zeros(8, dtype=td.int32, device=device)
            passed = [x if is_given else None for x, is_given in zip(arrays, given, strict=True)]
            kernel[1, 1](*passed, pick, out)
            a, b, c = (is_given and number for number, is_given in enumerate(given, 1))
            p, q = a if pick else b, False if pick == 2 else c
            assert out.tolist() == [a == b, a != b, p == q, q == a, not p, p == a, p == b, q == p]


ROWS = """
struct M { float v[2][3]; int tail[1]; };
struct G { M g[2]; };
__device__ float of_pointer(const float *p, int &r) { r = 0; return p[2]; }
__device__ float of_row(float (&p)[3], int &r) { r = 0; return p[2]; }
__global__ void rows(float *y, int n)
{
    M m;
    for (int r = 0; r < 2; r++) for (int c = 0; c < 3; c++) m.v[r][c] = r * 3 + c;
    int r = 1;
    float &one = m.v[r][n - 3];
    r = 9; one += 100;
    float (&row)[3] = m.v[r - 8];
    const float *pointer = m.v[r - 8];
    r = 12;
    y[0] = m.v[1][0]; y[1] = row[2]; y[2] = pointer[2];
    r = 1; y[3] = of_pointer(m.v[r], r);
    r = 1; y[4] = of_row(m.v[r], r);
    y[5] = m.v[n + 5][1]; m.v[n + 5][1] = 7; m.v[n + 5][n + 5] = 7;  // outside
    G g;
    g.g[1].v[1][2] = 8;
    int s = n - 2;
    float &deep = g.g[s].v[s][2];
    s = 0; y[6] = deep;
    int c = 0;
    const float *next = m.v[c];
    for (int i = 0; i < 2; i++) { y[7 + i] = next[1]; c++; next = m.v[c]; }
    __shared__ M many[3];
    for (int j = 0; j < 3; j++) {
        for (int k = 0; k < 3; k++) many[j].v[1][k] = j * 10 + k + 3;
        many[j].tail[0] = 55 + j;
    }
    int e = 2;
    float *list = many[e].v[1];
    int *tail = many[e].tail;
    e = 0; y[9] = list[1]; y[10] = *tail;
    e = 1; tail = many[e].tail;
    e = 0; y[11] = tail[0];
}
"""


def test_rows_of_arrays_in_objects_are_those_of_the_index_at_the_time(device):
    y = td.zeros(12, device=device)
    td.cuda_module(ROWS).rows[1, 1](y, 3)
    assert y.tolist() == [103, 5, 5, 5, 5, 0, 8, 1, 4, 24, 57, 56]
