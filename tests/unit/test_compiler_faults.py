"""The table of compilers' faults, its page, and that each has its test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import faults
from treadle.codegen.faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_the_faults_of_today():
    page = faults.PAGE.read_text(encoding="utf-8")
    assert faults.with_table(page) == page, "run python tools/faults.py"


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_each_has_its_test_and_its_place(fault: Fault):
    file, names = fault.test.split("::")
    for name in names.split(", "):
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
    for module in filter(None, fault.where.split(", ")):
        assert (ROOT / "src" / "treadle" / module).is_file()
