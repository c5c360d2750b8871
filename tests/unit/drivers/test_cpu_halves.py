"""Float16 on the x86-64 processors that cannot convert it, by the code for them run on this one."""

from __future__ import annotations

import ctypes
import platform

import numpy as np
import pytest

from tests.support.objects import Processor, object_file, undefined_symbols
from treadle.drivers.cpu.compiler import compiler
from treadle.drivers.cpu.halves import with_conversions

OLDEST = Processor("x86_64-unknown-linux-gnu", "x86-64")
LOOP = """
define void @convert(ptr %from, ptr %to, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr {source}, ptr %from, i64 %i
  %value = load {source}, ptr %at
  %converted = {op} {source} %value to {target}
  %place = getelementptr {target}, ptr %to, i64 %i
  store {target} %converted, ptr %place
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
NARROWING = LOOP.format(source="float", target="half", op="fptrunc")
WIDENING = LOOP.format(source="half", target="float", op="fpext")


def test_modules_with_float16_bring_the_conversions():
    whole = with_conversions(NARROWING, OLDEST.triple, "-f16c,+sse2")
    assert undefined_symbols(object_file(NARROWING, OLDEST)) == {"__truncsfhf2"}
    assert undefined_symbols(object_file(whole, OLDEST)) == set()
    assert with_conversions(NARROWING, OLDEST.triple, "+avx,+f16c") == NARROWING
    assert with_conversions(NARROWING, "aarch64-unknown-linux-gnu", "") == NARROWING


def converted(source: str, values: np.ndarray, dtype: type) -> np.ndarray:
    text = with_conversions(source, OLDEST.triple, "")
    loaded = compiler().load_object(object_file(text, OLDEST), ("convert",))
    out = np.zeros(values.size, dtype)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    run(loaded.addresses["convert"])(values.ctypes.data, out.ctypes.data, values.size)
    return out


@pytest.mark.hardware("an x86-64 processor")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="code for x86-64")
def test_conversions_round_as_numpy_does():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    np.testing.assert_array_equal(converted(WIDENING, halves, np.float32), halves.astype("f4"))

    rng = np.random.default_rng(3)
    exact = halves.astype(np.float32)
    finite = exact[np.isfinite(exact)]
    between = (finite[:-1] + finite[1:]) / 2
    near = np.concatenate([np.nextafter(between, -np.inf), between, np.nextafter(between, np.inf)])
    any_bits = rng.integers(0, 1 << 32, 100_000, np.uint32).view(np.float32)
    floats = np.concatenate([exact, near, any_bits, np.float32([65519.996, 65520, -65520, 1e-46])])
    with np.errstate(over="ignore", under="ignore"):
        expected = floats.astype(np.float16)
    found = converted(NARROWING, floats, np.float16)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)  # the sign of zeros, too
    assert (found.view(np.uint16)[numbers] == expected.view(np.uint16)[numbers]).all()
