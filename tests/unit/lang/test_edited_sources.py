"""Files that are edited while Python runs: a kernel is what the running code says, or refused."""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError

KERNEL = """
import treadle as td

SCALE = 1

@td.func
def helper(x):
    return x + 10

@td.elementwise
def shifted(x):
    return x + 100

@td.kernel
def k(out: td.Array[td.i32]):
    out[0] = helper(2) * SCALE

def plain(out: td.Array[td.i32]):
    out[0] = 2
"""

Edit = Callable[..., None]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module in a file; Python reads it without bytecode of an earlier text."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "edited_kernels.py").write_text(KERNEL)
    importlib.invalidate_caches()
    yield importlib.import_module("edited_kernels")
    del sys.modules["edited_kernels"]


def edit(module: ModuleType, *changes: tuple[str, str], text: str = KERNEL) -> None:
    assert module.__file__ is not None
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    Path(module.__file__).write_text(text)


def value(kernel: Any) -> int:
    out = td.zeros(1, dtype=td.i32, device="cpu")
    kernel[1, 1](out)
    with td.interpret():
        interpreted = np.zeros(1, np.int32)
        kernel[1, 1](interpreted)
    assert interpreted[0] == out.item()
    return int(out.item())


def test_a_reload_runs_the_new_text(module: ModuleType) -> None:
    assert value(module.k) == 12
    assert module.shifted(td.ones(1, dtype=td.i32, device="cpu")).item() == 101
    edit(module, ("x + 10\n", "x * 20\n"), ("x + 100", "x + 3000"), ("* SCALE", "- SCALE"))
    old = module.k
    importlib.reload(module)
    assert value(module.k) == 39
    assert module.shifted(td.ones(1, dtype=td.i32, device="cpu")).item() == 3001
    # A name taken before goes on with its own text, and with what its module's names mean now.
    assert value(old) == 40
    edit(module, ("helper(2) *", "missing(22) *"))
    importlib.reload(module)
    with pytest.raises(CompileError, match="missing is not defined") as caught:
        value(module.k)
    assert "out[0] = missing(22) * SCALE" in str(caught.value)


def test_an_edit_without_a_reload_changes_nothing(module: ModuleType) -> None:
    edit(module, ("x + 10\n", "x * 20\n"), ("x + 100", "x + 3000"), ("* SCALE", "- SCALE"))
    linecache.clearcache()
    assert value(module.k) == 12, "not compiled before the edit"
    assert module.shifted(td.ones(1, dtype=td.i32, device="cpu")).item() == 101


def test_a_function_that_moved_in_its_file(module: ModuleType) -> None:
    edit(module, ("def plain", "# a comment\n\n\ndef unrelated(): pass\n\ndef plain"))
    kernel = td.kernel(module.plain)
    assert value(kernel) == 2
    assert kernel.source_code.span(kernel.source_code.tree).line == 23


@pytest.mark.parametrize(
    "change",
    [
        ("out[0] = 2", "out[0] = 3"),
        ("out[0] = 2", "out[0] = 1000"),
        ("out[0] = 2", "out[1] = 2"),
        ("out[0] = 2", "print(2)"),
        ("def plain(out:", "def other(out:"),
        ("def plain(out:", "def plain(out"),
    ],
)
def test_edited_text_is_refused_where_it_is_not_what_runs(
    module: ModuleType, change: tuple[str, str]
) -> None:
    edit(module, change)
    with pytest.raises(CompileError, match=r"edited after that\. Reload the module") as caught:
        td.kernel(module.plain)
    assert caught.value.file == module.__file__


def test_a_deleted_file_is_what_was_read_of_it(module: ModuleType) -> None:
    assert module.__file__ is not None
    Path(module.__file__).unlink()
    assert value(module.k) == 12


def test_new_code_in_a_function_that_is_there(module: ModuleType) -> None:
    """Reloaders such as IPython's autoreload do this to functions."""
    held, helper = module.plain, module.helper.definition
    kernel = td.kernel(held)
    calls = module.k
    assert (value(kernel), value(calls)) == (2, 12)
    edit(module, ("out[0] = 2", "out[0] = 7"), ("x + 10\n", "x + 50\n"))
    before = module.helper
    importlib.reload(module)
    held.__code__ = module.plain.__code__
    assert value(kernel) == 7
    module.helper, new = before, module.helper.definition  # the old one, with the new code
    assert value(calls) == 12
    helper.__code__ = new.__code__
    assert value(calls) == 52


def run_cell(name: str, text: str, scope: dict[str, Any]) -> None:
    """As notebooks run cells: the text is in linecache under the cell's name."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), scope)


def test_a_cell_that_is_run_again_under_its_name() -> None:
    name = "<a cell of this test>"
    scope: dict[str, Any] = {"td": td}
    cell = "@td.func\ndef f(x):\n    return x + {}\n\n@td.kernel\ndef k(out):\n    out[0] = f(1)\n"
    run_cell(name, cell.format(1), scope)
    first, helper = scope["k"], scope["f"]
    run_cell(name, cell.format(5), scope)
    assert value(scope["k"]) == 6
    scope["f"] = helper  # first used now, while linecache has the second text
    assert value(first) == 2


def test_pythons_warnings_are_not_said_again(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "warned.py"
    text = "def f(out):\n    out[0] = 1\n\ndef g():\n    return 1 is 2\n"
    path.write_text(text)
    scope: dict[str, Any] = {}
    with pytest.warns(SyntaxWarning):
        exec(compile(text, str(path), "exec"), scope)
    assert value(td.kernel(scope["f"])) == 1
    assert not [each for each in recwarn if each.category is SyntaxWarning]


def test_executed_text_in_the_name_of_another_file(tmp_path: Path) -> None:
    path = tmp_path / "other.py"
    text = "def f(out):\n    out[0] = 1\n"
    path.write_text(text.replace("1", "2"))
    scope: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), scope)
    with pytest.raises(CompileError, match="is not what f was made from"):
        td.kernel(scope["f"])


@pytest.mark.parametrize("after", ["", "def half_written(:\n"])
def test_a_part_of_a_file_that_runs_by_itself(tmp_path: Path, after: str) -> None:
    """As editors run a part: under the file's name and on its lines. Python compiles calls in
    another way where the name is imported in the same text, and the rest may not be Python yet."""
    path = tmp_path / "parts.py"
    body = "def f(out: td.Array[td.i32]):\n    out[td.grid(1)] = td.i32(6.5)\n"
    nested = "def made(n):\n    @td.kernel\n    def k(out):\n        out[0] = n\n    return k\n"
    path.write_text(f"import treadle as td\n\n{body}\n{nested}\n{after}")
    scope: dict[str, Any] = {"td": td}
    exec(compile("\n\n" + body, str(path), "exec"), scope)
    exec(compile("\n" * 5 + nested, str(path), "exec"), scope)
    assert value(td.kernel(scope["f"])) == 6
    assert value(scope["made"](8)) == 8
    late: dict[str, Any] = {"td": td}
    exec(compile("\n\n" + body, str(path), "exec"), late)
    path.write_text(path.read_text().replace("6.5", "7.5"))
    with pytest.raises(CompileError, match="is not what f was made from"):
        td.kernel(late["f"])


def test_cells_with_annotations_as_strings() -> None:
    """A shell keeps `from __future__ import annotations` of an earlier cell."""
    import __future__

    name, text = "<a cell with a past>", "def f(out: td.Array[td.i32]):\n    out[0] = 4\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"td": td}
    exec(compile(text, name, "exec", __future__.annotations.compiler_flag), scope)
    assert value(td.kernel(scope["f"])) == 4
