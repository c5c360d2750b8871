"""Doubles as pairs of floats: `double="pair"`.

References are mpmath's. Errors are in units of 2^-48, of the result unless said otherwise.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import treadle as td
from treadle.cuda_cpp.pair_values import as_pairs, from_pairs
from treadle.errors import CompileError, DtypeError, LaunchError
from treadle.lang.math.pair_functions import RELATIVE_BOUNDS

N = 32
UNIT = mpmath.mpf(2) ** -48


def rounded(x):
    """Numbers that pairs have."""
    return from_pairs(as_pairs(np.asarray(x, np.float64)))


def computed(device, expressions, x, y):
    """Expressions of doubles x and y, in rows."""
    lines = "".join(f"o[{k} * n + i] = {text};" for k, text in enumerate(expressions))
    module = td.cuda_module(
        "__global__ void k(double *o, const double *a, const double *b, int n) {"
        "  int i = threadIdx.x; if (i < n) { double x = a[i], y = b[i];" + lines + "} }",
        double="pair",
    )
    out = np.full((len(expressions), len(x)), np.nan)
    module.k[1, 64, 0, device.default_stream](out, x, y, len(x))
    return out


def worst(found, wanted, absolute=False):
    """The largest error in units."""
    errors = [
        abs(mpmath.mpf(one) - exact) / (1 if absolute or not exact else abs(exact)) / UNIT
        for one, exact in zip(found.tolist(), wanted, strict=True)
    ]
    return float(max(errors))


@pytest.fixture
def rng():
    return np.random.default_rng()


ARITHMETIC = {
    "x + y": (lambda x, y: x + y, 3),
    "x - y": (lambda x, y: x - y, 3),
    "x * y": (lambda x, y: x * y, 5),
    "x / y": (lambda x, y: x / y, 10),
    "sqrt(fabs(x))": (lambda x, y: mpmath.sqrt(abs(x)), 4),
    "-x": (lambda x, y: -x, 0),
    "floor(x)": (lambda x, y: mpmath.floor(x), 0),
    "ceil(x)": (lambda x, y: mpmath.ceil(x), 0),
    "trunc(x)": (lambda x, y: mpmath.sign(x) * mpmath.floor(abs(x)), 0),
    "rint(x)": (lambda x, y: mpmath.nint(x), 0),
    "fmin(x, y)": (lambda x, y: min(x, y), 0),
    "fmax(x, y)": (lambda x, y: max(x, y), 0),
    "copysign(x, y)": (lambda x, y: abs(x) * mpmath.sign(y), 0),
    "(double)(float)x": (lambda x, y: mpmath.mpf(float(np.float32(float(x)))), 0),
    "ldexp(x, 5)": (lambda x, y: x * 32, 0),
    "modf(x, &y)": (lambda x, y: x - mpmath.sign(x) * mpmath.floor(abs(x)), 0),  # the last one
}


@pytest.mark.parametrize("scale", [1.0, 1e12])
def test_arithmetic(device, rng, scale):
    mpmath.mp.prec = 150
    x = rounded(rng.choice([-1, 1], N) * np.exp(rng.uniform(-3, 3, N)) * scale)
    y = rounded(rng.choice([-1, 1], N) * np.exp(rng.uniform(-3, 3, N)) * scale)
    x[:8], y[:8] = np.arange(8) / 2, np.arange(8)[::-1] + 1  # halves, and exact results
    y[8:12] = rounded(-x[8:12] * (1 + 2.0**-45))  # nearly opposite
    out = computed(device, ARITHMETIC, x, y)
    exact = [(mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(x, y, strict=True)]
    for row, (text, (reference, bound)) in zip(out, ARITHMETIC.items(), strict=True):
        assert worst(row, [reference(*pair) for pair in exact]) <= bound, text


FUNCTIONS = {  # of numbers between 0.05 and 0.95
    "exp(x * 64)": lambda x: mpmath.exp(x * 64),
    "exp(-x)": lambda x: mpmath.exp(-x),
    "expm1(x * 0.0009765625)": lambda x: mpmath.expm1(x / 1024),
    "exp2(x * 64)": lambda x: mpmath.mpf(2) ** (x * 64),
    "exp10(x * 32)": lambda x: mpmath.mpf(10) ** (x * 32),
    "log(x)": mpmath.log,
    "log(1024 * x)": lambda x: mpmath.log(1024 * x),
    "log2(x)": lambda x: mpmath.log(x, 2),
    "log10(x)": mpmath.log10,
    "log1p(x)": mpmath.log1p,
    "tan(x)": mpmath.tan,
    "asin(x)": mpmath.asin,
    "acos(x)": mpmath.acos,
    "atan(64 * x)": lambda x: mpmath.atan(64 * x),
    "atan2(x, -0.5)": lambda x: mpmath.atan2(x, -0.5),
    "sinh(x)": mpmath.sinh,
    "cosh(64 * x)": lambda x: mpmath.cosh(64 * x),
    "tanh(x)": mpmath.tanh,
    "asinh(x)": mpmath.asinh,
    "acosh(2 + x)": lambda x: mpmath.acosh(2 + x),
    "atanh(x)": mpmath.atanh,
    "rsqrt(x)": lambda x: 1 / mpmath.sqrt(x),
    "cbrt(x)": mpmath.cbrt,
    "hypot(x, 0.25)": lambda x: mpmath.hypot(x, 0.25),
    "pow(x, 16 * x)": lambda x: mpmath.power(x, 16 * x),
    "pow(x, -7.0)": lambda x: mpmath.power(x, -7),
}


def test_functions_have_their_bounds(device, rng):
    _check(device, rng, rng.choice(list(FUNCTIONS), 5, replace=False).tolist())


@pytest.mark.slow
def test_all_functions_have_their_bounds(device, rng):
    _check(device, rng, list(FUNCTIONS))


def _check(device, rng, few):
    mpmath.mp.prec = 150
    x = rounded(rng.uniform(0.05, 0.95, N))
    out = computed(device, few, x, x)
    for row, text in zip(out, few, strict=True):
        wanted = [FUNCTIONS[text](mpmath.mpf(float(one))) for one in x]
        assert worst(row, wanted) <= RELATIVE_BOUNDS[text.partition("(")[0]], text
    x = rounded(rng.uniform(-(2.0**20), 2.0**20, N))
    x[0] = rounded(np.pi * 1e5)
    angles = ("sin(x)", "cos(x)")
    for row, text in zip(computed(device, angles, x, x), angles, strict=True):
        name = text.partition("(")[0]
        wanted = [getattr(mpmath, name)(mpmath.mpf(float(one))) for one in x]
        assert worst(row, wanted, absolute=True) <= RELATIVE_BOUNDS[name], text


def test_special_values(device):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3e38, 2.0, 0.5])
    texts = (
        "x + 1",
        "x * 2",
        "1 / x",
        "sqrt(x)",
        "exp(x)",
        "log(x)",
        "x - x",
        "x * 0",
        "pow(x, 2.5)",
    )
    out = computed(device, texts, x, x)
    with np.errstate(all="ignore"):
        wanted = [
            x + 1,
            x * 2,
            1 / x,
            np.sqrt(x),
            np.exp(x),
            np.log(x),
            x - x,
            x * 0,
            np.power(x, 2.5),
        ]
        wanted[1][7] = wanted[4][7] = wanted[8][7] = np.inf  # beyond float32's range
    for row, one, text in zip(out, wanted, texts, strict=True):
        if text in ("x - x", "x * 0") and device.backend != "cpu":
            continue  # drivers assume that there are no infinities (docs/limitations.md)
        if text == "1 / x" and device.backend != "cpu" and row[7] == 0:
            one[7] = 0  # which is subnormal in float32 (docs/limitations.md)
        np.testing.assert_allclose(row, one, rtol=1e-13, atol=1e-40, err_msg=text)
        if text in ("x * 2", "sqrt(x)"):
            assert (np.signbit(row) == np.signbit(one))[~np.isnan(one)].all(), text


def test_comparisons_and_integers(device, rng):
    x = rounded(rng.uniform(-4e9, 4e9, N))
    y = rounded(x + rng.choice([-1, 0, 1], N) * 2.0**-14)
    x[:6], y[:6] = [2147483647, 2147483648, -2147483649, np.nan, 4294967295.5, -0.5], 1
    texts = ("x < y", "x <= y", "x == y", "x != y", "x > y", "x >= y", "!x", "x ? 1 : 0")
    texts += (
        "(int)x",
        "(unsigned)x",
        "(double)(long long)x",
        "(double)(unsigned long long)fabs(x)",
    )
    texts += ("(signed char)(x * 1e-8)", "(float)x", "(double)(int)y", "lround(x * 0.5)")
    out = computed(device, texts, x, y)
    whole = np.nan_to_num(np.trunc(x))
    rows = [
        x < y, x <= y, x == y, x != y, x > y, x >= y, x == 0, x != 0,
        np.clip(whole, -(2**31), 2**31 - 1), np.clip(whole, 0, 2**32 - 1), whole, abs(whole),
        np.trunc(np.nan_to_num(x * 1e-8)), np.float32(x), np.clip(np.trunc(y), -(2**31), 2**31 - 1),
        np.trunc(np.nan_to_num(x) * 0.5 + np.copysign(0.5, x)),
    ]  # fmt: skip
    for row, one, text in zip(out, rows, texts, strict=True):
        np.testing.assert_array_equal(row, np.asarray(one, np.float64), err_msg=text)


KERNELS = r"""
#include <cstdio>
struct P { float a; double2 c; double b; int k; };
struct Q { char t; double3 v[2]; };
__constant__ double table[3] = {0.1, 1.5, 1.0 / 3};
__device__ double f(const P &p) { return p.a + p.b * p.c.x - p.c.y; }
__device__ void bump(double &x, double by) { x += by; }

__global__ void layouts(double *o, const double *x, double s, P p, const double2 *z, Q *q) {
    __shared__ double staged[32];
    double local[3];
    int i = threadIdx.x;
    staged[i] = x[i] * table[i % 3];
    __syncthreads();
    double v = staged[31 - i];
    bump(v, s);
    double w = __shfl_xor_sync(~0u, v, 1);
    local[i % 3] = w; local[(i + 1) % 3] = 1.0; local[(i + 2) % 3] = 2.0;
    double2 zz = z[i];
    zz.x *= zz.y;
    q[i].v[i & 1] = make_double3(v, w, zz.x);
    q[i].t = i;
    double sum = 0;
    for (int j = 0; j < 3; ++j) sum += local[j] * (j + 1);
    o[i] = f(p) + v + sum + (i % 2 ? zz.x : w) + (v > w);
    if (__longlong_as_double(__double_as_longlong(v)) != v) o[i] = -1;
    if (__hiloint2double(__double2hiint(w), __double2loint(w)) != w) o[i] = -1;
    if (i == 3) printf("%.13f %g\n", x[i], (double)1.5f);
}
"""


def test_layouts_of_memory(device, rng, capfd):
    module = td.cuda_module(KERNELS, double="pair")
    x = rounded(rng.uniform(-5, 5, 32))
    z = rng.uniform(-5, 5, 32) + 1j * rng.uniform(-5, 5, 32)
    q = np.zeros(32, np.dtype([("t", "i1"), ("v", "f8", (2, 3))], align=True))
    q["v"] = np.pi
    o = np.full(32, np.nan)
    s, p = 0.3, (0.5, (1 / 7, 2 / 7), 1 / 9, 3)
    module.layouts[1, 32, 0, device.default_stream](o, x, s, p, z, q)
    i = np.arange(32)
    v = (x * np.array([0.1, 1.5, 1 / 3])[i % 3])[::-1] + s
    w = v[i ^ 1]
    local = np.zeros((32, 3))
    local[i, i % 3], local[i, (i + 1) % 3], local[i, (i + 2) % 3] = w, 1, 2
    zx = z.real * z.imag
    total = p[0] + p[2] * p[1][0] - p[1][1] + v + (local * [1, 2, 3]).sum(1)
    np.testing.assert_allclose(o, total + np.where(i % 2, zx, w) + (v > w), rtol=0, atol=3e-13)
    assert abs(q["v"][i, i & 1] - np.stack([v, w, zx], -1)).max() < 2e-13
    assert (q["v"][i, 1 - (i & 1)] == np.pi).all()  # what is not written keeps its digits
    assert (q["t"] == i).all()
    assert capfd.readouterr().out == f"{x[3]:.13f} 1.5\n"
    module.constants["table"] = [1 / 3, 0.1, 2.0]
    assert abs(module.constants["table"] - [1 / 3, 0.1, 2.0]).max() < 1e-15


def test_tensors_are_pairs_in_their_last_axis(device, rng):
    module = td.cuda_module(
        "__global__ void thirds(double *x) { x[threadIdx.x] /= 3.0; }", double="pair"
    )
    x = rounded(rng.uniform(1, 2, 7))
    pairs = td.asarray(as_pairs(x).view(np.float32).reshape(7, 2), device=device)
    module.thirds[1, 7](pairs)
    high, low = pairs.numpy().astype(np.float64).T
    assert abs((high + low) * 3 - x).max() < 1e-13
    with pytest.raises((DtypeError, LaunchError), match="a double is a pair of floats here"):
        module.thirds[1, 7](td.ones(14, dtype=td.int32, device=device))


def test_atomic_sums(device, rng):
    module = td.cuda_module(
        "__global__ void sum(double *t, const double *x) { atomicAdd(t, x[threadIdx.x]); }",
        double="pair",
    )
    x, total = rounded(rng.uniform(-5, 5, 32)), np.array([0.1])
    if "int64_atomics" in device.features:
        module.sum[1, 32, 0, device.default_stream](total, x)
        assert abs(total[0] - 0.1 - x.sum()) < 1e-12
    else:
        with pytest.raises(CompileError, match="int64_atomics"):
            module.sum[1, 32, 0, device.default_stream](total, x)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("tgamma(x[0])", r"no gamma of a double that is a pair.*double=\"float\""),
        ("__dadd_rz(x[0], 1.0)", "no add_directed of a double"),
        ("__ll2double_rz((long long)x[0])", "__ll2double_rz rounds to the last bit of a double"),
        ("jn(3, x[0])", "no jn of a double"),
        ("nextafter(x[0], 1.0)", "no nextafter of a double"),
    ],
)
def test_what_pairs_do_not_have_is_refused(expression, message):
    module = td.cuda_module(
        f"__global__ void k(double *x) {{ x[0] = {expression}; }}", double="pair"
    )
    with pytest.raises(CompileError, match=message) as caught:
        module.k.source("ir")
    assert caught.value.line == 1


def test_no_doubles_are_left():
    module = td.cuda_module(KERNELS, double="pair")
    assert "f64" not in module.layouts.source("ir")
    assert module.layouts.source("wgsl")
    assert "a pair of floats, with 48 bits" in str(module.report())
