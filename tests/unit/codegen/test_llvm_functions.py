"""Which functions of a kernel are inlined, and that those that are called compute the same."""

import numpy as np
import pytest

import treadle as td
from treadle.codegen.llvm.emitter import Module


def _function(name: str, lines: int, *called: str) -> str:
    calls = [f"  call <16 x float> @treadle.function.{each}(<16 x i1> %mask)" for each in called]
    body = "\n".join([*calls, *["  ; a line"] * lines])
    return (
        f"define internal <16 x float> @treadle.function.{name}(<16 x i1> %mask) "
        f"alwaysinline nounwind {{\n{body}\n}}"
    )


def _entry(calls: int) -> str:
    call = "  call <16 x float> @treadle.function.outer(<16 x i1> %m)"
    return "\n".join(["define void @entry() nounwind {", *[call] * calls, "}"])


def test_what_is_called_often_is_not_inlined():
    inner, outer = _function("inner", 300), _function("outer", 10, *["inner"] * 5)
    text = Module(functions=[inner, outer, _entry(20)]).text()
    assert "@treadle.function.inner(<16 x i1> %mask) alwaysinline" in text
    assert "@treadle.function.outer(<16 x i1> %mask) noinline" in text
    few = Module(functions=[inner, outer, _entry(3)]).text()
    assert "noinline" not in few


@td.kernel
def many_powers(x: td.Array[td.f32], out: td.Array[td.f32]):
    i = td.grid(1)
    if i < x.size:
        total = td.f32(0)
        for k in td.static_range(60):
            total += x[i] ** (0.5 + k / 50) + td.sin(x[i] * k)
        out[i] = total


@pytest.mark.parametrize("count", [1, 100])
def test_functions_that_are_called_compute_the_same(count):
    values = np.linspace(0.1, 2.0, count, dtype=np.float32)
    x, out = td.asarray(values, device="cpu"), td.zeros(count, device="cpu")
    many_powers[-(-count // 64), 64](x, out)
    wide = values.astype(np.float64)
    expected = sum(wide ** (0.5 + k / 50) + np.sin(wide * k) for k in range(60))
    np.testing.assert_allclose(out.numpy(), expected, rtol=2e-6)
