"""Editors complete the public names, show their docstrings, and find where they are defined."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import treadle as td
from tests.support.language_server import Editor

ROOT = Path(__file__).resolve().parents[2]
TEXT = """import treadle as td
import treadle.nn.functional as F
x = td.ones(3)
td.
x.
x.sum
td.exp
td.sum
td.atomic_add
F.softmax
td.nn.Linear
"""


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    settings = {"extraPaths": [str(ROOT / "src")], "pythonPath": sys.executable}
    opened = Editor(ROOT / "tests" / "support" / "typed", TEXT, settings)
    yield opened
    opened.close()


@pytest.mark.parametrize(("line", "names"), [
    ("td.", set(td.__all__)),
    ("x.", {name for name in dir(td.Tensor) if name[0] != "_" and hasattr(td.Tensor, name)}),
])  # fmt: skip
def test_names_are_completed(editor: Editor, line: str, names: set[str]) -> None:
    assert names <= editor.completions(line)


@pytest.mark.parametrize(("line", "shown"), [
    ("x.sum", td.sum), ("td.exp", td.exp), ("td.sum", td.sum), ("td.atomic_add", td.atomic_add),
    ("F.softmax", td.nn.functional.softmax), ("td.nn.Linear", td.nn.Linear),
])  # fmt: skip
def test_docstrings_are_shown(editor: Editor, line: str, shown: object) -> None:
    first = (inspect.getdoc(shown) or "").splitlines()[0]
    found = editor.hover(line).replace("\\", "")
    assert first in found
    assert ">>> import treadle as td" in found


@pytest.mark.parametrize(("line", "file"), [
    ("x.sum", "tensor/declarations.pyi"), ("td.exp", "lang/builtins.py"),
    ("td.sum", "tensor/reductions.py"), ("td.atomic_add", "lang/builtins.py"),
    ("F.softmax", "tensor/functional/normalization.py"), ("td.nn.Linear", "nn/linear.py"),
])  # fmt: skip
def test_definitions_are_found(editor: Editor, line: str, file: str) -> None:
    assert any(found.endswith(f"/treadle/{file}") for found in editor.definitions(line))
