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
    (13, "unreached is not declared"),
    (14, "no member r"),
    (18, "break is not in a loop"),
    (21, "const char* does not convert to float"),
]


def test_opening_the_file_says_every_error_of_every_kernel():
    with pytest.raises(CompileErrors) as caught:
        td.cuda_module(SOURCE)
    errors = caught.value.errors
    assert [error.line for error in errors] == [line for line, _ in FOUND]
    for error, (_, said) in zip(errors, FOUND, strict=True):
        assert said in error.message
    shown = str(caught.value)
    assert shown.startswith(f"{len(FOUND)} errors\n\n<cuda source>:1:117: nothere is not declared")
    assert ":9:14: a value of type float4 has no member q: it has x, y, z, w\n" in shown
    assert "    9 |     o[i] = v.q;\n      |              ^" in shown


# What kernels cannot have here is no error of the file, so the others run.
REFUSED = """\
__global__ void bad(float *o, double *p) {
    o[0] = 1;
    double here[2]; o[1] = p - here;
    for (int k = 0; k < 3; k++) { throw 1; }
    o[2] = 4;
}
__global__ void good(float *o) { o[threadIdx.x] = 3; }
"""


def test_a_report_and_a_launch_have_every_refusal():
    module = td.cuda_module(REFUSED)
    report = module.report()
    lines = [note.span.line for note in report["bad"].refused]
    assert lines == [3, 4]
    assert not report["good"].refused
    out = td.zeros(4, device="cpu")
    module.good[1, 4](out)
    assert out.tolist() == [3.0] * 4
    with pytest.raises(CompileErrors) as caught:
        module.bad[1, 4](out, td.zeros(1, dtype=td.f64, device="cpu"))
    assert sorted(error.line for error in caught.value.errors) == lines


def test_errors_that_follow_are_left_out():
    module = td.cuda_module("""
        struct Three { float e[3];
            __device__ float operator[](int i) const { return e[i]; } };
        __device__ Three color() { Three r; r.e[0] = FLT_MAX; return r; }
        __global__ void k(float *out) {
            Three c = color();
            for (int q = 0; q < 3; q++) out[q] = c[q];
        }""")
    with pytest.raises(CompileError) as caught:
        module.k[1, 1](td.zeros(3, device="cpu"))
    assert str(caught.value).count("is not declared") == 1
