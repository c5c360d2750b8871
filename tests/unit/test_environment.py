"""Environment variables: what they may be, and one line for what makes no sense."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from treadle.core import environment
from treadle.core.environment import choice, count, is_on


@pytest.fixture
def said(monkeypatch):
    lines = []
    monkeypatch.setattr(environment, "warn_once", lines.append)
    return lines


@pytest.mark.parametrize("value", ["1", "true", "YES", "on", " On "])
def test_on(monkeypatch, said, value):
    monkeypatch.setenv("TREADLE_CHECK", value)
    assert is_on("TREADLE_CHECK")
    assert not said


@pytest.mark.parametrize("value", ["", " ", "0", "false", "No", "OFF", None])
def test_off(monkeypatch, said, value):
    monkeypatch.delenv("TREADLE_CHECK", raising=False)
    if value is not None:
        monkeypatch.setenv("TREADLE_CHECK", value)
    assert not is_on("TREADLE_CHECK")
    assert not said


def test_a_switch_that_is_neither(monkeypatch, said):
    monkeypatch.setenv("TREADLE_CHECK", "ture")
    assert not is_on("TREADLE_CHECK")
    assert said == [
        "TREADLE_CHECK is 'ture': it can be 1, true, yes or on for on, 0, false, no or off for "
        "off; it is ignored (off)"
    ]


@pytest.mark.parametrize(("value", "taken"), [("", "ptx"), ("CUDA", "cuda"), ("hip", "ptx")])
def test_a_choice(monkeypatch, said, value, taken):
    monkeypatch.setenv("TREADLE_CUDA_LANGUAGE", value)
    assert choice("TREADLE_CUDA_LANGUAGE", ("ptx", "cuda")) == taken
    refused = ["TREADLE_CUDA_LANGUAGE is 'hip': it can be ptx or cuda; it is ignored (ptx)"]
    assert said == (refused if value == "hip" else [])


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "x", "²", "9" * 5000, "1025"])
def test_a_number_that_is_none(monkeypatch, said, value):
    monkeypatch.setenv("TREADLE_CPU_THREADS", value)
    assert count("TREADLE_CPU_THREADS", 1024, "all") is None
    (line,) = said
    assert line.endswith(": it can be a whole number from 1 to 1024; it is ignored (all)")
    assert len(line) < 200


def test_numbers(monkeypatch, said):
    for value, number in (("", None), ("1", 1), (" 1024 ", 1024)):
        monkeypatch.setenv("TREADLE_CPU_THREADS", value)
        assert count("TREADLE_CPU_THREADS", 1024, "all") == number
    assert not said


def test_threads_of_numpys_library():
    """Its own variable comes first; without both it is left as it is."""
    code = (
        "from threadpoolctl import threadpool_info\n"
        "import treadle as td\n"
        "td.ones(3, device='cpu').tolist()\n"
        "print(*[each['num_threads'] for each in threadpool_info() if 'numpy' in each['filepath']])"
    )
    libraries = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    plain = {name: value for name, value in os.environ.items() if name not in libraries}
    for variables, threads in (
        ({"TREADLE_CPU_THREADS": "3", "OMP_NUM_THREADS": "2"}, "3"),
        ({"TREADLE_CPU_THREADS": "3", "OPENBLAS_NUM_THREADS": "1"}, "1"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], env=plain | variables, capture_output=True, text=True
        )
        assert done.stdout.strip() == threads, done.stderr


def test_a_program_gets_one_line_for_each():
    wrong = {
        "TREADLE_CHECK": "maybe",
        "TREADLE_EAGER": "sometimes",
        "TREADLE_EXPLAIN": "why",
        "TREADLE_NO_CACHE": "perhaps",
        "TREADLE_NO_CUBLAS": "please",
        "TREADLE_CUDA_LANGUAGE": "fortran",
        "TREADLE_CPU_THREADS": "many",
    }
    code = (
        "import treadle as td\n"
        "assert (td.ones(3, device='cpu') + 1).tolist() == [2, 2, 2]\n"
        "assert td.zeros(3, device='cpu').tolist() == [0, 0, 0]"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | wrong, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(wrong), done.stderr
    for name, value in wrong.items():
        (line,) = (one for one in lines if one.startswith(name))
        assert f"{name} is {value!r}: it can be " in line
