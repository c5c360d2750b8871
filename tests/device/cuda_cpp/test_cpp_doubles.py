"""What `double` is in a file of CUDA C++: `double="float"`."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.errors import CompileError, DtypeError, LaunchError, TreadleError

TYPES = r"""
#include <cfloat>
struct P { double a; float b; double2 c; };
__device__ float of(double) { return 1; }
__device__ float of(float) { return 2; }
template <class T> struct Size { static const int value = 1; };
template <> struct Size<double> { static const int value = 20; };
template <class T> __device__ T larger(T a, T b) { return a > b ? a : b; }
__constant__ double table[3] = {0.5, 1.5, 1.0 / 3};

__global__ void types(double *out, const float *x) {
    double d = x[0];
    out[0] = sizeof(double) + 10 * sizeof(P) + 1000 * sizeof(double2);
    out[1] = of(d) + 10 * of(x[0]) + 100 * of(1.0) + 1000 * of(1.0f) + 10000 * of(d * x[0]);
    out[2] = of(sqrt(d)) + 10 * of(sqrt(x[0])) + 100 * of(sqrtf(x[0])) + 1000 * of(sin(1));
    out[3] = Size<decltype(d)>::value + Size<double>::value;
    out[4] = larger(sqrt(d), 0.25) + larger(pow(x[0], 2.0), d);
    out[5] = (DBL_MAX < 1e300) + 10 * (DBL_EPSILON > 1e-8) + 100 * DBL_DIG + 1000 * DBL_MANT_DIG;
    out[6] = table[2];
    out[7] = 0.1;
}

__global__ void functions(double *out, const double *x, double s, P p, int n) {
    __shared__ double staged[32];
    int i = threadIdx.x;
    staged[i] = i < n ? x[i] : 0.0;
    __syncthreads();
    if (i >= n) return;
    double whole, sine, cosine;
    double rest = modf(staged[i], &whole);
    sincos(staged[n - 1 - i], &sine, &cosine);
    out[i] = s + p.a * p.b + p.c.y + whole + 2 * rest + sine * cosine
        + __dadd_rn(x[i], 1.0) + __fma_rn(x[i], 2.0, 1.0) + __double2int_rn(x[i]) + fmax(x[i], 0.5f)
        + __int2double_rn(i) + __isnan(x[i]) + (double)isinf(x[i]) + __ddiv_rn(1.0, x[i]);
}

__global__ void sums(double *total, const double *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double one = i < n ? x[i] : 0;
    for (int step = 16; step; step /= 2) one += __shfl_down_sync(~0u, one, step);
    if (threadIdx.x % 32 == 0) atomicAdd(total, one);
}
"""


@pytest.fixture(scope="module")
def floats():
    return td.cuda_module(TYPES, double="float")


def test_a_double_is_a_type_of_its_own(device, floats):
    out = td.full(8, np.nan, dtype=td.float32, device=device)
    floats.types[1, 1](out, td.full(1, 2.25, dtype=td.float32, device=device))
    found = out.numpy()
    third, tenth = np.float32(1 / 3), np.float32(0.1)
    assert found.tolist() == [
        4 + 10 * 16 + 1000 * 8, 12121, 1221, 40, 1.5 + 5.0625, 1 + 10 + 600 + 24000, third, tenth,
    ]  # fmt: skip
    assert floats.constants["table"].dtype == np.float32


def test_functions_of_doubles(device, floats):
    random = np.random.default_rng()
    x = random.uniform(-3, 3, 29).astype(np.float32)
    out = td.full(29, np.nan, dtype=td.float32, device=device)
    given = td.asarray(x, device=device)
    floats.functions[1, 32](out, given, 0.125, {"a": 3.0, "b": 0.5, "c": (7.0, 2.0)}, 29)
    x = x.astype(np.float64)
    y = x[::-1]
    rest = x - np.trunc(x)
    wanted = (
        0.125 + 1.5 + 2.0 + np.trunc(x) + 2 * rest + np.sin(y) * np.cos(y) + (x + 1)
        + (2 * x + 1) + np.rint(x) + np.maximum(x, 0.5) + np.arange(29) + 1 / x
    )  # fmt: skip
    np.testing.assert_allclose(out.numpy(), wanted, rtol=2e-5, atol=2e-5)


def test_sums_by_shuffles_and_atomics(device, floats):
    x = np.random.default_rng().integers(0, 100, 101).astype(np.float32)
    total = td.zeros(1, dtype=td.float32, device=device)
    floats.sums[4, 32](total, td.asarray(x, device=device), 101)
    assert total.item() == x.sum()


def test_float64_arrays_of_numpy_are_rounded_on_their_way(device):
    module = td.cuda_module(
        "__global__ void add(double *y, const double *x, int n)"
        "{ if (threadIdx.x < n) y[threadIdx.x] += x[threadIdx.x]; }"
        "__global__ void turned(double2 *z) { z[0] = make_double2(-z[0].y, z[0].x); }",
        double="float",
    )
    on = device.default_stream
    add, turned = module.add[1, 32, 0, on], module.turned[1, 1, 0, on]
    x, y = np.array([0.1, 0.2, 0.3]), np.array([1.0, np.pi, np.e])
    kept = y.copy()
    add(y, x, 1)
    assert y[0] == np.float32(1) + np.float32(0.1)
    assert y[1:].tolist() == kept[1:].tolist()  # with all of their digits
    assert x.tolist() == [0.1, 0.2, 0.3]
    add(x, x, 3)
    assert x.tolist() == (np.float32([0.1, 0.2, 0.3]) * 2).tolist()
    both = np.arange(4.0)
    with pytest.raises(LaunchError, match=r"overlaps another argument: pass float32 arrays"):
        add(both[1:], both[:3], 3)
    z = np.array([1 + 2j])
    turned(z)
    assert z[0] == -2 + 1j
    if "float64" in device.features:
        with pytest.raises(DtypeError, match=r"a double is a float here.*float64 was given"):
            add(td.ones(3, dtype=td.float64, device=device), x, 3)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("auto p = (unsigned long long *)x; p[0] = 1;", "a double has 4 bytes here"),
        ("auto p = reinterpret_cast<double *>(n); p[0] = 1;", "a double has 4 bytes here"),
        ("x[0] = __longlong_as_double(n[0]);", "__longlong_as_double has the 64 bits of a double"),
        ("x[0] = __hiloint2double(1, 2);", "__hiloint2double has the 64 bits of a double"),
    ],
)
def test_what_needs_the_bits_of_a_double_is_refused(body, message):
    text = f"__global__ void k(double *x, long long *n) {{ {body} }}"
    with pytest.raises(CompileError, match=message):
        td.cuda_module(text, double="float").k.source("ir")
    assert td.cuda_module(text).k.source("ir")


def test_other_words_are_refused():
    with pytest.raises(TreadleError, match='double is "double", "float" or "pair", not'):
        td.cuda_module("", double="half")
