"""cuda_fp16.h and cuda_bf16.h, and vectors: for half and bfloat16, numbers and pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.cuda_builtins import apply, overload
from treadle.cuda_cpp.builtins.tables import FUNCTIONS
from treadle.ir import arithmetic
from treadle.ir import types as t

INF, NAN = math.inf, math.nan
TYPES = (t.F16, t.BF16)
NAMES = {t.F16: ("half", "half2"), t.BF16: ("bfloat16", "bfloat162")}
NUMBERS = (1.5, -0.375, 2.25, 0.15625, -3.0)


def fit(value: float, type: t.Scalar) -> float:
    return arithmetic.round_float(value, type)


def hold(value: float) -> float:
    return min(max(value, 0.0), 1.0)


ARITHMETIC: dict[str, Callable[..., float]] = {
    "neg": lambda a: -a, "abs": abs, "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "add_rn": lambda a, b: a + b,
    "sub_rn": lambda a, b: a - b, "mul_rn": lambda a, b: a * b,
    "add_sat": lambda a, b: hold(a + b), "sub_sat": lambda a, b: hold(a - b),
    "mul_sat": lambda a, b: hold(a * b), "fma": lambda a, b, c: a * b + c,
    "fma_sat": lambda a, b, c: hold(a * b + c), "fma_relu": lambda a, b, c: max(a * b + c, 0.0),
    "min": min, "max": max, "min_nan": min, "max_nan": max,
}  # fmt: skip
FUNCTIONS_OF_ONE: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "rsqrt": lambda x: x**-0.5, "rcp": lambda x: 1 / x, "exp": math.exp,
    "exp2": lambda x: 2.0**x, "exp10": lambda x: 10.0**x, "log": math.log, "log2": math.log2,
    "log10": math.log10, "sin": math.sin, "cos": math.cos, "tanh": math.tanh,
    "tanh_approx": math.tanh, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
    "rint": round,
}  # fmt: skip


def of_pairs(name: str) -> str:
    """__hadd_sat of pairs is __hadd2_sat."""
    base, _, ending = name.partition("_")
    return "__h2div" if name == "div" else f"__h{base}2" + (f"_{ending}" if ending else "")


@pytest.mark.parametrize("type", TYPES, ids=str)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name: str, type: t.Scalar) -> None:
    function, pair = ARITHMETIC[name], t.Vector(type, 2)
    arity = len(FUNCTIONS[f"__h{name}"][-1].parameters)
    one = overload(f"__h{name}", *(type,) * arity)
    two = overload(of_pairs(name), *(pair,) * arity)
    for start in range(5):
        x, y = ((NUMBERS * 2)[start + at :][:arity] for at in (0, 1))
        expected = tuple(fit(function(*values), type) for values in (x, y))
        assert apply(one, *x) == expected[0]
        assert apply(two, *zip(x, y, strict=True)) == expected


@pytest.mark.parametrize("type", TYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS_OF_ONE)
def test_functions(name: str, type: t.Scalar) -> None:
    one, two = overload(f"h{name}", type), overload(f"h2{name}", t.Vector(type, 2))
    for x in (0.25, 1.5, 2.75):
        expected = fit(FUNCTIONS_OF_ONE[name](x), type)
        unit = 2.0 ** (-10 if type == t.F16 else -7) * max(abs(expected), 0.1)
        assert abs(apply(one, x) - expected) <= unit * 0.51
        assert apply(two, (x, 4 * x))[0] == apply(one, x)


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_comparisons(type: t.Scalar) -> None:
    pair = t.Vector(type, 2)
    truths = {"eq": (0, 0, 1), "ne": (1, 1, 0), "lt": (1, 0, 0), "le": (1, 0, 1),
              "gt": (0, 1, 0), "ge": (0, 1, 1)}  # fmt: skip
    cases = ((1.0, 2.0), (2.0, 1.0), (1.0, 1.0))
    for name, truth in truths.items():
        for ending, with_nan in (("", False), ("u", True)):
            one = overload(f"__h{name}{ending}", type, type)
            assert [apply(one, *case) for case in cases] == [bool(each) for each in truth]
            assert apply(one, NAN, 1.0) is with_nan
            assert apply(one, 1.0, NAN) is with_nan
            two = overload(f"__h{name}{ending}2", pair, pair)
            first, second = bool(truth[0]), bool(truth[1])
            assert apply(two, (1.0, 2.0), (2.0, 1.0)) == (float(first), float(second))
            both = overload(f"__hb{name}{ending}2", pair, pair)
            assert apply(both, (1.0, 2.0), (2.0, 1.0)) is (first and second)
            mask = overload(f"__h{name}{ending}2_mask", pair, pair)
            expected = 0xFFFF * first | 0xFFFF0000 * second
            assert apply(mask, (1.0, 2.0), (2.0, 1.0)) == expected


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_special_values(type: t.Scalar) -> None:
    for name, expected in (("__hmin", 1.0), ("__hmax", 1.0)):
        assert apply(overload(name, type, type), NAN, 1.0) == expected
        assert math.isnan(apply(overload(f"{name}_nan", type, type), NAN, 1.0))
    assert apply(overload("__hadd_sat", type, type), NAN, 1.0) == 0
    assert math.isnan(apply(overload("__hfma_relu", type, type, type), NAN, 1.0, 1.0))
    assert apply(overload("__hisnan", type), NAN) is True
    assert [apply(overload("__hisinf", type), v) for v in (INF, -INF, 1.0)] == [1, -1, 0]
    assert apply(overload("__hisnan2", t.Vector(type, 2)), (NAN, 1.0)) == (1.0, 0.0)


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_pairs(type: t.Scalar) -> None:
    name, name2 = NAMES[type]
    a, b = (1.5, -2.0), (0.25, 8.0)
    pair = t.Vector(type, 2)
    cases: list[tuple[str, tuple[Any, ...], Any]] = [
        (f"__low2{name}", (a,), 1.5), (f"__high2{name}", (a,), -2.0),
        (f"__low2{name2}", (a,), (1.5, 1.5)), (f"__high2{name2}", (a,), (-2.0, -2.0)),
        (f"__lows2{name2}", (a, b), (1.5, 0.25)), (f"__highs2{name2}", (a, b), (-2.0, 8.0)),
        (f"__{name}2{name2}", (1.5,), (1.5, 1.5)), (f"__halves2{name2}", (1.5, 8.0), (1.5, 8.0)),
        (f"make_{name2}", (1.5, 8.0), (1.5, 8.0)), (f"__{name2}2float2", (a,), a),
        (f"__float2{name2}_rn", (0.1,), (fit(0.1, type),) * 2),
        (f"__floats2{name2}_rn", (0.1, 2.0), (fit(0.1, type), 2.0)),
        (f"__float22{name2}_rn", ((0.1, 2.0),), (fit(0.1, type), 2.0)),
        (f"__{name}2float", (1.5,), 1.5), (f"__float2{name}", (0.1,), fit(0.1, type)),
        (f"__double2{name}", (0.1,), fit(0.1, type)), (f"__{name}2char_rz", (-300.0,), -128),
        (f"__{name}2uchar_rz", (2.75,), 2),
    ]  # fmt: skip
    for called, values, expected in cases:
        assert apply(overload(called), *values) == expected, called
    for called, expected in (("__low2float", 1.5), ("__high2float", -2.0),
                             ("__lowhigh2highlow", (-2.0, 1.5))):  # fmt: skip
        assert apply(overload(called, pair), a) == expected
    product = complex(*a) * complex(*b) + complex(*a)
    got = apply(overload("__hcmadd", pair, pair, pair), a, b, a)
    assert got == (product.real, product.imag)


def test_vectors() -> None:
    assert apply(overload("make_float4"), 1.0, 2.0, 3.0, 4.0) == (1.0, 2.0, 3.0, 4.0)
    assert FUNCTIONS["make_ulonglong2"][0].result == t.Vector(t.U64, 2)
    assert FUNCTIONS["make_uchar3"][0].parameters == (t.U8, t.U8, t.U8)
