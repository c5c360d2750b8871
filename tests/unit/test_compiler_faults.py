"""The table of compilers' faults, its page, and that each has its test."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from treadle.codegen.faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("faults_tool", ROOT / "tools" / "faults.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_faults_of_today():
    made = tool()
    page = made.PAGE.read_text(encoding="utf-8")
    assert made.with_table(page) == page, "run python tools/faults.py"


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_each_has_its_test_and_its_place(fault: Fault):
    file, name = fault.test.split("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
    for module in filter(None, fault.where.split(", ")):
        assert (ROOT / "src" / "treadle" / module).is_file()
