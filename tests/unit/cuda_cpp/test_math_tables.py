"""CUDA's mathematics in float and double: what the tables build, evaluated, against true values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from tests.support import cpu_kernels
from tests.support.cuda_builtins import (
    Declaring,
    Evaluating,
    apply,
    apply_outputs,
    operand,
    outputs,
    overload,
)
from tests.support.cuda_names import api_names
from tests.support.exact_rounding import rounded
from treadle.core.dim3 import Dim3
from treadle.cuda_cpp.builtins.tables import FLOATING, FUNCTIONS, OUTPUTS, REFUSED
from treadle.ir import nodes as n
from treadle.ir import types as t

INF, NAN = math.inf, math.nan
NUMPY = {t.F32: np.float32, t.F64: np.float64}
POINTS = (0.7, -1.3, 0.03125, 2.5, -7.25, 12.4)
WIDE = mp.workdps(30)


def close(got: float, true: Any, type: t.Scalar, units: float = 5) -> bool:
    """Within so many units in the last place; zeros and infinities exactly, signs and all."""
    if mp.isnan(true):
        return math.isnan(got)
    rounded = float(NUMPY[type](float(true)))
    if math.isinf(rounded) or rounded == 0:
        return got == rounded and math.copysign(1, got) == math.copysign(1, rounded)
    return abs(mp.mpf(got) - true) <= units * float(np.spacing(NUMPY[type](abs(rounded))))


def _power(base: Any) -> Callable[[Any], Any]:
    return lambda x: mp.power(base, x)


def _inside(function: Callable[[Any], Any], inside: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda x: function(x) if inside(x) else mp.nan


UNARY: dict[str, Callable[[Any], Any]] = {
    "fabs": abs, "sqrt": _inside(mp.sqrt, lambda x: x >= 0), "floor": mp.floor, "ceil": mp.ceil,
    "trunc": lambda x: mp.sign(x) * mp.floor(abs(x)), "rint": mp.nint, "nearbyint": mp.nint,
    "round": lambda x: mp.sign(x) * mp.floor(abs(x) + 0.5),
    "rsqrt": _inside(lambda x: 1 / mp.sqrt(x), lambda x: x >= 0),
    "exp": mp.exp, "exp2": _power(2), "exp10": _power(10), "expm1": mp.expm1,
    "log": _inside(mp.log, lambda x: x > 0),
    "log2": _inside(lambda x: mp.log(x, 2), lambda x: x > 0),
    "log10": _inside(mp.log10, lambda x: x > 0), "log1p": _inside(mp.log1p, lambda x: x > -1),
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "sinpi": mp.sinpi, "cospi": mp.cospi,
    "asin": _inside(mp.asin, lambda x: abs(x) <= 1),
    "acos": _inside(mp.acos, lambda x: abs(x) <= 1),
    "atan": mp.atan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh,
    "acosh": _inside(mp.acosh, lambda x: x >= 1), "atanh": _inside(mp.atanh, lambda x: abs(x) < 1),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "rcbrt": lambda x: mp.sign(x) / mp.cbrt(abs(x)),
    "erf": mp.erf, "erfc": mp.erfc, "tgamma": mp.gamma,
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "erfinv": _inside(mp.erfinv, lambda x: abs(x) < 1),
    "erfcinv": _inside(lambda x: mp.erfinv(1 - x), lambda x: 0 < x < 2),
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x), "normcdf": mp.ncdf,
    "normcdfinv": _inside(lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), lambda x: 0 < x < 1),
    "cyl_bessel_i0": lambda x: mp.besseli(0, x), "cyl_bessel_i1": lambda x: mp.besseli(1, x),
    "j0": lambda x: mp.besselj(0, x), "j1": lambda x: mp.besselj(1, x),
    "y0": _inside(lambda x: mp.bessely(0, x), lambda x: x > 0),
    "y1": _inside(lambda x: mp.bessely(1, x), lambda x: x > 0),
    "logb": lambda x: mp.floor(mp.log(abs(x), 2)),
}  # fmt: skip
SEVERAL: dict[str, Callable[..., Any]] = {
    "fmod": lambda x, y: mp.mpf(math.fmod(x, y)), "remainder": lambda x, y: math.remainder(x, y),
    "fdim": lambda x, y: max(x - y, 0), "fmin": min, "fmax": max, "min": min, "max": max,
    "copysign": lambda x, y: abs(x) if y >= 0 else -abs(x),
    "pow": _inside, "atan2": mp.atan2, "hypot": mp.hypot, "rhypot": lambda x, y: 1 / mp.hypot(x, y),
    "fma": lambda x, y, z: x * y + z,
    "norm3d": lambda *v: mp.norm(v), "norm4d": lambda *v: mp.norm(v),
    "rnorm3d": lambda *v: 1 / mp.norm(v), "rnorm4d": lambda *v: 1 / mp.norm(v),
}  # fmt: skip
SEVERAL["pow"] = lambda x, y: x**y if x > 0 or y == int(y) else mp.nan


def of_both_types(name: str) -> list[tuple[str, t.Scalar]]:
    return [(name, t.F32), (f"{name}f", t.F32), (name, t.F64)]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str) -> None:
    for called, type in of_both_types(name):
        for value in POINTS:
            x = float(NUMPY[type](value))
            with WIDE:
                true = UNARY[name](mp.mpf(x))
                got = apply(overload(called, type), x)
                assert close(got, true, type), f"{called}({x}) = {got}, not {true}"


@pytest.mark.parametrize("name", SEVERAL)
def test_functions_of_several_numbers(name: str) -> None:
    plain = name in ("min", "max")
    for called, type in [(name, t.F32), (name, t.F64)] if plain else of_both_types(name):
        found = overload(called, *(type,) * len(FUNCTIONS[name][0].parameters))
        for start in range(len(POINTS)):
            values = [float(NUMPY[type](v)) for v in (POINTS * 2)[start:][: len(found.parameters)]]
            with WIDE:
                true = mp.mpf(SEVERAL[name](*(mp.mpf(v) for v in values)))
                got = apply(found, *values)
                assert close(got, true, type), f"{called}{values} = {got}, not {true}"


# name, arguments, result: of both types
SPECIAL = [
    ("fmin", (NAN, 2.0), 2.0), ("fmin", (2.0, NAN), 2.0), ("fmax", (NAN, NAN), NAN),
    ("fmax", (NAN, -INF), -INF), ("fmin", (0.0, -0.0), -0.0), ("fmax", (-0.0, 0.0), 0.0),
    ("fdim", (INF, INF), 0.0), ("fdim", (NAN, 1.0), NAN), ("fdim", (1.0, NAN), NAN),
    ("fmod", (5.5, INF), 5.5), ("fmod", (-0.0, 2.0), -0.0), ("fmod", (1.0, 0.0), NAN),
    ("remainder", (3.0, 2.0), -1.0), ("remainder", (-4.0, 2.0), -0.0),
    ("remainder", (5.0, 2.0), 1.0), ("copysign", (NAN, -1.0), NAN),
    ("copysign", (3.0, -0.0), -3.0), ("copysign", (-INF, 1.0), INF),
    ("round", (0.5,), 1.0), ("round", (-2.5,), -3.0), ("round", (-0.25,), -0.0),
    ("round", (INF,), INF), ("round", (NAN,), NAN), ("rint", (2.5,), 2.0), ("rint", (-0.5,), -0.0),
    ("trunc", (-0.75,), -0.0), ("sqrt", (-0.0,), -0.0), ("sqrt", (-1.0,), NAN),
    ("rsqrt", (-0.0,), -INF), ("exp", (-INF,), 0.0), ("log", (0.0,), -INF), ("logb", (0.0,), -INF),
    ("sinpi", (-3.0,), -0.0), ("cospi", (2.5,), 0.0), ("tgamma", (-2.0,), NAN),
    ("pow", (1.0, NAN), 1.0), ("pow", (-1.0, INF), 1.0), ("ldexp", (-0.0, 5), -0.0),
    ("scalbn", (3.0, -1), 1.5),
    ("scalbln", (1.0, -(2**40)), 0.0), ("scalbln", (-1.0, 2**40), -INF),
    ("nextafter", (0.0, -0.0), -0.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "values", "expected"), SPECIAL)
def test_special_values(name: str, values: tuple[Any, ...], expected: float) -> None:
    for found in FUNCTIONS[name]:
        got = apply(found, *values)
        if math.isnan(expected):
            assert math.isnan(got)
        else:
            assert (got, math.copysign(1, got)) == (expected, math.copysign(1, expected))


@pytest.mark.parametrize("type", [t.F32, t.F64], ids=str)
def test_whole_numbers(type: t.Scalar) -> None:
    cases = {"lrint": (2, -4), "llrint": (2, -4), "lround": (3, -4), "llround": (3, -4)}
    for name, expected in cases.items():
        assert tuple(apply(overload(name, type), v) for v in (2.5, -3.75)) == expected
        assert apply(overload(name, type), 1e30) == 2**63 - 1
        assert apply(overload(name, type), NAN) == -(2**63)
    assert [apply(overload("ilogb", type), v) for v in (0.0, 8.5, -0.3, INF, NAN)] == [
        -(2**31), 3, -2, 2**31 - 1, -(2**31),
    ]  # fmt: skip


@pytest.mark.parametrize("type", [t.F32, t.F64], ids=str)
def test_bessel_functions_have_the_order_first(type: t.Scalar) -> None:
    assert apply(overload("jn", t.I32, type), 3, 2.5) == pytest.approx(
        0.21660039103911333, rel=1e-6
    )
    assert apply(overload("yn", t.I32, type), 2, 2.5) == pytest.approx(
        -0.3813358484241852, rel=1e-6
    )


def test_comparisons_and_tests() -> None:
    for type in (t.F32, t.F64):
        cases = {
            "isnan": (NAN, 1.0), "isinf": (-INF, NAN), "isfinite": (1.0, INF),
            "signbit": (-0.0, 0.0),
            "isnormal": (-2.5, 1e-310 if type == t.F64 else 1e-40),
        }  # fmt: skip
        for name, (true, false) in cases.items():
            assert apply(overload(name, type), true) is True
            assert apply(overload(name, type), false) is False
        pairs = {"isless": 0b100, "islessequal": 0b101, "isgreater": 0b010, "isgreaterequal": 0b011,
                 "islessgreater": 0b110, "isunordered": 0b000}  # fmt: skip
        for name, expected in pairs.items():
            found = overload(name, type, type)
            got = [apply(found, *pair) for pair in ((1.0, 2.0), (2.0, 1.0), (1.0, 1.0))]
            assert got == [bool(expected & bit) for bit in (4, 2, 1)]
            assert apply(found, NAN, 1.0) is (name == "isunordered")
    assert apply(overload("__isnanf"), NAN) == 1
    assert apply(overload("__signbit"), -1.0) == 1


FAST: dict[str, Callable[..., float]] = {
    "__sinf": math.sin, "__cosf": math.cos, "__tanf": math.tan, "__tanhf": math.tanh,
    "__expf": math.exp, "__exp10f": lambda x: 10.0**x, "__logf": math.log, "__log2f": math.log2,
    "__log10f": math.log10, "__powf": pow, "__fdividef": lambda x, y: x / y,
    "__fadd_rn": lambda x, y: x + y, "__fsub_rn": lambda x, y: x - y,
    "__fmul_rn": lambda x, y: x * y, "__fdiv_rn": lambda x, y: x / y,
    "__frcp_rn": lambda x: 1 / x, "__fsqrt_rn": math.sqrt,
    "__frsqrt_rn": lambda x: x**-0.5, "__fmaf_rn": lambda x, y, z: x * y + z,
    "__dadd_rn": lambda x, y: x + y, "__dsub_rn": lambda x, y: x - y,
    "__dmul_rn": lambda x, y: x * y, "__ddiv_rn": lambda x, y: x / y,
    "__drcp_rn": lambda x: 1 / x, "__dsqrt_rn": math.sqrt,
    "__fma_rn": lambda x, y, z: x * y + z, "fdividef": lambda x, y: x / y,
}  # fmt: skip


@pytest.mark.parametrize("name", FAST)
def test_intrinsics(name: str) -> None:
    found = overload(name)
    values = (1.625, 0.71875, 2.25)[: len(found.parameters)]
    assert apply(found, *values) == pytest.approx(FAST[name](*values), rel=3e-7)


def test_extremes_of_a_float_and_a_double() -> None:
    assert apply(overload("min", t.F32, t.F64), 0.5, 0.1) == 0.1
    assert apply(overload("max", t.F64, t.F32), 0.1, NAN) == 0.1


def test_extremes_with_a_constant() -> None:
    values = (NAN, -INF, -1.5, -0.0, 0.0, 1.0, 2.5, INF)
    for name in ("fmaxf", "fminf"):
        found = overload(name)
        for constant in values:
            for value in values:
                expected = apply(found, value, constant)
                for swapped in (False, True):
                    maker = Evaluating()
                    operands = [operand(maker, value, t.F32), n.Constant(constant, t.F32)]
                    built = found.build(maker, *(operands[::-1] if swapped else operands))
                    assert repr(maker.value(built)) == repr(expected), (name, value, constant)


def test_products_are_not_fused_with_sums() -> None:
    """On a CPU, which fuses a * b + c."""
    place = [n.Element(name, n.Constant(0, t.I32), t.F32) for name in "abco"]
    a, b, c = (n.Load(each, t.F32) for each in place[:3])
    near = np.array([1 + 2.0**-12], np.float32)
    for outer in (None, overload("__fadd_rn")):
        maker = Declaring()
        product = overload("__fmul_rn").build(maker, a, b)
        total = n.Binary("add", product, c, t.F32) if outer is None else outer.build(
            maker, n.Binary("mul", a, b, t.F32), c
        )  # fmt: skip
        body = (*maker.statements, n.Assign(place[3], total))
        buffers = tuple(n.Buffer(name, t.F32) for name in "abco")
        kernel = n.Kernel("fused", buffers, (), body, block=Dim3(1))
        *_, out = cpu_kernels.run(kernel, [near, near, -(near * near), near.copy()])
        assert out[0] == 0.0


def test_rounding_in_directions() -> None:
    third, tenth = 1 / 3, 0.1
    for letter, type in (("f", t.F32), ("d", t.F64)):
        x, y = float(NUMPY[type](third)), float(NUMPY[type](tenth))
        exact = {
            "add": (Fraction(x) + Fraction(y), (x, y)), "sub": (Fraction(x) - Fraction(y), (x, y)),
            "mul": (Fraction(x) * Fraction(y), (x, y)), "div": (Fraction(x) / Fraction(y), (x, y)),
            "rcp": (1 / Fraction(y), (y,)),
        }  # fmt: skip
        for mode in ("rz", "ru", "rd"):
            for name, (value, operands) in exact.items():
                got = apply(overload(f"__{letter}{name}_{mode}"), *operands)
                assert got == rounded(value, type, mode), name
            fused = "__fmaf" if letter == "f" else "__fma"
            got = apply(overload(f"{fused}_{mode}"), x, y, -x)
            assert got == rounded(Fraction(x) * Fraction(y) - Fraction(x), type, mode)
            root = apply(overload(f"__{letter}sqrt_{mode}"), 2.0)
            assert (Fraction(root) ** 2 > 2) == (mode == "ru")


def test_saturation() -> None:
    values = (-1.0, 0.25, 7.0, NAN, -0.0, INF)
    assert [apply(overload("__saturatef"), v) for v in values] == [0, 0.25, 1, 0, 0, 1]


def test_fastmath_takes_the_hardware() -> None:
    for name in ("expf", "exp10f", "log10f", "sinf", "rsqrtf", "powf", "fmaxf"):
        found = overload(name)
        values = (1.5, 2.0)[: len(found.parameters)]
        exact = apply(found, *values)
        assert apply(found, *values, fastmath=True) == pytest.approx(exact, rel=1e-6)


def test_results_through_pointers() -> None:
    for type in (t.F32, t.F64):
        units = float(np.finfo(NUMPY[type]).eps) * 4
        none, sine, cosine = apply_outputs(outputs("sincos", type), 1.25)
        assert none is None
        assert (sine, cosine) == pytest.approx((math.sin(1.25), math.cos(1.25)), rel=units)
        _, sine, cosine = apply_outputs(outputs("sincospi", type), 1.5)
        assert (sine, cosine) == (-1.0, 0.0)
        assert apply_outputs(outputs("modf", type), -2.75) == (-0.75, -2.0)
        assert apply_outputs(outputs("modf", type), INF) == (0.0, INF)
        assert apply_outputs(outputs("frexp", type), -48.0) == (-0.75, 6)
        assert apply_outputs(outputs("remquo", type), -7.0, 2.0) == (1.0, -4)
    _, sine, cosine = apply_outputs(outputs("__sincosf", t.F32), 0.5)
    assert (sine, cosine) == pytest.approx((math.sin(0.5), math.cos(0.5)))
    assert apply_outputs(outputs("__vibmax_s32", t.I32), -1, 2) == (2, False)
    assert apply_outputs(outputs("__vibmin_u16x2", t.U32), 0x00010005, 0x00020004) == (
        0x00010004, True, False,
    )  # fmt: skip


def test_every_name_is_known_or_refused() -> None:
    known = set(FUNCTIONS) | set(OUTPUTS) | set(REFUSED) | {"nan", "nanf"}  # in nan.cuh
    assert sorted(api_names() - known) == []
    listed = "add new names to tests/support/cuda_names.py"
    assert sorted(known - api_names()) == [], listed
    assert not set(REFUSED) & (set(FUNCTIONS) | set(OUTPUTS))
    assert set(FUNCTIONS) >= FLOATING


def test_no_two_overloads_take_the_same() -> None:
    for name, found in FUNCTIONS.items():
        signatures = [each.parameters for each in found]
        assert len(set(signatures)) == len(signatures), name
