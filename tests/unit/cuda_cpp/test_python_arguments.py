"""What launches take from Python: structs as objects, names of parameters, template arguments in
the name; and what they say of what they do not take."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import DtypeError, LaunchError

SOURCE = """
typedef struct { float p[3]; int id; unsigned short w; bool flag; } Particle, *ParticlePointer;
struct P { float a; int n; };
__global__ void record(ParticlePointer q, Particle *p) { p[0].id = sizeof(*q); }
__global__ void value(P p, float *out) { out[0] = p.a + p.n; }
__global__ void number(int n, float a, float *out) { out[0] = n + a; }
__global__ void vectors(float4 *v) { v[1].x = 1; }
template <class T, int N = 3> __global__ void made(T *out) { out[0] = N; }
template <class T, class U> __global__ void both(T *out) { out[0] = sizeof(U); }
namespace ns { template <class T> __global__ void inner(T *out) { out[0] = 7; } }
"""
RECORD = [("p", "f4", 3), ("id", "i4"), ("w", "u2"), ("flag", "?")]


@pytest.fixture(scope="module")
def module():
    return td.cuda_module(SOURCE)


@dataclass
class Fields:
    a: float
    n: int


@pytest.mark.parametrize("one", [Fields(1.5, 2), SimpleNamespace(n=2, a=1.5), (1.5, 2)])
def test_structs(module, one):
    out = td.zeros(1, device="cpu")
    module.value[1, 1](one, out)
    assert out.tolist() == [3.5]


@pytest.mark.parametrize(
    ("one", "words"),
    [
        ({"a": 1.0}, "n is missing (there are a, n)"),
        ({"a": 1.0, "n": 2, "z": 3}, "z is none of its parts"),
        (SimpleNamespace(a=1.0), "a SimpleNamespace was given, which has no n"),
        (object(), "an object that has a, n"),
        (3, "pass a dictionary of its fields"),
    ],
)
def test_wrong_structs(module, one, words):
    with pytest.raises(DtypeError, match=re.escape(words)):
        module.value[1, 1](one, td.zeros(1, device="cpu"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id": ("id", "f4")}, "the field id of the given records is f32, where i32 is needed"),
        ({"w": ("w", "u1"), "flag": ("flag", "u1")}, "the field w of the given records is u8"),
        ({"id": ("id", "i4", 2)}, "the field id"),
        ({"w": ("flag", "?"), "flag": ("w", "u2")}, "w of the given records begins at byte 18"),
    ],
)
def test_wrong_records(module, changes, words):
    dtype = np.dtype([changes.get(one[0], one) for one in RECORD], align=True)
    with pytest.raises(DtypeError) as caught:
        module.record[1, 1](None, np.zeros(2, dtype))
    assert words in str(caught.value)
    assert "Particle is 20 bytes" in str(caught.value)


def test_another_field(module):
    dtype = np.dtype([*RECORD, ("more", "u1")], align=True)
    with pytest.raises(DtypeError, match="the given records have another field, more"):
        module.record[1, 1](None, np.zeros(2, dtype))


def test_a_record(module):
    records = np.zeros(2, np.dtype(RECORD, align=True))
    module.record[1, 1](None, records)
    assert records["id"].tolist() == [20, 0]


def test_names_of_parameters(module):
    out = td.zeros(1, device="cpu")
    module.number[1, 1](2, out=out, a=0.5)
    assert out.tolist() == [2.5]
    for keywords, words in (
        ({"n": 1}, "n is given twice"),
        ({"m": 1}, "m is none of its parameters"),
        ({"a": 1.0}, "out is missing"),
    ):
        with pytest.raises(LaunchError, match=words):
            module.number[1, 1](2, **keywords)


def test_numbers(module):
    out = td.zeros(1, device="cpu")
    with pytest.raises(LaunchError, match=r"argument 2 \(a\).* 1e\+300 is too large for a float"):
        module.number[1, 1](1, 1e300, out)
    half = td.cuda_module("#include <cuda_fp16.h>\n__global__ void k(half a) {}").k
    with pytest.raises(LaunchError, match=r"argument 1 \(a\).* 65520.0 is too large for a half"):
        half[1, 1](65520.0)
    half[1, 1](65519.0)
    module.number[1, 1](1, np.inf, out)
    assert out.tolist() == [np.inf]
    with pytest.raises(DtypeError, match=r"pass x\.item\(\)"):
        module.number[1, 1](td.asarray(2), 1.0, out)
    with pytest.raises(LaunchError, match="128 deep, and CUDA allows 64 along z"):
        module.number[1, (1, 1, 128)]


def test_rows_of_vectors(module):
    for shape in ((2, 4), (8,), (8, 1), (1, 8)):
        x = td.zeros(shape, device="cpu")
        module.vectors[1, 1](x)
        assert x.reshape(-1).tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    with pytest.raises(
        LaunchError, match=r"rows of 3 are no whole vectors: pass one whose last axis is 4"
    ):
        module.vectors[1, 1](td.zeros((4, 3), device="cpu"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("made<float>", 3), ("made<float, 5>", 5), ("ns::inner< float >", 7), ("both<float,P>", 8)],
)
def test_template_arguments_in_the_name(module, name, value):
    out = td.zeros(1, device="cpu")
    module.kernel(name)[1, 1](out)
    assert out.tolist() == [value]


def test_too_few_template_arguments(module):
    with pytest.raises(LaunchError, match="both has the template parameters T, U, and these"):
        module.kernel("both", td.f32)
    with pytest.raises(LaunchError, match="both has the template parameters T, U"):
        module.kernel("both<float, int, int>")


def test_macros_as_nvcc_has_them():
    source = "__global__ void k(int *x) { x[0] = D + E; }"
    module = td.cuda_module(source, defines=["D=3", "-DE"])
    x = td.zeros(1, dtype=td.int32, device="cpu")
    module.k[1, 1](x)
    assert x.tolist() == [4]
    with pytest.raises(TypeError, match="defines are a dictionary, or a list of texts"):
        td.cuda_module(source, defines=[3])
