"""The page of limitations tells the truth."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_pages_table_is_the_one_in_the_source() -> None:
    spec = importlib.util.spec_from_file_location("limitations", ROOT / "tools" / "limitations.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.PAGE.read_text(encoding="utf-8")
    assert tool.page_with_table(page) == page, "run python tools/limitations.py"
