"""The type of every expression, in the lowering and in the interpreter alike."""

from __future__ import annotations

import numpy as np
import pytest

import treadle.lang as td
from tests.support.kernels import array, number
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.signature import Signature

# a, b, … are variables of the types in their names; the expression's type and value follow.
NAMES = {
    "p": t.BOOL, "b8": t.I8, "c8": t.U8, "i": t.I32, "u": t.U32, "l": t.I64, "m": t.U64,
    "h": t.F16, "g": t.BF16, "f": t.F32, "d": t.F64,
}  # fmt: skip
VALUES = {
    "p": True, "b8": -7, "c8": 200, "i": -7, "u": 7, "l": -7, "m": 9,
    "h": 1.5, "g": 1.5, "f": 2.5, "d": 0.1,
}  # fmt: skip

CASES: list[tuple[str, str, object]] = [
    # literals take the other operand's type
    ("i + 1", "i32", -6),
    ("u + 1", "u32", 8),
    ("l + 1", "i64", -6),
    ("b8 + 1", "i8", -6),
    ("f + 1", "f32", 3.5),
    ("h + 1", "f16", 2.5),
    ("d * 0.5", "f64", 0.05),
    ("h * 0.1", "f16", np.float16(1.5) * np.float16(0.1)),
    ("i * 0.5", "f32", -3.5),
    ("l * 0.5", "f32", -3.5),
    ("u - 8", "u32", 2**32 - 1),
    # mixing gives the type that holds both
    ("b8 + i", "i32", -14),
    ("c8 + i", "i32", 193),
    ("c8 + b8 * 1 if False else c8", "u8", 200),
    ("i + l", "i64", -14),
    ("u + l", "i64", 0),
    ("c8 + u", "u32", 207),
    ("i * f", "f32", -17.5),
    ("l * f", "f32", -17.5),
    ("i + h", "f16", -5.5),
    ("h + f", "f32", 4.0),
    ("g + f", "f32", 4.0),
    ("f + d", "f64", 2.6),
    ("p + i", "i32", -6),
    ("p + p", "i32", 2),
    ("p + 1", "i32", 2),
    ("-p", "i32", -1),
    # division
    ("i / 2", "f32", -3.5),
    ("i / u if False else i / i", "f32", 1.0),
    ("l / 2", "f32", -3.5),
    ("d / 2", "f64", 0.05),
    ("i // 2", "i32", -4),
    ("i % 3", "i32", 2),
    ("i % -3", "i32", -1),
    ("i // 0", "i32", 0),
    ("f // 2", "f32", 1.0),
    ("-f % 2", "f32", 1.5),
    # powers
    ("i ** 2", "i32", 49),
    ("i ** 0", "i32", 1),
    ("f ** 2", "f32", 6.25),
    ("u ** u", "u32", 7**7),
    ("i ** (i + 10)", "i32", -343),
    ("c8 ** 2", "u8", 200 * 200 % 256),
    # bits
    ("i & 3", "i32", 1),
    ("u << 30", "u32", (7 << 30) % 2**32),
    ("i >> 1", "i32", -4),
    ("1 << u", "u32", 128),
    ("1 << i", "i32", 0),
    ("u >> 40", "u32", 0),
    ("~i", "i32", 6),
    ("~c8", "u8", 55),
    ("p & (i < 0)", "bool", True),
    ("p ^ p", "bool", False),
    # comparisons and logic
    ("i < 1.5", "bool", True),
    ("-10 < i < 0", "bool", True),
    ("0 < i < 5 or p", "bool", True),
    ("not i", "bool", False),
    ("not p and p", "bool", False),
    ("c8 == 200", "bool", True),
    # casts
    ("td.u8(i)", "u8", 249),
    ("td.i32(f)", "i32", 2),
    ("td.i32(-f)", "i32", -2),
    ("td.u32(-f)", "u32", 0),
    ("td.u32(-1)", "u32", 2**32 - 1),
    ("td.f16(d)", "f16", np.float16(0.1)),
    ("td.bool(f)", "bool", True),
    ("int(f)", "i32", 2),
    ("float(i)", "f32", -7.0),
    ("td.i64(2) ** 40", "i64", 2**40),
    ("td.bitcast(f, td.u32)", "u32", 0x40200000),
    ("td.bitcast(0x3f800000, td.f32)", "f32", 1.0),
    # choices
    ("f if p else 0", "f32", 2.5),
    ("0 if i > 0 else i", "i32", -7),
    ("1 if p else 2.0", "f32", 1.0),
    ("td.where(i > 0, f, 1)", "f32", 1.0),
    # functions
    ("abs(i)", "i32", 7),
    ("abs(c8)", "u8", 200),
    ("min(i, 3)", "i32", -7),
    ("max(i, f, 3)", "f32", 3.0),
    ("td.minimum(i, 1.5)", "f32", -7.0),
    ("td.sqrt(u)", "f32", np.sqrt(np.float32(7))),
    ("td.sqrt(d)", "f64", np.sqrt(0.1)),
    ("td.floor(-f)", "f32", -3.0),
    ("td.floor(i)", "i32", -7),
    ("td.round(f)", "f32", 2.0),
    ("td.sign(-f)", "f32", -1.0),
    ("td.sign(u)", "u32", 1),
    ("td.copysign(f, i)", "f32", -2.5),
    ("td.clip(i, 0, 5)", "i32", 0),
    ("td.fma(f, f, 1)", "f32", 7.25),
    ("td.fma(i, i, 1)", "i32", 50),
    ("td.isnan(f)", "bool", False),
    ("td.isfinite(i)", "bool", True),
    ("td.signbit(-f)", "bool", True),
    ("td.signbit(i)", "bool", True),
    ("td.popcount(c8)", "i32", 3),
    ("td.clz(u)", "i32", 29),
    ("td.ctz(c8)", "i32", 3),
    ("td.mul_high(u, 2 ** 30)", "u32", 7 * 2**30 >> 32),
    ("td.square(i)", "i32", 49),
    ("td.reciprocal(f)", "f32", np.float32(1) / np.float32(2.5)),
    ("td.add(i, 1)", "i32", -6),
    ("td.logical_xor(p, i)", "bool", False),
    ("td.dot(td.vec2[td.f32](1, 2), td.vec2[td.f32](f))", "f32", 7.5),
    ("(td.vec2[td.f32](1, 2) * 2).y", "f32", 4.0),
    ("(1 / td.vec2[td.i32](2, 4)).y", "f32", 0.25),
    ("td.vec3[td.i32](1, 2, 3).zyx.x", "i32", 3),
    ("td.floor(td.vec2[td.f32](1.5, 2.5))[1]", "f32", 2.0),
]


def expression_type(text: str) -> t.Type:
    """The type that the lowering gives an expression."""
    source = (
        f"def k(out, {', '.join(NAMES)}):\n    result = {text}\n    out[0] = result == result\n"
    )
    signature = Signature((array(t.BOOL), *map(number, NAMES.values())))
    kernel = td.kernel(source=source).lower(signature).kernel
    (declared,) = [
        s for s in kernel.body if isinstance(s, n.Declare) and s.variable.name == "result"
    ]
    return declared.variable.type


@pytest.mark.parametrize(("text", "type", "value"), CASES)
def test_the_type_and_the_value_of_an_expression(text: str, type: str, value: object) -> None:
    assert str(expression_type(text)) == type
    element = t.SCALARS[type]
    from treadle.core.dtypes import BY_SHORT_NAME

    out = np.zeros(1, BY_SHORT_NAME[type].numpy)
    parameters = ", ".join(f"{name}: td.{type}" for name, type in NAMES.items())
    kernel = td.kernel(
        source=f"def k(out, {parameters}):\n    result = {text}\n    out[0] = result\n"
    )
    with td.interpret():
        kernel[1, 1](out, *VALUES.values())
    expected = out.dtype.type(value)
    assert out[0] == expected, element


UNDECIDED = [
    "i + u",
    "b8 + c8",
    "i + m",
    "h + g",
    "u < i",
    "min(i, u)",
    "td.where(p, i, u)",
    "u + -1",
]


@pytest.mark.parametrize("text", UNDECIDED)
def test_a_mix_that_asks_for_a_cast(text: str) -> None:
    with pytest.raises(CompileError, match=r"[Cc]ast one of"):
        expression_type(text)
