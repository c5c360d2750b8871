"""Long sums, long chains of elif, and long kernels."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError
from treadle.core.nesting import deep_nesting
from treadle.core.source import Span

HEAD = "def kernel(x: td.Array[td.f32]):\n    i = td.grid(1)\n"


def _sum(terms: int) -> str:
    return HEAD + "    x[i] = " + " + ".join(["x[i]"] * terms) + "\n"


def _chain(branches: int) -> str:
    tests = ["    if i == 0:\n        x[i] = 0.0\n"]
    tests += [f"    elif i == {n}:\n        x[i] = {n}.0\n" for n in range(1, branches)]
    return HEAD + "".join(tests)


@pytest.mark.parametrize("target", ["ir", "llvm", "wgsl"])
@pytest.mark.parametrize("text", [_sum(500), _chain(600)])
def test_deep_code_is_printed(text: str, target: str) -> None:
    before = sys.getrecursionlimit()
    x = td.ones(3, device="cpu")
    assert td.kernel(source=text).source(target, x)
    assert sys.getrecursionlimit() == before


def test_deep_code_runs() -> None:
    x = td.ones(3, device="cpu")
    td.kernel(source=_sum(500)).launch(3, x)
    assert x.tolist() == [500.0] * 3


def test_code_too_deep_is_an_error_at_the_kernel() -> None:
    before = sys.getrecursionlimit()

    def endless() -> None:
        endless()

    with (
        pytest.raises(CompileError, match="kernel is nested too deeply: split") as caught,
        deep_nesting("kernel", Span("file.py", 3, 1, 2), "\n\ndef kernel(): …\n"),
    ):
        endless()
    assert caught.value.line == 3
    assert "def kernel()" in str(caught.value)
    assert sys.getrecursionlimit() == before


def test_deep_code_is_interpreted() -> None:
    x = np.ones(2, np.float32)
    with td.interpret():
        td.kernel(source=_sum(1500))[1, 2](x)
    assert x.tolist() == [1500.0] * 2


def test_text_deeper_than_pythons_parser_takes_is_an_error() -> None:
    with pytest.raises(CompileError, match="source text is nested too deeply"):
        td.kernel(source=_sum(50_000))


def test_columns_of_a_long_source_are_found() -> None:
    text = HEAD + "    x[i] = 1.0\n" * 500 + "    x[i] = 'ä' + wrong\n"
    with pytest.raises(CompileError) as caught:
        td.kernel(source=text).source("ir", td.ones(1, device="cpu"))
    assert caught.value.line == 503
