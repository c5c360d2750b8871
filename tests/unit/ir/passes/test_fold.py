"""Folding keeps every bit, and leaves as little as the tables below say."""

from __future__ import annotations

import math

import pytest

from tests.support.ir_programs import outputs, random_kernel
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text
from treadle.ir.passes.fold import fold, specialize
from treadle.ir.printer import to_text
from treadle.ir.verify import verify

HEAD = """\
struct P {
  a: f32
  b: i32
}

function half(v: f32) -> f32 {
  return v * 0.5
}

kernel k {
  buffer x: i32
  buffer y: f32
  parameter i: i32
  parameter u: u32
  parameter f: f32
  parameter b: bool
  parameter c: bool
  parameter small: i8
  parameter long: i64

"""


def folded(body: str) -> str:
    """The body after folding, its lines stripped and joined by `; `."""
    kernel = fold(from_text(HEAD + body + "\n}"))
    verify(kernel)
    text = to_text(kernel)
    lines = text[text.index("parameter long: i64\n") :].splitlines()[1:-1]
    return "; ".join(line.strip() for line in lines if line)


EXPRESSIONS = {
    # integers
    "i + 0": "i", "0 + i": "i", "i - 0": "i", "0 - i": "0 - i", "i * 1": "i", "1 * i": "i",
    "i * 0": "0", "i / 1": "i", "i // 1": "i", "i % 1": "0", "i %% 1": "0", "i & -1": "i",
    "i & 0": "0", "i | 0": "i", "i | -1": "-1", "i ^ 0": "i", "i << 0": "i", "0 / i": "0",
    "0 << i": "0", "2147483647 + 1": "-2147483648", "7 / 0": "0", "-7 // 2": "-4", "-7 / 2": "-3",
    "-7 %% 2": "1", "-7 % 2": "-1", "1 << 32": "0", "-1 >> 40": "-1", "-i": "-i", "-(-i)": "i",
    "~(~i)": "i", "(i + 3) + 4": "i + 7", "(i * 2) * 3": "i * 6", "(i - 3) + 4": "(i - 3) + 4",
    "2 + (i + 1)": "i + 3", "i // 8": "i >> 3", "i %% 8": "i & 7", "i / 8": "i / 8",
    "i % 8": "i % 8", "i // 6": "i // 6", "i //  -8": "i // -8",
    "i32(i64(i))": "i", "i32(u32(i))": "i", "i32(i8(i))": "i32(i8(i))",
    "i32(i64(i) < 5:i64)": "i32(i < 5)", "i32(-1:i64 == i64(u))": "i32(-1:i64 == i64(u))",
    "i32(7:i64 <= i64(small))": "i32(7 <= i32(small))", "i32(u64(u) > 9:u64)": "i32(u > 9:u32)",
    "i32(u64(i) > 9:u64)": "i32(u64(i) > 9:u64)",
    "i32(f32(i))": "i32(f32(i))", "i32(long)": "i32(long)", "i32(i64(small))": "i32(small)",
    "min(3, 4)": "3", "popcount(255)": "8", "mul_high(i, 0)": "mul_high(i, 0)",
    "bitcast<i32>(1.0)": "1065353216", "bitcast<i32>(nan)": "bitcast<i32>(nan)",
    "bitcast<i32>(bitcast<f32>(i))": "i", "i32(3.99)": "3", "i32(nan)": "0", "i32(-inf)":
    "-2147483648", "i32(true)": "1", "select(true, i, 3)": "i", "select(b, 1 + 1, 3)":
    "select(b, 2, 3)", "block_dim.x * 1": "block_dim.x", "P{f, i + 0}->b": "i",
    # loads
    "x[1 + 1]": "x[2]", "x[i; i in 4]": "x[i; i in 4]", "x[2; 2 in 4]": "x[2]", "x[4; 4 in 4]": "0",
    "x[-1; -1 in i]": "0", "x[i; 2 in 3, i in 4]": "x[i; axis 1: i in 4]",
}  # fmt: skip


@pytest.mark.parametrize("before", EXPRESSIONS)
def test_integer_expressions(before: str) -> None:
    assert folded(f"x[0] = {before}") == f"x[0] = {EXPRESSIONS[before]}"


FLOATS = {
    "f + 0.0": "f + 0.0", "f + -0.0": "f", "-0.0 + f": "f", "0.0 + f": "0.0 + f", "f - 0.0": "f",
    "f - -0.0": "f - -0.0", "f * 1.0": "f", "1.0 * f": "f", "f / 1.0": "f", "f * 0.0": "f * 0.0",
    "0.0 / f": "0.0 / f", "f / 2.0": "f * 0.5", "f / -0.25": "f * -4.0", "f / 3.0": "f / 3.0",
    "f / 1e-45": "f / 1e-45", "2.0 / f": "2.0 / f", "1.0 / 0.0": "inf", "-1.0 / 0.0": "-inf",
    "0.0 / 0.0": "nan", "16777216.0 + 1.0": "16777216.0", "5.0 % 3.0": "5.0 % 3.0",
    "5.0 // 3.0": "5.0 // 3.0", "-(-f)": "f", "-(0.0)": "-0.0", "min(nan, 1.0)": "nan",
    "sqrt(2.0)": "1.4142135381698608", "fast_exp(0.0)": "fast_exp(0.0)",
    "f32(f64(f))": "f", "f32(f16(f))": "f32(f16(f))", "f32(16777217)": "16777216.0",
    "(f + 1.0) + 2.0": "(f + 1.0) + 2.0", "@half(1.0 + 1.0)": "@half(2.0)",
    "f32(0.1:f64)": "0.10000000149011612", "y[0]": "y[0]",
}  # fmt: skip


@pytest.mark.parametrize("before", FLOATS)
def test_float_expressions(before: str) -> None:
    assert folded(f"y[0] = {before}".replace("1e-45", "1.401298464324817e-45")) == (
        f"y[0] = {FLOATS[before]}".replace("1e-45", "1.401298464324817e-45")
    )


CONDITIONS = {
    "true && b": "b", "b && true": "b", "false && b": "false", "b && false": "false",
    "true || b": "true", "b || false": "b", "!(!b)": "b", "!(i < 3)": "i >= 3",
    "!(i == 3)": "i != 3", "!(f < 3.0)": "!(f < 3.0)", "!(f == 3.0)": "f != 3.0",
    "nan == nan": "false", "nan != nan": "true", "isnan(nan)": "true", "3 < 4": "true",
    "b ^ true": "b ^ true", "bool(3)": "true", "i == i": "i == i",
}  # fmt: skip


@pytest.mark.parametrize("before", CONDITIONS)
def test_conditions(before: str) -> None:
    assert folded(f"print {before}") == f"print {CONDITIONS[before]}"


STATEMENTS = {
    "if (1 < 2) {\nx[0] = 1\n} else {\nx[0] = 2\n}": "x[0] = 1",
    "if (2 < 1) {\nx[0] = 1\n}": "",
    "if (b) {\n} else {\nx[0] = 2\n}": "if (!b) {; x[0] = 2; }",
    "if (i < 3) {\n} else {\nx[0] = 2\n}": "if (i >= 3) {; x[0] = 2; }",
    "if (b) {\n}": "",
    "while (1 > 2) {\nx[0] = 1\n}": "",
    "while (true) {\nx[0] = 1\n}\nx[0] = 2": "while (true) {; x[0] = 1; }",
    "while (true) {\nif (b) {\nbreak\n}\n}\nx[0] = 2": (
        "while (true) {; if (b) {; break; }; }; x[0] = 2"
    ),
    "for k: i32 in range(3, 3) {\nx[0] = k\n}": "",
    "for k: i32 in range(3, 4, -1) {\nx[0] = k\n}": "",
    "for k: i32 in range(0, i) {\n}": "",
    "for k: i32 in range(0, i) {\nx[k] = 1\ncontinue\n}": (
        "for k: i32 in range(0, i) {; x[k] = 1; }"
    ),
    "if (b) {\nreturn\nx[0] = 1\n}\nx[0] = 2": "if (b) {; return; }; x[0] = 2",
    "if (b) {\nreturn\n} else {\nreturn\n}\nx[0] = 2": "if (b) {; return; } else {; return; }",
    "x[0] = 1\nreturn": "x[0] = 1",
    "x[5; 5 in 3] = 1": "",
    "var r: i32\nr = atomic add x[5; 5 in 3], 1\nx[0] = r": "var r: i32; r = 0; x[0] = r",
    "assert 1 < 2, \"fine\"": "",
    "assert b, \"b\"": "assert b, \"b\"",
    "var n: i32 = 2 * 4\nx[n] = n": "x[8] = 8",
    "var n: i32\nx[n] = 1": "x[0] = 1",
    "var m: i32 = i\nx[m] = m + 0": "x[i] = i",
    "var m: i32 = 3\nm = m + 1\nx[0] = m": "var m: i32 = 3; m = m + 1; x[0] = m",
    "var m: i32 = 3\nvar w: i32 = m\nm = 5\nx[0] = w": (
        "var m: i32 = 3; var w: i32 = m; m = 5; x[0] = w"
    ),
    "for k: i32 in range(0, 3) {\nvar w: i32 = k\nx[w] = w\n}": (
        "for k: i32 in range(0, 3) {; x[k] = k; }"
    ),
    "for k: i32 in range(0, 3) {\nvar w: i32\nw = w + k\nx[k] = w\n}": (
        "for k: i32 in range(0, 3) {; var w: i32; w = w + k; x[k] = w; }"
    ),
    "print \"a\", 1 + 1": "print \"a\", 2",
}  # fmt: skip


@pytest.mark.parametrize("before", STATEMENTS)
def test_statements(before: str) -> None:
    assert folded(before) == STATEMENTS[before]


def test_a_sum_of_zeros_keeps_its_sign() -> None:
    values = {}
    for a in (0.0, -0.0):
        for b in (0.0, -0.0):
            left, right = n.Constant(a, t.F32), n.Constant(b, t.F32)
            total = n.Binary("add", left, right, t.F32)
            kernel = n.Kernel("k", (n.Buffer("y", t.F32),), (), (
                n.Assign(n.Element("y", n.Constant(0, t.I32), t.F32), total),))  # fmt: skip
            (assign,) = fold(kernel).body
            values[math.copysign(1, a), math.copysign(1, b)] = math.copysign(1, assign.value.value)
    assert values == {(1, 1): 1, (1, -1): 1, (-1, 1): 1, (-1, -1): -1}


def test_nothing_to_do_gives_the_same_body() -> None:
    kernel = from_text(HEAD + "if (b) {\nx[i; i in 4] = i + 1\n}\n}")
    assert fold(kernel).body is kernel.body


def test_specializing_fixes_the_block() -> None:
    text = "kernel k {\n buffer x: i32\n x[thread_idx.x] = block_dim.x + thread_idx.y\n}"
    kernel = specialize(from_text(text), Dim3(64))
    assert kernel.block == Dim3(64)
    assert "x[thread_idx.x] = 64 + 0\n" in to_text(kernel)
    assert "x[thread_idx.x] = 64\n" in to_text(fold(kernel))


@pytest.mark.parametrize("seed", range(60))
def test_random_kernels_give_the_same(seed: int) -> None:
    kernel = random_kernel(seed)
    after = fold(kernel)
    verify(after)
    expected = outputs(kernel)
    assert outputs(after) == expected
    assert outputs(fold(specialize(kernel, Dim3(2)))) == expected
