"""CUDA's mathematics in kernels: functions by name and overload, integers, conversions."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError

INF, NAN = math.inf, math.nan
NAMED = re.compile(r"\b[xyz]\b").findall


def has_double(device):
    return device.backend != "webgpu" or "float64" in device.features


def kernel_of(type, expressions, prelude=""):
    """A kernel that evaluates expressions of x, y, z for each row of numbers."""
    lines = "\n".join(f"    out[{k} * n + i] = {text};" for k, text in enumerate(expressions))
    return td.cuda_module(
        f"#include <cmath>\n#include <cuda_fp16.h>\n{prelude}\n"
        f"__global__ void evaluate(const {type} *in, {type} *out, int n)\n{{\n"
        "    int i = threadIdx.x;\n    if (i >= n) return;\n"
        f"    {type} x = in[i], y = in[n + i], z = in[2 * n + i];\n{lines}\n}}\n"
    ).evaluate


def evaluate(device, dtype, kernel, count, rows):
    values = np.array(rows, dtype)
    n = len(rows)
    given = np.ascontiguousarray(values.T)
    out = np.zeros((count, n), dtype)
    with td.use_device(device):
        kernel[1, n](given, out, n)
    return values.astype(object), out


# --- float and double ----------------------------------------------------------------------------

# C++ of x, y, z, the same in Python, and by how many units in the last place it may be off.
FLOAT_FUNCTIONS = [
    ("sinf(x)", math.sin, 2),
    ("cosf(x)", math.cos, 2),
    ("tanf(x)", math.tan, 4),
    ("expf(x)", math.exp, 2),
    ("exp2f(x)", lambda x: 2.0**x, 2),
    ("exp10f(x)", lambda x: 10.0**x, 2),
    ("expm1f(x)", math.expm1, 1),
    ("logf(fabsf(x))", lambda x: math.log(abs(x)), 1),
    ("log2f(y)", lambda x, y: math.log2(y), 1),
    ("log10f(y)", lambda x, y: math.log10(y), 2),
    ("log1pf(y)", lambda x, y: math.log1p(y), 1),
    ("sqrtf(y)", lambda x, y: math.sqrt(y), 1),
    ("rsqrtf(y)", lambda x, y: y**-0.5, 2),
    ("cbrtf(x)", math.cbrt, 1),
    ("powf(y, x)", lambda x, y: y**x, 4),
    ("atan2f(x, y)", math.atan2, 3),
    ("atanf(x)", math.atan, 2),
    ("asinf(x / 8)", lambda x: math.asin(x / 8), 2),
    ("acosf(x / 8)", lambda x: math.acos(x / 8), 2),
    ("sinhf(x)", math.sinh, 3),
    ("coshf(x)", math.cosh, 2),
    ("tanhf(x)", math.tanh, 2),
    ("asinhf(x)", math.asinh, 3),
    ("acoshf(1 + y)", lambda x, y: math.acosh(1 + y), 4),
    ("atanhf(x / 8)", lambda x: math.atanh(x / 8), 3),
    ("erff(x)", math.erf, 2),
    ("erfcf(x)", math.erfc, 4),
    ("tgammaf(y)", lambda x, y: math.gamma(y), 9),
    ("lgammaf(y)", lambda x, y: math.lgamma(y), 6),
    ("hypotf(x, y)", math.hypot, 3),
    ("fmaf(x, y, z)", lambda x, y, z: x * y + z, 1),
    ("fmodf(x, y)", math.fmod, 0),
    ("remainderf(x, y)", math.remainder, 0),
    ("floorf(x) + ceilf(x) * 16", lambda x: math.floor(x) + 16 * math.ceil(x), 0),
    ("truncf(x) + 64 * rintf(x)", lambda x: math.trunc(x) + 64 * round(x), 0),
    ("roundf(x)", lambda x: math.copysign(math.floor(abs(x) + 0.5), x), 0),
    ("copysignf(y, x)", lambda x, y: math.copysign(y, x), 0),
    ("fdimf(x, z)", lambda x, y, z: max(x - z, 0), 0),
    ("fminf(x, z) - fmaxf(x, z)", lambda x, y, z: -abs(x - z), 1),
    ("ldexpf(x, 5) + scalbnf(x, -2)", lambda x: 32.25 * x, 0),
    ("fabsf(x)", abs, 0),
    ("norm3df(x, y, z)", math.hypot, 3),
    ("sinpif(x)", lambda x: math.sin(math.pi * x), 4),
    ("(float)ilogbf(y) + logbf(y)", lambda x, y: 2.0 * (math.frexp(y)[1] - 1), 0),
    ("nextafterf(x, 100.0f)", lambda x: float(np.nextafter(np.float32(x), np.float32(100))), 0),
]
ROWS = [
    (0.5, 1.25, -3.0), (-2.75, 3.5, 0.125), (6.5, 0.3, 2.0), (-0.001, 7.0, -0.5), (2.5, 2.5, 2.5),
    (-7.5, 10.0, 1e-3), (1.0, 0.01, 4.0), (3.1415927, 33.0, -9.0),
]  # fmt: skip


def apply(function, text, row):
    """A function of the first numbers of a row, or of those that the text names."""
    code = getattr(function, "__code__", None)
    if code is None:
        return function(*(v for name, v in zip("xyz", row, strict=True) if name in NAMED(text)))
    return function(*row[: code.co_argcount])


def check(got, function, values, ulps, dtype, text):
    for k, row in enumerate(values):
        right = apply(function, text, [float(v) for v in row])
        nearest = dtype(right)
        spacing = float(np.spacing(np.maximum(np.abs(nearest), np.finfo(dtype).tiny)))
        if text.startswith(("sinpi", "lgamma")):  # near their zeros
            spacing = max(spacing, float(np.finfo(dtype).eps))
        error = abs(float(got[k]) - right) / spacing
        assert error <= ulps + 0.5, f"{text} of {row} is {got[k]}, not {right} ({error} ulps)"


def test_functions_of_float(device):
    kernel = kernel_of("float", [text for text, _, _ in FLOAT_FUNCTIONS])
    values, out = evaluate(device, np.float32, kernel, len(FLOAT_FUNCTIONS), ROWS)
    for (text, function, ulps), got in zip(FLOAT_FUNCTIONS, out, strict=True):
        check(got, function, values, ulps, np.float32, text)


def test_functions_of_double(device):
    names = [
        (re.sub(r"([a-z0-9]+)f\(", r"\1(", text).replace("100.0f", "100.0"), function, ulps)
        for text, function, ulps in FLOAT_FUNCTIONS
        if not text.startswith("nextafter")
    ]
    names = [(text.replace("(float)", "(double)"), f, u) for text, f, u in names]
    if not has_double(device):
        return
    kernel = kernel_of("double", [text for text, _, _ in names])
    values, out = evaluate(device, np.float64, kernel, len(names), ROWS)
    for (text, function, ulps), got in zip(names, out, strict=True):
        check(got, function, values, ulps + 8, np.float64, text)


SPECIAL = [
    ("sqrtf(x)", lambda x: NAN if x < 0 else math.sqrt(x)),
    ("fminf(x, y)", lambda x, y: min(x, y) if x == x else y),
    ("fmaxf(x, y)", lambda x, y: max(x, y) if x == x else y),
    (
        "isnan(x) + 2 * isinf(x) + 4 * isfinite(x) + 8 * signbit(x)",
        lambda x: (
            math.isnan(x) + 2 * math.isinf(x) + 4 * math.isfinite(x) + 8 * (math.copysign(1, x) < 0)
        ),
    ),
    ("std::isnan(x) ? 1.0f : 2.0f", lambda x: 2.0 - math.isnan(x)),
    ("expf(x)", lambda x: INF if x > 1e4 else 0.0 if x < -1e4 else math.exp(x)),
    ("1.0f / x", lambda x: math.copysign(INF, x) if x == 0 else 1 / x),
    ("copysignf(2.0f, x)", lambda x: math.copysign(2, x)),
    ("fabsf(x)", abs),
    ("rintf(x)", lambda x: math.copysign(round(x), x) if math.isfinite(x) else x),
    ("roundf(x)", lambda x: math.copysign(math.floor(abs(x) + 0.5), x) if math.isfinite(x) else x),
    ("atanf(x)", math.atan),
    ("tanhf(x)", math.tanh),
    ("isless(x, y)", lambda x, y: float(x < y)),
    ("x == INFINITY", lambda x: float(x == INF)),
    ("x < y || isnan(x)", lambda x, y: float(x < y or x != x)),
    (
        "(float)__float2int_rz(x)",
        lambda x: np.trunc(np.clip(x, -(2**31), 2**31 - 1)) + 0.0 if x == x else 0.0,
    ),
    ("fmaf(x, z, y)", lambda x, y, z: x * z + y),
    ("powf(x, 0.0f)", lambda x: 1.0),
    ("isunordered(x, y)", lambda x, y: float(x != x or y != y)),
]
SPECIAL_ROWS = [(v, 1.5, 0.0) for v in (0.0, -0.0, INF, -INF, NAN, 2.5, -0.5, 1e30)]


def test_special_values(device):
    kernel = kernel_of("float", [text for text, _ in SPECIAL])
    values, out = evaluate(device, np.float32, kernel, len(SPECIAL), SPECIAL_ROWS)
    for (text, function), got in zip(SPECIAL, out, strict=True):
        for k, row in enumerate(values):
            right = apply(function, text, [float(v) for v in row])
            found = float(got[k])
            if math.isnan(right):
                assert math.isnan(found), (text, row, found)
                continue
            assert found == pytest.approx(right, rel=1e-6), (text, row, found)
            assert math.copysign(1, found) == math.copysign(1, right), (text, row, found)


FAST = [
    ("__sinf(x)", math.sin),
    ("__cosf(x)", math.cos),
    ("__tanf(x)", math.tan),
    ("__expf(x)", math.exp),
    ("__exp10f(x)", lambda x: 10.0**x),
    ("__logf(y)", lambda x, y: math.log(y)),
    ("__log2f(y)", lambda x, y: math.log2(y)),
    ("__log10f(y)", lambda x, y: math.log10(y)),
    ("__powf(y, x)", lambda x, y: y**x),
    ("__fdividef(x, y)", lambda x, y: x / y),
    ("__frsqrt_rn(y)", lambda x, y: y**-0.5),
    ("__fsqrt_rn(y)", lambda x, y: math.sqrt(y)),
    ("__frcp_rn(y)", lambda x, y: 1 / y),
    ("__fadd_rn(x, __fmul_rn(y, z))", lambda x, y, z: x + y * z),
    ("__fmaf_rn(x, y, z)", lambda x, y, z: x * y + z),
    ("__saturatef(x)", lambda x: min(max(x, 0), 1)),
]


def test_fast_functions(device):
    kernel = kernel_of("float", [text for text, _ in FAST])
    values, out = evaluate(device, np.float32, kernel, len(FAST), ROWS)
    for (text, function), got in zip(FAST, out, strict=True):
        for k, row in enumerate(values):
            right = apply(function, text, [float(v) for v in row])
            assert float(got[k]) == pytest.approx(right, rel=2e-4, abs=1e-5), (text, row)


# --- integers ------------------------------------------------------------------------------------


def clz(v, bits=32):
    return bits - (v & ((1 << bits) - 1)).bit_length()


def signed(v, bits=32):
    v &= (1 << bits) - 1
    return v - (v >> (bits - 1) << bits)


def brev(v):
    return signed(int(f"{v & 0xFFFFFFFF:032b}"[::-1], 2))


def byte_of(a, b, s):
    data = ((b & 0xFFFFFFFF) << 32 | a & 0xFFFFFFFF).to_bytes(8, "little")
    return signed(int.from_bytes(bytes(data[(s >> 4 * k) & 7] for k in range(4)), "little"))


def dp4a(a, b, c):
    parts = [[signed(v >> 8 * k, 8) for k in range(4)] for v in (a, b)]
    return signed(c + sum(p * q for p, q in zip(*parts, strict=True)))


INTEGERS = [
    ("__popc(x)", lambda x: (x & 0xFFFFFFFF).bit_count()),
    ("__clz(x)", lambda x: clz(x)),
    ("__ffs(x)", lambda x: (x & -x).bit_length()),
    ("__brev(x)", brev),
    ("__mulhi(x, y)", lambda x, y: x * y >> 32),
    ("__umulhi(x, y)", lambda x, y: signed((x & 0xFFFFFFFF) * (y & 0xFFFFFFFF) >> 32)),
    ("__mul24(x, y)", lambda x, y: signed(signed(x, 24) * signed(y, 24))),
    ("__byte_perm(x, y, 0x3614)", lambda x, y: byte_of(x, y, 0x3614)),
    ("__dp4a(x, y, z)", dp4a),
    ("__sad(x, y, z)", lambda x, y, z: signed(abs(x - y) + z)),
    ("__hadd(x, y)", lambda x, y: x + y >> 1),
    ("__rhadd(x, y)", lambda x, y: x + y + 1 >> 1),
    (
        "__funnelshift_l(x, y, z)",
        lambda x, y, z: signed(((y << 32 | x & 0xFFFFFFFF) << (z & 31)) >> 32),
    ),
    ("__funnelshift_r(x, y, z)", lambda x, y, z: signed((y << 32 | x & 0xFFFFFFFF) >> (z & 31))),
    ("abs(x)", lambda x: signed(abs(x))),
    ("min(x, y) ^ max(y, z)", lambda x, y, z: min(x, y) ^ max(y, z)),
    ("max(x, 5)", lambda x: max(x, 5)),
    ("min((unsigned)x, 7u)", lambda x: min(x & 0xFFFFFFFF, 7)),
    ("__float_as_int(__int_as_float(x & 0x3fffffff))", lambda x: x & 0x3FFFFFFF),
    ("__float2int_rn(__int2float_rz(x))", lambda x: signed(int(np.trunc(toward_zero(x))))),
    (
        "__popcll((unsigned long long)(unsigned)x << 3 | 1)",
        lambda x: (x & 0xFFFFFFFF).bit_count() + 1,
    ),
    ("__clzll((long long)x)", lambda x: clz(x, 64)),
    ("__ffsll((long long)x << 20)", lambda x: ((x & -x).bit_length() + 20) if x else 0),
    (
        "__vadd4(x, y)",
        lambda x, y: signed(sum((((x >> s) + (y >> s)) & 0xFF) << s for s in (0, 8, 16, 24))),
    ),
    ("std::min(x, y) + std::max(x, y) == x + y", lambda x, y: 1),
    ("llabs((long long)y) % 1000", lambda x, y: abs(y) % 1000),
    (
        "(int)(__umul64hi(0xffffffffffffffffull, (unsigned)x) & 0xffff)",
        lambda x: ((x & 0xFFFFFFFF) - (x != 0)) & 0xFFFF,
    ),
]
INTEGER_ROWS = [
    (0, 1, 2), (1, -1, 5), (-1, 0x12345678, 31), (0x7FFFFFFF, 3, -7), (-(2**31), -5, 40),
    (123456789, -987654321, 13), (0x00FF00FF, 0x7F80017F, 1000), (-256, 65535, 0),
]  # fmt: skip


def toward_zero(v):
    near = np.float32(v)
    return float(near) if abs(float(near)) <= abs(v) else float(np.nextafter(near, np.float32(0)))


def test_integers(device):
    kernel = kernel_of("int", [text for text, _ in INTEGERS])
    values, out = evaluate(device, np.int32, kernel, len(INTEGERS), INTEGER_ROWS)
    for (text, function), got in zip(INTEGERS, out, strict=True):
        for k, row in enumerate(values):
            right = apply(function, text, [int(v) for v in row])
            assert got[k] == right, (text, row)


# --- results through pointers, overloads, conversions --------------------------------------------

OUTPUTS = td.cuda_module("""
#include <math.h>
struct Polar { float sine, cosine; int exponent; };

__device__ void both(float angle, float *pair) { sincosf(angle, pair, pair + 1); }

__global__ void through(const float *x, float *out, Polar *polars, int n)
{
    int i = threadIdx.x;
    if (i >= n)
        return;
    float s, c, whole, pair[2];
    int exponent, quotient;
    sincosf(x[i], &s, &c);
    Polar p;
    __sincosf(x[i], &p.sine, &p.cosine);
    float mantissa = frexpf(x[i], &exponent);
    p.exponent = exponent;
    polars[i] = p;
    float fraction = modff(x[i], &whole);
    float rest = remquof(x[i], 0.75f, &quotient);
    both(x[i], pair);
    sincospif(x[i], &out[8 * n + i], &out[9 * n + i]);
    out[i] = s;
    out[n + i] = c;
    out[2 * n + i] = mantissa;
    out[3 * n + i] = whole;
    out[4 * n + i] = fraction;
    out[5 * n + i] = rest;
    out[6 * n + i] = quotient & 7;
    out[7 * n + i] = pair[0] + 2 * pair[1];
}

__global__ void overloads(const float *x, const int *k, float *out, int n)
{
    int i = threadIdx.x;
    if (i >= n)
        return;
    float f = x[i];
    int a = k[i];
    unsigned u = k[i];
    out[i] = abs(f) + abs(a) + fabs(f);
    out[n + i] = max(f, (float)a) + fmaxf(f, a) + min(f, 0.5f);
    out[2 * n + i] = pow(f, 2.0f) + powf(f, a & 3) + std::pow(f, 2.0f);
    out[3 * n + i] = sqrt(fabs(f)) + std::sqrt(std::fabs(f)) + ::sqrtf(fabsf(f));
    out[4 * n + i] = max(u, 3u) > 100u;
    out[5 * n + i] = std::abs(f) + std::floor(f) + ceil(f) + std::max(a, 2) + std::min<int>(a, 2);
    out[6 * n + i] = fma(f, f, f) + exp(0 * f) + sizeof(exp(f)) + sizeof(abs(a));
    out[6 * n + i] += sizeof(max(1ll, 2));
    out[7 * n + i] = __int2float_rn(a) + __uint2float_rz(u & 255) + __float2int_ru(f);
    out[7 * n + i] += __float2uint_rd(fabsf(f));
}
""")


def test_results_through_pointers(device):
    x = np.array([0.5, -2.75, 6.5, 1e-3, -0.25, 3.0, 100.0], np.float32)
    n = len(x)
    out = np.zeros((10, n), np.float32)
    polars = np.zeros(n, np.dtype([("sine", "f4"), ("cosine", "f4"), ("exponent", "i4")]))
    with td.use_device(device):
        OUTPUTS.through[1, n](x, out, polars, n)
    v = x.astype(np.float64)
    close = {"rtol": 1e-6, "atol": 1e-7}
    np.testing.assert_allclose(out[:2], [np.sin(v), np.cos(v)], **close)
    np.testing.assert_array_equal(out[2], np.frexp(x)[0])
    np.testing.assert_array_equal(polars["exponent"], np.frexp(x)[1])
    np.testing.assert_array_equal(out[3:5], [np.trunc(x), x - np.trunc(x)])
    rests = [math.remainder(float(e), 0.75) for e in x]
    np.testing.assert_array_equal(out[5], rests)
    quotients = [round((float(e) - r) / 0.75) for e, r in zip(x, rests, strict=True)]
    for got, right in zip(out[6], quotients, strict=True):  # the low bits, with the sign
        assert int(got) == (right if right >= 0 else -(abs(right) & 7)) & 7
    np.testing.assert_allclose(out[7], np.sin(v) + 2 * np.cos(v), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        out[8:], [np.sin(np.pi * v), np.cos(np.pi * v)], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(polars["sine"][:6], np.sin(v[:6]), rtol=1e-3)
    np.testing.assert_allclose(polars["cosine"][:6], np.cos(v[:6]), rtol=1e-3)


def test_overloads(device):
    x = np.array([0.5, -2.75, 6.5, -0.25, 3.0], np.float32)
    k = np.array([3, -4, 0, 7, -1], np.int32)
    n = len(x)
    out = np.zeros((8, n), np.float32)
    with td.use_device(device):
        OUTPUTS.overloads[1, n](x, k, out, n)
    f, a = x.astype(np.float64), k.astype(np.float64)
    u = k.astype(np.uint32)
    expected = [
        2 * abs(f) + abs(a),
        2 * np.maximum(f, a) + np.minimum(f, 0.5),
        2 * f**2 + f ** (k & 3),
        3 * np.sqrt(abs(f)),
        np.maximum(u, 3) > 100,
        abs(f) + np.floor(f) + np.ceil(f) + np.maximum(a, 2) + np.minimum(a, 2),
        f * f + f + 1 + 4 + 4 + 8,
        a + (u & 255) + np.ceil(f) + np.floor(abs(f)),
    ]
    np.testing.assert_allclose(out, np.array(expected, np.float64), rtol=2e-6)


ROUNDINGS = td.cuda_module("""
__global__ void rounded(const double *x, float *out, int *ints, long long *longs, int n)
{
    int i = threadIdx.x;
    if (i >= n)
        return;
    out[i] = __double2float_rn(x[i]);
    out[n + i] = __double2float_rz(x[i]);
    out[2 * n + i] = __double2float_ru(x[i]);
    out[3 * n + i] = __double2float_rd(x[i]);
    ints[i] = __double2int_rn(x[i]);
    ints[n + i] = __double2int_rd(x[i]);
    ints[2 * n + i] = __double2int_ru(x[i]);
    ints[3 * n + i] = (int)x[i];
    longs[i] = __double2ll_rn(x[i] * 1e9);
    longs[n + i] = llrint(x[i]) + llround(x[i]);
    longs[2 * n + i] = __double_as_longlong(x[i]);
    longs[3 * n + i] = __float2ll_rz((float)x[i] * 1e9f);
}
""")


def test_conversions_with_roundings(device):
    if not has_double(device):
        return
    x = np.array([0.1, -0.1, 2.5, -2.5, 3.5, 1e-50, 16777217.5, -1e9 / 3])
    n = len(x)
    out, ints, longs = np.zeros((4, n), "f4"), np.zeros((4, n), "i4"), np.zeros((4, n), "i8")
    with td.use_device(device):
        ROUNDINGS.rounded[1, n](x, out, ints, longs, n)
    near = x.astype(np.float32)
    down = np.where(near > x, np.nextafter(near, np.float32(-INF)), near)
    up = np.where(near < x, np.nextafter(near, np.float32(INF)), near)
    np.testing.assert_array_equal(out, [near, np.where(x > 0, down, up), up, down])
    np.testing.assert_array_equal(ints, [np.rint(x), np.floor(x), np.ceil(x), np.trunc(x)])
    rounded = np.sign(x) * np.floor(abs(x) + 0.5)
    np.testing.assert_array_equal(longs[0], np.rint(x * 1e9).astype("i8"))
    np.testing.assert_array_equal(longs[1], (np.rint(x) + rounded).astype("i8"))
    np.testing.assert_array_equal(longs[2], x.view("i8"))
    np.testing.assert_array_equal(longs[3], (near * np.float32(1e9)).astype("i8"))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("sinf(1, 2)", "sinf takes 1 argument, not 2"),
        ("sincosf(x, y)", "sincosf"),
        ("sinf(in)", "a number"),
        ("sinnf(x)", "did you mean sinf?"),
        ("make_float3(1, 2).x", "make_float3"),
        ("fmaxf(make_float2(1, 2), x)", "a number"),
        ("make_float2(1, 2) + make_float2(1, 2)", "float2"),
    ],
)
def test_refusals(expression, message):
    with pytest.raises(CompileError, match=re.escape(message)) as caught:
        kernel_of("float", [expression]).source("llvm")
    assert caught.value.line == 9
