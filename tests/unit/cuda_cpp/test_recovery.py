"""What is wrong with kernels is found without a launch: all kernels, all their statements."""

from __future__ import annotations

import pytest

import treadle as td
from treadle.core.errors import CompileError, CompileErrors

SOURCE = """\
ELSEWHERE __device__ int helper(int a) { return a + nothere; }
__global__ void bad(float *o, int n) {
    int i = threadIdx.x;
    int bogus = undefined_function(i);
    o[i] = bogus + 1;
    int next = bogus + 1;
    o[i] = next;
    float4 v = make_float4(1, 2, 3, 4);
    o[i] = v.q;
    if (i < n) {
        o[i] = missing;
        for (int k = 0; k < n; k++) { o[k] = missing; i.x = 3; break; }
        while (bogus) { o[0] = unreached; }
        if (i > 2) o[0] = bogus; else o[0] = v.r;
    }
    o[0] = helper(1);
    o[1] = helper(2);
    break;
}
__global__ void good(float *o) { o[threadIdx.x] = 3; }
__global__ void one(float *o) { o[0] = "text"; }
template <typename T> __global__ void made(T *o) { o[0] = zork; o[1] = o.x; }
"""
# What nothing in the file declares is said when it is opened (test_early_errors): here another
# function does.
SOURCE = SOURCE.replace(
    "ELSEWHERE",
    "struct No { int nothere, undefined_function, missing, unreached, zork; };",
)
# The lines and what is said. What only follows from the declaration of `bogus` is not.
FOUND = [
    (1, "nothere is not declared"),
    (4, "undefined_function is not declared"),
    (9, "no member q"),
    (11, "missing is not declared"),
    (12, "type int has no member x"),
    (14, "no member r"),
    (18, "break is not in a loop"),
]


def _listed(notes):
    return [(note.span.line, note.reason) for note in notes]


def test_a_report_has_every_error_of_every_kernel():
    report = td.cuda_module(SOURCE).report()
    listed = _listed(report["bad"].refused)
    assert [line for line, _ in listed] == [line for line, _ in FOUND]
    for (_, reason), (_, said) in zip(listed, FOUND, strict=True):
        assert said in reason
    assert not report["good"].refused
    assert [line for line, _ in _listed(report["one"].refused)] == [21]
    assert report["made"].needs_arguments
    shown = str(report)
    assert "\n  refused   line 9: a value of type float4 has no member q\n" in shown
    assert f"{'':12}    9 |     o[i] = v.q;\n{'':12}      |              ^\n" in shown


def test_a_launch_says_the_same_and_the_others_run():
    module = td.cuda_module(SOURCE)
    out = td.zeros(4, device="cpu")
    module.good[1, 4](out)
    assert out.tolist() == [3.0] * 4
    with pytest.raises(CompileErrors) as caught:
        module.bad[1, 4](out, 4)
    assert sorted(error.line for error in caught.value.errors) == [line for line, _ in FOUND]
    assert str(caught.value).startswith("7 errors\n\n<cuda source>:4:17: undefined_function")
    with pytest.raises(CompileError, match=r"^<cuda source>:21:38: a value of type const char"):
        module.one[1, 1](out)
    with pytest.raises(CompileErrors) as caught:
        module.kernel("made", td.f32)[1, 1](out)
    assert [error.message.split()[0] for error in caught.value.errors] == ["zork", "a"]


def test_there_is_an_end():
    statements = "\n".join(f"o[{k}] = o.x;" for k in range(50))
    report = td.cuda_module(f"__global__ void k(float *o) {{\n{statements}\n}}").report()
    assert [line for line, _ in _listed(report["k"].refused)] == list(range(2, 22))
