"""Where a kernel's source comes from, and where its errors point."""

from __future__ import annotations

import linecache
import subprocess
import sys

import numpy as np
import pytest

import treadle.lang as td
from tests.support.kernels import array, lower
from treadle.core.errors import CompileError, LaunchError, TreadleError
from treadle.core.source import Span, excerpt
from treadle.ir.nodes import Assign

TEXT = """
def double(x: td.Array[td.f32]):
    i = td.grid(1)
    x[i] = 2.0 * x[i]
"""


def test_source_as_text() -> None:
    kernel = td.kernel(source=TEXT)
    assert kernel.name == "double"
    x = np.arange(3, dtype=np.float32)
    with td.interpret():
        kernel[1, 3](x)
    assert x.tolist() == [0, 2, 4]


def test_quoted_annotations_in_text() -> None:
    kernel = td.kernel(source="def k(x: 'td.Array[td.f32]', n: td.i32): x[0] = 1.0\n")
    assert [str(each) for each in kernel.parameters] == [
        str(each)
        for each in td.kernel(source="def k(x: td.Array[td.f32], n: td.i32): pass\n").parameters
    ]


@pytest.mark.parametrize("annotation", ["wrong.f32", "'wrong.f32'"])
def test_an_unknown_name_in_an_annotation(annotation: str) -> None:
    with pytest.raises(CompileError, match="name 'wrong' is not defined") as caught:
        td.kernel(source=f"def k(\n    x: {annotation},\n): pass\n")
    assert (caught.value.line, caught.value.column) == (2, 8)
    assert str(caught.value).endswith("^" * len(annotation))


def test_the_constants_of_td() -> None:
    text = "def k(x: td.Array[td.f32]):\n    x[0] = td.nan\n    x[1] = -td.inf\n    x[2] = td.pi\n"
    kernel = td.kernel(source=text + "    x[3] = td.e\n")
    x = np.zeros(4, np.float32)
    with td.interpret():
        kernel[1, 1](x)
    expected = np.array([np.nan, -np.inf, np.pi, np.e], np.float32)
    assert np.array_equal(x, expected, equal_nan=True)


def test_source_as_text_in_a_decorator() -> None:
    @td.kernel(source=TEXT, block=64)
    def double(x): ...

    assert double.name == "double"
    assert double.options.block == (64, 1, 1)


def test_source_with_several_functions_takes_the_named_or_the_only_kernel() -> None:
    text = TEXT + "\ndef last(x):\n    x[0] = 1.0\n"
    with pytest.raises(CompileError, match="defines double, last: say which is the kernel") as one:
        td.kernel(source=text)
    assert one.value.line == 6
    helper = "\n@td.func\ndef helper(x):\n    return x\n"
    assert td.kernel(source=TEXT + helper).name == "double"
    assert td.kernel(source=helper + TEXT).name == "double"
    assert td.kernel(source=text, name="double").name == "double"
    with pytest.raises(CompileError, match="defines double, last, not third"):
        td.kernel(source=text, name="third")
    with pytest.raises(CompileError, match="defines no function"):
        td.kernel(source="x = 1")


def test_no_source_names_the_way_out() -> None:
    scope = {"td": td}
    with pytest.raises(CompileError, match=r"td\.kernel\(source=text\)"):
        exec("@td.kernel\ndef k(x):\n    x[0] = 1.0\n", scope)


def test_a_notebook_cell() -> None:
    # IPython enters each cell into linecache under a name of its own.
    name = "<ipython-input-7-0123456789ab>"
    cell = "n = 3\n@td.kernel\ndef k(x):\n    x[0] = n\n    x[1] = y\n"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    scope = {"td": td}
    exec(compile(cell, name, "exec"), scope)
    with pytest.raises(CompileError, match="y is not defined") as caught:
        lower(scope["k"], array())
    assert (caught.value.file, caught.value.line, caught.value.column) == (name, 5, 12)


def test_python_with_a_command() -> None:
    program = (
        "import treadle.lang as td, numpy as np\n"
        "@td.kernel\n"
        "def k(x):\n"
        "    x[0] = 7.0\n"
        "x = np.zeros(1, np.float32)\n"
        "with td.interpret():\n"
        "    k[1, 1](x)\n"
        "assert x[0] == 7\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_positions_in_an_indented_definition_with_wide_letters() -> None:
    if True:

        @td.kernel
        def k(x):
            σ = 1.0
            x[0] = σ + λ  # noqa: F821

    with pytest.raises(CompileError) as caught:
        lower(k, array())
    line = linecache.getline(__file__, caught.value.line)
    assert line[caught.value.column - 1] == "λ"
    assert str(caught.value).splitlines()[-1].index("^") == (
        str(caught.value).splitlines()[-2].index("λ")
    )


def test_ir_knows_the_users_lines() -> None:
    kernel = lower(td.kernel(source=TEXT), array())
    assign = next(s for s in kernel.body if isinstance(s, Assign))
    assert (assign.span.line, assign.span.column) == (4, 5)


def test_annotations_may_be_local_names() -> None:
    @td.struct
    class Here:
        x: td.f32

    @td.kernel
    def k(a: td.Array[Here], n: td.i32):
        a[0].x = td.f32(n)

    assert str(k.parameters[0]) == "a: Array[Here]"


def test_an_annotation_that_means_nothing() -> None:
    with pytest.raises(CompileError, match="annotation 'nothing' of x"):

        @td.kernel
        def k(x: nothing):  # noqa: F821
            pass


def test_what_is_no_function() -> None:
    with pytest.raises(CompileError, match="not type"):
        td.kernel(int)
    with pytest.raises(CompileError, match="not a lambda"):
        td.kernel(lambda x: 1)


def test_calling_a_kernel_or_its_names_outside() -> None:
    kernel = td.kernel(source=TEXT)
    with pytest.raises(LaunchError, match=r"double\[blocks, threads\]"):
        kernel(1)
    with pytest.raises(LaunchError, match="grid, block"):
        kernel[1]
    with pytest.raises(LaunchError, match="integers"):
        kernel[1.5, 2]
    with pytest.raises(LaunchError, match="integers"):
        kernel["one", 2]
    assert kernel[[2, 3], 2].grid == (2, 3, 1)
    assert kernel[2, 2] is kernel[2, 2]
    with pytest.raises(TreadleError, match=r"td\.sync_threads works inside a kernel"):
        td.sync_threads()
    with pytest.raises(TreadleError, match="only inside a running kernel"):
        _ = td.thread_idx.x


@pytest.mark.parametrize("place", [0, 5, 79, 80, 81, 400, 899, 990, 999])
def test_a_long_line_is_cut_around_the_place(place: int) -> None:
    line = "".join(chr(ord("a") + at % 26) for at in range(1000))
    shown, carets = excerpt(Span("f", 1, place + 1, place + 4), line).split("\n")
    at = carets.index("^")
    assert len(shown) < 160 + 12
    assert shown[at] == line[place]
    assert shown[at:].startswith(line[place : place + carets.count("^")])
    assert carets.count("^") == min(3, 1000 - place)
    assert ("…" in shown[:at]) == (place > 80)


def test_a_line_of_160_characters_is_shown_whole() -> None:
    assert "…" not in excerpt(Span("f", 1, 3, 4), "x" * 160)
