"""Values that the PTX ISA gives, one instruction at a time."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.support.ptx_machine.arithmetic import fma
from tests.support.ptx_machine.records import PtxError
from tests.unit.ptx_machine.snippets import run

NAN, INF = math.nan, math.inf
BIG = 0x80000000


@pytest.mark.parametrize(
    ("instruction", "operands", "expected"),
    [
        ("add.u32 %x, %a, %b", (0xFFFFFFFF, 2), 1),
        ("sub.s32 %x, %a, %b", (0, 1), 0xFFFFFFFF),
        ("mul.lo.s32 %x, %a, %b", (0x10001, 0x10001), 0x00020001),
        ("mul.hi.s32 %x, %a, %b", (0xFFFFFFFF, 2), 0xFFFFFFFF),
        ("mul.hi.u32 %x, %a, %b", (0xFFFFFFFF, 2), 1),
        ("mad.lo.s32 %x, %a, %b, 7", (3, 0xFFFFFFFF), 4),
        ("div.s32 %x, %a, %b", (-7 % 2**32, 2), -3 % 2**32),
        ("div.u32 %x, %a, %b", (-7 % 2**32, 2), 0x7FFFFFFC),
        ("rem.s32 %x, %a, %b", (-7 % 2**32, 2), -1 % 2**32),
        ("rem.s32 %x, %a, %b", (7, -2 % 2**32), 1),
        ("div.s32 %x, %a, %b", (BIG, 0xFFFFFFFF), BIG),
        ("neg.s32 %x, %a", (BIG,), BIG),
        ("abs.s32 %x, %a", (-5 % 2**32,), 5),
        ("min.s32 %x, %a, %b", (0xFFFFFFFF, 1), 0xFFFFFFFF),
        ("min.u32 %x, %a, %b", (0xFFFFFFFF, 1), 1),
        ("and.b32 %x, %a, %b", (12, 10), 8),
        ("xor.b32 %x, %a, -1", (12,), 0xFFFFFFF3),
        ("not.b32 %x, %a", (0,), 0xFFFFFFFF),
        ("cnot.b32 %x, %a", (0,), 1),
        # Amounts of the width and more.
        ("shl.b32 %x, %a, %b", (1, 31), BIG),
        ("shl.b32 %x, %a, %b", (1, 32), 0),
        ("shl.b32 %x, %a, %b", (1, 0xFFFFFFFF), 0),
        ("shr.u32 %x, %a, %b", (BIG, 32), 0),
        ("shr.s32 %x, %a, %b", (BIG, 31), 0xFFFFFFFF),
        ("shr.s32 %x, %a, %b", (BIG, 200), 0xFFFFFFFF),
        ("shf.l.wrap.b32 %x, %a, %b, 8", (0x11223344, 0x55667788), 0x66778811),
        ("shf.r.clamp.b32 %x, %a, %b, 40", (0x11223344, 0x55667788), 0x55667788),
        ("popc.b32 %x, %a", (0xF0F0,), 8),
        ("clz.b32 %x, %a", (0,), 32),
        ("clz.b32 %x, %a", (1,), 31),
        ("brev.b32 %x, %a", (1,), BIG),
        ("brev.b32 %x, %a", (0x12345678,), 0x1E6A2C48),
        ("bfind.u32 %x, %a", (0,), 0xFFFFFFFF),
        ("bfind.u32 %x, %a", (0x8000,), 15),
        ("bfind.s32 %x, %a", (0xFFFFFFFE,), 0),
        ("bfind.shiftamt.u32 %x, %a", (1,), 31),
        ("bfe.u32 %x, %a, 4, 8", (0x12345678,), 0x67),
        ("bfe.s32 %x, %a, 4, 4", (0x000000F0,), 0xFFFFFFFF),
        ("bfe.s32 %x, %a, 28, 8", (BIG,), 0xFFFFFFF8),
        ("bfi.b32 %x, %a, %b, 8, 8", (0xAB, 0x11223344), 0x1122AB44),
        ("dp4a.s32.s32 %x, %a, %b, 7", (0xFF020304, 0x0102FF01), 7 - 1 + 4 - 3 + 4),
        ("dp4a.u32.u32 %x, %a, %b, 7", (0xFF020304, 0x0102FF01), 7 + 255 + 4 + 765 + 4),
        ("dp4a.s32.u32 %x, %a, %b, 7", (0xFF020304, 0x0102FF01), 7 - 1 + 4 + 765 + 4),
        ("dp2a.lo.s32.s32 %x, %a, %b, 7", (0xFFFE0003, 0x0102FF04), 7 + 2 + 12),
        ("dp2a.hi.s32.s32 %x, %a, %b, 7", (0xFFFE0003, 0x0102FF04), 7 - 2 + 6),
        ("dp2a.lo.u32.s32 %x, %a, %b, 7", (0xFFFE0003, 0x0102FF04), 2**32 + 7 - 0xFFFE + 12),
        ("prmt.b32 %x, %a, %b, 0x7531", (0x33221100, 0x77665544), 0x77553311),
        ("prmt.b32 %x, %a, %b, 0x888F", (0x00000080, 0x77665544), 0xFFFFFF00),
        ("lop3.b32 %x, %a, %b, 3, 0x96", (5, 6), 0),
    ],
)
def test_words(instruction, operands, expected):
    assert run(f"{instruction};", *operands, types="u4", result="u4") == [expected]


@pytest.mark.parametrize(
    ("instruction", "operands", "expected"),
    [
        ("mul.hi.u64 %x, %a, %b", (2**64 - 1, 2**64 - 1), 2**64 - 2),
        ("mul.hi.s64 %x, %a, %b", (2**64 - 1, 2**64 - 1), 0),
        ("mul.hi.s64 %x, %a, %b", (2**63, 2), 2**64 - 1),
        ("mul.lo.u64 %x, %a, %b", (2**40 + 1, 2**40 + 1), 2**41 + 1),
        ("div.s64 %x, %a, %b", (-9 % 2**64, 2), -4 % 2**64),
        ("rem.u64 %x, %a, %b", (2**64 - 1, 10), 5),
        ("brev.b64 %x, %a", (1,), 2**63),
        ("shl.b64 %x, %a, 64", (1,), 0),
        ("shr.s64 %x, %a, 99", (2**63,), 2**64 - 1),
    ],
)
def test_long_words(instruction, operands, expected):
    assert run(f"{instruction};", *operands, types="u8", result="u8") == [expected]


def test_counts_of_long_words_are_words():
    assert run("clz.b64 %x, %a;", [0, 1, 2**63], types="u8", result="u4") == [64, 63, 0]
    assert run("popc.b64 %x, %a;", [2**64 - 1], types="u8", result="u4") == [64]


def test_wide_products():
    wide = run("mul.wide.s32 %x, %a, %b;", 0xFFFFFFFF, 2, types="u4", result="u8")
    assert wide == [2**64 - 2]
    wide = run("mul.wide.u32 %x, %a, %b;", 0xFFFFFFFF, 2, types="u4", result="u8")
    assert wide == [2**33 - 2]
    types = ("u4", "u4", "u8")
    assert run("mad.wide.s32 %x, %a, %b, %c;", 5, 8, 100, types=types, result="u8") == [140]


def test_a_divisor_of_zero_gives_what_nobody_should_use():
    for instruction in ("div.s32", "div.u32", "rem.s32"):
        (found,) = run(f"{instruction} %x, %a, %b;", 5, 0, types="u4", result="u4")
        assert found not in (0, 5, 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("instruction", "a", "b", "expected"),
    [
        ("min.f32", -0.0, 0.0, -0.0), ("min.f32", 0.0, -0.0, -0.0), ("max.f32", -0.0, 0.0, 0.0),
        ("max.f32", 0.0, -0.0, 0.0), ("min.f32", NAN, 2.0, 2.0), ("max.f32", 2.0, NAN, 2.0),
        ("min.f32", NAN, NAN, NAN), ("min.NaN.f32", NAN, 2.0, NAN), ("max.NaN.f32", 2.0, NAN, NAN),
        ("max.f32", 3.0, -INF, 3.0), ("add.f32", INF, -INF, NAN), ("mul.rn.f32", 3.0, -0.0, -0.0),
        ("div.rn.f32", 1.0, -0.0, -INF), ("div.rn.f32", 1.0, 3.0, float(np.float32(1) / 3)),
        ("add.sat.f32", 0.75, 0.5, 1.0), ("mul.sat.f32", -1.0, 2.0, 0.0),
        ("add.sat.f32", NAN, 1.0, 0.0), ("copysign.f32", -1.0, 3.0, -3.0),
        ("add.ftz.f32", 1e-40, 0.0, 0.0), ("add.f32", 1e-40, 0.0, float(np.float32(1e-40))),
    ],
)  # fmt: skip
def test_floats(instruction, a, b, expected):
    (found,) = run(f"{instruction} %x, %a, %b;", a, b, types="f4", result="f4")
    assert np.array_equal(found, expected, equal_nan=True)
    assert math.isnan(expected) or np.signbit(found) == np.signbit(expected)


def test_signs_of_nan_are_bits():
    assert run("neg.f32 %x, %a;", np.uint32(0x7FC00000).view("f4"), types="f4", result="f4") != []
    bits = run("abs.f32 %f0, %a; mov.b32 %x, %f0;", -NAN, types="f4", result="u4")
    assert bits == [0x7FC00000]


@pytest.mark.parametrize(
    ("comparison", "less", "equal", "greater", "nan"),
    [
        ("eq", 0, 1, 0, 0), ("ne", 1, 0, 1, 0), ("lt", 1, 0, 0, 0), ("le", 1, 1, 0, 0),
        ("gt", 0, 0, 1, 0), ("ge", 0, 1, 1, 0), ("equ", 0, 1, 0, 1), ("neu", 1, 0, 1, 1),
        ("ltu", 1, 0, 0, 1), ("leu", 1, 1, 0, 1), ("gtu", 0, 0, 1, 1), ("geu", 0, 1, 1, 1),
        ("num", 1, 1, 1, 0), ("nan", 0, 0, 0, 1),
    ],
)  # fmt: skip
def test_comparisons_of_floats(comparison, less, equal, greater, nan):
    code = f"setp.{comparison}.f32 %p1, %a, %b; selp.b32 %x, 1, 0, %p1;"
    found = run(code, [1, 2, 3, NAN], [2, 2, 2, 2], types="f4", result="u4")
    assert found == [less, equal, greater, nan]


def test_comparisons_of_integers():
    code = "setp.{}.{} %p1|%p2, %a, %b; selp.b32 %x, 1, 0, %p1; @%p2 add.u32 %x, %x, 2;"
    a, b = [0xFFFFFFFF, 1, 1], [1, 1, 2]
    assert run(code.format("lt", "s32"), a, b, types="u4", result="u4") == [1, 2, 1]
    assert run(code.format("lt", "u32"), a, b, types="u4", result="u4") == [2, 2, 1]
    assert run(code.format("ls", "u32"), a, b, types="u4", result="u4") == [2, 1, 1]
    both = "setp.eq.s32 %p1, %b, 1; setp.gt.and.u32 %p2, %a, 9, %p1; selp.b32 %x, 1, 0, %p2;"
    assert run(both, a, b, types="u4", result="u4") == [1, 0, 0]


def test_fma_rounds_once():
    # In each, rounding the product first, or the sum in float64 first, gives another result.
    a, b, c = np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(-1 - 2**-11)
    assert run("fma.rn.f32 %x, %a, %b, %c;", a, b, c, types="f4", result="f4") == [2.0**-24]
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        a, b, c = (
            (rng.standard_normal(500) * 2.0 ** rng.integers(-40, 40, 500)).astype(dtype)
            for _ in range(3)
        )
        c[::3] = (-a[::3] * b[::3]).astype(dtype)  # what is left is the rounding error alone
        exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
                 for x, y, z in zip(a, b, c, strict=True)]  # fmt: skip
        assert _nearest(fma(a, b, c), exact)


def _nearest(found: np.ndarray, exact: list[Fraction]) -> bool:
    def error(value: float, wanted: Fraction) -> Fraction:
        return abs(Fraction(float(value)) - wanted)

    low, high = (np.nextafter(found, found.dtype.type(end)) for end in (-INF, INF))
    return all(
        error(f, e) <= min(error(lo, e), error(hi, e))
        for f, lo, hi, e in zip(found, low, high, exact, strict=True)
    )


def test_fma_of_extremes():
    cases = [
        (1e308, 10.0, -INF, -INF), (INF, 0.0, 1.0, NAN), (1e308, 10.0, -1e308, INF),
        (1e200, 1e200, -INF, -INF), (5e-324, 0.5, 0.0, 0.0), (5e-324, 0.75, 0.0, 5e-324),
        (-0.0, 5.0, 0.0, 0.0), (-0.0, 5.0, -0.0, -0.0), (1e-300, 1e-300, 1.0, 1.0),
        (2.0**1000, 2.0**23, -(2.0**1023), 0.0),
    ]  # fmt: skip
    for a, b, c, expected in cases:
        (found,) = run("fma.rn.f64 %x, %a, %b, %c;", a, b, c, types="f8", result="f8")
        assert np.array_equal(found, expected, equal_nan=True), (a, b, c)
        assert math.isnan(expected) or np.signbit(found) == np.signbit(expected)


def test_halves():
    one, half, tiny = 0x3C00, 0x3800, 0x0001
    assert run("add.f16 %x, %a, %b;", one, half, types="u2", result="u2") == [0x3E00]
    assert run("mul.f16 %x, %a, %b;", tiny, half, types="u2", result="u2") == [0]  # to even
    assert run("add.f16 %x, %a, 0x3C00;", one, types="u2", result="u2") == [0x4000]
    assert run("fma.rn.f16 %x, %a, %b, %b;", one, one, types="u2", result="u2") == [0x4000]
    code = "setp.lt.f16 %p1, %a, %b; selp.b32 %x, 1, 0, %p1;"
    assert run(code, [one, 0x7E00, 0xBC00], half, types="u2", result="u4") == [0, 0, 1]


@pytest.mark.parametrize(
    ("instruction", "a", "expected"),
    [
        ("sqrt.rn.f32", 2.0, float(np.sqrt(np.float32(2)))), ("sqrt.rn.f32", -1.0, NAN),
        ("rcp.approx.f32", -0.0, -INF), ("rsqrt.approx.f32", 4.0, 0.5),
        ("ex2.approx.f32", 10.0, 1024.0), ("ex2.approx.f32", -INF, 0.0),
        ("lg2.approx.f32", 8.0, 3.0), ("lg2.approx.f32", 0.0, -INF), ("lg2.approx.f32", -1.0, NAN),
        ("sin.approx.f32", INF, NAN), ("cos.approx.f32", 0.0, 1.0),
        ("tanh.approx.f32", INF, 1.0),
    ],
)  # fmt: skip
def test_functions(instruction, a, expected):
    (found,) = run(f"{instruction} %x, %a;", a, types="f4", result="f4")
    assert np.array_equal(found, expected, equal_nan=True)


def test_properties_of_floats():
    values = [1.0, 1e-40, INF, NAN, 0.0]
    expected = {
        "finite": [1, 1, 0, 0, 1], "infinite": [0, 0, 1, 0, 0], "number": [1, 1, 1, 0, 1],
        "notanumber": [0, 0, 0, 1, 0], "normal": [1, 0, 0, 0, 0], "subnormal": [0, 1, 0, 0, 0],
    }  # fmt: skip
    for what, flags in expected.items():
        code = f"testp.{what}.f32 %p1, %a; selp.b32 %x, 1, 0, %p1;"
        assert run(code, values, types="f4", result="u4") == flags


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        ("frob.s32 %x, %a, %b", "unknown instruction"),
        ("add.cc.u32 %x, %a, %b", "unknown modifier .cc"),
        ("mul.s32 %x, %a, %b", "unknown instruction"),
        ("and.s32 %x, %a, %b", "does not exist for .s32"),
        ("neg.u32 %x, %a", "does not exist for .u32"),
        ("add.b32 %x, %a, %b", "does not exist for .b32"),
        ("add.u64 %x, %a, %b", "too narrow"),
        ("add.u16 %x, %a, %b", "differ in size"),
        ("shl.u32 %x, %a, %b", "does not exist"),
        ("add.u32 %x, %a", "number of operands"),
        ("add.u32 %x, %a, 0x100000000", "does not fit"),
        ("setp.lt.b32 %p1, %a, %b", "no order"),
        ("add.u32 %x, %a, nothing", "declared nowhere"),
        ("and.pred %p1, %a, %b", "a predicate"),
    ],
)
def test_what_is_not_ptx_is_refused(instruction, words):
    with pytest.raises(PtxError, match=words):
        run(f"{instruction};", 1, 2, types="u4", result="u4")


def test_targets_lack_what_came_later():
    with pytest.raises(PtxError, match="needs sm_80"):
        run("min.NaN.f32 %x, %a, %b;", 1, 2, types="f4", result="f4", target="sm_70")
    with pytest.raises(PtxError, match="needs sm_75"):
        run("tanh.approx.f32 %x, %a;", 1, types="f4", result="f4", target="sm_70")
