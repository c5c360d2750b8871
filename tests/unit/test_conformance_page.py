"""The page about the Array API says what was recorded, and what records it can be trusted.

The public suite is not here: a small one, whose outcomes are known, stands in for it.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SUITE = """
import pytest

def test_good(): pass
def test_bad(): raise ValueError("no such\\nthing")
def test_left_out(): pytest.skip("not there")
def test_allowed_and_bad(): assert False
def test_allowed_and_good(): pass
def test_sometimes(): pass
def test_harmful(): raise KeyboardInterrupt

@pytest.mark.parametrize("x", ["a | b]", "c"])
def test_each(x): assert x == "c"

@pytest.fixture
def broken(): raise OSError("broken")
def test_error(broken): pass
"""
OPTIONS = """
def pytest_addoption(parser):
    parser.addoption("--disable-deadline", action="store_true")
"""


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules[name] = tool  # dataclasses look their module up
    spec.loader.exec_module(tool)
    return tool


TOOL, PLUGIN = load("conformance"), load("conformance_plugin")


def test_the_page_has_the_tables_of_today() -> None:
    page = TOOL.PAGE.read_text(encoding="utf-8")
    assert page == TOOL.page_with_tables(page), "run python tools/conformance.py"


def test_every_exception_has_a_reason_and_a_test() -> None:
    for one in TOOL.exceptions():
        assert len(one.reason.split()) > 4
        assert one.tests
        assert all(name.startswith("test_") for name in one.tests)


def test_what_is_recorded_is_a_whole_run() -> None:
    results = json.loads(TOOL.RESULTS.read_text(encoding="utf-8"))
    for found in results.values():
        assert tuple(found["counts"]) == TOOL.OUTCOMES
        assert found["counts"]["not asked"] == sum(found["not asked"].values())
        assert sum(found["counts"].values()) > 1000


@pytest.mark.parametrize(
    ("pattern", "matched", "not_matched"),
    [
        ("a.py", ["a.py::test_x", "a.py::C::test_x[1]"], ["b.py::test_x", "a.pyx::test"]),
        ("a.py::test_x", ["a.py::test_x", "a.py::test_x[1]"], ["a.py::test_xy"]),
        ("a.py::test_x[p(*", ["a.py::test_x[p(q)]"], ["a.py::test_x[pq]"]),
        ("a.py::test_x[1]", ["a.py::test_x[1]"], ["a.py::test_x[1.]", "a.py::test_x"]),
    ],
)
def test_patterns(pattern: str, matched: list[str], not_matched: list[str]) -> None:
    assert all(PLUGIN.matches(pattern, name) for name in matched)
    assert not any(PLUGIN.matches(pattern, name) for name in not_matched)


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["one process", "a worker"])
def test_outcomes_of_a_run(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "array_api_tests"
    folder.mkdir()
    (folder / "test_all.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(OPTIONS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    allowed = [
        TOOL.Allowed(("test_all.py::test_allowed*",), "two"),
        TOOL.Allowed(("test_all.py::test_sometimes",), "may fail", always=False),
        TOOL.Allowed(("test_all.py::test_harmful",), "ends the run", run=False),
        TOOL.Allowed(("test_all.py::test_gone", "test_nowhere.py"), "of yesterday"),
        TOOL.Allowed(("test_all.py::test_each[a | b]]",), "one parameter"),
    ]
    outcomes = TOOL.run(tmp_path, allowed, {}, [*options, "-p", "no:cacheprovider"])
    assert {
        name.removeprefix("test_all.py::"): tuple(o.values()) for name, o in outcomes.items()
    } == {
        "test_good": ("passed", ""),
        "test_bad": ("failed", "ValueError: no such"),
        "test_left_out": ("not asked", "not there"),
        "test_allowed_and_bad": ("excepted", "0"),
        "test_allowed_and_good": ("passed, though excepted", "0"),
        "test_sometimes": ("passed, though excepted", "1"),
        "test_harmful": ("excepted", "2"),
        "test_each[a | b]]": ("excepted", "4"),
        "test_each[c]": ("passed", ""),
        "test_error": ("failed", "OSError: broken"),
    }
    assert TOOL.counts(outcomes) == {"passed": 4, "excepted": 3, "not asked": 1, "failed": 2}
    assert TOOL.surprises(allowed, outcomes) == ["test_all.py::test_allowed_and_good"]
    assert TOOL.unused(allowed, outcomes) == [allowed[3]]
    capsys.readouterr()
    assert TOOL.report(outcomes, allowed) == 1
    said = capsys.readouterr().out
    assert "   1 test_all.py::test_bad: ValueError: no such\n" in said
    assert "an exception that nothing needs: test_all.py::test_gone, test_nowhere.py\n" in said
    good = {"test_all.py::test_good": {"outcome": "passed", "detail": ""}}
    assert TOOL.report(good, []) == 0
    assert TOOL.report({}, []) == 1


def test_tables() -> None:
    results = {
        "webgpu": {
            "name": "a GPU",
            "suite": "abc", "version": "2024.12", "examples": 7, "lacks": ["float64", "int64"],
            "counts": {"passed": 1, "excepted": 2, "not asked": 3, "failed": 4},
            "not asked": {"no fft": 3},
        },
    }  # fmt: skip
    table = TOOL.counts_table(results)
    assert "| `webgpu` | float64, int64 | 1 | 2 | 3 | 4 |\n" in table
    assert "`webgpu` is a GPU: version 2024.12 of the standard, 7 drawn examples a test" in table
    assert "array-api-tests at abc. Not asked: 3 × no fft." in table
    listed = [TOOL.Allowed(("a.py::b[c | d]",), "because", ("cpu", "webgpu"))]
    assert r"| `a.py::b[c \| d]` | cpu, webgpu | because |" in TOOL.exceptions_table(listed)
    assert listed[0].counts_on("webgpu:1")
    assert not listed[0].counts_on("dawn:0")
    assert TOOL.Allowed((), "").counts_on("anything")
