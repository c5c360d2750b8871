"""`cvt` and `mov`, by the values that the PTX ISA gives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.ptx_machine.records import PtxError
from tests.unit.ptx_machine.snippets import run

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        ("rni", [-2, -2, 0, 2, 2]), ("rzi", [-2, -1, 0, 1, 2]),
        ("rmi", [-3, -2, 0, 1, 2]), ("rpi", [-2, -1, 1, 2, 3]),
    ],
)  # fmt: skip
def test_roundings_to_whole_numbers(rounding, expected):
    values = [-2.5, -1.5, 0.25, 1.5, 2.5]
    found = run(f"cvt.{rounding}.s32.f32 %x, %a;", values, types="f4", result="u4")
    assert found == [value % 2**32 for value in expected]
    found = run(f"cvt.{rounding}.f32.f32 %x, %a;", values, types="f4", result="f4")
    assert found == expected


@pytest.mark.parametrize(
    ("types", "operand", "nan", "low", "high"),
    [
        ("s32.f32", "f4", 0, -(2**31), 2**31 - 1),
        ("u32.f32", "f4", 0, 0, 2**32 - 1),
        # Where 64 bits are involved NaN gives the sign bit alone.
        ("s64.f32", "f4", -(2**63), -(2**63), 2**63 - 1),
        ("u64.f32", "f4", 2**63, 0, 2**64 - 1),
        ("s32.f64", "f8", -(2**31), -(2**31), 2**31 - 1),
        ("u32.f64", "f8", 2**31, 0, 2**32 - 1),
        ("s64.f64", "f8", -(2**63), -(2**63), 2**63 - 1),
        ("u64.f64", "f8", 2**63, 0, 2**64 - 1),
    ],
)
def test_floats_to_integers_saturate(types, operand, nan, low, high):
    result = "u8" if types[1:3] == "64" else "u4"
    values = [NAN, -1e30, 1e30, -INF, INF]
    found = run(f"cvt.rzi.{types} %x, %a;", values, types=operand, result=result)
    modulus = 1 << (8 * int(result[1]))
    assert found == [value % modulus for value in (nan, low, high, low, high)]


def test_floats_to_narrow_integers_saturate_too():
    found = run("cvt.rzi.s8.f32 %x, %a;", [300.0, -300.0, -1.0], types="f4", result="u4")
    assert found == [127, -128 % 2**32, -1 % 2**32]
    found = run("cvt.rzi.u16.f32 %x, %a;", [1e6, -3.0, 7.9], types="f4", result="u4")
    assert found == [65535, 0, 7]


def test_integers_to_integers():
    assert run("cvt.s32.s8 %x, %a;", 0x180, types="u4", result="u4") == [0xFFFFFF80]
    assert run("cvt.u32.u8 %x, %a;", 0x180, types="u4", result="u4") == [0x80]
    assert run("cvt.s64.s32 %x, %a;", 0xFFFFFFFF, types="u4", result="u8") == [2**64 - 1]
    assert run("cvt.u64.u32 %x, %a;", 0xFFFFFFFF, types="u4", result="u8") == [2**32 - 1]
    assert run("cvt.u32.u64 %x, %a;", 2**40 + 3, types="u8", result="u4") == [3]
    assert run("cvt.s16.s32 %x, %a;", 0x18000, types="u4", result="u4") == [0xFFFF8000]
    found = run("cvt.sat.s8.s32 %x, %a;", [200, 2**32 - 200], types="u4", result="u4")
    assert found == [127, 2**32 - 128]
    assert run("cvt.sat.u8.s32 %x, %a;", [300, 2**32 - 1], types="u4", result="u4") == [255, 0]


def test_integers_to_floats():
    big = 2**24 + 1  # halfway between floats
    for rounding, expected in (("rn", 2**24), ("rz", 2**24), ("rp", 2**24 + 2), ("rm", 2**24)):
        assert run(f"cvt.{rounding}.f32.u32 %x, %a;", big, types="u4", result="f4") == [expected]
    assert run("cvt.rn.f32.s32 %x, %a;", 0xFFFFFFFF, types="u4", result="f4") == [-1.0]
    assert run("cvt.rn.f32.s8 %x, %a;", 0x1FE, types="u4", result="f4") == [-2.0]
    assert run("cvt.rz.f32.u64 %x, %a;", 2**64 - 1, types="u8", result="f4") == [2.0**64 - 2.0**40]
    assert run("cvt.rn.f32.u64 %x, %a;", 2**64 - 1, types="u8", result="f4") == [2.0**64]
    assert run("cvt.rn.f16.s32 %x, %a;", 70000, types="u4", result="u2") == [0x7C00]


def test_floats_to_narrower_floats():
    third = 1 / 3
    for rounding, bits in (("rn", 0x3EAAAAAB), ("rz", 0x3EAAAAAA), ("rp", 0x3EAAAAAB)):
        found = run(f"cvt.{rounding}.f32.f64 %x, %a;", third, types="f8", result="f4")
        assert np.float32(found[0]).view("u4") == bits
    values = [1.0, 65520.0, 65519.0, 1 + 2**-11, 1 + 3 * 2**-11]
    found = run("cvt.rn.f16.f32 %x, %a;", values, types="f4", result="u2")
    assert found == [0x3C00, 0x7C00, 0x7BFF, 0x3C00, 0x3C02]
    found = run("cvt.f32.f16 %x, %a;", [0x3C00, 0x0001], types="u2", result="f4")
    assert found == [1.0, 2.0**-24]
    values = [1.0, 1 + 2**-8, 1 + 3 * 2**-8, 3.4e38]
    found = run("cvt.rn.bf16.f32 %x, %a;", values, types="f4", result="u2")
    assert found == [0x3F80, 0x3F80, 0x3F82, 0x7F80]
    assert run("cvt.rn.bf16.f32 %x, %a;", NAN, types="f4", result="u2") == [0x7FFF]
    found = run("cvt.rn.bf16x2.f32 %x, %a, %b;", 1.0, -2.0, types="f4", result="u4")
    assert found == [0x3F80C000]
    assert run("cvt.f64.f32 %x, %a;", 0.1, types="f4", result="f8") == [float(np.float32(0.1))]
    assert run("cvt.sat.f32.f32 %x, %a;", [2, -1, NAN], types="f4", result="f4") == [1, 0, 0]


def test_moves_of_halves_and_bits():
    both = "mov.b64 {%r1, %r2}, %a; mov.b64 %x, {%r2, %r1};"
    assert run(both, 0x1111111122222222, types="u8", result="u8") == [0x2222222211111111]
    code = "mov.b32 {%h1, %h2}, %a; mov.b32 %x, {0x0, %h1};"
    assert run(code, 0xAAAABBBB, types="u4", result="u4") == [0xBBBB0000]
    assert run("mov.b32 %x, %a;", 1.0, types="f4", result="u4") == [0x3F800000]
    assert run("mov.f32 %x, 0fBF000000;", 1.0, types="f4", result="f4") == [-0.5]


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        ("cvt.s32.f32 %x, %a", "needs .rni"),
        ("cvt.rzi.f32.s32 %f1, %x", "needs .rn"),
        ("cvt.rn.f64.f32 %fd1, %a", "nothing is rounded"),
        ("cvt.f16.f32 %h1, %a", "needs .rn"),
    ],
)
def test_roundings_must_be_right(instruction, words):
    with pytest.raises(PtxError, match=words):
        run(f"mov.b32 %x, 0; {instruction};", 1.0, types="f4", result="u4")
