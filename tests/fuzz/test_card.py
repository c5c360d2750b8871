"""The tool that tries cards with drawn kernels: what it draws, compares, reduces and counts."""

from __future__ import annotations

import queue
import time
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.fuzz import card
from tests.fuzz.cases import FAMILIES, Case, CudaCase, PythonCase
from tests.fuzz.reducing import reduced_tape, reduced_text
from tests.fuzz.running import Arrays, differences, interpreted


@pytest.mark.parametrize("seed", range(4))
def test_wide_kernels_in_python_do_what_the_interpreter_does(seed):
    case = FAMILIES["python"](card.tape_of("python", seed))
    assert isinstance(case, PythonCase)
    right = interpreted(case.program, case.kernel)
    for name in ("cpu", "webgpu"):
        assert not list(differences(right, case.run(td.device(name))))


@pytest.mark.parametrize("seed", range(4))
def test_wide_kernels_in_cuda_cpp_do_what_c_says(seed):
    case = FAMILIES["cuda-cpp"](card.tape_of("cuda-cpp", seed))
    assert isinstance(case, CudaCase)
    for name in ("cpu", "webgpu"):
        np.testing.assert_array_equal(case.run(td.device(name))["out"], case.drawing.words)


@pytest.mark.parametrize(
    ("family", "seed", "word"), [("python", 3, " % "), ("cuda-cpp", 2, "(int)")]
)
def test_a_fault_is_reduced_to_what_shows_it(family, seed, word):
    """As if every kernel that has an operator were wrong."""
    make = FAMILIES[family]

    def runs(case: Case) -> bool:
        try:
            case.run(td.device("cpu"))
        except Exception:
            return False
        return word in case.text

    tape = card.tape_of(family, seed)
    assert runs(make(tape))
    case = make(reduced_tape(tape, lambda t: runs(make(t)), 4.0))
    text = reduced_text(case.text, lambda t: runs(case.with_text(t)), 4.0)
    assert runs(case.with_text(text))
    assert len(text) <= len(case.text) < len(make(tape).text)


class _Wrong:
    """A kernel that "webgpu:0" computes wrongly."""

    text = "x"

    def run(self, device: td.Device) -> Arrays:
        return {"out": np.array([1, 2 + (device.id == "webgpu:0")])}

    def with_text(self, text: str) -> Case:
        return self

    def __str__(self) -> str:
        return "the kernel"


def test_what_differs_is_reported_and_counted(monkeypatch):
    monkeypatch.setitem(FAMILIES, "wrong", lambda tape: _Wrong())
    results: queue.Queue[Any] = queue.Queue()
    job = card.Job(("webgpu:0",), ("wrong",), 7, 1, 1, time.time() + 60, 0.2)
    at = [0]
    card.work(job, results, at, 0)
    found = [results.get_nowait() for _ in range(results.qsize())]
    assert found[-1] is None
    assert at == [7]
    (report,) = [text for kind, text in found[:-1] if kind == "report"]
    assert "=== wrong, seed 7\nwebgpu:0: out[1] is 3, not 2" in report
    (counts,) = [counts for kind, counts in found[:-1] if kind == "count"]
    assert counts == {"wrong kernels": 1, "webgpu:0 WRONG": 1}


def test_memory_keeps_what_is_first_written_into_it():
    kernel = """__global__ void drawn(int *out)
{
    __shared__ unsigned s2;
    if (i == 0) s2 = 0;
    short l2[4];
    for (int k = 0; k < 4; k++) l2[k] = (59 >> 3);
    int v1 = s2;
    v1 += l2[1];
    out[0] = v1;
}
"""
    wanted = ("out[0] = v1", "int v1 = s2", "v1 += l2[1]")
    text = reduced_text(kernel, lambda t: all(each in t for each in wanted), 2.0)
    assert "if (i == 0) s2 = 0;" in text
    assert "l2[k] =" in text
