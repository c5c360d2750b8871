"""Errors as people meet them who are new to kernels: where they point, and what they advise."""

from __future__ import annotations

import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError, DtypeError, LaunchError, TreadleError
from treadle.lang.lower.names import hint_at

LIST = [1.0, 2.0]
DOUBLE = np.float64(2.0)


@td.func
def through_double(x):
    more = x + 1.0
    return td.f64(more) * 2.0


@td.func
def returns_nothing(x):
    pass


@td.struct
class Doubles:
    inside: td.f64


def kernel(body: str, parameters: str = "x: td.Array[td.f32]") -> Any:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return td.kernel(source=f"def k({parameters}):\n    i = td.grid(1)\n{lines}")


# A mistake in a kernel, and words of the advice.
MISTAKES = [
    ("x[td.gird(1)] = 1.0", "td has no gird: check the spelling (did you mean td.grid?)"),
    ("x[0] = td.lan()", "(did you mean td.lane?)"),
    ("x[0] = td.nothing_like_it(1)", "td has no nothing_like_it: check the spelling"),
    ("x[td.threadIdx.x] = 1.0", "(did you mean td.thread_idx?)"),
    ("td.syncthreads()", "(did you mean td.sync_threads?)"),
    ("x[cuda.grid(1)] = 1.0", "(did you mean td, as in td.grid(1)?)"),
    ("x[0] = sqrt(x[0])", "(did you mean td.sqrt?)"),
    ("x[td.int(1.0)] = 1.0", "(did you mean td.i32?)"),
    ("x[0] = td.relu(x[0])", "(did you mean td.maximum(x, 0)?)"),
    ("index = i\nx[idnex] = 1.0", "(did you mean index?)"),
    ("x[0] = td.sum(x)", "write a loop over the elements"),
    ("t = np.zeros(4)", "td.local(n, dtype)"),
    ("x[0] = x[0].astype(td.f32)", "a value of type f32 has no attribute astype: use an"),
    ("x[0] = LIST[0]", "LIST is a list, which a kernel can't use: make it a number or a tuple of"),
    ("v = td.vec2[td.f32](1)\nx[0] = v[2]", "has no component 2: it has v[0] to v[1], which"),
    ("v = td.vec2[td.f32](1, 2, 3)", "td.vec2[td.f32] has 2 components, but 3 are given"),
    ("x[0][1] = 1.0", "an element of an array of several dimensions is a[i, j]"),
    ("x[0] = returns_nothing(x[0])", "returns_nothing returns nothing, and a number is needed"),
    ("s = td.shared(4)", "td.shared(shape, dtype) takes 2 arguments, not 1"),
    ("td.atomic_add(x[0], 1.0)", "td.atomic_add(array, index, value) takes 3 arguments, not 2"),
    ("td.atomic_add(x[0], 0, 1.0)", "give the array and the index, as in td.atomic_add(a, i"),
    ("x[0] = td.where(i > 0, 1.0)", "td.where(condition, a, b) takes 3 arguments, not 2"),
    ("if i < 3 & x[i] > 0: x[0] = 1.0", "join conditions with and, or"),
    ("n = 10000000000", "write td.i64(10000000000) or td.u64(10000000000)"),
    ("n = 3000000000", "write td.i64(3000000000) or td.u32(3000000000)"),
    ("n = 2 ** 70", "write 1.1805916207174113e+21"),
    ("print('x = %f' % x[0])", "print takes literal text and numbers"),
    ("x[0] = td.dot(x[0], x[1])", "td.dot takes two vectors of one type"),
    ("x[0] = x.shape[1]", "this tuple has 1 item, from index 0, and the index is 1"),
    ("i, j = td.grid(1)", "can't be unpacked: give it one name"),
    ("x[td.thread_idx] = 1.0", "td.thread_idx has the parts x, y and z: write td.thread_idx.x"),
    ("s = td.shared[10, td.f32]", "call it: td.shared(shape, dtype)"),
    ("s = td.shared(4, float)", "float has no fixed width in a kernel: write td.f32"),
    ("x[0] = td.vec2[td.f32](1, 2)", "take one component, as in v.x"),
    ("x[0] = Doubles(1)", "take one field, as in .inside"),
    ("x[0] = x[0] > 0 and 1.0 or 2.0", "a choice of two numbers is a if c else b"),
    ("for j in range(x.size / 2): x[j] = 1.0", "write td.i32(…), or // for /"),
    ("x[0] = len(x[0])", "len takes arrays and tuples"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "advice"), MISTAKES)
def test_a_mistake_in_a_kernel(body: str, advice: str) -> None:
    with pytest.raises(CompileError) as caught:
        kernel(body).launch(4, td.zeros(4, device="cpu"))
    assert advice in caught.value.message
    assert caught.value.line == 2 + len(body.splitlines())
    assert str(caught.value).splitlines()[-1].strip(" |").startswith("^")


def test_mistakes_at_a_launch() -> None:
    x, double = td.zeros(4, device="cpu"), np.zeros(4)
    fill = kernel("x[i] = a", "x: td.Array[td.f32], a: td.f32")
    cases: list[tuple[type[TreadleError], Any, str]] = [
        (DtypeError, lambda: fill.launch(4, double, 1.0), r'x\.astype\("float32"\)'),
        (DtypeError, lambda: fill.launch(4, [1.0, 2.0], 1.0), r"make an array of it, with td"),
        (DtypeError, lambda: fill.launch(4, 1.0, 1.0), r"number was given \(float\): pass an"),
        (DtypeError, lambda: fill.launch(4, x, x), r"an array was given: pass one number, as x"),
        (LaunchError, lambda: kernel("x[i] = 1.0").launch(4, x, x), r"1 argument \(x\), not 2"),
        (LaunchError, lambda: kernel("pass", "self, x").launch(4, x), "leave self out"),
        (LaunchError, lambda: fill[4](x, 1.0), r"a launch needs a grid and a block.*: 1 given"),
        (LaunchError, lambda: fill[4 / 2, 4](x, 1.0), "// divides to an integer"),
        (DtypeError, lambda: td.Array(td.f32), r"takes brackets, as in td\.Array\[td\.f32\]"),
    ]  # fmt: skip
    for kind, launch, advice in cases:
        with pytest.raises(kind, match=advice):
            launch()


@pytest.mark.parametrize("annotation", ["np.ndarray", "td.Tensor", "list", "list[float]"])
def test_an_annotation_that_does_not_say_enough(annotation: str) -> None:
    with pytest.raises(CompileError, match=r"what the elements are: write td\.Array\[td\.f32\]"):
        kernel("pass", f"x: {annotation}")


def test_hints_are_names_that_people_may_use() -> None:
    assert hint_at("lag", {"lane": "td.lane"}) == ""
    assert hint_at("__syncthreads", {}) == " (did you mean td.sync_threads?)"
    with pytest.raises(CompileError) as caught:
        kernel("x[0] = _LIBRAR").launch(1, td.zeros(1, device="cpu"))
    assert "did you mean" not in caught.value.message


# --- what a device lacks -------------------------------------------------------------------------

# A body with a double, and the text that the caret is under.
DOUBLES = [
    ("y = td.f64(x[i])\nx[i] = td.f32(y * 2.0)", "td.f64(x[i])"),
    ("x[i] = x[i] * DOUBLE", "x[i] * DOUBLE"),
    ("s = td.shared(4, td.f64)\ns[i] = 1.0\nx[i] = td.f32(s[0])", "td.shared(4, td.f64)"),
    ("v = td.vec2[td.f64](x[i], 2.0)\nx[i] = td.f32(v.x)", "td.vec2[td.f64](x[i], 2.0)"),
    ("s = Doubles(x[i])\nx[i] = td.f32(s.inside)", "Doubles(x[i])"),
    ("z: td.f64 = 0.0\nfor j in range(i):\n    z += x[j]\nx[i] = td.f32(z)", "z"),
]


@pytest.mark.parametrize("target", ["wgsl", "msl"])
@pytest.mark.parametrize(("body", "place"), DOUBLES)
def test_the_line_that_brings_in_a_double(target: str, body: str, place: str) -> None:
    with pytest.raises(td.errors.UnsupportedOnTarget, match="float64") as caught:
        kernel(body).source(target)
    assert caught.value.line == 3
    line, carets = str(caught.value).splitlines()[-2:]
    assert line[carets.index("^") : carets.rindex("^") + 1] == place


@pytest.mark.parametrize("target", ["wgsl", "msl"])
def test_a_double_among_the_parameters(target: str) -> None:
    for parameter in ("a: td.f64", "a: td.Array[td.f64]"):
        text = parameter.removeprefix("a: ")
        value = "a[0]" if "Array" in parameter else "a"
        with pytest.raises(td.errors.UnsupportedOnTarget) as caught:
            kernel(f"x[i] = td.f32({value})", f"x: td.Array[td.f32], {parameter}").source(target)
        line, carets = str(caught.value).splitlines()[-2:]
        assert line[carets.index("^") : carets.rindex("^") + 1] == parameter
        assert text in line


@pytest.mark.parametrize("target", ["wgsl", "msl"])
def test_a_double_in_a_function_of_another_file(target: str) -> None:
    with pytest.raises(td.errors.UnsupportedOnTarget) as caught:
        kernel("x[i] = td.f32(through_double(x[i]))").source(target)
    assert caught.value.file == __file__
    assert "return td.f64(more) * 2.0" in str(caught.value)


def test_text_that_a_compiler_refuses_is_not_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    from treadle.codegen import pipeline

    printed = pipeline.print_code

    def broken(*arguments: Any) -> Any:
        code = printed(*arguments)
        return replace(code, source=code.source.replace("2.5", "nope(2.5)"))

    monkeypatch.setattr(pipeline, "print_code", broken)
    with pytest.raises(CompileError) as caught:
        kernel("x[i] *= 2.5").launch(4, td.zeros(4, device="webgpu"))
    error = caught.value
    assert "refuses what kernel k became" in error.message
    assert "fn " not in str(error)
    assert "fn " in (error.generated or "")
    assert "def k(x: td.Array[td.f32]):" in str(error)


# --- tracebacks ----------------------------------------------------------------------------------


def own_frames(error: BaseException) -> int:
    package = str(Path(td.__file__).parent)
    return sum(
        frame.filename.startswith(package) for frame in traceback.extract_tb(error.__traceback__)
    )


@td.elementwise
def wrong_everywhere(x):
    return x + undefined  # noqa: F821


def test_tracebacks_have_the_callers_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    x = td.zeros(4, device="cpu")
    wrong = kernel("if i < 3:\n    x[i] = (1.0 + (2.0 * (x[i] + undefined)))")
    calls = (
        lambda: wrong.launch(4, x),
        lambda: wrong[1, 4](x),
        lambda: wrong[1, 4](1),
        lambda: wrong.source("wgsl"),
        lambda: wrong_everywhere(x),
        lambda: td.cuda_module("__global__ void k(float *x) { x[0] = y; }").k[1, 1](x),
        lambda: td.cuda_module("__global__ void k(float *x) { if (x) { x[0] = (1; }"),
    )
    for call in calls:
        with pytest.raises(TreadleError) as caught:
            call()
        assert own_frames(caught.value) == 1
        text = "".join(traceback.format_exception(caught.value))
        assert "During handling" not in text
        assert "direct cause" not in text
    with pytest.raises(CompileError) as caught, td.interpret():
        wrong[1, 4](x)
    assert own_frames(caught.value) == 2
    monkeypatch.setenv("TREADLE_FULL_TRACEBACK", "1")
    with pytest.raises(CompileError) as caught:
        wrong[1, 4](x)
    assert own_frames(caught.value) > 10


def test_tracebacks_of_the_interpreter_have_the_kernels_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    outside = kernel("x[i + 4] = 1.0")
    with td.interpret(), pytest.raises(LaunchError, match="index 4 is outside") as caught:
        outside[1, 1](np.zeros(1, np.float32))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert any(frame.line == "x[i + 4] = 1.0" for frame in frames)
