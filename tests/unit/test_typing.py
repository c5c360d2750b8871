"""Type checkers see the public API: they accept a user's program, and find a user's mistakes."""

from __future__ import annotations

import collections
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "support" / "typed"
Findings = dict[str, list[tuple[int, str]]]


def _expected(program: str, which: int) -> list[tuple[int, str]]:
    """The lines that are marked as wrong, and what one of the two checkers calls it."""
    lines = (PROGRAMS / program).read_text().splitlines()
    marks = [(number, re.search(r"# wrong: (.*)", line)) for number, line in enumerate(lines, 1)]
    return [(number, mark[1].split()[which]) for number, mark in marks if mark]


@pytest.fixture(scope="module")
def mypy(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """What mypy finds, with its name for it."""
    cache = tmp_path_factory.mktemp("mypy")
    config = ["--config-file", str(PROGRAMS / "mypy.ini"), "--cache-dir", str(cache)]
    command = [sys.executable, "-m", "mypy", *config, "--output", "json", str(PROGRAMS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Findings = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        each = json.loads(line)
        if each["severity"] == "error":
            found[Path(each["file"]).name].append((each["line"], each["code"]))
    return found


@pytest.fixture(scope="module")
def pyright() -> Findings:
    """What Pyright finds, with its name for it."""
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(PROGRAMS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Findings = collections.defaultdict(list)
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        at = each["range"]["start"]["line"] + 1
        found[Path(each["file"]).name].append((at, each.get("rule", each["message"])))
    return found


# The first of them waits for the checker.
pytestmark = pytest.mark.timeout(600)


def test_mypy_accepts_a_right_program(mypy: Findings) -> None:
    assert mypy["right.py"] == []


def test_pyright_accepts_a_right_program(pyright: Findings) -> None:
    assert pyright["right.py"] == []


def test_mypy_finds_each_mistake(mypy: Findings) -> None:
    assert set(mypy["wrong.py"]) == set(_expected("wrong.py", 0))


def test_pyright_finds_each_mistake(pyright: Findings) -> None:
    found = pyright["wrong.py"]
    marked = _expected("wrong.py", 1)
    assert set(marked) <= set(found)
    # What else it says is about the same mistakes: it goes on with what it does not know.
    assert {line for line, _ in found} == {line for line, _ in marked}


def test_the_right_program_runs(tmp_path: Path) -> None:
    code = f"import runpy; runpy.run_path({str(PROGRAMS / 'right.py')!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
