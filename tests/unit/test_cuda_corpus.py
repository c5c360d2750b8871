"""The trial of public kernels: its lists, what it reads of sources, and how it compares."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tools.cuda_corpus import acceptance_table, compare, instances, makefiles, page, sources
from tools.cuda_corpus.listing import tried
from tools.cuda_corpus.spec import (
    REASONS,
    Array,
    Exact,
    Holds,
    Levels,
    Norm,
    Printed,
    Share,
    Trial,
    dims,
)
from tools.cuda_corpus.trials import ALL, BEYOND, EXCLUDED, TRIALS

SOURCE = """
#include <cublas_v2.h>
#include <stdio.h>
#define SIZE 4
struct __align__(8) Pair { int a, b; };
static cublasHandle_t handle;
__constant__ float table[] = {1, 2};
const char *text = "} not an end {";
template <class T> T half_of(T x) { return x / 2; } // } on the host
template <class T> __device__ T twice(T x) { return x * 2; }
extern "C" {
__global__ void __launch_bounds__(64, (2)) first(Pair *p) { if (p) { p->a = twice(p->b); } }
void launch() { first<<<1, 1>>>(0); }
}
template <int N>
__global__ void second(int *x); /* a declaration */
int main() { return '}'; }
"""


def test_kernels_of_a_text():
    assert sources.kernels_in(SOURCE) == ["first"]


def test_host_code_goes():
    text = sources.without_host(SOURCE)
    for kept in ("<stdio.h>", "SIZE", "Pair", "table[]", "text =", "twice", "first", "second"):
        assert kept in text
    for gone in ("cublas", "half_of(", "launch()", "main"):
        assert gone not in text
    text = text.replace("// } on the host", "")
    assert text.count("{") == text.count("}")


def trial(agreement) -> Trial:
    return Trial("file", "kernel", agreement=agreement)


ONES = np.ones(100, np.float32)


@pytest.mark.parametrize(
    ("agreement", "ours", "well"),
    [
        (Exact(), ONES, True),
        (Exact(), ONES * np.float32(1.0000001), False),
        (Norm(1e-5, ""), ONES * np.float32(1.000001), True),
        (Norm(1e-5, ""), ONES * np.float32(1.001), False),
        (Norm(1e-5, ""), np.where(np.arange(100) == 3, np.nan, ONES).astype(np.float32), False),
        (Norm(1e-5, ""), ONES.astype(np.float64), False),
        (Share(0.02, ""), np.where(np.arange(100) == 3, 9, ONES).astype(np.float32), True),
        (Share(0.02, ""), ONES + 1, False),
        (Holds(lambda found: bool((found[0] > 0).all()), ""), ONES + 5, True),
        (Holds(lambda found: bool((found[0] > 0).all()), ""), -ONES, False),
        (Printed(), -ONES, True),
    ],
)
def test_agreement(agreement, ours, well):
    assert (compare.difference(trial(agreement), [ours], [ONES]) == "") is well


def test_agreement_of_bytes_and_of_what_is_no_number():
    image = np.arange(16, dtype=np.uint32)
    assert compare.difference(trial(Levels(1, "")), [image + 1], [image]) == ""
    assert compare.difference(trial(Levels(1, "")), [image + 2], [image])
    nothing = np.array([np.nan, np.inf, 1], np.float32)
    for agreement in (Exact(), Norm(1e-5, "")):
        assert compare.difference(trial(agreement), [nothing], [nothing]) == ""
        assert compare.difference(trial(agreement), [-nothing], [nothing])
    viewed = Norm(1e-5, "", np.float32)
    assert compare.difference(trial(viewed), [ONES.view(np.uint8)], [ONES.view(np.uint8)]) == ""


def test_agreement_of_lines():
    assert compare.difference_of_lines("a\nb\nb\n", "b\na\nb\n") == ""
    assert compare.difference_of_lines("a\nb\n", "b\na\nb\n")


def test_every_trial_makes_its_arguments():
    assert len({one.name for one in ALL}) == len(ALL)
    for one in ALL:
        if one.impossible:
            continue
        assert 0 < np.prod(dims(one.block)) <= 1024, one.name
        assert min(dims(one.grid)) > 0, one.name
        arrays = [a.make(one.rng()) for a in one.arguments if isinstance(a, Array)]
        again = [a.make(one.rng()) for a in one.arguments if isinstance(a, Array)]
        for array, same in zip(arrays, again, strict=True):
            np.testing.assert_array_equal(array, same)


def test_exclusions():
    assert {one.reason for one in EXCLUDED} <= set(REASONS)
    excluded = {(one.file, one.kernel) for one in EXCLUDED}
    assert not excluded & tried()
    assert {(one.file, one.kernel) for one in BEYOND} <= excluded


def _accepted(*kernels, file="a.cu", problem=""):
    return {"file": file, "problem": problem, "kernels": list(kernels)}


def _kernel(name, line, **told):
    return {"name": name, "file": "a.cu", "line": line, "targets": told}


WELL = dict.fromkeys(acceptance_table.TARGETS, "")
ACCEPTED = [
    _accepted(
        _kernel("k", 1, **WELL),
        _kernel("bad", 2, all="a.cu:3\nn_3 is not declared\nx[0] = n_3;"),
        _kernel("late", 9, **{**WELL, "browser": "a.cu:9\na b: use c\n"}),
    ),
    # The same header's kernel, which another file refuses for less, and one that was not parsed.
    _accepted(
        _kernel("bad", 2, browser="b", native="", ptx="b", cpu="b"),
        _kernel("k", 0, all="b.cu:1\nno\n"), file="b.cu", problem="b.cu:1\nno\n",
    ),
]  # fmt: skip


def test_what_is_accepted():
    """A kernel counts once; it is accepted by a target if any file that has it is."""
    made = acceptance_table.counts(ACCEPTED)
    assert made == {
        "files": 2, "parsed": 1, "kernels": 3, "apart": 0, "browser": 1, "narrow": 2, "native": 3,
        "ptx": 2, "cpu": 2,
    }  # fmt: skip
    words = acceptance_table.table({"project": ACCEPTED})
    assert "1 kernels (1 browser, 1 narrow, 1 ptx, 1 cpu): … is not declared" in words


def test_instances_to_try(tmp_path):
    """Those that a file writes come first, with plain ones for names of the code around."""
    source = tmp_path / "a.cu"
    source.write_text(
        "enum class E { A, B };\n"
        "template <typename T, int N, bool B, E M> __global__ void k(T *x) { x[0] = N; }\n"
        "template <typename T> void run() { const int M = 64; k<T, M, true, E::B><<<1, 1>>>(0); }\n"
        "void main2() { k<double, 3 + 4, false, E::A><<<1, 1>>>(0); }\n"
    )
    module = td.cuda_module(source)
    launches = instances.Launches(source, {}, [])
    tries = launches.of(module.template("k"))
    assert ("float", "64", "true", "E::B") in tries
    assert ("double", "3 + 4", "false", "E :: A") in tries
    assert ("int", "256", "true", "E::B") in tries
    for arguments in tries[:4]:
        module.kernel("k", *arguments)


WRAPPED = """
struct Plus { __device__ float operator()(float a, float b) { return a + b; } };
struct Halve { __device__ float next(float a) { return a / 2; } };
template <class T> struct Box { typedef T Item; };
template <typename T, typename F>
__global__ void deduced(T *x, Box<T> b, F f) { x[0] = f(x[0], 1); }
template <typename T, int N> __global__ void written(T *x) { x[0] = N; }
template <typename G> __global__ void guessed(float *x, G g) { x[0] = g.next(x[0]); }
template <class D, class T, int N> struct Runner {};
struct Card {};
template <class T, int N> struct Runner<Card, T, N> {
    void run(T *x) { using Alias = T; written<Alias, N * 2><<<1, 1>>>(x); }
};
template struct Runner<Card, short, 3>;
template <class F, typename T> void launch(T *x, F f) { deduced<<<1, 1>>>(x, Box<T>(), f); }
int main() { double *values; Plus plus; launch(values, plus); }
"""


def test_launches_tell_types(tmp_path):
    """Through functions and classes around a launch, aliases, and the types of its arguments."""
    source = tmp_path / "a.cu"
    source.write_text(WRAPPED)
    module = td.cuda_module(source)
    launches = instances.Launches(source, {}, [])
    assert launches.of(module.template("deduced"))[0] == ("double", "Plus")
    assert launches.of(module.template("written"))[0] == ("short", "3 * 2")
    better = launches.better(
        module.template("guessed"), ("float",), "a value of type float has no member next"
    )
    assert list(better) == [("Halve",)]


def test_macros_of_makefiles(tmp_path):
    makefile = tmp_path / "Makefile"
    makefile.write_text(
        "DEBUG = no\nN ?= 4\nifeq ($(DEBUG),yes)\nFLAGS += -DDEBUG\nelse\n"
        "FLAGS += -DFAST -I.\nendif\n"
        "all:\n\tnvcc $(FLAGS) -DSIZE=$(N) -D'KIND=double' a.cu\n"
    )
    defines, folders = makefiles.options(makefile)
    assert defines == {"FAST": "1", "SIZE": "4", "KIND": "double"}
    assert folders == [tmp_path / "."] * len(folders)


def test_the_page(monkeypatch, tmp_path):
    """Written from a result with one kernel that agrees and one that does not."""
    names = [one for one in TRIALS if not one.impossible][:2]
    rows = [
        {
            "name": one.name, "file": one.file, "kernel": one.kernel, "targets": {"wgsl": ""},
            "reference": "", "runs": {"cpu": ""}, "agrees": {"cpu": words},
        }
        for one, words in zip(names, ("", "2 of 9 elements | differ"), strict=True)
    ]  # fmt: skip
    content = {
        "date": "2026-11-28", "machine": "m", "card": "c", "base": "cuda-itself",
        "compiler": "nvcc 13", "names": {"cpu": "a processor"}, "devices": ["cpu"],
        "files": {names[0].file: ""}, "trials": rows,
    }  # fmt: skip
    monkeypatch.setattr(page, "RESULT", tmp_path / "result.json")
    monkeypatch.setattr(page, "SPEEDS", tmp_path / "none.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    record = acceptance_table.recorded({"project": ACCEPTED})
    path = tmp_path / acceptance_table.RECORDS["known"]
    path.write_text(page.json.dumps(record), encoding="utf-8")
    page.RESULT.write_text(page.json.dumps(content), encoding="utf-8")
    page.write()
    text = page.PAGE.read_text(encoding="utf-8")
    assert "| **agrees** on `cpu` | 1 (" in text
    assert r"2 of 9 elements \| differ" in text
    assert "| project | 1 of 2 | 3 | 0 | 1 (33/33 %) | 2 (67/67 %) | 3 (100/100 %) |" in text
    assert "| … is not declared | 1 | 1 | 0 | 1 | 1 |" in text
