"""Structs with pointers and large values as arguments: what is refused, and what people see."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError, DtypeError, LaunchError

SOURCE = """
struct Inner { float *out; int k; };
struct Params { const float *x; int n; Inner inner; float *rows[2]; float w[3]; };
struct Large { int a[100]; };
__global__ void apart(Params p, float s) { p.inner.out[0] = p.x[p.n] * s; p.rows[p.n][0] = 1; }
__global__ void large(Large p, int *out) { out[0] = p.a[3]; }
"""


@pytest.fixture(scope="module")
def module():
    return td.cuda_module(SOURCE)


def given(**changed):
    with td.use_device("cpu"):
        x = td.zeros(4)
        return {
            "x": x, "n": 1, "inner": {"out": x, "k": 1}, "rows": [x, x], "w": (1, 2, 3), **changed,
        }  # fmt: skip


class Half:
    x = None
    n = 3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (given(n=2.5), r"argument 1 \(p\), field n of kernel apart is int, but 2.5 was given"),
        (given(x=3), r"argument 1 \(p\), field x of kernel apart is const float\*, but the number"),
        (given(x=np.zeros(2, np.int32)), r"argument 1 \(p\), field x of kernel apart is const flo"),
        (given(x=np.zeros((4, 4), np.float32)[:, 0]), r"field x of kernel apart .* not contiguous"),
        (given(inner=(None,)), r"field inner of kernel apart is Inner, but 1 parts were given, "),
        (given(inner={"out": None, "j": 3}), r"field inner .* k is missing and j is none of"),
        (given(inner=4), r"field inner of kernel apart is Inner, but the number 4 was given: "),
        (given(rows=[None]), r"field rows of kernel apart is float\*\[2\], but 1 items were given"),
        (given(rows=3), r"field rows .* the number 3 was given: pass a list or tuple of 2"),
        (given(rows=[None, 7]), r"field rows\[1\] .* is float\*, but the number 7 was given"),
        (given(w=(1, 2)), r"field w of kernel apart is float\[3\], but 2 parts were given"),
        (given(other=1), r"kernel apart is Params, but other is none of its parts"),
        (Half(), r"is Params, but a Half was given, which has no inner, rows, w"),
        (None, r"is Params, but None was given: pass a dictionary of its fields, a tuple"),
        (np.zeros(5), r"is Params, but an array of float64 and shape \(5,\) was given: pass"),
    ],
)  # fmt: skip
def test_what_does_not_fit(module, value, message):
    with pytest.raises((DtypeError, LaunchError), match=message):
        module.apart[1, 1](value, 1.0)


def test_counts_are_those_of_the_file(module):
    with pytest.raises(LaunchError, match=r"takes 2 arguments \(Params p, float s\), not 1"):
        module.apart[1, 1](given())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (([1] * 99,), r"argument 1 \(p\) of kernel large is Large, but for a 99 parts were given"),
        (([2.5] * 100,), r"for a\[0\] 2.5 was given, which is not a whole number"),
        ((np.zeros(100, np.float64) + 0.5,), r"for a\[0\] 0.5 was given"),
    ],
)
def test_what_does_not_fit_a_large_value(module, value, message):
    with pytest.raises(DtypeError, match=message):
        module.large[1, 1](value, None)


def test_what_people_see(module):
    assert repr(module.apart) == "<treadle CUDA C++ kernel apart(Params p, float s)>"
    report = module.report("wgsl")
    notes = [(note.construct, note.reason) for note in report["apart"].emulated]
    assert notes == [("Params p", "each pointer in it is a buffer of its own")]
    notes = [(note.construct, note.reason) for note in report["large"].emulated]
    assert notes == [("p by value", "400 bytes, in a buffer of their own")]
    text = module.apart.source("wgsl")
    for name in ("p_x", "p_inner_out", "p_rows_0_", "p_rows_1_"):
        assert f"> {name}: array<f32>;" in text
    assert "var<storage, read> p: array<i32>;" in module.large.source("wgsl")
    for target in ("cuda", "msl", "ptx", "llvm"):
        assert module.apart.source(target)
        assert module.large.source(target)


@pytest.mark.parametrize(
    ("declarations", "parameter", "message"),
    [
        ("struct B { int *x; }; struct A { B b[2]; };", "A *p", "p has arrays of structs with"),
        ("", "cudaTextureObject_t *p", "p points to texture or surface objects: pass them as"),
        ("struct A { int *rows[3]; int &r; };", "A *p", "p points to A, with a reference"),
        ("struct A { int n; int &r; };", "A p", "p, field r, is a reference"),
        ("union A { int *x; int n; };", "A p", "p is a union with pointers in it"),
        ("struct A { int *rows[30][10]; };", "A p", ", is split into more than 256 parameters"),
        ("struct A { int x[9000]; };", "A p", "p has 36,000 bytes, and a kernel's parameters have"),
        ("struct A { int x[9000]; int *y; };", "A p", "field x, has 36,000 bytes"),
    ],
)
def test_what_no_launch_can_give(declarations, parameter, message):
    module = td.cuda_module(f"{declarations}\n__global__ void k({parameter}) {{ }}")
    with pytest.raises(CompileError, match=message) as error:
        module.kernel("k")
    assert error.value.span.line == 2
    assert [note.kind for note in module.report()["k"].notes] == ["refused"]


BODIES = """
struct Rows {{ int *rows[2]; int n; }};
__device__ void clear(Rows *p) {{ p->n = 0; }}
__global__ void k(Rows p, int *out, int i) {{ {body} }}
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("p.rows[2][0] = 1;", "item 2 of an array of 2"),
        ("Rows *q = &p; q[1].n = 2;", "points to one struct has only the index 0"),
        ("p.rows[i] = p.n;", "is not a pointer to int"),
    ],
)
def test_what_kernels_cannot_do_with_them(body, message):
    with pytest.raises(CompileError, match=message):
        td.cuda_module(BODIES.format(body=body)).k.source("wgsl")


def test_functions_as_template_arguments():
    module = td.cuda_module("""
        __device__ float negate(float x) { return -x; }
        __device__ int add(int a, int b) { return a + b; }
        template <float (*F)(float)> __global__ void each(float *x) { x[0] = F(x[0]); }
    """)
    assert module.kernel("each", "negate").name == "each<negate>"
    with pytest.raises(CompileError, match="no function add takes"):
        module.kernel("each", "add").source("wgsl")
    with pytest.raises(CompileError, match="missing is not declared"):
        module.kernel("each", "missing")


def test_many_structs_by_value_go_through_memory():
    parameters = ", ".join(f"A a{k}" for k in range(12))
    sums = " + ".join(f"a{k}.x[{k}]" for k in range(12))
    module = td.cuda_module(f"""
        struct A {{ int x[64]; }};
        __global__ void k({parameters}, int *out) {{ out[0] = {sums}; }}
    """)
    assert list(module.k.instance.uploaded) == [8, 9, 10, 11]
    out = td.zeros(1, dtype=td.int32, device="cpu")
    module.k[1, 1](*(([k] * 64,) for k in range(12)), out)
    assert out.item() == sum(range(12))
